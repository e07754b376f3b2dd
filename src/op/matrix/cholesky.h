/* cholesky.h: the Cholesky factor, by rows of its transpose.  After rows.h. */

/* a (n, n), of which rows are read from the diagonal on, becomes U with U^T U = a.  Returns 1 + the row of
 * the first pivot that is 0 or negative, or 0. */
TARGET static int64_t NAME(cholesky_rows)(R *a, int64_t lda, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        R *row = a + k * lda;
        if (row[k] <= 0) { /* NaN goes on, as in NumPy */
            return k + 1;
        }
        const R pivot = NAME(root)(row[k]);
        NAME(divide_row)(row + k, pivot, n - k);
        row[k] = pivot;
        for (int64_t i = k + 1; i < n; i++) {
            NAME(add_row)(a + i * lda + i, -row[i], row + i, n - i);
        }
    }
    return 0;
}

/* g: n.  in: a, whose lower triangle is read; out: L, zeros above its diagonal; work: n n elements.  That
 * pivot is left in work[0]. */
TARGET static int64_t NAME(cholesky)(const int64_t *g, const R *a, R *l, R *work)
{
    const int64_t n = g[0];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            work[j * n + i] = a[i * n + j];
        }
    }
    const int64_t bad = NAME(cholesky_rows)(work, n, n);
    if (bad) {
        work[0] = work[(bad - 1) * n + bad - 1];
        return bad;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            l[i * n + j] = j <= i ? work[j * n + i] : 0;
        }
    }
    return 0;
}
