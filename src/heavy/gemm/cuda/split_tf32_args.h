/* split_tf32_args.h: the arguments of the kernel of split_tf32.cu. */
#ifndef MC_HEAVY_GEMM_CUDA_SPLIT_TF32_ARGS_H
#define MC_HEAVY_GEMM_CUDA_SPLIT_TF32_ARGS_H

#include "device/cuda/args.h"

/* TILE: rows and columns of a tile of C; TERMS: of a step; SLOTS: steps in shared memory; PITCH: floats from
 * one line of a tile to the next, for lines of TERMS and lines of TILE; SIZE: of a tile of A or B */
enum {
    SPLIT_TF32_TILE = 64,
    SPLIT_TF32_TERMS = 32,
    SPLIT_TF32_SLOTS = 4,
    SPLIT_TF32_SIZE = SPLIT_TF32_TILE * (SPLIT_TF32_TERMS + 4),
    SPLIT_TF32_THREADS = 256
};

struct mc_split_tf32_args {
    const float *a, *b, *c0;
    float *c;
    i64 as[3], bs[3], cs[3], c0s[3];    /* strides: batch, row, column */
    int m, n, k, splits;                /* splits: blocks of a cluster, which share the terms of a tile */
    int fours[2];                       /* of A, of B: four neighbours can be loaded at once */
    float alpha, beta;
};
MC_ARGS_SIZE(mc_split_tf32_args, 160);

#endif
