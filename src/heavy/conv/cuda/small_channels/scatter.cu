/* scatter.cu: the gradient of the inputs of convolutions of few channels, on tensor cores.
 *
 * For each position v along a line of y, the contributions to a line r of x are first summed by columns of
 * taps:
 *
 *     z[v, (c, b)] = sum of y[f, u, v] w[f, c, a, b]  over filters f, and taps a with r + pad = SH u + a
 *
 * These are products of y's lines as stored with matrices of filters; only C * KW is padded, to eights.
 * Then x[c, r, q] is the sum of the KW numbers z[v, (c, b)] for which q + pad = SW v + b.
 *
 * A block has ROWS lines of x, of IMAGES images.  The lines of y that contribute to them pass through a
 * ring in shared memory once, CF filters at a time.  If the ring has more than two slots, half of the
 * warps issue their loads after they have multiplied, so that tensor cores do not idle while all warps
 * load.  A warp has MT sixteens of positions of y, ACROSS of which are a line, and R lines of x, whose z
 * stay in registers until the last line of y has passed.  PW warps have all positions, GW sets of them all
 * lines.  Each set has every GW-th line, so that a line of y gives work to as many sets as possible.
 *
 * Compiled in beside these: OH x OW positions of y; UNIT: bytes of y that can be fetched at once; PITCH:
 * cells of y's lines in the ring, and ZPITCH: of z's; NE: eights of C * KW.  BESIDE: y's filters are
 * contiguous, and PITCH cells of the ring are those of a position (floats only). */
#include "heavy/conv/cuda/small_channels/small_channels_args.h"
typedef mc_small_channels_spread_args args;

enum { WARPS = PW * GW, THREADS = 32 * WARPS, ROWS = GW * R, STEPS = CF / STEP, ACROSS = (OW + 15) / 16 };
/* FRAGMENTS: of one row of taps */
enum {
    LINE = BESIDE ? ACROSS * 16 * PITCH : CF * PITCH,
    SLOT = IMAGES * LINE,
    COLUMNS = C * KW,
    LATE = SLOTS > 2,
    FRAGMENTS = STEPS * NE * 32
};

/* ---- fragments of filters ---- */

__device__ __forceinline__ cell filter_cell(const args &p, int f, int column, int kd, int a)
{
    const bool valid = f < p.f && column < COLUMNS;
    return valid ? cell_of(p.w[filter_at(p, f, (column / KW * KD + kd) * KH * KW + a * KW + column % KW)])
                 : (cell)0;
}

extern "C" __global__ void __launch_bounds__(256) filters(const __grid_constant__ args p)
{
    follow();
    for (int e = blockIdx.x * 256 + threadIdx.x; e < p.chunks * KD * KH * FRAGMENTS; e += gridDim.x * 256) {
        const int column = e / 32 % NE * 8 + e % 32 / 4, a = e / FRAGMENTS % KH, pass = e / FRAGMENTS / KH;
        const int f = pass / KD * CF + e / 32 / NE % STEPS * STEP + e % 4 * (LANE / 2);
        u32 r[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int first = f + i * (STEP / 2);
            r[i] = filter_cell(p, first, column, pass % KD, a);
            r[i] |= HALVES ? (u32)filter_cell(p, first + 1, column, pass % KD, a) << 16 : 0;
        }
        p.filters[e].x = r[0];
        p.filters[e].y = r[1];
    }
}

/* ---- the order of a block's tiles, their filters, and the lines of y that contribute ---- */

/* pass: chunk * KD + the tap along the first of three axes */
struct walk { int number, image, row, pass, first, line, last; };

__device__ __forceinline__ void enter(const args &p, walk &s, int t)
{
    const int block = t / p.down;
    s.number = t;
    s.image = block * IMAGES;
    s.row = (t - block * p.down) * ROWS;
    s.pass = 0;
    const int before = s.row + p.pad[0] - (KH - 1), end = min(s.row + ROWS, p.in[0]) - 1 + p.pad[0];
    /* at least one line, even if none contributes */
    s.line = s.first = min(before > 0 ? (before + SH - 1) / SH : 0, OH - 1);
    s.last = max(s.first, min(end / SH, OH - 1));
}

__device__ __forceinline__ bool ends(const args &p, const walk &s)
{
    return s.line == s.last && s.pass == p.chunks * KD - 1;
}

__device__ __forceinline__ void advance(const args &p, walk &s)
{
    if (s.line < s.last) {
        s.line++;
    } else if (s.pass < p.chunks * KD - 1) {
        s.pass++;
        s.line = s.first;
    } else {
        enter(p, s, s.number + gridDim.x);
    }
}

/* ---- loads into shared memory ---- */

__device__ __forceinline__ void bring_filters(const args &p, uint2 *to, int pass)
{
    for (int e = threadIdx.x * 2; e < KH * FRAGMENTS; e += THREADS * 2) {
        fetch16((float *)(to + e), (const float *)(p.filters + (i64)pass * KH * FRAGMENTS + e));
    }
}

/* A line of y; zeros unless `valid`. */
template <bool Whole> __device__ __forceinline__ void bring_line(const T *from, cell *to, bool valid)
{
    enum { EVERY = !Whole ? 1 : UNIT == 16 ? EACH : EACH / 4 };
#pragma unroll
    for (int q = threadIdx.x % 32 * EVERY; q < OW; q += 32 * EVERY) {
        if (!Whole) {
            *(T *)(to + q) = valid ? from[q] : T();
        } else if (UNIT != 16) {
            fetch4((float *)(to + q), (const float *)(from + q), valid);
        } else if (valid) {
            fetch16((float *)(to + q), (const float *)(from + q));
        } else {
            *(uint4 *)(to + q) = make_uint4(0, 0, 0, 0);
        }
    }
}

/* (image, position, PITCH) */
template <bool Whole> __device__ __forceinline__ void bring_positions(const args &p, const walk &s, cell *to)
{
    enum { EVERY = Whole ? 4 : 1, EACH_POSITION = CF / EVERY };
    const int f0 = s.pass / KD * CF;
    for (int i = 0; i < IMAGES; i++) {
        const int plane = read_from(s.image + i, s.pass % KD);
        const T *const from = p.y + y_plane(p, max(plane, 0)) + s.line * p.ys[2] + f0;
        const int some = s.image + i < p.n && plane >= 0 ? p.f - f0 : 0;
#pragma unroll 4
        for (int e = threadIdx.x; e < OW * EACH_POSITION; e += THREADS) {
            const int v = e / EACH_POSITION, f = e % EACH_POSITION * EVERY;
            cell *const at = to + i * LINE + v * PITCH + f;
            if (Whole && f < some) {
                fetch16((float *)at, (const float *)(from + v * p.ys[3] + f));
            } else if (Whole) {
                *(uint4 *)at = make_uint4(0, 0, 0, 0);
            } else {
                fetch4((float *)at, (const float *)(f < some ? from + v * p.ys[3] + f : p.y), f < some);
            }
        }
    }
}

/* (image, filter, PITCH) */
template <bool Whole> __device__ __forceinline__ void bring_lines(const args &p, const walk &s, cell *to)
{
    const int warp = threadIdx.x / 32, f0 = s.pass / KD * CF;
    for (int i = 0; i < IMAGES; i++) {
        const int plane = read_from(s.image + i, s.pass % KD);
        const T *from = p.y + y_plane(p, max(plane, 0)) + s.line * p.ys[2] + (f0 + warp) * p.ys[1];
        const int some = s.image + i < p.n && plane >= 0 ? p.f - f0 : 0;
#pragma unroll 4
        for (int f = 0; f < CF; f += WARPS, from += WARPS * p.ys[1]) {
            if (CF % WARPS != 0 && f + warp >= CF) {
                break;
            }
            const bool valid = f + warp < some;
            bring_line<Whole>(valid ? from : p.y, to + i * LINE + (f + warp) * PITCH, valid);
        }
    }
}

__device__ __forceinline__ void bring(const args &p, const walk &s, cell *to)
{
    if (BESIDE) {
        if (UNIT == 16 && p.whole) {
            bring_positions<UNIT == 16>(p, s, to);
        } else {
            bring_positions<false>(p, s, to);
        }
    } else if (UNIT >= 4 && p.whole) {
        bring_lines<(UNIT >= 4)>(p, s, to);
    } else {
        bring_lines<false>(p, s, to);
    }
}

/* ---- products ---- */

/* A warp's part: its sixteens of positions, and its set, which is the index of its first line. */
struct part { int tile[MT], set; };

__device__ __forceinline__ part part_of()
{
    const int warp = threadIdx.x / 32;
    part a;
#pragma unroll
    for (int j = 0; j < MT; j++) {
        a.tile[j] = warp % PW * MT + j;
    }
    a.set = warp / PW;
    return a;
}

/* This lane's element of the first of sixteen positions in a slot.  Positions beyond the end may read
 * anything. */
__device__ __forceinline__ int offset_at(int tile)
{
    const int lane = threadIdx.x % 32, tile_in_slot = min(tile, IMAGES * ACROSS - 1);
    const int position = tile_in_slot % ACROSS * 16, first = tile_in_slot / ACROSS * LINE;
    if (BESIDE) {
        return first + (position + lane / 4) * PITCH + lane % 4;
    }
    return first + (HALVES ? (lane / 16 * 8 + lane % 8) * PITCH + min(position + lane / 8 % 2 * 8, PITCH - 8)
                           : lane % 4 * PITCH + position + lane / 4);
}

/* (positions, STEP filters), where positions are contiguous */
__device__ __forceinline__ void read_positions(u32 (&a)[4], const cell *at)
{
    if (HALVES) {
        read_columns(a, (const unsigned short *)at);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int next = BESIDE ? i / 2 * 4 + i % 2 * 8 * PITCH : i / 2 * 4 * PITCH + i % 2 * 8;
            a[i] = cell_of(__uint_as_float(at[next]));
        }
    }
}

/* Adds a line of y to lines Low to High of x; filters: for the row of taps that leads to the first of
 * them. */
template <int Low, int High>
__device__ __forceinline__ void multiply_line(float (&sum)[R][MT][NE][4], const cell *y, const int (&at)[MT],
                                              const uint2 *filters)
{
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        u32 a[MT][4];
#pragma unroll
        for (int j = 0; j < MT; j++) {
            read_positions(a[j], y + at[j] + k * STEP * (BESIDE ? 1 : PITCH));
        }
#pragma unroll
        for (int i = Low; i < High; i++) {
#pragma unroll
            for (int e = 0; e < NE; e++) {
                const uint2 b = filters[i * GW * FRAGMENTS + (k * NE + e) * 32];
#pragma unroll
                for (int j = 0; j < MT; j++) {
                    multiply_as(T(), sum[i][j][e], a[j], b.x, b.y);
                }
            }
        }
    }
}

template <int I> struct one_by_one {
    static __device__ __forceinline__ void multiply(float (&sum)[R][MT][NE][4], const cell *y,
                                                    const int (&at)[MT], const uint2 *filters, int low,
                                                    int high)
    {
        one_by_one<I - 1>::multiply(sum, y, at, filters, low, high);
        if (I - 1 >= low && I - 1 < high) {
            multiply_line<I - 1, I>(sum, y, at, filters);
        }
    }
};
template <> struct one_by_one<0> {
    static __device__ __forceinline__ void multiply(float (&)[R][MT][NE][4], const cell *, const int (&)[MT],
                                                    const uint2 *, int, int)
    {
    }
};

/* Adds a line of y to those lines of a set that it contributes to. */
__device__ __forceinline__ void multiply(const args &p, const walk &s, float (&sum)[R][MT][NE][4],
                                         const cell *y, const int (&at)[MT], const uint2 *filters, int set)
{
    const int row = s.row + set, a = row + p.pad[0] - SH * s.line;
    const int low = (max(0, -a) + GW - 1) / GW, high = min(R, (min(KH - a, p.in[0] - row) + GW - 1) / GW);
    const uint2 *const mine = filters + a * FRAGMENTS + threadIdx.x % 32;
    if (low == 0 && high == R) {
        multiply_line<0, R>(sum, y, at, mine);
    } else if (R > 1) {
        one_by_one<R>::multiply(sum, y, at, mine, low, high);
    }
}

/* ---- from sums by columns of taps to x ---- */

__device__ __forceinline__ void put_columns(const float (&sum)[MT][NE][4], float *z, const part &own)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < MT; j++) {
        const int tile = own.tile[j];
        if (tile < IMAGES * ACROSS) {
            float *const to = z + (own.set * IMAGES + tile / ACROSS) * (COLUMNS * ZPITCH) +
                              tile % ACROSS * 16 + lane / 4;
#pragma unroll
            for (int e = 0; e < NE * 4; e++) {
                const int column = e / 4 * 8 + lane % 4 * 2 + e % 2;
                if (e / 4 * 8 + 8 <= COLUMNS || column < COLUMNS) {
                    to[column * ZPITCH + e % 4 / 2 * 8] = sum[j][e / 4][e % 4];
                }
            }
        }
    }
}

/* The sum for position q of x, with the border counted, over the columns of one channel. */
__device__ __forceinline__ float gathered(const float *z, int q)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < (KW + SW - 1) / SW; i++) {
        const int b = q % SW + i * SW, v = q / SW - i;
        if (b < KW && v >= 0 && v < OW) {
            sum += z[b * ZPITCH + v];
        }
    }
    return sum;
}

/* The sum for an element of x in float32. */
__device__ __noinline__ float plain_sum(const args &p, int image, int c, int r, int q)
{
    float sum = 0;
    for (int k = 0; k < KD * KH * KW; k++) {
        const int plane = read_from(image, k / (KH * KW)), down = r + p.pad[0] - k / KW % KH,
                  right = q + p.pad[1] - k % KW, u = down / SH, v = right / SW;
        if (plane < 0 || down < 0 || right < 0 || u * SH != down || v * SW != right || u >= OH || v >= OW) {
            continue;
        }
        for (int f = 0; f < p.f; f++) {
            sum += get<float>(p.y[y_plane(p, plane) + f * p.ys[1] + u * p.ys[2] + v * p.ys[3]]) *
                   get<float>(p.w[filter_at(p, f, c * KD * KH * KW + k)]);
        }
    }
    return sum;
}

/* Line i of each set of warps.  A warp takes PART positions of a line at a time. */
__device__ __forceinline__ void put_lines(const args &p, const walk &s, const float *z, int i)
{
    enum { PART = 128 };
    const int parts = (p.in[1] + PART - 1) / PART;
    for (int e = threadIdx.x / 32; e < GW * IMAGES * C * parts; e += WARPS) {
        const int plane = e / parts, first = (e - plane * parts) * PART, c = plane % C,
                  image = s.image + plane / C % IMAGES, r = s.row + plane / C / IMAGES + i * GW;
        if (r >= p.in[0] || image >= p.n) {
            continue;
        }
        const i64 line = x_plane(p, image) + c * p.xs[1] + r * p.xs[2];
        const float *const from = z + plane * (KW * ZPITCH);
#pragma unroll
        for (int j = 0; j < PART / 32; j++) {
            const int q = first + j * 32 + threadIdx.x % 32;
            if (q < p.in[1]) {
                const i64 at = line + q * p.xs[3];
                float sum = q + p.pad[1] < 0 ? 0.f : gathered(from, q + p.pad[1]);
                if (broken(sum)) {
                    sum = plain_sum(p, image, c, r, q);
                }
                p.x[at] = put<T>(p.alpha * sum + (HAS_C0 ? p.beta * get<float>(p.c0[at]) : 0.f));
            }
        }
    }
}

__device__ __forceinline__ void finish_tile(const args &p, const walk &s, float (&sum)[R][MT][NE][4],
                                            float *z, const part &own)
{
#pragma unroll
    for (int i = 0; i < R; i++) {
        __syncthreads();        /* all threads are done with the previous contents */
        put_columns(sum[i], z, own);
        __syncthreads();
        put_lines(p, s, z, i);
    }
#pragma unroll
    for (int e = 0; e < R * MT * NE * 4; e++) {
        sum[e / (MT * NE * 4)][e / (NE * 4) % MT][e / 4 % NE][e % 4] = 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) inputs(const __grid_constant__ args p)
{
    follow();
    extern __shared__ uint4 shared[];
    uint2 *const filters = (uint2 *)shared;
    cell *const ring = (cell *)(filters + KH * FRAGMENTS);
    float *const z = (float *)(ring + SLOTS * SLOT);
    const part own = part_of();
    float sum[R][MT][NE][4] = {};
    int at[MT];
    walk current, ahead;
#pragma unroll
    for (int j = 0; j < MT; j++) {
        at[j] = offset_at(own.tile[j]);
    }
    enter(p, current, blockIdx.x);
    ahead = current;
    bring_filters(p, filters, 0);
    for (int i = 0; i < SLOTS - 1; i++, advance(p, ahead)) {
        if (ahead.number < p.tiles) {
            bring(p, ahead, ring + i * SLOT);
        }
        fetch_mark();
    }
    for (int turn = 0; current.number < p.tiles;
         turn = turn == SLOTS - 1 ? 0 : turn + 1, advance(p, current)) {
        fetched_before<SLOTS - 2>();
        __syncthreads();        /* this slot has arrived for all, and the previous one is free */
        if (p.chunks * KD > 1 && current.line == current.first) {
            bring_filters(p, filters, current.pass);
            fetched();
            __syncthreads();
        }
#pragma unroll
        for (int late = 0; late < 2; late++) {  /* some warps multiply while others issue loads */
            if (late == (LATE && threadIdx.x / 32 >= WARPS / 2) && ahead.number < p.tiles) {
                bring(p, ahead, ring + (turn == 0 ? SLOTS - 1 : turn - 1) * SLOT);
            }
            if (late == 0) {
                multiply(p, current, sum, ring + turn * SLOT, at, filters, own.set);
            }
        }
        fetch_mark();
        if (ahead.number < p.tiles) {
            advance(p, ahead);
        }
        if (ends(p, current)) {
            finish_tile(p, current, sum, z, own);
        }
    }
}
