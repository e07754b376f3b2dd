/* marked_plain.c: sums over marked windows in whatever the compiler makes of vectors of four numbers.
 *
 * Invariant: runs everywhere. */
#include "gemm/kernel.h"
#include "pooled/marked.h"

#define TARGET
#define L       4
#define MOST    6
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6)
#include "pooled/marked_body.h"

const struct mc_marked_kernel *const mc_marked_plain = &kernel;
