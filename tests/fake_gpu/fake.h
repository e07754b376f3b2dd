/* fake.h: a GPU that is the processor: what its kernels, its driver and its compiler share.
 *
 * A driver and an NVRTC of their own stand where NVIDIA's would be found.  The compiler makes C++ of CUDA C
 * by shim.h and gives it to g++; the driver runs a grid's blocks one after another, and a block's threads as
 * fibers that change at barriers and at exchanges within a warp.  Memory is the processor's, filled with
 * rubbish when it is handed out and when it comes back.  So functions for a GPU are tested where there is
 * none; speed it knows nothing of.
 *
 * Invariant: a kernel runs alone, from its launch (or its recording's replay) to its end. */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>

struct shim_u3 {
    unsigned x, y, z;
};
struct fake_map { /* a tensor map: what stands in its 128 bytes */
    const char *array;
    unsigned long long stride[4];
    unsigned size[5];
    unsigned short box[5], row; /* row: bytes of a row, and of the swizzle */
    unsigned char step[5], element, rank, tf32;
};
struct shim { /* what a kernel sees of the thread that it is */
    shim_u3 tid, bid, bdim, gdim;
    void *dynamic;                                       /* shared memory of the launch's size */
    void (*block)();                                     /* waits for the block */
    void (*cluster)();                                   /* for the blocks that run together */
    const void *(*of_block)(const void *mine, unsigned block); /* the same place in another's shared memory */
    void (*warp)(const void *mine, size_t n, void *all); /* n bytes of every lane, 16 bytes apart */
    void (*pause)(bool moved);                           /* moved: others can go on; else they run first */
    unsigned lane;
};

#ifdef FAKE_GPU
#include <atomic>
#include <functional>
#include <mutex>
/* Runs it, or records it. */
int fake_enqueue(std::function<int()> f);
extern shim fake_now;
extern std::atomic<int> fake_waiting;
extern std::recursive_mutex fake_lock;
#define LOCK std::lock_guard<std::recursive_mutex> hold(fake_lock)
enum { FAKE_ALL = 256 };
/* 0, or the driver's code of what went wrong.  together: blocks along y; FAKE_ALL + n: all n, along x. */
int fake_grid(void *kernel, const unsigned grid[3], const unsigned block[3], unsigned shared,
              unsigned together, const void *args, size_t nargs);
#endif

#endif
