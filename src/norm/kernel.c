/* kernel.c: which kernels this processor runs.
 *
 * Invariant: the choice follows from what the processor reports and how many lanes stand side by side. */
#include "norm/kernel.h"
#include "device/cpu/cpu.h"

static bool has_avx512(const struct mc_cpu *c)
{
    return c->avx512f && c->avx512bw && c->avx512dq && c->avx512vl && c->avx2 && c->fma;
}

static bool has_avx2(const struct mc_cpu *c)
{
    return c->avx2 && c->fma;
}

static const struct {
    const struct mc_norm_kernel *const *kernel;
    bool (*runs)(const struct mc_cpu *c); /* NULL: everywhere */
} table[] = {                             /* widest first */
    { mc_norm_avx512, has_avx512 },
    { mc_norm_avx2,   has_avx2   },
    { mc_norm_plain,  NULL       },
};

static _Atomic int only = -1; /* a row of the table, or -1 */

static bool runs(size_t row)
{
    return table[row].kernel[0] && (!table[row].runs || table[row].runs(mc_cpu()));
}

const struct mc_norm_kernel *mc_norm_kernel(bool f64, int64_t n)
{
    const int fixed = atomic_load_explicit(&only, memory_order_relaxed);
    size_t row = fixed < 0 ? 0 : (size_t)fixed;
    while (!runs(row) || (fixed < 0 && row + 1 < NELEM(table) && table[row].kernel[f64]->lanes > n)) {
        row++;
    }
    return table[row].kernel[f64];
}

bool mc_norm_kernel_only(const char *name)
{
    int found = -1;
    for (size_t row = 0; name && row < NELEM(table); row++) {
        if (runs(row) && strcmp(table[row].kernel[0]->name, name) == 0) {
            found = (int)row;
        }
    }
    atomic_store(&only, found);
    return !name || found >= 0;
}
