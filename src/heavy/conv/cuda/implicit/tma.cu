/* tma.cu: convolutions as products on Hopper's tensor cores, for images with contiguous channels.
 *
 * Rows of a product are positions, its columns are results, its terms are the channels that each tap
 * reads.  The rows of a tile are a box of images, lines and positions.  What a tap reads of them is a box
 * as well: the copy engine copies it at once, with zeros outside of the image.  A tap that reads nothing
 * inside the image from any position of the box is skipped; im2col would multiply zeros there.
 *
 * A block computes the tiles of its list (tma_tiling.c) one after the other.  Its first warps load
 * operands, SLOTS steps ahead, while two groups of four warps multiply the loaded ones, MI times 64 rows
 * each.
 *
 *   T, HALF     elements, and whether they have two bytes; the copy engine rounds others to TF32
 *   TN          columns of a tile
 *   DOWN        results, not terms, are the contiguous axis of filters
 *   ADDS        whether sums have addends: c0 or a bias
 *   ACT         the activation; a switch over all of them at each place of use would be too much code */
#include "heavy/conv/cuda/implicit/tma_args.h"
typedef mc_conv_tma_tile tile;
typedef mc_conv_tma_args args;

enum {
    TM = TMA_ROWS * MI,
    SIZE = HALF ? 2 : 4,
    TK = ROW / SIZE,
    A_BYTES = TM * ROW,
    B_BYTES = TN * ROW,
    SLOT = A_BYTES + B_BYTES
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* ---- taps ---- */

struct range { int first, last; };
__device__ __forceinline__ range taps(const args &p, int axis, int from, int count)
{
    const int end = from + count < p.out[axis] ? from + count : p.out[axis], d = p.dilation[axis];
    const int low = p.pad[axis] - (end - 1) * p.stride[axis],
              high = p.in[axis] - 1 + p.pad[axis] - from * p.stride[axis];
    range r = { low > 0 ? (low + d - 1) / d : 0, high < 0 ? -1 : high / d };
    r.last = r.last < p.k[axis] ? r.last : p.k[axis] - 1;
    return r;
}

__device__ __forceinline__ int steps(const args &p, const tile &t)
{
    const range a = taps(p, 0, t.line, p.box[1]), b = taps(p, 1, t.position, p.box[2]);
    return a.last < a.first || b.last < b.first ? 0
                                                : (a.last - a.first + 1) * (b.last - b.first + 1) * p.chunks;
}

/* ---- operands ---- */

/* Loads operands; run by one thread. */
__device__ __forceinline__ void bring(const args &p, const shared &m)
{
    const u32 bytes = p.box[0] * p.box[1] * p.box[2] * ROW + B_BYTES;
    u32 n = 0;
    for (int i = p.first[blockIdx.x]; i < p.first[blockIdx.x + 1]; i++) {
        const tile t = p.tiles[i];
        const range down = taps(p, 0, t.line, p.box[1]), right = taps(p, 1, t.position, p.box[2]);
        for (int a = down.first; a <= down.last; a++) {
            for (int b = right.first; b <= right.last; b++) {
                const int tap = a * p.k[1] + b, at = p.backward ? p.k[0] * p.k[1] - 1 - tap : tap;
                const int y = t.line * p.stride[0] - p.pad[0] + a * p.dilation[0],
                          x = t.position * p.stride[1] - p.pad[1] + b * p.dilation[1];
                for (int c = 0; c < p.chunks; c++, n++) {
                    const u32 slot = n % SLOTS, full = m.full + slot * 8, to = m.slots + slot * SLOT;
                    if (n >= SLOTS) {
                        barrier_wait(m.empty + slot * 8, (n / SLOTS - 1) & 1);
                    }
                    barrier_expect(full, bytes);
                    copy_box4(to, p.from, c * TK, x, y, t.image, full);
#if DOWN
#pragma unroll
                    for (int j = 0; j < TN; j += 64) {
                        copy_box3(to + A_BYTES + j * ROW, p.filters, t.column + j, at, c * TK, full);
                    }
#else
                    copy_box3(to + A_BYTES, p.filters, c * TK, at, t.column, full);
#endif
                }
            }
        }
    }
}

/* ---- products ---- */

enum { R = TN / 2 };            /* of a thread's sums of 64 rows */
struct sums { float of[MI][R]; };

/* The sums of 64 MI rows of a tile; n counts the steps of all tiles. */
__device__ __forceinline__ void multiply(sums &s, const shared &m, u32 rows, int count, u32 &n)
{
    enum { ON = 32 >> 4, ON_B = DOWN ? 16 * ROW >> 4 : ON };
    for (int step = 0; step < count; step++, n++) {
        const u32 slot = n % SLOTS, at = m.slots + slot * SLOT;
        const u64 b = tile_at(at + A_BYTES, DOWN ? TK * ROW : ALONG);
        barrier_wait(m.full + slot * 8, n / SLOTS & 1);
#pragma unroll
        for (int i = 0; i < MI; i++) {
            settle(s.of[i]);
        }
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < MI; i++) {
            const u64 a = tile_at(at + (rows + i * 64) * ROW, ALONG);
#pragma unroll
            for (int k = 0; k < ROW / 32; k++) {
                wgmma(s.of[i], a + k * ON, b + k * ON_B, step > 0 || k > 0);
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
        for (int j = 0; j < R; j++) {
            s.of[i][j] = count > 0 ? s.of[i][j] : 0;    /* no tap read inside an image */
        }
    }
}

/* ---- results ---- */

/* negative: the row is outside the result */
__device__ __forceinline__ i64 row_at(const args &p, const tile &t, int row)
{
    const int w = row % p.box[2], rest = row / p.box[2], image = t.image + rest / p.box[1],
              line = t.line + rest % p.box[1], position = t.position + w;
    const bool is = rest < p.box[0] * p.box[1] && image < p.images && line < p.out[0] && position < p.out[1];
    return is ? image * p.ts[0] + line * p.ts[1] + position * p.ts[2] : -1;
}

/* Two adjacent columns of the row at `at`; negative: no such row. */
struct pair { float a, b; };
__device__ __forceinline__ pair finished(const args &p, i64 at, int column, float a, float b)
{
    pair v = { a * p.alpha, b * p.alpha };
#if ADDS
    const bool is = at >= 0 && column < p.results;
    if (p.c0 && is) {
        v.a += p.beta * get<float>(p.c0[at + column]);
        v.b += p.beta * get<float>(p.c0[at + column + 1]);
    }
    if (p.bias && is) {
        v.a += get<float>(p.bias[column]);
        v.b += get<float>(p.bias[column + 1]);
    }
#endif
    return { finish(v.a, ACT), finish(v.b, ACT) };
}

/* 32 columns of a row; each lane of a quad has two of each eight. */
__device__ __forceinline__ void deliver_row(const args &p, i64 at, int column, const float *sum)
{
    const int lane = threadIdx.x & 3;
#if HALF
    u32 w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const pair v = finished(p, at, column + i * 8 + lane * 2, sum[i * 4], sum[i * 4 + 1]);
        w[i] = put<T>(v.a).bits | (u32)put<T>(v.b).bits << 16;
    }
    turn(w);
    if (at >= 0 && column + lane * 8 < p.results) {
        *(uint4 *)(p.to + at + column + lane * 8) = make_uint4(w[0], w[1], w[2], w[3]);
    }
#else
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int mine = column + i * 8 + lane * 2;
        const pair v = finished(p, at, mine, sum[i * 4], sum[i * 4 + 1]);
        if (at >= 0 && mine < p.results) {
            *(float2 *)(p.to + at + mine) = make_float2(v.a, v.b);
        }
    }
#endif
}

__device__ __forceinline__ void deliver(const args &p, const tile &t, int row, const sums &s)
{
    const int mine = row + (threadIdx.x >> 5 & 3) * 16 + (threadIdx.x & 31) / 4;
#pragma unroll
    for (int i = 0; i < MI; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const i64 at = row_at(p, t, mine + i * 64 + half * 8);
#pragma unroll
            for (int c = 0; c < TN; c += 32) {
                deliver_row(p, at, t.column + c, &s.of[i][c / 2 + half * 2]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(384, 1) box(const __grid_constant__ args p)
{
    follow();
    extern __shared__ __align__(1024) unsigned char space[];
    __shared__ __align__(8) u64 barriers[2 * SLOTS];
    shared m;
    m.slots = ((u32)__cvta_generic_to_shared(space) + 1023) & ~1023u;
    m.full = (u32)__cvta_generic_to_shared(barriers);
    m.empty = m.full + SLOTS * 8;
    if (threadIdx.x == 0) {
        make_barriers(m, SLOTS);
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            bring(p, m);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int rows = ((threadIdx.x >> 7) - 1) * 64 * MI;
    u32 n = 0;
    for (int i = p.first[blockIdx.x]; i < p.first[blockIdx.x + 1]; i++) {
        const tile t = p.tiles[i];
        sums s;
        multiply(s, m, rows, steps(p, t), n);
        deliver(p, t, rows, s);
    }
}
#else
extern "C" __global__ void box(const __grid_constant__ args) {}
#endif
