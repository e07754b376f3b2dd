/* windows.cu: what the kernels of pooling share: the windows of a position, the cells of a window. The
 * definition is op/pool_loops.c. Of equal maxima the first in scan order is taken; NaN is larger than any
 * number. SPREAD finds for each cell the windows that contain it, in their order, so no two threads add to
 * the same element. FIXED: windows, strides and pads are the constants W0.., S0.., P0.., so that loops over a
 * window are unrolled, and offsets fit in an int; otherwise they are arguments. WHOLE: every window lies
 * inside of the image. */
#include "heavy/pool/cuda/pool_args.h"
#include "op/pool_kind.h"
typedef mc_pool_args args;

struct window { int lo[3], hi[3], first[3]; };

#if FIXED
typedef int reach;
__device__ __forceinline__ int wide(const args &, int i) { return i == 0 ? W0 : i == 1 ? W1 : W2; }
__device__ __forceinline__ int stride(const args &, int i) { return i == 0 ? S0 : i == 1 ? S1 : S2; }
__device__ __forceinline__ int pad(const args &, int i) { return i == 0 ? P0 : i == 1 ? P1 : P2; }
#else
#define WHOLE 0
typedef i64 reach;
__device__ __forceinline__ int wide(const args &p, int i) { return (int)p.w[i]; }
__device__ __forceinline__ int stride(const args &p, int i) { return (int)p.stride[i]; }
__device__ __forceinline__ int pad(const args &p, int i) { return (int)p.pad[i]; }
#endif

__device__ __forceinline__ i64 line(const args &p, INDEX plane, int role)
{
    i64 at = 0;
    for (int i = (int)p.nfree - 1; i > 0; i--) {
        at += plane % (INDEX)p.size[i] * p.at[role][i];
        plane /= (INDEX)p.size[i];
    }
    return p.nfree ? at + plane * p.at[role][0] : 0;
}

__device__ __forceinline__ window window_at(const args &p, int u0, int u1, int u2)
{
    window w;
    const int u[3] = { u0, u1, u2 };
#pragma unroll
    for (int i = 0; i < 3; i++) {
        w.first[i] = u[i] * stride(p, i) - pad(p, i);
        w.lo[i] = w.first[i] > 0 ? w.first[i] : 0;
        w.hi[i] = w.first[i] + wide(p, i) < (int)p.in[i] ? w.first[i] + wide(p, i) : (int)p.in[i];
    }
    return w;
}

__device__ __forceinline__ reach cell(const i64 *s, reach a, reach b, reach c)
{
    return a * (reach)s[0] + b * (reach)s[1] + c * (reach)s[2];
}

#if FIXED
#define ALONG(w, a, i, n) \
    _Pragma("unroll") for (int a = (w).first[i]; a < (w).first[i] + n; a++) \
        if (a >= (w).lo[i] && a < (w).hi[i])
#define EACH_CELL(w, a, b, c) ALONG(w, a, 0, W0) ALONG(w, b, 1, W1) ALONG(w, c, 2, W2)
#else
#define EACH_CELL(w, a, b, c)                         \
    for (int a = (w).lo[0]; a < (w).hi[0]; a++)       \
        for (int b = (w).lo[1]; b < (w).hi[1]; b++)   \
            for (int c = (w).lo[2]; c < (w).hi[2]; c++)
#endif

/* Floats are compared in the type of sums, integers in their own type. */
#if FLOAT
typedef A V;
__device__ __forceinline__ bool more(V v, V most) { return most == most && !(v <= most); }
#else
typedef T V;
__device__ __forceinline__ bool more(V v, V most) { return v > most; }
#endif

/* The number of a cell in its window, were that not clipped. */
__device__ __forceinline__ int number_in(const args &p, const window &w, int a, int b, int c)
{
    return ((a - w.first[0]) * wide(p, 1) + b - w.first[1]) * wide(p, 2) + c - w.first[2];
}

__device__ __forceinline__ V largest(const window &w, const T *from, const i64 *s, int *number, const args &p)
{
    bool any = false;
    V most = (V)0;
    EACH_CELL(w, a, b, c) {
        const V v = get<V>(from[cell(s, a, b, c)]);
        if (!any || more(v, most)) {
            any = true;
            most = v;
            *number = number_in(p, w, a, b, c);
        }
    }
    return most;
}

/* POOL_KEY_BITS: a bit for each cell that equals the largest. */
__device__ __forceinline__ int equal_cells(const window &w, const T *from, const i64 *s, V most,
                                           const args &p)
{
    int bits = 0;
    EACH_CELL(w, a, b, c) {
        bits |= (get<V>(from[cell(s, a, b, c)]) == most) << (number_in(p, w, a, b, c) & (POOL_BITS - 1));
    }
    return bits;
}

#if FLOAT
/* What is stored for the pooled value v of a plane. */
__device__ __forceinline__ A finished(const args &p, INDEX plane, A v)
{
    return finish(BIAS ? v + get<A>(p.bias[plane / (INDEX)p.below % (INDEX)p.channels]) : v, ACT);
}
#else
__device__ __forceinline__ A finished(const args &, INDEX, A v) { return v; }
#endif

__device__ __forceinline__ i64 share(const args &p, const window &w)
{
    const bool whole = WHOLE || (MODE == POOL_AVERAGE_INC && p.whole);
    const i64 left = whole ? (i64)wide(p, 0) * wide(p, 1) * wide(p, 2)
                           : (i64)(w.hi[0] - w.lo[0]) * (w.hi[1] - w.lo[1]) * (w.hi[2] - w.lo[2]);
    return MODE == POOL_AVERAGE_INC || MODE == POOL_AVERAGE_EXC ? left : 1;
}

/* The cell of a mark. An index outside of the window is replaced by the window's first one. */
__device__ __forceinline__ void marked(const args &p, const window &w, MARK mark, int at[3])
{
    at[2] = w.first[2] + (int)(mark % (MARK)wide(p, 2));
    at[1] = w.first[1] + (int)(mark / (MARK)wide(p, 2) % (MARK)wide(p, 1));
    at[0] = w.first[0] + (int)(mark / (MARK)wide(p, 2) / (MARK)wide(p, 1));
    for (int i = 0; i < 3; i++) {
        at[i] = at[i] < w.lo[i] || at[i] >= w.hi[i] ? w.lo[i] : at[i];
    }
}

/* The windows [*from, *to) of one axis that contain cell i. */
__device__ __forceinline__ void holding(const args &p, int axis, int i, int *from, int *to)
{
    const int far = i + pad(p, axis), s = stride(p, axis), first = far - wide(p, axis) + 1;
    *from = first > 0 ? (first + s - 1) / s : 0;
    *to = far < 0 ? 0 : far / s + 1 < (int)p.out[axis] ? far / s + 1 : (int)p.out[axis];
}

template <class E, int V> struct alignas(V * sizeof(E)) several { E v[V]; };

#if FIXED
/* The offsets of a plane in x, y and key, counted along the first `axes` axes that are not pooled. */
struct starts { int at[3]; };
__device__ __forceinline__ starts starts_of(const args &p, unsigned plane, int axes)
{
    starts s = {};
    for (int i = axes - 1; i >= 0; i--) {
        const unsigned rest = i ? quotient(plane, p.axis[i]) : 0;
        const int at = (int)(plane - rest * p.axis[i].by);
        plane = rest;
#pragma unroll
        for (int r = 0; r < 3; r++) {
            s.at[r] += at * (int)p.at[r][i];
        }
    }
    return s;
}

/* Clamps i to [0, n), so that loads need no branch. The caller does not use what is read in place of an index
 * outside. */
__device__ __forceinline__ int within(int i, int n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

/* Windows that contain one of the S cells of an axis from u S on: REACH windows from u + FIRST on. */
#define FLOOR(a, b) ((a) >= 0 ? (a) / (b) : -((-(a) + (b) - 1) / (b)))
#define FIRST(W, S, P) (-FLOOR((W) - 1 - (P), S))
#define REACH(W, S, P) (FLOOR((P) + (S) - 1, S) - FIRST(W, S, P) + 1)

/* True if the image's edge cuts the window, so that a mark may name a cell outside. */
__device__ __forceinline__ bool is_clipped(const window &w)
{
    return !WHOLE && (w.hi[0] - w.lo[0] < W0 || w.hi[1] - w.lo[1] < W1 || w.hi[2] - w.lo[2] < W2);
}

/* The number within its window of the cell of a mark. */
__device__ __forceinline__ int numbered(const args &p, const window &w, int mark)
{
    int at[3];
    marked(p, w, (MARK)mark, at);
    return ((at[0] - w.first[0]) * W1 + at[1] - w.first[1]) * W2 + at[2] - w.first[2];
}
#endif
