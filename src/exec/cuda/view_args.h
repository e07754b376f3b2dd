/* view_args.h: the argument of a user's kernel for each array: view.cu. */
#ifndef MC_FUNCTION_VIEW_ARGS_H
#define MC_FUNCTION_VIEW_ARGS_H

#include "device/cuda/args.h"

/* struct view of C and the template of that name of view.cu, which has functions too, have these members. */
#define MC_VIEW_MEMBERS(T)                                                                                   \
    T *data;                                                                                                 \
    i64 n, size[8], stride[8];  /* elements; of each axis, the outermost first: its size, its stride in elements */ \
    i64 *err, number;                                                                                        \
    int rank, dense;            /* dense: element i is data[i] */

#endif
