/* kernel_body.h: the loops of kernel.h over the registers that the including file defines:
 *
 *   TARGET, NAME(x), T, V, L                      function attribute; name of a function; element; vectors of
 *                                                 L elements
 *   LOAD STORE SET1 ADD MUL FMA DIV SQRT POW      FMA(a, b, c) = a b + c; POW is libm's
 *
 * If the last lanes do not fill a vector, some lanes before them are computed again with them. Fewer lanes
 * than a vector has are padded to a whole vector. */
#ifndef FUSED
#define FUSED static inline TARGET __attribute__((always_inline))
#endif

FUSED V NAME(some)(const T *p, int64_t n)
{
    if (n >= L) {
        return LOAD(p);
    }
    T all[L] = { 0 };
    memcpy(all, p, (size_t)n % L * sizeof(T)); /* n < L; the remainder tells the compiler so */
    return LOAD(all);
}

FUSED void NAME(put)(T *p, V v, int64_t n)
{
    if (n >= L) {
        STORE(p, v);
        return;
    }
    T all[L];
    STORE(all, v);
    memcpy(p, all, (size_t)n % L * sizeof(T));
}

/* d^-beta: by square roots for the values of beta that networks use, else by libm. */
FUSED V NAME(power)(V d, double beta, int way)
{
    if (way == 3) {
        const V r = SQRT(d);
        return DIV(SET1(1), MUL(r, SQRT(r)));
    }
    if (way == 2 || way == 4) {
        return DIV(SET1(1), way == 2 ? SQRT(d) : d);
    }
    T all[L];
    STORE(all, d);
    for (int i = 0; i < L; i++) {
        all[i] = POW(all[i], (T)-beta);
    }
    return LOAD(all);
}

/* 4 * beta if power() has a shortcut for it, else 0. */
static inline int NAME(way)(double beta)
{
    const double q = 4 * beta;
    return q >= 2 && q <= 4 && q <= (double)(int)q ? (int)q : 0;
}

FUSED void NAME(forward)(const struct mc_norm_block *b, int way)
{
    const struct mc_norm_shape *s = b->s;
    const V k = SET1((T)s->k), alpha = SET1((T)s->alpha), zero = SET1(0);
    for (int64_t f = 0; f < b->c; f++) {
        const T *x = (const T *)b->x + f * b->x_far;
        int64_t from, to, j = 0;
        mc_norm_window(s, false, b->c, f, &from, &to);
        for (bool last = false; !last; j += L) {
            last = j + L >= b->n;
            j = last && b->n >= L ? b->n - L : j;
            V sum = zero;
            for (int64_t e = from; e < to; e++) {
                const V v = NAME(some)((const T *)b->x + e * b->x_far + j, b->n);
                sum = FMA(v, v, sum);
            }
            const V r = NAME(power)(FMA(alpha, sum, k), s->beta, way);
            NAME(put)((T *)b->y + f * b->y_far + j, MUL(NAME(some)(x + j, b->n), r), b->n);
        }
    }
}

/* First stores g r and t = g r x / d of every channel in the scratch, where r = d^-beta, then computes dx. */
FUSED void NAME(backward)(const struct mc_norm_block *b, int way)
{
    const struct mc_norm_shape *s = b->s;
    const V k = SET1((T)s->k), alpha = SET1((T)s->alpha), zero = SET1(0),
            minus = SET1((T)(-2 * s->alpha * s->beta));
    T *gr = b->scratch, *t = gr + b->c * b->n;
    for (int64_t f = 0; f < b->c; f++) {
        int64_t from, to, j = 0;
        mc_norm_window(s, false, b->c, f, &from, &to);
        for (bool last = false; !last; j += L) {
            last = j + L >= b->n;
            j = last && b->n >= L ? b->n - L : j;
            V sum = zero;
            for (int64_t e = from; e < to; e++) {
                const V v = NAME(some)((const T *)b->x + e * b->x_far + j, b->n);
                sum = FMA(v, v, sum);
            }
            const V d = FMA(alpha, sum, k), x = NAME(some)((const T *)b->x + f * b->x_far + j, b->n);
            const V g = MUL(NAME(some)((const T *)b->g + f * b->g_far + j, b->n),
                            NAME(power)(d, s->beta, way));
            NAME(put)(gr + f * b->n + j, g, b->n);
            NAME(put)(t + f * b->n + j, DIV(MUL(g, x), d), b->n);
        }
    }
    for (int64_t f = 0; f < b->c; f++) {
        int64_t from, to, j = 0;
        mc_norm_window(s, true, b->c, f, &from, &to);
        for (bool last = false; !last; j += L) {
            last = j + L >= b->n;
            j = last && b->n >= L ? b->n - L : j;
            V sum = zero;
            for (int64_t e = from; e < to; e++) {
                sum = ADD(sum, NAME(some)(t + e * b->n + j, b->n));
            }
            const V x = NAME(some)((const T *)b->x + f * b->x_far + j, b->n);
            NAME(put)
            ((T *)b->y + f * b->y_far + j, FMA(MUL(minus, x), sum, NAME(some)(gr + f * b->n + j, b->n)),
             b->n);
        }
    }
}

static TARGET void NAME(block)(const struct mc_norm_block *b)
{
    if (NAME(way)(b->s->beta) == 3) {
        b->g ? NAME(backward)(b, 3) : NAME(forward)(b, 3);
    } else {
        b->g ? NAME(backward)(b, NAME(way)(b->s->beta)) : NAME(forward)(b, NAME(way)(b->s->beta));
    }
}

/* Computes windows as sums of neighbours in arrays that are padded with zeros on both sides. */
static TARGET void NAME(line)(const struct mc_norm_block *b)
{
    const struct mc_norm_shape *s = b->s;
    const int way = NAME(way)(s->beta);
    const int64_t n = s->n, c = b->c, before = n / 2, after = n - 1 - n / 2, wide = c + 2 * n + L;
    const V k = SET1((T)s->k), alpha = SET1((T)s->alpha), zero = SET1(0),
            minus = SET1((T)(-2 * s->alpha * s->beta));
    T *square = (T *)b->scratch + n, *t = square + wide, *gr = t + wide;
    const T *x = b->x, *g = b->g;
    T *y = b->y;
    memset(b->scratch, 0, (size_t)(2 * wide) * sizeof(T));
    for (int64_t i = 0; i < c; i++) {
        square[i] = x[i] * x[i];
    }
    for (int64_t i = 0; i < c; i += L) {
        V sum = zero;
        for (int64_t e = -before; e <= after; e++) {
            sum = ADD(sum, LOAD(square + i + e));
        }
        const V d = FMA(alpha, sum, k), v = NAME(some)(x + i, c - i), r = NAME(power)(d, s->beta, way);
        if (!g) {
            NAME(put)(y + i, MUL(v, r), c - i);
            continue;
        }
        const V w = MUL(NAME(some)(g + i, c - i), r);
        NAME(put)(gr + i, w, c - i);
        NAME(put)(t + i, DIV(MUL(w, v), d), c - i);
    }
    for (int64_t i = 0; i < c && g; i += L) {
        V sum = zero;
        for (int64_t e = -after; e <= before; e++) {
            sum = ADD(sum, LOAD(t + i + e));
        }
        NAME(put)(y + i, FMA(MUL(minus, NAME(some)(x + i, c - i)), sum, NAME(some)(gr + i, c - i)), c - i);
    }
}

static const struct mc_norm_kernel NAME(kernel) = { .name = ISA, .lanes = L, .block = NAME(block),
                                                    .line = NAME(line) };
#undef NAME
#undef T
#undef V
#undef L
#undef LOAD
#undef STORE
#undef SET1
#undef ADD
#undef MUL
#undef FMA
#undef DIV
#undef SQRT
#undef POW
