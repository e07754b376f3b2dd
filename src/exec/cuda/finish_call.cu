/* finish_call.cu: the end of a call: new values are copied over the old ones, unless a check has failed since
 * the last error was returned.
 *
 * blockIdx.y selects the pair.  Pairs aligned to 16 bytes are copied 16 bytes at a time; only views of a
 * caller's memory may be unaligned. */
#include "exec/cuda/finish_call_args.h"
typedef mc_settle_pair pair;
typedef mc_settle_args args;

template <class V> __device__ __forceinline__ void move(const pair &p)
{
    const u64 n = p.bytes / sizeof(V), all = (u64)gridDim.x * blockDim.x,
              me = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 i = me; i < n; i += all) {
        ((V *)p.to)[i] = ((const V *)p.from)[i];
    }
    for (u64 i = n * sizeof(V) + me; i < p.bytes; i += all) {
        p.to[i] = p.from[i];
    }
}

extern "C" __global__ void __launch_bounds__(256) settle(const __grid_constant__ args a)
{
    if (a.failed && a.failed[0]) {
        if (blockIdx.x + blockIdx.y + threadIdx.x == 0 && a.error_flag) {
            *(volatile i64 *)a.error_flag = 1;
        }
        return;
    }
    if (blockIdx.y < a.n) {
        const pair p = a.at[blockIdx.y];
        if ((((u64)p.to | (u64)p.from) & 15) == 0) {
            move<uint4>(p);
        } else {
            move<char>(p);
        }
    }
}
