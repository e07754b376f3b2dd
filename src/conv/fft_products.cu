/* fft_products.cu: products of complex matrices, one for each frequency: C = A' B, A is (k, m), B is (k, n).
 *
 *   multiply   tiles of 64 x 64
 *   thin       m up to 4, lda 4
 *
 * Invariant: sums run over k in order, so every run gives the same bits. */
struct product {
    const float2 *a, *b;
    float2 *c;
    i64 m, n, k, lda, ldb, ldc; /* all ld even */
    int add;                    /* to what is there */
};
enum { TK = 8, WIDE = 64, RM = 8 };

__device__ __forceinline__ void madd(float2 &c, float2 a, float2 b)
{
    c.x += a.x * b.x;
    c.y += a.x * b.y;
    c.x -= a.y * b.y;
    c.y += a.y * b.x;
}

__device__ __forceinline__ float4 two(const float2 *from, i64 row, i64 col, i64 rows, i64 ld)
{
    return row < rows && col < ld ? *(const float4 *)(from + row * ld + col) : make_float4(0, 0, 0, 0);
}

/* 64 x 64 a block of 128 threads, 8 x 4 of them each. */
extern "C" __global__ void __launch_bounds__(128) multiply(const __grid_constant__ product p)
{
    __shared__ float4 sa[2][TK][WIDE / 2], sb[2][TK][WIDE / 2];
    const i64 wide = (p.n + WIDE - 1) / WIDE, m0 = blockIdx.x / wide * WIDE, n0 = (blockIdx.x % wide) * WIDE;
    const float2 *a = p.a + blockIdx.y * p.k * p.lda, *b = p.b + blockIdx.y * p.k * p.ldb;
    const int t = threadIdx.x, tn = t % 16, tm = t / 16, lk = t / 32, lc = t % 32;
    float2 sum[RM][4] = {};
    float4 ra[2], rb[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        sa[0][lk + 4 * i][lc] = two(a, lk + 4 * i, m0 + 2 * lc, p.k, p.lda);
        sb[0][lk + 4 * i][lc] = two(b, lk + 4 * i, n0 + 2 * lc, p.k, p.ldb);
    }
    __syncthreads();
    for (i64 k = 0, turn = 0; k < p.k; k += TK, turn ^= 1) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            ra[i] = two(a, k + TK + lk + 4 * i, m0 + 2 * lc, p.k, p.lda);
            rb[i] = two(b, k + TK + lk + 4 * i, n0 + 2 * lc, p.k, p.ldb);
        }
#pragma unroll
        for (int d = 0; d < TK; d++) {
            const float4 x = sb[turn][d][tn], y = sb[turn][d][16 + tn];
            const float2 right[4] = { make_float2(x.x, x.y), make_float2(x.z, x.w), make_float2(y.x, y.y), make_float2(y.z, y.w) };
#pragma unroll
            for (int i = 0; i < RM / 2; i++) {
                const float4 l = sa[turn][d][tm * (RM / 2) + i];
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    madd(sum[2 * i][j], make_float2(l.x, l.y), right[j]);
                    madd(sum[2 * i + 1][j], make_float2(l.z, l.w), right[j]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            sa[turn ^ 1][lk + 4 * i][lc] = ra[i];
            sb[turn ^ 1][lk + 4 * i][lc] = rb[i];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < RM; i++) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const i64 m = m0 + tm * RM + i, n = n0 + 32 * j + 2 * tn;
            if (m < p.m && n < p.ldc) {
                float4 *to = (float4 *)(p.c + (blockIdx.y * p.m + m) * p.ldc + n), v = p.add ? *to : make_float4(0, 0, 0, 0);
                v.x += sum[i][2 * j].x;
                v.y += sum[i][2 * j].y;
                v.z += sum[i][2 * j + 1].x;
                v.w += sum[i][2 * j + 1].y;
                *to = v;
            }
        }
    }
}

/* lda is 4: two columns a thread. */
extern "C" __global__ void __launch_bounds__(64) thin(const __grid_constant__ product p)
{
    const i64 n = 2 * (blockIdx.x * 64ll + threadIdx.x);
    const float2 *a = p.a + blockIdx.y * p.k * 4, *b = p.b + blockIdx.y * p.k * p.ldb + n;
    float2 sum[4][2] = {};
    if (n >= p.ldb) {
        return;
    }
#pragma unroll 8
    for (i64 k = 0; k < p.k; k++) {
        const float4 x = *(const float4 *)(a + 4 * k), y = *(const float4 *)(a + 4 * k + 2), r = *(const float4 *)(b + k * p.ldb);
        const float2 left[4] = { make_float2(x.x, x.y), make_float2(x.z, x.w), make_float2(y.x, y.y), make_float2(y.z, y.w) };
#pragma unroll
        for (int i = 0; i < 4; i++) {
            madd(sum[i][0], left[i], make_float2(r.x, r.y));
            madd(sum[i][1], left[i], make_float2(r.z, r.w));
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (i < p.m) {
            float4 *to = (float4 *)(p.c + (blockIdx.y * p.m + i) * p.ldc + n), v = p.add ? *to : make_float4(0, 0, 0, 0);
            v.x += sum[i][0].x;
            v.y += sum[i][0].y;
            v.z += sum[i][1].x;
            v.w += sum[i][1].y;
            *to = v;
        }
    }
}
