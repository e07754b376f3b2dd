/* fft_tile.cu: what transforms of tiles share: complex numbers, a tile in shared memory, and where it lies in an array.
 *
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
    void *s;                    /* float2; cells, where it is to be multiplied */
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
    const unsigned *peaks;      /* halves: PEAKS of the array; back: of one operand, then of the other */
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
