/* pool_args.h: the arguments of the kernels of pool.cu, lines.cu and channels_last.cu. */
#ifndef MC_POOL_POOL_ARGS_H
#define MC_POOL_POOL_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_pool_args {
    T *x, *y;
    void *key;
    const T *bias;
    u64 below, channels;    /* the channel of a plane is plane / below % channels */
    /* axes that are not pooled, and the strides of x, y and key along them */
    i64 planes, nfree, size[8], at[3][8];
    i64 slot[3][3];                             /* strides of x, y and key along the pooled axes */
    i64 in[3], out[3], w[3], stride[3], pad[3];
    int whole;
    /* axis: dividers by `size`; part: lines.cu, channels_last.cu: dividers that split a thread's number */
    struct mc_cuda_divider axis[8], part[4];
    unsigned count;                          /* lines.cu, channels_last.cu: threads with work */
    /* all operands are aligned, so that several elements can be moved at a time */
    int together;
};
MC_ARGS_SIZE(mc_pool_args, 672);

#endif
