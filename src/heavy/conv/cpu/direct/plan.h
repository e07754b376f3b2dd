/* plan.h: a convolution as sums over padded planes.
 *
 * With stride s an axis is split into s phases: planes of every s-th element. Forward and weights read phases
 * of x. Inputs reads y and computes phases of x, each from the taps that reach it.
 *
 *   forward   y[u] = sum of xphase[a d % s][u + a d / s] * w[a]
 *   inputs    x[u s + r - pad] = sum over a d = e s + r of y[u - e] * w[a]
 *   weights   w[a] = sum of y[u] * xphase[a d % s][u + a d / s]
 *
 * Invariant: planes have zeros outside of their array. */
#ifndef MC_CONV_DIRECT_PLAN_H
#define MC_CONV_DIRECT_PLAN_H

#include "heavy/conv/cpu/direct/direct.h"
#include "heavy/conv/solver.h"

/* Are rows with strides copied in vectors?  Not in the runtime library, which is small. */
#ifdef MC_RUNTIME
enum { DIRECT_BY_VECTORS = 0 };
#else
enum { DIRECT_BY_VECTORS = 1 };
#endif
enum { DIRECT_ENOUGH = 8192 }; /* positions whose products with one number of w a register sums */
/* offset in a channel's planes; offset in w, without filter and channel */
struct direct_tap { int64_t off, w; };
/* How an axis is divided: element u of phase r is element u * stride + r - before of the array. */
struct direct_axis { int64_t stride, before, count; };
struct direct {
    struct mc_plan base;
    const struct mc_direct_kernel *kernel;
    /* of the planes of the source; of the phases of the result (weights: of y) */
    struct direct_axis read[2], write[2];
    int64_t pitch;                          /* floats of a row of a plane */
    /* rows of each phase in a task; tasks for the rows */
    int64_t rows, parts;
    int64_t positions; /* positions of those rows in that pitch, rounded up to whole vectors */
    /* few blocks: each task copies the rows that it reads, which then stay in cache */
    bool own;
    int64_t plane, channel; /* floats of a plane of the source, and of all planes of a channel */
    int64_t dy;                             /* floats of a plane of y, for weights */
    int64_t phases;                         /* of the result */
    int64_t *first;                         /* (phases + 1): the first tap of each phase */
    struct direct_tap *tap;
    int64_t *off;                           /* tap[].off as an array */
    int64_t taps, from, to, blocks; /* taps; channels of a group read and computed; blocks of the latter */
    struct mc_direct_tall block; /* channels of a block; vectors of one sum, at most */
    bool stays;     /* w is packed in advance */
    int64_t far;    /* floats of the filters of a block, which are prefetched; 0: all are in a cache */
    int64_t images;                         /* in a chunk */
    /* Forward of few channels, and weights with few filters: a channel has a plane for each column of taps,
     * as narrow as y, so that no position is computed in vain.  columns: their number, k[2]; 0: planes are
     * padded.  For weights a task is a share of the images; it copies a chunk of them at a time, and has its
     * own sums. */
    int64_t columns, shares, numbers;       /* numbers: of w */
    bool in_place;                          /* y is read, or sums are written, where it is */
    bool woven;         /* inputs with stride 2 along rows: both phases of a row are summed, then written */
    size_t source_at, dy_at, w_at, sums_at, slot_at, slot_bytes;
    int slots;
};

/* The elements [lo, hi) of an axis of a plane that exist in an array of `extent`. */
static inline void mc_direct_inside(const struct direct_axis *a, int64_t phase, int64_t extent, int64_t *lo,
                                    int64_t *hi)
{
    *lo = MC_MAX(conv_ceil(a->before - phase, a->stride), (int64_t)0);
    *hi = MC_MIN(conv_ceil(extent + a->before - phase, a->stride), a->count);
    *hi = MC_MAX(*hi, *lo);
}

/* floats of the sums of a task */
static inline int64_t direct_sums(const struct direct *d)
{
    return (d->woven ? 2 : 1) * d->block.rows * d->positions;
}

mc_status mc_direct_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);
void mc_direct_prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                       int threads);
/* floats of w, packed */
static inline int64_t direct_filters(const struct direct *d, const struct mc_conv_shape *s)
{
    return d->blocks * s->groups * d->from * d->taps * d->block.rows;
}

#endif
