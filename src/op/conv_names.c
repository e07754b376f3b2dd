/* conv_names.c: convolution under the names of other libraries: Theano's abstract convolutions and their
 * gradients, its GEMM and cuDNN ops, and transposed, separable and causal convolution.
 *
 * Invariant: no node has these names. Each row makes nodes of conv.c, with the defaults of its library:
 * corrmm correlates, all others convolve (flip the filter) unless told otherwise. */
#include "op/conv_node.h"

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

/* x, which must have this many axes, with a promise of these sizes; -1: unknown. */
static mc_node *build_with_rank(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    if (!attr[0].none && in[0]->type.rank != mc_attr_int(&attr[0])) {
        return mc_node_fail(g, MC_ESHAPE, "an argument has rank %d; expected %d", in[0]->type.rank,
                            (int)mc_attr_int(&attr[0]));
    }
    return attr[1].none ? in[0] : mc_apply(g, mc_op_named(g, "specify_shape"), 1, in, &attr[1]);
}

/* ---- conv_transpose ---- */

enum { T_BORDER, T_STRIDE, T_DILATION, T_GROUPS, T_FLIP, T_LAYOUT, T_PADDING };

/* The shape (o - 1) * s + e - p along each spatial axis, plus output_padding, which selects one of the s
 * sizes that give the same o. */
static mc_node *smallest(mc_graph *g, mc_node *const *in, const struct mc_conv_form *f,
                         const struct mc_attr *more)
{
    mc_node *size[3];
    for (int i = 0; i < f->nd; i++) {
        int slot = 3 - f->nd + i;
        mc_node *k = mc_size_of(in[1], f->w[2 + slot]), *o = mc_size_of(in[0], f->y[2 + slot]);
        struct mc_bind b[4] = { { "o", o, NULL },
                                { "s", mc_node_int(g, f->stride[slot]), NULL },
                                { "m", mc_conv_margin(f, slot, k), NULL },
                                { "more", mc_node_int(g, more->ints[more->n == 1 ? 0 : i]), NULL } };
        int64_t v[2];
        int n;
        if (mc_const_ints(o, &v[0], 1, &n) && mc_const_ints(b[2].node, &v[1], 1, &n)) {
            size[i] = mc_node_int(g, (v[0] - 1) * f->stride[slot] - v[1] + more->ints[more->n == 1 ? 0 : i]);
        } else {
            size[i] = mc_expr(g, "(o - 1) * s - m + more", b, 4);
        }
        if (mc_is_error(size[i])) {
            return size[i];
        }
    }
    return mc_shape_stack(g, f->nd, size);
}

static mc_node *build_transpose(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mc_attr *given[CONV_NATTR] = { [CONV_BORDER] = &attr[T_BORDER], [CONV_STRIDE] = &attr[T_STRIDE],
        [CONV_DILATION] = &attr[T_DILATION], [CONV_GROUPS] = &attr[T_GROUPS], [CONV_FLIP] = &attr[T_FLIP], [CONV_LAYOUT] = &attr[T_LAYOUT] };
    const struct mc_attr *more = &attr[T_PADDING];
    mc_node *arg[3] = { in[1], in[0], nin > 2 ? in[2] : NULL };
    struct mc_attr all[CONV_NATTR];
    struct mc_conv_form f;
    int nd = in[0]->type.rank - 2;
    if (nd < 1 || nd > 3 || in[1]->type.rank != nd + 2) {
        return mc_node_fail(g, MC_ESHAPE, "x and w have ranks %d and %d; both must be from 3 to 5", nd + 2,
                            in[1]->type.rank);
    }
    if (arg[2] && (more->n != 1 || more->ints[0] != 0)) {
        return mc_node_fail(g, MC_EARG, "shape and output_padding are both given; give only one of them");
    }
    if (more->n != 1 && more->n != nd) {
        return mc_node_fail(g, MC_EARG, "output_padding has %d numbers; expected 1 or %d", more->n, nd);
    }
    mc_conv_attrs(mc_op_named(g, "conv_inputs"), given, all);
    if (mc_conv_form_read(CONV_INPUTS, nd, all, &f) < 0) {
        return failed(g);
    }
    arg[2] = arg[2] ? arg[2] : smallest(g, in, &f, more);
    return mc_is_error(arg[2]) ? arg[2] : mc_conv_make(g, CONV_INPUTS, 3, arg, given);
}

/* ---- Theano's GEMM ops ---- */

enum { G_BORDER, G_STRIDE, G_DILATION, G_GROUPS, G_UNSHARED, G_PAD };

/* pad is the older argument for a border in numbers. 'auto' is the border that makes the valid correlation
 * a full one. */
static mc_node *gemm(mc_graph *g, enum mc_conv_pass pass, int nin, mc_node *const *in,
                     const struct mc_attr *attr)
{
    int64_t flips = 0;
    struct mc_attr flip = { .kind = ATTR_BOOL, .n = 1, .ints = &flips };
    const struct mc_attr *border = &attr[G_BORDER], *pad = &attr[G_PAD];
    const struct mc_attr full = { .kind = ATTR_BORDER, .text = "full" };
    const bool automatic = pad->text && strcmp(pad->text, "auto") == 0;
    if (!pad->none && !(border->text && (strcmp(border->text, "valid") == 0 ||
                                         (automatic && strcmp(border->text, "full") == 0)))) {
        return mc_node_fail(g, MC_EARG, "pad is the old name of border_mode; give only one of them");
    }
    border = automatic ? &full : pad->none ? border : pad;
    const struct mc_attr *given[CONV_NATTR] = { [CONV_BORDER] = border, [CONV_STRIDE] = &attr[G_STRIDE], [CONV_DILATION] = &attr[G_DILATION],
        [CONV_GROUPS] = &attr[G_GROUPS], [CONV_FLIP] = &flip, [CONV_UNSHARED] = &attr[G_UNSHARED] };
    return mc_conv_make(g, pass, nin, in, given);
}

static mc_node *build_corrmm(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return gemm(g, CONV_FORWARD, nin, in, attr);
}

static mc_node *build_corrmm_weights(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return gemm(g, CONV_WEIGHTS, nin, in, attr);
}

static mc_node *build_corrmm_inputs(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return gemm(g, CONV_INPUTS, nin, in, attr);
}

/* ---- cuDNN's ---- */

enum { D_BORDER, D_STRIDE, D_DILATION, D_MODE, D_HINT, D_WORKMEM, D_ALGO, D_PRECISION, D_GROUPS };
#define DNN_ATTRS                                                                                            \
    "border_mode=valid:border, subsample=1:ints, dilation=1:ints, conv_mode=conv:text, direction_hint=None:text, " \
    "workmem=None:text, algo=None:text, precision=None:text, num_groups=1:int"

/* One of `n` words, or None. */
static bool is_word(const struct mc_attr *a, int n, const char *const *word)
{
    bool found = a->none;
    for (int i = 0; i < n && !found; i++) {
        found = strcmp(a->text, word[i]) == 0;
    }
    return found;
}

static mc_node *dnn(mc_graph *g, enum mc_conv_pass pass, int nin, mc_node *const *in,
                    const struct mc_attr *attr)
{
    static const char *const modes[] = { "conv", "cross" }, *const hints[] = { "forward", "forward!",
                                                                               "bprop weights",
                                                                               "bprop inputs" };
    int64_t flips = 0;
    if (attr[D_MODE].none || !is_word(&attr[D_MODE], NELEM(modes), modes)) {
        return mc_node_fail(g, MC_EARG, "unknown conv_mode '%s'; expected conv or cross",
                            attr[D_MODE].none ? "None" : attr[D_MODE].text);
    }
    if (!is_word(&attr[D_HINT], NELEM(hints), hints)) {
        return mc_node_fail(
            g, MC_EARG,
            "unknown direction_hint '%s'; expected forward, forward!, bprop weights or bprop inputs",
            attr[D_HINT].text);
    }
    if (!attr[D_WORKMEM].none && !attr[D_ALGO].none) {
        return mc_node_fail(g, MC_EARG, "workmem is the old name of algo; give only one of them");
    }
    flips = strcmp(attr[D_MODE].text, "conv") == 0;
    struct mc_attr flip = { .kind = ATTR_BOOL, .n = 1, .ints = &flips };
    const struct mc_attr *given[CONV_NATTR] = { [CONV_BORDER] = &attr[D_BORDER], [CONV_STRIDE] = &attr[D_STRIDE],
        [CONV_DILATION] = &attr[D_DILATION], [CONV_GROUPS] = &attr[D_GROUPS], [CONV_FLIP] = &flip,
        [CONV_ALGO] = attr[D_ALGO].none ? &attr[D_WORKMEM] : &attr[D_ALGO], [CONV_PRECISION] = &attr[D_PRECISION] };
    return mc_conv_make(g, pass, nin, in, given);
}

static mc_node *build_dnn_conv(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return dnn(g, CONV_FORWARD, nin, in, attr);
}

static mc_node *build_dnn_gradinput(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return dnn(g, CONV_INPUTS, nin, in, attr);
}

static mc_node *build_dnn_gradweight(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return dnn(g, CONV_WEIGHTS, nin, in, attr);
}

/* The shape of dnn_conv's result from two shapes: (i + m) // stride + 1 positions along an axis, where the
 * margin m is the padding less the extent of the filter. */
static mc_node *build_out_shape(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mc_attr *given[CONV_NATTR] = { [CONV_BORDER] = &attr[D_BORDER], [CONV_STRIDE] = &attr[D_STRIDE],
                                                [CONV_DILATION] = &attr[D_DILATION] };
    const int64_t known[2] = { in[0]->type.dims[0], in[1]->type.dims[0] };
    const int n = (int)MC_MIN(MC_MAX(known[0], known[1]), 6);
    struct mc_attr all[CONV_NATTR];
    struct mc_conv_form f;
    mc_node *size[5];
    (void)nin;
    for (int i = 0; i < 2; i++) {
        if (in[i]->type.rank != 1 || !mc_is_int(in[i]->type.dtype) || n < 3 || n > 5 ||
            (known[i] >= 0 && known[i] != n)) {
            return mc_node_fail(g, MC_ESHAPE,
                                "get_out_shape: ishape and kshape must be vectors of 3, 4 or 5 integers");
        }
    }
    mc_conv_attrs(mc_op_named(g, "conv"), given, all);
    if (mc_conv_form_read(CONV_FORWARD, n - 2, all, &f) < 0) {
        return failed(g);
    }
    for (int i = 0; i < n; i++) {
        const int slot = 3 - n + i; /* of a spatial axis, i >= 2 */
        struct mc_bind b[4] = { { "x", in[i == 1], NULL }, { "i", mc_node_int(g, i == 1 ? 0 : i), NULL } };
        size[i] = mc_expr(g, "x[i]", b, 2);
        if (i > 1 && !mc_is_error(size[i])) {
            mc_node *k = mc_expr(g, "x[i]", (struct mc_bind[]){ { "x", in[1], NULL }, b[1] }, 2);
            b[0].node = size[i];
            b[2] = (struct mc_bind){ "m", mc_is_error(k) ? k : mc_conv_margin(&f, slot, k), NULL };
            b[3] = (struct mc_bind){ "s", mc_node_int(g, f.stride[slot]), NULL };
            size[i] = mc_expr(g, "(x + m) // s + 1", b, 4);
        }
        if (mc_is_error(size[i])) {
            return size[i];
        }
    }
    return mc_shape_stack(g, n, size);
}

/* ---- rows ---- */

#define STEPS "subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool"
#define BORDER "border_mode=valid:border, "
#define SIZES "input_shape=None:ints, filter_shape=None:ints, "
#define PASS_FLIP(border, stride, flip, groups)                                                    \
    ", border=" border ", stride=" stride ", dilation=filter_dilation, groups=" groups ", flip=" flip
#define PASS PASS_FLIP("border_mode", "subsample", "filter_flip", "num_groups") ", unshared=unshared)"

#define ABSTRACT(nd, rank)                                                                                   \
    { .name = "conv" nd "d", .params = "x, w, " SIZES BORDER STEPS, .nout = 1,                               \
      .formula = "conv(with_rank(x, " rank ", input_shape), with_rank(w, sizes=filter_shape)" PASS,          \
      .doc = MANUAL("conv along ") nd " axes, with the argument names of Theano's conv" nd "d; shapes are promises, "    \
             "-1: unknown" }
#define GRADIENTS(nd, rank)                                                                                  \
    { .name = "conv" nd "d_grad_wrt_inputs", .params = "output_grad, filters, input_shape=None, filter_shape=None:ints, " BORDER STEPS, \
      .nout = 1,                                                                                             \
      .formula = "conv_inputs(with_rank(filters, sizes=filter_shape), with_rank(output_grad, " rank "), input_shape" PASS, \
      .doc = MANUAL("the gradient of conv") nd "d with respect to its images, which have input_shape" },             \
    { .name = "conv" nd "d_grad_wrt_weights", .params = "input_, output_grad, filter_shape=None, input_shape=None:ints, " BORDER STEPS, \
      .nout = 1,                                                                                             \
      .formula = "conv_weights(with_rank(input_, " rank ", input_shape), output_grad, filter_shape" PASS,    \
      .doc = MANUAL("the gradient of conv") nd "d with respect to its filters, which have filter_shape" },           \
    { .name = "conv" nd "d_transpose", .nout = 1,                                                            \
      .params = "x, filters, output_shape=None, filter_shape=None:ints, " BORDER                             \
                "input_dilation=1:ints, filter_flip=True:bool, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool", \
      .formula = "conv_inputs(with_rank(filters, sizes=filter_shape), with_rank(x, " rank "), output_shape"  \
                 PASS_FLIP("border_mode", "input_dilation", "filter_flip", "num_groups") ", unshared=unshared)", \
      .doc = MANUAL("conv") nd "d_grad_wrt_inputs under another name; filters are those of the forward convolution" }, \
    { .name = "separable_conv" nd "d", .nout = 1,                                                            \
      .params = "x, depthwise_filters, pointwise_filters, num_channels:int, " BORDER                         \
                "subsample=1:ints, filter_flip=True:bool, filter_dilation=1:ints, input_shape=None:ints, "   \
                "depthwise_filter_shape=None:ints, pointwise_filter_shape=None:ints",                        \
      .formula = "conv(conv(with_rank(x, " rank ", input_shape), with_rank(depthwise_filters, " rank ", depthwise_filter_shape)" \
                 PASS_FLIP("border_mode", "subsample", "filter_flip", "num_channels")                        \
                 "), with_rank(pointwise_filters, " rank ", pointwise_filter_shape), flip=filter_flip)",     \
      .doc = MANUAL("depthwise convolution of num_channels channels, then a convolution across channels, ") \
             "usually of one tap" }

#define GEMM "border_mode=valid:border, subsample=1:ints, filter_dilation=1:ints, num_groups=1:int, unshared=False:bool, pad=None:border"
#define PASS_DNN                                                                                             \
    ", border_mode=border_mode, subsample=subsample, dilation=dilation, conv_mode=conv_mode, direction_hint=direction_hint, " \
    "workmem=workmem, algo=algo, precision=precision, num_groups=num_groups)"

const struct mc_op mc_ops_conv_names[] = {
    { .name = "with_rank", .flags = OP_HIDDEN, .params = "x, ndim=None:int, sizes=None:ints", .nout = 1, .build = build_with_rank,
      .doc = MANUAL("x, checked to have ndim axes, with a promise of these sizes") },
    ABSTRACT("1", "3"),
    ABSTRACT("2", "4"),
    ABSTRACT("3", "5"),
    { .name = "corr2d", .nout = 1, .params = "input_, filters, input_shape=None:ints, filter_shape=None:ints, border_mode=valid:border, subsample=1:ints",
      .formula = "conv2d(input_, filters, input_shape=input_shape, filter_shape=filter_shape, border_mode=border_mode, subsample=subsample, filter_flip=False)",
      .doc = "conv2d whose filters are not turned round" },
    GRADIENTS("2", "4"),
    GRADIENTS("3", "5"),
    { .name = "conv_transpose", .nout = 1, .build = build_transpose,
      .params = "x, w, shape=None, border=valid:border, stride=1:ints, dilation=1:ints, groups=1:int, flip=True:bool, layout=None:text, "
                "output_padding=0:ints",
      .doc = MANUAL("transposed convolution: the result has (o - 1)*s + (k - 1)*d + 1 - p + output_padding positions "
             "along an axis, or the given shape; w has the layout of conv: the channels of x are the filters "
             "of w") },
    { .name = "causal_conv1d", .nout = 1, .params = "x, w, filter_shape=None:ints, input_shape=None:ints, " STEPS,
      .formula = "conv(with_rank(x, 3, input_shape), with_rank(w, sizes=filter_shape)"
                 PASS_FLIP("'causal'", "subsample", "filter_flip", "num_groups") ", unshared=unshared)",
      .doc = MANUAL("conv1d whose result at t depends on x up to t: dilation*(k - 1) zeros are added in front") },
    { .name = "corrmm", .params = "x, w, " GEMM, .nout = 1, .build = build_corrmm,
      .doc = MANUAL("correlation with the argument names of Theano's CorrMM: conv with flip=False; pad is the old name of border_mode") },
    { .name = "corrmm_grad_weights", .params = "x, topgrad, shape=None, " GEMM, .nout = 1, .build = build_corrmm_weights,
      .doc = MANUAL("the gradient of corrmm with respect to its filters") },
    { .name = "corrmm_grad_inputs", .params = "w, topgrad, shape=None, " GEMM, .nout = 1, .build = build_corrmm_inputs,
      .doc = MANUAL("the gradient of corrmm with respect to its images") },
    { .name = "dnn_conv", .params = "img, kerns, " DNN_ATTRS, .nout = 1, .build = build_dnn_conv,
      .doc = MANUAL("conv with the argument names of Theano's cuDNN module; conv_mode: conv flips the filter, cross "
             "does not; algo: the requested solver; direction_hint is checked, but the planner decides") },
    { .name = "dnn_gradinput", .params = "kerns, topgrad, img_shp, " DNN_ATTRS, .nout = 1, .build = build_dnn_gradinput,
      .doc = MANUAL("the gradient of dnn_conv with respect to images of shape img_shp") },
    { .name = "dnn_gradweight", .params = "img, topgrad, kerns_shp, " DNN_ATTRS, .nout = 1, .build = build_dnn_gradweight,
      .doc = MANUAL("the gradient of dnn_conv with respect to filters of shape kerns_shp") },
    { .name = "get_out_shape", .params = "ishape, kshape, border_mode=valid:border, subsample=1:ints, dilation=1:ints", .nout = 1,
      .build = build_out_shape, .example = MANUAL("get_out_shape([2, 3, 28, 28], [8, 3, 5, 5], 'half', [2, 2])"),
      .doc = MANUAL("the shape of the result of dnn_conv, for images of shape ishape and filters of shape kshape") },
    { .name = "dnn_conv3d", .params = "img, kerns, " DNN_ATTRS, .nout = 1, .formula = "dnn_conv(with_rank(img, 5), kerns" PASS_DNN,
      .doc = MANUAL("dnn_conv along 3 axes") },
    { .name = "dnn_gradinput3d", .params = "kerns, topgrad, img_shp, " DNN_ATTRS, .nout = 1,
      .formula = "dnn_gradinput(with_rank(kerns, 5), topgrad, img_shp" PASS_DNN, .doc = MANUAL("dnn_gradinput along 3 axes") },
    { .name = "dnn_gradweight3d", .params = "img, topgrad, kerns_shp, " DNN_ATTRS, .nout = 1,
      .formula = "dnn_gradweight(with_rank(img, 5), topgrad, kerns_shp" PASS_DNN, .doc = MANUAL("dnn_gradweight along 3 axes") },
};
const int mc_nops_conv_names = (int)NELEM(mc_ops_conv_names);
