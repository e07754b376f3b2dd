/* pool.h: pooling as a family of solvers: one problem for all directions, modes, ranks and layouts.
 *
 * Arrays are numbered by role (op/pool.h): X has the shape of the images, Y of the pooled images, KEY of Y
 * (marks) or of X. FORWARD reads X and writes Y, and marks if they are wanted. SPREAD reads Y (and KEY) and
 * writes X. GATHER reads X and KEY and writes Y. Layouts are strides: bc01 has stride 1 along the last pooled
 * axis, c01b along images, b01c along channels. */
#ifndef MC_POOL_H
#define MC_POOL_H

#include "op/pool.h"
#include "plan/plan.h"

struct mc_pool_problem {
    struct mc_problem base;
    mc_dtype dtype;                 /* of X and Y */
    bool marks; /* FORWARD: write marks; omitted if no step reads them, which saves time */
    /* FORWARD on a GPU: y = act(v + bias[c]), v is the pooled value, c the position on axis `channel` */
    bool has_bias;
    enum mc_act act;
    int channel;
    struct mc_pool_shape s;
    /* strides by role, in the order of x's axes, in elements of the role's own dtype */
    int64_t at[POOL_NARRAY][MC_MAX_RANK];
};
/* Called on a finished block of the result while the block is in cache. at[] and size[] are in the order of
 * the result's axes. Blocks are disjoint and cover the result. Several threads call it. */
typedef void mc_pool_epilogue(void *arg, const int64_t at[MC_MAX_RANK], const int64_t size[MC_MAX_RANK]);
/* operand[] of a plan's run: POOL_X, POOL_Y, POOL_KEY, where inputs do not overlap what is written; the bias;
 * the epilogue (NULL: none; always NULL on a GPU) and its argument */
enum {
    POOL_BIAS = POOL_NARRAY,
    POOL_NEXTENT,
    POOL_EPILOGUE = POOL_NEXTENT,
    POOL_EPILOGUE_ARG,
    POOL_NOPERAND
};

extern const struct mc_family mc_pool_family;
/* Copies p, sets the base of the copy and calls the planner. */
struct mc_plan *mc_pool_plan(const struct mc_pool_problem *p, const struct mc_plan_options *o);
/* The same on the thread's current GPU. Operands are in its memory. */
extern const struct mc_family mc_pool_cuda;
struct mc_plan *mc_pool_cuda_plan(const struct mc_pool_problem *p, const struct mc_plan_options *o);
/* The problem of a node. mc_pool_roles gives the roles of its inputs. in, value: types and values as for
 * mc_pool_shape_of. strides: of the arrays by role, in bytes; strides[POOL_KEY] is NULL if the node has no
 * such array, or if no step reads the marks that FORWARD would write. */
mc_status mc_pool_problem_of(const mc_node *n, const struct mc_type *in, const mc_array *const *value,
                             const int64_t *const strides[POOL_NARRAY], struct mc_pool_problem *p);

/* print.c: prints a block of C99, indented for the body of a function, that computes the problem.  operand:
 * C expressions of typed pointers, by role; NULL: there is none.  They may not use the names pool_x, pool_y,
 * pool_key, which the block declares.  The block needs stdint.h.  float32 and float64 only: MC_EUNSUPPORTED.
 * SPREAD expects the marks of its FORWARD. */
mc_status mc_pool_print(struct mc_str *out, const struct mc_pool_problem *q,
                        const char *const operand[POOL_NARRAY]);

#endif
