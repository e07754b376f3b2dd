/* lu.h: the LU factors with partial pivoting, and systems of equations.  After rows.h and triangular.h. */

/* a (m, n) becomes L without its diagonal of ones, and U.  It is a part of m rows of `width` elements,
 * which begin at `rows` and are exchanged as a whole, with their numbers in `order`.  Returns the number of
 * exchanges. */
TARGET static int64_t NAME(lu_rows)(R *a, int64_t lda, int64_t m, int64_t n, R *rows, int64_t width,
                                    int64_t *order)
{
    int64_t exchanges = 0;
    for (int64_t k = 0; k < m && k < n; k++) {
        int64_t at = k;
        R most = NAME(magnitude)(a[k * lda + k]);
        for (int64_t i = k + 1; i < m; i++) {
            const R x = NAME(magnitude)(a[i * lda + k]);
            at = x > most ? i : at;
            most = x > most ? x : most;
        }
        if (at != k) {
            const int64_t other = order[k];
            NAME(swap_rows)(rows + k * lda, rows + at * lda, width);
            order[k] = order[at];
            order[at] = other;
            exchanges++;
        }
        const R pivot = a[k * lda + k];
        for (int64_t i = k + 1; i < m && pivot != 0; i++) {
            R *row = a + i * lda;
            row[k] /= pivot;
            NAME(add_row)(row + k + 1, -row[k], a + k * lda + k + 1, n - k - 1);
        }
    }
    return exchanges;
}

/* g: m, n.  in: a (m, n); out: its factors (m, n), the order of its rows (m), 1 or -1: the sign of that
 * order */
TARGET static int64_t NAME(lu)(const int64_t *g, const R *a, R *f, int64_t *order, R *sign, R *work)
{
    const int64_t m = g[0], n = g[1];
    NAME(copied)(f, n, a, n, m, n);
    for (int64_t i = 0; i < m; i++) {
        order[i] = i;
    }
    work[0] = 0;
    sign[0] = (R)(NAME(lu_rows)(f, n, m, n, f, n, order) % 2 ? -1 : 1);
    return 0;
}

/* g: n, k, whole.  in: a (n, n), b (n, k), or with `whole` nothing: then b is the unit matrix and k is n.
 * out: x (n, k); work: n n elements, and as many as n numbers of 64 bits.  Returns 1 + the row of the first
 * pivot that is zero, or 0. */
TARGET static int64_t NAME(solve)(const int64_t *g, const R *a, const R *b, R *x, R *work)
{
    const int64_t n = g[0], k = g[1];
    int64_t *order = (int64_t *)(void *)(work + (n * n + 1) / 2 * 2);
    NAME(copied)(work, n, a, n, n, n);
    for (int64_t i = 0; i < n; i++) {
        order[i] = i;
    }
    NAME(lu_rows)(work, n, n, n, work, n, order);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < k; j++) {
            x[i * k + j] = g[2] ? (R)(order[i] == j) : b[order[i] * k + j];
        }
    }
    const int64_t bad = NAME(triangular_rows)(work, n, x, k, n, 0, 0, 0, 0); /* looks for a zero */
    if (bad) {
        work[0] = 0;
        return bad;
    }
    NAME(triangular_rows)(work, n, x, k, n, k, 0, 1, 1);
    return NAME(triangular_rows)(work, n, x, k, n, k, 0, 0, 0);
}
