/* first.cu: positions of the first `keep` elements of long lines, in order, without sorting the others.
 *
 * Elements are in the order of their keys, equal ones in that of their positions.
 * lowest:   the least key of each group of elements.  `keep` groups have one up to the bound, so no more than
 *           that are needed; the last block of a line finds it.
 * below:    lists the elements up to the bound, few more than `keep` unless many are equal.  If the list has
 *           no capacity for them, the exact way finds which are first:
 * count_:   one round: counts elements by the next FIRST_BITS bits of the key, then of the position, of those
 *           whose bits before are known.  The last block of a line finds the bits of element `keep`.
 * collect:  lists the elements up to that one.
 * in_order: sorts the list, a block for each line. */
#include "exec/cuda/first_args.h"
typedef mc_first_args args;
enum { BINS = 1 << FIRST_BITS, THREADS = 256, OWN = BINS / THREADS, WARPS = THREADS / 32 };
enum { AT_ONCE = 8, MOST_GROUPS = 8192, OWN_GROUPS = MOST_GROUPS / THREADS, ORDER_THREADS = 512 };
enum { KEY_BITS = 8 * sizeof(U), KEY_ROUNDS = (KEY_BITS + FIRST_BITS - 1) / FIRST_BITS };

/* Of the FIRST_BITS bits below the highest `high` ones: the lowest. */
__device__ __forceinline__ int low_of(int high) { return high > FIRST_BITS ? high - FIRST_BITS : 0; }

__device__ __forceinline__ unsigned digit_of(u64 bits, int high)
{
    return (unsigned)(bits >> low_of(high)) & ((1u << (high - low_of(high))) - 1);
}

/* Are all bits from `high` on equal? */
__device__ __forceinline__ bool agree(u64 a, u64 b, int high) { return high >= 64 || (a ^ b) >> high == 0; }

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

/* Is this the last block of its line that arrives?  It sees what the others have written. */
__device__ __forceinline__ bool is_last(mc_first_state *s)
{
    __shared__ unsigned last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&s->arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    __threadfence();
    return last;
}

__device__ __forceinline__ bool is_listed(const args &a, const mc_first_state *s)
{
    return a.groups && s->below <= (unsigned)a.capacity;
}

/* ---- a bound ---- */

/* Rows of 32 elements are dealt to the blocks in turn, those of a block to its warps: elements beside each
 * other are in different groups, as they may all be first. */
__device__ __forceinline__ i64 place_of(i64 turn)
{
    return ((turn * WARPS + threadIdx.x / 32) * gridDim.x + blockIdx.x) * 32 + threadIdx.x % 32;
}

/* key[j] of the elements of AT_ONCE turns; those beyond the line have none before them */
__device__ __forceinline__ void keys_at(const args &a, const T *x, i64 turn, U *key)
{
    T v[AT_ONCE];
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
        const i64 i = place_of(turn + j);
        v[j] = x[(i < a.l.count ? i : 0) * a.l.xstep];
    }
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
        key[j] = place_of(turn + j) < a.l.count ? key_of(bits_of(v[j])) : (U)~(U)0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) lowest(const __grid_constant__ args a)
{
    __shared__ unsigned count[BINS];
    __shared__ U of_warp[THREADS];
    mc_first_state *s = &a.state[blockIdx.y];
    u64 *groups = a.least + blockIdx.y * (i64)a.groups;
    const T *x = a.x + begin_of(a.l, blockIdx.y, a.l.xline);
    U least = (U)~(U)0, own[OWN_GROUPS];
    for (i64 turn = 0; place_of(turn) - threadIdx.x % 32 < a.l.count; turn += AT_ONCE) {
        U key[AT_ONCE];
        keys_at(a, x, turn, key);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            least = key[j] < least ? key[j] : least;
        }
    }
    of_warp[threadIdx.x] = least;
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int w = 1; w < WARPS; w++) {
            const U other = of_warp[w * 32 + threadIdx.x];
            least = other < least ? other : least;
        }
        groups[blockIdx.x * 32 + threadIdx.x] = least;
    }
    if (!is_last(s)) {
        return;
    }
#pragma unroll
    for (int k = 0; k < OWN_GROUPS; k++) {
        const int i = k * THREADS + (int)threadIdx.x;
        own[k] = i < a.groups ? (U) * (volatile u64 *)&groups[i] : (U)0;
    }
    u64 known = 0;
    unsigned left = (unsigned)a.keep, before;
    for (int high = KEY_BITS; high > 0; high = low_of(high)) {
        for (unsigned i = threadIdx.x; i < BINS; i += THREADS) {
            count[i] = 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < OWN_GROUPS; k++) {
            if (k * THREADS + (int)threadIdx.x < a.groups && agree(own[k], known, high)) {
                atomicAdd(&count[digit_of(own[k], high)], 1u);
            }
        }
        __syncthreads();
        known |= (u64)bin_of(count, left, &before) << low_of(high);
        left -= before;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        s->bound = known;
        s->arrived = 0;
    }
}

__device__ __forceinline__ void list(const args &a, unsigned at, u64 key, i64 place)
{
    a.list[blockIdx.y * (i64)a.capacity + at] = key;
    a.places[blockIdx.y * (i64)a.capacity + at] = (unsigned)place;
}

extern "C" __global__ void __launch_bounds__(THREADS) below(const __grid_constant__ args a)
{
    mc_first_state *s = &a.state[blockIdx.y];
    const T *x = a.x + begin_of(a.l, blockIdx.y, a.l.xline);
    const U bound = (U)s->bound;
    for (i64 turn = 0; place_of(turn) - threadIdx.x % 32 < a.l.count; turn += AT_ONCE) {
        U key[AT_ONCE];
        keys_at(a, x, turn, key);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (key[j] <= bound && place_of(turn + j) < a.l.count) {
                const unsigned at = atomicAdd(&s->below, 1u);
                if (at < (unsigned)a.capacity) {
                    list(a, at, key[j], place_of(turn + j));
                }
            }
        }
    }
}

/* ---- the exact way ---- */

extern "C" __global__ void __launch_bounds__(THREADS) count_(const __grid_constant__ args a)
{
    __shared__ unsigned count[BINS];
    mc_first_state *s = &a.state[blockIdx.y];
    unsigned *all = a.count + blockIdx.y * (i64)BINS;
    const T *x = a.x + begin_of(a.l, blockIdx.y, a.l.xline);
    const bool by_key = a.round < KEY_ROUNDS;
    const int high = by_key ? KEY_BITS - FIRST_BITS * a.round : 32 - FIRST_BITS * (a.round - KEY_ROUNDS);
    const u64 key = s->key;
    const unsigned place = s->place;
    if (s->done || is_listed(a, s)) {
        return;
    }
    for (unsigned i = threadIdx.x; i < BINS; i += THREADS) {
        count[i] = 0;
    }
    __syncthreads();
    for (i64 begin = blockIdx.x * (i64)THREADS; begin < a.l.count; begin += gridDim.x * (i64)THREADS) {
        const i64 i = begin + threadIdx.x;
        const U k = i < a.l.count ? key_of(bits_of(x[i * a.l.xstep])) : (U)0;
        tally<FIRST_BITS>(count, digit_of(by_key ? (u64)k : (u64)i, high),
                          i < a.l.count && (by_key ? agree(k, key, high)
                                                   : k == (U)key && agree((u64)i, place, high)));
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < BINS; i += THREADS) {
        if (count[i]) {
            atomicAdd(&all[i], count[i]);
        }
    }
    if (!is_last(s)) {
        return;
    }
    for (unsigned i = threadIdx.x; i < BINS; i += THREADS) {
        count[i] = *(volatile unsigned *)&all[i];
        all[i] = 0;
    }
    __syncthreads();
    unsigned before;
    const unsigned left = a.round ? s->left : (unsigned)a.keep, bin = bin_of(count, left, &before);
    if (threadIdx.x == 0) {
        const u64 bits = (u64)bin << low_of(high), rest = ((u64)1 << low_of(high)) - 1;
        s->left = left - before;
        s->done = count[bin] == left - before;
        if (by_key) {
            s->key = key | bits | (s->done ? rest : 0);
            s->place = s->done ? ~0u : 0;
        } else {
            s->place = place | (unsigned)bits | (s->done ? (unsigned)rest : 0);
        }
        s->arrived = 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) collect(const __grid_constant__ args a)
{
    mc_first_state *s = &a.state[blockIdx.y];
    const T *x = a.x + begin_of(a.l, blockIdx.y, a.l.xline);
    const U most = (U)s->key;
    const unsigned place = s->place;
    if (is_listed(a, s)) {
        return;
    }
    for (i64 i = blockIdx.x * (i64)THREADS + threadIdx.x; i < a.l.count; i += gridDim.x * (i64)THREADS) {
        const U k = key_of(bits_of(x[i * a.l.xstep]));
        if (k < most || (k == most && i <= place)) {
            list(a, atomicAdd(&s->found, 1u), k, i);
        }
    }
}

/* ---- the list ---- */

extern "C" __global__ void __launch_bounds__(ORDER_THREADS) in_order(const __grid_constant__ args a)
{
    __shared__ U key[FIRST_LISTED];
    __shared__ unsigned place[FIRST_LISTED];
    const mc_first_state *s = &a.state[blockIdx.x];
    i64 *y = a.y + begin_of(a.l, blockIdx.x, a.l.yline);
    const int listed = is_listed(a, s) ? (int)s->below : (int)a.keep;
    int n = 2;
    while (n < listed) {
        n *= 2;
    }
    for (int i = threadIdx.x; i < n; i += ORDER_THREADS) {
        key[i] = i < listed ? (U)a.list[blockIdx.x * (i64)a.capacity + i] : (U)~(U)0;
        place[i] = i < listed ? a.places[blockIdx.x * (i64)a.capacity + i] : ~0u;
    }
    __syncthreads();
    for (int span = 2; span <= n; span *= 2) {
        for (int d = span / 2; d; d /= 2) {
            for (int t = threadIdx.x; t < n / 2; t += ORDER_THREADS) {
                const int i = t / d * 2 * d + t % d, j = i + d;
                const U u = key[i], v = key[j];
                const unsigned p = place[i], q = place[j];
                if ((u > v || (u == v && p > q)) == ((i & span) == 0)) {
                    key[i] = v;
                    key[j] = u;
                    place[i] = q;
                    place[j] = p;
                }
            }
            __syncthreads();
        }
    }
    for (int i = threadIdx.x; i < a.keep; i += ORDER_THREADS) {
        y[i * a.l.ystep] = (i64)place[i];
    }
}
