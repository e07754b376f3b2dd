/* im2col_args.h: the arguments of the kernels of im2col.cu. */
#ifndef MC_CONV_IM2COL_ARGS_H
#define MC_CONV_IM2COL_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_im2col_args {
    T *x;
    const T *c0;
    T *columns;
    i64 n, c, in[3], out[3], k[3], stride[3], dilation[3], pad[3], xs[5];
    i64 image, row;             /* strides of columns: image, row; positions are contiguous */
    double beta;
    int flip;
};
MC_ARGS_SIZE(mc_im2col_args, 256);

#endif
