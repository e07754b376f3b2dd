/* products.cu: the products of spectra.cu for floats, on tensor cores at float32's precision.
 *
 * Invariant: sums run over k in order, so every run gives the same bits. */
enum { TK = 8, WIDE = FFT_WIDE, PITCH = WIDE + 4 };  /* PITCH: four rows of eight numbers use all banks */

__device__ __forceinline__ float4 two(const float2 *from, i64 row, i64 col, i64 rows, i64 ld)
{
    return row < rows && col < ld ? *(const float4 *)(from + row * ld + col) : make_float4(0, 0, 0, 0);
}

/* ---- on tensor cores: a float is split into its first 11 bits and the next 11; low times low is omitted
 * ---- */

struct part { unsigned high, low; };

__device__ __forceinline__ part split(float v)
{
    part p;
    p.high = (__float_as_uint(v) + 0x1000) & 0xffffe000;
    p.low = __float_as_uint(v - __uint_as_float(p.high));
    return p;
}

/* c += a b, 16 x 8 by 8 x 8.  Tensor cores truncate sums instead of rounding them, so chains of products
 * must be short. */
__device__ __forceinline__ void tensor(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* a fragment's real and imaginary parts and minus the imaginary ones: high and low parts */
template <int E> struct pieces {
    unsigned re[2][E], im[2][E], ne[2][E];

    __device__ __forceinline__ void set(int e, float2 v)
    {
        const part r = split(v.x), i = split(v.y);
        re[0][e] = r.high;
        re[1][e] = r.low;
        im[0][e] = i.high;
        im[1][e] = i.low;
        ne[0][e] = i.high ^ 0x80000000;
        ne[1][e] = i.low ^ 0x80000000;
    }
};

/* sum += a b over 8 of k, added in float32; small products first. */
__device__ __forceinline__ void step(float (&sum)[2][4], const pieces<4> &a, const pieces<2> &b)
{
    float re[4] = {}, im[4] = {};
    tensor(re, a.re[1], b.re[0]);
    tensor(im, a.re[1], b.im[0]);
    tensor(re, a.re[0], b.re[1]);
    tensor(im, a.re[0], b.im[1]);
    tensor(re, a.im[1], b.ne[0]);
    tensor(im, a.im[1], b.re[0]);
    tensor(re, a.im[0], b.ne[1]);
    tensor(im, a.im[0], b.re[1]);
    tensor(re, a.re[0], b.re[0]);
    tensor(im, a.re[0], b.im[0]);
    tensor(re, a.im[0], b.ne[0]);
    tensor(im, a.im[0], b.re[0]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[0][i] += re[i];
        sum[1][i] += im[i];
    }
}

/* 64 x 64 a block of 4 warps, 32 x 32 each. */
extern "C" __global__ void __launch_bounds__(128, 3) multiply(const __grid_constant__ product p)
{
    __shared__ __align__(16) float2 sa[2][TK][PITCH], sb[2][TK][PITCH];
    const i64 wide = (p.n + WIDE - 1) / WIDE, m0 = blockIdx.x / wide * WIDE, n0 = (blockIdx.x % wide) * WIDE;
    const float2 *a = p.a + blockIdx.y * p.k * p.lda, *b = p.b + blockIdx.y * p.k * p.ldb;
    const int t = threadIdx.x, lk = t / 32, lc = 2 * (t % 32); /* what the thread loads */
    const int wm = t / 64 * 32, wn = t / 32 % 2 * 32, row = t % 32 / 4, quad = t % 4;
    float sum[2][4][2][4] = {};
    float4 ra[2], rb[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        *(float4 *)&sa[0][lk + 4 * i][lc] = two(a, lk + 4 * i, m0 + lc, p.k, p.lda);
        *(float4 *)&sb[0][lk + 4 * i][lc] = two(b, lk + 4 * i, n0 + lc, p.k, p.ldb);
    }
    __syncthreads();
    for (i64 k = 0, turn = 0; k < p.k; k += TK, turn ^= 1) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            ra[i] = two(a, k + TK + lk + 4 * i, m0 + lc, p.k, p.lda);
            rb[i] = two(b, k + TK + lk + 4 * i, n0 + lc, p.k, p.ldb);
        }
        pieces<4> left[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                left[i].set(e, sa[turn][quad + e / 2 * 4][wm + 16 * i + row + e % 2 * 8]);
            }
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            pieces<2> right;
            right.set(0, sb[turn][quad][wn + 8 * j + row]);
            right.set(1, sb[turn][quad + 4][wn + 8 * j + row]);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                step(sum[i][j], left[i], right);
            }
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            *(float4 *)&sa[turn ^ 1][lk + 4 * i][lc] = ra[i];
            *(float4 *)&sb[turn ^ 1][lk + 4 * i][lc] = rb[i];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            put_fragment(p, m0 + wm + 16 * i + row, n0 + wn + 8 * j + 2 * quad, sum[i][j][0], sum[i][j][1]);
        }
    }
}
