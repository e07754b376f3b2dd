/* avx2.c: the sums of a depthwise convolution in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#include "heavy/conv/cpu/depthwise/depthwise.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define L      8
#define EVEN   0, 2, 4, 6, 8, 10, 12, 14
#define LOW    0, 8, 1, 9, 2, 10, 3, 11
#define HIGH   4, 12, 5, 13, 6, 14, 7, 15
#include "heavy/conv/cpu/depthwise/body.h"

const struct mc_depth_kernel *const mc_depth_avx2 = &kernel;
#else
const struct mc_depth_kernel *const mc_depth_avx2 = NULL;
#endif
