/* keys_avx2.c: keys in registers of 256 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX2. */
#include "heavy/lines/lines.h"

#if defined(__x86_64__)
#define LEVEL avx2
#define TARGET __attribute__((target("avx2")))
#include "heavy/lines/keys_level.h"

const struct mc_key_level mc_keys_avx2 = LEVEL_ROW;
#endif
