/* first_args.h: the arguments of the kernels of first.cu. */
#ifndef MC_EXEC_CUDA_FIRST_ARGS_H
#define MC_EXEC_CUDA_FIRST_ARGS_H

#include "exec/cuda/lines_args.h"

MC_ARGS_TYPE(T);

enum { FIRST_BITS = 11, FIRST_ROUNDS = 6, FIRST_MOST = 2048 };
/* What is known of the last of the first elements of a line. */
struct mc_first_state {
    u64 known;                  /* its bits that rounds have found */
    unsigned left;              /* how many elements with these bits are among the first */
    unsigned arrived;           /* blocks that have counted */
    unsigned done, found;       /* done: all with these bits are; found: elements in the list */
};
MC_ARGS_SIZE(mc_first_state, 24);

struct mc_first_args {
    const T *x;
    i64 *y;
    unsigned *count;            /* (lines, 2^FIRST_BITS) */
    struct mc_first_state *state;
    u64 *list;                  /* (lines, keep) */
    struct mc_lines_args l;
    i64 keep;
    int round, unused;
};
MC_ARGS_SIZE(mc_first_args, 288);

#endif
