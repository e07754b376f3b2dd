/* grouped.cu: convolutions in groups of several channels.  `sums` computes forward passes and gradients of
 * inputs, `filters` gradients of filters.
 *
 * `sums`: a thread computes R results (filters, or channels of x) of one group at a tile of TH lines and TW
 * positions.  Its sums stay in registers while the SOURCE channels of the group pass by: each element that
 * the tile reads is loaded once for all taps and R results.  Filters are in shared memory as float32.
 * `filters`: a thread has the sums of all taps for C channels and R filters of one group, and tiles of y pass
 * by; then a block adds the sums of its threads, and where one block is not enough `add` adds those of the
 * blocks, in order.
 *
 * A group has SOURCE channels that are read and RESULT that are computed; where filters are, SOURCE channels of
 * x and RESULT of y.  A lane is what a thread has of a group.  A block has LANES lanes and WORKERS threads for
 * each, which share its tiles; a multiprocessor has registers for BLOCKS of them.
 *
 *                  neighbours in a warp         loaded at once            stored at once
 *   LAST, NHWC     lanes                        V channels                RV results
 *   planes, NCHW   tiles, V = 1                 G positions               GT positions
 *
 * Sums are added in an order that the launch determines. */
#include "heavy/conv/cuda/grouped/grouped_args.h"
#include "op/conv_pass.h"
typedef mc_grouped_args args;
#include "heavy/conv/cuda/tile_lines.cu"

enum { WORKERS = GROUPED_THREADS / LANES, THREADS = WORKERS * LANES, TAPS = KH * KW,
       OF_RESULTS = (RESULT + R - 1) / R };         /* lanes that share a group's results */

__device__ __forceinline__ int lane_of(int t) { return LAST ? t % LANES : t / WORKERS; }
__device__ __forceinline__ int worker_of(int t) { return LAST ? t / LANES : t % WORKERS; }

#if !FILTERS

/* ---- forward, gradients of inputs ---- */

/* ROW: floats of a row of filters, four times an odd number, so that stores of adjacent rows meet in few
 * banks.  AT_ONCE: filters that are read at once. */
enum { ROW = ((LANES * R + 3) / 4 | 1) * 4, AT_ONCE = R % 4 == 0 ? 4 : R % 2 == 0 ? 2 : 1 };
typedef const float (*filters_of)[ROW];

/* The sum of result q at line r and position u of the tile. */
__device__ constexpr int sum_at(int r, int u, int q)
{
    return LAST ? (r * TW + u) * R + q : (q * TH + r) * TW + u;
}

/* Weights of this block's lanes: w[channel * TAPS + tap][result]. */
__device__ __forceinline__ void load_filters(const args &p, float (*w)[ROW], int first)
{
    for (int e = (int)threadIdx.x; e < LANES * R * SOURCE * TAPS; e += THREADS) {
        const int of = e / (SOURCE * TAPS), s = e % (SOURCE * TAPS), lane = first + of / R,
                  group = lane / OF_RESULTS, result = lane % OF_RESULTS * R + of % R, source = s / TAPS,
                  tap = s % TAPS;
        const i64 at = SPREAD ? (group * SOURCE + source) * p.ws[0] + result * p.ws[1]
                              : (group * RESULT + result) * p.ws[0] + source * p.ws[1];
        w[s][of] = group < p.groups && result < RESULT
                       ? get<float>(p.w[at + tap / KW * p.ws[2] + tap % KW * p.ws[3]])
                       : 0;
    }
}

/* Adds the terms of V channels; w: of the first. */
__device__ __forceinline__ void add_terms(const plane &from, const T *first, const spot &s, filters_of w,
                                          int lane, float (&sum)[TH * TW * R])
{
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
#pragma unroll
                for (int k = 0; k < V; k++) {
                    float tap[R];
#pragma unroll
                    for (int q = 0; q < R; q += AT_ONCE) {
                        const several<float, AT_ONCE> m =
                            *(const several<float, AT_ONCE> *)&w[k * TAPS + a * KW + b][lane * R + q];
#pragma unroll
                        for (int n = 0; n < AT_ONCE; n++) {
                            tap[q + n] = m.v[n];
                        }
                    }
#pragma unroll
                    for (int j = LOW_W; j < LOW_W + COLUMNS; j++) {
                        const int u = reader<wide>(j, b);
#pragma unroll
                        for (int q = 0; q < R && u >= 0; q++) {
                            sum[sum_at(r, u, q)] += v[(j - LOW_W) * V + k] * tap[q];
                        }
                    }
                }
            }
        }
    }
}

__device__ __forceinline__ void give_tile(const args &p, const spot &s, int group, int result,
                                          const float (&sum)[TH * TW * R])
{
    const int channel = group * RESULT + result;
    const plane to = SPREAD ? x_plane(p, s.image, channel) : y_plane(p, s.image, channel);
    const i64 between = LAST ? 1 : SPREAD ? p.xs[1] : p.ys[1];
    T *const out = SPREAD ? p.x : p.y;
#pragma unroll
    for (int q = 0; q < R; q += RV) {
        i64 at = to.at + q * between + s.line * to.between_lines + s.position * to.between;
#pragma unroll
        for (int r = 0; r < TH; r++, at += to.between_lines) {
#pragma unroll
            for (int u = 0; u < TW; u += GT) {
                if (s.line + r < to.lines && s.position + u < to.positions &&
                    (RESULT % R == 0 || result + q < RESULT)) {
                    give<GT * RV>(p, out, at + u * to.between, sum + sum_at(r, u, q), channel + q);
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) sums(const __grid_constant__ args p)
{
    follow();
    __shared__ __align__(16) float w[SOURCE * TAPS][ROW];
    const int t = (int)threadIdx.x, lane = lane_of(t), all = (int)blockIdx.y * LANES + lane,
              group = all / OF_RESULTS, result = all % OF_RESULTS * R;
    load_filters(p, w, (int)blockIdx.y * LANES);
    __syncthreads();
    const i64 between = LAST ? 1 : SPREAD ? p.ys[1] : p.xs[1];
    const unsigned step = gridDim.x * WORKERS;
    for (unsigned e = blockIdx.x * WORKERS + worker_of(t);
         e < p.count && group < p.groups; e += step) {
        const spot s = spot_of(p, e);
        const plane from = SPREAD ? y_plane(p, s.image, group * SOURCE) : x_plane(p, s.image, group * SOURCE);
        const T *at = (SPREAD ? p.y : p.x) + from.at;
        float sum[TH * TW * R] = {};
#pragma unroll 1
        for (int c = 0; c < SOURCE; c += V, at += V * between) {
            add_terms(from, at, s, w + c * TAPS, lane, sum);
        }
        give_tile(p, s, group, result, sum);
    }
}

#else

/* ---- gradients of filters ---- */

enum { OF_CHANNELS = (SOURCE + C - 1) / C, OF_GROUP = OF_RESULTS * OF_CHANNELS, ALL = TAPS * C * R };

struct lane { int group, filter, channel; };        /* of a group, the first of the lane */

__device__ __forceinline__ lane lane_at(int e)
{
    const int group = e / OF_GROUP, rest = e - group * OF_GROUP;
    return { group, rest / OF_CHANNELS * R, rest % OF_CHANNELS * C };
}

/* s: of the lane's sums */
__device__ __forceinline__ void finish_sum(const args &p, const lane &l, int s, float sum)
{
    const int q = s % R, c = s / R % C, tap = s / R / C;
    if (l.filter + q < RESULT && l.channel + c < SOURCE) {
        const i64 at = (l.group * RESULT + l.filter + q) * p.ws[0] + (l.channel + c) * p.ws[1] +
                       tap / KW * p.ws[2] + tap % KW * p.ws[3];
        p.w[at] = put<T>(p.alpha * sum + (HAS_C0 ? p.beta * get<float>(p.c0[at]) : 0));
    }
}

__device__ __forceinline__ void add_tile(const args &p, const spot &s, const lane &l, float (&sum)[ALL])
{
    const plane x = x_plane(p, s.image, l.group * SOURCE + l.channel),
                y = y_plane(p, s.image, l.group * RESULT + l.filter);
    float g[TH][TW * R];        /* LAST: position, filter; else filter, position */
#pragma unroll
    for (int q = 0; q < R; q += RV) {
        const T *at = p.y + y.at + s.line * y.between_lines + s.position * y.between + q * (LAST ? 1 : p.ys[1]);
#pragma unroll
        for (int r = 0; r < TH; r++, at += y.between_lines) {
#pragma unroll
            for (int u = 0; u < TW; u += GT) {
                take<GT * RV>(g[r] + (LAST ? u * R + q : q * TW + u), at + u * y.between,
                              s.line + r < y.lines && s.position + u < y.positions &&
                                  (RESULT % R == 0 || l.filter + q < RESULT));
            }
        }
    }
#pragma unroll
    for (int c = 0; c < C; c += V) {
        const T *const first = p.x + x.at + c * (LAST ? 1 : p.xs[1]);
        const bool any = SOURCE % C == 0 || l.channel + c < SOURCE;
#pragma unroll
        for (int i = LOW_H; i <= HIGH_H; i++) {
            if (!is_read<high>(i)) {
                continue;
            }
            float v[COLUMNS * V];
            read_line(v, first, x, any ? base<high>(s.line) + i : -1, base<wide>(s.position));
#pragma unroll
            for (int a = 0; a < KH; a++) {
                const int r = reader<high>(i, a);
#pragma unroll
                for (int b = 0; b < KW && r >= 0; b++) {
#pragma unroll
                    for (int j = LOW_W; j < LOW_W + COLUMNS; j++) {
                        const int u = reader<wide>(j, b);
#pragma unroll
                        for (int k = 0; k < V * R && u >= 0; k++) {
                            const int q = k % R;
                            sum[((a * KW + b) * C + c + k / R) * R + q] +=
                                v[(j - LOW_W) * V + k / R] * g[r][LAST ? u * R + q : q * TW + u];
                        }
                    }
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) filters(const __grid_constant__ args p)
{
    follow();
    enum { ROUND = ALL < 32 ? ALL : 32, NEXT = LAST ? LANES : 1 };
    __shared__ float part[ROUND][THREADS];
    const int t = (int)threadIdx.x, worker = worker_of(t), mine = (int)blockIdx.y * LANES + lane_of(t);
    const lane l = lane_at(mine);
    float sum[ALL] = {};
    for (unsigned e = blockIdx.x * WORKERS + worker; e < p.count && l.group < p.groups; e += gridDim.x * WORKERS) {
        add_tile(p, spot_of(p, e), l, sum);
    }
#pragma unroll
    for (int first = 0; first < ALL; first += ROUND) {
#pragma unroll
        for (int q = 0; q < ROUND; q++) {
            if (first + q < ALL) {
                part[q][t] = sum[first + q];
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
        for (int e = t; e < LANES * ROUND; e += THREADS) {
            const int of = e / ROUND, s = first + e % ROUND, at = (int)blockIdx.y * LANES + of;
            const lane m = lane_at(at);
            if (s >= ALL || m.group >= p.groups) {
                continue;
            }
            const float total = part[e % ROUND][LAST ? of : of * WORKERS];
            if (p.splits > 1) {
                p.parts[((i64)blockIdx.x * (p.groups * OF_GROUP) + at) * ALL + s] = total;
            } else {
                finish_sum(p, m, s, total);
            }
        }
        __syncthreads();
    }
}

/* A block of 256 threads adds the parts of 32 sums. */
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    follow();
    const int e = (int)blockIdx.x * 32 + (int)threadIdx.x % 32, count = p.groups * OF_GROUP * ALL;
    const float sum = sum_of_parts<float>(p.parts, count, p.splits, e);
    if (threadIdx.x < 32 && e < count) {
        finish_sum(p, lane_at(e / ALL), e % ALL, sum);
    }
}

#endif
