/* fft_args.h: the arguments of the kernels of fft_place.cu, fft.cu and fft_tensor.cu: transforms, and the
 * largest numbers. */
#ifndef MC_CONV_FFT_ARGS_H
#define MC_CONV_FFT_ARGS_H

#include "device/cuda/args.h"

MC_ARGS_TYPE(T);

struct mc_fft_args {
    T *x;
    const T *c0;
    void *s;                    /* float2; cells, where it is to be multiplied */
    i64 rows, cols, ld;         /* of the spectra; ld: from row to row */
    i64 step[2];                /* in x, from row to row and from column to column of the spectra */
    int tiles[2];               /* that follow each other as rows, or columns, before the next step */
    int across;                 /* of them side by side */
    int first[2], every[2];     /* where the first tile lies in x, and how far apart they are */
    /* of a tile: what is read or written of it, and where that begins in the transform */
    int extent[2], from[2];
    int size[2];                /* of x: zeros outside */
    i64 stride[2];
    float scale, beta;
    int conjugate;
    const unsigned *peaks;      /* HALVES: PEAKS of the array; `back`: of one operand, then of the other */
};
MC_ARGS_SIZE(mc_fft_args, 160);

struct mc_fft_peak_args {
    const T *x[2];
    i64 count[2];               /* elements, without gaps */
    unsigned *to;               /* (2, PEAKS) */
};
MC_ARGS_SIZE(mc_fft_peak_args, 40);

#endif
