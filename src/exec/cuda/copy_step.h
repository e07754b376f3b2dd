/* copy_step.h: what far_work.c and far_region.c share: a step's copies, and the region behind them. */
#ifndef MC_EXEC_CUDA_COPY_STEP_H
#define MC_EXEC_CUDA_COPY_STEP_H

#include "exec/cuda/cuda.h"
#include "heavy/cuda/region_args.h"

enum { REGION_WORD = 16 };      /* bytes that a thread moves at once */

struct mc_copy_step_part {                   /* one copy; both are dense: only bytes */
    struct mc_cuda_copy *copy;
    size_t bytes;
    int src, dst;
    int64_t at;                 /* bytes into the result */
};
struct mc_copy_step {
    struct mc_exec exec;
    VEC(struct mc_copy_step_part) part;
    void *targets, *chain, *move; /* NULL: not launched */
    void *rows;                 /* NULL, or what moves where words of x and y are aligned */
    struct mc_region_args args;
    mc_dtype dtype;             /* of both */
    int x, y, index[8];         /* values */
    int64_t x_at;               /* bytes to where the region begins */
};

/* far_work.c */
int  mc_copy_step_value(const struct mc_function *f, const mc_node *n);
/* in elements, of what lies dense */
void mc_copy_step_strides(int rank, const int64_t *dims, int64_t *stride);
/* a copy of all of a value */
mc_status mc_copy_step_whole(struct mc_copy_step *w, const struct mc_shape_plan *p, int src, int dst);
/* far_region.c */
typedef mc_status mc_copy_step_make(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                               struct mc_copy_step *w);
mc_copy_step_make mc_region_take, mc_region_set, mc_region_part;

#endif
