/* marked.h: the sums of marked.c, one set for each instruction set.
 *
 * x lies channels last, so that what a line of taps reads, or adds to, is adjacent. */
#ifndef MC_POOLED_MARKED_H
#define MC_POOLED_MARKED_H

#include "base/base.h"

/* sum[v] += the sum over n windows of g[i] * the vector at tap[v] of x + first[i] + off[mark[i]] */
struct mc_marked_weights {
    const float *x, *g;
    const unsigned char *mark;
    const int32_t *first, *off;
    const int64_t *tap;
    float *sum;                 /* vectors, one after another */
    int64_t n;
};
/* the vector at tap[v] of x += the sum over n filters of g[i] * the vector v of w + at[i] */
struct mc_marked_inputs {
    float *x;
    const float *w, *g;
    const int32_t *at;
    const int64_t *tap;
    int64_t n;
};
struct mc_marked_kernel {
    int lanes, most;            /* most: vectors of a call */
    void (*weights)(const struct mc_marked_weights *a, int vectors);
    void (*inputs)(const struct mc_marked_inputs *a, int vectors);
};
extern const struct mc_marked_kernel *const mc_marked_avx512, *const mc_marked_avx2, *const mc_marked_plain;

#endif
