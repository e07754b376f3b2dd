/* qr.h: reflections, and the QR factors.  After rows.h. */

/* The reflection H = 1 - t (1, v) (1, v)^T that maps (x[0], ..., x[n - 1]) to (beta, 0, ...): x becomes
 * (beta, v), t is returned.  0: H is 1. */
TARGET static R NAME(reflection)(R *x, int64_t stride, int64_t n)
{
    const R rest = n > 1 ? NAME(norm)(x + stride, stride, n - 1) : 0, first = n > 0 ? x[0] : 0;
    if (rest == 0) {
        return 0;
    }
    const R size = NAME(length)(first, rest), beta = first >= 0 ? -size : size, by = first - beta;
    for (int64_t i = 1; i < n; i++) {
        x[i * stride] /= by;
    }
    x[0] = beta;
    return (beta - first) / beta;
}

/* a (m, n) = H a; v: as `reflection` left it, v[0] counts as 1; work: n elements */
TARGET static void NAME(reflect)(R t, const R *v, int64_t stride, R *a, int64_t lda, int64_t m, int64_t n,
                                 R *work)
{
    if (t == 0) {
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        work[j] = a[j];
    }
    for (int64_t i = 1; i < m; i++) {
        NAME(add_row)(work, v[i * stride], a + i * lda, n);
    }
    NAME(scale_row)(work, t, n);
    NAME(add_row)(a, -1, work, n);
    for (int64_t i = 1; i < m; i++) {
        NAME(add_row)(a + i * lda, -v[i * stride], work, n);
    }
}

/* a (m, n) = a H, from the right; v is adjacent and v[0] counts as 1 */
TARGET static void NAME(reflect_columns)(R t, const R *v, R *a, int64_t lda, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m && t != 0; i++) {
        R *row = a + i * lda;
        const R sum = t * (row[0] + NAME(dot)(row + 1, v + 1, n - 1));
        row[0] -= sum;
        NAME(add_row)(row + 1, -sum, v + 1, n - 1);
    }
}

/* a (m, n) becomes R, with the vectors of the reflections below its diagonal; t: min(m, n) elements */
TARGET static void NAME(qr_rows)(R *a, int64_t lda, int64_t m, int64_t n, R *t, R *work)
{
    for (int64_t k = 0; k < m && k < n; k++) {
        R *at = a + k * lda + k;
        t[k] = NAME(reflection)(at, lda, m - k);
        NAME(reflect)(t[k], at, lda, at + 1, lda, m - k, n - k - 1, work);
    }
}

/* q (m, c) = the first c columns of the product of k reflections, with the vectors in a as `qr_rows` left
 * them */
TARGET static void NAME(q_of)(R *q, int64_t ldq, int64_t m, int64_t c, const R *a, int64_t lda, int64_t k,
                              const R *t,
                              R *work)
{
    NAME(unit)(q, ldq, m, c);
    while (k-- > 0) {
        NAME(reflect)(t[k], a + k * lda + k, lda, q + k * ldq + k, ldq, m - k, c - k, work);
    }
}

/* g: m, n, columns of q, is q wanted?  in: a (m, n); out: q (m, c), r (c, n); work: (m + 2) max(m, n)
 * elements */
TARGET static int64_t NAME(qr)(const int64_t *g, const R *a, R *q, R *r, R *work)
{
    const int64_t m = g[0], n = g[1], c = g[2], least = m < n ? m : n, most = m > n ? m : n;
    R *f = work + 2 * most, *t = work + most;
    NAME(copied)(f, n, a, n, m, n);
    NAME(qr_rows)(f, n, m, n, t, work);
    for (int64_t i = 0; i < c; i++) {
        for (int64_t j = 0; j < n; j++) {
            r[i * n + j] = j >= i ? f[i * n + j] : 0;
        }
    }
    if (g[3]) {
        NAME(q_of)(q, c, m, c, f, n, least, t, work);
    }
    return 0;
}
