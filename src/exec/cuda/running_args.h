/* running_args.h: the arguments of the kernels of running.cu. */
#ifndef MC_EXEC_CUDA_RUNNING_ARGS_H
#define MC_EXEC_CUDA_RUNNING_ARGS_H

#include "exec/cuda/lines_args.h"

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(A);
MC_ARGS_TYPE(O);

enum { RUNNING_GROUP = 64 };                    /* tiles of a group */
struct mc_running_args {
    const T *x;
    O *y;
    A *sums;                                    /* of `down`: (chunks, lines); of `carried`: (lines, tiles) */
    u64 *ticket;                                /* tiles begun, by all launches so far */
    u64 *total, *group;                         /* two words each: (lines, tiles), (lines, groups) */
    struct mc_lines_args l;
    u64 per_block;                              /* 2^64 / blocks, rounded up */
    i64 chunk;                                  /* of `down` */
    i64 tiles, groups;                          /* of a line */
    int words, more;                            /* words: whole tiles of x and y are aligned and contiguous */
};
MC_ARGS_SIZE(mc_running_args, 320);

#endif
