/* split_large_args.h: the arguments of the kernel of split_large.cu. */
#ifndef MC_GEMM_SPLIT_LARGE_ARGS_H
#define MC_GEMM_SPLIT_LARGE_ARGS_H

#include "heavy/gemm/cuda/split_args.h"

struct mc_split_large_args {
    const unsigned short *a, *b;        /* packed (split_pack.cu): tiles of SPLIT_TM rows, of TN columns */
    const struct mc_split_seen *a_seen, *b_seen;
    i64 a_batch, b_batch;       /* halves of a packed matrix */
    float *c;
    const float *c0;            /* NULL: none */
    const float *plain_a, *plain_b;     /* the original operands, for sums with infinities */
    i64 as[3], bs[3], cs[3], c0s[3];
    int m, n, k, steps, batch;
    int down, right;            /* tiles, or pairs of tiles, along both axes of C */
    int pairs;                  /* elements of C may be stored two at once */
    float alpha, beta;
};
MC_ARGS_SIZE(mc_split_large_args, 216);

#endif
