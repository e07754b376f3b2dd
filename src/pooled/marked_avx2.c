/* marked_avx2.c: sums over marked windows in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#include "gemm/kernel.h"
#include "pooled/marked.h"

#if defined(__x86_64__)
#define TARGET  __attribute__((target("avx2,fma")))
#define L       8
#define MOST    12
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#include "pooled/marked_body.h"

const struct mc_marked_kernel *const mc_marked_avx2 = &kernel;
#else
const struct mc_marked_kernel *const mc_marked_avx2 = NULL;
#endif
