/* norm.h: normalisation across channels (op/norm.h) as a family of solvers, forward and backward.
 *
 * Layouts are strides. The other axes are joined where possible. Contiguous are positions of an image (bc01),
 * images (c01b) or the channels (b01c). */
#ifndef MC_NORM_H
#define MC_NORM_H

#include "op/norm.h"
#include "plan/plan.h"

struct mc_norm_problem {
    struct mc_problem base;
    mc_dtype dtype;
    struct mc_norm_shape s;
    int64_t at[3][MC_MAX_RANK];     /* strides of x, g and the result in elements, in the order of x's axes */
};
/* operand[] of a plan's run; forward has no g; y overlaps neither x nor g */
enum { NORM_X, NORM_G, NORM_Y };

extern const struct mc_family mc_norm_family;
/* Copies p, sets the base of the copy and calls the planner. */
struct mc_plan *mc_norm_plan(const struct mc_norm_problem *p, const struct mc_plan_options *o);
/* The same on the thread's current GPU. Operands are in its memory. */
extern const struct mc_family mc_norm_cuda;
struct mc_plan *mc_norm_cuda_plan(const struct mc_norm_problem *p, const struct mc_plan_options *o);
/* The problem of a map_norm or map_norm_grad node. x: the type of x; strides: of x, g (NULL forward) and the
 * result, in bytes. */
mc_status mc_norm_problem_of(const mc_node *n, const struct mc_type *x, const int64_t *const strides[3],
                             struct mc_norm_problem *p);

/* print.c: prints a block of C99, indented for the body of a function, that computes the problem.  operand:
 * C expressions of typed pointers, by role; NULL: there is none.  They may not use the names norm_x, norm_g,
 * norm_y, which the block declares.  The block needs stdint.h and math.h.  float32 and float64 only:
 * MC_EUNSUPPORTED. */
mc_status mc_norm_print(struct mc_str *out, const struct mc_norm_problem *q, const char *const operand[3]);

#endif
