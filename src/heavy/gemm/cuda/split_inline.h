/* split_inline.h: float32 products whose blocks split their operands into pairs of halves themselves
 * (split_inline.cu), for solvers of matrix products and convolutions.  split_inline_args.h declares the
 * arguments. */
#ifndef MC_HEAVY_GEMM_CUDA_SPLIT_INLINE_H
#define MC_HEAVY_GEMM_CUDA_SPLIT_INLINE_H

#include "heavy/gemm/cuda/cuda.h"
#include "heavy/gemm/cuda/split_inline_args.h"

static inline struct mc_split_inline_positions mc_split_inline_line(int64_t step)
{
    return (struct mc_split_inline_positions){ 0, step, INT32_MAX };
}
struct mc_split_inline {
    void *product, *add;
    struct mc_grid grid, add_grid;
    struct mc_split_inline_args args;    /* without the addresses */
    bool fours[2];
};

/* From c->args with sizes and strides: sets split-K, the kernels and the bytes of workspace.  false: error
 * set. */
bool mc_split_inline_make(struct mc_split_inline *c, enum mc_act act, size_t *workspace);
mc_status mc_split_inline_run(const struct mc_split_inline *c, const void *a, const void *b, const void *c0,
                              void *to, void *workspace);
/* do the sizes fit in the kernels' 32-bit indices? */
bool mc_split_inline_small(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer);
double mc_split_inline_seconds(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer);

extern const struct mc_cuda_text mc_split_inline_text;

#endif
