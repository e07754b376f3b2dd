/* keys.c: keys at the level of instructions of this processor. */
#define LEVEL plain
#define TARGET
#include "heavy/lines/keys_level.h"

static const struct mc_key_level plain = LEVEL_ROW;

static const struct mc_key_level *level(void)
{
#if defined(__x86_64__)
    if (mc_isa_runs(ISA_AVX512)) {
        return &mc_keys_avx512;
    }
    if (mc_isa_runs(ISA_AVX2)) {
        return &mc_keys_avx2;
    }
#endif
    return &plain;
}

bool mc_keys_32(uint32_t *key, mc_dtype d, const char *x, int64_t step, int64_t n, uint32_t flip)
{
    return level()->keys32(key, d, x, step, n, flip);
}

bool mc_keys_64(uint64_t *key, mc_dtype d, const char *x, int64_t step, int64_t n, uint64_t flip)
{
    return level()->keys64(key, d, x, step, n, flip);
}

void mc_values_32(char *y, int64_t step, mc_dtype d, const uint32_t *key, int64_t n)
{
    level()->values32(y, step, d, key, n);
}

void mc_values_64(char *y, int64_t step, mc_dtype d, const uint64_t *key, int64_t n)
{
    level()->values64(y, step, d, key, n);
}
