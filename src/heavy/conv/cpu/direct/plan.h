/* plan.h: a convolution as sums over padded planes.
 *
 * With stride s an axis is split in s phases: planes of every s-th place.  Forward and weights read phases of
 * x; inputs reads y and makes phases of x, each by the taps that reach it.
 *
 *   forward   y[u] = sum of xphase[a d % s][u + a d / s] * w[a]
 *   inputs    x[u s + r - pad] = sum over a d = e s + r of y[u - e] * w[a]
 *   weights   w[a] = sum of y[u] * xphase[a d % s][u + a d / s]
 *
 * Invariant: planes have zeros wherever their array has no places. */
#ifndef MC_CONV_DIRECT_PLAN_H
#define MC_CONV_DIRECT_PLAN_H

#include "heavy/conv/cpu/direct/direct.h"
#include "heavy/conv/solver.h"

struct direct_tap { int64_t off, w; };  /* in a channel's planes; in w, beside filter and channel */
/* How an axis is read: place u of plane r is at u * stride + r - before in the array. */
struct direct_axis { int64_t stride, before, count; };
struct direct {
    struct mc_plan base;
    const struct mc_direct_kernel *kernel;
    /* of the source's planes; of the result's phases (weights: of y) */
    struct direct_axis read[2], write[2];
    int64_t pitch;                          /* of a row */
    /* rows that a task makes of each phase, and how many such there are */
    int64_t rows, parts;
    int64_t places;                         /* of those rows in that pitch, whole vectors */
    /* few blocks: each task copies what its rows read, which stays in cache */
    bool own;
    int64_t plane, channel;                 /* floats of a source plane, and of all planes of a channel */
    int64_t dy;                             /* floats of a plane of y, for weights */
    int64_t phases;                         /* of the result */
    int64_t *first;                         /* (phases + 1): where each phase's taps begin */
    struct direct_tap *tap;
    int64_t *off;                           /* of all taps, in that order */
    int64_t taps, from, to, blocks;         /* channels read and made by a group, blocks of the latter */
    int64_t images;                         /* of a chunk */
    size_t source_at, dy_at, w_at, slot_at, slot_bytes;
    int slots;
};

mc_status mc_direct_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

#endif
