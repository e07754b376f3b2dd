/* kernel.h: the innermost loops of matrix products, one table of functions for each instruction set and
 * element type.  All are compiled from kernel_body.h; kernel_avx512.c, kernel_avx2.c and kernel_generic.c
 * define its registers and instructions.
 *
 * Invariant: no kernel reads or writes an element outside of what its arguments describe. */
#ifndef MC_GEMM_KERNEL_H
#define MC_GEMM_KERNEL_H

#include "base/base.h"

/* c = alpha * a * b + beta * c0 on one tile of at most (mr, nr); sums run over k in order. */
struct mc_gemm_tile {
    int64_t k, m, n;
    const void *a;              /* (m, k); a packed panel is [k][mr], zero beyond m */
    /* (k, n), column stride 1, row stride b_row; rows of a packed panel are whole vectors, and that is
     * b_row */
    const void *b;
    int64_t a_row, a_col, b_row;
    /* gathered: A's element (r, k) is a[a_rows[r] + a_at[k]]; b is a packed panel */
    const int32_t *a_rows, *a_at;
    double alpha, beta;
    /* store C past the caches where it is aligned; the caller calls drain at the end */
    bool stream;
    const void *c0;             /* (m, n), column stride 1; not read when beta is 0 */
    /* Memory that is prefetched to the L2 cache meanwhile, ahead_step bytes for each k.  NULL or 0: none. */
    const char *ahead;
    int64_t ahead_step;
    void *c;                    /* (m, n), column stride 1 */
    int64_t c0_row, c_row;
};

enum mc_gemm_packs { GEMM_PACKS_BOTH, GEMM_PACKS_B, GEMM_PACKS_NONE, GEMM_PACKS_NONE_EARLY };

/* Skinny products multiply a large matrix x (p, k), read once in place, by a small one s (q, k), which is
 * packed in the order in which the kernel reads it:
 *   dot    k of x has stride 1:  s is [k / lanes][q][lanes], zero beyond k
 *   outer  p of x has stride 1:  s is [k][q] */
typedef void mc_gemm_tile_kernel(const struct mc_gemm_tile *t);
struct mc_gemm_dot {
    int64_t k, x_row, far;      /* far: prefetch distance in bytes; 0: x may be in a cache already */
    int rows;                   /* 1..4; the kernel always computes 4 and repeats the last row */
    const void *x, *s;
    void *out;                  /* [q][4] */
};
struct mc_gemm_outer {
    int64_t k, x_col, far, np;  /* np: elements of p, at most outer_p[q] */
    const void *x, *s;
    void *out;                  /* [q][np], row stride out_row */
    int64_t out_row;
    bool add;                   /* add to the old values of out */
    /* np is all of p, at most two vectors, and k is not divided: for q = 1 there are four partial sums */
    bool narrow;
};
typedef void mc_gemm_dot_kernel(const struct mc_gemm_dot *t);
typedef void mc_gemm_outer_kernel(const struct mc_gemm_outer *t);
/* dst[nk][width], zero beyond nw, from an (nw, nk) matrix with the given strides */
typedef void mc_gemm_pack_kernel(void *dst, const void *src, int64_t w_stride, int64_t k_stride, int64_t nw,
                                 int64_t nk, int64_t width);

enum { GEMM_MAX_MR = 8, GEMM_MAX_NR = 48, GEMM_MAX_Q = 16, GEMM_DOT_ROWS = 4, GEMM_ROW = 4096 };
struct mc_gemm_kernel {
    const char *name;           /* "avx512" */
    int mr, nr, lanes;
    /* operations a cycle, for estimates, on processors that run a vector as two halves */
    double flops;
    int dot_q, outer_q;         /* most columns of s in one call */
    int outer_p[GEMM_MAX_Q + 1];
    /* by ceil(n / lanes): both operands packed, A in place with column stride 1, both in place, A in place
     * with an offset for each row and column (NULL in the runtime library) */
    mc_gemm_tile_kernel *packed[4], *rows[4], *direct[4], *gathered[4];
    int gathered_mr[4];         /* rows of the latter */
    /* nr columns, both in place; rows of B are prefetched to the L1 cache (NULL in the runtime library) */
    mc_gemm_tile_kernel *early;
    mc_gemm_dot_kernel *dot[GEMM_MAX_Q + 1];        /* by q */
    mc_gemm_outer_kernel *outer[GEMM_MAX_Q + 1];
    mc_gemm_pack_kernel *pack;
    void (*drain)(void);        /* makes streamed stores visible to other threads; NULL: no streaming */
};
/* [0] is float32, [1] is float64; NULL if the compiler does not support the instruction set */
extern const struct mc_gemm_kernel *const mc_gemm_avx512[2], *const mc_gemm_avx2[2], *const mc_gemm_plain[2];

#if defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define UNROLL(n) GEMM_PRAGMA(GCC unroll n)
#define GEMM_PRAGMA(x) _Pragma(#x)
#endif

/* The kernels of the widest set that runs.  float32 kernels also serve halves. */
const struct mc_gemm_kernel *mc_gemm_kernel(mc_dtype d);

#endif
