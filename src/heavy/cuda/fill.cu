/* fill.cu: random numbers for timing: floats in [-1, 1), integers in [0, 128). */
#include "heavy/cuda/fill_args.h"
typedef mc_cuda_fill_args args;

extern "C" __global__ void __launch_bounds__(256) fill(const __grid_constant__ args a)
{
    follow();
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.count; e += gridDim.x * 256ll) {
        unsigned h = (unsigned)e * 2654435761u + 12345u;
        h = (h ^ h >> 15) * 2246822519u;
        h = (h ^ h >> 13) * 3266489917u;
        h ^= h >> 16;
#if FLOAT
        a.to[e] = put<T>((A)((int)h * 4.656612873077393e-10f));
#else
        a.to[e] = (T)(h & 127);
#endif
    }
}
