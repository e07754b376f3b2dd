/* split_inline_args.h: the arguments of the kernels of split_inline.cu. */
#ifndef MC_HEAVY_GEMM_CUDA_SPLIT_INLINE_ARGS_H
#define MC_HEAVY_GEMM_CUDA_SPLIT_INLINE_ARGS_H

#include "device/cuda/args.h"

struct mc_split_inline_places {     /* along an axis: so many across, then the next line */
    i64 down, right;
    int across;
};
MC_ARGS_SIZE(mc_split_inline_places, 24);

/* C[batch] = the sum over `outer` of A[batch, outer] B[batch, outer]. */
struct mc_split_inline_args {
    const float *a, *b, *c0;
    float *c, *parts;
    /* strides: batch, row, column; of B and C the columns, and B's terms, are places; outer_step: of A, of
     * B */
    i64 as[3], bs, cs[2], c0s[3], outer_step[2];
    int m, n, k, batch, outer, splits, run;         /* run: tiles side by side that a block makes */
    int fours[2];               /* of A, of B: four neighbours along the summed axis can be read at once */
    float alpha, beta;
    struct mc_split_inline_places b_terms, b_cols, c_cols;
    /* around: lines and places that a column of C owns, of which all but the first are zeros; size: lines
     * and places that there are */
    int around[2], size[2];
};
MC_ARGS_SIZE(mc_split_inline_args, 264);

#endif
