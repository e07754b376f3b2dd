/* tma_box.cu: included before texts whose operands are boxes of images and positions: their copy to slots in
 * shared memory, and the layout of results among the lanes of a warp. */
typedef mc_cuda_tensor_map map;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
struct shared {                   /* shared memory: slots, and their barriers */
    u32 slots, full, empty;
    u32 turn;                     /* tma.cu: a barrier for each group that has its own tiles, in turn */
};

/* Barriers of so many slots; each is emptied by one or two groups of warps.  For one thread. */
__device__ __forceinline__ void make_barriers(const shared &m, int slots, int groups)
{
    for (int i = 0; i < slots; i++) {
        barrier_make(m.full + i * 8, 1);
        barrier_make(m.empty + i * 8, groups);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void copy_box5(u32 to, const map &m, int c, int x, int y, int z, int n,
                                          u32 barrier)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
                 "l"(&m), "r"(c), "r"(x), "r"(y), "r"(z), "r"(n), "r"(barrier)
                 : "memory");
}
__device__ __forceinline__ void copy_box4(u32 to, const map &m, int c, int x, int y, int n, u32 barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%2, %3, %4, %5}], [%6];" ::"r"(to),
                 "l"(&m), "r"(c), "r"(x), "r"(y), "r"(n), "r"(barrier)
                 : "memory");
}
__device__ __forceinline__ void copy_box3(u32 to, const map &m, int c, int tap, int f, u32 barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%2, %3, %4}], [%5];" ::"r"(to),
                 "l"(&m), "r"(c), "r"(tap), "r"(f), "r"(barrier)
                 : "memory");
}

/* Transposes the words of a quad, four a lane: w[i] of lane j becomes w[j] of lane i. */
__device__ __forceinline__ void turn(u32 (&w)[4])
{
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const u32 got = __shfl_xor_sync(~0u, odd ? w[i] : w[i + 1], 1);
        w[i] = odd ? got : w[i];
        w[i + 1] = odd ? w[i + 1] : got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const u32 got = __shfl_xor_sync(~0u, high ? w[i] : w[i + 2], 2);
        w[i] = high ? got : w[i];
        w[i + 2] = high ? w[i + 2] : got;
    }
}
#endif
