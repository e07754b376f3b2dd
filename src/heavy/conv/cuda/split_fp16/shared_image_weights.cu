/* shared_image_weights.cu: gradients of filters of small images on tensor cores, with whole images in
 * shared memory (shared_image.cu).
 *
 * `split` splits all images first, since every block reads them.  A block has some taps and loops over
 * images: w = y' x, summed over the positions of each. shared_image_sum.cu adds the partial sums of
 * blocks. */
enum { UNITS = SHARED_IMAGE_UNITS };

struct parts {                  /* of a split image, in halves */
    int x, y, pitch;            /* x: both halves of a chunk of x; y: of a block of y; pitch: of y's lines */
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

/* FB filters of y as (filter, position), padded to whole sixteens of positions. */
__device__ __forceinline__ void split_rows(u16 *to, int low, const float *y, int have, int outs, int pitch,
                                           const float f[2])
{
    for (int r = threadIdx.x / 32; r < FB; r += blockDim.x / 32) {
#pragma unroll 4
        for (int u = threadIdx.x % 32 * 2; u < pitch; u += 64) {
            u16 *const at = to + r * pitch + u;
            put2(at, at + low, r < have && u < outs ? y[r * outs + u] : 0.f,
                 r < have && u + 1 < outs ? y[r * outs + u + 1] : 0.f, f);
        }
    }
}

/* A block splits one image (along x); along y: a chunk of channels of x, or a block of filters of y. */
extern "C" __global__ void __launch_bounds__(256) split(const __grid_constant__ args p)
{
    follow();
    extern __shared__ uint4 shared[];
    __shared__ u32 seen[MOST_WARPS];
    const parts a = parts_of(p);
    const int image = blockIdx.x, which = blockIdx.y, positions = p.in[0] * p.in[1],
              outs = p.out[0] * p.out[1], block = which - p.chunks;
    const bool of_x = which < p.chunks;
    const int have = of_x ? min(CC, p.channels - which * CC) : min(FB, p.results - block * FB),
              count = have * (of_x ? positions : outs), size = of_x ? a.x : a.y;
    const float *const from = of_x ? p.x + image * p.xs + (i64)which * CC * positions
                                   : p.y + image * p.ys + (i64)block * FB * outs;
    const u32 most = over_block(largest(from, count, p.fours, 0), seen);
    float f[2];
    factors(most, f);
    if (of_x) {
        for (int u = threadIdx.x; u < 2 * positions; u += blockDim.x) {
            shared[u * PITCH / 8 + CC / 8] = { 0, 0, 0, 0 };  /* the gap after each position */
        }
        split_image(p, (u16 *)shared, size / 2, from, have, f);
    } else {
        split_rows((u16 *)shared, size / 2, from, have, outs, a.pitch, f);
    }
    if (threadIdx.x == 0) {
        p.scale[image * (p.chunks + a.f_blocks) + which] = unscaled(most);
    }
    __syncthreads();
    u16 *const to = p.split + (of_x ? (i64)(image * p.chunks + which) * a.x
                                  : (i64)p.n * p.chunks * a.x + (i64)(image * a.f_blocks + block) * a.y);
    for (int e = threadIdx.x; e < size / 8; e += blockDim.x) {
        ((uint4 *)to)[e] = shared[e];
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
    follow();
    extern __shared__ uint4 shared[];
    const parts z = parts_of(p);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, outs = p.out[0] * p.out[1],
              taps = p.k[0] * p.k[1], long_y = z.pitch - 8;
    const int block = blockIdx.y % z.f_blocks, chunk = blockIdx.y / z.f_blocks % p.chunks,
              set = blockIdx.y / z.f_blocks / p.chunks * p.per_set;
    const u16 *const from_x = p.split + (i64)chunk * z.x, *const from_y = p.split + (i64)p.n * p.chunks * z.x +
                                                                        (i64)block * z.y;
    const float *const scale_x = p.scale + chunk, *const scale_y = p.scale + p.chunks + block;
    const int step_x = p.chunks * z.x, step_y = z.f_blocks * z.y, step_scale = p.chunks + z.f_blocks;
    u16 *const halves = (u16 *)shared, *const zero = halves + 2 * (z.x + z.y);
    int4 *const window = (int4 *)(zero + PITCH);    /* of a position: line, position in it, offset */
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
        const int y = u < outs ? u / p.out[1] * p.stride[0] - p.pad[0] : -(1 << 20),
                  x = u % p.out[1] * p.stride[1] - p.pad[1];
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
                    const u16 *const row = y + (down * 32 + m * 16 + lane % 16) * z.pitch + k + j +
                                           lane / 16 * 8;
                    read_rows(h[m], row);
                    read_rows(l[m], row + z.y / 2);
                }
                const int4 at = window[k + j + lane % 16];
#pragma unroll
                for (int i = 0; i < UNITS; i++) {
                    const bool in = !EDGES || ((u32)(at.x + line[i]) < (u32)p.in[0] &&
                                               (u32)(at.y + along[i]) < (u32)p.in[1]);
                    const u16 *const src = x + at.z + (line[i] * p.in[1] + along[i]) * PITCH +
                                             (unit + i) % C16 * 16 + lane / 16 * 8;
                    u32 b[4], c[4];
                    read_columns(b, in ? src : zero);
                    read_columns(c, in ? src + z.x / 2 : zero);
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
                sum[e / 16][e / 8 % 2][e / 4 % 2][e % 4] += part[e / 16][e / 8 % 2][e / 4 % 2][e % 4] *
                                                            scale * other;
            }
        }
        __syncthreads();        /* all threads are done with this image: it may be overwritten */
    }
#pragma unroll
    for (int e = 0; e < UNITS * 16; e++) {
        const int i = e / 16, f = block * FB + down * 32 + e / 8 % 2 * 16 + lane / 4 + e % 4 / 2 * 8;
        const int tap = (unit + i) / C16,
                  c = chunk * CC + (unit + i) % C16 * 16 + e / 4 % 2 * 8 + lane % 4 * 2 + e % 2;
        if (tap < p.per_set && set + tap < taps && f < p.results && c < p.channels) {
            p.parts[(((i64)blockIdx.x * taps + set + tap) * p.results + f) * p.channels + c] =
                sum[i][e / 8 % 2][e / 4 % 2][e % 4];
        }
    }
}
