/* avx2.c: sums of woven groups in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#include "heavy/conv/cpu/grouped/grouped.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET       __attribute__((target("avx2,fma")))
#define V            __m256
#define L            8
#define ZERO()       _mm256_setzero_ps()
#define LOAD(p)      _mm256_loadu_ps(p)
#define STORE(p, v)  _mm256_storeu_ps(p, v)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ONE(p)       _mm256_broadcast_ss(p)
#define TWO(p)       _mm256_castpd_ps(_mm256_set1_pd(two_floats(p)))
#define FOUR(p)      _mm256_broadcast_ps((const __m128 *)(const void *)(p))
#define GATHER(p, i) _mm256_i32gather_ps(p, _mm256_loadu_si256((const __m256i *)(const void *)(i)), 4)
#define PERMUTE(v, i) _mm256_permutevar8x32_ps(v, _mm256_loadu_si256((const __m256i *)(const void *)(i)))
/* positions of a tile, by its vectors; channels of a tile of dots */
#define TILES1(F)    F(1, 10) F(1, 8) F(1, 7) F(1, 4) F(1, 1)
#define TILES2(F)    F(2, 6) F(2, 5) F(2, 4) F(2, 1)
#define TILES3(F)    F(3, 4) F(3, 2) F(3, 1)
#define DOTS         4
#define RUNS         { 0, 3, 1, 1 }
#include "heavy/conv/cpu/grouped/body.h"

const struct mc_grouped_kernel *const mc_grouped_avx2 = &kernel;
#else
const struct mc_grouped_kernel *const mc_grouped_avx2 = NULL;
#endif
