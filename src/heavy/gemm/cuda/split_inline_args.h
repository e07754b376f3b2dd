/* split_inline_args.h: the arguments of the kernels of split_inline.cu. */
#ifndef MC_HEAVY_GEMM_CUDA_SPLIT_INLINE_ARGS_H
#define MC_HEAVY_GEMM_CUDA_SPLIT_INLINE_ARGS_H

#include "device/cuda/args.h"

/* SPLIT_INLINE_TILE: rows, columns and terms of a tile; PITCH: halves from row to row in shared memory */
enum { SPLIT_INLINE_TILE = 64, SPLIT_INLINE_PITCH = SPLIT_INLINE_TILE + 8, SPLIT_INLINE_WARPS = 8 };

/* An axis: rows with stride down, each of `across` positions with stride right. */
struct mc_split_inline_positions {
    i64 down, right;
    int across;
};
MC_ARGS_SIZE(mc_split_inline_positions, 24);

/* C[batch] = the sum over `outer` of A[batch, outer] B[batch, outer]. */
struct mc_split_inline_args {
    const float *a, *b, *c0;
    float *c, *parts;
    /* strides: batch, row, column.  b_terms, b_cols and c_cols have the other strides of B and C.
     *          outer_step: strides of A and B along `outer`. */
    i64 as[3], bs, cs[2], c0s[3], outer_step[2];
    int m, n, k, batch, outer, splits, run;         /* run: adjacent tiles of a block */
    int fours[2];               /* of A, of B: four neighbours along the summed axis are read at once */
    float alpha, beta;
    struct mc_split_inline_positions b_terms, b_cols, c_cols;
    /* around: rows and positions that belong to a column of C; all but the first are zeros.  size: rows and
     * positions of the image */
    int around[2], size[2];
};
MC_ARGS_SIZE(mc_split_inline_args, 264);

#endif
