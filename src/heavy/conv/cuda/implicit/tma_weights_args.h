/* tma_weights_args.h: the arguments of the kernels of tma_weights.cu. */
#ifndef MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_WEIGHTS_ARGS_H
#define MC_HEAVY_CONV_CUDA_IMPLICIT_TMA_WEIGHTS_ARGS_H

#include "device/cuda/args.h"

enum { TMA_UNIT = 64 };         /* halves of a row of 128 bytes: rows and columns of a tile are multiples */

MC_ARGS_TYPE(T);

/* Steps of a tile that one block sums.  A step is a box of images, planes, lines and positions.  row, column:
 * the tile's first units; first, count: of its steps, positions fastest, images slowest; at: plane, line and
 * position of the first box; boxes: their number along each; part: where the sums are stored, or negative:
 * they are the result. */
struct mc_conv_tma_weights_job { int row, column, first, count, at[3], boxes[3], part; };
MC_ARGS_SIZE(mc_conv_tma_weights_job, 44);

/* A tile whose sums are in `parts` parts, from `first` on. */
struct mc_conv_tma_weights_sum { int row, column, first, parts; };
MC_ARGS_SIZE(mc_conv_tma_weights_sum, 16);

struct mc_conv_tma_weights_args {
    struct mc_cuda_tensor_map x, y;
    const struct mc_conv_tma_weights_job *jobs;
    const int *first;           /* the index of each block's first job; after the last block, their number */
    const struct mc_conv_tma_weights_sum *sums;
    T *to;
    const T *c0;
    float *parts;               /* tiles, each by rows */
    i64 ws[3];                  /* strides of filters: filter, channel, tap */
    int images, filters, channels, chunks;  /* chunks: units of a tap's channels */
    int in[3], out[3], k[3], stride[3], dilation[3], pad[3];
    /* box: images, planes, lines, positions; backward: taps of filters are stored in reverse */
    int box[4], backward;
    float alpha, beta;
};
MC_ARGS_SIZE(mc_conv_tma_weights_args, 448);

#endif
