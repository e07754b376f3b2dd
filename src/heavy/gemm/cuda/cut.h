/* cut.h: float32 products whose blocks cut what they bring into pairs of halves themselves (cut.cu): what the
 * solver of matrices and that of convolutions share.  cut_args.h declares the arguments. */
#ifndef MC_GEMM_CUT_H
#define MC_GEMM_CUT_H

#include "heavy/gemm/cuda/cuda.h"
#include "heavy/gemm/cuda/cut_args.h"

static inline struct mc_gemm_cut_places mc_gemm_cut_line(int64_t step)
{
    return (struct mc_gemm_cut_places){ 0, step, INT32_MAX };
}
struct mc_gemm_cut {
    void *product, *add;
    struct mc_grid grid, add_grid;
    struct mc_gemm_cut_args args;    /* all but addresses */
    bool fours[2];
};

/* Of args with sizes and strides: how the sums are shared, kernels, and bytes of workspace; false: failed,
 * error set. */
bool mc_gemm_cut_make(struct mc_gemm_cut *c, enum mc_act act, size_t *workspace);
mc_status mc_gemm_cut_run(const struct mc_gemm_cut *c, const void *a, const void *b, const void *c0, void *to,
                          void *workspace);
/* is there room for such sizes? */
bool mc_gemm_cut_small(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer);
double mc_gemm_cut_seconds(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer);

extern const struct mc_cuda_text mc_gemm_cut_text;

#endif
