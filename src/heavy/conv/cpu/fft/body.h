/* body.h: the transforms, compiled for each instruction set by the file that includes it. That file defines
 * TARGET; L (lanes); MR, REAL_MR and NV (rows and vectors of a product's tile), EACH_ROWS for 1 to MR and
 * EACH_REAL_ROWS for the rest up to REAL_MR; TURN, which transposes a square of TURN_SIZE; READ_ROW and
 * WRITE_ROW for a piece of a row; MATH, TURN_CYCLES and WINOGRAD_CYCLES for estimates. Where a vector is a
 * cache line, it also defines STREAM and FENCE: stores that bypass the caches.
 *
 * A tile's rows are transformed two at a time, one as the real and one as the imaginary part. Then its
 * columns are transformed. The columns of the first and the middle frequency are real and are transformed as
 * one. The inverse does the same backwards; exchanging real and imaginary parts turns a transform into its
 * inverse.
 *
 * Invariant: no arithmetic mixes lanes. */
#include "heavy/conv/cpu/lanes.h"

#ifndef STREAM
#define STREAM store
#define FENCE()
#endif

FUSED void put(float *p, V v, bool far)
{
    if (far) {
        STREAM(p, v);
    } else {
        store(p, v);
    }
}

#include "heavy/conv/cpu/fft/lines.h"

/* ---- rows of windows ---- */

/* Transposes: to[j][i] = from[i][j], (L, size) */
FUSED void turn(float *to, int64_t to_row, const float *from, int64_t from_row, int rows, int columns)
{
    for (int i = 0; i < rows; i += TURN_SIZE) {
        for (int j = 0; j < columns; j += TURN_SIZE) {
            TURN(to + j * to_row + i, to_row, from + i * from_row + j, from_row);
        }
    }
}

/* Floats from one lane's row to the next where rows are turned: whole squares. */
FUSED int row_pitch(const int size)
{
    return (size + TURN_SIZE - 1) / TURN_SIZE * TURN_SIZE;
}

FUSED void read_row(const int size, const struct mc_fft_window *w, int row, int columns, float *to)
{
    _Alignas(64) float at[L * FFT_MOST];
    for (int l = 0; l < L; l++) {
        const struct mc_fft_lane *x = &w->lane[l];
        float *line = at + l * row_pitch(size);
        const bool in = row >= x->top && row < x->bottom;
        if (in && w->cs == 1 && w->dc == 1) {
            READ_ROW(line, x->at + row * w->rs, x->left, x->right, size);
            continue;
        }
        memset(line, 0, (size_t)size * sizeof *line);
        for (int c = x->left; in && c < x->right; c++) {
            line[c * w->dc] = x->at[row * w->rs + c * w->cs];
        }
    }
    turn(to, L, at, row_pitch(size), L, (columns + TURN_SIZE - 1) / TURN_SIZE * TURN_SIZE);
}

FUSED void write_row(const int size, const struct mc_fft_window *w, int row, const float *from, float alpha,
                     float beta)
{
    _Alignas(64) float at[L * FFT_MOST];
    turn(at, row_pitch(size), from, L, size, L);
    for (int l = 0; l < L; l++) {
        const struct mc_fft_lane *x = &w->lane[l];
        const float *line = at + l * row_pitch(size);
        if (row < x->top || row >= x->bottom) {
            continue;
        }
        if (!x->add && w->cs == 1 && w->dc == 1 && x->left == 0) {
            WRITE_ROW(x->at + row * w->rs, line, alpha, x->right, size);
            continue;
        }
        for (int c = x->left; c < x->right; c++) {
            const int64_t e = row * w->rs + c * w->cs;
            x->at[e] = alpha * line[c * w->dc] + (x->add ? beta * x->add[e] : 0);
        }
    }
}

/* The range of rows that any lane has, and the number of columns. */
FUSED void span(const struct mc_fft_window *w, int *lo, int *hi, int *columns)
{
    *lo = FFT_MOST;
    *hi = *columns = 0;
    for (int l = 0; l < L; l++) {
        if (w->lane[l].top < w->lane[l].bottom) {
            *lo = MC_MIN(*lo, w->lane[l].top);
            *hi = MC_MAX(*hi, w->lane[l].bottom);
            *columns = MC_MAX(*columns, (w->lane[l].right - 1) * w->dc + 1);
        }
    }
}

/* ---- tiles. tile[c] has (re, im) of the rows of column c of the first half. Column 0 combines the columns
 * of the first and the middle frequency, which are real before columns are transformed ---- */

/* Transforms rows [lo, hi) of a window with `columns` columns. Row r, column c is stored at
 * to + r * row + c * column. */
FUSED void rows_of_window(const int size, const struct mc_fft_window *w, int lo, int hi, int columns,
                          float *to, int64_t column, int64_t row, int64_t im)
{
    const int half = size / 2;
    _Alignas(64) float a[FFT_MOST * L], b[FFT_MOST * L], zr[FFT_MOST * L], zi[FFT_MOST * L];
    fft_any *const across = fitting(size, columns, &columns);
    for (int l = 0; l < L && w->cs == 1; l++) {
        for (int r = w->lane[l].top; r < w->lane[l].bottom; r++) {
            __builtin_prefetch(w->lane[l].at + r * w->rs + w->lane[l].left);
        }
    }
    for (int r = lo; r < hi; r += 2) {
        read_row(size, w, r, columns, a);
        if (r + 1 < hi) {
            read_row(size, w, r + 1, columns, b);
        } else {
            memset(b, 0, (size_t)(size * L) * sizeof *b);
        }
        across(a, b, L, zr, zi, L, 1, false);
        float *const ta = to + r * row, *const tb = ta + row;
        const bool two = r + 1 < hi;
        store(ta, load(zr) * 2);
        store(ta + im, load(zr + half * L) * 2);
        if (two) {
            store(tb, load(zi) * 2);
            store(tb + im, load(zi + half * L) * 2);
        }
        for (int k = 1; k < half; k++) {
            const V pr = load(zr + k * L), pi = load(zi + k * L), qr = load(zr + (size - k) * L),
                    qi = load(zi + (size - k) * L);
            store(ta + k * column, pr + qr);
            store(ta + k * column + im, pi - qi);
            if (two) {
                store(tb + k * column, pi + qi);
                store(tb + k * column + im, qr - pr);
            }
        }
    }
}

/* Splits the transform of column 0 into those of the first and the middle frequency. */
FUSED void part(const int size, const float *zr, const float *zi, float sign, bool far, float *first,
                int64_t step, int64_t im)
{
    const int half = size / 2;
    float *middle = first + (half + 1) * step;
    const float h = 0.5f, hs = 0.5f * sign;
    for (int k = 0; k <= half; k++) {
        const int m = k ? size - k : 0;
        const V pr = load(zr + k * L), pi = load(zi + k * L), qr = load(zr + m * L), qi = load(zi + m * L);
        put(first + k * step, (pr + qr) * h, far);
        put(first + k * step + im, (pi - qi) * hs, far);
        put(middle + k * step, (pi + qi) * h, far);
        put(middle + k * step + im, (qr - pr) * hs, far);
    }
}

FUSED void interleave(const int size, const float *first, int64_t step, int64_t im, float *zr, float *zi)
{
    const int half = size / 2;
    const float *middle = first + (half + 1) * step;
    for (int k = 0; k <= half; k++) {
        const V pr = load(first + k * step), pi = load(first + k * step + im);
        const V qr = load(middle + k * step), qi = load(middle + k * step + im);
        if (k > 0 && k < half) {
            store(zr + (size - k) * L, pr + qi);
            store(zi + (size - k) * L, qr - pi);
        }
        store(zr + k * L, pr - qi);
        store(zi + k * L, pi + qr);
    }
}

FUSED fft_any *whole(const int size)
{
    return size == 8 ? fft8_4 : size == 12 ? fft12_4 : size == 16 ? fft16_4 : size == 32 ? fft32_4 : fft64_4;
}

/* The inverse of rows_of_window(). */
FUSED void rows_back(const int size, const float *from, int64_t column, int64_t row, int64_t im, float alpha,
                     float beta, const struct mc_fft_window *w)
{
    const int half = size / 2;
    _Alignas(64) float a[FFT_MOST * L], b[FFT_MOST * L], zr[FFT_MOST * L], zi[FFT_MOST * L];
    int lo, hi, columns;
    span(w, &lo, &hi, &columns);
    for (int r = lo; r < hi; r += 2) {
        const bool two = r + 1 < hi;
        const float *const ta = from + r * row, *const tb = two ? ta + row : ta;
        store(zr, load(ta));
        store(zi, load(tb));
        store(zr + half * L, load(ta + im));
        store(zi + half * L, load(tb + im));
        for (int k = 1; k < half; k++) {
            const V ar = load(ta + k * column), ai = load(ta + k * column + im);
            const V br = load(tb + k * column), bi = load(tb + k * column + im);
            store(zr + k * L, ar - bi);
            store(zi + k * L, ai + br);
            store(zr + (size - k) * L, ar + bi);
            store(zi + (size - k) * L, br - ai);
        }
        whole(size)(zi, zr, L, b, a, L, 1, false);
        write_row(size, w, r, a, alpha, beta);
        if (two) {
            write_row(size, w, r + 1, b, alpha, beta);
        }
    }
}

FUSED void filter_rows(const int size, const struct mc_fft_window *w, float *to, int64_t column, int64_t row,
                       int64_t im)
{
    int lo, hi, columns;
    span(w, &lo, &hi, &columns);
    rows_of_window(size, w, lo, hi, columns, to, column, row, im);
}

typedef void rows_read(const struct mc_fft_window *w, float *to, int64_t column, int64_t row, int64_t im);
typedef void rows_write(const float *from, int64_t column, int64_t row, int64_t im, float alpha, float beta,
                        const struct mc_fft_window *w);

/* read: filter_rows() of this size */
FUSED void forward(const int size, rows_read *read, const struct mc_fft_window *w, bool conjugate, bool far,
                   float *tile, float *out, int64_t step, int64_t im)
{
    /* odd, so that columns do not share sets of the cache */
    const int half = size / 2, column = (2 * size + 1) * L;
    const float sign = conjugate ? -1 : 1;
    _Alignas(64) float zr[FFT_MOST * L], zi[FFT_MOST * L];
    int lo, hi, columns, rows;
    span(w, &lo, &hi, &columns);
    fft_any *const down = fitting(size, (hi - 1) * w->dr + 1, &rows);
    for (int c = 0; c < half && hi - lo < rows; c++) {
        memset(tile + c * column, 0, (size_t)(rows * L) * sizeof *tile);
        memset(tile + c * column + size * L, 0, (size_t)(rows * L) * sizeof *tile);
    }
    read(w, tile, column, w->dr * L, size * L);
    for (int c = 1; c < half; c++) {
        float *to = out + (c - 1) * size * step;
        down(tile + c * column, tile + c * column + size * L, L, to, to + im, step, sign, far);
    }
    down(tile, tile + size * L, L, zr, zi, L, 1, false);
    part(size, zr, zi, sign, far, out + (half - 1) * size * step, step, im);
    if (far) {
        FENCE();
    }
}

/* write: filter_rows_back() of this size */
FUSED void inverse(const int size, rows_write *write, const float *in, int64_t step, int64_t im, float alpha,
                   float beta, float *tile, const struct mc_fft_window *w)
{
    /* odd, so that columns do not share sets of the cache */
    const int half = size / 2, column = (2 * size + 1) * L;
    _Alignas(64) float zr[FFT_MOST * L], zi[FFT_MOST * L];
    for (int c = 1; c < half; c++) {
        const float *from = in + (c - 1) * size * step;
        whole(size)(from + im, from, step, tile + c * column + size * L, tile + c * column, L, 1, false);
    }
    interleave(size, in + (half - 1) * size * step, step, im, zr, zi);
    whole(size)(zi, zr, L, tile + size * L, tile, L, 1, false);
    write(tile, column, w->dr * L, size * L, alpha, beta, w);
}

/* ---- slim filters: the rows of a column are at from + r * row ---- */

FUSED void filter_column(const int size, const float *from, int64_t row, int64_t from_im,
                         const struct mc_fft_taps *t, float *to, int64_t step, int64_t im)
{
    _Alignas(64) float xr[FFT_MOST * L], xi[FFT_MOST * L], zr[FFT_MOST * L], zi[FFT_MOST * L];
    int rows;
    fft_any *const down = fitting(size, (t->taps - 1) * t->row_step + 1, &rows);
    for (int r = t->row_step > 1 ? 0 : t->taps; r < rows; r++) {
        store(xr + r * L, (V){ 0 });
        store(xi + r * L, (V){ 0 });
    }
    for (int r = 0; r < t->taps; r++) {
        store(xr + r * t->row_step * L, load(from + r * row));
        store(xi + r * t->row_step * L, load(from + r * row + from_im));
    }
    if (!t->first) {
        down(xr, xi, L, to, to + im, step, -1, false);
        return;
    }
    down(xr, xi, L, zr, zi, L, 1, false);
    part(size, zr, zi, -1, false, to, step, im);
}

FUSED void filter_column_back(const int size, const float *from, int64_t step, int64_t im,
                              const struct mc_fft_taps *t, bool add, float *to, int64_t row, int64_t to_im)
{
    _Alignas(64) float xr[FFT_MOST * L], xi[FFT_MOST * L], zr[FFT_MOST * L], zi[FFT_MOST * L];
    const int rows = (t->taps - 1) * t->row_step + 1;
    if (t->first) {
        interleave(size, from, step, im, xr, xi);
        from = xr;
        im = xi - xr;
        step = L;
    }
    if (rows <= size / 4) {
        fft_first(size, rows, from + im, from, step, zi, zr);
    } else {
        whole(size)(from + im, from, step, zi, zr, L, 1, false);
    }
    for (int r = 0; r < t->taps; r++) {
        const V yr = load(zr + r * t->row_step * L), yi = load(zi + r * t->row_step * L);
        float *const at = to + r * row;
        store(at, add ? load(at) + yr : yr);
        store(at + to_im, add ? load(at + to_im) + yi : yi);
    }
}

#define SIZES(size)                                                                                          \
    static TARGET void filter_rows##size(const struct mc_fft_window *w, float *to, int64_t column,           \
                                         int64_t row, int64_t im)                                            \
    {                                                                                                        \
        filter_rows(size, w, to, column, row, im);                                                           \
    }                                                                                                        \
    static TARGET void filter_rows_back##size(const float *from, int64_t column, int64_t row, int64_t im,    \
                                              float alpha, float beta, const struct mc_fft_window *w)        \
    {                                                                                                        \
        rows_back(size, from, column, row, im, alpha, beta, w);                                              \
    }                                                                                                        \
    static TARGET void forward##size(const struct mc_fft_window *w, bool conjugate, bool far, float *tile,   \
                                     float *out, int64_t step, int64_t im)                                   \
    {                                                                                                        \
        forward(size, filter_rows##size, w, conjugate, far, tile, out, step, im);                                               \
    }                                                                                                        \
    static TARGET void inverse##size(const float *in, int64_t step, int64_t im, float alpha, float beta,     \
                                     float *tile, const struct mc_fft_window *w)                             \
    {                                                                                                        \
        inverse(size, filter_rows_back##size, in, step, im, alpha, beta, tile, w);                                                   \
    }                                                                                                        \
    static TARGET void filter_column##size(const float *from, int64_t row, int64_t from_im,                  \
                                           const struct mc_fft_taps *t, float *to, int64_t step, int64_t im) \
    {                                                                                                        \
        filter_column(size, from, row, from_im, t, to, step, im);                                            \
    }                                                                                                        \
    static TARGET void filter_column_back##size(const float *from, int64_t step, int64_t im,                 \
                                                const struct mc_fft_taps *t, bool add, float *to,            \
                                                int64_t row, int64_t to_im)                                  \
    {                                                                                                        \
        filter_column_back(size, from, step, im, t, add, to, row, to_im);                                    \
    }
SIZES(8)
SIZES(16)
SIZES(32)
SIZES(64)
SIZES(12)

#include "heavy/conv/cpu/fft/products.h"
#include "heavy/conv/cpu/winograd_body.h"

static const struct mc_fft_kernel kernel = {
    .lanes = L, .columns = NV * L, .math = MATH, .turn = TURN_CYCLES,
    .forward = { forward8, forward16, forward32, forward64, forward12 },
    .inverse = { inverse8, inverse16, inverse32, inverse64, inverse12 },
    .filter_rows = { filter_rows8, filter_rows16, filter_rows32, filter_rows64, filter_rows12 },
    .filter_rows_back = { filter_rows_back8, filter_rows_back16, filter_rows_back32, filter_rows_back64,
                          filter_rows_back12 },
    .filter_column = { filter_column8, filter_column16, filter_column32, filter_column64,
                       filter_column12 },
    .filter_column_back = { filter_column_back8, filter_column_back16, filter_column_back32,
                            filter_column_back64, filter_column_back12 },
    .product = product,
    .real_product = real_product, .winograd_turn = WINOGRAD_CYCLES,
    .winograd_forward = { winograd_forward4, winograd_forward6 },
    .winograd_inverse = { winograd_inverse4, winograd_inverse6 },
};
