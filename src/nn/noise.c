/* noise.c: layers that draw random numbers in training and otherwise return their input.
 *
 * Invariant: all draws use the net's one random stream, each with its own number. */
#include "nn/kind.h"

/* The shape of a draw: size 1 along shared axes. */
static void let_drawn(struct mc_nn_build *b, const bool *shared)
{
    int rank = mc_nn_rank(b, 0);
    int64_t dims[NN_MOST_AXES];
    bool any = false;
    for (int i = 0; i < rank; i++) {
        dims[i] = shared[i] ? 1 : mc_nn_dims(b, 0)[i];
        any |= shared[i];
    }
    mc_nn_let(b, "drawn", "shape($x)");
    if (any) {
        mc_nn_let_shape(b, "drawn", rank, dims);
    }
}

static void drop(struct mc_nn_build *b, const bool *shared)
{
    double p = mc_nn_real(&b->set, "p");
    if (p < 0 || p >= 1) {
        mc_nn_refuse(b, "p", "p is %g; expected a probability less than 1", p);
        return;
    }
    if (p == 0) {
        b->form[0] = "$x";
    }
    let_drawn(b, shared);
    mc_nn_let(b, "keep", "%.17g", 1 - p);
    mc_nn_let(b, "rescale", "%s", mc_nn_bool(&b->set, "rescale") ? "$keep" : "");
}

static void dropout(struct mc_nn_build *b)
{
    bool shared[NN_MOST_AXES];
    if (mc_nn_axes(b, "shared", mc_nn_rank(b, 0), shared)) {
        drop(b, shared);
    }
}

static void dropout_channels(struct mc_nn_build *b)
{
    bool shared[NN_MOST_AXES];
    for (int i = 0; i < NN_MOST_AXES; i++) {
        shared[i] = i > 1;
    }
    drop(b, shared);
}

static void dropout_locations(struct mc_nn_build *b)
{
    bool shared[NN_MOST_AXES] = { [1] = true };
    drop(b, shared);
}

static void rrelu(struct mc_nn_build *b)
{
    bool shared[NN_MOST_AXES];
    double lower = mc_nn_real(&b->set, "lower"), upper = mc_nn_real(&b->set, "upper");
    if (lower > upper) {
        mc_nn_refuse(b, "upper", "upper is %g, less than lower, %g", upper, lower);
    } else if (mc_nn_axes(b, "shared", mc_nn_rank(b, 0), shared)) {
        let_drawn(b, shared);
        mc_nn_let(b, "middle", "%.17g", (lower + upper) / 2);
        b->form[0] = lower == upper ? b->form[1] : b->form[0];
    }
}

#define DROP "$x * (bernoulli($random, $keep, $drawn){ / $rescale})"
#define P { "p", NN_REAL, "0.5" }, { "rescale", NN_BOOL, "true" }
const struct mc_nn_kind mc_nn_noises[] = {
    { "dropout",           "each number is set to 0 with probability p, the others are divided by 1 - p", 1,
      { P, { "shared", NN_AXES, "none", "none|auto|all" } },                       dropout,           DROP, "$x" },
    { "dropout_channels",  "dropout of whole channels",                                      1, { P }, dropout_channels, DROP, "$x" },
    { "dropout_locations", "dropout of positions with all their channels",                          1, { P }, dropout_locations, DROP, "$x" },
    { "noise",             "normal noise with standard deviation sigma is added",                                             1,
      { { "sigma", NN_REAL, "0.1" } },                                             NULL,              "$x + $sigma * normal($random, shape($x))", "$x" },
    { "rrelu",             "x where positive, else x times a random slope; deterministic: times the mean slope", 1,
      { { "lower", NN_REAL, "0.3" }, { "upper", NN_REAL, "0.8" }, { "shared", NN_AXES, "auto", "none|auto|all" } },
      rrelu, "$_slope = uniform($random, $drawn, $lower, $upper); 0.5 * (1 + $_slope) * $x + 0.5 * (1 - $_slope) * abs($x)", "relu($x, alpha=$middle)" },
    LAST_KIND,
};
