/* kernel_generic.c: matrix product kernels with the compiler's 16-byte vectors, for every processor.
 * Tiles of 4 rows by 2 vectors fit in 16 registers, tiles of 3 vectors in 32.
 *
 * Invariant: only the instruction set that the whole library is compiled for. */
#include "heavy/gemm/cpu/kernel.h"
#include "base/small.h"

#define TARGET
#define ISA     "plain"
#define MR      4
#define NVMAX   3
#define GATHERED_MR(nv) ((nv) == 1 ? 8 : 4)
#define ACC     8
#define DRAIN   NULL
#define DOT_Q   2
#define OUTER_Q 4
#define EACH_DOT(F) F(1) F(2)
#define EACH_OUTER(F) F(2) F(3) F(4)

typedef float v4f __attribute__((vector_size(16)));
typedef double v2d __attribute__((vector_size(16)));

#define OPS(T, V, L)                                                                               \
    static inline V V##_set1(T x)                                                                  \
    {                                                                                              \
        return x - (V){ 0 };                                                                       \
    }                                                                                              \
    static inline V V##_load(const T *p, int64_t n)                                                \
    {                                                                                              \
        V v = { 0 };                                                                               \
        memcpy(&v, p, (size_t)n * sizeof(T));                                                      \
        return v;                                                                                  \
    }                                                                                              \
    static inline void V##_store(T *p, int64_t n, V v)                                             \
    {                                                                                              \
        memcpy(p, &v, (size_t)n * sizeof(T));                                                      \
    }                                                                                              \
    static inline void V##_sum4(const V *a, T *out)                                                \
    {                                                                                              \
        for (int i = 0; i < 4; i++) {                                                              \
            T s = 0;                                                                               \
            for (int j = 0; j < L; j++) {                                                          \
                s += a[i][j];                                                                      \
            }                                                                                      \
            out[i] = s;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static inline void V##_turn(T *dst, int64_t dst_row, const T *src, int64_t src_row)            \
    {                                                                                              \
        for (int i = 0; i < 4; i++) {                                                              \
            for (int j = 0; j < 4; j++) {                                                          \
                dst[j * dst_row + i] = src[i * src_row + j];                                       \
            }                                                                                      \
        }                                                                                          \
    }
OPS(float, v4f, 4)
OPS(double, v2d, 2)

#define FMA(a, b, c)       ((a) * (b) + (c))
#define MUL(a, b)          ((a) * (b))
#define T                  float
#define V                  v4f
#define L                  4
#define NAME(x)            f32_##x
#define FLOPS              8
#define ZERO()             ((V){ 0 })
#define SET1               v4f_set1
#define LOAD(p)            v4f_load(p, L)
#define STORE(p, v)        v4f_store(p, L, v)
#define MASK               int64_t
#define MASK_OF(n)         (n)
#define LOADM(p, m)        v4f_load(p, m)
#define STOREM             v4f_store
#define STREAM             STORE
#define SUM4               v4f_sum4
#define TW                 4
#define TK                 4
#define TURN               v4f_turn
#include "heavy/gemm/cpu/kernel_body.h"

#define FMA(a, b, c)       ((a) * (b) + (c))
#define MUL(a, b)          ((a) * (b))
#define T                  double
#define V                  v2d
#define L                  2
#define NAME(x)            f64_##x
#define FLOPS              4
#define ZERO()             ((V){ 0 })
#define SET1               v2d_set1
#define LOAD(p)            v2d_load(p, L)
#define STORE(p, v)        v2d_store(p, L, v)
#define MASK               int64_t
#define MASK_OF(n)         (n)
#define LOADM(p, m)        v2d_load(p, m)
#define STOREM             v2d_store
#define STREAM             STORE
#define SUM4               v2d_sum4
#define TW                 4
#define TK                 4
#define TURN               v2d_turn
#include "heavy/gemm/cpu/kernel_body.h"

const struct mc_gemm_kernel *const mc_gemm_plain[2] = { &f32_kernel, &f64_kernel };
