/* depthwise_args.h: the arguments of the kernels of depthwise.cu. */
#ifndef MC_CONV_DEPTHWISE_ARGS_H
#define MC_CONV_DEPTHWISE_ARGS_H

#include "device/cuda/args.h"

enum { DEPTHWISE_THREADS = 128 };

MC_ARGS_TYPE(T);

struct mc_depthwise_args {
    T *x, *w, *y;
    const T *c0, *bias;
    float *parts;               /* (splits, channel, tap) */
    i64 xs[2], ys[2], ws[3];    /* strides: image, channel; channel, two axes of taps */
    int xl[2], yl[2];           /* strides of lines and positions */
    int c, in[2], out[2];
    unsigned count;             /* tiles: of all channels where each has a thread */
    struct mc_cuda_divider across, down, channels;  /* tiles of a line, of an image's height; channels */
    int splits;                 /* blocks that share a sum of filters */
    float alpha, beta;
};
MC_ARGS_SIZE(mc_depthwise_args, 192);

#endif
