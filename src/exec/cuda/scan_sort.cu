/* scan_sort.cu: lines along an axis: cumulative sums and products, and sorting.
 *
 * totals, running: a line is divided into chunks of one block each.  Each block adds the totals of the chunks
 *                  before its own.
 * keys, near_sort, compare_exchange, near_merge, write_sorted: a bitonic network over pairs (key, position).
 *                  Positions differ, so the sort is stable.  Partners that are near each other are compared
 *                  in shared memory.
 * T is x's dtype, O the result's, A the dtype of sums. */
#include "exec/cuda/scan_sort_args.h"
typedef mc_lines_args args;

struct pair { u64 key, at; };

__device__ __forceinline__ i64 begin_of(const args &a, i64 line, const i64 *stride)
{
    i64 at = 0;
    _Pragma("unroll 1") for (int d = 0; d < a.axes; d++) {
        at += line % a.size[d] * stride[d];
        line /= a.size[d];
    }
    return at;
}

/* ---- running ---- */

__device__ __forceinline__ A joined(const args &a, A u, A v) { return a.product ? u * v : u + v; }

/* An exclusive scan over the threads of a block; *whole is the total. */
__device__ __forceinline__ A before(const args &a, A mine, A *sums, A *whole)
{
    sums[threadIdx.x] = mine;
    __syncthreads();
    for (int d = 1; d < THREADS; d *= 2) {
        const A other = threadIdx.x >= d ? sums[threadIdx.x - d] : (A)a.product;
        __syncthreads();
        sums[threadIdx.x] = joined(a, other, sums[threadIdx.x]);
        __syncthreads();
    }
    *whole = sums[THREADS - 1];
    const A mine_before = threadIdx.x ? sums[threadIdx.x - 1] : (A)a.product;
    __syncthreads();
    return mine_before;
}

extern "C" __global__ void __launch_bounds__(THREADS) totals(const __grid_constant__ args a)
{
    __shared__ A sums[THREADS];
    const i64 line = blockIdx.x / a.chunks, mine = blockIdx.x % a.chunks, from = mine * a.chunk,
              to = from + a.chunk < a.count ? from + a.chunk : a.count;
    const T *x = a.x + begin_of(a, line, a.xline);
    A sum = (A)a.product, whole;
    for (i64 i = from + threadIdx.x; i < to; i += THREADS) {
        sum = joined(a, sum, get<A>(x[i * a.xstep]));
    }
    before(a, sum, sums, &whole);
    if (threadIdx.x == 0) {
        ((A *)a.scratch)[blockIdx.x] = whole;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) running(const __grid_constant__ args a)
{
    __shared__ A sums[THREADS];
    const i64 line = blockIdx.x / a.chunks, mine = blockIdx.x % a.chunks, from = mine * a.chunk,
              to = from + a.chunk < a.count ? from + a.chunk : a.count;
    const T *x = a.x + begin_of(a, line, a.xline);
    O *y = a.y + begin_of(a, line, a.yline);
    A carry = (A)a.product, whole;
    for (i64 c = 0; c < mine; c++) {
        carry = joined(a, carry, ((const A *)a.scratch)[line * a.chunks + c]);
    }
    for (i64 tile = from; tile < to; tile += THREADS) {
        const i64 i = tile + threadIdx.x;
        const A v = i < to ? get<A>(x[i * a.xstep]) : (A)a.product;
        const A ahead = joined(a, carry, before(a, v, sums, &whole));
        if (i < to) {
            y[i * a.ystep] = put<O>(joined(a, ahead, v));
        }
        carry = joined(a, carry, whole);
    }
}

/* ---- order ---- */

#if ORDER
__device__ __forceinline__ u64 key_of(T v)
{
#if FLOAT
    const u64 sign = 1ull << 63, bits = (u64)__double_as_longlong(get<double>(v) + 0.0);
    return get<double>(v) != get<double>(v) ? ~0ull : bits & sign ? ~bits : bits | sign;
#else
    return (T)-1 < (T)1 ? (u64)(i64)v ^ 1ull << 63 : (u64)v;
#endif
}

__device__ __forceinline__ void order(pair *p, i64 i, i64 other, bool rising)
{
    const pair u = p[i], v = p[other];
    if ((u.key > v.key || (u.key == v.key && u.at > v.at)) == rising) {
        p[i] = v;
        p[other] = u;
    }
}

extern "C" __global__ void __launch_bounds__(256) keys(const __grid_constant__ args a)
{
    pair *p = (pair *)a.scratch;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.lines * a.padded; e += gridDim.x * 256ll) {
        const i64 line = e / a.padded, i = e - line * a.padded;
        p[e].key = i < a.count ? key_of(a.x[begin_of(a, line, a.xline) + i * a.xstep]) : ~0ull;
        p[e].at = (u64)i;
    }
}

/* Sorts a segment of SEGMENT pairs, or a shorter line, from runs of `first` to runs of `last`. */
__device__ __forceinline__ void network(const args &a, i64 first, i64 last)
{
    __shared__ pair near_[SEGMENT];
    const i64 n = a.padded < SEGMENT ? a.padded : SEGMENT, base = blockIdx.x * n;
    pair *p = (pair *)a.scratch + base;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        near_[i] = p[i];
    }
    __syncthreads();
    _Pragma("unroll 1") for (i64 span = first; span <= last; span *= 2) {
        for (i64 d = span / 2 < n / 2 ? span / 2 : n / 2; d; d /= 2) {
            _Pragma("unroll 1") for (i64 t = threadIdx.x; t < n / 2; t += blockDim.x) {
                const i64 i = t / d * 2 * d + t % d;
                order(near_, i, i + d, ((base + i) % a.padded & span) == 0);
            }
            __syncthreads();
        }
    }
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
        p[i] = near_[i];
    }
}

extern "C" __global__ void __launch_bounds__(SEGMENT / 2) near_sort(const __grid_constant__ args a)
{
    network(a, 2, a.padded < SEGMENT ? a.padded : SEGMENT);
}

extern "C" __global__ void __launch_bounds__(SEGMENT / 2) near_merge(const __grid_constant__ args a)
{
    network(a, a.span, a.span);
}

extern "C" __global__ void __launch_bounds__(256) compare_exchange(const __grid_constant__ args a)
{
    for (i64 t = blockIdx.x * 256ll + threadIdx.x; t < a.lines * a.padded / 2; t += gridDim.x * 256ll) {
        const i64 i = t / a.distance * 2 * a.distance + t % a.distance;
        order((pair *)a.scratch, i, i + a.distance, (i % a.padded & a.span) == 0);
    }
}

extern "C" __global__ void __launch_bounds__(256) write_sorted(const __grid_constant__ args a)
{
    const pair *p = (const pair *)a.scratch;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.lines * a.count; e += gridDim.x * 256ll) {
        const i64 line = e / a.count, i = e - line * a.count, from = (i64)p[line * a.padded + i].at;
        char *to = (char *)(a.y + begin_of(a, line, a.yline) + i * a.ystep);
        if (a.positions) {
            *(i64 *)to = from;
        } else {
            *(T *)to = a.x[begin_of(a, line, a.xline) + from * a.xstep];
        }
    }
}
#endif
