/* tensor_forward.cu: forward convolution of few channels on tensor cores (tensor.cu).
 *
 * A warp has PE eights of positions times FE eights of filters; its block makes the fragments of filters
 * once.  The contiguous axis of y is the columns of the product: G eights of them are permuted so that a
 * lane has RUN contiguous ones, which it writes at once. */
enum { STEPS = (TAPS + STEP - 1) / STEP, KEPT = STEPS * FE <= 16, RUN = 2 * G };
enum { ROWS = BESIDE ? PE : FE, COLUMNS = BESIDE ? FE : PE };

/* The column that is number c of eight e. */
__device__ __forceinline__ int dealt(int e, int c)
{
    return e / G * 8 * G + c / 2 * RUN + e % G * 2 + c % 2;
}

/* ---- filters ---- */

/* a lane's terms, as offsets from the start of a window */
struct alignas(4 * LANE) shifts { int tap[LANE]; };

__device__ __forceinline__ cell filter_cell(const args &p, int f, int k)
{
    return f < p.f && k < TAPS ? cell_of(p.w[filter_at(p, f, k)]) : (cell)0;
}

/* (step, eight, lane) */
__device__ __forceinline__ void load_filters(const args &p, uint2 *to, shifts *shift, int first)
{
    for (int e = threadIdx.x; e < STEPS * FE * 32; e += blockDim.x) {
        const int eight = e / 32 % FE, number = e % 32 / 4, k = e / 32 / FE * STEP + e % 4 * LANE;
        const int f = first + (BESIDE ? dealt(eight, number) : eight * 8 + number);
        cell v[LANE];
        u32 r[2];
#pragma unroll
        for (int i = 0; i < LANE; i++) {
            v[i] = filter_cell(p, f, k + i);
        }
        join(r, v);
        to[e].x = r[0];
        to[e].y = r[1];
    }
    for (int k = threadIdx.x; k < STEPS * STEP; k += blockDim.x) {
        shift[k / LANE].tap[k % LANE] = k < TAPS ? tap_at(p, k) : 0;
    }
}

__device__ __forceinline__ void read_filters(u32 (&to)[FE][2], const uint2 *from)
{
#pragma unroll
    for (int e = 0; e < FE; e++) {
        const uint2 v = from[e * 32];
        to[e][0] = v.x;
        to[e][1] = v.y;
    }
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

/* Terms beyond the last tap are zeros: the cells read there may be infinite. */
__device__ __forceinline__ void beyond(u32 (&mask)[2], int first)
{
    cell v[LANE];
#pragma unroll
    for (int i = 0; i < LANE; i++) {
        v[i] = first + i < TAPS ? (cell)~0u : (cell)0;
    }
    join(mask, v);
}

__device__ __forceinline__ void step(float (&sum)[ROWS / 2][COLUMNS][4], const cell *x, const int (&base)[PE],
                                     const shifts &shift, const u32 (&filter)[FE][2], const u32 (&mask)[2],
                                     bool last)
{
    u32 window[PE][2];
#pragma unroll
    for (int e = 0; e < PE; e++) {
        cell v[LANE];
#pragma unroll
        for (int i = 0; i < LANE; i++) {
            v[i] = cell_at(x, base[e] + shift.tap[i]);
        }
        join(window[e], v);
        if (last && TAPS % STEP != 0) {
            window[e][0] &= mask[0];
            window[e][1] &= mask[1];
        }
    }
#if BESIDE
    const u32 (&row)[ROWS][2] = window, (&column)[COLUMNS][2] = filter;
#else
    const u32 (&row)[ROWS][2] = filter, (&column)[COLUMNS][2] = window;
#endif
#pragma unroll
    for (int m = 0; m < ROWS / 2; m++) {
        const u32 a[4] = { row[2 * m][0], row[2 * m + 1][0], row[2 * m][1], row[2 * m + 1][1] };
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            multiply_as(T(), sum[m][n], a, column[n][0], column[n][1]);
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
        const int plane = read_by(a.image + image, k / (KH * KW) % KD), r = row + k / KW % KH, q = col + k % KW;
        if (plane >= 0 && r >= 0 && r < p.in[0] && q >= 0 && q < p.in[1]) {
            const i64 at = x_plane(p, plane) + k / (KD * KH * KW) * p.xs[1] + r * p.xs[2] + q * p.xs[3];
            sum += get<float>(p.x[at]) * get<float>(p.w[filter_at(p, f, k)]);
        }
    }
    return sum;
}

/* RUN contiguous results, from a position and a filter on. */
__device__ __forceinline__ void put_run(const args &p, const tile &a, float (&v)[RUN], int position,
                                        int positions, int f)
{
    if (position >= positions || f >= p.f) {
        return;
    }
#pragma unroll
    for (int i = 0; FINE && i < RUN; i++) {
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

__device__ __forceinline__ void put_all(const args &p, const tile &a,
                                        const float (&sum)[ROWS / 2][COLUMNS][4], int position0,
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
            }
            put_run(p, a, v, position0 + (BESIDE ? r : c), positions, f0 + (BESIDE ? c : r));
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) forward(const __grid_constant__ args p)
{
    follow();
    extern __shared__ uint4 shared[];
    uint2 *const filters = (uint2 *)shared;
    shifts *const shift = (shifts *)(filters + STEPS * FE * 32);
    cell *const x = (cell *)(shift + STEPS * 4);
    const int lane = threadIdx.x % 32, f0 = blockIdx.y * FE * 8;
    u32 kept[KEPT ? STEPS : 1][FE][2], mask[2];
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
            put_all(p, a, sum, position0, positions, f0);
        }
    }
}
