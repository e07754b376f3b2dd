/* weights.cu: convolution of images of few channels on float32 units, forward and the gradient of filters.
 *
 * Such a pass reads or writes one large array, y, with few terms for each element: tiles of a product
 * would mostly wait for memory.  So rows of images are kept in shared memory, with their border of zeros.
 * A thread has P positions of a row of y at a time:
 *
 *   forward   for Q filters; it reads each tap once for its whole warp
 *   weights   for Q filters and TA x KW taps, whose sums stay in registers until the last position of the
 *             block.  Then the sums of a warp are added, and `add` adds those of blocks, in order
 *
 * tile.cu lists what is compiled in.  BESIDE: y's filters are contiguous; else its lines are. */
enum { SETS = (KH + TA - 1) / TA };

typedef float T;
#include "heavy/conv/cuda/small_channels/small_channels_args.h"
typedef mc_small_channels_lines_args args;

/* ---- shared memory ---- */

__device__ __forceinline__ void load(const args &p, const tile &a, float *to)
{
    load_lines(p, a.image, a.images, a.row * SH, to);
}

/* ---- forward ---- */

__device__ __forceinline__ void put_positions(const args &p, const float (&sum)[P], i64 at, int col,
                                              float bias)
{
    float v[P];
#pragma unroll
    for (int i = 0; i < P; i++) {
        v[i] = p.alpha * sum[i];
        if (HAS_C0) {
            v[i] += col + i < p.out[1] ? p.beta * p.c0[at + i] : 0;
        }
        v[i] = finish(v[i] + bias, ACT);
    }
    if (p.whole) {
        *(float4 *)(p.y + at) = make_float4(v[0], v[1], v[2], v[3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < P; i++) {
        if (col + i < p.out[1]) {
            p.y[at + i] = v[i];
        }
    }
}

/* The same for Q contiguous filters. */
__device__ __forceinline__ void put_filters(const args &p, const float (&sum)[Q][P], i64 at, int col, int f)
{
#pragma unroll
    for (int i = 0; i < P; i++) {
        if (col + i >= p.out[1]) {
            continue;
        }
        const i64 to = at + i * p.ys[3] + f;
        float v[Q];
#pragma unroll
        for (int q = 0; q < Q; q++) {
            if (f + q < p.f) {
                v[q] = finish(p.alpha * sum[q][i] + (HAS_C0 ? p.beta * p.c0[to + q] : 0.f) +
                                  (HAS_BIAS ? p.bias[f + q] : 0.f),
                              ACT);
            }
        }
#pragma unroll
        for (int q = 0; q < Q; q++) {
            if (p.whole && q % 4 == 0 && f + q < p.f) {
                *(float4 *)(p.y + to + q) = make_float4(v[q], v[q + 1], v[q + 2], v[q + 3]);
            } else if (!p.whole && f + q < p.f) {
                p.y[to + q] = v[q];
            }
        }
    }
}

#if FORWARD
extern "C" __global__ void __launch_bounds__(256, 3) forward(const __grid_constant__ args p)
{
    follow();
    extern __shared__ float4 shared[];
    float *const w = (float *)shared, *const x = w + C * KH * KW * p.filters;
    const tile a = tile_at(p, blockIdx.x);
    load(p, a, x);
    load_filters(p, w);
    fetched();
    __syncthreads();
    for (int s = threadIdx.x; s < a.rows * p.across; s += blockDim.x) {
        const int row = s / p.across, group = s - row * p.across;
        const float *const mine = x + row * SH * p.pitch + group * P * SW;
        for (int f = blockIdx.y * Q; f < p.f; f += gridDim.y * Q) {
            float sum[Q][P] = {};
#pragma unroll 1
            for (int c = 0; c < C; c++) {
#pragma unroll(KH * KW <= 36 ? KH : 1)
                for (int i = 0; i < KH; i++) {
                    float v[WIDE];
                    read_line(v, mine + (c * p.lines + i) * p.pitch);
#pragma unroll
                    for (int j = 0; j < KW; j++) {
                        const float4 *const tap = (const float4 *)(w + ((c * KH + i) * KW + j) * p.filters +
                                                                   f);
#pragma unroll
                        for (int q = 0; q < Q; q += 4) {
                            const float4 u = tap[q / 4];
#pragma unroll
                            for (int k = 0; k < P; k++) {
                                sum[q][k] += u.x * v[k * SW + j];
                                sum[q + 1][k] += u.y * v[k * SW + j];
                                sum[q + 2][k] += u.z * v[k * SW + j];
                                sum[q + 3][k] += u.w * v[k * SW + j];
                            }
                        }
                    }
                }
            }
            const i64 at = a.image * p.ys[0] + (a.row + row) * p.ys[2] + group * P * (BESIDE ? p.ys[3] : 1);
            if (BESIDE) {
                put_filters(p, sum, at, group * P, f);
            }
#pragma unroll
            for (int q = 0; q < Q && !BESIDE; q++) {
                if (f + q < p.f) {
                    put_positions(p, sum[q], at + (f + q) * p.ys[1], group * P,
                                  HAS_BIAS ? p.bias[f + q] : 0.f);
                }
            }
        }
    }
}
#else
/* ---- weights ---- */

/* P positions of Q contiguous filters of y; 0 as below. */
__device__ __forceinline__ void get_filters(const args &p, float (&v)[Q][P], i64 at, int col, int f)
{
#pragma unroll
    for (int i = 0; i < P; i++) {
        const float *const from = p.y + at + i * p.ys[3] + f;
        const bool in = col + i < p.out[1];
#pragma unroll
        for (int q = 0; q < Q; q += 4) {
            float4 u = make_float4(0, 0, 0, 0);
            if (p.whole) {
                u = in && f + q < p.f ? *(const float4 *)(from + q) : u;
            } else if (in) {
                u.x = f + q < p.f ? from[q] : 0.f;
                u.y = f + q + 1 < p.f ? from[q + 1] : 0.f;
                u.z = f + q + 2 < p.f ? from[q + 2] : 0.f;
                u.w = f + q + 3 < p.f ? from[q + 3] : 0.f;
            }
            v[q][i] = u.x;
            v[q + 1][i] = u.y;
            v[q + 2][i] = u.z;
            v[q + 3][i] = u.w;
        }
    }
}

/* P positions of Q filters of y; 0 beyond the line, and beyond the last filter. */
__device__ __forceinline__ void get_positions(const args &p, float (&v)[Q][P], i64 at, int col, int f)
{
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const float *const from = p.y + at + (f + q) * p.ys[1];
        float4 u = make_float4(0, 0, 0, 0);
        if (p.whole) {
            u = f + q < p.f ? *(const float4 *)from : u;
        } else if (f + q < p.f) {
            u.x = from[0];
            u.y = col + 1 < p.out[1] ? from[1] : 0.f;
            u.z = col + 2 < p.out[1] ? from[2] : 0.f;
            u.w = col + 3 < p.out[1] ? from[3] : 0.f;
        }
        v[q][0] = u.x;
        v[q][1] = u.y;
        v[q][2] = u.z;
        v[q][3] = u.w;
    }
}

enum { SUMS = Q * TA * KW, ROUND = (SUMS + 31) / 32 * 32 };

/* Sums over a warp: lane l gets those from l * ROUND / 32 on, at the front of v.  D: distance of the lanes
 * that exchange halves. */
template <int D> __device__ __forceinline__ void over_lanes(float (&v)[ROUND])
{
    const bool upper = threadIdx.x & D;
#pragma unroll
    for (int i = 0; i < ROUND / 32 * D; i++) {
        const float other = __shfl_xor_sync(0xffffffffu, upper ? v[i] : v[i + ROUND / 32 * D], D);
        v[i] = (upper ? v[i + ROUND / 32 * D] : v[i]) + other;
    }
    if constexpr (D > 1) {
        over_lanes<D / 2>(v);
    }
}

/* The positions of a lane, tile by tile: every 32nd of each tile of its block. */
struct walk {
    tile a;
    int t, image, row, group;   /* in the tile: image, row and group of positions; t >= p.tiles: the end */
};

__device__ __forceinline__ void enter(const args &p, walk &w, int t)
{
    const int lane = threadIdx.x % 32, row = lane / p.across;
    w.t = t;
    w.a = tile_at(p, t < p.tiles ? t : 0);
    w.group = lane - row * p.across;
    w.image = row / w.a.rows;
    w.row = row - w.image * w.a.rows;
}

/* From the end of a tile to the next one that has a position for this lane. */
__device__ __forceinline__ void settle(const args &p, walk &w)
{
    while (w.image >= w.a.images && w.t < p.tiles) {
        enter(p, w, w.t + gridDim.x);
    }
}

__device__ __forceinline__ void advance(const args &p, walk &w, int right, int below)
{
    w.group += right;
    w.row += below + (w.group >= p.across);
    w.group -= w.group >= p.across ? p.across : 0;
    while (w.row >= w.a.rows) {
        w.row -= w.a.rows;
        w.image++;
    }
    settle(p, w);
}

__device__ __forceinline__ void get(const args &p, const walk &w, float (&g)[Q][P], int f)
{
    if (w.t < p.tiles) {
        const i64 line = (w.a.image + w.image) * p.ys[0] + (w.a.row + w.row) * p.ys[2];
        if (BESIDE) {
            get_filters(p, g, line + w.group * P * p.ys[3], w.group * P, f);
        } else {
            get_positions(p, g, line + w.group * P, w.group * P, f);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 1) weights(const __grid_constant__ args p)
{
    follow();
    extern __shared__ float4 shared[];
    float *const x = (float *)shared;
    const int lane = threadIdx.x % 32, size = p.images * C * p.lines * p.pitch;
    const int groups = (p.f + Q - 1) / Q, job = blockIdx.y * WARPS + threadIdx.x / 32, f = job % groups * Q,
              set = job / groups;
    const int c = set / SETS, tap = set % SETS * TA, right = 32 % p.across, below = 32 / p.across;
    float sum[ROUND] = {}, g[Q][P] = {};
    walk at;
    load(p, tile_at(p, blockIdx.x), x);
    enter(p, at, set < C * SETS ? blockIdx.x : p.tiles);    /* a warp without a job has no positions */
    settle(p, at);
    get(p, at, g, f);
    for (int t = blockIdx.x, turn = 0; t < p.tiles; t += gridDim.x, turn ^= 1) {
        fetched();
        __syncthreads();        /* all copies have arrived, and all threads are done with the other half */
        if (t + (int)gridDim.x < p.tiles) {
            load(p, tile_at(p, t + gridDim.x), x + (turn ^ 1) * size);
        }
#pragma unroll 1
        while (at.t == t) {
            const float *const mine = x + turn * size +
                                      ((at.image * C + c) * p.lines + at.row * SH + tap) * p.pitch +
                                      at.group * P * SW;
            float next[Q][P] = {};
            advance(p, at, right, below);
            get(p, at, next, f);        /* in flight while the current ones are summed */
#pragma unroll
            for (int i = 0; i < TA; i++) {
                float v[WIDE];
                read_line(v, mine + i * p.pitch);
#pragma unroll
                for (int q = 0; q < Q; q++) {
#pragma unroll
                    for (int j = 0; j < KW; j++) {
#pragma unroll
                        for (int k = 0; k < P; k++) {
                            sum[(q * TA + i) * KW + j] += g[q][k] * v[k * SW + j];
                        }
                    }
                }
            }
#pragma unroll
            for (int e = 0; e < Q * P; e++) {
                g[e / P][e % P] = next[e / P][e % P];
            }
        }
    }
    over_lanes<16>(sum);
#pragma unroll
    for (int i = 0; i < ROUND / 32; i++) {
        const int e = lane * (ROUND / 32) + i, q = e / (TA * KW), k = e % (TA * KW), line = tap + k / KW;
        if (e < SUMS && f + q < p.f && line < KH && set < C * SETS) {
            p.parts[((i64)blockIdx.x * p.f + f + q) * (C * KH * KW) + (c * KH + line) * KW + k % KW] = sum[i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    add_blocks(p, [&](int f, int k, float sum) {
        const i64 at = weight_at(p.ws, f, k);
        p.w[at] = p.alpha * sum + (HAS_C0 ? p.beta * p.c0[at] : 0.f);
    });
}
#endif
