/* cholesky.h: the Cholesky factor, by rows of its transpose.  After rows.h and dense.h. */

/* a (n, n), of which rows are read from the diagonal on, becomes U with U^T U = a.  Returns 1 + the row of
 * the first pivot that is 0 or negative, or 0. */
TARGET static int64_t NAME(cholesky_rows)(R *a, int64_t lda, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        R *row = a + k * lda;
        if (k % 4 == 0 && k + 4 <= n) { /* four rows lose those above them */
            NAME(lose_rows)(row + k, a + k, lda, k, n - k);
        }
        for (int64_t j = k + 4 - k % 4 <= n ? k - k % 4 : 0; j < k; j++) {
            NAME(add_row)(row + k, -a[j * lda + k], a + j * lda + k, n - k);
        }
        if (row[k] <= 0) { /* NaN goes on, as in NumPy */
            return k + 1;
        }
        const R pivot = NAME(root)(row[k]);
        NAME(divide_row)(row + k, pivot, n - k);
        row[k] = pivot;
    }
    return 0;
}

/* g: n.  in: a, whose lower triangle is read; out: L, zeros above its diagonal; work: n n elements.  That
 * pivot is left in work[0]. */
TARGET static int64_t NAME(cholesky)(const int64_t *g, const R *a, R *l, R *work)
{
    const int64_t n = g[0];
    for (int64_t i = 0; i < n; i += 8) {
        NAME(transposed)(work + i, n, a + i * n, n, n - i < 8 ? n - i : 8, n - i < 8 ? n : i + 8);
    }
    const int64_t bad = NAME(cholesky_rows)(work, n, n);
    if (bad) {
        work[0] = work[(bad - 1) * n + bad - 1];
        return bad;
    }
    for (int64_t i = 0; i < n; i++) {
        if (i % 8 == 0) {
            NAME(transposed)(l + i * n + i, n, work + i * n + i, n, n - i < 8 ? n - i : 8, n - i);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++) {
            l[i * n + j] = 0;
        }
    }
    return 0;
}
