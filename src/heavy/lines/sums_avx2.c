/* sums_avx2.c: running sums in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2. */
#include "heavy/lines/lines.h"

#if defined(__x86_64__)
#define LEVEL avx2
#define TARGET __attribute__((target("avx2")))
#include "heavy/lines/sums.h"

const struct mc_sum_level mc_sums_avx2 = LEVEL_ROW;
#endif
