/* tma.cu: convolutions as products on Hopper's tensor cores, for images with contiguous channels.
 *
 * Rows of a product are positions, its columns are results, its terms are the channels that each tap
 * reads.  The rows of a tile are a box of images, lines and positions.  What a tap reads of them is a box
 * as well: the copy engine copies it at once, with zeros outside of the image.  A tap that reads nothing
 * inside the image from any position of the box is skipped; im2col would multiply zeros there.
 *
 * The positions of a tile are of one phase: of a gradient with strides, those that the same taps reach.
 *
 * A block computes the tiles of its list (tma_tiling.c) one after the other.  Its first warps load
 * operands, SLOTS steps ahead, while two groups of four warps multiply the loaded ones, MI times 64 rows
 * each.
 *
 *   T, HALF     elements, and whether they have two bytes; the copy engine rounds others to TF32
 *   TN          columns of a tile
 *   DOWN        results, not terms, are the contiguous axis of filters
 *   WIDE        bytes of a row of a tile, 128, 64 or 32: channels of a step
 *   PARTS       blocks of a cluster, which divide the terms of a tile; 1, or a block has one tile
 *   ALONE       each of the two groups has its own tiles: one stores its results while the other multiplies
 *   AXES        axes of an image, 2 or 3
 *   ADDS        whether sums have addends: c0 or a bias
 *   ACT         the activation; a switch over all of them at each place of use would be too much code */
#include "heavy/conv/cuda/implicit/tma_args.h"
typedef mc_conv_tma_tile tile;
typedef mc_conv_tma_args args;

enum {
    TM = TMA_ROWS * MI,
    SIZE = HALF ? 2 : 4,
    TK = WIDE / SIZE,
    /* bytes of a row of filters, and results that it holds if they are contiguous */
    ROW_B = !DOWN ? WIDE : TN % 64 ? ROW / 2 : ROW,
    COLUMNS = ROW_B / SIZE,
    A_BYTES = TM * WIDE,
    B_BYTES = TN * WIDE,
    SLOT = (A_BYTES + B_BYTES + 1023) / 1024 * 1024
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* ---- taps ---- */

struct range { int first, last; };
__device__ __forceinline__ range taps(const args &p, const tile &t, int axis)
{
    const mc_conv_tma_phase &of = p.phase[axis][t.phase[axis]];
    const int from = t.at[axis], count = p.box[axis + 1], d = p.dilation[axis];
    const int end = from + count < of.out ? from + count : of.out;
    const int low = of.pad - (end - 1) * p.stride[axis],
              high = p.in[axis] - 1 + of.pad - from * p.stride[axis];
    range r = { low > 0 ? (low + d - 1) / d : 0, high < 0 ? -1 : high / d };
    r.last = r.last < of.k ? r.last : of.k - 1;
    return r;
}

__device__ __forceinline__ int steps(const args &p, const tile &t)
{
    int n = p.chunks;
#pragma unroll
    for (int axis = 3 - AXES; axis < 3; axis++) {
        const range r = taps(p, t, axis);
        n *= r.last < r.first ? 0 : r.last - r.first + 1;
    }
    return n;
}

/* The first of so many steps of a tile that is this block's, or the next one's. */
__device__ __forceinline__ int share(int steps, int next)
{
    return PARTS == 1 ? next * steps : steps * (int)(blockIdx.y + next) / PARTS;
}

/* ---- operands ---- */

__device__ __forceinline__ void copy_images(u32 to, const map &m, int c, const int (&at)[3], int n,
                                            u32 barrier)
{
#if AXES == 3
    copy_box5(to, m, c, at[2], at[1], at[0], n, barrier);
#else
    copy_box4(to, m, c, at[2], at[1], n, barrier);
#endif
}

/* The step that is loaded: taps by axis, and the chunk of channels. */
struct step {
    range taps[3];
    int tap[3], chunk;
};
__device__ __forceinline__ step first_step(const args &p, const tile &t)
{
    step s;
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        s.taps[axis] = AXES == 3 || axis > 0 ? taps(p, t, axis) : range{ 0, 0 };
        s.tap[axis] = s.taps[axis].first;
    }
    s.chunk = 0;
#if PARTS > 1
    int rest = share(steps(p, t), 0);
    s.chunk = rest % p.chunks;
    rest /= p.chunks;
#pragma unroll
    for (int axis = 2; axis >= 0; axis--) {
        const int n = s.taps[axis].last - s.taps[axis].first + 1;
        s.tap[axis] += n > 0 ? rest % n : 0;
        rest /= n > 0 ? n : 1;
    }
#endif
    return s;
}
__device__ __forceinline__ void advance(const args &p, step &s)
{
    if (++s.chunk < p.chunks) {
        return;
    }
    s.chunk = 0;
#pragma unroll
    for (int axis = 2; axis >= 0; axis--) {
        if (++s.tap[axis] <= s.taps[axis].last) {
            return;
        }
        s.tap[axis] = s.taps[axis].first;
    }
}

__device__ __forceinline__ void bring_step(const args &p, const tile &t, const step &s, u32 to, u32 full)
{
    int at[3], tap = 0;
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        const mc_conv_tma_phase &of = p.phase[axis][t.phase[axis]];
        at[axis] = t.at[axis] * p.stride[axis] - of.pad + s.tap[axis] * p.dilation[axis];
        tap += of.first + s.tap[axis] * p.step[axis];
    }
    barrier_expect(full, p.box[0] * p.box[1] * p.box[2] * p.box[3] * WIDE + B_BYTES);
    copy_images(to, p.from, s.chunk * TK, at, t.image, full);
#if DOWN
#pragma unroll
    for (int j = 0; j < TN; j += COLUMNS) {
        copy_box3(to + A_BYTES + j * WIDE, p.filters, t.column + j, tap, s.chunk * TK, full);
    }
#else
    copy_box3(to + A_BYTES, p.filters, s.chunk * TK, tap, t.column, full);
#endif
}

/* Loads operands; run by one thread. */
__device__ __forceinline__ void bring(const args &p, const shared &m)
{
    u32 n = 0;
    for (int i = p.first[blockIdx.x]; i < p.first[blockIdx.x + 1]; i++) {
        const tile t = p.tiles[i];
        const int all = steps(p, t);
        step s = first_step(p, t);
        for (int left = share(all, 1) - share(all, 0); left > 0; left--, n++) {
            const u32 slot = n % SLOTS, full = m.full + slot * 8;
            if (n >= SLOTS) {
                barrier_wait(m.empty + slot * 8, (n / SLOTS - 1) & 1);
            }
            bring_step(p, t, s, m.slots + slot * SLOT, full);
            advance(p, s);
        }
    }
}

/* ---- products ---- */

/* R: of a thread's sums of 64 rows; G: of a group, 64 rows each */
enum { R = TN / 2, G = ALONE ? 2 * MI : MI };
struct sums { float of[G][R]; };

/* The sums of 64 G rows of a tile; n counts the steps of all tiles; index: of the tiles with taps.  A wait
 * for a slot does not tell a phase from the next but one, so a group waits for its turn first. */
__device__ __forceinline__ void multiply(sums &s, const shared &m, u32 rows, int count, u32 &n,
                                         u32 index)
{
    enum { ON = 32 >> 4, ON_B = DOWN ? 16 * ROW_B >> 4 : ON };
    if (ALONE && count > 0) {
        if (index > 0) {
            barrier_wait(m.turn + index % 2 * 8, (index - 1) / 2 & 1);
        }
        /* no warp is left a phase behind */
        asm volatile("bar.sync %0, 128;" ::"r"(2 + index % 2) : "memory");
    }
    for (int step = 0; step < count; step++, n++) {
        const u32 slot = n % SLOTS, at = m.slots + slot * SLOT;
        const u64 b = tile_at<ROW_B>(at + A_BYTES, DOWN ? TK * ROW_B : ALONG);
        barrier_wait(m.full + slot * 8, n / SLOTS & 1);
#pragma unroll
        for (int i = 0; i < G; i++) {
            settle(s.of[i]);
        }
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < G; i++) {
            const u64 a = tile_at<WIDE>(at + (rows + i * 64) * WIDE, ALONG);
#pragma unroll
            for (int k = 0; k < WIDE / 32; k++) {
                wgmma(s.of[i], a + k * ON, b + k * ON_B, step > 0 || k > 0);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (step > 0 && (threadIdx.x & 127) == 0) {     /* the previous step is complete */
            barrier_arrive(m.empty + (n - 1) % SLOTS * 8);
        }
    }
    if (ALONE && count > 0 && (threadIdx.x & 127) == 0) {
        barrier_arrive(m.turn + (index + 1) % 2 * 8);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (count > 0 && (threadIdx.x & 127) == 0) {
        barrier_arrive(m.empty + (n - 1) % SLOTS * 8);
    }
#pragma unroll
    for (int i = 0; i < G; i++) {
        settle(s.of[i]);
#pragma unroll
        for (int j = 0; j < R; j++) {
            s.of[i][j] = count > 0 ? s.of[i][j] : 0;    /* no tap read inside an image */
        }
    }
}

/* ---- results ---- */

/* negative: the row is outside the result */
__device__ __forceinline__ i64 row_at(const args &p, const tile &t, int row)
{
    i64 at = 0;
    bool is = true;
#pragma unroll
    for (int axis = 2; axis >= 3 - AXES; axis--) {
        const int u = t.at[axis] + row % p.box[axis + 1];
        is = is && u < p.phase[axis][t.phase[axis]].out;
        at += (u * p.phases[axis] + t.phase[axis]) * p.ts[axis + 1];
        row /= p.box[axis + 1];
    }
    is = is && row < p.box[0] && t.image + row < p.images;
    return is ? at + (t.image + row) * p.ts[0] : -1;
}

/* Two adjacent columns of the row at `at`; negative: no such row. */
struct pair { float a, b; };
__device__ __forceinline__ pair finished(const args &p, i64 at, int column, float a, float b)
{
    pair v = { a * p.alpha, b * p.alpha };
#if ADDS
    const bool is = at >= 0 && column < p.results;
    if (p.c0 && is) {
        v.a += p.beta * get<float>(p.c0[at + column]);
        v.b += p.beta * get<float>(p.c0[at + column + 1]);
    }
    if (p.bias && is) {
        v.a += get<float>(p.bias[column]);
        v.b += get<float>(p.bias[column + 1]);
    }
#endif
    return { finish(v.a, ACT), finish(v.b, ACT) };
}

/* 32 columns of a row; each lane of a quad has two of each eight. */
__device__ __forceinline__ void deliver_row(const args &p, i64 at, int column, const float *sum)
{
    const int lane = threadIdx.x & 3;
#if HALF
    u32 w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const pair v = finished(p, at, column + i * 8 + lane * 2, sum[i * 4], sum[i * 4 + 1]);
        w[i] = put<T>(v.a).bits | (u32)put<T>(v.b).bits << 16;
    }
    turn(w);
    if (at >= 0 && column + lane * 8 < p.results) {
        *(uint4 *)(p.to + at + column + lane * 8) = make_uint4(w[0], w[1], w[2], w[3]);
    }
#else
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int mine = column + i * 8 + lane * 2;
        const pair v = finished(p, at, mine, sum[i * 4], sum[i * 4 + 1]);
        if (at >= 0 && mine < p.results) {
            *(float2 *)(p.to + at + mine) = make_float2(v.a, v.b);
        }
    }
#endif
}

__device__ __forceinline__ void deliver(const args &p, const tile &t, int row, const sums &s)
{
    const int mine = row + (threadIdx.x >> 5 & 3) * 16 + (threadIdx.x & 31) / 4;
#pragma unroll
    for (int i = 0; i < G; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const i64 at = row_at(p, t, mine + i * 64 + half * 8);
#pragma unroll
            for (int c = 0; c < TN; c += 32) {
                deliver_row(p, at, t.column + c, &s.of[i][c / 2 + half * 2]);
            }
        }
    }
}

#if PARTS > 1
/* The same for the sums of a cluster's blocks: each block adds and stores every PARTS-th piece of all.  A
 * piece is 32 columns of 64 rows, eight sums a thread. */
__device__ __forceinline__ void deliver_parts(const args &p, const tile &t, int row, const sums &s,
                                              float *space)
{
    const int thread = threadIdx.x - 128, mine = row + (thread >> 5 & 3) * 16 + (thread & 31) / 4;
    asm volatile("bar.sync 1, 256;" ::: "memory");      /* all tiles are multiplied: the space is free */
#pragma unroll
    for (int i = 0; i < MI * 2 * TN / 32; i++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            space[(i * 8 + j) * 256 + thread] =
                s.of[i / 2 / (TN / 32)][i / 2 % (TN / 32) * 16 + i % 2 * 2 + j / 2 * 4 + j % 2];
        }
    }
    meet();
    for (int i = blockIdx.y; i < MI * 2 * TN / 32; i += PARTS) {
        float sum[16] = { 0 };
        for (int part = 0; part < PARTS; part++) {
            const float *from = of_block(space, part) + i * 8 * 256 + thread;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                sum[j / 2 * 4 + j % 2] += from[j * 256];
            }
        }
        const i64 at = row_at(p, t, mine + i / 2 / (TN / 32) * 64 + i % 2 * 8);
        deliver_row(p, at, t.column + i / 2 % (TN / 32) * 32, sum);
    }
    leave();
}
#endif

extern "C" __global__ void __launch_bounds__(384, 1) box(const __grid_constant__ args p)
{
    follow();
    extern __shared__ __align__(1024) unsigned char space[];
    shared m;
    m.full = ((u32)__cvta_generic_to_shared(space) + 1023) & ~1023u;
    m.empty = m.full + SLOTS * 8;
    m.turn = m.empty + SLOTS * 8;
    m.slots = m.full + 1024;
    if (threadIdx.x == 0) {
        barrier_make(m.turn, 1);
        barrier_make(m.turn + 8, 1);
        make_barriers(m, SLOTS, ALONE ? 1 : 2);
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            bring(p, m);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int group = (threadIdx.x >> 7) - 1, rows = ALONE ? 0 : group * 64 * MI;
    const int first = p.first[blockIdx.x], end = p.first[blockIdx.x + 1];
    u32 n = 0, turn = 0;        /* turn: of tiles that have taps */
    tile next = p.tiles[first];
    for (int i = first; i < end; i++) {
        const tile t = next;
        const int all = steps(p, t);
        next = p.tiles[i + 1 < end ? i + 1 : i];
        const int index = all > 0 ? turn++ : i;
        if (ALONE && index % 2 != group) {
            n += all;
            continue;
        }
        sums s;
        multiply(s, m, rows, share(all, 1) - share(all, 0), n, index);
#if PARTS == 1
        deliver(p, t, rows, s);
#else
        deliver_parts(p, t, rows, s, (float *)(space + (m.slots - (u32)__cvta_generic_to_shared(space))));
#endif
    }
}
#else
extern "C" __global__ void box(const __grid_constant__ args) {}
#endif
