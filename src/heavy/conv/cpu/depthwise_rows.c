/* depthwise_rows.c: compiles the loops of depthwise_rows.h for each instruction set.
 *
 * Invariant: no code runs whose instructions the processor does not report. */
#include "heavy/conv/cpu/depthwise.h"

typedef float vector __attribute__((vector_size(DEPTH_LANES * sizeof(float)), aligned(4), may_alias));
typedef int lanes __attribute__((vector_size(DEPTH_LANES * sizeof(int)), aligned(4), may_alias));

#define TARGET
#define NAME(x) plain_##x
#include "heavy/conv/cpu/depthwise_rows.h"
#undef TARGET
#undef NAME

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) avx2_##x
#include "heavy/conv/cpu/depthwise_rows.h"
#undef TARGET
#undef NAME

#define TARGET __attribute__((target("avx512f")))
#define NAME(x) avx512_##x
#include "heavy/conv/cpu/depthwise_rows.h"
#undef TARGET
#undef NAME
#endif

const struct mc_depthwise_rows *mc_depthwise_rows(void)
{
#if defined(__x86_64__)
    if (mc_cpu()->avx512f) {
        return &avx512_rows;
    }
    if (mc_cpu()->avx2 && mc_cpu()->fma) {
        return &avx2_rows;
    }
#endif
    return &plain_rows;
}
