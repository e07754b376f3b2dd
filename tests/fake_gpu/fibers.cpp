/* fibers.cpp: the threads of a block, or of the blocks of a cluster, as fibers of one thread.
 *
 * Invariant: a fiber is left at a barrier, at an exchange, or at its end, nowhere else.  What a kernel declares as shared
 * is one for all blocks: those of a cluster may only have what the launch gives them. */
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
enum { STACK = 128 << 10, MOST = 1024, MOST_BLOCKS = 8 };
struct block {
    shim_u3 at;
    void *dynamic;
    unsigned live, arrived, gen, warp_arrived[32], warp_gen[32], warp_live[32];
    char warp_buf[2][32][32][16];
};
static block blocks[MOST_BLOCKS];
static char *stacks;
static void *main_sp, *sp[MOST * MOST_BLOCKS];
static bool done_[MOST * MOST_BLOCKS];
static unsigned me, nthreads, nblocks, all_live, all_arrived, all_gen;
static void *kernel;
static const char *args;
static size_t nargs;
static bool progress;

static void yield()
{
    fiber_switch(&sp[me], main_sp);
}
static void release_block(block *b)
{
    if (b->arrived && b->arrived == b->live) {
        b->arrived = 0;
        b->gen++;
    }
}
static void release_warp(block *b, unsigned w)
{
    if (b->warp_arrived[w] && b->warp_arrived[w] == b->warp_live[w]) {
        b->warp_arrived[w] = 0;
        b->warp_gen[w]++;
    }
}
static void release_all()
{
    if (all_arrived && all_arrived == all_live) {
        all_arrived = 0;
        all_gen++;
    }
}
static void wait_for(const unsigned *gen, unsigned g)
{
    progress = true;
    while (*gen == g)
        yield();
    progress = true;
}
static void block_barrier()
{
    block *b = &blocks[me / nthreads];
    unsigned g = b->gen;
    b->arrived++;
    release_block(b);
    wait_for(&b->gen, g);
}
static void cluster_barrier()
{
    unsigned g = all_gen;
    all_arrived++;
    release_all();
    wait_for(&all_gen, g);
}
static void warp_exchange(const void *mine, size_t n, void *all)
{
    block *b = &blocks[me / nthreads];
    unsigned w = me % nthreads / 32, l = me % nthreads % 32, g = b->warp_gen[w];
    memcpy(b->warp_buf[g & 1][w][l], mine, n);
    b->warp_arrived[w]++;
    release_warp(b, w);
    wait_for(&b->warp_gen[w], g);
    memcpy(all, b->warp_buf[g & 1][w], 32 * 16);
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
    block *b = &blocks[me / nthreads];
    done_[me] = true;
    progress = true;
    all_live--;
    b->live--;
    b->warp_live[me % nthreads / 32]--;
    release_all();
    release_block(b);
    release_warp(b, me % nthreads / 32);
    for (;;)
        fiber_switch(&sp[me], main_sp);
}
static void begin(unsigned i)
{
    blocks[i / nthreads].warp_live[i % nthreads / 32]++;
    done_[i] = false;
    uint64_t *top = (uint64_t *)(stacks + (size_t)(i + 1) * STACK) - 2;
    *--top = 0; /* alignment: at fiber_main's entry rsp % 16 == 8 */
    *--top = (uint64_t)fiber_main;
    for (int k = 0; k < 6; k++)
        *--top = 0;
    sp[i] = top;
}
static void go_on(unsigned i)
{
    const unsigned t = i % nthreads;
    me = i;
    fake_now.bid = blocks[i / nthreads].at;
    fake_now.dynamic = blocks[i / nthreads].dynamic;
    fake_now.lane = t % 32;
    fake_now.tid = { t % fake_now.bdim.x, t / fake_now.bdim.x % fake_now.bdim.y, t / (fake_now.bdim.x * fake_now.bdim.y) };
    fiber_switch(&main_sp, sp[i]);
}
/* The blocks, whose places and shared memory are there, until all are done. */
static int run_blocks()
{
    nthreads = fake_now.bdim.x * fake_now.bdim.y * fake_now.bdim.z;
    all_live = nblocks * nthreads;
    all_arrived = all_gen = 0;
    for (unsigned k = 0; k < nblocks; k++) {
        block *b = &blocks[k];
        b->live = nthreads;
        b->arrived = b->gen = 0;
        memset(b->warp_arrived, 0, sizeof b->warp_arrived);
        memset(b->warp_live, 0, sizeof b->warp_live);
        memset(b->warp_gen, 0, sizeof b->warp_gen);
    }
    for (unsigned i = 0; i < nblocks * nthreads; i++)
        begin(i);
    while (all_live) {
        progress = false;
        for (unsigned i = 0; i < nblocks * nthreads; i++)
            if (!done_[i])
                go_on(i);
        if (!progress) {
            fprintf(stderr, "fake GPU: %u threads wait for each other for ever\n", all_live);
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
            for (unsigned x = 0; x < g[0] && !e; x++) {
                for (unsigned k = 0; k < nblocks; k++)
                    blocks[k].at = { x, y + k, z };
                e = run_blocks();
            }
    for (int i = 0; i < 2; i++)
        sigaction(signals[i], &before[i], NULL);
    return e;
}
int fake_grid(void *f, const unsigned g[3], const unsigned b[3], unsigned cluster, unsigned shared, const void *a, size_t n)
{
    if (b[0] * b[1] * b[2] > MOST || !(b[0] * b[1] * b[2]) || g[1] > 65535 || g[2] > 65535)
        return 1;
    if (cluster > MOST_BLOCKS || g[1] % cluster)
        return 1;
    if (!stacks)
        stacks = (char *)mmap(NULL, (size_t)STACK * MOST * MOST_BLOCKS, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static std::vector<char> dyn[MOST_BLOCKS];
    for (unsigned k = 0; k < cluster; k++) {
        dyn[k].assign(shared + 64, (char)0xff);
        blocks[k].dynamic = (void *)(((uintptr_t)dyn[k].data() + 15) & ~(uintptr_t)15);
    }
    fake_now.bdim = { b[0], b[1], b[2] };
    fake_now.gdim = { g[0], g[1], g[2] };
    fake_now.block = block_barrier;
    fake_now.cluster = cluster_barrier;
    fake_now.warp = warp_exchange;
    kernel = f;
    args = (const char *)a;
    nargs = n;
    nblocks = cluster;
    return run_grid(g);
}
