/* direct_avx512.c: direct sums in 32 registers of 512 bits: blocks of 4 rows by 6 vectors.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "conv/direct.h"
#include "gemm/kernel.h"

#if defined(__x86_64__)
#define TARGET  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define L       16
#define NV      6
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6)
#define MATH    0.9
#include "conv/direct_body.h"

const struct mc_direct_kernel *const mc_direct_avx512 = &kernel;
#else
const struct mc_direct_kernel *const mc_direct_avx512 = NULL;
#endif
