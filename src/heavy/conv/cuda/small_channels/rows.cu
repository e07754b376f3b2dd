/* rows.cu: shared by kernels for images of few channels, with pooling
 * (heavy/conv_pool/cuda/small_channels.cu) and without (weights.cu): lines of images and filters in shared
 * memory.
 *
 * A thread has P positions of a line. */
#include "heavy/conv/cuda/small_channels/rows_args.h"
enum { P = ROWS_P, WARPS = ROWS_WARPS, SPAN = (P - 1) * SW + KW, WIDE = (SPAN + 3) / 4 * 4 };

/* Lines of x from `first` on, zeros outside: (image, channel, line, pitch). */
template <class Args>
__device__ __forceinline__ void load_lines(const Args &p, int image, int images, int first, float *to)
{
    const int lane = threadIdx.x % 32, count = images * C * p.lines;
    for (int e = threadIdx.x / 32; e < count; e += blockDim.x / 32) {
        const int plane = e / p.lines, row = first - p.pad[0] + e - plane * p.lines;
        const bool in = row >= 0 && row < p.in[0];
        const float *from = p.x + (image + plane / C) * p.xs[0] + plane % C * p.xs[1] +
                            (in ? row : 0) * p.xs[2];
        for (int j = lane; j < p.pitch; j += 32) {
            const int col = j - p.pad[1];
            const bool valid = in && col >= 0 && col < p.in[1];
            fetch4(to + e * p.pitch + j, from + (valid ? col : 0) * p.xs[3], valid);
        }
    }
}

/* (tap, filter), zeros beyond the last filter. */
template <class Args> __device__ __forceinline__ void load_filters(const Args &p, float *w)
{
    for (int e = threadIdx.x; e < TAPS * p.filters; e += blockDim.x) {
        const int f = e / TAPS, k = e - f * TAPS;
        w[k * p.filters + f] = f < p.f ? p.w[weight_at(p.ws, f, k)] : 0.f;
    }
}

__device__ __forceinline__ void read_line(float (&v)[WIDE], const float *from)
{
#pragma unroll
    for (int i = 0; i < WIDE; i += 4) {
        const float4 q = *(const float4 *)(from + i);
        v[i] = q.x;
        v[i + 1] = q.y;
        v[i + 2] = q.z;
        v[i + 3] = q.w;
    }
}
