/* space_to_depth.cu: the s by s phases of an image become channels of an image that is s times smaller;
 * and back.
 *
 *   folded[o][qh][qw][(c * sh + rh) * sw + rw] = plain[o][c][sh * qh + rh - ph][sw * qw + rw - pw], 0 outside
 *
 * Elements are only moved: T is an unsigned type of their size.  A thread moves PACK of them, which are
 * one word of the folded array. */
#include "heavy/conv/cuda/space_to_depth_args.h"
typedef mc_space_to_depth_args args;

struct alignas(PACK * sizeof(T)) pack { T v[PACK]; };
typedef INDEX idx;

extern "C" __global__ void __launch_bounds__(256) fold(const __grid_constant__ args p)
{
    follow();
    const idx phases = (idx)(p.stride[0] * p.stride[1]), words = (idx)p.c * phases / PACK;
    const idx qw = (idx)p.folds[1], qh = (idx)p.folds[0], count = (idx)p.outer * qh * qw * words;
    const int sw = (int)p.stride[1], sh = (int)p.stride[0];
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const idx position = (idx)e / words, row = position / qw, o = row / qh;
        const int first = (int)((idx)e - position * words) * PACK;
        const int h0 = (int)(row - o * qh) * sh - (int)p.pad[0],
                  w0 = (int)(position - row * qw) * sw - (int)p.pad[1];
        const T *from = p.plain + (i64)o * p.at[0];
        pack to;
#pragma unroll
        for (int k = 0; k < PACK; k++) {
            const int channel = first + k, line = channel / sw, c = line / sh, h = h0 + line - c * sh,
                      w = w0 + channel - line * sw;
            const bool in = h >= 0 && h < p.size[0] && w >= 0 && w < p.size[1];
            to.v[k] = in ? from[c * p.at[1] + h * p.at[2] + w * p.at[3]] : (T)0;
        }
        ((pack *)p.folded)[e] = to;
    }
}

/* One element of plain a thread; 0 where the folded array has no such element. */
extern "C" __global__ void __launch_bounds__(256) unfold(const __grid_constant__ args p)
{
    follow();
    const int sh = (int)p.stride[0], sw = (int)p.stride[1];
    const idx sizes = (idx)(p.size[0] * p.size[1]), count = (idx)(p.outer * p.c) * sizes;
    const i64 channels = p.c * sh * sw;
    for (i64 e = blockIdx.x * 256ll + threadIdx.x; e < count; e += gridDim.x * 256ll) {
        const idx plane = (idx)e / sizes, o = plane / (idx)p.c, in = (idx)e - plane * sizes;
        const int c = (int)(plane - o * (idx)p.c), h = (int)(in / (idx)p.size[1]),
                  w = (int)(in - (idx)h * (idx)p.size[1]);
        const int th = h + (int)p.pad[0], tw = w + (int)p.pad[1], qh = th / sh, qw = tw / sw;
        const bool valid = th >= 0 && tw >= 0 && qh < p.folds[0] && qw < p.folds[1];
        const i64 at = ((o * p.folds[0] + qh) * p.folds[1] + qw) * channels + (c * sh + th - qh * sh) * sw +
                       tw - qw * sw;
        p.plain[o * p.at[0] + c * p.at[1] + h * p.at[2] + w * p.at[3]] = valid ? p.folded[at] : (T)0;
    }
}
