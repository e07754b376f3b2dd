/* small_channels.h: what solvers for images of few channels share: cuda_few.c, cuda_few_tensor.c,
 * cuda_few_spread.c, and heavy/conv_pool/cuda/small_channels.c.
 *
 * Invariant: a plan of theirs begins with a struct mc_small_channels, and the arguments of their kernels for a
 * convolution alone with a struct mc_small_channels_args. */
#ifndef MC_CONV_CUDA_SMALL_CHANNELS_H
#define MC_CONV_CUDA_SMALL_CHANNELS_H

#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/small_channels/small_channels_args.h"

struct mc_small_channels {
    struct mc_plan base;
    enum mc_conv_pass pass;
    /* `forward` alone; `filters`, then `inputs`, as products have those; `weights`, then `add`, which adds
     * up blocks' sums */
    void *kernel, *then;
    struct mc_grid grid, then_grid;
    int64_t w_first;            /* elements from w to the tap that is read first */
    bool beside;                /* y's filters lie side by side, else its lines are dense */
};

/* all but kernels, grids, addresses */
void mc_small_channels_shape(struct mc_small_channels *d, struct mc_small_channels_args *a, const struct mc_conv_problem *p);
void mc_small_channels_bind(const struct mc_small_channels *d, struct mc_small_channels_args *a, const struct mc_conv_problem *p,
                 void *const *operand, void *workspace);
/* Weights: what adds up so many blocks' sums of p's filters, and room for them. */
void mc_small_channels_parts(struct mc_small_channels *d, const struct mc_conv_shape *s, int blocks);
mc_status mc_small_channels_run(const struct mc_small_channels *d, const void *args, size_t size);
void mc_small_channels_defines(struct mc_str *defines, const struct mc_small_channels *d, const struct mc_conv_problem *p);
/* A copy of the plan d, of so many bytes, with its kernels; NULL: an error.  Frees the defines. */
struct mc_plan *mc_small_channels_plan(const struct mc_small_channels *d, size_t size, const struct mc_cuda_text *text,
                            struct mc_str *defines);
/* what none of them takes, for a convolution alone */
const char *mc_small_channels_refuse(const struct mc_conv_problem *p);

static inline int mc_small_channels_up(int64_t n, int unit)
{
    return (int)((n + unit - 1) / unit * unit);
}

#endif
