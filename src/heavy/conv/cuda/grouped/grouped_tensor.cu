/* grouped_tensor.cu: convolutions in groups of halves on tensor cores, with channels innermost: forward, and
 * gradients of inputs with stride 1, which are a forward pass of y with the taps backwards.
 *
 * A warp computes all RESULT results of one group, EIGHTS eights, at SIXTEENS * 16 positions.  The terms of a
 * position are numbered by tap, then channel; a product takes 16 of them, and lane l has four contiguous ones
 * of position l / 4, from l % 4 * 4 on, which it loads from memory.  A block keeps the fragments of its
 * group's filters in shared memory.  Columns of the product are permuted so that a lane has COLUMNS
 * contiguous results of a position.
 *
 * Invariant: terms outside of the image, and those beyond the last, are 0. */
#include "heavy/conv/cuda/grouped/grouped_args.h"
#include "op/conv_pass.h"
typedef mc_grouped_args args;
typedef unsigned u32;
#define SPREAD (PASS == CONV_INPUTS)

enum { TERMS = KH * KW * SOURCE, STEPS = (TERMS + 15) / 16, EIGHTS = (RESULT + 7) / 8, COLUMNS = 2 * EIGHTS,
       WARPS = GROUPED_THREADS / 32, AT_ONCE = 4 };

/* the two words of a lane's four terms */
struct alignas(8) fragment { u32 v[2]; };

/* ---- filters ---- */

/* Term k of a result of the group. */
__device__ __forceinline__ u32 weight(const args &p, int group, int result, int k)
{
    const int tap = k / SOURCE, source = k % SOURCE;
    if (k >= TERMS || result >= RESULT) {
        return 0;
    }
    const i64 at = SPREAD ? (i64)(group * SOURCE + source) * p.ws[0] + result * p.ws[1]
                          : (i64)(group * RESULT + result) * p.ws[0] + source * p.ws[1];
    return p.w[at + tap / KW * p.ws[2] + tap % KW * p.ws[3]].bits;
}

/* (step, eight, lane) */
__device__ __forceinline__ void load_filters(const args &p, fragment *to, int group)
{
    enum { COUNT = STEPS * EIGHTS * 32 };
    for (int e0 = (int)threadIdx.x; e0 < COUNT; e0 += GROUPED_THREADS * AT_ONCE) {
        u32 v[AT_ONCE][4];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) { /* in flight at once */
            const int e = e0 + j * GROUPED_THREADS, column = e % 32 / 4, eight = e / 32 % EIGHTS,
                      result = column / 2 * COLUMNS + eight * 2 + column % 2;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                v[j][i] = e < COUNT ? weight(p, group, result, e / 32 / EIGHTS * 16 + e % 4 * 4 + i) : 0;
            }
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (e0 + j * GROUPED_THREADS < COUNT) {
                to[e0 + j * GROUPED_THREADS] = { { v[j][0] | v[j][1] << 16, v[j][2] | v[j][3] << 16 } };
            }
        }
    }
}

/* ---- windows ---- */

struct window { const T *at; int line, position; };     /* of the first tap */

__device__ __forceinline__ window window_of(const args &p, int e, int group)
{
    const unsigned rest = quotient((unsigned)e, p.across), image = quotient(rest, p.down);
    const int line = (int)(rest - image * p.down.by), position = (int)(e - rest * p.across.by);
    window w;
    w.line = (unsigned)e < p.count ? (SPREAD ? line + PH : line * SH - PH) : -(1 << 24);
    w.position = SPREAD ? position + PW : position * SW - PW;
    w.at = SPREAD ? p.y + image * p.ys[0] + (i64)w.line * p.yl[0] + w.position * p.yl[1]
                  : p.x + image * p.xs[0] + (i64)w.line * p.xl[0] + w.position * p.xl[1];
    w.at += group * SOURCE;
    return w;
}

/* Terms k to k + 3. */
__device__ __forceinline__ fragment terms(const args &p, const window &w, int k)
{
    const int tap = k / SOURCE, sign = SPREAD ? -1 : 1, down = sign * DH * (tap / KW),
              along = sign * DW * (tap % KW);
    const bool in = k < TERMS && (unsigned)(w.line + down) < (unsigned)(SPREAD ? p.out[0] : p.in[0]) &&
                    (unsigned)(w.position + along) < (unsigned)(SPREAD ? p.out[1] : p.in[1]);
    fragment r = {};
    if (in) {
        r = *(const fragment *)(w.at + down * (SPREAD ? p.yl[0] : p.xl[0]) +
                                along * (SPREAD ? p.yl[1] : p.xl[1]) + k % SOURCE);
    }
    return r;
}

/* ---- results ---- */

/* Two results from `result` on, of those of a group. */
__device__ __forceinline__ void give_two(const args &p, int e, int group, int result, float a, float b)
{
    const unsigned rest = quotient((unsigned)e, p.across), image = quotient(rest, p.down);
    const int line = (int)(rest - image * p.down.by), position = (int)(e - rest * p.across.by),
              channel = group * RESULT + result;
    const i64 at = (SPREAD ? image * p.xs[0] + (i64)line * p.xl[0] + position * p.xl[1]
                           : image * p.ys[0] + (i64)line * p.yl[0] + position * p.yl[1]) + channel;
    float v[2] = { p.alpha * a, p.alpha * b };
    T r[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        v[i] += (HAS_C0 ? p.beta * get<float>(p.c0[at + i]) : 0) +
                (HAS_BIAS ? get<float>(p.bias[channel + i]) : 0);
        r[i] = put<T>(finish(v[i], ACT));
    }
    *(u32 *)((SPREAD ? p.x : p.y) + at) = r[0].bits | (u32)r[1].bits << 16;
}

extern "C" __global__ void __launch_bounds__(GROUPED_THREADS, BLOCKS) sums(const __grid_constant__ args p)
{
    follow();
    __shared__ fragment filters[STEPS * EIGHTS * 32];
    const int lane = (int)threadIdx.x % 32, group = (int)blockIdx.y,
              first = ((int)blockIdx.x * WARPS + (int)threadIdx.x / 32) * SIXTEENS * 16 + lane / 4;
    window w[SIXTEENS * 2];
    float sum[SIXTEENS][EIGHTS][4] = {};
#pragma unroll
    for (int i = 0; i < SIXTEENS * 2; i++) {
        w[i] = window_of(p, first + i * 8, group);
    }
    load_filters(p, filters, group);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        fragment of[SIXTEENS * 2], column[EIGHTS];
#pragma unroll
        for (int i = 0; i < SIXTEENS * 2; i++) {
            of[i] = terms(p, w[i], s * 16 + lane % 4 * 4);
        }
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
            column[n] = filters[(s * EIGHTS + n) * 32 + lane];
        }
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++) {
            const u32 rows[4] = { of[2 * i].v[0], of[2 * i + 1].v[0], of[2 * i].v[1], of[2 * i + 1].v[1] };
#pragma unroll
            for (int n = 0; n < EIGHTS; n++) {
                multiply_halves(T(), sum[i][n], rows, column[n].v[0], column[n].v[1]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < SIXTEENS * 2; i++) {
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
            const int result = lane % 4 * COLUMNS + n * 2;
            if ((unsigned)(first + i * 8) < p.count && result < RESULT) {
                give_two(p, first + i * 8, group, result, sum[i / 2][n][i % 2 * 2],
                         sum[i / 2][n][i % 2 * 2 + 1]);
            }
        }
    }
}
