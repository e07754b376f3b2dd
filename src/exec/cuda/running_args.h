/* running_args.h: the arguments of the kernels of running.cu. */
#ifndef MC_EXEC_CUDA_RUNNING_ARGS_H
#define MC_EXEC_CUDA_RUNNING_ARGS_H

#include "exec/cuda/lines_args.h"

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(A);
MC_ARGS_TYPE(O);

struct mc_running_args {
    const T *x;
    O *y;
    A *sums;                                    /* (lines, chunks), of chunks */
    struct mc_lines_args l;
    i64 chunk, chunks;
};
MC_ARGS_SIZE(mc_running_args, 272);

#endif
