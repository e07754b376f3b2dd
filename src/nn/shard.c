/* shard.c: the states of the update rule, divided among ranks: a rank has those of its share of the
 * parameters, takes the sum of that share's gradients by reduce_scatter, and all have the new parameters
 * by all_gather.
 *
 * A share is a vector, whatever the parameters' shapes: rules compute each element by itself.
 *
 * Invariant: the names and values that mc_learner_state gives are those of a learner whose states are whole,
 * so a checkpoint does not tell how many ranks made it. */
#include "nn/learner.h"

static int size_of(const struct mc_learner *r)
{
    return r->comm ? mc_comm_size(r->comm) : 1;
}

static int64_t begin_of(const struct mc_learner *r)
{
    return (r->comm ? mc_comm_rank(r->comm) : 0) * r->shard.each;
}

/* ---- the step ---- */

static mc_node *zeros(mc_net *net, int64_t n)
{
    return mc_formulaf(net->g, "zeros([%lld], dtype=%s)", (long long)n, mc_dtype_name(mc_nn_float()));
}

/* The elements of all parameters that are this rank's. */
static mc_node *share(struct mc_learner *r)
{
    const struct mc_shard *s = &r->shard;
    const int64_t begin = begin_of(r), end = begin + s->each;
    mc_node **piece = mc_nn_keep(r->net, (size_t)(s->nparam + 1) * sizeof *piece);
    int64_t at = 0;
    int n = 0;
    for (int i = 0; piece && i < s->nparam; i++) {
        const int64_t size = mc_nn_elements(r->net, s->param[i]), from = at > begin ? at : begin,
                      to = at + size < end ? at + size : end;
        if (from < to) {
            piece[n++] = mc_formulaf(r->net->g, "ravel(%s)[%lld:%lld]", mc_shared_name(s->param[i]),
                                     (long long)(from - at), (long long)(to - at));
        }
        at += size;
    }
    if (piece && end > at) {
        piece[n++] = zeros(r->net, end - (at > begin ? at : begin));
    }
    return !piece ? NULL : n == 1 ? piece[0] : mc_concatenate(n, piece, NULL);
}

/* The mean gradient of the share. */
static mc_node *gradient(struct mc_learner *r, const char *flat, const char *sums)
{
    const struct mc_shard *s = &r->shard;
    mc_net *net = r->net;
    mc_node *piece[2] = { mc_formulaf(net->g, "%s[:%lld]", flat, (long long)s->all), NULL };
    const int64_t behind = s->each * size_of(r) - s->all;
    piece[1] = behind ? zeros(net, behind) : NULL;
    const char *all = mc_nn_name(net, "parts_padded");
    mc_node *padded = behind ? mc_concatenate(2, piece, NULL) : piece[0];
    if (!all || !padded) {
        return NULL;
    }
    mc_name(padded, all);
    return mc_formulaf(net->g, "reduce_scatter(%s%s%s) / cast(%s[2], %s)", all, mc_learner_group(r),
                       mc_learner_order(r), sums, mc_dtype_name(mc_nn_float()));
}

/* The states that the rule made for the share. */
static bool find_slots(struct mc_shard *s, mc_net *net, const char *own)
{
    const size_t n = strlen(own);
    mc_param p;
    for (int i = 0; (p = mc_net_param(net, "state", i)).name; i++) {
        if (strncmp(p.name, own, n) != 0 || p.name[n] != '_') {
            continue;
        }
        if (s->nslot == MOST_SLOTS) {
            mc_mistake(net->g, MC_EUNSUPPORTED, "rule: more than %d states of a parameter", MOST_SLOTS);
            return false;
        }
        s->slot[s->nslot] = p.shared;
        s->after[s->nslot++] = p.name + n;
    }
    return true;
}

mc_updates mc_shard_updates(struct mc_learner *r, const struct mc_layout *l, const char *flat,
                            const char *sums)
{
    struct mc_shard *s = &r->shard;
    mc_net *net = r->net;
    s->nparam = l->n;
    s->param = l->params;
    s->all = l->all;
    s->each = (l->all + size_of(r) - 1) / size_of(r);
    const char *own = mc_nn_name(net, "share"), *all = mc_nn_name(net, "shares");
    mc_node *p = own ? share(r) : NULL, *g = p ? gradient(r, flat, sums) : NULL, *to = NULL;
    mc_updates none = { NULL, NULL, 0 }, u = g ? mc_nn_share_updates(net, own, p, g, &to) : none,
               out = { NULL, NULL, u.n + l->n };
    if (!to || !all || !find_slots(s, net, own) ||
        !mc_formulaf(net->g, "%s = all_gather(%s_new%s)", all, own, mc_learner_group(r))) {
        return none;
    }
    out.of = mc_nn_keep(net, (size_t)out.n * sizeof *out.of + 1);
    out.to = mc_nn_keep(net, (size_t)out.n * sizeof *out.to + 1);
    int64_t at = 0;
    for (int i = 0; out.of && out.to && i < out.n; i++) {
        if (i < u.n) {
            out.of[i] = u.of[i];
            out.to[i] = u.to[i];
            continue;
        }
        mc_shared *one = l->params[i - u.n];
        const int64_t size = mc_nn_elements(net, one);
        out.of[i] = mc_shared_node(net->g, one);
        out.to[i] = mc_formulaf(net->g, "reshape(%s[%lld:%lld], shape(%s))", all, (long long)at,
                                (long long)(at + size), mc_shared_name(one));
        at += size;
    }
    return out.of && out.to ? out : none;
}

/* ---- whole states ---- */

bool mc_shard_gathers(struct mc_learner *r)
{
    struct mc_shard *s = &r->shard;
    for (int k = 0; k < s->nslot; k++) {
        mc_node *all = mc_formulaf(r->net->g, "all_gather(%s%s)", mc_shared_name(s->slot[k]),
                                   mc_learner_group(r));
        s->gather[k] = all ? mc_compile(r->net->g,
                                        &(mc_spec){ .name = "gather states", .output = &all, .noutput = 1 })
                           : NULL;
        if (!s->gather[k]) {
            return mc_nn_check_error(r->net, false);
        }
    }
    return true;
}

void mc_shard_free(struct mc_shard *s)
{
    for (int k = 0; k < s->nslot; k++) {
        mc_function_free(s->gather[k]);
    }
    mc_array_unref(&s->whole);
}

static int slot_of(const struct mc_shard *s, const mc_shared *shared)
{
    int k = 0;
    while (k < s->nslot && s->slot[k] != shared) {
        k++;
    }
    return k < s->nslot ? k : -1;
}

/* A state of a learner whose states are whole: that of parameter `param`, or, for -1, one that all ranks
 * have. */
struct state { mc_shared *shared; int slot, param; };

/* The i-th: first all that a rank has whole, in their order, then those of each slot. */
static bool state_at(const struct mc_learner *r, int i, struct state *out)
{
    const struct mc_shard *s = &r->shard;
    mc_param p;
    for (int k = 0; (p = mc_net_param(r->net, "state", k)).name; k++) {
        if (slot_of(s, p.shared) < 0 && i-- == 0) {
            *out = (struct state){ p.shared, -1, -1 };
            return true;
        }
    }
    if (i < 0 || i >= s->nslot * s->nparam) {
        return false;
    }
    *out = (struct state){ s->slot[i / s->nparam], i / s->nparam, i % s->nparam };
    return true;
}

static const char *state_name(const struct mc_learner *r, const struct state *k)
{
    struct mc_nn_text t = { 0 };
    if (k->slot < 0) {
        return mc_shared_name(k->shared);
    }
    mc_nn_addf(&t, "%s%s", mc_shared_name(r->shard.param[k->param]), r->shard.after[k->slot]);
    const char *name = t.bad ? NULL : mc_nn_keep_text(r->net, t.s, t.n);
    mc_nn_free(&t);
    return name;
}

static int64_t place_of(const struct mc_learner *r, int param)
{
    int64_t at = 0;
    for (int i = 0; i < param; i++) {
        at += mc_nn_elements(r->net, r->shard.param[i]);
    }
    return at;
}

static mc_array *gathered(struct mc_learner *r, int slot)
{
    struct mc_shard *s = &r->shard;
    if (s->at != slot) {
        mc_array_unref(&s->whole);
        s->at = -1;
        if (mc_call(s->gather[slot], MC_NONE, MC_OUT(&s->whole)) < 0) {
            return NULL;
        }
        s->at = slot;
    }
    return s->whole;
}

mc_param mc_learner_state_like(const mc_learner *r, int i)
{
    struct state k;
    if (!r || !state_at(r, i, &k)) {
        return (mc_param){ NULL, NULL, NULL };
    }
    return (mc_param){ state_name(r, &k), k.slot < 0 ? k.shared : r->shard.param[k.param], NULL };
}

/* Of the slots of all ranks, one parameter's: a copy, as a view would hold them all. */
static mc_array *cut(struct mc_learner *r, const mc_array *all, int param)
{
    mc_shared *p = r->shard.param[param];
    const mc_node *v = mc_shared_node(r->net->g, p);
    mc_array *one = mc_array_slice(all, 0, place_of(r, param), mc_nn_elements(r->net, p), 1),
             *own = one ? mc_array_copy(one) : NULL,
             *y = own ? mc_array_reshape(own, mc_node_rank(v), mc_node_dims(v)) : NULL;
    mc_array_unref(&one);
    mc_array_unref(&own);
    return y;
}

mc_array *mc_learner_state(mc_learner *r, int i)
{
    struct state k;
    if (!r || !state_at(r, i, &k)) {
        mc_fail(MC_EARG, "learner_state: there is no state %d", i);
        return NULL;
    }
    if (k.slot < 0) {
        return mc_shared_get(k.shared);
    }
    if (k.param == 0) {
        mc_array_unref(&r->shard.whole); /* of an earlier step */
        r->shard.at = -1;
    }
    const mc_array *all = gathered(r, k.slot);
    mc_array *y = all ? cut(r, all, k.param) : NULL;
    if (k.param == r->shard.nparam - 1) {
        mc_array_unref(&r->shard.whole);
        r->shard.at = -1;
    }
    return y;
}

/* Of value, the elements that are this rank's, in the place that they have in its share. */
static mc_status set_share(struct mc_learner *r, const struct state *k, const mc_array *value)
{
    const struct mc_shard *s = &r->shard;
    const int64_t begin = begin_of(r), at = place_of(r, k->param), size = mc_array_size(value),
                  from = at > begin ? at : begin,
                  to = at + size < begin + s->each ? at + size : begin + s->each;
    if (from >= to) {
        return MC_OK;
    }
    mc_array *flat = NULL, *now = mc_shared_get(k->shared), *here = now ? mc_array_to(now, "cpu") : NULL,
             *next = here ? mc_array_copy(here) : NULL, *mine = next ? mc_array_to(value, "cpu") : NULL,
             *same = mine ? mc_array_cast(mine, mc_array_dtype(next)) : NULL;
    flat = same ? mc_array_reshape(same, 1, &size) : NULL;
    mc_array *dense = flat ? mc_array_copy(flat) : NULL;
    mc_status status = dense ? MC_OK : mc_last_status();
    if (dense) {
        const size_t each = mc_dtype_size(mc_array_dtype(next));
        memcpy((char *)mc_array_data(next) + (size_t)(from - begin) * each,
               (const char *)mc_array_data(dense) + (size_t)(from - at) * each, (size_t)(to - from) * each);
        status = mc_shared_set(k->shared, next);
    }
    mc_array_unref(&now), mc_array_unref(&here), mc_array_unref(&next), mc_array_unref(&mine);
    mc_array_unref(&same), mc_array_unref(&flat), mc_array_unref(&dense);
    return status;
}

mc_status mc_learner_set_state(mc_learner *r, const char *name, const mc_array *value)
{
    struct state k;
    if (!r || !name || !value) {
        return mc_fail(MC_EARG, "learner_set_state: the %s is missing",
                       !r      ? "learner"
                       : !name ? "name"
                               : "value");
    }
    for (int i = 0; state_at(r, i, &k); i++) {
        const char *one = state_name(r, &k);
        if (!one || strcmp(one, name) != 0) {
            continue;
        }
        if (k.slot < 0) {
            return mc_shared_set(k.shared, value);
        }
        const int64_t want = mc_nn_elements(r->net, r->shard.param[k.param]);
        return mc_array_size(value) == want
                   ? set_share(r, &k, value)
                   : mc_fail(MC_ESHAPE, "learner_set_state: '%s' has %lld elements, not %lld", name,
                             (long long)want, (long long)mc_array_size(value));
    }
    return mc_fail(MC_EARG, "learner_set_state: there is no state '%s'", name);
}

int64_t mc_learner_bytes(const mc_learner *r, int64_t *whole)
{
    struct state k;
    mc_param p;
    int64_t own = 0, all = 0;
    for (int i = 0; r && (p = mc_net_param(r->net, "state", i)).name; i++) {
        own += mc_nn_elements(r->net, p.shared) *
               (int64_t)mc_dtype_size(mc_node_dtype(mc_shared_node(r->net->g, p.shared)));
    }
    for (int i = 0; r && state_at(r, i, &k); i++) {
        mc_shared *s = k.slot < 0 ? k.shared : r->shard.param[k.param];
        all += mc_nn_elements(r->net, s) *
               (int64_t)mc_dtype_size(mc_node_dtype(mc_shared_node(r->net->g, k.shared)));
    }
    if (whole) {
        *whole = all;
    }
    return own;
}
