/* rows.h: the functions of op/matrix/rows.h over vectors (heavy/portable/vectors.h).  The last elements of
 * a row, fewer than a vector has, are loaded and stored by masks. */
#define WIDE_STEP NAME(WIDTH)

FORCE_INLINE NAME(v) NAME(times)(NAME(v) a, NAME(v) b) { return NAME(madd)(a, b, NAME(zero)()); }

TARGET static R NAME(dot)(const R *x, const R *y, int64_t n)
{
    NAME(v) s0 = NAME(zero)(), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + 4 * WIDE_STEP <= n; i += 4 * WIDE_STEP) {
        s0 = NAME(madd)(NAME(load)(x + i), NAME(load)(y + i), s0);
        s1 = NAME(madd)(NAME(load)(x + i + WIDE_STEP), NAME(load)(y + i + WIDE_STEP), s1);
        s2 = NAME(madd)(NAME(load)(x + i + 2 * WIDE_STEP), NAME(load)(y + i + 2 * WIDE_STEP), s2);
        s3 = NAME(madd)(NAME(load)(x + i + 3 * WIDE_STEP), NAME(load)(y + i + 3 * WIDE_STEP), s3);
    }
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        s0 = NAME(madd)(NAME(load)(x + i), NAME(load)(y + i), s0);
    }
    if (i < n) {
        const int k = (int)(n - i);
        s1 = NAME(madd)(NAME(load_n)(x + i, k), NAME(load_n)(y + i, k), s1);
    }
    R lane[16], sum = 0;
    NAME(store)(lane, NAME(plus)(NAME(plus)(s0, s1), NAME(plus)(s2, s3)));
    for (int l = 0; l < WIDE_STEP; l++) {
        sum += lane[l];
    }
    return sum;
}

TARGET static void NAME(add_row)(R *y, R a, const R *x, int64_t n)
{
    const NAME(v) va = NAME(splat)(a);
    int64_t i = 0;
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        NAME(store)(y + i, NAME(madd)(va, NAME(load)(x + i), NAME(load)(y + i)));
    }
    if (i < n) {
        const int k = (int)(n - i);
        NAME(store_n)(y + i, NAME(madd)(va, NAME(load_n)(x + i, k), NAME(load_n)(y + i, k)), k);
    }
}

TARGET static void NAME(add_rows)(R *y, const R *a, const R *x, int64_t ldx, int64_t n)
{
    const NAME(v) a0 = NAME(splat)(a[0]), a1 = NAME(splat)(a[1]), a2 = NAME(splat)(a[2]),
        a3 = NAME(splat)(a[3]);
    const R *x1 = x + ldx, *x2 = x1 + ldx, *x3 = x2 + ldx;
    int64_t i = 0;
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        NAME(v) s = NAME(madd)(a0, NAME(load)(x + i), NAME(load)(y + i));
        NAME(v) t = NAME(times)(a1, NAME(load)(x1 + i));
        s = NAME(madd)(a2, NAME(load)(x2 + i), s);
        t = NAME(madd)(a3, NAME(load)(x3 + i), t);
        NAME(store)(y + i, NAME(plus)(s, t));
    }
    if (i < n) {
        const int k = (int)(n - i);
        NAME(v) s = NAME(madd)(a0, NAME(load_n)(x + i, k), NAME(load_n)(y + i, k));
        NAME(v) t = NAME(times)(a1, NAME(load_n)(x1 + i, k));
        s = NAME(madd)(a2, NAME(load_n)(x2 + i, k), s);
        t = NAME(madd)(a3, NAME(load_n)(x3 + i, k), t);
        NAME(store_n)(y + i, NAME(plus)(s, t), k);
    }
}

/* Of n elements, at most two vectors. */
FORCE_INLINE void NAME(lose_two)(R *y, const R *m, int64_t ld, int64_t count, int64_t at, int first,
                                 int second)
{
    NAME(v) s[4][2];
    const int64_t next = at + WIDE_STEP;
    for (int r = 0; r < 4; r++) {
        s[r][0] = NAME(load_n)(y + r * ld + at, first);
        s[r][1] = second ? NAME(load_n)(y + r * ld + next, second) : s[r][0];
    }
    for (int64_t j = 0; j < count; j++) {
        const R *row = m + j * ld;
        const NAME(v) x0 = NAME(load_n)(row + at, first), x1 = second ? NAME(load_n)(row + next, second) : x0;
        for (int r = 0; r < 4; r++) {
            const NAME(v) by = NAME(splat)(-row[r]);
            s[r][0] = NAME(madd)(by, x0, s[r][0]);
            s[r][1] = NAME(madd)(by, x1, s[r][1]);
        }
    }
    for (int r = 0; r < 4; r++) {
        NAME(store_n)(y + r * ld + at, s[r][0], first);
        if (second) {
            NAME(store_n)(y + r * ld + next, s[r][1], second);
        }
    }
}

TARGET static void NAME(lose_rows)(R *y, const R *m, int64_t ld, int64_t count, int64_t n)
{
    const int wide = NAME(WIDTH);
    int64_t i = 0;
    for (; i + 2 * wide <= n; i += 2 * wide) {
        NAME(lose_two)(y, m, ld, count, i, wide, wide);
    }
    if (n - i > wide) {
        NAME(lose_two)(y, m, ld, count, i, wide, (int)(n - i) - wide);
    } else if (n > i) {
        NAME(lose_two)(y, m, ld, count, i, (int)(n - i), 0);
    }
}

TARGET static void NAME(add_two)(R *y, R a, const R *x, R b, const R *z, int64_t n)
{
    const NAME(v) va = NAME(splat)(a), vb = NAME(splat)(b);
    int64_t i = 0;
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        const NAME(v) s = NAME(madd)(va, NAME(load)(x + i), NAME(load)(y + i));
        NAME(store)(y + i, NAME(madd)(vb, NAME(load)(z + i), s));
    }
    if (i < n) {
        const int k = (int)(n - i);
        const NAME(v) s = NAME(madd)(va, NAME(load_n)(x + i, k), NAME(load_n)(y + i, k));
        NAME(store_n)(y + i, NAME(madd)(vb, NAME(load_n)(z + i, k), s), k);
    }
}

TARGET static void NAME(scale_row)(R *y, R a, int64_t n)
{
    const NAME(v) va = NAME(splat)(a);
    int64_t i = 0;
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        NAME(store)(y + i, NAME(times)(va, NAME(load)(y + i)));
    }
    if (i < n) {
        const int k = (int)(n - i);
        NAME(store_n)(y + i, NAME(times)(va, NAME(load_n)(y + i, k)), k);
    }
}

/* By a product with 1 / a, unless that is not finite. */
TARGET static void NAME(divide_row)(R *y, R a, int64_t n)
{
    const R by = 1 / a;
    if (by - by == 0) {
        NAME(scale_row)(y, by, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        y[i] /= a;
    }
}

TARGET static void NAME(swap_rows)(R *x, R *y, int64_t n)
{
    int64_t i = 0;
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        const NAME(v) t = NAME(load)(x + i);
        NAME(store)(x + i, NAME(load)(y + i));
        NAME(store)(y + i, t);
    }
    if (i < n) {
        const int k = (int)(n - i);
        const NAME(v) t = NAME(load_n)(x + i, k);
        NAME(store_n)(x + i, NAME(load_n)(y + i, k), k);
        NAME(store_n)(y + i, t, k);
    }
}

TARGET static void NAME(rotate_rows)(R *x, R *y, R c, R s, int64_t n)
{
    const NAME(v) vc = NAME(splat)(c), vs = NAME(splat)(s), minus = NAME(splat)(-s);
    int64_t i = 0;
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        const NAME(v) a = NAME(load)(x + i), b = NAME(load)(y + i);
        NAME(store)(x + i, NAME(madd)(vc, a, NAME(times)(vs, b)));
        NAME(store)(y + i, NAME(madd)(vc, b, NAME(times)(minus, a)));
    }
    if (i < n) {
        const int k = (int)(n - i);
        const NAME(v) a = NAME(load_n)(x + i, k), b = NAME(load_n)(y + i, k);
        NAME(store_n)(x + i, NAME(madd)(vc, a, NAME(times)(vs, b)), k);
        NAME(store_n)(y + i, NAME(madd)(vc, b, NAME(times)(minus, a)), k);
    }
}
#undef WIDE_STEP
