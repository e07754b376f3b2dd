/* scan_sort_args.h: the arguments of the kernels of scan_sort.cu. */
#ifndef MC_EXEC_CUDA_SCAN_SORT_ARGS_H
#define MC_EXEC_CUDA_SCAN_SORT_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(O);

struct mc_lines_args {
    const T *x;
    O *y;
    char *scratch;
    i64 lines, count, padded;                   /* padded: count, up to a power of two */
    i64 size[8], xline[8], yline[8];            /* of the other axes, innermost first */
    i64 xstep, ystep, chunk;
    /* of the network: length of its runs, distance of partners */
    i64 span, distance;
    int axes, chunks, product, positions;
};
MC_ARGS_SIZE(mc_lines_args, 296);

#endif
