/* tensor.cu: Fourier transforms of tiles of N x N as products of matrices of halves on tensor cores, where
 * the precision of bfloat16 is enough.  They compute all frequencies of a row at once, without
 * butterflies.
 *
 *   spectra    tiles of a real array to frequencies: x times roots along rows, the result along columns
 *
 * Columns 0 and N/2 of the row transforms are real; they are transformed as one complex column.  A table
 * has the roots in the fragment layout of tensor cores.  Matrices of roots are symmetric, so one table
 * serves as left and right operand.  Frequencies are written in the order of fft.cu, whose `back` reads
 * them.
 *
 * Images are scaled by the largest number of their array, below 2^15 / N, so that neither sum overflows a
 * half.  The input, its sums and both factors of roots are rounded to 11 bits, an error of 2e-4 each;
 * rounding the result to bfloat16 costs 1.6e-3.
 *
 * Measured on an H200, 64 x 64 tiles of 128 images of 64 channels: 118 us, 116 MB moved; butterflies took
 * 155 us. */
#define PITCH (N + 8)           /* halves of a row, or cells of a column: rows of a matrix use all banks */
enum {
    KS = N / 16,                /* steps of a sum over N */
    ENTRIES = N / 8 * KS * 32,
    WARPS = THREADS / 32,
    FORTH = N == 128 ? 4 : 8,   /* tiles of a block: at least 32 contiguous bytes in spectra */
    REGION = HALF * PITCH + (BESIDE > 1 ? 8 : 4) /* words of a tile; neighbouring tiles use different banks */
};

extern __shared__ uint2 memory[];

__device__ __forceinline__ uint2 *cosines() { return memory; }

__device__ __forceinline__ uint2 *sines() { return memory + ENTRIES; }

__device__ __forceinline__ unsigned *region(int tile)
{
    return (unsigned *)(memory + 2 * ENTRIES) + tile * REGION;
}

/* ---- roots ---- */

__device__ __forceinline__ void make_roots(unsigned *roots) /* cosine and sine of 2 pi t / N */
{
    for (int t = threadIdx.x; t < N; t += THREADS) {
        float s, c;
        sincospif(2.0f * (float)t / N, &s, &c);
        roots[t] = halves_of(c, s);
    }
}

/* The fragments of 8 rows and 16 columns: a lane has columns 2q, 2q + 1, 2q + 8 and 2q + 9 of a row. */
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

/* Sums of two adjacent products, 16 x 8 each, as the left operand of another product. */
__device__ __forceinline__ void left_of(const float (&d)[4], const float (&e)[4], float sign,
                                        unsigned (&a)[4])
{
    a[0] = halves_of(sign * d[0], sign * d[1]);
    a[1] = halves_of(sign * d[2], sign * d[3]);
    a[2] = halves_of(sign * e[0], sign * e[1]);
    a[3] = halves_of(sign * e[2], sign * e[3]);
}

/* ---- forward ---- */

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

/* A barrier for the compiler: all loads are issued before the first value is used.  Halves are converted,
 * and it would issue six at a time. */
template <class H, int Many> __device__ __forceinline__ void hold(H (&raw)[Many][2])
{
#pragma unroll
    for (int i = 0; i < Many; i++) {
        asm volatile("" : "+h"(raw[i][0].bits), "+h"(raw[i][1].bits));
    }
}

/* Reads the rows of a tile as halves; a thread has two columns. */
__device__ __forceinline__ void fetch(const args &p, const corner &c, const ends &end, const float (&gain)[2],
                                      unsigned *to)
{
    enum { STEP = THREADS / HALF, MANY = N / STEP < 8 ? N / STEP : 8 };
    const int col = threadIdx.x % HALF * 2;
    const bool one = has(c, 1, col), two = has(c, 1, col + 1);
    const float first = gain[0] * N;
    for (int row = threadIdx.x / HALF; row < end.row + 31 && row < N && col < end.col + 15;
         row += MANY * STEP) {
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
            const float a = get<float>(raw[i][0]) * first * gain[1],
                        b = get<float>(raw[i][1]) * first * gain[1];
            to[(row + i * STEP) * (PITCH / 2) + col / 2] = halves_of(a, b);
        }
    }
}

/* 16 columns of frequencies from 16 m on, for all rows of x: (frequency, row), as the left operand of sums
 * over rows. */
__device__ __forceinline__ void along_rows(const unsigned *x, int m, const ends &end, unsigned (&re)[KS][4],
                                           unsigned (&im)[KS][4])
{
    const int lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
#pragma unroll
    for (int group = 0; group < N / 32; group++) {
        float r[4][4] = {}, s[4][4] = {};
        for (int k = 0; 16 * k < end.col && 32 * group < end.row; k++) {
            unsigned cosine[4], sine[4];
            left_of(cosines(), m, k, cosine);
            left_of(sines(), m, k, sine);
            if (m == 0 && row == 0) { /* column N / 2 in place of the sines of 0 */
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

/* All frequencies of those columns, as cells: (column, row). */
__device__ __forceinline__ void along_columns(const args &p, const unsigned (&re)[KS][4],
                                              const unsigned (&im)[KS][4], int m, const ends &end,
                                              unsigned *cells)
{
    const int lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
    const float part = 1.0f / N, other = p.conjugate ? -part : part,
                first = m == 0 && row == 0 ? part : other;
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
        *(uint2 *)(to + 8 * n) = { halves_of(part * r[0], first * (s[0] - t[0])),
                                   halves_of(part * r[1], first * (s[1] - t[1])) };
        *(uint2 *)(to + 8 * PITCH + 8 * n) = { halves_of(part * r[2], other * (s[2] - t[2])),
                                               halves_of(part * r[3], other * (s[3] - t[3])) };
    }
}

__device__ __forceinline__ float2 wide_of(unsigned v)
{
    half re, im;
    re.bits = (unsigned short)v;
    im.bits = (unsigned short)(v >> 16);
    return make_float2(get<float>(re), get<float>(im));
}

/* The frequency that is stored at an index of a row, or of columns (half as many). */
__device__ __forceinline__ int stood(int at, int each) { return at / each + at % each * R1; }

__device__ __forceinline__ void write(const args &p, const block &b)
{
    enum { COLUMN = N / BESIDE * FORTH };
    const float sign = p.conjugate ? -0.5f : 0.5f;
    for (int e = threadIdx.x + COLUMN; e < HALF * COLUMN; e += THREADS) {
        const int g = e % FORTH, row = e % COLUMN / FORTH * BESIDE, col = e / COLUMN;
        const unsigned *from = region(g) + stood(col, R2 / 2) * PITCH;
        if (g < b.tiles) {
            cell *to = spectrum<cell>(p, b, col, row, g);
#if BESIDE == 2
            *(uint2 *)to = { from[stood(row, R2)], from[stood(row + 1, R2)] };
#else
            *to = from[stood(row, R2)];
#endif
        }
    }
    for (int e = threadIdx.x; e < FORTH * N; e += THREADS) { /* separates the two real columns */
        const int g = e % FORTH, row = e / FORTH, k = stood(row, R2);
        if (g < b.tiles) {
            const float2 z = wide_of(region(g)[k]), w = wide_of(region(g)[(N - k) % N]);
            *spectrum<cell>(p, b, 0, row, g) = halves_of(0.5f * (z.x + w.x), sign * (z.y - w.y));
            *spectrum<cell>(p, b, HALF, row, g) = halves_of(0.5f * (z.y + w.y), sign * (w.x - z.x));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) spectra(const __grid_constant__ args p)
{
    enum { EACH = N / 32 };     /* warps that a tile occupies at once */
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
        __syncthreads();        /* the tile has been read: its cells overwrite it */
        if (g < b.tiles) {
            along_columns(p, re, im, m, end, region(g));
        }
    }
    __syncthreads();
    write(p, b);
}
