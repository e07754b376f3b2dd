/* order.cu: sorts lines by radix, a digit of 8 bits in each pass from the lowest: stable.
 *
 * near_:  a line of one tile, all passes in shared memory.
 * digits: counts the digits of all passes.  The last block of a line says which passes move something: those
 *         in which the elements differ in their digit.  The others end at once.
 * pass:   moves elements to where their digit lies.  Tiles are begun in order.  A tile publishes how many
 *         elements it has of each digit, puts them in order in shared memory, adds what the tiles before it
 *         have published meanwhile, and publishes the sum.
 * With POSITIONS an element has its position in x with it, and the result is positions. */
#include "exec/cuda/order_args.h"
typedef mc_order_args args;
enum { WARPS = THREADS / 32, TILE = THREADS * ITEMS, DIGITS = 256, PASSES = sizeof(U) };
enum { AT_ONCE = 8, BACK = 16 };       /* elements of a thread, tiles that are read at once */
enum { OWNERS = THREADS < DIGITS ? THREADS : DIGITS, OWN = DIGITS / OWNERS }; /* threads that own digits */
#define OWNED(d) (int d = threadIdx.x * OWN; threadIdx.x < OWNERS && d < (int)threadIdx.x * OWN + OWN; d++)

__device__ __forceinline__ unsigned digit_of(U u, int pass)
{
    return (unsigned)(key_of(u) >> 8 * pass) & 255;
}

/* What an item of a longer line is: where only its place is wanted its key, so that it is computed once. */
#define KEYS (FAR && POSITIONS)
__device__ __forceinline__ U item_of(U u) { return KEYS ? key_of(u) : u; }
__device__ __forceinline__ U none_item() { return KEYS ? (U)~(U)0 : last_bits(); }

__device__ __forceinline__ unsigned digit_in(U item, int pass)
{
    return KEYS ? (unsigned)(item >> 8 * pass) & 255 : digit_of(item, pass);
}

/* ---- a tile: item j of a lane is element 32 j + lane of its warp's part ---- */

struct tile {
    unsigned warp[WARPS][DIGITS];   /* by warp and digit: a count, then the first place in the tile */
};

/* The lanes whose elements have digit d. */
__device__ __forceinline__ unsigned same_digit(unsigned d)
{
    unsigned same = 0xffffffff;
#pragma unroll
    for (int b = 0; b < 8; b++) {
        const unsigned set = __ballot_sync(0xffffffff, d >> b & 1);
        same &= d >> b & 1 ? set : ~set;
    }
    return same;
}

/* rank[j]: how many elements of the same digit are before it in its warp's part. */
__device__ __forceinline__ void rank_items(tile &s, const U *item, int pass, unsigned *rank)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned i = threadIdx.x; i < WARPS * DIGITS; i += THREADS) {
        (&s.warp[0][0])[i] = 0;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const unsigned d = digit_of(item[j], pass);
        const unsigned same = same_digit(d);
        const int first = __ffs(same) - 1;
        unsigned before = 0;
        if ((int)lane == first) {
            before = s.warp[warp][d];
            s.warp[warp][d] = before + __popc(same);
        }
        rank[j] = __shfl_sync(0xffffffff, before, first) + __popc(same & ((1u << lane) - 1));
        __syncwarp();
    }
    __syncthreads();
}

/* Counts of warps become how many elements of the digit are in the warps before; count: of the tile. */
__device__ __forceinline__ void before_warps(tile &s, unsigned *count)
{
    int k = 0;
    for OWNED(d) {
        unsigned sum = 0;
        for (int w = 0; w < WARPS; w++) {
            const unsigned c = s.warp[w][d];
            s.warp[w][d] = sum;
            sum += c;
        }
        count[k++] = sum;
    }
}

/* Counts by digit become sums over the digits before; all threads take part. */
__device__ __forceinline__ void before_digits(unsigned *of_warps, const unsigned *count, unsigned *start)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned mine = 0, sum = 0;
    for (int k = 0; k < OWN; k++) {
        mine += threadIdx.x < OWNERS ? count[k] : 0;
    }
    sum = mine;
    for (int d = 1; d < 32; d *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffff, sum, d);
        sum += lane >= d ? other : 0;
    }
    if (lane == 31) {
        of_warps[warp] = sum;
    }
    __syncthreads();
    sum -= mine;
    for (int w = 0; w < warp; w++) {
        sum += of_warps[w];
    }
    for (int k = 0; k < OWN; k++) {
        const unsigned c = threadIdx.x < OWNERS ? count[k] : 0; /* start may be count */
        start[k] = sum;
        sum += c;
    }
}

#if !FAR
/* ---- lines of one tile ---- */

extern "C" __global__ void __launch_bounds__(THREADS) near_(const __grid_constant__ args a)
{
    __shared__ tile s;
    __shared__ unsigned of_warps[WARPS];
    __shared__ U moved[TILE];
#if POSITIONS
    __shared__ unsigned short moved_at[TILE];
    unsigned short at[ITEMS];
#endif
    const i64 line = blockIdx.x;
    const T *x = a.x + begin_of(a.l, line, a.l.xline);
    O *y = a.y + begin_of(a.l, line, a.l.yline);
    const int first = threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
    U item[ITEMS];
    unsigned rank[ITEMS], count[OWN], start[OWN];
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        item[j] = first + 32 * j < a.l.count ? bits_of(x[(first + 32 * j) * a.l.xstep]) : last_bits();
#if POSITIONS
        at[j] = (unsigned short)(first + 32 * j);
#endif
    }
    _Pragma("unroll 1") for (int pass = 0; pass < PASSES; pass++) {
        rank_items(s, item, pass, rank);
        before_warps(s, count);
        bool one = false;
        for (int k = 0; k < OWN; k++) {
            one |= threadIdx.x < OWNERS && count[k] == TILE;
        }
        if (__syncthreads_or(one)) { /* all elements share the digit */
            continue;
        }
        before_digits(of_warps, count, start);
        int k = 0;
        for OWNED(d) {
            for (int w = 0; w < WARPS; w++) {
                s.warp[w][d] += start[k];
            }
            k++;
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const unsigned to = s.warp[threadIdx.x / 32][digit_of(item[j], pass)] + rank[j];
            moved[to] = item[j];
#if POSITIONS
            moved_at[to] = at[j];
#endif
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            item[j] = moved[first + 32 * j];
#if POSITIONS
            at[j] = moved_at[first + 32 * j];
#endif
        }
    }
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        if (first + 32 * j < a.keep) {
#if POSITIONS
            y[(first + 32 * j) * a.l.ystep] = at[j];
#else
            y[(first + 32 * j) * a.l.ystep] = *(const O *)&item[j];
#endif
        }
    }
}

#else
/* ---- longer lines ---- */

/* Bit p: pass p moves elements of the line.  Where all are equal, the first does. */
__device__ __forceinline__ void say_needed(const args &a, i64 line)
{
    unsigned needed = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        bool all = false;
        for (int d = threadIdx.x; d < DIGITS; d += THREADS) {
            const volatile unsigned *count = a.count + (line * PASSES + pass) * DIGITS;
            all |= count[d] == a.l.count;
        }
        needed |= __syncthreads_or(all) ? 0 : 1u << pass;
    }
    if (threadIdx.x == 0) {
        a.needed[line] = needed ? needed : 1;
    }
}

/* Counts the digits of AT_ONCE elements of each thread; `all`: none of them is behind the line. */
template <bool all>
__device__ __forceinline__ void count_digits(const args &a, const T *x, unsigned begin,
                                             unsigned (*count)[DIGITS])
{
    const unsigned n = (unsigned)a.l.count;
    T v[AT_ONCE];
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
        const unsigned i = begin + THREADS * j + threadIdx.x;
        v[j] = x[(all || i < n ? i : n - 1) * a.l.xstep];
    }
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
        const U key = key_of(bits_of(v[j]));
        if (all || begin + THREADS * j + threadIdx.x < n) {
#pragma unroll
            for (int pass = 0; pass < PASSES; pass++) {
                atomicAdd(&count[pass][(unsigned)(key >> 8 * pass) & 255], 1u);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) digits(const __grid_constant__ args a)
{
    __shared__ unsigned count[PASSES][DIGITS];
    __shared__ bool last;
    const i64 line = blockIdx.y;
    const T *x = a.x + begin_of(a.l, line, a.l.xline);
    for (unsigned i = threadIdx.x; i < PASSES * DIGITS; i += THREADS) {
        (&count[0][0])[i] = 0;
    }
    __syncthreads();
    for (unsigned begin = blockIdx.x * (THREADS * AT_ONCE); begin < a.l.count;
         begin += gridDim.x * (THREADS * AT_ONCE)) {
        if (begin + THREADS * AT_ONCE <= a.l.count) {
            count_digits<true>(a, x, begin, count);
        } else {
            count_digits<false>(a, x, begin, count);
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < PASSES * DIGITS; i += THREADS) {
        if ((&count[0][0])[i]) {
            atomicAdd(&a.count[line * (PASSES * DIGITS) + i], (&count[0][0])[i]);
        }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&a.counted[line], 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        say_needed(a, line);
    }
}

/* the top bits of a state: the tile's count; with those before it */
enum { PART = 1 << 30, WHOLE = 2 };

__device__ __forceinline__ void say_part(unsigned *state, unsigned tile, unsigned mine)
{
    *(volatile unsigned *)state = tile ? mine | PART : mine | (unsigned)WHOLE << 30;
}

/* Elements of the digit in the tiles before; *state is the tile's.  BACK states are read at once, so that
 * one does not wait for another; tile 0 is whole. */
__device__ __forceinline__ unsigned before_tiles(unsigned *state, unsigned tile, unsigned mine)
{
    unsigned sum = 0;
    bool whole = tile == 0;
    for (int before = (int)tile - 1; !whole; before -= BACK) {
        const volatile unsigned *p = state - (i64)((int)tile - before) * DIGITS;
        unsigned v[BACK];
#pragma unroll
        for (int j = 0; j < BACK; j++) {
            v[j] = j <= before ? p[-(i64)j * DIGITS] : (unsigned)WHOLE << 30;
        }
#pragma unroll
        for (int j = 0; j < BACK; j++) {
            if (!whole) {
                while (v[j] >> 30 == 0) {
                    v[j] = p[-(i64)j * DIGITS];
                }
                sum += v[j] & (PART - 1);
                whole = v[j] >> 30 == WHOLE;
            }
        }
    }
    if (tile) {
        *(volatile unsigned *)state = (sum + mine) | (unsigned)WHOLE << 30;
    }
    return sum;
}

/* What a pass is among those needed: the first, the last, an odd one, which has read what an even one wrote.
 * It stays in shared memory while the elements have the registers. */
enum { BEGINS = 1, ENDS = 2, ODD = 4 };
__device__ __forceinline__ unsigned part_of(unsigned needed, int pass)
{
    const unsigned before = needed & ((1u << pass) - 1);
    return (before ? 0 : BEGINS) | (needed >> pass == 1 ? ENDS : 0) | (__popc(before) % 2 ? ODD : 0);
}

/* rank[j]: the place of item j in the tile, ordered by digit; s.warp has that of each warp's first. */
__device__ __forceinline__ void place_items(tile &s, const U *item, int pass, unsigned *rank)
{
    unsigned *const next = s.warp[threadIdx.x / 32];
    const unsigned before_lane = (1u << threadIdx.x % 32) - 1;
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const unsigned d = digit_in(item[j], pass), same = same_digit(d), first = next[d];
        const unsigned lower = __popc(same & before_lane);
        __syncwarp();
        if (lower == 0) {
            next[d] = first + __popc(same);
        }
        __syncwarp();
        rank[j] = first + lower;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS) pass_(const __grid_constant__ args a)
{
    __shared__ union {
        tile s;
        U moved[TILE];
        unsigned moved_at[POSITIONS ? TILE : 1];
    } m;
    __shared__ unsigned of_warps[2][WARPS], ticket;
    __shared__ unsigned place[DIGITS];  /* of element i of the tile in its line, less i, by digit */
    __shared__ unsigned side;           /* part_of this pass */
    __shared__ unsigned none_from;      /* where they are in the tile: the last of their digit */
    if (threadIdx.x == 0) {
        ticket = atomicAdd(&a.ticket[a.pass], 1u);
    }
    for (unsigned i = threadIdx.x; i < WARPS * DIGITS; i += THREADS) {
        (&m.s.warp[0][0])[i] = 0;
    }
    __syncthreads();
    const unsigned line = ticket / (unsigned)a.tiles, mine = ticket % (unsigned)a.tiles;
    const unsigned needed = a.needed[line], n = (unsigned)a.l.count;
    if ((needed >> a.pass & 1) == 0) {
        return;
    }
    const unsigned first = mine * TILE + threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
    /* items of the last tile that are no elements */
    const unsigned none = (mine + 1) * TILE > n ? (mine + 1) * TILE - n : 0;
    U item[ITEMS];
    unsigned rank[ITEMS], count[OWN], start[OWN], base[OWN];
    {
        const unsigned part = part_of(needed, a.pass);
        if (threadIdx.x == 0) {
            side = part;
        }
        if (part & BEGINS) {
            const T *const x = a.x + begin_of(a.l, line, a.l.xline);
#pragma unroll
            for (int j = 0; j < ITEMS; j++) {
                item[j] = bits_of(x[(i64)min(first + 32 * j, n - 1) * a.l.xstep]);
            }
#pragma unroll
            for (int j = 0; j < ITEMS; j++) {
                item[j] = item_of(item[j]);
            }
        } else {
            const U *const from = a.keys[part & ODD ? 0 : 1] + line * a.l.count;
#pragma unroll
            for (int j = 0; j < ITEMS; j++) {
                item[j] = from[min(first + 32 * j, n - 1)];
            }
        }
    }
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        item[j] = first + 32 * j < n ? item[j] : none_item();
        atomicAdd(&m.s.warp[threadIdx.x / 32][digit_in(item[j], a.pass)], 1u);
    }
    __syncthreads();
    before_warps(m.s, count);
    unsigned *const state = a.state + ((i64)line * a.tiles + mine) * DIGITS;
    int k = 0;
    for OWNED(d) {
        say_part(state + d, mine, count[k++]);
    }
    for (k = 0; k < OWN; k++) {
        base[k] = threadIdx.x < OWNERS
                      ? a.count[(line * PASSES + a.pass) * DIGITS + threadIdx.x * OWN + k]
                      : 0;
    }
    before_digits(of_warps[0], count, start);
    before_digits(of_warps[1], base, base);
    k = 0;
    for OWNED(d) {
        for (int w = 0; w < WARPS; w++) {
            m.s.warp[w][d] += start[k];
        }
        if (d == (int)digit_in(none_item(), a.pass)) {
            none_from = start[k] + count[k] - none;
        }
        k++;
    }
    __syncthreads();
    place_items(m.s, item, a.pass, rank);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        m.moved[rank[j]] = item[j];
    }
#if POSITIONS
    unsigned at[ITEMS];
    if (side & BEGINS) {
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            at[j] = first + 32 * j;
        }
    } else {
        const unsigned *const from = a.places[side & ODD ? 0 : 1] + line * a.l.count;
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            at[j] = from[min(first + 32 * j, n - 1)];
        }
    }
#endif
    k = 0;
    for OWNED(d) {
        place[d] = base[k] - start[k] + before_tiles(state + d, mine, count[k]);
        k++;
    }
    __syncthreads();
    unsigned to[ITEMS];
    U *const far_to = a.keys[side & ODD ? 1 : 0] + line * a.l.count;
    O *const y = a.y + begin_of(a.l, line, a.l.yline);
    const unsigned keep = side & ENDS ? (unsigned)a.keep : n; /* of places that are written */
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const unsigned i = threadIdx.x + THREADS * j;
        const U u = m.moved[i];
        to[j] = i - none_from < none ? ~0u : place[digit_in(u, a.pass)] + i;
        if (to[j] < keep) {
            if ((side & ENDS) == 0) {
                far_to[to[j]] = u;
            }
#if !POSITIONS
            else {
                y[to[j] * a.l.ystep] = *(const O *)&u;
            }
#endif
        }
    }
#if POSITIONS
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        m.moved_at[rank[j]] = at[j];
    }
    __syncthreads();
    unsigned *const far_at = a.places[side & ODD ? 1 : 0] + line * a.l.count;
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const unsigned v = m.moved_at[threadIdx.x + THREADS * j];
        if (to[j] < keep) {
            if (side & ENDS) {
                y[to[j] * a.l.ystep] = v;
            } else {
                far_at[to[j]] = v;
            }
        }
    }
#endif
}
#endif
