/* spectra.cu: products of complex matrices, one for each frequency: C = A' B, where A is (k, m), B is (k,
 * n) and C is in float32. products.cu (floats) and products_half.cu (halves) build on it.
 *
 *   multiply   tiles of 64 x 64 on tensor cores: in products.cu and products_half.cu
 *   thin       m up to 4, lda 4
 *   pairs4     BESIDE interleaved frequencies; a thread has a pair of them and 4 rows of C
 *   pairs8     the same, 8 rows
 *
 * Invariant: sums run over k in order, so every run gives the same bits. */
#if HALVES
typedef unsigned number; /* its real half, then the imaginary one */

__device__ __forceinline__ float2 wide_of(number v)
{
    half re, im;
    re.bits = (unsigned short)v;
    im.bits = (unsigned short)(v >> 16);
    return make_float2(get<float>(re), get<float>(im));
}
#else
typedef float2 number;

__device__ __forceinline__ float2 wide_of(number v)
{
    return v;
}
#endif

#include "heavy/conv/cuda/fft/fft_product_args.h"
typedef mc_fft_product_args product;
template <int N> struct __align__(N * sizeof(number) < 16 ? N * sizeof(number) : 16) numbers
{
    number at[N];
};

/* Two adjacent numbers of C. */
__device__ __forceinline__ void put(const product &p, float4 *to, float4 v)
{
    const float4 was = p.add ? *to : make_float4(0, 0, 0, 0);
    *to = make_float4(was.x + v.x, was.y + v.y, was.z + v.z, was.w + v.w);
}

/* A lane's part of a 16 x 8 fragment: rows m and m + 8, columns n and n + 1. */
__device__ __forceinline__ void put_fragment(const product &p, i64 m, i64 n, const float *re, const float *im)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (m + 8 * h < p.m && n < p.ldc) {
            put(p, (float4 *)(p.c + (blockIdx.y * p.m + m + 8 * h) * p.ldc + n),
                make_float4(re[2 * h], im[2 * h], re[2 * h + 1], im[2 * h + 1]));
        }
    }
}

__device__ __forceinline__ void madd(float &re, float &im, float2 a, float2 b)
{
    re += a.x * b.x;
    im += a.x * b.y;
    re -= a.y * b.y;
    im += a.y * b.x;
}

/* Two columns of C, from one number of A and two of B. */
__device__ __forceinline__ void madd(float4 &sum, number a, const numbers<2> &b)
{
    madd(sum.x, sum.y, wide_of(a), wide_of(b.at[0]));
    madd(sum.z, sum.w, wide_of(a), wide_of(b.at[1]));
}

/* lda is FFT_THIN: two columns a thread. */
extern "C" __global__ void __launch_bounds__(FFT_PER_BLOCK / 2) thin(const __grid_constant__ product p)
{
    const i64 n = 2 * (blockIdx.x * (i64)(FFT_PER_BLOCK / 2) + threadIdx.x);
    const number *a = p.a + blockIdx.y * p.k * FFT_THIN, *b = p.b + blockIdx.y * p.k * p.ldb + n;
    float4 sum[FFT_THIN] = {};
    if (n >= p.ldb) {
        return;
    }
#pragma unroll 8
    for (i64 k = 0; k < p.k; k++) {
        const numbers<FFT_THIN> left = *(const numbers<FFT_THIN> *)(a + FFT_THIN * k);
        const numbers<2> right = *(const numbers<2> *)(b + k * p.ldb);
#pragma unroll
        for (int i = 0; i < FFT_THIN; i++) {
            madd(sum[i], left.at[i], right);
        }
    }
#pragma unroll
    for (int i = 0; i < FFT_THIN; i++) {
        if (i < p.m) {
            put(p, (float4 *)(p.c + (blockIdx.y * p.m + i) * p.ldc + n), sum[i]);
        }
    }
}

/* ---- two frequencies at once ---- */

template <int M> __device__ __forceinline__ void pairs(const product &p)
{
    enum { PAIRS = BESIDE / 2, COLUMNS = FFT_PER_BLOCK / PAIRS };
    const int pair = threadIdx.x % PAIRS;
    const i64 wide = (p.n + COLUMNS - 1) / COLUMNS, m0 = blockIdx.x / wide * M,
              n = blockIdx.x % wide * COLUMNS + threadIdx.x / PAIRS;
    const numbers<2> *a = (const numbers<2> *)p.a + (blockIdx.y * p.k * p.lda + m0) * PAIRS + pair;
    const numbers<2> *b = (const numbers<2> *)p.b + (blockIdx.y * p.k * p.ldb + n) * PAIRS + pair;
    float4 sum[M] = {};
    if (n >= p.n) {
        return;
    }
#pragma unroll 4
    for (i64 k = 0; k < p.k; k++, a += p.lda * PAIRS, b += p.ldb * PAIRS) {
        const numbers<2> r = *b;
#pragma unroll
        for (int i = 0; i < M; i++) {
            const numbers<2> l = m0 + i < p.m ? a[i * PAIRS] : numbers<2>{};
            madd(sum[i].x, sum[i].y, wide_of(l.at[0]), wide_of(r.at[0]));
            madd(sum[i].z, sum[i].w, wide_of(l.at[1]), wide_of(r.at[1]));
        }
    }
#pragma unroll
    for (int i = 0; i < M; i++) {
        if (m0 + i < p.m) {
            put(p, (float4 *)p.c + ((blockIdx.y * p.m + m0 + i) * p.ldc + n) * PAIRS + pair, sum[i]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(FFT_PER_BLOCK) pairs4(const __grid_constant__ product p)
{
    pairs<FFT_THIN>(p);
}

extern "C" __global__ void __launch_bounds__(FFT_PER_BLOCK) pairs8(const __grid_constant__ product p)
{
    pairs<2 * FFT_THIN>(p);
}
