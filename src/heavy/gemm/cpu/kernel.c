/* kernel.c: selects the kernels of the widest instruction set that this CPU runs. */
#include "heavy/gemm/cpu/kernel.h"
#include "device/cpu/cpu.h"

static const struct mc_gemm_kernel *const *const table[] = {
    [ISA_AVX512] = mc_gemm_avx512, [ISA_AVX2] = mc_gemm_avx2, [ISA_PLAIN] = mc_gemm_plain,
};

const struct mc_gemm_kernel *mc_gemm_kernel(mc_dtype d)
{
    enum mc_isa i = ISA_AVX512;
    while (i < ISA_PLAIN && !(table[i][0] && mc_isa_runs(i))) {
        i++;
    }
    return table[i][d == MC_FLOAT64];
}
