/* window_grad.h: the sums of window_grad.c, one set for each instruction set.
 *
 * x lies channels last, so that what a line of taps reads, or adds to, is adjacent. */
#ifndef MC_HEAVY_CONV_POOL_CPU_WINDOW_GRAD_H
#define MC_HEAVY_CONV_POOL_CPU_WINDOW_GRAD_H

#include "base/base.h"

/* Vector (line, column) of sum += the sum over n windows of g[i] * the vector there of x + first[i] +
 * off[mark[i]]. */
struct mc_window_grad_weights {
    const float *x, *g;
    const unsigned char *mark;
    const int32_t *first, *off;
    float *sum;
    int64_t n, x_line, sum_line;    /* from a line of vectors to the next */
};
/* For each of n elements: the vector at tap[v] of x + place[e] += the sum over its filters, begin[e] to
 * begin[e + 1], of g[i] * the vector v of w + at[i]. */
struct mc_window_grad_inputs {
    float *x;
    const float *w, *g;
    const int32_t *at, *begin, *place;
    const int64_t *tap;
    int64_t n;
};
enum { MARKED_ACROSS = 7 };     /* columns of a call for weights, at most */
struct mc_window_grad_kernel {
    int lanes, most;                        /* most: vectors of a call for inputs */
    int lines[MARKED_ACROSS + 1];           /* of a call for weights, at most: by its columns */
    void (*weights)(const struct mc_window_grad_weights *a, int lines, int columns);
    void (*inputs)(const struct mc_window_grad_inputs *a, int vectors);
};
extern const struct mc_window_grad_kernel *const mc_window_grad_avx512, *const mc_window_grad_avx2, *const mc_window_grad_plain;

#endif
