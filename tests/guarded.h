/* guarded.h: memory whose end is guarded: a read or a write beyond it ends the test. */
#ifndef GUARDED_H
#define GUARDED_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guarded {
    char *base, *at;
    size_t mapped;
};

/* qemu 7.2 reads the lanes of AVX2 vectors that a mask leaves out, which no processor does: there the guard
 * stands some vectors behind the end. */
static inline size_t masked_lanes(void)
{
#if defined(__x86_64__)
    return getenv("TEST_QEMU") ? 128 : 0;
#else
    return 0;
#endif
}

static inline struct guarded guard(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = bytes + masked_lanes(),
                 whole = (room + page - 1) / page * page;
    struct guarded g = { .mapped = whole + page };
    g.base = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.base == MAP_FAILED) {
        abort();
    }
    mprotect(g.base + whole, page, PROT_NONE);
    g.at = g.base + whole - room;
    memset(g.base, 0xff, whole); /* NaN in every float dtype */
    return g;
}

static inline void unguard(struct guarded *g)
{
    munmap(g->base, g->mapped);
}

#endif
