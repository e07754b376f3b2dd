/* tensor.cu: convolution of images of few channels on tensor cores: shared by tensor_forward.cu and
 * tensor_weights.cu.
 *
 * A tile's rows of x are in shared memory with their border of zeros, as cells: halves, floats rounded to
 * TF32, floats, or floats as pairs of halves (element.cu).  Terms are gathered from there, one by one, into
 * the registers that tensor cores read.  No matrix of windows is stored, and the addresses of taps need not
 * be regular.
 *
 * An eight of rows or columns takes two registers: lane l has row (or column) l / 4, and of the STEP terms
 * of a product the LANE terms from l % 4 * LANE on.  Two eights are the rows of a product, one is its
 * columns.
 *
 * Compiled in: OH x OW positions of y; BESIDE: y's filters are contiguous, else its lines are; INSIDE: x's
 * channels are contiguous, in a tile too.  A tile's line has PITCH cells: LEFT before x's first, LEAD
 * before the first window.  MANY: a tile is several images; DENSE: its positions are contiguous in y;
 * STRAIGHT: x's lines can be fetched in words. */
#include "heavy/conv/cuda/small_channels/small_channels_args.h"
typedef mc_small_channels_tensor_args args;

/* PLANES: of a tile, for an image */
enum { MIXED = INSIDE ? C : 1, PLANES = C * KD / MIXED };

template <int N> struct alignas(4 * N) words { u32 v[N]; };

/* The terms of a lane for a product. */
__device__ __forceinline__ void join(u32 (&r)[2], const cell (&v)[LANE])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        r[i] = HALVES ? v[i * LANE / 2] | (u32)v[(i + 1) * LANE / 2 - 1] << 16 : v[i * LANE / 2];
    }
}

/* ---- tiles ---- */

enum { AHEAD = 8 };             /* cells that a thread has in flight */

/* Copies a line of x, of `count` cells, in words, with zeros around it. */
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

/* Rounds what was fetched as floats; each lane rounds the words that it fetched. */
__device__ __forceinline__ void round_line(cell *line)
{
    for (int q = threadIdx.x % 32; q < PITCH / EACH; q += 32) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            line[q * EACH + i] = cell_of(__uint_as_float(line[q * EACH + i]));
        }
    }
}

/* The same for a line that cannot be fetched in words. */
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

/* Rows of x, zeros outside: (image, channel, line, PITCH), or with contiguous channels (image, line,
 * PITCH). */
__device__ __forceinline__ void load(const args &p, const tile &a, cell *to)
{
    const int first = a.row * SH - p.pad[0], warp = threadIdx.x / 32, lines = a.images * PLANES * p.lines;
    for (int e = warp; e < lines; e += blockDim.x / 32) {
        const int plane = e / p.lines, row = first + e - plane * p.lines;
        const int channel = plane % PLANES / KD, image = read_by(a.image + plane / PLANES, plane % KD);
        const bool in = row >= 0 && row < p.in[0] && image >= 0;
        const T *const from = p.x + x_plane(p, in ? image : 0) + channel * p.xs[1] + (in ? row : 0) * p.xs[2];
        if (STRAIGHT && p.straight) {
            fetch_line(from, to + e * PITCH, in ? p.in[1] * MIXED : 0);
        } else {
            read_line(p, from, to + e * PITCH, in ? p.in[1] * MIXED : 0);
        }
    }
    if (STRAIGHT && p.straight) {
        fetched();
        for (int e = warp; !HALVES && !FINE && e < lines; e += blockDim.x / 32) {
            round_line(to + e * PITCH);
        }
    }
}

/* Offset of the window of a tile's position, and from there to its tap k: in bytes. */
__device__ __forceinline__ int window_at(const args &p, int position)
{
    const int line = position / OW, image = MANY ? line / OH : 0;
    return ((image * PLANES * p.lines + (line - image * OH) * SH) * PITCH + LEAD +
            (position - line * OW) * SW * MIXED) *
           (int)sizeof(cell);
}
__device__ __forceinline__ int tap_at(const args &p, int k)
{
    const int plane = k / (KH * KW), first = (INSIDE ? plane % KD : plane) * p.lines,
              at = (first + k / KW % KH) * PITCH + k % KW * MIXED;
    return (at + (INSIDE ? plane / KD : 0)) * (int)sizeof(cell);
}
__device__ __forceinline__ cell cell_at(const cell *x, int byte)
{
    return *(const cell *)((const char *)x + byte);
}

/* Address of its result for the first filter. */
__device__ __forceinline__ i64 result_at(const args &p, const tile &a, int position)
{
    if (DENSE) {
        return y_plane(p, a.image) + a.row * p.ys[2] + position * p.ys[3];
    }
    const int line = position / OW, image = MANY ? line / OH : 0;
    return y_plane(p, a.image + image) + (a.row + line - image * OH) * p.ys[2] +
           (position - line * OW) * p.ys[3];
}
