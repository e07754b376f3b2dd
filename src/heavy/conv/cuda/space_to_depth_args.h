/* space_to_depth_args.h: the arguments of the kernels of space_to_depth.cu. */
#ifndef MC_CONV_CUDA_SPACE_TO_DEPTH_ARGS_H
#define MC_CONV_CUDA_SPACE_TO_DEPTH_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_space_to_depth_args {
    T *plain;
    T *folded;
    i64 outer, c, size[2], folds[2], stride[2], pad[2];     /* size: of plain's axes; folds: of folded's */
    i64 at[4];                  /* strides of plain: outer, channels, rows, columns */
};
MC_ARGS_SIZE(mc_space_to_depth_args, 128);

#endif
