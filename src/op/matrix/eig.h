/* eig.h: real eigenvalues and eigenvectors of matrices that are not symmetric: reflections to a Hessenberg
 * matrix, QR iteration with double shifts to the Schur form, then substitution.  After rows.h and qr.h. */

/* a (n, n) = Q H Q^T: a becomes H, q becomes Q; work: 2 n elements */
TARGET static void NAME(hessenberg)(R *a, R *q, int64_t n, R *work)
{
    R *v = work + n;
    NAME(unit)(q, n, n, n);
    for (int64_t k = 0; k < n - 2; k++) {
        const int64_t m = n - k - 1;
        for (int64_t i = 0; i < m; i++) {
            v[i] = a[(k + 1 + i) * n + k];
        }
        const R t = NAME(reflection)(v, 1, m);
        if (t == 0) {
            continue;
        }
        for (int64_t i = 0; i < m; i++) {
            a[(k + 1 + i) * n + k] = i ? 0 : v[0];
        }
        NAME(reflect)(t, v, 1, a + (k + 1) * n + k + 1, n, m, m, work);
        NAME(reflect_columns)(t, v, a + k + 1, n, n, m);
        NAME(reflect_columns)(t, v, q + k + 1, n, n, m);
    }
}

/* A reflection of three rows and columns (two at the end), from row k on: of h and, its columns, of q. */
TARGET static void NAME(bulge)(R *h, R *q, int64_t n, int64_t k, int64_t low, int64_t high, R *v)
{
    const int64_t m = high - k + 1 < 3 ? high - k + 1 : 3, from = k > low ? k - 1 : low,
                  to = k + 4 < high + 1 ? k + 4 : high + 1;
    const R t = NAME(reflection)(v, 1, m);
    R row[3] = { 1, v[1], m > 2 ? v[2] : 0 };
    if (k > low) {
        h[k * n + k - 1] = t == 0 ? h[k * n + k - 1] : v[0];
        for (int64_t i = 1; i < m; i++) {
            h[(k + i) * n + k - 1] = 0;
        }
    }
    if (t == 0) {
        return;
    }
    for (int64_t j = k > low ? k : from; j < n; j++) {
        R sum = 0;
        for (int64_t i = 0; i < m; i++) {
            sum += row[i] * h[(k + i) * n + j];
        }
        for (int64_t i = 0; i < m; i++) {
            h[(k + i) * n + j] -= t * sum * row[i];
        }
    }
    for (int64_t i = 0; i < to; i++) {
        R *at = h + i * n + k, sum = 0;
        for (int64_t j = 0; j < m; j++) {
            sum += at[j] * row[j];
        }
        for (int64_t j = 0; j < m; j++) {
            at[j] -= t * sum * row[j];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        R *at = q + i * n + k, sum = 0;
        for (int64_t j = 0; j < m; j++) {
            sum += at[j] * row[j];
        }
        for (int64_t j = 0; j < m; j++) {
            at[j] -= t * sum * row[j];
        }
    }
}

/* Rotates the columns x, x + 1 of m rows.  Each loop has one expression: compilers may make fused
 * operations of pairs of them, whatever they are told.  old: m elements */
TARGET static void NAME(rotate_columns)(R *x, int64_t ldx, int64_t m, R c, R s, R *old)
{
    for (int64_t i = 0; i < m; i++) {
        old[i] = x[i * ldx];
    }
    for (int64_t i = 0; i < m; i++) {
        x[i * ldx] = c * old[i] + s * x[i * ldx + 1];
    }
    for (int64_t i = 0; i < m; i++) {
        x[i * ldx + 1] = c * x[i * ldx + 1] - s * old[i];
    }
}

/* The block of rows and columns k, k + 1, whose eigenvalues are real, becomes upper triangular by a rotation.
 * work: n elements */
TARGET static void NAME(split_pair)(R *h, R *q, int64_t n, int64_t k, R *work)
{
    const R a = h[k * n + k], b = h[k * n + k + 1], c = h[(k + 1) * n + k], d = h[(k + 1) * n + k + 1];
    const R p = (a - d) / 2, under = p * p + b * c, root = NAME(root)(under > 0 ? under : 0),
            far = p >= 0 ? p + root : p - root; /* the eigenvalue farther from d is d + far */
    const R size = NAME(length)(far, c), cosine = size > 0 ? far / size : 1, sine = size > 0 ? c / size : 0;
    NAME(rotate_rows)(h + k * n, h + (k + 1) * n, cosine, sine, n);
    NAME(rotate_columns)(h + k, n, k + 2, cosine, sine, work);
    NAME(rotate_columns)(q + k, n, n, cosine, sine, work);
    h[(k + 1) * n + k] = 0;
}

/* h becomes upper triangular, q is multiplied by what does it.  Returns 0; 1 + the number of an eigenvalue
 * that did not converge; or -2 - k: the eigenvalues k and k + 1 are complex.  work: n
 * elements */
TARGET static int64_t NAME(schur)(R *h, R *q, int64_t n, R eps, R *work)
{
    int64_t high = n - 1;
    for (int turn = 0; high > 0;) {
        int64_t low = high;
        for (; low > 0; low--) {
            const R near = NAME(magnitude)(h[(low - 1) * n + low - 1]) + NAME(magnitude)(h[low * n + low]);
            const R beside = NAME(magnitude)(h[low * n + low - 1]);
            if (beside <= eps * near || beside + near == near) {
                h[low * n + low - 1] = 0;
                break;
            }
        }
        if (low == high) {
            high--;
            turn = 0;
            continue;
        }
        const R a = h[(high - 1) * n + high - 1], b = h[(high - 1) * n + high], c = h[high * n + high - 1],
                d = h[high * n + high];
        if (low == high - 1) {
            const R p = (a - d) / 2,
                most = NAME(magnitude)(p) > NAME(magnitude)(b) ? NAME(magnitude)(p) : NAME(magnitude)(b),
                    under = p * p + b * c;
            if (under < -16 * eps * most * (most + NAME(magnitude)(c))) {
                return -2 - low;
            }
            NAME(split_pair)(h, q, n, low, work);
            high -= 2;
            turn = 0;
            continue;
        }
        if (turn++ == 60) {
            return high + 1;
        }
        R sum = a + d, product = a * d - b * c;
        if (turn % 10 == 0) { /* the usual shifts may go round in circles */
            const R s = NAME(magnitude)(c) + NAME(magnitude)(h[(high - 1) * n + high - 2]);
            sum = (R)1.5 * s;
            product = s * s;
        }
        const R *at = h + low * n + low;
        R v[3] = { at[0] * at[0] + at[1] * at[n] - sum * at[0] + product, at[n] * (at[0] + at[n + 1] - sum),
                   at[n] * at[2 * n + 1] };
        for (int64_t k = low; k < high; k++) {
            if (k > low) {
                v[0] = h[k * n + k - 1];
                v[1] = h[(k + 1) * n + k - 1];
                v[2] = k + 2 <= high ? h[(k + 2) * n + k - 1] : 0;
            }
            NAME(bulge)(h, q, n, k, low, high, v);
        }
    }
    return 0;
}

/* g: n, are vectors wanted?  in: a (n, n); out: w (n) ascending, v (n, n) with a vector of length 1 in each
 * column; work: 3 n n + 3 n elements.  -1: an element is not finite; -2 - k: the eigenvalues k and k + 1
 * are complex */
TARGET static int64_t NAME(eig)(const int64_t *g, const R *a, R *w, R *v, R *work)
{
    const int64_t n = g[0];
    const R eps = (R)(sizeof(R) == 4 ? 1.2e-7 : 2.2e-16);
    R *h = work, *q = h + n * n, *rows = q + n * n, *spare = rows + n * n;
    if (!NAME(finite)(a, n * n)) {
        return -1;
    }
    const R by = NAME(power_for)(a, n * n);
    NAME(copied)(h, n, a, n, n, n);
    if (by != 1) {
        NAME(scale_row)(h, by, n * n);
    }
    NAME(hessenberg)(h, q, n, spare);
    const int64_t bad = NAME(schur)(h, q, n, eps, spare);
    R most = 0;
    for (int64_t i = 0; i < n; i++) {
        w[i] = h[i * n + i];
        for (int64_t j = i; j < n; j++) {
            most = NAME(magnitude)(h[i * n + j]) > most ? NAME(magnitude)(h[i * n + j]) : most;
        }
    }
    for (int64_t k = 0; k < n && !bad && g[1]; k++) { /* T x = w[k] x, from behind; then Q x */
        R *x = spare, *to = rows + k * n;
        x[k] = 1;
        for (int64_t i = k - 1; i >= 0; i--) {
            R gap = h[i * n + i] - w[k];
            gap = NAME(magnitude)(gap) > eps * most ? gap : eps * most;
            x[i] = gap != 0 ? -NAME(dot)(h + i * n + i + 1, x + i + 1, k - i) / gap : 0;
            if (NAME(magnitude)(x[i]) > (R)1e15) {
                NAME(scale_row)(x + i, (R)1e-15, k - i + 1);
            }
        }
        for (int64_t i = 0; i < n; i++) {
            to[i] = NAME(dot)(q + i * n, x, k + 1);
        }
        NAME(divide_row)(to, NAME(norm)(to, 1, n), n);
        NAME(point_up)(to, 1, n, NULL, 0);
    }
    for (int64_t i = 0; by != 1 && i < n; i++) {
        w[i] /= by;
    }
    NAME(sort_with_rows)(w, n, g[1] ? rows : NULL, n, NULL, 0, 0);
    if (g[1]) {
        NAME(transposed)(v, n, rows, n, n, n);
    }
    work[0] = 0;
    return bad;
}
