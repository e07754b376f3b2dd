/* products_half.cu: the products of spectra.cu for halves, on tensor cores.
 *
 * A number is its real half, then its imaginary one.  Tensor cores read pairs of terms, so k complex
 * numbers are 2 k terms:
 *
 *   re += (a.re, a.im) (b.re, -b.im)      im += (a.re, a.im) (b.im, b.re)
 *
 * Invariant: sums run over k in order, so every run gives the same bits. */
enum { TK = 16, WIDE = FFT_WIDE, PITCH = WIDE + 8 };  /* PITCH: four rows of eight numbers use all banks */

__device__ __forceinline__ uint4 four(const unsigned *from, i64 row, i64 col, i64 rows, i64 ld)
{
    return row < rows && col < ld ? *(const uint4 *)(from + row * ld + col) : make_uint4(0, 0, 0, 0);
}

/* 64 x 64 a block of 4 warps, 32 x 32 each. */
extern "C" __global__ void __launch_bounds__(128, 4) multiply(const __grid_constant__ product p)
{
    __shared__ __align__(16) unsigned sa[2][TK][PITCH], sb[2][TK][PITCH];
    const i64 wide = (p.n + WIDE - 1) / WIDE, m0 = blockIdx.x / wide * WIDE, n0 = (blockIdx.x % wide) * WIDE;
    const unsigned *a = p.a + blockIdx.y * p.k * p.lda, *b = p.b + blockIdx.y * p.k * p.ldb;
    const int t = threadIdx.x, lk = t / 16, lc = 4 * (t % 16); /* what the thread loads */
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
                const unsigned r0 = sb[turn][k8 + quad][wn + 8 * j + row],
                               r1 = sb[turn][k8 + quad + 4][wn + 8 * j + row];
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
            put_fragment(p, m0 + wm + 16 * i + row, n0 + wn + 8 * j + 2 * quad, re[i][j], im[i][j]);
        }
    }
}
