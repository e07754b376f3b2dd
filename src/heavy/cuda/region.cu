/* region.cu: reads, sets or adds to the elements of x that index tensors or slices select.
 *
 * targets: the offset in x of each index (element of the index tensors).  An index out of range sets the
 *          error flag and is read as 0.
 * chain:   for each index the next one with the same target, and which indices are the first with theirs.
 *          A thread scans the indices after its own, so the depth is O(indices).
 * take:    y = x at the targets; take_rows if the elements of an index are contiguous, sixteen bytes for
 *          each thread.
 * add_:    x += y of integers, in any order; add_few: the same where x is so small that each block adds to a
 *          copy of its own first.
 * put_:    x = y, or x += y, at the targets.  The thread of the first index follows its chain, so equal
 *          targets are written in order by one thread.
 * slice:   y = a slice of x. part:    x = y, or x += y, in a slice of x.  The slice begins at an offset that
 * is read from memory, so that
 *          a captured call serves every start.
 * find:    finds a slice whose bounds are in the GPU's memory, as Python has it: one thread. */
#include "heavy/cuda/region_args.h"
typedef mc_region_args args;

__device__ __forceinline__ i64 whole(const void *p, int kind, i64 at)
{
    switch (kind) {
    case -1: return ((const signed char *)p)[at];
    case 1: return ((const unsigned char *)p)[at];
    case -2: return ((const short *)p)[at];
    case 2: return ((const unsigned short *)p)[at];
    case -4: return ((const int *)p)[at];
    case 4: return ((const unsigned *)p)[at];
    }
    return ((const i64 *)p)[at];
}

__device__ __forceinline__ i64 offset(i64 left, int n, const i64 *size, const i64 *stride)
{
    i64 at = 0;
    for (int d = n - 1; d > 0; d--) {
        const i64 rest = left / size[d];
        at += (left - rest * size[d]) * stride[d];
        left = rest;
    }
    return n ? at + left * stride[0] : 0;
}

extern "C" __global__ void __launch_bounds__(256) targets(const __grid_constant__ args a)
{
    for (i64 i = blockIdx.x * 256ll + threadIdx.x; i < a.indices; i += gridDim.x * 256ll) {
        i64 to = 0;
        for (int k = 0; k < a.nindex; k++) {
            i64 v = whole(a.index[k], a.kind[k], offset(i, a.nspan, a.span, a.istride[k]));
            if (v < -a.limit[k] || v >= a.limit[k]) {
                a.err[1] = v;
                a.err[2] = a.limit[k];
                a.err[3] = a.number;
                a.err[0] = -1 - a.axis[k];
                v = 0;
            }
            to += (v < 0 ? v + a.limit[k] : v) * a.step[k];
        }
        a.target[i] = to;
        a.next[i] = -1;
        a.first[i] = 1;
    }
}

extern "C" __global__ void __launch_bounds__(256) chain(const __grid_constant__ args a)
{
    for (i64 i = blockIdx.x * 256ll + threadIdx.x; i < a.indices; i += gridDim.x * 256ll) {
        const i64 mine = a.target[i];
        i64 j = i + 1;
        while (j < a.indices && a.target[j] != mine) {
            j++;
        }
        if (j < a.indices) {
            a.next[i] = (int)j;
            a.first[j] = 0;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) take(const __grid_constant__ args a)
{
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.indices * a.each; e += gridDim.x * 256ll) {
        const i64 i = e / a.each, f = e - i * a.each;
        a.y[offset(i, a.nspan, a.span, a.yspan) + offset(f, a.nfree, a.free, a.yfree)] =
            a.x[a.target[i] + offset(f, a.nfree, a.free, a.xfree)];
    }
}

extern "C" __global__ void __launch_bounds__(256) take_rows(const __grid_constant__ args a)
{
    const unsigned each = (unsigned)(a.each * (i64)sizeof(T) / 16), count = (unsigned)a.indices * each;
    for (unsigned e = blockIdx.x * 256 + threadIdx.x; e < count; e += gridDim.x * 256) {
        const unsigned i = e / each;
        ((uint4 *)a.y)[e] = ((const uint4 *)(a.x + a.target[i]))[e - i * each];
    }
}

extern "C" __global__ void __launch_bounds__(256) put_(const __grid_constant__ args a)
{
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.indices * a.each; e += gridDim.x * 256ll) {
        const i64 i = e / a.each, f = e - i * a.each, yf = offset(f, a.nfree, a.free, a.yfree);
        if (!a.first[i]) {
            continue;
        }
        T *const at = a.x + a.target[i] + offset(f, a.nfree, a.free, a.xfree);
        T v = *at;
        for (i64 k = i; k >= 0; k = a.next[k]) {
            const T y = a.y[offset(k, a.nspan, a.span, a.yspan) + yf];
            v = a.set ? y : put<T>((A)(get<A>(v) + get<A>(y)));
        }
        *at = v;
    }
}

__device__ __forceinline__ T *begin(const args &a)
{
    return (T *)((char *)a.x + (a.start ? *a.start : 0));
}

extern "C" __global__ void __launch_bounds__(256) slice(const __grid_constant__ args a)
{
    const T *const x = begin(a);
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.each; e += gridDim.x * 256ll) {
        a.y[offset(e, a.nfree, a.free, a.yfree)] = x[offset(e, a.nfree, a.free, a.xfree)];
    }
}

extern "C" __global__ void __launch_bounds__(256) part(const __grid_constant__ args a)
{
    if (a.held && a.err && a.err[0]) {
        return;
    }
    T *const x = begin(a);
    const i64 each = a.found ? a.found[FOUND_ELEMENTS] : a.each;
    const i64 *const size = a.found ? a.found + FOUND_SIZES : a.free,
              *const stride = a.found ? a.found + FOUND_STRIDES : a.xfree;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < each; e += gridDim.x * 256ll) {
        T *const at = x + offset(e, a.nfree, size, stride);
        const T y = a.y[offset(e, a.nfree, size, a.yfree)];
        *at = a.set ? y : put<T>((A)(get<A>(*at) + get<A>(y)));
    }
}

__device__ __forceinline__ void fail(const mc_region_bounds &b, i64 what, i64 first, i64 second, i64 third)
{
    b.err[1] = first;
    b.err[2] = second;
    b.err[3] = b.step;
    b.err[4] = third;
    b.err[0] = what;
}

__device__ __forceinline__ i64 clip(i64 v, i64 lo, i64 hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

extern "C" __global__ void find(const __grid_constant__ mc_region_bounds b)
{
    i64 begins = 0, elements = 1;
    int axes = 0;
    if (blockIdx.x + threadIdx.x > 0) {
        return;
    }
    for (int i = 0; i < b.rank; i++) {
        i64 v[3] = { 0, 0, 1 };
        const i64 n = b.size[i];
        for (int k = 0; k < 3; k++) {
            if (b.kind[i][k] != GIVEN_NOT) {
                v[k] = b.kind[i][k] == GIVEN_NUMBER ? b.number[i][k] : whole(b.at[i][k], b.kind[i][k], 0);
            }
        }
        if (b.index[i]) {
            if (v[0] < -n || v[0] >= n) {
                fail(b, -1 - i, v[0], n, 0);
                elements = v[0] = 0;
            }
            begins += (v[0] < 0 ? v[0] + n : v[0]) * b.stride[i];
            continue;
        }
        const bool forward = v[2] > 0;
        const i64 lo = forward ? 0 : -1, hi = forward ? n : n - 1;
        const i64 start = b.kind[i][0] ? clip(v[0] < 0 ? v[0] + n : v[0], lo, hi) : forward ? lo : hi;
        const i64 stop = b.kind[i][1] ? clip(v[1] < 0 ? v[1] + n : v[1], lo, hi) : forward ? hi : lo;
        i64 count = 0;
        if (v[2] == 0) {
            fail(b, MC_CUDA_ERR_PART, i, 0, -1);
        } else if (forward && stop > start) {
            count = (stop - start - 1) / v[2] + 1;
        } else if (!forward && start > stop) {
            count = (i64)((u64)(start - stop - 1) / (0 - (u64)v[2]) + 1);
        }
        if (v[2] && b.fill[axes] >= 0 && b.fill[axes] != count) {
            fail(b, MC_CUDA_ERR_PART, axes, count, b.fill[axes]);
            count = 0;
        }
        begins += count ? start * b.stride[i] : 0;
        elements *= count;
        b.to[FOUND_SIZES + axes] = count;
        b.to[FOUND_STRIDES + axes++] = v[2] * b.stride[i];
    }
    b.to[0] = begins * b.bytes;
    b.to[FOUND_ELEMENTS] = elements;
}

#if !FLOAT
/* Adds within a word of 4 bytes. */
__device__ __forceinline__ void add_to(T *at, T v)
{
    if (sizeof(T) == 8) {
        atomicAdd((u64 *)at, (u64)v);
    } else if (sizeof(T) == 4) {
        atomicAdd((unsigned *)at, (unsigned)v);
    } else {
        unsigned *word = (unsigned *)((u64)at & ~(u64)3), seen = *(volatile unsigned *)word;
        for (unsigned was = ~seen; was != seen;) {
            unsigned next = seen;
            *(T *)((char *)&next + ((u64)at & 3)) += v;
            was = seen;
            seen = atomicCAS(word, was, next);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) add_(const __grid_constant__ args a)
{
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.indices * a.each; e += gridDim.x * 256ll) {
        const i64 i = e / a.each, f = e - i * a.each;
        add_to(a.x + a.target[i] + offset(f, a.nfree, a.free, a.xfree),
               a.y[offset(i, a.nspan, a.span, a.yspan) + offset(f, a.nfree, a.free, a.yfree)]);
    }
}

extern "C" __global__ void __launch_bounds__(256) add_few(const __grid_constant__ args a)
{
    __shared__ u64 sum[REGION_FEW];
    for (int i = threadIdx.x; i < a.whole; i += 256) {
        sum[i] = 0;
    }
    __syncthreads();
    for (i64 i = blockIdx.x * 256ll + threadIdx.x; i < a.indices; i += gridDim.x * 256ll) {
        atomicAdd(&sum[a.target[i]], (u64)a.y[offset(i, a.nspan, a.span, a.yspan)]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < a.whole; i += 256) {
        if (sum[i]) {
            add_to(a.x + i, (T)sum[i]);
        }
    }
}
#endif
