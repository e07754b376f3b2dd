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
#undef INLINE

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
