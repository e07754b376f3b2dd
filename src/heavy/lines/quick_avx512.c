/* quick_avx512.c: quicksort of keys in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512. */
#include "heavy/lines/lines.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,popcnt")))
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
#define FIRST(v) (uint32_t)_mm512_cvtsi512_si32(v)
#define ADD _mm512_add_epi32
#define MASK_ADD _mm512_mask_add_epi32
#define NOT_LESS _mm512_cmpge_epu32_mask
#define TO_BYTES _mm512_cvtepi32_epi8
#define STORE_BYTES(p, v) _mm_storeu_si128((void *)(p), v)
#define POSITIONS __m512i
#define FIRST_POSITIONS(at) _mm512_add_epi32(LANE_NUMBERS, SET1(at))
#define NEXT_POSITIONS(v, n) _mm512_add_epi32(v, SET1(n))
#define COMPRESS_POSITIONS(m, v) _mm512_maskz_compress_epi32(m, v)
#define STORE_POSITIONS STORE

/* The splitters at nodes of one level, which begins at node `level`: 16 of a register, 32 of two. */
TARGET static inline __attribute__((always_inline)) V look_up_32(const V *node, V at, int level)
{
    return level < 16    ? PERMUTE(at, node[0])
           : level == 16 ? PERMUTE(at, node[1])
                         : TAKE(node[2], at, node[3]);
}
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
#undef FIRST
#undef ADD
#undef MASK_ADD
#undef NOT_LESS
#undef TO_BYTES
#undef STORE_BYTES
#undef POSITIONS
#undef FIRST_POSITIONS
#undef NEXT_POSITIONS
#undef COMPRESS_POSITIONS
#undef STORE_POSITIONS

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
#define FIRST(v) (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(v))
#define ADD _mm512_add_epi64
#define MASK_ADD _mm512_mask_add_epi64
#define NOT_LESS _mm512_cmpge_epu64_mask
#define TO_BYTES _mm512_cvtepi64_epi8
#define STORE_BYTES(p, v) _mm_storel_epi64((void *)(p), v)
#define POSITIONS __m256i
#define FIRST_POSITIONS(at) \
    _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)(at)))
#define NEXT_POSITIONS(v, n) _mm256_add_epi32(v, _mm256_set1_epi32(n))
#define COMPRESS_POSITIONS(m, v) _mm256_maskz_compress_epi32(m, v)
#define STORE_POSITIONS(p, v) _mm256_storeu_si256((void *)(p), v)

TARGET static inline __attribute__((always_inline)) V look_up_64(const V *node, V at, int level)
{
    return level < 8    ? PERMUTE(at, node[0])
           : level == 8 ? PERMUTE(at, node[1])
           : level < 32 ? TAKE(node[2], at, node[3])
                        : _mm512_mask_blend_epi64(_mm512_test_epi64_mask(at, SET1(16)),
                                                  TAKE(node[4], at, node[5]), TAKE(node[6], at, node[7]));
}
#include "heavy/lines/quick.h"

static void sort_32(uint32_t *a, uint32_t *spare, int64_t n, int64_t k)
{
    uint64_t state = 1;
    quick_32(a, spare, n, k, &state);
}

static void sort_64(uint64_t *a, uint64_t *spare, int64_t n, int64_t k)
{
    uint64_t state = 1;
    quick_64(a, spare, n, k, &state);
}

const struct mc_quick mc_quick_avx512 = { sort_32, sort_64, classes_32, classes_64, below_32, below_64 };
#endif
