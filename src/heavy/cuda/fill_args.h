/* fill_args.h: the arguments of the kernel of fill.cu. */
#ifndef MC_HEAVY_CUDA_FILL_ARGS_H
#define MC_HEAVY_CUDA_FILL_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_cuda_fill_args {
    T *to;
    i64 count;
};
MC_ARGS_SIZE(mc_cuda_fill_args, 16);

#endif
