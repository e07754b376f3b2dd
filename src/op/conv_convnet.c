/* conv_convnet.c: the interfaces of cuda-convnet and of Nervana's GPU kernels, as nodes of conv.c.
 *
 * cuda-convnet: images are (channels, rows, columns, batch), the op is a correlation, and sizes are
 * rounded up, so that the last window may extend beyond the image. The limits of the original kernels
 * apply only with strict=True, as errors, those of its gradients where these are derived. Nervana: the rank
 * of x gives the number of spatial axes. With dimshuffle=False axes have cuda-convnet's order, with
 * dimshuffle=True images come first. */
#include "op/conv_node.h"

static int64_t yes = 1, no = 0; /* storage for the values of attributes */
static const struct mc_attr True = { .kind = ATTR_BOOL, .n = 1, .ints = &yes }, False = { .kind = ATTR_BOOL, .n = 1, .ints = &no };

/* ---- cuda-convnet ---- */

enum { FILTER = 1, IMAGE = 2, WEIGHT = 4 };
enum { A_PAD, A_PARTIAL, A_STRIDE, A_STRICT };

/* The limits of each op. x: images, w: filters, y: the result; an op has some of the three. s: stride, k:
 * partial_sum, where None and 0 add all positions at once. */
static const struct { unsigned ops; const char *holds, *says; bool partial; } limits[] = {
    { FILTER | IMAGE, "size(w, 1) == size(w, 2)", "strict: the filters must be square" },
    { FILTER | IMAGE, "s <= size(w, 1)", "strict: the stride must not be larger than the filters" },
    { FILTER | IMAGE, "size(w, 3) % 16 == 0", "strict: the number of filters must be a multiple of 16" },
    { FILTER | IMAGE, "(size(w, 0) <= 3) | (size(w, 0) % 2 == 0)", "strict: there must be 1, 2, 3 or an even number of channels" },
    { WEIGHT,         "(size(x, 0) <= 3) | (size(x, 0) % 4 == 0)", "strict: there must be 1, 2, 3 or a multiple of 4 channels" },
    { WEIGHT,         "size(y, 0) % 16 == 0", "strict: the number of filters must be a multiple of 16" },
    { WEIGHT,         "size(y, 1) * size(y, 2) % k == 0", "strict: partial_sum must divide the number of positions", .partial = true },
};

/* The operand, with checks of the limits attached. Callers pass the filters where there are any, because
 * they are smaller. */
static mc_node *within_limits(unsigned op, mc_node *operand, mc_node *const *xwy, const struct mc_attr *attr)
{
    mc_graph *g = operand->graph;
    struct mc_bind b[5] = { { "x", xwy[CONV_X], NULL },
                            { "w", xwy[CONV_W], NULL },
                            { "y", xwy[CONV_Y], NULL },
                            { "s", NULL, &attr[A_STRIDE] },
                            { "k", NULL, &attr[A_PARTIAL] } };
    const bool parts = !attr[A_PARTIAL].none && mc_attr_int(&attr[A_PARTIAL]) > 0;
    if (operand->type.dtype != MC_FLOAT32) {
        return mc_node_fail(g, MC_ETYPE, "strict: float32 is needed, not %s",
                            mc_dtype_name(operand->type.dtype));
    }
    for (size_t i = 0; i < NELEM(limits) && !mc_is_error(operand); i++) {
        if (limits[i].ops & op && !(limits[i].partial && !parts)) {
            operand = mc_hold(operand, mc_expr(g, limits[i].holds, b, 5), limits[i].says);
        }
    }
    return operand;
}

/* The filters, whose gradient is weight_acts', which has limits of its own. y: the result, or its gradient */
static mc_node *within_limits_of_gradient(mc_node *filters, mc_node *y, const struct mc_attr *attr)
{
    /* x: only its first axis is looked at, and filters have as many channels as the images */
    struct mc_bind b[3] = { { "x", filters, NULL }, { "y", y, NULL }, { "k", NULL, &attr[A_PARTIAL] } };
    const bool parts = !attr[A_PARTIAL].none && mc_attr_int(&attr[A_PARTIAL]) > 0;
    for (size_t i = 0; i < NELEM(limits) && !mc_is_error(filters); i++) {
        if (limits[i].ops & WEIGHT && !(limits[i].partial && !parts)) {
            const struct mc_attr says = { .kind = ATTR_TEXT, .text = limits[i].says };
            mc_node *in[2] = { filters, mc_expr(filters->graph, limits[i].holds, b, 3) };
            filters = mc_is_error(in[1]) ? in[1]
                                         : mc_apply(filters->graph,
                                                    mc_op_named(filters->graph, "grad_assert"), 2, in, &says);
        }
    }
    return filters;
}

static mc_node *acts(mc_graph *g, unsigned op, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    static const struct mc_attr layout = { .kind = ATTR_TEXT, .text = "c01b" };
    enum mc_conv_pass pass = op == FILTER ? CONV_FORWARD : op == IMAGE ? CONV_INPUTS : CONV_WEIGHTS;
    mc_node *arg[3] = { in[op == IMAGE], in[op != IMAGE],
                        nin > 2 ? in[2] : NULL }; /* hid_acts come before filters */
    const struct mc_attr *given[CONV_NATTR] = { [CONV_BORDER] = &attr[A_PAD], [CONV_STRIDE] = &attr[A_STRIDE], [CONV_FLIP] = &False,
                                                [CONV_LAYOUT] = &layout, [CONV_CEIL] = &True };
    mc_node *xwy[3] = { NULL };
    for (int r = 0; r < 3; r++) {
        int from = mc_conv_operand[pass][r];
        xwy[r] = from >= 0 ? arg[from] : NULL;
    }
    if (arg[0]->type.rank != 4 || arg[1]->type.rank != 4) {
        return mc_node_fail(g, MC_ESHAPE, "the ranks are %d and %d; both must be 4", in[0]->type.rank,
                            in[1]->type.rank);
    }
    if (!attr[A_PARTIAL].none && mc_attr_int(&attr[A_PARTIAL]) < 0) {
        return mc_node_fail(
            g, MC_EARG, "partial_sum is %lld; expected a number of positions, or 0 or None for all of them",
            (long long)mc_attr_int(&attr[A_PARTIAL]));
    }
    if (mc_attr_int(&attr[A_STRICT])) {
        mc_node **smaller = &arg[op != IMAGE]; /* the filters, or y */
        *smaller = within_limits(op, *smaller, xwy, attr);
        if (!mc_is_error(*smaller) && op != WEIGHT) {
            mc_node *y = op == IMAGE ? xwy[CONV_Y] : mc_conv_make(g, pass, 3, arg, given);
            *smaller = mc_is_error(y) ? y : within_limits_of_gradient(*smaller, y, attr);
        }
        if (mc_is_error(*smaller)) {
            return *smaller;
        }
    }
    return mc_conv_make(g, pass, 3, arg, given);
}

static mc_node *build_filter_acts(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return acts(g, FILTER, nin, in, attr);
}

static mc_node *build_image_acts(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return acts(g, IMAGE, nin, in, attr);
}

static mc_node *build_weight_acts(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return acts(g, WEIGHT, nin, in, attr);
}

/* ---- Nervana ---- */

enum { N_PADDING, N_STRIDES, N_DIMSHUFFLE, N_RELU };

static mc_node *relu_if(mc_node *y, const struct mc_attr *relu)
{
    return mc_attr_int(relu) && !mc_is_error(y) ? mc_call_op(y->graph, "relu", 1, &y, NULL) : y;
}

static mc_node *build_nervana_conv(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    static const struct mc_attr last[3] = { { .text = "c0b" }, { .text = "c01b" }, { .text = "c012b" } },
                                half = { .text = "half" };
    int nd = in[0]->type.rank - 2;
    const struct mc_attr *padding = &attr[N_PADDING];
    bool same = padding->text && strcmp(padding->text, "same") == 0; /* here k // 2 on each side: 'half' */
    const struct mc_attr *given[CONV_NATTR] = { [CONV_BORDER] = padding->none ? NULL : same ? &half : padding, [CONV_STRIDE] = &attr[N_STRIDES],
                                                [CONV_FLIP] = &False };
    if (nd < 1 || nd > 3 || in[1]->type.rank != nd + 2) {
        return mc_node_fail(g, MC_ESHAPE, "images and filters have ranks %d and %d; both must be from 3 to 5",
                            nd + 2, in[1]->type.rank);
    }
    given[CONV_LAYOUT] = mc_attr_int(&attr[N_DIMSHUFFLE]) ? NULL : &last[nd - 1];
    return relu_if(mc_conv_make(g, CONV_FORWARD, nin, in, given), &attr[N_RELU]);
}

static mc_node *build_nervana_dot(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    if (in[0]->type.rank != 2 || in[1]->type.rank != 2) {
        return mc_node_fail(g, MC_ESHAPE, "the ranks are %d and %d; both must be 2", in[0]->type.rank,
                            in[1]->type.rank);
    }
    return relu_if(mc_call_op(g, "dot", nin, in, NULL), &attr[0]);
}

#define ACTS "pad=0:int, partial_sum=None:int, stride=1:int, strict=False:bool"
const struct mc_op mc_ops_conv_kin[] = {
    { .name = "filter_acts", .params = "images, filters, " ACTS, .nout = 1, .build = build_filter_acts,
      .doc = MANUAL("cuda-convnet's FilterActs: correlation of images (channels, rows, columns, batch) with filters (channels, rows, columns, "
             "filters), ceil((i + 2*pad - k)/stride) + 1 positions along an axis; strict: shapes beyond the limits of cuda-convnet's kernels are errors, those of weight_acts where the gradient of the filters is derived") },
    { .name = "image_acts", .params = "hid_acts, filters, output_shape=None, " ACTS, .nout = 1, .build = build_image_acts,
      .doc = MANUAL("cuda-convnet's ImageActs: the gradient of filter_acts with respect to its images, whose rows and columns are output_shape") },
    { .name = "weight_acts", .params = "images, hid_grads, output_shape=None, " ACTS, .nout = 1, .build = build_weight_acts,
      .doc = MANUAL("cuda-convnet's WeightActs: the gradient of filter_acts with respect to its filters, whose rows and columns are "
             "output_shape; partial_sum only sets the order of summation; the partial sums are not returned") },
    { .name = "nervana_conv", .params = "input_, filters, padding=None:border, strides=1:ints, dimshuffle=True:bool, relu=False:bool",
      .nout = 1, .build = build_nervana_conv,
      .doc = MANUAL("correlation along 1 to 3 axes; padding: valid, full, half or same (both k // 2), or numbers; "
             "dimshuffle=False: axes in the order channels, positions, batch, with filters last; relu: relu "
             "is applied to the result") },
    { .name = "nervana_dot", .params = "x, y, relu=False:bool", .nout = 1, .build = build_nervana_dot,
      .example = MANUAL("x = [[1., 2, 3], [4, 5, 6]]; y = [[1., 0], [2, -1], [0, 1]]; nervana_dot(x, y)"),
      .doc = MANUAL("the product of two matrices; relu: relu is applied to the result") },
};
const int mc_nops_conv_kin = (int)NELEM(mc_ops_conv_kin);
