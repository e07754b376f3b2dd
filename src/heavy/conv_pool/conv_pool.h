/* conv_pool.h: a convolution and the max pooling of its result y as one problem. y is not stored.
 *
 *   FORWARD   x, w -> g, marks    g: the maximum of each window of y; marks: the number of that cell in the
 *                                 uncut window
 *   INPUTS    w, g, marks  ->  x  the gradient of y is g at the marked cells and 0 elsewhere
 *   WEIGHTS   x, g, marks  ->  w  likewise
 *
 * The two gradients have a term for each window, where those of a convolution have one for each element of y:
 * four times as many for adjacent windows of 2x2. */
#ifndef MC_CONV_POOL_H
#define MC_CONV_POOL_H

#include "heavy/conv/conv.h"
#include "op/pool.h"

struct mc_pooled_problem {
    struct mc_problem base;
    /* with its direction; alpha is 1, beta 0; base and at.y are not used.  Bias and activation are those of
     * the maxima */
    struct mc_conv_problem conv;
    int64_t w[3], stride[3], pad[3], out[3]; /* of windows over y, by spatial axis */
    int64_t g[5], mark[5];          /* strides in elements by image, filter, three spatial axes */
    mc_dtype marks;                 /* MC_UINT8 or MC_INT32 */
    bool bits;                      /* marks are bits of the cells that equal the maximum (POOL_KEY_BITS) */
    bool unmarked;                  /* FORWARD: no marks are wanted, and operand[POOLED_MARKS] is NULL */
};
/* operand[] of a plan's run; the epilogue is that of a convolution; FORWARD calls it for blocks of g */
enum {
    POOLED_X,
    POOLED_W,
    POOLED_G,
    POOLED_MARKS,
    POOLED_BIAS,
    POOLED_NEXTENT,
    POOLED_EPILOGUE = CONV_EPILOGUE,
    POOLED_EPILOGUE_ARG,
    POOLED_NOPERAND
};

/* Returns NULL without an error if no solver takes the problem, or if flags name solvers of its parts. NULL
 * with an error: out of memory. */
extern const struct mc_family mc_pooled_family;
struct mc_plan *mc_pooled_plan(const struct mc_pooled_problem *p, const struct mc_plan_options *o);
extern const struct mc_family mc_pooled_cuda;
/* operands in the memory of the thread's current GPU */
struct mc_plan *mc_pooled_cuda_plan(const struct mc_pooled_problem *p, const struct mc_plan_options *o);

#endif
