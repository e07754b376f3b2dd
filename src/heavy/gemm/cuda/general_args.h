/* general_args.h: the arguments of the kernel of general.cu. */
#ifndef MC_GEMM_CUDA_GENERAL_ARGS_H
#define MC_GEMM_CUDA_GENERAL_ARGS_H

#include "device/cuda/args.h"

enum { GENERAL_SIDE = 16 };     /* a block has SIDE by SIDE threads */

MC_ARGS_TYPE(T);

struct mc_gemm_plain_args {
    const T *a, *b, *c0;
    T *c;
    i64 batch, m, n, k;
    i64 as[3], bs[3], cs[3], c0s[3];            /* strides: batch, row, column */
    double alpha, beta;
};
MC_ARGS_SIZE(mc_gemm_plain_args, 176);

#endif
