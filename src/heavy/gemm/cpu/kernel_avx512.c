/* kernel_avx512.c: matrix product kernels for 32 registers of 512 bits: tiles of 8 rows by 3 vectors (24
 * accumulators, 3 registers for b, the rest for a), with masked loads and stores at the edges.
 *
 * Invariant: nothing here runs unless the CPU reports AVX-512 F, BW, DQ and VL. */
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#include "heavy/gemm/cpu/x86.h"

#define TARGET  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define ISA     "avx512"
#define MR      8
#define NVMAX   3
#define GATHERED_MR(nv) 8
#define ACC     28
#define DOT_Q   6
#define OUTER_Q 16
#define EACH_DOT(F) F(1) F(2) F(3) F(4) F(5) F(6)
#define EACH_OUTER(F) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)

#define HALVES(x) _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1))
static inline TARGET void sum4_f32(const __m512 *a, float *out)
{
    const __m256 half[4] = { HALVES(a[0]), HALVES(a[1]), HALVES(a[2]), HALVES(a[3]) };
    x86_sum4_f32(half, out);
}
#undef HALVES

#define HALVES(x) _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd(x, 1))
static inline TARGET void sum4_f64(const __m512d *a, double *out)
{
    const __m256d half[4] = { HALVES(a[0]), HALVES(a[1]), HALVES(a[2]), HALVES(a[3]) };
    x86_sum4_f64(half, out);
}
#undef HALVES

static void drain(void)
{
    _mm_sfence();
}
#define DRAIN   drain

#define T               float
#define V               __m512
#define L               16
#define NAME(x)         f32_##x
#define FLOPS           32
#define ZERO            _mm512_setzero_ps
#define SET1            _mm512_set1_ps
#define LOAD            _mm512_loadu_ps
#define STORE           _mm512_storeu_ps
#define FMA             _mm512_fmadd_ps
#define MUL             _mm512_mul_ps
#define MASK            __mmask16
#define MASK_OF(n)      ((__mmask16)((1u << (n)) - 1u))
#define LOADM(p, m)     _mm512_maskz_loadu_ps(m, p)
#define STOREM          _mm512_mask_storeu_ps
#define STREAM          _mm512_stream_ps
#define SUM4            sum4_f32
#define TW              8
#define TK              8
#define TURN            x86_turn8_f32
#include "heavy/gemm/cpu/kernel_body.h"

#ifdef MC_RUNTIME
#define ONE_OUTER
#endif
#define T               double
#define V               __m512d
#define L               8
#define NAME(x)         f64_##x
#define FLOPS           16
#define ZERO            _mm512_setzero_pd
#define SET1            _mm512_set1_pd
#define LOAD            _mm512_loadu_pd
#define STORE           _mm512_storeu_pd
#define FMA             _mm512_fmadd_pd
#define MUL             _mm512_mul_pd
#define MASK            __mmask8
#define MASK_OF(n)      ((__mmask8)((1u << (n)) - 1u))
#define LOADM(p, m)     _mm512_maskz_loadu_pd(m, p)
#define STOREM          _mm512_mask_storeu_pd
#define STREAM          _mm512_stream_pd
#define SUM4            sum4_f64
#define TW              4
#define TK              4
#define TURN            x86_turn4_f64
#include "heavy/gemm/cpu/kernel_body.h"

const struct mc_gemm_kernel *const mc_gemm_avx512[2] = { &f32_kernel, &f64_kernel };
#else
const struct mc_gemm_kernel *const mc_gemm_avx512[2] = { NULL, NULL };
#endif
