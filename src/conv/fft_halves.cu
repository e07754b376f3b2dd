/* fft_halves.cu: products of complex matrices of halves, one for each frequency: C = A' B, A is (k, m), B is (k, n), C is in
 * float32.
 *
 *   multiply   tiles of 64 x 64 on tensor cores
 *   thin       m up to 4, lda 4
 *   pairs4     BESIDE frequencies in place of each number, a pair of them and 4 rows of C a thread
 *   pairs8     the same, 8 rows
 *
 * A number is its real half, then its imaginary one: as tensor cores read pairs of terms, k complex numbers are 2 k terms, and
 *
 *   re += (a.re, a.im) (b.re, -b.im)      im += (a.re, a.im) (b.im, b.re)
 *
 * Invariant: sums run over k in order, so every run gives the same bits. */
struct product {
    const unsigned *a, *b;
    float2 *c;
    i64 m, n, k, lda, ldb, ldc; /* all ld multiples of 4 */
    int add;                    /* to what is there */
};
enum { TK = 16, WIDE = 64, PITCH = WIDE + 8 };  /* PITCH: four rows of eight numbers meet all banks */

__device__ __forceinline__ uint4 four(const unsigned *from, i64 row, i64 col, i64 rows, i64 ld)
{
    return row < rows && col < ld ? *(const uint4 *)(from + row * ld + col) : make_uint4(0, 0, 0, 0);
}

__device__ __forceinline__ void put_pair(const product &p, float4 *to, float4 v)
{
    const float4 was = p.add ? *to : make_float4(0, 0, 0, 0);
    *to = make_float4(was.x + v.x, was.y + v.y, was.z + v.z, was.w + v.w);
}

/* 64 x 64 a block of 4 warps, 32 x 32 each. */
extern "C" __global__ void __launch_bounds__(128, 4) multiply(const __grid_constant__ product p)
{
    __shared__ __align__(16) unsigned sa[2][TK][PITCH], sb[2][TK][PITCH];
    const i64 wide = (p.n + WIDE - 1) / WIDE, m0 = blockIdx.x / wide * WIDE, n0 = (blockIdx.x % wide) * WIDE;
    const unsigned *a = p.a + blockIdx.y * p.k * p.lda, *b = p.b + blockIdx.y * p.k * p.ldb;
    const int t = threadIdx.x, lk = t / 16, lc = 4 * (t % 16); /* what it loads */
    const int wm = t / 64 * 32, wn = t / 32 % 2 * 32, row = t % 32 / 4, quad = t % 4;
    float re[2][4][4] = {}, im[2][4][4] = {};
    uint4 ra[2], rb[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        *(uint4 *)&sa[0][lk + 8 * i][lc] = four(a, lk + 8 * i, m0 + lc, p.k, p.lda);
        *(uint4 *)&sb[0][lk + 8 * i][lc] = four(b, lk + 8 * i, n0 + lc, p.k, p.ldb);
    }
    __syncthreads();
    for (i64 k = 0, turn = 0; k < p.k; k += TK, turn ^= 1) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            ra[i] = four(a, k + TK + lk + 8 * i, m0 + lc, p.k, p.lda);
            rb[i] = four(b, k + TK + lk + 8 * i, n0 + lc, p.k, p.ldb);
        }
#pragma unroll
        for (int k8 = 0; k8 < TK; k8 += 8) {
            unsigned left[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) {
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    left[i][e] = sa[turn][k8 + quad + e / 2 * 4][wm + 16 * i + row + e % 2 * 8];
                }
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const unsigned r0 = sb[turn][k8 + quad][wn + 8 * j + row], r1 = sb[turn][k8 + quad + 4][wn + 8 * j + row];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    multiply(re[i][j], left[i], r0 ^ 0x80000000, r1 ^ 0x80000000);
                    multiply(im[i][j], left[i], r0 << 16 | r0 >> 16, r1 << 16 | r1 >> 16);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            *(uint4 *)&sa[turn ^ 1][lk + 8 * i][lc] = ra[i];
            *(uint4 *)&sb[turn ^ 1][lk + 8 * i][lc] = rb[i];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const i64 m = m0 + wm + 16 * i + row + 8 * h, n = n0 + wn + 8 * j + 2 * quad;
                if (m < p.m && n < p.ldc) {
                    put_pair(p, (float4 *)(p.c + (blockIdx.y * p.m + m) * p.ldc + n),
                             make_float4(re[i][j][2 * h], im[i][j][2 * h], re[i][j][2 * h + 1], im[i][j][2 * h + 1]));
                }
            }
        }
    }
}

__device__ __forceinline__ float2 wide_of(unsigned v)
{
    half re, im;
    re.bits = (unsigned short)v;
    im.bits = (unsigned short)(v >> 16);
    return make_float2(get<float>(re), get<float>(im));
}

__device__ __forceinline__ void madd(float &re, float &im, float2 a, float2 b)
{
    re += a.x * b.x;
    im += a.x * b.y;
    re -= a.y * b.y;
    im += a.y * b.x;
}

/* lda is 4: two columns a thread. */
extern "C" __global__ void __launch_bounds__(64) thin(const __grid_constant__ product p)
{
    const i64 n = 2 * (blockIdx.x * 64ll + threadIdx.x);
    const unsigned *a = p.a + blockIdx.y * p.k * 4, *b = p.b + blockIdx.y * p.k * p.ldb + n;
    float4 sum[4] = {};
    if (n >= p.ldb) {
        return;
    }
#pragma unroll 8
    for (i64 k = 0; k < p.k; k++) {
        const uint4 l = *(const uint4 *)(a + 4 * k);
        const uint2 r = *(const uint2 *)(b + k * p.ldb);
        const unsigned left[4] = { l.x, l.y, l.z, l.w };
#pragma unroll
        for (int i = 0; i < 4; i++) {
            madd(sum[i].x, sum[i].y, wide_of(left[i]), wide_of(r.x));
            madd(sum[i].z, sum[i].w, wide_of(left[i]), wide_of(r.y));
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (i < p.m) {
            put_pair(p, (float4 *)(p.c + (blockIdx.y * p.m + i) * p.ldc + n), sum[i]);
        }
    }
}

template <int M> __device__ __forceinline__ void pairs(const product &p)
{
    enum { PAIRS = BESIDE / 2, COLUMNS = 128 / PAIRS };
    const int pair = threadIdx.x % PAIRS;
    const i64 wide = (p.n + COLUMNS - 1) / COLUMNS, m0 = blockIdx.x / wide * M, n = blockIdx.x % wide * COLUMNS + threadIdx.x / PAIRS;
    const uint2 *a = (const uint2 *)p.a + (blockIdx.y * p.k * p.lda + m0) * PAIRS + pair;
    const uint2 *b = (const uint2 *)p.b + (blockIdx.y * p.k * p.ldb + n) * PAIRS + pair;
    float4 sum[M] = {};
    if (n >= p.n) {
        return;
    }
#pragma unroll 4
    for (i64 k = 0; k < p.k; k++, a += p.lda * PAIRS, b += p.ldb * PAIRS) {
        const uint2 r = *b;
#pragma unroll
        for (int i = 0; i < M; i++) {
            const uint2 l = m0 + i < p.m ? a[i * PAIRS] : uint2{ 0, 0 };
            madd(sum[i].x, sum[i].y, wide_of(l.x), wide_of(r.x));
            madd(sum[i].z, sum[i].w, wide_of(l.y), wide_of(r.y));
        }
    }
#pragma unroll
    for (int i = 0; i < M; i++) {
        if (m0 + i < p.m) {
            put_pair(p, (float4 *)p.c + ((blockIdx.y * p.m + m0 + i) * p.ldc + n) * PAIRS + pair, sum[i]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128) pairs4(const __grid_constant__ product p) { pairs<4>(p); }

extern "C" __global__ void __launch_bounds__(128) pairs8(const __grid_constant__ product p) { pairs<8>(p); }
