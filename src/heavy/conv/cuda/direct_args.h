/* direct_args.h: the arguments of the kernels of direct.cu. */
#ifndef MC_CONV_DIRECT_ARGS_H
#define MC_CONV_DIRECT_ARGS_H

#include "device/cuda/args.h"

enum { DIRECT_TILE = 64, DIRECT_TK = 16 };  /* rows and columns of a tile; terms of a step */

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(A);

struct mc_direct_args {
    T *x, *w, *y;
    const T *c0, *bias;
    A *parts;
    i64 n, c, f, groups, in[3], out[3], k[3], stride[3], dilation[3], pad[3], xs[5], ws[8], ys[5];
    i64 rows, cols, depth, splits;      /* of the product of one group */
    /* `sampled`: number of elements that are computed again; else 0 */
    i64 samples;
    double alpha, beta;
};
MC_ARGS_SIZE(mc_direct_args, 424);

#endif
