/* register_weights.cu: gradients of filters of small images on tensor cores, with sums in registers
 * (shared_image.cu).
 *
 * A block has GROUPS times SET taps of all its filters and channels, and loops over images, which it splits
 * itself, one ahead; the two after that are being loaded.  A warp has 32 filters and 8 channels of SET taps.
 * It reads y once for all of them, and for each tap the part of x that the tap reads.
 *
 * Compiled for the sizes of a problem: IN0 x IN1 positions of x, OUT0 x OUT1 of y, K0 x K1 taps; FULL: all
 * blocks have all their channels and filters; KS: sixteens of positions that are multiplied at a time.  So
 * loads for splitting are contiguous, and no index is divided. */
enum {
    WARPS = THREADS / 32,
    DOWN = FB / 32,
    GROUPS = WARPS / (DOWN * CC / 8),
    SPAN = KS * 16,
    POSITIONS = IN0 * IN1,
    OUTS = OUT0 * OUT1,
    TAPS = K0 * K1,
    LINE = (OUTS + SPAN - 1) / SPAN * SPAN,
    PITCH_Y = LINE + 8
};
/* floats of an image */
enum { RAW_X = (CC * POSITIONS + 3) / 4 * 4, RAW = RAW_X + (FB * OUTS + 3) / 4 * 4 };
/* halves of a split image */
enum { LOW_X = POSITIONS * PITCH, LOW_Y = FB * PITCH_Y, SPLIT = 2 * (LOW_X + LOW_Y) };

struct walk {                   /* of a block: the part of an image that it reads, and its buffers */
    const float *x, *y;
    float *raw;                 /* two images */
    u16 *split;                   /* two images: x high and low, y high and low */
    u32 (*seen)[2][WARPS];      /* for two images, x and y: the largest number that each warp loaded */
    int count;                  /* images of this block */
    int channels, filters;      /* of this block, inside the problem */
};

template <int Most> __device__ __forceinline__ void bring_fours(float *to, const float *from, int count)
{
#pragma unroll
    for (int i = 0; i < (Most / 4 + THREADS - 1) / THREADS; i++) {
        const int e = (threadIdx.x + i * THREADS) * 4;
        if (e < count) {
            fetch16(to + e, from + e);
        }
    }
}

__device__ __forceinline__ void bring_next(const args &p, const walk &w, int i)
{
    if (i < w.count) {
        const int image = blockIdx.x + i * gridDim.x;
        const float *const x = w.x + image * p.xs, *const y = w.y + image * p.ys;
        float *const to = w.raw + i % 2 * RAW;
        if (p.fours) {
            bring_fours<CC * POSITIONS>(to, x, w.channels * POSITIONS);
            bring_fours<FB * OUTS>(to + RAW_X, y, w.filters * OUTS);
        } else {
            bring(to, x, w.channels * POSITIONS, 0);
            bring(to + RAW_X, y, w.filters * OUTS, 0);
        }
    }
    fetch_mark();
}

/* The largest finite |x| of what this warp loaded itself.  Bit 31 is set if a number is not finite. */
template <int Most> __device__ __forceinline__ u32 look_at(const float *x, int count, int fours)
{
    u32 all = fours ? 0 : 0x7f800000;
#pragma unroll
    for (int i = 0; i < (Most / 4 + THREADS - 1) / THREADS; i++) {
        const int e = (threadIdx.x + i * THREADS) * 4;
        if (fours && e < count) {
            const float4 v = *(const float4 *)(x + e);
            all = max(max(max(all, size_of(v.x)), max(size_of(v.y), size_of(v.z))), size_of(v.w));
        }
    }
    const bool odd = __any_sync(0xffffffffu, all >= 0x7f800000);
    const u32 most = over_warp(odd ? largest(x, count, fours, 0) : all);
    return most | (odd ? 0x80000000u : 0);
}

__device__ __forceinline__ void look(const args &p, const walk &w, int i)
{
    if (i < w.count) {
        const float *const from = w.raw + i % 2 * RAW;
        const u32 x = look_at<CC * POSITIONS>(from, w.channels * POSITIONS, p.fours),
                  y = look_at<FB * OUTS>(from + RAW_X, w.filters * OUTS, p.fours);
        if (threadIdx.x % 32 == 0) {
            w.seen[i % 2][0][threadIdx.x / 32] = x;
            w.seen[i % 2][1][threadIdx.x / 32] = y;
        }
    }
}

/* of an image: a factor that brings its largest number below 2^15, and its inverse */
struct scaling {
    float by, back;
    bool odd;                   /* some numbers are not finite */
};

__device__ __forceinline__ scaling scale_of(const u32 *seen)
{
    const u32 mine = seen[threadIdx.x % WARPS], most = over_warp(mine & 0x7fffffff);
    /* a smaller number needs no larger factor: half has 2^24 to spare */
    const int e = min(exponent(most), 126);
    return { __uint_as_float((u32)(127 + e) << 23), __uint_as_float((u32)(127 - e) << 23),
             __any_sync(0xffffffffu, mine >> 31) != 0 };
}

/* A number that is not finite has no low half. */
__device__ __forceinline__ void split2(float a, float b, const scaling &s, u32 *high, u32 *low)
{
    halve2(a * s.by, b * s.by, high, low);
    if (s.odd) {
        *low &= ((*high & 0x7c00) != 0x7c00 ? 0xffff : 0) |
                ((*high & 0x7c000000) != 0x7c000000 ? 0xffff0000 : 0);
    }
}

/* Transposes channels and positions: eight channels of a position at a time. */
__device__ __forceinline__ void split_x(const walk &w, u16 *to, const float *x, const scaling &s)
{
    enum { PARTS = CC / 8 * ((POSITIONS + 31) / 32) };
#pragma unroll
    for (int i = 0; i < (PARTS + WARPS - 1) / WARPS; i++) {
        const int part = threadIdx.x / 32 + i * WARPS, c = part % (CC / 8) * 8,
                  u = part / (CC / 8) * 32 + threadIdx.x % 32;
        float v[8];
        uint4 h, l;
        if (part >= PARTS || u >= POSITIONS) {
            continue;
        }
#pragma unroll
        for (int k = 0; k < 8; k++) {
            v[k] = FULL || c + k < w.channels ? x[(c + k) * POSITIONS + u] : 0.f;
        }
        split2(v[0], v[1], s, &h.x, &l.x);
        split2(v[2], v[3], s, &h.y, &l.y);
        split2(v[4], v[5], s, &h.z, &l.z);
        split2(v[6], v[7], s, &h.w, &l.w);
        *(uint4 *)(to + u * PITCH + c) = h;
        *(uint4 *)(to + LOW_X + u * PITCH + c) = l;
    }
}

/* FB filters of y as (filter, position), padded to whole spans. */
__device__ __forceinline__ void split_y(const walk &w, u16 *to, const float *y, const scaling &s)
{
#pragma unroll
    for (int i = 0; i < (FB * LINE / 4 + THREADS - 1) / THREADS; i++) {
        const int e = threadIdx.x + i * THREADS, r = e / (LINE / 4), u = e % (LINE / 4) * 4;
        const float *const at = y + r * OUTS + u;
        float4 v;
        uint2 h, l;
        if (r >= FB) {
            continue;
        }
        if (FULL && OUTS % 4 == 0) {
            v = u < OUTS ? *(const float4 *)at : make_float4(0, 0, 0, 0);
        } else {
            v.x = r < w.filters && u < OUTS ? at[0] : 0.f;
            v.y = r < w.filters && u + 1 < OUTS ? at[1] : 0.f;
            v.z = r < w.filters && u + 2 < OUTS ? at[2] : 0.f;
            v.w = r < w.filters && u + 3 < OUTS ? at[3] : 0.f;
        }
        split2(v.x, v.y, s, &h.x, &l.x);
        split2(v.z, v.w, s, &h.y, &l.y);
        *(uint2 *)(to + r * PITCH_Y + u) = h;
        *(uint2 *)(to + LOW_Y + r * PITCH_Y + u) = l;
    }
}

/* Splits image i, whose largest numbers are known; returns the inverse of its scale. */
__device__ __forceinline__ float split_next(const walk &w, int i)
{
    const float *const from = w.raw + i % 2 * RAW;
    u16 *const x = w.split + i % 2 * SPLIT;
    const scaling of_x = scale_of(w.seen[i % 2][0]), of_y = scale_of(w.seen[i % 2][1]);
    split_x(w, x, from, of_x);
    split_y(w, x + 2 * LOW_X, from + RAW_X, of_y);
    return of_x.back * of_y.back;
}

/* Adds some taps to the sums of 32 filters and 8 channels. high, low: this lane's rows of each 32
 * positions, of high and low halves. */
template <int N>
__device__ __forceinline__ void multiply_taps(float (*sum)[2][4], const u32 (&h)[KS][2][4],
                                              const u32 (&l)[KS][2][4], const u16 *const (&high)[2][KS / 2],
                                              const u16 *const (&low)[2][KS / 2], float scale)
{
    float part[N][2][4] = {};
#pragma unroll
    for (int q = 0; q < KS / 2; q++) {
        u32 b[N][4], c[N][4];
#pragma unroll
        for (int n = 0; n < N; n++) {
            read_columns(b[n], high[n][q]);
            read_columns(c[n], low[n][q]);
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
            for (int e = 0; e < N * 2; e++) {
                multiply(part[e / 2][e % 2], h[q * 2 + j][e % 2], c[e / 2][j * 2], c[e / 2][j * 2 + 1]);
            }
#pragma unroll
            for (int e = 0; e < N * 2; e++) {
                multiply(part[e / 2][e % 2], l[q * 2 + j][e % 2], b[e / 2][j * 2], b[e / 2][j * 2 + 1]);
            }
#pragma unroll
            for (int e = 0; e < N * 2; e++) {
                multiply(part[e / 2][e % 2], h[q * 2 + j][e % 2], b[e / 2][j * 2], b[e / 2][j * 2 + 1]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < N * 8; e++) {
        sum[e / 8][e / 4 % 2][e % 4] += part[e / 8][e / 4 % 2][e % 4] * scale;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) weights(const __grid_constant__ args p)
{
    extern __shared__ uint4 shared[];
    __shared__ u32 seen[2][2][WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, f_blocks = (p.results + FB - 1) / FB;
    const int block = blockIdx.y % f_blocks, chunk = blockIdx.y / f_blocks % p.chunks,
              set = (blockIdx.y / f_blocks / p.chunks * GROUPS + warp / (DOWN * CC / 8)) * SET;
    const int down = warp % DOWN, column = warp / DOWN % (CC / 8) * 8;
    walk w;
    w.channels = FULL ? CC : min(CC, p.channels - chunk * CC);
    w.filters = FULL ? FB : min(FB, p.results - block * FB);
    w.x = p.x + (i64)chunk * CC * POSITIONS;
    w.y = p.y + (i64)block * FB * OUTS;
    w.count = (p.n - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
    w.raw = (float *)shared;
    w.split = (u16 *)(w.raw + 2 * RAW);
    w.seen = seen;
    u16 *const zero = w.split + 2 * SPLIT;
    int4 *const window = (int4 *)(zero + PITCH);    /* of a position: line, position in it, offset */
    float sum[SET][2][4] = {};
    clear(zero, PITCH);
    for (int u = threadIdx.x; u < LINE; u += THREADS) {
        const int y = u < OUTS ? u / OUT1 * p.stride[0] - p.pad[0] : -(1 << 20),
                  x = u % OUT1 * p.stride[1] - p.pad[1];
        window[u] = { y, x, u < OUTS ? (y * IN1 + x) * PITCH : 0, 0 };
    }
    follow();
    bring_next(p, w, 0);
    bring_next(p, w, 1);
    float scale = 0, scale_ahead = 0;
#pragma unroll 1
    /* two images ahead: find its largest number; one ahead: split it */
    for (int i = -2; i < w.count; i++) {
        const u16 *const x = w.split + (i & 1) * SPLIT, *const y = x + 2 * LOW_X;
#pragma unroll 1
        for (int k = 0; i >= 0 && k < LINE; k += SPAN) {
            u32 h[KS][2][4], l[KS][2][4];
            int4 mine[KS / 2];
#pragma unroll
            for (int q = 0; q < KS / 2; q++) {
                mine[q] = window[k + q * 32 + lane];
            }
#pragma unroll
            for (int e = 0; e < KS * 2; e++) {
                const u16 *const row = y + (down * 32 + e % 2 * 16 + lane % 16) * PITCH_Y + k +
                                       e / 2 * 16 + lane / 16 * 8;
                read_rows(h[e / 2][e % 2], row);
                read_rows(l[e / 2][e % 2], row + LOW_Y);
            }
            const int at = min(set, TAPS - 1);
            int line = at / K1 * p.dilation[0], along = at % K1 * p.dilation[1];
#pragma unroll
            for (int t = 0; t < SET; t += 2) {
                const u16 *high[2][KS / 2], *low[2][KS / 2];
#pragma unroll
                for (int n = 0; n < min(SET - t, 2); n++) {
#pragma unroll
                    for (int q = 0; q < KS / 2; q++) {
                        const bool in = !EDGES ||
                                        ((u32)(mine[q].x + line) < IN0 && (u32)(mine[q].y + along) < IN1);
                        high[n][q] = in ? x + mine[q].z + (line * IN1 + along) * PITCH + column : zero;
                        low[n][q] = in ? high[n][q] + LOW_X : zero;
                    }
                    if (set + t + n + 1 < TAPS) {   /* a tap beyond the last one repeats the last */
                        along += p.dilation[1];
                        if (along == K1 * p.dilation[1]) {
                            along = 0;
                            line += p.dilation[0];
                        }
                    }
                }
                if (t + 1 < SET) {
                    multiply_taps<2>(sum + t, h, l, high, low, scale);
                } else {
                    multiply_taps<1>(sum + t, h, l, high, low, scale);
                }
            }
        }
        if (i >= -1 && i + 1 < w.count) {
            scale_ahead = split_next(w, i + 1);
        }
        scale = scale_ahead;
        fetched();
        look(p, w, i + 2);
        __syncthreads();
        if (i > -2) {
            bring_next(p, w, i + 3);
        }
    }
    const int f = block * FB + down * 32 + lane / 4, c = chunk * CC + column + lane % 4 * 2,
              each = p.results * p.channels;
    float *const to = p.parts + ((i64)blockIdx.x * TAPS + set) * each + f * p.channels + c;
#pragma unroll
    for (int t = 0; t < SET; t++) {
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const int row = e / 2 * 8;
            if (set + t < TAPS && f + row < p.results && c + e % 2 < p.channels) {
                to[t * each + row * p.channels + e % 2] = sum[t][e / 4][e % 4];
            }
        }
    }
}
