/* first_args.h: the arguments of the kernels of first.cu. */
#ifndef MC_EXEC_CUDA_FIRST_ARGS_H
#define MC_EXEC_CUDA_FIRST_ARGS_H

#include "exec/cuda/lines_args.h"

MC_ARGS_TYPE(T);

enum { FIRST_BITS = 11, FIRST_MOST = 2048, FIRST_LISTED = 4096 };
/* What is known of the last of the first elements of a line. */
struct mc_first_state {
    u64 key;              /* bits of its key that rounds have found */
    u64 bound;            /* a key that it is not behind */
    unsigned place;       /* the same of its position */
    unsigned left;        /* how many elements with these bits are among the first */
    unsigned arrived;     /* blocks that have counted */
    unsigned done, found; /* done: all with these bits are; found: elements in the list */
    unsigned below;       /* elements not behind the bound */
};
MC_ARGS_SIZE(mc_first_state, 40);

struct mc_first_args {
    const T *x;
    i64 *y;
    unsigned *count; /* (lines, 2^FIRST_BITS) */
    struct mc_first_state *state;
    u64 *list, *least; /* keys: (lines, capacity); the least ones: (lines, groups) */
    unsigned *places;  /* (lines, capacity) */
    struct mc_lines_args l;
    i64 keep;
    int round, capacity, groups, unused; /* groups: 0: there is no bound */
};
MC_ARGS_SIZE(mc_first_args, 312);

#endif
