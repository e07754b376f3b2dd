/* gemm.h: matrix products as a family of solvers.
 *
 *   C = act(alpha * op(A) * op(B) + beta * C0),  then the epilogue on each finished tile
 *
 * for each matrix of a batch.  A is (m, k), B is (k, n), C is (m, n), each with a row and a column stride
 * in elements.  One of the two is 1 for A and B (else the caller copies); the column stride of C is 1.  C0
 * is the old C or a separate operand (residual): another (m, n) matrix, or a row (a bias) or column that
 * is broadcast with stride 0.  If beta is 0, C0 is not read, so NaN and infinity in it do not matter. */
#ifndef MC_GEMM_H
#define MC_GEMM_H

#include "plan/plan.h"

/* Called for rows [i, i+m) and columns [j, j+n) of the result while they are in cache.  c points to the
 * tile. */
typedef void mc_gemm_epilogue(void *arg, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n, void *c,
                              int64_t row_stride);
struct mc_gemm_problem {
    struct mc_problem base;
    /* float64, float32, float16, bfloat16 (accumulated in float32); on a GPU integers too */
    mc_dtype dtype;
    int64_t batch, m, n, k;
    int64_t as[3], bs[3], cs[3], c0s[3]; /* strides in elements: batch, row, column */
    double alpha, beta;
    bool has_epilogue;              /* on the host: the solver calls a function for each finished tile */
    bool residual;                  /* C0 is a separate operand, not the old C */
    bool b_stays;                   /* B is the same in many runs; on the host, without a batch */
    enum mc_act act;                /* on a GPU: applied after C0 is added */
    /* float32 operands may be rounded to TF32; mc_gemm_cuda_plan sets this from gemm.precision */
    bool tf32;
};
/* operand[] of a plan's run */
enum { GEMM_A, GEMM_B, GEMM_C, GEMM_C0, GEMM_EPILOGUE, GEMM_EPILOGUE_ARG, GEMM_NOPERAND };

extern const struct mc_family mc_gemm_family;
/* Calls the planner for a copy of p whose base it sets. */
struct mc_plan *mc_gemm_plan(const struct mc_gemm_problem *p, const struct mc_plan_options *o);
/* The same for the GPU that the thread has entered: operands in its memory, no epilogue function, any
 * strides.  A bias for the columns is a C0 with row stride 0. */
extern const struct mc_family mc_gemm_cuda;
struct mc_plan *mc_gemm_cuda_plan(const struct mc_gemm_problem *p, const struct mc_plan_options *o);
/* the same for solvers that use products as child plans; they set tf32 themselves */
struct mc_plan *mc_gemm_cuda_inner(const struct mc_gemm_problem *p, const struct mc_plan_options *o);

#endif
