/* small_channels_args.h: the arguments of the kernels of weights.cu, tensor_forward.cu, tensor_weights.cu
 * and scatter.cu. */
#ifndef MC_CONV_CUDA_SMALL_CHANNELS_ARGS_H
#define MC_CONV_CUDA_SMALL_CHANNELS_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(uint2);

/* The members that all arguments begin with; workspace: declares the pointer to it.  In kernels they are
 * members of each struct.  In C they are one member, which plan.c fills in for all. */
#define MC_SMALL_CHANNELS_MEMBERS(workspace)                                                   \
    T *x, *w, *y;                                                                   \
    const T *c0, *bias;                                                             \
    workspace;                                                                      \
    i64 xs[4], ws[4], ys[4];    /* strides: n, c (f), row, column; w: f, c, taps */ \
    i64 deep[3];    /* strides along the first of three axes: x, w, y */ \
    /* n: images; with three axes: planes of the result, or for weights of y */ \
    int n, f, in[2], out[2], pad[2];                                                \
    float alpha, beta;
struct mc_small_channels_args { MC_SMALL_CHANNELS_MEMBERS(void *workspace) };
MC_ARGS_SIZE(mc_small_channels_args, 208);

#ifdef __cplusplus
#define MC_SMALL_CHANNELS(workspace) MC_SMALL_CHANNELS_MEMBERS(workspace)
#else
#define MC_SMALL_CHANNELS(workspace) struct mc_small_channels_args base;
#endif

struct mc_small_channels_lines_args {      /* weights.cu */
    /* of a tile: images, rows of y, groups of P in a row; pitch: floats of a line of x */
    MC_SMALL_CHANNELS(float *parts)
    int images, rows, across, pitch;
    /* tiles in a column of an image; all tiles; lines of x for a channel of a tile */
    int down, tiles, lines;
    int blocks;                 /* weights: number of partial sums */
    int filters;                /* forward: stride of taps, in floats */
    /* elements of y can be moved four at a time, along lines or filters */
    int whole;
};
MC_ARGS_SIZE(mc_small_channels_lines_args, 248);

struct mc_small_channels_tensor_args {     /* tensor_forward.cu, tensor_weights.cu */
    MC_SMALL_CHANNELS(float *parts)
    int images, rows, lines;    /* of a tile: images, rows of y, lines of x for a channel */
    int down, tiles;            /* tiles in a column of an image; all tiles */
    int blocks;                 /* weights: number of partial sums */
    int whole, straight;        /* y's contiguous axis, and lines of x, can be moved as words */
};
MC_ARGS_SIZE(mc_small_channels_tensor_args, 240);

struct mc_small_channels_spread_args {     /* scatter.cu */
    MC_SMALL_CHANNELS(uint2 *filters)      /* (pass, row of taps, step, eight, lane) */
    int down, tiles, chunks;    /* tiles in a column of an image; all tiles; chunks of CF filters */
    int whole;                  /* y can be moved by UNITs */
};
MC_ARGS_SIZE(mc_small_channels_spread_args, 224);

#endif
