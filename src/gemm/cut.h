/* cut.h: float32 products whose blocks cut what they bring into pairs of halves themselves (cut.cu): what the solver of matrices and
 * that of convolutions share.
 *
 * Invariant: the arguments are those of cut.cu, field for field. */
#ifndef MC_GEMM_CUT_H
#define MC_GEMM_CUT_H

#include "gemm/cuda.h"

/* C[batch] = the sum over `outer` of A[batch, outer] B[batch, outer]; strides: batch, row, column, as each matrix has them. */
struct mc_gemm_cut_args {
    const void *a, *b, *c0;
    void *c, *parts;
    int64_t as[3], bs[3], cs[3], c0s[3], outer_step[2];     /* outer_step: of A and of B */
    int m, n, k, batch, outer, splits, fours[2];
    float alpha, beta;
};
struct mc_gemm_cut {
    void *product, *add;
    struct mc_grid grid, add_grid;
    struct mc_gemm_cut_args args;    /* all but addresses */
    bool fours[2];
};

/* Of args with sizes and strides: how the sums are shared, kernels, and bytes of workspace; false: failed, error set. */
bool mc_gemm_cut_make(struct mc_gemm_cut *c, enum mc_act act, size_t *workspace);
mc_status mc_gemm_cut_run(const struct mc_gemm_cut *c, const void *a, const void *b, const void *c0, void *to, void *workspace);
bool mc_gemm_cut_small(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer); /* is there room for such sizes? */
double mc_gemm_cut_seconds(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer);

extern const struct mc_cuda_text mc_gemm_cut_text;

#endif
