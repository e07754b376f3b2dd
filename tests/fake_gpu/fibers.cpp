/* fibers.cpp: the threads of a block, or of blocks that run together, as fibers of one thread.
 *
 * Invariant: a fiber is left at a barrier, at an exchange, at a pause, or at its end, nowhere else. */
#define FAKE_GPU
#include "fake.h"
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <vector>

shim fake_now;
std::recursive_mutex fake_lock;

/* ---- fibers ---- */
extern "C" void fiber_switch(void **from, void *to);
asm(R"(
.text
.globl fiber_switch
.hidden fiber_switch
fiber_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
)");
struct alignas(64) big_args {
    char at[4096];
};
struct two {
    uint64_t a, b;
};
enum { STACK = 128 << 10, MOST = 1024, TOGETHER = 8, WARPS = TOGETHER * MOST / 32 };
struct meeting { /* threads that wait for each other */
    unsigned live, arrived, gen;
};
static char *stacks;
static void *main_sp, *sp[TOGETHER * MOST];
static bool done_[TOGETHER * MOST];
static bool all_at_once;
static unsigned me, nthreads, nblocks; /* of a block; that run together */
static meeting block[TOGETHER], all;
static shim_u3 block_id[TOGETHER];
static std::vector<char> dynamic_[TOGETHER];
static unsigned warp_arrived[WARPS], warp_gen[WARPS], warp_live[WARPS];
static char warp_buf[2][WARPS][32][16];
static void *kernel;
static const char *args;
static size_t nargs;
static bool progress;
static bool backward; /* every other grid runs from its last thread to its first: what depends on an order does not repeat */

static unsigned warp_of(unsigned thread)
{
    return thread / nthreads * (MOST / 32) + thread % nthreads / 32;
}
static char *shared_of(unsigned b)
{
    return (char *)(((uintptr_t)dynamic_[b].data() + 15) & ~(uintptr_t)15);
}

static void yield()
{
    fiber_switch(&sp[me], main_sp);
}
static void pause_(bool moved)
{
    progress = progress || moved;
    if (!moved)
        yield();
}
static void release(meeting &m)
{
    if (m.arrived && m.arrived == m.live) {
        m.arrived = 0;
        m.gen++;
    }
}
static void release_warp(unsigned w)
{
    if (warp_arrived[w] && warp_arrived[w] == warp_live[w]) {
        warp_arrived[w] = 0;
        warp_gen[w]++;
    }
}
static void meet(meeting &m)
{
    unsigned g = m.gen;
    m.arrived++;
    release(m);
    progress = true;
    while (m.gen == g)
        yield();
    progress = true;
}
static void block_barrier()
{
    meet(block[me / nthreads]);
}
static void cluster_barrier()
{
    meet(all);
}
static const void *of_block(const void *mine, unsigned b)
{
    return shared_of(b) + ((const char *)mine - shared_of(me / nthreads));
}
static void warp_exchange(const void *mine, size_t n, void *lanes)
{
    unsigned w = warp_of(me), l = me % nthreads % 32, g = warp_gen[w];
    memcpy(warp_buf[g & 1][w][l], mine, n);
    warp_arrived[w]++;
    release_warp(w);
    progress = true;
    while (warp_gen[w] == g)
        yield();
    progress = true;
    memcpy(lanes, warp_buf[g & 1][w], 32 * 16);
}
static void call()
{
    if (nargs <= 16) {
        two t = { 0, 0 };
        memcpy(&t, args, nargs);
        ((void (*)(two))kernel)(t);
    } else {
        static big_args b;
        memcpy(b.at, args, nargs);
        ((void (*)(big_args))kernel)(b);
    }
}
static void fiber_main()
{
    call();
    done_[me] = true;
    progress = true;
    all.live--;
    block[me / nthreads].live--;
    warp_live[warp_of(me)]--;
    release(all);
    release(block[me / nthreads]);
    release_warp(warp_of(me));
    for (;;)
        fiber_switch(&sp[me], main_sp);
}
/* Blocks from `first` on, above each other. */
static int run_blocks(shim_u3 first)
{
    nthreads = fake_now.bdim.x * fake_now.bdim.y * fake_now.bdim.z;
    all = { nthreads * nblocks, 0, 0 };
    memset(warp_arrived, 0, sizeof warp_arrived);
    memset(warp_live, 0, sizeof warp_live);
    memset(warp_gen, 0, sizeof warp_gen);
    for (unsigned b = 0; b < nblocks; b++) {
        block[b] = { nthreads, 0, 0 };
        block_id[b] = all_at_once ? shim_u3{ b, 0, 0 } : shim_u3{ first.x, first.y + b, first.z };
    }
    for (unsigned i = 0; i < nthreads * nblocks; i++) {
        warp_live[warp_of(i)]++;
        done_[i] = false;
        uint64_t *top = (uint64_t *)(stacks + (size_t)(i + 1) * STACK) - 2;
        *--top = 0; /* alignment: at fiber_main's entry rsp % 16 == 8 */
        *--top = (uint64_t)fiber_main;
        for (int k = 0; k < 6; k++)
            *--top = 0;
        sp[i] = top;
    }
    while (all.live) {
        progress = false;
        for (unsigned k = 0; k < nthreads * nblocks; k++) {
            const unsigned i = backward ? nthreads * nblocks - 1 - k : k;
            if (done_[i])
                continue;
            const unsigned t = i % nthreads;
            me = i;
            fake_now.bid = block_id[i / nthreads];
            fake_now.dynamic = shared_of(i / nthreads);
            fake_now.lane = t % 32;
            fake_now.tid = { t % fake_now.bdim.x, t / fake_now.bdim.x % fake_now.bdim.y,
                             t / (fake_now.bdim.x * fake_now.bdim.y) };
            fiber_switch(&main_sp, sp[i]);
        }
        if (!progress) {
            fprintf(stderr, "fake GPU: %u threads wait for each other for ever\n", all.live);
            return 719;
        }
    }
    return 0;
}
/* What a thread does to an address that is none ends the grid, as it would there. */
static sigjmp_buf out_of_grid;
static void at_fault(int)
{
    siglongjmp(out_of_grid, 1);
}
static int run_grid(const unsigned g[3])
{
    struct sigaction mine = {}, before[2];
    const int signals[2] = { SIGSEGV, SIGBUS };
    mine.sa_handler = at_fault;
    for (int i = 0; i < 2; i++)
        sigaction(signals[i], &mine, &before[i]);
    volatile int e = sigsetjmp(out_of_grid, 1) ? 700 : 0;
    for (unsigned z = 0; z < g[2] && !e; z++)
        for (unsigned y = 0; y < g[1] && !e; y += nblocks)
            for (unsigned x = 0; x < (all_at_once ? 1 : g[0]) && !e; x++)
                e = run_blocks(backward ? shim_u3{ g[0] - 1 - x, g[1] - nblocks - y, g[2] - 1 - z } : shim_u3{ x, y, z });
    for (int i = 0; i < 2; i++)
        sigaction(signals[i], &before[i], NULL);
    return e;
}
int fake_grid(void *f, const unsigned g[3], const unsigned b[3], unsigned shared, unsigned together, const void *a,
              size_t n)
{
    all_at_once = together > FAKE_ALL;
    together %= FAKE_ALL;
    if (b[0] * b[1] * b[2] > MOST || !(b[0] * b[1] * b[2]) || g[1] > 65535 || g[2] > 65535 || !together ||
        together > TOGETHER || (all_at_once ? g[1] * g[2] != 1 : g[1] % together))
        return 1;
    if (!stacks)
        stacks = (char *)mmap(NULL, (size_t)STACK * MOST * TOGETHER, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    nblocks = together;
    backward = !backward;
    for (unsigned i = 0; i < together; i++)
        dynamic_[i].assign(shared + 64, (char)0xff);
    fake_now.bdim = { b[0], b[1], b[2] };
    fake_now.gdim = { g[0], g[1], g[2] };
    fake_now.block = block_barrier;
    fake_now.cluster = cluster_barrier;
    fake_now.of_block = of_block;
    fake_now.warp = warp_exchange;
    fake_now.pause = pause_;
    kernel = f;
    args = (const char *)a;
    nargs = n;
    return run_grid(g);
}
