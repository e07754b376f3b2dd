/* grouped_args.h: the arguments of the kernels of grouped.cu. */
#ifndef MC_CONV_GROUPED_ARGS_H
#define MC_CONV_GROUPED_ARGS_H

#include "device/cuda/args.h"

enum { GROUPED_THREADS = 128 };

MC_ARGS_TYPE(T);

struct mc_grouped_args {
    T *x, *w, *y;
    const T *c0, *bias;
    float *parts;               /* (splits, lane, sum of the lane) */
    i64 xs[2], ys[2], ws[4];    /* strides: image, channel; filter, channel, two axes of taps */
    int xl[2], yl[2];           /* strides of lines and positions */
    int groups, in[2], out[2];
    unsigned count;             /* tiles */
    struct mc_cuda_divider across, down;    /* tiles of a line, of an image's height */
    int splits;                 /* blocks that share a sum of filters */
    float alpha, beta;
};
MC_ARGS_SIZE(mc_grouped_args, 192);

#endif
