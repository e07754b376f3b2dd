/* kernel.c: the widest kernels that this processor runs and that the windows side by side can fill. */
#include "pool/kernel.h"
#include "device/cpu/cpu.h"

static const struct mc_pool_kernel *const *const table[] = {
    [ISA_AVX512] = mc_pool_avx512, [ISA_AVX2] = mc_pool_avx2, [ISA_PLAIN] = mc_pool_plain,
};

const struct mc_pool_kernel *mc_pool_kernel(bool f64, int64_t n)
{
    const struct mc_pool_kernel *best = table[ISA_PLAIN][f64];
    for (enum mc_isa i = ISA_AVX512; i < ISA_COUNT; i++) {
        if (table[i][0] && mc_isa_runs(i)) {
            best = table[i][f64];
            if (best->lanes <= n) {
                break;
            }
        }
    }
    return best;
}
