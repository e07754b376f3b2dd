/* conv.h: convolution as a family of solvers: one problem for all directions, ranks, layouts and borders.
 *
 *   result = act(alpha * pass(operands) + beta * c0 + bias),  then the epilogue on each finished block
 *
 * Operands are numbered by role (x, w, y), so that a solver for one direction can pass its arrays to a solver
 * for another. The direction writes one of the three. Layouts are strides: bc01 has stride 1 along the last
 * spatial axis, b01c along channels, c01b along images. A solver refuses strides that it cannot handle; the
 * wrapper relayout copies to strides that it can. c0 is the old result or, with `residual`, an operand of its
 * own with the strides of the result. If beta is 0, c0 is not read, so NaN and infinity in it do not reach
 * the result. */
#ifndef MC_CONV_H
#define MC_CONV_H

#include "heavy/gemm/gemm.h"
#include "op/conv.h"
#include "plan/plan.h"

/* Called on a finished block of the result while the block is in cache. at[] and size[] are first indices and
 * sizes along n, f (or c) and three spatial axes; for weights along f, c and three taps, at all positions of
 * y if filters are unshared. A block of one row, sizes 1 along the first two spatial axes, may be longer
 * than the row: it goes on with the next rows. Blocks are disjoint and cover the result. Several threads call
 * it. */
typedef void mc_conv_epilogue(void *arg, const int64_t at[5], const int64_t size[5]);
struct mc_conv_problem {
    struct mc_problem base;
    mc_dtype dtype;                 /* float64, float32, float16, bfloat16 (accumulated in float32) */
    struct mc_conv_shape s;
    struct mc_conv_strides at;
    double alpha, beta;
    /* on the CPU: a function that the solver calls for each finished block */
    bool has_epilogue;
    bool residual;                  /* c0 is an operand of its own, not the old result */
    bool w_stays;                   /* w is the same in many runs; on the host, forward and inputs */
    bool has_bias;                  /* on a GPU, forward: one number is added for each filter */
    enum mc_act act;                /* on a GPU, forward: applied to the sum with c0 and bias */
    /* on a GPU: float32 operands may be rounded to 10 bits; mc_conv_cuda_plan sets it from precision */
    bool tf32;
    /* override the flags conv.algo_* and conv.precision; NULL: use the flags */
    const char *algo, *precision;
    /* accumulate in float64 whatever dtype is; mc_conv_plan sets it from precision */
    bool wide;
    /* bits of the wrappers around this problem (solver.h); 0 in a problem that a caller makes */
    unsigned inner;
};
/* operand[] of a plan's run, after x, w, y. bias: (f) */
enum { CONV_C0 = CONV_Y + 1, CONV_BIAS, CONV_EPILOGUE, CONV_EPILOGUE_ARG, CONV_NOPERAND };

extern const struct mc_family mc_conv_family;
/* Copies p, sets the base of the copy and calls the planner. */
struct mc_plan *mc_conv_plan(const struct mc_conv_problem *p, const struct mc_plan_options *o);
/* true: a GPU may round operands of dtype t to TF32. NULL: use the flag conv.precision */
bool mc_conv_may_round(mc_dtype t, const char *precision);
/* seconds of a run, as mc_plan_seconds returns them */
double mc_conv_seconds(const struct mc_family *family, const struct mc_conv_problem *p,
                       const struct mc_plan_options *o);
/* `first` is the plan of the same node at another shape. Returns the name of its solver if p's algo chooses
 * once (guess_once, time_once) and the solver does not refuse p, else NULL. */
const char *mc_conv_keep(const struct mc_conv_problem *p, const struct mc_plan_options *o,
                         const struct mc_plan *first);
/* The same on the thread's current GPU. Operands are in its memory. */
extern const struct mc_family mc_conv_cuda;
struct mc_plan *mc_conv_cuda_plan(const struct mc_conv_problem *p, const struct mc_plan_options *o);

#endif
