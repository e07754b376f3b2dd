/* ranks.cu: what all ranks have given becomes their reduction, in the tree ((0 + 1) + (2 + 3)) + ...  T: the
 * dtype; A: what is added; WAY: that of enum mc_ranks_op. */
#include "exec/cuda/ranks_args.h"
typedef mc_ranks_args args;

static __device__ A both(A a, A b)
{
#if WAY == 2
    return a != a || a > b ? a : b;
#elif WAY == 3
    return a != a || a < b ? a : b;
#else
    return a + b;
#endif
}

extern "C" __global__ void __launch_bounds__(256) fold(const __grid_constant__ args a)
{
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.count; e += gridDim.x * 256ll) {
        A held[11];             /* of whole trees, the largest first: at most 1024 ranks */
        int n = 0;
        for (int r = 0; r < a.ranks; r++) {
            A v = get<A>(a.from[r * a.stride + e]);
            for (int k = r; k & 1; k >>= 1) {
                v = both(held[--n], v);
            }
            held[n++] = v;
        }
        A all = held[--n];
        while (n) {
            all = both(held[--n], all);
        }
#if WAY == 1
        all = all / (A)a.ranks;
#endif
        a.to[e] = put<T>(all);
    }
}
