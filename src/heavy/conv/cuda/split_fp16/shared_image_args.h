/* shared_image_args.h: the arguments of the kernels of shared_image.cu and of the files that build on it. */
#ifndef MC_HEAVY_CONV_CUDA_SPLIT_FP16_SHARED_IMAGE_ARGS_H
#define MC_HEAVY_CONV_CUDA_SPLIT_FP16_SHARED_IMAGE_ARGS_H

#include "device/cuda/args.h"

/* slots of a ring of filters; `gather`: steps of 16 terms in a slot; weights: units of a warp, each of 32
 * filters times 16 channels of a tap */
enum { SHARED_IMAGE_SLOTS = 3, SHARED_IMAGE_STEPS = 4, SHARED_IMAGE_UNITS = 2 };

/* Halves from one position of an image to the next: eight of them begin in different banks.  cc: its
 * channels, a multiple of 8. */
#define SHARED_IMAGE_PITCH(cc) ((cc) % 16 ? (cc) : (cc) + 8)

MC_ARGS_TYPE(uint4);

struct mc_shared_image_args {
    const float *x, *y, *w;     /* x: images that windows are read from; weights: also y */
    float *to;
    const float *c0, *bias;
    /* for each step of 16 terms, eight results and lane: two of high halves, two of low ones */
    uint4 *filters;
    /* 2^-e: of filters, for each result; weights: of split images, for each chunk of x, then block of y */
    float *scale;
    float *parts;
    unsigned short *split;      /* weights: split images of x, then of y, as blocks read them */
    /* strides of x and y: image; of the result: image, channel; of w: result, channel, taps */
    i64 xs, ys, ts[2], ws[4];
    int n, channels, results, chunks;
    int in[2], out[2], pad[2], stride[2], dilation[2], k[2];
    /* `gather`: images of a block, its warps by positions and by results, all eights of results, steps of
     * a chunk */
    int images, down, right, tiles, steps;
    int blocks, per_set;        /* weights: number of partial sums; taps of a block */
    int fours;                  /* images can be loaded four elements at a time */
    float alpha, beta;
};
MC_ARGS_SIZE(mc_shared_image_args, 248);

#endif
