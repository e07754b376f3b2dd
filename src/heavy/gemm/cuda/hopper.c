/* hopper.c: prints the instruction that multiplies tiles in shared memory (wgmma).
 *
 * Invariant: the instruction names each of its accumulators, n / 2 registers of each thread. */
#include "heavy/gemm/cuda/hopper.h"

static const char text[] = {
#include "heavy/gemm/cuda/hopper_text.h"
    , 0 };
const struct mc_cuda_text mc_gemm_hopper_text = { "heavy/gemm/cuda/hopper.cu", text };

const char *mc_hopper_refuse(void)
{
    const struct mc_cuda *d = mc_cuda_current();
    return d && d->sm == 90 ? NULL : "needs Hopper's tensor cores";
}

void mc_hopper_instruction(struct mc_str *out, int n, mc_dtype t, bool a_down, bool b_down)
{
    const int r = n / 2;
    const char *type = t == MC_FLOAT16 ? "f16" : t == MC_BFLOAT16 ? "bf16" : "tf32";
    mc_str_addf(out,
                "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n"
                "__device__ __forceinline__ void wgmma(float (&d)[%d], u64 a, u64 b, int keep)\n{\n"
                "    asm volatile(\"{\\n\\t.reg .pred p;\\n\\tsetp.ne.b32 p, %%%d, 0;\\n\\t\"\n"
                "        \"wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {\"\n",
                r, r + 2, n, t == MC_FLOAT32 ? 8 : 16, type, type);
    for (int i = 0; i < r; i++) {
        mc_str_addf(out, "%s%%%d%s", i % 16 == 0 ? "        \"" : "", i,
                    i + 1 == r     ? "\"\n"
                    : i % 16 == 15 ? ", \"\n"
                                   : ", ");
    }
    mc_str_addf(out, "        \"}, %%%d, %%%d, p, 1, 1", r, r + 1);
    if (t != MC_FLOAT32) {
        mc_str_addf(out, ", %d, %d", a_down, b_down);
    }
    mc_str_add(out, ";\\n\\t}\"\n        :");
    for (int i = 0; i < r; i++) {
        mc_str_addf(out, "%s \"+f\"(d[%d])", i ? "," : "", i);
    }
    mc_str_add(out, "\n        : \"l\"(a), \"l\"(b), \"r\"(keep));\n}\n#endif\n");
}
