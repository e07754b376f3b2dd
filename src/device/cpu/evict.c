/* evict.c: removes memory from the caches, for solvers that are timed.
 *
 * Invariant: memory keeps its contents. */
#include "device/cpu/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
enum { LINE = 64 };

/* The order of these does not matter, which makes them ten times as fast. */
static __attribute__((target("clflushopt"))) void flush_in_any_order(char *p, size_t n)
{
    for (size_t i = 0; i < n; i += LINE) {
        _mm_clflushopt(p + i);
    }
}

void mc_cpu_evict(void *p, size_t n)
{
    unsigned a, b = 0, c, d;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    if (b & bit_CLFLUSHOPT) {
        flush_in_any_order(p, n);
    } else {
        for (size_t i = 0; i < n; i += LINE) {
            _mm_clflush((char *)p + i);
        }
    }
    _mm_mfence();
}
#else
void mc_cpu_evict(void *p, size_t n)
{
    (void)p, (void)n;
}
#endif
