/* fft_product_args.h: the arguments of the kernels of spectra.cu, products.cu and products_half.cu. */
#ifndef MC_CONV_FFT_PRODUCT_ARGS_H
#define MC_CONV_FFT_PRODUCT_ARGS_H

#include "device/cuda/args.h"

/* rows that `thin` and pairs4 compute; rows and columns of a tile of `multiply`; threads of a block of
 * pairs4 and pairs8 */
enum { FFT_THIN = 4, FFT_WIDE = 64, FFT_PER_BLOCK = 128 };

MC_ARGS_TYPE(number);
MC_ARGS_TYPE(float2);

struct mc_fft_product_args {
    const number *a, *b;
    float2 *c;
    i64 m, n, k, lda, ldb, ldc; /* all ld are multiples of 16 bytes of A or B */
    int add;                    /* adds to C */
};
MC_ARGS_SIZE(mc_fft_product_args, 80);

#endif
