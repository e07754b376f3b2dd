/* scatter.cu: float32 gradients of the inputs of small images on tensor cores, with whole images in shared
 * memory (shared_image.cu).
 *
 * Each position of y is multiplied with all taps and added to x, so no product falls outside an image.  A
 * warp keeps 32 positions of y, split, in registers from the first tap to the last.  Filters pass through
 * a ring, a tap a slot.  The 64 terms that a tap sums are added in float32 to planes of x in shared
 * memory.  Within a tap all positions write different elements of x, and there is a barrier between taps;
 * so sums have one order.
 *
 * Here `in` is y and `out` is x; channels are y's, results x's. */
__device__ __forceinline__ int pitch_of(int cells)
{
    /* four planes and eight cells of each use different banks; one cell is spare */
    return (cells + 12) / 16 * 16 + 4;
}

/* ---- the sums of a tap, added to x: PLANES planes at four positions a lane ---- */

enum { PLANES = 2 * NT };

/* The address is the spare cell where a position writes outside of x. */
__device__ __forceinline__ void meet(float *(&to)[4], float *x, const args &p, const int (&plane)[4],
                                     const int (&line)[4], const int (&along)[4], int down, int right,
                                     int cells)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int y = line[i] + down, z = along[i] + right;
        to[i] = x + plane[i] + ((u32)y < (u32)p.out[0] && (u32)z < (u32)p.out[1] ? y * p.out[1] + z : cells);
    }
}

__device__ __forceinline__ void look(float (&was)[4][PLANES], float *const (&to)[4], int pitch)
{
#pragma unroll
    for (int e = 0; e < 4 * PLANES; e++) {
        const int i = e / PLANES, q = e % PLANES;
        was[i][q] = to[i][(q / 2 * 8 + q % 2) * pitch];
    }
}

__device__ __forceinline__ void add(float *const (&to)[4], const float (&was)[4][PLANES],
                                    const float (&part)[2][NT][4], float scale, int pitch)
{
#pragma unroll
    for (int e = 0; e < 4 * PLANES; e++) {
        const int i = e / PLANES, q = e % PLANES;
        to[i][(q / 2 * 8 + q % 2) * pitch] = was[i][q] + part[i / 2][q / 2][i % 2 * 2 + q % 2] * scale;
    }
}

__device__ __forceinline__ void next(const args &p, int &down, int &right)
{
    right += p.dilation[1];
    if (right == p.k[1] * p.dilation[1]) {
        right = 0;
        down += p.dilation[0];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) spread(const __grid_constant__ args p)
{
    follow();
    extern __shared__ uint4 shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, positions = p.in[0] * p.in[1],
              cells = p.out[0] * p.out[1], pitch = pitch_of(cells);
    const int first = blockIdx.x * p.images, count = min(p.images, p.n - first),
              low = p.images * positions * PITCH, taps = p.k[0] * p.k[1];
    const int planes = p.right * NT * 8, slot = C16 * p.right * NT * 32, tile = warp % p.down,
              column = warp / p.down * NT;
    /* raw: images before they are split; then filters */
    float *const x = (float *)shared, *const raw = x + p.images * planes * pitch;
    uint4 *const ring = (uint4 *)raw;
    u16 *const halves = (u16 *)raw + max(SLOTS * slot * 8, p.images * positions * CC * 2);
    u32 *const seen = (u32 *)(halves + 2 * low);
    int plane[4], line[4], along[4];    /* of this lane's four positions: where the first tap writes */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int r = tile * 32 + i * 8 + lane / 4, image = r / positions, u = r - image * positions;
        line[i] = image < count ? u / p.in[1] * p.stride[0] - p.pad[0] : -(1 << 20);
        along[i] = u % p.in[1] * p.stride[1] - p.pad[1];
        plane[i] = ((image < count ? image : 0) * planes + column * 8 + lane % 4 * 2) * pitch;
    }
    for (int chunk = 0; chunk < p.chunks; chunk++) {
        const int step0 = chunk * p.steps;
        u32 h[C16][2][4], l[C16][2][4];
        __syncthreads();        /* all threads are done with the ring */
        bring_images(p, raw, first, count, chunk);
        for (int e = threadIdx.x * 4; chunk == 0 && e < p.images * planes * pitch; e += blockDim.x * 4) {
            *(float4 *)(x + e) = { 0, 0, 0, 0 };
        }
        const float scale = split_images(p, halves, low, raw, count, chunk, seen);
        bring_filters<C16>(p, ring, step0);
        fetch_mark();
        if (taps > 1) {
            bring_filters<C16>(p, ring + slot, step0 + C16);
        }
        fetch_mark();
#pragma unroll
        for (int m = 0; m < 2; m++) {
            const int r = tile * 32 + m * 16 + lane % 16;
            const u16 *const row = halves + (r < count * positions ? r : 0) * PITCH + lane / 16 * 8;
#pragma unroll
            for (int j = 0; j < C16; j++) {
                read_rows(h[j][m], row + j * 16);
                read_rows(l[j][m], row + j * 16 + low);
            }
        }
        float part[2][NT][4] = {};
        int down = 0, right = 0;        /* of the tap, in elements of x */
        for (int tap = 0, turn = 0; tap < taps; tap++, turn = turn == SLOTS - 1 ? 0 : turn + 1) {
            const uint4 *const mine = ring + turn * slot + column * 32 + lane;
            float was[4][PLANES], before[2][NT][4];
            float *to[4];
            fetched_before<1>();
            /* this slot has arrived for all, the one before the last is free, and the tap before the last
             * is added */
            __syncthreads();
            if (tap + 2 < taps) {
                bring_filters<C16>(p, ring + (turn == 0 ? SLOTS - 1 : turn - 1) * slot,
                                   step0 + (tap + 2) * C16);
            }
            fetch_mark();
            if (tap > 0) {
                meet(to, x, p, plane, line, along, down, right, cells);
                look(was, to, pitch);
                next(p, down, right);
            }
#pragma unroll
            for (int e = 0; e < 8 * NT; e++) {
                float &now = part[e / (4 * NT)][e / 4 % NT][e % 4];
                before[e / (4 * NT)][e / 4 % NT][e % 4] = now;
                now = 0;
            }
#pragma unroll
            for (int j = 0; j < C16; j++) {
                uint4 b[NT];
#pragma unroll
                for (int t = 0; t < NT; t++) {
                    b[t] = mine[(j * p.right * NT + t) * 32];
                }
                multiply3(part, h[j], l[j], b);
            }
            if (tap > 0) {
                add(to, was, before, scale, pitch);
            }
        }
        float was[4][PLANES];
        float *to[4];
        __syncthreads();
        meet(to, x, p, plane, line, along, down, right, cells);
        look(was, to, pitch);
        add(to, was, part, scale, pitch);
    }
    __syncthreads();
    for (int r = warp; r < count * p.right * NT; r += blockDim.x / 32) {     /* eight planes */
        const int image = r / (p.right * NT), result = blockIdx.y * planes + (r - image * p.right * NT) * 8,
                  some = min(8, p.results - result);
        const float mine = lane < some ? p.alpha * p.scale[result + lane] : 0.f;
        const float *from = x + r * 8 * pitch;
        i64 to = (first + image) * p.ts[0] + result * p.ts[1];
        for (int q = 0; q < some; q++, from += pitch, to += p.ts[1]) {
            const float scale = __shfl_sync(0xffffffffu, mine, q);
#pragma unroll 4
            for (int u = lane; u < cells; u += 32) {
                const float v = from[u] * scale;
                p.to[to + u] = p.c0 ? v + p.beta * p.c0[to + u] : v;
            }
        }
    }
}
