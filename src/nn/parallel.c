/* parallel.c: a net that learns on many ranks: each batch is divided into parts, each rank takes its share
 * of them, and all ranks make the same step.  Its functions are made by parts.c.
 *
 * Invariant: the parts, their random numbers and the tree depend on the number of parts, not on that of
 * ranks. So one rank and two, four, ... give the same bits, where each part does (docs/ranks.md). */
#include "nn/learner.h"

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
    const bool good = (!comm || mc_graph_ranks(net->g, GROUP, comm) == MC_OK) && mc_learner_makes(r) &&
                      (r->whole || mc_learner_makes_parts(r));
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
    return r ? (r->whole ? r->whole : r->part) : NULL;
}

void mc_learner_free(mc_learner *r)
{
    if (r) {
        mc_shard_free(&r->shard);
        mc_function_free(r->whole);
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

/* A batch of which every rank has as many examples as any. */
static mc_status whole_step(const struct mc_learner *r, const mc_array *x, const mc_array *t, int64_t rank)
{
    mc_array *px = mc_array_slice(x, 0, rank * r->each, r->each, 1),
             *pt = px ? mc_array_slice(t, 0, rank * r->each, r->each, 1) : NULL;
    const mc_status s = pt ? mc_call(r->whole, MC_IN(px, pt), MC_NONE) : mc_last_status();
    mc_array_unref(&px);
    mc_array_unref(&pt);
    return s;
}

static mc_status step_of_parts(struct mc_learner *r, const mc_array *x, const mc_array *t, int64_t rank,
                               int64_t per)
{
    mc_array *sum[2] = { NULL, NULL };
    uint64_t drawn = 0;
    mc_status s = r->step || mc_learner_makes_parts(r) ? MC_OK : mc_last_status();
    s = s == MC_OK ? drawn_so_far(r, &drawn) : s;
    s = s == MC_OK ? tree(r, x, t, rank * per, per, drawn, sum) : s;
    s = s == MC_OK ? mc_call(r->step, MC_IN(sum[FLAT], sum[SUMS]), MC_NONE) : s;
    s = s == MC_OK ? draw_at(r, drawn + (uint64_t)r->parts) : s;
    mc_array_unref(&sum[FLAT]);
    mc_array_unref(&sum[SUMS]);
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
    const mc_status s = r->agreed ? MC_OK : mc_learner_agree(r, NULL);
    return s != MC_OK                                              ? s
           : r->whole && mc_array_dims(x)[0] == r->each * r->parts ? whole_step(r, x, t, rank)
                                                                   : step_of_parts(r, x, t, rank, per);
}
