/* first.cu: positions of the first `keep` elements of long lines, in order, without sorting the others.
 *
 * An element's rank is one number: its key, then its position, so no two are equal.
 * count_:   one round: counts elements by their next FIRST_BITS bits, of those whose bits before are known.
 *           The last block of a line finds the bits of element `keep`.
 * collect:  lists the elements up to that one.
 * in_order: sorts the list, a block for each line. */
#include "exec/cuda/first_args.h"
typedef mc_first_args args;
enum { BINS = 1 << FIRST_BITS, THREADS = 256, OWN = BINS / THREADS };

__device__ __forceinline__ u64 rank_of(T v, i64 at)
{
    return (u64)key_of(bits_of(v)) << (64 - 8 * sizeof(U)) | (unsigned)at;
}

/* The bin that holds element `left`, counted from 1, in all threads; *before: elements in the bins before. */
__device__ __forceinline__ unsigned bin_of(const unsigned *count, unsigned left, unsigned *before)
{
    __shared__ unsigned sums[THREADS], bin, ahead;
    unsigned mine = 0;
    for (int k = 0; k < OWN; k++) {
        mine += count[threadIdx.x * OWN + k];
    }
    sums[threadIdx.x] = mine;
    __syncthreads();
    for (int d = 1; d < THREADS; d *= 2) {
        const unsigned other = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
        __syncthreads();
    }
    unsigned sum = sums[threadIdx.x] - mine;
    for (int k = 0; k < OWN; k++) {
        const unsigned c = count[threadIdx.x * OWN + k];
        if (sum < left && left <= sum + c) {
            bin = threadIdx.x * OWN + k;
            ahead = sum;
        }
        sum += c;
    }
    __syncthreads();
    *before = ahead;
    return bin;
}

extern "C" __global__ void __launch_bounds__(THREADS) count_(const __grid_constant__ args a)
{
    __shared__ unsigned count[BINS], last;
    mc_first_state *s = &a.state[blockIdx.y];
    unsigned *all = a.count + blockIdx.y * (i64)BINS;
    const T *x = a.x + begin_of(a.l, blockIdx.y, a.l.xline);
    const int high = 64 - FIRST_BITS * a.round, low = high > FIRST_BITS ? high - FIRST_BITS : 0;
    const unsigned mask = (1u << (high - low)) - 1;
    const u64 known = s->known;
    if (s->done) {
        return;
    }
    for (unsigned i = threadIdx.x; i < BINS; i += THREADS) {
        count[i] = 0;
    }
    __syncthreads();
    for (i64 begin = blockIdx.x * (i64)THREADS; begin < a.l.count; begin += gridDim.x * (i64)THREADS) {
        const i64 i = begin + threadIdx.x;
        const u64 r = i < a.l.count ? rank_of(x[i * a.l.xstep], i) : 0;
        tally<FIRST_BITS>(count, (unsigned)(r >> low) & mask,
                          i < a.l.count && (a.round == 0 || (r ^ known) >> high == 0));
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < BINS; i += THREADS) {
        if (count[i]) {
            atomicAdd(&all[i], count[i]);
        }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&s->arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    for (unsigned i = threadIdx.x; i < BINS; i += THREADS) {
        count[i] = *(volatile unsigned *)&all[i];
        all[i] = 0;
    }
    __syncthreads();
    unsigned before;
    const unsigned left = a.round ? s->left : (unsigned)a.keep, bin = bin_of(count, left, &before);
    if (threadIdx.x == 0) {
        s->left = left - before;
        s->done = count[bin] == left - before;
        s->known = known | (u64)bin << low | (s->done && low ? ((u64)1 << low) - 1 : 0);
        s->arrived = 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) collect(const __grid_constant__ args a)
{
    mc_first_state *s = &a.state[blockIdx.y];
    const T *x = a.x + begin_of(a.l, blockIdx.y, a.l.xline);
    const u64 most = s->known;
    for (i64 i = blockIdx.x * (i64)THREADS + threadIdx.x; i < a.l.count; i += gridDim.x * (i64)THREADS) {
        const u64 r = rank_of(x[i * a.l.xstep], i);
        if (r <= most) {
            a.list[blockIdx.y * a.keep + atomicAdd(&s->found, 1u)] = r;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) in_order(const __grid_constant__ args a)
{
    __shared__ u64 r[FIRST_MOST];
    i64 *y = a.y + begin_of(a.l, blockIdx.x, a.l.yline);
    int n = 2;
    while (n < a.keep) {
        n *= 2;
    }
    for (int i = threadIdx.x; i < n; i += THREADS) {
        r[i] = i < a.keep ? a.list[blockIdx.x * a.keep + i] : ~(u64)0;
    }
    __syncthreads();
    for (int span = 2; span <= n; span *= 2) {
        for (int d = span / 2; d; d /= 2) {
            for (int t = threadIdx.x; t < n / 2; t += THREADS) {
                const int i = t / d * 2 * d + t % d;
                const u64 u = r[i], v = r[i + d];
                if ((u > v) == ((i & span) == 0)) {
                    r[i] = v;
                    r[i + d] = u;
                }
            }
            __syncthreads();
        }
    }
    for (int i = threadIdx.x; i < a.keep; i += THREADS) {
        y[i * a.l.ystep] = (i64)(unsigned)r[i];
    }
}
