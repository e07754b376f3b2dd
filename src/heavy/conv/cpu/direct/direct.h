/* direct.h: the two sums of a direct convolution, over positions that are contiguous in padded planes.
 *
 * All planes have the same pitch, so a tap is a constant offset: position j of the result, counted in that
 * pitch, reads positions j + off[t] of the source. What is computed between rows is dropped.
 *
 * Invariant: kernels read at most one vector beyond the last position, and write whole vectors. */
#ifndef MC_CONV_DIRECT_H
#define MC_CONV_DIRECT_H

#include "base/base.h"

/* Channels of the result in one block, where a kernel has no tall tiles or they are few. */
enum { DIRECT_ROWS = 4 };
/* Tall blocks: of `rows` channels, all of which are computed, by at most `vectors` vectors. */
struct mc_direct_tall { int rows, vectors; };
/* Rows of n floats to prefetch. Each step of a sum prefetches `each` cache lines. */
struct mc_direct_ahead {
    const float *row;
    int64_t rows, step, n, at;
    int each;
};
/* out[r][j] = sum over k, t of w[k][t][r] * x[k * x_step + off[t] + j]; added to out if `add`. w has as many
 * numbers for each tap as a block has rows. */
struct mc_direct_sum {
    const float *x, *w;
    float *out;
    const int64_t *off;
    int64_t x_step, out_step, channels, taps;
    int rows;
    bool add;
    struct mc_direct_ahead *ahead;  /* NULL: no prefetch */
    int64_t far;                    /* tall blocks: w so many floats ahead is prefetched; 0: nothing is */
    /* with one tap: x is also copied here, `vectors` vectors of a row at k * copy_step; NULL: no copy */
    float *copy;
    int64_t copy_step;
};
/* out[r][t] = sum over images n and j of y[n][r][j] * x[n][off[t] + j], for at most mc_direct_kernel.most
 * taps */
struct mc_direct_dots {
    const float *x, *y;
    float *out;
    const int64_t *off;
    int64_t x_image, y_image, y_step, out_step, images, vectors;
    int rows, taps;
};
struct mc_direct_kernel {
    int lanes, most;        /* most: vectors of one call of sum, taps of one of dots */
    /* for estimates: the fraction of the peak that sum and sum_tall reach; seconds of a call of add_rows, and
     * of each of its vectors and taps */
    double math[2], add[2];
    void (*sum)(const struct mc_direct_sum *s, int vectors);
    /* The same for tall blocks (rows 0: none), without `copy`; NULL in the runtime library, which is small
     * and has the same bits in any blocks. */
    struct mc_direct_tall tall[2];
    void (*sum_tall)(const struct mc_direct_sum *s, int block, int vectors);
    void (*dots)(const struct mc_direct_dots *d);
    /* to[off[t] + i] += from[t * step + i] for i < n, in order of t. off ascends. Nothing else is written. */
    void (*add_rows)(float *to, const float *from, int64_t step, const int64_t *off, int64_t taps, int64_t n);
    /* Rows of n elements, NULL in the runtime library: to[i] = from[2 * i]; to[i] = alpha * from[i];
     * to[2 * i] = alpha * even[i] + 0 and to[2 * i + 1] = alpha * odd[i] + 0, of n in all */
    void (*halve)(float *to, const float *from, int64_t n);
    void (*scale)(float *to, const float *from, int64_t n, float alpha);
    void (*weave)(float *to, const float *even, const float *odd, int64_t n, float alpha);
};
extern const struct mc_direct_kernel *const mc_direct_avx512, *const mc_direct_avx2, *const mc_direct_plain;

#endif
