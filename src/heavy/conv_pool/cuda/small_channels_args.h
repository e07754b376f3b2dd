/* small_channels_args.h: the arguments of the kernels of small_channels.cu. */
#ifndef MC_CONV_POOL_CUDA_SMALL_CHANNELS_ARGS_H
#define MC_CONV_POOL_CUDA_SMALL_CHANNELS_ARGS_H

#include "device/cuda/args.h"

enum { POOLED_THREADS = 192 };  /* forward: of a block */

struct mc_pooled_small_channels_args {
    const float *x;
    float *w;
    float *g;
    unsigned char *mark;
    const float *bias;
    float *parts;
    /* strides of x: n, c, row, column; of w: f, c, taps; of maxima and marks: n, f */
    i64 xs[4], ws[4], gs[2], ks[2];
    /* y: of the convolution; out: windows; before: cells before the first one */
    int n, f, in[2], y[2], out[2], pad[2], before[2];
    /* of a channel in shared memory; across: groups of P in a line of y */
    int lines, pitch, across;
    /* windows, fours: of a plane; filters: stride of filters of maxima there, in floats; forward: stride
     * of taps */
    int windows, fours, filters;
    /* weights: pairs of an image in shared memory, and zeros before the first one; number of partial sums */
    int reach, lead, blocks;
    int whole;                  /* planes can be moved four numbers at a time */
};
MC_ARGS_SIZE(mc_pooled_small_channels_args, 232);

#endif
