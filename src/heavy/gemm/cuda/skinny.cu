/* skinny.cu: C = alpha X S + beta C0, where S has few (Q) columns.  X is read once, in place.
 *
 * A block has WIDE * R rows of X, R for each thread: WIDE threads run along rows, the others along k.
 * WIDE is 1 if k of X is contiguous, so that adjacent threads read adjacent elements in both layouts.  A
 * thread sums all Q columns of its rows.  The threads of a warp then reduce their sums pairwise, where
 * each of a pair keeps half of the sums, and warps are added in order.
 *
 * k may be divided among several blocks (split-K); `add` adds their partial sums in order. */
#include "heavy/gemm/cuda/skinny_args.h"
typedef mc_gemm_skinny_args args;

enum {
    THREADS = SKINNY_THREADS,
    WARPS = THREADS / 32,
    DEEP = THREADS / WIDE,
    MINE = R * Q,
    AHEAD = MINE * sizeof(A) < 64    ? 8
            : MINE * sizeof(A) < 256 ? 4
                                     : 2
};

template <class S, int N> struct alignas(sizeof(S) * N) several { S at[N]; };

__device__ __forceinline__ void finished(const args &p, i64 batch, i64 row, int column, A sum)
{
    A v = (A)p.alpha * sum;
    if (HAS_C0) {
        v += (A)p.beta * get<A>(p.c0[batch * p.c0s[0] + row * p.c0s[1] + column * p.c0s[2]]);
    }
    p.c[batch * p.cs[0] + row * p.cs[1] + column * p.cs[2]] = put<T>(finish(v, ACT));
}

/* Loads the Q columns of S at one k, V at once. */
template <int V> __device__ __forceinline__ void columns(A (&s)[Q], const T *from, i64 step)
{
#pragma unroll
    for (int q = 0; q < Q; q += V) {
        const several<T, V> some = *(const several<T, V> *)(from + q * step);
#pragma unroll
        for (int i = 0; i < V; i++) {
            s[q + i] = get<A>(some.at[i]);
        }
    }
}

/* Sums of N that a thread has after folding at distances `distance` down to WIDE. */
__device__ constexpr int left(int n, int distance)
{
    return distance < WIDE ? n : left((n + 1) / 2, distance / 2);
}

/* Of N sums this thread keeps half and adds the partner lane's values to them.  `have` of them, from
 * `from` on, are valid. */
template <int N, int DISTANCE>
__device__ __forceinline__ void reduce_lanes(A (&v)[MINE], int &from, int &have)
{
    if constexpr (DISTANCE >= WIDE) {
        enum { HALF = (N + 1) / 2 };
        const bool up = threadIdx.x & DISTANCE;
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            const A above = i + HALF < N ? v[(i + HALF) % MINE] : (A)0, below = v[i];
            v[i] = (up ? above : below) + __shfl_xor_sync(~0u, up ? below : above, DISTANCE);
        }
        from += up ? HALF : 0;
        have = up ? have - HALF : min(have, (int)HALF);
        reduce_lanes<HALF, DISTANCE / 2>(v, from, have);
    }
}

template <int V> __device__ __forceinline__ void product(const args &p)
{
    __shared__ A sums[WARPS][WIDE * MINE];
    const int across = threadIdx.x % WIDE, deep = threadIdx.x / WIDE;
    const i64 blocks = (p.rows + WIDE * R - 1) / (WIDE * R), batch = blockIdx.x / blocks,
              row = blockIdx.x % blocks * (WIDE * R);
    const i64 from = p.k * blockIdx.y / p.splits, to = p.k * (blockIdx.y + 1) / p.splits;
    const T *const s = p.s + batch * p.ss[0];
    const T *x[R];
    A v[MINE] = {};
#pragma unroll
    for (int r = 0; r < R; r++) {       /* rows beyond the last read the last row */
        x[r] = p.x + batch * p.xs[0] + min(row + across + r * WIDE, p.rows - 1) * p.xs[1];
    }
    follow();
#pragma unroll AHEAD
    for (i64 k = from + deep; k < to; k += DEEP) {
        A of_s[Q];
        columns<V>(of_s, s + k * p.ss[2], p.ss[1]);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const A of_x = get<A>(x[r][k * p.xs[2]]);
#pragma unroll
            for (int q = 0; q < Q; q++) {
                v[r * Q + q] += of_x * of_s[q];
            }
        }
    }
    int first = 0, have = MINE;
    reduce_lanes<MINE, 16>(v, first, have);
#pragma unroll
    for (int i = 0; i < left(MINE, 16); i++) {
        if (i < have) {
            sums[threadIdx.x / 32][across * MINE + first + i] = v[i];
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < WIDE * MINE; e += THREADS) {
        const i64 result_row = row + e / MINE + e % MINE / Q * WIDE;
        A sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            sum += sums[w][e];
        }
        if (result_row < p.rows && p.splits > 1) {
            p.parts[((blockIdx.y * p.batch + batch) * p.rows + result_row) * Q + e % Q] = sum;
        } else if (result_row < p.rows) {
            finished(p, batch, result_row, e % Q, sum);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) thin(const __grid_constant__ args p)
{
    product<1>(p);
}

extern "C" __global__ void __launch_bounds__(THREADS) thin_v(const __grid_constant__ args p)
{
    product<VECTOR>(p);
}

extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ args p)
{
    const int each = (int)p.rows * Q, count = each * p.batch, e = blockIdx.x * 32 + threadIdx.x % 32;
    follow();
    const A sum = sum_of_parts(p.parts, count, p.splits, e);
    if (threadIdx.x < 32 && e < count) {
        finished(p, e / each, e % each / Q, e % Q, sum);
    }
}
