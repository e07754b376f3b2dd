/* op.h: the tables of ops, and the reference.
 *
 * Scalar ops are rows of ops.def, formula ops are rows of formulas.def. Structured ops are rows at the end
 * of the file of their family (shape.c, axes.c, reduce.c, running.c, index.c, gather.c, join.c, make.c,
 * product.c, conv*.c, image.c, pool*.c, norm*.c, sort.c, random.c, effect.c, collective.c). table.c lists
 * the families.
 * The reference (op->eval) is plain loops over strided arrays; every kernel and solver is tested against
 * it. */
#ifndef MC_OP_H
#define MC_OP_H

#include "graph/graph.h"

struct mc_op_family {
    const char *title;
    const struct mc_op *row;
    int n;
    const int *count;  /* where n is stored, if not in n */
    /* what holds of dtypes and sizes in all rows; of families with one title the first has it */
    const char *rules;
};
extern const struct mc_op_family mc_op_families[]; /* in the order of the table and of the manual */
extern const int mc_nop_families;
extern const struct mc_op mc_ops_shape[], mc_ops_axes[], mc_ops_reduce[], mc_ops_running[], mc_ops_index[],
    mc_ops_gather[], mc_ops_join[], mc_ops_make[], mc_ops_product[], mc_ops_sort[], mc_ops_random[],
    mc_ops_effect[], mc_ops_conv[], mc_ops_conv_names[], mc_ops_conv_kin[], mc_ops_image[], mc_ops_pool[],
    mc_ops_pool_draw[], mc_ops_pool_names[], mc_ops_norm[], mc_ops_norm_batch[], mc_ops_scan[],
    mc_ops_ctc[], mc_ops_collective[], mc_ops_ifelse[], mc_ops_branch[], mc_ops_along[], mc_ops_position[],
        mc_ops_pad[],
    mc_ops_einsum[], mc_ops_fft[], mc_ops_linalg[], mc_ops_linalg_names[];
extern const int mc_nops_shape, mc_nops_axes, mc_nops_reduce, mc_nops_running, mc_nops_index, mc_nops_gather,
    mc_nops_join, mc_nops_make, mc_nops_product, mc_nops_sort, mc_nops_random, mc_nops_effect, mc_nops_conv,
    mc_nops_conv_names, mc_nops_conv_kin, mc_nops_image, mc_nops_pool, mc_nops_pool_draw, mc_nops_pool_names,
    mc_nops_norm, mc_nops_norm_batch, mc_nops_scan, mc_nops_ctc, mc_nops_collective,
    mc_nops_ifelse, mc_nops_branch, mc_nops_along, mc_nops_position, mc_nops_pad, mc_nops_einsum, mc_nops_fft,
    mc_nops_linalg, mc_nops_linalg_names;

/* For src/op and the tests only. Elsewhere, test the flags, form or fold of the op, or match a pattern
 * (scripts/layers.sh counts the uses). */
static inline bool mc_is_op(const mc_node *n, const char *name) { return strcmp(n->op->name, name) == 0; }

/* table.c */
const struct mc_op *mc_op_find(const char *name);        /* NULL: no such op; signatures are parsed */
const struct mc_op *mc_op_at(int i);                     /* NULL: i is beyond the last op */
extern const struct mc_language mc_op_language;          /* of graphs without gradients */
const struct mc_op *mc_op_scalar(const char *name);      /* a row of ops.def; NULL: none */
const char *mc_op_family(const struct mc_op *op);        /* the title of its chapter in the manual */
const char *mc_op_family_rules(const struct mc_op *op);  /* rules that hold for its ops */

/* prototype.c */
const char *mc_op_function(const struct mc_op *op);      /* C name without the prefix: "sum" */
/* "mc_node *mc_sum(mc_node *x, const char *how, ...)"; returns the number of the parameter how, or 0. */
int mc_op_prototype(struct mc_str *out, const struct mc_op *op);
/* "sum(x, axis=None)": the call without the kinds of attributes */
void mc_op_call_text(struct mc_str *out, const struct mc_op *op);

/* scalar.c: the reference loops of every scalar op in every dtype */
mc_status mc_scalar_infer(struct mc_infer *q);
mc_node *mc_scalar_size(mc_node *n, int item, int axis);
/* Is a scalar op linear in these inputs jointly (bit i: input i), with the others constant? false: its row
 * does not say so. */
bool mc_op_linear(const struct mc_op *op, unsigned inputs);
mc_node *mc_same_size(mc_node *n, int item, int axis); /* the size of input 0 along the axis */
mc_status mc_scalar_eval(const mc_node *n, mc_array *const *in, mc_array *const *out);

/* formula.c */
/* language of the graphs in which sizes and references of formula ops are computed; set by table.c */
extern const struct mc_language *mc_formula_language;
mc_node *mc_formula_expand(mc_graph *g, const struct mc_op *op, int nin, mc_node *const *in,
                           const struct mc_attr *attr);
mc_status mc_formula_infer(struct mc_infer *q);
mc_status mc_formula_eval(const mc_node *n, mc_array *const *in, mc_array *const *out);

/* eval.c: evaluates a graph by the reference, node by node. The arrays of `from` are given; out[] are new. */
mc_status mc_eval(int nfrom, mc_node *const *from, mc_array *const *value, int nout, mc_node *const *output,
                  mc_array **out);
/* Evaluates one node from the arrays of its inputs. The results are new arrays, or views of inputs for
 * OP_VIEW ops. An array passed in out[i], which must not alias in[], is written if it fits and replaced
 * if not. */
mc_status mc_eval_node(const mc_node *n, mc_array *const *in, mc_array **out);

/* custom.c */
void mc_custom_unref(struct mc_op *op);                  /* drops one reference */
/* A compiled form of an op that is given as kernel text: for inputs of these dtypes, then the result's.  The
 * owner of its code outlives the op. */
struct mc_custom_code {
    mc_dtype dtype[4];
    void (*fn)(void);           /* an mc_kernel_fn */
};
mc_status mc_custom_code_add(const struct mc_op *op, const struct mc_custom_code *code);
/* NULL: there is none */
const struct mc_custom_code *mc_custom_code_of(const struct mc_op *op, const mc_dtype *dtype);
/* value_range.c: a lower bound of the elements of n that are not NaN, found by looking at most `depth`
 * nodes deep. -INFINITY: no bound is known. */
double mc_lower_bound(const mc_node *n, int depth);

/* index.c: x[start:stop] along one axis (NULL: from the beginning, to the end), and x[i] along one axis. */
mc_node *mc_part(mc_node *x, int axis, mc_node *start, mc_node *stop);
mc_node *mc_pick(mc_node *x, int axis, mc_node *i);
/* The range that a subtensor or subtensor_update node takes of each axis of x (sizes dims): start + i *
 * step for i < count. An index drops its axis. in[]: values of the node's inputs; only the bounds are
 * read. */
struct mc_slice_range { int64_t start, count, step; bool index; };
mc_status mc_slice_ranges(const mc_node *n, const int64_t *dims, const mc_array *const *in,
                          struct mc_slice_range *range);
/* The position, in the result of a gather, of the axes that its index tensors span: the number of free
 * axes before them. */
int mc_gather_axis(const mc_node *n);

/* ---- attrs.c: for infer and eval of structured ops ---- */
int64_t mc_attr_int(const struct mc_attr *a);                  /* INT, BOOL, DTYPE */
/* The axes of an ATTR_AXES for rank r: sorted, non-negative, distinct. None means all axes. */
mc_status mc_attr_axes(const struct mc_infer *q, int i, int rank, int *axis, int *n);
/* the same for a node that passed infer; returns the number of axes */
mc_status mc_axes_of(const mc_node *n, int attr, int rank, int *axis);
mc_status mc_axis_check(const char *op, int64_t axis, int rank, int *out); /* -1 is the last axis */
const struct mc_attr *mc_attr_named(const mc_node *n, const char *name);

/* make.c: an input that is a shape: a vector of integers, or one integer for the length of a vector. Its
 * entries are known if it is a constant, a stack that contains constants, or the shape of another node. */
/* entry k of input i; false: not known */
bool mc_shape_entry(const struct mc_infer *q, int i, int k, int64_t *size);
/* the same as an int64 scalar; NULL: there is no such node */
mc_node *mc_shape_entry_node(mc_node *shape, int k);
/* the type of dtype d whose shape is input i; a negative size is an error */
mc_status mc_shape_wanted(const struct mc_infer *q, int i, mc_dtype d, struct mc_type *out);
/* Can a value of sizes x be broadcast to the result (sizes y) of alloc n? */
mc_status mc_alloc_fits(const mc_node *n, const int64_t *x, const int64_t *y);
mc_node *mc_shape_stack(mc_graph *g, int n, mc_node *const *size);  /* int64 scalars as a shape */

/* product.c: can batches of a and of b matrices be multiplied by node n? */
mc_status mc_product_fits(const mc_node *n, int64_t a, int64_t b);

/* effect.c: x, with a check that the condition holds. A constant condition is checked now, others at each
 * call. */
mc_node *mc_hold(mc_node *x, mc_node *condition, const char *says);

/* reduce.c: the default dtype of sums and products of x, and the default accumulator of a sum of dtype d */
mc_dtype mc_sum_dtype(mc_dtype x); /* 64 bits for bool and small integers */
mc_dtype mc_sum_acc(mc_dtype d);   /* float64 for floats */

/* random.c: the random bits; the head of the file says how they become numbers */
void mc_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]); /* Philox4x32-10 */
uint64_t mc_random_mix(uint64_t seed, uint64_t stream);        /* the key of a stream */

#endif
