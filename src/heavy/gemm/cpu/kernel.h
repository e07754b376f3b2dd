/* kernel.h: the innermost loops of matrix products, one table of functions for each instruction set
 * and element type.  kernel_body.h is the one text they are all compiled from; kernel_avx512.c,
 * kernel_avx2.c and kernel_plain.c say which registers and instructions it means.
 *
 * Invariant: no kernel reads or writes an element outside of what its arguments describe. */
#ifndef MC_GEMM_KERNEL_H
#define MC_GEMM_KERNEL_H

#include "base/base.h"

/* c = alpha * a * b + beta * c0 on one tile of at most (mr, nr); sums run over k in order. */
struct mc_gemm_tile {
    int64_t k, m, n;
    const void *a;              /* (m, k); a packed panel is [k][mr], zero beyond m */
    const void *b;              /* (k, n), columns adjacent, rows b_row apart */
    int64_t a_row, a_col, b_row;
    double alpha, beta;
    /* C past the caches, where it is aligned; its writer calls drain at the end */
    bool stream;
    const void *c0;             /* (m, n), columns adjacent; not read when beta is 0 */
    void *c;                    /* (m, n), columns adjacent */
    int64_t c0_row, c_row;
};

/* Thin products multiply a big matrix x (p, k), read once from where it lies, by a small one
 * s (q, k) that was brought into the order in which a kernel reads it:
 *   dot    x has its k adjacent:  s is [k / lanes][q][lanes], zero beyond k
 *   outer  x has its p adjacent:  s is [k][q] */
typedef void mc_gemm_tile_kernel(const struct mc_gemm_tile *t);
struct mc_gemm_dot {
    int64_t k, x_row, far;      /* far: bytes of x to fetch ahead, 0 where it is in a cache already */
    int rows;                   /* 1..4; for those beyond, the last is multiplied again */
    const void *x, *s;
    void *out;                  /* [q][4] */
};
struct mc_gemm_outer {
    int64_t k, x_col, far, np;  /* np: elements of p, at most outer_p[q] */
    const void *x, *s;
    void *out;                  /* [q][np], rows out_row apart */
    int64_t out_row;
    bool add;                   /* to what out holds */
    /* np is all of p, at most two vectors, and k is whole: one column sums in four chains */
    bool narrow;
};
typedef void mc_gemm_dot_kernel(const struct mc_gemm_dot *t);
typedef void mc_gemm_outer_kernel(const struct mc_gemm_outer *t);
/* dst[p][width], zero beyond nw, from an (nw, nk) matrix with the given strides */
typedef void mc_gemm_pack_kernel(void *dst, const void *src, int64_t w_stride, int64_t k_stride, int64_t nw,
                                 int64_t nk, int64_t width);

enum { GEMM_MAX_MR = 8, GEMM_MAX_NR = 48, GEMM_MAX_Q = 16, GEMM_DOT_ROWS = 4, GEMM_ROW = 4096 };
struct mc_gemm_kernel {
    const char *name;           /* "avx512" */
    int mr, nr, lanes;
    /* a cycle, on processors that run the vectors in halves: what estimates go by */
    double flops;
    int dot_q, outer_q;         /* most columns of s one call takes */
    int outer_p[GEMM_MAX_Q + 1];
    mc_gemm_tile_kernel *packed[4], *direct[4];     /* by ceil(n / lanes) */
    mc_gemm_dot_kernel *dot[GEMM_MAX_Q + 1];        /* by q */
    mc_gemm_outer_kernel *outer[GEMM_MAX_Q + 1];
    mc_gemm_pack_kernel *pack;
    void (*drain)(void);        /* what was streamed is seen by others; NULL: this one does not stream */
};
/* [0] is float32, [1] is float64; NULL where the compiler does not know the instruction set */
extern const struct mc_gemm_kernel *const mc_gemm_avx512[2], *const mc_gemm_avx2[2], *const mc_gemm_plain[2];

#if defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define UNROLL(n) GEMM_PRAGMA(GCC unroll n)
#define GEMM_PRAGMA(x) _Pragma(#x)
#endif

/* The best that this processor runs; float32 serves the half types too. */
const struct mc_gemm_kernel *mc_gemm_kernel(mc_dtype d);

#endif
