/* gradients.h: the second half of core.h: sums over positions, and what taps add to an image.  It is part of
 * exported files.
 *
 * Invariant: as of core.h. */
/* y[(c * t + k) * f + i] = sum over positions p, in order, of x[c * xc + xt[k] + o(p)] * v[p * f + i], k < t,
 * i < f.  Positions are rows of x.  add: the sum begins with the old y.  g: f, c, t, rows of positions,
 * elements of a row, xc, the pitch of rows; offsets: xt. */
/* Rows [q, q + `rows`) of y, a row of sums for each c and t, for rows [r0, r1) of positions. */
FORCE_INLINE void NAME(outer_tile)(const int rows, const int vectors, const int tail, const int64_t *g,
                                   const int64_t *xt, int64_t q, int64_t r0, int64_t r1, const R *x,
                                   const R *v, R *y, int add)
{
    const int64_t h[8] = { rows, 0, g[4], 0, 0, g[6], 0, g[0] }, row = g[4] * g[0];
    int64_t at[ROWS];
    for (int i = 0; i < rows; i++) {
        at[i] = (q + i) / g[2] * g[5] + xt[(q + i) % g[2]];
    }
    NAME(columns_tile)
    (rows, vectors, tail, h, at, NULL, NULL, row, g[0], r0, r1, x, v + r0 * row, y + q * g[0], add,
     NULL, 0);
}

/* All rows of y, `vectors` vectors of each. */
FORCE_INLINE void NAME(outer_strip)(const int vectors, const int tail, const int64_t *g, const int64_t *xt,
                                    int64_t q, int64_t end, int64_t r0, int64_t r1, const R *x, const R *v,
                                    R *y, int add)
{
    const int most = vectors > VECTORS ? WIDE_ROWS : ROWS;
    for (; q + most <= end; q += most) {
        NAME(outer_tile)(most, vectors, tail, g, xt, q, r0, r1, x, v, y, add);
    }
    for (; q + 2 <= end; q += 2) {
        NAME(outer_tile)(2, vectors, tail, g, xt, q, r0, r1, x, v, y, add);
    }
    if (q < end) {
        NAME(outer_tile)(1, vectors, tail, g, xt, q, r0, r1, x, v, y, add);
    }
}

/* Rows [q, end) of y for rows [r0, r1) of positions. */
TARGET ALONE static void NAME(outer_part)(const int64_t *g, const int64_t *xt, int64_t q, int64_t end,
                                          int64_t r0, int64_t r1, const R *x, const R *v, R *y, int add)
{
    int64_t f = 0;
    for (; g[0] - f > WIDE * WIDTH; f += VECTORS * WIDTH) {
        NAME(outer_strip)(VECTORS, 0, g, xt, q, end, r0, r1, x, v + f, y + f, add);
    }
    const int left = (int)(g[0] - f);
    if (left > VECTORS * WIDTH) {
        NAME(outer_strip)(WIDE, left - VECTORS * WIDTH, g, xt, q, end, r0, r1, x, v + f, y + f, add);
    } else if (left > 2 * WIDTH) {
        NAME(outer_strip)(VECTORS, left - 2 * WIDTH, g, xt, q, end, r0, r1, x, v + f, y + f, add);
    } else if (left > WIDTH) {
        NAME(outer_strip)(2, left - WIDTH, g, xt, q, end, r0, r1, x, v + f, y + f, add);
    } else {
        NAME(outer_strip)(1, left, g, xt, q, end, r0, r1, x, v + f, y + f, add);
    }
}

/* Threads share the rows of y.  A part of v that fits the L1 cache is read by all of them. */
TARGET static void NAME(outer)(const int64_t *g, const int64_t *offsets, const R *x, const R *v, R *y,
                               int add)
{
    enum { PART = 6144 };
    const int64_t all = g[1] * g[2], each = WORTH((g[0] + 4) * (all + 4) * g[3] * g[4]) ? 48 : all,
                  most = PART / (g[0] * g[4]), rows = most < 1 ? 1 : most;
    for (int64_t r = 0; r < g[3]; r += rows) {
        const int64_t end = r + rows < g[3] ? r + rows : g[3];
        PARALLEL(if (each < all))
        for (int64_t q = 0; q < all; q += each) {
            NAME(outer_part)(g, offsets, q, q + each < all ? q + each : all, r, end, x, v, y, add || r > 0);
        }
    }
}

/* The elements [v, v + WIDTH) of row (i, j) of x: the sum of what col2im adds to them, in the order of
 * taps. */
FORCE_INLINE V NAME(col2im_sum)(const int64_t *g, const int64_t *vt, int64_t i, int64_t j, int64_t v,
                                const R *from)
{
    const int64_t positions = g[4] * g[5] * g[6];
    V sum = NAME(zero)();
    for (int64_t a = 0; a < g[1]; a++) {
        const int64_t p = i + g[12] - a * g[15], m = p / g[10];
        for (int64_t b = 0; b < g[2] && p >= 0 && m < g[4] && m * g[10] == p; b++) {
            const int64_t q = j + g[13] - b * g[16], n = q / g[11];
            for (int64_t c = 0; c < g[3] && q >= 0 && n < g[5] && n * g[11] == q; c++) {
                const int64_t tap = (a * g[2] + b) * g[3] + c, shift = v + g[14] - c * g[17],
                              lo = shift < 0 ? -shift : 0,
                              hi = g[6] - shift < WIDTH ? g[6] - shift : (int64_t)WIDTH;
                if (lo < hi) {
                    const R *at = from + vt[tap] * positions + (m * g[5] + n) * g[6] + shift;
                    sum = NAME(plus)(sum, NAME(load_part)(at, (int)lo, (int)hi));
                }
            }
        }
    }
    return sum;
}

/* x[c][i] = the sum over taps t of v[c][vt[t]][o], where position o of y has tap t at i.  v and the rows of x
 * are contiguous.  g: c, taps on three axes, positions, sizes of x, the strides of positions on two axes, the
 * border on three, the dilation on three, the pitches of x: channels, planes, rows; offsets: vt. */
TARGET static void NAME(col2im)(const int64_t *g, const int64_t *offsets, R *x, const R *v)
{
    const int64_t taps = g[1] * g[2] * g[3], positions = g[4] * g[5] * g[6];
    PARALLEL(collapse(3) if (WORTH(4 * g[0] * taps * positions)))
    for (int64_t c = 0; c < g[0]; c++) {
        for (int64_t i = 0; i < g[7]; i++) {
            for (int64_t j = 0; j < g[8]; j++) {
                R *to = x + c * g[18] + i * g[19] + j * g[20];
                for (int64_t k = 0; k < g[9]; k += WIDTH) {
                    const V sum = NAME(col2im_sum)(g, offsets, i, j, k, v + c * taps * positions);
                    NAME(store_n)(to + k, sum, g[9] - k < WIDTH ? (int)(g[9] - k) : (int)WIDTH);
                }
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
