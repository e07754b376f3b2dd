/* resident_args.h: the arguments of a loop's resident kernel (resident.cu), and what its text is made for. */
#ifndef MC_EXEC_CUDA_RESIDENT_ARGS_H
#define MC_EXEC_CUDA_RESIDENT_ARGS_H

#include "device/cuda/args.h"

enum {
    RESIDENT_THREADS = 512,     /* of a block */
    RESIDENT_COLUMNS = 4,       /* of a product that a thread computes at once, at most */
    RESIDENT_PRODUCTS = 4,      /* at most */
    RESIDENT_RANK = 4           /* of a copy, at most */
};

/* Where an operand is in step t: at `first` in step 0, then at base + ((t - 1) & mask) * stride.  The mask
 * is 1 for one of two buffers by turns. */
struct mc_resident_move {
    u64 first, base;
    i64 stride;
    u64 mask;
};
MC_ARGS_SIZE(mc_resident_move, 32);

/* Y = act(X W + C).  X and Y are contiguous along the columns.  A block has `columns` columns of W in its
 * shared memory, each contiguous; `pitch` elements from one to the next.  They are those whose number, modulo
 * `period`, is among the block's `units`. */
struct mc_resident_product {
    int m, n, k, columns, pitch, at; /* at: float in the shared memory where W begins */
    int row, wide;              /* elements from row to row of X; of Y */
    int units, period;
    i64 down, along;            /* elements from row to row of W; from column to column */
    i64 added[2];               /* the same of C */
};
MC_ARGS_SIZE(mc_resident_product, 72);

/* Copies `count` elements of 4 bytes from array to array; strides in elements, the innermost axis first. */
struct mc_resident_copy {
    unsigned count, size[RESIDENT_RANK];
    i64 from[RESIDENT_RANK], to[RESIDENT_RANK];
};
MC_ARGS_SIZE(mc_resident_copy, 88);

struct mc_resident_head {
    /* blocks that have arrived at a barrier, of all barriers; that have ended.  0 before and after */
    unsigned *arrived;
    unsigned steps;
    unsigned barriers;          /* bit i: a barrier precedes phase i */
    struct mc_resident_product product[RESIDENT_PRODUCTS];
};
MC_ARGS_SIZE(mc_resident_head, 304);

#endif
