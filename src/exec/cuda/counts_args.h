/* counts_args.h: the arguments of the kernels of counts.cu. */
#ifndef MC_EXEC_CUDA_COUNTS_ARGS_H
#define MC_EXEC_CUDA_COUNTS_ARGS_H

#include "device/cuda/args.h"

enum { COUNTS_SHARED = 4096 };                  /* most bins that a block counts in shared memory */
struct mc_counts_args {
    const i64 *x;
    i64 n, bins;
    u64 *to;                                    /* of `counts`: (bins) */
    u64 weight;
    u64 *found;                                 /* of `largest`: that + 1, and whether one is negative */
};
MC_ARGS_SIZE(mc_counts_args, 48);

#endif
