/* window_grad_avx2.c: the sums of window_grad.h in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#include "heavy/gemm/cpu/kernel.h"
#include "heavy/conv_pool/cpu/window_grad.h"

#if defined(__x86_64__)
#define TARGET  __attribute__((target("avx2,fma")))
#define L       8
#define MOST    12
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#define SUMS    12
#define SHAPES(F) \
    F(1, 1) F(2, 1) F(3, 1) F(4, 1) F(5, 1) F(6, 1) F(7, 1) \
    F(1, 2) F(2, 2) F(3, 2) F(4, 2) F(5, 2) F(6, 2) \
    F(1, 3) F(2, 3) F(3, 3) F(4, 3) \
    F(1, 4) F(2, 4) F(3, 4) \
    F(1, 5) F(2, 5) \
    F(1, 6) F(2, 6) \
    F(1, 7)
#define LINES   { 0, 7, 6, 4, 3, 2, 2, 1 }
#include "heavy/conv_pool/cpu/window_grad_body.h"

const struct mc_window_grad_kernel *const mc_window_grad_avx2 = &kernel;
#else
const struct mc_window_grad_kernel *const mc_window_grad_avx2 = NULL;
#endif
