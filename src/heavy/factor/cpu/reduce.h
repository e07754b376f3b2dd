/* reduce.h: reflections of larger matrices to tridiagonal and bidiagonal ones.  After rows.h and
 * op/matrix/all.h.
 *
 * Each step multiplies the matrix by a vector; what a panel of steps changes is subtracted later, as one
 * product of matrices.  Rows begin at multiples of a vector, and vectors have zeros before their first
 * element, so that loops run from a multiple of a vector on. */
#define WIDE_STEP ((int64_t)NAME(WIDTH))

/* The matrix as `a`, with elements that are about as large as 1; m >= n.  0: some are not finite. */
TARGET static int NAME(read_matrix)(struct mc_factor_spectrum *s, const void *from)
{
    const int64_t m = s->m, n = s->n, lda = s->lda;
    const R *x = (const R *)from;
    R *a = (R *)s->a, square = 0, by = 1;
    memset(a, 0, (size_t)(m * lda) * sizeof(R));
    if (s->wide || !s->svd) {
        NAME(transposed)(a, lda, x, s->svd ? m : n, n, m);
    } else {
        NAME(copied)(a, lda, x, n, m, n);
    }
    for (int64_t i = 0; i < m; i++) {
        if (!s->svd) { /* the rows from the diagonal on */
            memset(a + i * lda, 0, (size_t)i * sizeof(R));
        }
        square += NAME(dot)(a + i * lda, a + i * lda, n);
    }
    if (!(square > (R)1e-6 && square < (R)1e12)) {
        if (!NAME(finite)(a, m * lda)) {
            return 0;
        }
        by = NAME(power_for)(a, m * lda);
        NAME(scale_row)(a, by, m * lda);
    }
    s->by = (double)by;
    return 1;
}

/* ---- passes ---- */

/* Of rows [first, rows) and columns [column, n): product = a by, if by is not NULL; sums, a row of them for
 * each chunk of rows, = left^T a, if left is not NULL.  triangle: the rows begin at the diagonal, with zeros
 * before and on it. */
struct NAME(pass) {
    const R *a;
    int64_t lda, first, rows, column, n;
    const R *by, *left;
    R *product, *sums;
    int triangle;
};

FORCE_INLINE void NAME(pass_rows)(const struct NAME(pass) *p, int64_t i, int rows, int64_t from, R *sums,
                                  int multiply)
{
    NAME(v) left[4], dot[4];
    const R *a[4];
    for (int r = 0; r < 4; r++) { /* beyond the last row: the first one, times 0 */
        const int64_t row = r < rows ? i + r : i;
        a[r] = p->a + row * p->lda;
        left[r] = NAME(splat)(sums && r < rows ? p->left[row] : 0);
        dot[r] = NAME(zero)();
    }
    for (int64_t j = from; j < p->n; j += WIDE_STEP) {
        NAME(v) e[4];
        for (int r = 0; r < 4; r++) {
            e[r] = NAME(load)(a[r] + j);
        }
        if (multiply) {
            const NAME(v) by = NAME(load)(p->by + j);
            for (int r = 0; r < 4; r++) {
                dot[r] = NAME(madd)(e[r], by, dot[r]);
            }
        }
        if (sums) {
            NAME(v) s = NAME(load)(sums + j), t = NAME(times)(left[1], e[1]);
            s = NAME(madd)(left[0], e[0], s);
            t = NAME(madd)(left[3], e[3], t);
            NAME(store)(sums + j, NAME(plus)(NAME(madd)(left[2], e[2], s), t));
        }
    }
    for (int r = 0; r < rows && multiply; r++) {
        R lane[16], sum = 0;
        NAME(store)(lane, dot[r]);
        for (int l = 0; l < WIDE_STEP; l++) {
            sum += lane[l];
        }
        p->product[i + r] = sum;
    }
}

TARGET static void NAME(pass_chunk)(void *arg, int64_t task, int slot)
{
    const struct NAME(pass) *p = (const struct NAME(pass) *)arg;
    const int64_t start = p->first + task * SPECTRA_CHUNK, end = MC_MIN(start + SPECTRA_CHUNK, p->rows);
    int64_t from = (p->triangle ? start : p->column) / WIDE_STEP * WIDE_STEP;
    R *sums = p->left ? p->sums + task * p->lda : NULL;
    (void)slot;
    for (int64_t j = from; sums && j < p->n; j += WIDE_STEP) {
        NAME(store)(sums + j, NAME(zero)());
    }
    for (int64_t i = start; i < end; i += 4) {
        const int rows = (int)MC_MIN(end - i, (int64_t)4);
        from = p->triangle ? i / WIDE_STEP * WIDE_STEP : from;
        if (p->left && p->by) {
            NAME(pass_rows)(p, i, rows, from, sums, 1);
        } else if (p->left) {
            NAME(pass_rows)(p, i, rows, from, sums, 0);
        } else {
            NAME(pass_rows)(p, i, rows, from, NULL, 1);
        }
    }
}

TARGET static void NAME(pass_all)(const struct mc_factor_spectrum *s, struct NAME(pass) *p)
{
    const double elements = (double)(p->rows - p->first) * (double)(p->n - p->column);
    mc_team_tasks(NAME(pass_chunk), p, (p->rows - p->first + SPECTRA_CHUNK - 1) / SPECTRA_CHUNK, s->slots,
                  s->threads, elements * sizeof(R) * (p->triangle ? 1e-11 : 1.5e-11));
}

/* `reflection` of op/matrix/qr.h, by vectors; x[0] becomes 1, *beta what it was mapped to. */
TARGET static R NAME(reflection_row)(R *x, int64_t n, R *beta)
{
    const R square = n > 1 ? NAME(dot)(x + 1, x + 1, n - 1) : 0, first = n > 0 ? x[0] : 0,
            rest = square > (R)1e-30 && square < (R)1e30 ? NAME(root)(square)
                   : n > 1                                ? NAME(norm)(x + 1, 1, n - 1)
                                                          : 0;
    *beta = first;
    if (n > 0) {
        x[0] = 1;
    }
    if (rest == 0) {
        return 0;
    }
    const R size = NAME(length)(first, rest), to = first >= 0 ? -size : size;
    NAME(divide_row)(x + 1, first - to, n - 1);
    *beta = to;
    return (to - first) / to;
}

/* y = the sums of all chunks, from `column` on */
TARGET static void NAME(add_chunks)(const struct NAME(pass) *p, R *y)
{
    memset(y, 0, (size_t)p->lda * sizeof(R));
    for (int64_t c = 0; p->first + c * SPECTRA_CHUNK < p->rows; c++) {
        const int64_t from = p->triangle ? p->first + c * SPECTRA_CHUNK : p->column;
        NAME(add_row)(y + from, 1, p->sums + c * p->lda + from, p->n - from);
    }
}

/* The diagonal is moved from `a` to `diagonal`, and zeros stand before it as far as passes read. */
TARGET static void NAME(take_diagonal)(R *a, int64_t lda, int64_t n, int64_t first, R *diagonal)
{
    for (int64_t i = first; i < n; i++) {
        diagonal[i] += a[i * lda + i];
        for (int64_t j = (i > 3 ? i - 3 : 0) / WIDE_STEP * WIDE_STEP; j <= i; j++) {
            a[i * lda + j] = 0;
        }
    }
}

/* a (rows, n) from `row` and `column` on loses x^T y of the panel's rows, 2 count of them. */
TARGET static void NAME(update)(struct mc_factor_spectrum *s, R *x, int64_t ldx, int64_t row, R *y,
                                int64_t ldy, int64_t column, int64_t count, int above)
{
    const struct mc_factor_update u = { .m = s->m - row, .n = s->n - column, .k = count, .alpha = -1,
                                        .a = x + row, .a_row = 1, .a_col = ldx, .b = y + column, .b_row = ldy,
                                        .b_col = 1, .c = (R *)s->a + row * s->lda + column, .c_row = s->lda,
                                        .above = above };
    mc_factor_update(sizeof(R) == 4 ? MC_FLOAT32 : MC_FLOAT64, &u, s->panels, s->slots, s->threads);
}

/* Of the rows from the diagonal on.  Row k of vq has the vector of reflection k, from element k + 1 on. */
TARGET static void NAME(tridiagonal_panels)(struct mc_factor_spectrum *s)
{
    const int64_t n = s->n, lda = s->lda;
    R *a = (R *)s->a, *d = (R *)s->d, *e = (R *)s->e, *t = (R *)s->tq, *w = (R *)s->x,
      *diagonal = (R *)s->row[0], *product = (R *)s->row[1];
    memset(diagonal, 0, (size_t)n * sizeof(R));
    NAME(take_diagonal)(a, lda, n, 0, diagonal);
    for (int64_t k = 0, start = 0; k < n; k++) {
        const int64_t rest = n - k - 1, count = k - start;
        R *x = (R *)s->vq + k * lda, *v = (R *)s->vq + start * lda, *y = w + count * lda;
        memset(x, 0, (size_t)lda * sizeof(R));
        memcpy(x + k + 1, a + k * lda + k + 1, (size_t)rest * sizeof(R));
        for (int64_t j = 0; j < count; j++) {
            const R vk = v[j * lda + k], wk = w[j * lda + k];
            diagonal[k] -= 2 * vk * wk;
            NAME(add_two)(x + k + 1, -vk, w + j * lda + k + 1, -wk, v + j * lda + k + 1, rest);
        }
        d[k] = diagonal[k];
        t[k] = NAME(reflection_row)(x + k + 1, rest, &e[k]);
        struct NAME(pass) p = { .a = a, .lda = lda, .first = k + 1, .rows = n, .column = k + 1, .n = n,
                                .by = x, .left = x, .product = product, .sums = (R *)s->sums, .triangle = 1 };
        NAME(pass_all)(s, &p);
        NAME(add_chunks)(&p, y);
        for (int64_t i = k + 1; i < n; i++) {
            y[i] += product[i] + diagonal[i] * x[i];
        }
        for (int64_t j = 0; j < count; j++) {
            const R *vj = v + j * lda + k + 1, *wj = w + j * lda + k + 1;
            NAME(add_two)(y + k + 1, -NAME(dot)(wj, x + k + 1, rest), vj, -NAME(dot)(vj, x + k + 1, rest), wj,
                          rest);
        }
        NAME(scale_row)(y + k + 1, t[k], rest);
        NAME(add_row)(y + k + 1, -t[k] / 2 * NAME(dot)(y + k + 1, x + k + 1, rest), x + k + 1, rest);
        if (count + 1 == SPECTRA_PANEL && rest > 0) {
            memcpy(w + SPECTRA_PANEL * lda, v, (size_t)(SPECTRA_PANEL * lda) * sizeof(R));
            memcpy((R *)s->y + SPECTRA_PANEL * lda, w, (size_t)(SPECTRA_PANEL * lda) * sizeof(R));
            memcpy(s->y, v, (size_t)(SPECTRA_PANEL * lda) * sizeof(R));
            NAME(update)(s, (R *)s->y, lda, k + 1, w, lda, k + 1, 2 * SPECTRA_PANEL, 1);
            NAME(take_diagonal)(a, lda, n, k + 1, diagonal);
            start = k + 1;
        }
    }
}

/* a is m by n, m >= n.  Rows of vq and vp have the vectors u and v of the reflections from the left, from
 * element k on, and from the right, from k + 1 on: a loses u y^T + x v^T. */
TARGET static void NAME(bidiagonal_panels)(struct mc_factor_spectrum *s)
{
    const int64_t m = s->m, n = s->n, lda = s->lda, ldq = s->ldq;
    R *a = (R *)s->a, *d = (R *)s->d, *e = (R *)s->e, *tq = (R *)s->tq, *tp = (R *)s->tp;
    for (int64_t k = 0, start = 0; k < n; k++) {
        const int64_t rest = n - k - 1, below = m - k - 1, count = k - start;
        R *left = (R *)s->vq + k * ldq, *right = (R *)s->vp + k * lda, *u = (R *)s->vq + start * ldq,
          *v = (R *)s->vp + start * lda, *xs = (R *)s->x, *ys = (R *)s->y, *x = xs + count * ldq,
          *y = ys + count * lda;
        memset(left, 0, (size_t)ldq * sizeof(R));
        memset(right, 0, (size_t)lda * sizeof(R));
        memset(x, 0, (size_t)ldq * sizeof(R));
        for (int64_t i = k; i < m; i++) {
            left[i] = a[i * lda + k];
        }
        for (int64_t j = 0; j < count; j++) {
            NAME(add_two)(left + k, -ys[j * lda + k], u + j * ldq + k, -v[j * lda + k], xs + j * ldq + k,
                          m - k);
        }
        tq[k] = NAME(reflection_row)(left + k, m - k, &d[k]);
        tp[k] = e[k] = 0;
        if (rest == 0) {
            return;
        }
        struct NAME(pass) p = { .a = a, .lda = lda, .first = k, .rows = m, .column = k + 1, .n = n,
                                .left = left, .sums = (R *)s->sums };
        NAME(pass_all)(s, &p);
        NAME(add_chunks)(&p, y);
        for (int64_t j = 0; j < count; j++) {
            NAME(add_two)(y + k + 1, -NAME(dot)(u + j * ldq + k, left + k, m - k), ys + j * lda + k + 1,
                          -NAME(dot)(xs + j * ldq + k, left + k, m - k), v + j * lda + k + 1, rest);
        }
        NAME(scale_row)(y + k + 1, tq[k], rest);
        memcpy(right + k + 1, a + k * lda + k + 1, (size_t)rest * sizeof(R));
        for (int64_t j = 0; j <= count; j++) {
            NAME(add_two)(right + k + 1, -u[j * ldq + k], ys + j * lda + k + 1, -xs[j * ldq + k],
                          v + j * lda + k + 1, rest);
        }
        tp[k] = NAME(reflection_row)(right + k + 1, rest, &e[k]);
        p = (struct NAME(pass)){ .a = a, .lda = lda, .first = k + 1, .rows = m, .column = k + 1, .n = n,
                                 .by = right, .product = x };
        NAME(pass_all)(s, &p);
        for (int64_t j = 0; j < count; j++) {
            const R y_by = NAME(dot)(ys + j * lda + k + 1, right + k + 1, rest),
                    v_by = NAME(dot)(v + j * lda + k + 1, right + k + 1, rest);
            NAME(add_two)(x + k + 1, -y_by, u + j * ldq + k + 1, -v_by, xs + j * ldq + k + 1, below);
        }
        NAME(add_row)(x + k + 1, -NAME(dot)(y + k + 1, right + k + 1, rest), left + k + 1, below);
        NAME(scale_row)(x + k + 1, tp[k], below);
        if (count + 1 == SPECTRA_PANEL) {
            NAME(update)(s, u, ldq, k + 1, ys, lda, k + 1, SPECTRA_PANEL, 0);
            NAME(update)(s, xs, ldq, k + 1, v, lda, k + 1, SPECTRA_PANEL, 0);
            start = k + 1;
        }
    }
}

TARGET static void NAME(reduce_all)(struct mc_factor_spectrum *s)
{
    if (s->svd) {
        NAME(bidiagonal_panels)(s);
    } else {
        NAME(tridiagonal_panels)(s);
    }
}

/* ---- blocks of reflections ---- */

/* l (b, b) = T^T: its diagonal has the factors, before it are those of the rows above, times vv = V^T V. */
TARGET static void NAME(block_t)(void *l_, const void *vv_, const void *factor_, int64_t b)
{
    R *l = (R *)l_;
    const R *vv = (const R *)vv_, *factor = (const R *)factor_;
    memset(l, 0, (size_t)(b * b) * sizeof(R));
    for (int64_t i = 0; i < b; i++) {
        for (int64_t k = 0; k < i; k++) {
            NAME(add_row)(l + i * b, -factor[i] * vv[i * b + k], l + k * b, k + 1);
        }
        l[i * b + i] = factor[i];
    }
}
#undef WIDE_STEP
