/* tile.cu: a tile in shared memory, and transforms of a few complex numbers.
 *
 * Two real rows are transformed as one complex row.  Columns 0 and N/2, which are real, are transformed as
 * one complex column.  So a tile takes N/2 pairs of rows of N numbers.  A transform of N = R1 * R2 is R2
 * transforms of size R1, twiddle factors, and R1 transforms of size R2.  Frequency k1 + R1 * k2 is stored
 * at R2 * k1 + k2, in rows and columns, here and in the spectra. */
/* of a pair of rows: odd, so that lanes that differ in one small index use different banks */
#define PITCH (N + 9)
#define SPREAD (N == 16 ? 1 : N == 32 ? 2 : 4)
#define TILE (N / 2 * PITCH + (SPREAD - N / 2 * PITCH % 16 + 16) % 16)

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
    const float c = e == 0   ? 1
                    : e == 1 ? c1
                    : e == 2 ? h
                    : e == 3 ? s1
                    : e == 4 ? 0
                    : e == 5 ? -s1
                    : e == 6 ? -h
                             : -c1;
    const float s = S * (e == 0   ? 0
                         : e == 1 ? s1
                         : e == 2 ? h
                         : e == 3 ? c1
                         : e == 4 ? 1
                         : e == 5 ? c1
                         : e == 6 ? h
                                  : s1);
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

/* In column i of a pair of rows, the index of frequency k (its first) and of N - k (its second); for k = 0
 * that is N / 2. */
__device__ __forceinline__ int slot(int i, int second)
{
    const int k1 = i / (R2 / 2), k2 = i % (R2 / 2);
    return !second ? R2 * k1 + k2 : i == 0 ? R2 / 2 : k1 == 0 ? R2 - k2 : R2 * (R1 - k1) + R2 - 1 - k2;
}

__device__ __forceinline__ int address_in_tile(int row, int i)
{
    return row / 2 * PITCH + slot(i, row & 1);
}

__device__ __forceinline__ int stands(int k) /* the index at which frequency k is stored */
{
    return R2 * (k % R1) + k / R1;
}
