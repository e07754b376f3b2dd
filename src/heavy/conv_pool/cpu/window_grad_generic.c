/* window_grad_generic.c: the sums of window_grad.h in vectors of four numbers, which the compiler lowers to
 * any target.
 *
 * Invariant: runs on every processor. */
#include "heavy/gemm/cpu/kernel.h"
#include "heavy/conv_pool/cpu/window_grad.h"
#include "base/small.h"

#define TARGET
#define L       4
#define MOST    6
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6)
#define SUMS    7
#define SHAPES(F) \
    F(1, 1) F(2, 1) F(3, 1) F(4, 1) F(5, 1) F(6, 1) \
    F(1, 2) F(2, 2) F(3, 2) \
    F(1, 3) F(2, 3) \
    F(1, 4) \
    F(1, 5) \
    F(1, 6) \
    F(1, 7)
#define LINES   { 0, 6, 3, 2, 1, 1, 1, 1 }
#include "heavy/conv_pool/cpu/window_grad_body.h"

const struct mc_window_grad_kernel *const mc_window_grad_plain = &kernel;
