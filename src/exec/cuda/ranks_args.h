/* ranks_args.h: the arguments of the kernel of ranks.cu. */
#ifndef MC_EXEC_CUDA_RANKS_ARGS_H
#define MC_EXEC_CUDA_RANKS_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_ranks_args {
    const T *from;              /* the first rank's; those of the others follow at a distance of `stride` */
    T *to;
    i64 count, stride, ranks;
};
MC_ARGS_SIZE(mc_ranks_args, 40);

#endif
