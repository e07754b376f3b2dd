/* each.cu: ops whose elements, or lines, are computed by a thread each.
 *
 * search:  positions of the elements of v in the vector x, which rises; NaN is larger than every number.
 * permute: y[i] = x[index[i]] along an axis.
 * copy:    y = x.  pick, after it: y is replaced by v at the indices where v is larger, or smaller; NaN
 *          replaces all.
 * recur:   y[0] = start, y[i + 1] = x[i] * y[i] + v[i] along an axis.
 * C is the dtype in which elements are compared. */
#include "exec/cuda/each_args.h"
typedef mc_each_args args;

__device__ __forceinline__ i64 offset(const args &a, i64 e, const i64 *stride)
{
    const int last = a.axes - 1; /* which needs no division: they take longer than the rest */
    i64 at = 0;
    _Pragma("unroll 1") for (int d = 0; d < last; d++) {
        at += e % a.size[d] * stride[d];
        e /= a.size[d];
    }
    return last < 0 ? 0 : at + e * stride[last];
}

__device__ __forceinline__ bool before(C u, C v) { return u < v || (v != v && u == u); }

#define EACH(e) (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.n; e += gridDim.x * 256ll)

extern "C" __global__ void __launch_bounds__(256) search(const __grid_constant__ args a)
{
    for EACH(e) {
        const C v = get<C>(a.v[offset(a, e, a.vs)]);
        i64 low = 0, high = a.count;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            const C u = get<C>(a.x[middle * a.xstep]);
            if (a.right ? !before(v, u) : before(u, v)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        ((i64 *)a.y)[offset(a, e, a.ys)] = low;
    }
}

/* The index, or 0 and the error words set. */
__device__ __forceinline__ i64 checked(const args &a, i64 v, bool from_end)
{
    if (v < (from_end ? -a.limit : 0) || v >= a.limit) {
        a.err[1] = v;
        a.err[2] = a.limit;
        a.err[3] = a.number;
        a.err[0] = a.axis < 0 ? 1 : -1 - a.axis;
        return 0;
    }
    return v < 0 ? v + a.limit : v;
}

extern "C" __global__ void __launch_bounds__(256) permute(const __grid_constant__ args a)
{
    for EACH(e) {
        const i64 from = checked(a, (i64)a.index[offset(a, e, a.is)], false);
        ((T *)a.y)[offset(a, e, a.ys)] = a.x[offset(a, e, a.xs) + from * a.xstep];
    }
}

extern "C" __global__ void __launch_bounds__(256) copy(const __grid_constant__ args a)
{
    for EACH(e) {
        ((T *)a.y)[offset(a, e, a.ys)] = a.x[offset(a, e, a.xs)];
    }
}

__device__ __forceinline__ bool wins(T v, T y, bool least)
{
    const C u = get<C>(v), w = get<C>(y);
    return u != u ? w == w : least ? u < w : u > w;
}

/* An element is exchanged within a word of 4 or 8 bytes. */
template <class W> __device__ __forceinline__ void replace(T *at, T v, bool least)
{
    W *word = (W *)((u64)at & ~(u64)(sizeof(W) - 1));
    const int place = (int)((u64)at & (sizeof(W) - 1));
    W seen = *(volatile W *)word;
    for (;;) {
        W next = seen;
        const T old = *(const T *)((const char *)&seen + place);
        if (!wins(v, old, least)) {
            return;
        }
        *(T *)((char *)&next + place) = v;
        const W was = atomicCAS(word, seen, next);
        if (was == seen) {
            return;
        }
        seen = was;
    }
}

extern "C" __global__ void __launch_bounds__(256) pick(const __grid_constant__ args a)
{
    for EACH(e) {
        const i64 to = checked(a, (i64)a.index[offset(a, e, a.is)], true);
        T *at = (T *)a.y + offset(a, e, a.ys) + to * a.ystep;
        const T v = a.v[offset(a, e, a.vs)];
        if (sizeof(T) == 8) {
            replace<unsigned long long>(at, v, a.least);
        } else {
            replace<unsigned>(at, v, a.least);
        }
    }
}

#if FLOAT
extern "C" __global__ void __launch_bounds__(256) recur(const __grid_constant__ args a)
{
    for EACH(e) {
        const T *x = a.x + offset(a, e, a.xs), *v = a.v + offset(a, e, a.vs);
        T *y = (T *)a.y + offset(a, e, a.ys);
        double s = a.start;
        for (i64 k = 0; k < a.count; k++) {
            const i64 i = a.back ? a.count - 1 - k : k;
            y[i * a.ystep] = put<T>(s);
            s = get<double>(x[i * a.xstep]) * s + get<double>(v[i * a.vstep]);
        }
    }
}
#endif
