/* level_avx512.c: factorizations in vectors of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512. */
#if defined(__x86_64__)
#define LEVEL 512
#define LEVEL_TABLE mc_factor_avx512
#include "heavy/factor/cpu/level.h"
#else
#include "heavy/factor/solver.h"
const struct mc_factor_level *const mc_factor_avx512 = NULL;
#endif
