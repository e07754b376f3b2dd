/* vectors.h: vectors of float and double of one instruction set, for core.h.  It is part of exported files,
 * so it is C99 that compiles as C++ too.
 *
 * The includer defines LEVEL: 512 (AVX-512), 256 (AVX2 and FMA), 128 (16-byte vectors of gcc and clang), or 0
 * (no extension).  Levels with a fused multiply-add give the same bits, and so do those without. */
#if LEVEL == 512
#define TARGET       __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define FORCE_INLINE       static inline TARGET __attribute__((always_inline))
#define IN_REGISTER(v) __asm__("" : "+v"(v)) /* a compiler may read it from memory at each use otherwise */
typedef __m512 v_f32;
typedef __m512d v_f64;
enum { WIDTH_f32 = 16, WIDTH_f64 = 8, ROWS = 8, VECTORS = 3, WIDE = 4, WIDE_ROWS = 6 };
enum { BOX_ROWS = 4, DOT_ROWS = 4, DOT_COLUMNS = 5 };
FORCE_INLINE v_f32 zero_f32(void) { return _mm512_setzero_ps(); }
FORCE_INLINE v_f64 zero_f64(void) { return _mm512_setzero_pd(); }
FORCE_INLINE v_f32 load_f32(const float *p) { return _mm512_loadu_ps(p); }
FORCE_INLINE v_f64 load_f64(const double *p) { return _mm512_loadu_pd(p); }
FORCE_INLINE v_f32 load_n_f32(const float *p, int n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
FORCE_INLINE v_f64 load_n_f64(const double *p, int n)
{
    return _mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
}
FORCE_INLINE v_f32 load_part_f32(const float *p, int lo, int hi) /* lanes [lo, hi), zeros beside them */
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << hi) - (1u << lo)), p);
}
FORCE_INLINE v_f64 load_part_f64(const double *p, int lo, int hi)
{
    return _mm512_maskz_loadu_pd((__mmask8)((1u << hi) - (1u << lo)), p);
}
FORCE_INLINE void store_f32(float *p, v_f32 v) { _mm512_storeu_ps(p, v); }
FORCE_INLINE void store_f64(double *p, v_f64 v) { _mm512_storeu_pd(p, v); }
FORCE_INLINE void store_n_f32(float *p, v_f32 v, int n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}
FORCE_INLINE void store_n_f64(double *p, v_f64 v, int n)
{
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), v);
}
FORCE_INLINE v_f32 splat_f32(float x) { return _mm512_set1_ps(x); }
FORCE_INLINE v_f64 splat_f64(double x) { return _mm512_set1_pd(x); }
FORCE_INLINE v_f32 plus_f32(v_f32 a, v_f32 b) { return _mm512_add_ps(a, b); }
FORCE_INLINE v_f64 plus_f64(v_f64 a, v_f64 b) { return _mm512_add_pd(a, b); }
/* Elements above 0 and NaN stay; the others become 0. */
FORCE_INLINE v_f32 positive_f32(v_f32 a)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NLE_UQ), a);
}
FORCE_INLINE v_f64 positive_f64(v_f64 a)
{
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, _mm512_setzero_pd(), _CMP_NLE_UQ), a);
}
FORCE_INLINE v_f32 madd_f32(v_f32 a, v_f32 b, v_f32 c) { return _mm512_fmadd_ps(a, b, c); }
FORCE_INLINE v_f64 madd_f64(v_f64 a, v_f64 b, v_f64 c) { return _mm512_fmadd_pd(a, b, c); }
/* The elements 0, 2, 4, ... of two vectors. */
FORCE_INLINE v_f32 evens_f32(v_f32 a, v_f32 b)
{
    const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, at, b);
}
FORCE_INLINE v_f64 evens_f64(v_f64 a, v_f64 b)
{
    return _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b);
}
/* The sum of all lanes: the upper half is added to the lower one, until one is left. */
FORCE_INLINE float half_f32(__m256 a)
{
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
FORCE_INLINE double half_f64(__m256d a)
{
    const __m128d b = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}
FORCE_INLINE float lanes_f32(const v_f32 *v)
{
    return half_f32(_mm256_add_ps(_mm512_castps512_ps256(*v), _mm512_extractf32x8_ps(*v, 1)));
}
FORCE_INLINE double lanes_f64(const v_f64 *v)
{
    return half_f64(_mm256_add_pd(_mm512_castpd512_pd256(*v), _mm512_extractf64x4_pd(*v, 1)));
}
#elif LEVEL == 256
#define TARGET       __attribute__((target("avx2,fma")))
#define FORCE_INLINE       static inline TARGET __attribute__((always_inline))
#define IN_REGISTER(v) __asm__("" : "+x"(v))
typedef __m256 v_f32;
typedef __m256d v_f64;
enum { WIDTH_f32 = 8, WIDTH_f64 = 4, ROWS = 4, VECTORS = 3, WIDE = 3, WIDE_ROWS = 4 };
enum { BOX_ROWS = 4, DOT_ROWS = 3, DOT_COLUMNS = 2 };
FORCE_INLINE __m256i first_f32(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
FORCE_INLINE __m256i first_f64(int n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
FORCE_INLINE v_f32 zero_f32(void) { return _mm256_setzero_ps(); }
FORCE_INLINE v_f64 zero_f64(void) { return _mm256_setzero_pd(); }
FORCE_INLINE v_f32 load_f32(const float *p) { return _mm256_loadu_ps(p); }
FORCE_INLINE v_f64 load_f64(const double *p) { return _mm256_loadu_pd(p); }
FORCE_INLINE v_f32 load_n_f32(const float *p, int n) { return _mm256_maskload_ps(p, first_f32(n)); }
FORCE_INLINE v_f64 load_n_f64(const double *p, int n) { return _mm256_maskload_pd(p, first_f64(n)); }
FORCE_INLINE v_f32 load_part_f32(const float *p, int lo, int hi)
{
    return _mm256_maskload_ps(p, _mm256_andnot_si256(first_f32(lo), first_f32(hi)));
}
FORCE_INLINE v_f64 load_part_f64(const double *p, int lo, int hi)
{
    return _mm256_maskload_pd(p, _mm256_andnot_si256(first_f64(lo), first_f64(hi)));
}
FORCE_INLINE void store_f32(float *p, v_f32 v) { _mm256_storeu_ps(p, v); }
FORCE_INLINE void store_f64(double *p, v_f64 v) { _mm256_storeu_pd(p, v); }
FORCE_INLINE void store_n_f32(float *p, v_f32 v, int n) { _mm256_maskstore_ps(p, first_f32(n), v); }
FORCE_INLINE void store_n_f64(double *p, v_f64 v, int n) { _mm256_maskstore_pd(p, first_f64(n), v); }
FORCE_INLINE v_f32 splat_f32(float x) { return _mm256_set1_ps(x); }
FORCE_INLINE v_f64 splat_f64(double x) { return _mm256_set1_pd(x); }
FORCE_INLINE v_f32 plus_f32(v_f32 a, v_f32 b) { return _mm256_add_ps(a, b); }
FORCE_INLINE v_f64 plus_f64(v_f64 a, v_f64 b) { return _mm256_add_pd(a, b); }
FORCE_INLINE v_f32 positive_f32(v_f32 a)
{
    return _mm256_and_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_NLE_UQ), a);
}
FORCE_INLINE v_f64 positive_f64(v_f64 a)
{
    return _mm256_and_pd(_mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_NLE_UQ), a);
}
FORCE_INLINE v_f32 madd_f32(v_f32 a, v_f32 b, v_f32 c) { return _mm256_fmadd_ps(a, b, c); }
FORCE_INLINE v_f64 madd_f64(v_f64 a, v_f64 b, v_f64 c) { return _mm256_fmadd_pd(a, b, c); }
FORCE_INLINE v_f32 evens_f32(v_f32 a, v_f32 b)
{
    const __m256d c = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(c, 0xD8));
}
FORCE_INLINE v_f64 evens_f64(v_f64 a, v_f64 b)
{
    return _mm256_permute4x64_pd(_mm256_unpacklo_pd(a, b), 0xD8);
}
FORCE_INLINE float lanes_f32(const v_f32 *v)
{
    const __m256 a = _mm256_add_ps(v[0], v[1]);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
FORCE_INLINE double lanes_f64(const v_f64 *v)
{
    const __m256d a = _mm256_add_pd(v[0], v[1]);
    const __m128d b = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(b, _mm_unpackhi_pd(b, b)));
}
#elif LEVEL == 128
#define TARGET
#define FORCE_INLINE       static inline __attribute__((always_inline))
#define IN_REGISTER(v) (void)(v)
typedef float v_f32 __attribute__((vector_size(16)));
typedef double v_f64 __attribute__((vector_size(16)));
enum { WIDTH_f32 = 4, WIDTH_f64 = 2, ROWS = 4, VECTORS = 2, WIDE = 2, WIDE_ROWS = 4 };
enum { BOX_ROWS = 4, DOT_ROWS = 1, DOT_COLUMNS = 3 };
#define LEVEL_128(T, S)                                                                                  \
    FORCE_INLINE v_##S zero_##S(void) { v_##S v; memset(&v, 0, sizeof v); return v; } \
    FORCE_INLINE v_##S load_##S(const T *p) { v_##S v; memcpy(&v, p, sizeof v); return v; } \
    FORCE_INLINE v_##S load_n_##S(const T *p, int n) \
    {                                                                                                    \
        v_##S v = zero_##S();                                                                            \
        for (int i = 0; i < WIDTH_##S && i < n; i++) {                                                   \
            v[i] = p[i];                                                                                 \
        }                                                                                                \
        return v;                                                                                        \
    }                                                                                                    \
    FORCE_INLINE v_##S load_part_##S(const T *p, int lo, int hi)                                         \
    {                                                                                                    \
        v_##S v = zero_##S();                                                                            \
        for (int i = lo; i < hi; i++) {                                                                  \
            v[i] = p[i];                                                                                 \
        }                                                                                                \
        return v;                                                                                        \
    }                                                                                                    \
    FORCE_INLINE void store_##S(T *p, v_##S v) { memcpy(p, &v, sizeof v); } \
    FORCE_INLINE void store_n_##S(T *p, v_##S v, int n) \
    {                                                                                                    \
        for (int i = 0; i < WIDTH_##S && i < n; i++) {                                                   \
            p[i] = v[i];                                                                                 \
        }                                                                                                \
    }                                                                                                    \
    FORCE_INLINE v_##S splat_##S(T x) { return x - zero_##S(); }                                         \
    FORCE_INLINE v_##S evens_##S(v_##S a, v_##S b)                                                       \
    {                                                                                                    \
        v_##S v = a;                                                                                     \
        for (int i = 0; i < WIDTH_##S; i++) {                                                            \
            v[i] = 2 * i < WIDTH_##S ? a[2 * i % WIDTH_##S] : b[2 * i % WIDTH_##S];                      \
        }                                                                                                \
        return v;                                                                                        \
    }
LEVEL_128(float, f32)
LEVEL_128(double, f64)
typedef int bits_f32 __attribute__((vector_size(16)));
typedef long long bits_f64 __attribute__((vector_size(16)));
FORCE_INLINE v_f32 positive_f32(v_f32 a) { return (v_f32)(~(a <= zero_f32()) & (bits_f32)a); }
FORCE_INLINE v_f64 positive_f64(v_f64 a) { return (v_f64)(~(a <= zero_f64()) & (bits_f64)a); }
#if defined(__aarch64__)
FORCE_INLINE v_f32 madd_f32(v_f32 a, v_f32 b, v_f32 c)
{
    return (v_f32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
FORCE_INLINE v_f64 madd_f64(v_f64 a, v_f64 b, v_f64 c)
{
    return (v_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#elif defined(__FMA__)
FORCE_INLINE v_f32 madd_f32(v_f32 a, v_f32 b, v_f32 c)
{
    return (v_f32)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
}
FORCE_INLINE v_f64 madd_f64(v_f64 a, v_f64 b, v_f64 c)
{
    return (v_f64)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
}
#else
FORCE_INLINE v_f32 madd_f32(v_f32 a, v_f32 b, v_f32 c) { return a * b + c; }
FORCE_INLINE v_f64 madd_f64(v_f64 a, v_f64 b, v_f64 c) { return a * b + c; }
#endif
#else
#define TARGET
#define FORCE_INLINE       static inline
#define IN_REGISTER(v) (void)(v)
typedef float v_f32;
typedef double v_f64;
enum { WIDTH_f32 = 1, WIDTH_f64 = 1, ROWS = 4, VECTORS = 2, WIDE = 2, WIDE_ROWS = 4 };
enum { BOX_ROWS = 4, DOT_ROWS = 1, DOT_COLUMNS = 1 };
#define LEVEL_0(T, S)                                                                                    \
    FORCE_INLINE v_##S zero_##S(void) { return 0; } \
    FORCE_INLINE v_##S load_##S(const T *p) { return *p; } \
    FORCE_INLINE v_##S load_n_##S(const T *p, int n) { return n ? *p : 0; } \
    FORCE_INLINE v_##S load_part_##S(const T *p, int lo, int hi) { return lo < hi ? *p : 0; } \
    FORCE_INLINE void store_##S(T *p, v_##S v) { *p = v; } \
    FORCE_INLINE void store_n_##S(T *p, v_##S v, int n) { *p = n ? v : *p; } \
    FORCE_INLINE v_##S splat_##S(T x) { return x; } \
    FORCE_INLINE v_##S evens_##S(v_##S a, v_##S b) { (void)b; return a; }
LEVEL_0(float, f32)
LEVEL_0(double, f64)
FORCE_INLINE v_f32 positive_f32(v_f32 a) { return a <= 0 ? 0 : a; }
FORCE_INLINE v_f64 positive_f64(v_f64 a) { return a <= 0 ? 0 : a; }
#if defined(__FMA__) || (defined(FP_FAST_FMAF) && defined(FP_FAST_FMA))
FORCE_INLINE v_f32 madd_f32(v_f32 a, v_f32 b, v_f32 c) { return fmaf(a, b, c); }
FORCE_INLINE v_f64 madd_f64(v_f64 a, v_f64 b, v_f64 c) { return fma(a, b, c); }
#else
FORCE_INLINE v_f32 madd_f32(v_f32 a, v_f32 b, v_f32 c) { return a * b + c; }
FORCE_INLINE v_f64 madd_f64(v_f64 a, v_f64 b, v_f64 c) { return a * b + c; }
#endif
#endif
#if LEVEL < 256
FORCE_INLINE v_f32 plus_f32(v_f32 a, v_f32 b) { return a + b; }
FORCE_INLINE v_f64 plus_f64(v_f64 a, v_f64 b) { return a + b; }
#endif
#if LEVEL > 0
#define FETCH(p) __builtin_prefetch(p, 0, 2)
#else
#define FETCH(p) (void)0
#endif
#if LEVEL < 256
#define LANES_OF(T, S, N)                                                                                \
    FORCE_INLINE T lanes_##S(const v_##S *v)                                                             \
    {                                                                                                    \
        T t[N];                                                                                          \
        memcpy(t, v, sizeof t);                                                                          \
        for (int half = N / 2; half > 0; half /= 2) {                                                    \
            for (int i = 0; i < half; i++) {                                                             \
                t[i] += t[i + half];                                                                     \
            }                                                                                            \
        }                                                                                                \
        return t[0];                                                                                     \
    }
LANES_OF(float, f32, 16)
LANES_OF(double, f64, 8)
#endif
#if LEVEL > 0 && defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#elif LEVEL > 0
#define UNROLL(n) UNROLL_PRAGMA(GCC unroll n)
#define UNROLL_PRAGMA(x) _Pragma(#x)
#else
#define UNROLL(n)
#endif
