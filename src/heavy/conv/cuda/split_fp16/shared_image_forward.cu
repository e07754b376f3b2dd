/* shared_image_forward.cu: float32 convolutions of small images on tensor cores, with whole images in
 * shared memory (shared_image.cu).
 *
 * Forward and gradient of inputs: a block splits its images, then computes all of their positions, 32
 * positions and NT eights of results a warp.  A row of a window is a position of the image, so nothing is
 * gathered.  Rows outside of the image are a row of zeros.  Filters pass through a ring of slots.  EDGES:
 * windows reach beyond the image. */
enum { STEPS = SHARED_IMAGE_STEPS, C8 = CC / 8 };

struct row {                    /* the window of this lane's row */
    int line, position, at;
};
struct band {                   /* first and last line in which windows of 32 positions begin */
    int first, last;
};

__device__ __forceinline__ row row_at(const args &p, int tile, int count)
{
    const int lane = threadIdx.x % 32, outs = p.out[0] * p.out[1], mine = tile * 16 + lane % 16,
              r = mine < count * outs ? mine : 0;
    const int image = r / outs, u = r - image * outs;
    row a;
    a.line = u / p.out[1] * p.stride[0] - p.pad[0];
    a.position = u % p.out[1] * p.stride[1] - p.pad[1];
    a.at = ((image * p.in[0] + a.line) * p.in[1] + a.position) * PITCH;
    return a;
}

__device__ __forceinline__ band band_of(const args &p, int tile, int count)
{
    const int outs = p.out[0] * p.out[1], from = tile * 32, to = min(from + 31, count * outs - 1);
    const bool one = from / outs == to / outs;
    if (from >= count * outs) {
        return { 1 << 20, 1 << 20 };    /* beyond all lines: none of its taps is inside */
    }
    return { one ? from % outs / p.out[1] * p.stride[0] - p.pad[0] : -(1 << 20),
             one ? to % outs / p.out[1] * p.stride[0] - p.pad[0] : 1 << 20 };
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gather(const __grid_constant__ args p)
{
    follow();
    extern __shared__ uint4 shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, positions = p.in[0] * p.in[1],
              outs = p.out[0] * p.out[1];
    const int low = (p.images * positions + 1) * PITCH, zero = p.images * positions * PITCH,
              first = blockIdx.x * p.images, count = min(p.images, p.n - first);
    u16 *const halves = (u16 *)shared;
    /* of eight terms, which are those of eight channels: lines, positions, both as an offset */
    int4 *const shift = (int4 *)(halves + 2 * low);
    u32 *const seen = (u32 *)(shift + 2 * p.steps);
    uint4 *const ring = (uint4 *)(seen + MOST_WARPS);   /* before filters arrive: images */
    float *const raw = (float *)ring;
    const int tile = warp % p.down, column = warp / p.down * NT, slot = STEPS * p.right * NT * 32;
    const row a[2] = { row_at(p, tile * 2, count), row_at(p, tile * 2 + 1, count) };
    const band lines = band_of(p, tile, count);
    float sum[2][NT][4] = {}, part[2][NT][4] = {};
    clear(halves + zero, PITCH);
    clear(halves + zero + low, PITCH);
    for (int s = threadIdx.x; s < 2 * p.steps; s += blockDim.x) {
        const int tap = min(s / C8, p.k[0] * p.k[1] - 1), line = tap / p.k[1] * p.dilation[0],
                  along = tap % p.k[1] * p.dilation[1];
        /* terms beyond the last tap are multiplied by filters that are zero */
        shift[s] = { line, along, (line * p.in[1] + along) * PITCH + s % C8 * 8, 0 };
    }
    for (int chunk = 0; chunk < p.chunks; chunk++) {
        const int step0 = chunk * p.steps;
        __syncthreads();        /* all threads are done with the ring */
        bring_images(p, raw, first, count, chunk);
        const float scale = split_images(p, halves, low, raw, count, chunk, seen);
        bring_filters<STEPS>(p, ring, step0);
        fetch_mark();
        if (STEPS < p.steps) {
            bring_filters<STEPS>(p, ring + slot, step0 + STEPS);
        }
        fetch_mark();
        for (int s = 0, turn = 0; s < p.steps; s += STEPS, turn = turn == SLOTS - 1 ? 0 : turn + 1) {
            fetched_before<1>();
            __syncthreads();    /* this slot has arrived for all, and the one before the last is free */
            if (s + 2 * STEPS < p.steps) {
                bring_filters<STEPS>(p, ring + (turn == 0 ? SLOTS - 1 : turn - 1) * slot,
                                     step0 + s + 2 * STEPS);
            }
            fetch_mark();
            const uint4 *const mine = ring + turn * slot + column * 32 + lane;
#pragma unroll
            for (int u = 0; u < STEPS; u++) {
                const int4 by = shift[2 * (s + u) + lane / 16];
                if (EDGES) {
                    const bool some = lines.last + by.x >= 0 && lines.first + by.x < p.in[0];
                    if (C8 % 2 ? !__any_sync(0xffffffffu, some) : !some) {
                        continue;       /* above or below the image */
                    }
                }
                uint4 b[NT];
                u32 h[2][4], l[2][4];
#pragma unroll
                for (int t = 0; t < NT; t++) {
                    b[t] = mine[(u * p.right * NT + t) * 32];
                }
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    const bool in = !EDGES || ((u32)(a[m].line + by.x) < (u32)p.in[0] &&
                                               (u32)(a[m].position + by.y) < (u32)p.in[1]);
                    const u16 *const at = halves + (in ? a[m].at + by.z : zero);
                    read_rows(h[m], at);
                    read_rows(l[m], at + low);
                }
                multiply3(part, h, l, b);
            }
#pragma unroll
            for (int e = 0; e < 8 * NT; e++) {
                sum[e / (4 * NT)][e / 4 % NT][e % 4] += part[e / (4 * NT)][e / 4 % NT][e % 4] * scale;
                part[e / (4 * NT)][e / 4 % NT][e % 4] = 0;
            }
        }
    }
    const int result0 = (blockIdx.y * p.right * NT + column) * 8 + lane % 4 * 2;
    float scale[2 * NT], bias[2 * NT];
#pragma unroll
    for (int e = 0; e < 2 * NT; e++) {
        const int result = min(result0 + e / 2 * 8 + e % 2, p.results - 1);
        scale[e] = p.scale[result];
        bias[e] = p.bias ? p.bias[result] : 0.f;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int r = tile * 32 + i * 8 + lane / 4, image = r / outs;
        const i64 position = (first + image) * p.ts[0] + r - image * outs;
#pragma unroll
        for (int e = 0; e < 2 * NT; e++) {
            const int result = result0 + e / 2 * 8 + e % 2;
            if (image < count && result < p.results) {
                const i64 at = position + result * p.ts[1];
                float v = p.alpha * (sum[i / 2][e / 2][i % 2 * 2 + e % 2] * scale[e]) + bias[e];
                p.to[at] = finish(p.c0 ? v + p.beta * p.c0[at] : v, ACT);
            }
        }
    }
}
