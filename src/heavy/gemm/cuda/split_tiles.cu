/* split_tiles.cu: included before split.cu: the arguments, and how tiles of the operands are loaded into
 * shared memory.
 *
 * MODE is the layout of the operands of C = A B:
 *   0   matrices: rows of A, columns of B, each with k running fastest
 *   1   A is the windows of images (image, position, channel), gathered on loading; k is (tap, channel)
 *   2   the gradient of filters: k is (image, position), A is y, channels fastest, B is x shifted by a tap
 *
 * PHASES (MODE 1): there is a product for each phase of the result (struct mc_split_axis).
 *
 * Matrices and filters are packed in tiles as the tensor cores read them (hopper.cu), high before low, and
 * are copied as blocks. */
#include "heavy/gemm/cuda/split_args.h"
typedef mc_split_seen seen;
typedef mc_split_where where;
typedef mc_split_args args;

enum { TM = SPLIT_TM, TK = SPLIT_TK };

/* ---- the products of a launch ---- */

struct part {                   /* one of them */
    int batch, m, steps;
    int group_rows;             /* rows of an image */
    int phase, first, width;    /* PHASES: its number; its first position in the image; positions of a line */
};

__device__ __forceinline__ part part_at(const args &p, int z)
{
#if PHASES
    const int across = p.axis[1].phases, phases = p.axis[0].phases * across, phase = z % phases;
    const mc_split_phase &y = p.axis[0].at[phase / across], &x = p.axis[1].at[phase % across];
    const int rows = y.size * x.size, images = p.m / p.group_rows,
              steps = (y.taps * x.taps * p.channels_pad + TK - 1) / TK;
    return { z / phases, images * rows, steps, rows, phase, y.first * p.out[1] + x.first, x.size };
#else
    return { z, p.m, p.steps, p.group_rows, 0, 0, 0 };
#endif
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* ---- shared memory ---- */

enum { A_BYTES = TM * ROW, B_BYTES = TN * ROW, SLOT = 2 * (A_BYTES + B_BYTES) };

__device__ __forceinline__ void copy16(u32 to, const u16 *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}
__device__ __forceinline__ void copy8(u32 to, const u16 *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(valid ? 8 : 0)
                 : "memory");
}

#if MODE == 1
struct window {                 /* the first element of the windows of this thread's rows */
    int at[TM / 16];            /* offset, in units of UNIT halves */
    u32 corner[TM / 16]; /* row and column in the image, 16 bits each.  INSIDE: no window reads the border */
};

__device__ __forceinline__ void windows(const args &p, const part &q, window &w, int row)
{
#pragma unroll
    for (int i = 0; i < TM / 16; i++) {
        const int mine = row + (threadIdx.x >> 3) + i * 16, r = mine < q.m ? mine : q.m - 1;
        const int image = r / q.group_rows, u = r % q.group_rows;
#if PHASES
        const int y = u / q.width, x = u % q.width;
#else
        const int y = u / p.out[1] * p.stride[0] - p.pad[0], x = u % p.out[1] * p.stride[1] - p.pad[1];
#endif
        w.at[i] = (int)((image * (i64)p.image + ((i64)y * p.in[1] + x) * p.channels_pad) / UNIT);
        w.corner[i] = (u32)(y & 0xffff) << 16 | (u32)(x & 0xffff);
    }
}

__device__ __forceinline__ void load_windows(const args &p, u32 to, const u16 *a, const int2 *taps,
                                             const window &w, int step)
{
    const int piece = threadIdx.x & 7, first = threadIdx.x >> 3;
    to += first * ROW + ((piece ^ (first & 7)) << 4);
#pragma unroll
    for (int u = 0; u < 8 / UNIT; u++) {
        const int2 tap = taps[(step * TK + piece * 8) / UNIT + u];
        const u16 *from = a + tap.x;
#pragma unroll
        for (int i = 0; i < TM / 16; i++) {
#if INSIDE
            const bool valid = true;    /* terms beyond the last tap are multiplied by zeros of the filters */
            const u16 *x = from + (i64)w.at[i] * UNIT;
#else
            const u32 spot = __vadd2(w.corner[i], (u32)tap.y);
            const bool valid = (spot >> 16) < (u32)p.in[0] && (spot & 0xffff) < (u32)p.in[1];
            const u16 *x = valid ? from + (i64)w.at[i] * UNIT : a;
#endif
#if UNIT == 8
            copy16(to + i * 16 * ROW, x, valid);
            copy16(to + i * 16 * ROW + A_BYTES, x + p.a_low, valid);
#else
            copy8(to + i * 16 * ROW + u * 8, x, valid);
            copy8(to + i * 16 * ROW + u * 8 + A_BYTES, x + p.a_low, valid);
#endif
        }
    }
}
#endif

#if MODE == 2
/* Loads 64 positions of y, and of x shifted by a tap.  Rows are positions, in blocks of 64 channels. */
__device__ __forceinline__ void load_positions(const args &p, u32 to, const u16 *y, const u16 *x, int f,
                                               int c, int t, int step)
{
    const int piece = threadIdx.x & 7, first = threadIdx.x >> 3, positions = p.out[0] * p.out[1];
    const int t0 = t / p.taps1 * p.dilation[0] - p.pad[0], t1 = t % p.taps1 * p.dilation[1] - p.pad[1];
#pragma unroll
    for (int i = 0; i < TK / 16; i++) {
        const int r = first + i * 16, k = step * TK + r;
        const int image = k / positions, u = k - image * positions;
        const int line = u / p.out[1], row = line * p.stride[0] + t0,
                  col = (u - line * p.out[1]) * p.stride[1] + t1;
        const bool is = k < p.k, valid = is && (u32)row < (u32)p.in[0] && (u32)col < (u32)p.in[1];
        const u16 *from_y = y + (is ? image * p.y_image + (i64)u * p.y_pad : 0);
        const u16 *from_x = x +
                            (valid ? image * (i64)p.image + ((i64)row * p.in[1] + col) * p.channels_pad : 0);
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
            const bool ok = valid && j < p.channels_pad;
            copy16(at + 2 * A_BYTES + block * TK * ROW, from_x + (ok ? j : 0), ok);
            copy16(at + 2 * A_BYTES + block * TK * ROW + B_BYTES, from_x + (ok ? j : 0) + p.b_low, ok);
        }
    }
}
#endif
#endif
