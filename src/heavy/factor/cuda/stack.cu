/* stack.cu: what the kernels with a block of threads for each matrix share: the error of a matrix, numbers of
 * a block.  THREADS: of a block. */
#include "heavy/factor/cuda/factor_args.h"
typedef mc_factor_args args;

extern __shared__ T dynamic[];
__shared__ T of_warp[THREADS / 32];

/* Of several matrices that fail any one is named. */
__device__ static void fail(const args &a, i64 matrix, i64 bad, T pivot)
{
    if (threadIdx.x == 0 && atomicCAS((u64 *)a.err, (u64)0, (u64)MC_CUDA_ERR_MATRIX) == 0) {
        a.err[1] = matrix;
        a.err[2] = bad;
        a.err[3] = a.number;
        a.err[4] = __double_as_longlong((double)pivot);
    }
}

__device__ __forceinline__ T magnitude(T x)
{
    return x < 0 ? -x : x;
}

__device__ __forceinline__ float root(float x)
{
    return sqrtf(x);
}

__device__ __forceinline__ double root(double x)
{
    return sqrt(x);
}

/* The largest of all threads, for all; not of NaN. */
__device__ static T largest(T v)
{
    for (int d = 16; d; d /= 2) {
        const T other = __shfl_xor_sync(0xffffffff, v, d);
        v = other > v ? other : v;
    }
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = v;
    }
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) {
        v = of_warp[w] > v ? of_warp[w] : v;
    }
    __syncthreads();
    return v;
}
