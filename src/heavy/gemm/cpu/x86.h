/* x86.h: transposes and lane sums that the AVX2 and AVX-512 kernels share.
 *
 * Invariant: only AVX2 and FMA instructions, so that both can inline these. */
#ifndef MC_GEMM_X86_H
#define MC_GEMM_X86_H

#include <immintrin.h>
#include <stdint.h>

#define X86 static inline __attribute__((always_inline, unused, target("avx2,fma"))) void

/* out[i] = the sum of a[i]'s lanes */
X86 x86_sum4_f32(const __m256 *a, float *out)
{
    const __m256 s = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
}

X86 x86_sum4_f64(const __m256d *a, double *out)
{
    const __m256d ab = _mm256_hadd_pd(a[0], a[1]), cd = _mm256_hadd_pd(a[2], a[3]);
    _mm256_storeu_pd(
        out, _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31)));
}

/* dst[j][i] = src[i][j] */
X86 x86_turn4_f32(float *dst, int64_t dst_row, const float *src, int64_t src_row)
{
    __m128 a = _mm_loadu_ps(src), b = _mm_loadu_ps(src + src_row);
    __m128 c = _mm_loadu_ps(src + 2 * src_row), d = _mm_loadu_ps(src + 3 * src_row);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(dst, a);
    _mm_storeu_ps(dst + dst_row, b);
    _mm_storeu_ps(dst + 2 * dst_row, c);
    _mm_storeu_ps(dst + 3 * dst_row, d);
}

X86 x86_turn8_f32(float *dst, int64_t dst_row, const float *src, int64_t src_row)
{
    __m256 r[8], t[8];
    for (int i = 0; i < 8; i++) { /* row i and row i + 4 side by side, once for each half of the columns */
        const float *at = src + (i & 3) * src_row + (i & 4);
        r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at)), _mm_loadu_ps(at + 4 * src_row),
                                    1);
    }
    for (int i = 0; i < 8; i += 4) { /* 4 by 4 transposes in both halves at once */
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        t[i + 2] = _mm256_unpacklo_ps(r[i + 2], r[i + 3]);
        t[i + 3] = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
        _mm256_storeu_ps(dst + i * dst_row, _mm256_shuffle_ps(t[i], t[i + 2], 0x44));
        _mm256_storeu_ps(dst + (i + 1) * dst_row, _mm256_shuffle_ps(t[i], t[i + 2], 0xee));
        _mm256_storeu_ps(dst + (i + 2) * dst_row, _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44));
        _mm256_storeu_ps(dst + (i + 3) * dst_row, _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee));
    }
}

X86 x86_turn4_f64(double *dst, int64_t dst_row, const double *src, int64_t src_row)
{
    const __m256d a = _mm256_loadu_pd(src), b = _mm256_loadu_pd(src + src_row);
    const __m256d c = _mm256_loadu_pd(src + 2 * src_row), d = _mm256_loadu_pd(src + 3 * src_row);
    const __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
    const __m256d cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(dst, _mm256_permute2f128_pd(ab0, cd0, 0x20));
    _mm256_storeu_pd(dst + dst_row, _mm256_permute2f128_pd(ab1, cd1, 0x20));
    _mm256_storeu_pd(dst + 2 * dst_row, _mm256_permute2f128_pd(ab0, cd0, 0x31));
    _mm256_storeu_pd(dst + 3 * dst_row, _mm256_permute2f128_pd(ab1, cd1, 0x31));
}

#undef X86
#endif
