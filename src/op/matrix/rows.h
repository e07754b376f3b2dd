/* rows.h: loops over rows of dense matrices, which the other texts of this folder consist of.
 *
 * The includer defines R, the type of an element; NAME(x), the name of a function for it; TARGET, an
 * attribute of functions.  The texts are part of exported files, so they are C99 that compiles as C++ too.
 * src/heavy/factor/cpu/rows.h has the same functions over vectors. */
TARGET static R NAME(dot)(const R *x, const R *y, int64_t n)
{
    R sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

/* y += a x */
TARGET static void NAME(add_row)(R *y, R a, const R *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

/* y += a[0] x[0] + ... + a[3] x[3], rows of x with the pitch ldx */
TARGET static void NAME(add_rows)(R *y, const R *a, const R *x, int64_t ldx, int64_t n)
{
    const R a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    const R *x1 = x + ldx, *x2 = x1 + ldx, *x3 = x2 + ldx;
    for (int64_t i = 0; i < n; i++) {
        y[i] += a0 * x[i] + a1 * x1[i] + a2 * x2[i] + a3 * x3[i];
    }
}

/* Four rows y, with the pitch ld, lose m[j][0] x[j], ..., m[j][3] x[j], of the rows j < count; x is m. */
TARGET static void NAME(lose_rows)(R *y, const R *m, int64_t ld, int64_t count, int64_t n)
{
    for (int64_t j = 0; j < count; j++, m += ld) {
        for (int r = 0; r < 4; r++) {
            NAME(add_row)(y + r * ld, -m[r], m, n);
        }
    }
}

/* y += a x + b z */
TARGET static void NAME(add_two)(R *y, R a, const R *x, R b, const R *z, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] += a * x[i] + b * z[i];
    }
}

TARGET static void NAME(scale_row)(R *y, R a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] *= a;
    }
}

TARGET static void NAME(divide_row)(R *y, R a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] /= a;
    }
}

TARGET static void NAME(swap_rows)(R *x, R *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const R t = x[i];
        x[i] = y[i];
        y[i] = t;
    }
}

/* (x, y) = (c x + s y, c y - s x) */
TARGET static void NAME(rotate_rows)(R *x, R *y, R c, R s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const R t = c * x[i] + s * y[i];
        y[i] = c * y[i] - s * x[i];
        x[i] = t;
    }
}
