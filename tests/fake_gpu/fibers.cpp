/* fibers.cpp: a block's threads as fibers of one thread.
 *
 * Invariant: a fiber is left at a barrier, at an exchange, or at its end, nowhere else. */
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
struct big_args {
    char at[4096];
};
struct two {
    uint64_t a, b;
};
enum { STACK = 128 << 10, MOST = 1024 };
static char *stacks;
static void *main_sp, *sp[MOST];
static bool done_[MOST];
static unsigned me, nthreads, live, arrived, block_gen, warp_arrived[32], warp_gen[32], warp_live[32];
static char warp_buf[2][32][32][16];
static void *kernel;
static const char *args;
static size_t nargs;
static bool progress;

static void yield()
{
    fiber_switch(&sp[me], main_sp);
}
static void release_block()
{
    if (arrived && arrived == live) {
        arrived = 0;
        block_gen++;
    }
}
static void release_warp(unsigned w)
{
    if (warp_arrived[w] && warp_arrived[w] == warp_live[w]) {
        warp_arrived[w] = 0;
        warp_gen[w]++;
    }
}
static void block_barrier()
{
    unsigned g = block_gen;
    arrived++;
    release_block();
    progress = true;
    while (block_gen == g)
        yield();
    progress = true;
}
static void warp_exchange(const void *mine, size_t n, void *all)
{
    unsigned w = me / 32, l = me % 32, g = warp_gen[w];
    memcpy(warp_buf[g & 1][w][l], mine, n);
    warp_arrived[w]++;
    release_warp(w);
    progress = true;
    while (warp_gen[w] == g)
        yield();
    progress = true;
    memcpy(all, warp_buf[g & 1][w], 32 * 16);
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
    live--;
    warp_live[me / 32]--;
    release_block();
    release_warp(me / 32);
    for (;;)
        fiber_switch(&sp[me], main_sp);
}
static int run_block(shim_u3 b)
{
    fake_now.bid = b;
    nthreads = fake_now.bdim.x * fake_now.bdim.y * fake_now.bdim.z;
    live = nthreads;
    arrived = 0;
    block_gen = 0;
    memset(warp_arrived, 0, sizeof warp_arrived);
    memset(warp_live, 0, sizeof warp_live);
    memset(warp_gen, 0, sizeof warp_gen);
    for (unsigned i = 0; i < nthreads; i++) {
        warp_live[i / 32]++;
        done_[i] = false;
        uint64_t *top = (uint64_t *)(stacks + (size_t)(i + 1) * STACK) - 2;
        *--top = 0; /* alignment: at fiber_main's entry rsp % 16 == 8 */
        *--top = (uint64_t)fiber_main;
        for (int k = 0; k < 6; k++)
            *--top = 0;
        sp[i] = top;
    }
    while (live) {
        progress = false;
        for (unsigned i = 0; i < nthreads; i++) {
            if (done_[i])
                continue;
            me = i;
            fake_now.lane = i % 32;
            fake_now.tid = { i % fake_now.bdim.x, i / fake_now.bdim.x % fake_now.bdim.y,
                             i / (fake_now.bdim.x * fake_now.bdim.y) };
            fiber_switch(&main_sp, sp[i]);
        }
        if (!progress) {
            fprintf(stderr, "fake GPU: %u threads wait for each other for ever\n", live);
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
        for (unsigned y = 0; y < g[1] && !e; y++)
            for (unsigned x = 0; x < g[0] && !e; x++)
                e = run_block({ x, y, z });
    for (int i = 0; i < 2; i++)
        sigaction(signals[i], &before[i], NULL);
    return e;
}
int fake_grid(void *f, const unsigned g[3], const unsigned b[3], unsigned shared, const void *a, size_t n)
{
    if (b[0] * b[1] * b[2] > MOST || !(b[0] * b[1] * b[2]) || g[1] > 65535 || g[2] > 65535)
        return 1;
    if (!stacks)
        stacks = (char *)mmap(NULL, (size_t)STACK * MOST, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static std::vector<char> dyn;
    dyn.assign(shared + 64, (char)0xff);
    fake_now.dynamic = (void *)(((uintptr_t)dyn.data() + 15) & ~(uintptr_t)15);
    fake_now.bdim = { b[0], b[1], b[2] };
    fake_now.gdim = { g[0], g[1], g[2] };
    fake_now.block = block_barrier;
    fake_now.warp = warp_exchange;
    kernel = f;
    args = (const char *)a;
    nargs = n;
    return run_grid(g);
}
