/* skinny_body.h: a large matrix x times a skinny one s; part of kernel_body.h.
 *
 *   dot       k of x has stride 1: dot products of rows of x and columns of s
 *   outer     p of x has stride 1: columns of x are scaled by elements of s and added
 *
 * In libmonochord-run float64 has one outer for every q, with its sums in memory: ONE_OUTER.
 *
 * Invariant: the order of a sum depends only on sizes and strides. */

/* Adds the products of one vector of k of four rows and of q columns. */
FUSED void NAME(dot_add)(V acc[DOT_Q][4], const V xv[4], const T *s, const int q)
{
    UNROLL(8)
    for (int j = 0; j < q; j++) {
        const V sv = LOAD(s + j * L);
        UNROLL(4)
        for (int r = 0; r < 4; r++) {
            acc[j][r] = FMA(xv[r], sv, acc[j][r]);
        }
    }
}

FUSED void NAME(dot)(const struct mc_gemm_dot *t, const int q)
{
    const T *x[4], *s = t->s;
    T *out = t->out;
    const int64_t k = t->k, far = t->far;
    V acc[DOT_Q][4], xv[4];
    UNROLL(4)
    for (int r = 0; r < 4; r++) {
        x[r] = (const T *)t->x + MC_MIN(r, t->rows - 1) * t->x_row;
    }
    UNROLL(8)
    for (int j = 0; j < q; j++) {
        UNROLL(4)
        for (int r = 0; r < 4; r++) {
            acc[j][r] = ZERO();
        }
    }
    int64_t at = 0;
    for (; at + L <= k; at += L) {
        if (far) {
            UNROLL(4)
            for (int r = 0; r < 4; r++) {
                __builtin_prefetch((const char *)(x[r] + at) + far);
            }
        }
        UNROLL(4)
        for (int r = 0; r < 4; r++) {
            xv[r] = LOAD(x[r] + at);
        }
        NAME(dot_add)(acc, xv, s, q);
        s += q * L;
    }
    if (at < k) {
        const MASK mask = MASK_OF(k - at);
        UNROLL(4)
        for (int r = 0; r < 4; r++) {
            xv[r] = LOADM(x[r] + at, mask);
        }
        NAME(dot_add)(acc, xv, s, q);
    }
    UNROLL(8)
    for (int j = 0; j < q; j++) {
        SUM4(acc[j], out + j * 4);
    }
}

#define OUTER_P(q) (ACC / (q) > 16 ? 16 : ACC / (q)) /* vectors of x that fit in registers */

#ifdef ONE_OUTER
#pragma push_macro("UNROLL")
#undef UNROLL
#define UNROLL(n)
#endif
/* full: the nv vectors have np elements. */
FUSED void NAME(outer)(const struct mc_gemm_outer *t, const int q, const int nv, const bool full)
{
    const int64_t out_row = t->out_row, far = t->far;
    const T *x = t->x, *s = t->s, *from = t->out;
    MASK mask[16];
    V acc[OUTER_Q][16];
    UNROLL(16)
    for (int v = 0; v < nv; v++) {
        const int64_t left = t->np - v * L;
        mask[v] = MASK_OF(left < 0 ? 0 : left > L ? L : left);
    }
    if (t->add) {
        UNROLL(16)
        for (int j = 0; j < q; j++, from += out_row) {
            UNROLL(16)
            for (int v = 0; v < nv; v++) {
                acc[j][v] = LOADM(from + v * L, mask[v]);
            }
        }
    } else {
        UNROLL(16)
        for (int j = 0; j < q; j++) {
            UNROLL(16)
            for (int v = 0; v < nv; v++) {
                acc[j][v] = ZERO();
            }
        }
    }
    for (int64_t k = t->k; k > 0; k--) {
        V xv[16];
        if (far) {
            UNROLL(16)
            for (int v = 0; v < nv; v++) {
                __builtin_prefetch((const char *)(x + v * L) + far);
            }
        }
        UNROLL(16)
        for (int v = 0; v < nv; v++) {
            xv[v] = full ? LOAD(x + v * L) : LOADM(x + v * L, mask[v]);
        }
        UNROLL(16)
        for (int j = 0; j < q; j++) {
            const V sv = SET1(s[j]);
            UNROLL(16)
            for (int v = 0; v < nv; v++) {
                acc[j][v] = FMA(xv[v], sv, acc[j][v]);
            }
        }
        x += t->x_col;
        s += q;
    }
    T *out = t->out;
    if (full) {
        UNROLL(16)
        for (int j = 0; j < q; j++, out += out_row) {
            UNROLL(16)
            for (int v = 0; v < nv; v++) {
                STORE(out + v * L, acc[j][v]);
            }
        }
        return;
    }
    UNROLL(16)
    for (int j = 0; j < q; j++, out += out_row) {
        UNROLL(16)
        for (int v = 0; v < nv; v++) {
            STOREM(out + v * L, mask[v], acc[j][v]);
        }
    }
}

#ifdef ONE_OUTER
#pragma pop_macro("UNROLL")
#endif

/* out = (add ? out : 0) + s[k] * x[k] + ... over `rows` values of k, each of which is a contiguous stream
 * of x. */
FUSED void NAME(rows)(const struct mc_gemm_outer *t, int64_t k, const bool add, const int rows)
{
    const T *x = (const T *)t->x + k * t->x_col, *s = (const T *)t->s + k;
    T *out = t->out;
    V sv[8];
    UNROLL(8)
    for (int r = 0; r < rows; r++) {
        sv[r] = SET1(s[r]);
    }
    int64_t p = 0;
    for (; p + L <= t->np; p += L) {
        V acc = add ? LOAD(out + p) : ZERO();
        UNROLL(8)
        for (int r = 0; r < rows; r++) {
            acc = FMA(LOAD(x + r * t->x_col + p), sv[r], acc);
        }
        STORE(out + p, acc);
    }
    if (p < t->np) {
        const MASK mask = MASK_OF(t->np - p);
        V acc = add ? LOADM(out + p, mask) : ZERO();
        UNROLL(8)
        for (int r = 0; r < rows; r++) {
            acc = FMA(LOADM(x + r * t->x_col + p, mask), sv[r], acc);
        }
        STOREM(out + p, mask, acc);
    }
}

/* A remainder that does not fill the registers, in pieces of at most two vectors. */
FUSED void NAME(outer_rest)(const struct mc_gemm_outer *t, const int q)
{
    struct mc_gemm_outer piece = *t;
    for (int64_t p = 0; p < t->np; p += 2 * L) {
        piece.x = (const T *)t->x + p;
        piece.out = (T *)t->out + p;
        piece.np = MC_MIN(t->np - p, (int64_t)(2 * L));
        NAME(outer)(&piece, q, 2, false);
    }
}

/* q = 1 and p at most nv vectors (1 or 2): four partial sums of each, so that additions overlap. */
FUSED void NAME(one_by_vectors)(const struct mc_gemm_outer *t, const int nv)
{
    const T *x = t->x, *s = t->s;
    const MASK mask = MASK_OF(t->np - (nv - 1) * L);
    V acc[4][2];
    UNROLL(4)
    for (int c = 0; c < 4; c++) {
        acc[c][0] = acc[c][1] = ZERO();
    }
    int64_t k = 0;
    for (; k + 4 <= t->k; k += 4) {
        UNROLL(4)
        for (int c = 0; c < 4; c++) {
            const T *row = x + (k + c) * t->x_col;
            UNROLL(2)
            for (int v = 0; v < nv; v++) {
                acc[c][v] = FMA(v == nv - 1 ? LOADM(row + v * L, mask) : LOAD(row + v * L), SET1(s[k + c]),
                                acc[c][v]);
            }
        }
    }
    for (; k < t->k; k++) {
        UNROLL(2)
        for (int v = 0; v < nv; v++) {
            const T *at = x + k * t->x_col + v * L;
            acc[0][v] = FMA(v == nv - 1 ? LOADM(at, mask) : LOAD(at), SET1(s[k]), acc[0][v]);
        }
    }
    const V one = SET1(1);
    UNROLL(2)
    for (int v = 0; v < nv; v++) {
        const V sum = FMA(one, FMA(one, acc[0][v], acc[1][v]), FMA(one, acc[2][v], acc[3][v]));
        STOREM((T *)t->out + v * L, v == nv - 1 ? mask : MASK_OF(L), sum);
    }
}

/* q = 1: x is not reused, so the loops are arranged to read it fast. */
static TARGET void NAME(outer1)(const struct mc_gemm_outer *t)
{
    int64_t k = 0;
    if (t->narrow) {
        if (t->np <= L) {
            NAME(one_by_vectors)(t, 1);
        } else {
            NAME(one_by_vectors)(t, 2);
        }
        return;
    }
    for (; k + 8 <= t->k; k += 8) {
        NAME(rows)(t, k, t->add || k > 0, 8);
    }
    for (; k < t->k; k++) {
        NAME(rows)(t, k, t->add || k > 0, 1);
    }
}

#define DOT(q)                                                                                     \
    static TARGET void NAME(dot##q)(const struct mc_gemm_dot *t)                                   \
    {                                                                                              \
        NAME(dot)(t, q);                                                                           \
    }
#ifdef ONE_OUTER
static TARGET __attribute__((noinline)) void NAME(outer_of)(const struct mc_gemm_outer *t, int q)
{
    const int most = OUTER_P(q), step = t->np == most * L ? most : MC_MIN(most, 2);
    struct mc_gemm_outer piece = *t;
    for (int64_t p = 0; p < t->np; p += step * L) {
        piece.x = (const T *)t->x + p;
        piece.out = (T *)t->out + p;
        piece.np = MC_MIN(t->np - p, (int64_t)(step * L));
        NAME(outer)(&piece, q, step, false);
    }
}
#define OUTER(q)                                                                                   \
    static TARGET void NAME(outer##q)(const struct mc_gemm_outer *t)                               \
    {                                                                                              \
        NAME(outer_of)(t, q);                                                                      \
    }
#else
/* Where at most two vectors fit, whole and partial ones are one function: it decides in each step. */
#define OUTER(q)                                                                                   \
    static TARGET void NAME(outer##q)(const struct mc_gemm_outer *t)                               \
    {                                                                                              \
        if (OUTER_P(q) <= 2) {                                                                     \
            NAME(outer)(t, q, OUTER_P(q), t->np == OUTER_P(q) * L);                                \
        } else if (t->np == OUTER_P(q) * L) {                                                      \
            NAME(outer)(t, q, OUTER_P(q), true);                                                   \
        } else {                                                                                   \
            NAME(outer_rest)(t, q);                                                                \
        }                                                                                          \
    }
#endif
EACH_DOT(DOT)
EACH_OUTER(OUTER)
