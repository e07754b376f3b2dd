/* keys_avx512.c: keys in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512. */
#include "heavy/lines/lines.h"

#if defined(__x86_64__)
#define LEVEL avx512
#define TARGET MC_LINES_AVX512
#include "heavy/lines/keys_level.h"

const struct mc_key_level mc_keys_avx512 = LEVEL_ROW;
#endif
