/* triangular.h: systems with a triangular matrix.  After rows.h. */

/* x (n, k) = the solution of t x = b, with b in x; t is lower or upper triangular, transposed if `trans`,
 * with ones on its diagonal if `unit`.  Returns 1 + the row of the first zero on the diagonal, or 0. */
TARGET static int64_t NAME(triangular_rows)(const R *t, int64_t ldt, R *x, int64_t ldx, int64_t n, int64_t k,
                                            int trans, int lower, int unit)
{
    const int forward = trans ? !lower : lower;
    for (int64_t i = 0; i < n && !unit; i++) {
        if (t[i * ldt + i] == 0) {
            return i + 1;
        }
    }
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = forward ? step : n - 1 - step, from = lower ? 0 : i + 1, to = lower ? i : n;
        R *row = x + i * ldx;
        const R *line = t + i * ldt;
        if (k == 1 && !trans && ldx == 1) {
            row[0] -= NAME(dot)(line + from, x + from, to - from);
        } else if (!trans) {
            int64_t j = from;
            for (; j + 4 <= to; j += 4) {
                const R a[4] = { -line[j], -line[j + 1], -line[j + 2], -line[j + 3] };
                NAME(add_rows)(row, a, x + j * ldx, ldx, k);
            }
            for (; j < to; j++) {
                NAME(add_row)(row, -line[j], x + j * ldx, k);
            }
        }
        if (!unit) {
            NAME(divide_row)(row, line[i], k);
        }
        if (trans && k == 1 && ldx == 1) {
            NAME(add_row)(x + from, -row[0], line + from, to - from);
        } else if (trans) {
            for (int64_t j = from; j < to; j++) {
                NAME(add_row)(x + j * ldx, -line[j], row, k);
            }
        }
    }
    return 0;
}

/* g: n, k, trans, lower, unit.  in: the matrix, b (n, k); out: x (n, k) */
TARGET static int64_t NAME(triangular)(const int64_t *g, const R *t, const R *b, R *x, R *work)
{
    const int64_t n = g[0], k = g[1];
    NAME(copied)(x, k, b, k, n, k);
    work[0] = 0;
    return NAME(triangular_rows)(t, n, x, k, n, k, g[2] != 0, g[3] != 0, g[4] != 0);
}
