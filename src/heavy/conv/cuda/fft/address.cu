/* address.cu: shared by the kernels of Fourier transforms: addresses of tiles in arrays and in spectra,
 * scaling of halves.
 *
 * Spectra are (frequency, row, column); frequency = column of the tile, then row.  The last axis of a tile
 * has N/2 + 1 frequencies.  BESIDE frequencies are interleaved, so that the few tiles of a block fill 32
 * bytes; shorter writes are much slower.
 *
 * HALVES (where TF32 or a half is precise enough): the operands' spectra are stored as halves, of 11 bits
 * like TF32.  They are scaled by a power of two so that no frequency overflows: it is at most N * N times
 * the largest number of the array.  `back` undoes the scale.
 *
 *   peaks      the largest numbers of arrays, one for each block */
#include "heavy/conv/cuda/fft/fft_args.h"
typedef mc_fft_args args;
typedef mc_fft_peak_args peak_args;

#define HALF (N / 2)
#if HALVES
typedef unsigned cell;          /* the real half, then the imaginary one */
#else
typedef float2 cell;
#endif

/* ---- address of a tile in x ---- */

struct corner {                 /* the part of a tile that is inside x: `count` elements from `low` on */
    i64 at;                     /* address of element (0, 0), which may be outside of x */
    int low[2], count[2];
};

/* A block transforms some tiles of one row of the spectra. */
struct block { i64 row, col; int tiles; };

__device__ __forceinline__ block block_of(const args &p, int most)
{
    const i64 groups = (p.cols + most - 1) / most;
    block b;
    b.row = blockIdx.x / groups;
    b.col = (blockIdx.x - b.row * groups) * most;
    b.tiles = p.cols - b.col < most ? (int)(p.cols - b.col) : most;
    return b;
}

__device__ __forceinline__ void make_corners(const args &p, const block &b, corner *to)
{
    for (int g = threadIdx.x; g < b.tiles; g += blockDim.x) {
        const i64 i = b.row / p.tiles[0], j = (b.col + g) / p.tiles[1];
        const int tile = (int)(b.row - i * p.tiles[0]) + (int)(b.col + g - j * p.tiles[1]);
        const int begins[2] = { p.first[0] + tile / p.across * p.every[0],
                                p.first[1] + tile % p.across * p.every[1] };
        corner c;
        c.at = i * p.step[0] + j * p.step[1];
        for (int a = 0; a < 2; a++) {
            const int low = begins[a] < 0 ? -begins[a] : 0, left = p.size[a] - begins[a];
            const int high = left < p.extent[a] ? left : p.extent[a];
            c.at += (begins[a] - p.from[a]) * p.stride[a];
            c.low[a] = p.from[a] + low;
            c.count[a] = high > low ? high - low : 0;
        }
        to[g] = c;
    }
}

__device__ __forceinline__ bool has(const corner &c, int axis, int i)
{
    return (unsigned)(i - c.low[axis]) < (unsigned)c.count[axis];
}

/* ---- spectra in memory ---- */

template <class S>
__device__ __forceinline__ S *spectrum(const args &p, const block &b, int column, int row, int g)
{
    const int f = column * N + row;
    return (S *)p.s + (((i64)(f / BESIDE) * p.rows + b.row) * p.ld + b.col + g) * BESIDE + f % BESIDE;
}

/* ---- scaling of halves ---- */

__device__ __forceinline__ unsigned larger(unsigned most, T v)
{
    const unsigned bits = __float_as_uint(get<float>(v)) & 0x7fffffff;
    return bits < 0x7f800000 && bits > most ? bits : most;
}

extern "C" __global__ void __launch_bounds__(FFT_PEAK_THREADS) peaks(const __grid_constant__ peak_args p)
{
    __shared__ unsigned found[FFT_PEAK_THREADS / 32];
    const T *x = p.x[blockIdx.y];
    const i64 count = p.count[blockIdx.y];
    enum { V = 16 / sizeof(T) };
    const i64 whole = (u64)x % 16 ? 0 : count / V,
              first = blockIdx.x * (i64)FFT_PEAK_THREADS + threadIdx.x, step = PEAKS * (i64)FFT_PEAK_THREADS;
    unsigned most = 0;
#pragma unroll 4
    for (i64 i = first; i < whole; i += step) {
        alignas(16) T v[V];
        *(uint4 *)v = ((const uint4 *)x)[i];
#pragma unroll
        for (int j = 0; j < V; j++) {
            most = larger(most, v[j]);
        }
    }
    for (i64 i = whole * V + first; i < count; i += step) {
        most = larger(most, x[i]);
    }
    most = over_warp(most);
    if (threadIdx.x % 32 == 0) {
        found[threadIdx.x / 32] = most;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        most = over_warp(found[threadIdx.x % 16]);
        if (threadIdx.x == 0) {
            p.to[blockIdx.y * PEAKS + blockIdx.x] = most;
        }
    }
}

/* The factors of a spectrum, or with undo the inverse factors of both operands. */
__device__ __forceinline__ void make_gains(const args &p, float (&gain)[2], bool undo)
{
    if (!HALVES || threadIdx.x >= 32) {
        return;
    }
    for (int i = 0; i < 1 + undo; i++) {
        unsigned most = 0;
        for (int e = threadIdx.x; e < PEAKS; e += 32) {
            most = max(most, p.peaks[i * PEAKS + e]);
        }
        most = over_warp(most);
        if (threadIdx.x > 0) {
            continue;
        }
        if (undo) {
            gain[i] = (float)(N * N) * unscaled(most);
        } else {
            factors(most, gain);
            gain[0] *= 1.0f / (N * N);
        }
    }
}
