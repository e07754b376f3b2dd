/* keys_avx512.c: keys in registers of 512 bits.
 *
 * Invariant: nothing here runs unless the processor reports AVX-512. */
#include "heavy/lines/lines.h"

#if defined(__x86_64__)
#define LEVEL avx512
#if defined(__clang__)
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#else
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif
#include "heavy/lines/keys_level.h"

const struct mc_key_level mc_keys_avx512 = LEVEL_ROW;
#endif
