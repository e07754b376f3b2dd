/* generic.c: direct sums in whatever the compiler makes of vectors of four numbers.
 *
 * Invariant: runs everywhere. */
#include "heavy/conv/cpu/direct/direct.h"
#include "heavy/gemm/cpu/kernel.h"

#define TARGET
#define L       4
#define NV      2
#define EACH(F) F(1) F(2)
#define MATH    0.5
#include "heavy/conv/cpu/direct/body.h"

const struct mc_direct_kernel *const mc_direct_plain = &kernel;
