/* kernel_avx2.c: pooling kernels in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#include "heavy/pool/cpu/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define ISA "avx2"
#define INLINE static inline TARGET __attribute__((always_inline))

INLINE void f32_store8(uint8_t *p, __m256i v)
{
    const __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(half, half));
}

INLINE __m256 f32_even(const float *p)
{
    const __m256 a = _mm256_loadu_ps(p), b = _mm256_loadu_ps(p + 7); /* b[1] is p[8] */
    return _mm256_permutevar8x32_ps(_mm256_blend_ps(a, b, 0xaa), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

INLINE void f32_both(float *p, __m256 a, __m256 b)
{
    const __m256 lo = _mm256_unpacklo_ps(a, b), hi = _mm256_unpackhi_ps(a, b);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(lo, hi, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(lo, hi, 0x31));
}
#undef INLINE

#ifndef MC_RUNTIME /* which takes those of kernel_generic.c */
#define BITS 1
#endif
#define T float
#define V __m256
#define I __m256i
#define M __m256
#define L 8
#define NAME(x) f32_##x
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define SET1 _mm256_set1_ps
#define ADD _mm256_add_ps
#define MUL _mm256_mul_ps
#define BEATS(v, m) _mm256_and_ps(_mm256_cmp_ps(v, m, _CMP_NLE_UQ), _mm256_cmp_ps(m, m, _CMP_ORD_Q))
#define EQUAL(v, m) _mm256_cmp_ps(v, m, _CMP_EQ_OQ)
#define PICK(k, a, b) _mm256_blendv_ps(b, a, k)
#define PICKI(k, a, b) \
    _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(b), _mm256_castsi256_ps(a), k))
#define SETI _mm256_set1_epi32
#define STORE8 f32_store8
#define STORE32(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define LOAD8(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define LOAD32(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define IS(i, j) _mm256_castsi256_ps(_mm256_cmpeq_epi32(i, j))
#define EVEN f32_even
#define BOTH f32_both
#include "heavy/pool/cpu/kernel_body.h"

#ifdef MC_RUNTIME
#define ONE_FORM
#endif
#define T double
#define IT int64_t
#define L 4
#define NAME(x) f64_##x
#define EVENS 0, 2, 5, 7
#define LOWER 0, 4, 1, 5
#define UPPER 2, 6, 3, 7
#include "heavy/pool/cpu/kernel_vector.h"

const struct mc_pool_kernel *const mc_pool_avx2[2] = { &f32_kernel, &f64_kernel };
#else
const struct mc_pool_kernel *const mc_pool_avx2[2] = { NULL, NULL };
#endif
