/* custom_view_args.h: the argument of a user's kernel for each array (custom_view.cu). */
#ifndef MC_EXEC_CUDA_CUSTOM_VIEW_ARGS_H
#define MC_EXEC_CUDA_CUSTOM_VIEW_ARGS_H

#include "device/cuda/args.h"

/* The members of struct view in C, and of the template of that name in custom_view.cu. */
#define MC_VIEW_MEMBERS(T)                                                                                   \
    T *data;                                                                                                 \
    i64 n;                      /* elements */                                                               \
    i64 size[8], stride[8];     /* by axis, the outermost first; strides count elements */                   \
    i64 *err, number;                                                                                        \
    int rank, dense;            /* dense: element i is data[i] */

#endif
