/* svd.h: singular values and vectors: reflections to a bidiagonal matrix, then the implicit QR iteration of
 * Golub and Kahan.  After rows.h, qr.h and eigh.h. */

/* a (m, n), m >= n, becomes upper bidiagonal: d (n), and e[i] beside d[i]; below the diagonal and right of
 * e it keeps the vectors of the reflections from the left and the right, tq and tp their factors.  work: m
 * elements */
TARGET static void NAME(bidiagonal)(R *a, int64_t m, int64_t n, R *d, R *e, R *tq, R *tp, R *work)
{
    for (int64_t k = 0; k < n; k++) {
        R *at = a + k * n + k;
        tq[k] = NAME(reflection)(at, n, m - k);
        NAME(reflect)(tq[k], at, n, at + 1, n, m - k, n - k - 1, work);
        d[k] = at[0];
        tp[k] = k < n - 1 ? NAME(reflection)(at + 1, 1, n - k - 1) : 0;
        e[k] = k < n - 1 ? at[1] : 0;
        NAME(reflect_columns)(tp[k], at + 1, at + n + 1, n, m - k - 1, n - k - 1);
    }
}

/* v (n, n) = the product of the reflections from the right; work: n elements */
TARGET static void NAME(bidiagonal_v)(R *v, const R *a, int64_t n, const R *tp, R *work)
{
    NAME(unit)(v, n, n, n);
    for (int64_t k = n - 2; k >= 0; k--) {
        NAME(reflect)(tp[k], a + k * n + k + 1, 1, v + (k + 1) * n + k + 1, n, n - k - 1, n - k - 1, work);
    }
}

/* e[l - 1], beside a d[l - 1] of 0, is rotated away to the right. */
TARGET static void NAME(cancel)(R *d, R *e, int64_t l, int64_t k, R least, R *u, int64_t m)
{
    R c = 0, s = 1;
    for (int64_t i = l; i <= k; i++) {
        const R f = s * e[i - 1], g = d[i];
        e[i - 1] = c * e[i - 1];
        if (NAME(magnitude)(f) <= least) {
            break;
        }
        const R h = NAME(length)(f, g);
        d[i] = h;
        c = g / h;
        s = -f / h;
        if (u) {
            NAME(rotate_rows)(u + (l - 1) * m, u + i * m, c, s, m);
        }
    }
}

/* One step of the iteration on the rows l to k. */
TARGET static void NAME(golub_kahan)(R *d, R *e, int64_t l, int64_t k, R *u, int64_t m, R *v, int64_t n)
{
    const R last = d[k], before = d[k - 1], below = k > 1 ? e[k - 2] : 0, beside = e[k - 1];
    R c = 1, s = 1, x = d[l];
    R f = ((before - last) * (before + last) + (below - beside) * (below + beside)) / (2 * beside * before);
    const R r = NAME(length)(f, 1);
    f = ((x - last) * (x + last) + beside * (before / (f + (f >= 0 ? r : -r)) - beside)) / x;
    for (int64_t j = l; j < k; j++) {
        R g = e[j], y = d[j + 1], h = s * g, z = NAME(length)(f, h);
        g *= c;
        if (j > l) {
            e[j - 1] = z;
        }
        c = z != 0 ? f / z : 1;
        s = z != 0 ? h / z : 0;
        f = x * c + g * s;
        g = g * c - x * s;
        h = y * s;
        y *= c;
        if (v) {
            NAME(rotate_rows)(v + j * n, v + (j + 1) * n, c, s, n);
        }
        z = NAME(length)(f, h);
        d[j] = z;
        c = z != 0 ? f / z : c;
        s = z != 0 ? h / z : s;
        f = c * g + s * y;
        x = c * y - s * g;
        if (u) {
            NAME(rotate_rows)(u + j * m, u + (j + 1) * m, c, s, m);
        }
    }
    e[k - 1] = f;
    d[k] = x;
}

/* The singular values of a bidiagonal matrix are left in d; the rows of u (.., m) and v (n, n), which may
 * be NULL, are rotated with them.  Returns 1 + the number of a value that did not converge, or 0. */
TARGET static int64_t NAME(implicit_qr)(R *d, R *e, int64_t n, R *u, int64_t m, R *v, R eps)
{
    R most = 0;
    for (int64_t i = 0; i < n; i++) {
        const R size = NAME(magnitude)(d[i]) + NAME(magnitude)(e[i]);
        most = size > most ? size : most;
    }
    const R least = eps * most;
    for (int64_t k = n - 1; k >= 0; k--) {
        for (int turn = 0;; turn++) {
            int64_t l = k;
            while (l > 0 && NAME(magnitude)(e[l - 1]) > least && NAME(magnitude)(d[l - 1]) > least) {
                l--;
            }
            if (l > 0 && NAME(magnitude)(e[l - 1]) > least) {
                NAME(cancel)(d, e, l, k, least, u, m);
            }
            if (l == k) {
                break;
            }
            if (turn == 75) {
                return k + 1;
            }
            NAME(golub_kahan)(d, e, l, k, u, m, v, n);
        }
        if (d[k] < 0) {
            d[k] = -d[k];
            if (v) {
                NAME(scale_row)(v + k * n, -1, n);
            }
        }
    }
    return 0;
}

/* The same for m >= n: ut (c, m) has a left vector in each row, vt (n, n) a right one; both NULL: none are
 * wanted. a is lost.  spare: c m elements and n n more; row: 5 m elements */
TARGET static int64_t NAME(svd_tall)(R *a, int64_t m, int64_t n, int64_t c, R *s, R *ut, R *vt, R *spare,
                                     R *row)
{
    R *e = row + m, *tq = e + m, *tp = tq + m;
    NAME(bidiagonal)(a, m, n, s, e, tq, tp, row);
    if (ut) {
        NAME(q_of)(spare, c, m, c, a, n, n, tq, row);
        NAME(transposed)(ut, m, spare, c, m, c);
        NAME(bidiagonal_v)(spare, a, n, tp, row);
        NAME(transposed)(vt, n, spare, n, n, n);
    }
    const int64_t bad = NAME(implicit_qr)(s, e, n, ut, m, vt, (R)(sizeof(R) == 4 ? 6e-8 : 1.1e-16));
    NAME(sort_with_rows)(s, n, ut, m, vt, n, 1);
    return bad;
}

/* g: m, n, columns of u (and rows of vh, for m < n), are vectors wanted?  in: a (m, n); out: u, s
 * descending, vh; work: see mc_factor_work.  -1: an element is not finite */
TARGET static int64_t NAME(svd)(const int64_t *g, const R *a, R *u, R *s, R *vh, R *work)
{
    const int64_t m = g[0], n = g[1], c = g[2], most = m > n ? m : n, least = m > n ? n : m;
    R *copy = work, *ut = copy + m * n, *vt = ut + c * most, *spare = vt + least * least,
      *row = spare + c * most + least * least;
    if (!NAME(finite)(a, m * n)) {
        return -1;
    }
    if (m >= n) {
        NAME(copied)(copy, n, a, n, m, n);
    } else {
        NAME(transposed)(copy, m, a, n, m, n);
    }
    const R by = NAME(power_for)(a, m * n); /* squares of elements are neither too large nor too small */
    if (by != 1) {
        NAME(scale_row)(copy, by, m * n);
    }
    const int64_t bad = NAME(svd_tall)(copy, most, least, c, s, g[3] ? ut : NULL, g[3] ? vt : NULL, spare,
                                       row);
    for (int64_t i = 0; by != 1 && i < least; i++) {
        s[i] /= by;
    }
    for (int64_t i = 0; g[3] && i < least; i++) {
        R *const left = ut + i * most, *const right = vt + i * least;
        NAME(point_up)(m >= n ? left : right, 1, m, m >= n ? right : left, n);
    }
    if (g[3] && m >= n) {
        NAME(transposed)(u, c, ut, m, c, m);
        NAME(copied)(vh, n, vt, n, n, n);
    } else if (g[3]) {
        NAME(transposed)(u, m, vt, m, m, m);
        NAME(copied)(vh, n, ut, n, c, n);
    }
    work[0] = 0;
    return bad;
}
