/* fft.cu: convolution by Fourier transforms of tiles of N x N, in float32 whatever the arrays hold.
 *
 *   spectra    tiles of a real array to frequencies
 *   back       frequencies to tiles, of which a part is written
 *
 * Spectra are (frequency, row, column), frequency = column of the tile, then row; with PAIRS two frequencies stand side by
 * side in place of one, so that the two tiles a block has room for fill 32 bytes: less is written at a fraction of the speed.
 * Two real rows are transformed as one complex row, columns 0 and N/2, which are real, as one complex column: a tile stays
 * in N/2 pairs of rows of N numbers.
 * A transform of N = R1 * R2 is R2 of size R1, turned, and R1 of size R2: frequency k1 + R1 * k2 stands at R2 * k1 + k2,
 * in rows and columns, here and in the spectra. */
#define PITCH (N + 9)           /* of a pair of rows: odd, and lanes that differ in one small index meet other banks */
#define SPREAD (N == 16 ? 1 : N == 32 ? 2 : 4)
#define TILE (N / 2 * PITCH + (SPREAD - N / 2 * PITCH % 16 + 16) % 16)
#define HALF (N / 2)

struct args {
    T *x;
    const T *c0;
    float2 *s;
    i64 rows, cols, ld;         /* of the spectra; ld: from row to row */
    i64 step[2];                /* in x, from row to row and from column to column of the spectra */
    int tiles[2];               /* that follow each other as rows, or columns, before the next step */
    int across;                 /* of them side by side */
    int first[2], every[2];     /* where the first tile lies in x, and how far apart they are */
    int extent[2], from[2];     /* of a tile: what is read or written of it, and where that begins in the transform */
    int size[2];                /* of x: zeros outside */
    i64 stride[2];
    float scale, beta;
    int conjugate;
};

/* ---- complex numbers ---- */

__device__ __forceinline__ float2 cmul(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ __forceinline__ float2 cadd(float2 a, float2 b)
{
    return make_float2(a.x + b.x, a.y + b.y);
}

__device__ __forceinline__ float2 csub(float2 a, float2 b)
{
    return make_float2(a.x - b.x, a.y - b.y);
}

/* a times exp(S * 2 pi i * k / R) */
template <int R, int S> __device__ __forceinline__ float2 turn(float2 a, int k)
{
    const float c1 = 0.92387953251128674f, s1 = 0.38268343236508977f, h = 0.70710678118654752f;
    const int e = k * (16 / R);
    const float c = e == 0 ? 1 : e == 1 ? c1 : e == 2 ? h : e == 3 ? s1 : e == 4 ? 0 : e == 5 ? -s1 : e == 6 ? -h : -c1;
    const float s = S * (e == 0 ? 0 : e == 1 ? s1 : e == 2 ? h : e == 3 ? c1 : e == 4 ? 1 : e == 5 ? c1 : e == 6 ? h : s1);
    return e == 0 ? a : e == 4 ? make_float2(-S * a.y, S * a.x) : cmul(a, make_float2(c, s));
}

/* v[k] = sum over j of v[j] exp(S * 2 pi i * j k / R) */
template <int R, int S> struct fft {
    static __device__ __forceinline__ void of(float2 *v)
    {
        float2 even[R / 2], odd[R / 2];
#pragma unroll
        for (int i = 0; i < R / 2; i++) {
            even[i] = v[2 * i];
            odd[i] = v[2 * i + 1];
        }
        fft<R / 2, S>::of(even);
        fft<R / 2, S>::of(odd);
#pragma unroll
        for (int i = 0; i < R / 2; i++) {
            const float2 t = turn<R, S>(odd[i], i);
            v[i] = cadd(even[i], t);
            v[i + R / 2] = csub(even[i], t);
        }
    }
};
template <int S> struct fft<1, S> {
    static __device__ __forceinline__ void of(float2 *) {}
};

/* ---- a tile in shared memory ---- */

extern __shared__ float2 memory[];

__device__ __forceinline__ float2 *roots() { return memory + G * TILE; }    /* exp(-2 pi i * t / N) */

__device__ __forceinline__ void make_roots()
{
    for (int t = threadIdx.x; t < N; t += blockDim.x) {
        float s, c;
        sincospif(-2.0f * (float)t / N, &s, &c);
        roots()[t] = make_float2(c, s);
    }
}

__device__ __forceinline__ float2 unturn(float2 a, float2 root) /* by the conjugate */
{
    return make_float2(a.x * root.x + a.y * root.y, a.y * root.x - a.x * root.y);
}

/* Of column i, where a pair of rows keeps its first and its second: frequency k, and N - k; for 0 that is N / 2. */
__device__ __forceinline__ int slot(int i, int second)
{
    const int k1 = i / (R2 / 2), k2 = i % (R2 / 2);
    return !second ? R2 * k1 + k2 : i == 0 ? R2 / 2 : k1 == 0 ? R2 - k2 : R2 * (R1 - k1) + R2 - 1 - k2;
}

__device__ __forceinline__ int place(int row, int i)
{
    return row / 2 * PITCH + slot(i, row & 1);
}

__device__ __forceinline__ int stands(int k) /* where frequency k does */
{
    return R2 * (k % R1) + k / R1;
}

/* ---- where a tile lies in x ---- */

struct corner {                 /* in elements of the transform: which of them x has, from `low` on */
    i64 at;                     /* of element (0, 0), which x need not have */
    int low[2], count[2];
};

__device__ __forceinline__ corner *corners() { return (corner *)(roots() + N); }

/* A block has G tiles of one row of the spectra. */
struct block { i64 row, col; int tiles; };

__device__ __forceinline__ block block_of(const args &p)
{
    const i64 groups = (p.cols + G - 1) / G;
    block b;
    b.row = blockIdx.x / groups;
    b.col = (blockIdx.x - b.row * groups) * G;
    b.tiles = p.cols - b.col < G ? (int)(p.cols - b.col) : G;
    return b;
}

__device__ __forceinline__ void make_corners(const args &p, const block &b)
{
    for (int g = threadIdx.x; g < b.tiles; g += blockDim.x) {
        const i64 i = b.row / p.tiles[0], j = (b.col + g) / p.tiles[1];
        const int tile = (int)(b.row - i * p.tiles[0]) + (int)(b.col + g - j * p.tiles[1]);
        const int begins[2] = { p.first[0] + tile / p.across * p.every[0], p.first[1] + tile % p.across * p.every[1] };
        corner c;
        c.at = i * p.step[0] + j * p.step[1];
        for (int a = 0; a < 2; a++) {
            const int low = begins[a] < 0 ? -begins[a] : 0, left = p.size[a] - begins[a];
            const int high = left < p.extent[a] ? left : p.extent[a];
            c.at += (begins[a] - p.from[a]) * p.stride[a];
            c.low[a] = p.from[a] + low;
            c.count[a] = high > low ? high - low : 0;
        }
        corners()[g] = c;
    }
}

__device__ __forceinline__ bool has(const corner &c, int axis, int i)
{
    return (unsigned)(i - c.low[axis]) < (unsigned)c.count[axis];
}

__device__ __forceinline__ void store(const args &p, i64 at, float v)
{
    v *= p.scale;
    p.x[at] = put<T>(p.beta != 0 ? v + p.beta * get<float>(p.c0[at]) : v);
}

__device__ __forceinline__ float2 *spectrum(const args &p, const block &b, int column, int row, int g)
{
    const int f = column * N + row;
    return PAIRS ? &p.s[(((i64)(f / 2) * p.rows + b.row) * p.ld + b.col + g) * 2 + f % 2]
                 : &p.s[((i64)f * p.rows + b.row) * p.ld + b.col + g];
}

/* R2 frequencies that follow each other, from an even one on. */
__device__ __forceinline__ void put_all(const args &p, float2 *to, const float2 *v, float sign)
{
#pragma unroll
    for (int k = 0; k < R2; k += 1 + PAIRS, to += p.rows * p.ld * (1 + PAIRS)) {
        if (PAIRS) {
            *(float4 *)to = make_float4(v[k].x, sign * v[k].y, v[k + PAIRS].x, sign * v[k + PAIRS].y);
        } else {
            *to = make_float2(v[k].x, sign * v[k].y);
        }
    }
}

__device__ __forceinline__ void get_all(const args &p, const float2 *from, float2 *v)
{
#pragma unroll
    for (int k = 0; k < R2; k += 1 + PAIRS, from += p.rows * p.ld * (1 + PAIRS)) {
        if (PAIRS) {
            const float4 two = *(const float4 *)from;
            v[k] = make_float2(two.x, two.y);
            v[k + PAIRS] = make_float2(two.z, two.w);
        } else {
            v[k] = *from;
        }
    }
}

/* ---- forth ---- */

extern "C" __global__ void __launch_bounds__(THREADS) spectra(const __grid_constant__ args p)
{
    const block b = block_of(p);
    const float sign = p.conjugate ? -1.0f : 1.0f;
    make_roots();
    make_corners(p, b);
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R2; e += blockDim.x) { /* pairs of rows */
        const int n2 = e % R2, q = e / R2 % HALF, g = e / R2 / HALF;
        if (g >= b.tiles) {
            continue;
        }
        const corner c = corners()[g];
        const bool one = has(c, 0, 2 * q), two = has(c, 0, 2 * q + 1);
        const T *from = p.x + c.at + 2 * q * p.stride[0] + n2 * p.stride[1];
        float2 v[R1], *to = memory + g * TILE + q * PITCH + n2;
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++, from += R2 * p.stride[1]) {
            const bool in = has(c, 1, R2 * n1 + n2);
            v[n1] = make_float2(in && one ? get<float>(from[0]) : 0, in && two ? get<float>(from[p.stride[0]]) : 0);
        }
        fft<R1, -1>::of(v);
#pragma unroll
        for (int k1 = 0; k1 < R1; k1++) {
            to[R2 * k1] = cmul(v[k1], roots()[n2 * k1]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R1; e += blockDim.x) {
        const int q = e % HALF, k1 = e / HALF % R1, g = e / HALF / R1;
        if (g >= b.tiles) {
            continue;
        }
        float2 v[R2], *at = memory + g * TILE + q * PITCH + R2 * k1;
#pragma unroll
        for (int n2 = 0; n2 < R2; n2++) {
            v[n2] = at[n2];
        }
        fft<R2, -1>::of(v);
#pragma unroll
        for (int k2 = 0; k2 < R2; k2++) {
            at[k2] = v[k2];
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * (R2 / 2); e += blockDim.x) { /* columns: rows 2m and 2m + 1 of each R2 */
        const int g = e % G, i = e / G % HALF, m = e / G / HALF;
        if (g >= b.tiles) {
            continue;
        }
        float2 even[R1], odd[R1], *at = memory + g * TILE + m * PITCH;
        const int one = slot(i, 0), two = slot(i, 1);
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++) {
            const float2 z = at[R2 / 2 * n1 * PITCH + one], w = at[R2 / 2 * n1 * PITCH + two];
            even[n1] = i == 0 ? make_float2(z.x, w.x) : make_float2(0.5f * (z.x + w.x), 0.5f * (z.y - w.y));
            odd[n1] = i == 0 ? make_float2(z.y, w.y) : make_float2(0.5f * (z.y + w.y), 0.5f * (w.x - z.x));
        }
        fft<R1, -1>::of(even);
        fft<R1, -1>::of(odd);
#pragma unroll
        for (int k1 = 0; k1 < R1; k1++) {
            at[R2 / 2 * k1 * PITCH + one] = cmul(even[k1], roots()[2 * m * k1]);
            at[R2 / 2 * k1 * PITCH + two] = cmul(odd[k1], roots()[(2 * m + 1) * k1]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R1; e += blockDim.x) {
        const int g = e % G, i = e / G % HALF, k1 = e / G / HALF;
        if (g >= b.tiles) {
            continue;
        }
        float2 v[R2], *at = memory + g * TILE;
#pragma unroll
        for (int n2 = 0; n2 < R2; n2++) {
            v[n2] = at[place(R2 * k1 + n2, i)];
        }
        fft<R2, -1>::of(v);
        if (i > 0) {
            put_all(p, spectrum(p, b, i, R2 * k1, g), v, sign);
            continue;
        }
#pragma unroll
        for (int k2 = 0; k2 < R2; k2++) {
            at[place(R2 * k1 + k2, 0)] = v[k2];
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * N; e += blockDim.x) { /* the two real columns, apart */
        const int g = e % G, j = e / G, here = stands(j);
        if (g >= b.tiles) {
            continue;
        }
        const float2 z = memory[g * TILE + place(here, 0)], w = memory[g * TILE + place(stands((N - j) % N), 0)];
        *spectrum(p, b, 0, here, g) = make_float2(0.5f * (z.x + w.x), sign * 0.5f * (z.y - w.y));
        *spectrum(p, b, HALF, here, g) = make_float2(0.5f * (z.y + w.y), sign * 0.5f * (w.x - z.x));
    }
}

/* ---- and back ---- */

extern "C" __global__ void __launch_bounds__(THREADS) back(const __grid_constant__ args p)
{
    const block b = block_of(p);
    make_roots();
    make_corners(p, b);
    for (int e = threadIdx.x; e < G * N; e += blockDim.x) {
        const int g = e % G, row = e / G;
        if (g >= b.tiles) {
            continue;
        }
        const float2 z = *spectrum(p, b, 0, row, g), w = *spectrum(p, b, HALF, row, g);
        memory[g * TILE + place(row, 0)] = make_float2(z.x - w.y, z.y + w.x);
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R1; e += blockDim.x) {
        const int g = e % G, i = e / G % HALF, k1 = e / G / HALF;
        if (g >= b.tiles) {
            continue;
        }
        float2 v[R2], *at = memory + g * TILE;
        if (i > 0) {
            get_all(p, spectrum(p, b, i, R2 * k1, g), v);
        } else {
#pragma unroll
            for (int k2 = 0; k2 < R2; k2++) {
                v[k2] = at[place(R2 * k1 + k2, 0)];
            }
        }
        fft<R2, 1>::of(v);
#pragma unroll
        for (int n2 = 0; n2 < R2; n2++) {
            at[place(R2 * k1 + n2, i)] = unturn(v[n2], roots()[n2 * k1]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * (R2 / 2); e += blockDim.x) {
        const int g = e % G, i = e / G % HALF, m = e / G / HALF;
        if (g >= b.tiles) {
            continue;
        }
        float2 even[R1], odd[R1], *at = memory + g * TILE + m * PITCH;
        const int one = slot(i, 0), two = slot(i, 1);
#pragma unroll
        for (int k1 = 0; k1 < R1; k1++) {
            even[k1] = at[R2 / 2 * k1 * PITCH + one];
            odd[k1] = at[R2 / 2 * k1 * PITCH + two];
        }
        fft<R1, 1>::of(even);
        fft<R1, 1>::of(odd);
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++) {
            const float2 a = even[n1], c = odd[n1];
            at[R2 / 2 * n1 * PITCH + one] = i == 0 ? make_float2(a.x, c.x) : make_float2(a.x - c.y, a.y + c.x);
            at[R2 / 2 * n1 * PITCH + two] = i == 0 ? make_float2(a.y, c.y) : make_float2(a.x + c.y, c.x - a.y);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R1; e += blockDim.x) {
        const int q = e % HALF, k1 = e / HALF % R1, g = e / HALF / R1;
        if (g >= b.tiles) {
            continue;
        }
        float2 v[R2], *at = memory + g * TILE + q * PITCH + R2 * k1;
#pragma unroll
        for (int k2 = 0; k2 < R2; k2++) {
            v[k2] = at[k2];
        }
        fft<R2, 1>::of(v);
#pragma unroll
        for (int n2 = 0; n2 < R2; n2++) {
            at[n2] = unturn(v[n2], roots()[n2 * k1]);
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < G * HALF * R2; e += blockDim.x) {
        const int n2 = e % R2, q = e / R2 % HALF, g = e / R2 / HALF;
        if (g >= b.tiles) {
            continue;
        }
        const corner c = corners()[g];
        const bool one = has(c, 0, 2 * q), two = has(c, 0, 2 * q + 1);
        i64 to = c.at + 2 * q * p.stride[0] + n2 * p.stride[1];
        float2 v[R1], *at = memory + g * TILE + q * PITCH + n2;
#pragma unroll
        for (int k1 = 0; k1 < R1; k1++) {
            v[k1] = at[R2 * k1];
        }
        fft<R1, 1>::of(v);
#pragma unroll
        for (int n1 = 0; n1 < R1; n1++, to += R2 * p.stride[1]) {
            if (has(c, 1, R2 * n1 + n2)) {
                if (one) {
                    store(p, to, v[n1].x);
                }
                if (two) {
                    store(p, to + p.stride[0], v[n1].y);
                }
            }
        }
    }
}
