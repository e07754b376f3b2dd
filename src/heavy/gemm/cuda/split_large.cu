/* split_large.cu: large float32 products on Hopper's tensor cores, with operands split into pairs of halves
 * (split.cu has the algebra).
 *
 * Blocks stay until all tiles of C are done.  A block computes a TM x TN tile with two groups of four warps,
 * 64 rows each.  One thread of a third group copies the packed operands SLOTS slots ahead, also those of the
 * next tile while this one is stored.  A slot holds the low halves of a step of 64 terms, or the high ones.
 *
 * Low halves are not scaled up here, so that all three products have one accumulator; the loss is 2^39 below
 * a row's largest element.  That leaves registers for tiles so large that shared memory keeps up with the
 * tensor cores.  The corrections come first, while the accumulator is small: truncation cannot harm them.
 *
 * TOGETHER 2: two blocks form a cluster and have tiles below each other.  Each loads half of the columns of
 * B that both need, for both (multicast). */
#include "heavy/gemm/cuda/split_large_args.h"
typedef mc_split_seen seen;
typedef mc_split_large_args args;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
enum { TM = SPLIT_TM, TK = SPLIT_TK, R = TN / 2 };      /* R: accumulators of a thread */
enum { A_BYTES = TM * ROW, B_BYTES = TN * ROW, SLOT = A_BYTES + B_BYTES };
enum { BAND = 8 / TOGETHER };   /* neighbouring blocks share operands: they go down BAND tiles, then right */

/* ---- copies and barriers of a cluster ---- */

__device__ __forceinline__ void copy_to_both(u32 to, const void *from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier), "h"((u16)3)
                 : "memory");
}
/* Arrives at the barrier with this address in the shared memory of another block. */
__device__ __forceinline__ void barrier_arrive_at(u32 b, u32 block)
{
    asm volatile("{\n\t.reg .b32 r;\n\tmapa.shared::cluster.u32 r, %0, %1;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [r];\n\t}" ::"r"(b),
                 "r"(block)
                 : "memory");
}

/* ---- slots and tiles ---- */

struct ring {                   /* the slots, and the next one to use */
    u32 slots, full, empty;     /* addresses in shared memory: slots, their barriers */
    u32 next, phase;
};
__device__ __forceinline__ void advance(ring &r)
{
    if (++r.next == SLOTS) {
        r.next = 0;
        r.phase ^= 1;
    }
}

struct tile { int batch, row, col; };           /* row, col: numbers of tiles */
__device__ __forceinline__ tile tile_number(const args &p, int t)
{
    const int each = p.down * p.right, batch = t / each, u = t - batch * each;
    const int band = u / (BAND * p.right) * BAND, high = min(p.down - band, (int)BAND),
              in = u - band * p.right;
    return { batch, (band + in % high) * TOGETHER + (TOGETHER > 1 ? (int)blockIdx.y : 0), in / high };
}

/* The thread that copies. */
__device__ __forceinline__ void bring(const args &p, ring r, int tiles)
{
    r.phase = 1;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        const tile at = tile_number(p, t);
        const char *a = (const char *)(p.a + at.batch * p.a_batch) + (i64)at.row * p.steps * 2 * A_BYTES,
                   *b = (const char *)(p.b + at.batch * p.b_batch) + (i64)at.col * p.steps * 2 * B_BYTES;
#pragma unroll 1
        for (int half = 0; half < 2 * p.steps; half++) {        /* low, high, low, ... */
            const u32 to = r.slots + r.next * SLOT, full = r.full + r.next * 8;
            const bool low = half % 2 == 0;
            barrier_wait(r.empty + r.next * 8, r.phase);
            barrier_expect(full, SLOT);
            copy_block(to, a + (low ? A_BYTES : 0), A_BYTES, full);
#if TOGETHER == 2
            const u32 part = blockIdx.y * (B_BYTES / 2);
            copy_to_both(to + A_BYTES + part, b + (low ? B_BYTES : 0) + part, B_BYTES / 2, full);
#else
            copy_block(to + A_BYTES, b + (low ? B_BYTES : 0), B_BYTES, full);
#endif
            advance(r);
            if (!low) {
                a += 2 * A_BYTES;
                b += 2 * B_BYTES;
            }
        }
    }
}

/* ---- the result ---- */

/* The exponent of a row's or column's scale, plus INFINITE if it contains an infinity. */
enum { INFINITE = 1 << 16 };
__device__ __forceinline__ int fact(const seen *s)
{
    const uint2 has = __ldg((const uint2 *)s);
    return exponent(has.x) + (has.y ? INFINITE : 0);
}
__device__ __forceinline__ float power(int e)
{
    return __uint_as_float((u32)(127 + e) << 23);
}

/* What undoes the scales of 64 rows, then of the tile's columns, as two factors, so that no product of them
 * overflows.  0: the row or column does not exist, or contains an infinity.  True: one does. */
__device__ __forceinline__ int prepare(const args &p, const tile &at, int first, float2 *undo)
{
    int infinite = 0, any;
    for (int i = threadIdx.x & 127; i < 64 + TN; i += 128) {
        const bool row = i < 64, is = row ? first + i < p.m : at.col * TN + i - 64 < p.n;
        const int e = !is   ? INFINITE
                      : row ? fact(p.a_seen + (i64)at.batch * p.m + first + i)
                            : fact(p.b_seen + (i64)at.batch * p.n + at.col * TN + i - 64);
        infinite |= is && e >= INFINITE / 2;
        undo[i] = e >= INFINITE / 2 ? make_float2(0, 0) : make_float2(power(-(e >> 1)), power((e >> 1) - e));
    }
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.s32 p, %1, 0;\n\t"
                 "barrier.cta.red.or.pred q, %2, 128, p;\n\tselp.s32 %0, 1, 0, q;\n\t}"
                 : "=r"(any)
                 : "r"(infinite), "r"(threadIdx.x >> 7)
                 : "memory");
    return any;
}

/* alpha v + beta c0, activated. */
__device__ __forceinline__ float finished(const args &p, float v, const float *c0)
{
    v *= p.alpha;
#if ADDS
    v += p.beta * *c0;
#endif
    return finish(v, ACT);
}

/* Elements of rows or columns with an infinity, which has no usable halves, in plain float32. */
__device__ __noinline__ void store_infinite(const args &p, const tile &at, int first, const float2 *undo)
{
#pragma unroll 1
    for (int e = threadIdx.x & 127; e < 64 * TN; e += 128) {
        const int row = first + e / TN, col = at.col * TN + e % TN;
        if (row >= p.m || col >= p.n || (undo[e / TN].x != 0 && undo[64 + e % TN].x != 0)) {
            continue;
        }
        float v = 0;
        for (int k = 0; k < p.k; k++) {
            v = fmaf(p.plain_a[at.batch * p.as[0] + row * p.as[1] + k * p.as[2]],
                     p.plain_b[at.batch * p.bs[0] + k * p.bs[1] + col * p.bs[2]], v);
        }
        p.c[at.batch * p.cs[0] + row * p.cs[1] + col * p.cs[2]] =
            finished(p, v, p.c0 + at.batch * p.c0s[0] + row * p.c0s[1] + col * p.c0s[2]);
    }
}

/* Stores 64 rows of a tile from registers.  A warp stores 32 bytes of each of eight rows at once. */
template <bool Pairs>
__device__ __forceinline__ void deliver(const args &p, const tile &at, int first, const float2 *undo,
                                        const float (&sum)[R])
{
    const int t = threadIdx.x & 127, row = (t >> 5) * 16 + (t & 31) / 4, from = (t & 3) * 2;
    const i64 step = Pairs ? 1 : p.cs[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float2 r = undo[row + 8 * h];
        float *c = p.c + at.batch * p.cs[0] + (first + row + 8 * h) * p.cs[1] + (at.col * TN + from) * step;
        const float *c0 = p.c0 + at.batch * p.c0s[0] + (first + row + 8 * h) * p.c0s[1] +
                          (at.col * TN + from) * p.c0s[2];
        if (r.x == 0) {
            continue;
        }
#pragma unroll
        for (int i = 0; i < R; i += 4, c += 8 * step, c0 += 8 * p.c0s[2]) {
            const float4 cols = *(const float4 *)&undo[64 + from + 2 * i];
            const float v[2] = { sum[i + 2 * h] * r.x * cols.x * r.y * cols.y,
                                 sum[i + 2 * h + 1] * r.x * cols.z * r.y * cols.w };
            if (Pairs && cols.x != 0 && cols.z != 0) {
                *(float2 *)c = make_float2(finished(p, v[0], c0), finished(p, v[1], c0 + p.c0s[2]));
                continue;
            }
            if (cols.x != 0) {
                *c = finished(p, v[0], c0);
            }
            if (cols.z != 0) {
                c[step] = finished(p, v[1], c0 + p.c0s[2]);
            }
        }
    }
}

/* ---- the product ---- */

/* d (+)= 64 rows of one tile times all of another, over 64 terms; wgmma() is printed by hopper.c. */
__device__ __forceinline__ void multiply(float (&d)[R], u32 a, u32 b, int keep)
{
    const u64 from_a = tile_at(a, ALONG), from_b = tile_at(b, ALONG);
#pragma unroll
    for (int i = 0; i < TK / 16; i++) {
        wgmma(d, from_a + i * (32 >> 4), from_b + i * (32 >> 4), keep || i > 0);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* One thread for each block of the cluster tells it that a slot is free. */
__device__ __forceinline__ void release(const ring &r, u32 slot)
{
    if ((threadIdx.x & 127) < TOGETHER) {
#if TOGETHER == 2
        barrier_arrive_at(r.empty + slot * 8, threadIdx.x & 127);
#else
        barrier_arrive(r.empty + slot * 8);
#endif
    }
}

__device__ __forceinline__ void consume(const args &p, ring r, int tiles, float2 *undo)
{
    const int group = (int)(threadIdx.x >> 7);
    const u32 mine = (group - 1) * 64 * ROW;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        const tile at = tile_number(p, t);
        const int first = at.row * TM + (group - 1) * 64, infinite = prepare(p, at, first, undo);
        float sum[R], acc[R];
#pragma unroll
        for (int i = 0; i < R; i++) {
            sum[i] = acc[i] = 0;
        }
        settle(acc);
        for (int step = 0; step < p.steps; step++) {
            const u32 low = r.next, low_phase = r.phase;
            advance(r);
            const u32 high = r.next, high_phase = r.phase;
            advance(r);
            const u32 a_low = r.slots + low * SLOT + mine, b_low = r.slots + low * SLOT + A_BYTES,
                      a_high = r.slots + high * SLOT + mine, b_high = r.slots + high * SLOT + A_BYTES;
            barrier_wait(r.full + low * 8, low_phase);
            barrier_wait(r.full + high * 8, high_phase);
            settle(acc);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            multiply(acc, a_low, b_high, 0);
            multiply(acc, a_high, b_low, 1);
            multiply(acc, a_high, b_high, 1);
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            release(r, low);
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            release(r, high);
            settle(acc);
#pragma unroll
            for (int i = 0; i < R; i++) {
                sum[i] += acc[i];
            }
        }
        if (p.pairs) {
            deliver<true>(p, at, first, undo, sum);
        } else {
            deliver<false>(p, at, first, undo, sum);
        }
        if (infinite) {
            store_infinite(p, at, first, undo);
        }
        asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");      /* `undo` may be overwritten */
    }
}

extern "C" __global__ void __launch_bounds__(384, 1) product(const __grid_constant__ args p)
{
    follow();
    extern __shared__ __align__(1024) unsigned char space[];
    __shared__ __align__(8) u64 barriers[2 * SLOTS];
    __shared__ __align__(16) float2 undo[2][64 + TN];
    ring r;
    r.slots = ((u32)__cvta_generic_to_shared(space) + 1023) & ~1023u;
    r.full = (u32)__cvta_generic_to_shared(barriers);
    r.empty = r.full + SLOTS * 8;
    r.next = r.phase = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            barrier_make(r.full + i * 8, 1);
            barrier_make(r.empty + i * 8, 2 * TOGETHER);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
#if TOGETHER == 2
    leave();                    /* both blocks have made their barriers */
#endif
    const int tiles = p.down * p.right * p.batch;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            bring(p, r, tiles);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(p, r, tiles, undo[(threadIdx.x >> 7) - 1]);
    }
#if TOGETHER == 2
    leave();
#endif
}
#else
extern "C" __global__ void product(const __grid_constant__ args) {}
#endif
