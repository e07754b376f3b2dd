/* tma_args.h: the arguments of the kernel of tma.cu. */
#ifndef MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_ARGS_H
#define MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_ARGS_H

#include "device/cuda/args.h"

/* TMA_ROWS: a tile has MI times as many */
enum { TMA_ROWS = 128, TMA_PHASES = 8 };

MC_ARGS_TYPE(T);

struct mc_conv_tma_tile { int image, column, at[3], phase[3]; };
MC_ARGS_SIZE(mc_conv_tma_tile, 32);

/* Positions of one axis that the same taps reach: position u reads element u stride - pad + t dilation
 * through tap t < k, which is tap first + t step of the filters. */
struct mc_conv_tma_phase { int out, k, pad, first; };
MC_ARGS_SIZE(mc_conv_tma_phase, 16);

struct mc_conv_tma_args {
    struct mc_cuda_tensor_map from, filters;
    const struct mc_conv_tma_tile *tiles;
    /* the index of each block's first tile; after the last block, the number of tiles */
    const int *first;
    T *to;
    const T *c0, *bias;
    i64 ts[4];                  /* strides of the result and of c0: image, axes */
    struct mc_conv_tma_phase phase[3][TMA_PHASES];
    /* phases: their number; position u of phase i is position u phases + i of the result */
    int phases[3], in[3], stride[3], dilation[3], step[3];
    int images, results;
    int row, chunks;                /* row: bytes of a row of a tile; chunks: steps of a tap */
    int box[4];                     /* images, axes */
    float alpha, beta;
};
MC_ARGS_SIZE(mc_conv_tma_args, 832);

#endif
