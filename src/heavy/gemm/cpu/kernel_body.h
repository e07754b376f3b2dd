/* kernel_body.h: all matrix product kernels, included once for each instruction set and element type.  The
 * including file defines
 *
 *   T, V, L           element, vector, lanes of a vector
 *   NAME(x), TARGET   the name of function x; the attribute that names the instruction set
 *   MR, NVMAX         rows and most vectors of a register tile
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

FUSED void NAME(tile)(const struct mc_gemm_tile *t, const int nv, const bool packed)
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
    /* The rows of C are needed at the end: start loading them now, unless the sums are too short. */
    for (int r = 0; r < t->m && t->k >= 64 && !stream; r++) {
        const T *row = (const T *)t->c + r * t->c_row;
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            __builtin_prefetch(row + v * L, 1);
        }
        __builtin_prefetch(row + t->n - 1, 1);
    }
    /* Packed panels are padded to full rows and columns.  Unpacked operands end at the edge of the matrix. */
    if (packed) {
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
            a += MR;
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

    /* Each decision is one for all rows, which keeps this code short. */
    const V alpha = SET1((T)t->alpha), beta = SET1((T)t->beta);
    const int64_t m = t->m;
    UNROLL(8)
    for (int r = 0; r < MR; r++) {
        UNROLL(3)
        for (int v = 0; v < nv; v++) {
            acc[r][v] = MUL(alpha, acc[r][v]);
        }
    }
    if (t->beta != 0) {
        const T *c0 = t->c0;
        UNROLL(8)
        for (int r = 0; r < MR; r++, c0 += t->c0_row) {
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
        for (int r = 0; r < MR; r++, c += t->c_row) {
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
    for (int r = 0; r < MR; r++, c += t->c_row) {
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

/* Both kinds of tile are one function: they end alike, and that end is most of its code. */
#define TILES(nv)                                                                                  \
    static TARGET __attribute__((noinline)) void NAME(tile##nv)(const struct mc_gemm_tile *t, bool packed) \
    {                                                                                              \
        NAME(tile)(t, nv, packed);                                                                 \
    }                                                                                              \
    static TARGET void NAME(packed##nv)(const struct mc_gemm_tile *t)                              \
    {                                                                                              \
        NAME(tile##nv)(t, true);                                                                   \
    }                                                                                              \
    static TARGET void NAME(direct##nv)(const struct mc_gemm_tile *t)                              \
    {                                                                                              \
        NAME(tile##nv)(t, false);                                                                  \
    }
TILES(1)
TILES(2)
TILES(3)

#include "heavy/gemm/cpu/skinny_body.h"

/* ---- packing ---- */

static TARGET void NAME(pack)(void *dst_, const void *src_, int64_t w_stride, int64_t k_stride, int64_t nw,
                              int64_t nk, int64_t width)
{
    T *dst = dst_;
    const T *src = src_;
    int64_t w = 0; /* number of columns of dst that are filled */
    if (w_stride == 1) {
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
#undef TILES
#undef DOT
#undef OUTER
#undef OUTER_P
#undef ROW_DOT
#undef ROW_OUTER
#undef ROW_OUTER_P
