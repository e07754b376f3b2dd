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
    const i64 *found;           /* what the kernel `find` wrote, for `each`, `free` and `xfree`; or null */
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
MC_ARGS_SIZE(mc_region_args, 1200);

/* A slice whose bounds are in the GPU's memory.  `to`: where it begins in bytes from x, its elements, its
 * sizes from FOUND_SIZES on, its strides in elements from FOUND_STRIDES on. */
enum { FOUND_ELEMENTS = 1, FOUND_SIZES = 2, FOUND_STRIDES = 10, FOUND_WORDS = 18 };
/* how a bound is given: not at all, as a number, or else by an address, and the bytes of an index as above */
enum { GIVEN_NOT = 0, GIVEN_NUMBER = 100 };
struct mc_region_bounds {
    i64 *to;
    i64 *err;
    const void *at[8][3];       /* by axis of x: start, stop, step */
    i64 number[8][3];
    i64 size[8], stride[8];     /* of x */
    i64 fill[8];                /* by axis of the slice: the size of the value there; -1: any */
    int kind[8][3], index[8];
    int rank, step, bytes;      /* step: its number in the program; bytes: of an element */
    int unused;
};
MC_ARGS_SIZE(mc_region_bounds, 736);

#endif
