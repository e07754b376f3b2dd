/* norm_batch.c: batch normalisation and dnn_softmax, as formulas over named axes.
 *
 * Invariant: parameters are brought to the rank of x, with size 1 on the averaged axes, before they meet
 * x. */
#include "op/op.h"

/* ---- batch normalisation ---- */

struct over {
    struct mc_attr attr;        /* the axes averaged over */
    int64_t axis[MC_MAX_RANK];
    int64_t order[MC_MAX_RANK]; /* dimshuffle of a parameter that has only the other axes */
};

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

/* 'per-activation' averages over the batch, 'spatial' over all but the channels; a list names the axes. */
static mc_status axes_of(const struct mc_attr *given, int rank, struct over *o)
{
    bool spatial = given->text && strcmp(given->text, "spatial") == 0, gone[MC_MAX_RANK] = { false };
    if (given->text && !spatial && strcmp(given->text, "per-activation") != 0) {
        return mc_fail(MC_EARG, "axes must be 'per-activation', 'spatial' or a list, not '%s'", given->text);
    }
    if (rank < 1) {
        return mc_fail(MC_ESHAPE, "x has rank %d, too few axes to average over", rank);
    }
    for (int i = 0; i < rank; i++) {
        gone[i] = given->text ? i == 0 || (spatial && i > 1) : given->none;
    }
    for (int i = 0; i < given->n; i++) {
        int k;
        TRY(mc_axis_check("batch_normalization", given->ints[i], rank, &k));
        gone[k] = true;
    }
    o->attr = (struct mc_attr){ .kind = ATTR_AXES, .ints = o->axis };
    for (int i = 0, kept = 0; i < rank; i++) {
        o->order[i] = gone[i] ? -1 : kept++;
        if (gone[i]) {
            o->axis[o->attr.n++] = i;
        }
    }
    return MC_OK;
}

static mc_node *shuffled(mc_node *x, int n, const int64_t *order)
{
    struct mc_attr a = { .kind = ATTR_INTS, .n = n, .ints = (int64_t *)order };
    return mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &x, &a);
}

/* v with the rank of x, so that it broadcasts against x. v has this rank already, or only the axes that
 * are not averaged. */
static mc_node *with_rank_of(mc_node *v, mc_node *x, const struct over *o)
{
    const int rank = x->type.rank, kept = rank - o->attr.n;
    if (!v || v->type.rank == 0) {
        return v;
    }
    if (v->type.rank == rank) {
        return mc_expr(x->graph, "addbroadcast(v, axis)",
                       (struct mc_bind[]){ { "v", v, NULL }, { "axis", NULL, &o->attr } }, 2);
    }
    return v->type.rank == kept
               ? shuffled(v, rank, o->order)
               : mc_node_fail(
                     x->graph, MC_ESHAPE,
                     "a parameter has rank %d, which does not fit x of rank %d averaged over %d axes",
                     v->type.rank, rank, o->attr.n);
}

/* The new average, with the rank of the given one. */
static mc_node *unplaced(mc_node *v, const mc_node *given, const struct over *o)
{
    int64_t order[MC_MAX_RANK];
    int n = 0;
    if (!given || given->type.rank == v->type.rank || mc_is_error(v)) {
        return v;
    }
    for (int i = 0; i < v->type.rank; i++) {
        if (o->order[i] >= 0) {
            order[n++] = i;
        }
    }
    return shuffled(v, n, order);
}

static mc_node *build_train(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    static const char *const names[] = { "x", "gamma", "beta", "rm", "rv" };
    struct over o;
    struct mc_bind b[12];
    int n = 0;
    mc_node *x = in[0], *part[5];
    if (axes_of(&attr[0], x->type.rank, &o) < 0) {
        return failed(g);
    }
    for (int i = 0; i < 5; i++) {
        mc_node *v = i < nin ? in[i] : NULL;
        v = i ? with_rank_of(v, x, &o) : v;
        if (v && mc_is_error(v)) {
            return v;
        }
        b[n++] = (struct mc_bind){ names[i], v, NULL };
    }
    b[n++] = (struct mc_bind){ "axes", NULL, &o.attr };
    b[n++] = (struct mc_bind){ "epsilon", NULL, &attr[1] };
    b[n++] = (struct mc_bind){ "a", NULL, &attr[2] };
    mc_node *m = mc_expr(g, "mean(x, axis=axes, keepdims=True)", b, n);
    b[n++] = (struct mc_bind){ "m", m, NULL };
    mc_node *v = mc_expr(g, "var(x, axis=axes, keepdims=True)", b, n), *r;
    b[n++] = (struct mc_bind){ "v", v, NULL };
    r = mc_expr(g, "1 / sqrt(v + epsilon)", b, n);
    b[n++] = (struct mc_bind){ "r", r, NULL };
    part[0] = mc_expr(g, "(x - m) * (r * gamma) + beta", b, n);
    part[1] = m;
    part[2] = r;
    part[3] = unplaced(mc_expr(g, "(1 - a) * default(rm, m) + a * m", b, n), nin > 3 ? in[3] : NULL, &o);
    part[4] = unplaced(
        mc_expr(g, "n = cast(count(x, axis=axes), x.dtype); (1 - a) * default(rv, v) + a * v * (n / (n - 1))",
                b, n),
        nin > 4 ? in[4] : NULL, &o);
    for (int i = 0; i < 5; i++) {
        if (mc_is_error(part[i])) {
            return part[i];
        }
    }
    return mc_node_make(g, &mc_op_tuple, 5, part, NULL);
}

static mc_node *build_test(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    static const char *const names[] = { "x", "gamma", "beta", "mean", "var" };
    struct over o;
    struct mc_bind b[6];
    if (!attr[0].none && axes_of(&attr[0], in[0]->type.rank, &o) < 0) {
        return failed(g);
    }
    for (int i = 0; i < nin; i++) {
        b[i] = (struct mc_bind){ names[i], i && !attr[0].none ? with_rank_of(in[i], in[0], &o) : in[i],
                                 NULL };
        if (mc_is_error(b[i].node)) {
            return b[i].node;
        }
    }
    b[5] = (struct mc_bind){ "epsilon", NULL, &attr[1] };
    return mc_expr(g, "(x - mean) * (gamma / sqrt(var + epsilon)) + beta", b, 6);
}

/* ---- dnn's softmax ---- */

enum { MODE, ALGO, LAYOUT };
static const struct { const char *algo, *channel, *forward, *back; } softmaxes[] = {
    { "accurate", "softmax(x, axis=axis)", "e = exp(x - consider_constant(max(x, axis=axes, keepdims=True))); e / sum(e, axis=axes, keepdims=True)",
      "(g - sum(g * y, axis=axes, keepdims=True)) * y" },
    { "fast", NULL, "e = exp(x); e / sum(e, axis=axes, keepdims=True)", "(g - sum(g * y, axis=axes, keepdims=True)) * y" },
    { "log", "logsoftmax(x, axis=axis)",
      "d = x - consider_constant(max(x, axis=axes, keepdims=True)); d - log(sum(exp(d), axis=axes, keepdims=True))",
      "g - exp(y) * sum(g, axis=axes, keepdims=True)" },
};

/* The axis of a letter in the layout; without a layout of this rank, b is first and c second. */
static int axis_of(const char *layout, int rank, char letter)
{
    const char *at = (int)strlen(layout) == rank ? strchr(layout, letter) : NULL;
    return at                                                           ? (int)(at - layout)
           : (int)strlen(layout) == rank || strcmp(layout, "bc01") != 0 ? -1
                                                                        : letter == 'c';
}

static mc_node *build_softmax(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const int rank = in[0]->type.rank, b = axis_of(attr[LAYOUT].text, rank, 'b'),
              c = axis_of(attr[LAYOUT].text, rank, 'c');
    const bool channel = strcmp(attr[MODE].text, "channel") == 0, backward = nin > 1;
    int64_t axis[MC_MAX_RANK];
    struct mc_attr axes = { .kind = ATTR_AXES, .ints = axis },
                   one = { .kind = ATTR_INT, .n = 1, .ints = axis };
    size_t row = 0;
    while (row < NELEM(softmaxes) && strcmp(softmaxes[row].algo, attr[ALGO].text) != 0) {
        row++;
    }
    if (row == NELEM(softmaxes) || (!channel && strcmp(attr[MODE].text, "instance") != 0)) {
        return mc_node_fail(g, MC_EARG,
                            "dnn_softmax: mode must be channel or instance, and algo fast, accurate or log, "
                            "not '%s' and '%s'",
                            attr[MODE].text, attr[ALGO].text);
    }
    if (rank < 2 || b < 0 || c < 0) {
        return mc_node_fail(g, MC_ESHAPE,
                            "dnn_softmax: layout '%s' must name %d axes, with b and c among them",
                            attr[LAYOUT].text, rank);
    }
    for (int i = 0; i < rank; i++) {
        if (channel ? i == c : i != b) {
            axis[axes.n++] = i;
        }
    }
    struct mc_bind bind[] = { { backward ? "g" : "x", in[0], NULL },
                              { "y", backward ? in[1] : NULL, NULL },
                              { "axes", NULL, &axes },
                              { "axis", NULL, &one } };
    return mc_expr(g,
                   backward                            ? softmaxes[row].back
                   : channel && softmaxes[row].channel ? softmaxes[row].channel
                                                       : softmaxes[row].forward,
                   bind, (int)NELEM(bind));
}

#define SOFTMAX "mode=channel:text, algo=accurate:text, layout=bc01:text"
const struct mc_op mc_ops_norm_batch[] = {
    { .name = "batch_normalization_train",
      .params = "x, gamma, beta, running_mean=None, running_var=None, axes=per-activation:border, epsilon=0.0001:real, "
                "running_average_factor=0.1:real",
      .nout = 5, .build = build_train,
      .doc = MANUAL("normalised x, mean, 1/std, new running mean, new running variance; averaged over the batch ('per-activation'), all "
             "but the channels ('spatial') or a list of axes; parameters have the rank of x, or only the axes that are not averaged") },
    { .name = "batch_normalization_test", .params = "x, gamma, beta, mean, var, axes=None:border, epsilon=0.0001:real", .nout = 1,
      .build = build_test, .doc = MANUAL("x normalised by running statistics; if axes is given, parameters may have only the axes that are not averaged") },
    { .name = "dnn_softmax", .params = "x, " SOFTMAX, .nout = 1, .build = build_softmax,
      .doc = MANUAL("softmax over the channels at each position (mode='channel') or over a whole image "
             "(mode='instance'); algo: accurate, log, or fast, which can overflow") },
    { .name = "dnn_softmax_grad", .params = "dy, sm, " SOFTMAX, .nout = 1, .build = build_softmax,
      .doc = MANUAL("the gradient of dnn_softmax, from the gradient of its result and the result itself") },
};
const int mc_nops_norm_batch = (int)NELEM(mc_ops_norm_batch);
