/* kernel_avx2.c: normalisation kernels in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#include "heavy/norm/cpu/kernel.h"
#include "base/base.h"
#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define ISA "avx2"

#define T float
#define V __m256
#define L 8
#define NAME(x) f32_##x
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define SET1 _mm256_set1_ps
#define ADD _mm256_add_ps
#define MUL _mm256_mul_ps
#define FMA _mm256_fmadd_ps
#define DIV _mm256_div_ps
#define SQRT _mm256_sqrt_ps
#define POW powf
#include "heavy/norm/cpu/kernel_body.h"

#define T double
#define V __m256d
#define L 4
#define NAME(x) f64_##x
#define LOAD _mm256_loadu_pd
#define STORE _mm256_storeu_pd
#define SET1 _mm256_set1_pd
#define ADD _mm256_add_pd
#define MUL _mm256_mul_pd
#define FMA _mm256_fmadd_pd
#define DIV _mm256_div_pd
#define SQRT _mm256_sqrt_pd
#define POW pow
#include "heavy/norm/cpu/kernel_body.h"

const struct mc_norm_kernel *const mc_norm_avx2[2] = { &f32_kernel, &f64_kernel };
#else
const struct mc_norm_kernel *const mc_norm_avx2[2] = { NULL, NULL };
#endif
