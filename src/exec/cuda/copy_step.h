/* copy_step.h: what copy_step.c and index_step.c share: a step's copies, and the region after them. */
#ifndef MC_EXEC_CUDA_COPY_STEP_H
#define MC_EXEC_CUDA_COPY_STEP_H

#include "exec/cuda/cuda.h"
#include "heavy/cuda/region_args.h"

enum { REGION_WORD = 16 };      /* bytes that a thread moves at once */

/* one copy; NULL `copy`: both sides are contiguous, `bytes` are copied */
struct mc_copy_step_part {
    struct mc_cuda_copy *copy;
    struct mc_cuda_layout layout;
    size_t bytes;
    int src, dst;
    int64_t at;                 /* offset in the result, bytes */
};
struct mc_copy_step {
    struct mc_exec exec;
    VEC(struct mc_copy_step_part) part;
    void *targets, *chain, *move; /* NULL: not launched */
    void *rows;                 /* in place of `move` if the words of x and y are aligned; or NULL */
    struct mc_region_args args;
    bool few;                   /* `move` adds to a copy of x in each block first */
    mc_dtype dtype;             /* of x and y */
    int x, y, index[8];         /* value ids */
    int64_t x_at;               /* offset of the region, bytes */
    const int64_t *start;       /* memory that has another such offset at each call; or NULL */
    void *find;                 /* finds a slice whose bounds are in the GPU's memory; or NULL */
    struct mc_region_bounds bounds;
    int bound[8][3];            /* value ids of those that have addresses; -1: it has none */
};

/* copy_step.c */
const struct mc_copy_step *mc_copy_step_of(const struct mc_exec *e); /* NULL: it is no step of copies alone */
int  mc_copy_step_value(const struct mc_function *f, const mc_node *n);
/* strides of contiguous memory, in elements */
void mc_copy_step_strides(int rank, const int64_t *dims, int64_t *stride);
/* adds a copy of a whole value */
mc_status mc_copy_step_whole(struct mc_copy_step *w, const struct mc_shape_plan *p, int src, int dst);
/* index_step.c */
typedef mc_status mc_copy_step_make(struct mc_function *f, const struct mc_shape_plan *p,
                                    const struct mc_step *st, struct mc_copy_step *w);
mc_copy_step_make mc_region_take, mc_region_set, mc_region_part, mc_region_slice;

#endif
