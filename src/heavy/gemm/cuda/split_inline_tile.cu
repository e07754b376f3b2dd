/* split_inline_tile.cu: the tiles of split_inline.cu: how a thread loads its part, how a warp splits it
 * into halves, and how a warp multiplies its terms of two tiles. */
#include "heavy/gemm/cuda/split_inline_args.h"
typedef mc_split_inline_positions positions;
typedef mc_split_inline_args args;

typedef unsigned u32;
typedef unsigned short u16;
enum {
    TILE = SPLIT_INLINE_TILE,
    PITCH = SPLIT_INLINE_PITCH,
    WARPS = SPLIT_INLINE_WARPS,
    MINE = 16
}; /* MINE: elements of a tile that a thread loads, along the summed axis */
enum {
    LOW = TILE * PITCH,
    TILES = 4 * LOW
};                             /* LOW: halves of a tile; TILES: of both tiles of a step, high and low */
enum { PLANE = TILE * PITCH }; /* floats of a finished tile; two planes fit in the memory of a step */

struct side {                   /* rows of A, or columns of B: where this thread reads and stores */
    const float *x;
    positions all, terms;
    i64 outer, mine_at;
    int from, rows, mine, first; /* first row of the tile, number of rows; this thread's row and first term */
    int fours;
};

/* A step of a block: its first column, its matrix (of `outer`), its first term. */
struct step { int j, matrix, k; };

__device__ __forceinline__ i64 at(const positions &p, int i)
{
#if LINES
    return i * p.right;
#else
    const int line = i / p.across;
    return line * p.down + (i - line * p.across) * p.right;
#endif
}

__device__ __forceinline__ positions in_line(i64 step)
{
    positions p = { 0, step, 0x7fffffff };
    return p;
}

template <bool DENSE>
__device__ __forceinline__ side side_of(const float *x, const positions &rows, int from, int count,
                                        const positions &terms, i64 outer, int fours)
{
    const int t = threadIdx.x;
    side s;
    s.x = x;
    s.all = rows;
    s.terms = terms;
    s.outer = outer;
    s.from = from;
    s.rows = count;
    s.mine = DENSE ? t / 4 : t % TILE;
    s.first = DENSE ? t % 4 * MINE : t / TILE * MINE;
    s.mine_at = s.mine < count ? at(rows, from + s.mine) : 0;
    s.fours = fours;
    return s;
}

/* Loads this thread's part of a tile, with zeros beyond the matrix. */
template <bool DENSE>
__device__ __forceinline__ void take(float (&v)[MINE], const side &s, int matrix, int from, int end)
{
    const int have = s.mine < s.rows ? end - from - s.first : 0;
    const float *const row = s.x + matrix * s.outer + s.mine_at;
    if (DENSE && s.fours && have >= MINE) {
#pragma unroll
        for (int e = 0; e < MINE; e += 4) {
            const float4 q = *(const float4 *)(row + from + s.first + e);
            v[e] = q.x;
            v[e + 1] = q.y;
            v[e + 2] = q.z;
            v[e + 3] = q.w;
        }
        return;
    }
#if LINES
    const int step = DENSE ? 1 : (int)s.terms.right;
    const float *const term = row + (i64)step * (from + s.first);
#pragma unroll
    for (int e = 0; e < MINE; e++) {
        v[e] = e < have ? term[(i64)step * e] : 0.f;
    }
#else
    const int line = s.terms.across < 0x7fffffff ? (from + s.first) / s.terms.across
                                                 : 0; /* most problems do not need the division */
    int col = from + s.first - line * s.terms.across;
    const float *term = row + line * s.terms.down + col * s.terms.right;
#pragma unroll
    for (int e = 0; e < MINE; e++, col++, term += s.terms.right) {
        if (col == s.terms.across) {
            col = 0;
            term += s.terms.down - s.terms.across * s.terms.right;
        }
        v[e] = e < have ? *term : 0.f;
    }
#endif
}

/* The larger; NaN if either is. */
__device__ __forceinline__ float larger(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

/* The bits of the largest |x| of a warp's elements.  NaN is larger than all. */
__device__ __forceinline__ u32 largest(const float (&v)[MINE])
{
    float most = 0;
#pragma unroll
    for (int e = 0; e < MINE; e++) {
        most = larger(most, fabsf(v[e]));
    }
    return over_warp(__float_as_uint(most));
}

/* Stores the halves of this thread's elements and the factor that undoes its warp's scale.  True: the warp
 * has an infinity or a NaN. */
__device__ __forceinline__ bool split_values(u16 *to, float *unscaled, const side &s, const float (&v)[MINE])
{
    const u32 most = largest(v);
    const int e = min(
        exponent(most),
        126); /* limited so that f is finite; smaller elements still fit: half has 2^24 to spare */
    const float f = __uint_as_float((u32)(127 + e) << 23);
    u32 h[MINE / 2], l[MINE / 2];
    if (threadIdx.x % 32 == 0) {
        unscaled[threadIdx.x / 32] = __uint_as_float((u32)(127 - e) << 23);
    }
#pragma unroll
    for (int i = 0; i < MINE / 2; i++) {
        halve2(v[2 * i] * f, v[2 * i + 1] * f, &h[i], &l[i]);
    }
    uint4 *const at = (uint4 *)(to + s.mine * PITCH + s.first), *const below = (uint4 *)(to + LOW +
                                                                                         s.mine * PITCH +
                                                                                         s.first);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        at[i] = { h[4 * i], h[4 * i + 1], h[4 * i + 2], h[4 * i + 3] };
        below[i] = { l[4 * i], l[4 * i + 1], l[4 * i + 2], l[4 * i + 3] };
    }
    return most >= 0x7f800000;
}

/* The warp that scaled rows [8 i, 8 i + 8) and terms [16 k, 16 k + 16).  DENSE: a warp has 8 rows and all
 * terms; else 32 rows and 16 terms. */
template <bool DENSE> __device__ __forceinline__ int who(int i, int k)
{
    return DENSE ? i : k * 2 + i / 4;
}

/* The position in the tile of element e of a thread's sums.  A warp has two by four matrices of 16 x 8. */
__device__ __forceinline__ int first_row() { return threadIdx.x / 32 % 2 * 32; }
__device__ __forceinline__ int first_col() { return threadIdx.x / 64 % 2 * 32; }
__device__ __forceinline__ int row_of(int e)
{
    return first_row() + e / 8 % 2 * 16 + threadIdx.x % 32 / 4 + e % 4 / 2 * 8;
}
__device__ __forceinline__ int col_of(int e)
{
    return first_col() + e / 16 * 16 + e / 4 % 2 * 8 + threadIdx.x % 4 * 2 + e % 2;
}

/* Adds 16 terms of 16 columns from `col` on. */
__device__ __forceinline__ void multiply_columns(float *sum, const u32 (&h)[2][4], const u32 (&l)[2][4],
                                                 const u16 *b, const float (&scale_a)[4],
                                                 const float *unscaled_b, int col, int k)
{
    const int lane = threadIdx.x % 32;
    const u16 *const at = b + (col + lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8 + k * 16;
    u32 bh[4], bl[4];
    float part[4][4] = {};
    read_rows(bh, at);
    read_rows(bl, at + LOW);
#pragma unroll
    for (int e = 0; e < 4; e++) {
        multiply(part[e], h[e / 2], bl[e % 2 * 2], bl[e % 2 * 2 + 1]);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        multiply(part[e], l[e / 2], bh[e % 2 * 2], bh[e % 2 * 2 + 1]);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        multiply(part[e], h[e / 2], bh[e % 2 * 2], bh[e % 2 * 2 + 1]);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const float scale_b = unscaled_b[who<B_DENSE>(col / 8 + e % 2, k)];
#pragma unroll
        for (int i = 0; i < 4; i++) {   /* limits the scale: 0 times infinity would be NaN */
            sum[e * 4 + i] += part[e][i] * fminf(scale_a[e / 2 * 2 + i / 2] * scale_b, 0x1p127f);
        }
    }
}

/* Adds this warp's terms of a step. */
__device__ __forceinline__ void multiply_tiles(float (&sum)[32], const u16 *tiles,
                                               const float (*unscaled)[WARPS])
{
    const int lane = threadIdx.x % 32;
    const u16 *const row = tiles + (first_row() + lane % 16) * PITCH + lane / 16 * 8, *const b = tiles +
                                                                                                 2 * LOW;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int k = threadIdx.x / 128 * 2 + i;
        u32 h[2][4], l[2][4];
        float scale[4];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            read_rows(h[m], row + m * 16 * PITCH + k * 16);
            read_rows(l[m], row + m * 16 * PITCH + k * 16 + LOW);
        }
#pragma unroll
        for (int m = 0; m < 4; m++) {
            scale[m] = unscaled[0][who<A_DENSE>(first_row() / 8 + m, k)];
        }
        multiply_columns(sum, h, l, b, scale, unscaled[1], first_col(), k);
        multiply_columns(sum + 16, h, l, b, scale, unscaled[1], first_col() + 16, k);
    }
}

/* The plain float32 sum for a row of A and a column of B. */
__device__ __noinline__ float plain_sum(const float *a, const float *b, positions a_terms, positions b_terms,
                                        int from, int end)
{
    float sum = 0;
    for (int k = from; k < end; k++) {
        sum = fmaf(a[at(a_terms, k)], b[at(b_terms, k)], sum);
    }
    return sum;
}

/* The four warps of the first half compute all terms of the step in plain float32. */
__device__ __forceinline__ void multiply_plainly(float (&sum)[32], const side &a, const side &b,
                                                 const step &s, const args &p)
{
    const int end = min(s.k + TILE, p.k), cols = min(p.n - s.j, TILE);
    float more[32];
#pragma unroll 1
    for (int e = 0; e < 32; e++) {
        const int row = row_of(e), col = col_of(e);
        more[e] = threadIdx.x < 128 && row < a.rows && col < cols
                      ? plain_sum(a.x + s.matrix * a.outer + at(a.all, a.from + row),
                                  b.x + s.matrix * b.outer + at(b.all, s.j + col), a.terms, b.terms, s.k, end)
                      : 0;
    }
#pragma unroll
    for (int e = 0; e < 32; e++) {
        sum[e] += more[e];
    }
}
