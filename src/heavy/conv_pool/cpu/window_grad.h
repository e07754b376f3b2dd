/* window_grad.h: the sums of window_grad.c, one set for each instruction set.
 *
 * x has its channels last, so what a line of taps reads, or adds to, is contiguous. */
#ifndef MC_HEAVY_CONV_POOL_CPU_WINDOW_GRAD_H
#define MC_HEAVY_CONV_POOL_CPU_WINDOW_GRAD_H

#include "base/base.h"

/* Adds to vector (line, column) of sum: the sum over n windows of g[i] * vector (line, column) of x +
 * first[i] + off[mark[i]]. */
struct mc_window_grad_weights {
    const float *x, *g;
    const unsigned char *mark;
    const int32_t *first, *off;
    float *sum;
    int64_t n, x_line, sum_line;    /* floats from a line of vectors to the next */
};
/* For each of n elements e, adds to the vector at x + cell_offset[e] + tap[v]: the sum over i in [begin[e],
 * begin[e + 1]) of g[i] * vector v of w + at[i]. */
struct mc_window_grad_inputs {
    float *x;
    const float *w, *g;
    const int32_t *at, *begin, *cell_offset;
    const int64_t *tap;
    int64_t n;
};
enum { WINDOW_GRAD_ACROSS = 7 };     /* most columns of a call for weights */
struct mc_window_grad_kernel {
    int lanes, most;                        /* most: vectors of a call for inputs */
    int lines[WINDOW_GRAD_ACROSS + 1];           /* most lines of a call for weights, by its columns */
    void (*weights)(const struct mc_window_grad_weights *a, int lines, int columns);
    void (*inputs)(const struct mc_window_grad_inputs *a, int vectors);
};
extern const struct mc_window_grad_kernel *const mc_window_grad_avx512, *const mc_window_grad_avx2,
    *const mc_window_grad_plain;

#endif
