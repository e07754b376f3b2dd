/* philox_avx2.c: uniform numbers in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2. */
#include "heavy/lines/draw.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))
#define NAME(x) x##_avx2
#define LANES 4
#define V __m256i
#define D __m256d
#define LANE_BLOCKS _mm256_setr_epi64x(0, 2, 1, 3)
#define SET1(x) _mm256_set1_epi64x((long long)(x))
#define MUL _mm256_mul_epu32
#define XOR _mm256_xor_si256
#define XOR3(a, b, c) XOR(XOR(a, b), c)
#define ADD _mm256_add_epi64
#define AND _mm256_and_si256
#define OR _mm256_or_si256
#define SHIFT_DOWN _mm256_srli_epi64
#define SHIFT_UP _mm256_slli_epi64
#define SHIFT_DOWN_HALVES _mm256_srli_epi32
#define UNPACK_LOW _mm256_unpacklo_epi64
#define UNPACK_HIGH _mm256_unpackhi_epi64
#define TO_FLOATS _mm256_cvtepi32_ps
#define MUL_FLOATS _mm256_mul_ps
#define SET1_FLOATS _mm256_set1_ps
#define STORE_FLOATS _mm256_storeu_ps
#define AS_DOUBLES _mm256_castsi256_pd
#define ADD_DOUBLES _mm256_add_pd
#define SUB_DOUBLES _mm256_sub_pd
#define MUL_DOUBLES _mm256_mul_pd
#define SET1_DOUBLES _mm256_set1_pd
#define STORE_DOUBLES _mm256_storeu_pd
#include "heavy/lines/philox.h"
#endif
