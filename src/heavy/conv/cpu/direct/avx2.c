/* avx2.c: direct sums in 16 registers of 256 bits: blocks of 4 rows by 2 vectors.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#include "heavy/conv/cpu/direct/direct.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#define TARGET  __attribute__((target("avx2,fma")))
#define L       8
#define EVENS   0, 2, 4, 6, 9, 11, 13, 15
#define LOW     0, 8, 1, 9, 2, 10, 3, 11
#define HIGH    4, 12, 5, 13, 6, 14, 7, 15
#define NV      2
#define EACH(F) F(1) F(2)
#define MATH    { 0.5, 0.82 }
#define ADD     { 5e-9, 5e-9 }
#define TALL    { { 6, 2 }, { 0, 0 } }
#define EACH_TALL(F) F(6, 1) F(6, 2)
enum { TALL_ROWS = 6, TALL_VECTORS = 2 };
#include "heavy/conv/cpu/direct/body.h"

const struct mc_direct_kernel *const mc_direct_avx2 = &kernel;
#else
const struct mc_direct_kernel *const mc_direct_avx2 = NULL;
#endif
