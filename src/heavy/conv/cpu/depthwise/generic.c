/* generic.c: the sums of a depthwise convolution in vectors of four numbers, which the compiler lowers to any
 * target.
 *
 * Invariant: runs on every processor. */
#include "heavy/conv/cpu/depthwise/depthwise.h"
#include "heavy/gemm/cpu/kernel.h"
#include "base/small.h"

#define TARGET
#define L    4
#define EVEN 0, 2, 4, 6
#define LOW  0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#include "heavy/conv/cpu/depthwise/body.h"

const struct mc_depth_kernel *const mc_depth_plain = &kernel;
