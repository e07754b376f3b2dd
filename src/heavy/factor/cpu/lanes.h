/* lanes.h: as many small matrices as a vector has elements, each in one lane: element (i, j) of all of them
 * is a vector.  After rows.h and op/matrix/all.h.  0: one of them needs more care, and none has a result. */
#define LANES ((int64_t)NAME(WIDTH))

/* Is 1 / pivot, of all lanes, finite? */
FORCE_INLINE int NAME(lane_inverse)(const R *pivot, R *inverse)
{
    R sum = 0;
    for (int64_t l = 0; l < LANES; l++) {
        inverse[l] = 1 / pivot[l];
        sum += inverse[l] - inverse[l];
    }
    return sum == 0;
}

/* x[j] -= by y[j] for n vectors */
FORCE_INLINE void NAME(lane_rows)(R *x, const R *by, const R *y, int64_t n)
{
    const NAME(v) minus = NAME(times)(NAME(splat)(-1), NAME(load)(by));
    for (int64_t j = 0; j < n; j++) {
        NAME(store)(x + j * LANES, NAME(madd)(minus, NAME(load)(y + j * LANES), NAME(load)(x + j * LANES)));
    }
}

TARGET static int NAME(cholesky_lanes)(const int64_t *g, const void *const *in, void *const *out, void *work)
{
    const int64_t n = g[0];
    R *w = (R *)work, inverse[16];
    memset(w, 0, (size_t)(n * n * LANES) * sizeof(R));
    for (int64_t i = 0; i < n; i++) {
        NAME(transposed)(w + i * n * LANES, LANES, (const R *)in[0] + i * n, n * n, LANES, i + 1);
    }
    for (int64_t k = 0; k < n; k++) {
        R *pivot = w + k * (n + 1) * LANES, column[32 * 16];
        for (int64_t l = 0; l < LANES; l++) {
            if (!(pivot[l] > 0)) {
                return 0;
            }
            pivot[l] = NAME(root)(pivot[l]);
        }
        if (!NAME(lane_inverse)(pivot, inverse)) {
            return 0;
        }
        for (int64_t i = k + 1; i < n; i++) {
            R *row = w + i * n * LANES, *own = column + (i - k - 1) * LANES;
            NAME(store)(own, NAME(times)(NAME(load)(row + k * LANES), NAME(load)(inverse)));
            NAME(store)(row + k * LANES, NAME(load)(own));
            NAME(lane_rows)(row + (k + 1) * LANES, own, column, i - k);
        }
    }
    NAME(transposed)((R *)out[0], n * n, w, LANES, n * n, LANES);
    return 1;
}

/* Elimination with partial pivoting, of rows with the right hand sides behind them. */
TARGET static int NAME(solve_lanes)(const int64_t *g, const void *const *in, void *const *out, void *work)
{
    const int64_t n = g[0], k = g[1], width = n + k;
    R *w = (R *)work, *inverse = w + n * width * LANES;
    for (int64_t i = 0; i < n; i++) {
        NAME(transposed)(w + i * width * LANES, LANES, (const R *)in[0] + i * n, n * n, LANES, n);
        NAME(transposed)(w + (i * width + n) * LANES, LANES, (const R *)in[1] + i * k, n * k, LANES, k);
    }
    for (int64_t c = 0; c < n; c++) {
        R *top = w + c * width * LANES, *by = inverse + c * LANES, most[16];
        int64_t at[16];
        for (int64_t l = 0; l < LANES; l++) {
            most[l] = NAME(magnitude)(top[c * LANES + l]);
            at[l] = c;
        }
        for (int64_t i = c + 1; i < n; i++) {
            const R *column = w + (i * width + c) * LANES;
            for (int64_t l = 0; l < LANES; l++) {
                const R x = NAME(magnitude)(column[l]);
                at[l] = x > most[l] ? i : at[l];
                most[l] = x > most[l] ? x : most[l];
            }
        }
        for (int64_t l = 0; l < LANES; l++) {
            R *other = w + at[l] * width * LANES;
            for (int64_t j = c * LANES + l; at[l] != c && j < width * LANES; j += LANES) {
                const R x = top[j];
                top[j] = other[j];
                other[j] = x;
            }
        }
        if (!NAME(lane_inverse)(top + c * LANES, by)) {
            return 0;
        }
        for (int64_t i = c + 1; i < n; i++) {
            R *row = w + (i * width + c) * LANES;
            NAME(store)(row, NAME(times)(NAME(load)(row), NAME(load)(by)));
            NAME(lane_rows)(row + LANES, row, top + (c + 1) * LANES, width - c - 1);
        }
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        R *x = w + (i * width + n) * LANES;
        const NAME(v) by = NAME(load)(inverse + i * LANES);
        for (int64_t j = 0; j < k; j++) {
            NAME(store)(x + j * LANES, NAME(times)(NAME(load)(x + j * LANES), by));
        }
        for (int64_t r = 0; r < i; r++) {
            NAME(lane_rows)(w + (r * width + n) * LANES, w + (r * width + i) * LANES, x, k);
        }
        NAME(transposed)((R *)out[0] + i * k, n * k, x, LANES, k, LANES);
    }
    return 1;
}
#undef LANES
