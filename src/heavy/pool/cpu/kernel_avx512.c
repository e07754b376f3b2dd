/* kernel_avx512.c: pooling kernels in registers of 512 bits. Comparisons give mask registers.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "heavy/pool/cpu/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define ISA "avx512"
#define INLINE static inline TARGET __attribute__((always_inline))
#ifdef MC_RUNTIME
#define UNROLL
#define BITS_KNOWN false
#else
#define BITS_KNOWN true
#define UNROLL _Pragma("GCC unroll 4") /* vectors stay in registers */
#endif

INLINE __m512 f32_even(const float *p)
{
    const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(_mm512_loadu_ps(p), at, _mm512_loadu_ps(p + 15));
}

INLINE void f32_both(float *p, __m512 a, __m512 b)
{
    const __m512i lo = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i hi = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    _mm512_storeu_ps(p, _mm512_permutex2var_ps(a, lo, b));
    _mm512_storeu_ps(p + 16, _mm512_permutex2var_ps(a, hi, b));
}

/* ---- rows of up to 16 windows of 2 x 2 cells, elements without gaps: several such rows fill up to four
 * registers, from which permutations take the cells of up to 16 windows ---- */

struct block {
    int64_t windows, registers; /* of one block; registers that its elements fill */
    __m512i cell[4], window[4]; /* where cell i of each window is; the window of each element of register v */
    __mmask16 high[4];          /* cells that are in registers 2 and 3 */
    /* if two registers have cells 0 and 1 of each window, the elements from one register to the next, else 0;
     * cells 2 and 3 are a row of the image further on */
    int64_t second, row;
    __m512i pair[2];
};

static inline bool block_fits(const struct mc_pool_row *r, char *const *x, int64_t band)
{
    return r->s == 2 && r->w == 2 && r->nrow == 2 && r->n <= 16 && r->n * r->bands >= 64 &&
           x[1] - x[0] == 8 * r->n && band == 16 * r->n && r->y_band == 4 * r->n &&
           (!r->key || r->key_band == r->n);
}

static TARGET struct block block_of(int64_t n)
{
    struct block b = { .windows = 16 / n * n, .registers = (16 / n * n + 3) / 4, .row = 2 * n };
    int32_t cell[4][16] = { 0 }, window[64] = { 0 }, pair[2][16] = { 0 };
    b.second = n > 8 ? 2 * n - 16 : n > 5 ? 4 * n : 0;
    for (int32_t w = 0; w < b.windows; w++) {
        for (int32_t i = 0; i < 4; i++) {
            const int32_t at = (int32_t)(w / n * 4 * n + i / 2 * 2 * n + w % n * 2 + i % 2);
            cell[i][w] = at;
            window[at] = w;
            if (i < 2) {
                pair[i][w] = at < 16 && at < 2 * n ? at : 16 + at - (int32_t)b.second;
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        b.cell[i] = _mm512_loadu_si512(cell[i]);
        b.window[i] = _mm512_loadu_si512(window + 16 * i);
        b.high[i] = _mm512_cmpge_epi32_mask(b.cell[i], _mm512_set1_epi32(32));
        b.pair[i / 2] = _mm512_loadu_si512(pair[i / 2]);
    }
    return b;
}

INLINE __mmask16 first_of(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n > 0 ? (1u << n) - 1 : 0);
}

/* all: 16 windows or more are left, so that whole registers may be read */
INLINE void block_load(const struct block *b, const float *from, int64_t windows, bool all, __m512 *x,
                       __m512 *cell)
{
    UNROLL
    for (int i = 0; i < 4; i++) {
        x[i] = all ? _mm512_loadu_ps(from + 16 * i)
                   : _mm512_maskz_loadu_ps(first_of(4 * windows - 16 * i), from + 16 * i);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        cell[i] = _mm512_mask_blend_ps(b->high[i], _mm512_permutex2var_ps(x[0], b->cell[i], x[1]),
                                       _mm512_permutex2var_ps(x[2], b->cell[i], x[3]));
    }
}

INLINE __m512i block_max(const __m512 *cell, const int32_t *mark, __m512 *best)
{
    __m512i at = _mm512_set1_epi32(mark[0]);
    *best = cell[0];
    UNROLL
    for (int i = 1; i < 4; i++) {
        const __mmask16 k = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(*best, *best, _CMP_ORD_Q), cell[i],
                                                    *best, _CMP_NLE_UQ);
        *best = _mm512_mask_blend_ps(k, *best, cell[i]);
        at = _mm512_mask_blend_epi32(k, at, _mm512_set1_epi32(mark[i / 2] + i % 2));
    }
    return at;
}

#ifndef MC_RUNTIME /* a runtime has the loops with masks alone */
/* The bits of the cells that equal the maximum. */
INLINE __m512i block_bits(const __m512 *cell, const int32_t *mark, __m512 best)
{
    __m512i bits = _mm512_setzero_si512();
    UNROLL
    for (int i = 0; i < 4; i++) {
        bits = _mm512_mask_or_epi32(bits, _mm512_cmp_ps_mask(cell[i], best, _CMP_EQ_OQ), bits,
                                    _mm512_set1_epi32(1 << (mark[i / 2] + i % 2)));
    }
    return bits;
}

/* The same as block_max without a NaN among the cells, and as block_bits.  False: there is one. */
INLINE bool block_max_of_numbers(const __m512 *cell, const int32_t *mark, const bool key, const bool bits,
                                 __m512 *best, __m512i *at)
{
    /* of equal operands, and two zeros are equal, _mm512_max_ps gives the second */
    const __m512 upper = _mm512_max_ps(cell[1], cell[0]), lower = _mm512_max_ps(cell[3], cell[2]);
    const __mmask16 nan = _mm512_cmp_ps_mask(cell[0], cell[1], _CMP_UNORD_Q) |
                          _mm512_cmp_ps_mask(cell[2], cell[3], _CMP_UNORD_Q);
    *best = _mm512_max_ps(lower, upper);
    if (bits) {
        *at = block_bits(cell, mark, *best);
    } else if (key) {
        const __m512i up = _mm512_set1_epi32(mark[0]), down = _mm512_set1_epi32(mark[1]),
                      one = _mm512_set1_epi32(1);
        const __m512i a = _mm512_mask_add_epi32(up, _mm512_cmp_ps_mask(cell[1], cell[0], _CMP_GT_OQ), up,
                                                one),
                      b = _mm512_mask_add_epi32(down, _mm512_cmp_ps_mask(cell[3], cell[2], _CMP_GT_OQ), down,
                                                one);
        *at = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(lower, upper, _CMP_GT_OQ), a, b);
    }
    return nan == 0;
}

/* While 16 windows are left: what is written behind a block is overwritten by the next one.  Returns the
 * windows that are done. */
INLINE int64_t max_blocks(const struct block *b, const struct mc_pool_row *r, int64_t all, const bool pairs)
{
    const float *x = (const float *)(void *)r->x[0];
    float *const y = r->y;
    char *const key = r->key;
    const int32_t mark[2] = { r->mark[0], r->mark[1] };
    const bool bits = r->bits;
    int64_t j = 0;
    for (; j + 16 <= all; j += b->windows) {
        const float *from = x + 4 * j;
        __m512 v[4], cell[4], best;
        __m512i at = _mm512_setzero_si512();
        if (pairs) {
            UNROLL
            for (int i = 0; i < 4; i++) {
                v[i] = _mm512_loadu_ps(from + i / 2 * b->row + i % 2 * b->second);
            }
            UNROLL
            for (int i = 0; i < 4; i++) {
                cell[i] = _mm512_permutex2var_ps(v[i / 2 * 2], b->pair[i % 2], v[i / 2 * 2 + 1]);
            }
        } else {
            block_load(b, from, 16, true, v, cell);
        }
        if (!block_max_of_numbers(cell, mark, key, bits, &best, &at)) {
            at = block_max(cell, mark, &best);
            at = bits ? block_bits(cell, mark, best) : at;
        }
        _mm512_storeu_ps(y + j, best);
        if (key) {
            _mm_storeu_si128((__m128i *)(void *)(key + j), _mm512_cvtepi32_epi8(at));
        }
    }
    return j;
}
#else
#define max_blocks(b, r, all, pairs) 0
#endif

static TARGET bool max_block(const struct mc_pool_row *r)
{
    if (!block_fits(r, r->x, r->x_band) || r->more || (r->key && r->wide)) {
        return false;
    }
    const struct block b = block_of(r->n);
    const float *x = (const float *)(void *)r->x[0];
    const int64_t all = r->n * r->bands;
    for (int64_t j = b.second ? max_blocks(&b, r, all, true) : max_blocks(&b, r, all, false); j < all;
         j += b.windows) {
        const int64_t n = MC_MIN(all - j, b.windows);
        __m512 v[4], cell[4], best;
        block_load(&b, x + 4 * j, n, false, v, cell);
        __m512i at = block_max(cell, r->mark, &best);
#ifndef MC_RUNTIME
        at = r->bits ? block_bits(cell, r->mark, best) : at;
#endif
        _mm512_mask_storeu_ps((float *)r->y + j, first_of(n), best);
        if (r->key && (!r->bits || BITS_KNOWN)) {
            _mm512_mask_cvtepi32_storeu_epi8((char *)r->key + j, first_of(n), at);
        }
    }
    return true;
}

static TARGET bool ties_block(const struct mc_pool_row *r)
{
    if (!block_fits(r, r->x, r->x_band) || r->k[1] - r->k[0] != 8 * r->n || r->k_band != r->x_band) {
        return false;
    }
    static const int32_t mark[2] = { 0 };
    const struct block b = block_of(r->n);
    const float *k = (const float *)(const void *)r->k[0];
    float *x = (float *)(void *)r->x[0];
    for (int64_t j = 0, all = r->n * r->bands; j < all; j += b.windows) {
        const int64_t n = MC_MIN(all - j, b.windows);
        const __m512 g = _mm512_maskz_loadu_ps(first_of(n), (const float *)r->y + j);
        __m512 v[4], cell[4], best;
        block_load(&b, k + 4 * j, n, false, v, cell);
        block_max(cell, mark, &best);
        UNROLL
        for (int i = 0; i < 4; i++) {
            const __m512 most = _mm512_permutexvar_ps(b.window[i], best);
            _mm512_mask_storeu_ps(
                x + 4 * j + 16 * i, first_of(4 * n - 16 * i),
                _mm512_maskz_permutexvar_ps(_mm512_cmp_ps_mask(v[i], most, _CMP_EQ_OQ), b.window[i], g));
        }
    }
    return true;
}

#ifndef MC_RUNTIME
/* Register i of a block: g where the element's mark or bit is its window's. */
INLINE __m512 put_register(const struct block *b, int i, __m512i key, __m512i name, bool bits, __m512 g)
{
    const __m512i k = _mm512_permutexvar_epi32(b->window[i], key);
    const __mmask16 put = bits ? _mm512_test_epi32_mask(k, name) : _mm512_cmpeq_epi32_mask(k, name);
    return _mm512_maskz_permutexvar_ps(put, b->window[i], g);
}

/* While 16 windows are left, as max_blocks. */
INLINE int64_t put_blocks(const struct block *b, const struct mc_pool_row *r, const __m512i *name,
                          int64_t all, const int registers, const bool bits)
{
    float *const x = (float *)(void *)r->x[0];
    const float *const y = r->y;
    const char *const keys = r->key;
    int64_t j = 0;
    for (; j + 16 <= all; j += b->windows) {
        const __m512 g = _mm512_loadu_ps(y + j);
        const __m512i key = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(keys + j)));
        UNROLL
        for (int i = 0; i < registers; i++) {
            _mm512_storeu_ps(x + 4 * j + 16 * i, put_register(b, i, key, name[i], bits, g));
        }
    }
    return j;
}

static TARGET bool put_block(const struct mc_pool_row *r)
{
    if (!r->key || !block_fits(r, r->x, r->x_band)) {
        return false;
    }
    const struct block b = block_of(r->n);
    const int64_t all = r->n * r->bands;
    float *x = (float *)(void *)r->x[0];
    __m512i name[4]; /* of each element: the mark or the bit of its cell */
    UNROLL
    for (int i = 0; i < 4; i++) {
        int32_t cell[16];
        for (int32_t e = 0; e < 16; e++) {
            const int32_t in = (16 * i + e) % (int32_t)(4 * r->n), row = in >= 2 * (int32_t)r->n;
            const int32_t mark = r->mark[row] + in % 2;
            cell[e] = r->bits ? 1 << mark : mark;
        }
        name[i] = _mm512_loadu_si512(cell);
    }
    for (int64_t j = b.registers == 3 ? r->bits ? put_blocks(&b, r, name, all, 3, true)
                                                : put_blocks(&b, r, name, all, 3, false)
                     : r->bits ? put_blocks(&b, r, name, all, 4, true)
                                      : put_blocks(&b, r, name, all, 4, false);
         j < all; j += b.windows) {
        const int64_t n = MC_MIN(all - j, b.windows);
        const __m512 g = _mm512_maskz_loadu_ps(first_of(n), (const float *)r->y + j);
        const __m512i key = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_of(n), (const char *)r->key + j));
        UNROLL
        for (int i = 0; i < 4; i++) {
            _mm512_mask_storeu_ps(x + 4 * j + 16 * i, first_of(4 * n - 16 * i),
                                  put_register(&b, i, key, name[i], r->bits, g));
        }
    }
    return true;
}
#define PUT_BLOCK put_block
#else
#define PUT_BLOCK NULL
#endif
#undef INLINE
#undef UNROLL
#undef BITS_KNOWN

#define MAX_BLOCK max_block
#define TIES_BLOCK ties_block
#ifndef MC_RUNTIME /* which takes those of kernel_generic.c */
#define BITS 1
#endif
#define T float
#define V __m512
#define I __m512i
#define M __mmask16
#define L 16
#define NAME(x) f32_##x
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define SET1 _mm512_set1_ps
#define ADD _mm512_add_ps
#define MUL _mm512_mul_ps
#define BEATS(v, m) _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(m, m, _CMP_ORD_Q), v, m, _CMP_NLE_UQ)
#define EQUAL(v, m) _mm512_cmp_ps_mask(v, m, _CMP_EQ_OQ)
#define PICK(k, a, b) _mm512_mask_blend_ps(k, b, a)
#define PICKI(k, a, b) _mm512_mask_blend_epi32(k, b, a)
#define SETI _mm512_set1_epi32
#define STORE8(p, v) _mm_storeu_si128((__m128i *)(void *)(p), _mm512_cvtepi32_epi8(v))
#define STORE32(p, v) _mm512_storeu_si512((void *)(p), v)
#define LOAD8(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define LOAD32(p) _mm512_loadu_si512((const void *)(p))
#define IS _mm512_cmpeq_epi32_mask
#define EVEN f32_even
#define BOTH f32_both
#include "heavy/pool/cpu/kernel_body.h"
#undef MAX_BLOCK
#undef PUT_BLOCK
#undef TIES_BLOCK

#ifdef MC_RUNTIME /* which takes those of kernel_avx2.c in float64 */
const struct mc_pool_kernel *const mc_pool_avx512[2] = { &f32_kernel, NULL };
#else
#define T double
#define IT int64_t
#define L 8
#define NAME(x) f64_##x
#define EVENS 0, 2, 4, 6, 9, 11, 13, 15
#define LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER 4, 12, 5, 13, 6, 14, 7, 15
#include "heavy/pool/cpu/kernel_vector.h"

const struct mc_pool_kernel *const mc_pool_avx512[2] = { &f32_kernel, &f64_kernel };
#endif
#else
const struct mc_pool_kernel *const mc_pool_avx512[2] = { NULL, NULL };
#endif
