/* small_filters_args.h: the arguments of the kernel of small_filters.cu. */
#ifndef MC_SMALL_FILTERS_ARGS_H
#define MC_SMALL_FILTERS_ARGS_H

#include "device/cuda/args.h"

/* a block has up to RESULTS results, a warp POSITIONS positions at a time */
enum { SMALL_FILTERS_RESULTS = 64, SMALL_FILTERS_POSITIONS = 32 };

struct mc_small_filters_args {
    const float *from, *w, *c0, *bias;
    float *to;
    /* strides: image that is read; image, result; result, source, tap of filters */
    i64 image, to_s[2], ws[3];
    int row;                    /* stride of a source */
    int first, step;            /* position u reads u + first + tap * step */
    int length;                 /* of a line that is read */
    int positions, tiles;       /* of an image's result; tiles of all images */
    struct mc_cuda_divider across; /* tiles of an image */
    int fours[2];               /* lines that are read, and written, can be moved by sixteen bytes */
    float alpha, beta;
};
MC_ARGS_SIZE(mc_small_filters_args, 144);

#endif
