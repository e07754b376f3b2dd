/* fft_tensor.cu: convolution by Fourier transforms of tiles of N x N, where bf16's few bits are enough: transforms are products of
 * matrices of halves, on tensor cores, which do all frequencies of a row at once in place of butterflies.
 *
 *   spectra    tiles of a real array to frequencies: x times roots along its rows, what comes of that along its columns
 *   back       frequencies to tiles, of which a part is written
 *
 * Columns 0 and N/2 of what comes along rows are real, and are transformed as one complex column.  A table has the roots as tensor
 * cores read them; as matrices of roots are symmetric, one serves what is multiplied from the left and from the right.
 *
 * A tile is scaled twice: x by its array's largest number, below 2^15 / N, so that neither sum overflows a half; of `back`, the
 * tile's own.  Each of three transforms rounds its input, its sums and both its roots to 11 bits: 7e-4 of the result in all, where
 * bf16 loses 1.6e-3.
 *
 * What bounds them, of 64 x 64 on an H200: 384 products of 16 x 8 x 16 a tile, 0.4 us of a multiprocessor, and 16 KiB moved, 0.5 us;
 * butterflies are 2500 instructions a warp, four tiles together, and took 2 us. */
#define PITCH (N + 8)           /* halves of a row, or cells of a column: rows of a matrix meet all banks */
enum {
    KS = N / 16,                /* steps of a sum over N */
    ENTRIES = N / 8 * KS * 32,
    WARPS = THREADS / 32,
    FORTH = N == 128 ? 4 : 8,   /* tiles of a block: 32 bytes side by side in spectra at least */
    BACK = FORTH / 2,
    REGION = HALF * PITCH + (BESIDE > 1 ? 8 : 4) /* words of a tile, whose numbers stand in other banks than its neighbours' */
};

extern __shared__ uint2 memory[];

__device__ __forceinline__ uint2 *cosines() { return memory; }

__device__ __forceinline__ uint2 *sines() { return memory + ENTRIES; }

__device__ __forceinline__ unsigned *region(int tile) { return (unsigned *)(memory + 2 * ENTRIES) + tile * REGION; }

/* ---- roots ---- */

__device__ __forceinline__ void make_roots(unsigned *roots) /* cosine and sine of 2 pi t / N */
{
    for (int t = threadIdx.x; t < N; t += THREADS) {
        float s, c;
        sincospif(2.0f * (float)t / N, &s, &c);
        roots[t] = halves_of(c, s);
    }
}

/* For 8 rows and 16 columns, what each lane has of them: a row's columns 2q, 2q + 1, and 2q + 8, 2q + 9. */
__device__ __forceinline__ void make_tables(const unsigned *roots)
{
    for (int e = threadIdx.x; e < ENTRIES; e += THREADS) {
        const int lane = e % 32, row = e / 32 / KS * 8 + lane / 4, col = e / 32 % KS * 16 + lane % 4 * 2;
        const unsigned a = roots[row * col % N], b = roots[row * (col + 1) % N];
        const unsigned c = roots[row * (col + 8) % N], d = roots[row * (col + 9) % N];
        cosines()[e] = { (a & 0xffff) | b << 16, (c & 0xffff) | d << 16 };
        sines()[e] = { a >> 16 | (b & 0xffff0000), c >> 16 | (d & 0xffff0000) };
    }
}

/* Rows 16 m to 16 m + 15, columns 16 k to 16 k + 15. */
__device__ __forceinline__ void left_of(const uint2 *table, int m, int k, unsigned (&a)[4])
{
    const uint2 *at = table + (2 * m * KS + k) * 32 + threadIdx.x % 32;
    const uint2 one = at[0], two = at[KS * 32];
    a[0] = one.x;
    a[1] = two.x;
    a[2] = one.y;
    a[3] = two.y;
}

/* Sums of two neighbouring products, 16 x 8 each, as the left side of another. */
__device__ __forceinline__ void left_of(const float (&d)[4], const float (&e)[4], float sign, unsigned (&a)[4])
{
    a[0] = halves_of(sign * d[0], sign * d[1]);
    a[1] = halves_of(sign * d[2], sign * d[3]);
    a[2] = halves_of(sign * e[0], sign * e[1]);
    a[3] = halves_of(sign * e[2], sign * e[3]);
}

/* ---- forth ---- */

struct ends { int row, col; };  /* rows and columns from these on are zeros in every tile of the block */

__device__ __forceinline__ ends ends_of(const corner *c, int tiles)
{
    ends e = { 0, 0 };
    for (int g = 0; g < tiles; g++) {
        e.row = max(e.row, c[g].count[0] ? c[g].low[0] + c[g].count[0] : 0);
        e.col = max(e.col, c[g].count[1] ? c[g].low[1] + c[g].count[1] : 0);
    }
    return e;
}

/* Loads are asked for together: halves are widened, and the compiler would ask for six at a time. */
template <class H, int Many> __device__ __forceinline__ void hold(H (&raw)[Many][2])
{
#pragma unroll
    for (int i = 0; i < Many; i++) {
        asm volatile("" : "+h"(raw[i][0].bits), "+h"(raw[i][1].bits));
    }
}

/* A tile's rows, as halves; a thread has two columns. */
__device__ __forceinline__ void fetch(const args &p, const corner &c, const ends &end, const float (&gain)[2], unsigned *to)
{
    enum { STEP = THREADS / HALF, MANY = N / STEP < 8 ? N / STEP : 8 };
    const int col = threadIdx.x % HALF * 2;
    const bool one = has(c, 1, col), two = has(c, 1, col + 1);
    const float first = gain[0] * N;
    for (int row = threadIdx.x / HALF; row < end.row + 31 && row < N && col < end.col + 15; row += MANY * STEP) {
        const T *from = p.x + c.at + row * p.stride[0] + col * p.stride[1];
        T raw[MANY][2];
#pragma unroll
        for (int i = 0; i < MANY; i++, from += STEP * p.stride[0]) {
            const bool in = has(c, 0, row + i * STEP);
            raw[i][0] = in && one ? from[0] : T{};
            raw[i][1] = in && two ? from[p.stride[1]] : T{};
        }
        hold(raw);
#pragma unroll
        for (int i = 0; i < MANY; i++) {
            const float a = get<float>(raw[i][0]) * first * gain[1], b = get<float>(raw[i][1]) * first * gain[1];
            to[(row + i * STEP) * (PITCH / 2) + col / 2] = halves_of(a, b);
        }
    }
}

/* 16 columns of frequencies from 16 m on, of all rows of x: (frequency, row), as the left side of sums over rows. */
__device__ __forceinline__ void along_rows(const unsigned *x, int m, const ends &end, unsigned (&re)[KS][4], unsigned (&im)[KS][4])
{
    const int lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
#pragma unroll
    for (int group = 0; group < N / 32; group++) {
        float r[4][4] = {}, s[4][4] = {};
        for (int k = 0; 16 * k < end.col && 32 * group < end.row; k++) {
            unsigned cosine[4], sine[4];
            left_of(cosines(), m, k, cosine);
            left_of(sines(), m, k, sine);
            if (m == 0 && row == 0) { /* in place of the sines of 0: column N / 2 */
                sine[0] = sine[2] = 0x3c00bc00;
            }
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const unsigned *at = x + (32 * group + 8 * n + row) * (PITCH / 2) + 8 * k + quad;
                const unsigned b0 = at[0], b1 = at[4];
                multiply(r[n], cosine, b0, b1);
                multiply(s[n], sine, b0, b1);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            left_of(r[2 * h], r[2 * h + 1], 1, re[2 * group + h]);
            left_of(s[2 * h], s[2 * h + 1], -1, im[2 * group + h]);
        }
    }
}

/* Of those columns, all frequencies, as cells: (column, row). */
__device__ __forceinline__ void along_columns(const args &p, const unsigned (&re)[KS][4], const unsigned (&im)[KS][4], int m, const ends &end,
                                              unsigned *cells)
{
    const int lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
    const float part = 1.0f / N, other = p.conjugate ? -part : part, first = m == 0 && row == 0 ? part : other;
    unsigned *to = cells + (16 * m + row) * PITCH + 2 * quad;
#pragma unroll 1
    for (int n = 0; n < N / 8; n++) {
        float r[4] = {}, s[4] = {}, t[4] = {};
#pragma unroll
        for (int k = 0; k < KS; k++) {
            if (16 * k < end.row) {
                const uint2 c = cosines()[(n * KS + k) * 32 + lane], d = sines()[(n * KS + k) * 32 + lane];
                multiply(r, re[k], c.x, c.y);
                multiply(r, im[k], d.x, d.y);
                multiply(s, im[k], c.x, c.y);
                multiply(t, re[k], d.x, d.y);
            }
        }
        *(uint2 *)(to + 8 * n) = { halves_of(part * r[0], first * (s[0] - t[0])), halves_of(part * r[1], first * (s[1] - t[1])) };
        *(uint2 *)(to + 8 * PITCH + 8 * n) = { halves_of(part * r[2], other * (s[2] - t[2])), halves_of(part * r[3], other * (s[3] - t[3])) };
    }
}

__device__ __forceinline__ float2 wide_of(unsigned v)
{
    half re, im;
    re.bits = (unsigned short)v;
    im.bits = (unsigned short)(v >> 16);
    return make_float2(get<float>(re), get<float>(im));
}

__device__ __forceinline__ void write(const args &p, const block &b)
{
    enum { COLUMN = N / BESIDE * FORTH };
    const float sign = p.conjugate ? -0.5f : 0.5f;
    for (int e = threadIdx.x + COLUMN; e < HALF * COLUMN; e += THREADS) {
        const int g = e % FORTH, row = e % COLUMN / FORTH * BESIDE, col = e / COLUMN;
        const unsigned *from = region(g) + col * PITCH + row;
        if (g < b.tiles) {
            cell *to = spectrum<cell>(p, b, col, row, g);
#if BESIDE == 4
            *(uint4 *)to = *(const uint4 *)from;
#else
            *to = *from;
#endif
        }
    }
    for (int e = threadIdx.x; e < FORTH * N; e += THREADS) { /* the two real columns, apart */
        const int g = e % FORTH, row = e / FORTH;
        if (g < b.tiles) {
            const float2 z = wide_of(region(g)[row]), w = wide_of(region(g)[(N - row) % N]);
            *spectrum<cell>(p, b, 0, row, g) = halves_of(0.5f * (z.x + w.x), sign * (z.y - w.y));
            *spectrum<cell>(p, b, HALF, row, g) = halves_of(0.5f * (z.y + w.y), sign * (w.x - z.x));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) spectra(const __grid_constant__ args p)
{
    enum { EACH = N / 32 };     /* warps that a tile wants at once */
    const block b = block_of(p, FORTH);
    __shared__ corner corners[FORTH];
    __shared__ unsigned roots[N];
    __shared__ float gain[2];
    make_roots(roots);
    make_corners(p, b, corners);
    make_gains(p, gain, false);
    __syncthreads();
    const ends end = ends_of(corners, b.tiles);
    make_tables(roots);
    for (int g = 0; g < b.tiles; g++) {
        fetch(p, corners[g], end, gain, region(g));
    }
    __syncthreads();
    for (int part = threadIdx.x / 32; part < FORTH * EACH; part += WARPS) {
        const int g = part / EACH, m = part % EACH;
        unsigned re[KS][4], im[KS][4];
        if (g < b.tiles) {
            along_rows(region(g), m, end, re, im);
        }
        __syncthreads();        /* the tile has been read: its cells take its place */
        if (g < b.tiles) {
            along_columns(p, re, im, m, end, region(g));
        }
    }
    __syncthreads();
    write(p, b);
}

/* ---- and back ---- */

enum { CELLS = BACK * HALF * N / THREADS }; /* of a thread, all of one tile */

/* Cells of (column, row), tile by tile; columns 0 and N / 2 as one, halved: the others are there twice. */
__device__ __forceinline__ void read(const args &p, const block &b, float2 (&v)[CELLS])
{
    enum { PAIR = BESIDE > 1 };
    const int g = threadIdx.x % BACK;
#pragma unroll
    for (int i = 0; i < CELLS; i += BESIDE) {
        const int f = (threadIdx.x / BACK + i / BESIDE * (THREADS / BACK)) * BESIDE;
        const float2 *from = spectrum<float2>(p, b, f / N, f % N, g);
#pragma unroll
        for (int j = 0; j < BESIDE; j += 1 + PAIR) {
            if (PAIR) {
                const float4 two = g < b.tiles ? *(const float4 *)(from + j) : make_float4(0, 0, 0, 0);
                v[i + j] = make_float2(two.x, two.y);
                v[i + j + PAIR] = make_float2(two.z, two.w);
            } else {
                v[i] = g < b.tiles ? *from : make_float2(0, 0);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < BESIDE; j++) {
        const int f = threadIdx.x / BACK * BESIDE + j;
        if (f < N && g < b.tiles) {
            const float2 w = *spectrum<float2>(p, b, HALF, f, g);
            v[j] = make_float2(0.5f * (v[j].x - w.y), 0.5f * (v[j].y + w.x));
        }
    }
}

/* The bits of the largest number of a thread's tile. */
__device__ __forceinline__ unsigned most_of(const float2 (&v)[CELLS], unsigned (*found)[BACK])
{
    const int g = threadIdx.x % BACK;
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < CELLS; i++) {
        const unsigned x = __float_as_uint(v[i].x) & 0x7fffffff, y = __float_as_uint(v[i].y) & 0x7fffffff;
        most = x < 0x7f800000 && x > most ? x : most;
        most = y < 0x7f800000 && y > most ? y : most;
    }
#pragma unroll
    for (int apart = 16; apart >= BACK; apart /= 2) {
        most = max(most, __shfl_xor_sync(0xffffffffu, most, apart));
    }
    if (threadIdx.x % 32 < BACK) {
        found[threadIdx.x / 32][g] = most;
    }
    __syncthreads();
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        most = max(most, found[w][g]);
    }
    return most;
}

/* As halves: real parts, then imaginary ones, (column, row) each. */
__device__ __forceinline__ void keep(const float2 (&v)[CELLS], unsigned most)
{
    unsigned short *to = (unsigned short *)region(threadIdx.x % BACK);
    float f[2];
    factors(most, f);
    f[0] *= 1.0f / N;
#pragma unroll
    for (int i = 0; i < CELLS; i++) {
        const int e = (threadIdx.x / BACK + i / BESIDE * (THREADS / BACK)) * BESIDE + i % BESIDE;
        const unsigned both = halves_of(v[i].x * f[0] * f[1], v[i].y * f[0] * f[1]);
        to[e / N * PITCH + e % N] = (unsigned short)both;
        to[e / N * PITCH + e % N + HALF * PITCH] = (unsigned short)(both >> 16);
    }
}

/* 16 rows of the tile from 16 m on, of all columns of frequencies: (row, column), as the left side of sums over columns. */
__device__ __forceinline__ void columns_back(const unsigned *z, int m, unsigned (&re)[HALF / 16][4], unsigned (&im)[HALF / 16][4])
{
    enum { GROUP = HALF / 8 < 4 ? HALF / 8 : 4 };
    const int lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
#pragma unroll
    for (int group = 0; group < HALF / 8 / GROUP; group++) {
        float r[GROUP][4] = {}, s[GROUP][4] = {}, t[GROUP][4] = {};
#pragma unroll 1
        for (int k = 0; k < KS; k++) {
            unsigned cosine[4], sine[4];
            left_of(cosines(), m, k, cosine);
            left_of(sines(), m, k, sine);
#pragma unroll
            for (int n = 0; n < GROUP; n++) {
                const unsigned *at = z + (8 * (GROUP * group + n) + row) * (PITCH / 2) + 8 * k + quad, *of = at + HALF * PITCH / 2;
                const unsigned r0 = at[0], r1 = at[4], i0 = of[0], i1 = of[4];
                multiply(r[n], cosine, r0, r1);
                multiply(s[n], sine, i0, i1);
                multiply(t[n], sine, r0, r1);
                multiply(t[n], cosine, i0, i1);
            }
        }
#pragma unroll
        for (int n = 0; n < GROUP; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                r[n][e] -= s[n][e];
            }
        }
#pragma unroll
        for (int h = 0; h < GROUP / 2; h++) {
            left_of(r[2 * h], r[2 * h + 1], 1, re[GROUP / 2 * group + h]);
            left_of(t[2 * h], t[2 * h + 1], 1, im[GROUP / 2 * group + h]);
        }
    }
}

/* What is in x of rows `row` and row + 8, columns col and col + 1. */
__device__ __forceinline__ void store(const args &p, const corner &c, int row, int col, const float (&v)[4], float scale)
{
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int i = row + e / 2 * 8, j = col + e % 2;
        if (has(c, 0, i) && has(c, 1, j)) {
            const i64 at = c.at + i * p.stride[0] + j * p.stride[1];
            p.x[at] = put<T>(p.beta != 0 ? v[e] * scale + p.beta * get<float>(p.c0[at]) : v[e] * scale);
        }
    }
}

/* Those rows of x: only what is written is made. */
__device__ __forceinline__ void rows_back(const args &p, const corner &c, int m, const unsigned (&re)[HALF / 16][4],
                                          const unsigned (&im)[HALF / 16][4], float scale)
{
    const int lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
    const unsigned last = quad > 0 ? 0 : row % 2 ? 0x3c00 : 0xbc00; /* in place of the sine of 0: column N / 2 */
#pragma unroll 1
    for (int n = c.low[1] / 8; n < (c.low[1] + c.count[1] + 7) / 8; n++) {
        float v[4] = {}, w[4] = {};
#pragma unroll
        for (int k = 0; k < HALF / 16; k++) {
            const uint2 a = cosines()[(n * KS + k) * 32 + lane], d = sines()[(n * KS + k) * 32 + lane];
            multiply(v, re[k], a.x, a.y);
            multiply(w, im[k], k == 0 ? d.x | last : d.x, d.y);
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            v[e] -= w[e];
        }
        store(p, c, 16 * m + row, 8 * n + 2 * quad, v, scale);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) back(const __grid_constant__ args p)
{
    const block b = block_of(p, BACK);
    __shared__ corner corners[BACK];
    __shared__ unsigned roots[N], found[WARPS][BACK];
    __shared__ float gain[2], undo[BACK];
    float2 v[CELLS];
    read(p, b, v);
    make_roots(roots);
    make_corners(p, b, corners);
    make_gains(p, gain, true);
    const unsigned most = most_of(v, found);
    if (threadIdx.x < BACK) {
        undo[threadIdx.x] = 2 * N * unscaled(most);
    }
    make_tables(roots);
    keep(v, most);
    __syncthreads();
    for (int part = threadIdx.x / 32; part < BACK * KS; part += WARPS) {
        const int g = part / KS, m = part % KS;
        if (g >= b.tiles || 16 * m >= corners[g].low[0] + corners[g].count[0] || 16 * m + 16 <= corners[g].low[0]) {
            continue;
        }
        unsigned re[HALF / 16][4], im[HALF / 16][4];
        columns_back(region(g), m, re, im);
        rows_back(p, corners[g], m, re, im, undo[g] * (gain[0] * p.scale * gain[1]));
    }
}
