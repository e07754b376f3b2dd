/* table.c: the solvers of convolutions, and their names as flags and nodes use them. A new solver is a file
 * and a row.
 *
 * Invariant: the last solver takes every problem. */
#include "heavy/conv/cuda/cuda.h"
#include "op/conv.h"

const struct mc_solver *const mc_conv_solvers[] = {
    &mc_conv_one,       /* pointwise: matrix products */
    &mc_conv_one_next,  /* the same, by another solver of the product */
    &mc_conv_fft,       /* products of spectra of tiles */
    &mc_conv_winograd,  /* F(2x2, 3x3): tiles of 4, and fewer products for 3x3 taps */
    &mc_conv_winograd4, /* F(4x4, 3x3): tiles of 6, still fewer products, and one digit less */
    &mc_conv_depth,     /* as many groups as channels */
    &mc_conv_planes,    /* the same, a plane after another */
    &mc_conv_rows,      /* the same, planes in place */
    &mc_conv_channels,  /* the same, in vectors of channels */
    &mc_conv_grouped,   /* groups of few channels, woven so that they fill vectors */
    &mc_conv_direct,    /* tap by tap, over padded planes */
    &mc_conv_col2im,    /* inputs: products scattered over the taps of x */
    &mc_conv_implicit,  /* windows as rows of a matrix product, read in place by tables of offsets */
    &mc_conv_im2col,    /* windows as columns of a matrix product */
    &mc_conv_exchange,  /* taps and positions change roles: forward by the weights direction, and back */
    &mc_conv_exchange_full, /* forward by the inputs direction, and back */
    &mc_conv_onednn,    /* oneDNN, if its library is found */
    &mc_conv_onednn_winograd,
    &mc_conv_relayout,  /* copies operands whose layout or dtype the others refuse */
    &mc_conv_portable,  /* sums in a fixed order, as in exported files */
    &mc_conv_portable_col2im, /* inputs, of small images */
    &mc_conv_portable_outer,  /* weights: vectors of filters */
    &mc_conv_reference, /* any problem, slowly */
    NULL,
};

const struct mc_family mc_conv_family = {
    .name         = "conv",
    .solvers      = mc_conv_solvers,
    .problem_size = sizeof(struct mc_conv_problem),
    .key         = mc_conv_key,
    .sample       = TRIED(mc_conv_sample),
    .stays        = TRIED(mc_conv_stays),
    .operands     = TRIED(mc_conv_operands),
    .discard      = TRIED(mc_conv_discard),
    .verify       = TRIED(mc_conv_verify),
    .forced       = mc_conv_forced,
};

struct mc_plan *mc_conv_plan(const struct mc_conv_problem *p, const struct mc_plan_options *o)
{
    return mc_conv_plan_in(&mc_conv_family, p, o);
}

/* ---- names ---- */

static size_t algo_names(const char **names, size_t capacity)
{
    return mc_solver_names(mc_conv_cuda_solvers, names,
                           mc_solver_names(mc_conv_solvers, names, mc_conv_words(names, capacity), capacity),
                           capacity);
}

/* Checks the algo of a node while the node is made. */
static mc_status known(const char *algo)
{
    const char *names[128];
    const size_t n = algo_names(names, NELEM(names));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], algo) == 0) {
            return MC_OK;
        }
    }
    const char *near = mc_near_miss(algo, names, n);
    return near ? mc_fail(MC_EARG, "there is no algo '%s'; did you mean '%s'?", algo, near)
                : mc_fail(MC_EARG,
                          "there is no algo '%s'; algo is a solver of convolutions or a word of the flag "
                          "conv.algo_fwd",
                          algo);
}

__attribute__((constructor)) static void install(void)
{
    mc_conv_algo_hook = known;
    mc_flag_names_of[FLAG_conv_algo_fwd] = mc_flag_names_of[FLAG_conv_algo_bwd_data] =
        mc_flag_names_of[FLAG_conv_algo_bwd_filter] = algo_names;
}
