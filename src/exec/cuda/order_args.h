/* order_args.h: the arguments of the kernels of order.cu. */
#ifndef MC_EXEC_CUDA_ORDER_ARGS_H
#define MC_EXEC_CUDA_ORDER_ARGS_H

#include "exec/cuda/lines_args.h"

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(U);
MC_ARGS_TYPE(O);

struct mc_order_args {
    const T *x;
    O *y;
    unsigned *count;                            /* (lines, PASSES, 256): elements by digit */
    unsigned *ticket;                           /* (PASSES): tiles begun */
    unsigned *state;                            /* (lines * tiles, 256), of this pass */
    unsigned *counted;                          /* (lines): blocks that have counted */
    unsigned *needed;                           /* (lines): passes that move something, by bit */
    U *keys[2];                                 /* (lines, count): a pass reads the one, writes the other */
    unsigned *places[2];                        /* their positions in x */
    struct mc_lines_args l;
    i64 keep;                                   /* the first elements of the order that y has */
    int tiles, pass;                            /* tiles: of a line */
};
MC_ARGS_SIZE(mc_order_args, 336);

#endif
