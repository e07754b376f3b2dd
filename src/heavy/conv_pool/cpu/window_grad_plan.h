/* window_grad_plan.h: what plans and runs of window_grad.c share. */
#ifndef MC_HEAVY_CONV_POOL_CPU_WINDOW_GRAD_PLAN_H
#define MC_HEAVY_CONV_POOL_CPU_WINDOW_GRAD_PLAN_H

#include "heavy/conv_pool/cpu/window_grad.h"
#include "heavy/conv_pool/solver.h"

/* weights: filters of a task, at least and at most: an image comes from far for each */
enum { LINE = 64, FEW = 8, MANY = 32 };
enum { NEAR = 24 << 10 };                   /* inputs: bytes of filters that stay in the first cache */
enum { CELLS = 256 };                        /* that a mark tells apart */

struct marked {
    struct mc_plan base;
    const struct mc_window_grad_kernel *k;
    int64_t lines, columns, pitch;          /* of an image's block, and floats of a line of it */
    int64_t each, blocks;                   /* channels of a block; of an image */
    int64_t across, vectors;                /* of a line of taps; of all */
    int64_t part, parts;                    /* vectors that are summed at once, and how many such parts */
    int64_t deep, wide, filters;            /* weights: lines and columns of such a part; filters of a task */
    int64_t windows, tasks;                 /* of a plane; of a call */
    int slots;
    size_t shared, own;                     /* bytes of all threads; of each */
    int64_t *tap;                           /* inputs: by vector: its distance from the element */
    int32_t *first, off[CELLS];             /* weights: by window: where its cell 0 reads; by mark */
    int32_t *place;                         /* inputs: by window and cell: where it adds */
};
static inline size_t marked_room(int64_t floats)
{
    return ((size_t)floats * sizeof(float) + LINE - 1) / LINE * LINE;
}

static inline int64_t marked_block(const struct marked *d)
{
    return d->lines * d->pitch;
}

mc_status mc_window_grad_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif
