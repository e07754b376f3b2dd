/* winograd_body.h: the transforms of Winograd's F(2x2, 3x3), as part of fft_body.h.
 *
 * Along one axis y = A' (G w * B' x) for x of 4 places, w of 3, y of 2; the gradient wrt w is G' (A y * B' x).
 *
 * Invariant: no arithmetic mixes lanes. */

FUSED void winograd(int role, const V *x, V *to)
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

FUSED void winograd_back(int role, const V *x, V *to)
{
    if (role == WINOGRAD_FILTER) {          /* G' */
        const V sum = (x[1] + x[2]) * 0.5f;
        to[0] = x[0] + sum, to[1] = (x[1] - x[2]) * 0.5f, to[2] = sum + x[3];
    } else {                                /* A' */
        to[0] = x[0] + x[1] + x[2], to[1] = x[1] - x[2] - x[3], to[2] = (V){ 0 };
    }
    to[3] = (V){ 0 };
}

static TARGET void winograd_forward(const struct mc_fft_window *w, int role, float *out, int64_t step)
{
    V tile[4][4], column[4], turned[4];
    _Alignas(64) float row[FFT_MOST * L];
    for (int r = 0; r < 4; r++) {
        read_row(8, w, r, 4, row);
        for (int c = 0; c < 4; c++) {
            column[c] = load(row + c * L);
        }
        winograd(role, column, tile[r]);
    }
    for (int c = 0; c < 4; c++) {
        for (int r = 0; r < 4; r++) {
            column[r] = tile[r][c];
        }
        winograd(role, column, turned);
        for (int r = 0; r < 4; r++) {
            store(out + (4 * r + c) * step, turned[r]);
        }
    }
}

static TARGET void winograd_inverse(const float *in, int64_t step, int role, float alpha, float beta, const struct mc_fft_window *w)
{
    V tile[4][4], column[4], turned[4];
    _Alignas(64) float row[FFT_MOST * L];
    memset(row, 0, sizeof row);
    for (int c = 0; c < 4; c++) {
        for (int r = 0; r < 4; r++) {
            column[r] = load(in + (4 * r + c) * step);
        }
        winograd_back(role, column, turned);
        for (int r = 0; r < 4; r++) {
            tile[r][c] = turned[r];
        }
    }
    for (int r = 0; r < 3; r++) {
        winograd_back(role, tile[r], turned);
        for (int c = 0; c < 4; c++) {
            store(row + c * L, turned[c]);
        }
        write_row(8, w, r, row, alpha, beta);
    }
}
