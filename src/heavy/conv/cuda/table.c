/* table.c: the family of convolutions on a GPU: the same problems with solvers of their own.
 *
 * Invariant: the last solver takes every problem. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/gemm/cuda/cuda.h"

const struct mc_solver *const mc_conv_cuda_solvers[] = {
    &mc_conv_cudnn,          /* a library, where there is one: every engine of it */
    &mc_conv_cuda_small_channels,       /* few channels: the first layer */
    &mc_conv_cuda_small_channels_tensor, /* the same on tensor cores, of halves or where TF32 is allowed */
    &mc_conv_cuda_small_channels_scatter, /* gradients of inputs the same way, each place times all taps */
    &mc_conv_cuda_split,     /* float32 as pairs of halves on tensor cores */
    &mc_conv_cuda_tma,       /* channels side by side on Hopper's: boxes of images and places, taps that meet nothing left out */
    &mc_conv_cuda_split_pointwise,       /* the same by filters of one tap: products of what lies in the images */
    &mc_conv_cuda_shared_image,     /* the same as split's, with small images in shared memory */
    &mc_conv_cuda_taps,      /* gradients of filters the same way, with sums in registers */
    &mc_conv_cuda_col2im,    /* gradients of inputs the same way, each place times all taps */
    &mc_conv_cuda_fft,       /* whole images by their frequencies */
    &mc_conv_cuda_fft_fine,  /* with float32's spectra where halves would do: few channels gain nothing by those */
    &mc_conv_cuda_fft_tiling, /* tiles of them */
    &mc_conv_cuda_im2col,    /* windows as columns of a matrix product */
    &mc_conv_cuda_exchange,  /* taps and places change places: forward by the weights pass, and back */
    &mc_conv_cuda_exchange_full, /* forward by the inputs pass, and back */
    &mc_conv_cuda_bc01,      /* copied into that layout for the others */
    &mc_conv_cuda_b01c,
    &mc_conv_cuda_space_to_depth,      /* strides as channels: the first layer again */
    &mc_conv_cuda_unfused,     /* the bare convolution, and then what follows */
    &mc_conv_cuda_direct,    /* any, by indices */
    NULL,
};

/* ---- the family ---- */

/* What was timed without cuDNN says nothing of a machine with it. */
static void word(const struct mc_problem *p, struct mc_str *out)
{
    mc_conv_word(p, out);
    mc_str_add(out, mc_flag_int(FLAG_dnn_enabled) == DNN_NEVER ? " no cudnn" : "");
}

static mc_status operands(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[5];
    mc_conv_extents(conv(p), e);
    return mc_cuda_operands(e, 5, operand);
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[5];
    mc_conv_extents(conv(p), e);
    mc_cuda_discard(e, 5, operand);
}

/* ---- verification ---- */

/* Bias and activation, which the host's reference has as a function. */
static void after(const struct mc_problem *p_, void *const *operand)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_array a = mc_conv_array(p, mc_conv_result(p->s.pass));
    const int64_t count = mc_conv_count(&a), size = mc_dtypes[p->dtype].size;
    for (int64_t e = 0; (p->has_bias || p->act != ACT_NONE) && e < count; e++) {
        int64_t at = 0, rest = e, f = 0;
        for (int i = a.rank - 1; i >= 0; i--) {
            at += rest % a.size[i] * a.stride[i];
            f = i == 1 ? rest % a.size[i] : f;
            rest /= a.size[i];
        }
        char *v = (char *)mc_conv_cuda_result(p, operand) + at * size;
        const double bias = p->has_bias ? mc_load_f64(p->dtype, (char *)operand[CONV_BIAS] + f * size) : 0;
        mc_store_f64(p->dtype, v, mc_gemm_acted(p->act, mc_load_f64(p->dtype, v) + bias));
    }
}

static mc_status compare(const struct mc_problem *p, const struct mc_plan *plan, void *const *got,
                         void *const *want)
{
    const int role = mc_conv_result(conv(p)->s.pass);
    return mc_conv_compare(conv(p), plan, got[role], want[role]);
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan)
{
    static const struct mc_cuda_check check = { &mc_conv_family, &mc_conv_reference, after, compare };
    struct mc_extent e[5];
    mc_conv_extents(conv(p), e);
    return e[mc_conv_result(conv(p)->s.pass)].count ? mc_cuda_verify(&check, p, plan, e, 5) : MC_OK;
}

const struct mc_family mc_conv_cuda = {
    .name         = "conv",
    .solvers      = mc_conv_cuda_solvers,
    .problem_size = sizeof(struct mc_conv_problem),
    .site         = &mc_site_cuda,
    .word         = word,
    .operands     = operands,
    .discard      = discard,
    .verify       = verify,
    .error        = mc_conv_cuda_error,
    .allows       = mc_conv_cuda_allows,
    .forced       = mc_conv_forced,
};

struct mc_plan *mc_conv_cuda_plan(const struct mc_conv_problem *p, const struct mc_plan_options *o)
{
    if (p->has_epilogue) {
        mc_fail(MC_EUNSUPPORTED, "conv: a GPU calls no epilogue");
        return NULL;
    }
    if (mc_flag_int(FLAG_dnn_enabled) == DNN_REQUIRED && !mc_nv_found(NV_CUDNN)->there) {
        mc_fail(MC_EUNSUPPORTED, "conv: the flag dnn.enabled is True, and cuDNN is not there: %s",
                mc_nv_found(NV_CUDNN)->why);
        return NULL;
    }
    if (p->has_bias && p->s.pass != CONV_FORWARD) {
        mc_fail(MC_EARG, "conv: only a forward pass adds a bias");
        return NULL;
    }
    return mc_conv_plan_in(&mc_conv_cuda, p, o);
}
