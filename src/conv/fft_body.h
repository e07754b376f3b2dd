/* fft_body.h: the one text of the transforms, compiled for each instruction set by the file that includes it, which
 * defines TARGET, L (lanes), MR, REAL_MR and NV (rows and vectors of a product's tile; EACH_ROWS lists the first, and
 * EACH_REAL_ROWS those beyond), TURN (8 by 8 or none), READ_ROW and WRITE_ROW (a piece of a row), ISA; and, where a
 * vector is a line of the caches, STREAM and FENCE: stores past them.
 *
 * A tile's rows are transformed two at a time, one as real and one as imaginary part; then its columns, of which the
 * first and the middle one are real for the same reason and go as one.  The inverse does the same backwards; the
 * roles of real and imaginary parts exchanged make a transform its inverse.
 *
 * Invariant: no arithmetic mixes lanes. */
#include "conv/lanes.h"

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

/* exp(-2 pi i k / 64) */
static const float turn_re[] = {
    1, 0.995184727f, 0.98078528f, 0.956940336f, 0.923879533f, 0.881921264f, 0.831469612f, 0.773010453f, 0.707106781f,
    0.634393284f, 0.555570233f, 0.471396737f, 0.382683432f, 0.290284677f, 0.195090322f, 0.09801714f, 0, -0.09801714f,
    -0.195090322f, -0.290284677f, -0.382683432f, -0.471396737f, -0.555570233f, -0.634393284f, -0.707106781f,
    -0.773010453f, -0.831469612f, -0.881921264f, -0.923879533f, -0.956940336f, -0.98078528f, -0.995184727f, -1,
    -0.995184727f, -0.98078528f, -0.956940336f, -0.923879533f, -0.881921264f, -0.831469612f, -0.773010453f,
    -0.707106781f, -0.634393284f, -0.555570233f, -0.471396737f, -0.382683432f, -0.290284677f,
};
static const float turn_im[] = {
    0, -0.09801714f, -0.195090322f, -0.290284677f, -0.382683432f, -0.471396737f, -0.555570233f, -0.634393284f,
    -0.707106781f, -0.773010453f, -0.831469612f, -0.881921264f, -0.923879533f, -0.956940336f, -0.98078528f,
    -0.995184727f, -1, -0.995184727f, -0.98078528f, -0.956940336f, -0.923879533f, -0.881921264f, -0.831469612f,
    -0.773010453f, -0.707106781f, -0.634393284f, -0.555570233f, -0.471396737f, -0.382683432f, -0.290284677f,
    -0.195090322f, -0.09801714f, 0, 0.09801714f, 0.195090322f, 0.290284677f, 0.382683432f, 0.471396737f, 0.555570233f,
    0.634393284f, 0.707106781f, 0.773010453f, 0.831469612f, 0.881921264f, 0.923879533f, 0.956940336f,
};

/* ---- transforms of 4, 8 and 16 complex numbers in registers, and of 8, 16, 32 and 64 in memory, where elements lie
 * `from` floats apart, and results `to` ---- */

FUSED void fft4(const V *xr, const V *xi, V *yr, V *yi)
{
    const V ar = xr[0] + xr[2], ai = xi[0] + xi[2], br = xr[0] - xr[2], bi = xi[0] - xi[2];
    const V cr = xr[1] + xr[3], ci = xi[1] + xi[3], dr = xr[1] - xr[3], di = xi[1] - xi[3];
    yr[0] = ar + cr, yi[0] = ai + ci;
    yr[1] = br + di, yi[1] = bi - dr;
    yr[2] = ar - cr, yi[2] = ai - ci;
    yr[3] = br - di, yi[3] = bi + dr;
}

FUSED void fft8(const V *xr, const V *xi, V *yr, V *yi)
{
    const float h = 0.70710678f;
    V sr[4], si[4], dr[4], di[4], er[4], ei[4], or[4], oi[4];
    UNROLL(4)
    for (int j = 0; j < 4; j++) {
        sr[j] = xr[j] + xr[j + 4], si[j] = xi[j] + xi[j + 4];
        dr[j] = xr[j] - xr[j + 4], di[j] = xi[j] - xi[j + 4];
    }
    const V pr = (dr[1] + di[1]) * h, pi = (di[1] - dr[1]) * h, qr = (di[3] - dr[3]) * h, qi = (dr[3] + di[3]) * -h;
    const V t = dr[2];
    dr[1] = pr, di[1] = pi, dr[2] = di[2], di[2] = -t, dr[3] = qr, di[3] = qi;
    fft4(sr, si, er, ei);
    fft4(dr, di, or, oi);
    UNROLL(4)
    for (int j = 0; j < 4; j++) {
        yr[2 * j] = er[j], yi[2 * j] = ei[j];
        yr[2 * j + 1] = or[j], yi[2 * j + 1] = oi[j];
    }
}

FUSED void fft16(const V *xr, const V *xi, V *yr, V *yi)
{
    V tr[16], ti[16];
    UNROLL(4)
    for (int j = 0; j < 4; j++) {
        const V ar[4] = { xr[j], xr[j + 4], xr[j + 8], xr[j + 12] }, ai[4] = { xi[j], xi[j + 4], xi[j + 8], xi[j + 12] };
        V br[4], bi[4];
        fft4(ar, ai, br, bi);
        UNROLL(4)
        for (int q = 0; q < 4; q++) {
            const float c = turn_re[4 * j * q], s = turn_im[4 * j * q];
            tr[4 * q + j] = j && q ? br[q] * c - bi[q] * s : br[q];
            ti[4 * q + j] = j && q ? br[q] * s + bi[q] * c : bi[q];
        }
    }
    UNROLL(4)
    for (int q = 0; q < 4; q++) {
        V br[4], bi[4];
        fft4(tr + 4 * q, ti + 4 * q, br, bi);
        UNROLL(4)
        for (int j = 0; j < 4; j++) {
            yr[q + 4 * j] = br[j], yi[q + 4 * j] = bi[j];
        }
    }
}

FUSED void fft_part(const int m, const V *xr, const V *xi, V *yr, V *yi)
{
    if (m == 16) {
        fft16(xr, xi, yr, yi);
    } else if (m == 8) {
        fft8(xr, xi, yr, yi);
    } else if (m == 4) {
        fft4(xr, xi, yr, yi);
    } else {
        yr[0] = xr[0] + xr[1], yi[0] = xi[0] + xi[1];
        yr[1] = xr[0] - xr[1], yi[1] = xi[0] - xi[1];
    }
}

/* Size 4 m: four of size m of what size 4 leaves; of the input the first live * m are not zeros, and the others not read.
 * sign is that of the imaginary results. */
FUSED void fft(const int size, const int live, const float *re, const float *im, int64_t from, float *to_re, float *to_im,
               int64_t to, float sign, bool far)
{
    const int m = size / 4, stride = FFT_MOST / size;
    _Alignas(64) float tr[FFT_MOST * L], ti[FFT_MOST * L];
    for (int j = 0; j < m && live > 1; j++) {
        V xr[4], xi[4], yr[4], yi[4];
        UNROLL(4)
        for (int q = 0; q < 4; q++) {
            xr[q] = q < live ? load(re + (j + q * m) * from) : (V){ 0 };
            xi[q] = q < live ? load(im + (j + q * m) * from) : (V){ 0 };
        }
        if (live == 2) {
            yr[0] = xr[0] + xr[1], yi[0] = xi[0] + xi[1];
            yr[1] = xr[0] + xi[1], yi[1] = xi[0] - xr[1];
            yr[2] = xr[0] - xr[1], yi[2] = xi[0] - xi[1];
            yr[3] = xr[0] - xi[1], yi[3] = xi[0] + xr[1];
        } else {
            fft4(xr, xi, yr, yi);
        }
        store(tr + j * L, yr[0]);
        store(ti + j * L, yi[0]);
        UNROLL(3)
        for (int q = 1; q < 4; q++) {
            const float c = turn_re[j * q * stride], s = turn_im[j * q * stride];
            store(tr + (q * m + j) * L, yr[q] * c - yi[q] * s);
            store(ti + (q * m + j) * L, yr[q] * s + yi[q] * c);
        }
    }
    for (int q = 0; q < 4; q++) {
        V xr[16], xi[16], yr[16], yi[16];
        UNROLL(16)
        for (int j = 0; j < m; j++) {
            if (live > 1) {
                xr[j] = load(tr + (q * m + j) * L), xi[j] = load(ti + (q * m + j) * L);
                continue;
            }
            const V ar = load(re + j * from), ai = load(im + j * from);
            const float c = turn_re[j * q * stride], s = turn_im[j * q * stride];
            xr[j] = ar * c - ai * s;
            xi[j] = ar * s + ai * c;
        }
        fft_part(m, xr, xi, yr, yi);
        UNROLL(16)
        for (int j = 0; j < m; j++) {
            put(to_re + (q + 4 * j) * to, yr[j], far);
            put(to_im + (q + 4 * j) * to, yi[j] * sign, far);
        }
    }
}

/* The first `count` of `size` results, a quarter at most: size 4 of the parts that each fourth number makes. */
FUSED void fft_first(const int size, int count, const float *re, const float *im, int64_t from, float *to_re, float *to_im)
{
    const int m = size / 4, stride = FFT_MOST / size;
    for (int q = 0; q < 4; q++) {
        V xr[16], xi[16], yr[16], yi[16];
        UNROLL(16)
        for (int j = 0; j < m; j++) {
            xr[j] = load(re + (4 * j + q) * from), xi[j] = load(im + (4 * j + q) * from);
        }
        fft_part(m, xr, xi, yr, yi);
        for (int n = 0; n < count; n++) {
            const float c = turn_re[n * q * stride], s = turn_im[n * q * stride];
            const V ar = q ? load(to_re + n * L) : (V){ 0 }, ai = q ? load(to_im + n * L) : (V){ 0 };
            store(to_re + n * L, ar + (yr[n] * c - yi[n] * s));
            store(to_im + n * L, ai + (yr[n] * s + yi[n] * c));
        }
    }
}

typedef void fft_any(const float *re, const float *im, int64_t from, float *to_re, float *to_im, int64_t to, float sign, bool far);
#define FFT(size, live)                                                                                                  \
    static TARGET void fft##size##_##live(const float *re, const float *im, int64_t from, float *to_re, float *to_im,    \
                                          int64_t to, float sign, bool far)                                              \
    {                                                                                                                    \
        fft(size, live, re, im, from, to_re, to_im, to, sign, far);                                                      \
    }
FFT(8, 1)
FFT(8, 2)
FFT(8, 4)
FFT(16, 1)
FFT(16, 2)
FFT(16, 4)
FFT(32, 1)
FFT(32, 2)
FFT(32, 4)
FFT(64, 1)
FFT(64, 2)
FFT(64, 4)
#undef FFT

/* The least of them for `count` numbers, and how many it reads. */
FUSED fft_any *fitting(const int size, int count, int *reads)
{
    const int live = count <= size / 4 ? 1 : count <= size / 2 ? 2 : 4;
    *reads = live * size / 4;
    return live == 1   ? (size == 8 ? fft8_1 : size == 16 ? fft16_1 : size == 32 ? fft32_1 : fft64_1)
           : live == 2 ? (size == 8 ? fft8_2 : size == 16 ? fft16_2 : size == 32 ? fft32_2 : fft64_2)
                       : (size == 8 ? fft8_4 : size == 16 ? fft16_4 : size == 32 ? fft32_4 : fft64_4);
}

/* ---- rows of windows ---- */

/* to[j][i] = from[i][j], (L, size) */
FUSED void turn(float *to, int64_t to_row, const float *from, int64_t from_row, int rows, int columns)
{
    for (int i = 0; i < rows; i += TURN_SIZE) {
        for (int j = 0; j < columns; j += TURN_SIZE) {
            TURN(to + j * to_row + i, to_row, from + i * from_row + j, from_row);
        }
    }
}

FUSED void read_row(const int size, const struct mc_fft_window *w, int row, int columns, float *to)
{
    _Alignas(64) float at[L * FFT_MOST];
    for (int l = 0; l < L; l++) {
        const struct mc_fft_lane *x = &w->lane[l];
        float *line = at + l * size;
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
    turn(to, L, at, size, L, (columns + TURN_SIZE - 1) / TURN_SIZE * TURN_SIZE);
}

FUSED void write_row(const int size, const struct mc_fft_window *w, int row, const float *from, float alpha, float beta)
{
    _Alignas(64) float at[L * FFT_MOST];
    turn(at, size, from, L, size, L);
    for (int l = 0; l < L; l++) {
        const struct mc_fft_lane *x = &w->lane[l];
        const float *line = at + l * size;
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

/* The rows that some lane has, and how many columns. */
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

/* ---- tiles.  Of column c of the half, (re, im) of its rows lie at tile[c]; column 0 is that of the first and the
 * middle frequency, both real before columns are transformed: as one complex column ---- */

/* Rows [lo, hi) of a window, of which `columns` numbers count: row r, column c at to + r * row + c * column. */
FUSED void rows_of_window(const int size, const struct mc_fft_window *w, int lo, int hi, int columns, float *to, int64_t column,
                          int64_t row, int64_t im)
{
    const int half = size / 2;
    _Alignas(64) float a[FFT_MOST * L], b[FFT_MOST * L], zr[FFT_MOST * L], zi[FFT_MOST * L];
    fft_any *const across = fitting(size, columns, &columns);
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
            const V pr = load(zr + k * L), pi = load(zi + k * L), qr = load(zr + (size - k) * L), qi = load(zi + (size - k) * L);
            store(ta + k * column, pr + qr);
            store(ta + k * column + im, pi - qi);
            if (two) {
                store(tb + k * column, pi + qi);
                store(tb + k * column + im, qr - pr);
            }
        }
    }
}

/* Column 0, transformed as one, into the first and the middle frequency's. */
FUSED void part(const int size, const float *zr, const float *zi, float sign, bool far, float *first, int64_t step, int64_t im)
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

FUSED void join(const int size, const float *first, int64_t step, int64_t im, float *zr, float *zi)
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
    return size == 8 ? fft8_4 : size == 16 ? fft16_4 : size == 32 ? fft32_4 : fft64_4;
}

/* The inverse of rows_of_window(). */
FUSED void rows_back(const int size, const float *from, int64_t column, int64_t row, int64_t im, float alpha, float beta,
                     const struct mc_fft_window *w)
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

FUSED void forward(const int size, const struct mc_fft_window *w, bool conjugate, bool far, float *tile, float *out,
                   int64_t step, int64_t im)
{
    const int half = size / 2, column = (2 * size + 1) * L; /* odd: not to fall into the same lines of a cache */
    const float sign = conjugate ? -1 : 1;
    _Alignas(64) float zr[FFT_MOST * L], zi[FFT_MOST * L];
    int lo, hi, columns, rows;
    span(w, &lo, &hi, &columns);
    fft_any *const down = fitting(size, (hi - 1) * w->dr + 1, &rows);
    for (int c = 0; c < half && hi - lo < rows; c++) {
        memset(tile + c * column, 0, (size_t)(rows * L) * sizeof *tile);
        memset(tile + c * column + size * L, 0, (size_t)(rows * L) * sizeof *tile);
    }
    rows_of_window(size, w, lo, hi, columns, tile, column, w->dr * L, size * L);
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

FUSED void inverse(const int size, const float *in, int64_t step, int64_t im, float alpha, float beta, float *tile,
                   const struct mc_fft_window *w)
{
    const int half = size / 2, column = (2 * size + 1) * L; /* odd: not to fall into the same lines of a cache */
    _Alignas(64) float zr[FFT_MOST * L], zi[FFT_MOST * L];
    for (int c = 1; c < half; c++) {
        const float *from = in + (c - 1) * size * step;
        whole(size)(from + im, from, step, tile + c * column + size * L, tile + c * column, L, 1, false);
    }
    join(size, in + (half - 1) * size * step, step, im, zr, zi);
    whole(size)(zi, zr, L, tile + size * L, tile, L, 1, false);
    rows_back(size, tile, column, w->dr * L, size * L, alpha, beta, w);
}

/* ---- filters whose rows lie in memory: tap rows of a column at from + r * row ---- */

FUSED void filter_rows(const int size, const struct mc_fft_window *w, float *to, int64_t column, int64_t row, int64_t im)
{
    int lo, hi, columns;
    span(w, &lo, &hi, &columns);
    rows_of_window(size, w, lo, hi, columns, to, column, row, im);
}

FUSED void filter_column(const int size, const float *from, int64_t row, int64_t from_im, const struct mc_fft_taps *t, float *to,
                         int64_t step, int64_t im)
{
    _Alignas(64) float xr[FFT_MOST * L], xi[FFT_MOST * L], zr[FFT_MOST * L], zi[FFT_MOST * L];
    int rows;
    fft_any *const down = fitting(size, (t->taps - 1) * t->apart + 1, &rows);
    for (int r = t->apart > 1 ? 0 : t->taps; r < rows; r++) {
        store(xr + r * L, (V){ 0 });
        store(xi + r * L, (V){ 0 });
    }
    for (int r = 0; r < t->taps; r++) {
        store(xr + r * t->apart * L, load(from + r * row));
        store(xi + r * t->apart * L, load(from + r * row + from_im));
    }
    if (!t->first) {
        down(xr, xi, L, to, to + im, step, -1, false);
        return;
    }
    down(xr, xi, L, zr, zi, L, 1, false);
    part(size, zr, zi, -1, false, to, step, im);
}

FUSED void filter_column_back(const int size, const float *from, int64_t step, int64_t im, const struct mc_fft_taps *t, bool add,
                              float *to, int64_t row, int64_t to_im)
{
    _Alignas(64) float xr[FFT_MOST * L], xi[FFT_MOST * L], zr[FFT_MOST * L], zi[FFT_MOST * L];
    const int rows = (t->taps - 1) * t->apart + 1;
    if (t->first) {
        join(size, from, step, im, xr, xi);
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
        const V yr = load(zr + r * t->apart * L), yi = load(zi + r * t->apart * L);
        float *const at = to + r * row;
        store(at, add ? load(at) + yr : yr);
        store(at + to_im, add ? load(at + to_im) + yi : yi);
    }
}

#define SIZES(size)                                                                                                      \
    static TARGET void forward##size(const struct mc_fft_window *w, bool conjugate, bool far, float *tile, float *out,   \
                                     int64_t step, int64_t im)                                                           \
    {                                                                                                                    \
        forward(size, w, conjugate, far, tile, out, step, im);                                                           \
    }                                                                                                                    \
    static TARGET void inverse##size(const float *in, int64_t step, int64_t im, float alpha, float beta, float *tile,    \
                                     const struct mc_fft_window *w)                                                      \
    {                                                                                                                    \
        inverse(size, in, step, im, alpha, beta, tile, w);                                                               \
    }                                                                                                                    \
    static TARGET void filter_rows##size(const struct mc_fft_window *w, float *to, int64_t column, int64_t row, int64_t im) \
    {                                                                                                                    \
        filter_rows(size, w, to, column, row, im);                                                                       \
    }                                                                                                                    \
    static TARGET void filter_rows_back##size(const float *from, int64_t column, int64_t row, int64_t im, float alpha,   \
                                              float beta, const struct mc_fft_window *w)                                 \
    {                                                                                                                    \
        rows_back(size, from, column, row, im, alpha, beta, w);                                                          \
    }                                                                                                                    \
    static TARGET void filter_column##size(const float *from, int64_t row, int64_t from_im, const struct mc_fft_taps *t, \
                                           float *to, int64_t step, int64_t im)                                          \
    {                                                                                                                    \
        filter_column(size, from, row, from_im, t, to, step, im);                                                        \
    }                                                                                                                    \
    static TARGET void filter_column_back##size(const float *from, int64_t step, int64_t im, const struct mc_fft_taps *t, \
                                                bool add, float *to, int64_t row, int64_t to_im)                         \
    {                                                                                                                    \
        filter_column_back(size, from, step, im, t, add, to, row, to_im);                                                \
    }
SIZES(8)
SIZES(16)
SIZES(32)
SIZES(64)

#include "conv/fft_products.h"
#include "conv/winograd_body.h"

static const struct mc_fft_kernel kernel = {
    .lanes = L, .math = MATH, .turn = TURN_CYCLES,
    .forward = { forward8, forward16, forward32, forward64 },
    .inverse = { inverse8, inverse16, inverse32, inverse64 },
    .filter_rows = { filter_rows8, filter_rows16, filter_rows32, filter_rows64 },
    .filter_rows_back = { filter_rows_back8, filter_rows_back16, filter_rows_back32, filter_rows_back64 },
    .filter_column = { filter_column8, filter_column16, filter_column32, filter_column64 },
    .filter_column_back = { filter_column_back8, filter_column_back16, filter_column_back32, filter_column_back64 },
    .product = product,
    .real_product = real_product, .winograd_turn = WINOGRAD_CYCLES,
    .winograd_forward = { winograd_forward4, winograd_forward6 }, .winograd_inverse = { winograd_inverse4, winograd_inverse6 },
};
