/* lines_args.h: lines of x and y along an axis, in arguments of kernels (lines.cu). */
#ifndef MC_EXEC_CUDA_LINES_ARGS_H
#define MC_EXEC_CUDA_LINES_ARGS_H

#include "device/cuda/args.h"

struct mc_lines_args {
    i64 lines, count;                           /* count: elements of a line of x */
    i64 size[8], xline[8], yline[8];            /* of the other axes, innermost first; in elements */
    i64 xstep, ystep;
    int axes, more;
};
MC_ARGS_SIZE(mc_lines_args, 232);

#endif
