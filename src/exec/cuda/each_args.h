/* each_args.h: the arguments of the kernels of each.cu. */
#ifndef MC_EXEC_CUDA_EACH_ARGS_H
#define MC_EXEC_CUDA_EACH_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);
MC_ARGS_TYPE(I);

struct mc_each_args {
    const T *x;                 /* what is searched, permuted, replaced; of a recurrence the factors */
    const T *v;                 /* what is searched for, what replaces, what is added */
    const I *index;
    void *y;
    i64 *err, number;           /* error words, the step's number in them */
    i64 n;                      /* elements, or lines of a recurrence */
    i64 size[8], xs[8], vs[8], is[8], ys[8]; /* axes, the innermost first; strides in elements */
    i64 count, limit;           /* elements along the axis: of x, those that an index may name */
    i64 xstep, vstep, ystep;    /* along the axis */
    double start;
    int axes, axis, right, back, least, unused;
};
MC_ARGS_SIZE(mc_each_args, 448);

#endif
