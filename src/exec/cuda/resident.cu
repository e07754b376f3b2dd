/* resident.cu: parts of a kernel that runs all steps of a loop: products whose right operand stays in shared
 * memory, and the barrier of all blocks.  resident.c prints the kernel that calls them.
 *
 * Invariant: all blocks run at the same time; what a block reads of others was written before a barrier. */
#include "exec/cuda/resident_args.h"

__device__ __forceinline__ u64 place(const mc_resident_move &m, unsigned t)
{
    return t ? m.base + (u64)((i64)((t - 1) & m.mask) * m.stride) : m.first;
}

__device__ __forceinline__ void meet(unsigned *arrived, unsigned goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned n;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(arrived) : "memory");
        } while (n < goal);
    }
    __syncthreads();
}

/* The last block that ends leaves the counters as the first one found them. */
__device__ __forceinline__ void leave(unsigned *arrived)
{
    if (threadIdx.x == 0 && atomicAdd(arrived + 1, 1u) == gridDim.x - 1) {
        arrived[0] = arrived[1] = 0;
    }
}

/* Numbers where all products have the same. */
#ifndef UNITS_OF
#define UNITS_OF(p) (p).units
#define PERIOD_OF(p) (p).period
enum { BANDS = 1 };
#endif

/* The number of the block's column c among all columns; -1: there is none. */
__device__ __forceinline__ int column_of(const mc_resident_product &p, int c)
{
    const int units = UNITS_OF(p), period = PERIOD_OF(p), unit = blockIdx.x / BANDS * units + c % units;
    return unit < period ? c / units * period + unit : -1;
}

/* Copies the block's columns of W to its shared memory. */
__device__ __forceinline__ void hold(const mc_resident_product &p, const float *w, float *held)
{
    const int count = p.columns * p.k;
    for (int i = threadIdx.x; i < count; i += blockDim.x) { /* neighbours read neighbours */
        const int c = p.along == 1 ? i % p.columns : i / p.k, k = p.along == 1 ? i / p.columns : i % p.k,
                  of = column_of(p, c);
        held[p.at + c * p.pitch + k] = of >= 0 ? w[k * p.down + of * p.along] : 0;
    }
}

/* V: elements that ELEMENTS takes at once */
template <int V>
__device__ __forceinline__ void move(const mc_resident_copy &c, const unsigned *from, unsigned *to)
{
    ELEMENTS(e, c.count)
    {
        unsigned rest = e;
        i64 f = 0, t = 0;
#pragma unroll
        for (int a = 0; a < RESIDENT_RANK; a++) {
            const unsigned at = rest % c.size[a];
            rest /= c.size[a];
            f += at * c.from[a];
            t += at * c.to[a];
        }
        to[t] = from[f];
    }
}

/* Adds n sums over s lanes.  A lane then has the sums from `at` on, which others may have, too. */
template <int n, int s> __device__ __forceinline__ int fold(float *v, unsigned lane, int at)
{
    if constexpr (s == 1) {
        return at;
    } else if constexpr (n == 1) {
        v[0] += __shfl_xor_sync(~0u, v[0], s / 2);
        return fold<1, s / 2>(v, lane, at);
    } else {
        const bool up = lane & (s / 2);
#pragma unroll
        for (int i = 0; i < n / 2; i++) {
            const float mine = up ? v[i + n / 2] : v[i], other = up ? v[i] : v[i + n / 2];
            v[i] = mine + __shfl_xor_sync(~0u, other, s / 2);
        }
        return fold<n / 2, s / 2>(v, lane, at + (up ? n / 2 : 0));
    }
}

/* A group of s lanes, each with a part of the sum, computes `rows` rows of `columns` columns.  across: such
 * groups of columns.  added: C, or null. */
template <int rows, int columns, int across, int s, int act>
__device__ __forceinline__ void multiply(const mc_resident_product &p, const float *x, const float *held,
                                         const float *added, float *y)
{
    const int down = (p.m + rows - 1) / rows, groups = across * down, step = blockDim.x / s;
    const unsigned lane = threadIdx.x % s, band = blockIdx.x % BANDS;
    if (blockIdx.x / BANDS * UNITS_OF(p) >= PERIOD_OF(p)) {
        return;
    }
    x += (i64)band * p.m * p.row;
    y += (i64)band * p.m * p.wide;
    added = added ? added + (i64)band * p.m * p.added[0] : added;
    for (int g0 = 0; g0 < groups; g0 += step) {
        const int g = min(g0 + (int)threadIdx.x / s, groups - 1), column = g % across,
                  row = g / across * rows;
        if (g0 + (int)(threadIdx.x & ~31u) / s >= groups) {
            return; /* the whole warp */
        }
        const float *from[rows], *w[columns];
        float sum[rows * columns];
#pragma unroll
        for (int i = 0; i < rows; i++) {
            from[i] = x + (i64)min(row + i, p.m - 1) * p.row;
        }
#pragma unroll
        for (int j = 0; j < columns; j++) {
            w[j] = held + p.at + (j * across + column) * p.pitch;
        }
#pragma unroll
        for (int i = 0; i < rows * columns; i++) {
            sum[i] = 0;
        }
#pragma unroll 2
        for (int k = lane * 4; k < p.k; k += s * 4) {
            float4 a[rows];
#pragma unroll
            for (int i = 0; i < rows; i++) {
                a[i] = *(const float4 *)(from[i] + k);
            }
#pragma unroll
            for (int j = 0; j < columns; j++) {
                const float4 b = *(const float4 *)(w[j] + k);
#pragma unroll
                for (int i = 0; i < rows; i++) {
                    float &t = sum[i * columns + j];
                    t = fmaf(a[i].w, b.w, fmaf(a[i].z, b.z, fmaf(a[i].y, b.y, fmaf(a[i].x, b.x, t))));
                }
            }
        }
        constexpr int all = rows * columns, left = all > s ? all / s : 1;
        const int at = fold<all, s>(sum, lane, 0);
#pragma unroll
        for (int i = 0; i < left; i++) {
            const int r = row + (at + i) / columns, c = column_of(p, (at + i) % columns * across + column);
            if (r < p.m && c >= 0) {
                const float t = added ? sum[i] + added[r * p.added[0] + c * p.added[1]] : sum[i];
                y[(i64)r * p.wide + c] = finish(t, act);
            }
        }
    }
}
