/* window_grad_plan.h: what window_grad.c and window_grad_run.c share. */
#ifndef MC_HEAVY_CONV_POOL_CPU_WINDOW_GRAD_PLAN_H
#define MC_HEAVY_CONV_POOL_CPU_WINDOW_GRAD_PLAN_H

#include "heavy/conv_pool/cpu/window_grad.h"
#include "heavy/conv_pool/solver.h"

/* weights: least and most filters of a task; each task reads all images from memory */
enum { LINE = 64, LEAST_FILTERS = 8, MOST_FILTERS = 32 };
enum { NEAR = 24 << 10 };                   /* inputs: bytes of filters that stay in the L1 cache */
enum { CELLS = 256 };                        /* cells of a window that a mark of one byte can number */

struct window_grad {
    struct mc_plan base;
    const struct mc_window_grad_kernel *k;
    int64_t lines, columns, pitch;          /* of a block of an image; floats of a line of it */
    int64_t each, blocks;                   /* channels of a block; blocks of an image */
    int64_t across, vectors;                /* vectors of a line of taps; of all taps */
    int64_t part, parts;                    /* vectors that are summed at once; number of such parts */
    int64_t deep, wide, filters;            /* weights: lines and columns of such a part; filters of a task */
    int64_t windows, tasks;                 /* of a plane; of a call */
    int slots;
    size_t shared, own;                     /* bytes for all threads; bytes for each thread */
    int64_t *tap;                           /* inputs: for each vector, its offset from the element */
    int32_t *first, off[CELLS]; /* weights: offset of cell 0 of each window; of each mark's cell */
    int32_t *cell_offset;                         /* inputs: offset of each window's cells */
};
static inline size_t window_grad_bytes(int64_t floats)
{
    return ((size_t)floats * sizeof(float) + LINE - 1) / LINE * LINE;
}

static inline int64_t window_grad_block(const struct window_grad *d)
{
    return d->lines * d->pitch;
}

mc_status mc_window_grad_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif
