/* marked_avx512.c: sums over marked windows in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "gemm/kernel.h"
#include "pooled/marked.h"

#if defined(__x86_64__)
#define TARGET  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define L       16
#define MOST    12
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#include "pooled/marked_body.h"

const struct mc_marked_kernel *const mc_marked_avx512 = &kernel;
#else
const struct mc_marked_kernel *const mc_marked_avx512 = NULL;
#endif
