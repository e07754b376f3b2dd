/* lines.h: transforms of 3, 4, 8 and 16 complex numbers in registers, and of 8, 12, 16, 32 and 64 in memory,
 * a part of body.h. Elements are `from` floats apart, and results `to`.
 *
 * Invariant: elements known to be zero are not read: those beyond the first `live` quarters, or beyond the
 * first nine. */

/* exp(-2 pi i k / 64) */
static const float turn_re[] = {
    1, 0.995184727f, 0.98078528f, 0.956940336f, 0.923879533f, 0.881921264f, 0.831469612f, 0.773010453f,
    0.707106781f, 0.634393284f, 0.555570233f, 0.471396737f, 0.382683432f, 0.290284677f, 0.195090322f,
    0.09801714f, 0, -0.09801714f, -0.195090322f, -0.290284677f, -0.382683432f, -0.471396737f, -0.555570233f,
    -0.634393284f, -0.707106781f, -0.773010453f, -0.831469612f, -0.881921264f, -0.923879533f, -0.956940336f,
    -0.98078528f, -0.995184727f, -1, -0.995184727f, -0.98078528f, -0.956940336f, -0.923879533f, -0.881921264f,
    -0.831469612f, -0.773010453f, -0.707106781f, -0.634393284f, -0.555570233f, -0.471396737f, -0.382683432f,
    -0.290284677f, -0.195090322f, -0.09801714f, 0, 0.09801714f, 0.195090322f, 0.290284677f, 0.382683432f,
    0.471396737f, 0.555570233f, 0.634393284f, 0.707106781f,
};
static const float turn_im[] = {
    0, -0.09801714f, -0.195090322f, -0.290284677f, -0.382683432f, -0.471396737f, -0.555570233f, -0.634393284f,
    -0.707106781f, -0.773010453f, -0.831469612f, -0.881921264f, -0.923879533f, -0.956940336f, -0.98078528f,
    -0.995184727f, -1, -0.995184727f, -0.98078528f, -0.956940336f, -0.923879533f, -0.881921264f,
    -0.831469612f, -0.773010453f, -0.707106781f, -0.634393284f, -0.555570233f, -0.471396737f, -0.382683432f,
    -0.290284677f, -0.195090322f, -0.09801714f, 0, 0.09801714f, 0.195090322f, 0.290284677f, 0.382683432f,
    0.471396737f, 0.555570233f, 0.634393284f, 0.707106781f, 0.773010453f, 0.831469612f, 0.881921264f,
    0.923879533f, 0.956940336f, 0.98078528f, 0.995184727f, 1, 0.995184727f, 0.98078528f, 0.956940336f,
    0.923879533f, 0.881921264f, 0.831469612f, 0.773010453f, 0.707106781f,
};

/* exp(-2 pi i k / 12) */
static const float twelfth_re[] = { 1, 0.866025404f, 0.5f, 0, -0.5f, -0.866025404f, -1 };
static const float twelfth_im[] = { 0, -0.5f, -0.866025404f, -1, -0.866025404f, -0.5f, 0 };

/* exp(-2 pi i k / size) */
FUSED float root_re(const int size, int k)
{
    return size == 12 ? twelfth_re[k] : turn_re[k * (FFT_MOST / size)];
}

FUSED float root_im(const int size, int k)
{
    return size == 12 ? twelfth_im[k] : turn_im[k * (FFT_MOST / size)];
}

FUSED void fft3(const V *xr, const V *xi, V *yr, V *yi)
{
    const V sr = xr[1] + xr[2], si = xi[1] + xi[2];
    const V dr = (xr[1] - xr[2]) * 0.866025404f, di = (xi[1] - xi[2]) * 0.866025404f;
    const V ar = xr[0] - sr * 0.5f, ai = xi[0] - si * 0.5f;
    yr[0] = xr[0] + sr, yi[0] = xi[0] + si;
    yr[1] = ar + di, yi[1] = ai - dr;
    yr[2] = ar - di, yi[2] = ai + dr;
}

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
    const V pr = (dr[1] + di[1]) * h, pi = (di[1] - dr[1]) * h, qr = (di[3] - dr[3]) * h,
            qi = (dr[3] + di[3]) * -h;
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
        const V ar[4] = { xr[j], xr[j + 4], xr[j + 8], xr[j + 12] },
                ai[4] = { xi[j], xi[j + 4], xi[j + 8], xi[j + 12] };
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
    } else if (m == 3) {
        fft3(xr, xi, yr, yi);
    } else {
        yr[0] = xr[0] + xr[1], yi[0] = xi[0] + xi[1];
        yr[1] = xr[0] - xr[1], yi[1] = xi[0] - xi[1];
    }
}

/* Element j of each quarter: a step of size 4, then the roots of unity. */
FUSED void fft_step(const int size, const int live, const int j, const float *re, const float *im,
                    int64_t from, float *tr, float *ti)
{
    const int m = size / 4;
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
        const float c = root_re(size, j * q), s = root_im(size, j * q);
        store(tr + (q * m + j) * L, yr[q] * c - yi[q] * s);
        store(ti + (q * m + j) * L, yr[q] * s + yi[q] * c);
    }
}

/* Transform q of size m; tr, ti: of fft_step(), which is not needed where one quarter is live. */
FUSED void fft_rest(const int size, const int live, const int q, const float *re, const float *im,
                    int64_t from, const float *tr, const float *ti, float *to_re, float *to_im, int64_t to,
                    float sign, bool far)
{
    const int m = size / 4;
    V xr[16], xi[16], yr[16], yi[16];
    UNROLL(16)
    for (int j = 0; j < m; j++) {
        if (live > 1) {
            xr[j] = load(tr + (q * m + j) * L), xi[j] = load(ti + (q * m + j) * L);
            continue;
        }
        const V ar = load(re + j * from), ai = load(im + j * from);
        const float c = root_re(size, j * q), s = root_im(size, j * q);
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

/* Unrolled, small transforms stay in registers and their roots are constants; of a large one the code is too
 * long. */
#ifdef MC_RUNTIME
enum { UNROLLED = 0 };
#else
enum { UNROLLED = 32 };
#endif

/* Transforms size = 4 m: a step of size 4, then four transforms of size m. The first live * m elements of the
 * input may be nonzero. Imaginary results are multiplied by `sign`. */
FUSED void fft(const int size, const int live, const float *re, const float *im, int64_t from, float *to_re,
               float *to_im, int64_t to, float sign, bool far)
{
    const int m = size / 4;
    _Alignas(64) float tr[FFT_MOST * L], ti[FFT_MOST * L];
    if (size > UNROLLED) {
        for (int j = 0; j < m && live > 1; j++) {
            fft_step(size, live, j, re, im, from, tr, ti);
        }
        for (int q = 0; q < 4; q++) {
            fft_rest(size, live, q, re, im, from, tr, ti, to_re, to_im, to, sign, far);
        }
        return;
    }
    UNROLL(4)
    for (int j = 0; j < m && live > 1; j++) {
        fft_step(size, live, j, re, im, from, tr, ti);
    }
    UNROLL(4)
    for (int q = 0; q < 4; q++) {
        fft_rest(size, live, q, re, im, from, tr, ti, to_re, to_im, to, sign, far);
    }
}

enum { NINE = 9 };
/* Transforms size 64 of which the first nine elements may be nonzero: eight transforms of size 8; the ninth
 * element is added to the first. */
FUSED void fft_nine(const float *re, const float *im, int64_t from, float *to_re, float *to_im, int64_t to,
                    float sign, bool far)
{
    for (int q = 0; q < 8; q++) {
        V xr[8], xi[8], yr[8], yi[8];
        UNROLL(8)
        for (int j = 0; j < 8; j++) {
            const V ar = load(re + j * from), ai = load(im + j * from);
            const float c = turn_re[j * q], s = turn_im[j * q];
            xr[j] = j ? ar * c - ai * s : ar;
            xi[j] = j ? ar * s + ai * c : ai;
        }
        const V ar = load(re + 8 * from), ai = load(im + 8 * from);
        const float c = turn_re[8 * q], s = turn_im[8 * q];
        xr[0] += ar * c - ai * s;
        xi[0] += ar * s + ai * c;
        fft8(xr, xi, yr, yi);
        UNROLL(8)
        for (int j = 0; j < 8; j++) {
            put(to_re + (q + 8 * j) * to, yr[j], far);
            put(to_im + (q + 8 * j) * to, yi[j] * sign, far);
        }
    }
}

/* Computes the first `count` of `size` results, at most a quarter: sums four transforms of every fourth
 * element. */
FUSED void fft_first(const int size, int count, const float *re, const float *im, int64_t from, float *to_re,
                     float *to_im)
{
    const int m = size / 4;
    for (int q = 0; q < 4; q++) {
        V xr[16], xi[16], yr[16], yi[16];
        UNROLL(16)
        for (int j = 0; j < m; j++) {
            xr[j] = load(re + (4 * j + q) * from), xi[j] = load(im + (4 * j + q) * from);
        }
        fft_part(m, xr, xi, yr, yi);
        for (int n = 0; n < count; n++) {
            const float c = root_re(size, n * q), s = root_im(size, n * q);
            const V ar = q ? load(to_re + n * L) : (V){ 0 }, ai = q ? load(to_im + n * L) : (V){ 0 };
            store(to_re + n * L, ar + (yr[n] * c - yi[n] * s));
            store(to_im + n * L, ai + (yr[n] * s + yi[n] * c));
        }
    }
}

typedef void fft_any(const float *re, const float *im, int64_t from, float *to_re, float *to_im, int64_t to,
                     float sign, bool far);
#define FFT(size, live)                                                                                      \
    static TARGET void fft##size##_##live(const float *re, const float *im, int64_t from, float *to_re,      \
                                          float *to_im, int64_t to, float sign, bool far)                    \
    {                                                                                                        \
        fft(size, live, re, im, from, to_re, to_im, to, sign, far);                                          \
    }
FFT(8, 1)
FFT(8, 2)
FFT(8, 4)
FFT(12, 1)
FFT(12, 2)
FFT(12, 4)
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

static TARGET void fft64_nine(const float *re, const float *im, int64_t from, float *to_re, float *to_im,
                              int64_t to, float sign, bool far)
{
    fft_nine(re, im, from, to_re, to_im, to, sign, far);
}

/* The cheapest transform for `count` elements; *reads is how many it reads. */
FUSED fft_any *fitting(const int size, int count, int *reads)
{
    const int live = count <= size / 4 ? 1 : count <= size / 2 ? 2 : 4;
    *reads = live * size / 4;
    if (size == 64 && count <= NINE) {
        *reads = NINE;
        return fft64_nine;
    }
    if (size == 12) {
        return live == 1 ? fft12_1 : live == 2 ? fft12_2 : fft12_4;
    }
    return live == 1   ? (size == 8 ? fft8_1 : size == 16 ? fft16_1 : size == 32 ? fft32_1 : fft64_1)
           : live == 2 ? (size == 8 ? fft8_2 : size == 16 ? fft16_2 : size == 32 ? fft32_2 : fft64_2)
                       : (size == 8 ? fft8_4 : size == 16 ? fft16_4 : size == 32 ? fft32_4 : fft64_4);
}
