/* tma_weights.cu: gradients of filters as products on Hopper's tensor cores, for halves whose channels are
 * contiguous.
 *
 * Terms of a product are positions of y.  One side has filters, the other has the channels that each tap
 * reads; rows and columns come in units of 64 filters, or of 64 channels of one tap.  A step is a box of
 * images and positions, which the copy engine reads from y once a unit of filters, and from x once a
 * unit of channels, with zeros outside of the arrays.  Both operands run down their columns.
 *
 * A block computes the jobs of its list (tma_weights_tiling.c): some steps of a tile.  Lanes of its first
 * warp load a unit each, SLOTS steps ahead, while two groups of four warps multiply the loaded ones.  If a
 * tile is divided among blocks, add_parts adds their sums in order.
 *
 *   T           elements: half or bf16
 *   TAPS_DOWN   rows, not columns, are channels of taps: filters are the contiguous axis of the result
 *   DOWN, MI    row groups of warps; units of rows of each
 *   ACROSS, Q   column groups of warps; units of columns of each
 *   KS          16 KS terms of a step; CLEAR: a box has fewer
 *   ADDS        whether the result has addends: c0
 *   SLICES      groups of threads that share the parts of a sum */
#include "heavy/conv/cuda/implicit/tma_weights_args.h"
typedef mc_conv_tma_weights_job job;
typedef mc_conv_tma_weights_sum tile_sum;
typedef mc_conv_tma_weights_args args;

enum {
    UNIT = TMA_UNIT,
    ROWS = DOWN * MI,           /* in units */
    COLUMNS = ACROSS * Q,
    TN = Q * UNIT,
    WIDE = COLUMNS * UNIT,
    TILE = ROWS * UNIT * WIDE,
    BYTES = KS * 16 * ROW,      /* of a unit */
    SLOT = (ROWS + COLUMNS) * BYTES
};

/* ---- results ---- */

/* The offset of a filter, or of a channel of a tap, in the result.  Negative: there is none. */
__device__ __forceinline__ i64 filter_at(const args &p, int unit, int i)
{
    const int f = unit * UNIT + i;
    return f < p.filters ? f * p.ws[0] : -1;
}
__device__ __forceinline__ i64 tap_at(const args &p, int unit, int i)
{
    const int taps = p.k[0] * p.k[1] * p.k[2], tap = unit / p.chunks, c = (unit - tap * p.chunks) * UNIT + i;
    return tap < taps && c < p.channels ? (p.backward ? taps - 1 - tap : tap) * p.ws[2] + c * p.ws[1] : -1;
}
__device__ __forceinline__ i64 row_at(const args &p, int unit, int i)
{
    return TAPS_DOWN ? tap_at(p, unit, i) : filter_at(p, unit, i);
}
__device__ __forceinline__ i64 column_at(const args &p, int unit, int i)  /* contiguous: eights */
{
    return TAPS_DOWN ? filter_at(p, unit, i) : tap_at(p, unit, i);
}

/* Two adjacent elements at `at`, as the bits of halves. */
__device__ __forceinline__ unsigned finished(const args &p, i64 at, float a, float b)
{
    a *= p.alpha;
    b *= p.alpha;
#if ADDS
    a += p.beta * get<float>(p.c0[at]);
    b += p.beta * get<float>(p.c0[at + 1]);
#endif
    return put<T>(a).bits | (unsigned)put<T>(b).bits << 16;
}

/* ---- sums of parts ---- */

extern "C" __global__ void __launch_bounds__(256) add_parts(const __grid_constant__ args p)
{
    follow();
    enum { EACH = 256 / SLICES };
    const tile_sum t = p.sums[blockIdx.y];
    const int slice = threadIdx.x / EACH, e = blockIdx.x * EACH + threadIdx.x % EACH,
              row = e / (WIDE / 4), column = e % (WIDE / 4) * 4;
    const i64 down = row_at(p, t.row + row / UNIT, row % UNIT),
              across = column_at(p, t.column + column / UNIT, column % UNIT);
    const bool is = down >= 0 && across >= 0;
    const float4 *const parts = (const float4 *)(p.parts + (i64)t.first * TILE) + e;
    float4 s = make_float4(0, 0, 0, 0);
#pragma unroll 4
    for (int i = slice; is && i < t.parts; i += SLICES) {
        const float4 v = parts[(i64)i * (TILE / 4)];
        s = make_float4(s.x + v.x, s.y + v.y, s.z + v.z, s.w + v.w);
    }
#if SLICES > 1
    __shared__ float4 some[SLICES][EACH];
    some[slice][threadIdx.x % EACH] = s;
    __syncthreads();
    for (int i = 1; slice == 0 && i < SLICES; i++) {
        const float4 v = some[i][threadIdx.x];
        s = make_float4(s.x + v.x, s.y + v.y, s.z + v.z, s.w + v.w);
    }
#endif
    if (is && slice == 0) {
        const i64 at = down + across;
        *(uint2 *)(p.to + at) = make_uint2(finished(p, at, s.x, s.y), finished(p, at + 2, s.z, s.w));
    }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* ---- operands ---- */

/* Loads operands; run by one warp, whose lanes load a unit each. */
__device__ __forceinline__ void bring(const args &p, const shared &m)
{
    const int lane = threadIdx.x, box = p.box[0] * p.box[1] * p.box[2] * p.box[3] * ROW,
              filters = (p.filters + UNIT - 1) / UNIT, taps = p.k[0] * p.k[1] * p.k[2] * p.chunks;
    const bool left = lane < ROWS, of_taps = left == (TAPS_DOWN != 0);
    const map &from = of_taps ? p.x : p.y;
    const int down = TAPS_DOWN ? taps : filters, across = TAPS_DOWN ? filters : taps;
    u32 n = 0;
    for (int i = p.first[blockIdx.x]; i < p.first[blockIdx.x + 1]; i++) {
        const job j = p.jobs[i];
        const int count = j.count, unit = left ? j.row + lane : j.column + lane - ROWS;
        const int rows = down - j.row < ROWS ? down - j.row : ROWS,
                  columns = across - j.column < COLUMNS ? across - j.column : COLUMNS;
        const bool mine = lane < ROWS + COLUMNS && unit < (left ? down : across);
        int tap = of_taps ? unit / p.chunks : 0, first[3], at[3], step[3], box_at[3], rest = j.first;
        const int c = (unit - tap * p.chunks) * UNIT;
#pragma unroll
        for (int a = 2; a >= 0; a--) {
            const int k = tap % p.k[a], s = of_taps ? p.stride[a] : 1;
            step[a] = p.box[a + 1] * s;
            first[a] = j.at[a] * s + (of_taps ? k * p.dilation[a] - p.pad[a] : 0);
            box_at[a] = rest % j.boxes[a];
            at[a] = first[a] + box_at[a] * step[a];
            tap /= p.k[a];
            rest /= j.boxes[a];
        }
        int image = rest * p.box[0];
        for (int s = 0; s < count; s++, n++) {
            const u32 slot = n % SLOTS, full = m.full + slot * 8;
            if (n >= SLOTS) {
                barrier_wait(m.empty + slot * 8, (n / SLOTS - 1) & 1);
            }
            if (lane == 0) {
                barrier_expect(full, (rows + columns) * box);
            }
            __syncwarp();
            if (mine) {
                copy_box5(m.slots + slot * SLOT + lane * BYTES, from, c, at[2], at[1], at[0], image, full);
            }
            bool next = true;   /* of the axis outside */
#pragma unroll
            for (int a = 2; a >= 0; a--) {
                at[a] += next ? step[a] : 0;
                box_at[a] += next;
                next = next && box_at[a] == j.boxes[a];
                at[a] = next ? first[a] : at[a];
                box_at[a] = next ? 0 : box_at[a];
            }
            image += next ? p.box[0] : 0;
        }
    }
}

/* ---- products ---- */

struct sums { float of[MI][TN / 2]; };  /* of a thread */

/* The sums of a job; n counts the steps of all jobs. */
__device__ __forceinline__ void multiply(sums &s, const shared &m, u32 row, u32 column, int count, u32 &n)
{
    enum { ON = 16 * ROW >> 4 };
    for (int step = 0; step < count; step++, n++) {
        const u32 slot = n % SLOTS, at = m.slots + slot * SLOT;
        const u64 b = tile_at(at + (ROWS + column) * BYTES, BYTES);
        barrier_wait(m.full + slot * 8, n / SLOTS & 1);
#pragma unroll
        for (int i = 0; i < MI; i++) {
            settle(s.of[i]);
        }
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < MI; i++) {
            const u64 a = tile_at(at + (row + i) * BYTES, BYTES);
#pragma unroll
            for (int k = 0; k < KS; k++) {
                wgmma(s.of[i], a + k * ON, b + k * ON, step > 0 || k > 0);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (step > 0 && (threadIdx.x & 127) == 0) {     /* the previous step is complete */
            barrier_arrive(m.empty + (n - 1) % SLOTS * 8);
        }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (count > 0 && (threadIdx.x & 127) == 0) {
        barrier_arrive(m.empty + (n - 1) % SLOTS * 8);
    }
#pragma unroll
    for (int i = 0; i < MI; i++) {
        settle(s.of[i]);
#pragma unroll
        for (int e = 0; e < TN / 2; e++) {
            s.of[i][e] = count > 0 ? s.of[i][e] : 0;    /* no tap read inside an image */
        }
    }
}

/* 32 columns of a row; each lane of a quad has two of each eight. */
__device__ __forceinline__ void deliver_row(const args &p, i64 down, int unit, int column, const float *sum)
{
    const int lane = threadIdx.x & 3;
    u32 w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const i64 across = column_at(p, unit, column + i * 8 + lane * 2);
        w[i] = down >= 0 && across >= 0 ? finished(p, down + across, sum[i * 4], sum[i * 4 + 1]) : 0;
    }
    turn(w);
    const i64 across = column_at(p, unit, column + lane * 8);
    if (down >= 0 && across >= 0) {
        *(uint4 *)(p.to + down + across) = make_uint4(w[0], w[1], w[2], w[3]);
    }
}

/* row, column: of the group's sums in the tile, in units. */
__device__ __forceinline__ void deliver(const args &p, const job &j, int row, int column, const sums &s)
{
    const int mine = (threadIdx.x >> 5 & 3) * 16 + (threadIdx.x & 31) / 4;
#pragma unroll
    for (int i = 0; i < MI; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int r = mine + half * 8;
            if (j.part < 0) {
                const i64 down = row_at(p, j.row + row + i, r);
#pragma unroll
                for (int c = 0; c < TN; c += 32) {
                    deliver_row(p, down, j.column + column + c / UNIT, c % UNIT, &s.of[i][c / 2 + half * 2]);
                }
                continue;
            }
            float *const to = p.parts + (i64)j.part * TILE + ((row + i) * UNIT + r) * WIDE + column * UNIT +
                              (threadIdx.x & 3) * 2;
#pragma unroll
            for (int c = 0; c < TN; c += 8) {
                *(float2 *)(to + c) = make_float2(s.of[i][c / 2 + half * 2], s.of[i][c / 2 + half * 2 + 1]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(384, 1) box_weights(const __grid_constant__ args p)
{
    extern __shared__ __align__(1024) unsigned char space[];
    __shared__ __align__(8) u64 barriers[2 * SLOTS];
    shared m;
    m.slots = ((u32)__cvta_generic_to_shared(space) + 1023) & ~1023u;
    m.full = (u32)__cvta_generic_to_shared(barriers);
    m.empty = m.full + SLOTS * 8;
    if (threadIdx.x == 0) {
        make_barriers(m, SLOTS, 2);
    }
#if CLEAR
    unsigned char *const slots = space + (m.slots - (u32)__cvta_generic_to_shared(space));
    for (int i = threadIdx.x * 16; i < SLOTS * SLOT; i += 384 * 16) {
        *(uint4 *)(slots + i) = make_uint4(0, 0, 0, 0);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    follow();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x < 32) {
            bring(p, m);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int group = (threadIdx.x >> 7) - 1, row = DOWN > 1 ? group * MI : 0,
              column = ACROSS > 1 ? group * Q : 0;
    u32 n = 0;
    for (int i = p.first[blockIdx.x]; i < p.first[blockIdx.x + 1]; i++) {
        const job j = p.jobs[i];
        sums s;
        multiply(s, m, row, column, j.count, n);
        deliver(p, j, row, column, s);
    }
}
#else
extern "C" __global__ void box_weights(const __grid_constant__ args) {}
#endif
