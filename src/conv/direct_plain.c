/* direct_plain.c: direct sums in whatever the compiler makes of vectors of four numbers.
 *
 * Invariant: runs everywhere. */
#include "conv/direct.h"
#include "gemm/kernel.h"

#define TARGET
#define L       4
#define NV      2
#define EACH(F) F(1) F(2)
#define MATH    0.5
#include "conv/direct_body.h"

const struct mc_direct_kernel *const mc_direct_plain = &kernel;
