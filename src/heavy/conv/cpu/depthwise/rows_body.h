/* rows_body.h: depthwise convolutions of one plane, read in place, compiled for each instruction set by rows.c,
 * which defines
 *
 *   V, VI, L, TARGET, NAME(x)   vectors of floats and of ints, their lanes; attribute and name of functions
 *   MASK MASK_OF(lo, hi)        lanes lo to hi - 1, for any lo and hi
 *   LOADM STOREM                those lanes; the others are zero, or are not touched
 *   LOAD STORE ZERO SET1 FMA LOADI
 *   PICK(a, i, b)               lane k is lane i[k] of a and b together
 *
 * Invariant: a sum is added in the order of the rows of the filter or in their reverse order, which depends on
 * sizes alone; no lane beyond a row is loaded. */

/* Stride 1: columns of up to L positions. Each row that is loaded goes into all K rows of sums that it reaches. */
FUSED void NAME(roll)(const struct rows *d, const float *x, float *y, const float *w, const int K)
{
    const int64_t *in = d->in, *out = d->out, *pad = d->pad;
    V tap[MOST_TAPS];
    UNROLL(25)
    for (int t = 0; t < K * K; t++) {
        tap[t] = SET1(w[t]);
    }
    for (int64_t c = 0; c < out[1]; c += L) {
        const int64_t at = out[1] < L ? 0 : MC_MIN(c, out[1] - L), n = MC_MIN(out[1], (int64_t)L);
        const MASK keep = MASK_OF(0, n);
        MASK read[MOST_SIDE];
        V acc[MOST_SIDE];
        UNROLL(5)
        for (int t = 0; t < K; t++) {
            const int64_t column = at + t - pad[1];
            read[t] = MASK_OF(-column, MC_MIN(in[1] - column, n));
            acc[t] = ZERO();
        }
        for (int64_t i = 0; i < in[0] + pad[0]; i++) {
            const int64_t row = i + pad[0] - (K - 1);
            if (i < in[0]) {
                UNROLL(5)
                for (int t = 0; t < K; t++) {
                    const V v = LOADM(x + i * in[1] + at + t - pad[1], read[t]);
                    UNROLL(5)
                    for (int r = 0; r < K; r++) {
                        acc[r] = FMA(tap[(K - 1 - r) * K + t], v, acc[r]);
                    }
                }
            }
            if (row >= 0 && row < out[0]) {
                if (n == L) {
                    STORE(y + row * out[1] + at, acc[0]);
                } else {
                    STOREM(y + row * out[1] + at, keep, acc[0]);
                }
            }
            UNROLL(5)
            for (int r = 0; r + 1 < K; r++) {
                acc[r] = acc[r + 1];
            }
            acc[K - 1] = ZERO();
        }
    }
}

/* Windows of 2 L elements of a row, or of L elements of two rows, from which the elements of each tap are
 * picked. */
FUSED void NAME(pick)(const struct rows *d, const float *x, float *y, const float *w, const int K)
{
    const int64_t *in = d->in, *out = d->out, *pad = d->pad, n = d->n, step = d->step;
    const bool two = d->two;
    V tap[MOST_TAPS];
    VI from[MOST_SIDE];
    UNROLL(25)
    for (int t = 0; t < K * K; t++) {
        tap[t] = SET1(w[t]);
    }
    UNROLL(5)
    for (int t = 0; t < K; t++) {
        from[t] = LOADI(d->from[t]);
    }
    for (int64_t c = 0; c < out[1]; c += n) {
        const int64_t at = MC_MIN(c, out[1] - n), column = at * step - pad[1];
        const MASK first = MASK_OF(-column, in[1] - column), none = MASK_OF(0, 0),
                   next = two ? first : MASK_OF(-column - L, in[1] - column - L),
                   one = MASK_OF(0, n), both = MASK_OF(0, 2 * n);
        for (int64_t r = 0; r < out[0]; r += two ? 2 : 1) {
            V acc = ZERO();
            UNROLL(5)
            for (int k = 0; k < K; k++) {
                const int64_t row = r * step + k - pad[0], below = two ? row + step : row;
                const float *a = x + row * in[1] + column, *b = two ? a + step * in[1] : a + L;
                const bool has = row >= 0 && row < in[0], has_below = below >= 0 && below < in[0];
                if (!has && !has_below) {
                    continue;
                }
                const V va = LOADM(a, has ? first : none), vb = LOADM(b, has_below ? next : none);
                UNROLL(5)
                for (int t = 0; t < K; t++) {
                    acc = FMA(tap[k * K + t], PICK(va, from[t], vb), acc);
                }
            }
            STOREM(y + r * out[1] + at, two && r + 1 < out[0] ? both : one, acc);
        }
    }
}

static TARGET void NAME(roll3)(const struct rows *d, const float *x, float *y, const float *w)
{
    NAME(roll)(d, x, y, w, 3);
}
static TARGET void NAME(roll5)(const struct rows *d, const float *x, float *y, const float *w)
{
    NAME(roll)(d, x, y, w, 5);
}
static TARGET void NAME(pick3)(const struct rows *d, const float *x, float *y, const float *w)
{
    NAME(pick)(d, x, y, w, 3);
}
static TARGET void NAME(pick5)(const struct rows *d, const float *x, float *y, const float *w)
{
    NAME(pick)(d, x, y, w, 5);
}

#undef V
#undef VI
#undef L
#undef TARGET
#undef FUSED
#undef NAME
#undef MASK
#undef MASK_OF
#undef LOADM
#undef STOREM
#undef LOAD
#undef STORE
#undef ZERO
#undef SET1
#undef FMA
#undef LOADI
#undef PICK
