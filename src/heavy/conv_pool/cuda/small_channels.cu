/* small_channels.cu: a convolution of images of few channels with max pooling: y is neither written nor
 * read.
 *
 *   forward   lines of an image are in shared memory with their border of zeros.  A thread has all W1 x P
 *             elements of y under P / W2 windows, for Q filters.  It writes the maximum of each window and
 *             its argmax mark
 *   weights   a lane has a filter, whose C x KH x KW sums stay in its registers; a warp has some windows of
 *             an image.  Its lanes read x where their marks point: at one of W1 x W2 positions, which are
 *             in different banks.  The sums of a block's warps are added; `add` adds those of the blocks,
 *             in order
 *
 * BITS: a mark has a bit for each cell that equals the maximum; all of them receive the gradient.  Windows
 * are compiled in: W1 x W2, strides S1, S2; heavy/conv/cuda/small_channels/rows.cu has the rest. */
#include "heavy/conv_pool/cuda/small_channels_args.h"
typedef mc_pooled_small_channels_args args;

enum { THREADS = POOLED_THREADS, SIDE = P / W2 > 0 ? P / W2 : 1 };

__device__ __forceinline__ void load(const args &p, int image, float *to)
{
    load_lines(p, image, 1, 0, to);
}

#if FORWARD
/* ---- forward ---- */

/* The first of the largest cells of window k of a thread; NaN counts as the largest. */
__device__ __forceinline__ void largest(const args &p, const float (&sum)[W1][P], int k, int row, int col,
                                        float *most, unsigned char *mark)
{
    *most = sum[0][k * W2];
    *mark = 0;
#pragma unroll
    for (int e = 1; e < W1 * W2; e++) {
        const float v = sum[e / W2][k * W2 + e % W2];
        if (row + e / W2 < p.y[0] && col + e % W2 < p.y[1] && (v > *most || (v != v && *most == *most))) {
            *most = v;
            *mark = (unsigned char)e;
        }
    }
#if BITS
    unsigned bits = 0;
#pragma unroll
    for (int e = 0; e < W1 * W2; e++) {
        const bool in = row + e / W2 < p.y[0] && col + e % W2 < p.y[1];
        bits |= (in && sum[e / W2][k * W2 + e % W2] == *most) << e;
    }
    *mark = (unsigned char)bits;
#endif
}

__device__ __forceinline__ void put_windows(const args &p, const float (&sum)[W1][P], int image, int f, int u,
                                            int v)
{
    float *const g = p.g + image * p.gs[0] + f * p.gs[1] + u * p.out[1] + v;
    unsigned char *const mark = p.mark ? p.mark + image * p.ks[0] + f * p.ks[1] + u * p.out[1] + v : 0;
    float most[SIDE];
    unsigned char cell[SIDE];
#pragma unroll
    for (int k = 0; k < SIDE; k++) {
        largest(p, sum, k, u * W1, (v + k) * W2, &most[k], &cell[k]);
    }
    if (SIDE == 2 && p.whole && mark) {
        float2 both;
        both.x = most[0];
        both.y = most[SIDE - 1];
        *(float2 *)g = both;
        *(unsigned short *)mark = (unsigned short)(cell[0] | cell[SIDE - 1] << 8);
        return;
    }
#pragma unroll
    for (int k = 0; k < SIDE; k++) {
        if (v + k < p.out[1]) {
            g[k] = most[k];
            if (mark) {
                mark[k] = cell[k];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, Q == 4 ? 4 : 3) forward(const __grid_constant__ args p)
{
    follow();
    extern __shared__ float4 shared[];
    float *const w = (float *)shared, *const x = w + TAPS * p.filters;
    const int chunks = (p.f + Q - 1) / Q, each = p.out[0] * p.across;
    load(p, blockIdx.x, x);
    load_filters(p, w);
    fetched();
    __syncthreads();
    for (int s = threadIdx.x; s < each * chunks; s += blockDim.x) {
        const int f = s / each * Q, position = s % each, u = position / p.across,
                  group = position - u * p.across;
        const float *const mine = x + u * W1 * SH * p.pitch + group * P * SW;
        float sum[Q][W1][P] = {};
#pragma unroll 1
        for (int c = 0; c < C; c++) {
#pragma unroll 1
            for (int i = 0; i < KH; i++) {
                float v[W1][WIDE];
#pragma unroll
                for (int r = 0; r < W1; r++) {
                    read_line(v[r], mine + (c * p.lines + r * SH + i) * p.pitch);
                }
#pragma unroll
                for (int j = 0; j < KW; j++) {
                    const float4 *const tap = (const float4 *)(w + ((c * KH + i) * KW + j) * p.filters + f);
#pragma unroll
                    for (int q = 0; q < Q; q += 4) {
                        const float4 t = tap[q / 4];
#pragma unroll
                        for (int k = 0; k < W1 * P; k++) {
                            const float a = v[k / P][k % P * SW + j];
                            sum[q][k / P][k % P] += t.x * a;
                            sum[q + 1][k / P][k % P] += t.y * a;
                            sum[q + 2][k / P][k % P] += t.z * a;
                            sum[q + 3][k / P][k % P] += t.w * a;
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int q = 0; q < Q; q++) {
            if (f + q < p.f) {
                put_windows(p, sum[q], blockIdx.x, f + q, u, group * SIDE);
            }
        }
    }
}
#else
/* ---- weights ---- */

/* Maxima and marks of 32 filters: (filter, fours) floats and (filter, fours) bytes; filters begin in
 * different banks. */
__device__ __forceinline__ void load_windows(const args &p, int image, int first, float *g,
                                             unsigned char *mark)
{
    const float *const from = p.g + image * p.gs[0] + first * p.gs[1];
    const unsigned char *const marks = p.mark + image * p.ks[0] + first * p.ks[1];
    const int count = min(32, p.f - first), step = p.whole ? 4 : 1, each = p.windows / step;
    for (int e = threadIdx.x; e < count * each; e += blockDim.x) {
        const int f = e / each, k = (e - f * each) * step;
        if (p.whole) {
            fetch16(g + f * p.fours + k, from + f * p.gs[1] + k);
            fetch4((float *)(mark + f * p.fours + k), (const float *)(marks + f * p.ks[1] + k), true);
        } else {
            g[f * p.fours + k] = from[f * p.gs[1] + k];
            mark[f * p.fours + k] = marks[f * p.ks[1] + k];
        }
    }
}

/* Adds the terms of one window, whose gradient g this cell receives, to the sums of all taps.  x: at cell 0
 * of the window. */
__device__ __forceinline__ void add_cell(const args &p, float (&sum)[TAPS], const float *x, int cell, float g)
{
    const float *const from = x + cell / W2 * SH * p.pitch + cell % W2 * SW;
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
        sum[t] += g * from[(t / (KH * KW) * p.lines + t / KW % KH) * p.pitch + t % KW];
    }
}

/* Four windows at once, which almost always have one marked cell each; then their other ones.  offset: by
 * window, of cell 0; marks: a byte each. */
__device__ __forceinline__ void add_four(const args &p, float (&sum)[TAPS], const float *x, const int *offset,
                                         int windows, const float4 &g, unsigned marks)
{
    const float each[4] = { g.x, g.y, g.z, g.w };
    const bool some_empty = BITS && ((marks - 0x01010101u) & ~marks & 0x80808080u) != 0;
    unsigned left = marks;
    if (windows >= 4 && !some_empty) {
        left = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const unsigned mark = marks >> 8 * i & 255;
            add_cell(p, sum, x + offset[i], BITS ? __ffs(mark) - 1 : (int)mark, each[i]);
            left |= BITS ? (mark & (mark - 1)) << 8 * i : 0;
        }
        windows = BITS && left ? 4 : 0;
    }
#pragma unroll 1
    for (int i = 0; i < min(windows, 4); i++) {
        const unsigned mark = left >> 8 * i & 255;
#pragma unroll 1
        for (unsigned bits = BITS ? mark : 1; bits; bits &= bits - 1) {
            const float v = i == 0 ? g.x : i == 1 ? g.y : i == 2 ? g.z : g.w;
            add_cell(p, sum, x + offset[i], BITS ? __ffs(bits) - 1 : (int)mark, v);
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 2) weights(const __grid_constant__ args p)
{
    follow();
    extern __shared__ float4 shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.y * 32;
    /* floats of an image and its windows */
    const int size = (C * p.lines * p.pitch + 3) / 4 * 4, half = size + 40 * p.fours;
    int *const at = (int *)shared;        /* by window: offset of its cell 0 */
    float *const begin = (float *)(at + (p.windows + 3) / 4 * 4);
    float sum[TAPS] = {};
    for (int e = threadIdx.x; e < p.windows; e += blockDim.x) {
        const int u = e / p.out[1], v = e - u * p.out[1];
        at[e] = (u * S1 - p.before[0]) * SH * p.pitch + (v * S2 - p.before[1]) * SW;
    }
    load(p, blockIdx.x, begin);
    load_windows(p, blockIdx.x, first, begin + size, (unsigned char *)(begin + size + 32 * p.fours));
    for (int image = blockIdx.x, turn = 0; image < p.n; image += gridDim.x, turn ^= 1) {
        float *const x = begin + turn * half, *const next = begin + (turn ^ 1) * half;
        fetched();
        __syncthreads();        /* all copies have arrived, and all threads are done with the other half */
        if (image + (int)gridDim.x < p.n) {
            load(p, image + gridDim.x, next);
            load_windows(p, image + gridDim.x, first, next + size,
                         (unsigned char *)(next + size + 32 * p.fours));
        }
        const float *const g = x + size + lane * p.fours;
        const unsigned char *const mark = (const unsigned char *)(x + size + 32 * p.fours) + lane * p.fours;
        if (first + lane < p.f) {
#pragma unroll 1
            for (int k = warp * 4; k < p.windows; k += WARPS * 4) {
                add_four(p, sum, x, at + k, p.windows - k, *(const float4 *)(g + k),
                         *(const unsigned *)(mark + k));
            }
        }
    }
    __syncthreads();
    float *const all = (float *)shared;   /* (warp, tap, lane) */
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
        all[(warp * TAPS + t) * 32 + lane] = sum[t];
    }
    __syncthreads();
    for (int e = threadIdx.x; e < TAPS * 32; e += blockDim.x) {
        float v = all[e];
        for (int k = 1; k < WARPS; k++) {
            v += all[k * TAPS * 32 + e];
        }
        if (first + e % 32 < p.f) {
            p.parts[((i64)blockIdx.x * p.f + first + e % 32) * TAPS + e / 32] = v;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    add_blocks(p, [&](int f, int k, float sum) { p.w[weight_at(p.ws, f, k)] = sum; });
}
#endif
