/* depthwise.h: the loops over rows of depthwise.c, one set for each instruction set.
 *
 * Invariant: the sets sum in the same order, and differ only in the rounding of fused multiply-adds. */
#ifndef MC_CONV_DEPTH_H
#define MC_CONV_DEPTH_H

#include "heavy/conv/solver.h"

enum { DEPTH_LANES = 16 };
struct mc_depthwise_taps {
    int64_t n;
    int64_t *at;    /* offset in the plane of each tap of position 0 */
    float *w;
};
struct mc_depthwise_rows {
    /* to[i] = sum over taps of w[k] * x[at[k] + i]; reads up to two vectors beyond the row */
    void (*forward)(float *to, const float *x, const struct mc_depthwise_taps *t, int64_t n);
    void (*add)(float *to, const float *y, float w, int64_t n);         /* to[i] += w * y[i] */
    /* sum[k][lane] += x[at[k] + i] * y[i] over i of that lane; y must have zeros for a vector after the
     * row */
    void (*weights)(float *sum, const float *x, const float *y, const struct mc_depthwise_taps *t, int64_t n);
};
const struct mc_depthwise_rows *mc_depthwise_rows(void);   /* the fastest that this processor supports */

#endif
