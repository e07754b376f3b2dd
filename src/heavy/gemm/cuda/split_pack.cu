/* split_pack.cu: packs the operands of split.cu as pairs of halves.
 *
 * First the largest element of each row is found, which sets its scale.  Then every element becomes
 *
 *   high = half(x * 2^e),  low = half((x * 2^e - high) * 2^11)
 *
 * in tiles as the tensor cores read them, or in C order if the product gathers them. */
typedef unsigned u32;
typedef unsigned short u16;
#include "heavy/gemm/cuda/split_args.h"
typedef mc_split_seen seen;
typedef mc_split_pack pack;
typedef mc_split_filters filters;
enum { TK = SPLIT_TK };

/* ---- operands into halves ---- */

/* Finds the largest finite element and infinities of rows.  A block takes a share of the columns of 64
 * rows, or of 8 rows if their elements are contiguous, then of further rows. */
extern "C" __global__ void __launch_bounds__(256) look(const __grid_constant__ pack p)
{
    follow();
    const int outer = blockIdx.z / p.inner, inner = blockIdx.z % p.inner, lane = threadIdx.x & 31;
    const int share = (p.n_cols + gridDim.y - 1) / gridDim.y, from = blockIdx.y * share,
              end = from + share < p.n_cols ? from + share : p.n_cols;
    const bool by_row = p.xs[2] == 1 && p.xs[3] != 1;
    const int rows = by_row ? 64 : 8, first = by_row ? threadIdx.x & 63 : threadIdx.x >> 5,
              step = by_row ? 4 : 32;
    const float *x = p.x + outer * p.xs[0] + inner * p.xs[1];
    seen *to = p.rows + outer * p.seen_outer;
    u32 most = 0, infinite = 0;
    for (int block = blockIdx.x * rows; block < p.n_rows; block += gridDim.x * rows) {
        const int i = block + first, last = i < p.n_rows ? end : 0;
        const float *at = x + i * p.xs[2];
#pragma unroll 8
        for (int j = from + (by_row ? threadIdx.x >> 6 : lane); j < last; j += step) {
            const u32 bits = __float_as_uint(at[j * p.xs[3]]) & 0x7fffffff;
            infinite |= bits == 0x7f800000;
            most = bits < 0x7f800000 && bits > most ? bits : most;
        }
        if (p.seen_row == 0 && block + gridDim.x * rows < p.n_rows) {
            continue;           /* all rows share one entry, which is written at the end */
        }
        if (!by_row || p.seen_row == 0) {
            most = __reduce_max_sync(0xffffffff, most);
            infinite = __reduce_or_sync(0xffffffff, infinite);
        }
        if (lane == 0 || (by_row && p.seen_row)) {
            most ? atomicMax(&to[(i64)i * p.seen_row].most, most) : 0;
            infinite ? atomicOr(&to[(i64)i * p.seen_row].infinite, 1) : 0;
        }
        most = infinite = 0;
    }
}

/* The address of an element's high half in tiles of `rows` rows. */
__device__ __forceinline__ u16 *in_tile(u16 *to, int rows, int cols_pad, int row, int col)
{
    const i64 tile = (i64)(row / rows) * (cols_pad / TK) + col / TK;
    const int r = row % rows, piece = col % TK / 8;
    return to + tile * 2 * rows * TK + r * TK + (piece ^ (r & 7)) * 8 + col % 8;
}

/* A block packs 64 x 64 elements through shared memory, so that reads and writes are both contiguous. */
extern "C" __global__ void __launch_bounds__(256) pack_rows(const __grid_constant__ pack p)
{
    follow();
    __shared__ float tile[64][65];
    const int outer = blockIdx.z / p.inner, inner = blockIdx.z % p.inner, row = blockIdx.x * 64,
              col = blockIdx.y * 64;
    const bool by_row = p.xs[2] == 1 && p.xs[3] != 1;
    const int along = threadIdx.x & 63, across = threadIdx.x >> 6;
    const i64 step = by_row ? p.xs[3] : p.xs[2];
    const float *x = p.x + outer * p.xs[0] + inner * p.xs[1] + row * p.xs[2] + col * p.xs[3] +
                     along * (by_row ? p.xs[2] : p.xs[3]) + across * step;
    const bool is = along < (by_row ? p.n_rows - row : p.n_cols - col);
    const int most = (by_row ? p.n_cols - col : p.n_rows - row) - across;
#pragma unroll
    for (int u = 0; u < 64; u += 4) {
        (by_row ? tile[along][across + u] : tile[across + u][along]) = is && u < most ? x[u * step] : 0.0f;
    }
    __syncthreads();
    u16 *to = p.to + (i64)blockIdx.z * p.rows_pad * p.cols_pad * (p.tile ? 2 : 1);
    const i64 behind = p.tile ? p.tile * TK : p.low;
#pragma unroll
    for (int e = threadIdx.x; e < 64 * 8; e += 256) {
        const int i = e / 8, j = e % 8 * 8, r = row + i, c = col + j;
        if (r >= p.rows_pad || c >= p.cols_pad) {
            continue;
        }
        const seen *s = p.rows + outer * p.seen_outer + (i64)(r < p.n_rows ? r : 0) * p.seen_row;
        u16 *at = p.tile ? in_tile(to, p.tile, p.cols_pad, r, c) : to + (i64)r * p.cols_pad + c;
        float f[2];
        u32 high[8], low[8];
        factors(__ldg(&s->most), f);
#pragma unroll
        for (int q = 0; q < 8; q++) {
            halve(tile[i][j + q], f, &high[q], &low[q]);
        }
        *(uint4 *)at = make_uint4(high[0] | high[1] << 16, high[2] | high[3] << 16, high[4] | high[5] << 16,
                                  high[6] | high[7] << 16);
        *(uint4 *)(at + behind) = make_uint4(low[0] | low[1] << 16, low[2] | low[3] << 16,
                                             low[4] | low[5] << 16, low[6] | low[7] << 16);
    }
}

/* Rows of at most eight elements: one thread for each row. */
extern "C" __global__ void __launch_bounds__(256) pack_narrow(const __grid_constant__ pack p)
{
    follow();
    const int outer = blockIdx.z / p.inner, inner = blockIdx.z % p.inner,
              row = blockIdx.x * 256 + threadIdx.x;
    const float *x = p.x + outer * p.xs[0] + inner * p.xs[1] + row * p.xs[2];
    u16 *to = p.to + ((i64)blockIdx.z * p.rows_pad + row) * p.cols_pad;
    if (row >= p.n_rows) {
        return;
    }
    u32 high[8], low[8];
    float f[2];
    factors(__ldg(&p.rows[outer * p.seen_outer + (i64)row * p.seen_row].most), f);
#pragma unroll
    for (int q = 0; q < 8; q++) {
        halve(q < p.n_cols ? x[q * p.xs[3]] : 0.0f, f, &high[q], &low[q]);
    }
#pragma unroll
    for (int q = 0; q < 8; q += 4) {
        if (q < p.cols_pad) {
            *(uint2 *)(to + q) = make_uint2(high[q] | high[q + 1] << 16, high[q + 2] | high[q + 3] << 16);
            *(uint2 *)(to + q + p.low) = make_uint2(low[q] | low[q + 1] << 16, low[q + 2] | low[q + 3] << 16);
        }
    }
}

/* Filters: a row for each channel of the result, ordered by tap, then by the other channels; and the table
 * of taps. */
extern "C" __global__ void __launch_bounds__(256) pack_filters(const __grid_constant__ filters p)
{
    follow();
    __shared__ u32 most;
    const int row = blockIdx.x, taps = p.k[0] * p.k[1];
    const float *w = p.w + blockIdx.y * p.group + row * p.row;
    u16 *to = p.to + (i64)blockIdx.y * p.rows_pad * p.k_pad * 2;
    seen *s = p.rows + (i64)blockIdx.y * p.n_rows + row;
    if (threadIdx.x == 0) {
        most = 0;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < taps * p.channels && row < p.n_rows; e += 256) {
        const int t = e % taps, c = e / taps;
        const u32 bits = __float_as_uint(w[c * p.channel + t / p.k[1] * p.tap[0] + t % p.k[1] * p.tap[1]]) &
                         0x7fffffff;
        atomicMax(&most, bits < 0x7f800000 ? bits : 0);
    }
    __syncthreads();
    float f[2];
    factors(most, f);
    for (int e = threadIdx.x; e < p.k_pad; e += 256) {
        const int t = e / p.channels_pad, c = e % p.channels_pad;
        const int a0 = t / p.k[1], a1 = t % p.k[1];
        const i64 at = c * p.channel + (p.reverse ? p.k[0] - 1 - a0 : a0) * p.tap[0] +
                       (p.reverse ? p.k[1] - 1 - a1 : a1) * p.tap[1];
        const float x = row < p.n_rows && t < taps && c < p.channels ? w[at] : 0.0f;
        u16 *dst = in_tile(to, p.tile, p.k_pad, row, e);
        u32 high, low;
        halve(x, f, &high, &low);
        dst[0] = (u16)high;
        dst[p.tile * TK] = (u16)low;
    }
    if (threadIdx.x == 0 && row < p.n_rows) {
        s->most = most;
        s->infinite = 0;
    }
    for (int q = threadIdx.x; row == 0 && blockIdx.y == 0 && q < p.k_pad / p.unit; q += 256) {
        const int t = q * p.unit / p.channels_pad, c = q * p.unit % p.channels_pad;
        const int d0 = t / p.k[1] * p.shift[0], d1 = t % p.k[1] * p.shift[1];
        p.taps[q] = t < taps ? make_int2(d0 * p.line + d1 * p.position + c, d0 << 16 | d1)
                             : make_int2(0, 0x40004000);
    }
}
