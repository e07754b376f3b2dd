/* winograd_body.h: the transforms of Winograd's F(2x2, 3x3) and F(4x4, 3x3), a part of fft/body.h.
 *
 * Along one axis y = A' (G w * B' x) for 4 or 6 elements of x, 3 of w, 2 or 4 of y. The gradient with respect
 * to w is G' (A y * B' x). These are products of polynomials, given by their values at 0, 1, -1 and infinity,
 * or at 0, p, -p, q, -q and infinity.
 *
 * Invariant: no arithmetic mixes lanes. */

/* 5/8 and 3/2 lose the fewest digits among pairs of short fractions: half of what 1 and 2 lose. */
#define WINOGRAD_P  0.625f
#define WINOGRAD_Q  1.5f
#define WINOGRAD_PP (WINOGRAD_P * WINOGRAD_P)
#define WINOGRAD_QQ (WINOGRAD_Q * WINOGRAD_Q)
/* one over the product of a point's distances to the other points */
#define WINOGRAD_0  (1 / (WINOGRAD_PP * WINOGRAD_QQ))
#define WINOGRAD_1  (0.5f / (WINOGRAD_PP * (WINOGRAD_PP - WINOGRAD_QQ)))
#define WINOGRAD_2  (0.5f / (WINOGRAD_QQ * (WINOGRAD_QQ - WINOGRAD_PP)))

FUSED void winograd_of_4(int role, const V *x, V *to)
{
    if (role == WINOGRAD_WHOLE) {           /* B' */
        to[0] = x[0] - x[2], to[1] = x[1] + x[2], to[2] = x[2] - x[1], to[3] = x[1] - x[3];
    } else if (role == WINOGRAD_FILTER) {   /* G */
        const V sum = (x[0] + x[2]) * 0.5f, half = x[1] * 0.5f;
        to[0] = x[0], to[1] = sum + half, to[2] = sum - half, to[3] = x[2];
    } else {                                /* A */
        to[0] = x[0], to[1] = x[0] + x[1], to[2] = x[0] - x[1], to[3] = -x[1];
    }
}

FUSED void winograd_back_4(int role, const V *x, V *to)
{
    if (role == WINOGRAD_FILTER) {          /* G' */
        const V sum = (x[1] + x[2]) * 0.5f;
        to[0] = x[0] + sum, to[1] = (x[1] - x[2]) * 0.5f, to[2] = sum + x[3];
    } else {                                /* A' */
        to[0] = x[0] + x[1] + x[2], to[1] = x[1] - x[2] - x[3];
    }
}

/* The values at p and -p, from the even and the odd part at p. */
FUSED void winograd_pair(V even, V odd, V *to)
{
    to[0] = even + odd;
    to[1] = even - odd;
}

FUSED void winograd_of_6(int role, const V *x, V *to)
{
    if (role == WINOGRAD_WHOLE) {           /* B' */
        to[0] = x[4] - x[2] * (WINOGRAD_PP + WINOGRAD_QQ) + x[0] * (WINOGRAD_PP * WINOGRAD_QQ);
        winograd_pair(x[4] - x[2] * WINOGRAD_QQ, (x[3] - x[1] * WINOGRAD_QQ) * WINOGRAD_P, to + 1);
        winograd_pair(x[4] - x[2] * WINOGRAD_PP, (x[3] - x[1] * WINOGRAD_PP) * WINOGRAD_Q, to + 3);
        to[5] = x[5] - x[3] * (WINOGRAD_PP + WINOGRAD_QQ) + x[1] * (WINOGRAD_PP * WINOGRAD_QQ);
    } else if (role == WINOGRAD_FILTER) {   /* G */
        to[0] = x[0] * WINOGRAD_0;
        winograd_pair((x[0] + x[2] * WINOGRAD_PP) * WINOGRAD_1, x[1] * (WINOGRAD_1 * WINOGRAD_P), to + 1);
        winograd_pair((x[0] + x[2] * WINOGRAD_QQ) * WINOGRAD_2, x[1] * (WINOGRAD_2 * WINOGRAD_Q), to + 3);
        to[5] = x[2];
    } else {                                /* A */
        to[0] = x[0];
        winograd_pair(x[0] + x[2] * WINOGRAD_PP, (x[1] + x[3] * WINOGRAD_PP) * WINOGRAD_P, to + 1);
        winograd_pair(x[0] + x[2] * WINOGRAD_QQ, (x[1] + x[3] * WINOGRAD_QQ) * WINOGRAD_Q, to + 3);
        to[5] = x[3];
    }
}

FUSED void winograd_back_6(int role, const V *x, V *to)
{
    const V sp = x[1] + x[2], dp = (x[1] - x[2]) * WINOGRAD_P, sq = x[3] + x[4],
            dq = (x[3] - x[4]) * WINOGRAD_Q;
    if (role == WINOGRAD_FILTER) {          /* G' */
        to[0] = x[0] * WINOGRAD_0 + sp * WINOGRAD_1 + sq * WINOGRAD_2;
        to[1] = dp * WINOGRAD_1 + dq * WINOGRAD_2;
        to[2] = sp * (WINOGRAD_1 * WINOGRAD_PP) + sq * (WINOGRAD_2 * WINOGRAD_QQ) + x[5];
    } else {                                /* A' */
        to[0] = x[0] + sp + sq;
        to[1] = dp + dq;
        to[2] = sp * WINOGRAD_PP + sq * WINOGRAD_QQ;
        to[3] = dp * WINOGRAD_PP + dq * WINOGRAD_QQ + x[5];
    }
}

FUSED void winograd_of(const int size, int role, const V *x, V *to)
{
    size == 4 ? winograd_of_4(role, x, to) : winograd_of_6(role, x, to);
}

FUSED void winograd_back(const int size, int role, const V *x, V *to)
{
    size == 4 ? winograd_back_4(role, x, to) : winograd_back_6(role, x, to);
}

FUSED void winograd_forward(const int size, const struct mc_fft_window *w, int role, float *out, int64_t step)
{
    const int rows = role == WINOGRAD_FILTER ? 3 : role == WINOGRAD_NARROW ? size - 2 : size;
    V tile[6][6], column[6] = { 0 }, turned[6];
    _Alignas(64) float row[FFT_MOST * L];
    for (int r = 0; r < rows; r++) {
        read_row(8, w, r, size, row);
        UNROLL(6)
        for (int c = 0; c < size; c++) {
            column[c] = load(row + c * L);
        }
        winograd_of(size, role, column, tile[r]);
    }
    for (int c = 0; c < size; c++) {
        for (int r = 0; r < rows; r++) {
            column[r] = tile[r][c];
        }
        winograd_of(size, role, column, turned);
        UNROLL(6)
        for (int r = 0; r < size; r++) {
            store(out + (size * r + c) * step, turned[r]);
        }
    }
}

FUSED void winograd_inverse(const int size, const float *in, int64_t step, int role, float alpha, float beta,
                            const struct mc_fft_window *w)
{
    const int rows = role == WINOGRAD_FILTER ? 3 : size - 2;
    V tile[6][6], column[6], turned[6] = { 0 };
    _Alignas(64) float row[FFT_MOST * L];
    memset(row, 0, 8 * L * sizeof *row);
    for (int c = 0; c < size; c++) {
        UNROLL(6)
        for (int r = 0; r < size; r++) {
            column[r] = load(in + (size * r + c) * step);
        }
        winograd_back(size, role, column, turned);
        for (int r = 0; r < rows; r++) {
            tile[r][c] = turned[r];
        }
    }
    for (int r = 0; r < rows; r++) {
        winograd_back(size, role, tile[r], turned);
        for (int c = 0; c < rows; c++) {
            store(row + c * L, turned[c]);
        }
        write_row(8, w, r, row, alpha, beta);
    }
}

#define WINOGRAD(size)                                                                                       \
    static TARGET void winograd_forward##size(const struct mc_fft_window *w, int role, float *out,           \
                                              int64_t step)                                                  \
    {                                                                                                        \
        winograd_forward(size, w, role, out, step);                                                          \
    }                                                                                                        \
    static TARGET void winograd_inverse##size(const float *in, int64_t step, int role, float alpha,          \
                                              float beta, const struct mc_fft_window *w)                     \
    {                                                                                                        \
        winograd_inverse(size, in, step, role, alpha, beta, w);                                              \
    }
WINOGRAD(4)
WINOGRAD(6)
