/* kernel_body.h: the text of all matrix product kernels, included once for each instruction set and
 * element type.  The including file defines
 *
 *   T, V, L           element, vector, lanes of a vector
 *   NAME(x), TARGET   name of a static here; attribute that names the instruction set
 *   MR, NVMAX         rows and most vectors of a register tile
 *   ACC               accumulators of a thin kernel
 *   DOT_Q, OUTER_Q    most columns of a thin kernel; EACH_DOT(F) is F(1)..., EACH_OUTER(F) is F(2)...
 *   ZERO SET1 LOAD STORE FMA MUL     on vectors
 *   MASK MASK_OF LOADM STOREM        the first n lanes, n in 0..L; the others are not touched
 *   STREAM DRAIN      a store past the caches, and what ends such stores; nothing and NULL where rows of a
 *                     tile do not fill whole lines
 *   SUM4              the lane sums of four vectors, to four adjacent elements
 *   TW, TK, TURN      a transposed block copy: TK rows of TW elements from TW rows of TK
 *   ISA, FLOPS        name; multiplications and additions a cycle
 *
 * and finds them undefined again below, with NAME(kernel) made.
 *
 * Invariant: every loop over registers has bounds that are constants once inlined, so that all
 * accumulators live in registers. */

#define INLINE static inline __attribute__((always_inline)) TARGET

/* ---- tiles ---- */

INLINE void NAME(tile)(const struct mc_gemm_tile *t, const int nv, const int64_t a_row, const int64_t a_col)
{
    const T *a = t->a, *b = t->b;
    const int64_t b_row = t->b_row;
    const int64_t last = t->n - (nv - 1) * L;
    const MASK mask = MASK_OF(last);
    const bool masked = last != L;
    V acc[MR][NVMAX];

    UNROLL(8)
    for (int r = 0; r < MR; r++) {
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            acc[r][v] = ZERO();
        }
    }
    const bool stream = t->stream && ((uintptr_t)t->c | (uintptr_t)t->c_row * sizeof(T)) % 64 == 0;
    for (int r = 0; r < t->m && t->k >= 64 && !stream; r++) { /* wanted when the sums are done, not much sooner */
        const T *row = (const T *)t->c + r * t->c_row;
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            __builtin_prefetch(row + v * L, 1);
        }
        __builtin_prefetch(row + t->n - 1, 1);
    }
    /* Packed panels hold full rows of both; unpacked ones end where the matrix does. */
    if (a_row == 1) {
        for (int64_t k = t->k; k > 0; k--) {
            V bv[NVMAX];
            UNROLL(3)
            for (int v = 0; v < nv; v++) {
                bv[v] = LOAD(b + v * L);
            }
            UNROLL(8)
            for (int r = 0; r < MR; r++) {
                const V av = SET1(a[r]);
                UNROLL(3)
                for (int v = 0; v < nv; v++) {
                    acc[r][v] = FMA(av, bv[v], acc[r][v]);
                }
            }
            a += a_col;
            b += b_row;
        }
    } else {
        const T *row[MR];
        UNROLL(8)
        for (int r = 0; r < MR; r++) {
            row[r] = a + (r < t->m ? r : t->m - 1) * t->a_row;
        }
        for (int64_t k = 0; k < t->k; k++) {
            V bv[NVMAX];
            UNROLL(3)
            for (int v = 0; v < nv; v++) {
                bv[v] = v == nv - 1 && masked ? LOADM(b + v * L, mask) : LOAD(b + v * L);
            }
            UNROLL(8)
            for (int r = 0; r < MR; r++) {
                const V av = SET1(row[r][k * t->a_col]);
                UNROLL(3)
                for (int v = 0; v < nv; v++) {
                    acc[r][v] = FMA(av, bv[v], acc[r][v]);
                }
            }
            b += b_row;
        }
    }

    const V alpha = SET1((T)t->alpha), beta = SET1((T)t->beta);
    const bool add = t->beta != 0;
    T *c = t->c;
    const T *c0 = t->c0;
    UNROLL(8)
    for (int r = 0; r < MR; r++) {
        if (r >= t->m) {
            break;
        }
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            const bool part = v == nv - 1 && masked;
            V x = MUL(alpha, acc[r][v]);
            if (add) {
                const T *from = c0 + r * t->c0_row + v * L;
                x = FMA(beta, part ? LOADM(from, mask) : LOAD(from), x);
            }
            if (part) {
                STOREM(c + r * t->c_row + v * L, mask, x);
            } else if (stream) {
                STREAM(c + r * t->c_row + v * L, x);
            } else {
                STORE(c + r * t->c_row + v * L, x);
            }
        }
    }
}

#define TILES(nv)                                                                                  \
    static TARGET void NAME(packed##nv)(const struct mc_gemm_tile *t)                              \
    {                                                                                              \
        NAME(tile)(t, nv, 1, MR);                                                                  \
    }                                                                                              \
    static TARGET void NAME(direct##nv)(const struct mc_gemm_tile *t)                              \
    {                                                                                              \
        NAME(tile)(t, nv, 0, 0);                                                                   \
    }
TILES(1)
TILES(2)
TILES(3)

/* ---- thin ---- */

INLINE void NAME(dot)(const struct mc_gemm_dot *t, const int q)
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
        UNROLL(8)
        for (int j = 0; j < q; j++) {
            const V sv = LOAD(s + j * L);
            UNROLL(4)
            for (int r = 0; r < 4; r++) {
                acc[j][r] = FMA(xv[r], sv, acc[j][r]);
            }
        }
        s += q * L;
    }
    if (at < k) {
        const MASK mask = MASK_OF(k - at);
        UNROLL(4)
        for (int r = 0; r < 4; r++) {
            xv[r] = LOADM(x[r] + at, mask);
        }
        UNROLL(8)
        for (int j = 0; j < q; j++) {
            const V sv = LOAD(s + j * L);
            UNROLL(4)
            for (int r = 0; r < 4; r++) {
                acc[j][r] = FMA(xv[r], sv, acc[j][r]);
            }
        }
    }
    UNROLL(8)
    for (int j = 0; j < q; j++) {
        SUM4(acc[j], out + j * 4);
    }
}

#define OUTER_P(q) (ACC / (q) > 16 ? 16 : ACC / (q)) /* vectors of x that q columns leave room for */

INLINE void NAME(outer)(const struct mc_gemm_outer *t, const int q, const int nv, const bool full)
{
    const int64_t out_row = t->out_row, far = t->far;
    const T *x = t->x, *s = t->s;
    T *out = t->out;
    MASK mask[16];
    V acc[OUTER_Q][16];
    UNROLL(16)
    for (int v = 0; v < nv && !full; v++) {
        const int64_t left = t->np - v * L;
        mask[v] = MASK_OF(left < 0 ? 0 : left > L ? L : left);
    }
    UNROLL(16)
    for (int j = 0; j < q; j++) {
        UNROLL(16)
        for (int v = 0; v < nv; v++) {
            const T *from = out + j * out_row + v * L;
            acc[j][v] = !t->add ? ZERO() : full ? LOAD(from) : LOADM(from, mask[v]);
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
    UNROLL(16)
    for (int j = 0; j < q; j++) {
        UNROLL(16)
        for (int v = 0; v < nv; v++) {
            if (full) {
                STORE(out + j * out_row + v * L, acc[j][v]);
            } else {
                STOREM(out + j * out_row + v * L, mask[v], acc[j][v]);
            }
        }
    }
}

/* out = (add ? out : 0) + s[0] * x[0] + ... of `rows` rows of x: as many long streams. */
INLINE void NAME(rows)(const struct mc_gemm_outer *t, int64_t k, const bool add, const int rows)
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

/* What does not fill the registers goes in pieces of two vectors. */
INLINE void NAME(outer_rest)(const struct mc_gemm_outer *t, const int q)
{
    const int nv = OUTER_P(q) < 2 ? 1 : 2;
    struct mc_gemm_outer piece = *t;
    for (int64_t p = 0; p < t->np; p += nv * L) {
        piece.x = (const T *)t->x + p;
        piece.out = (T *)t->out + p;
        piece.np = MC_MIN(t->np - p, (int64_t)(nv * L));
        NAME(outer)(&piece, q, nv, false);
    }
}

/* One column of s and few of p: one vector, or two, held in four chains of sums. */
INLINE void NAME(few)(const struct mc_gemm_outer *t, const int nv)
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
                acc[c][v] = FMA(v == nv - 1 ? LOADM(row + v * L, mask) : LOAD(row + v * L), SET1(s[k + c]), acc[c][v]);
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

/* One column of s: there is nothing to reuse x for, so all is arranged for reading it fast. */
static TARGET void NAME(outer1)(const struct mc_gemm_outer *t)
{
    int64_t k = 0;
    if (t->narrow) {
        if (t->np <= L) {
            NAME(few)(t, 1);
        } else {
            NAME(few)(t, 2);
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
#define OUTER(q)                                                                                   \
    static TARGET void NAME(outer##q)(const struct mc_gemm_outer *t)                               \
    {                                                                                              \
        if (t->np == OUTER_P(q) * L) {                                                             \
            NAME(outer)(t, q, OUTER_P(q), true);                                                   \
        } else {                                                                                   \
            NAME(outer_rest)(t, q);                                                                \
        }                                                                                          \
    }
EACH_DOT(DOT)
EACH_OUTER(OUTER)

/* ---- packing ---- */

static TARGET void NAME(pack)(void *dst_, const void *src_, int64_t w_stride, int64_t k_stride, int64_t nw, int64_t nk,
                              int64_t width)
{
    T *dst = dst_;
    const T *src = src_;
    int64_t w = 0; /* columns of dst done */
    if (w_stride == 1) {
        const int64_t whole = nw / L * L; /* row by row: each is read in one piece */
        for (int64_t p = 0; p < nk; p++) {
            for (w = 0; w < whole; w += L) {
                STORE(dst + p * width + w, LOAD(src + p * k_stride + w));
            }
        }
        w = whole;
    } else if (k_stride == 1) {
        for (; w + TW <= nw; w += TW) {
            int64_t p = 0;
            for (; p + TK <= nk; p += TK) {
                TURN(dst + p * width + w, width, src + w * w_stride + p, w_stride);
            }
            for (; p < nk; p++) {
                for (int64_t i = w; i < w + TW; i++) {
                    dst[p * width + i] = src[i * w_stride + p];
                }
            }
        }
    }
    if (w == width) {
        return;
    }
    for (int64_t p = 0; p < nk; p++) {
        T *to = dst + p * width;
        for (int64_t i = w; i < nw; i++) {
            to[i] = src[i * w_stride + p * k_stride];
        }
        for (int64_t i = nw; i < width; i++) {
            to[i] = 0;
        }
    }
}

#define ROW_DOT(q) [q] = NAME(dot##q),
#define ROW_OUTER(q) [q] = NAME(outer##q),
#define ROW_OUTER_P(q) [q] = OUTER_P(q) * L,
static const struct mc_gemm_kernel NAME(kernel) = {
    .name    = ISA,
    .mr      = MR,
    .nr      = NVMAX * L,
    .lanes   = L,
    .flops   = FLOPS,
    .dot_q   = DOT_Q,
    .outer_q = OUTER_Q,
    .outer_p = { [1] = GEMM_ROW, EACH_OUTER(ROW_OUTER_P) },
    .packed  = { NULL, NAME(packed1), NAME(packed2), NAME(packed3) },
    .direct  = { NULL, NAME(direct1), NAME(direct2), NAME(direct3) },
    .dot     = { EACH_DOT(ROW_DOT) },
    .outer   = { [1] = NAME(outer1), EACH_OUTER(ROW_OUTER) },
    .pack    = NAME(pack),
    .drain   = DRAIN,
};

#undef T
#undef V
#undef L
#undef NAME
#undef ZERO
#undef SET1
#undef LOAD
#undef STORE
#undef FMA
#undef MUL
#undef MASK
#undef MASK_OF
#undef LOADM
#undef STOREM
#undef STREAM
#undef SUM4
#undef TW
#undef TK
#undef TURN
#undef FLOPS
#undef INLINE
#undef TILES
#undef DOT
#undef OUTER
#undef OUTER_P
#undef ROW_DOT
#undef ROW_OUTER
#undef ROW_OUTER_P
