/* t_kernel.c: kernels against the reference of the graphs they come from: every scalar op and dtype, every
 * kind of reduction over every set of axes, rows in several stages, odd sizes and strides, memory that is
 * used again.  What is compared is always whole functions, in FAST_RUN and in DEBUG. */
#include "agree.h"
#include "sample.h"

#include <string.h>

/* ---- scalar ops ---- */

static bool takes(const struct mc_op *op, mc_dtype d)
{
    bool no_bool = strcmp(op->name, "sub") == 0 || strcmp(op->name, "neg") == 0;
    return !(op->typing == TYPE_BITS && mc_is_float(d)) && !(no_bool && d == MC_BOOL);
}

static mc_array *within(mc_dtype d, int rank, const int64_t *dims, const struct mc_op *op)
{
    bool unsigned_ = mc_dtypes[d].kind == KIND_UINT || d == MC_BOOL;
    double lo = unsigned_ ? MC_MAX(op->lo, 0) : op->lo, hi = d == MC_BOOL ? 1 : op->hi;
    return sample(d, rank, dims, mc_is_float(d) ? lo : ceil(lo), mc_is_float(d) ? hi : MC_MAX(floor(hi), ceil(lo)));
}

/* All scalar ops on one dtype in one function: each op has operands of its own. */
static void scalar_ops(mc_dtype d, int rank, const int64_t *dims)
{
    const struct mc_op *op;
    for (int row = 0; (op = mc_op_at(row)) && op->arity;) {
        struct agree a = { .g = mc_graph_new() };
        for (; (op = mc_op_at(row)) && op->arity && a.nout < 24 && a.nin < AGREE_MOST - 4; row++) {
            mc_node *arg[3];
            if (!takes(op, d)) {
                continue;
            }
            for (int i = 0; i < op->arity; i++) {
                char name[40];
                snprintf(name, sizeof name, "%s_%d", op->name, i);
                mc_dtype t = op->typing == TYPE_WHERE && i == 0 ? MC_BOOL : d;
                arg[i] = agree_input(&a, name, within(t, rank, dims, op), 0);
            }
            a.out[a.nout++] = mc_op(a.g, op->name, op->arity, arg, NULL);
        }
        if (a.nout) {
            agree(&a, mc_dtype_name(d));
        } else {
            agree_free(&a);
        }
    }
}

TEST(kernels_of_scalar_ops_on_floats)
{
    scalar_ops(MC_FLOAT32, MC_SHAPE(67));
    scalar_ops(MC_FLOAT64, MC_SHAPE(5, 7));
}

TEST(kernels_of_scalar_ops_on_integers)
{
    scalar_ops(MC_INT32, MC_SHAPE(61));
    scalar_ops(MC_BOOL, MC_SHAPE(9));
}

TEST_FULL(kernels_of_scalar_ops_on_all_dtypes)
{
    for (int d = 0; d < MC_NDTYPE; d++) {
        scalar_ops((mc_dtype)d, MC_SHAPE(3, 35));
    }
}
