/* whole.cu: float32 convolutions of small images on tensor cores, with whole images in shared memory.
 *
 * gemm/split.cu has the algebra: each number is a pair of halves, a product three of theirs, and products are summed over 64
 * terms only before they are added up in float32.  There windows are gathered out of the GPU's memory; here a block keeps
 * its images as (place, channel).  A matrix is then read by the addresses of its rows, and the row of a window is a place:
 * nothing is gathered at all.  Rows beside the image are a row of zeros.
 *
 *   gather    forward, and back to inputs: a block cuts its images, then makes all of their places, 32 x 32 of them and
 *             results a warp.  Filters come in the order in which a warp holds them (`pack`), through a ring of slots.
 *   weights   images are cut first (`cut`), since all blocks of a tap want them; a block has some taps and walks over
 *             images: w = y' x, summed over the places of each.  What blocks came to is added by `add`, in order.
 *
 * Low halves are not scaled up here: so one accumulator will do for all three products.  What is lost lies 2^40 below an
 * image's largest.  CC: channels that are taken at once, a multiple of 16.  Images of a block share a scale. */
typedef unsigned u32;
typedef unsigned short u16;
enum { PITCH = CC + 8, C16 = CC / 16, MOST_WARPS = 32, SLOTS = 3, STEPS = 4 };   /* a slot: so many steps of 16 terms */

struct args {
    const float *x, *y, *w;     /* images that windows are of; weights: y */
    float *to;
    const float *c0, *bias;
    uint4 *filters;             /* for each step of 16 terms, eight results and lane: two of high halves, two of low ones */
    float *scale;               /* 2^-e: of filters, for each result; weights: of cut images, for each chunk of x, then block of y */
    float *parts;
    u16 *cut;                   /* weights: images of x, then of y, as a block wants them */
    i64 xs, ys, ts[2], ws[4];   /* from image to image; of the result: image, channel; of w: result, channel, taps */
    int n, channels, results, chunks;
    int in[2], out[2], pad[2], stride[2], dilation[2], k[2];
    int images, down, right, tiles, steps;  /* gather: of a block: images, warps by places and by results; all eights of results; of a chunk */
    int blocks, per_set;        /* weights: parts of the sums; taps of a block */
    int fours;                  /* images can be brought four elements at a time */
    float alpha, beta;
};

/* ---- images into halves ---- */

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
#pragma unroll 4
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

/* The block's; ends with a barrier. */
__device__ __forceinline__ u32 over_block(u32 most, u32 *seen)
{
    most = over_warp(most);
    if (threadIdx.x % 32 == 0) {
        seen[threadIdx.x / 32] = most;
    }
    __syncthreads();
    for (int i = 0; i < (int)blockDim.x / 32; i++) {
        most = seen[i] > most ? seen[i] : most;
    }
    return most;
}

__device__ __forceinline__ void halve2(float a, float b, const float f[2], u16 *high, u16 *low)
{
    const float s[2] = { a * f[0] * f[1], b * f[0] * f[1] };
    u32 h[2], l[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const half top = put<half>(s[i]);
        h[i] = top.bits;
        l[i] = (top.bits & 0x7c00) == 0x7c00 ? 0 : put<half>(s[i] - get<float>(top)).bits;
    }
    *(u32 *)high = h[0] | h[1] << 16;
    *(u32 *)low = l[0] | l[1] << 16;
}

/* An image of `have` channels as (place, channel). */
__device__ __forceinline__ void cut_image(const args &p, u16 *to, int low, const float *x, int have, const float f[2])
{
    const int places = p.in[0] * p.in[1];
    for (int c = threadIdx.x / 32 * 2; c < CC; c += blockDim.x / 32 * 2) {
#pragma unroll 4
        for (int u = threadIdx.x % 32; u < places; u += 32) {
            u16 *const at = to + u * PITCH + c;
            halve2(c < have ? x[c * places + u] : 0.f, c + 1 < have ? x[(c + 1) * places + u] : 0.f, f, at, at + low);
        }
    }
}

__device__ __forceinline__ void clear(u16 *to, int halves)
{
    for (int e = threadIdx.x; e < halves; e += blockDim.x) {
        to[e] = 0;
    }
}

/* Three products; low ones first, while sums are small. */
__device__ __forceinline__ void multiply3(float (&d)[4][4], const u32 (&h)[4], const u32 (&l)[4], const uint4 (&b)[4])
{
#pragma unroll
    for (int t = 0; t < 4; t++) {
        multiply(d[t], h, b[t].z, b[t].w);
    }
#pragma unroll
    for (int t = 0; t < 4; t++) {
        multiply(d[t], l, b[t].x, b[t].y);
    }
#pragma unroll
    for (int t = 0; t < 4; t++) {
        multiply(d[t], h, b[t].x, b[t].y);
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
    most = over_block(most, seen);
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

struct row {                    /* of 16 places: the window of this lane's row, and lines that all windows begin in */
    int line, place, at, first, last;
};

__device__ __forceinline__ row row_at(const args &p, int tile, int here)
{
    const int lane = threadIdx.x % 32, outs = p.out[0] * p.out[1], mine = tile * 16 + lane % 16, r = mine < here * outs ? mine : 0;
    const int image = r / outs, u = r - image * outs, from = tile * 16, to = min(from + 15, here * outs - 1);
    const bool one = from / outs == to / outs;
    row a;
    a.line = u / p.out[1] * p.stride[0] - p.pad[0];
    a.place = u % p.out[1] * p.stride[1] - p.pad[1];
    a.at = ((image * p.in[0] + a.line) * p.in[1] + a.place) * PITCH + lane / 16 * 8;
    a.first = one ? from % outs / p.out[1] * p.stride[0] - p.pad[0] : -(1 << 20);
    a.last = one ? to % outs / p.out[1] * p.stride[0] - p.pad[0] : 1 << 20;
    if (from >= here * outs) {
        a.first = a.last = 1 << 20; /* beyond all lines: none of its taps meets anything */
    }
    return a;
}

/* A slot of filters: STEPS steps of the block's results. */
__device__ __forceinline__ void bring_filters(const args &p, uint4 *slot, int step)
{
    const int each = p.right * 128;
    const uint4 *const from = p.filters + ((i64)step * p.tiles + blockIdx.y * p.right * 4) * 32;
    for (int e = threadIdx.x; e < STEPS * each; e += blockDim.x) {
        const int s = e / each;
        fetch16((float *)(slot + e), (const float *)(from + (i64)s * p.tiles * 32 + e - s * each));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gather(const __grid_constant__ args p)
{
    extern __shared__ uint4 room[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, places = p.in[0] * p.in[1], outs = p.out[0] * p.out[1];
    const int low = (p.images * places + 1) * PITCH, zero = p.images * places * PITCH, first = blockIdx.x * p.images, here = min(p.images, p.n - first);
    u16 *const halves = (u16 *)room;
    int4 *const shift = (int4 *)(halves + 2 * low); /* of a step: lines, places, both as an offset */
    u32 *const seen = (u32 *)(shift + p.steps);
    uint4 *const ring = (uint4 *)(seen + MOST_WARPS);   /* and before filters come, images */
    float *const raw = (float *)ring;
    const int tile = warp % p.down, column = warp / p.down * 4, slot = STEPS * p.right * 128;
    const row a[2] = { row_at(p, tile * 2, here), row_at(p, tile * 2 + 1, here) };
    float sum[2][4][4] = {}, part[2][4][4] = {};
    clear(halves + zero, PITCH);
    clear(halves + zero + low, PITCH);
    for (int s = threadIdx.x; s < p.steps; s += blockDim.x) {
        const int tap = min(s / C16, p.k[0] * p.k[1] - 1), line = tap / p.k[1] * p.dilation[0], along = tap % p.k[1] * p.dilation[1];
        shift[s] = { line, along, (line * p.in[1] + along) * PITCH + s % C16 * 16, 0 }; /* steps beyond the last tap meet filters that are zero */
    }
    for (int chunk = 0; chunk < p.chunks; chunk++) {
        const int have = min(CC, p.channels - chunk * CC), step0 = chunk * p.steps;
        u32 most = 0;
        float f[2];
        __syncthreads();        /* nobody reads the ring any more */
        for (int i = 0; i < here; i++) {
            bring(raw + i * CC * places, p.x + (first + i) * p.xs + (i64)chunk * CC * places, have * places, p.fours);
        }
        fetched();
        for (int i = 0; i < here; i++) {
            most = largest(raw + i * CC * places, have * places, p.fours, most);
        }
        most = over_block(most, seen);
        factors(most, f);
        for (int i = 0; i < here; i++) {
            cut_image(p, halves + i * places * PITCH, low, raw + i * CC * places, have, f);
        }
        __syncthreads();
        bring_filters(p, ring, step0);
        fetch_mark();
        if (STEPS < p.steps) {
            bring_filters(p, ring + slot, step0 + STEPS);
        }
        fetch_mark();
        const float scale = unscaled(most);
        for (int s = 0, turn = 0; s < p.steps; s += STEPS, turn = turn == SLOTS - 1 ? 0 : turn + 1) {
            fetched_before<1>();
            __syncthreads();    /* this slot is there for all, and the one before the last is free */
            if (s + 2 * STEPS < p.steps) {
                bring_filters(p, ring + (turn == 0 ? SLOTS - 1 : turn - 1) * slot, step0 + s + 2 * STEPS);
            }
            fetch_mark();
            const uint4 *const mine = ring + turn * slot + column * 32 + lane;
#pragma unroll
            for (int u = 0; u < STEPS; u++) {
                const int4 by = shift[s + u];
                uint4 b[4];
#pragma unroll
                for (int t = 0; t < 4; t++) {
                    b[t] = mine[u * p.right * 128 + t * 32];
                }
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    if (a[m].last + by.x < 0 || a[m].first + by.x >= p.in[0]) {
                        continue;       /* above or below the image */
                    }
                    const bool in = (u32)(a[m].line + by.x) < (u32)p.in[0] && (u32)(a[m].place + by.y) < (u32)p.in[1];
                    const u16 *const at = halves + (in ? a[m].at + by.z : zero);
                    u32 h[4], l[4];
                    read_rows(h, at);
                    read_rows(l, at + low);
                    multiply3(part[m], h, l, b);
                }
            }
#pragma unroll
            for (int e = 0; e < 32; e++) {
                sum[e / 16][e / 4 % 4][e % 4] += part[e / 16][e / 4 % 4][e % 4] * scale;
                part[e / 16][e / 4 % 4][e % 4] = 0;
            }
        }
    }
#pragma unroll
    for (int e = 0; e < 32; e++) {
        const int r = tile * 32 + e / 16 * 16 + lane / 4 + e % 4 / 2 * 8, result = (blockIdx.y * p.right * 4 + column) * 8 + e / 4 % 4 * 8 + lane % 4 * 2 + e % 2;
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

struct parts {                  /* of a cut image, in halves */
    int x, y, pitch;            /* both halves of a chunk of x; of a block of y, whose lines are so long */
    int f_blocks;
};

__device__ __forceinline__ parts parts_of(const args &p)
{
    parts a;
    a.pitch = (p.out[0] * p.out[1] + 15) / 16 * 16 + 8;
    a.x = 2 * p.in[0] * p.in[1] * PITCH;
    a.y = 2 * FB * a.pitch;
    a.f_blocks = (p.results + FB - 1) / FB;
    return a;
}

/* FB filters of y as (filter, place), up to whole sixteens of places. */
__device__ __forceinline__ void cut_lines(u16 *to, int low, const float *y, int have, int outs, int pitch, const float f[2])
{
    for (int r = threadIdx.x / 32; r < FB; r += blockDim.x / 32) {
#pragma unroll 4
        for (int u = threadIdx.x % 32 * 2; u < pitch; u += 64) {
            u16 *const at = to + r * pitch + u;
            halve2(r < have && u < outs ? y[r * outs + u] : 0.f, r < have && u + 1 < outs ? y[r * outs + u + 1] : 0.f, f, at, at + low);
        }
    }
}

/* One image a block, along x; along y a chunk of its channels, or a block of filters of its y. */
extern "C" __global__ void __launch_bounds__(256) cut(const __grid_constant__ args p)
{
    extern __shared__ uint4 room[];
    __shared__ u32 seen[MOST_WARPS];
    const parts a = parts_of(p);
    const int image = blockIdx.x, which = blockIdx.y, places = p.in[0] * p.in[1], outs = p.out[0] * p.out[1], block = which - p.chunks;
    const bool of_x = which < p.chunks;
    const int have = of_x ? min(CC, p.channels - which * CC) : min(FB, p.results - block * FB), count = have * (of_x ? places : outs), size = of_x ? a.x : a.y;
    const float *const from = of_x ? p.x + image * p.xs + (i64)which * CC * places : p.y + image * p.ys + (i64)block * FB * outs;
    const u32 most = over_block(largest(from, count, p.fours, 0), seen);
    float f[2];
    factors(most, f);
    if (of_x) {
        for (int u = threadIdx.x; u < 2 * places; u += blockDim.x) {
            room[u * PITCH / 8 + CC / 8] = { 0, 0, 0, 0 };  /* the gap behind each place */
        }
        cut_image(p, (u16 *)room, size / 2, from, have, f);
    } else {
        cut_lines((u16 *)room, size / 2, from, have, outs, a.pitch, f);
    }
    if (threadIdx.x == 0) {
        p.scale[image * (p.chunks + a.f_blocks) + which] = unscaled(most);
    }
    __syncthreads();
    u16 *const to = p.cut + (of_x ? (i64)(image * p.chunks + which) * a.x : (i64)p.n * p.chunks * a.x + (i64)(image * a.f_blocks + block) * a.y);
    for (int e = threadIdx.x; e < size / 8; e += blockDim.x) {
        ((uint4 *)to)[e] = room[e];
    }
}

__device__ __forceinline__ void bring_halves(u16 *to, const u16 *from, int halves)
{
    for (int e = threadIdx.x * 8; e < halves; e += blockDim.x * 8) {
        fetch16((float *)(to + e), (const float *)(from + e));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) weights(const __grid_constant__ args p)
{
    extern __shared__ uint4 room[];
    const parts z = parts_of(p);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, outs = p.out[0] * p.out[1], taps = p.k[0] * p.k[1], long_y = z.pitch - 8;
    const int block = blockIdx.y % z.f_blocks, chunk = blockIdx.y / z.f_blocks % p.chunks, set = blockIdx.y / z.f_blocks / p.chunks * p.per_set;
    const u16 *const from_x = p.cut + (i64)chunk * z.x, *const from_y = p.cut + (i64)p.n * p.chunks * z.x + (i64)block * z.y;
    const float *const scale_x = p.scale + chunk, *const scale_y = p.scale + p.chunks + block;
    const int step_x = p.chunks * z.x, step_y = z.f_blocks * z.y, step_scale = p.chunks + z.f_blocks;
    u16 *const halves = (u16 *)room, *const zero = halves + 2 * (z.x + z.y);
    int4 *const window = (int4 *)(zero + PITCH);    /* of a place: line, place in it, offset */
    /* this warp's units: 32 filters, 16 channels of a tap */
    const int down = warp % (FB / 32), unit = warp / (FB / 32) * UNITS;
    int line[UNITS], along[UNITS];
    float sum[UNITS][2][2][4] = {};
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        const int tap = min(set + (unit + i) / C16, taps - 1);
        line[i] = tap / p.k[1] * p.dilation[0];
        along[i] = tap % p.k[1] * p.dilation[1];
    }
    clear(zero, PITCH);
    for (int u = threadIdx.x; u < long_y; u += blockDim.x) {
        const int y = u < outs ? u / p.out[1] * p.stride[0] - p.pad[0] : -(1 << 20), x = u % p.out[1] * p.stride[1] - p.pad[1];
        window[u] = { y, x, u < outs ? (y * p.in[1] + x) * PITCH : 0, 0 };
    }
    bring_halves(halves, from_x + (i64)blockIdx.x * step_x, z.x);
    bring_halves(halves + z.x, from_y + (i64)blockIdx.x * step_y, z.y);
    fetch_mark();
    for (int image = blockIdx.x, turn = 0; image < p.n; image += gridDim.x, turn ^= 1) {
        const int next = image + gridDim.x;
        const u16 *const x = halves + turn * (z.x + z.y), *const y = x + z.x;
        if (next < p.n) {
            u16 *const to = halves + (turn ^ 1) * (z.x + z.y);
            bring_halves(to, from_x + (i64)next * step_x, z.x);
            bring_halves(to + z.x, from_y + (i64)next * step_y, z.y);
        }
        fetch_mark();
        const float scale = scale_x[image * step_scale], other = scale_y[image * step_scale];
        fetched_before<1>();
        __syncthreads();
        for (int k = 0; k < long_y; k += 64) {
            float part[UNITS][2][2][4] = {};
#pragma unroll
            for (int j = 0; j < 64; j += 16) {
                if (k + j >= long_y) {
                    break;
                }
                u32 h[2][4], l[2][4];
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    const u16 *const row = y + (down * 32 + m * 16 + lane % 16) * z.pitch + k + j + lane / 16 * 8;
                    read_rows(h[m], row);
                    read_rows(l[m], row + z.y / 2);
                }
                const int4 at = window[k + j + lane % 16];
#pragma unroll
                for (int i = 0; i < UNITS; i++) {
                    const bool in = (u32)(at.x + line[i]) < (u32)p.in[0] && (u32)(at.y + along[i]) < (u32)p.in[1];
                    const u16 *const place = x + at.z + (line[i] * p.in[1] + along[i]) * PITCH + (unit + i) % C16 * 16 + lane / 16 * 8;
                    u32 b[4], c[4];
                    read_columns(b, in ? place : zero);
                    read_columns(c, in ? place + z.x / 2 : zero);
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        multiply(part[i][e / 2][e % 2], h[e / 2], c[e % 2 * 2], c[e % 2 * 2 + 1]);
                    }
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        multiply(part[i][e / 2][e % 2], l[e / 2], b[e % 2 * 2], b[e % 2 * 2 + 1]);
                    }
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        multiply(part[i][e / 2][e % 2], h[e / 2], b[e % 2 * 2], b[e % 2 * 2 + 1]);
                    }
                }
            }
#pragma unroll
            for (int e = 0; e < UNITS * 16; e++) {
                sum[e / 16][e / 8 % 2][e / 4 % 2][e % 4] += part[e / 16][e / 8 % 2][e / 4 % 2][e % 4] * scale * other;
            }
        }
        __syncthreads();        /* all are done with this image: its place may be filled */
    }
#pragma unroll
    for (int e = 0; e < UNITS * 16; e++) {
        const int i = e / 16, f = block * FB + down * 32 + e / 8 % 2 * 16 + lane / 4 + e % 4 / 2 * 8;
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
