/* core.h: sums of products whose order is fixed by this text: the loops behind the solvers named "portable",
 * for one element type.  gradients.h is its second half.  It is part of exported files, as vectors.h is.
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

/* Copies rows of n elements, and writes no others. */
FORCE_INLINE void NAME(copy_rows)(R *to, const R *from, int64_t rows, int64_t n, int64_t to_pitch,
                                  int64_t from_pitch)
{
    const int64_t whole = n - n % WIDTH;
    const int left = (int)(n % WIDTH);
    for (; rows > 0; rows--, to += to_pitch, from += from_pitch) {
        for (int64_t i = 0; i < whole; i += WIDTH) {
            NAME(store)(to + i, NAME(load)(from + i));
        }
        if (left) {
            NAME(store_n)(to + whole, NAME(load_n)(from + whole, left), left);
        }
    }
}

/* Copies every second one of 2 n - 1 elements of each row; n > 0. */
FORCE_INLINE void NAME(copy_evens)(R *to, const R *from, int64_t rows, int64_t n, int64_t to_pitch,
                                   int64_t from_pitch)
{
    const int64_t whole = (n - 1) / WIDTH * WIDTH;
    const int last = (int)(n - whole), read = 2 * last - 1; /* the elements that the last vector needs */
    const int low = read < WIDTH ? read : (int)WIDTH, high = read - low;
    const int64_t second = high ? (int)WIDTH : 0;
    for (; rows > 0; rows--, to += to_pitch, from += from_pitch) {
        for (int64_t i = 0; i < whole; i += WIDTH) {
            NAME(store)(to + i, NAME(evens)(NAME(load)(from + 2 * i), NAME(load)(from + 2 * i + WIDTH)));
        }
        const R *at = from + 2 * whole;
        NAME(store_n)
        (to + whole, NAME(evens)(NAME(load_n)(at, low), NAME(load_n)(at + second, high)), last);
    }
}

/* Copies n[0] x n[1] x n[2] x n[3] elements.  g: n, the strides of dst, the strides of src. */
TARGET static void NAME(copy)(R *dst, const R *src, const int64_t *g)
{
    const int64_t together = 64; /* rows: each alone would cost more than its few elements */
    const int64_t n = g[3], to_pitch = g[6], from_pitch = g[10], parts = (g[2] + together - 1) / together;
    if (n <= 0) {
        return;
    }
    PARALLEL(collapse(3) if (WORTH(8 * g[0] * g[1] * g[2] * n)))
    for (int64_t a = 0; a < g[0]; a++) {
        for (int64_t b = 0; b < g[1]; b++) {
            for (int64_t part = 0; part < parts; part++) {
                const int64_t c = part * together, rows = g[2] - c < together ? g[2] - c : together;
                R *to = dst + a * g[4] + b * g[5] + c * to_pitch;
                const R *from = src + a * g[8] + b * g[9] + c * from_pitch;
                if (g[7] == 1 && g[11] == 1) {
                    NAME(copy_rows)(to, from, rows, n, to_pitch, from_pitch);
                } else if (g[7] == 1 && g[11] == 2) { /* one phase of a stride of two */
                    NAME(copy_evens)(to, from, rows, n, to_pitch, from_pitch);
                } else {
                    for (int64_t r = 0; r < rows; r++) {
                        for (int64_t d = 0; d < n; d++) {
                            to[r * to_pitch + d * g[7]] = from[r * from_pitch + d * g[11]];
                        }
                    }
                }
            }
        }
    }
}

/* Adds them, with the same g. */
TARGET static void NAME(add)(R *dst, const R *src, const int64_t *g)
{
    PARALLEL(collapse(3) if (WORTH(8 * g[0] * g[1] * g[2] * g[3])))
    for (int64_t a = 0; a < g[0]; a++) {
        for (int64_t b = 0; b < g[1]; b++) {
            for (int64_t c = 0; c < g[2]; c++) {
                R *to = dst + a * g[4] + b * g[5] + c * g[6];
                const R *from = src + a * g[8] + b * g[9] + c * g[10];
                for (int64_t d = 0; d < g[3]; d++) {
                    to[d * g[7]] += from[d * g[11]];
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
 * old y.  g: f, c, t, p, wf, wc, xc, yf, row, rows, the pitch of rows, of planes; offsets: wt, then xt.
 * bias, if any: bias[f] is added to the sum.  relu: what is not above 0 becomes 0. */
/* One tile.  The w of the next one is fetched meanwhile: it is often read once only, from memory.  xt NULL: x
 * is a panel in which each t follows the one before at a distance of `panel`.  wr: the offsets of the rows of
 * w, whose taps adjoin; NULL: rows have the stride of g. */
FORCE_INLINE void NAME(columns_tile)(const int rows, const int vectors, const int tail, const int64_t *g,
                                     const int64_t *wr, const int64_t *wt, const int64_t *xt, int64_t xc,
                                     int64_t panel, int64_t c0, int64_t c1, const R *w, const R *x, R *y,
                                     int add, const R *bias, int relu)
{
    const int64_t taps = g[2], wf = g[4], wc = g[5], yf = g[7];
    const int fetched = wr || wf < 16 ? 0 : rows; /* rows of w that do not adjoin */
    V sum[ROWS][WIDE];
    UNROLL(8)
    for (int f = 0; f < rows; f++) {
        UNROLL(4)
        for (int v = 0; v < vectors; v++) {
            const R *at = y + f * yf + v * WIDTH;
            sum[f][v] = !add                       ? NAME(zero)()
                        : tail && v == vectors - 1 ? NAME(load_n)(at, tail)
                                                   : NAME(load)(at);
        }
    }
    const R *wa = w + c0 * wc, *xa = x;
    int64_t t = 0; /* one loop over channels and taps: two nested ones take longer where there is one tap */
    for (int64_t k = (c1 - c0) * taps; k > 0; k--) {
        const R *wb = wa + (wr ? t : wt[t]), *xb = xa + (xt ? xt[t] : t * panel);
        V b[WIDE];
        if ((k & 15) < fetched) { /* a row of the next tile, for each of its cache lines */
            FETCH(wb + (rows + (k & 15)) * wf);
        }
        UNROLL(4)
        for (int v = 0; v < vectors; v++) {
            b[v] = tail && v == vectors - 1 ? NAME(load_n)(xb + v * WIDTH, tail)
                                            : NAME(load)(xb + v * WIDTH);
            IN_REGISTER(b[v]);
        }
        UNROLL(8)
        for (int f = 0; f < rows; f++) {
            const V a = NAME(splat)(wb[wr ? wr[f] : f * wf]);
            UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                sum[f][v] = NAME(madd)(a, b[v], sum[f][v]);
            }
        }
        if (++t == taps) {
            t = 0;
            wa += wc;
            xa += xc;
        }
    }
    if (FINISHES && bias) {
        UNROLL(8)
        for (int f = 0; f < rows; f++) {
            const V b = NAME(splat)(bias[f]);
            UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                sum[f][v] = NAME(plus)(sum[f][v], b);
            }
        }
    }
    if (FINISHES && relu) {
        UNROLL(8)
        for (int f = 0; f < rows; f++) {
            UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                sum[f][v] = NAME(positive)(sum[f][v]);
            }
        }
    }
    UNROLL(8)
    for (int f = 0; f < rows; f++) {
        UNROLL(4)
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
                                      int64_t f, int64_t end, const R *w, const R *x, R *y, int add,
                                      const R *bias, int relu)
{
    const int most = vectors > VECTORS ? WIDE_ROWS : ROWS;
    for (; f + most <= end; f += most) {
        NAME(columns_tile)
        (most, vectors, tail, g, NULL, wt, xt, xc, panel, c0, c1, w + f * g[4], x, y + f * g[7], add,
         bias ? bias + f : NULL, relu);
    }
    if (most > 4 && f + 4 <= end) {
        NAME(columns_tile)
        (4, vectors, tail, g, NULL, wt, xt, xc, panel, c0, c1, w + f * g[4], x, y + f * g[7], add,
         bias ? bias + f : NULL, relu);
        f += 4;
    }
    if (f + 2 <= end) {
        NAME(columns_tile)
        (2, vectors, tail, g, NULL, wt, xt, xc, panel, c0, c1, w + f * g[4], x, y + f * g[7], add,
         bias ? bias + f : NULL, relu);
        f += 2;
    }
    if (f < end) {
        NAME(columns_tile)
        (1, vectors, tail, g, NULL, wt, xt, xc, panel, c0, c1, w + f * g[4], x, y + f * g[7], add,
         bias ? bias + f : NULL, relu);
    }
}

/* One row of w, `end` columns: x is read once, row by row, and y stays in the L1 cache. */
TARGET ALONE static void NAME(columns_thin)(const int64_t *g, const int64_t *wt, const int64_t *xt,
                                            int64_t end, const R *w, const R *x, R *y, const R *bias,
                                            int relu)
{
    enum { STEP = 8 }; /* many, as each pass reads and writes y; few, so that processors fetch them ahead */
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
            UNROLL(16)
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
    for (int64_t p = 0; FINISHES && (bias || relu) && p < end; p += WIDTH) {
        const int left = end - p < WIDTH ? (int)(end - p) : WIDTH;
        V sum = NAME(load_n)(y + p, left);
        sum = bias ? NAME(plus)(sum, NAME(splat)(*bias)) : sum;
        NAME(store_n)(y + p, relu ? NAME(positive)(sum) : sum, left);
    }
}

/* Copies positions [p, p + n) of x, for channels [c0, c1) and all taps, to rows of `width` elements. */
TARGET static void NAME(pack)(const int64_t *g, const int64_t *xt, int64_t c0, int64_t c1, const R *x,
                              int64_t p, int64_t n, int64_t width, R *panel)
{
    int64_t from[WIDE * WIDTH], at[WIDE * WIDTH + 1], parts = 0;
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

/* Rows [f, end) of one strip, the `left` columns from p, for channels [c, c_end).  They are added to y unless
 * c is 0. */
TARGET ALONE static void NAME(columns_part)(const int64_t *g, const int64_t *offsets, int64_t c,
                                            int64_t c_end, int64_t p, int64_t left, int64_t f, int64_t end,
                                            const R *w, const R *x, R *y, R *panel, const R *bias,
                                            int relu)
{
    const int64_t taps = g[2], width = (left + WIDTH - 1) / WIDTH * WIDTH;
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
    if (left > VECTORS * WIDTH) {
        NAME(columns_strip)
        (WIDE, (int)left - VECTORS * WIDTH, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old, bias,
         relu);
    } else if (left == VECTORS * WIDTH) {
        NAME(columns_strip)(VECTORS, 0, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old, bias,
         relu);
    } else if (left > 2 * WIDTH) {
        NAME(columns_strip)
        (VECTORS, (int)left - 2 * WIDTH, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old, bias,
         relu);
    } else if (left > WIDTH) {
        NAME(columns_strip)
        (2, (int)left - WIDTH, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old, bias, relu);
    } else {
        NAME(columns_strip)(1, (int)left, g, wt, xt, xc, width, c, c_end, f, end, w, from, y, old, bias,
         relu);
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
                                 R *panel, const R *bias, int relu)
{
    /* strips of VECTORS vectors, the last one of up to WIDE */
    const int64_t taps = g[2], strip = VECTORS * WIDTH, widest = WIDE * WIDTH,
                  work = (g[0] + 4) * (g[3] + 4) * g[1] * taps,
                  strips = g[3] <= widest ? g[3] > 0 : (g[3] - widest + strip - 1) / strip + 1;
    const int own = taps * widest <= OWN_PANEL, shared = panel && WORTH(work) && (own || !g[8]);
    if (g[0] == 1 && !g[8] && g[1] * taps >= 64 && g[3] >= strip) {
        const int64_t each = shared ? 256 : g[3];
        PARALLEL(if (shared))
        for (int64_t p = 0; p < g[3]; p += each) {
            const int64_t left = g[3] - p;
            NAME(columns_thin)(g, offsets, offsets + taps, left < each ? left : each, w, x + p, y + p,
             bias, relu);
        }
        return;
    }
    /* a chunk of x for one strip of columns stays in the L2 cache while all rows of w read it */
    const int64_t most = (own ? (int)OWN_PANEL : (int)PANEL) / (widest * (taps > 0 ? taps : 1)),
                  chunk = most < 1 ? 1 : most, each = shared ? NAME(rows_of_part)(g[0], strips) : g[0];
    for (int64_t c = 0; c < g[1] || c == 0; c += chunk) {
        const int64_t c_end = c + chunk < g[1] ? c + chunk : g[1];
        const R *after = c_end == g[1] ? bias : NULL;
        PARALLEL(collapse(2) if (shared))
        for (int64_t f = 0; f < g[0]; f += each) {
            for (int64_t s = 0; s < strips; s++) {
                R own_panel[(int)OWN_PANEL + (int)MOST_WIDTH]; /* whole vectors are copied to its end */
                const int64_t end = f + each < g[0] ? f + each : g[0], p = s * strip;
                NAME(columns_part)
                (g, offsets, c, c_end, p, s + 1 < strips ? strip : g[3] - p, f, end, w, x, y,
                 own ? own_panel : panel, after, relu && c_end == g[1]);
            }
        }
    }
}

/* The same sums, for few rows of w, at a box of positions: y[f * yf + p] for p in planes of rows of y.
 * x is read in place.  g: f, c, t, planes, rows, elements of a row, wf, wc, xc, the pitches of x: rows,
 * planes; yf, the pitches of y: rows, planes; offsets: wt, then xt. */
/* One tile: `rows` rows of positions, `vectors` vectors of each; tail: the elements of the last one, or 0. */
FORCE_INLINE void NAME(box_tile)(const int rows, const int vectors, const int tail, const int64_t *g,
                                 const int64_t *offsets, const R *w, const R *x, R *y,
                                 const R *bias, int relu)
{
    const int64_t taps = g[2], pitch = g[9];
    V sum[BOX_ROWS][WIDE];
    UNROLL(8)
    for (int r = 0; r < rows; r++) {
        UNROLL(4)
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = NAME(zero)();
        }
    }
    for (int64_t c = 0; c < g[1]; c++, w += g[7], x += g[8]) {
        for (int64_t t = 0; t < taps; t++) {
            const R *at = x + offsets[taps + t];
            const V a = NAME(splat)(w[offsets[t]]);
            UNROLL(8)
            for (int r = 0; r < rows; r++) {
                UNROLL(4)
                for (int v = 0; v < vectors; v++) {
                    const R *from = at + r * pitch + v * WIDTH;
                    const V b = tail && v == vectors - 1 ? NAME(load_n)(from, tail) : NAME(load)(from);
                    sum[r][v] = NAME(madd)(a, b, sum[r][v]);
                }
            }
        }
    }
    if (FINISHES && bias) {
        const V b = NAME(splat)(*bias);
        UNROLL(8)
        for (int r = 0; r < rows; r++) {
            UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = NAME(plus)(sum[r][v], b);
            }
        }
    }
    if (FINISHES && relu) {
        UNROLL(8)
        for (int r = 0; r < rows; r++) {
            UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = NAME(positive)(sum[r][v]);
            }
        }
    }
    UNROLL(8)
    for (int r = 0; r < rows; r++) {
        UNROLL(4)
        for (int v = 0; v < vectors; v++) {
            R *to = y + r * g[12] + v * WIDTH;
            if (tail && v == vectors - 1) {
                NAME(store_n)(to, sum[r][v], tail);
            } else {
                NAME(store)(to, sum[r][v]);
            }
        }
    }
}

/* The same with 3 x 3 taps whose rows are those of x: BOX_ROWS rows read each vector of x once for each
 * column of taps. */
FORCE_INLINE void NAME(box_tile_3x3)(const int vectors, const int tail, const int64_t *g,
                                     const int64_t *offsets, const R *w, const R *x, R *y,
                                 const R *bias, int relu)
{
    V sum[BOX_ROWS][WIDE];
    UNROLL(4)
    for (int r = 0; r < BOX_ROWS; r++) {
        UNROLL(4)
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = NAME(zero)();
        }
    }
    for (int64_t c = 0; c < g[1]; c++, w += g[7], x += g[8]) {
        V a[9];
        UNROLL(9)
        for (int t = 0; t < 9; t++) {
            a[t] = NAME(splat)(w[offsets[t]]);
        }
        UNROLL(6)
        for (int i = 0; i < BOX_ROWS + 2; i++) {
            UNROLL(3)
            for (int k = 0; k < 3; k++) {
                const R *at = x + offsets[9 + k] + i * g[9];
                UNROLL(4)
                for (int v = 0; v < vectors; v++) {
                    const R *from = at + v * WIDTH;
                    V b = tail && v == vectors - 1 ? NAME(load_n)(from, tail) : NAME(load)(from);
                    IN_REGISTER(b);
                    UNROLL(3)
                    for (int j = 2; j >= 0; j--) { /* row i - j of y, row j of the taps */
                        if (i - j >= 0 && i - j < BOX_ROWS) {
                            sum[i - j][v] = NAME(madd)(a[3 * j + k], b, sum[i - j][v]);
                        }
                    }
                }
            }
        }
    }
    if (FINISHES && bias) {
        const V b = NAME(splat)(*bias);
        UNROLL(4)
        for (int r = 0; r < BOX_ROWS; r++) {
            UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = NAME(plus)(sum[r][v], b);
            }
        }
    }
    if (FINISHES && relu) {
        UNROLL(4)
        for (int r = 0; r < BOX_ROWS; r++) {
            UNROLL(4)
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = NAME(positive)(sum[r][v]);
            }
        }
    }
    UNROLL(4)
    for (int r = 0; r < BOX_ROWS; r++) {
        UNROLL(4)
        for (int v = 0; v < vectors; v++) {
            R *to = y + r * g[12] + v * WIDTH;
            if (tail && v == vectors - 1) {
                NAME(store_n)(to, sum[r][v], tail);
            } else {
                NAME(store)(to, sum[r][v]);
            }
        }
    }
}

/* Are the taps 3 x 3, and their rows those of x? */
FORCE_INLINE int NAME(is_3x3)(const int64_t *g, const int64_t *xt)
{
    int good = g[2] == 9;
    for (int t = 3; t < 9 && good; t++) {
        good = xt[t] == xt[t - 3] + g[9];
    }
    return good;
}

/* All rows of a plane, for `vectors` vectors of each. */
FORCE_INLINE void NAME(box_strip)(const int vectors, const int tail, const int64_t *g, const int64_t *offsets,
                                  const R *w, const R *x, R *y, const R *bias, int relu)
{
    int64_t r = 0;
    if (NAME(is_3x3)(g, offsets + g[2])) {
        for (; r + BOX_ROWS <= g[4]; r += BOX_ROWS) {
            NAME(box_tile_3x3)(vectors, tail, g, offsets, w, x + r * g[9], y + r * g[12], bias, relu);
        }
    }
    for (; r + BOX_ROWS <= g[4]; r += BOX_ROWS) {
        NAME(box_tile)(BOX_ROWS, vectors, tail, g, offsets, w, x + r * g[9], y + r * g[12], bias, relu);
    }
    for (; r + 2 <= g[4]; r += 2) {
        NAME(box_tile)(2, vectors, tail, g, offsets, w, x + r * g[9], y + r * g[12], bias, relu);
    }
    if (r < g[4]) {
        NAME(box_tile)(1, vectors, tail, g, offsets, w, x + r * g[9], y + r * g[12], bias, relu);
    }
}

/* One plane. */
TARGET ALONE static void NAME(box_plane)(const int64_t *g, const int64_t *offsets, const R *w, const R *x,
                                         R *y, const R *bias, int relu)
{
    int64_t p = 0;
    for (; p + WIDE * WIDTH <= g[5]; p += WIDE * WIDTH) {
        NAME(box_strip)(WIDE, 0, g, offsets, w, x + p, y + p, bias, relu);
    }
    const int left = (int)(g[5] - p);
    if (left > 3 * WIDTH) {
        NAME(box_strip)(WIDE, left - 3 * WIDTH, g, offsets, w, x + p, y + p, bias, relu);
    } else if (left > 2 * WIDTH) {
        NAME(box_strip)
        ((int)WIDE < 3 ? (int)WIDE : 3, left - 2 * WIDTH, g, offsets, w, x + p, y + p, bias, relu);
    } else if (left > WIDTH) {
        NAME(box_strip)(2, left - WIDTH, g, offsets, w, x + p, y + p, bias, relu);
    } else if (left > 0) {
        NAME(box_strip)(1, left, g, offsets, w, x + p, y + p, bias, relu);
    }
}

TARGET static void NAME(box)(const int64_t *g, const int64_t *offsets, const R *w, const R *x, R *y,
                             const R *bias, int relu)
{
    PARALLEL(collapse(2) if (WORTH(g[0] * g[1] * g[2] * g[3] * g[4] * (g[5] + 4))))
    for (int64_t f = 0; f < g[0]; f++) {
        for (int64_t n = 0; n < g[3]; n++) {
            NAME(box_plane)(g, offsets, w + f * g[6], x + n * g[10], y + f * g[11] + n * g[13],
             bias ? bias + f : NULL, relu);
        }
    }
}
