/* conv.h: convolution as a family of solvers: one problem for all directions, ranks, layouts and borders.
 *
 *   result = act(alpha * pass(operands) + beta * c0 + bias),  then the epilogue on each finished block
 *
 * Operands stand by role, so that a solver for one pass can hand its arrays to a solver for another: x, w and
 * y, of which the pass writes one.  Layouts are strides: bc01 has stride 1 along the last spatial axis, b01c
 * along channels, c01b along images.  A solver refuses strides it cannot walk; relayout wraps one that could.
 * c0 is the result as it was, or an operand of its own with the strides of the result (residual).  Where beta
 * is 0 there is no c0, and NaN and infinity in it do not leak. */
#ifndef MC_CONV_H
#define MC_CONV_H

#include "heavy/gemm/gemm.h"
#include "op/conv.h"
#include "plan/plan.h"

/* Runs on a finished block of the result while it is in cache: at[], size[] along n, f (or c), three spatial
 * axes (weights: f, c, three taps, at all places of y where unshared).  Blocks are disjoint and cover the
 * result; calls come from several threads. */
typedef void mc_conv_epilogue(void *arg, const int64_t at[5], const int64_t size[5]);
struct mc_conv_problem {
    struct mc_problem base;
    mc_dtype dtype;                 /* float64, float32, float16, bfloat16 (accumulated in float32) */
    struct mc_conv_shape s;
    struct mc_conv_strides at;
    double alpha, beta;
    /* on the host: a function that the solver calls for each finished block */
    bool has_epilogue;
    bool residual;                  /* c0 is an operand of its own, not the result as it was */
    bool has_bias;                  /* on a GPU, forward: one number is added for each filter */
    enum mc_act act;                /* on a GPU, forward: applied to the sum with c0 and bias */
    /* on a GPU: float32 operands may be rounded to 10 bits; mc_conv_cuda_plan sets it from precision */
    bool tf32;
    /* instead of the flags conv.algo_* and conv.precision; NULL: as those say */
    const char *algo, *precision;
    /* accumulate in float64 whatever dtype is; mc_conv_plan sets it from precision */
    bool wide;
    /* solvers that wrap others and are around this problem already; 0 for those who ask */
    unsigned inner;
};
/* operand[] of a plan's run, after x, w, y.  bias: (f) */
enum { CONV_C0 = CONV_Y + 1, CONV_BIAS, CONV_EPILOGUE, CONV_EPILOGUE_ARG, CONV_NOPERAND };

extern const struct mc_family mc_conv_family;
/* Sets the base of a copy of p and calls the planner. */
struct mc_plan *mc_conv_plan(const struct mc_conv_problem *p, const struct mc_plan_options *o);
/* may a GPU take such operands as TF32?  NULL: as the flag says */
bool mc_conv_may_round(mc_dtype t, const char *precision);
/* seconds of a run, as mc_plan_seconds has them */
double mc_conv_seconds(const struct mc_family *family, const struct mc_conv_problem *p,
                       const struct mc_plan_options *o);
/* `first` served the same node at another shape: its solver's name, if what p asks for chooses once
 * (guess_once, time_once) and it does not decline p; else NULL. */
const char *mc_conv_keep(const struct mc_conv_problem *p, const struct mc_plan_options *o,
                         const struct mc_plan *first);
/* The same on the GPU that the thread has entered: operands in its memory. */
extern const struct mc_family mc_conv_cuda;
struct mc_plan *mc_conv_cuda_plan(const struct mc_conv_problem *p, const struct mc_plan_options *o);

#endif
