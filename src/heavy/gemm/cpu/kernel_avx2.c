/* kernel_avx2.c: matrix product kernels for 16 registers of 256 bits: tiles of 4 rows by 3 vectors (12
 * accumulators, 3 registers for b, one for a).
 *
 * Invariant: nothing here runs unless the CPU reports AVX2 and FMA. */
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#include "heavy/gemm/cpu/x86.h"

#define TARGET  __attribute__((target("avx2,fma")))
#define ISA     "avx2"
#define MR      4
#define NVMAX   3
#define GATHERED_MR(nv) ((nv) == 1 ? 8 : (nv) == 2 ? 6 : 4)
#define ACC     12
#define DRAIN   NULL
#define DOT_Q   3
#define OUTER_Q 6
#define EACH_DOT(F) F(1) F(2) F(3)
#define EACH_OUTER(F) F(2) F(3) F(4) F(5) F(6)

#define T               float
#define V               __m256
#define L               8
#define NAME(x)         f32_##x
#define FLOPS           32
#define ZERO            _mm256_setzero_ps
#define SET1            _mm256_set1_ps
#define LOAD            _mm256_loadu_ps
#define STORE           _mm256_storeu_ps
#define FMA             _mm256_fmadd_ps
#define MUL             _mm256_mul_ps
#define MASK            __m256i
#define MASK_OF(n)      \
    _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define LOADM(p, m)     _mm256_maskload_ps(p, m)
#define STOREM          _mm256_maskstore_ps
#define STREAM          STORE
#define SUM4            x86_sum4_f32
#define TW              4
#define TK              4
#define TURN            x86_turn4_f32
#include "heavy/gemm/cpu/kernel_body.h"

#ifdef MC_RUNTIME
#define ONE_OUTER
#endif
#define T               double
#define V               __m256d
#define L               4
#define NAME(x)         f64_##x
#define FLOPS           16
#define ZERO            _mm256_setzero_pd
#define SET1            _mm256_set1_pd
#define LOAD            _mm256_loadu_pd
#define STORE           _mm256_storeu_pd
#define FMA             _mm256_fmadd_pd
#define MUL             _mm256_mul_pd
#define MASK            __m256i
#define MASK_OF(n)      _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3))
#define LOADM(p, m)     _mm256_maskload_pd(p, m)
#define STOREM          _mm256_maskstore_pd
#define STREAM          STORE
#define SUM4            x86_sum4_f64
#define TW              4
#define TK              4
#define TURN            x86_turn4_f64
#include "heavy/gemm/cpu/kernel_body.h"

const struct mc_gemm_kernel *const mc_gemm_avx2[2] = { &f32_kernel, &f64_kernel };
#else
const struct mc_gemm_kernel *const mc_gemm_avx2[2] = { NULL, NULL };
#endif
