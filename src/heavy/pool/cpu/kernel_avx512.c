/* kernel_avx512.c: pooling kernels in registers of 512 bits. Comparisons give mask registers.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "heavy/pool/cpu/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define ISA "avx512"
#define INLINE static inline TARGET __attribute__((always_inline))

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
    int64_t windows;           /* of one block */
    __m512i cell[4], window[4]; /* where cell i of each window is; the window of each element of register v */
    __mmask16 high[4];         /* cells that are in registers 2 and 3 */
};

static inline bool block_fits(const struct mc_pool_row *r, char *const *x, int64_t band)
{
    return r->s == 2 && r->w == 2 && r->nrow == 2 && r->n <= 16 && r->n * r->bands >= 64 &&
           x[1] - x[0] == 8 * r->n && band == 16 * r->n && r->y_band == 4 * r->n &&
           (!r->key || r->key_band == r->n);
}

static TARGET struct block block_of(int64_t n)
{
    struct block b = { .windows = 16 / n * n };
    int32_t cell[4][16] = { 0 }, window[64] = { 0 };
    for (int32_t w = 0; w < b.windows; w++) {
        for (int32_t i = 0; i < 4; i++) {
            const int32_t at = (int32_t)(w / n * 4 * n + i / 2 * 2 * n + w % n * 2 + i % 2);
            cell[i][w] = at;
            window[at] = w;
        }
    }
    for (int i = 0; i < 4; i++) {
        b.cell[i] = _mm512_loadu_si512(cell[i]);
        b.window[i] = _mm512_loadu_si512(window + 16 * i);
        b.high[i] = _mm512_test_epi32_mask(b.cell[i], _mm512_set1_epi32(32));
    }
    return b;
}

INLINE __mmask16 first_of(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n > 0 ? (1u << n) - 1 : 0);
}

INLINE void block_load(const struct block *b, const float *from, int64_t windows, __m512 *x, __m512 *cell)
{
    for (int i = 0; i < 4; i++) {
        x[i] = _mm512_maskz_loadu_ps(first_of(4 * windows - 16 * i), from + 16 * i);
    }
    for (int i = 0; i < 4; i++) {
        cell[i] = _mm512_mask_blend_ps(b->high[i], _mm512_permutex2var_ps(x[0], b->cell[i], x[1]),
                                       _mm512_permutex2var_ps(x[2], b->cell[i], x[3]));
    }
}

INLINE __m512i block_max(const __m512 *cell, const int32_t *mark, __m512 *best)
{
    __m512i at = _mm512_set1_epi32(mark[0]);
    *best = cell[0];
    for (int i = 1; i < 4; i++) {
        const __mmask16 k = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(*best, *best, _CMP_ORD_Q), cell[i],
                                                    *best, _CMP_NLE_UQ);
        *best = _mm512_mask_blend_ps(k, *best, cell[i]);
        at = _mm512_mask_blend_epi32(k, at, _mm512_set1_epi32(mark[i / 2] + i % 2));
    }
    return at;
}

/* The bits of the cells that equal the maximum. */
INLINE __m512i block_bits(const __m512 *cell, const int32_t *mark, __m512 best)
{
    __m512i bits = _mm512_setzero_si512();
    for (int i = 0; i < 4; i++) {
        bits = _mm512_mask_or_epi32(bits, _mm512_cmp_ps_mask(cell[i], best, _CMP_EQ_OQ), bits,
                                    _mm512_set1_epi32(1 << (mark[i / 2] + i % 2)));
    }
    return bits;
}

static TARGET bool max_block(const struct mc_pool_row *r)
{
    if (!block_fits(r, r->x, r->x_band) || r->more || (r->key && r->wide)) {
        return false;
    }
    const struct block b = block_of(r->n);
    const float *x = (const float *)(void *)r->x[0];
    for (int64_t j = 0, all = r->n * r->bands; j < all; j += b.windows) {
        const int64_t n = MC_MIN(all - j, b.windows);
        __m512 v[4], cell[4], best;
        block_load(&b, x + 4 * j, n, v, cell);
        __m512i at = block_max(cell, r->mark, &best);
        at = r->bits ? block_bits(cell, r->mark, best) : at;
        _mm512_mask_storeu_ps((float *)r->y + j, first_of(n), best);
        if (r->key) {
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
        block_load(&b, k + 4 * j, n, v, cell);
        block_max(cell, mark, &best);
        for (int i = 0; i < 4; i++) {
            const __m512 most = _mm512_permutexvar_ps(b.window[i], best);
            _mm512_mask_storeu_ps(
                x + 4 * j + 16 * i, first_of(4 * n - 16 * i),
                _mm512_maskz_permutexvar_ps(_mm512_cmp_ps_mask(v[i], most, _CMP_EQ_OQ), b.window[i], g));
        }
    }
    return true;
}

static TARGET bool put_block(const struct mc_pool_row *r)
{
    if (!r->key || !block_fits(r, r->x, r->x_band)) {
        return false;
    }
    const struct block b = block_of(r->n);
    float *x = (float *)(void *)r->x[0];
    __m512i name[4]; /* of each element: the mark or the bit of its cell */
    for (int i = 0; i < 4; i++) {
        int32_t cell[16];
        for (int32_t e = 0; e < 16; e++) {
            const int32_t in = (16 * i + e) % (int32_t)(4 * r->n), row = in >= 2 * (int32_t)r->n;
            const int32_t mark = r->mark[row] + in % 2;
            cell[e] = r->bits ? 1 << mark : mark;
        }
        name[i] = _mm512_loadu_si512(cell);
    }
    for (int64_t j = 0, all = r->n * r->bands; j < all; j += b.windows) {
        const int64_t n = MC_MIN(all - j, b.windows);
        const __m512 g = _mm512_maskz_loadu_ps(first_of(n), (const float *)r->y + j);
        const __m512i key = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_of(n), (const char *)r->key + j));
        for (int i = 0; i < 4; i++) {
            const __m512i k = _mm512_permutexvar_epi32(b.window[i], key);
            const __mmask16 put = r->bits ? _mm512_test_epi32_mask(k, name[i]) : _mm512_cmpeq_epi32_mask(k, name[i]);
            _mm512_mask_storeu_ps(x + 4 * j + 16 * i, first_of(4 * n - 16 * i),
                                  _mm512_maskz_permutexvar_ps(put, b.window[i], g));
        }
    }
    return true;
}
#undef INLINE

#define PUT_BLOCK put_block
#define MAX_BLOCK max_block
#define TIES_BLOCK ties_block
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

#ifdef MC_RUNTIME
#define ONE_FORM
#endif
#define T double
#define IT int64_t
#define L 8
#define NAME(x) f64_##x
#define EVENS 0, 2, 4, 6, 9, 11, 13, 15
#define LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER 4, 12, 5, 13, 6, 14, 7, 15
#include "heavy/pool/cpu/kernel_vector.h"

const struct mc_pool_kernel *const mc_pool_avx512[2] = { &f32_kernel, &f64_kernel };
#else
const struct mc_pool_kernel *const mc_pool_avx512[2] = { NULL, NULL };
#endif
