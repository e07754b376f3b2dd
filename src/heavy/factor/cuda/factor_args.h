/* factor_args.h: the arguments of the kernels that treat a whole stack: factor.cu in src/exec/cuda, and those
 * of stack.c. */
#ifndef MC_HEAVY_FACTOR_CUDA_FACTOR_ARGS_H
#define MC_HEAVY_FACTOR_CUDA_FACTOR_ARGS_H

#include "device/cuda/args.h"

struct mc_factor_args {
    const char *in[2];          /* NULL: there is none */
    char *out[3];
    char *work;                 /* `stride` bytes for each thread, or each block */
    i64 in_bytes[2], out_bytes[3]; /* of one matrix */
    i64 sizes[6];               /* struct mc_factor's g */
    i64 batch, stride;
    i64 *err, number;           /* error words, the step's number in them */
};
MC_ARGS_SIZE(mc_factor_args, 168);

#endif
