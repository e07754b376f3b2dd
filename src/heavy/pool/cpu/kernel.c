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
        lanes[i] = table[i][0] ? table[i][f64]->lanes : 0;
    }
    return table[mc_isa_fitting(lanes, n)][f64];
}
