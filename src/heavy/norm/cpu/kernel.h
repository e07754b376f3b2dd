/* kernel.h: the innermost loops of normalisation across channels; kernel_body.h is the one text they are
 * compiled from, kernel_avx512.c, kernel_avx2.c and kernel_plain.c say which registers it means.
 *
 * Invariant: no kernel reads or writes an element outside of what its arguments describe. */
#ifndef MC_NORM_KERNEL_H
#define MC_NORM_KERNEL_H

#include "op/norm.h"

/* c channels of n lanes: x[f * x_far + j], and so on.  room: 2 * c * n elements (lanes), 4 * (c + 2 * window)
 * (line). */
struct mc_norm_block {
    const struct mc_norm_shape *s;
    int64_t c, n, x_far, g_far, y_far;
    const void *x, *g;      /* g is NULL forward */
    void *y, *room;
};
typedef void mc_norm_block_kernel(const struct mc_norm_block *b);
struct mc_norm_kernel {
    const char *name;       /* "avx512" */
    int lanes;              /* the least n (lanes) or c (line) that is fast */
    mc_norm_block_kernel *block; /* lanes side by side */
    mc_norm_block_kernel *line;  /* channels side by side: n is 1, x_far 1; windows around, not blocked */
};
/* [0] is float32, [1] is float64; NULL where the compiler does not know the instruction set */
extern const struct mc_norm_kernel *const mc_norm_avx512[2], *const mc_norm_avx2[2], *const mc_norm_plain[2];

const struct mc_norm_kernel *mc_norm_kernel(bool f64, int64_t n);   /* the best that this processor runs */

#endif
