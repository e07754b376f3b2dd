/* philox_avx512.c: uniform numbers in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512. */
#include "heavy/lines/draw.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f")))
#define NAME(x) x##_avx512
#define LANES 8
#define V __m512i
#define D __m512d
#define LANE_BLOCKS _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7)
#define SET1(x) _mm512_set1_epi64((long long)(x))
#define MUL _mm512_mul_epu32
#define XOR _mm512_xor_si512
#define XOR3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define ADD _mm512_add_epi64
#define AND _mm512_and_si512
#define OR _mm512_or_si512
#define SHIFT_DOWN _mm512_srli_epi64
#define SHIFT_UP _mm512_slli_epi64
#define SHIFT_DOWN_HALVES _mm512_srli_epi32
#define UNPACK_LOW _mm512_unpacklo_epi64
#define UNPACK_HIGH _mm512_unpackhi_epi64
#define TO_FLOATS _mm512_cvtepi32_ps
#define MUL_FLOATS _mm512_mul_ps
#define SET1_FLOATS _mm512_set1_ps
#define STORE_FLOATS _mm512_storeu_ps
#define AS_DOUBLES _mm512_castsi512_pd
#define ADD_DOUBLES _mm512_add_pd
#define SUB_DOUBLES _mm512_sub_pd
#define MUL_DOUBLES _mm512_mul_pd
#define SET1_DOUBLES _mm512_set1_pd
#define STORE_DOUBLES _mm512_storeu_pd
#include "heavy/lines/philox.h"
#endif
