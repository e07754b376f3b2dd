/* eigh.h: eigenvalues and eigenvectors of symmetric matrices: reflections to a tridiagonal matrix, then the
 * implicit QL iteration.  After rows.h and qr.h. */

/* a (n, n), symmetric, becomes tridiagonal: d (n) its diagonal, e[i] beside d[i] and d[i + 1]; row i of a
 * keeps the vector of reflection i from column i + 1 on, and t[i] its factor.  work: n elements */
TARGET static void NAME(tridiagonal)(R *a, int64_t n, R *d, R *e, R *t, R *work)
{
    for (int64_t k = 0; k < n; k++) {
        const int64_t m = n - k - 1;
        R *v = a + k * n + k + 1, *b = v + n;
        d[k] = a[k * n + k];
        t[k] = m > 0 ? NAME(reflection)(v, 1, m) : 0;
        e[k] = m > 0 ? v[0] : 0;
        if (t[k] == 0) {
            continue;
        }
        v[0] = 1;
        for (int64_t i = 0; i < m; i++) {
            work[i] = 0;
        }
        int64_t i = 0;
        for (; i + 4 <= m; i += 4) {
            NAME(add_rows)(work, v + i, b + i * n, n, m);
        }
        for (; i < m; i++) {
            NAME(add_row)(work, v[i], b + i * n, m);
        }
        NAME(scale_row)(work, t[k], m);
        NAME(add_row)(work, -t[k] / 2 * NAME(dot)(work, v, m), v, m);
        for (i = 0; i < m; i++) {
            NAME(add_two)(b + i * n, -v[i], work, -work[i], v, m);
        }
        v[0] = e[k];
    }
}

/* q (n, n) = the transpose of the product of the reflections that `tridiagonal` left in a; work: 2 n
 * elements */
TARGET static void NAME(tridiagonal_q)(R *q, R *a, int64_t n, const R *t, R *work)
{
    NAME(unit)(q, n, n, n);
    for (int64_t k = n - 2; k >= 0; k--) {
        /* of the columns from k + 1 on only the block of rows from k + 1 on is not the unit matrix */
        NAME(reflect)(t[k], a + k * n + k + 1, 1, q + (k + 1) * n + k + 1, n, n - k - 1, n - k - 1, work);
    }
    NAME(transposed)(a, n, q, n, n, n);
    NAME(copied)(q, n, a, n, n, n);
}

/* The eigenvalues of a tridiagonal matrix are left in d; the rows of q (n, c), if any, are rotated with them.
 * Returns 1 + the number of an eigenvalue that did not converge, or 0. */
TARGET static int64_t NAME(implicit_ql)(R *d, R *e, int64_t n, R *q, int64_t c, R eps)
{
    for (int64_t l = 0; l < n; l++) {
        for (int turn = 0;; turn++) {
            int64_t m = l;
            for (; m < n - 1; m++) {
                const R near = NAME(magnitude)(d[m]) + NAME(magnitude)(d[m + 1]);
                if (NAME(magnitude)(e[m]) <= eps * near) {
                    break;
                }
            }
            if (m == l) {
                break;
            }
            if (turn == 60) {
                return l + 1;
            }
            R g = (d[l + 1] - d[l]) / (2 * e[l]), r = NAME(length)(g, 1), s = 1, z = 1, p = 0;
            g = d[m] - d[l] + e[l] / (g + (g >= 0 ? r : -r));
            int64_t i = m - 1;
            for (; i >= l; i--) {
                R f = s * e[i];
                const R b = z * e[i];
                r = NAME(length)(f, g);
                e[i + 1] = r;
                if (r == 0) {
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                s = f / r;
                z = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * z * b;
                p = s * r;
                d[i + 1] = g + p;
                g = z * r - b;
                if (q) {
                    NAME(rotate_rows)(q + (i + 1) * c, q + i * c, z, s, c);
                }
            }
            if (r == 0 && i >= l) {
                continue;
            }
            d[l] -= p;
            e[l] = g;
            e[m] = 0;
        }
    }
    return 0;
}

/* Sorts the n numbers of d, ascending or descending, with the rows of x (n, cx) and y (n, cy), which may be
 * NULL. */
TARGET static void NAME(sort_with_rows)(R *d, int64_t n, R *x, int64_t cx, R *y, int64_t cy, int descending)
{
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t at = i;
        for (int64_t j = i + 1; j < n; j++) {
            at = (descending ? d[j] > d[at] : d[j] < d[at]) ? j : at;
        }
        if (at == i) {
            continue;
        }
        const R t = d[i];
        d[i] = d[at];
        d[at] = t;
        if (x) {
            NAME(swap_rows)(x + i * cx, x + at * cx, cx);
        }
        if (y) {
            NAME(swap_rows)(y + i * cy, y + at * cy, cy);
        }
    }
}

/* g: n, are vectors wanted?  in: a, whose lower triangle is read; out: w (n) ascending, v (n, n) with a
 * vector in each column; work: 2 n n + 4 n elements */
TARGET static int64_t NAME(eigh)(const int64_t *g, const R *a, R *w, R *v, R *work)
{
    const int64_t n = g[0];
    R *full = work, *q = g[1] ? work + n * n : NULL, *e = work + 2 * n * n, *t = e + n, *row = t + n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            full[i * n + j] = full[j * n + i] = a[i * n + j];
        }
    }
    if (!NAME(finite)(full, n * n)) {
        const R nan = (R)NAN;
        for (int64_t i = 0; i < n; i++) {
            w[i] = nan;
        }
        for (int64_t i = 0; q && i < n * n; i++) {
            v[i] = nan;
        }
        return 0;
    }
    NAME(tridiagonal)(full, n, w, e, t, row);
    if (q) {
        NAME(tridiagonal_q)(q, full, n, t, row);
    }
    const int64_t bad = NAME(implicit_ql)(w, e, n, q, n, (R)(sizeof(R) == 4 ? 6e-8 : 1.1e-16));
    NAME(sort_with_rows)(w, n, q, n, NULL, 0, 0);
    for (int64_t i = 0; q && i < n; i++) {
        NAME(point_up)(q + i * n, 1, n, NULL, 0);
    }
    if (q) {
        NAME(transposed)(v, n, q, n, n, n);
    }
    work[0] = bad ? w[bad - 1] : 0;
    return bad;
}
