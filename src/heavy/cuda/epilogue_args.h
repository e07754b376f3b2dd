/* epilogue_args.h: the arguments of the kernels of epilogue.cu. */
#ifndef MC_HEAVY_CUDA_EPILOGUE_ARGS_H
#define MC_HEAVY_CUDA_EPILOGUE_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_cuda_epilogue_args {
    T *y;
    const T *c0, *bias;
    /* for `epilogue_v`, count and the last size are numbers of words */
    i64 count, size[8], ys[8], c0s[8], bs[8];
    double beta;
};
MC_ARGS_SIZE(mc_cuda_epilogue_args, 296);

#endif
