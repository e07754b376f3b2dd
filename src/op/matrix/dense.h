/* dense.h: small work on dense matrices: copies, norms, what is finite.  After rows.h. */
TARGET static R NAME(magnitude)(R x) { return x < 0 ? -x : x; }
TARGET static R NAME(root)(R x) { return (R)sqrt((double)x); }

/* y (n, m) = the transpose of x (m, n) */
TARGET static void NAME(transposed)(R *y, int64_t ldy, const R *x, int64_t ldx, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i += 8) {
        const int64_t rows = m - i < 8 ? m - i : 8;
        const R *from = x + i * ldx;
        for (int64_t j = 0; j < n && rows == 8; j++) {
            R *to = y + j * ldy + i;
            for (int k = 0; k < 8; k++) {
                to[k] = from[k * ldx + j];
            }
        }
        for (int64_t j = 0; j < n && rows < 8; j++) {
            for (int64_t k = 0; k < rows; k++) {
                y[j * ldy + i + k] = from[k * ldx + j];
            }
        }
    }
}

TARGET static void NAME(copied)(R *y, int64_t ldy, const R *x, int64_t ldx, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            y[i * ldy + j] = x[i * ldx + j];
        }
    }
}

/* y (m, n) = 1 on the diagonal, else 0 */
TARGET static void NAME(unit)(R *y, int64_t ldy, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            y[i * ldy + j] = (R)(i == j);
        }
    }
}

/* sqrt(a^2 + b^2) without overflow; NaN if one is NaN */
TARGET static R NAME(length)(R a, R b)
{
    const R x = NAME(magnitude)(a), y = NAME(magnitude)(b), most = x > y ? x : y, least = x > y ? y : x;
    const R ratio = most > 0 ? least / most : 0;
    return x + y == x + y ? most * NAME(root)(1 + ratio * ratio) : x + y;
}

/* The Euclidean norm of n elements with a stride, without overflow. */
TARGET static R NAME(norm)(const R *x, int64_t stride, int64_t n)
{
    R most = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const R a = NAME(magnitude)(x[i * stride]);
        most = a > most ? a : most;
        sum += a * a;
    }
    if (sum > (R)1e-30 && sum < (R)1e30) {
        return NAME(root)(sum);
    }
    if (!(most > 0)) { /* zeros; or NaN */
        return sum;
    }
    sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const R a = x[i * stride] / most;
        sum += a * a;
    }
    return most * NAME(root)(sum);
}

/* A power of two by which the elements are about as large as 1; 1 if they are that already, within a factor
 * of a million. */
TARGET static R NAME(power_for)(const R *x, int64_t n)
{
    const R limit = (R)(sizeof(R) == 4 ? 1e35 : 1e300); /* of numbers that are nearly 0 */
    R most = 0, by = 1;
    for (int64_t i = 0; i < n; i++) {
        const R a = NAME(magnitude)(x[i]);
        most = a > most ? a : most;
    }
    if (most >= (R)1e-6 && most <= (R)1e6) {
        return 1;
    }
    for (; most > 1 && most - most == 0; most /= 2) {
        by /= 2;
    }
    for (; most > 0 && most < (R)0.5 && by < limit; most *= 2) {
        by *= 2;
    }
    return by;
}

/* Are all elements finite? */
TARGET static int NAME(finite)(const R *x, int64_t n)
{
    R sum = 0; /* x - x is NaN unless x is finite */
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] - x[i];
    }
    return sum == 0;
}

/* Does a vector count as negative?  Its first element that is at least half as large as the largest one
 * does. */
TARGET static int NAME(points_down)(const R *x, int64_t stride, int64_t n)
{
    R most = 0;
    for (int64_t i = 0; i < n; i++) {
        const R a = NAME(magnitude)(x[i * stride]);
        most = a > most ? a : most;
    }
    for (int64_t i = 0; i < n; i++) {
        if (2 * NAME(magnitude)(x[i * stride]) >= most) {
            return x[i * stride] < 0;
        }
    }
    return 0;
}

/* Negates x, and y, which is adjacent, if x counts as negative. */
TARGET static void NAME(point_up)(R *x, int64_t stride, int64_t n, R *y, int64_t ny)
{
    if (NAME(points_down)(x, stride, n)) {
        for (int64_t i = 0; i < n; i++) {
            x[i * stride] = -x[i * stride];
        }
        for (int64_t i = 0; i < ny; i++) {
            y[i] = -y[i];
        }
    }
}
