/* copy.cu: TO[...] = FROM[...], each with its own strides.
 *
 * line: both arrays have the same innermost axis, the last one.
 * tile: the last axis is innermost in TO, the one before it in FROM.  SIDE by SIDE elements go through
 *       shared memory, so that reads and writes are both contiguous.  SIDE is larger for elements of at
 *       most two bytes, to have enough bytes in flight.
 * INDEX: an unsigned type that can count all elements. */
#include "heavy/cuda/copy_args.h"
typedef mc_cuda_copy_args args;

extern "C" __global__ void __launch_bounds__(256) line(const __grid_constant__ args a)
{
    follow();
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < a.count; e += gridDim.x * 256ll) {
        INDEX rest = (INDEX)e;
        i64 to = 0, from = 0;
#pragma unroll
        for (int i = RANK - 1; i > 0; i--) {
            const INDEX next = rest / (INDEX)a.size[i], at = rest - next * (INDEX)a.size[i];
            rest = next;
            to += at * a.ts[i];
            from += at * a.fs[i];
        }
        a.to[to + rest * a.ts[0]] = get<TO>(a.from[from + rest * a.fs[0]]);
    }
}

#if RANK > 1
enum { SIDE = sizeof(FROM) <= 2 ? COPY_SIDE_SMALL : COPY_SIDE, PAD = sizeof(FROM) <= 2 ? 2 : 1 };

extern "C" __global__ void __launch_bounds__(256) tile(const __grid_constant__ args a)
{
    follow();
    __shared__ FROM s[SIDE][SIDE + PAD];
    const i64 rows = a.size[RANK - 2], cols = a.size[RANK - 1];
    const i64 across = (cols + SIDE - 1) / SIDE, down = (rows + SIDE - 1) / SIDE,
              all = across * down * a.count;
    const int x = threadIdx.x & 31, y = threadIdx.x >> 5;
    for (i64 block = blockIdx.x; block < all; block += gridDim.x) {
        const i64 j = block % across * SIDE, i = block / across % down * SIDE;
        INDEX rest = (INDEX)(block / across / down);
        i64 to = 0, from = 0;
#pragma unroll
        for (int z = RANK - 3; z >= 0; z--) {
            const INDEX at = z ? rest % (INDEX)a.size[z] : rest;
            rest /= (INDEX)a.size[z];
            to += at * a.ts[z];
            from += at * a.fs[z];
        }
#pragma unroll
        for (int e = 0; e < SIDE * SIDE / 256; e++) {
            const int k = y + e / (SIDE / 32) * 8, l = x + e % (SIDE / 32) * 32;
            if (i + l < rows && j + k < cols) {
                s[k][l] = a.from[from + (i + l) * a.fs[RANK - 2] + (j + k) * a.fs[RANK - 1]];
            }
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < SIDE * SIDE / 256; e++) {
            const int k = y + e / (SIDE / 32) * 8, l = x + e % (SIDE / 32) * 32;
            if (i + k < rows && j + l < cols) {
                a.to[to + (i + k) * a.ts[RANK - 2] + (j + l) * a.ts[RANK - 1]] = get<TO>(s[l][k]);
            }
        }
        __syncthreads();
    }
}
#endif
