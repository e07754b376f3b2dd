/* norm.h: normalisation across channels (op/norm.h) as a family of solvers, forward and backward.
 *
 * Layouts are strides: with the other axes joined where they can be, channels are `channel` elements apart
 * and what lies side by side are places of an image (bc01), images (c01b) or the channels themselves
 * (b01c). */
#ifndef MC_NORM_H
#define MC_NORM_H

#include "op/norm.h"
#include "plan/plan.h"

struct mc_norm_problem {
    struct mc_problem base;
    mc_dtype dtype;
    struct mc_norm_shape s;
    int64_t at[3][MC_MAX_RANK];     /* element strides of x, g and the result, in the order of x's axes */
};
/* operand[] of a plan's run; g is not there forward; y overlaps neither */
enum { NORM_X, NORM_G, NORM_Y };

extern const struct mc_family mc_norm_family;
/* Sets the base of a copy of p and calls the planner. */
struct mc_plan *mc_norm_plan(const struct mc_norm_problem *p, const struct mc_plan_options *o);
/* The same on the GPU that the thread has entered: operands in its memory. */
extern const struct mc_family mc_norm_cuda;
struct mc_plan *mc_norm_cuda_plan(const struct mc_norm_problem *p, const struct mc_plan_options *o);
/* The problem of a map_norm or map_norm_grad node from the type of x and the strides of x, g (NULL forward)
 * and the result, in bytes. */
mc_status mc_norm_problem_of(const mc_node *n, const struct mc_type *x, const int64_t *const strides[3],
                             struct mc_norm_problem *p);

#endif
