/* kernel.h: the innermost loops of normalisation across channels. They are compiled from kernel_body.h;
 * kernel_avx512.c, kernel_avx2.c and kernel_generic.c define its registers.
 *
 * Invariant: no kernel accesses an element outside of what its arguments describe. */
#ifndef MC_NORM_KERNEL_H
#define MC_NORM_KERNEL_H

#include "op/norm.h"

/* c channels of n lanes: x[f * x_far + j], and likewise g and y. scratch: room of 2 * c * n elements for
 * block (backward only), 4 * (c + 2 * window + 32) for line. */
struct mc_norm_block {
    const struct mc_norm_shape *s;
    int64_t c, n, x_far, g_far, y_far;
    const void *x, *g;      /* g is NULL forward */
    void *y, *scratch;
};
typedef void mc_norm_block_kernel(const struct mc_norm_block *b);
struct mc_norm_kernel {
    const char *name;       /* "avx512" */
    int lanes;              /* least n (block) or c (line) that fills a vector */
    mc_norm_block_kernel *block; /* lanes are contiguous */
    /* channels are contiguous: n and x_far are 1; only windows around a channel (not blocked) */
    mc_norm_block_kernel *line;
};
/* [0] is float32, [1] is float64; NULL: not compiled for this processor */
extern const struct mc_norm_kernel *const mc_norm_avx512[2], *const mc_norm_avx2[2], *const mc_norm_plain[2];

/* the fastest that this processor supports */
const struct mc_norm_kernel *mc_norm_kernel(bool f64, int64_t n);

#endif
