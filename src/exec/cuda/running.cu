/* running.cu: results so far along an axis: sums, products, extremes.
 *
 * running:           a block has a tile of a line in registers.  It publishes the tile's total, joins the
 *                    totals of the groups of tiles before its own, each published by its last tile, and
 *                    those of the tiles before it in its group, and writes its results: x is read once.
 *                    Tiles are begun in order, so those before a tile need nothing of it.
 * totals, carried:   where x stays in the L2 cache: the totals of all tiles, then the results; x is read
 *                    twice and no tile waits.
 * down_totals, down: where adjacent lines are adjacent in memory: each thread has a chunk of a line, and
 *                    joins the totals of the chunks before.
 * T is x's dtype, O the result's, A what is joined, FIRST its identity.  V elements are one access.  What is
 * joined with what follows from the sizes alone. */
#include "exec/cuda/running_args.h"
typedef mc_running_args args;
enum { WARPS = THREADS / 32, OF_WARP = 32 * V * ROWS, TILE = THREADS * V * ROWS, GROUP = RUNNING_GROUP };

/* The order matters: a product of rounded numbers, and of equal extremes the first. */
__device__ __forceinline__ A joined(A before, A v)
{
#if WAY == 0
    return before + v;
#elif WAY == 1
    return before * v;
#elif WAY == 2
    return v > before || v != v ? v : before;
#else
    return v < before || v != v ? v : before;
#endif
}

__device__ __forceinline__ A in_warp(A v)
{
    const int lane = threadIdx.x % 32;
    for (int d = 1; d < 32; d *= 2) {
        const A before = __shfl_up_sync(0xffffffff, v, d);
        v = lane >= d ? joined(before, v) : v;
    }
    return v;
}

/* What the lanes before this one give, after v of lane 0. */
__device__ __forceinline__ A before_lane(A sum)
{
    const A before = __shfl_up_sync(0xffffffff, sum, 1);
    return threadIdx.x % 32 ? before : FIRST;
}

/* What the warps before this one give; *all: what the block gives.  `mine`: the warp's total, in every lane.
 */
__device__ __forceinline__ A before_warp(A mine, A *of_warps, A *all)
{
    const int warp = threadIdx.x / 32;
    A before = FIRST, sum = FIRST;
    if (threadIdx.x % 32 == 0) {
        of_warps[warp] = mine;
    }
    __syncthreads();
    for (int w = 0; w < WARPS; w++) {
        before = w == warp ? sum : before;
        sum = joined(sum, of_warps[w]);
    }
    *all = sum;
    return before;
}

/* ---- totals of tiles: two words of eight bytes hold half of the value each and the mark of the launch, so
 * no word is read half written, and no order between the two is needed ---- */

__device__ __forceinline__ void publish(u64 *word, A v, unsigned mark)
{
    const u64 u = *(const u64 *)&v;
    __stcg((ulonglong2 *)word, make_ulonglong2(u << 32 | mark, u >> 32 << 32 | mark));
}

__device__ __forceinline__ A published(const u64 *word, unsigned mark)
{
    ulonglong2 w = __ldcv((const ulonglong2 *)word);
    while ((unsigned)w.x != mark || (unsigned)w.y != mark) {
        __nanosleep(20); /* or all that wait would keep the one that writes from it */
        w = __ldcv((const ulonglong2 *)word);
    }
    const u64 u = w.x >> 32 | w.y >> 32 << 32;
    return *(const A *)&u;
}

/* What n totals give, by the lanes of a warp in order; all lanes get it. */
__device__ __forceinline__ A joined_totals(const u64 *total, i64 n, unsigned mark)
{
    A sum = FIRST;
    for (i64 from = 0; from < n; from += 32) {
        const i64 i = from + threadIdx.x % 32;
        const A v = in_warp(i < n ? published(total + 2 * i, mark) : FIRST);
        sum = joined(sum, __shfl_sync(0xffffffff, v, 31));
    }
    return sum;
}

/* What the tiles before tile `mine` of the line give, by the first warp for all: while one warp waits, the
 * others leave the processor to blocks that read.  `all`: what the tile gives.  No group waits for another.
 */
__device__ __forceinline__ A before_tile(const args &a, i64 line, i64 mine, unsigned mark, A all, A *before)
{
    u64 *const total = a.total + 2 * (line * a.tiles), *const group = a.group + 2 * (line * a.groups);
    const i64 g = mine / GROUP, place = mine % GROUP;
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            publish(total + 2 * mine, all, mark);
        }
        const A in_group = joined_totals(total + 2 * (g * GROUP), place, mark);
        if (threadIdx.x == 0 && place == GROUP - 1) {
            publish(group + 2 * g, joined(in_group, all), mark);
        }
        const A sum = joined(joined_totals(group, g, mark), in_group);
        if (threadIdx.x == 0) {
            *before = sum;
        }
    }
    __syncthreads();
    return *before;
}

/* ---- a tile: a warp has ROWS rows of 32 V elements; a lane V of each ---- */

template <int bytes> struct word { typedef uint4 type; };
template <> struct word<8> { typedef uint2 type; };
template <> struct word<4> { typedef unsigned type; };
template <class E> using word_of = typename word<V * sizeof(E)>::type;

/* Elements are marked to leave the cache before others, unless they are read again. */
template <bool words, bool again>
__device__ __forceinline__ void read_row(const args &a, const T *x, i64 at, T *v)
{
    if (words) { /* V is at most 16 / sizeof(T) */
        const word_of<T> *from = (const word_of<T> *)(x + at);
        *(word_of<T> *)v = again ? *from : __ldcs(from);
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) {
            if (at + j < a.l.count) {
                v[j] = x[(at + j) * a.l.xstep];
            }
        }
    }
}

template <bool words> __device__ __forceinline__ void write_row(const args &a, O *y, i64 at, const O *v)
{
    if (words) {
        const int n = sizeof(word_of<O>) / sizeof(O);
#pragma unroll
        for (int j = 0; j < V; j += n) {
            __stcs((word_of<O> *)(y + at + j), *(const word_of<O> *)(v + j));
        }
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) {
            if (at + j < a.l.count) {
                y[(at + j) * a.l.ystep] = v[j];
            }
        }
    }
}

/* What the rows of a warp give, in each lane.  before, if any: what precedes this lane in each row. */
template <bool words, bool again>
__device__ __forceinline__ A read_rows(const args &a, const T *x, i64 first, T (*v)[V], A *before)
{
    A sum = FIRST;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        read_row<words, again>(a, x, first + r * (32 * V), v[r]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        A own = FIRST;
#pragma unroll
        for (int j = 0; j < V; j++) {
            if (words || first + r * (32 * V) + j < a.l.count) {
                own = joined(own, get<A>(v[r][j]));
            }
        }
        own = in_warp(own);
        if (before) {
            before[r] = joined(sum, before_lane(own));
        }
        sum = joined(sum, __shfl_sync(0xffffffff, own, 31));
    }
    return sum;
}

__device__ __forceinline__ i64 first_of(i64 mine)
{
    return mine * TILE + threadIdx.x / 32 * OF_WARP + threadIdx.x % 32 * V;
}

/* What the n totals before a tile give; each thread joins some that are adjacent. */
__device__ __forceinline__ A totals_before(const A *total, i64 n, A *of_warps)
{
    const i64 each = (n + THREADS - 1) / THREADS, from = threadIdx.x * each;
    A sum = FIRST, all;
    for (i64 i = from; i < from + each && i < n; i++) {
        sum = joined(sum, total[i]);
    }
    before_warp(__shfl_sync(0xffffffff, in_warp(sum), 31), of_warps, &all);
    return all;
}

template <bool words, bool carried>
__device__ __forceinline__ void through(const args &a, i64 line, i64 mine, unsigned mark)
{
    __shared__ A of_warps[WARPS], of_tiles[WARPS];
    O *y = a.y + begin_of(a.l, line, a.l.yline);
    const i64 first = first_of(mine);
    alignas(16) T v[ROWS][V];
    A before[ROWS], all;
    const A sum =
        read_rows<words, false>(a, a.x + begin_of(a.l, line, a.l.xline), first, v, before);
    A carry = before_warp(sum, of_warps, &all);
    if (carried) {
        carry = joined(totals_before(a.sums + line * a.tiles, mine, of_tiles), carry);
    } else if (a.tiles > 1) {
        carry = joined(before_tile(a, line, mine, mark, all, of_tiles), carry);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        alignas(16) O out[V];
        A so_far = joined(carry, before[r]);
#pragma unroll
        for (int j = 0; j < V; j++) {
            so_far = joined(so_far, get<A>(v[r][j]));
            out[j] = put<O>(so_far);
        }
        write_row<words>(a, y, first + r * (32 * V), out);
    }
}

__device__ __forceinline__ bool whole(const args &a, i64 mine)
{
    return a.words && (mine + 1) * TILE <= a.l.count;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS) running(const __grid_constant__ args a)
{
    __shared__ unsigned ticket[2];
    i64 tile = blockIdx.x;
    unsigned mark = 0;
    if (a.tiles > 1) {
        if (threadIdx.x == 0) { /* tickets of all launches so far: launch number `mark - 1` gives this one */
            const u64 given = atomicAdd(a.ticket, 1ull), launch = __umul64hi(given, a.per_block);
            ticket[0] = (unsigned)(given - launch * gridDim.x);
            ticket[1] = ((unsigned)launch & 0x7fffffff) + 1;
        }
        __syncthreads();
        tile = ticket[0];
        mark = ticket[1];
    }
    const i64 line = tile / a.tiles, mine = tile % a.tiles;
    if (whole(a, mine)) {
        through<true, false>(a, line, mine, mark);
    } else {
        through<false, false>(a, line, mine, mark);
    }
}

template <bool words> __device__ __forceinline__ void total_of(const args &a, i64 line, i64 mine)
{
    __shared__ A of_warps[WARPS];
    alignas(16) T v[ROWS][V];
    A all;
    before_warp(read_rows<words, true>(a, a.x + begin_of(a.l, line, a.l.xline), first_of(mine), v, NULL),
                of_warps, &all);
    if (threadIdx.x == 0) {
        a.sums[line * a.tiles + mine] = all;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS) totals(const __grid_constant__ args a)
{
    const i64 line = blockIdx.x / a.tiles, mine = blockIdx.x % a.tiles;
    if (whole(a, mine)) {
        total_of<true>(a, line, mine);
    } else {
        total_of<false>(a, line, mine);
    }
}

/* From the end, which was read last and is in the cache. */
extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS) carried(const __grid_constant__ args a)
{
    const i64 tile = gridDim.x - 1 - blockIdx.x, line = tile / a.tiles, mine = tile % a.tiles;
    if (whole(a, mine)) {
        through<true, true>(a, line, mine, 0);
    } else {
        through<false, true>(a, line, mine, 0);
    }
}

/* ---- many lines side by side ---- */

enum { AHEAD = 8 };             /* elements that are read at once */

template <bool writes> __device__ __forceinline__ A down_through(const args &a, i64 line, i64 part, A sum)
{
    const i64 from = part * a.chunk, to = from + a.chunk < a.l.count ? from + a.chunk : a.l.count;
    const T *x = a.x + begin_of(a.l, line, a.l.xline);
    O *y = a.y + begin_of(a.l, line, a.l.yline);
    for (i64 i = from; i < to; i += AHEAD) {
        A v[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            v[j] = i + j < to ? get<A>(x[(i + j) * a.l.xstep]) : FIRST;
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            if (i + j < to) {
                sum = joined(sum, v[j]);
                if (writes) {
                    y[(i + j) * a.l.ystep] = put<O>(sum);
                }
            }
        }
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(128) down_totals(const __grid_constant__ args a)
{
    for (i64 line = blockIdx.x * 128ll + threadIdx.x; line < a.l.lines; line += gridDim.x * 128ll) {
        a.sums[blockIdx.y * a.l.lines + line] = down_through<false>(a, line, blockIdx.y, FIRST);
    }
}

extern "C" __global__ void __launch_bounds__(128) down(const __grid_constant__ args a)
{
    for (i64 line = blockIdx.x * 128ll + threadIdx.x; line < a.l.lines; line += gridDim.x * 128ll) {
        A sum = FIRST;
        for (i64 c = 0; c < blockIdx.y; c++) {
            sum = joined(sum, a.sums[c * a.l.lines + line]);
        }
        down_through<true>(a, line, blockIdx.y, sum);
    }
}
