/* fit.c: training of a net: its target, cost and errors, and the functions that compute them.
 *
 * Invariant: they belong to the layer that was last when they were made. After another layer they are made
 * anew. */
#include "nn/nn.h"

/* ---- target, cost, what is wrong ---- */

static mc_node *prediction(mc_net *net, int pass)
{
    return net->nlayer ? net->layer[net->nlayer - 1]->node[pass] : NULL;
}

static bool fresh(mc_net *net)
{
    mc_layer *last = mc_net_layer(net, -1);
    if (!last) {
        mc_mistake(net->g, MC_EARG, "the net has no layers");
        return false;
    }
    if (net->last != last) {
        net->last = last;
        memset(net->cost, 0, sizeof net->cost);
        memset(net->wrong, 0, sizeof net->wrong);
    }
    return mc_graph_status(net->g) == MC_OK;
}

mc_node *mc_net_target(mc_net *net)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    if (!net->target && fresh(net)) {
        const char *name = mc_nn_name(net, "t");
        mc_node *p = prediction(net, 0);
        bool labels = mc_nn_loss_labels(net->train.loss);
        net->target = name ? mc_input_sized(net->g, name, labels ? MC_INT32 : mc_nn_float(),
                                            mc_node_rank(p) - labels, mc_node_dims(p))
                           : NULL;
        net->target = mc_graph_status(net->g) == MC_OK ? net->target : NULL;
    }
    return net->target;
}

/* Weights cost while they learn. */
static mc_node *penalized(mc_net *net, mc_node *loss)
{
    mc_node *cost = loss;
    net->loss = loss;
    net->penalties = NULL;
    mc_label(net->g, "penalty");
    for (int k = 0; k < net->npenalty; k++) {
        mc_node *one = mc_penalty(net, net->penalty[k], NULL, NULL);
        net->penalties = net->penalties ? mc_add(net->penalties, one) : one;
        cost = mc_add(cost, one);
    }
    return cost;
}

mc_node *mc_net_cost(mc_net *net, enum mc_pass pass)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    int i = pass == MC_DETERMINISTIC;
    mc_node *t = mc_net_target(net);
    if (t && fresh(net) && !net->cost[i]) {
        const char *before = mc_label(net->g, "loss");
        mc_node *cost = mc_aggregate(net, "mean", mc_loss(net, net->train.loss, prediction(net, i), t), NULL);
        for (int k = 0; k < net->nalso && !i; k++) {
            cost = mc_nn_also(net, net->also[k], cost, t);
        }
        net->cost[i] = i ? cost : penalized(net, cost);
        mc_label(net->g, before);
    }
    return net->cost[i] ? net->cost[i] : mc_mistake(net->g, MC_EMEMORY, "out of memory");
}

mc_node *mc_net_wrong(mc_net *net, enum mc_pass pass)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    int i = pass == MC_DETERMINISTIC;
    const char *accuracy = mc_nn_loss_accuracy(net->train.loss);
    mc_node *t = mc_net_target(net);
    if (accuracy && t && fresh(net) && !net->wrong[i]) {
        const char *before = mc_label(net->g, "errors");
        mc_node *right = mc_accuracy(net, accuracy, prediction(net, i), t);
        net->wrong[i] = mc_nn_both(net, "wrong", "1 - mean(cast($p, floatX))", right, NULL);
        mc_label(net->g, before);
    }
    return net->wrong[i];
}

/* ---- functions ---- */

/* The net's inputs, and the target. */
static int inputs(mc_net *net, bool target, mc_node **in, int most)
{
    int n = 0;
    for (int i = 0; i < net->nlayer && n < most - 1; i++) {
        if (net->layer[i]->nin == 0) {
            in[n++] = net->layer[i]->node[0];
        }
    }
    if (target) {
        in[n++] = mc_net_target(net);
    }
    return n;
}

mc_function *mc_nn_compile(mc_net *net, const char *name, bool target, int nout, mc_node *const *out,
                           const mc_updates *u, const char *givens)
{
    enum { MOST = 16 };
    mc_node *in[MOST];
    int n = mc_graph_status(net->g) == MC_OK ? inputs(net, target, in, MOST) : 0;
    if (mc_graph_status(net->g) < 0) {
        mc_fail(mc_graph_status(net->g), "%s", mc_error(net->g));
        return NULL;
    }
    return mc_compile_at(net->g,
                         &(mc_spec){ .name = name,
                                     .input = in,
                                     .ninput = n,
                                     .output = out,
                                     .noutput = nout,
                                     .givens = givens,
                                     .update_of = u ? u->of : NULL,
                                     .update = u ? u->to : NULL,
                                     .nupdate = u ? u->n : 0 },
                         NULL, 0);
}

mc_function *mc_net_trainer(mc_net *net)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    mc_node *cost = mc_net_cost(net, MC_TRAINING), *wrong = mc_net_wrong(net, MC_TRAINING),
            *out[] = { cost, wrong };
    mc_updates u = mc_net_updates(net, cost, NULL);
    return mc_nn_compile(net, "train", true, wrong ? 2 : 1, out, &u, NULL);
}

bool mc_nn_sums(mc_net *net)
{
    static const double none[2] = { 0 };
    const char *name = mc_nn_name(net, "sums");
    mc_array *zero = net->sums || !name ? NULL : mc_array_from(MC_FLOAT64, MC_SHAPE(2), none);
    net->sums = zero ? mc_shared_new(net->g, name, zero) : net->sums;
    mc_array_unref(&zero);
    return mc_nn_check_error(net, net->sums != NULL);
}

/* The sums with one more batch; NULL: the graph has the error. */
static mc_node *summed(mc_net *net, mc_node *cost, mc_node *wrong)
{
    struct mc_nn_text form = { 0 };
    mc_nn_addf(&form, "%s + cast(size(%s, axis=0), float64) * cast(where(arange(2) < 1, $p, %s), float64)",
               mc_shared_name(net->sums), mc_node_name(mc_net_target(net)), wrong ? "$t" : "0");
    const char *before = mc_label(net->g, "sums of loss and errors");
    mc_node *n = mc_nn_check_error(net, !form.bad) ? mc_nn_both(net, "sums", form.s, cost, wrong) : NULL;
    mc_label(net->g, before);
    mc_nn_free(&form);
    return n;
}

mc_function *mc_net_learner(mc_net *net)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    mc_node *cost = mc_net_cost(net, MC_TRAINING), *wrong = mc_net_wrong(net, MC_TRAINING);
    mc_updates u = mc_net_updates(net, cost, NULL), all = { NULL, NULL, u.n + 1 };
    if (mc_graph_status(net->g) == MC_OK && mc_nn_sums(net)) {
        all.of = mc_nn_keep(net, (size_t)all.n * sizeof *all.of);
        all.to = all.of ? mc_nn_keep(net, (size_t)all.n * sizeof *all.to) : NULL;
    }
    if (all.to) {
        memcpy(all.of, u.of, (size_t)u.n * sizeof *u.of);
        memcpy(all.to, u.to, (size_t)u.n * sizeof *u.to);
        all.of[u.n] = mc_shared_node(net->g, net->sums);
        all.to[u.n] = summed(net, cost, wrong);
    }
    return mc_nn_compile(net, "learn", true, 0, NULL, &all, NULL);
}

mc_status mc_net_sums(const mc_net *net, double out[2])
{
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    mc_array *a = net->sums ? mc_shared_get(net->sums) : NULL;
    if (!a) {
        return net->sums ? mc_last_status() : mc_fail(MC_EARG, "sums: the net has no learner");
    }
    memcpy(out, mc_array_data(a), 2 * sizeof *out);
    mc_array_unref(&a);
    return MC_OK;
}

mc_status mc_net_set_sums(mc_net *net, const double to[2])
{
    if (mc_nn_null(net, "net")) {
        return MC_EARG;
    }
    mc_array *a = net->sums ? mc_array_from(MC_FLOAT64, MC_SHAPE(2), to) : NULL;
    mc_status s = a           ? mc_shared_set(net->sums, a)
                  : net->sums ? mc_last_status()
                              : mc_fail(MC_EARG, "sums: the net has no learner");
    mc_array_unref(&a);
    return s;
}

mc_function *mc_net_tester(mc_net *net)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    mc_node *cost = mc_net_cost(net, MC_DETERMINISTIC), *wrong = mc_net_wrong(net, MC_DETERMINISTIC),
            *y = prediction(net, 1);
    mc_node *out[] = { cost, wrong ? wrong : y, y };
    return mc_nn_compile(net, "test", true, wrong ? 3 : 2, out, NULL, NULL);
}

mc_function *mc_net_predictor(mc_net *net)
{
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    mc_node *y = prediction(net, 1);
    if (!fresh(net)) {
        mc_fail(mc_graph_status(net->g), "%s", mc_error(net->g));
        return NULL;
    }
    return mc_nn_compile(net, "predict", false, 1, &y, NULL, NULL);
}
