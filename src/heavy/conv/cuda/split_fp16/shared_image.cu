/* shared_image.cu: images as pairs of halves in shared memory, for tensor cores. shared_image_forward.cu,
 * shared_image_weights.cu, register_weights.cu and scatter.cu build on it.
 *
 * heavy/gemm/cuda/split.cu has the algebra: each number is a pair of halves, a product is three products
 * of halves, and only 64 terms are summed before they are added in float32.  There windows are gathered
 * from device memory.  Here a block keeps its images as (position, channel), so a row of a matrix is read
 * at the address of its position.
 *
 * Here low halves are not scaled up, so that one accumulator serves all three products.  The loss is 2^40
 * below an image's largest number.  CC: channels that are taken at once, a multiple of 8.  The images of a
 * block share a scale.  NT: eights of results of a warp. */
#include "heavy/conv/cuda/split_fp16/shared_image_args.h"
typedef mc_shared_image_args args;

typedef unsigned u32;
typedef unsigned short u16;
enum { PITCH = SHARED_IMAGE_PITCH(CC), C16 = CC / 16, MOST_WARPS = 32, SLOTS = SHARED_IMAGE_SLOTS };

/* ---- images into halves ---- */

__device__ __forceinline__ void bring(float *to, const float *from, int count, int fours)
{
    if (fours) {
        for (int e = threadIdx.x * 4; e < count; e += blockDim.x * 4) {
            fetch16(to + e, from + e);
        }
    } else {
        for (int e = threadIdx.x; e < count; e += blockDim.x) {
            fetch4(to + e, from + e, true);
        }
    }
}

__device__ __forceinline__ u32 size_of(float x)
{
    return __float_as_uint(x) & 0x7fffffff;
}

/* The largest finite |x| of what this thread loaded itself, so no barrier is needed. */
__device__ __forceinline__ u32 largest(const float *x, int count, int fours, u32 most)
{
    const u32 before = most;
    const int unit = fours ? 4 : 1;
    if (fours) {
#pragma unroll 4
        for (int e = threadIdx.x * 4; e < count; e += blockDim.x * 4) {
            const float4 v = *(const float4 *)(x + e);
            most = max(max(max(max(most, size_of(v.x)), size_of(v.y)), size_of(v.z)), size_of(v.w));
        }
    }
    if (!fours || most >= 0x7f800000) {
        most = before;
        for (int e = threadIdx.x * unit; e < count; e += blockDim.x * unit) {
            for (int i = 0; i < unit; i++) {
                const u32 size = size_of(x[e + i]);
                most = size < 0x7f800000 && size > most ? size : most;
            }
        }
    }
    return most;
}

/* The largest number of the block; ends with a barrier. */
__device__ __forceinline__ u32 over_block(u32 most, u32 *seen)
{
    most = over_warp(most);
    if (threadIdx.x % 32 == 0) {
        seen[threadIdx.x / 32] = most;
    }
    __syncthreads();
    for (int i = 0; i < (int)blockDim.x / 32; i++) {
        most = seen[i] > most ? seen[i] : most;
    }
    return most;
}

/* A number that is not finite has no low half. */
__device__ __forceinline__ void put2(u16 *high, u16 *low, float a, float b, const float f[2])
{
    u32 h, l;
    halve2(a * f[0] * f[1], b * f[0] * f[1], &h, &l);
    *(u32 *)high = h;
    *(u32 *)low = l &
                  (((h & 0x7c00) != 0x7c00 ? 0xffff : 0) | ((h & 0x7c000000) != 0x7c000000 ? 0xffff0000 : 0));
}

/* An image of `have` channels as (position, channel).  A warp has eight channels of 32 positions; its
 * lanes rotate the order of their four pairs so that no two lanes write to one bank. */
__device__ __forceinline__ void split_image(const args &p, u16 *to, int low, const float *x, int have,
                                            const float f[2])
{
    const int positions = p.in[0] * p.in[1], parts = (positions + 31) / 32, lane = threadIdx.x % 32;
    for (int part = threadIdx.x / 32; part < CC / 8 * parts; part += blockDim.x / 32) {
        const int u = part / (CC / 8) * 32 + lane;
        if (u < positions) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int c = part % (CC / 8) * 8 + (i + lane / 8) % 4 * 2;
                u16 *const at = to + u * PITCH + c;
                put2(at, at + low, c < have ? x[c * positions + u] : 0.f,
                     c + 1 < have ? x[(c + 1) * positions + u] : 0.f, f);
            }
        }
    }
}

/* Starts loading a chunk of channels of the block's images. */
__device__ __forceinline__ void bring_images(const args &p, float *raw, int first, int images, int chunk)
{
    const int positions = p.in[0] * p.in[1], have = min(CC, p.channels - chunk * CC);
    for (int i = 0; i < images; i++) {
        bring(raw + i * CC * positions, p.x + (first + i) * p.xs + (i64)chunk * CC * positions,
              have * positions, p.fours);
    }
}

/* Splits the loaded images.  Ends with a barrier; returns the inverse of the scale. */
__device__ __forceinline__ float split_images(const args &p, u16 *halves, int low, const float *raw,
                                              int images, int chunk, u32 *seen)
{
    const int positions = p.in[0] * p.in[1], have = min(CC, p.channels - chunk * CC);
    u32 most = 0;
    float f[2];
    fetched();
    for (int i = 0; i < images; i++) {
        most = largest(raw + i * CC * positions, have * positions, p.fours, most);
    }
    most = over_block(most, seen);
    factors(most, f);
    for (int i = 0; i < images; i++) {
        split_image(p, halves + i * positions * PITCH, low, raw + i * CC * positions, have, f);
    }
    __syncthreads();
    return unscaled(most);
}

__device__ __forceinline__ void clear(u16 *to, int halves)
{
    for (int e = threadIdx.x; e < halves; e += blockDim.x) {
        to[e] = 0;
    }
}

/* Three products of two rows of tiles each; low ones first, while sums are small. */
__device__ __forceinline__ void multiply3(float (&d)[2][NT][4], const u32 (&h)[2][4], const u32 (&l)[2][4],
                                          const uint4 (&b)[NT])
{
#pragma unroll
    for (int e = 0; e < 2 * NT; e++) {
        multiply(d[e / NT][e % NT], h[e / NT], b[e % NT].z, b[e % NT].w);
    }
#pragma unroll
    for (int e = 0; e < 2 * NT; e++) {
        multiply(d[e / NT][e % NT], l[e / NT], b[e % NT].x, b[e % NT].y);
    }
#pragma unroll
    for (int e = 0; e < 2 * NT; e++) {
        multiply(d[e / NT][e % NT], h[e / NT], b[e % NT].x, b[e % NT].y);
    }
}
