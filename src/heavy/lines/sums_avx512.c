/* sums_avx512.c: running sums in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512. */
#include "heavy/lines/lines.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LEVEL avx512
#define TARGET MC_LINES_AVX512

enum { LANES = 8 };

/* Running sums of the lanes: each is added to those 1, 2 and 4 after it. */
TARGET static inline __attribute__((always_inline)) __m512i within(__m512i x)
{
    const __m512i zero = _mm512_setzero_si512();
    x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, LANES - 1));
    x = _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, LANES - 2));
    return _mm512_add_epi64(x, _mm512_alignr_epi64(x, zero, LANES - 4));
}

/* load(at, lanes): some elements, widened. */
#define WHOLE(T, load, load_some)                                                                  \
    TARGET static void whole_##T(uint64_t *y, const T *x, int64_t n, uint64_t sum)                 \
    {                                                                                              \
        const __m512i last = _mm512_set1_epi64(LANES - 1);                                         \
        __m512i before = _mm512_set1_epi64((long long)sum);                                        \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            const __m512i s = within(load(x + i));                                                 \
            _mm512_storeu_si512((void *)(y + i), _mm512_add_epi64(before, s));                     \
            before = _mm512_add_epi64(before, _mm512_permutexvar_epi64(last, s));                  \
        }                                                                                          \
        if (i < n) {                                                                               \
            const __mmask8 some = (__mmask8)((1u << (n - i)) - 1u);                                \
            const __m512i s = within(load_some(some, x + i));                                      \
            _mm512_mask_storeu_epi64((void *)(y + i), some, _mm512_add_epi64(before, s));          \
        }                                                                                          \
    }
#define LONGS_AT(p) _mm512_loadu_si512((const void *)(p))
#define SOME_LONGS_AT(m, p) _mm512_maskz_loadu_epi64(m, (const void *)(p))
#define INTS_AT(p) _mm512_cvtepi32_epi64(_mm256_loadu_si256((const void *)(p)))
#define SOME_INTS_AT(m, p) _mm512_cvtepi32_epi64(_mm256_maskz_loadu_epi32(m, (const void *)(p)))
WHOLE(int64_t, LONGS_AT, SOME_LONGS_AT)
WHOLE(int32_t, INTS_AT, SOME_INTS_AT)
#undef WHOLE
#define LONGS whole_int64_t
#define INTS whole_int32_t
#include "heavy/lines/sums.h"

const struct mc_sum_level mc_sums_avx512 = LEVEL_ROW;
#endif
