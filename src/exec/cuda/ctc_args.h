/* ctc_args.h: the arguments of the kernel of ctc.cu. */
#ifndef MC_EXEC_CUDA_CTC_ARGS_H
#define MC_EXEC_CUDA_CTC_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_ctc_args {
    const char *x, *v, *labels, *lengths; /* v: the direction of CTC_CHANGE, else x */
    char *y;                    /* costs, or (examples, rows, classes) */
    char *work;                 /* `stride` bytes for each block */
    i64 x_strides[3], v_strides[3], y_strides[3], label_strides[2], length_stride; /* in bytes */
    i64 examples, rows, classes, most, stride; /* most: labels of an example */
    i64 *err, number;           /* error words, the step's number in them */
    int zero_infinity, unused;
};
MC_ARGS_SIZE(mc_ctc_args, 208);

#endif
