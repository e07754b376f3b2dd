/* parallel.c: a net that learns on many ranks: each batch is divided into parts, each rank takes its share
 * of them, and all ranks make the same step.
 *
 *   part     gradients of the loss of its examples, summed over them, in one array; changes of running
 *            averages behind
 *   tree     the arrays of parts are added two and two; the top of the tree is an all_reduce
 *   step     the update rule, from the mean
 *
 * Invariant: the parts, their random numbers and the tree depend on the number of parts, not on that of
 * ranks. So one rank and two, four, ... give the same bits, where each part does (docs/ranks.md). */
#include "nn/learner.h"

/* ---- the functions ---- */

int64_t mc_nn_elements(mc_net *net, mc_shared *s)
{
    const mc_node *v = mc_shared_node(net->g, s);
    int64_t size = 1;
    for (int i = 0; i < mc_node_rank(v); i++) {
        size *= mc_node_dims(v)[i];
    }
    return size;
}

static bool parameters(mc_net *net, struct mc_layout *l)
{
    while (mc_net_param(net, "trainable", l->n).name) {
        l->n++;
    }
    l->params = mc_nn_keep(net, (size_t)l->n * sizeof *l->params + 1);
    l->grad = mc_nn_keep(net, (size_t)l->n * sizeof *l->grad + 1);
    for (int i = 0; l->grad && l->params && i < l->n; i++) {
        l->params[i] = mc_net_param(net, "trainable", i).shared;
        l->all += mc_nn_elements(net, l->params[i]);
    }
    return l->grad && l->params;
}

static mc_node *flat_of(mc_net *net, struct mc_layout *l, mc_node *cost, mc_node *examples)
{
    const int n = l->n + net->nrunning;
    mc_node **wrt = mc_nn_keep(net, (size_t)n * sizeof *wrt + 1),
            **one = wrt ? mc_nn_keep(net, (size_t)n * sizeof *one + 1) : NULL;
    for (int i = 0; one && i < l->n; i++) {
        wrt[i] = mc_shared_node(net->g, l->params[i]);
    }
    if (!one || mc_grads(cost, l->n, wrt, one, NULL) < 0) {
        return NULL;
    }
    for (int i = 0; i < net->nrunning; i++) {
        one[l->n + i] = mc_sub(net->running[i].to, mc_shared_node(net->g, net->running[i].shared));
    }
    for (int i = 0; i < n; i++) {
        one[i] = mc_mul(mc_ravel(one[i]), examples);
    }
    return n ? mc_concatenate(n, one, NULL) : NULL;
}

/* What a function hands to the next one remains in the device's memory. */
static void leave_on_device(mc_node *out[2])
{
    out[FLAT] = mc_gpu_from_host(out[FLAT]);
    out[SUMS] = mc_gpu_from_host(out[SUMS]);
}

static bool part_function(struct mc_learner *r, struct mc_layout *l)
{
    mc_net *net = r->net;
    mc_node *cost = mc_net_cost(net, MC_TRAINING), *wrong = mc_net_wrong(net, MC_TRAINING),
            *t = mc_net_target(net);
    mc_node *count = t ? mc_formulaf(net->g, "cast(size(%s, axis=0), floatX)", mc_node_name(t)) : NULL;
    mc_node *out[2] = { count ? flat_of(net, l, cost, count) : NULL, NULL };
    if (!out[FLAT]) {
        return mc_nn_check_error(net, false);
    }
    mc_node *sum[] = { mc_cast(cost, "dtype=float64"), wrong ? mc_cast(wrong, "dtype=float64") : mc_formula(net->g, "0.0"),
                       mc_formula(net->g, "1.0") };
    out[SUMS] = mc_mul(mc_cast(mc_stack(3, sum, NULL), "dtype=float64"), mc_cast(count, "dtype=float64"));
    leave_on_device(out);
    r->part = mc_nn_compile(net, "part", true, 2, out, NULL);
    return r->part != NULL;
}

static bool add_function(struct mc_learner *r)
{
    mc_graph *g = r->net->g;
    mc_node *in[4], *out[2];
    for (int i = 0; i < 4; i++) {
        char name[32];
        mc_snprintf(name, sizeof name, "parts_%s%d", i % 2 == FLAT ? "flat" : "sums", i / 2);
        const char *const whole = mc_nn_name(r->net, name);
        in[i] = whole ? mc_input(g, whole, i % 2 == FLAT ? mc_nn_float() : MC_FLOAT64, 1) : NULL;
    }
    if (!mc_nn_check_error(r->net, in[0] && in[1] && in[2] && in[3])) {
        return false;
    }
    out[FLAT] = mc_add(in[0], in[2]);
    out[SUMS] = mc_add(in[1], in[3]);
    leave_on_device(out);
    r->add = mc_compile(
        g, &(mc_spec){ .name = "add parts", .input = in, .ninput = 4, .output = out, .noutput = 2 });
    return r->add != NULL;
}

/* What of all, from *at on, belongs to s: its mean, in its shape. */
static mc_node *taken(mc_net *net, mc_shared *s, const char *all, const char *sums, int64_t *at)
{
    struct mc_nn_text t = { 0 };
    const int64_t size = mc_nn_elements(net, s);
    mc_nn_addf(&t, "reshape(%s[%lld:%lld], shape(%s)) / cast(%s[2], %s)", all, (long long)*at,
               (long long)(*at + size), mc_shared_name(s), sums,
               mc_dtype_name(mc_node_dtype(mc_shared_node(net->g, s))));
    *at += size;
    mc_node *y = t.bad ? NULL : mc_formula(net->g, t.s);
    mc_nn_free(&t);
    return y;
}

/* The input of that name, (n), for the sum over this rank's parts; its whole name, or NULL. */
static const char *summed(struct mc_learner *r, const char *of, mc_dtype d, int64_t n, mc_node **input)
{
    const char *in = mc_nn_name(r->net, of);
    *input = in ? mc_input_sized(r->net->g, in, d, 1, &n) : NULL;
    return *input ? in : NULL;
}

/* in_all = all_reduce(what of in); the name, or NULL */
static const char *reduced(struct mc_learner *r, const char *in, const char *what)
{
    struct mc_nn_text t = { 0 };
    mc_nn_addf(&t, "%s_all", in);
    const char *all = t.bad ? NULL : mc_nn_keep_text(r->net, t.s, t.n);
    mc_node *y = all ? mc_formulaf(r->net->g, "%s = all_reduce(%s%s%s%s)", all, in, what, mc_learner_group(r),
                                   mc_learner_order(r))
                     : NULL;
    mc_nn_free(&t);
    return y ? all : NULL;
}

/* Of the parameters and of what the rule remembers of them. */
static mc_updates learned(struct mc_learner *r, struct mc_layout *l, const char *flat, const char *all,
                          const char *sums)
{
    int64_t at = 0;
    if (r->shard.on) {
        return mc_shard_updates(r, l, flat, sums);
    }
    for (int i = 0; i < l->n; i++) {
        l->grad[i] = taken(r->net, l->params[i], all, sums, &at);
    }
    return mc_updates_of(r->net, NULL, l->n, l->params, l->grad, NULL);
}

static int64_t of_running(mc_net *net)
{
    int64_t n = 0;
    for (int i = 0; i < net->nrunning; i++) {
        n += mc_nn_elements(net, net->running[i].shared);
    }
    return n;
}

static bool step_function(struct mc_learner *r, struct mc_layout *l)
{
    mc_net *net = r->net;
    mc_node *in[2];
    const int64_t dims = l->all + of_running(net);
    const char *flat = summed(r, "parts_flat", mc_nn_float(), dims, &in[FLAT]),
               *part_sums = summed(r, "parts_sums", MC_FLOAT64, 3, &in[SUMS]);
    struct mc_nn_text running = { 0 };
    mc_nn_addf(&running, "[%lld:]", (long long)l->all);
    /* shares of gradients need no all_reduce: where they are divided, only what follows them does */
    const bool some = !r->shard.on || net->nrunning;
    const char *sums = part_sums ? reduced(r, part_sums, "") : NULL,
               *all = flat && some && !running.bad ? reduced(r, flat, r->shard.on ? running.s : "") : NULL;
    mc_nn_free(&running);
    if (!sums || (some && !all) || !mc_nn_sums(net)) {
        return mc_nn_check_error(net, false);
    }
    mc_updates u = learned(r, l, flat, all, sums), own = { NULL, NULL, u.n + net->nrunning + 1 };
    own.of = u.n ? mc_nn_keep(net, (size_t)own.n * sizeof *own.of) : NULL;
    own.to = own.of ? mc_nn_keep(net, (size_t)own.n * sizeof *own.to) : NULL;
    if (!own.to) {
        return mc_nn_check_error(net, false);
    }
    memcpy(own.of, u.of, (size_t)u.n * sizeof *u.of);
    memcpy(own.to, u.to, (size_t)u.n * sizeof *u.to);
    int64_t at = r->shard.on ? 0 : l->all;
    for (int i = 0; i < net->nrunning; i++) {
        mc_shared *s = net->running[i].shared;
        own.of[u.n + i] = mc_shared_node(net->g, s);
        own.to[u.n + i] = mc_add(own.of[u.n + i], taken(net, s, all, sums, &at));
    }
    own.of[own.n - 1] = mc_shared_node(net->g, net->sums);
    own.to[own.n - 1] = mc_formulaf(net->g, "%s + %s[:2]", mc_shared_name(net->sums), sums);
    r->step = mc_compile(net->g, &(mc_spec){ .name = "step",
                                             .input = in,
                                             .ninput = 2,
                                             .update_of = own.of,
                                             .update = own.to,
                                             .nupdate = own.n });
    r->nothing[FLAT] = r->step ? mc_array_new(mc_nn_float(), 1, &dims) : NULL;
    r->nothing[SUMS] = r->nothing[FLAT] ? mc_array_new(MC_FLOAT64, MC_SHAPE(3)) : NULL;
    return r->nothing[SUMS] != NULL && (!r->shard.on || mc_shard_gathers(r));
}

static mc_learner *make(mc_net *net, mc_comm *comm, int64_t batch, int64_t parts, bool shard)
{
    const int64_t ranks = comm ? mc_comm_size(comm) : 1;
    if (mc_nn_null(net, "net")) {
        return NULL;
    }
    const bool any_order = !parts;
    parts = parts ? parts : ranks;
    if (batch < 1 || parts < 1 || parts % ranks || parts > batch) {
        mc_fail(MC_EARG,
                parts % ranks ? "learner: %lld parts of a batch do not divide among %lld ranks"
                : batch >= 1 && parts > batch
                    ? "learner: %lld parts are more than the %lld examples of a batch"
                    : "learner: %lld parts of %lld examples",
                (long long)parts, (long long)(parts % ranks ? ranks : batch));
        return NULL;
    }
    struct mc_learner *r = mc_calloc(1, sizeof *r, "nets");
    struct mc_layout l = { 0 };
    if (!r) {
        return NULL;
    }
    *r = (struct mc_learner){ .net = net,
                              .comm = comm,
                              .parts = parts,
                              .each = (batch + parts - 1) / parts,
                              .batch = batch,
                              .any_order = any_order,
                              .shard = { .on = shard, .at = -1 } };
    r->rng = mc_shared_named(net->g, net->rng);
    const bool good = (!comm || mc_graph_ranks(net->g, GROUP, comm) == MC_OK) && parameters(net, &l) &&
                      part_function(r, &l) && add_function(r) && step_function(r, &l);
    if (!good) {
        if (mc_graph_status(net->g) < 0) {
            mc_fail(mc_graph_status(net->g), "%s", mc_error(net->g));
        }
        mc_learner_free(r);
        return NULL;
    }
    return r;
}

mc_learner *mc_learner_new(mc_net *net, mc_comm *comm, int64_t batch, int64_t parts)
{
    return make(net, comm, batch, parts, false);
}

mc_learner *mc_learner_sharded(mc_net *net, mc_comm *comm, int64_t batch, int64_t parts)
{
    return make(net, comm, batch, parts, true);
}

const mc_function *mc_learner_part(const mc_learner *r)
{
    return r ? r->part : NULL;
}

void mc_learner_free(mc_learner *r)
{
    if (r) {
        mc_shard_free(&r->shard);
        mc_function_free(r->part);
        mc_function_free(r->add);
        mc_function_free(r->step);
        mc_array_unref(&r->nothing[FLAT]);
        mc_array_unref(&r->nothing[SUMS]);
        mc_free(r);
    }
}

/* ---- do all ranks make the same steps? ---- */

/* What a net is made from, a line a thing: the program's own lines come first, as they say it best. */
static void describe(const struct mc_learner *r, const char *more, struct mc_nn_text *t)
{
    mc_net *net = r->net;
    mc_node *cost = mc_net_cost(net, MC_TRAINING);
    mc_nn_addf(t, "%s%sparts %lld of a batch of %lld\nstates %s\nrule %s\nloss %s\n", more ? more : "",
               more && *more && more[strlen(more) - 1] != '\n' ? "\n" : "", (long long)r->parts,
               (long long)r->batch, r->shard.on ? "divided among ranks" : "whole on each rank",
               net->train.rule, net->train.loss);
    for (int i = 0; mc_net_param(net, NULL, i).name; i++) {
        const mc_param p = mc_net_param(net, NULL, i);
        const mc_node *v = mc_shared_node(net->g, p.shared);
        mc_nn_addf(t, "parameter %s %s", p.name, mc_dtype_name(mc_node_dtype(v)));
        for (int k = 0; k < mc_node_rank(v); k++) {
            mc_nn_addf(t, "%c%lld", k ? 'x' : ' ', (long long)mc_node_dims(v)[k]);
        }
        mc_nn_addf(t, "\n");
    }
    char *formulas = mc_graph_text(net->g, 1, &cost);
    mc_nn_addf(t, "%s", formulas ? formulas : "");
    t->bad |= !formulas;
    mc_text_free(formulas);
}

mc_status mc_learner_agree(mc_learner *r, const char *more)
{
    if (!r) {
        return mc_fail(MC_EARG, "learner_agree: the learner is missing");
    }
    struct mc_nn_text t = { 0 };
    describe(r, more, &t);
    const mc_status s = t.bad     ? mc_fail(MC_EMEMORY, "out of memory")
                        : r->comm ? mc_comm_agree(r->comm, t.s)
                                  : MC_OK;
    r->agreed |= s == MC_OK;
    mc_nn_free(&t);
    return s;
}

/* ---- a step ---- */

/* Where the stream is. */
static mc_status drawn_so_far(struct mc_learner *r, uint64_t *drawn)
{
    mc_array *a = r->rng ? mc_shared_get(r->rng) : NULL;
    if (a) {
        r->key = ((uint64_t *)mc_array_data(a))[0];
        *drawn = ((uint64_t *)mc_array_data(a))[1];
    }
    const mc_status s = r->rng && !a ? mc_last_status() : MC_OK;
    mc_array_unref(&a);
    return s;
}

/* The stream goes on at that draw.  A device is not waited for. */
static mc_status draw_at(const struct mc_learner *r, uint64_t at)
{
    const uint64_t pair[2] = { r->key, at };
    mc_array *next = r->rng ? mc_array_from(MC_UINT64, MC_SHAPE(2), pair) : NULL;
    const mc_status s = !r->rng ? MC_OK : next ? mc_shared_set(r->rng, next) : mc_last_status();
    mc_array_unref(&next);
    return s;
}

static mc_status one_part(const struct mc_learner *r, const mc_array *x, const mc_array *t, int64_t k,
                          uint64_t drawn, mc_array **out)
{
    const int64_t n = mc_array_dims(t)[0], from = k * r->each, to = from + r->each < n ? from + r->each : n;
    if (from >= to) {
        out[FLAT] = mc_array_ref(r->nothing[FLAT]);
        out[SUMS] = mc_array_ref(r->nothing[SUMS]);
        return MC_OK;
    }
    mc_array *px = mc_array_slice(x, 0, from, to - from, 1),
             *pt = px ? mc_array_slice(t, 0, from, to - from, 1) : NULL;
    mc_status s = pt ? draw_at(r, drawn + (uint64_t)k) : mc_last_status();
    s = s == MC_OK ? mc_call(r->part, MC_IN(px, pt), MC_OUT(&out[FLAT], &out[SUMS])) : s;
    mc_array_unref(&px);
    mc_array_unref(&pt);
    return s;
}

/* Parts k ... k + n - 1, added as a tree; out: the caller's. */
static mc_status tree(const struct mc_learner *r, const mc_array *x, const mc_array *t, int64_t k,
                      int64_t n, uint64_t drawn, mc_array **out)
{
    if (n == 1) {
        return one_part(r, x, t, k, drawn, out);
    }
    int64_t half = 1;
    while (2 * half < n) {
        half *= 2;
    }
    mc_array *a[2] = { NULL, NULL }, *b[2] = { NULL, NULL };
    mc_status s = tree(r, x, t, k, half, drawn, a);
    s = s == MC_OK ? tree(r, x, t, k + half, n - half, drawn, b) : s;
    s = s == MC_OK ? mc_call(r->add, MC_IN(a[0], a[1], b[0], b[1]), MC_OUT(&out[FLAT], &out[SUMS])) : s;
    for (int i = 0; i < 2; i++) {
        mc_array_unref(&a[i]);
        mc_array_unref(&b[i]);
    }
    return s;
}

mc_status mc_learner_step(mc_learner *r, const mc_array *x, const mc_array *t)
{
    if (!r || !x || !t) {
        return mc_fail(MC_EARG, "learner_step: the %s is missing", !r ? "learner" : x ? "target" : "batch");
    }
    const int64_t per = r->parts / (r->comm ? mc_comm_size(r->comm) : 1),
                  rank = r->comm ? mc_comm_rank(r->comm) : 0;
    if (mc_array_rank(x) < 1 || mc_array_rank(t) < 1 || mc_array_dims(x)[0] != mc_array_dims(t)[0] ||
        mc_array_dims(x)[0] > r->each * r->parts) {
        return mc_fail(
            MC_ESHAPE,
            "learner_step: the batch has more examples than parts have room, or another number than targets");
    }
    mc_array *sum[2] = { NULL, NULL };
    uint64_t drawn = 0;
    mc_status s = r->agreed ? MC_OK : mc_learner_agree(r, NULL);
    s = s == MC_OK ? drawn_so_far(r, &drawn) : s;
    s = s == MC_OK ? tree(r, x, t, rank * per, per, drawn, sum) : s;
    s = s == MC_OK ? mc_call(r->step, MC_IN(sum[FLAT], sum[SUMS]), MC_NONE) : s;
    s = s == MC_OK ? draw_at(r, drawn + (uint64_t)r->parts) : s;
    mc_array_unref(&sum[FLAT]);
    mc_array_unref(&sum[SUMS]);
    return s;
}
