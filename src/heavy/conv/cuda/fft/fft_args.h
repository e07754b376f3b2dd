/* fft_args.h: the arguments of the kernels of address.cu, fft.cu and tensor.cu: transforms, and the
 * largest numbers of arrays. */
#ifndef MC_CONV_FFT_ARGS_H
#define MC_CONV_FFT_ARGS_H

#include "device/cuda/args.h"

enum { FFT_PEAK_THREADS = 512 };    /* of a block that looks for the largest numbers */

MC_ARGS_TYPE(T);

struct mc_fft_args {
    T *x;
    const T *c0;
    void *s;                    /* float2; cells where it is an operand of the product */
    i64 rows, cols, ld;         /* of the spectra; ld: stride of rows */
    i64 step[2];                /* in x, from row to row and from column to column of the spectra */
    int tiles[2];               /* consecutive tiles along rows, or columns, before the next step */
    int across;                 /* tiles in a line of the image */
    int first[2], every[2];     /* position of the first tile in x, and distance between tiles */
    /* of a tile: the part that is read or written, and its offset in the transform */
    int extent[2], from[2];
    int size[2];                /* of x; zeros outside */
    i64 stride[2];
    float scale, beta;
    int conjugate;
    const unsigned *peaks;      /* HALVES: PEAKS of the array; `back`: those of both operands */
};
MC_ARGS_SIZE(mc_fft_args, 160);

struct mc_fft_peak_args {
    const T *x[2];
    i64 count[2];               /* elements, without gaps */
    unsigned *to;               /* (2, PEAKS) */
};
MC_ARGS_SIZE(mc_fft_peak_args, 40);

#endif
