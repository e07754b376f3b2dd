/* tensor_weights.cu: the gradient of filters for few channels on tensor cores (tensor.cu).
 *
 * A warp has S16 sixteens of filters times EK eights of taps, whose sums stay in its registers until the
 * last tile of its block.  ACROSS warps have all taps; each of DOWN such sets has every DOWN-th STEP
 * positions of a tile.  The warps of a set read the same part of y, from device memory to the registers of
 * products.  Their order of filters and positions is free, so a lane takes contiguous elements: with
 * BESIDE U filters, else LANE positions.
 *
 * WHOLE: y may be read in words.  The sums of a block's sets are added in order; `add` adds those of the
 * blocks. */
enum {
    WARPS = ACROSS * DOWN,
    RAW = 4 * S16,
    FILTERS = 16 * S16,
    COLUMNS = ACROSS * EK * 8,
    HELD = BESIDE ? U * sizeof(T) / 4 : 2
};

/* The filter that is row r of sixteen m. */
__device__ __forceinline__ int filter_of(int m, int r)
{
    return BESIDE ? m / (U / 2) * 8 * U + r % 8 * U + m % (U / 2) * 2 + r / 8 : m * 16 + r;
}

/* ---- y ---- */

__device__ __forceinline__ u32 bits_of(half v)
{
    return v.bits;
}
__device__ __forceinline__ u32 bits_of(bf16 v)
{
    return v.bits;
}
__device__ __forceinline__ u32 bits_of(float v)
{
    return __float_as_uint(v);
}

/* Words of contiguous elements, of which `have` are inside; Whole: all or none. */
template <bool Whole> __device__ __forceinline__ words<HELD> held(const T *from, int have)
{
    enum { PER_WORD = 4 / sizeof(T) };
    words<HELD> w = {};
    if (Whole) {
        return have > 0 ? *(const words<HELD> *)from : w;
    }
#pragma unroll
    for (int i = 0; i < HELD * PER_WORD; i++) {
        w.v[i / PER_WORD] |= i < have ? bits_of(from[i]) << i % PER_WORD * 16 : 0;
    }
    return w;
}

/* LANE positions of a filter, on any lines. */
__device__ __forceinline__ words<HELD> scattered(const args &p, const tile &a, int position, int have, int f)
{
    words<HELD> w = {};
#pragma unroll
    for (int i = 0; i < LANE; i++) {
        w.v[i * 2 / LANE % HELD] |= i < have ? bits_of(p.y[result_at(p, a, position + i) + f * p.ys[1]])
                                                   << (HALVES ? i % 2 * 16 : 0)
                                             : 0;
    }
    return w;
}

/* The lane's part of STEP positions of all filters, zeros beyond the last. */
template <bool Whole>
__device__ __forceinline__ void get_y(const args &p, const tile &a, u32 (&raw)[RAW], int position0,
                                      int positions, int f0)
{
    const int number = threadIdx.x % 32 / 4, position = position0 + threadIdx.x % 4 * LANE;
    /* all: a lane's positions are all inside or all outside; near: they are evenly spaced */
    const bool all = OW % LANE == 0, near = DENSE || all;
    i64 at = result_at(p, a, position < positions ? position : 0);
    const i64 filter = BESIDE ? 0 : (f0 + number) * p.ys[1];
#pragma unroll
    for (int e = 0; e < RAW / HELD; e++) {
        const int i = BESIDE ? e % LANE : 0, element = position + i,
                  f = f0 + (BESIDE ? e / LANE * 8 * U + number * U : e * 8 + number);
        const bool in = (all ? position : element) < positions && f < p.f;
        words<HELD> w;
        if (!near && i > 0) {
            at = result_at(p, a, in ? element : 0);
        }
        if (BESIDE) {
            w = held<Whole>(p.y + at + (near ? i * p.ys[3] : 0) + f, in ? p.f - f : 0);
        } else if (Whole) {
            w = held<true>(p.y + at + filter + e * (8 * p.ys[1]), in);
        } else {
            w = scattered(p, a, position, in ? positions - position : 0, f);
        }
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            raw[e * HELD + j] = w.v[j];
        }
    }
}

/* Rows of a product: sixteen m. */
__device__ __forceinline__ void rows_of(u32 (&a)[4], const u32 (&raw)[RAW], int m)
{
    if (BESIDE && HALVES) {
        const int first = m / (U / 2) * LANE * HELD + m % (U / 2);
#pragma unroll
        /* adjacent positions of one filter, from registers that hold adjacent filters */
        for (int i = 0; i < 2; i++) {
            const u32 even = raw[first + 2 * i * HELD], odd = raw[first + (2 * i + 1) * HELD];
            a[2 * i] = (even & 0xffff) | odd << 16;
            a[2 * i + 1] = even >> 16 | (odd & 0xffff0000);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const u32 v = raw[BESIDE ? (m / (U / 2) * LANE + i / 2) * HELD + m % (U / 2) * 2 + i % 2
                                 : (2 * m + i % 2) * 2 + i / 2];
        a[i] = HALVES ? v : cell_of(__uint_as_float(v));
    }
}

/* ---- windows ---- */

struct spot {                   /* a lane's positions: their windows, and which of them are inside */
    int base[LANE];
    u32 mask[2];
};

/* From a position's window to that of the i-th position after it, which is in the next line if the line
 * ends before. */
__device__ __forceinline__ int next_window(int first, int i)
{
    const bool below = OW % LANE != 0 && first % OW + i >= OW;
    return (i * SW * MIXED + (below ? SH * PITCH - OW * SW * MIXED : 0)) * (int)sizeof(cell);
}

__device__ __forceinline__ spot spot_at(const args &p, int position0, int positions)
{
    const int first = position0 + threadIdx.x % 4 * LANE, element = min(first, positions - 1);
    const bool near = OW % LANE == 0 || (!MANY && OW >= LANE);
    spot s;
    cell in[LANE];
    s.base[0] = window_at(p, element);
#pragma unroll
    for (int i = 0; i < LANE; i++) {
        in[i] = OW % STEP == 0 || first + i < positions ? (cell)~0u : (cell)0;
        s.base[i] = near ? s.base[0] + next_window(element, i) : window_at(p, min(first + i, positions - 1));
    }
    join(s.mask, in);
    return s;
}

__device__ __forceinline__ void multiply_all(float (&sum)[S16][EK][4], const u32 (&y)[S16][4], const cell *x,
                                             const spot &at, const int (&shift)[EK])
{
#pragma unroll
    for (int e = 0; e < EK; e++) {
        cell v[LANE];
        u32 b[2];
#pragma unroll
        for (int i = 0; i < LANE; i++) {
            v[i] = cell_at(x, at.base[i] + shift[e]);
        }
        join(b, v);
#pragma unroll
        for (int m = 0; m < S16; m++) {
            multiply_as(T(), sum[m][e], y[m], b[0] & at.mask[0], b[1] & at.mask[1]);
        }
    }
}

/* ---- sums ---- */

/* Adds this warp's sums to the block's (filter, tap). */
__device__ __forceinline__ void gather_sums(const float (&sum)[S16][EK][4], float *total, int across,
                                            bool first)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < S16 * EK * 4; e++) {
        const int m = e / 4 / EK, i = e % 4;
        float *const at = total + filter_of(m, lane / 4 + i / 2 * 8) * COLUMNS +
                          (across * EK + e / 4 % EK) * 8 + lane % 4 * 2 + i % 2;
        *at = sum[m][e / 4 % EK][i] + (first ? 0.f : *at);
    }
}

/* ---- all tiles of a block ---- */

template <bool Whole>
__device__ __forceinline__ void multiply_tiles(const args &p, float (&sum)[S16][EK][4], cell *x, int across,
                                               int down, int f0)
{
    int shift[EK];
#pragma unroll
    for (int e = 0; e < EK; e++) {
        shift[e] = tap_at(p, min((across * EK + e) * 8 + (int)threadIdx.x % 32 / 4, TAPS - 1));
    }
    for (int t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        const tile a = tile_at(p, t);
        const int positions = a.images * a.rows * OW;
        u32 raw[RAW];
        get_y<Whole>(p, a, raw, down * STEP, positions, f0);
        __syncthreads();        /* all threads are done with the previous tile */
        load(p, a, x);
        __syncthreads();
        for (int position0 = down * STEP; position0 < positions; position0 += DOWN * STEP) {
            u32 y[S16][4];
#pragma unroll
            for (int m = 0; m < S16; m++) {
                rows_of(y[m], raw, m);
            }
            /* in flight while the current ones are multiplied */
            get_y<Whole>(p, a, raw, position0 + DOWN * STEP, positions, f0);
            multiply_all(sum, y, x, spot_at(p, position0, positions), shift);
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) weights(const __grid_constant__ args p)
{
    follow();
    extern __shared__ uint4 shared[];
    float *const total = (float *)shared;
    const int across = threadIdx.x / 32 % ACROSS, down = threadIdx.x / 32 / ACROSS, f0 = blockIdx.y * FILTERS;
    float sum[S16][EK][4] = {};
    if (WHOLE && p.whole) {
        multiply_tiles<WHOLE>(p, sum, (cell *)shared, across, down, f0);
    } else {
        multiply_tiles<false>(p, sum, (cell *)shared, across, down, f0);
    }
    for (int d = 0; d < DOWN; d++) {
        __syncthreads();
        if (d == down) {
            gather_sums(sum, total, across, d == 0);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < min(FILTERS, p.f - f0) * TAPS; e += blockDim.x) {
        const int f = e / TAPS, k = e - f * TAPS;
        p.parts[((i64)blockIdx.x * p.f + f0 + f) * TAPS + k] = total[f * COLUMNS + k];
    }
}

/* The sum of a result in float32; NaN stays. */
__device__ __noinline__ float plain_sum(const args &p, int f, int k)
{
    float sum = 0;
    for (i64 e = 0; e < (i64)p.n * OH * OW && sum == sum; e++) {
        const int v = (int)(e % OW), u = (int)(e / OW % OH), r = u * SH - p.pad[0] + k / KW % KH,
                  q = v * SW - p.pad[1] + k % KW;
        const int n = (int)(e / OW / OH), plane = read_by(n, k / (KH * KW) % KD);
        if (plane >= 0 && r >= 0 && r < p.in[0] && q >= 0 && q < p.in[1]) {
            const i64 at = x_plane(p, plane) + k / (KD * KH * KW) * p.xs[1] + r * p.xs[2] + q * p.xs[3];
            sum += get<float>(p.x[at]) *
                   get<float>(p.y[y_plane(p, n) + f * p.ys[1] + u * p.ys[2] + v * p.ys[3]]);
        }
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    add_blocks(p, [&](int f, int k, float sum) {
        const i64 at = filter_at(p, f, k);
        if (broken(sum)) {
            sum = plain_sum(p, f, k);
        }
        p.w[at] = put<T>(p.alpha * sum + (HAS_C0 ? p.beta * get<float>(p.c0[at]) : 0.f));
    });
}
