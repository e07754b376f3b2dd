/* generic.c: direct sums in vectors of four numbers, which the compiler lowers to any target.
 *
 * Invariant: runs on every processor. */
#include "heavy/conv/cpu/direct/direct.h"
#include "heavy/gemm/cpu/kernel.h"
#include "base/small.h"

#define TARGET
#define L       4
#define EVENS   0, 2, 5, 7
#define LOW     0, 4, 1, 5
#define HIGH    2, 6, 3, 7
#define NV      2
#define EACH(F) F(1) F(2)
#define MATH    { 0.5, 0.5 }
#define ADD     { 5e-9, 5e-9 }
#define TALL    { { 0, 0 }, { 0, 0 } }
#define EACH_TALL(F)
enum { TALL_ROWS = 1, TALL_VECTORS = 1 };
#include "heavy/conv/cpu/direct/body.h"

const struct mc_direct_kernel *const mc_direct_plain = &kernel;
