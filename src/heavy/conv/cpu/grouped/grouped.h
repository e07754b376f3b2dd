/* grouped.h: sums of grouped convolutions whose groups are woven: lane f * weave + g of a position is channel
 * f of group g, so that the terms of channel c of all groups are `weave` adjacent floats, which one load
 * repeats in all lanes.
 *
 * Invariant: kernels read and write whole vectors of the copies only. */
#ifndef MC_CONV_GROUPED_H
#define MC_CONV_GROUPED_H

#include "base/base.h"

/* Taps side by side: tap t of position j reads position j + t from `at` on. w: the first one's place among
 * the packed filters, which are [channel][tap][width]. */
struct grouped_run { int64_t at, w; int taps; };
enum { GROUPED_TAPS = 3 /* of a run */ };
/* Positions of three vectors each of whose vectors has lanes of two others, (0, 1), (0, 2) and (1, 2): `lane`
 * then is an index of the lanes of such a pair. */
#define GROUPED_PAIRS { { 0, 1 }, { 0, 2 }, { 1, 2 } }
/* to[j * to_step] = sums over runs, taps and channels, for `count` positions of each row.  width: lanes of a
 * position.
 * lane: of positions of one vector or of pairs, as of mc_grouped_mix, or NULL */
struct mc_grouped_rows {
    const struct grouped_run *run;
    int64_t runs;
    const float *x, *w;
    float *to;
    const int32_t *lane;
    int64_t width, channels, rows, count, x_row, to_row, to_step;
};
/* sums[channel][tap][width] += sum over rows and j of x[row][j + tap][channel] * y[row][j]; in front of a row
 * of y and behind it are GROUPED_TAPS - 1 positions of zeros. */
struct mc_grouped_dots {
    const float *x, *y;
    double *sums;
    int taps;
    int64_t width, channels, rows, count, x_row, y_row;
};
/* Lane l of the place[i]-th position of `to` (NULL: the i-th) is lane lane[l] of the i-th of `from` (NULL:
 * l).
 * `to` may be `from`, in the same steps.  The same for `units` units, to_unit and from_unit floats apart. */
struct mc_grouped_mix {
    float *to;
    const float *from;
    const int *place;
    const int32_t *lane;
    int64_t to_step, from_step, width, count, units, to_unit, from_unit;
    bool pairs;
};
enum { GROUPED_WIDTH = 256 /* most lanes of a position */ };
struct mc_grouped_kernel {
    int lanes;
    int taps[4];                             /* most of a run, by the vectors of a tile: their filters stay in
                                              * registers beside the sums */
    int most;                                /* floats that a load can repeat */
    bool pairs;                              /* has instructions that permute a pair of vectors */
    void (*rows)(const struct mc_grouped_rows *r, int weave);
    void (*dots)(const struct mc_grouped_dots *d, int weave);
    void (*mix)(const struct mc_grouped_mix *m);
    void (*gather)(float *to, const float *from, const int32_t *at, int64_t n); /* n: whole vectors */
};
extern const struct mc_grouped_kernel *const mc_grouped_avx512, *const mc_grouped_avx2;

#endif
