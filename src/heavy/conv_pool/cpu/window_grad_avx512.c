/* window_grad_avx512.c: the sums of window_grad.h in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, BW, DQ and VL. */
#include "heavy/gemm/cpu/kernel.h"
#include "heavy/conv_pool/cpu/window_grad.h"

#if defined(__x86_64__)
#define TARGET  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define L       16
#define MOST    12
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#define SUMS    28
#define SHAPES(F) \
    F(1, 1) F(2, 1) F(3, 1) F(4, 1) F(5, 1) F(6, 1) F(7, 1) \
    F(1, 2) F(2, 2) F(3, 2) F(4, 2) F(5, 2) F(6, 2) F(7, 2) \
    F(1, 3) F(2, 3) F(3, 3) F(4, 3) F(5, 3) F(6, 3) F(7, 3) \
    F(1, 4) F(2, 4) F(3, 4) F(4, 4) F(5, 4) F(6, 4) F(7, 4) \
    F(1, 5) F(2, 5) F(3, 5) F(4, 5) F(5, 5) \
    F(1, 6) F(2, 6) F(3, 6) F(4, 6) \
    F(1, 7) F(2, 7) F(3, 7) F(4, 7)
#define LINES   { 0, 7, 7, 7, 7, 5, 4, 4 }
#include "heavy/conv_pool/cpu/window_grad_body.h"

const struct mc_window_grad_kernel *const mc_window_grad_avx512 = &kernel;
#else
const struct mc_window_grad_kernel *const mc_window_grad_avx512 = NULL;
#endif
