/* fft.h: transforms of tiles and products of their spectra in vectors, where each lane has a tile of its own.
 *
 * A tile is T by T real numbers. T * T / 2 + 2 complex frequencies describe it; the others are their
 * conjugates. Spectra are stored by frequency. One frequency of several tiles is a matrix whose rows are
 * re[columns], im[columns].
 *
 * Invariant: no kernel accesses memory outside of its window or, in spectra, beyond whole vectors. */
#ifndef MC_CONV_FFT_H
#define MC_CONV_FFT_H

#include "base/base.h"

/* Winograd's F(2x2, 3x3) and F(4x4, 3x3) have real tiles of 4 by 4 and 6 by 6. There is a transform for each
 * role: operands that are read as whole tiles, filters of three taps, and operands that are two or four
 * wide. */
enum { WINOGRAD_SIZES = 2, WINOGRAD_WHOLE = 0, WINOGRAD_FILTER, WINOGRAD_NARROW };
enum { FFT_LANES = 16, FFT_SIZES = 5, FFT_MOST = 64 };  /* most lanes; sizes; the largest */
static const int mc_fft_sizes[FFT_SIZES] = { 8, 16, 32, 64, 12 };
/* One lane's window on an array. Element (r, c) is at[r * rs + c * cs] for top <= r < bottom and left <= c <
 * right, and zero elsewhere. */
struct mc_fft_lane {
    float *at;
    const float *add;           /* when writing, beta * add is added; strides of at; NULL: nothing */
    int top, bottom, left, right;
};
struct mc_fft_window {
    struct mc_fft_lane lane[FFT_LANES];
    int64_t rs, cs;
    int dr, dc;                 /* row r is row r * dr of the tile, column c is column c * dc */
};
/* Are filters in panels?  Not in the runtime library, which is small and has the same bits without them. */
#ifdef MC_RUNTIME
enum { FFT_PANELS = 0 };
#else
enum { FFT_PANELS = 1 };
#endif
/* c (rows, columns) = a (rows, depth) * b (depth, columns), added to c if `add`. real_product is real,
 * product complex. */
struct mc_fft_product {
    int64_t rows, columns, depth;
    /* the part of depth that is summed at once: its error is less than of one long sum, and b stays in
     * cache */
    int64_t piece;
    const float *a, *b;
    float *c;
    /* columns are contiguous and a multiple of the vector length */
    int64_t a_row, a_depth, a_im, b_depth, b_im, c_row, c_im;
    int64_t b_panel;            /* b is in panels of the kernel's columns, at this distance; 0: it is not */
    bool add;
    /* floats to the operands of the next product, which is prefetched; 0: none */
    int64_t a_ahead, b_ahead, c_ahead;
};
/* far: the spectra do not fit in the caches; stores bypass them. */
typedef void mc_fft_forward(const struct mc_fft_window *w, bool conjugate, bool far, float *tile,
                            float *spectrum, int64_t step, int64_t im);
typedef void mc_fft_inverse(const float *spectrum, int64_t step, int64_t im, float alpha, float beta,
                            float *tile, const struct mc_fft_window *w);
/* Slim filters: transforms of their rows, with column c of row r at r * row + c * column. The columns are
 * transformed in L lanes to the tile's frequencies: `size` of them, or for the first column both real
 * ones'. */
struct mc_fft_taps {
    int taps, row_step;            /* rows; their distance in rows of the tile */
    bool first;
};
struct mc_fft_kernel {
    int lanes, columns;         /* columns: of a product's tile */
    double math;                /* fraction of the peak that products reach */
    double turn[FFT_SIZES];     /* cycles for each element of a tile, to transform all lanes */
    mc_fft_forward *forward[FFT_SIZES]; /* computes four times the values of the transform */
    mc_fft_inverse *inverse[FFT_SIZES];
    void (*filter_rows[FFT_SIZES])(const struct mc_fft_window *w, float *to, int64_t column, int64_t row,
                                   int64_t im);
    void (*filter_rows_back[FFT_SIZES])(const float *from, int64_t column, int64_t row, int64_t im,
                                        float alpha, float beta, const struct mc_fft_window *w);
    void (*filter_column[FFT_SIZES])(const float *from, int64_t row, int64_t from_im,
                                     const struct mc_fft_taps *t, float *to, int64_t step,
                                     int64_t im); /* conjugate, as products need filters */
    void (*filter_column_back[FFT_SIZES])(const float *from, int64_t step, int64_t im,
                                          const struct mc_fft_taps *t, bool add, float *to, int64_t row,
                                          int64_t to_im);
    void (*product)(const struct mc_fft_product *p), (*real_product)(const struct mc_fft_product *p);
    double winograd_turn[WINOGRAD_SIZES]; /* as turn */
    void (*winograd_forward[WINOGRAD_SIZES])(const struct mc_fft_window *w, int role, float *spectrum,
                                             int64_t step);
    void (*winograd_inverse[WINOGRAD_SIZES])(const float *spectrum, int64_t step, int role, float alpha,
                                             float beta, const struct mc_fft_window *w);
};
extern const struct mc_fft_kernel *const mc_fft_avx512, *const mc_fft_avx2, *const mc_fft_plain;

static inline int64_t fft_frequencies(int64_t size)
{
    return size * size / 2 + 2;
}
/* Floats of a tile while it is transformed. */
static inline int64_t fft_tile(int64_t size, int64_t lanes)
{
    return size / 2 * (2 * size + 1) * lanes;
}
#endif
