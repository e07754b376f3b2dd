/* rows_body.h: depthwise convolutions of one plane, read in place, compiled for each instruction set by
 * rows.c, which defines
 *
 *   V, VI, L, TARGET, NAME(x)   vectors of floats and of ints, their lanes; attribute and name of functions
 *   MASK MASK_OF(lo, hi)        lanes lo to hi - 1, for any lo and hi
 *   MASK_IF(m, c)               m if c, else no lane
 *   LOADM STOREM                those lanes; the others are zero, or are not touched
 *   STORE ZERO SET1 FMA LOADI
 *   PICK(a, i, b)               lane k is lane i[k] of a and b together
 *
 * Invariant: a sum is added in the order of the rows of the filter; no lane beyond a row is loaded. */

/* Stride 1: columns of up to L positions. Each row that is loaded goes into all K rows of sums that it
 * reaches. */
FUSED void NAME(roll)(const struct rows *d, const float *x, float *y, const float *w, const int K)
{
    const int64_t lines = d->in[0], pitch = d->in[1], rows = d->out[0], width = d->out[1], above = d->pad[0],
                  left = d->pad[1], n = MC_MIN(width, (int64_t)L);
    const MASK keep = MASK_OF(0, n);
    V tap[MOST_TAPS];
    UNROLL(25)
    for (int t = 0; t < K * K; t++) {
        tap[t] = SET1(w[t]);
    }
    for (int64_t c = 0; c < width; c += L) {
        const int64_t at = MC_MIN(c, width - n), last = rows + K - 1 - above;
        const float *from = x + at - left;
        float *to = y + at - (K - 1 - above) * width;
        MASK read[MOST_SIDE];
        V acc[MOST_SIDE];
        UNROLL(5)
        for (int t = 0; t < K; t++) {
            const int64_t column = at + t - left;
            read[t] = MASK_OF(-column, MC_MIN(pitch - column, n));
            acc[t] = ZERO();
        }
        for (int64_t i = 0; i < last; i++, from += pitch, to += width) {
            UNROLL(5)
            for (int t = 0; t < K && i < lines; t++) {
                const V v = LOADM(from + t, read[t]);
                UNROLL(5)
                for (int r = 0; r < K; r++) {
                    acc[r] = FMA(tap[(K - 1 - r) * K + t], v, acc[r]);
                }
            }
            if (i >= K - 1 - above) {
                if (n == L) {
                    STORE(to, acc[0]);
                } else {
                    STOREM(to, keep, acc[0]);
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

/* Windows of 2 L elements of a row, or, with two, of L elements of two rows, from which the elements of each
 * tap are picked. */
FUSED void NAME(pick)(const struct rows *d, const float *x, float *y, const float *w, const int K,
                      const bool two)
{
    const int64_t lines = d->in[0], pitch = d->in[1], rows = d->out[0], width = d->out[1], above = d->pad[0],
                  n = d->n, step = d->step, next = two ? step * pitch : L;
    V tap[MOST_TAPS];
    VI pick[MOST_SIDE];
    UNROLL(25)
    for (int t = 0; t < K * K; t++) {
        tap[t] = SET1(w[t]);
    }
    UNROLL(5)
    for (int t = 0; t < K; t++) {
        pick[t] = LOADI(d->pick[t]);
    }
    for (int64_t c = 0; c < width; c += n) {
        const int64_t at = MC_MIN(c, width - n), column = at * step - d->pad[1];
        const MASK first = MASK_OF(-column, pitch - column),
                   second = two ? first : MASK_OF(-column - L, pitch - column - L), one = MASK_OF(0, n),
                   both = MASK_OF(0, 2 * n);
        for (int64_t r = 0; r < rows; r += 1 + two) {
            V acc = ZERO();
            UNROLL(5)
            for (int k = 0; k < K; k++) {
                const int64_t row = r * step + k - above;
                const float *from = x + row * pitch + column;
                V a, b;
                if (two) {
                    a = LOADM(from, MASK_IF(first, row >= 0 && row < lines));
                    b = LOADM(from + next, MASK_IF(second, row + step >= 0 && row + step < lines));
                } else if (row < 0 || row >= lines) {
                    continue;
                } else {
                    a = LOADM(from, first);
                    b = LOADM(from + next, second);
                }
                UNROLL(5)
                for (int t = 0; t < K; t++) {
                    acc = FMA(tap[k * K + t], PICK(a, pick[t], b), acc);
                }
            }
            STOREM(y + r * width + at, two && r + 1 < rows ? both : one, acc);
        }
    }
}

#define PLANE(name, how)                                                                      \
    static TARGET void NAME(name)(const struct rows *d, const float *x, float *y, const float *w) \
    {                                                                                            \
        how;                                                                                     \
    }
PLANE(roll3, NAME(roll)(d, x, y, w, 3))
PLANE(roll5, NAME(roll)(d, x, y, w, 5))
PLANE(pick3, NAME(pick)(d, x, y, w, 3, false))
PLANE(pick5, NAME(pick)(d, x, y, w, 5, false))
PLANE(pair3, NAME(pick)(d, x, y, w, 3, true))
PLANE(pair5, NAME(pick)(d, x, y, w, 5, true))

#undef PLANE
#undef MASK_IF
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
#undef STORE
#undef ZERO
#undef SET1
#undef FMA
#undef LOADI
#undef PICK
