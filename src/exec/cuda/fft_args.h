/* fft_args.h: the arguments of the kernel of fft.cu. */
#ifndef MC_EXEC_CUDA_FFT_ARGS_H
#define MC_EXEC_CUDA_FFT_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_fft_args {
    const T *from;
    T *to;
    i64 count, half, last;      /* complex numbers; along the last axis; real numbers along it */
    i64 inner[2];               /* the axes before the last one; 1: there is none */
};
MC_ARGS_SIZE(mc_fft_args, 56);

#endif
