/* small_channels.h: shared by the solvers for images of few channels: rows.c, tensor.c, scatter.c, and
 * heavy/conv_pool/cuda/small_channels.c.
 *
 * Invariant: their plans begin with a struct mc_small_channels, and the arguments of their kernels for a
 * convolution without pooling with a struct mc_small_channels_args. */
#ifndef MC_CONV_CUDA_SMALL_CHANNELS_H
#define MC_CONV_CUDA_SMALL_CHANNELS_H

#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/small_channels/small_channels_args.h"

struct mc_small_channels {
    struct mc_plan base;
    enum mc_conv_pass pass;
    /* Forward: `forward`.  Inputs: `filters`, which arranges the filters for the product, then `inputs`.
     * Weights: `weights`, then `add`, which adds the partial sums of the blocks. */
    void *kernel, *then;
    struct mc_grid grid, then_grid;
    int64_t w_first;            /* elements from w to the tap that is read first */
    bool nhwc;                /* y's filters are contiguous; else its lines are */
};

/* everything but kernels, grids and addresses */
void mc_small_channels_shape(struct mc_small_channels *d, struct mc_small_channels_args *a,
                             const struct mc_conv_problem *p);
void mc_small_channels_bind(const struct mc_small_channels *d, struct mc_small_channels_args *a,
                            const struct mc_conv_problem *p, void *const *operand, void *workspace);
/* Weights: sets up `add` and the workspace for the partial sums of so many blocks. */
void mc_small_channels_parts(struct mc_small_channels *d, const struct mc_conv_shape *s, int blocks);
mc_status mc_small_channels_run(const struct mc_small_channels *d, const void *args, size_t size);
void mc_small_channels_defines(struct mc_str *defines, const struct mc_small_channels *d,
                               const struct mc_conv_problem *p);
/* A copy of the plan d, of `size` bytes, with its kernels; NULL: an error.  Frees the defines. */
struct mc_plan *mc_small_channels_plan(const struct mc_small_channels *d, size_t size,
                                       const struct mc_cuda_text *text, struct mc_str *defines);
/* why none of the solvers without pooling takes p; NULL: one may */
const char *mc_small_channels_refuse(const struct mc_conv_problem *p);

static inline int mc_small_channels_up(int64_t n, int unit)
{
    return (int)((n + unit - 1) / unit * unit);
}

#endif
