/* hopper.cu: in front of texts for Hopper's tensor cores, which multiply tiles that lie in shared memory (wgmma, printed by
 * hopper.c for the width and the type that a text wants).
 *
 * Invariant: a tile's rows have 128 bytes, whose 16-byte pieces are permuted by row % 8. */
typedef unsigned u32;
typedef unsigned short u16;
enum { ROW = 128 };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* A block of memory; its bytes are counted by the barrier. */
__device__ __forceinline__ void copy_block(u32 to, const void *from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
                 "r"(barrier) : "memory");
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
    asm volatile("{\n\t.reg .pred p;\nagain:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@!p bra again;\n\t}" ::"r"(b), "r"(phase)
                 : "memory");
}

/* What the tensor cores are told of a tile.  k runs along its rows, or, where it runs down, 64 columns are a block: `block` bytes
 * from one to the next. */
__device__ __forceinline__ u64 tile_at(u32 address, u32 block)
{
    return (u64)((address & 0x3ffff) >> 4) | (u64)(block >> 4) << 16 | (u64)(8 * ROW >> 4) << 32 | (u64)1 << 62;
}
enum { ALONG = 16 };            /* that block where k runs along rows: it is not looked at */

/* Sums of a product under way are the tensor cores'. */
template <int N> __device__ __forceinline__ void settle(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}
#endif
