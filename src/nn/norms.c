/* norms.c: normalisation across channels, over batches and over examples; layers that are a bias, a scale
 * or a slope.
 *
 * Invariant: batch normalisation stores the inverse of the standard deviation, as Lasagne does. */
#include "nn/kind.h"

static void lrn(struct mc_nn_build *b)
{
    if (mc_nn_int(&b->set, "n") % 2 == 0) {
        mc_nn_refuse(b, "n", "n is %lld; it must be odd", (long long)mc_nn_int(&b->set, "n"));
    }
}

/* The axes to normalise over. Parameters have the other axes. */
static bool let_axes(struct mc_nn_build *b, const bool *over, int64_t *dims, int *n)
{
    int rank = mc_nn_rank(b, 0);
    int64_t axes[NN_MOST_AXES];
    int count = 0;
    for (int i = 0; i < rank; i++) {
        if (over[i]) {
            axes[count++] = i;
        }
    }
    mc_nn_let_ints(b, "axes", count, axes);
    mc_nn_let_order(b, "order", rank, over);
    return mc_nn_kept_sizes(b, rank, over, dims, n);
}

/* In each training step the running statistic becomes (1 - alpha) times itself plus alpha times the
 * batch's. */
static void running(struct mc_nn_build *b, const char *name, int item)
{
    struct mc_nn_text form = { 0 }, own = { 0 };
    mc_nn_addf(&own, "$%s", name);
    mc_nn_addf(&form, "(1 - $alpha) * $%s + $alpha * reshape($batch[%d], $sizes)", name, item);
    mc_node *now = form.bad ? NULL : mc_nn_probe(b, form.s);
    form.n = 0;
    mc_shared *s = now && !own.bad && mc_nn_fill(&form, own.s, &b->holes) && !form.bad
                       ? mc_shared_named(b->net->g, form.s)
                       : NULL;
    b->failed |= !s || !mc_nn_push(b->net, &b->net->running, &b->net->nrunning, &b->net->running_cap,
                                   sizeof *b->net->running, &(struct mc_nn_running){ s, now });
    mc_nn_free(&form);
    mc_nn_free(&own);
}

static void batch_norm(struct mc_nn_build *b)
{
    static const char *const zeros_or_ones[] = { "zeros", "ones" };
    static const char *const names[] = { "beta", "gamma" };
    bool over[NN_MOST_AXES];
    int64_t dims[NN_MOST_AXES];
    int n;
    if (!mc_nn_axes(b, "axes", mc_nn_rank(b, 0), over) || !let_axes(b, over, dims, &n) ||
        !mc_nn_weights(b, "beta", TRAINABLE, n, dims) || !mc_nn_weights(b, "gamma", REGULARIZABLE, n, dims) ||
        !mc_nn_weights(b, "mean", " batch_norm_stat ", n, dims) ||
        !mc_nn_weights(b, "inv_std", " batch_norm_stat ", n, dims)) {
        return;
    }
    if (mc_nn_is(&b->set, "mean", "none") || mc_nn_is(&b->set, "inv_std", "none")) {
        mc_nn_refuse(b, mc_nn_is(&b->set, "mean", "none") ? "mean" : "inv_std",
                     "the deterministic pass needs both averages");
        return;
    }
    mc_nn_let_ints(b, "sizes", n, dims);
    for (int i = 0; i < 2; i++) {
        bool none = mc_nn_is(&b->set, names[i], "none");
        mc_nn_let(b, i ? "scale" : "shift", none ? "%s($sizes)" : "$%s", none ? zeros_or_ones[i] : names[i]);
    }
    mc_nn_let(b, "batch", "%s",
              "batch_normalization_train($x, $scale, $shift, axes=$axes, epsilon=$epsilon)");
    running(b, "mean", 1);
    running(b, "inv_std", 2);
}

static void standardize(struct mc_nn_build *b)
{
    int rank = mc_nn_rank(b, 0);
    bool over[NN_MOST_AXES] = { false }, features = mc_nn_is(&b->set, "axes", "features"),
         spatial = mc_nn_is(&b->set, "axes", "spatial");
    int64_t axes[NN_MOST_AXES];
    int n = 0;
    if (!features && !spatial && !mc_nn_is(&b->set, "axes", "auto") && !mc_nn_axes(b, "axes", rank, over)) {
        return;
    }
    for (int i = 0; i < rank; i++) {
        over[i] |= features  ? i > 0
                   : spatial ? i > 1
                             : mc_nn_is(&b->set, "axes", "auto") && (rank == 2 ? i == 1 : i > 1);
        if (over[i]) {
            axes[n++] = i;
        }
    }
    mc_nn_let_ints(b, "axes", n, axes);
}

/* Standardises over the axes from `from` to `to` - 1, then applies a scale and a bias for each channel. */
static void with_parameters(struct mc_nn_build *b, int from, int to)
{
    bool over[NN_MOST_AXES];
    int64_t dims[NN_MOST_AXES];
    int n, rank = mc_nn_rank(b, 0);
    for (int i = 0; i < rank; i++) {
        over[i] = i != 1;
    }
    mc_nn_let_order(b, "order", rank, over);
    if (mc_nn_kept_sizes(b, rank, over, dims, &n) && mc_nn_weights(b, "scale", TRAINABLE, n, dims)) {
        mc_nn_weights(b, "bias", TRAINABLE, n, dims);
    }
    int64_t all[NN_MOST_AXES];
    for (int i = from; i < to; i++) {
        all[i - from] = i;
    }
    mc_nn_let_ints(b, "axes", to > from ? to - from : 0, all);
}

static void instance_norm(struct mc_nn_build *b)
{
    with_parameters(b, 2, mc_nn_rank(b, 0));
}

static void layer_norm(struct mc_nn_build *b)
{
    with_parameters(b, 1, mc_nn_is(&b->set, "axes", "channels") ? 2 : mc_nn_rank(b, 0));
}

/* Makes the parameter of the first field, which is shared over some axes. */
static void shared(struct mc_nn_build *b)
{
    bool gone[NN_MOST_AXES];
    int64_t dims[NN_MOST_AXES];
    int n, rank = mc_nn_rank(b, 0);
    if (mc_nn_axes(b, "shared", rank, gone) && mc_nn_kept_sizes(b, rank, gone, dims, &n)) {
        mc_nn_let_order(b, "order", rank, gone);
        mc_nn_weights(b, b->field[0].name, TRAINABLE, n, dims);
    }
}

#define SHARED { "shared", NN_AXES, "auto", "auto|all|none" }
#define STANDARD "(($x - mean($x, axis=$axes, keepdims=True)) / sqrt(var($x, axis=$axes, keepdims=True) + $epsilon))"
#define OWN "{ * dimshuffle($scale, $order)}{ + dimshuffle($bias, $order)}"
const struct mc_nn_kind mc_nn_norms[] = {
    { "lrn",           "local response normalisation across n channels",                       1,
      { { "n", NN_COUNT, "5" }, { "alpha", NN_REAL, "0.0001" }, { "beta", NN_REAL, "0.75" }, { "k", NN_REAL, "2" } },
      lrn,             "lrn($x, n=$n, alpha=$alpha, beta=$beta, k=$k)", NULL },
    { "batch_norm",    "mean 0 and variance 1 over the batch; deterministic: with running averages", 1,
      { ACT("linear"), { "axes", NN_AXES, "auto" }, { "epsilon", NN_REAL, "0.0001" }, { "alpha", NN_REAL, "0.1" }, { "beta", NN_CALL, "0" },
        { "gamma", NN_CALL, "1" }, { "mean", NN_CALL, "0" }, { "inv_std", NN_CALL, "1" } },
      batch_norm,      "$batch[0]",
      "($x - dimshuffle($mean, $order)) * dimshuffle({$gamma * }$inv_std, $order){ + dimshuffle($beta, $order)}" },
    { "standardize",   "mean 0 and variance 1 of each example, over positions; axes=features: over channels too", 1,
      { { "axes", NN_AXES, "auto", "auto|spatial|features" }, { "epsilon", NN_REAL, "0.0001" } },
      standardize,     STANDARD, NULL },
    { "instance_norm", "standardize over positions, then a scale and a bias for each channel",          1,
      { ACT("linear"), { "scale", NN_CALL, "1" }, { "bias", NN_CALL, "0" }, { "epsilon", NN_REAL, "0.0001" } },
      instance_norm,   STANDARD OWN, NULL },
    { "layer_norm",    "standardize over channels and positions, or axes=channels, then a scale and a bias for each channel", 1,
      { ACT("linear"), { "scale", NN_CALL, "1" }, { "bias", NN_CALL, "0" }, { "epsilon", NN_REAL, "0.0001" },
        { "axes", NN_WORD, "features", "features|channels" } },
      layer_norm,      STANDARD OWN, NULL },
    { "bias",          "a bias for each channel",                                    1,
      { { "b", NN_CALL, "0" }, SHARED },          shared, "$x{ + dimshuffle($b, $order)}", NULL },
    { "scale",         "a factor for each channel",                                           1,
      { { "scales", NN_CALL, "1" }, SHARED },     shared, "$x * dimshuffle($scales, $order)", NULL },
    { "prelu",         "x where positive, else x times a learned slope",              1,
      { { "alpha", NN_CALL, "0.25" }, SHARED },   shared,
      "$_slope = dimshuffle($alpha, $order); 0.5 * (1 + $_slope) * $x + 0.5 * (1 - $_slope) * abs($x)", NULL },
    LAST_KIND,
};
