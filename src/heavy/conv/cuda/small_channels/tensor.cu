/* tensor.cu: convolution of images of few channels on tensor cores: what few_tensor_forward.cu and few_tensor_weights.cu share.
 *
 * A tile's rows of x lie in shared memory with their zeros around, as cells: halves, or floats rounded to TF32.  From there
 * terms are gathered, one by one, into the registers that tensor cores multiply from: no matrix of windows is ever written,
 * and where taps lie does not matter.
 *
 * Those registers are two an eight: of eight rows, or columns, lane l has number l / 4, and of the STEP terms of a product the
 * LANE from l % 4 * LANE on.  Two eights are the rows of a product, one its columns.
 *
 * Compiled in: OH x OW places of y; BESIDE: y's filters lie side by side, else its lines are dense; INSIDE: so do x's channels,
 * and in a tile too.  A tile's line has PITCH cells: LEFT in front of x's first, LEAD in front of the first window.  MANY: tiles
 * are several images; DENSE: all their places lie one behind the other in y; STRAIGHT: x's lines can be fetched in words. */
#include "heavy/conv/cuda/small_channels/small_channels_args.h"
typedef mc_small_channels_tensor_args args;

enum { MIXED = INSIDE ? C : 1, PLANES = C / MIXED };

template <int N> struct alignas(4 * N) words { u32 v[N]; };

/* A lane's terms, for a product. */
__device__ __forceinline__ void join(u32 (&r)[2], const cell (&v)[LANE])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        r[i] = HALVES ? v[i * LANE / 2] | (u32)v[(i + 1) * LANE / 2 - 1] << 16 : v[i * LANE / 2];
    }
}

/* ---- tiles ---- */

enum { AHEAD = 8 };             /* cells of a thread that are under way */

/* A line of x, of which there are so many cells, as it lies: words as they come, and zeros around them. */
__device__ __forceinline__ void fetch_line(const T *from, cell *to, int count)
{
    for (int q = threadIdx.x % 32; q < PITCH / EACH; q += 32) {
        const int first = q * EACH - LEFT;
        cell *const at = to + q * EACH;
        if (first >= 0 && first + EACH <= count) {
            fetch16((float *)at, (const float *)(from + first));
        } else {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                at[i] = first + i >= 0 && first + i < count ? cell_of(from[first + i]) : (cell)0;
            }
        }
    }
}

/* Of what was fetched as floats: each lane what it asked for. */
__device__ __forceinline__ void round_line(cell *line)
{
    for (int q = threadIdx.x % 32; q < PITCH / EACH; q += 32) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            line[q * EACH + i] = cell_of(__uint_as_float(line[q * EACH + i]));
        }
    }
}

/* The same of a line that lies otherwise. */
__device__ __forceinline__ void read_line(const args &p, const T *from, cell *to, int count)
{
    for (int q0 = threadIdx.x % 32; q0 < PITCH; q0 += 32 * AHEAD) {
        cell v[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const int at = q0 + 32 * i - LEFT;
            v[i] = at >= 0 && at < count ? cell_of(from[at / MIXED * p.xs[3] + at % MIXED]) : (cell)0;
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (q0 + 32 * i < PITCH) {
                to[q0 + 32 * i] = v[i];
            }
        }
    }
}

/* Rows of x, zeros where it has none: (image, channel, line, PITCH), or where channels lie side by side (image, line, PITCH). */
__device__ __forceinline__ void load(const args &p, const tile &a, cell *to)
{
    const int first = a.row * SH - p.pad[0], warp = threadIdx.x / 32, lines = a.images * PLANES * p.lines;
    for (int e = warp; e < lines; e += blockDim.x / 32) {
        const int plane = e / p.lines, row = first + e - plane * p.lines;
        const bool in = row >= 0 && row < p.in[0];
        const T *const from = p.x + (a.image + plane / PLANES) * p.xs[0] + plane % PLANES * p.xs[1] + (in ? row : 0) * p.xs[2];
        if (STRAIGHT && p.straight) {
            fetch_line(from, to + e * PITCH, in ? p.in[1] * MIXED : 0);
        } else {
            read_line(p, from, to + e * PITCH, in ? p.in[1] * MIXED : 0);
        }
    }
    if (STRAIGHT && p.straight) {
        fetched();
        for (int e = warp; !HALVES && e < lines; e += blockDim.x / 32) {
            round_line(to + e * PITCH);
        }
    }
}

/* The first cell of a place's window, of a tile's places in order; and from there to its tap k: as bytes. */
__device__ __forceinline__ int window_at(const args &p, int place)
{
    const int line = place / OW, image = MANY ? line / OH : 0;
    return ((image * PLANES * p.lines + (line - image * OH) * SH) * PITCH + LEAD + (place - line * OW) * SW * MIXED) * (int)sizeof(cell);
}
__device__ __forceinline__ int tap_at(const args &p, int k)
{
    const int c = k / (KH * KW), at = ((INSIDE ? 0 : c * p.lines) + k / KW % KH) * PITCH + k % KW * MIXED;
    return (at + (INSIDE ? c : 0)) * (int)sizeof(cell);
}
__device__ __forceinline__ cell cell_at(const cell *x, int byte)
{
    return *(const cell *)((const char *)x + byte);
}

/* Its result, of the first filter. */
__device__ __forceinline__ i64 result_at(const args &p, const tile &a, int place)
{
    if (DENSE) {
        return a.image * p.ys[0] + a.row * p.ys[2] + place * p.ys[3];
    }
    const int line = place / OW, image = MANY ? line / OH : 0;
    return (a.image + image) * p.ys[0] + (a.row + line - image * OH) * p.ys[2] + (place - line * OW) * p.ys[3];
}
