/* direct.h: the two sums of a direct convolution, over places side by side in padded planes.
 *
 * Planes of operands have rows of one pitch, so that a tap is a distance: place j of the result, counted in
 * that pitch, meets places j + off[t] of the source.  What is computed between the rows is not kept.
 *
 * Invariant: kernels read at most one vector beyond the last place, and write whole vectors. */
#ifndef MC_CONV_DIRECT_H
#define MC_CONV_DIRECT_H

#include "base/base.h"

enum { DIRECT_ROWS = 4 };   /* channels of the result in one block */
/* Rows of n floats that are wanted soon: each step of a sum asks for `each` lines of them. */
struct mc_direct_ahead {
    const float *row;
    int64_t rows, step, n, at;
    int each;
};
/* out[r][j] = sum over k, t of w[k][t][r] * x[k * x_step + off[t] + j], or added to it */
struct mc_direct_sum {
    const float *x, *w;
    float *out;
    const int64_t *off;
    int64_t x_step, out_step, channels, taps;
    int rows;
    bool add;
    struct mc_direct_ahead *ahead;  /* NULL: nothing */
    /* with one tap: what was read of x goes here too, `vectors` of a row at k * copy_step; NULL: it does
     * not */
    float *copy;
    int64_t copy_step;
};
/* out[r][t] = sum over n of images, j of y[n][r][j] * x[n][off[t] + j], for `taps` of at most
 * mc_direct_kernel.taps */
struct mc_direct_dots {
    const float *x, *y;
    float *out;
    const int64_t *off;
    int64_t x_image, y_image, y_step, out_step, images, vectors;
    int rows, taps;
};
struct mc_direct_kernel {
    int lanes, most;        /* most: vectors of one call of sum, taps of one of dots */
    double math;            /* of the peak */
    void (*sum)(const struct mc_direct_sum *s, int vectors);
    void (*dots)(const struct mc_direct_dots *d);
    /* to[off[t] + i] += from[t * step + i], in order of t, for i < n; off ascends, and nothing else is
     * touched */
    void (*fold)(float *to, const float *from, int64_t step, const int64_t *off, int64_t taps, int64_t n);
};
extern const struct mc_direct_kernel *const mc_direct_avx512, *const mc_direct_avx2, *const mc_direct_plain;

#endif
