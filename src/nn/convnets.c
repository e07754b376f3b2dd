/* convnets.c: layers of the cuda-convnet and Nervana families, with images c01b: channels, rows, columns,
 * batch.
 *
 * Invariant: with dimshuffle=true input, output and filters of a layer are bc01; the layer shuffles axes on
 * input and output. */
#include "nn/kind.h"

enum { C01B_RANK = 4 };

static bool is_rank_4(struct mc_nn_build *b)
{
    return mc_nn_rank(b, 0) == C01B_RANK ||
           mc_nn_refuse(b, NULL, "the input has rank %d; expected four axes", mc_nn_rank(b, 0));
}

/* The single number of a setting that must be square. */
static bool square(struct mc_nn_build *b, const char *field, int64_t least, int64_t *out)
{
    int64_t two[NN_MOST_AXES];
    if (!mc_nn_sizes(b, field, 2, least, two)) {
        return false;
    }
    *out = two[0];
    return two[0] == two[1] || mc_nn_refuse(b, field, "%s is %lldx%lld; it must be square", field,
                                            (long long)two[0], (long long)two[1]);
}

/* Default weights are drawn for filters (channels, rows, columns, filters). */
static void preset_c01b(struct mc_nn_build *b)
{
    static const char init[] = "glorot_uniform(c01b=true)";
    int i = mc_nn_field(&b->set, "W");
    if (!b->set.given[i]) {
        b->set.value[i] = (struct mc_nn_slice){ init, sizeof init - 1 };
    }
}

/* FilterActs: correlation with square filters. Its sizes are rounded up, and Lasagne's layer crops them
 * again. The result equals a convolution in this layout, which is used where rounding makes a difference. */
static void conv_cc(struct mc_nn_build *b)
{
    int64_t filters = mc_nn_int(&b->set, "filters"), taps, stride, pad;
    bool shuffle = mc_nn_bool(&b->set, "dimshuffle"), same = mc_nn_is(&b->set, "pad", "same"),
         full = mc_nn_is(&b->set, "pad", "full");
    if (!is_rank_4(b) || !mc_nn_known(b, "its filters", shuffle ? 1 : 0) || !square(b, "size", 1, &taps) ||
        !square(b, "stride", 1, &stride)) {
        return;
    }
    if (same || full) {
        pad = same ? taps / 2 : taps - 1;
    } else if (mc_nn_is(&b->set, "pad", "valid")) {
        pad = 0;
    } else if (!square(b, "pad", 0, &pad)) {
        return;
    }
    int64_t channels = mc_nn_dims(b, 0)[shuffle ? 1 : 0];
    if (filters < 1 || filters % 16) {
        mc_nn_refuse(b, "filters", "%lld filters; expected a multiple of 16", (long long)filters);
        return;
    }
    if (channels > 3 && channels % 4) {
        mc_nn_refuse(b, NULL, "the input has %lld channels; expected 1, 2, 3 or a multiple of 4",
                     (long long)channels);
        return;
    }
    if (!shuffle) {
        preset_c01b(b);
    }
    int64_t bc01[] = { filters, channels, taps, taps }, c01b[] = { channels, taps, taps, filters };
    mc_nn_let(b, "images", shuffle ? "bc01_to_c01b($x)" : "$x");
    mc_nn_let(b, "turned", shuffle ? "dimshuffle($W, [1, 2, 3, 0])" : "$W");
    mc_nn_let(b, "filters_", mc_nn_bool(&b->set, "flip") ? "$turned[:, ::-1, ::-1, :]" : "$turned");
    mc_nn_let_unless(b, "pad", pad == 0, pad);
    mc_nn_let_unless(b, "partial", mc_nn_is(&b->set, "partial_sum", "none"),
                     mc_nn_int(&b->set, "partial_sum"));
    if (stride == 1) {
        mc_nn_let(b, "conv", "%s", "filter_acts($images, $filters_{, pad=$pad}{, partial_sum=$partial})");
    } else {
        mc_nn_let(b, "stride", "%lld", (long long)stride);
        mc_nn_let(b, "conv", "%s",
                  "conv($images, $filters_{, border=$pad}, stride=$stride, flip=False, layout='c01b')");
    }
    if (shuffle) {
        b->form[0] = b->form[1] = "c01b_to_bc01($conv{ + $bias})";
    }
    if (mc_nn_weights(b, "W", REGULARIZABLE, 4, shuffle ? bc01 : c01b)) {
        mc_nn_bias(b, "$conv", C01B_RANK, 0, 3);
    }
}

/* Windows may extend beyond the end. The activation is applied before the axes are shuffled back. */
static void pool_cc(struct mc_nn_build *b)
{
    int64_t size, stride;
    if (!is_rank_4(b) || !square(b, "size", 1, &size)) {
        return;
    }
    stride = size;
    if (!mc_nn_is(&b->set, "stride", "size") && !square(b, "stride", 1, &stride)) {
        return;
    }
    if (stride > size) {
        mc_nn_refuse(b, "stride", "stride %lld is larger than the window, %lld", (long long)stride,
                     (long long)size);
        return;
    }
    mc_nn_let(b, "size", "%lld", (long long)size);
    mc_nn_let_unless(b, "stride", stride == size, stride);
    if (mc_nn_bool(&b->set, "dimshuffle")) {
        b->form[0] = b->form[1] = "c01b_to_bc01(max_pool(bc01_to_c01b($x), $size{, stride=$stride}))";
    }
}

/* A dense layer at each position: filters of one tap, (units, channels). */
static void nin_c01b(struct mc_nn_build *b)
{
    if (is_rank_4(b) && mc_nn_known(b, "its weights", 0)) {
        mc_nn_let(b, "conv", "%s", "conv($x, dimshuffle($W, [1, -1, -1, 0]), layout='c01b')");
        (void)(mc_nn_weights(b, "W", REGULARIZABLE, 2,
                             (int64_t[]){ mc_nn_int(&b->set, "units"), mc_nn_dims(b, 0)[0] }) &&
               mc_nn_bias(b, "$conv", C01B_RANK, 0, 3));
    }
}

/* Correlation along one to three axes; same pads (k - 1) // 2 here.  Filters: (filters, channels, taps), or
 * without shuffles (channels, taps, filters). */
static void nervana(struct mc_nn_build *b)
{
    int n = mc_nn_rank(b, 0) - 2;
    bool shuffle = mc_nn_bool(&b->set, "dimshuffle"), border = !mc_nn_is(&b->set, "border_mode", "none"),
         pad = !mc_nn_is(&b->set, "pad", "none");
    int64_t taps[NN_MOST_AXES], stride[NN_MOST_AXES], around[NN_MOST_AXES] = { 0 }, dims[NN_MOST_AXES],
                                                      filters = mc_nn_int(&b->set, "filters");
    if (n < 1 || n > 3) {
        mc_nn_refuse(b, NULL, "the input has rank %d; expected batch, channels and one to three spatial axes",
                     n + 2);
        return;
    }
    if (border && pad) {
        mc_nn_refuse(b, "border_mode", "border_mode and pad are both given; give only one of them");
        return;
    }
    if (!mc_nn_known(b, "its filters", shuffle ? 1 : 0) || !mc_nn_sizes(b, "size", n, 1, taps) ||
        !mc_nn_sizes(b, "stride", n, 1, stride) || (pad && !mc_nn_sizes(b, "pad", n, 0, around))) {
        return;
    }
    for (int i = 0; i < n && border; i++) {
        around[i] = mc_nn_is(&b->set, "border_mode", "same")   ? (taps[i] - 1) / 2
                    : mc_nn_is(&b->set, "border_mode", "full") ? taps[i] - 1
                                                               : 0;
    }
    if (!shuffle && n != 2 && !b->set.given[mc_nn_field(&b->set, "W")]) {
        mc_nn_refuse(
            b, NULL,
            "W must be given: with dimshuffle=false only filters of four axes have a default initial value");
        return;
    }
    if (!shuffle) {
        preset_c01b(b);
    }
    dims[0] = shuffle ? filters : mc_nn_dims(b, 0)[0];
    dims[shuffle ? 1 : n + 1] = shuffle ? mc_nn_dims(b, 0)[1] : filters;
    memcpy(dims + (shuffle ? 2 : 1), taps, (size_t)n * sizeof *dims);
    mc_nn_let_ints(b, "padding", n, around);
    mc_nn_let_ints(b, "strides", n, stride);
    mc_nn_let(b, "mode", shuffle ? "" : "False");
    mc_nn_let(b, "conv", "%s",
              "nervana_conv($x, $W, padding=$padding, strides=$strides{, dimshuffle=$mode})");
    if (mc_nn_weights(b, "W", REGULARIZABLE, n + 2, dims)) {
        mc_nn_bias(b, "$conv", n + 2, shuffle ? 1 : 0, shuffle ? 0 : n + 1);
    }
}

#define FILTERS { "filters", NN_COUNT, NULL }, { "size", NN_SIZES, NULL }, ACT("rectify")
#define SHUFFLE { "dimshuffle", NN_BOOL, "true" }
const struct mc_nn_kind mc_nn_convnets[] = {
    { "conv_cc",      "cuda-convnet's FilterActs: correlation, square filters; dimshuffle=false: c01b", 1,
      { FILTERS, { "stride", NN_SIZES, "1" }, { "pad", NN_SIZES, "0", "valid|full|same" }, SHUFFLE, { "flip", NN_BOOL, "false" },
        { "partial_sum", NN_TEXT, "1" }, WEIGHT, BIAS },
      conv_cc,        "$conv{ + $bias}", NULL },
    { "pool_cc",      "cuda-convnet's MaxPool: square windows that may extend past the end",             1,
      { { "size", NN_SIZES, NULL }, { "stride", NN_SIZES, "size", "size" }, SHUFFLE },
      pool_cc,        "max_pool($x, $size{, stride=$stride})", NULL },
    { "bc01_to_c01b", "images brought to the layout of cuda-convnet: channels, rows, columns, batch",                       1, { END }, NULL, "bc01_to_c01b($x)", NULL },
    { "c01b_to_bc01", "images of cuda-convnet brought to batch, channels, rows, columns",                                                                      1, { END }, NULL, "c01b_to_bc01($x)", NULL },
    { "nin_c01b",     "a dense layer across channels at each position of c01b images",                                    1,
      { { "units", NN_COUNT, NULL }, ACT("rectify"), WEIGHT, BIAS },
      nin_c01b,       "$conv{ + $bias}", NULL },
    { "nervana_conv", "Nervana's correlation; border_mode: valid, full or same, or pad",               1,
      { FILTERS, { "stride", NN_SIZES, "1" }, { "border_mode", NN_WORD, "none", "none|valid|full|same" }, { "pad", NN_SIZES, "none", "none" }, SHUFFLE, WEIGHT, BIAS },
      nervana,        "$conv{ + $bias}", NULL },
    LAST_KIND,
};
