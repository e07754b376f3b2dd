/* epilogue.cu: y[...] = act(y[...] + bias[...] + beta c0[...]), each with its own strides; HAS_C0,
 * HAS_BIAS and ACT come from the problem.
 *
 * A thread takes N neighbours along the last axis, which are contiguous in y and c0; bias may have any
 * stride along it. */
#include "heavy/cuda/epilogue_args.h"
typedef mc_cuda_epilogue_args args;

template <class S, int N> struct alignas(sizeof(S) * N) several { S at[N]; };

template <int N> __device__ __forceinline__ void line(const args &p)
{
    follow();
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < p.count; e += gridDim.x * 256ll) {
        INDEX rest = (INDEX)e;
        i64 y = 0, c0 = 0, b = 0;
#pragma unroll
        for (int i = RANK - 1; i >= 0; i--) {
            const INDEX next = i ? rest / (INDEX)p.size[i] : 0;
            const i64 at = (i64)(rest - next * (INDEX)p.size[i]) * (i == RANK - 1 ? N : 1);
            rest = next;
            y += at * p.ys[i];
            c0 += at * p.c0s[i];
            b += at * p.bs[i];
        }
        several<T, N> v = *(const several<T, N> *)(p.y + y), more;
        if (HAS_C0) {
            more = *(const several<T, N> *)(p.c0 + c0);
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            A x = get<A>(v.at[i]);
            x += HAS_BIAS ? get<A>(p.bias[b + i * p.bs[RANK - 1]]) : (A)0;
            x += HAS_C0 ? (A)p.beta * get<A>(more.at[i]) : (A)0;
            v.at[i] = put<T>(finish(x, ACT));
        }
        *(several<T, N> *)(p.y + y) = v;
    }
}

extern "C" __global__ void __launch_bounds__(256) epilogue(const __grid_constant__ args p)
{
    line<1>(p);
}

extern "C" __global__ void __launch_bounds__(256) epilogue_v(const __grid_constant__ args p)
{
    line<16 / sizeof(T)>(p);
}
