/* kernel_body.h: all matrix product kernels, included once for each instruction set and element type.  The
 * including file defines
 *
 *   T, V, L           element, vector, lanes of a vector
 *   NAME(x), TARGET   the name of function x; the attribute that names the instruction set
 *   MR, NVMAX         rows and most vectors of a register tile
 *   GATHERED_MR(nv)   rows of a tile of nv vectors whose left operand is gathered
 *   ACC               accumulators of a skinny kernel
 *   DOT_Q, OUTER_Q    most columns of a skinny kernel; EACH_DOT(F) is F(1)..., EACH_OUTER(F) is F(2)...
 *   ZERO SET1 LOAD STORE FMA MUL     on vectors
 *   MASK MASK_OF LOADM STOREM        the first n lanes, n in 0..L; the others are not touched
 *   STREAM DRAIN      a store past the caches and the fence after such stores; STORE and NULL if a vector is
 *                     smaller than a cache line
 *   SUM4              the lane sums of four vectors, to four adjacent elements
 *   TW, TK, TURN      a transposed block copy: TK rows of TW elements from TW rows of TK
 *   ISA, FLOPS        name; multiplications and additions a cycle
 *
 * This file defines NAME(kernel) and undefines those of them that depend on the element type.
 *
 * Invariant: every loop over registers has constant bounds after inlining, so that all accumulators are in
 * registers. */

#ifndef FUSED
#define FUSED static inline TARGET __attribute__((always_inline))
#endif

/* ---- tiles ---- */

/* acc += a * b over all k.  a_packed, b_packed: in panels, padded to full rows and columns; else the operand
 * ends at the edge of the matrix.  masked: b ends within the last vector.  early: rows of b are prefetched to
 * the L1 cache. */
FUSED void NAME(sums)(const struct mc_gemm_tile *t, V acc[][NVMAX], const int nv, const bool a_packed,
                      const bool b_packed, const bool masked, const bool early)
{
    enum { EARLY = 8, IN_LINE = 64 / (L * sizeof(T)) }; /* rows of b; vectors of a cache line */
    const T *a = t->a, *b = t->b, *row[MR];
    const char *ahead = t->ahead ? t->ahead : t->b;
    const int64_t ahead_step = t->ahead_step, b_row = b_packed ? nv * L : t->b_row,
                  a_col = a_packed ? MR : b_packed ? 1 : t->a_col;
    const MASK mask = MASK_OF(t->n - (nv - 1) * L);
    UNROLL(8)
    for (int r = 0; r < MR; r++) {
        row[r] = a_packed ? a + r : a + (r < t->m ? r : t->m - 1) * t->a_row;
    }
    int64_t at = 0; /* of row */
    for (int64_t k = t->k; k > 0; k--) {
        V bv[NVMAX];
        UNROLL(3)
        for (int v = 0; v < nv && early; v += IN_LINE) {
            __builtin_prefetch(b + EARLY * b_row + v * L);
        }
        if (b_packed || ahead_step) {
            __builtin_prefetch(ahead, 0, 2);
            ahead += ahead_step;
        }
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            bv[v] = v == nv - 1 && masked ? LOADM(b + v * L, mask) : LOAD(b + v * L);
        }
        UNROLL(8)
        for (int r = 0; r < MR; r++) {
            const V av = SET1(a_packed ? a[at + r] : row[r][at]);
            UNROLL(3)
            for (int v = 0; v < nv; v++) {
                acc[r][v] = FMA(av, bv[v], acc[r][v]);
            }
        }
        at += a_col;
        b += b_row;
    }
}

/* Starts loading the tile at `first`. */
FUSED void NAME(fetch)(const struct mc_gemm_tile *t, const void *first, int64_t stride, const int nv)
{
    for (int r = 0; r < t->m; r++) {
        const T *row = (const T *)first + r * stride;
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            __builtin_prefetch(row + v * L, 1);
        }
        __builtin_prefetch(row + t->n - 1, 1);
    }
}

#ifndef MC_RUNTIME
/* The same for mr rows where A is gathered: each row and each k has an offset. */
FUSED void NAME(gathered_sums)(const struct mc_gemm_tile *t, V acc[][NVMAX], const int nv, const int mr)
{
    const T *b = t->b, *row[GEMM_MAX_MR];
    UNROLL(8)
    for (int r = 0; r < mr; r++) {
        row[r] = (const T *)t->a + t->a_rows[r < t->m ? r : t->m - 1];
    }
    for (const int32_t *at = t->a_at, *end = at + t->k; at < end; at++, b += nv * L) {
        const int64_t k = *at;
        V bv[NVMAX];
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            bv[v] = LOAD(b + v * L);
        }
        UNROLL(8)
        for (int r = 0; r < mr; r++) {
            const V av = SET1(row[r][k]);
            UNROLL(3)
            for (int v = 0; v < nv; v++) {
                acc[r][v] = FMA(av, bv[v], acc[r][v]);
            }
        }
    }
}
#endif

#ifdef MC_RUNTIME
#define TILE_ROWS MR
#else
#define TILE_ROWS GEMM_MAX_MR
#endif
FUSED void NAME(tile)(const struct mc_gemm_tile *t, const int nv, const int mr,
                      const enum mc_gemm_packs packs, const bool gathers)
{
    const int64_t last = t->n - (nv - 1) * L;
    const MASK mask = MASK_OF(last);
    const bool masked = last != L;
    V acc[TILE_ROWS][NVMAX];

    UNROLL(8)
    for (int r = 0; r < mr; r++) {
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            acc[r][v] = ZERO();
        }
    }
    const bool stream = t->stream && ((uintptr_t)t->c | (uintptr_t)t->c_row * sizeof(T)) % 64 == 0;
    /* C and C0 are needed at the end: start loading them now, unless the sums are too short. */
    if (t->k >= 64 && !stream) {
        NAME(fetch)(t, t->c, t->c_row, nv);
    }
    if (t->k >= 64 && t->beta != 0 && t->c0 != t->c) {
        NAME(fetch)(t, t->c0, t->c0_row, nv);
    }
    if (gathers) {
#ifndef MC_RUNTIME
        NAME(gathered_sums)(t, acc, nv, mr);
#endif
    } else if (packs == GEMM_PACKS_BOTH) {
        NAME(sums)(t, acc, nv, true, true, false, false);
#ifdef MC_RUNTIME /* one loop, which is smaller */
    } else {
        NAME(sums)(t, acc, nv, false, false, masked, false);
    }
#else
    } else if (packs == GEMM_PACKS_B) {
        NAME(sums)(t, acc, nv, false, true, false, false);
    } else if (packs == GEMM_PACKS_NONE_EARLY) {
        NAME(sums)(t, acc, nv, false, false, false, true);
    } else if (masked) {
        NAME(sums)(t, acc, nv, false, false, true, false);
    } else {
        NAME(sums)(t, acc, nv, false, false, false, false);
    }
#endif

    /* Each decision is one for all rows, which keeps this code short. */
    const V alpha = SET1((T)t->alpha), beta = SET1((T)t->beta);
    const bool scaled = t->alpha < 1 || t->alpha > 1;
    const int64_t m = t->m;
    UNROLL(8)
    for (int r = 0; r < mr && scaled; r++) {
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            acc[r][v] = MUL(alpha, acc[r][v]);
        }
    }
    if (t->beta != 0) {
        const T *c0 = t->c0;
        UNROLL(8)
        for (int r = 0; r < mr; r++, c0 += t->c0_row) {
            if (r >= m) {
                break;
            }
            UNROLL(3)
            for (int v = 0; v < nv; v++) {
                acc[r][v] = FMA(beta, v == nv - 1 ? LOADM(c0 + v * L, mask) : LOAD(c0 + v * L), acc[r][v]);
            }
        }
    }
    T *c = t->c;
    if (stream && !masked) {
        UNROLL(8)
        for (int r = 0; r < mr; r++, c += t->c_row) {
            if (r >= m) {
                return;
            }
            UNROLL(3)
            for (int v = 0; v < nv; v++) {
                STREAM(c + v * L, acc[r][v]);
            }
        }
        return;
    }
    UNROLL(8)
    for (int r = 0; r < mr; r++, c += t->c_row) {
        if (r >= m) {
            return;
        }
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            if (v == nv - 1 && masked) {
                STOREM(c + v * L, mask, acc[r][v]);
            } else {
                STORE(c + v * L, acc[r][v]);
            }
        }
    }
}

/* All kinds of tile are one function: they end alike, and that end is most of its code. */
#define TILE(nv, kind, packs)                                                                      \
    static TARGET void NAME(kind##nv)(const struct mc_gemm_tile *t)                                \
    {                                                                                              \
        NAME(tile##nv)(t, packs);                                                                  \
    }
#define TILES(nv)                                                                                  \
    static TARGET __attribute__((noinline)) void NAME(tile##nv)(const struct mc_gemm_tile *t,      \
                                                               enum mc_gemm_packs packs)          \
    {                                                                                              \
        NAME(tile)(t, nv, MR, packs, false);                                                       \
    }                                                                                              \
    TILE(nv, packed, GEMM_PACKS_BOTH)                                                              \
    TILE(nv, rows, GEMM_PACKS_B)                                                                   \
    TILE(nv, direct, GEMM_PACKS_NONE)
TILES(1)
TILES(2)
TILES(3)
#ifndef MC_RUNTIME
#define GATHERED(nv)                                                                               \
    static TARGET void NAME(gathered##nv)(const struct mc_gemm_tile *t)                            \
    {                                                                                              \
        NAME(tile)(t, nv, GATHERED_MR(nv), GEMM_PACKS_NONE, true);                                 \
    }
GATHERED(1)
GATHERED(2)
GATHERED(3)
#undef GATHERED
static TARGET void NAME(early)(const struct mc_gemm_tile *t)
{
    NAME(tile)(t, NVMAX, MR, GEMM_PACKS_NONE_EARLY, false);
}
#endif

#include "heavy/gemm/cpu/skinny_body.h"

/* ---- packing ---- */

static TARGET void NAME(pack)(void *dst_, const void *src_, int64_t w_stride, int64_t k_stride, int64_t nw,
                              int64_t nk, int64_t width)
{
    T *dst = dst_;
    const T *src = src_;
    int64_t w = 0; /* number of columns of dst that are filled */
    if (w_stride == 1 && nw == MR && width == MR) {
        for (int64_t p = 0; p < nk; p++) {
            memcpy(dst + p * MR, src + p * k_stride, MR * sizeof(T));
        }
        w = MR;
    } else if (w_stride == 1) {
        const int64_t whole = nw / L * L; /* row by row: each row is contiguous in src */
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
    .rows    = { NULL, NAME(rows1), NAME(rows2), NAME(rows3) },
    .direct  = { NULL, NAME(direct1), NAME(direct2), NAME(direct3) },
#ifndef MC_RUNTIME
    .gathered = { NULL, NAME(gathered1), NAME(gathered2), NAME(gathered3) },
    .early    = NAME(early),
    .gathered_mr = { 0, GATHERED_MR(1), GATHERED_MR(2), GATHERED_MR(3) },
#endif
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
#undef TILE
#undef TILES
#undef DOT
#undef OUTER
#undef OUTER_P
#undef ROW_DOT
#undef ROW_OUTER
#undef ROW_OUTER_P
