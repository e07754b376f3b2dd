/* type.c: the type of a tensor: dtype, rank, known sizes. */
#include "graph/graph.h"

struct mc_type mc_type_make(mc_dtype d, int rank, const int64_t *dims)
{
    struct mc_type t = { .dtype = d, .rank = rank };
    for (int i = 0; i < rank; i++) {
        t.dims[i] = dims ? dims[i] : -1;
    }
    return t;
}

bool mc_type_equal(const struct mc_type *a, const struct mc_type *b)
{
    return a->dtype == b->dtype && mc_dims_equal(a->rank, a->dims, b->rank, b->dims);
}

void mc_type_text(struct mc_str *out, const struct mc_type *t)
{
    mc_str_add(out, mc_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++) {
        mc_str_add(out, i ? ", " : "[");
        if (t->dims[i] < 0) {
            mc_str_add(out, "?");
        } else {
            mc_str_addf(out, "%lld", (long long)t->dims[i]);
        }
    }
    if (t->rank) {
        mc_str_add(out, "]");
    }
}

mc_status mc_types_differ(mc_status s, const char *what, int number, const struct mc_type *a,
                          const char *when_a, const struct mc_type *b, const char *when_b)
{
    struct mc_str one = { 0 }, two = { 0 };
    mc_type_text(&one, a);
    mc_type_text(&two, b);
    s = mc_fail(s, "%s %d is %s %s and %s %s", what, number, one.s ? one.s : "", when_a, two.s ? two.s : "",
                when_b);
    mc_str_free(&one);
    mc_str_free(&two);
    return s;
}

mc_status mc_broadcast_types(const struct mc_op *op, int nin, const struct mc_type *in, struct mc_type *out)
{
    out->rank = 0;
    for (int i = 0; i < nin; i++) {
        out->rank = MC_MAX(out->rank, in[i].rank);
    }
    for (int axis = 0; axis < out->rank; axis++) {
        int64_t size = 1;
        for (int i = 0; i < nin; i++) {
            int at = axis - (out->rank - in[i].rank);
            int64_t d = at < 0 ? 1 : in[i].dims[at];
            if (d == 1 || d == size) {
                continue;
            }
            if (size == 1 || size == -1) {
                size = d == -1 && size != 1 ? size : d;
            } else if (d != -1) {
                struct mc_str text = { 0 };
                for (int k = 0; k < nin; k++) {
                    mc_str_add(&text, k ? (k + 1 == nin ? " and " : ", ") : "");
                    mc_dims_text(&text, in[k].rank, in[k].dims);
                }
                mc_status s = mc_fail(MC_ESHAPE,
                                      "%s: shapes %s do not broadcast: sizes %lld and %lld on axis %d",
                                      op->name, text.s ? text.s : "", (long long)size, (long long)d, axis);
                mc_str_free(&text);
                return s;
            }
        }
        out->dims[axis] = size;
    }
    return MC_OK;
}
