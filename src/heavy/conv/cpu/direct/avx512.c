/* avx512.c: direct sums in 32 registers of 512 bits: blocks of 4 rows by 6 vectors.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "heavy/conv/cpu/direct/direct.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define L       16
#define EVENS   0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#define LOW     0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define NV      6
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6)
#define MATH    { 0.78, 0.9 }
#define ADD     { 15e-9, 1.7e-9 }
#define OWN_ADD_ROWS
#define TALL    { { 8, 3 }, { 6, 4 } }
#define EACH_TALL(F) F(8, 1) F(8, 2) F(8, 3) F(6, 1) F(6, 2) F(6, 3) F(6, 4)
enum { TALL_ROWS = 8, TALL_VECTORS = 4 };

/* A mask of the first n lanes. n may be negative or larger than L. */
static inline TARGET __attribute__((always_inline)) unsigned below(int64_t n)
{
    n = n < 0 ? 0 : n;
    n = n > L ? L : n;
    return (1u << n) - 1;
}

/* Adds all taps of a vector before it is stored, so that the next load does not wait for the store. */
static TARGET void add_rows(float *to, const float *from, int64_t step, const int64_t *off, int64_t taps,
                        int64_t n)
{
    const int64_t all = n + off[taps - 1];
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                  count = _mm512_set1_epi32((int)n);
    for (int64_t i = off[0]; i < all; i += L) {
        const __mmask16 mask = (__mmask16)below(all - i);
        __m512 sum = _mm512_maskz_loadu_ps(mask, to + i);
        /* from has [0, n): as unsigned numbers, negative indices are too large */
        for (int64_t t = 0; t < taps; t++) {
            const __m512i at = _mm512_add_epi32(lane, _mm512_set1_epi32((int)(i - off[t])));
            const __mmask16 has = _mm512_cmplt_epu32_mask(at, count);
            sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(has, from + t * step + i - off[t]));
        }
        _mm512_mask_storeu_ps(to + i, mask, sum);
    }
}
#include "heavy/conv/cpu/direct/body.h"

const struct mc_direct_kernel *const mc_direct_avx512 = &kernel;
#else
const struct mc_direct_kernel *const mc_direct_avx512 = NULL;
#endif
