/* kernel.h: the innermost loops of pooling, a table of functions for each instruction set and element type.
 *
 * They are compiled from kernel_body.h. kernel_avx512.c, kernel_avx2.c and kernel_generic.c define its
 * registers and instructions.
 *
 * Invariant: no kernel accesses an element outside of what its arguments describe. */
#ifndef MC_POOL_KERNEL_H
#define MC_POOL_KERNEL_H

#include "base/base.h"

/* n adjacent windows inside of the image. Window j has the cells x[r][j * s + b] for r < nrow, b < w. Cell
 * (r, b) has the mark mark[r] + b. Lanes are windows with w = 1 and s = 1 and a row for each cell. The call
 * is repeated for each of `bands` bands, with x, y and key x_band, y_band and key_band bytes further on each
 * time. */
enum { POOL_ROWS = 64 }; /* most rows of one call */
struct mc_pool_row {
    int64_t n, s, bands, x_band, y_band, key_band;
    int w, nrow;
    char *x[POOL_ROWS];
    int32_t mark[POOL_ROWS];
    void *y;            /* (n) */
    void *key;          /* (n) marks; NULL: not wanted */
    bool wide;          /* marks are int32, else uint8 */
    bool bits;          /* key has a bit for each mark whose cell is the maximum; `more` is false */
    double scale;       /* of sums */
    bool more;          /* y (and key) have the result of the rows of earlier calls */
    const char *k[POOL_ROWS]; /* ties: the row beside x[r], k_band bytes further on for each band */
    int64_t k_band;
};
typedef void mc_pool_row_kernel(const struct mc_pool_row *r);
struct mc_pool_kernel {
    const char *name;   /* "avx512" */
    int lanes;          /* least n that fills a vector */
    mc_pool_row_kernel *max;    /* y = the largest, key = its mark; no bits */
    /* key = the bits, after max.  NULL: it knows no bits, and its put and blocks do not either */
    mc_pool_row_kernel *bits;
    mc_pool_row_kernel *sum;    /* y = scale * the sum */
    /* w = 2, s = 2, uint8: x[r][2 j + b] = key[j] is its mark, or has its bit, ? y[j] : 0 */
    mc_pool_row_kernel *put;
    /* w = 2, s = 2: x[r][2 j + b] = k[r][2 j + b] is the largest of window j ? y[j] : 0 */
    mc_pool_row_kernel *ties;
    mc_pool_row_kernel *send;   /* w = 1, s = 1: x[r][j] += key[j] is mark[r] ? y[j] : 0 */
    mc_pool_row_kernel *share;  /* w = 1, s = 1: x[r][j] += scale * y[j] */
    /* max, ties and put of short rows without gaps,
     * in blocks of rows. False: they refuse r. NULL: there are none */
    bool (*max_block)(const struct mc_pool_row *r), (*ties_block)(const struct mc_pool_row *r),
        (*put_block)(const struct mc_pool_row *r);
};
/* [0] is float32, [1] is float64; NULL: not compiled for this processor */
extern const struct mc_pool_kernel *const mc_pool_avx512[2], *const mc_pool_avx2[2], *const mc_pool_plain[2];

/* kernel_generic.c: windows of a band from `from` on, one by one, for any w and s. */
void mc_pool_max_slow(const struct mc_pool_row *r, int64_t band, int64_t from, bool f64);
/* The bits of all bands, in float32, one by one. */
void mc_pool_bits_slow(const struct mc_pool_row *r);
void mc_pool_sum_slow(const struct mc_pool_row *r, int64_t band, int64_t from, bool f64);

/* The fastest that this processor supports for n adjacent windows. */
const struct mc_pool_kernel *mc_pool_kernel(bool f64, int64_t n);
/* max, ties and put by k, or in blocks where the processor has kernels for them. */
void mc_pool_max(const struct mc_pool_kernel *k, const struct mc_pool_row *r);
void mc_pool_ties_of(const struct mc_pool_kernel *k, const struct mc_pool_row *r);
void mc_pool_put(const struct mc_pool_kernel *k, const struct mc_pool_row *r);

#endif
