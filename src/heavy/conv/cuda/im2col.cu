/* im2col.cu: windows of x as columns of a matrix, and back.
 *
 *   gather    columns[image, channel, tap, position] = the element of x that the tap reads; 0 outside
 *   scatter   x = the sum of the columns' elements that were read from it, tap by tap in order, and beta * c0
 *
 * Taps are numbered as w stores them: of a flipped filter the last one is tap 0. */
#include "heavy/conv/cuda/im2col_args.h"
typedef mc_im2col_args args;

__device__ __forceinline__ int tap(const args &p, int axis, int a)
{
    return p.flip ? (int)p.k[axis] - 1 - a : a;
}

/* A warp gathers a line of the columns: one channel and tap of one image, positions along the lanes. */
extern "C" __global__ void __launch_bounds__(256) gather(const __grid_constant__ args p)
{
    follow();
    const int n0 = (int)p.out[0], n1 = (int)p.out[1], n2 = (int)p.out[2], positions = n0 * n1 * n2,
              lane = threadIdx.x % 32;
    const i64 taps = p.k[0] * p.k[1] * p.k[2], rows = p.c * taps, lines = p.n * rows;
    for (i64 line = (blockIdx.x * 256ll + threadIdx.x) / 32; line < lines; line += gridDim.x * 8ll) {
        const INDEX n = (INDEX)line / (INDEX)rows;
        const int row = (int)((INDEX)line - n * (INDEX)rows), c = row / (int)taps, a = row - c * (int)taps;
        const int from2 = tap(p, 2, a % (int)p.k[2]) * (int)p.dilation[2] - (int)p.pad[2];
        const int from1 = tap(p, 1, a / (int)p.k[2] % (int)p.k[1]) * (int)p.dilation[1] - (int)p.pad[1];
        const int from0 = tap(p, 0, a / (int)p.k[2] / (int)p.k[1]) * (int)p.dilation[0] - (int)p.pad[0];
        const T *x = p.x + (i64)n * p.xs[0] + c * p.xs[1];
        T *to = p.columns + (i64)n * p.image + row * p.row;
        int u2 = lane % n2, u1 = lane / n2 % n1, u0 = lane / n2 / n1;
        for (int u = lane; u < positions; u += 32) {
            const int i0 = u0 * (int)p.stride[0] + from0, i1 = u1 * (int)p.stride[1] + from1,
                      i2 = u2 * (int)p.stride[2] + from2;
            const bool in = i0 >= 0 && i0 < p.in[0] && i1 >= 0 && i1 < p.in[1] && i2 >= 0 && i2 < p.in[2];
            to[u] = in ? x[i0 * p.xs[2] + i1 * p.xs[3] + i2 * p.xs[4]] : put<T>((A)0);
            u2 += 32 % n2;
            u1 += 32 / n2 + (u2 >= n2);
            u2 -= u2 >= n2 ? n2 : 0;
            if (u1 >= n1) {
                u0 += u1 / n1;
                u1 %= n1;
            }
        }
    }
}

/* The position of y whose tap a reads element i of one axis of x; -1: none. */
__device__ __forceinline__ int position(const args &p, int axis, int i, int a)
{
    const int far = i + (int)p.pad[axis] - a * (int)p.dilation[axis], u = far / (int)p.stride[axis];
    return far >= 0 && u * (int)p.stride[axis] == far && u < p.out[axis] ? u : -1;
}

extern "C" __global__ void __launch_bounds__(256) scatter(const __grid_constant__ args p)
{
    follow();
    const i64 count = p.n * p.c * p.in[0] * p.in[1] * p.in[2];
    const int taps = (int)(p.k[0] * p.k[1] * p.k[2]);
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        INDEX rest = (INDEX)e;
        const int i2 = (int)(rest % (INDEX)p.in[2]);
        rest /= (INDEX)p.in[2];
        const int i1 = (int)(rest % (INDEX)p.in[1]);
        rest /= (INDEX)p.in[1];
        const int i0 = (int)(rest % (INDEX)p.in[0]);
        rest /= (INDEX)p.in[0];
        const i64 c = rest % (INDEX)p.c, n = rest / (INDEX)p.c;
        const T *from = p.columns + n * p.image + c * taps * p.row;
        A sum = 0;
        for (int a0 = 0; a0 < p.k[0]; a0++) {
            const int u0 = position(p, 0, i0, a0);
            for (int a1 = 0; a1 < p.k[1] && u0 >= 0; a1++) {
                const int u1 = position(p, 1, i1, a1);
                for (int a2 = 0; a2 < p.k[2] && u1 >= 0; a2++) {
                    const int u2 = position(p, 2, i2, a2);
                    const i64 t = ((i64)tap(p, 0, a0) * p.k[1] + tap(p, 1, a1)) * p.k[2] + tap(p, 2, a2);
                    sum += u2 >= 0 ? get<A>(from[t * p.row + (u0 * p.out[1] + u1) * p.out[2] + u2]) : (A)0;
                }
            }
        }
        const i64 at = n * p.xs[0] + c * p.xs[1] + i0 * p.xs[2] + i1 * p.xs[3] + i2 * p.xs[4];
        if (p.c0) {
            sum += (A)p.beta * get<A>(p.c0[at]);
        }
        p.x[at] = put<T>(sum);
    }
}
