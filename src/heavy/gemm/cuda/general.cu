/* general.cu: C = alpha A B + beta C0 with any strides.  A block computes a TM by TN tile of C, a thread
 * RM by RN elements of it.
 *
 * Every element is one sum over k in order, so results do not depend on the tile size. */
#include "heavy/gemm/cuda/general_args.h"
typedef mc_gemm_plain_args args;

enum { SIDE = GENERAL_SIDE };
#define TM (SIDE * RM)
#define TN (SIDE * RN)
#define TK 16

/* Loads rows [i, i + R) and columns [k, k + TK) of a matrix, transposed, with zeros outside the matrix.
 * BY_K: adjacent threads read adjacent k. */
template <int R, bool BY_K>
__device__ __forceinline__ void load(A (*to)[R + 1], const T *from, i64 row, i64 col, i64 i, i64 rows, i64 k,
                                     i64 cols)
{
#pragma unroll
    for (int e = threadIdx.x; e < R * TK; e += SIDE * SIDE) {
        const int x = BY_K ? e / TK : e % R, y = BY_K ? e % TK : e / R;
        to[y][x] = i + x < rows && k + y < cols ? get<A>(from[(i + x) * row + (k + y) * col]) : (A)0;
    }
}

__device__ __forceinline__ void store(const args &p, i64 batch, i64 i, i64 j, A sum)
{
#if FLOAT
    A v = (A)p.alpha * sum;
    if (HAS_C0) {
        v += (A)p.beta * get<A>(p.c0[batch * p.c0s[0] + i * p.c0s[1] + j * p.c0s[2]]);
    }
    v = finish(v, ACT);
#else
    A v = (A)(i64)p.alpha * sum;
    if (HAS_C0) {
        v += (A)(i64)p.beta * get<A>(p.c0[batch * p.c0s[0] + i * p.c0s[1] + j * p.c0s[2]]);
    }
    v = ACT == ACT_RELU && (T)v < (T)0 ? (A)0 : v;
#endif
    p.c[batch * p.cs[0] + i * p.cs[1] + j * p.cs[2]] = put<T>(v);
}

extern "C" __global__ void __launch_bounds__(SIDE * SIDE) gemm(const __grid_constant__ args p)
{
    follow();
    __shared__ A sa[TK][TM + 1], sb[TK][TN + 1];
    const INDEX across = (INDEX)((p.n + TN - 1) / TN), down = (INDEX)((p.m + TM - 1) / TM),
                tiles = across * down, all = tiles * (INDEX)p.batch;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    for (INDEX block = blockIdx.x; block < all; block += gridDim.x) {
        const i64 batch = block / tiles, i = (i64)(block % tiles / across) * TM,
                  j = (i64)(block % across) * TN;
        const T *a = p.a + batch * p.as[0], *b = p.b + batch * p.bs[0];
        A acc[RM][RN] = {};
        for (i64 k = 0; k < p.k; k += TK) {
            load<TM, A_BY_K>(sa, a, p.as[1], p.as[2], i, p.m, k, p.k);
            load<TN, B_BY_K>(sb, b, p.bs[2], p.bs[1], j, p.n, k, p.k);
            __syncthreads();
#pragma unroll
            for (int z = 0; z < TK; z++) {
                A va[RM], vb[RN];
#pragma unroll
                for (int r = 0; r < RM; r++) {
                    va[r] = sa[z][y + SIDE * r];
                }
#pragma unroll
                for (int r = 0; r < RN; r++) {
                    vb[r] = sb[z][x + SIDE * r];
                }
#pragma unroll
                for (int r = 0; r < RM; r++) {
#pragma unroll
                    for (int q = 0; q < RN; q++) {
                        acc[r][q] += va[r] * vb[q];
                    }
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int r = 0; r < RM; r++) {
#pragma unroll
            for (int q = 0; q < RN; q++) {
                if (i + y + SIDE * r < p.m && j + x + SIDE * q < p.n) {
                    store(p, batch, i + y + SIDE * r, j + x + SIDE * q, acc[r][q]);
                }
            }
        }
    }
}
