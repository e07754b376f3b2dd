/* tensor_forward.cu: forward convolution of few channels on tensor cores (tensor.cu).
 *
 * A warp has PE eights of positions times FE eights of filters; its block makes the fragments of filters
 * once.  With PAIRS a tile of x has one scale, and each filter has one.
 *
 * The contiguous axis of y is the columns of the product: G eights of them are permuted so that a lane has
 * RUN contiguous ones, which it writes at once. */
enum { STEPS = (TAPS + STEP - 1) / STEP, KEPT = STEPS * FE <= (PAIRS ? 8 : 16), RUN = 2 * G };
enum { REGISTERS = PAIRS ? 4 : 2 };     /* of a lane's terms of an eight */
enum { ROWS = BESIDE ? PE : FE, COLUMNS = BESIDE ? FE : PE };

/* The column that is number c of eight e. */
__device__ __forceinline__ int dealt(int e, int c)
{
    return e / G * 8 * G + c / 2 * RUN + e % G * 2 + c % 2;
}

/* ---- filters ---- */

/* a lane's terms, as offsets from the start of a window */
struct alignas(4 * LANE) shifts { int tap[LANE]; };

/* high[0], high[1], low[0], low[1], or without PAIRS two registers */
typedef words<REGISTERS> fragment;

/* The power of two that scales numbers of up to `most` (its bits) to halves, and the one that undoes it. */
__device__ __forceinline__ float scale_of(u32 most, bool undo)
{
    const int e = min(max((int)(most >> 23), 15), 254);
    return __uint_as_float((u32)(undo ? e - 14 : 268 - e) << 23);
}

/* The bits of |v|; 0 for infinities and NaN, whose sums are broken. */
__device__ __forceinline__ u32 finite_size(u32 v)
{
    return (v & 0x7fffffff) < 0x7f800000 ? v & 0x7fffffff : 0;
}

__shared__ u32 largest[FE * 8];     /* of each filter; then what undoes its scale */
__shared__ u32 largest_of_warps[WARPS];

__device__ __forceinline__ cell filter_cell(const args &p, int f, int k)
{
    return f < p.f && k < TAPS ? cell_of(p.w[filter_at(p, f, k)]) : (cell)0;
}

/* (step, eight, lane) */
__device__ __forceinline__ void load_filters(const args &p, fragment *to, shifts *shift, int first)
{
    enum { COUNT = STEPS * FE * 32, EVERY = WARPS * 32, BATCH = 4 };
    for (int e = threadIdx.x; PAIRS && e < FE * 8; e += EVERY) {
        largest[e] = 0;
    }
    __syncthreads();
    for (int e0 = threadIdx.x; e0 < COUNT; e0 += EVERY * BATCH) {
        cell v[BATCH][LANE];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {       /* in flight at once */
            const int e = e0 + j * EVERY, eight = e / 32 % FE, number = e % 32 / 4,
                      k = e / 32 / FE * STEP + e % 4 * LANE;
            const int f = first + (BESIDE ? dealt(eight, number) : eight * 8 + number);
#pragma unroll
            for (int i = 0; i < LANE; i++) {
                v[j][i] = e < COUNT ? filter_cell(p, f, k + i) : (cell)0;
            }
        }
#pragma unroll
        for (int j = 0; j < BATCH && e0 + j * EVERY < COUNT; j++) {
            const int e = e0 + j * EVERY;
            if (PAIRS) {
                u32 most = 0;
#pragma unroll
                for (int i = 0; i < LANE; i++) {
                    to[e].v[i % REGISTERS] = v[j][i];
                    most = max(most, finite_size(v[j][i]));
                }
                atomicMax(&largest[e / 32 % FE * 8 + e % 32 / 4], most);
            } else {
                u32 r[2];
                join(r, v[j]);
                to[e].v[0] = r[0];
                to[e].v[1] = r[1];
            }
        }
    }
    for (int k = threadIdx.x; k < STEPS * STEP; k += EVERY) {
        shift[k / LANE].tap[k % LANE] = k < TAPS ? tap_at(p, k) : 0;
    }
    __syncthreads();
    for (int e = threadIdx.x; PAIRS && e < COUNT; e += EVERY) {
        const float scale = scale_of(largest[e / 32 % FE * 8 + e % 32 / 4], false);
        const fragment v = to[e];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            halve2(__uint_as_float(v.v[2 * i % REGISTERS]) * scale,
                   __uint_as_float(v.v[(2 * i + 1) % REGISTERS]) * scale, &to[e].v[i],
                   &to[e].v[(2 + i) % REGISTERS]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; PAIRS && e < FE * 8; e += EVERY) {
        largest[e] = __float_as_uint(scale_of(largest[e], true));
    }
}

__device__ __forceinline__ void read_filters(fragment (&to)[FE], const fragment *from)
{
#pragma unroll
    for (int e = 0; e < FE; e++) {
        to[e] = from[e * 32];
    }
}

/* Makes pairs of halves of the floats of a tile, for all threads; what undoes their scale. */
__device__ __forceinline__ float halve_tile(const args &p, const tile &a, cell *x)
{
    const int count = a.images * PLANES * p.lines * PITCH;
    u32 most = 0;
    for (int e = threadIdx.x; e < count; e += WARPS * 32) {
        most = max(most, finite_size(x[e]));
    }
    most = over_warp(most);
    if (threadIdx.x % 32 == 0) {
        largest_of_warps[threadIdx.x / 32] = most;
    }
    __syncthreads();
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        most = max(most, largest_of_warps[w]);
    }
    const float scale = scale_of(most, false);
    for (int e = threadIdx.x; e < count; e += WARPS * 32) {
        const float v = __uint_as_float(x[e]) * scale;
        const half high = put<half>(v), low = put<half>(v - get<float>(high));
        x[e] = (cell)(high.bits | (u32)low.bits << 16);
    }
    __syncthreads();
    return scale_of(most, true);
}

/* ---- a step ---- */

__device__ __forceinline__ int position_of(int e, int number)
{
    return BESIDE ? e * 8 + number : dealt(e, number);
}

/* The windows of a lane's positions.  Several follow from one where lines are whole multiples of them. */
__device__ __forceinline__ void bases(const args &p, int (&base)[PE], int position0, int positions)
{
    enum { SPAN = OW % (8 * PE) == 0 ? PE : BESIDE && OW % 16 == 0 ? 2 : 1 };
    const int number = threadIdx.x % 32 / 4;
#pragma unroll
    for (int e = 0; e < PE; e++) {
        const int from = e / SPAN * SPAN, distance = position_of(e, 0) - position_of(from, 0);
        base[e] = e > from ? base[from] + distance * SW * MIXED * (int)sizeof(cell)
                           : window_at(p, min(position0 + position_of(e, number), positions - 1));
    }
}

/* Terms beyond the last tap are zeros: the cells read there may be infinite.  With PAIRS they are those of
 * the first tap, with which the sum is broken anyway. */
__device__ __forceinline__ void beyond(u32 (&mask)[2], int first)
{
    cell v[LANE];
#pragma unroll
    for (int i = 0; i < LANE; i++) {
        v[i] = first + i < TAPS ? (cell)~0u : (cell)0;
    }
    join(mask, v);
}

/* A lane's terms of a window. */
__device__ __forceinline__ fragment gather(const cell *x, int base, const shifts &shift, const u32 (&mask)[2],
                                           bool last)
{
    cell v[LANE];
    fragment to;
#pragma unroll
    for (int i = 0; i < LANE; i++) {
        v[i] = cell_at(x, base + shift.tap[i]);
    }
    if (PAIRS) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const u32 even = v[2 * i % LANE], odd = v[(2 * i + 1) % LANE];
            to.v[i] = (even & 0xffff) | odd << 16;
            to.v[(2 + i) % REGISTERS] = even >> 16 | (odd & 0xffff0000);
        }
        return to;
    }
    u32 r[2];
    join(r, v);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        to.v[i] = r[i] & (last && TAPS % STEP != 0 ? mask[i] : ~0u);
    }
    return to;
}

/* c = a b, without instructions that set c to 0 */
__device__ __forceinline__ void multiply_first(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    d[0] = d[1] = d[2] = d[3] = 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%10,%10,%10,%10};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.f));
}

/* Part of a row of sixteen: 0: high halves, 1: low ones. */
__device__ __forceinline__ void rows_of(u32 (&a)[4], const fragment &above, const fragment &below, int part)
{
    const int first = part * 2 % REGISTERS;
    a[0] = above.v[first];
    a[1] = below.v[first];
    a[2] = above.v[first + 1];
    a[3] = below.v[first + 1];
}

__device__ __forceinline__ void multiply_pairs(float (&sum)[4], const u32 (&high)[4], const u32 (&low)[4],
                                               const fragment &column)
{
    const u32 b0 = column.v[2 % REGISTERS], b1 = column.v[3 % REGISTERS];
    float c[4];
    multiply_first(c, low, column.v[0], column.v[1]);
    multiply(c, high, b0, b1);
    multiply(c, high, column.v[0], column.v[1]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[i] += c[i];
    }
}

__device__ __forceinline__ void step(float (&sum)[ROWS / 2][COLUMNS][4], const cell *x, const int (&base)[PE],
                                     const shifts &shift, const fragment (&filter)[FE], const u32 (&mask)[2],
                                     bool last)
{
    fragment window[PE];
#pragma unroll
    for (int e = 0; e < PE; e++) {
        window[e] = gather(x, base[e], shift, mask, last);
    }
#if BESIDE
    const fragment (&row)[ROWS] = window, (&column)[COLUMNS] = filter;
#else
    const fragment (&row)[ROWS] = filter, (&column)[COLUMNS] = window;
#endif
#pragma unroll
    for (int m = 0; m < ROWS / 2; m++) {
        u32 a[4], low[4];
        rows_of(a, row[2 * m], row[2 * m + 1], 0);
        rows_of(low, row[2 * m], row[2 * m + 1], 1);
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            if (PAIRS) {
                multiply_pairs(sum[m][n], a, low, column[n]);
            } else {
                multiply_as(T(), sum[m][n], a, column[n].v[0], column[n].v[1]);
            }
        }
    }
}

/* ---- results ---- */

__device__ __forceinline__ float finished(const args &p, float sum, i64 at, int f)
{
    return finish(p.alpha * sum + (HAS_C0 ? p.beta * get<float>(p.c0[at]) : 0.f) +
                      (HAS_BIAS ? get<float>(p.bias[f]) : 0.f),
                  ACT);
}

__device__ __forceinline__ u32 two(half, float a, float b)
{
    return halves_of(a, b);
}
__device__ __forceinline__ u32 two(bf16, float a, float b)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    return r;
}

template <class S> __device__ __forceinline__ void write(S *to, const float (&v)[RUN])
{
    words<G> w;
#pragma unroll
    for (int i = 0; i < G; i++) {
        w.v[i] = two(S(), v[2 * i], v[2 * i + 1]);
    }
    *(words<G> *)to = w;
}
__device__ __forceinline__ void write(float *to, const float (&v)[RUN])
{
    words<RUN> w;
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        w.v[i] = __float_as_uint(v[i]);
    }
    *(words<RUN> *)to = w;
}

/* The sum of a result in float32. */
__device__ __noinline__ float plain_sum(const args &p, const tile &a, int position, int f)
{
    const int line = position / OW, image = MANY ? line / OH : 0;
    const int row = (a.row + line - image * OH) * SH - p.pad[0], col = (position - line * OW) * SW - p.pad[1];
    float sum = 0;
    for (int k = 0; k < TAPS; k++) {
        const int plane = read_by(a.image + image, k / (KH * KW) % KD), r = row + k / KW % KH,
                  q = col + k % KW;
        if (plane >= 0 && r >= 0 && r < p.in[0] && q >= 0 && q < p.in[1]) {
            const i64 at = x_plane(p, plane) + k / (KD * KH * KW) * p.xs[1] + r * p.xs[2] + q * p.xs[3];
            sum += get<float>(p.x[at]) * get<float>(p.w[filter_at(p, f, k)]);
        }
    }
    return sum;
}

/* RUN contiguous results, from a position and a filter on.  Check: some of them may be broken. */
template <bool Check>
__device__ __forceinline__ void put_run(const args &p, const tile &a, float (&v)[RUN], int position,
                                        int positions, int f)
{
    if (position >= positions || f >= p.f) {
        return;
    }
#pragma unroll
    for (int i = 0; Check && i < RUN; i++) {
        if (broken(v[i]) && (BESIDE ? f + i < p.f : position + i < positions)) {
            v[i] = plain_sum(p, a, BESIDE ? position : position + i, BESIDE ? f + i : f);
        }
    }
    const i64 at = result_at(p, a, position) + f * p.ys[1];
    if (p.whole) {
#pragma unroll
        for (int i = 0; i < RUN; i++) {
            v[i] = finished(p, v[i], at + i, BESIDE ? f + i : f);
        }
        write(p.y + at, v);
        return;
    }
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        if (BESIDE ? f + i < p.f : position + i < positions) {
            const i64 one = BESIDE ? at + i : result_at(p, a, position + i) + f * p.ys[1];
            p.y[one] = put<T>(finished(p, v[i], one, BESIDE ? f + i : f));
        }
    }
}

template <bool Check>
__device__ __forceinline__ void put_all(const args &p, const tile &a,
                                        const float (&sum)[ROWS / 2][COLUMNS][4], float undo, int position0,
                                        int positions, int f0)
{
    const int number = threadIdx.x % 32 / 4, turn = threadIdx.x % 4 * RUN;
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
#pragma unroll
        for (int q = 0; q < COLUMNS / G; q++) {
            const int r = row * 8 + number, c = q * 8 * G + turn;
            float v[RUN];
#pragma unroll
            for (int i = 0; i < RUN; i++) {
                v[i] = sum[row / 2][q * G + i / 2][row % 2 * 2 + i % 2];
                if (PAIRS) {
                    const int f = BESIDE ? (q * G + i / 2) * 8 + turn / RUN * 2 + i % 2 : r;
                    v[i] = v[i] * undo * __uint_as_float(largest[f]);
                }
            }
            put_run<Check>(p, a, v, position0 + (BESIDE ? r : c), positions, f0 + (BESIDE ? c : r));
        }
    }
}

/* Is one of these sums broken? */
__device__ __forceinline__ bool any_broken(const float (&sum)[ROWS / 2][COLUMNS][4])
{
    float zero = 0;
#pragma unroll
    for (int e = 0; e < ROWS / 2 * COLUMNS * 4; e++) {
        zero += sum[e / 4 / COLUMNS][e / 4 % COLUMNS][e % 4] * 0;
    }
    return FINE && !(zero == 0);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) forward(const __grid_constant__ args p)
{
    follow();
    extern __shared__ uint4 shared[];
    fragment *const filters = (fragment *)shared;
    shifts *const shift = (shifts *)(filters + STEPS * FE * 32);
    cell *const x = (cell *)(shift + STEPS * 4);
    const int lane = threadIdx.x % 32, f0 = blockIdx.y * FE * 8;
    fragment kept[KEPT ? STEPS : 1][FE];
    u32 mask[2];
    shifts kept_shift[KEPT ? STEPS : 1];
    load_filters(p, filters, shift, f0);
    beyond(mask, (STEPS - 1) * STEP + lane % 4 * LANE);
    __syncthreads();
#pragma unroll
    for (int s = 0; KEPT && s < STEPS; s++) {
        read_filters(kept[s], filters + s * FE * 32 + lane);
        kept_shift[s] = shift[s * 4 + lane % 4];
    }
    for (int t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        const tile a = tile_at(p, t);
        const int positions = a.images * a.rows * OW;
        __syncthreads();        /* all threads are done with the previous tile */
        load(p, a, x);
        __syncthreads();
        const float undo = PAIRS ? halve_tile(p, a, x) : 1;
        for (int position0 = threadIdx.x / 32 * 8 * PE; position0 < positions; position0 += WARPS * 8 * PE) {
            float sum[ROWS / 2][COLUMNS][4] = {};
            int base[PE];
            bases(p, base, position0, positions);
            if (KEPT) {
#pragma unroll
                for (int s = 0; s < (KEPT ? STEPS : 0); s++) {
                    step(sum, x, base, kept_shift[s], kept[s], mask, s == STEPS - 1);
                }
            } else {
#pragma unroll 1
                for (int s = 0; s < STEPS - 1; s++) {
                    read_filters(kept[0], filters + s * FE * 32 + lane);
                    step(sum, x, base, shift[s * 4 + lane % 4], kept[0], mask, false);
                }
                read_filters(kept[0], filters + (STEPS - 1) * FE * 32 + lane);
                step(sum, x, base, shift[(STEPS - 1) * 4 + lane % 4], kept[0], mask, true);
            }
            if (any_broken(sum)) {
                put_all<FINE>(p, a, sum, undo, position0, positions, f0);
            } else {
                put_all<false>(p, a, sum, undo, position0, positions, f0);
            }
        }
    }
}
