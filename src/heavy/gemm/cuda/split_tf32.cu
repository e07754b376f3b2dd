/* split_tf32.cu: float32 products of medium matrices on tensor cores, as pairs of TF32 numbers.
 *
 * Each x is high + low: high is x rounded to TF32's 11 bits, low is the rest, of which tensor cores read 11
 * bits.  A product is three of theirs:
 *
 *   a b = high high + high low + low high          low low is below the last bit of float32
 *
 * TF32 has the exponents of float32, so nothing is scaled and a warp splits what it reads from shared memory
 * in registers: no pass packs the operands (split.cu), no warp waits for a scale (split_inline.cu).  Tensor
 * cores have half the speed of halves.
 *
 * A block computes a TILE x TILE tile of C in steps of TERMS terms.  SLOTS steps of A and B are in shared
 * memory, as they are in memory: lines along the terms (A_LONG, B_LONG) or along the tile.  Four warps
 * compute 32 x 32 of C each over the first half of a step's terms, four others over the second half.  The
 * sums of a step are added in float32, since tensor cores truncate theirs.
 *
 * The `splits` blocks of a cluster share the terms of a tile; their sums are added block by block.  An
 * element that is NaN is computed again in plain float32, so infinities give float32's results. */
#include "heavy/gemm/cuda/split_tf32_args.h"
typedef mc_split_tf32_args args;

typedef unsigned u32;
enum {
    TILE = SPLIT_TF32_TILE,
    TERMS = SPLIT_TF32_TERMS,
    SLOTS = SPLIT_TF32_SLOTS,
    SIZE = SPLIT_TF32_SIZE,
    THREADS = SPLIT_TF32_THREADS,
    WIDE = TILE + 4                     /* of a line of a finished tile; two tiles fit in the slots */
};

/* Starts loading `lines` x `along` floats, with zeros beyond the matrix: have lines, of which each has
 * `inside` floats, `step` apart. */
template <int LINES, int ALONG, int PITCH>
__device__ __forceinline__ void bring(float *to, const float *from, i64 step, int have, int inside, int fours)
{
    if (fours) {
#pragma unroll
        for (int i = 0; i < LINES * ALONG / 4 / THREADS; i++) {
            const int e = threadIdx.x + i * THREADS, line = e / (ALONG / 4), at = e % (ALONG / 4) * 4;
            float *const put_at = to + line * PITCH + at;
            const float *const take_at = from + line * step + at;
            if (line < have && at + 4 <= inside) {
                fetch16(put_at, take_at);
            } else {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const bool in = line < have && at + j < inside;
                    fetch4(put_at + j, in ? take_at + j : from, in);
                }
            }
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < LINES * ALONG / THREADS; i++) {
        const int e = threadIdx.x + i * THREADS, line = e / ALONG, at = e % ALONG;
        const bool in = line < have && at < inside;
        fetch4(to + line * PITCH + at, in ? from + line * step + at : from, in);
    }
}

/* A tile of rows of A, or of columns of B, and the terms from k on. */
template <bool LONG>
__device__ __forceinline__ void bring_tile(float *to, const float *from, i64 row_step, i64 term_step, int rows,
                                           int terms, int k, int fours)
{
    if (LONG) {
        bring<TILE, TERMS, TERMS + 4>(to, from + k, row_step, rows, terms - k, fours);
    } else {
        bring<TERMS, TILE, TILE + 8>(to, from + k * term_step, term_step, terms - k, rows, fours);
    }
}

template <bool LONG> __device__ __forceinline__ float of_tile(const float *tile, int row, int term)
{
    return LONG ? tile[row * (TERMS + 4) + term] : tile[term * (TILE + 8) + row];
}

/* Rounds to nearest, as the tensor cores do not. */
__device__ __forceinline__ void split(float x, u32 &high, u32 &low)
{
    high = (__float_as_uint(x) + 0x1000) & 0xffffe000;
    low = __float_as_uint(x - __uint_as_float(high));
}

/* (16 x 8) += (16 x 8) (8 x 8) */
__device__ __forceinline__ void multiply8(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ int first_row() { return threadIdx.x / 32 % 2 * 32; }
__device__ __forceinline__ int first_col() { return threadIdx.x / 64 % 2 * 32; }

/* Adds this warp's half of the terms of a step. */
__device__ __forceinline__ void multiply_step(float (&sum)[8][4], const float *a, const float *b)
{
    const int lane = threadIdx.x % 32, row = first_row() + lane / 4, col = first_col() + lane / 4;
    float part[8][4] = {};
#pragma unroll
    for (int i = 0; i < TERMS / 16; i++) {
        const int k = threadIdx.x / 128 * (TERMS / 2) + i * 8 + lane % 4;
        u32 ah[2][4], al[2][4], bh[4][2], bl[4][2];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            split(of_tile<A_LONG>(a, row + e / 4 * 16 + e % 2 * 8, k + e % 4 / 2 * 4), ah[e / 4][e % 4],
                  al[e / 4][e % 4]);
        }
#pragma unroll
        for (int e = 0; e < 8; e++) {
            split(of_tile<B_LONG>(b, col + e / 2 * 8, k + e % 2 * 4), bh[e / 2][e % 2], bl[e / 2][e % 2]);
        }
#pragma unroll
        for (int e = 0; e < 8; e++) {
            multiply8(part[e], ah[e / 4], bl[e % 4]);
        }
#pragma unroll
        for (int e = 0; e < 8; e++) {
            multiply8(part[e], al[e / 4], bh[e % 4]);
        }
#pragma unroll
        for (int e = 0; e < 8; e++) {
            multiply8(part[e], ah[e / 4], bh[e % 4]);
        }
    }
#pragma unroll
    for (int e = 0; e < 32; e++) {
        sum[e / 4][e % 4] += part[e / 4][e % 4];
    }
}

__device__ __noinline__ float plain_sum(const float *a, const float *b, i64 a_step, i64 b_step, int terms)
{
    float sum = 0;
    for (int k = 0; k < terms; k++) {
        sum = fmaf(a[k * a_step], b[k * b_step], sum);
    }
    return sum;
}

/* Stores the sums of both halves of the terms as two tiles. */
__device__ __forceinline__ void lay_down(const float (&sum)[8][4], float *tiles)
{
    float *const mine = tiles + threadIdx.x / 128 * TILE * WIDE;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < 16; e++) {
        const int row = first_row() + e / 8 * 16 + e % 2 * 8 + lane / 4,
                  col = first_col() + e / 2 % 4 * 8 + lane % 4 * 2;
        *(float2 *)&mine[row * WIDE + col] = make_float2(sum[e / 2][e % 2 * 2], sum[e / 2][e % 2 * 2 + 1]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) product(const __grid_constant__ args p)
{
    follow();
    extern __shared__ float4 shared[];
    float *const slots = (float *)shared;
    const int down = (p.m + TILE - 1) / TILE, i = blockIdx.x % down * TILE, j = blockIdx.x / down * TILE,
              rows = min(p.m - i, TILE), cols = min(p.n - j, TILE), split_of = blockIdx.y;
    const float *const a = p.a + blockIdx.z * p.as[0] + i * p.as[1],
                       *const b = p.b + blockIdx.z * p.bs[0] + j * p.bs[2];
    const int steps = (p.k + TERMS - 1) / TERMS, from = (int)((i64)steps * split_of / p.splits),
              end = (int)((i64)steps * (split_of + 1) / p.splits);
    float sum[8][4] = {};
    const auto load = [&](int step) {
        if (step < end) {
            float *const to = slots + (step - from) % SLOTS * 2 * SIZE;
            bring_tile<A_LONG>(to, a, p.as[1], p.as[2], rows, p.k, step * TERMS, p.fours[0]);
            bring_tile<B_LONG>(to + SIZE, b, p.bs[2], p.bs[1], cols, p.k, step * TERMS, p.fours[1]);
        }
        fetch_mark();
    };
#pragma unroll
    for (int s = 0; s < SLOTS - 1; s++) {
        load(from + s);
    }
#pragma unroll 1
    for (int step = from; step < end; step++) {
        const float *const slot = slots + (step - from) % SLOTS * 2 * SIZE;
        fetched_before<SLOTS - 2>();
        __syncthreads();        /* this step has arrived for all, and all are done with the one before */
        load(step + SLOTS - 1);
        multiply_step(sum, slot, slot + SIZE);
    }
    fetched();
    __syncthreads();
    lay_down(sum, slots);
    if (CLUSTER) {
        meet();
    } else {
        __syncthreads();
    }
    const int each = (TILE + p.splits - 1) / p.splits;      /* rows of the tile that this block finishes */
    const bool by_column = p.cs[2] == 1 || p.cs[1] != 1;
    for (int e = threadIdx.x; e < each * TILE; e += THREADS) {
        const int row = split_of * each + (by_column ? e / TILE : e % each),
                  col = by_column ? e % TILE : e / each;
        if (row >= rows || col >= cols) {
            continue;
        }
        float v = 0;
#pragma unroll 2
        for (int s = 0; s < p.splits; s++) {
            const float *const at = (CLUSTER ? of_block(slots, s) : slots) + row * WIDE + col;
            v += at[0] + at[TILE * WIDE];
        }
        if (v != v) {
            v = plain_sum(a + row * p.as[1], b + col * p.bs[2], p.as[2], p.bs[1], p.k);
        }
        v *= p.alpha;
        if (p.c0) {
            v += p.beta * p.c0[blockIdx.z * p.c0s[0] + (i + row) * p.c0s[1] + (j + col) * p.c0s[2]];
        }
        p.c[blockIdx.z * p.cs[0] + (i + row) * p.cs[1] + (j + col) * p.cs[2]] = finish(v, ACT);
    }
    if (CLUSTER) {
        leave();
    }
}
