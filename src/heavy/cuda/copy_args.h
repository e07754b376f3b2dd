/* copy_args.h: the arguments of the kernels of copy.cu. */
#ifndef MC_HEAVY_CUDA_COPY_ARGS_H
#define MC_HEAVY_CUDA_COPY_ARGS_H

#include "device/cuda/args.h"

enum { COPY_SIDE = 32, COPY_SIDE_SMALL = 64 };      /* of a tile; of one of elements of at most two bytes */

MC_ARGS_TYPE(TO);
MC_ARGS_TYPE(FROM);

struct mc_cuda_copy_args {
    TO *to;
    const FROM *from;
    i64 count;                  /* elements; for `tile` without the last two axes */
    i64 size[8], ts[8], fs[8];  /* ts, fs: strides in elements */
};
MC_ARGS_SIZE(mc_cuda_copy_args, 216);

#endif
