/* counts.cu: how often whole numbers occur.
 *
 * largest: the largest element of x, and whether one is negative.
 * counts:  `weight` times how often each of 0 ... bins - 1 occurs in x, added to `to`; a block counts few
 *          bins in shared memory first.  Integers wrap around, so the order does not matter. */
#include "exec/cuda/counts_args.h"
typedef mc_counts_args args;
enum { THREADS = 256, AT_ONCE = 4 };

/* Calls f for each element, of which AT_ONCE are read before the first is used. */
template <class F> __device__ __forceinline__ void each(const args &a, F f)
{
    const i64 wide = (i64)THREADS * AT_ONCE;
    for (i64 from = blockIdx.x * wide + threadIdx.x; from < a.n; from += gridDim.x * wide) {
        i64 v[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            v[j] = from + THREADS * j < a.n ? a.x[from + THREADS * j] : -1;
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (from + THREADS * j < a.n) {
                f(v[j]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) largest(const __grid_constant__ args a)
{
    i64 most = -1, any = 0;
    each(a, [&](i64 v) {
        most = v > most ? v : most;
        any |= v;
    });
    for (int d = 16; d; d /= 2) {
        const i64 other = __shfl_xor_sync(0xffffffff, most, d);
        most = other > most ? other : most;
    }
    if (threadIdx.x % 32 == 0 && most >= 0) {
        atomicMax((unsigned long long *)&a.found[0], (unsigned long long)most + 1);
    }
    if (any < 0) {
        *(volatile u64 *)&a.found[1] = 1;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) counts(const __grid_constant__ args a)
{
    __shared__ unsigned of_block[COUNTS_SHARED];
    if (a.bins > COUNTS_SHARED) {
        each(a, [&](i64 v) { atomicAdd((unsigned long long *)&a.to[v], (unsigned long long)a.weight); });
        return;
    }
    for (int b = threadIdx.x; b < a.bins; b += THREADS) {
        of_block[b] = 0;
    }
    __syncthreads();
    each(a, [&](i64 v) { atomicAdd(&of_block[v], 1u); });
    __syncthreads();
    for (int b = threadIdx.x; b < a.bins; b += THREADS) {
        if (of_block[b]) {
            atomicAdd((unsigned long long *)&a.to[b], (unsigned long long)(a.weight * of_block[b]));
        }
    }
}
