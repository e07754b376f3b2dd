/* pool.h: pooling as a family of solvers: one problem for all passes, modes, ranks and layouts.
 *
 * Arrays stand by role (op/pool.h): X is shaped as the images, Y as the pooled ones, KEY as Y (marks) or as
 * X.  FORWARD reads X and writes Y, and marks too if they are asked for; SPREAD reads Y (and KEY) and writes
 * X; GATHER reads X and KEY and writes Y.  Layouts are strides: bc01 has stride 1 along the last pooled axis,
 * c01b along images, b01c along channels. */
#ifndef MC_POOL_H
#define MC_POOL_H

#include "op/pool.h"
#include "plan/plan.h"

struct mc_pool_problem {
    struct mc_problem base;
    mc_dtype dtype;                 /* of X and Y */
    bool marks;                     /* FORWARD: are marks wanted?  Where nobody reads them this saves time */
    struct mc_pool_shape s;
    /* element strides by role, in the order of x's axes; KEY's in elements of its own */
    int64_t at[POOL_NARRAY][MC_MAX_RANK];
};
/* Runs on a finished block of the result while it is in cache, at[], size[] in the order of its axes.  Blocks
 * are disjoint and cover the result; calls come from several threads. */
typedef void mc_pool_epilogue(void *arg, const int64_t at[MC_MAX_RANK], const int64_t size[MC_MAX_RANK]);
/* operand[] of a plan's run: POOL_X, POOL_Y, POOL_KEY, none of which overlaps what is written; a function
 * (NULL: none; on a GPU there is none) and what it is given */
enum { POOL_EPILOGUE = POOL_NARRAY, POOL_EPILOGUE_ARG, POOL_NOPERAND };

extern const struct mc_family mc_pool_family;
/* Sets the base of a copy of p and calls the planner. */
struct mc_plan *mc_pool_plan(const struct mc_pool_problem *p, const struct mc_plan_options *o);
/* The same on the GPU that the thread has entered: operands in its memory. */
extern const struct mc_family mc_pool_cuda;
struct mc_plan *mc_pool_cuda_plan(const struct mc_pool_problem *p, const struct mc_plan_options *o);
/* The problem of a node (mc_pool_roles says which) from the types and values of its inputs, as
 * mc_pool_shape_of takes them, and the strides of its arrays by role, in bytes; strides[POOL_KEY] is NULL
 * where there is no such array, or nobody reads the marks that FORWARD would write. */
mc_status mc_pool_problem_of(const mc_node *n, const struct mc_type *in, const mc_array *const *value,
                             const int64_t *const strides[POOL_NARRAY], struct mc_pool_problem *p);

#endif
