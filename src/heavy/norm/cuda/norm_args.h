/* norm_args.h: the arguments of the kernels of norm.cu. */
#ifndef MC_NORM_NORM_ARGS_H
#define MC_NORM_NORM_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(A);

struct mc_norm_args {
    const T *x, *g;
    T *y;
    A *parts;
    i64 c, far[3], nfree, size[8], at[3][8], planes, lanes, n;
    double alpha, beta, k;
    int blocked;
};
MC_ARGS_SIZE(mc_norm_args, 384);

#endif
