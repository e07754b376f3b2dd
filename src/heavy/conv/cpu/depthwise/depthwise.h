/* depthwise.h: the sums of a depthwise convolution, over rows of vectors that are a constant step apart.
 *
 * A vector holds channels of one position (NHWC) or positions of one channel (NCHW); the sums are the same.
 *
 * Invariant: kernels read and write whole vectors, and nothing between them. */
#ifndef MC_CONV_DEPTHWISE_H
#define MC_CONV_DEPTHWISE_H

#include "base/base.h"

enum {
    DEPTH_ROWS = 8, /* rows of sums in registers */
    DEPTH_TAPS = 4, /* of a group */
    DEPTH_DOTS = 9, /* taps of one call of dots */
};
/* Consecutive taps: for row r of the result, tap t reads row r + t from `at` on. A row is loaded once for all
 * of them. w: the first one's place among the packed filters. */
struct mc_depth_group { int64_t at, w; int taps; };
/* y[r][s] = sum over groups and their taps t of w[group.w + t][s] * x[group.at + (r + t)][s] */
struct mc_depth_sum {
    const struct mc_depth_group *group;
    int64_t groups;
    const float *x, *w;
    float *y;
    int64_t x_row, y_row, w_tap;        /* steps, in floats */
    int64_t x_strip, y_strip, w_strip;
    int64_t rows, strips;               /* a strip is one vector wide */
};
/* sum[t] += sum over r, s of y[r][s] * x[at[t] + r][s], lane by lane. After the strips of a row follows a
 * vector of which only the first `tail` lanes count; y is finite beyond them. tail 0: there is none. */
struct mc_depth_dots {
    const float *x, *y;
    float *sum;
    const int64_t *at;
    int taps;
    int64_t sum_tap;
    int64_t x_row, y_row, x_strip, y_strip, rows, strips;
    int tail;
};
/* Rows of a plane and of its copy, where they are `step` apart and one after another, at [lo, hi) of a
 * row of len floats. in: zeros around them, `before` floats in front of the first row, `after` behind the
 * last. Vectors may go up to limit floats beyond the plane's first, and a vector beyond a row of the copy. */
struct mc_depth_plane {
    float *to;
    const float *from, *other;
    int64_t to_row, from_row, rows, lo, hi, len, step, before, after, limit;
};
/* n positions of `channels` planes that are `channel` floats apart, and the same by positions, `width`
 * floats each: position i is the place[i]-th there (NULL: the i-th). in reads whole vectors within limit
 * floats, or within the positions of a channel. */
struct mc_depth_turn {
    float *to;
    const float *from;
    const int *place;
    int64_t channel, channels, n, width, limit;
};
/* Planes of the result, each from one of x. Element (i, j) of the padded plane is (i / step[0], j / step[1])
 * of the phase (i % step[0], j % step[1]) in `copy`, where a phase has `lines` lines of `pitch` floats. What
 * no line of x fills is zero before the call, and after it. */
struct mc_depth_flat {
    const float *x;
    float *y, *copy, *sums;
    const float *taps_of;               /* of each plane, in the order of group and at */
    float *w;                           /* room for the taps of one, each in all lanes */
    const struct mc_depth_group *group; /* the taps along columns: rows of a vector and more */
    const int64_t *at;                  /* each tap's offset in the copy: shorter rows */
    int64_t groups, taps;
    int64_t in[2], out[2], step[2], pad[2], phases[2];
    int64_t lines, pitch, phase;        /* phase: floats from one to the next */
    int64_t planes, copy_plane, sums_plane; /* floats from one plane to the next */
    int64_t x_limit;                    /* floats from x on that may be read */
};
/* Rows of sums of one block of channels, a vector for each position, from a copy with `pitch` vectors a row:
 * sums[i][j] = sum over taps of w[tap] * copy[i * step[0] + tap row][j * step[1] + tap column] */
struct mc_depth_block {
    const float *copy, *w;
    float *sums;
    int64_t rows, columns, pitch, taps[2], step[2];
};
struct mc_depth_kernel {
    int lanes;
    void (*sum)(const struct mc_depth_sum *s);
    void (*dots)(const struct mc_depth_dots *d);
    void (*in)(const struct mc_depth_plane *p);  /* a plane's rows to its copy, zeros around */
    void (*out)(const struct mc_depth_plane *p); /* back, without the zeros */
    /* back, from two phases in turn: to[2 i] = from[i], to[2 i + 1] = other[i], for 2 i or 2 i + 1 < len */
    void (*zip)(const struct mc_depth_plane *p);
    void (*turn_in)(const struct mc_depth_turn *t);     /* channels beyond the last are zero */
    void (*turn_out)(const struct mc_depth_turn *t);    /* without places */
    void (*splat)(float *to, const float *from, int64_t from_step, int64_t n); /* to[i][lane] = from[i] */
    /* to[i] = from[i] for rows of n floats */
    void (*rows)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t n);
    void (*flat)(const struct mc_depth_flat *f);
    void (*block)(const struct mc_depth_block *b);
};
extern const struct mc_depth_kernel *const mc_depth_avx512, *const mc_depth_avx2, *const mc_depth_plain;

#endif
