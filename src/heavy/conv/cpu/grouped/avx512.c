/* avx512.c: sums of woven groups in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "heavy/conv/cpu/grouped/grouped.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET       __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define V            __m512
#define L            16
#define ZERO()       _mm512_setzero_ps()
#define LOAD(p)      _mm512_loadu_ps(p)
#define STORE(p, v)  _mm512_storeu_ps(p, v)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ONE(p)       _mm512_set1_ps(*(p))
#define TWO(p)       _mm512_castpd_ps(_mm512_set1_pd(two_floats(p)))
#define FOUR(p)      _mm512_broadcast_f32x4(_mm_loadu_ps(p))
#define EIGHT(p)     _mm512_broadcast_f32x8(_mm256_loadu_ps(p))
#define GATHER(p, i) _mm512_i32gather_ps(_mm512_loadu_si512(i), p, 4)
#define PERMUTE(v, i) _mm512_permutexvar_ps(_mm512_loadu_si512(i), v)
#define PERMUTE2(v, i, w) _mm512_permutex2var_ps(v, _mm512_loadu_si512(i), w)
/* positions of a tile, by its vectors; channels of a tile of dots */
#define TILES1(F)    F(1, 14) F(1, 8) F(1, 7) F(1, 4) F(1, 1)
#define TILES2(F)    F(2, 10) F(2, 7) F(2, 4) F(2, 1)
#define TILES3(F)    F(3, 7) F(3, 4) F(3, 1)
#define DOTS         8
#define RUNS         { 0, 3, 3, 3 }
#include "heavy/conv/cpu/grouped/body.h"

const struct mc_grouped_kernel *const mc_grouped_avx512 = &kernel;
#else
const struct mc_grouped_kernel *const mc_grouped_avx512 = NULL;
#endif
