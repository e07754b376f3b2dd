/* running.cu: results so far along an axis: sums, products, extremes.
 *
 * totals, running:   a line is divided into chunks, each of one block.  A block joins the totals of the
 *                    chunks before its own, then goes through its chunk tile by tile.
 * down_totals, down: the same where adjacent lines are adjacent in memory: each thread has a chunk of a line.
 * T is x's dtype, O the result's, A what is joined, FIRST its identity. */
#include "exec/cuda/running_args.h"
typedef mc_running_args args;
enum { WARPS = THREADS / 32, TILE = THREADS * ITEMS };

/* The order matters: a product of rounded numbers, and of equal extremes the first. */
__device__ __forceinline__ A joined(A before, A v)
{
#if WAY == 0
    return before + v;
#elif WAY == 1
    return before * v;
#elif WAY == 2
    return v > before || v != v ? v : before;
#else
    return v < before || v != v ? v : before;
#endif
}

__device__ __forceinline__ A in_warp(A v)
{
    const int lane = threadIdx.x % 32;
    for (int d = 1; d < 32; d *= 2) {
        const A before = __shfl_up_sync(0xffffffff, v, d);
        v = lane >= d ? joined(before, v) : v;
    }
    return v;
}

/* What is before this warp's part, whose total is `mine`; *carry goes on to the end of all parts. */
__device__ __forceinline__ A before_warp(A mine, A *of_warps, A *carry)
{
    const int warp = threadIdx.x / 32;
    A before = *carry;
    if (threadIdx.x % 32 == 0) {
        of_warps[warp] = mine;
    }
    __syncthreads();
    for (int w = 0; w < WARPS; w++) {
        before = w == warp ? *carry : before;
        *carry = joined(*carry, of_warps[w]);
    }
    return before;
}

/* Returns what all elements of a chunk give, after `carry`. */
template <bool writes> __device__ __forceinline__ A through(const args &a, i64 line, i64 part, A carry)
{
    __shared__ A of_warps[2][WARPS]; /* two, so that one barrier a tile is enough */
    const i64 from = part * a.chunk, to = from + a.chunk < a.l.count ? from + a.chunk : a.l.count;
    const T *x = a.x + begin_of(a.l, line, a.l.xline);
    O *y = a.y + begin_of(a.l, line, a.l.yline);
    int side = 0;
    for (i64 tile = from; tile < to; tile += TILE, side ^= 1) {
        const i64 at = tile + threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
        A v[ITEMS], mine = FIRST;
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            v[j] = at + 32 * j < to ? get<A>(x[(at + 32 * j) * a.l.xstep]) : FIRST;
        }
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            v[j] = in_warp(v[j]);
        }
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const A all = __shfl_sync(0xffffffff, v[j], 31);
            v[j] = joined(mine, v[j]);
            mine = joined(mine, all);
        }
        const A before = before_warp(mine, of_warps[side], &carry);
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            if (writes && at + 32 * j < to) {
                y[(at + 32 * j) * a.l.ystep] = put<O>(joined(before, v[j]));
            }
        }
    }
    return carry;
}

extern "C" __global__ void __launch_bounds__(THREADS) totals(const __grid_constant__ args a)
{
    const A sum = through<false>(a, blockIdx.x / a.chunks, blockIdx.x % a.chunks, FIRST);
    if (threadIdx.x == 0) {
        a.sums[blockIdx.x] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) running(const __grid_constant__ args a)
{
    __shared__ A of_warps[WARPS];
    const i64 line = blockIdx.x / a.chunks, mine = blockIdx.x % a.chunks;
    A carry = FIRST;
    for (i64 c = 0; c < mine; c += THREADS) {
        const i64 i = c + threadIdx.x;
        const A v = in_warp(i < mine ? a.sums[line * a.chunks + i] : FIRST);
        before_warp(__shfl_sync(0xffffffff, v, 31), of_warps, &carry);
        __syncthreads();
    }
    through<true>(a, line, mine, carry);
}

/* ---- many lines side by side ---- */

enum { AHEAD = 8 };             /* elements that are read at once */

template <bool writes> __device__ __forceinline__ A down_through(const args &a, i64 line, i64 part, A sum)
{
    const i64 from = part * a.chunk, to = from + a.chunk < a.l.count ? from + a.chunk : a.l.count;
    const T *x = a.x + begin_of(a.l, line, a.l.xline);
    O *y = a.y + begin_of(a.l, line, a.l.yline);
    for (i64 i = from; i < to; i += AHEAD) {
        A v[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            v[j] = i + j < to ? get<A>(x[(i + j) * a.l.xstep]) : FIRST;
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            if (i + j < to) {
                sum = joined(sum, v[j]);
                if (writes) {
                    y[(i + j) * a.l.ystep] = put<O>(sum);
                }
            }
        }
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(128) down_totals(const __grid_constant__ args a)
{
    for (i64 line = blockIdx.x * 128ll + threadIdx.x; line < a.l.lines; line += gridDim.x * 128ll) {
        a.sums[blockIdx.y * a.l.lines + line] = down_through<false>(a, line, blockIdx.y, FIRST);
    }
}

extern "C" __global__ void __launch_bounds__(128) down(const __grid_constant__ args a)
{
    for (i64 line = blockIdx.x * 128ll + threadIdx.x; line < a.l.lines; line += gridDim.x * 128ll) {
        A sum = FIRST;
        for (i64 c = 0; c < blockIdx.y; c++) {
            sum = joined(sum, a.sums[c * a.l.lines + line]);
        }
        down_through<true>(a, line, blockIdx.y, sum);
    }
}
