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
    PARALLEL(collapse(3) if (WORTH(8 * g[0] * g[1] * g[2] * g[3])))
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

/* Copies a row of n elements in whole vectors: the last one may write beyond its end. */
FORCE_INLINE void NAME(copy_row)(R *to, const R *from, int64_t n)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        NAME(store)(to + i, NAME(load)(from + i));
    }
    if (i < n) {
        NAME(store)(to + i, NAME(load_n)(from + i, (int)(n - i)));
    }
}

/* y[f * yf + p] = sum over c, then over t, of w[f * wf + c * wc + wt[t]] * x[c * xc + xt[t] + o(p)], in
 * this order. Positions p are rows of `row` elements, `rows` of them a plane; o(p) is the offset of p with
 * the pitches of rows and planes.  row 0: o(p) = p, and x is read in place.  add: the sum begins with the
 * old y.  g: f, c, t, p, wf, wc, xc, yf, row, rows, the pitch of rows, of planes; offsets: wt, then xt. */
/* One tile.  xt NULL: x is a panel in which each t follows the one before at a distance of `panel`. */
FORCE_INLINE void NAME(columns_tile)(const int rows, const int vectors, const int tail, const int64_t *g,
                                     const int64_t *wt, const int64_t *xt, int64_t xc, int64_t panel,
                                     int64_t c0, int64_t c1, const R *w, const R *x, R *y, int add)
{
    const int64_t taps = g[2], wf = g[4], wc = g[5], yf = g[7];
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
        const R *wa = w + c * wc, *xa = x + (c - c0) * xc;
        for (int64_t t = 0; t < taps; t++) {
            const R *wb = wa + wt[t], *xb = xa + (xt ? xt[t] : t * panel);
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

/* Rows [f, end) of y for `vectors` vectors of columns; tail: the elements of the last one, if it is not
 * full. */
FORCE_INLINE void NAME(columns_strip)(const int vectors, const int tail, const int64_t *g, const int64_t *wt,
                                      const int64_t *xt, int64_t xc, int64_t panel, int64_t c0, int64_t c1,
                                      int64_t f, int64_t end, const R *w, const R *x, R *y, int add)
{
    for (; f + ROWS <= end; f += ROWS) {
        NAME(columns_tile)
        (ROWS, vectors, tail, g, wt, xt, xc, panel, c0, c1, w + f * g[4], x, y + f * g[7], add);
    }
    if (ROWS == 8 && f + 4 <= end) {
        NAME(columns_tile)
        (4, vectors, tail, g, wt, xt, xc, panel, c0, c1, w + f * g[4], x, y + f * g[7], add);
        f += 4;
    }
    if (f + 2 <= end) {
        NAME(columns_tile)
        (2, vectors, tail, g, wt, xt, xc, panel, c0, c1, w + f * g[4], x, y + f * g[7], add);
        f += 2;
    }
    if (f < end) {
        NAME(columns_tile)
        (1, vectors, tail, g, wt, xt, xc, panel, c0, c1, w + f * g[4], x, y + f * g[7], add);
    }
}

/* One row of w, `end` columns: x is read once, row by row, and y stays in the L1 cache. */
TARGET ALONE static void NAME(columns_thin)(const int64_t *g, const int64_t *wt, const int64_t *xt,
                                            int64_t end, const R *w, const R *x, R *y)
{
    enum { STEP = 4 };
    const int64_t taps = g[2], all = g[1] * taps;
    for (int64_t p = 0; p < end; p++) {
        y[p] = 0;
    }
    for (int64_t k = 0; k < all; k += STEP) {
        const R *at[STEP];
        V a[STEP];
        const int n = all - k < STEP ? (int)(all - k) : STEP;
        for (int i = 0; i < n; i++) {
            const int64_t c = (k + i) / taps, t = (k + i) % taps;
            at[i] = x + c * g[6] + xt[t];
            a[i] = NAME(splat)(w[c * g[5] + wt[t]]);
        }
        int64_t p = 0;
        for (; p + WIDTH <= end && n == STEP; p += WIDTH) {
            V sum = NAME(load)(y + p);
            UNROLL(4)
            for (int i = 0; i < STEP; i++) {
                sum = NAME(madd)(a[i], NAME(load)(at[i] + p), sum);
            }
            NAME(store)(y + p, sum);
        }
        for (; p < end; p += WIDTH) {
            const int left = end - p < WIDTH ? (int)(end - p) : WIDTH;
            V sum = NAME(load_n)(y + p, left);
            for (int i = 0; i < n; i++) {
                sum = NAME(madd)(a[i], NAME(load_n)(at[i] + p, left), sum);
            }
            NAME(store_n)(y + p, sum, left);
        }
    }
}

/* Copies positions [p, p + n) of x, for channels [c0, c1) and all taps, to rows of `width` elements. */
TARGET static void NAME(pack)(const int64_t *g, const int64_t *xt, int64_t c0, int64_t c1, const R *x,
                              int64_t p, int64_t n, int64_t width, R *panel)
{
    int64_t from[VECTORS * WIDTH], at[VECTORS * WIDTH + 1], parts = 0;
    for (int64_t i = 0; i < n; parts++) { /* the parts of rows that the positions are */
        const int64_t row = (p + i) / g[8], column = (p + i) % g[8], left = g[8] - column;
        from[parts] = row / g[9] * g[11] + row % g[9] * g[10] + column;
        at[parts] = i;
        i += left < n - i ? left : n - i;
    }
    at[parts] = n;
    for (int64_t c = c0; c < c1; c++) {
        for (int64_t t = 0; t < g[2]; t++, panel += width) {
            const R *xa = x + c * g[6] + xt[t];
            for (int64_t k = 0; k < parts; k++) {
                NAME(copy_row)(panel + at[k], xa + from[k], at[k + 1] - at[k]);
            }
        }
    }
}

/* Rows [f, end) of one strip of columns, which begins at p, for channels [c, c_end).  They are added to y
 * unless c is 0. */
TARGET ALONE static void NAME(columns_part)(const int64_t *g, const int64_t *offsets, int64_t c,
                                            int64_t c_end, int64_t p, int64_t f, int64_t end, const R *w,
                                            const R *x, R *y, R *panel)
{
    const int64_t taps = g[2], left = g[3] - p < VECTORS * WIDTH ? g[3] - p : VECTORS * WIDTH,
                  width = (left + WIDTH - 1) / WIDTH * WIDTH;
    const int64_t *wt = offsets, *xt = offsets + taps;
    const int old = c > 0;
    int64_t xc = g[6];
    const R *from = x + c * xc + p;
    y += p;
    if (g[8]) {
        NAME(pack)(g, xt, c, c_end, x, p, left, width, panel);
        xt = NULL;
        xc = taps * width;
        from = panel;
    }
    if (left == VECTORS * WIDTH) {
        NAME(columns_strip)(VECTORS, 0, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old);
    } else if (left > 2 * WIDTH) {
        NAME(columns_strip)
        (VECTORS, (int)left - 2 * WIDTH, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old);
    } else if (left > WIDTH) {
        NAME(columns_strip)(2, (int)left - WIDTH, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old);
    } else {
        NAME(columns_strip)(1, (int)left, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old);
    }
}

/* Rows that a thread takes at once, so that there are `strips` times some 64 parts; a whole number of
 * tiles. */
FORCE_INLINE int64_t NAME(rows_of_part)(int64_t rows, int64_t strips)
{
    const int64_t each = (rows * strips / 64 + 23) / 24 * 24;
    return each < 48 ? 48 : each;
}

/* Threads share the strips, and the rows where there are few strips.  Each has a panel of its own, on its
 * stack; `panel` is for one thread, and NULL in a loop that threads share already.  What a panel holds does
 * not change the order of a sum. */
TARGET static void NAME(columns)(const int64_t *g, const int64_t *offsets, const R *w, const R *x, R *y,
                                 R *panel)
{
    const int64_t taps = g[2], strip = VECTORS * WIDTH, work = (g[0] + 4) * (g[3] + 4) * g[1] * taps,
                  strips = (g[3] + strip - 1) / strip;
    const int own = taps * strip <= OWN_PANEL, shared = panel && WORTH(work) && (own || !g[8]);
    if (g[0] == 1 && !g[8] && g[1] * taps >= 64 && g[3] >= strip) {
        const int64_t each = shared ? 256 : g[3];
        PARALLEL(if (shared))
        for (int64_t p = 0; p < g[3]; p += each) {
            const int64_t left = g[3] - p;
            NAME(columns_thin)(g, offsets, offsets + taps, left < each ? left : each, w, x + p, y + p);
        }
        return;
    }
    /* a chunk of x for one strip of columns stays in the L2 cache while all rows of w read it */
    const int64_t most = (own ? (int)OWN_PANEL : (int)PANEL) / (strip * (taps > 0 ? taps : 1)),
                  chunk = most < 1 ? 1 : most, each = shared ? NAME(rows_of_part)(g[0], strips) : g[0];
    for (int64_t c = 0; c < g[1] || c == 0; c += chunk) {
        const int64_t c_end = c + chunk < g[1] ? c + chunk : g[1];
        PARALLEL(collapse(2) if (shared))
        for (int64_t f = 0; f < g[0]; f += each) {
            for (int64_t s = 0; s < strips; s++) {
                R own_panel[OWN_PANEL];
                const int64_t end = f + each < g[0] ? f + each : g[0];
                NAME(columns_part)
                (g, offsets, c, c_end, s * strip, f, end, w, x, y, own ? own_panel : panel);
            }
        }
    }
}

/* y[f * yf + c * yc + yt[t]] = sum over k of a[f * af + k] * b(c, t, k), where k runs over the p positions
 * of n images: b(c, t, k) = b[n * bn + c * bc + bt[t] + o(p)], with positions as for columns; row 0: b[c *
 * bc + bt[t] + k]. Element k is added to lane k % LANES; then the lanes are added in halves.  add: the sum
 * is added to the old y. g: f, c, t, n, p, af, bn, bc, yf, yc, row, rows, the pitch of rows, of planes;
 * offsets: bt, then yt. */
/* The sums of `rows` rows and `columns` columns.  b: by column. */
FORCE_INLINE void NAME(dots_tile)(const int rows, const int columns, const int64_t *g, int64_t length,
                                  const R *a, const R *const *b, R *y, const int64_t *yq, int add)
{
    enum { PARTS = LANES / WIDTH };
    V sum[DOT_ROWS][DOT_COLUMNS][PARTS];
    int64_t k = 0;
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
    for (; k + LANES <= length; k += LANES) {
        UNROLL(4)
        for (int l = 0; l < PARTS; l++) {
            V v[DOT_COLUMNS];
            UNROLL(6)
            for (int i = 0; i < columns; i++) {
                v[i] = NAME(load)(b[i] + k + l * WIDTH);
                IN_REGISTER(v[i]);
            }
            UNROLL(4)
            for (int f = 0; f < rows; f++) {
                const V u = NAME(load)(a + f * g[5] + k + l * WIDTH);
                UNROLL(6)
                for (int i = 0; i < columns; i++) {
                    sum[f][i][l] = NAME(madd)(u, v[i], sum[f][i][l]);
                }
            }
        }
    }
    UNROLL(4)
    for (int l = 0; l < PARTS; l++) {
        const int64_t from = k + l * WIDTH;
        const int left = length - from < WIDTH ? (int)(length - from) : WIDTH;
        if (left > 0) {
            V v[DOT_COLUMNS];
            UNROLL(6)
            for (int i = 0; i < columns; i++) {
                v[i] = NAME(load_n)(b[i] + from, left);
            }
            UNROLL(4)
            for (int f = 0; f < rows; f++) {
                const V u = NAME(load_n)(a + f * g[5] + from, left);
                UNROLL(6)
                for (int i = 0; i < columns; i++) {
                    sum[f][i][l] = NAME(madd)(u, v[i], sum[f][i][l]);
                }
            }
        }
    }
    for (int f = 0; f < rows; f++) {
        for (int i = 0; i < columns; i++) {
            R *to = y + f * g[8] + yq[i];
            const R all = NAME(lanes)(sum[f][i]);
            *to = add ? *to + all : all;
        }
    }
}

/* Sets at and yq, by column, for `columns` columns that begin at column q: where b and the sums of row 0
 * are. */
TARGET static void NAME(dots_columns)(int columns, const int64_t *g, const int64_t *offsets, int64_t q,
                                      const R *b, const R **at, int64_t *yq, R *panel)
{
    const int64_t taps = g[2], length = g[3] * g[4];
    for (int i = 0; i < columns; i++) {
        const int64_t c = (q + i) / taps, t = (q + i) % taps;
        yq[i] = c * g[9] + offsets[taps + t];
        at[i] = b + c * g[7] + offsets[t];
        if (g[10]) {
            R *to = panel + i * (length + WIDTH);
            at[i] = to;
            for (int64_t n = 0; n < g[3]; n++) {
                const R *from = b + n * g[6] + c * g[7] + offsets[t];
                for (int64_t r = 0; r < g[4] / g[10]; r++, to += g[10]) {
                    NAME(copy_row)(to, from + r / g[11] * g[13] + r % g[11] * g[12], g[10]);
                }
            }
        }
    }
}

/* Rows [f, end) for `columns` columns. */
TARGET ALONE static void NAME(dots_rows)(int columns, const int64_t *g, int64_t f, int64_t end, const R *a,
                                         const R *const *at, R *y, const int64_t *yq, int add)
{
    const int64_t length = g[3] * g[4];
    for (; f < end && columns == DOT_COLUMNS; f += f + DOT_ROWS <= end ? DOT_ROWS : 1) {
        if (f + DOT_ROWS <= end) {
            NAME(dots_tile)(DOT_ROWS, DOT_COLUMNS, g, length, a + f * g[5], at, y + f * g[8], yq, add);
        } else {
            NAME(dots_tile)(1, DOT_COLUMNS, g, length, a + f * g[5], at, y + f * g[8], yq, add);
        }
    }
    for (int i = 0; i < columns && f < end; i++) {
        int64_t k = f;
        for (; k + DOT_ROWS <= end; k += DOT_ROWS) {
            NAME(dots_tile)(DOT_ROWS, 1, g, length, a + k * g[5], at + i, y + k * g[8], yq + i, add);
        }
        for (; k < end; k++) {
            NAME(dots_tile)(1, 1, g, length, a + k * g[5], at + i, y + k * g[8], yq + i, add);
        }
    }
}

/* Threads share the columns.  They share the rows instead if there are few columns, or if the panel of a
 * strip does not fit a thread's stack. */
TARGET static void NAME(dots)(const int64_t *g, const int64_t *offsets, const R *a, const R *b, R *y, int add,
                              R *panel)
{
    const int64_t all = g[1] * g[2], length = g[3] * g[4], strips = (all + DOT_COLUMNS - 1) / DOT_COLUMNS,
                  work = (g[0] + 4) * (all + 4) * length;
    const int own = DOT_COLUMNS * (length + WIDTH) <= OWN_PANEL, by_rows = strips < 16 || (g[10] && !own),
              shared = panel && WORTH(by_rows ? work / strips : work);
    const int64_t each = by_rows && shared ? (g[0] / 16 + 12) / 12 * 12 : g[0];
    PARALLEL(if (shared && !by_rows))
    for (int64_t s = 0; s < strips; s++) {
        R own_panel[OWN_PANEL];
        const R *at[DOT_COLUMNS];
        int64_t yq[DOT_COLUMNS];
        const int64_t q = s * DOT_COLUMNS;
        const int columns = all - q < DOT_COLUMNS ? (int)(all - q) : (int)DOT_COLUMNS;
        NAME(dots_columns)(columns, g, offsets, q, b, at, yq, own ? own_panel : panel);
        PARALLEL(if (shared && by_rows))
        for (int64_t f = 0; f < g[0]; f += each) {
            const int64_t end = f + each < g[0] ? f + each : g[0];
            NAME(dots_rows)(columns, g, f, end, a, at, y, yq, add);
        }
    }
}
#undef V
#undef WIDTH
