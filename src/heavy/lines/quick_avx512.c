/* quick_avx512.c: quicksort of keys in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512. */
#include "heavy/lines/lines.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,popcnt")))
#define V __m512i
#define XOR _mm512_xor_si512
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), v)

#define U uint32_t
#define LANES 16
#define NAME(x) x##_32
#define MASK __mmask16
#define LANE_NUMBERS _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define INTERLEAVE _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define TAKE _mm512_permutex2var_epi32
#define SET1(x) _mm512_set1_epi32((int)(x))
#define PERMUTE _mm512_permutexvar_epi32
#define MIN _mm512_min_epu32
#define MAX _mm512_max_epu32
#define MASK_MAX _mm512_mask_max_epu32
#define LESS _mm512_cmplt_epu32_mask
#define COMPRESS(m, v) _mm512_mask_compress_epi32(v, m, v)
#define LOAD_SOME(other, m, p) _mm512_mask_loadu_epi32(other, m, (const void *)(p))
#define STORE_SOME(p, m, v) _mm512_mask_storeu_epi32((void *)(p), m, v)
#include "heavy/lines/quick.h"
#undef U
#undef LANES
#undef NAME
#undef MASK
#undef LANE_NUMBERS
#undef INTERLEAVE
#undef TAKE
#undef SET1
#undef PERMUTE
#undef MIN
#undef MAX
#undef MASK_MAX
#undef LESS
#undef COMPRESS
#undef LOAD_SOME
#undef STORE_SOME

#define U uint64_t
#define LANES 8
#define NAME(x) x##_64
#define MASK __mmask8
#define LANE_NUMBERS _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)
#define INTERLEAVE _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11)
#define TAKE _mm512_permutex2var_epi64
#define SET1(x) _mm512_set1_epi64((long long)(x))
#define PERMUTE _mm512_permutexvar_epi64
#define MIN _mm512_min_epu64
#define MAX _mm512_max_epu64
#define MASK_MAX _mm512_mask_max_epu64
#define LESS _mm512_cmplt_epu64_mask
#define COMPRESS(m, v) _mm512_mask_compress_epi64(v, m, v)
#define LOAD_SOME(other, m, p) _mm512_mask_loadu_epi64(other, m, (const void *)(p))
#define STORE_SOME(p, m, v) _mm512_mask_storeu_epi64((void *)(p), m, v)
#include "heavy/lines/quick.h"

void mc_quick_keys32_avx512(uint32_t *a, uint32_t *spare, int64_t n, int64_t k)
{
    uint64_t state = 1;
    quick_32(a, spare, n, k, &state);
}

void mc_quick_keys64_avx512(uint64_t *a, uint64_t *spare, int64_t n, int64_t k)
{
    uint64_t state = 1;
    quick_64(a, spare, n, k, &state);
}
#endif
