/* split_pack.cu: packs the operands of split.cu as pairs of halves.
 *
 * The largest element of each row sets its scale, 2^e.  Then every element becomes
 *
 *   high = half(x * 2^e),  low = half((x * 2^e - high) * up)          up: 2^11, or 1 (split_large.cu)
 *
 * in tiles as the tensor cores read them, or in C order if the product gathers them.  Matrices with a
 * contiguous axis are read once (pack_lines, pack_columns); other operands are read once for the largest
 * elements (look) and once more. */
typedef unsigned u32;
typedef unsigned short u16;
#include "heavy/gemm/cuda/split_args.h"
typedef mc_split_seen seen;
typedef mc_split_pack pack;
typedef mc_split_filters filters;
typedef mc_split_images images;
enum { TK = SPLIT_TK };

/* ---- operands into halves ---- */

/* Finds the largest finite element and infinities of rows.  A block takes a share of the columns of 64
 * rows, or of 8 rows if their elements are contiguous, then of further rows.  Block x_block of `down`
 * has share y_block of `right`, of matrix z. */
__device__ __forceinline__ void look_at(const pack &p, int x_block, int down, int y_block, int right, int z)
{
    const int outer = z / p.inner, inner = z % p.inner, lane = threadIdx.x & 31;
    const int share = (p.n_cols + right - 1) / right, from = y_block * share,
              end = from + share < p.n_cols ? from + share : p.n_cols;
    const bool by_row = p.xs[2] == 1 && p.xs[3] != 1;
    const int rows = by_row ? 64 : 8, first = by_row ? threadIdx.x & 63 : threadIdx.x >> 5,
              step = by_row ? 4 : 32;
    const float *x = p.x + outer * p.xs[0] + inner * p.xs[1];
    seen *to = p.rows + outer * p.seen_outer;
    u32 most = 0, infinite = 0;
    for (int block = x_block * rows; block < p.n_rows; block += down * rows) {
        const int i = block + first, last = i < p.n_rows ? end : 0;
        const float *at = x + i * p.xs[2];
#pragma unroll 8
        for (int j = from + (by_row ? threadIdx.x >> 6 : lane); j < last; j += step) {
            const u32 bits = __float_as_uint(at[j * p.xs[3]]) & 0x7fffffff;
            infinite |= bits == 0x7f800000;
            most = bits < 0x7f800000 && bits > most ? bits : most;
        }
        if (p.seen_row == 0 && block + down * rows < p.n_rows) {
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

extern "C" __global__ void __launch_bounds__(256) look(const __grid_constant__ pack p)
{
    follow();
    look_at(p, blockIdx.x, gridDim.x, blockIdx.y, gridDim.y, blockIdx.z);
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
            halve(tile[i][j + q], f, p.up, &high[q], &low[q]);
        }
        *(uint4 *)at = make_uint4(high[0] | high[1] << 16, high[2] | high[3] << 16, high[4] | high[5] << 16,
                                  high[6] | high[7] << 16);
        *(uint4 *)(at + behind) = make_uint4(low[0] | low[1] << 16, low[2] | low[3] << 16,
                                             low[4] | low[5] << 16, low[6] | low[7] << 16);
    }
}

/* ---- matrices, read once ---- */

__device__ __forceinline__ void see(const float (&v)[8], u32 &most, u32 &infinite)
{
#pragma unroll
    for (int q = 0; q < 8; q++) {
        const u32 bits = __float_as_uint(v[q]) & 0x7fffffff;
        infinite |= bits == 0x7f800000;
        most = bits < 0x7f800000 && bits > most ? bits : most;
    }
}

/* Eight elements as a piece of high halves and one of low halves. */
__device__ __forceinline__ void halve8(const float (&v)[8], const float f[2], float up, uint4 *high,
                                       uint4 *low)
{
    u32 h[8], l[8];
#pragma unroll
    for (int q = 0; q < 8; q++) {
        halve(v[q], f, up, &h[q], &l[q]);
    }
    *high = make_uint4(h[0] | h[1] << 16, h[2] | h[3] << 16, h[4] | h[5] << 16, h[6] | h[7] << 16);
    *low = make_uint4(l[0] | l[1] << 16, l[2] | l[3] << 16, l[4] | l[5] << 16, l[6] | l[7] << 16);
}

/* Loads eight elements, zeros beyond `end`. */
__device__ __forceinline__ void load_along(float (&v)[8], const float *x, int from, int end, bool aligned)
{
    if (aligned && from + 8 <= end) {
        const float4 a = *(const float4 *)(x + from), b = *(const float4 *)(x + from + 4);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
        return;
    }
#pragma unroll
    for (int q = 0; q < 8; q++) {
        v[q] = from + q < end ? x[from + q] : 0.0f;
    }
}
__device__ __forceinline__ void load_down(float (&v)[8], const float *x, i64 stride, int from, int end)
{
#pragma unroll
    for (int q = 0; q < 8; q++) {
        v[q] = from + q < end ? x[(from + q) * stride] : 0.0f;
    }
}

/* Contiguous rows.  A warp packs a row of at most 1024 elements, a block a longer one.  A thread keeps KEPT
 * pieces of eight elements in registers; further ones are read again. */
extern "C" __global__ void __launch_bounds__(256) pack_lines(const __grid_constant__ pack p)
{
    follow();
    enum { KEPT = 4 };
    __shared__ seen warps[8];
    const int pieces = p.cols_pad / 8, warp = threadIdx.x >> 5;
    const bool whole = pieces > KEPT * 32;      /* the block has one row */
    const int row = whole ? blockIdx.x : blockIdx.x * 8 + warp, mine = whole ? threadIdx.x : threadIdx.x & 31,
              threads = whole ? 256 : 32, end = row < p.n_rows ? p.n_cols : 0, r = row % p.tile;
    const float *x = p.x + blockIdx.z * p.xs[0] + row * p.xs[2];
    const bool aligned = ((u64)x & 15) == 0;
    float kept[KEPT][8], again[8], f[2];
    u32 most = 0, infinite = 0;
#pragma unroll
    for (int u = 0; u < KEPT; u++) {
        load_along(kept[u], x, (mine + u * threads) * 8, end, aligned);
    }
#pragma unroll
    for (int u = 0; u < KEPT; u++) {
        see(kept[u], most, infinite);
    }
    for (int i = mine + KEPT * threads; i < pieces; i += threads) {
        load_along(again, x, i * 8, end, aligned);
        see(again, most, infinite);
    }
    most = over_warp(most);
    infinite = over_warp(infinite);
    if (whole) {
        if ((threadIdx.x & 31) == 0) {
            warps[warp].most = most;
            warps[warp].infinite = infinite;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            most = max(most, warps[i].most);
            infinite |= warps[i].infinite;
        }
    }
    if (mine == 0 && row < p.n_rows) {
        p.rows[(i64)blockIdx.z * p.seen_outer + row] = { most, infinite };
    }
    factors(most, f);
    u16 *to = p.to + (i64)blockIdx.z * p.rows_pad * p.cols_pad * 2 +
              (i64)(row / p.tile) * p.cols_pad * 2 * p.tile + r * TK;
    const auto store = [&](int i, const float (&v)[8]) {
        u16 *at = to + (i64)(i / 8) * 2 * p.tile * TK + ((i & 7) ^ (r & 7)) * 8;
        halve8(v, f, p.up, (uint4 *)at, (uint4 *)(at + p.tile * TK));
    };
    if (row >= p.rows_pad) {
        return;
    }
#pragma unroll
    for (int u = 0; u < KEPT; u++) {
        if (mine + u * threads < pieces) {
            store(mine + u * threads, kept[u]);
        }
    }
    for (int i = mine + KEPT * threads; i < pieces; i += threads) {
        load_along(again, x, i * 8, end, aligned);
        store(i, again);
    }
}

/* Rows whose elements of one column are contiguous.  The blocks of a cluster have 32 rows, and each a share
 * of their columns; they tell each other their largest elements.  Each warp has eight columns of a step of
 * 64.  A thread keeps KEPT steps in registers; further ones are read again. */
extern "C" __global__ void __launch_bounds__(256, 3) pack_columns(const __grid_constant__ pack p)
{
    follow();
    enum { KEPT = 4 };
    extern __shared__ __align__(1024) unsigned char space[];
    uint4 *const halves = (uint4 *)space;                           /* (2, 2, 32, 8): step % 2, low, row */
    u32 *const of_warp = (u32 *)(space + SPLIT_COLUMN_HALVES);          /* (8, 2, 32) */
    u32 *const shared = of_warp + 8 * 64;                               /* (2, 32) */
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = blockIdx.x * 32 + lane,
              steps = p.cols_pad / TK, each = (steps + gridDim.y - 1) / gridDim.y, from = blockIdx.y * each,
              last = min(from + each, steps), end = row < p.n_rows ? min(p.n_cols, last * TK) : 0;
    const float *x = p.x + blockIdx.z * p.xs[0] + row * p.xs[2];
    float kept[KEPT][8], again[8], f[2];
    u32 most = 0, infinite = 0;
#pragma unroll
    for (int u = 0; u < KEPT; u++) {
        load_down(kept[u], x, p.xs[3], (from + u) * TK + warp * 8, end);
    }
#pragma unroll
    for (int u = 0; u < KEPT; u++) {
        see(kept[u], most, infinite);
    }
#pragma unroll 2
    for (int step = from + KEPT; step < last; step++) {
        load_down(again, x, p.xs[3], step * TK + warp * 8, end);
        see(again, most, infinite);
    }
    of_warp[warp * 64 + lane] = most;
    of_warp[warp * 64 + 32 + lane] = infinite;
    __syncthreads();
    if (warp == 0) {
        for (int i = 1; i < 8; i++) {
            most = max(most, of_warp[i * 64 + lane]);
            infinite |= of_warp[i * 64 + 32 + lane];
        }
        shared[lane] = most;
        shared[32 + lane] = infinite;
    }
    meet();
    if (warp == 0) {
        for (unsigned i = 0; i < gridDim.y; i++) {
            most = max(most, of_block(shared, i)[lane]);
            infinite |= of_block(shared, i)[32 + lane];
        }
        of_warp[lane] = most;
        if (blockIdx.y == 0 && row < p.n_rows) {
            p.rows[(i64)blockIdx.z * p.seen_outer + row] = { most, infinite };
        }
    }
    __syncthreads();
    factors(of_warp[lane], f);
    const int out = blockIdx.x * 32 + threadIdx.x / 8, mine = lane * 8 + (warp ^ (lane & 7));
    u16 *to = p.to + (i64)blockIdx.z * p.rows_pad * p.cols_pad * 2 +
              (i64)(out / p.tile) * p.cols_pad * 2 * p.tile + out % p.tile * TK + (threadIdx.x & 7) * 8;
    const auto store = [&](int step, const float (&v)[8]) {
        uint4 *const now = halves + (step & 1) * 512;
        halve8(v, f, p.up, &now[mine], &now[256 + mine]);
        __syncthreads();
        if (out < p.rows_pad) {
            u16 *at = to + (i64)step * 2 * p.tile * TK;
            *(uint4 *)at = now[threadIdx.x];
            *(uint4 *)(at + p.tile * TK) = now[256 + threadIdx.x];
        }
    };
#pragma unroll
    for (int u = 0; u < KEPT; u++) {
        if (from + u < last) {
            store(from + u, kept[u]);
        }
    }
#pragma unroll 1
    for (int step = from + KEPT; step < last; step++) {
        load_down(again, x, p.xs[3], step * TK + warp * 8, end);
        store(step, again);
    }
    leave();
}

/* ---- images and filters ---- */

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
        halve(q < p.n_cols ? x[q * p.xs[3]] : 0.0f, f, p.up, &high[q], &low[q]);
    }
#pragma unroll
    for (int q = 0; q < 8; q += 4) {
        if (q < p.cols_pad) {
            *(uint2 *)(to + q) = make_uint2(high[q] | high[q + 1] << 16, high[q + 2] | high[q + 3] << 16);
            *(uint2 *)(to + q + p.low) = make_uint2(low[q] | low[q + 1] << 16, low[q + 2] | low[q + 3] << 16);
        }
    }
}

/* Filters: for each phase a row for each channel of the result, ordered by tap, then by the other channels;
 * and the table of taps.  A block packs a row of all phases; `kept` is read instead of w if there is room. */
__device__ __forceinline__ void pack_filter(const filters &p, float *kept, int row, int group)
{
    __shared__ u32 most;
    const int all = p.k[0] * p.k[1], count = row < p.n_rows ? all * p.channels : 0,
              phases = p.axis[0].phases * p.axis[1].phases;
    const float *w = p.w + group * p.group + row * p.row;
    if (threadIdx.x == 0) {
        most = 0;
    }
    __syncthreads();
    u32 mine = 0;
#pragma unroll 4
    for (int e = threadIdx.x; e < count; e += 256) {
        const int t = e % all, c = e / all;
        const float v = w[c * p.channel + t / p.k[1] * p.tap[0] + t % p.k[1] * p.tap[1]];
        const u32 bits = __float_as_uint(v) & 0x7fffffff;
        mine = bits < 0x7f800000 && bits > mine ? bits : mine;
        if (p.kept) {
            kept[e] = v;
        }
    }
    mine = over_warp(mine);
    if ((threadIdx.x & 31) == 0) {
        atomicMax(&most, mine);
    }
    __syncthreads();
    float f[2];
    factors(most, f);
    for (int phase = 0; phase < phases; phase++) {
        const mc_split_phase &y = p.axis[0].at[phase / p.axis[1].phases],
                             &x = p.axis[1].at[phase % p.axis[1].phases];
        const int taps = y.taps * x.taps, wide = x.taps ? x.taps : 1,
                  end = (taps * p.channels_pad + TK - 1) / TK * TK, units = p.k_pad / p.unit;
        u16 *to = p.to + (i64)(group * phases + phase) * p.rows_pad * p.k_pad * 2;
        for (int e = threadIdx.x; e < end; e += 256) {
            const int t = e / p.channels_pad, c = e % p.channels_pad;
            int a0 = y.tap + t / wide * p.axis[0].tap_step, a1 = x.tap + t % wide * p.axis[1].tap_step;
            a0 = p.reverse ? p.k[0] - 1 - a0 : a0;
            a1 = p.reverse ? p.k[1] - 1 - a1 : a1;
            const bool is = row < p.n_rows && t < taps && c < p.channels;
            const float v = !is      ? 0.0f
                            : p.kept ? kept[c * all + a0 * p.k[1] + a1]
                                     : w[c * p.channel + a0 * p.tap[0] + a1 * p.tap[1]];
            u16 *dst = in_tile(to, p.tile, p.k_pad, row, e);
            u32 high, low;
            halve(v, f, SPLIT_UP, &high, &low);
            dst[0] = (u16)high;
            dst[p.tile * TK] = (u16)low;
        }
        for (int q = threadIdx.x; row == 0 && group == 0 && q < units; q += 256) {
            const int t = q * p.unit / p.channels_pad, c = q * p.unit % p.channels_pad;
            const int d0 = y.shift + t / wide * p.axis[0].shift_step,
                      d1 = x.shift + t % wide * p.axis[1].shift_step;
            p.taps[phase * units + q] =
                t < taps ? make_int2(d0 * p.line + d1 * p.position + c, (int)((u32)d0 << 16 | (d1 & 0xffff)))
                         : make_int2(0, SPLIT_OUTSIDE);
        }
    }
    if (threadIdx.x == 0 && row < p.n_rows) {
        p.rows[(i64)group * p.n_rows + row] = { most, 0 };
    }
}

/* Packs filters, and finds the largest elements of images: both in one launch. */
extern "C" __global__ void __launch_bounds__(256) pack_filters(const __grid_constant__ images p)
{
    follow();
    extern __shared__ float kept[];
    const int rows = p.filters.rows_pad * p.groups, block = blockIdx.x - rows;
    if (block < 0) {
        pack_filter(p.filters, kept, blockIdx.x % p.filters.rows_pad, blockIdx.x / p.filters.rows_pad);
    } else {
        const int down = p.look[0], right = p.look[1];
        look_at(p.images, block % down, down, block / down % right, right, block / down / right);
    }
}
