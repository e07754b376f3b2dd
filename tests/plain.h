/* plain.h: arrays of random numbers in C order. */
#ifndef PLAIN_H
#define PLAIN_H

#include "check.h"
#include "op/op.h"

#include <math.h>

static inline double pick(mc_dtype d, double lo, double hi)
{
    double v = test_uniform(lo, hi);
    if (mc_dtypes[d].kind == KIND_UINT) {
        v = fabs(v);
    }
    return d == MC_BOOL ? (double)(test_random() & 1) : mc_is_float(d) ? v : rint(v);
}

static inline mc_array *sample(mc_dtype d, int rank, const int64_t *dims, double lo, double hi)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        double v = pick(d, lo, hi);
        mc_is_float(d) ? mc_store_f64(d, a->data + i * mc_dtypes[d].size, v)
                       : mc_store_i64(d, a->data + i * mc_dtypes[d].size, (int64_t)v);
    }
    return a;
}

static inline void drop(mc_array **a, int n)
{
    for (int i = 0; i < n; i++) {
        mc_array_unref(&a[i]);
    }
}

#endif
