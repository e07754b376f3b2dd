/* scalar_ops.h: every scalar op of the table on arrays, and the shapes that its operands broadcast from. */
#ifndef SCALAR_OPS_H
#define SCALAR_OPS_H

#include "plain.h"

#define EACH_SCALAR(op)                                                                            \
    for (const struct mc_op *op = NULL; !op;)                                                      \
        for (int row_ = 0; (op = mc_op_at(row_)) && op->arity; row_++)

/* The dtype that operand k has when the op is called on d. */
static inline mc_dtype operand(const struct mc_op *op, int k, mc_dtype d)
{
    return op->typing == TYPE_WHERE && k == 0 ? MC_BOOL : d;
}

static inline bool takes(const struct mc_op *op, mc_dtype d)
{
    bool no_bool = strcmp(op->name, "sub") == 0 || strcmp(op->name, "neg") == 0;
    return !(op->typing == TYPE_BITS && mc_is_float(d)) && !(no_bool && d == MC_BOOL);
}

static inline mc_dtype result_dtype(const struct mc_op *op, mc_dtype d)
{
    switch (op->typing) {
    case TYPE_BOOL: return MC_BOOL;
    case TYPE_INT64: return MC_INT64;
    case TYPE_FLOAT: return mc_is_float(d) ? d : mc_dtype_to_float(d);
    case TYPE_DIV: return mc_is_float(d) ? d : mc_dtype_floatX();
    default: return d;
    }
}

/* The op on arrays; sizes of 1 are promised, so they broadcast. */
static inline mc_array *apply(const struct mc_op *op, mc_array *const *in)
{
    mc_graph *g = mc_graph_new();
    mc_node *leaf[3], *y;
    mc_array *out = NULL;
    for (int i = 0; i < op->arity; i++) {
        char name[2] = { (char)('a' + i), 0 };
        leaf[i] = mc_input_sized(g, name, in[i]->dtype, in[i]->rank, in[i]->dims);
    }
    y = mc_op(g, op->name, op->arity, leaf, NULL);
    if (CHECK(g->status == MC_OK, "%s: %s", op->name, mc_error(g))) {
        mc_status s = mc_eval(op->arity, leaf, in, 1, &y, &out);
        CHECK(s == MC_OK, "%s: %s", op->name, mc_last_error());
    }
    mc_graph_free(g);
    return out;
}

static inline double at(const mc_array *a, int64_t i) /* of a C-ordered array */
{
    return mc_load_f64(a->dtype, a->data + i * mc_dtypes[a->dtype].size);
}

static inline bool near(double a, double b, double tol)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tol * fmax(1, fabs(b));
}

static const struct { int rank; int64_t dims[2]; } patterns[] = {
    { 2, { 3, 4 } }, { 2, { 1, 4 } }, { 2, { 3, 1 } }, { 2, { 1, 1 } }, { 1, { 4 } }, { 1, { 1 } }, { 0, { 0 } },
};
enum { NPATTERN = (int)NELEM(patterns) };

#endif
