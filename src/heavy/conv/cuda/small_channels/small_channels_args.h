/* small_channels_args.h: the arguments of the kernels of few.cu, few_tensor.cu and few_spread.cu. */
#ifndef MC_CONV_CUDA_SMALL_CHANNELS_ARGS_H
#define MC_CONV_CUDA_SMALL_CHANNELS_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(uint2);

/* The members that all begin with; workspace: the declaration of one, as a text needs it.  A text has them as
 * its own members; in C they are one member, which cuda_few_plan.c fills for all. */
#define MC_FEW_MEMBERS(workspace)                                                   \
    T *x, *w, *y;                                                                   \
    const T *c0, *bias;                                                             \
    workspace;                                                                      \
    i64 xs[4], ws[4], ys[4];    /* strides: n, c (f), row, column; w: f, c, taps */ \
    int n, f, in[2], out[2], pad[2];                                                \
    float alpha, beta;
struct mc_small_channels_args { MC_FEW_MEMBERS(void *workspace) };
MC_ARGS_SIZE(mc_small_channels_args, 184);

#ifdef __cplusplus
#define MC_FEW(workspace) MC_FEW_MEMBERS(workspace)
#else
#define MC_FEW(workspace) struct mc_small_channels_args few;
#endif

struct mc_small_channels_lines_args {      /* few.cu */
    /* of a tile: images, rows of y, groups of P in a row; pitch: floats of a line of x */
    MC_FEW(float *parts)
    int images, rows, across, pitch;
    /* tiles below each other in an image; all tiles; lines of x that a channel of a tile has */
    int down, tiles, lines;
    int blocks;                 /* weights: parts of the sums */
    int filters;                /* forward: floats from a tap to the next */
    /* y can be moved four elements at a time, of a line or of filters side by side */
    int whole;
};
MC_ARGS_SIZE(mc_small_channels_lines_args, 224);

struct mc_small_channels_tensor_args {     /* few_tensor.cu */
    MC_FEW(float *parts)
    int images, rows, lines;    /* of a tile: images, rows of y, lines of x that a channel has */
    int down, tiles;            /* tiles below each other in an image; all tiles */
    int blocks;                 /* weights: parts of the sums */
    int whole, straight;        /* what lies side by side in y, lines of x: can be moved as words */
};
MC_ARGS_SIZE(mc_small_channels_tensor_args, 216);

struct mc_small_channels_spread_args {     /* few_spread.cu */
    MC_FEW(uint2 *filters)      /* (chunk, row of taps, step, eight, lane) */
    int down, tiles, chunks;    /* tiles below each other in an image; all tiles; chunks of CF filters */
    int whole;                  /* y can be moved by UNITs */
};
MC_ARGS_SIZE(mc_small_channels_spread_args, 200);

#endif
