/* split.cu: float32 products on Hopper's tensor cores, with operands split into pairs of halves.
 *
 * Each x is scaled by a power of two of its row, x' = x * 2^e with the row's largest below 2^15, and kept as
 *
 *   high = half(x'),  low = half((x' - high) * 2^11)         22 bits of x, down to 2^-28 of the row's largest
 *
 *   a b = (high high + 2^-11 (high low + low high)) * 2^-(ea + eb)         low low lies below float32's last bit
 *
 * Tensor cores cut their sums off instead of rounding: high products are summed over 64 terms only and then added
 * up in float32 proper; the corrections have an accumulator of their own, in which that does not matter.
 *
 * MODE says how the operands of C = A B lie:
 *   0   matrices: rows of A, columns of B, each with k running fastest
 *   1   A is windows of images (image, place, channel), gathered as they are needed; k is tap by tap, channels fastest
 *   2   the gradient of filters: k is images and places, A is y with channels fastest, B is x shifted by a tap
 *
 * A block makes TM x TN of C with two groups of four warps.  Tiles lie in shared memory in rows of 128 bytes whose
 * 16-byte pieces are permuted by row % 8, as the tensor cores read them. */
typedef unsigned u32;
typedef unsigned short u16;
enum { TM = 128, TK = 64, SLOTS = 3, THREADS = 256, ROW = 128 };

struct seen {                   /* of a row's elements */
    u32 most;                   /* the bits of the largest finite |x| */
    u32 infinite;
};
struct where {                  /* an element of C or C0 */
    i64 batch, group, row, col; /* rows come in groups: images */
};
struct args {
    const u16 *a, *b;           /* high halves; low ones lie a_low, b_low behind */
    i64 a_low, b_low, a_batch, b_batch;
    const seen *a_seen, *b_seen;
    i64 a_seen_batch, b_seen_batch;
    float *c, *partial;         /* partial: of each split; 0: there is one */
    const float *c0, *bias;
    where cs, c0s;
    i64 bias_batch;
    int m, n, steps, splits, batch;
    int a_seen_rows, b_seen_cols, group_rows;  /* rows that share one */
    float alpha, beta;
    int act;
    /* MODE 0: what infinities are multiplied by */
    const float *plain_a, *plain_b;
    i64 as[3], bs[3];
    int k;
    /* MODE 1 and 2 */
    const int2 *taps;           /* MODE 1, for UNIT channels each: how far on, and the shift along both axes */
    int in[2], out[2], stride[2], pad[2], dilation[2], taps1, taps_all;
    int channels, channels_pad, y_pad, image; /* image: halves from one to the next of A's (MODE 1), of x (MODE 2) */
    i64 y_image;
    i64 tap_stride[2];          /* MODE 2: of the result */
};

__device__ __forceinline__ int exponent(u32 most)
{
    const int e = (int)(most >> 23);
    return most ? 14 + 127 - (e ? e : 1) : 0;
}

#ifdef PACK
/* ---- operands into halves ---- */

struct pack {
    const float *x;
    u16 *to;
    seen *rows;
    i64 low;                    /* from high to low halves */
    i64 xs[4];                  /* outer and inner batch, row, column */
    int inner, n_rows, n_cols, rows_pad, cols_pad;
    int seen_inner, seen_outer, seen_row; /* the place of a row in rows[] */
};

/* 64 rows and 64 columns of x into shared memory, read along the axis that lies side by side. */
__device__ __forceinline__ void fetch(const pack &p, float (*tile)[65], int outer, int inner, int row, int col)
{
    const bool by_row = p.xs[2] == 1 && p.xs[3] != 1;
    const float *x = p.x + outer * p.xs[0] + inner * p.xs[1];
    for (int e = threadIdx.x; e < 64 * 64; e += 256) {
        const int i = by_row ? e % 64 : e / 64, j = by_row ? e / 64 : e % 64;
        tile[i][j] = row + i < p.n_rows && col + j < p.n_cols ? x[(i64)(row + i) * p.xs[2] + (i64)(col + j) * p.xs[3]] : 0.0f;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256) look(const __grid_constant__ pack p)
{
    __shared__ float tile[64][65];
    const int outer = blockIdx.z / p.inner, inner = blockIdx.z % p.inner, row = blockIdx.x * 64;
    const int i = threadIdx.x / 4, part = threadIdx.x % 4;
    u32 most = 0, infinite = 0;
    for (int col = blockIdx.y * 64; col < p.n_cols; col += gridDim.y * 64) {
        fetch(p, tile, outer, inner, row, col);
        for (int j = part; j < 64; j += 4) {
            const u32 bits = __float_as_uint(tile[i][j]) & 0x7fffffff;
            infinite |= bits == 0x7f800000;
            most = bits < 0x7f800000 && bits > most ? bits : most;
        }
        __syncthreads();
    }
    seen *s = p.rows + outer * p.seen_outer + inner * p.seen_inner + (row + i) * p.seen_row;
    if (row + i < p.n_rows) {
        most ? atomicMax(&s->most, most) : 0;
        infinite ? atomicOr(&s->infinite, 1) : 0;
    }
}

__device__ __forceinline__ void halve(float x, u32 most, u16 *high, u16 *low)
{
    const float scaled = ldexpf(x, exponent(most));
    const half h = put<half>(scaled);
    const float rest = (scaled - get<float>(h)) * 2048.0f;
    *high = h.bits;
    *low = (h.bits & 0x7c00) == 0x7c00 ? 0 : put<half>(rest).bits;
}

extern "C" __global__ void __launch_bounds__(256) pack_rows(const __grid_constant__ pack p)
{
    __shared__ float tile[64][65];
    const int outer = blockIdx.z / p.inner, inner = blockIdx.z % p.inner, row = blockIdx.x * 64, col = blockIdx.y * 64;
    fetch(p, tile, outer, inner, row, col);
    u16 *to = p.to + (i64)blockIdx.z * p.rows_pad * p.cols_pad;
    for (int e = threadIdx.x; e < 64 * 32; e += 256) {
        const int i = e / 32, j = e % 32 * 2;
        if (row + i >= p.rows_pad || col + j >= p.cols_pad) {
            continue;
        }
        const seen *s = p.rows + outer * p.seen_outer + inner * p.seen_inner + (i64)(row + i < p.n_rows ? row + i : 0) * p.seen_row;
        u16 high[2], low[2];
        halve(tile[i][j], s->most, &high[0], &low[0]);
        halve(tile[i][j + 1], s->most, &high[1], &low[1]);
        u32 *at = (u32 *)(to + (i64)(row + i) * p.cols_pad + col + j);
        at[0] = high[0] | (u32)high[1] << 16;
        *(u32 *)((u16 *)at + p.low) = low[0] | (u32)low[1] << 16;
    }
}

/* Filters: a row for each result's channel, tap by tap, the other channels fastest; and the table of taps. */
struct filters {
    const float *w;
    u16 *to;
    seen *rows;
    int2 *taps;
    i64 low, group, row, channel, tap[2];
    int n_rows, rows_pad, channels, channels_pad, k[2], k_pad, reverse;
    int unit, shift[2], line, place;    /* of a tap: dilation; in halves: how far lines and places of the images are apart */
};

extern "C" __global__ void __launch_bounds__(256) pack_filters(const __grid_constant__ filters p)
{
    __shared__ u32 most;
    const int row = blockIdx.x, taps = p.k[0] * p.k[1];
    const float *w = p.w + blockIdx.y * p.group + row * p.row;
    u16 *to = p.to + ((i64)blockIdx.y * p.rows_pad + row) * p.k_pad;
    seen *s = p.rows + (i64)blockIdx.y * p.n_rows + row;
    if (threadIdx.x == 0) {
        most = 0;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < taps * p.channels && row < p.n_rows; e += 256) {
        const int t = e % taps, c = e / taps;
        const u32 bits = __float_as_uint(w[c * p.channel + t / p.k[1] * p.tap[0] + t % p.k[1] * p.tap[1]]) & 0x7fffffff;
        atomicMax(&most, bits < 0x7f800000 ? bits : 0);
    }
    __syncthreads();
    for (int e = threadIdx.x; e < p.k_pad; e += 256) {
        const int t = e / p.channels_pad, c = e % p.channels_pad;
        const int a0 = t / p.k[1], a1 = t % p.k[1];
        const i64 at = c * p.channel + (p.reverse ? p.k[0] - 1 - a0 : a0) * p.tap[0] + (p.reverse ? p.k[1] - 1 - a1 : a1) * p.tap[1];
        const float x = row < p.n_rows && t < taps && c < p.channels ? w[at] : 0.0f;
        halve(x, most, to + e, to + e + p.low);
    }
    if (threadIdx.x == 0 && row < p.n_rows) {
        s->most = most;
        s->infinite = 0;
    }
    for (int q = threadIdx.x; row == 0 && blockIdx.y == 0 && q < p.k_pad / p.unit; q += 256) {
        const int t = q * p.unit / p.channels_pad, c = q * p.unit % p.channels_pad;
        const int d0 = t / p.k[1] * p.shift[0], d1 = t % p.k[1] * p.shift[1];
        p.taps[q] = t < taps ? make_int2(d0 * p.line + d1 * p.place + c, d0 << 16 | d1) : make_int2(0, 0x40004000);
    }
}

#else
/* ---- elements of the result ---- */

/* v is the sum of a row and a column as they were scaled. */
__device__ void finished(const args &p, int batch, int row, int col, float v)
{
    i64 tap = 0;
    int column = col;
#if MODE == 2
    const int wide = (p.channels + TN - 1) / TN * TN, t = col / wide;
    column = col % wide;
    tap = t / p.taps1 * p.tap_stride[0] + t % p.taps1 * p.tap_stride[1];
    if (column >= p.channels) {
        return;
    }
#endif
    const int group = row / p.group_rows, place = row % p.group_rows;
    const seen *a = p.a_seen + batch * p.a_seen_batch + row / p.a_seen_rows, *b = p.b_seen + batch * p.b_seen_batch + col / p.b_seen_cols;
    v = ldexpf(v, -(exponent(a->most) + exponent(b->most)));
#if MODE == 0
    if (a->infinite | b->infinite) {    /* halves of an infinity know no signs to meet zeros with */
        v = 0;
        for (int k = 0; k < p.k; k++) {
            v = fmaf(p.plain_a[batch * p.as[0] + row * p.as[1] + k * p.as[2]], p.plain_b[batch * p.bs[0] + k * p.bs[1] + col * p.bs[2]], v);
        }
    }
#endif
    v *= p.alpha;
    if (p.c0) {
        v += p.beta * p.c0[batch * p.c0s.batch + group * p.c0s.group + place * p.c0s.row + column * p.c0s.col + tap];
    }
    if (p.bias) {
        v += p.bias[batch * p.bias_batch + column];
    }
    p.c[batch * p.cs.batch + group * p.cs.group + place * p.cs.row + column * p.cs.col + tap] = finish(v, p.act);
}

extern "C" __global__ void __launch_bounds__(256) add_up(const __grid_constant__ args p)
{
    const i64 each = (i64)p.m * p.n, count = each * p.batch;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        float v = 0;
        for (int s = 0; s < p.splits; s++) {
            v += p.partial[s * count + e];
        }
        const int row = (int)(e % each / p.n);
        finished(p, (int)(e / each), row, (int)(e % each - (i64)row * p.n), v);
    }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* ---- shared memory ---- */

enum { A_BYTES = TM * ROW, B_BYTES = TN * ROW, SLOT = 2 * (A_BYTES + B_BYTES) };

__device__ __forceinline__ void copy(u32 to, const u16 *from, bool there)
{
#if MODE == 1 && UNIT == 4
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(there ? 8 : 0) : "memory");
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
#endif
}
__device__ __forceinline__ void copy16(u32 to, const u16 *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

__device__ __forceinline__ u64 tile_at(u32 address, bool k_fastest)
{
    const u64 leading = k_fastest ? 1 : TK * ROW >> 4, stride = 8 * ROW >> 4;
    return (u64)((address & 0x3ffff) >> 4) | leading << 16 | stride << 32 | (u64)1 << 62;
}

/* Rows of halves with k fastest, one after another. */
template <int ROWS> __device__ __forceinline__ void load_rows(u32 to, const u16 *from, i64 low, i64 length, int step)
{
    const int piece = threadIdx.x & 7, first = threadIdx.x >> 3;
    const u16 *x = from + first * length + step * TK + piece * 8;
    to += first * ROW + ((piece ^ (first & 7)) << 4);
#pragma unroll
    for (int r = 0; r < ROWS; r += THREADS / 8) {
        copy16(to + r * ROW, x + r * length, true);
        copy16(to + r * ROW + ROWS * ROW, x + r * length + low, true);
    }
}

#if MODE == 1
struct window {                 /* where the windows of this thread's rows begin */
    int at[TM / 32];            /* in units of UNIT halves */
    u32 corner[TM / 32];        /* line and place, 16 bits each; outside: far away */
};

__device__ __forceinline__ void windows(const args &p, window &w, int row)
{
#pragma unroll
    for (int i = 0; i < TM / 32; i++) {
        const int r = row + (threadIdx.x >> 3) + i * 32, places = p.out[0] * p.out[1];
        const int image = r / places, u = r % places;
        const int y = u / p.out[1] * p.stride[0] - p.pad[0], x = u % p.out[1] * p.stride[1] - p.pad[1];
        w.at[i] = r < p.m ? (int)((image * (i64)p.image + ((i64)y * p.in[1] + x) * p.channels_pad) / UNIT) : 0;
        w.corner[i] = r < p.m ? (u32)(y & 0xffff) << 16 | (u32)(x & 0xffff) : 0x80008000;
    }
}

__device__ __forceinline__ void load_windows(const args &p, u32 to, const u16 *a, const window &w, int step)
{
    const int piece = threadIdx.x & 7, first = threadIdx.x >> 3;
    to += first * ROW + ((piece ^ (first & 7)) << 4);
#pragma unroll
    for (int u = 0; u < 8 / UNIT; u++) {
        const int2 tap = p.taps[(step * TK + piece * 8) / UNIT + u];
#pragma unroll
        for (int i = 0; i < TM / 32; i++) {
            const u32 spot = __vadd2(w.corner[i], (u32)tap.y);
            const bool there = (spot >> 16) < (u32)p.in[0] && (spot & 0xffff) < (u32)p.in[1];
            const u16 *x = a + (there ? (i64)w.at[i] * UNIT + tap.x : 0);
            copy(to + i * 32 * ROW + u * 8, x, there);
            copy(to + i * 32 * ROW + u * 8 + A_BYTES, x + p.a_low, there);
        }
    }
}
#endif

#if MODE == 2
/* 64 places of y, and of x as a tap sees it: rows are places, in blocks of 64 channels. */
__device__ __forceinline__ void load_places(const args &p, u32 to, const u16 *y, const u16 *x, int f, int c, int t, int step)
{
    const int piece = threadIdx.x & 7, first = threadIdx.x >> 3, places = p.out[0] * p.out[1];
    const int t0 = t / p.taps1 * p.dilation[0] - p.pad[0], t1 = t % p.taps1 * p.dilation[1] - p.pad[1];
#pragma unroll
    for (int i = 0; i < TK / 32; i++) {
        const int r = first + i * 32, k = step * TK + r;
        const int image = k / places, u = k - image * places;
        const int line = u / p.out[1], row = line * p.stride[0] + t0, col = (u - line * p.out[1]) * p.stride[1] + t1;
        const bool is = k < p.k, there = is && (u32)row < (u32)p.in[0] && (u32)col < (u32)p.in[1];
        const u16 *from_y = y + (is ? image * p.y_image + (i64)u * p.y_pad : 0);
        const u16 *from_x = x + (there ? image * (i64)p.image + ((i64)row * p.in[1] + col) * p.channels_pad : 0);
        const u32 at = to + r * ROW + ((piece ^ (r & 7)) << 4);
#pragma unroll
        for (int block = 0; block < TM / 64; block++) {
            const int j = f + block * 64 + piece * 8;
            const bool ok = is && j < p.y_pad;
            copy16(at + block * TK * ROW, from_y + (ok ? j : 0), ok);
            copy16(at + block * TK * ROW + A_BYTES, from_y + (ok ? j : 0) + p.a_low, ok);
        }
#pragma unroll
        for (int block = 0; block < TN / 64; block++) {
            const int j = c + block * 64 + piece * 8;
            const bool ok = there && j < p.channels_pad;
            copy16(at + 2 * A_BYTES + block * TK * ROW, from_x + (ok ? j : 0), ok);
            copy16(at + 2 * A_BYTES + block * TK * ROW + B_BYTES, from_x + (ok ? j : 0) + p.b_low, ok);
        }
    }
}
#endif

/* ---- the product ---- */

enum { R = TN / 2 };            /* of a thread's accumulators */
__device__ __forceinline__ void settle(float (&d)[R])
{
#pragma unroll
    for (int i = 0; i < R; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}

/* d (+)= the product of 64 rows of one tile with all of another; `times` 16 terms, wgmma() is made with the text. */
__device__ __forceinline__ void multiply(float (&d)[R], u64 a, u64 b, int keep)
{
    enum { ON = MODE == 2 ? 16 * ROW >> 4 : 32 >> 4 };
#pragma unroll
    for (int i = 0; i < TK / 16; i++) {
        wgmma(d, a + i * ON, b + i * ON, keep || i > 0);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) product(const __grid_constant__ args p)
{
    extern __shared__ __align__(1024) unsigned char space[];
    const u32 slots = ((u32)__cvta_generic_to_shared(space) + 1023) & ~1023u;
    /* Neighbours share rows: eight tiles down, then to the right. */
    const int down = (p.m + TM - 1) / TM, right = gridDim.x / down, band = blockIdx.x / (8 * right) * 8;
    const int high = down - band < 8 ? down - band : 8, in_band = blockIdx.x - band * right;
    const int row = (band + in_band % high) * TM, col = in_band / high * TN;
    const int batch = blockIdx.z, each = (p.steps + p.splits - 1) / p.splits;
    const int from = blockIdx.y * each, end = from + each < p.steps ? from + each : p.steps;
    const int wg = threadIdx.x >> 7;
    const u16 *a = p.a + batch * p.a_batch, *b = p.b + batch * p.b_batch;
    float sum[R], high_sum[R], low_sum[R];
#pragma unroll
    for (int i = 0; i < R; i++) {
        sum[i] = low_sum[i] = high_sum[i] = 0;
    }
#if MODE == 1
    window w;
    windows(p, w, row);
#elif MODE == 2
    const int wide = (p.channels + TN - 1) / TN * TN;
#endif
    const auto load = [&](int step) {
        const u32 to = slots + step % SLOTS * SLOT;
        if (step < end) {
#if MODE == 0
            load_rows<TM>(to, a + (i64)row * p.steps * TK, p.a_low, (i64)p.steps * TK, step);
#elif MODE == 1
            load_windows(p, to, a, w, step);
#endif
#if MODE == 2
            load_places(p, to, a, b, row, col % wide, col / wide, step);
#else
            load_rows<TN>(to + 2 * A_BYTES, b + (i64)col * p.steps * TK, p.b_low, (i64)p.steps * TK, step);
#endif
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    load(from);
    for (int step = from; step < end; step++) {
        asm volatile("cp.async.wait_group 0;\n\tfence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        const u32 at = slots + step % SLOTS * SLOT, half_a = wg * 64 * ROW;
        const u64 a_high = tile_at(at + half_a, MODE != 2), a_low = tile_at(at + A_BYTES + half_a, MODE != 2);
        const u64 b_high = tile_at(at + 2 * A_BYTES, MODE != 2), b_low = tile_at(at + 2 * A_BYTES + B_BYTES, MODE != 2);
        settle(high_sum);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(high_sum, a_high, b_high, 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        multiply(low_sum, a_high, b_low, 1);
        multiply(low_sum, a_low, b_high, 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        load(step + 1);
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        settle(high_sum);
#pragma unroll
        for (int i = 0; i < R; i++) {
            sum[i] += high_sum[i];
        }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    settle(low_sum);

    const int lane = threadIdx.x & 31, r0 = row + wg * 64 + (threadIdx.x >> 5 & 3) * 16 + (lane >> 2);
    float *const to = p.partial ? p.partial + (i64)(blockIdx.y * p.batch + batch) * p.m * p.n : 0;
#pragma unroll
    for (int i = 0; i < R; i++) {
        const int r = r0 + (i & 2) * 4, c = col + i / 4 * 8 + (lane & 3) * 2 + (i & 1);
        const float v = sum[i] + low_sum[i] * 0x1p-11f;
        if (r < p.m && c < p.n) {
            if (to) {
                to[(i64)r * p.n + c] = v;
            } else {
                finished(p, batch, r, c, v);
            }
        }
    }
}
#else
extern "C" __global__ void product(const __grid_constant__ args) {}
#endif
#endif
