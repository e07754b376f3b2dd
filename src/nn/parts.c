/* parts.c: the functions of a learner.
 *
 *   part     gradients of the loss of its examples, weighted by their number, in one array; changes of
 *            running averages behind them
 *   add      the arrays of two parts; the top of the tree of parts is an all_reduce
 *   step     the update rule, from the mean
 *   whole    part and step in one, where a rank has one part with all its examples
 *
 * What is reduced comes in buckets, the last parameters' first, as their gradients are there first: while one
 * is reduced, earlier layers go back.
 *
 * Invariant: the updates are formulas of the buckets, which are inputs.  step takes them from the array of
 * the parts, whole from the gradients. */
#include "nn/learner.h"

/* bytes from which a bucket is full, and those of a parameter that shares none: joining would copy it */
enum { BUCKET = 1 << 23, ALONE = 1 << 25 };

/* ---- what there is to reduce ---- */

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
    l->mean = mc_nn_keep(net, (size_t)l->n * sizeof *l->mean + 1);
    l->own = mc_nn_keep(net, (size_t)(l->n + net->nrunning) * sizeof *l->own + 1);
    l->bucket = mc_nn_keep(net, (size_t)(l->n + 1) * sizeof *l->bucket); /* a parameter each, at most */
    for (int i = 0; l->own && l->mean && l->params && i < l->n; i++) {
        l->params[i] = mc_net_param(net, "trainable", i).shared;
        l->all += mc_nn_elements(net, l->params[i]);
    }
    return l->params && l->mean && l->own && l->bucket;
}

static int64_t of_running(mc_net *net)
{
    int64_t n = 0;
    for (int i = 0; i < net->nrunning; i++) {
        n += mc_nn_elements(net, net->running[i].shared);
    }
    return n;
}

/* Parameters first ... first + n - 1, or all running averages, as elements from ... from + size - 1. */
static bool add_bucket(struct mc_learner *r, int first, int n, int64_t from, int64_t size)
{
    struct mc_layout *l = &r->layout;
    struct mc_bucket *b = &l->bucket[l->nbucket];
    char name[32];
    mc_snprintf(name, sizeof name, "parts_%d", l->nbucket);
    *b = (struct mc_bucket){ .first = first, .n = n, .from = from, .size = size };
    b->name = mc_nn_name(r->net, name);
    l->nbucket++;
    return b->name && mc_input_sized(r->net->g, b->name, mc_nn_float(), 1, &size);
}

static bool buckets(struct mc_learner *r)
{
    struct mc_layout *l = &r->layout;
    const int64_t size = (int64_t)mc_dtype_size(mc_nn_float()), running = of_running(r->net);
    int64_t end = l->all, from = end;
    int last = l->n - 1;
    bool good = true;
    for (int i = last; i >= 0 && good; i--) {
        const int64_t one = mc_nn_elements(r->net, l->params[i]);
        if (one * size >= ALONE && last > i) {
            good = add_bucket(r, i + 1, last - i, from, end - from);
            last = i;
            end = from;
        }
        from -= one;
        if (good && ((end - from) * size >= BUCKET || i == 0)) {
            good = add_bucket(r, i, last - i + 1, from, end - from);
            last = i - 1;
            end = from;
        }
    }
    return good && (!running || add_bucket(r, l->n, r->net->nrunning, l->all, running));
}

/* ---- gradients ---- */

static mc_node *in_one(mc_node *const *piece, int n)
{
    return n == 1 ? piece[0] : mc_concatenate(n, piece, NULL);
}

/* The gradient of a penalty depends on the parameter alone, so it may be added to the mean: the product that
 * makes the gradient of a large parameter then need not read it.  Bits change, so the order of sums must be
 * free.  A small one is written into its bucket by the kernel that adds. */
static bool of_penalties(struct mc_learner *r, mc_node *const *wrt)
{
    struct mc_layout *l = &r->layout;
    const mc_grad_spec any = { .disconnected = MC_DISCONNECTED_ZERO };
    l->of_penalty = mc_nn_keep(r->net, (size_t)l->n * sizeof *wrt + 1);
    if (!l->of_penalty || mc_grads(r->net->loss, l->n, wrt, l->own, &any) < 0 ||
        mc_grads(r->net->penalties, l->n, wrt, l->of_penalty, &any) < 0) {
        return false;
    }
    for (int i = 0; i < l->n; i++) {
        if (mc_nn_elements(r->net, l->params[i]) * (int64_t)mc_dtype_size(mc_nn_float()) < ALONE) {
            l->own[i] = mc_add(l->own[i], l->of_penalty[i]);
            l->of_penalty[i] = NULL;
        }
    }
    return true;
}

/* Gradients and changes as vectors; cost, wrong, and the weight of a mean over these examples. */
static bool gradients(struct mc_learner *r)
{
    mc_net *net = r->net;
    struct mc_layout *l = &r->layout;
    mc_node *cost = mc_net_cost(net, MC_TRAINING), *wrong = mc_net_wrong(net, MC_TRAINING),
            *t = mc_net_target(net);
    mc_node *count = t ? mc_formulaf(net->g, "cast(size(%s, axis=0), float64)", mc_node_name(t)) : NULL;
    mc_node **wrt = mc_nn_keep(net, (size_t)l->n * sizeof *wrt + 1);
    for (int i = 0; wrt && i < l->n; i++) {
        wrt[i] = mc_shared_node(net->g, l->params[i]);
    }
    if (!wrt || !count || !cost ||
        !(net->penalties && r->any_order && !r->shard.on
              ? of_penalties(r, wrt)
              : mc_grads(cost, l->n, wrt, l->own, NULL) == MC_OK)) {
        return false;
    }
    for (int i = 0; i < l->n + net->nrunning; i++) {
        l->own[i] = mc_ravel(i < l->n ? l->own[i]
                                      : mc_sub(net->running[i - l->n].to,
                                               mc_shared_node(net->g, net->running[i - l->n].shared)));
    }
    l->weight = mc_true_div(count, mc_formulaf(net->g, "cast(%lld, float64)", (long long)r->each));
    mc_node *sum[] = { mc_mul(mc_cast(cost, "dtype=float64"), count),
                       wrong ? mc_mul(mc_cast(wrong, "dtype=float64"), count) : mc_formula(net->g, "0.0"),
                       l->weight };
    l->own_sums = mc_cast(mc_stack(3, sum, NULL), "dtype=float64");
    return l->own_sums != NULL;
}

/* ---- updates ---- */

/* of_all = all_reduce(what of the input `of`); the name, or NULL */
static const char *reduced(struct mc_learner *r, const char *of, const char *what)
{
    struct mc_nn_text t = { 0 };
    mc_nn_addf(&t, "%s_all", of);
    const char *all = t.bad ? NULL : mc_nn_keep_text(r->net, t.s, t.n);
    mc_node *y = all ? mc_formulaf(r->net->g, "%s = all_reduce(%s%s%s%s)", all, of, what, mc_learner_group(r),
                                   mc_learner_order(r))
                     : NULL;
    mc_nn_free(&t);
    return y ? all : NULL;
}

/* What of all, from *at on, belongs to s: its mean, in its shape.  Weights of halves would be rounded. */
static mc_node *taken(struct mc_learner *r, mc_shared *s, const char *all, int64_t *at)
{
    const mc_dtype d = mc_node_dtype(mc_shared_node(r->net->g, s));
    const int64_t size = mc_nn_elements(r->net, s);
    mc_node *y = mc_formulaf(r->net->g, "cast(reshape(%s[%lld:%lld], shape(%s)) / cast(%s[2], %s), %s)", all,
                             (long long)*at, (long long)(*at + size), mc_shared_name(s), r->layout.sums_all,
                             mc_dtype_name(mc_dtype_size(d) < 4 ? MC_FLOAT32 : d), mc_dtype_name(d));
    *at += size;
    return y;
}

/* The means of a bucket's parts, to l->mean or `running`. */
static bool means_of(struct mc_learner *r, const struct mc_bucket *b, mc_node **running)
{
    struct mc_layout *l = &r->layout;
    const char *all = reduced(r, b->name, "");
    int64_t at = 0;
    for (int i = 0; all && i < b->n; i++) {
        mc_shared *s = b->first < l->n ? l->params[b->first + i] : r->net->running[i].shared;
        mc_node *mean = taken(r, s, all, &at);
        if (b->first >= l->n) {
            running[i] = mean;
        } else {
            mc_node *more = l->of_penalty ? l->of_penalty[b->first + i] : NULL;
            l->mean[b->first + i] = more ? mc_add(mean, more) : mean;
        }
    }
    return all != NULL;
}

/* Where states are divided, so are gradients: only what is behind them is whole in each rank. */
static mc_updates divided_updates(struct mc_learner *r, mc_node **running)
{
    struct mc_nn_text behind = { 0 };
    int64_t at = 0;
    mc_nn_addf(&behind, "[%lld:]", (long long)r->layout.all);
    const char *all = r->net->nrunning && !behind.bad ? reduced(r, r->layout.flat_name, behind.s) : NULL;
    for (int i = 0; all && i < r->net->nrunning; i++) {
        running[i] = taken(r, r->net->running[i].shared, all, &at);
    }
    mc_nn_free(&behind);
    return mc_shard_updates(r, &r->layout, r->layout.flat_name, r->layout.sums_all);
}

static mc_updates of_buckets(struct mc_learner *r, mc_node **running)
{
    struct mc_layout *l = &r->layout;
    bool good = buckets(r);
    for (int i = 0; good && i < l->nbucket; i++) {
        good = means_of(r, &l->bucket[i], running);
    }
    return good ? mc_updates_of(r->net, NULL, l->n, l->params, l->mean, NULL) : (mc_updates){ 0 };
}

/* Of the parameters and what the rule remembers of them, of running averages and the sums of a pass. */
static bool all_updates(struct mc_learner *r)
{
    mc_net *net = r->net;
    struct mc_layout *l = &r->layout;
    mc_node **running = mc_nn_keep(net, (size_t)net->nrunning * sizeof *running + 1);
    if (!running || !mc_nn_sums(net) || !(l->sums_all = reduced(r, l->sums_name, ""))) {
        return false;
    }
    const mc_updates u = r->shard.on ? divided_updates(r, running) : of_buckets(r, running);
    l->to = (mc_updates){ NULL, NULL, u.n + net->nrunning + 1 };
    l->to.of = u.n ? mc_nn_keep(net, (size_t)(l->to.n + 1) * sizeof *l->to.of) : NULL;
    l->to.to = l->to.of ? mc_nn_keep(net, (size_t)(l->to.n + 1) * sizeof *l->to.to) : NULL;
    if (!l->to.to) {
        return false;
    }
    memcpy(l->to.of, u.of, (size_t)u.n * sizeof *u.of);
    memcpy(l->to.to, u.to, (size_t)u.n * sizeof *u.to);
    for (int i = 0; i < net->nrunning; i++) {
        l->to.of[u.n + i] = mc_shared_node(net->g, net->running[i].shared);
        l->to.to[u.n + i] = mc_add(l->to.of[u.n + i], running[i]);
    }
    l->to.of[l->to.n - 1] = mc_shared_node(net->g, net->sums);
    l->to.to[l->to.n - 1] = mc_formulaf(net->g, "%s + %s[:2]", mc_shared_name(net->sums), l->sums_all);
    return mc_nn_check_error(net, true);
}

/* ---- functions ---- */

/* What a function hands to the next one remains in the device's memory. */
static void leave_on_device(mc_node *out[2])
{
    out[FLAT] = mc_gpu_from_host(out[FLAT]);
    out[SUMS] = mc_gpu_from_host(out[SUMS]);
}

static bool part_function(struct mc_learner *r)
{
    mc_net *net = r->net;
    struct mc_layout *l = &r->layout;
    const int n = l->n + net->nrunning;
    mc_node *weight = mc_cast(l->weight, mc_nn_float() == MC_FLOAT64 ? "dtype=float64" : "dtype=float32"),
            **piece = mc_nn_keep(net, (size_t)n * sizeof *piece + 1), *out[2] = { NULL, l->own_sums };
    for (int i = 0; piece && i < n; i++) {
        piece[i] = mc_cast(mc_mul(l->own[i], weight), "dtype=floatX");
    }
    out[FLAT] = piece && n ? in_one(piece, n) : NULL;
    if (!out[FLAT]) {
        return mc_nn_check_error(net, false);
    }
    leave_on_device(out);
    r->part = mc_nn_compile(net, "part", true, 2, out, NULL, NULL);
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

/* The inputs of step: the sums over this rank's parts. */
static bool step_inputs(struct mc_learner *r)
{
    static const int64_t three = 3;
    struct mc_layout *l = &r->layout;
    l->size = l->all + of_running(r->net);
    l->flat_name = mc_nn_name(r->net, "parts_flat");
    l->sums_name = mc_nn_name(r->net, "parts_sums");
    if (l->flat_name && l->sums_name) {
        l->in[FLAT] = mc_input_sized(r->net->g, l->flat_name, mc_nn_float(), 1, &l->size);
        l->in[SUMS] = mc_input_sized(r->net->g, l->sums_name, MC_FLOAT64, 1, &three);
    }
    return l->in[FLAT] && l->in[SUMS];
}

static bool step_function(struct mc_learner *r)
{
    struct mc_layout *l = &r->layout;
    struct mc_nn_text givens = { 0 };
    for (int i = 0; i < l->nbucket; i++) {
        const struct mc_bucket *b = &l->bucket[i];
        mc_nn_addf(&givens, "%s%s = %s[%lld:%lld]", i ? "; " : "", b->name, l->flat_name, (long long)b->from,
                   (long long)(b->from + b->size));
    }
    r->step = givens.bad ? NULL
                         : mc_compile(r->net->g, &(mc_spec){ .name = "step",
                                                             .input = l->in,
                                                             .ninput = 2,
                                                             .givens = givens.s,
                                                             .update_of = l->to.of,
                                                             .update = l->to.to,
                                                             .nupdate = l->to.n });
    mc_nn_free(&givens);
    r->nothing[FLAT] = r->step ? mc_array_new(mc_nn_float(), 1, &l->size) : NULL;
    r->nothing[SUMS] = r->nothing[FLAT] ? mc_array_new(MC_FLOAT64, MC_SHAPE(3)) : NULL;
    return r->nothing[SUMS] != NULL;
}

bool mc_learner_makes_parts(struct mc_learner *r)
{
    return (r->part || part_function(r)) && (r->add || add_function(r)) && (r->step || step_function(r));
}

/* "name = name_here": the node in place of the input */
static bool give(struct mc_learner *r, struct mc_nn_text *givens, const char *name, mc_node *node)
{
    struct mc_nn_text here = { 0 };
    mc_nn_addf(&here, "%s_here", name);
    mc_nn_addf(givens, "%s%s = %s_here", givens->n ? "; " : "", name, name);
    const bool good = node && !here.bad && !givens->bad && mc_name(node, here.s) != NULL;
    mc_nn_free(&here);
    return mc_nn_check_error(r->net, good);
}

/* The stream as this rank's part has it.  The formula is the same on all ranks, so that they run the same
 * steps: a variable tells them apart. */
static mc_node *own_stream(struct mc_learner *r)
{
    const uint64_t behind[2] = { 0, (uint64_t)(r->comm ? mc_comm_rank(r->comm) : 0) };
    const char *name = mc_nn_name(r->net, "parts_before");
    mc_array *a = mc_array_from(MC_UINT64, MC_SHAPE(2), behind);
    mc_shared *s = name && a ? mc_shared_new(r->net->g, name, a) : NULL;
    mc_array_unref(&a);
    return s ? mc_add(mc_shared_node(r->net->g, r->rng), mc_shared_node(r->net->g, s)) : NULL;
}

/* What stands in for the inputs of the updates. */
static bool give_all(struct mc_learner *r, struct mc_nn_text *givens)
{
    struct mc_layout *l = &r->layout;
    const int n = l->n + r->net->nrunning;
    const bool draws = r->rng && r->parts > 1;
    mc_node **own = mc_nn_keep(r->net, (size_t)n * sizeof *own + 1), *sums = l->own_sums,
            *stream[2] = { draws ? mc_shared_node(r->net->g, r->rng) : NULL, draws ? own_stream(r) : NULL };
    for (int i = 0; own && i < n; i++) {
        own[i] = stream[1] ? mc_clone(l->own[i], 2, stream) : l->own[i];
    }
    sums = stream[1] ? mc_clone(sums, 2, stream) : sums;
    bool good = own && (stream[1] || !draws) && give(r, givens, l->sums_name, sums);
    for (int i = 0; good && i < l->nbucket; i++) {
        good = give(r, givens, l->bucket[i].name, in_one(own + l->bucket[i].first, l->bucket[i].n));
    }
    return good && (l->nbucket || give(r, givens, l->flat_name, in_one(own, n)));
}

static bool whole_function(struct mc_learner *r)
{
    struct mc_nn_text givens = { 0 };
    mc_updates to = r->layout.to;
    const bool good = give_all(r, &givens);
    if (r->rng && r->parts > 1) { /* behind the draws of all ranks */
        to.of[to.n] = mc_shared_node(r->net->g, r->rng);
        to.to[to.n++] = mc_formulaf(r->net->g, "%s + cast([0, %lld], uint64)", mc_shared_name(r->rng),
                                    (long long)r->parts);
    }
    r->whole = good ? mc_nn_compile(r->net, "learn", true, 0, NULL, &to, givens.s) : NULL;
    mc_nn_free(&givens);
    return r->whole != NULL;
}

bool mc_learner_makes(struct mc_learner *r)
{
    return mc_nn_check_error(r->net, parameters(r->net, &r->layout) && step_inputs(r) && gradients(r) &&
                                         all_updates(r)) &&
           (!r->shard.on || mc_shard_gathers(r)) &&
           (!r->any_order || r->batch != r->each * r->parts || whole_function(r));
}
