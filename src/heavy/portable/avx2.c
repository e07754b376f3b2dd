/* avx2.c: portable sums in vectors of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2 and FMA. */
#if defined(__x86_64__)
#define LEVEL 256
#define LEVEL_TABLE mc_portable_avx2
#include "heavy/portable/level.h"
#else
#include "heavy/portable/portable.h"
const struct mc_portable_level *const mc_portable_avx2 = NULL;
#endif
