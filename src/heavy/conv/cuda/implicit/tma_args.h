/* tma_args.h: the arguments of the kernel of tma.cu. */
#ifndef MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_ARGS_H
#define MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_ARGS_H

#include "device/cuda/args.h"

enum { TMA_ROWS = 128 };        /* a tile has MI times as many */

MC_ARGS_TYPE(T);

struct mc_conv_tma_tile { int image, line, position, column; };
MC_ARGS_SIZE(mc_conv_tma_tile, 16);

struct mc_conv_tma_args {
    struct mc_cuda_tensor_map from, filters;
    const struct mc_conv_tma_tile *tiles;
    /* the index of each block's first tile; after the last block, the number of tiles */
    const int *first;
    T *to;
    const T *c0, *bias;
    i64 ts[3];                  /* strides of the result and of c0: image, line, position */
    int in[2], out[2], k[2], stride[2], dilation[2], pad[2];
    int images, results, chunks;    /* chunks: steps of a tap */
    /* box: images, lines, positions; backward: taps of filters are read in reverse */
    int box[3], backward;
    float alpha, beta;
};
MC_ARGS_SIZE(mc_conv_tma_args, 448);

#endif
