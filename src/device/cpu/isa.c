/* isa.c: which instruction sets hand-written kernels may use.
 *
 * Invariant: the answer depends on the reported features of the CPU, not on its name. */
#include "device/cpu/cpu.h"
#include <stdatomic.h>

static const char *const names[] = { [ISA_AVX512] = "avx512", [ISA_AVX2] = "avx2", [ISA_PLAIN] = "plain" };

static _Atomic int only = -1; /* the one set that kernels may use (mc_isa_only); -1: all */

static bool has(enum mc_isa i)
{
    const struct mc_cpu *c = mc_cpu();
    bool avx2 = c->avx2 && c->fma;
    return i == ISA_PLAIN ||
           (avx2 && (i == ISA_AVX2 || (c->avx512f && c->avx512bw && c->avx512dq && c->avx512vl)));
}

bool mc_isa_runs(enum mc_isa i)
{
    const int one = atomic_load_explicit(&only, memory_order_relaxed);
    return one < 0 ? has(i) : (int)i == one;
}

enum mc_isa mc_isa_fitting(const int lanes[ISA_COUNT], int64_t n)
{
    enum mc_isa best = ISA_PLAIN;
    for (enum mc_isa i = ISA_AVX512; i < ISA_COUNT; i++) {
        if (lanes[i] && mc_isa_runs(i)) {
            best = i;
            if (lanes[i] <= n) {
                break;
            }
        }
    }
    return best;
}

bool mc_isa_only(const char *name)
{
    int found = -1;
    for (int i = 0; name && i < ISA_COUNT; i++) {
        found = strcmp(names[i], name) == 0 && has((enum mc_isa)i) ? i : found;
    }
    atomic_store(&only, found);
    return !name || found >= 0;
}
