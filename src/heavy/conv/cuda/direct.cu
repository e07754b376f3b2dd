/* direct.cu: convolution in all passes, layouts, groups and dilations, and with unshared filters.
 *
 * Each pass is a product of matrices whose elements are found by index; no matrix is stored:
 *
 *             rows     columns                    summed over
 *   forward   filter   image, position of y       channel, tap
 *   inputs    channel  image, position of x       filter, tap
 *   weights   filter   channel, tap               image, position of y
 *
 * Flipped filters are read backwards, with negative strides.  Partial sums are added in order, so every
 * run gives the same bits.  `sampled` computes single elements to check another solver's result. */
#include "heavy/conv/cuda/direct_args.h"
#include "op/conv_pass.h"
typedef mc_direct_args args;

enum { TILE = DIRECT_TILE, TK = DIRECT_TK };

typedef INDEX idx;
struct four { idx o; int a, b, c; };    /* an outer index, and one along each of three axes */

__device__ __forceinline__ four split(idx e, const i64 *n)
{
    four r;
    idx rest = e / (idx)n[2];
    r.c = (int)(e - rest * (idx)n[2]);
    e = rest / (idx)n[1];
    r.b = (int)(rest - e * (idx)n[1]);
    rest = e / (idx)n[0];
    r.a = (int)(e - rest * (idx)n[0]);
    r.o = rest;
    return r;
}

/* ---- elements of the three arrays; 0 outside ---- */

__device__ __forceinline__ A x_of(const args &p, i64 n, i64 c, const four &u, const four &a)
{
    const int i = u.a * (int)p.stride[0] - (int)p.pad[0] + a.a * (int)p.dilation[0];
    const int j = u.b * (int)p.stride[1] - (int)p.pad[1] + a.b * (int)p.dilation[1];
    const int k = u.c * (int)p.stride[2] - (int)p.pad[2] + a.c * (int)p.dilation[2];
    const bool in = i >= 0 && i < p.in[0] && j >= 0 && j < p.in[1] && k >= 0 && k < p.in[2];
    return in ? get<A>(p.x[n * p.xs[0] + c * p.xs[1] + i * p.xs[2] + j * p.xs[3] + k * p.xs[4]]) : (A)0;
}

/* The position of y whose tap a reads element i of one axis of x; -1: none. */
__device__ __forceinline__ int position(int i, int a, i64 pad, i64 dilation, i64 stride, i64 out)
{
    const int far = i + (int)pad - a * (int)dilation, u = far / (int)stride;
    return far >= 0 && u * (int)stride == far && u < out ? u : -1;
}

__device__ __forceinline__ bool positions(const args &p, const four &i, const four &a, four *u)
{
    u->a = position(i.a, a.a, p.pad[0], p.dilation[0], p.stride[0], p.out[0]);
    u->b = position(i.b, a.b, p.pad[1], p.dilation[1], p.stride[1], p.out[1]);
    u->c = position(i.c, a.c, p.pad[2], p.dilation[2], p.stride[2], p.out[2]);
    return (u->a | u->b | u->c) >= 0;
}

__device__ __forceinline__ i64 in_y(const args &p, i64 n, i64 f, const four &u)
{
    return n * p.ys[0] + f * p.ys[1] + u.a * p.ys[2] + u.b * p.ys[3] + u.c * p.ys[4];
}

__device__ __forceinline__ i64 in_w(const args &p, i64 f, i64 c, const four &a)
{
    return f * p.ws[0] + c * p.ws[1] + a.a * p.ws[2] + a.b * p.ws[3] + a.c * p.ws[4];
}

__device__ __forceinline__ i64 unshared(const args &p, const four &u)
{
    return u.a * p.ws[5] + u.b * p.ws[6] + u.c * p.ws[7];
}

/* ---- the result ---- */

__device__ __forceinline__ void finished(const args &p, T *to, i64 at, i64 f, A sum)
{
    A v = (A)p.alpha * sum;
    if (HAS_C0) {
        v += (A)p.beta * get<A>(p.c0[at]);
    }
    if (HAS_BIAS) {
        v += get<A>(p.bias[f]);
    }
    to[at] = put<T>(finish(v, ACT));
}

/* Address of an element of group g's product; f: index of its bias. */
struct spot { T *array; i64 at, f; };

__device__ __forceinline__ spot spot_of(const args &p, i64 g, idx row, idx col)
{
    const i64 cg = p.c / p.groups, fg = p.f / p.groups;
    if (PASS == CONV_FORWARD) {
        const four u = split(col, p.out);
        return { p.y, in_y(p, u.o, g * fg + row, u), g * fg + (i64)row };
    }
    if (PASS == CONV_INPUTS) {
        const four i = split(col, p.in);
        return { p.x,
                 i.o * p.xs[0] + (g * cg + row) * p.xs[1] + i.a * p.xs[2] + i.b * p.xs[3] + i.c * p.xs[4],
                 0 };
    }
    const four a = split(col, p.k);
    return { p.w, in_w(p, g * fg + row, a.o, a), 0 };
}

__device__ __forceinline__ void result(const args &p, i64 g, idx row, idx col, A sum)
{
    const spot s = spot_of(p, g, row, col);
    finished(p, s.array, s.at, s.f, sum);
}

/* ---- tiles ---- */

/* Left matrix: its row, and the summed index split in four. */
__device__ __forceinline__ A left(const args &p, i64 g, idx row, const four &d)
{
    const i64 fg = p.f / p.groups;
    return PASS == CONV_FORWARD ? get<A>(p.w[in_w(p, g * fg + row, d.o, d)])
         : PASS == CONV_INPUTS  ? get<A>(p.w[in_w(p, g * fg + d.o, row, d)])
                           : get<A>(p.y[in_y(p, d.o, g * fg + row, d)]);
}

__device__ __forceinline__ A right(const args &p, i64 g, const four &col, const four &d)
{
    const i64 cg = p.c / p.groups, fg = p.f / p.groups;
    if (PASS == CONV_FORWARD) {
        return x_of(p, col.o, g * cg + d.o, col, d);
    }
    if (PASS == CONV_INPUTS) {
        four u;
        return positions(p, col, d, &u) ? get<A>(p.y[in_y(p, col.o, g * fg + d.o, u)]) : (A)0;
    }
    return x_of(p, d.o, g * cg + col.o, d, col);
}

extern "C" __global__ void __launch_bounds__(256) tiles(const __grid_constant__ args p)
{
    follow();
    __shared__ A sa[TK][TILE + 1], sb[TK][TILE + 1];
    const i64 *const col_axes = PASS == CONV_FORWARD ? p.out : PASS == CONV_INPUTS ? p.in : p.k;
    const i64 *const depth_axes = PASS == CONV_WEIGHTS ? p.out : p.k;
    const i64 across = (p.cols + TILE - 1) / TILE, down = (p.rows + TILE - 1) / TILE,
              all = across * down * p.groups * p.splits;
    const int t = threadIdx.x, x = t % 16, y = t / 16;
    for (i64 block = blockIdx.x; block < all; block += gridDim.x) {
        const i64 part = block % p.splits, tile = block / p.splits, g = tile / (across * down);
        const idx i = (idx)(tile % down * TILE), j = (idx)(tile / down % across * TILE);
        const idx from = (idx)((p.depth + TK - 1) / TK * part / p.splits * TK);
        const idx upto = (idx)((p.depth + TK - 1) / TK * (part + 1) / p.splits * TK),
                  to = upto < p.depth ? upto : (idx)p.depth;
        const idx mine = j + t % TILE;
        const four col = split(mine < p.cols ? mine : 0, col_axes);
        A acc[4][4] = {};
        for (idx d = from; d < to; d += TK) {
            const idx da = d + x;
            const four at = split(da < to ? da : from, depth_axes);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const idx row = i + y + 16 * r;
                sa[x][y + 16 * r] = da < to && row < p.rows ? left(p, g, row, at) : (A)0;
            }
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const idx db = d + t / TILE + 4 * r;
                sb[t / TILE + 4 * r][t % TILE] = db < to && mine < p.cols
                                                     ? right(p, g, col, split(db, depth_axes))
                                                     : (A)0;
            }
            __syncthreads();
#pragma unroll
            for (int z = 0; z < TK; z++) {
#pragma unroll
                for (int r = 0; r < 4; r++) {
#pragma unroll
                    for (int q = 0; q < 4; q++) {
                        acc[r][q] += sa[z][y + 16 * r] * sb[z][x + 16 * q];
                    }
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int e = 0; e < 16; e++) {
            const idx row = i + y + 16 * (e / 4), at = j + x + 16 * (e % 4);
            if (row < p.rows && at < p.cols) {
                if (p.splits > 1) {
                    p.parts[((part * p.groups + g) * p.rows + row) * p.cols + at] = acc[e / 4][e % 4];
                } else {
                    result(p, g, row, at, acc[e / 4][e % 4]);
                }
            }
        }
    }
}

/* Adds the partial sums. */
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    follow();
    const i64 count = p.groups * p.rows * p.cols;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        A sum = 0;
        for (i64 part = 0; part < p.splits; part++) {
            sum += p.parts[part * count + e];
        }
        result(p, e / p.cols / p.rows, (idx)(e / p.cols % p.rows), (idx)(e % p.cols), sum);
    }
}

/* ---- one thread an element: few rows a group, or unshared filters ---- */

extern "C" __global__ void __launch_bounds__(256) each(const __grid_constant__ args p)
{
    follow();
    const i64 *const col_axes = PASS == CONV_FORWARD ? p.out : p.in;
    const i64 fg = p.f / p.groups, cg = p.c / p.groups, count = p.groups * p.rows * p.cols;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const i64 g = e / p.cols / p.rows, row = e / p.cols % p.rows;
        const four col = split((idx)(e % p.cols), col_axes);
        A sum = 0;
        for (idx d = 0; d < p.depth; d++) {
            const four at = split(d, p.k);
            if (PASS == CONV_FORWARD) {
                const i64 w = in_w(p, g * fg + row, at.o, at) + (UNSHARED ? unshared(p, col) : 0);
                sum += get<A>(p.w[w]) * x_of(p, col.o, g * cg + at.o, col, at);
            } else {
                four u;
                if (positions(p, col, at, &u)) {
                    const i64 w = in_w(p, g * fg + at.o, row, at) + (UNSHARED ? unshared(p, u) : 0);
                    sum += get<A>(p.w[w]) * get<A>(p.y[in_y(p, col.o, g * fg + at.o, u)]);
                }
            }
        }
        result(p, g, (idx)row, (idx)(e % p.cols), sum);
    }
}

/* The sum over 256 threads, as a tree; valid in thread 0. */
__device__ __forceinline__ A added(A sum)
{
    __shared__ A s[256];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            s[threadIdx.x] += s[threadIdx.x + half];
        }
        __syncthreads();
    }
    sum = s[0];
    __syncthreads();
    return sum;
}

/* One weight a block: 256 threads share its sum over images and positions. */
extern "C" __global__ void __launch_bounds__(256) each_weight(const __grid_constant__ args p)
{
    follow();
    const i64 fg = p.f / p.groups, cg = p.c / p.groups, count = p.groups * p.rows * p.cols;
    for (i64 e = blockIdx.x; e < count; e += gridDim.x) {
        const i64 g = e / p.cols / p.rows, row = e / p.cols % p.rows;
        const four a = split((idx)(e % p.cols), p.k);
        A sum = 0;
        for (i64 d = threadIdx.x; d < p.depth; d += 256) {
            const four u = split((idx)d, p.out);
            sum += get<A>(p.y[in_y(p, u.o, g * fg + row, u)]) * x_of(p, u.o, g * cg + a.o, u, a);
        }
        sum = added(sum);
        if (threadIdx.x == 0) {
            result(p, g, (idx)row, (idx)(e % p.cols), sum);
        }
    }
}

/* ---- elements for comparison with another solver's result ---- */

/* A block computes a part of one element's sum, to parts[sample][split].  After those come, for each
 * sample, the stored element and what is added to alpha times the sum. */
extern "C" __global__ void __launch_bounds__(256) sampled(const __grid_constant__ args p)
{
    follow();
    const i64 *const col_axes = PASS == CONV_FORWARD ? p.out : PASS == CONV_INPUTS ? p.in : p.k;
    const i64 *const depth_axes = PASS == CONV_WEIGHTS ? p.out : p.k;
    const i64 count = p.groups * p.rows * p.cols, sample = blockIdx.x / p.splits,
              part = blockIdx.x % p.splits;
    const i64 e = (i64)(((u64)sample * 0x9e3779b97f4a7c15ull >> 20) % (u64)count);
    const i64 g = e / p.cols / p.rows, row = e / p.cols % p.rows;
    const idx to = (idx)(p.depth * (part + 1) / p.splits);
    const four col = split((idx)(e % p.cols), col_axes);
    A sum = 0;
    for (idx d = (idx)(p.depth * part / p.splits) + threadIdx.x; d < to; d += 256) {
        const four at = split(d, depth_axes);
        sum += left(p, g, (idx)row, at) * right(p, g, col, at);
    }
    sum = added(sum);
    if (threadIdx.x == 0) {
        p.parts[blockIdx.x] = sum;
        if (part == 0) {
            const spot s = spot_of(p, g, (idx)row, (idx)(e % p.cols));
            A *const more = p.parts + p.samples * p.splits + 2 * sample;
            more[0] = get<A>(s.array[s.at]);
            more[1] = (HAS_C0 ? (A)p.beta * get<A>(p.c0[s.at]) : (A)0) +
                      (HAS_BIAS ? get<A>(p.bias[s.f]) : (A)0);
        }
    }
}

/* Unshared filters: the sum is over images alone. */
extern "C" __global__ void __launch_bounds__(256) each_position(const __grid_constant__ args p)
{
    follow();
    const i64 fg = p.f / p.groups, cg = p.c / p.groups, spots = p.out[0] * p.out[1] * p.out[2],
              count = p.f * p.cols * spots;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const four u = split((idx)(e % spots), p.out), a = split((idx)(e / spots % p.cols), p.k);
        const i64 f = e / spots / p.cols;
        A sum = 0;
        for (i64 n = 0; n < p.n; n++) {
            sum += get<A>(p.y[in_y(p, n, f, u)]) * x_of(p, n, f / fg * cg + a.o, u, a);
        }
        finished(p, p.w, in_w(p, f, a.o, a) + unshared(p, u), 0, sum);
    }
}
