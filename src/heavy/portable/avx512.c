/* avx512.c: portable sums in vectors of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512 F, DQ, BW and VL. */
#if defined(__x86_64__)
#define LEVEL 512
#define LEVEL_TABLE mc_portable_avx512
#include "heavy/portable/level.h"
#else
#include "heavy/portable/portable.h"
const struct mc_portable_level *const mc_portable_avx512 = NULL;
#endif
