/* level_avx2.c: factorizations in vectors of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#if defined(__x86_64__)
#define LEVEL 256
#define LEVEL_TABLE mc_factor_avx2
#include "heavy/factor/cpu/level.h"
#else
#include "heavy/factor/solver.h"
const struct mc_factor_level *const mc_factor_avx2 = NULL;
#endif
