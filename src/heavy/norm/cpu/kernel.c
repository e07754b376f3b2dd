/* kernel.c: chooses the widest kernels that this processor supports and that n contiguous lanes can fill. */
#include "heavy/norm/cpu/kernel.h"
#include "device/cpu/cpu.h"

static const struct mc_norm_kernel *const *const table[] = {
    [ISA_AVX512] = mc_norm_avx512, [ISA_AVX2] = mc_norm_avx2, [ISA_PLAIN] = mc_norm_plain,
};

const struct mc_norm_kernel *mc_norm_kernel(bool f64, int64_t n)
{
    int lanes[ISA_COUNT];
    for (int i = 0; i < ISA_COUNT; i++) {
        lanes[i] = table[i][0] ? table[i][f64]->lanes : 0;
    }
    return table[mc_isa_fitting(lanes, n)][f64];
}
