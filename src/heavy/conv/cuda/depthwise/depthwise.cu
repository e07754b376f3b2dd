/* depthwise.cu: convolutions in groups of one channel. `sums` computes forward passes and gradients of
 * inputs, `filters` gradients of filters.
 *
 * A channel has M filters, so y has M times the channels of x. Where gradients spread over x, `channels` are
 * those of x, else those of y.
 *
 * A thread computes tiles of TH lines and TW positions of V adjacent channels, whose sums stay in registers.
 * Each element that the tile reads is loaded once, and used by all taps at once. Sizes, strides, dilation and
 * pads are constants (KH, SH, DH, PH; W for the other axis), so every loop over a tile is unrolled. A block
 * has CB threads along channels; a multiprocessor has registers for BLOCKS of them. TAP_STEP: elements
 * between taps, where they follow each other; else 0, and strides are arguments.
 *
 *                  lanes are adjacent   loaded at once            taps of `sums`
 *   LAST, NHWC     channels             V channels                in shared memory
 *   planes, NCHW   positions, V = 1     G positions of a source,  in registers
 *                                       GT of a tile
 *
 * Invariant: elements outside of an array read as 0.  Sums are added in an order that the launch
 * determines. */
#include "heavy/conv/cuda/depthwise/depthwise_args.h"
#include "op/conv_pass.h"
typedef mc_depthwise_args args;

#include "heavy/conv/cuda/tile_lines.cu"
enum { THREADS = DEPTHWISE_THREADS, WORKERS = THREADS / CB, TAPS = KH * KW };

#if !FILTERS

/* ---- forward, gradients of inputs ---- */

enum { EACH = SPREAD ? M : 1 };                 /* filters whose terms one sum has */
#if LAST
typedef const float (*filter)[CB * V * EACH];   /* of the thread's channels */
#else
typedef const float (&filter)[TAPS][V];
#endif

/* Adds the terms of one filter; channel: of y. */
__device__ __forceinline__ void add_terms(const args &p, const spot &s, int channel, filter w,
                                          float (&sum)[TH][TW * V])
{
    const plane from = SPREAD ? y_plane(p, s.image, channel) : x_plane(p, s.image, channel / M);
    const T *const first = (SPREAD ? p.y : p.x) + from.at;
#pragma unroll
    for (int i = LOW_H; i <= HIGH_H; i++) {
        if (!is_read<high>(i)) {
            continue;
        }
        float v[COLUMNS * V];
        read_line(v, first, from, base<high>(s.line) + i, base<wide>(s.position));
#pragma unroll
        for (int a = 0; a < KH; a++) {
            const int r = reader<high>(i, a);
#pragma unroll
            for (int b = 0; b < KW && r >= 0; b++) {
                float tap[V];
#pragma unroll
                for (int k = 0; k < V; k++) {
                    tap[k] = w[a * KW + b][k];
                }
#pragma unroll
                for (int j = LOW_W; j < LOW_W + COLUMNS; j++) {
                    const int u = reader<wide>(j, b);
#pragma unroll
                    for (int k = 0; k < V && u >= 0; k++) {
                        sum[r][u * V + k] += v[(j - LOW_W) * V + k] * tap[k];
                    }
                }
            }
        }
    }
}

__device__ __forceinline__ void give_tile(const args &p, const spot &s, int channel,
                                          const float (&sum)[TH][TW * V])
{
    const plane to = SPREAD ? x_plane(p, s.image, channel) : y_plane(p, s.image, channel);
    i64 at = to.at + s.line * to.between_lines + s.position * to.between;
#pragma unroll
    for (int r = 0; r < TH; r++, at += to.between_lines) {
#pragma unroll
        for (int u = 0; u < TW; u += GT) {
            if (s.line + r < to.lines && s.position + u < to.positions) {
                give<GT * V>(p, SPREAD ? p.x : p.y, at + u * to.between, sum[r] + u * V, channel);
            }
        }
    }
}

/* w: of a channel */
__device__ __forceinline__ float tap_of(const args &p, const T *w, int t)
{
    return get<float>(TAP_STEP ? w[t * TAP_STEP] : w[t / KW * p.ws[1] + t % KW * p.ws[2]]);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) sums(const __grid_constant__ args p)
{
    follow();
#if LAST
    enum { WIDE = CB * V * EACH };
    __shared__ __align__(16) float w[TAPS][WIDE];
    const int first = (int)blockIdx.y * CB * V, lane = (int)threadIdx.x % CB, channel = first + lane * V;
    for (int e = (int)threadIdx.x; e < TAPS * WIDE; e += (int)blockDim.x) {
        const int f = first * EACH + e % WIDE;
        w[e / WIDE][e % WIDE] = f < p.c * EACH ? tap_of(p, p.w + f * p.ws[0], e / WIDE) : 0;
    }
    __syncthreads();
    const unsigned step = gridDim.x * WORKERS;
    for (unsigned e = blockIdx.x * WORKERS + threadIdx.x / CB; e < p.count && channel < p.c; e += step) {
        const spot s = spot_of(p, e);
        float sum[TH][TW * V] = {};
        for (int j = 0; j < EACH; j++) {
            add_terms(p, s, channel * EACH + j, (filter)&w[0][lane * V * EACH + j], sum);
        }
        give_tile(p, s, channel, sum);
    }
#else
    /* e: image, channel, lines, positions */
    const unsigned e = blockIdx.x * THREADS + threadIdx.x, rest = quotient(e, p.across),
                   of_plane = quotient(rest, p.down), image = quotient(of_plane, p.channels);
    const int channel = (int)(of_plane - image * p.channels.by);
    if (e >= p.count) {
        return;
    }
    const spot s = { (int)image, (int)(rest - of_plane * p.down.by) * TH,
                     (int)(e - rest * p.across.by) * TW };
    float sum[TH][TW * V] = {};
    for (int j = 0; j < EACH; j++) {
        const T *const w0 = p.w + (channel * EACH + j) * p.ws[0];
        float w[TAPS][V];
#pragma unroll
        for (int t = 0; t < TAPS; t++) {
            w[t][0] = tap_of(p, w0, t);
        }
        add_terms(p, s, channel * EACH + j, w, sum);
    }
    give_tile(p, s, channel, sum);
#endif
}

#else

/* ---- gradients of filters ---- */

__device__ __forceinline__ void finish_tap(const args &p, int channel, int tap, float sum)
{
    const i64 at = channel * p.ws[0] + tap / KW * p.ws[1] + tap % KW * p.ws[2];
    p.w[at] = put<T>(p.alpha * sum + (HAS_C0 ? p.beta * get<float>(p.c0[at]) : 0));
}

__device__ __forceinline__ void add_tile(const args &p, const spot &s, int channel, float (&sum)[TAPS][V])
{
    const plane x = x_plane(p, s.image, channel / M), y = y_plane(p, s.image, channel);
    const T *const first = p.x + x.at, *at = p.y + y.at + s.line * y.between_lines + s.position * y.between;
    float g[TH][TW * V];
#pragma unroll
    for (int r = 0; r < TH; r++, at += y.between_lines) {
#pragma unroll
        for (int u = 0; u < TW; u += GT) {
            take<GT * V>(g[r] + u * V, at + u * y.between,
                         s.line + r < y.lines && s.position + u < y.positions);
        }
    }
#pragma unroll
    for (int i = LOW_H; i <= HIGH_H; i++) {
        if (!is_read<high>(i)) {
            continue;
        }
        float v[COLUMNS * V];
        read_line(v, first, x, base<high>(s.line) + i, base<wide>(s.position));
#pragma unroll
        for (int a = 0; a < KH; a++) {
            const int r = reader<high>(i, a);
#pragma unroll
            for (int b = 0; b < KW && r >= 0; b++) {
#pragma unroll
                for (int j = LOW_W; j < LOW_W + COLUMNS; j++) {
                    const int u = reader<wide>(j, b);
#pragma unroll
                    for (int k = 0; k < V && u >= 0; k++) {
                        sum[a * KW + b][k] += v[(j - LOW_W) * V + k] * g[r][u * V + k];
                    }
                }
            }
        }
    }
}

/* A block has CB threads along channels (V each), and WORKERS for each, which share its tiles. */
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) filters(const __grid_constant__ args p)
{
    follow();
    enum { ALL = TAPS * V, ROUND = ALL < 32 ? ALL : 32, NEXT = LAST ? CB : 1 };
    __shared__ float part[ROUND][THREADS];
    const int t = (int)threadIdx.x, lane = LAST ? t % CB : t / WORKERS, worker = LAST ? t / CB : t % WORKERS,
              channel = ((int)blockIdx.y * CB + lane) * V;
    float sum[TAPS][V] = {};
    for (unsigned e = blockIdx.x * WORKERS + worker; e < p.count && channel < p.c; e += gridDim.x * WORKERS) {
        add_tile(p, spot_of(p, e), channel, sum);
    }
#pragma unroll
    for (int first = 0; first < ALL; first += ROUND) {
#pragma unroll
        for (int q = 0; q < ROUND; q++) {
            if (first + q < ALL) {
                part[q][t] = sum[(first + q) / V][(first + q) % V];
            }
        }
        __syncthreads();
        for (int n = WORKERS; n > 1; n = (n + 1) / 2) {
            if (worker < n / 2) {
#pragma unroll
                for (int q = 0; q < ROUND; q++) {
                    part[q][t] += part[q][t + (n + 1) / 2 * NEXT];
                }
            }
            __syncthreads();
        }
        for (int q = 0; q < ROUND && first + q < ALL && worker == 0; q++) {
            const int c = channel + (first + q) % V, tap = (first + q) / V;
            if (c >= p.c) {
                continue;
            }
            if (p.splits > 1) {
                p.parts[((i64)blockIdx.x * p.c + c) * TAPS + tap] = part[q][t];
            } else {
                finish_tap(p, c, tap, part[q][t]);
            }
        }
        __syncthreads();
    }
}

/* A block of 256 threads adds the parts of 32 taps. */
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    follow();
    const int e = (int)blockIdx.x * 32 + (int)threadIdx.x % 32, count = p.c * TAPS;
    const float sum = sum_of_parts<float>(p.parts, count, p.splits, e);
    if (threadIdx.x < 32 && e < count) {
        finish_tap(p, e / TAPS, e % TAPS, sum);
    }
}

#endif
