/* kernel.c: chooses the widest kernels that this processor supports and that n adjacent windows can fill. */
#include "heavy/pool/cpu/kernel.h"
#include "device/cpu/cpu.h"

static const struct mc_pool_kernel *const *const table[] = {
    [ISA_AVX512] = mc_pool_avx512, [ISA_AVX2] = mc_pool_avx2, [ISA_PLAIN] = mc_pool_plain,
};

const struct mc_pool_kernel *mc_pool_kernel(bool f64, int64_t n)
{
    int lanes[ISA_COUNT];
    for (int i = 0; i < ISA_COUNT; i++) {
        lanes[i] = table[i][f64] ? table[i][f64]->lanes : 0;
    }
    return table[mc_isa_fitting(lanes, n)][f64];
}

/* The kernels that may take r in blocks: the widest, if there are enough windows of 2 by 2; else k. */
static const struct mc_pool_kernel *for_blocks(const struct mc_pool_kernel *k, const struct mc_pool_row *r)
{
    const bool f64 = k == mc_pool_avx512[1] || k == mc_pool_avx2[1] || k == mc_pool_plain[1];
    return r->s == 2 && r->w == 2 && r->n * r->bands >= 64 ? mc_pool_kernel(f64, INT64_MAX) : k;
}

void mc_pool_max(const struct mc_pool_kernel *k, const struct mc_pool_row *r)
{
    const struct mc_pool_kernel *wide = for_blocks(k, r);
    const bool block = wide->max_block && wide->max_block(r);
    if (!block) {
        k->max(r);
    }
    if (r->bits && r->key && !(block && wide->bits)) {
        (k->bits ? k->bits : mc_pool_bits_slow)(r);
    }
}

void mc_pool_ties_of(const struct mc_pool_kernel *k, const struct mc_pool_row *r)
{
    const struct mc_pool_kernel *wide = for_blocks(k, r);
    if (!wide->ties_block || !wide->ties_block(r)) {
        k->ties(r);
    }
}

void mc_pool_put(const struct mc_pool_kernel *k, const struct mc_pool_row *r)
{
    const struct mc_pool_kernel *wide = for_blocks(k, r);
    if (!wide->put_block || !wide->put_block(r)) {
        (r->bits && !k->bits ? mc_pool_plain[0] : k)->put(r);
    }
}
