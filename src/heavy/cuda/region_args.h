/* region_args.h: the arguments of the kernels of region.cu. */
#ifndef MC_HEAVY_CUDA_REGION_ARGS_H
#define MC_HEAVY_CUDA_REGION_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

enum { REGION_FEW = 4096 };

struct mc_region_args {
    T *x;
    T *y;
    i64 *target;
    int *next, *first;
    i64 *err;
    const i64 *start;           /* where a slice begins, in bytes from x; null: at x */
    const void *index[8];
    int kind[8];                /* bytes of an index; negative: signed */
    i64 limit[8], step[8];      /* size and stride of the indexed axis of x */
    i64 istride[8][8], span[8], yspan[8], free[8], xfree[8], yfree[8];
    i64 indices, each;           /* elements of the index tensors; elements of x that one selects */
    int nindex, nspan, nfree, set, number;
    int axis[8];                /* the axis of x that each index tensor indexes */
    int whole;                  /* elements of x, if REGION_FEW at most */
    int held;                   /* nothing is written after a failed check */
};
MC_ARGS_SIZE(mc_region_args, 1192);

#endif
