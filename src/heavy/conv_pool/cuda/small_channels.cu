/* small_channels.cu: a convolution of images of few channels with max pooling: y is neither written nor
 * read.
 *
 *   forward   lines of an image are in shared memory with their border of zeros.  A thread has all W1 x P
 *             elements of y under P / W2 windows, for Q filters.  It writes the maximum of each window and
 *             its argmax mark
 *   weights   (taps, cells) times (cells, filters) on tensor cores, as split halves
 *             (heavy/conv/cuda/split_fp16/shared_image.cu).  A block has 32 filters, a warp some windows of
 *             an image.  The gradient of a cell is that of its window where its mark says so, else 0: it is
 *             made in registers.  x is kept as pairs of what two cells side by side read, so a lane reads
 *             two terms at once, at any tap.  The sums of a block's warps are added; `add` adds those of
 *             the blocks, in order
 *
 * BITS: a mark has a bit for each cell that equals the maximum; all of them receive the gradient.  Windows
 * are compiled in: W1 x W2, strides S1, S2; NT: eights of filters that a block has.
 * heavy/conv/cuda/small_channels/rows.cu has the rest. */
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
    const float bias = HAS_BIAS ? p.bias[f] : 0.f;
    float most[SIDE];
    unsigned char cell[SIDE];
#pragma unroll
    for (int k = 0; k < SIDE; k++) {
        largest(p, sum, k, u * W1, (v + k) * W2, &most[k], &cell[k]);
        most[k] = finish(most[k] + bias, ACT);
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

enum {
    MT = (TAPS + 15) / 16,              /* sixteens of taps, eights of filters: all of a warp */
    ALONG = (W2 + 1) / 2,               /* pairs of cells in a line of a window */
    AT_ONCE = W1 * ALONG <= 8 ? W1 * ALONG : 1
};

/* Maxima and marks of 32 filters: (filter, fours) floats and (filter, fours) bytes; filters begin in
 * different banks. */
__device__ __forceinline__ void load_windows(const args &p, int image, int first, float *g,
                                             unsigned char *mark)
{
    const float *const from = p.g + image * p.gs[0] + first * p.gs[1];
    const unsigned char *const marks = p.mark + image * p.ks[0] + first * p.ks[1];
    const int count = min(32, p.f - first), step = p.whole ? 4 : 1;
    for (int f = threadIdx.x / 32; f < count; f += WARPS) {
        for (int k = threadIdx.x % 32 * step; k < p.windows; k += 32 * step) {
            if (p.whole) {
                fetch16(g + f * p.fours + k, from + f * p.gs[1] + k);
                fetch4((float *)(mark + f * p.fours + k), (const float *)(marks + f * p.ks[1] + k), true);
            } else {
                g[f * p.fours + k] = from[f * p.gs[1] + k];
                mark[f * p.fours + k] = marks[f * p.ks[1] + k];
            }
        }
    }
}

/* The largest finite |x|. */
__device__ __forceinline__ unsigned larger(unsigned most, float x)
{
    const unsigned size = __float_as_uint(x) & 0x7fffffff;
    return size < 0x7f800000 && size > most ? size : most;
}

/* The largest numbers of an image and of its windows; ends with a barrier. */
__device__ __forceinline__ void find_largest(const args &p, const float *x, int size, const float *g,
                                             int filters, unsigned (&most)[2])
{
    __shared__ unsigned seen[2][WARPS];
    most[0] = most[1] = 0;
    for (int e = threadIdx.x; e < size; e += blockDim.x) {
        most[0] = larger(most[0], x[e]);
    }
    for (int f = threadIdx.x / 32; f < filters; f += WARPS) {
        for (int k = threadIdx.x % 32; k < p.windows; k += 32) {
            most[1] = larger(most[1], g[f * p.fours + k]);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        seen[i][threadIdx.x / 32] = over_warp(most[i]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        most[i] = over_warp(seen[i][threadIdx.x % WARPS]);
    }
}

/* Two numbers as high and low halves; a number that is not finite has no low half. */
__device__ __forceinline__ uint2 split2(float a, float b, const float f[2])
{
    uint2 r;
    halve2(a * f[0] * f[1], b * f[0] * f[1], &r.x, &r.y);
    r.y &= ((r.x & 0x7c00) != 0x7c00 ? 0xffff : 0) | ((r.x & 0x7c000000) != 0x7c000000 ? 0xffff0000 : 0);
    return r;
}

/* At each place of an image, and at the SW before the first: its number and the one that the next cell
 * reads there, split. */
__device__ __forceinline__ void pair(uint2 *to, const float *x, int size, const float f[2])
{
    for (int e = (int)threadIdx.x - SW; e < size; e += blockDim.x) {
        to[e] = split2(e >= 0 ? x[e] : 0.f, e + SW < size ? x[e + SW] : 0.f, f);
    }
}

/* Ones in the halves of the marked cells, of two that begin at `cell`. */
__device__ __forceinline__ unsigned marked(unsigned mark, int cell)
{
    const bool two = cell % W2 + 1 < W2;
    const bool a = BITS ? mark >> cell & 1 : mark == (unsigned)cell,
               b = two && (BITS ? mark >> cell >> 1 & 1 : mark == (unsigned)cell + 1);
    return (a ? 0xffffu : 0) | (b ? 0xffff0000u : 0);
}

/* Adds the terms of eight windows to the sums: (taps, cells) times (cells, filters).  A product takes two
 * cells of each window.  x: at cell 0 of this lane's two windows; tap: offsets of this lane's taps. */
__device__ __forceinline__ void add_eight(const args &p, float (&sum)[MT][NT][4], const uint2 *const (&x)[2],
                                          const int (&tap)[2 * MT], const uint2 (&g)[NT],
                                          const unsigned (&mark)[NT][2], float scale)
{
    float part[MT][NT][4] = {};
#pragma unroll(AT_ONCE)
    for (int i = 0; i < W1 * ALONG; i++) {
        const int cell = i / ALONG * W2 + i % ALONG * 2,
                  shift = i / ALONG * SH * p.pitch + i % ALONG * 2 * SW;
        unsigned h[MT][4], l[MT][4], bh[NT][2], bl[NT][2];
#pragma unroll
        for (int e = 0; e < MT * 4; e++) {      /* rows r and r + 8 of one window, then of the other */
            const uint2 v = x[e % 4 / 2][shift + tap[e / 4 * 2 + e % 2]];
            h[e / 4][e % 4] = v.x;
            l[e / 4][e % 4] = v.y;
        }
#pragma unroll
        for (int e = 0; e < NT * 2; e++) {
            const unsigned is = marked(mark[e / 2][e % 2], cell), twice = e % 2 ? 0x3232 : 0x1010;
            bh[e / 2][e % 2] = __byte_perm(g[e / 2].x, 0, twice) & is;
            bl[e / 2][e % 2] = __byte_perm(g[e / 2].y, 0, twice) & is;
        }
#pragma unroll
        for (int e = 0; e < MT * NT; e++) {
            multiply(part[e / NT][e % NT], h[e / NT], bl[e % NT][0], bl[e % NT][1]);
        }
#pragma unroll
        for (int e = 0; e < MT * NT; e++) {
            multiply(part[e / NT][e % NT], l[e / NT], bh[e % NT][0], bh[e % NT][1]);
        }
#pragma unroll
        for (int e = 0; e < MT * NT; e++) {
            multiply(part[e / NT][e % NT], h[e / NT], bh[e % NT][0], bh[e % NT][1]);
        }
    }
#pragma unroll
    for (int e = 0; e < MT * NT * 4; e++) {
        sum[e / (4 * NT)][e / 4 % NT][e % 4] += part[e / (4 * NT)][e / 4 % NT][e % 4] * scale;
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, MT * NT > 8 ? 1 : 2)
    weights(const __grid_constant__ args p)
{
    follow();
    extern __shared__ float4 shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.y * 32,
              filters = min(32, p.f - first), windows = (p.windows + 7) / 8 * 8;
    /* floats of an image, and of its windows with their marks */
    const int size = C * p.lines * p.pitch, half = 40 * p.fours;
    /* pairs: with zeros before and after, where cells outside of y read */
    uint2 *const pairs = (uint2 *)shared;
    int *const at = (int *)(pairs + p.reach);   /* by window: offset of its cell 0 */
    float *const x = (float *)(at + windows), *const begin = x + (size + 3) / 4 * 4;
    float sum[MT][NT][4] = {};
    int tap[2 * MT];
#pragma unroll
    for (int e = 0; e < 2 * MT; e++) {
        const int t = min(e * 8 + lane / 4, TAPS - 1);
        tap[e] = (t / (KH * KW) * p.lines + t / KW % KH) * p.pitch + t % KW;
    }
    for (int e = threadIdx.x; e < windows; e += blockDim.x) {
        const int k = min(e, p.windows - 1), u = k / p.out[1], v = k - u * p.out[1];
        at[e] = p.lead + (u * S1 - p.before[0]) * SH * p.pitch + (v * S2 - p.before[1]) * SW;
    }
    for (int e = threadIdx.x; e < p.reach; e += blockDim.x) {
        pairs[e] = { 0, 0 };
    }
    load(p, blockIdx.x, x);
    load_windows(p, blockIdx.x, first, begin, (unsigned char *)(begin + 32 * p.fours));
    for (int image = blockIdx.x, turn = 0; image < p.n; image += gridDim.x, turn ^= 1) {
        const float *const g = begin + turn * half;
        float *const next = begin + (turn ^ 1) * half;
        unsigned most[2];
        float of_x[2], of_g[2];
        fetched();
        __syncthreads();        /* all copies have arrived, and all threads are done with the pairs */
        find_largest(p, x, size, g, filters, most);
        factors(most[0], of_x);
        factors(most[1], of_g);
        pair(pairs + p.lead, x, size, of_x);
        __syncthreads();
        if (image + (int)gridDim.x < p.n) {
            load(p, image + gridDim.x, x);
            load_windows(p, image + gridDim.x, first, next, (unsigned char *)(next + 32 * p.fours));
        }
        const unsigned char *const marks = (const unsigned char *)(g + 32 * p.fours);
        const float scale = unscaled(most[0]), other = unscaled(most[1]);
#pragma unroll 1
        for (int k0 = warp * 8; k0 < p.windows; k0 += WARPS * 8) {
            const int k[2] = { k0 + lane % 4, k0 + lane % 4 + 4 };
            const uint2 *const from[2] = { pairs + at[k[0]], pairs + at[k[1]] };
            uint2 v[NT];
            unsigned mark[NT][2];
#pragma unroll
            for (int t = 0; t < NT; t++) {
                const int f = t * 8 + lane / 4;
                const bool in[2] = { f < filters && k[0] < p.windows, f < filters && k[1] < p.windows };
                v[t] = split2(in[0] ? g[f * p.fours + k[0]] : 0.f, in[1] ? g[f * p.fours + k[1]] : 0.f, of_g);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    mark[t][i] = in[i] ? marks[f * p.fours + k[i]] : 0;
                }
            }
            add_eight(p, sum, from, tap, v, mark, scale * other);
        }
    }
    __syncthreads();
    float *const all = (float *)shared;   /* (warp, tap, filter) */
#pragma unroll
    for (int e = 0; e < MT * NT * 4; e++) {
        const int t = e / (4 * NT) * 16 + lane / 4 + e % 4 / 2 * 8, f = e / 4 % NT * 8 + lane % 4 * 2 + e % 2;
        if (t < TAPS) {
            all[(warp * TAPS + t) * 32 + f] = sum[e / (4 * NT)][e / 4 % NT][e % 4];
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < TAPS * 32; e += blockDim.x) {
        float v = all[e];
        for (int k = 1; k < WARPS; k++) {
            v += all[k * TAPS * 32 + e];
        }
        if (e % 32 < filters) {
            p.parts[((i64)blockIdx.x * p.f + first + e % 32) * TAPS + e / 32] = v;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    add_blocks(p, [&](int f, int k, float sum) { p.w[weight_at(p.ws, f, k)] = sum; });
}
#endif
