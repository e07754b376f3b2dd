/* core.h: sums of products whose order is fixed by this text: the loops behind the solvers named "portable",
 * for one element type.  It is part of exported files, as vectors.h is.
 *
 * The includer defines R (float or double), S (its suffix, f32 or f64) and LANES (16 or 8).
 *
 * Invariant: the bits of a result depend on the problem and on whether the multiply-add is fused, and on
 * nothing else. */
#define NAME__(a, b) a##_##b
#define NAME_(a, b) NAME__(a, b)
#define NAME(a) NAME_(a, S)
#define V NAME(v)
#define WIDTH NAME(WIDTH)

/* Copies n[0] x n[1] x n[2] x n[3] elements.  g: n, the strides of dst, the strides of src. */
TARGET static void NAME(copy)(R *dst, const R *src, const int64_t *g)
{
    for (int64_t a = 0; a < g[0]; a++) {
        for (int64_t b = 0; b < g[1]; b++) {
            for (int64_t c = 0; c < g[2]; c++) {
                R *to = dst + a * g[4] + b * g[5] + c * g[6];
                const R *from = src + a * g[8] + b * g[9] + c * g[10];
                if (g[7] == 1 && g[11] == 1) {
                    memcpy(to, from, (size_t)g[3] * sizeof(R));
                } else {
                    for (int64_t d = 0; d < g[3]; d++) {
                        to[d * g[7]] = from[d * g[11]];
                    }
                }
            }
        }
    }
}

/* y[f][p] = sum over c, then over t, of w[f * wf + c * wc + wt[t]] * x[c * xc + xt[t] + p], in this order.
 * add: the sum begins with the old y.  g: f, c, t, p, wf, wc, xc, yf; offsets: wt, then xt. */
FORCE_INLINE void NAME(columns_tile)(const int rows, const int vectors, const int tail, const int64_t *g,
                                     const int64_t *wt, const int64_t *xt, int64_t c0, int64_t c1, const R *w,
                                     const R *x, R *y, int add)
{
    const int64_t taps = g[2], wf = g[4], wc = g[5], xc = g[6], yf = g[7];
    V sum[ROWS][VECTORS];
    UNROLL(8)
    for (int f = 0; f < rows; f++) {
        UNROLL(3)
        for (int v = 0; v < vectors; v++) {
            const R *at = y + f * yf + v * WIDTH;
            sum[f][v] = !add                       ? NAME(zero)()
                        : tail && v == vectors - 1 ? NAME(load_n)(at, tail)
                                                   : NAME(load)(at);
        }
    }
    for (int64_t c = c0; c < c1; c++) {
        const R *wa = w + c * wc, *xa = x + c * xc;
        for (int64_t t = 0; t < taps; t++) {
            const R *wb = wa + wt[t], *xb = xa + xt[t];
            V b[VECTORS];
            UNROLL(3)
            for (int v = 0; v < vectors; v++) {
                b[v] = tail && v == vectors - 1 ? NAME(load_n)(xb + v * WIDTH, tail)
                                                : NAME(load)(xb + v * WIDTH);
                IN_REGISTER(b[v]);
            }
            UNROLL(8)
            for (int f = 0; f < rows; f++) {
                const V a = NAME(splat)(wb[f * wf]);
                UNROLL(3)
                for (int v = 0; v < vectors; v++) {
                    sum[f][v] = NAME(madd)(a, b[v], sum[f][v]);
                }
            }
        }
    }
    UNROLL(8)
    for (int f = 0; f < rows; f++) {
        UNROLL(3)
        for (int v = 0; v < vectors; v++) {
            R *at = y + f * yf + v * WIDTH;
            if (tail && v == vectors - 1) {
                NAME(store_n)(at, sum[f][v], tail);
            } else {
                NAME(store)(at, sum[f][v]);
            }
        }
    }
}

/* All rows of y for `vectors` vectors of columns; tail: the elements of the last one, if it is not full. */
FORCE_INLINE void NAME(columns_strip)(const int vectors, const int tail, const int64_t *g, const int64_t *wt,
                                      const int64_t *xt, int64_t c0, int64_t c1, const R *w, const R *x, R *y,
                                      int add)
{
    int64_t f = 0;
    for (; f + ROWS <= g[0]; f += ROWS) {
        NAME(columns_tile)(ROWS, vectors, tail, g, wt, xt, c0, c1, w + f * g[4], x, y + f * g[7], add);
    }
    if (ROWS == 8 && f + 4 <= g[0]) {
        NAME(columns_tile)(4, vectors, tail, g, wt, xt, c0, c1, w + f * g[4], x, y + f * g[7], add);
        f += 4;
    }
    if (f + 2 <= g[0]) {
        NAME(columns_tile)(2, vectors, tail, g, wt, xt, c0, c1, w + f * g[4], x, y + f * g[7], add);
        f += 2;
    }
    if (f < g[0]) {
        NAME(columns_tile)(1, vectors, tail, g, wt, xt, c0, c1, w + f * g[4], x, y + f * g[7], add);
    }
}

TARGET static void NAME(columns)(const int64_t *g, const int64_t *offsets, const R *w, const R *x, R *y,
                                 int add)
{
    /* a chunk of x for one strip of columns stays in the L2 cache while all rows of w read it */
    const int64_t taps = g[2], most = 24576 / (VECTORS * WIDTH * (taps > 0 ? taps : 1)),
                  chunk = most < 1 ? 1 : most;
    const int64_t *wt = offsets, *xt = offsets + taps;
    for (int64_t c = 0; c < g[1] || c == 0; c += chunk) {
        const int64_t end = c + chunk < g[1] ? c + chunk : g[1];
        const int old = add || c > 0;
        int64_t p = 0;
        for (; p + VECTORS * WIDTH <= g[3]; p += VECTORS * WIDTH) {
            NAME(columns_strip)(VECTORS, 0, g, wt, xt, c, end, w, x + p, y + p, old);
        }
        const int left = (int)(g[3] - p);
        if (left > 2 * WIDTH) {
            NAME(columns_strip)(VECTORS, left - 2 * WIDTH, g, wt, xt, c, end, w, x + p, y + p, old);
        } else if (left > WIDTH) {
            NAME(columns_strip)(2, left - WIDTH, g, wt, xt, c, end, w, x + p, y + p, old);
        } else if (left > 0) {
            NAME(columns_strip)(1, left, g, wt, xt, c, end, w, x + p, y + p, old);
        }
    }
}

/* y[f * yf + c * yc + yt[t]] = sum over n and p of a[n * an + f * af + p] * b[n * bn + c * bc + bt[t] +
 * p].  Element p of each n is added to lane p % LANES; then the lanes are added in halves.  add: the sum
 * is added to the old y.  g: f, c, t, n, p, af, an, bc, bn, yf, yc; offsets: bt, then yt. */
FORCE_INLINE R NAME(lanes)(R *t)
{
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            t[i] += t[i + half];
        }
    }
    return t[0];
}

/* Rows from f on, and columns c * taps + t from q on. */
FORCE_INLINE void NAME(dots_tile)(const int rows, const int columns, const int64_t *g, const int64_t *offsets,
                                  int64_t q, const R *a, const R *b, R *y, int add)
{
    enum { PARTS = LANES / WIDTH };
    V sum[DOT_ROWS][DOT_COLUMNS][PARTS];
    int64_t bq[DOT_COLUMNS], yq[DOT_COLUMNS];
    for (int i = 0; i < columns; i++) {
        const int64_t c = (q + i) / g[2], t = (q + i) % g[2];
        bq[i] = c * g[7] + offsets[t];
        yq[i] = c * g[10] + offsets[g[2] + t];
    }
    UNROLL(4)
    for (int f = 0; f < rows; f++) {
        UNROLL(6)
        for (int i = 0; i < columns; i++) {
            UNROLL(4)
            for (int l = 0; l < PARTS; l++) {
                sum[f][i][l] = NAME(zero)();
            }
        }
    }
    for (int64_t n = 0; n < g[3]; n++) {
        const R *an = a + n * g[6], *bn = b + n * g[8];
        int64_t p = 0;
        for (; p + LANES <= g[4]; p += LANES) {
            UNROLL(4)
            for (int l = 0; l < PARTS; l++) {
                V v[DOT_COLUMNS];
                UNROLL(6)
                for (int i = 0; i < columns; i++) {
                    v[i] = NAME(load)(bn + bq[i] + p + l * WIDTH);
                    IN_REGISTER(v[i]);
                }
                UNROLL(4)
                for (int f = 0; f < rows; f++) {
                    const V u = NAME(load)(an + f * g[5] + p + l * WIDTH);
                    UNROLL(6)
                    for (int i = 0; i < columns; i++) {
                        sum[f][i][l] = NAME(madd)(u, v[i], sum[f][i][l]);
                    }
                }
            }
        }
        UNROLL(4)
        for (int l = 0; l < PARTS; l++) {
            const int64_t from = p + l * WIDTH;
            const int left = g[4] - from < WIDTH ? (int)(g[4] - from) : WIDTH;
            if (left > 0) {
                V v[DOT_COLUMNS];
                UNROLL(6)
                for (int i = 0; i < columns; i++) {
                    v[i] = NAME(load_n)(bn + bq[i] + from, left);
                }
                UNROLL(4)
                for (int f = 0; f < rows; f++) {
                    const V u = NAME(load_n)(an + f * g[5] + from, left);
                    UNROLL(6)
                    for (int i = 0; i < columns; i++) {
                        sum[f][i][l] = NAME(madd)(u, v[i], sum[f][i][l]);
                    }
                }
            }
        }
    }
    for (int f = 0; f < rows; f++) {
        for (int i = 0; i < columns; i++) {
            R t[LANES], *to = y + f * g[9] + yq[i];
            for (int l = 0; l < PARTS; l++) {
                NAME(store)(t + l * WIDTH, sum[f][i][l]);
            }
            *to = add ? *to + NAME(lanes)(t) : NAME(lanes)(t);
        }
    }
}

/* Rows stay in the L1 cache while all columns pass. */
FORCE_INLINE void NAME(dots_strip)(const int rows, const int64_t *g, const int64_t *offsets, const R *a,
                                   const R *b, R *y, int add)
{
    const int64_t all = g[1] * g[2];
    int64_t q = 0;
    for (; q + DOT_COLUMNS <= all; q += DOT_COLUMNS) {
        NAME(dots_tile)(rows, DOT_COLUMNS, g, offsets, q, a, b, y, add);
    }
    for (; q < all; q++) {
        NAME(dots_tile)(rows, 1, g, offsets, q, a, b, y, add);
    }
}

TARGET static void NAME(dots)(const int64_t *g, const int64_t *offsets, const R *a, const R *b, R *y, int add)
{
    int64_t f = 0;
    for (; f + DOT_ROWS <= g[0]; f += DOT_ROWS) {
        NAME(dots_strip)(DOT_ROWS, g, offsets, a + f * g[5], b, y + f * g[9], add);
    }
    for (; f < g[0]; f++) {
        NAME(dots_strip)(1, g, offsets, a + f * g[5], b, y + f * g[9], add);
    }
}
#undef V
#undef WIDTH
