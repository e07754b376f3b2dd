/* large_args.h: the arguments of the kernels of large.cu; each reads those that it needs. */
#ifndef MC_HEAVY_FACTOR_CUDA_LARGE_ARGS_H
#define MC_HEAVY_FACTOR_CUDA_LARGE_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_large_args {
    const T *from;
    T *to, *beside;
    i64 rows, cols, ldf, ldt;
    i64 triangle;               /* 1: elements above the diagonal are zero or not read; 2: below it */
    const i64 *pivot;
    i64 *order;
    int *info;                  /* what the library says: 0, or a number from 1 on */
    i64 *err, matrix, number;   /* error words; the matrix and the step in them */
    i64 bad;                    /* 0: `info` is what failed; else this number, if `info` is set */
    double value;
};
MC_ARGS_SIZE(mc_large_args, 128);

#endif
