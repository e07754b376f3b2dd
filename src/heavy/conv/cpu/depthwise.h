/* depthwise.h: the loops over rows of depth.c, one set for each instruction set.
 *
 * Invariant: all sets sum in the same order; they differ in the rounding of fused operations alone. */
#ifndef MC_CONV_DEPTH_H
#define MC_CONV_DEPTH_H

#include "heavy/conv/solver.h"

enum { DEPTH_LANES = 16 };
struct mc_depthwise_taps {
    int64_t n;
    int64_t *at;    /* where each tap of place 0 reads in the plane */
    float *w;
};
struct mc_depthwise_rows {
    /* to[i] = sum over taps of w[k] * x[at[k] + i]; reads up to two vectors beyond the row */
    void (*forward)(float *to, const float *x, const struct mc_depthwise_taps *t, int64_t n);
    void (*add)(float *to, const float *y, float w, int64_t n);         /* to[i] += w * y[i] */
    /* sum[k][lane] += the products of x from at[k] and y; y is zero for up to a vector beyond the row */
    void (*weights)(float *sum, const float *x, const float *y, const struct mc_depthwise_taps *t, int64_t n);
};
const struct mc_depthwise_rows *mc_depthwise_rows(void);   /* the best that this processor runs */

#endif
