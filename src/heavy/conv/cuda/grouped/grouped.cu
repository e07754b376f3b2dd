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
 * A group has SOURCE channels that are read and RESULT that are computed; where filters are, SOURCE channels
 * of x and RESULT of y.  A lane is what a thread has of a group.  A block has LANES lanes and WORKERS * PARTS
 * threads for each, which share its tiles, and PARTS of them the channels of a tile; a multiprocessor has
 * registers for BLOCKS of them.
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

/* SHARE: threads of a part.  OF_RESULTS: lanes that share a group's results. */
enum { WORKERS = GROUPED_THREADS / (LANES * PARTS), SHARE = WORKERS * LANES, THREADS = SHARE * PARTS,
       TAPS = KH * KW, OF_RESULTS = (RESULT + R - 1) / R };

__device__ __forceinline__ int lane_of(int t) { return LAST ? t % LANES : t / WORKERS; }
__device__ __forceinline__ int worker_of(int t) { return LAST ? t / LANES : t % WORKERS; }

#if !FILTERS

/* ---- forward, gradients of inputs ---- */

/* ROW: floats of a row of filters, four times an odd number, so that stores of adjacent rows meet in few
 * banks.  WIDE: filters that are read at once. */
enum { ROW = ((LANES * R + 3) / 4 | 1) * 4, WIDE = R % 4 == 0 ? 4 : R % 2 == 0 ? 2 : 1 };
typedef const float (*filters_of)[ROW];

/* The sum of result q at line r and position u of the tile. */
__device__ constexpr int sum_at(int r, int u, int q)
{
    return LAST ? (r * TW + u) * R + q : (q * TH + r) * TW + u;
}

/* Weights of this block's lanes: w[channel * TAPS + tap][result].  A warp reads those of one result. */
__device__ __forceinline__ void load_filters(const args &p, float (*w)[ROW], int first)
{
    enum { WARPS = (THREADS + 31) / 32, EACH = SOURCE * TAPS, AT_ONCE = EACH < 256 ? (EACH + 31) / 32 : 8 };
    for (int of = (int)threadIdx.x / 32; of < LANES * R; of += WARPS) {
        const int lane = first + of / R, group = lane / OF_RESULTS, result = lane % OF_RESULTS * R + of % R;
        const bool has = group < p.groups && result < RESULT;
        const T *const from = p.w + (SPREAD ? group * SOURCE * p.ws[0] + result * p.ws[1]
                                            : (group * RESULT + result) * p.ws[0]);
        const i64 between = SPREAD ? p.ws[0] : p.ws[1];
        for (int s = (int)threadIdx.x % 32; s < EACH; s += 32 * AT_ONCE) {
            float v[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int e = s + 32 * i, tap = e % TAPS;
                v[i] = has && e < EACH
                           ? get<float>(from[e / TAPS * between + tap / KW * p.ws[2] + tap % KW * p.ws[3]])
                           : 0;
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                if (s + 32 * i < EACH) {
                    w[s + 32 * i][of] = v[i];
                }
            }
        }
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
                    for (int q = 0; q < R; q += WIDE) {
                        const several<float, WIDE> m =
                            *(const several<float, WIDE> *)&w[k * TAPS + a * KW + b][lane * R + q];
#pragma unroll
                        for (int n = 0; n < WIDE; n++) {
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

/* Adds the sums of the block's other parts, in order, to those of part 0. */
__device__ __forceinline__ void add_parts(int t, float (&sum)[TH * TW * R])
{
    __shared__ float others[PARTS - 1 ? PARTS - 1 : 1][TH * TW * R][SHARE];
    const int part = t / SHARE;
#pragma unroll
    for (int i = 0; i < TH * TW * R && part > 0; i++) {
        others[part - 1][i][t % SHARE] = sum[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TH * TW * R && part == 0; i++) {
#pragma unroll
        for (int k = 0; k < PARTS - 1; k++) {
            sum[i] += others[k][i][t];
        }
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) sums(const __grid_constant__ args p)
{
    follow();
    __shared__ __align__(16) float w[SOURCE * TAPS][ROW];
    const int t = (int)threadIdx.x, part = t / SHARE, lane = lane_of(t % SHARE),
              worker = worker_of(t % SHARE), all = (int)blockIdx.y * LANES + lane, group = all / OF_RESULTS,
              result = all % OF_RESULTS * R;
    load_filters(p, w, (int)blockIdx.y * LANES);
    __syncthreads();
    const i64 between = LAST ? 1 : SPREAD ? p.ys[1] : p.xs[1];
    for (unsigned e = blockIdx.x * WORKERS; e < p.count; e += gridDim.x * WORKERS) {
        const bool has = e + worker < p.count && group < p.groups;
        const spot s = spot_of(p, has ? e + worker : 0);
        const plane from = SPREAD ? y_plane(p, s.image, group * SOURCE) : x_plane(p, s.image, group * SOURCE);
        const T *at = (SPREAD ? p.y : p.x) + from.at + part * V * between;
        float sum[TH * TW * R] = {};
#pragma unroll 1
        for (int c = part * V; c < SOURCE && has; c += PARTS * V, at += PARTS * V * between) {
            add_terms(from, at, s, w + c * TAPS, lane, sum);
        }
        if (PARTS > 1) {
            add_parts(t, sum);
        }
        if (has && part == 0) {
            give_tile(p, s, group, result, sum);
        }
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
        const T *at = p.y + y.at + s.line * y.between_lines + s.position * y.between +
                      q * (LAST ? 1 : p.ys[1]);
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
    enum { ROUND = ALL < 32 ? ALL : 32 };
    __shared__ float part[ROUND][THREADS | 1];
    const int t = (int)threadIdx.x, worker = worker_of(t), mine = (int)blockIdx.y * LANES + lane_of(t);
    const lane l = lane_at(mine);
    float sum[ALL] = {};
    for (unsigned e = blockIdx.x * WORKERS + worker; e < p.count && l.group < p.groups;
         e += gridDim.x * WORKERS) {
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
        for (int e = t; e < LANES * ROUND; e += THREADS) {
            const int of = e / ROUND, s = first + e % ROUND, at = (int)blockIdx.y * LANES + of;
            const lane m = lane_at(at);
            if (s >= ALL || m.group >= p.groups) {
                continue;
            }
            float total = 0;
#pragma unroll 8
            for (int i = 0; i < WORKERS; i++) {
                total += part[e % ROUND][LAST ? i * LANES + of : of * WORKERS + i];
            }
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
