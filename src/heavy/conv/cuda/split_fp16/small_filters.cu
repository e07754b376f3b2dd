/* small_filters.cu: float32 convolutions along one axis on tensor cores, with filters that stay in shared
 * memory: forward, and gradients of inputs, which are a forward pass of y with the taps backwards.
 *
 * The product is (results, terms) (terms, positions); gemm/cuda/split.cu has the algebra of split halves. A
 * term is a pair of a tap and a source, numbered in this order. A block splits its filters once, each result
 * with a scale of its own, and keeps them in shared memory as lanes read them. A warp then takes 32
 * contiguous positions after the other, of all of the block's results. Lane l has four positions of four of
 * a product's 16 terms, from l % 4 * 4 on: sixteen bytes of a line, if it is aligned, which go straight into
 * registers, two steps ahead. The columns of the four products of a step are permuted so that a lane's
 * results are four contiguous positions, too. A step of 16 terms has one scale, so elements 2^40 below its
 * largest are lost.
 *
 * Positions of which a step has an infinity or a NaN are summed in plain float32, as are all if the filters
 * have one.
 *
 * Invariant: terms outside of the line, and those beyond the last, are 0. */
#include "heavy/conv/cuda/split_fp16/small_filters_args.h"
typedef mc_small_filters_args args;
typedef unsigned u32;

enum { TERMS = TAPS * SOURCES, STEPS = (TERMS + 31) / 32 * 2,
       MINE = RESULTS < SMALL_FILTERS_RESULTS ? RESULTS : SMALL_FILTERS_RESULTS,
       ROWS = (MINE + 15) / 16, WARPS = THREADS / 32, AT_ONCE = 2, INFINITE = 0x7f800000 };

/* ---- filters ---- */

__device__ __forceinline__ float weight(const args &p, int result, int term)
{
    const int tap = term / SOURCES, source = term % SOURCES;
    return term < TERMS && result < RESULTS ? p.w[result * p.ws[0] + source * p.ws[1] + tap * p.ws[2]] : 0.f;
}

/* Stores the bits of the largest |w| of each row.  A warp takes every WARPS-th row. */
__device__ __forceinline__ void largest_of_rows(const args &p, u32 *most, int first)
{
    const int lane = (int)threadIdx.x % 32;
    for (int row = (int)threadIdx.x / 32; row < ROWS * 16; row += WARPS) {
        u32 of = 0;
#pragma unroll 8
        for (int term = lane; term < TERMS; term += 32) {
            of = max(of, __float_as_uint(weight(p, first + row, term)) & 0x7fffffff);
        }
        of = over_warp(of);
        if (lane == 0) {
            most[row] = of;
        }
    }
}

/* (step, sixteen rows, high or low, lane): four terms of rows l / 4 and l / 4 + 8 */
__device__ __forceinline__ void split_filters(const args &p, uint4 *to, const u32 *most, int first)
{
    enum { COUNT = STEPS * ROWS * 32 };
#pragma unroll 1
    for (int e0 = (int)threadIdx.x; e0 < COUNT; e0 += THREADS * AT_ONCE) {
        float v[AT_ONCE][2][4];
#pragma unroll
        for (int j = 0; j < AT_ONCE * 8; j++) { /* in flight at once */
            const int e = e0 + j / 8 * THREADS, lane = e % 32, sixteen = e / 32 % ROWS;
            const int result = first + sixteen * 16 + j / 4 % 2 * 8 + lane / 4,
                      term = e / 32 / ROWS * 16 + lane % 4 * 4 + j % 4;
            v[j / 8][j / 4 % 2][j % 4] = e < COUNT ? weight(p, result, term) : 0.f;
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int e = e0 + j * THREADS, lane = e % 32, unit = e / 32;
            u32 h[2][2], l[2][2];
            if (e < COUNT) {
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    float f[2];
                    factors(most[unit % ROWS * 16 + r * 8 + lane / 4], f);
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        halve2(v[j][r][2 * i] * f[0] * f[1], v[j][r][2 * i + 1] * f[0] * f[1], &h[r][i],
                               &l[r][i]);
                    }
                }
                to[unit * 64 + lane] = { h[0][0], h[1][0], h[0][1], h[1][1] };
                to[unit * 64 + 32 + lane] = { l[0][0], l[1][0], l[0][1], l[1][1] };
            }
        }
    }
}

/* ---- lines ---- */

struct place { int image, position; };          /* of the first of a tile */

__device__ __forceinline__ place place_of(const args &p, int tile)
{
    const int image = (int)quotient((u32)tile, p.across);
    return { image, (tile - image * (int)p.across.by) * SMALL_FILTERS_POSITIONS };
}

/* What a lane reads of a tile: an image, and the first tap of its four positions. */
struct reader { const float *image; int at; };

__device__ __forceinline__ reader reader_of(const args &p, int tile)
{
    const place at = place_of(p, tile);
    const int lane = (int)threadIdx.x % 32;
    return { p.from + at.image * p.image, at.position + p.first + lane / 4 % 2 * 16 + lane / 8 * 4 };
}

/* Of term 16 * step + lane % 4 * 4 + i four positions. */
__device__ __forceinline__ void load(const args &p, float (&v)[4][4], const reader &r, int step)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int term = step * 16 + (int)threadIdx.x % 4 * 4 + i, tap = term / SOURCES,
                  source = term % SOURCES, u = r.at + tap * p.step;
        const float *const line = r.image + (source * p.row + u);
        if (p.fours[0] && term < TERMS && u >= 0 && u + 4 <= p.length) {
            const float4 q = *(const float4 *)line;
            v[i][0] = q.x;
            v[i][1] = q.y;
            v[i][2] = q.z;
            v[i][3] = q.w;
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                v[i][j] = term < TERMS && (u32)(u + j) < (u32)p.length ? line[j] : 0.f;
            }
        }
    }
}

/* The bits of the warp's largest |x|. */
__device__ __forceinline__ u32 largest(const float (&v)[4][4])
{
    u32 most = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        most = max(most, __float_as_uint(v[i / 4][i % 4]) & 0x7fffffff);
    }
    return over_warp(most);
}

/* ---- results ---- */

__device__ __forceinline__ float finished(const args &p, float sum, float bias, i64 at)
{
    return finish(p.alpha * sum + bias + (HAS_C0 ? p.beta * p.c0[at] : 0.f), ACT);
}

/* Stores four contiguous positions of a result. */
__device__ __forceinline__ void give(const args &p, const place &at, int result, int from,
                                     const float (&sum)[4])
{
    const int left = p.positions - at.position - from;
    const i64 to = at.image * p.to_s[0] + result * p.to_s[1] + at.position + from;
    const float bias = HAS_BIAS ? p.bias[result] : 0.f;
    if (p.fours[1] && left >= 4) {
        *(float4 *)(p.to + to) = make_float4(
            finished(p, sum[0], bias, to), finished(p, sum[1], bias, to + 1), finished(p, sum[2], bias, to + 2),
            finished(p, sum[3], bias, to + 3));
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (j < left) {
                p.to[to + j] = finished(p, sum[j], bias, to + j);
            }
        }
    }
}

/* A tile in plain float32, a position a lane. */
__device__ __noinline__ void give_plainly(const args &p, int tile, int first)
{
    const place at = place_of(p, tile);
    const int position = at.position + (int)threadIdx.x % 32;
    const float *const image = p.from + at.image * p.image;
    for (int result = first; result < min(first + MINE, RESULTS) && position < p.positions; result++) {
        const i64 to = at.image * p.to_s[0] + result * p.to_s[1] + position;
        float sum = 0;
        for (int tap = 0; tap < TAPS; tap++) {
            const int u = position + p.first + tap * p.step;
            for (int source = 0; source < SOURCES && (u32)u < (u32)p.length; source++) {
                sum = fmaf(p.w[result * p.ws[0] + source * p.ws[1] + tap * p.ws[2]],
                           image[source * p.row + u], sum);
            }
        }
        p.to[to] = finished(p, sum, HAS_BIAS ? p.bias[result] : 0.f, to);
    }
}

/* ---- sums ---- */

/* Splits what was loaded of a step, loads what follows, and adds the step's products.  Returns the bits of
 * the largest |x|. */
__device__ __forceinline__ u32 add_step(const args &p, float (&sum)[ROWS][4][4], float (&v)[4][4],
                                        const uint4 *filters, const float *scales, const reader &next,
                                        int next_step)
{
    const int lane = (int)threadIdx.x % 32;
    const u32 most = largest(v);
    const int e = min(exponent(most), 126);
    const float up = __uint_as_float((u32)(127 + e) << 23), down = __uint_as_float((u32)(127 - e) << 23);
    u32 h[4][2], l[4][2];
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            halve2(v[2 * i][j] * up, v[2 * i + 1][j] * up, &h[j][i], &l[j][i]);
        }
    }
    load(p, v, next, next_step);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const uint4 a = filters[r * 64 + lane], b = filters[r * 64 + 32 + lane];
        const u32 high[4] = { a.x, a.y, a.z, a.w }, low[4] = { b.x, b.y, b.z, b.w };
        float part[4][4] = {};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            multiply(part[j], high, l[j][0], l[j][1]);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            multiply(part[j], low, h[j][0], h[j][1]);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            multiply(part[j], high, h[j][0], h[j][1]);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float scale = fminf(scales[r * 16 + i * 8 + lane / 4] * down, 0x1p127f);
#pragma unroll
            for (int j = 0; j < 8; j++) {
                sum[r][j / 2][i * 2 + j % 2] += part[j / 2][i * 2 + j % 2] * scale;
            }
        }
    }
    return most;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) sums(const __grid_constant__ args p)
{
    extern __shared__ uint4 filters[];          /* then the scales of results */
    u32 *const most = (u32 *)(filters + STEPS * ROWS * 64);
    float *const scales = (float *)most;
    const int lane = (int)threadIdx.x % 32, first = (int)blockIdx.y * SMALL_FILTERS_RESULTS,
              each = (int)gridDim.x * WARPS;
    int tile = (int)(threadIdx.x / 32 * gridDim.x + blockIdx.x);
    bool plain = false;
    follow();
    largest_of_rows(p, most, first);
    __syncthreads();
    split_filters(p, filters, most, first);
    __syncthreads();
    if (threadIdx.x < ROWS * 16) {
        plain = most[threadIdx.x] >= INFINITE;
        scales[threadIdx.x] = unscaled(most[threadIdx.x]);
    }
    plain = __syncthreads_or(plain);
    float v[2][4][4], sum[ROWS][4][4];
    reader r = reader_of(p, min(tile, p.tiles - 1));
    load(p, v[0], r, 0);
    load(p, v[1], r, 1);
#pragma unroll 1
    for (; tile < p.tiles; tile += each) {
        u32 most_of = plain ? INFINITE : 0;
#pragma unroll
        for (int i = 0; i < ROWS * 16; i++) {
            sum[i / 16][i / 4 % 4][i % 4] = 0;
        }
#pragma unroll 1
        for (int s = 0; s < STEPS; s += 2) {
            const bool last = s + 2 == STEPS;
            const int then = last ? 0 : s + 2;
            const uint4 *const of = filters + s * ROWS * 64;
            if (last) {
                r = reader_of(p, min(tile + each, p.tiles - 1));
            }
            most_of = max(most_of, add_step(p, sum, v[0], of, scales, r, then));
            most_of = max(most_of, add_step(p, sum, v[1], of + ROWS * 64, scales, r, then + 1));
        }
        if (most_of >= INFINITE) {
            give_plainly(p, tile, first);
            continue;
        }
        const place at = place_of(p, tile);
#pragma unroll
        for (int eight = 0; eight < ROWS * 2; eight++) {
            const int result = first + eight * 8 + lane / 4, from = eight % 2 * 2;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float(&of)[4][4] = sum[eight / 2];
                const float four[4] = { of[0][from + i], of[1][from + i], of[2][from + i], of[3][from + i] };
                if (result < RESULTS) {
                    give(p, at, result, i * 16 + lane % 4 * 4, four);
                }
            }
        }
    }
}
