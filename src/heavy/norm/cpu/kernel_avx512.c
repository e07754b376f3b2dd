/* kernel_avx512.c: normalisation kernels in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "heavy/norm/cpu/kernel.h"
#include "base/base.h"
#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define ISA "avx512"

#define T float
#define V __m512
#define L 16
#define NAME(x) f32_##x
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define SET1 _mm512_set1_ps
#define ADD _mm512_add_ps
#define MUL _mm512_mul_ps
#define FMA _mm512_fmadd_ps
#define DIV _mm512_div_ps
#define SQRT _mm512_sqrt_ps
#define POW powf
#include "heavy/norm/cpu/kernel_body.h"

#define T double
#define V __m512d
#define L 8
#define NAME(x) f64_##x
#define LOAD _mm512_loadu_pd
#define STORE _mm512_storeu_pd
#define SET1 _mm512_set1_pd
#define ADD _mm512_add_pd
#define MUL _mm512_mul_pd
#define FMA _mm512_fmadd_pd
#define DIV _mm512_div_pd
#define SQRT _mm512_sqrt_pd
#define POW pow
#include "heavy/norm/cpu/kernel_body.h"

const struct mc_norm_kernel *const mc_norm_avx512[2] = { &f32_kernel, &f64_kernel };
#else
const struct mc_norm_kernel *const mc_norm_avx512[2] = { NULL, NULL };
#endif
