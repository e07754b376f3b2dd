/* table.c: the family of convolutions on a GPU: the problems of mc_conv_family with solvers of its own.
 *
 * Invariant: the last solver takes every problem. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/gemm/cuda/cuda.h"

const struct mc_solver *const mc_conv_cuda_solvers[] = {
    &mc_conv_cudnn,          /* cuDNN where it is installed: all of its engines */
    &mc_conv_cuda_small_channels,       /* few channels, such as a first layer */
    &mc_conv_cuda_small_channels_tensor, /* the same on tensor cores: halves, or TF32 */
    /* gradients of inputs on tensor cores: product with all taps, then scatter */
    &mc_conv_cuda_small_channels_scatter,
    &mc_conv_cuda_depthwise, /* groups of one channel */
    &mc_conv_cuda_grouped,   /* groups of several channels */
    &mc_conv_cuda_grouped_tensor, /* the same on tensor cores: halves, channels innermost */
    &mc_conv_cuda_split,     /* float32 as pairs of halves on tensor cores */
    /* NHWC on Hopper's tensor cores: tiles of rows are boxes of images and positions */
    &mc_conv_cuda_tma,
    &mc_conv_cuda_tma_weights, /* the same for gradients of filters, of halves */
    /* split halves, pointwise or taps along one axis: products on the images as stored */
    &mc_conv_cuda_split_pointwise,
    /* split halves, filters that stay in shared memory */
    &mc_conv_cuda_small_filters,
    &mc_conv_cuda_shared_image,     /* split halves, small images in shared memory */
    &mc_conv_cuda_taps,      /* split halves, gradients of filters with sums in registers */
    &mc_conv_cuda_col2im,    /* split halves, gradients of inputs: product with all taps, then scatter */
    &mc_conv_cuda_fft,       /* Fourier transforms of whole images */
    /* with float32 spectra where halves would do, which gain nothing for few channels */
    &mc_conv_cuda_fft_fine,
    &mc_conv_cuda_fft_tiling, /* Fourier transforms of tiles */
    &mc_conv_cuda_im2col,    /* windows as columns of a matrix product */
    &mc_conv_cuda_exchange,  /* positions and taps exchanged: forward as a gradient of weights, and back */
    &mc_conv_cuda_exchange_full, /* forward as a gradient of inputs, and back */
    &mc_conv_cuda_planes,    /* three axes: tap by tap along the first, planes as images */
    &mc_conv_cuda_bc01,      /* copied to that layout for the other solvers */
    &mc_conv_cuda_b01c,
    &mc_conv_cuda_space_to_depth,      /* phases of a strided image as channels */
    &mc_conv_cuda_unfused,     /* the bare convolution, then an epilogue kernel */
    &mc_conv_cuda_direct,    /* any problem; elements found by index */
    NULL,
};

/* ---- the family ---- */

/* Results that were timed without cuDNN do not hold for a machine with it. */
static void word(const struct mc_problem *p, struct mc_str *out)
{
    mc_conv_key(p, out);
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

/* Bias and activation.  The host's reference takes them as a function, so they are applied here. */
static void after(const struct mc_problem *p_, void *const *operand)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_array a = mc_conv_array(p, mc_conv_result(p->s.pass));
    mc_cuda_finish_on_host(&(struct mc_cuda_finish){ p->dtype, a.rank, 1, a.size, a.stride, p->act },
                           mc_conv_cuda_result(p, operand), p->has_bias ? operand[CONV_BIAS] : NULL);
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
    .key         = word,
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
        mc_fail(MC_EUNSUPPORTED, "conv: a GPU cannot call an epilogue function");
        return NULL;
    }
    if (mc_flag_int(FLAG_dnn_enabled) == DNN_REQUIRED && !mc_nv_found(NV_CUDNN)->present) {
        mc_fail(MC_EUNSUPPORTED, "conv: the flag dnn.enabled is True, and cuDNN was not found: %s",
                mc_nv_found(NV_CUDNN)->why);
        return NULL;
    }
    if (p->has_bias && p->s.pass != CONV_FORWARD) {
        mc_fail(MC_EARG, "conv: only a forward pass adds a bias");
        return NULL;
    }
    return mc_conv_plan_in(&mc_conv_cuda, p, o);
}
