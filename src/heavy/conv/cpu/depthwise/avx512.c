/* avx512.c: the sums of a depthwise convolution in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "heavy/conv/cpu/depthwise/depthwise.h"
#include "heavy/gemm/cpu/kernel.h"

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define L      16
#define EVEN   0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define LOW    0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH   8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#include "heavy/conv/cpu/depthwise/body.h"

const struct mc_depth_kernel *const mc_depth_avx512 = &kernel;
#else
const struct mc_depth_kernel *const mc_depth_avx512 = NULL;
#endif
