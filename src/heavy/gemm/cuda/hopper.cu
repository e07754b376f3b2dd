/* hopper.cu: included before texts for Hopper's tensor cores, which multiply tiles in shared memory.
 * hopper.c prints the instruction (wgmma) for the width and dtype that a text needs.
 *
 * Invariant: a row of a tile has 128 bytes, whose 16-byte pieces are permuted by row % 8 (128-byte
 * swizzle), or Row bytes, 64 or 32, with the swizzle of that width. */
#include "device/cuda/args.h"
typedef unsigned u32;
typedef unsigned short u16;
enum { ROW = MC_CUDA_ROW };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* Copies contiguous bytes to shared memory asynchronously; the barrier counts them. */
__device__ __forceinline__ void copy_block(u32 to, const void *from, u32 bytes, u32 barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

__device__ __forceinline__ void barrier_make(u32 b, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_arrive(u32 b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
}
__device__ __forceinline__ void barrier_expect(u32 b, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 b, u32 phase)
{
    asm volatile("{\n\t.reg .pred p;\nagain:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@!p "
                 "bra again;\n\t}" ::"r"(b),
                 "r"(phase)
                 : "memory");
}

/* The matrix descriptor of a tile for wgmma.  If k runs along the rows, `block` is ALONG.  If k runs down
 * the columns, the tile consists of blocks of Row bytes of columns, `block` bytes apart. */
template <int Row = ROW> __device__ __forceinline__ u64 tile_at(u32 address, u32 block)
{
    return (u64)((address & 0x3ffff) >> 4) | (u64)(block >> 4) << 16 | (u64)(8 * Row >> 4) << 32 |
           (u64)(Row == 128 ? 1 : Row == 64 ? 2 : 3) << 62;
}
enum { ALONG = 16 };            /* `block` if k runs along rows: the hardware ignores it */

/* Keeps the compiler from moving accesses to accumulators across this point: running wgmma instructions
 * own them. */
template <int N> __device__ __forceinline__ void settle(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}
#endif
