/* skinny_args.h: the arguments of the kernels of skinny.cu. */
#ifndef MC_HEAVY_GEMM_CUDA_SKINNY_ARGS_H
#define MC_HEAVY_GEMM_CUDA_SKINNY_ARGS_H

#include "device/cuda/args.h"

enum { SKINNY_THREADS = 256 };  /* of a block */

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(A);

struct mc_gemm_skinny_args {
    const T *x, *s, *c0;
    T *c;
    A *parts;
    /* strides of X: batch, row, k; of S: batch, column, k; of C: batch, row, column */
    i64 rows, k, xs[3], ss[3], cs[3], c0s[3];
    int batch, splits;
    double alpha, beta;
};
MC_ARGS_SIZE(mc_gemm_skinny_args, 176);

#endif
