/* whole.cu: float32 convolutions of small images on tensor cores, with whole images in shared memory.
 *
 * gemm/split.cu has the algebra: each number is a pair of halves, a product three of theirs, and high products are summed
 * over 64 terms only before they are added up in float32.  There windows are gathered out of the GPU's memory; here a block
 * cuts its images itself and keeps them, zeros around included, as (place, channel).  A matrix is then read by the
 * addresses of its rows, and the row of a window is a place: nothing is gathered at all.
 *
 *   gather    forward, and back to inputs: a block makes all places of its images, 32 x 32 of them and results a warp.
 *             Filters come in the order in which a warp holds them (`pack`), from memory that all blocks read.
 *   weights   a block has some taps and walks over images: w = y' x, summed over the places of each.  What blocks came
 *             to is added by `add`, in order.
 *
 * CC: channels that are taken at once, a multiple of 16.  Images of a block share a scale. */
typedef unsigned u32;
typedef unsigned short u16;
enum { PITCH = CC + 8, C16 = CC / 16, MOST_WARPS = 32 };

struct args {
    const float *x, *y, *w;     /* images that windows are of; weights: y */
    float *to;
    const float *c0, *bias;
    uint4 *filters;             /* for each step of 16 terms, eight results and lane: two of high halves, two of low ones */
    float *scale;               /* of filters: 2^-e for each result */
    float *parts;
    i64 xs, ys, ts[2], ws[4];   /* from image to image; of the result: image, channel; of w: result, channel, taps */
    int n, channels, results, chunks;
    int in[2], padded[2], out[2], pad[2], stride[2], dilation[2], k[2];
    int images, down, right, tiles, steps;  /* gather: of a block: images, warps by places and by results; all eights of results; of a chunk */
    int blocks, per_set;        /* weights: parts of the sums; taps of a block */
    int fours;                  /* images can be brought four elements at a time */
    float alpha, beta;
};

/* ---- images into shared memory ---- */

__device__ __forceinline__ void bring(float *to, const float *from, int count, int fours)
{
    if (fours) {
        for (int e = threadIdx.x * 4; e < count; e += blockDim.x * 4) {
            fetch16(to + e, from + e);
        }
    } else {
        for (int e = threadIdx.x; e < count; e += blockDim.x) {
            fetch4(to + e, from + e, true);
        }
    }
}

__device__ __forceinline__ u32 larger(u32 most, float x)
{
    const u32 bits = __float_as_uint(x) & 0x7fffffff;
    return bits < 0x7f800000 && bits > most ? bits : most;
}

/* The largest finite |x| of what this thread brought itself: no other need have finished. */
__device__ __forceinline__ u32 largest(const float *x, int count, int fours, u32 most)
{
    if (fours) {
        for (int e = threadIdx.x * 4; e < count; e += blockDim.x * 4) {
            const float4 v = *(const float4 *)(x + e);
            most = larger(larger(larger(larger(most, v.x), v.y), v.z), v.w);
        }
    } else {
        for (int e = threadIdx.x; e < count; e += blockDim.x) {
            most = larger(most, x[e]);
        }
    }
    return most;
}

__device__ __forceinline__ u32 over_block(const u32 *seen)
{
    u32 most = 0;
    for (int i = 0; i < (int)blockDim.x / 32; i++) {
        most = seen[i] > most ? seen[i] : most;
    }
    return most;
}

__device__ __forceinline__ void halve2(float a, float b, const float f[2], u16 *high, u16 *low)
{
    u32 h[2], l[2];
    halve(a, f, &h[0], &l[0]);
    halve(b, f, &h[1], &l[1]);
    *(u32 *)high = h[0] | h[1] << 16;
    *(u32 *)low = l[0] | l[1] << 16;
}

/* An image of `have` channels as (place, channel); spot: where each place goes. */
__device__ __forceinline__ void cut_image(const args &p, u16 *to, int low, const float *raw, const int *spot, int have, const float f[2])
{
    const int places = p.in[0] * p.in[1];
    for (int c = threadIdx.x / 32 * 2; c < CC; c += blockDim.x / 32 * 2) {
        for (int u = threadIdx.x % 32; u < places; u += 32) {
            u16 *const at = to + spot[u] * PITCH + c;
            halve2(c < have ? raw[c * places + u] : 0.f, c + 1 < have ? raw[(c + 1) * places + u] : 0.f, f, at, at + low);
        }
    }
}

__device__ __forceinline__ void make_spots(const args &p, int *spot)
{
    for (int u = threadIdx.x; u < p.in[0] * p.in[1]; u += blockDim.x) {
        const int line = u / p.in[1];
        spot[u] = (line + p.pad[0]) * p.padded[1] + u - line * p.in[1] + p.pad[1];
    }
}

__device__ __forceinline__ void clear(uint4 *to, int halves)    /* a multiple of eight */
{
    for (int e = threadIdx.x; e < halves / 8; e += blockDim.x) {
        to[e] = { 0, 0, 0, 0 };
    }
}

#if PASS != 2
/* ---- filters, in the order of the tensor cores' registers: a result a block ---- */

__device__ __forceinline__ float filter(const args &p, int chunk, int k, int result)
{
    const int tap = k / CC, c = chunk * CC + k - tap * CC;
    const bool is = tap < p.k[0] * p.k[1] && c < p.channels && result < p.results;
    return is ? p.w[result * p.ws[0] + c * p.ws[1] + tap / p.k[1] * p.ws[2] + tap % p.k[1] * p.ws[3]] : 0.f;
}

extern "C" __global__ void __launch_bounds__(256) pack(const __grid_constant__ args p)
{
    __shared__ u32 seen[MOST_WARPS];
    const int result = blockIdx.x, terms = p.steps * 16, all = p.chunks * terms;
    u32 most = 0;
    float f[2];
    for (int e = threadIdx.x; e < all; e += blockDim.x) {
        most = larger(most, filter(p, e / terms, e % terms, result));
    }
    most = over_warp(most);
    if (threadIdx.x % 32 == 0) {
        seen[threadIdx.x / 32] = most;
    }
    __syncthreads();
    most = over_block(seen);
    factors(most, f);
    if (threadIdx.x == 0) {
        p.scale[result] = unscaled(most);
    }
    for (int e = threadIdx.x; e < all / 2; e += blockDim.x) {   /* lanes of a column have k = 2, 2 + 1, and those 8 on */
        const int chunk = e / (terms / 2), pair = e - chunk * (terms / 2), step = pair / 8, which = pair % 8 / 4, lane = result % 8 * 4 + pair % 4;
        u16 *const at = (u16 *)(p.filters + ((i64)(chunk * p.steps + step) * p.tiles + result / 8) * 32 + lane) + which * 2;
        const int k = step * 16 + which * 8 + pair % 4 * 2;
        halve2(filter(p, chunk, k, result), filter(p, chunk, k + 1, result), f, at, at + 4);
    }
}

/* ---- forward and inputs ---- */

struct row {                    /* of 16 places: where this lane's row begins; lines of the image that they begin in */
    int at, first, last;
};

__device__ __forceinline__ row row_at(const args &p, int tile, int here, int area)
{
    const int lane = threadIdx.x % 32, outs = p.out[0] * p.out[1], mine = tile * 16 + lane % 16, r = mine < here * outs ? mine : 0;
    const int image = r / outs, u = r - image * outs, from = tile * 16, to = min(from + 15, here * outs - 1);
    row a;
    a.at = (image * area + u / p.out[1] * p.stride[0] * p.padded[1] + u % p.out[1] * p.stride[1]) * PITCH + lane / 16 * 8;
    a.first = from / outs == to / outs ? from % outs / p.out[1] * p.stride[0] : 0;
    a.last = from / outs == to / outs ? to % outs / p.out[1] * p.stride[0] : 1 << 20;
    if (from >= here * outs) {
        a.first = a.last = 1 << 20; /* beyond all lines: none of its taps meets anything */
    }
    return a;
}

/* One step of 16 terms for 32 places and 32 results. */
__device__ __forceinline__ void step_of(const args &p, const u16 *halves, int low, const row (&a)[2], int2 shift, const uint4 (&b)[4],
                                        float (&high)[2][4][4], float (&rest)[2][4][4])
{
#pragma unroll
    for (int m = 0; m < 2; m++) {
        if (a[m].last + shift.y < p.pad[0] || a[m].first + shift.y >= p.pad[0] + p.in[0]) {
            continue;           /* zeros above or below the image */
        }
        u32 h[4], l[4];
        read_rows(h, halves + a[m].at + shift.x);
        read_rows(l, halves + a[m].at + shift.x + low);
#pragma unroll
        for (int t = 0; t < 4; t++) {
            multiply(high[m][t], h, b[t].x, b[t].y);
        }
#pragma unroll
        for (int t = 0; t < 4; t++) {
            multiply(rest[m][t], h, b[t].z, b[t].w);
        }
#pragma unroll
        for (int t = 0; t < 4; t++) {
            multiply(rest[m][t], l, b[t].x, b[t].y);
        }
    }
}

__device__ __forceinline__ void add_scaled(float (&sum)[2][4][4], float (&v)[2][4][4], float scale)
{
#pragma unroll
    for (int e = 0; e < 32; e++) {
        sum[e / 16][e / 4 % 4][e % 4] += v[e / 16][e / 4 % 4][e % 4] * scale;
        v[e / 16][e / 4 % 4][e % 4] = 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 384 / THREADS) gather(const __grid_constant__ args p)
{
    extern __shared__ uint4 room[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, places = p.in[0] * p.in[1], outs = p.out[0] * p.out[1];
    const int area = p.padded[0] * p.padded[1], low = p.images * area * PITCH, first = blockIdx.x * p.images, here = min(p.images, p.n - first);
    u16 *const halves = (u16 *)room;
    float *const raw = (float *)(halves + 2 * low);
    int2 *const shift = (int2 *)(raw + (p.images * CC * places + 1) / 2 * 2);
    int *const spot = (int *)(shift + p.steps);
    u32 *const seen = (u32 *)(spot + places);
    const int tile = warp % p.down, col = (blockIdx.y * p.right + warp / p.down) * 4;
    const row a[2] = { row_at(p, tile * 2, here, area), row_at(p, tile * 2 + 1, here, area) };
    const uint4 *b = p.filters + (i64)col * 32 + lane;
    float sum[2][4][4] = {}, high[2][4][4] = {}, rest[2][4][4] = {};
    clear(room, 2 * low);
    make_spots(p, spot);
    for (int s = threadIdx.x; s < p.steps; s += blockDim.x) {
        const int tap = s / C16, line = tap / p.k[1] * p.dilation[0], along = tap % p.k[1] * p.dilation[1];
        const bool is = tap < p.k[0] * p.k[1];  /* steps beyond meet filters that are zero */
        shift[s].x = is ? (line * p.padded[1] + along) * PITCH + s % C16 * 16 : 0;
        shift[s].y = is ? line : 0;
    }
    for (int chunk = 0; chunk < p.chunks; chunk++) {
        const int have = min(CC, p.channels - chunk * CC);
        u32 most = 0;
        float f[2];
        for (int i = 0; i < here; i++) {
            bring(raw + i * CC * places, p.x + (first + i) * p.xs + (i64)chunk * CC * places, have * places, p.fours);
        }
        fetched();
        for (int i = 0; i < here; i++) {
            most = largest(raw + i * CC * places, have * places, p.fours, most);
        }
        most = over_warp(most);
        if (lane == 0) {
            seen[warp] = most;
        }
        __syncthreads();        /* and nobody reads the halves of the chunk before */
        most = over_block(seen);
        factors(most, f);
        for (int i = 0; i < here; i++) {
            cut_image(p, halves + i * area * PITCH, low, raw + i * CC * places, spot, have, f);
        }
        __syncthreads();
        const float scale = unscaled(most);
        uint4 now[4], then[4];
#pragma unroll
        for (int t = 0; t < 4; t++) {
            now[t] = b[t * 32];
        }
        for (int s = 0; s < p.steps; s += 4) {
#pragma unroll
            for (int u = 0; u < 4; u++) {
                b += p.tiles * 32;
#pragma unroll
                for (int t = 0; t < 4; t++) {
                    then[t] = b[t * 32];        /* one step more than there is has room */
                }
                step_of(p, halves, low, a, shift[s + u], now, high, rest);
#pragma unroll
                for (int t = 0; t < 4; t++) {
                    now[t] = then[t];
                }
            }
            add_scaled(sum, high, scale);
        }
        add_scaled(sum, rest, scale * (1.0f / 2048));
    }
#pragma unroll
    for (int e = 0; e < 32; e++) {
        const int r = tile * 32 + e / 16 * 16 + lane / 4 + e % 4 / 2 * 8, result = col * 8 + e / 4 % 4 * 8 + lane % 4 * 2 + e % 2;
        if (r < here * outs && result < p.results) {
            const i64 at = (first + r / outs) * p.ts[0] + result * p.ts[1] + r % outs;
            float v = p.alpha * (sum[e / 16][e / 4 % 4][e % 4] * p.scale[result]);
            if (p.c0) {
                v += p.beta * p.c0[at];
            }
            if (p.bias) {
                v += p.bias[result];
            }
            p.to[at] = finish(v, ACT);
        }
    }
}
#else
/* ---- weights ---- */

/* FB filters of y as (filter, place), up to whole sixteens of places. */
__device__ __forceinline__ void cut_lines(u16 *to, int low, const float *raw, int have, int outs, int pitch, const float f[2])
{
    for (int r = threadIdx.x / 32; r < FB; r += blockDim.x / 32) {
        for (int u = threadIdx.x % 32 * 2; u < pitch - 8; u += 64) {
            u16 *const at = to + r * pitch + u;
            halve2(r < have && u < outs ? raw[r * outs + u] : 0.f, r < have && u + 1 < outs ? raw[r * outs + u + 1] : 0.f, f, at, at + low);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) weights(const __grid_constant__ args p)
{
    extern __shared__ uint4 room[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, places = p.in[0] * p.in[1], outs = p.out[0] * p.out[1], taps = p.k[0] * p.k[1];
    const int area = p.padded[0] * p.padded[1], low_x = (area + 1) * PITCH, long_y = (outs + 15) / 16 * 16, pitch = long_y + 8, low_y = FB * pitch;
    const int f_blocks = (p.results + FB - 1) / FB, filter = blockIdx.y % f_blocks * FB, chunk = blockIdx.y / f_blocks % p.chunks;
    const int set = blockIdx.y / f_blocks / p.chunks * p.per_set, have_x = min(CC, p.channels - chunk * CC), have_y = min(FB, p.results - filter);
    u16 *const x = (u16 *)room, *const y = x + 2 * low_x;
    float *const raw_x = (float *)(y + 2 * low_y), *const raw_y = raw_x + (CC * places + 3) / 4 * 4;
    int *const spot = (int *)(raw_y + FB * outs), *const window = spot + places;
    u32 *const seen = (u32 *)(window + long_y);
    /* this warp's units: 32 filters, 16 channels of a tap */
    const int down = warp % (FB / 32), unit = warp / (FB / 32) * UNITS;
    int shift[UNITS];
    float sum[UNITS][2][2][4] = {};
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        const int tap = min(set + (unit + i) / C16, taps - 1);
        shift[i] = (tap / p.k[1] * p.dilation[0] * p.padded[1] + tap % p.k[1] * p.dilation[1]) * PITCH + (unit + i) % C16 * 16;
    }
    clear(room, 2 * low_x);
    make_spots(p, spot);
    for (int u = threadIdx.x; u < long_y; u += blockDim.x) {
        window[u] = u < outs ? (u / p.out[1] * p.stride[0] * p.padded[1] + u % p.out[1] * p.stride[1]) * PITCH : -1;
    }
    const float *const from_x = p.x + (i64)chunk * CC * places, *const from_y = p.y + (i64)filter * outs;
    bring(raw_x, from_x + blockIdx.x * p.xs, have_x * places, p.fours);
    bring(raw_y, from_y + blockIdx.x * p.ys, have_y * outs, p.fours);
    for (int image = blockIdx.x; image < p.n; image += gridDim.x) {
        fetched();
        const u32 most_x = over_warp(largest(raw_x, have_x * places, p.fours, 0)), most_y = over_warp(largest(raw_y, have_y * outs, p.fours, 0));
        if (lane == 0) {
            seen[warp] = most_x;
            seen[MOST_WARPS + warp] = most_y;
        }
        __syncthreads();        /* and nobody multiplies what was cut before */
        float f[2], g[2];
        const u32 all_x = over_block(seen), all_y = over_block(seen + MOST_WARPS);
        factors(all_x, f);
        factors(all_y, g);
        cut_image(p, x, low_x, raw_x, spot, have_x, f);
        cut_lines(y, low_y, raw_y, have_y, outs, pitch, g);
        __syncthreads();
        if (image + (int)gridDim.x < p.n) {
            bring(raw_x, from_x + (image + gridDim.x) * p.xs, have_x * places, p.fours);
            bring(raw_y, from_y + (image + gridDim.x) * p.ys, have_y * outs, p.fours);
        }
        const float scale_x = unscaled(all_x), scale_y = unscaled(all_y);
        for (int k = 0; k < long_y; k += 64) {
            float high[UNITS][2][2][4] = {}, rest[UNITS][2][2][4] = {};
#pragma unroll
            for (int j = 0; j < 64; j += 16) {
                if (k + j >= long_y) {
                    break;
                }
                u32 h[2][4], l[2][4];
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    const u16 *const row = y + (down * 32 + m * 16 + lane % 16) * pitch + k + j + lane / 16 * 8;
                    read_rows(h[m], row);
                    read_rows(l[m], row + low_y);
                }
                const int at = window[k + j + lane % 16];
#pragma unroll
                for (int i = 0; i < UNITS; i++) {
                    const u16 *const place = x + (at < 0 ? area * PITCH : at + shift[i]) + lane / 16 * 8;
                    u32 b[4], c[4];
                    read_columns(b, place);
                    read_columns(c, place + low_x);
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        multiply(high[i][e / 2][e % 2], h[e / 2], b[e % 2 * 2], b[e % 2 * 2 + 1]);
                    }
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        multiply(rest[i][e / 2][e % 2], h[e / 2], c[e % 2 * 2], c[e % 2 * 2 + 1]);
                    }
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        multiply(rest[i][e / 2][e % 2], l[e / 2], b[e % 2 * 2], b[e % 2 * 2 + 1]);
                    }
                }
            }
#pragma unroll
            for (int e = 0; e < UNITS * 16; e++) {
                sum[e / 16][e / 8 % 2][e / 4 % 2][e % 4] += (high[e / 16][e / 8 % 2][e / 4 % 2][e % 4] + rest[e / 16][e / 8 % 2][e / 4 % 2][e % 4] * (1.0f / 2048)) *
                                                            scale_x * scale_y;
            }
        }
    }
#pragma unroll
    for (int e = 0; e < UNITS * 16; e++) {
        const int i = e / 16, f = filter + down * 32 + e / 8 % 2 * 16 + lane / 4 + e % 4 / 2 * 8;
        const int tap = (unit + i) / C16, c = chunk * CC + (unit + i) % C16 * 16 + e / 4 % 2 * 8 + lane % 4 * 2 + e % 2;
        if (tap < p.per_set && set + tap < taps && f < p.results && c < p.channels) {
            p.parts[(((i64)blockIdx.x * taps + set + tap) * p.results + f) * p.channels + c] = sum[i][e / 8 % 2][e / 4 % 2][e % 4];
        }
    }
}

/* What the blocks came to: 32 weights of a block, their parts among 8 warps. */
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    __shared__ float some[8][32];
    const int each = p.results * p.channels, count = each * p.k[0] * p.k[1], lane = threadIdx.x % 32, warp = threadIdx.x / 32, e = blockIdx.x * 32 + lane;
    float sum = 0;
    for (int part = warp; e < count && part < p.blocks; part += 8) {
        sum += p.parts[(i64)part * count + e];
    }
    some[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && e < count) {
        const int tap = e / each, f = e % each / p.channels, c = e % p.channels;
        const i64 at = f * p.ws[0] + c * p.ws[1] + tap / p.k[1] * p.ws[2] + tap % p.k[1] * p.ws[3];
        for (int i = 1; i < 8; i++) {
            sum += some[i][lane];
        }
        p.to[at] = p.alpha * sum + (p.c0 ? p.beta * p.c0[at] : 0.f);
    }
}
#endif
