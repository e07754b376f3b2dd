/* convs.c: convolutions along one to three axes, by the input's rank.
 *
 * Invariant: images are (batch, channels, positions), filters (filters, channels / groups, taps), as in
 * Lasagne; sizes are those of the op conv. */
#include "nn/kind.h"

#define FILTERS { "filters", NN_COUNT, NULL }, { "size", NN_SIZES, NULL }, ACT("rectify")
#define PAD(preset) { "pad", NN_SIZES, preset, "valid|full|same|half" }
#define STRIDE { "stride", NN_SIZES, "1" }
#define FLIP(preset) { "flip", NN_BOOL, preset }
#define GROUPS { "groups", NN_COUNT, "1" }

struct sizes {
    int n; /* spatial axes */
    int64_t filters, channels, groups, taps[NN_MOST_AXES];
};

static bool read_sizes(struct mc_nn_build *b, struct sizes *z)
{
    z->n = mc_nn_rank(b, 0) - 2;
    if (z->n < 1 || z->n > 3) {
        return mc_nn_refuse(b, NULL,
                            "the input has rank %d; expected batch, channels and one to three spatial axes",
                            z->n + 2);
    }
    if (!mc_nn_known(b, "its filters", 1) || !mc_nn_sizes(b, "size", z->n, 1, z->taps)) {
        return false;
    }
    z->filters = mc_nn_int(&b->set, "filters");
    z->channels = mc_nn_dims(b, 0)[1];
    z->groups = mc_nn_field(&b->set, "groups") < 0 ? 1 : mc_nn_int(&b->set, "groups");
    if (z->filters < 1 || z->groups < 1 || z->filters % z->groups || z->channels % z->groups) {
        return mc_nn_refuse(b, z->groups == 1 ? "filters" : "groups",
                            "%lld filters and %lld channels cannot be divided into %lld groups",
                            (long long)z->filters, (long long)z->channels, (long long)z->groups);
    }
    return true;
}

/* Fills the hole `border`: empty for the op's default, else a word such as 'same' or a list of numbers. */
static bool let_border(struct mc_nn_build *b, const char *field, int n)
{
    int64_t pad[NN_MOST_AXES];
    struct mc_nn_slice v = mc_nn_get(&b->set, field);
    if (mc_nn_same(v, "valid") || mc_nn_same(v, "0")) {
        mc_nn_let(b, "border", "%s", "");
    } else if (mc_nn_list(v, pad, NN_MOST_AXES) < 0) {
        mc_nn_let(b, "border", "'%.*s'", (int)v.n, v.s);
    } else if (mc_nn_sizes(b, field, n, 0, pad)) {
        mc_nn_let_ints(b, "border", n, pad);
    }
    return !b->failed;
}

static bool let_steps(struct mc_nn_build *b, const char *field, int n)
{
    int64_t step[NN_MOST_AXES];
    if (!mc_nn_sizes(b, field, n, 1, step)) {
        return false;
    }
    bool ones = true;
    for (int i = 0; i < n; i++) {
        ones &= step[i] == 1;
    }
    mc_nn_let_ints(b, field, n, step);
    if (ones) {
        mc_nn_let(b, field, "%s", "");
    }
    return !b->failed;
}

static bool let_filters(struct mc_nn_build *b, const struct sizes *z, int64_t first, int64_t second)
{
    int64_t dims[NN_MOST_AXES] = { first, second };
    memcpy(dims + 2, z->taps, (size_t)z->n * sizeof *dims);
    return mc_nn_weights(b, "W", REGULARIZABLE, z->n + 2, dims);
}

static void conv(struct mc_nn_build *b)
{
    struct sizes z;
    if (!read_sizes(b, &z) || !let_border(b, "pad", z.n) || !let_steps(b, "stride", z.n) ||
        !let_steps(b, "dilation", z.n) || !let_filters(b, &z, z.filters, z.channels / z.groups)) {
        return;
    }
    b->layer->flips = mc_nn_bool(&b->set, "flip");
    mc_nn_let(b, "flip", "%s", b->layer->flips ? "" : "False");
    mc_nn_let_unless(b, "groups", z.groups == 1, z.groups);
    mc_nn_let(b, "conv", "%s",
              "conv($x, $W{, border=$border}{, stride=$stride}{, dilation=$dilation}{, groups=$groups}{, "
              "flip=$flip})");
    mc_nn_bias(b, "$conv", z.n + 2, 1, 0);
}

/* Filters are (channels, filters, taps), as in Lasagne's layer; no border. */
static void dilated(struct mc_nn_build *b)
{
    struct sizes z;
    if (read_sizes(b, &z) && let_steps(b, "dilation", z.n) && let_filters(b, &z, z.channels, z.filters)) {
        mc_nn_let(b, "conv", "%s", "conv($x, swapaxes($W, 0, 1){, dilation=$dilation}, flip=False)");
        mc_nn_bias(b, "$conv", z.n + 2, 1, 0);
    }
}

/* The size of the smallest input whose convolution has the size of this layer's input:
 * (i - 1) * s - 2p + k. */
static bool let_output(struct mc_nn_build *b, const struct sizes *z, const int64_t *stride,
                       const int64_t *crop)
{
    struct mc_nn_text t = { 0 };
    int64_t given[NN_MOST_AXES];
    bool is_given = !mc_nn_is(&b->set, "output", "least");
    if (is_given && !mc_nn_sizes(b, "output", z->n, 1, given)) {
        return false;
    }
    for (int i = 0; i < z->n; i++) {
        int64_t in = mc_nn_dims(b, 0)[i + 2], more = z->taps[i] - 2 * crop[i];
        mc_nn_add(&t, i ? ", " : "[");
        if (is_given || in >= 0) {
            mc_nn_addf(&t, "%lld", (long long)(is_given ? given[i] : (in - 1) * stride[i] + more));
        } else {
            mc_nn_addf(&t, "(size($x, %d) - 1) * %lld + %lld", i + 2, (long long)stride[i], (long long)more);
        }
    }
    mc_nn_let(b, "shape", "%s]", t.bad ? "" : t.s);
    mc_nn_free(&t);
    return !b->failed;
}

/* The gradient of a convolution with respect to its images, as a layer. */
static void deconv(struct mc_nn_build *b)
{
    struct sizes z;
    int64_t stride[NN_MOST_AXES], crop[NN_MOST_AXES];
    if (!read_sizes(b, &z) || !mc_nn_sizes(b, "stride", z.n, 1, stride)) {
        return;
    }
    bool same = mc_nn_is(&b->set, "crop", "same") || mc_nn_is(&b->set, "crop", "half"),
         full = mc_nn_is(&b->set, "crop", "full");
    if (same || full || mc_nn_is(&b->set, "crop", "valid")) {
        for (int i = 0; i < z.n; i++) {
            crop[i] = same ? z.taps[i] / 2 : full ? z.taps[i] - 1 : 0;
        }
    } else if (!mc_nn_sizes(b, "crop", z.n, 0, crop)) {
        return;
    }
    mc_nn_let_ints(b, "border", z.n, crop);
    if (!let_steps(b, "stride", z.n) || !let_output(b, &z, stride, crop) ||
        !let_filters(b, &z, z.channels, z.filters)) {
        return;
    }
    b->layer->flips = !mc_nn_bool(&b->set, "flip"); /* the gradient of a flipped convolution does not flip */
    mc_nn_let(b, "flip", "%s", b->layer->flips ? "" : "False");
    mc_nn_let(b, "conv", "%s", "conv_inputs($W, $x, $shape, border=$border{, stride=$stride}{, flip=$flip})");
    mc_nn_bias(b, "$conv", z.n + 2, 1, 0);
}

/* Separate filters for each position: (filters, channels, taps, positions), or without the axis of
 * channels if each channel has one filter. */
static void local(struct mc_nn_build *b)
{
    struct sizes z;
    bool each = mc_nn_bool(&b->set, "channelwise");
    if (!read_sizes(b, &z)) {
        return;
    }
    if (z.n != 2 || !mc_nn_known(b, "its filters", 2) || !mc_nn_known(b, "its filters", 3)) {
        mc_nn_refuse(b, NULL, "the input has %d spatial axes; expected two", z.n);
        return;
    }
    if (each && z.filters != z.channels) {
        mc_nn_refuse(b, "channelwise",
                     "%lld filters for %lld channels; channelwise needs one for each channel",
                     (long long)z.filters, (long long)z.channels);
        return;
    }
    int64_t rows = mc_nn_dims(b, 0)[2], columns = mc_nn_dims(b, 0)[3];
    int64_t all[] = { z.filters, z.channels, z.taps[0], z.taps[1], rows, columns },
            own[] = { z.filters, z.taps[0], z.taps[1], rows, columns };
    if (!mc_nn_weights(b, "W", REGULARIZABLE, each ? 5 : 6, each ? own : all)) {
        return;
    }
    mc_nn_let_unless(b, "groups", !each, z.filters);
    mc_nn_let(b, "flip", "%s", mc_nn_bool(&b->set, "flip") ? "" : "False");
    mc_nn_let(b, "places", "%s",
              each ? "dimshuffle($W, [0, 3, 4, -1, 1, 2])" : "dimshuffle($W, [0, 4, 5, 1, 2, 3])");
    mc_nn_let(b, "conv", "%s",
              "conv($x, $places, border='same'{, groups=$groups}{, flip=$flip}, unshared=True)");
    mc_nn_bias(b, "$conv", 4, 1, 0);
}

#define CONV(preset) { FILTERS, STRIDE, PAD("0"), GROUPS, { "dilation", NN_SIZES, "1" }, FLIP(preset), WEIGHT, BIAS }
const struct mc_nn_kind mc_nn_convs[] = {
    /* name          doc                                                            inputs, settings */
    { "conv",        "convolution; flip=false: correlation",                             1, CONV("true"),  conv, "$conv{ + $bias}", NULL },
    { "conv_mm",     "conv with flip=false by default, as Lasagne's Conv2DMMLayer",          1, CONV("false"), conv, "$conv{ + $bias}", NULL },
    { "conv_dnn",    "the same, as Conv2DDNNLayer and Conv3DDNNLayer",           1, CONV("false"), conv, "$conv{ + $bias}", NULL },
    { "dilated_conv", "dilated correlation; W has the axes channels, filters, taps", 1,
      { FILTERS, { "dilation", NN_SIZES, "1" }, WEIGHT, BIAS },                                           dilated, "$conv{ + $bias}", NULL },
    { "deconv",      "transposed convolution: crop is the pad of the convolution it transposes", 1,
      { FILTERS, STRIDE, { "crop", NN_SIZES, "0", "valid|full|same|half" }, { "output", NN_SIZES, "least", "least" }, FLIP("false"), WEIGHT, BIAS },
                                                                                                          deconv, "$conv{ + $bias}", NULL },
    { "local",       "convolution with separate filters for each position; sizes are kept",                    1,
      { FILTERS, { "channelwise", NN_BOOL, "false" }, FLIP("true"), WEIGHT, BIAS },                       local, "$conv{ + $bias}", NULL },
    LAST_KIND,
};
