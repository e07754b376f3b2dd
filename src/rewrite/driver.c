/* driver.c: applies rules bottom-up until none applies, in time near linear in the size of the graph.
 *
 * Each node has a slot with its replacement, or the mark that it is normal: no rule applies to it or to any
 * node below it. Nodes made during rewriting have slots too. This memo rewrites a shared sub-expression once,
 * not once per user. The walk uses an explicit stack instead of recursion.
 *
 * Invariant: a node leaves the stack only when it is normal. Fuel bounds the length of any chain of rules. */
#include "rewrite/apply_rule.h"

enum { FUEL_ALL = 64 };                 /* the most rules in a pass, per node */

/* ---- the walk ---- */

static bool push(struct run *r, mc_node *n)
{
    if (!VEC_PUSH(r->stack, n)) {
        r->status = MC_EMEMORY;
        return false;
    }
    return true;
}

/* Pushes the inputs that are not normal yet. An input that is OPEN is used as it is: it is being replaced by
 * a node that contains it. */
static bool wait_for_inputs(struct run *r, const mc_node *n)
{
    bool waits = false;
    for (int i = n->nin; i-- > 0;) {
        if (r->slot.at[n->in[i]->id].state == FRESH) {
            waits = true;
            if (!push(r, n->in[i])) {
                return false;
            }
        }
    }
    return waits;
}

static void set_result(struct run *r, mc_node *n, mc_node *to)
{
    r->slot.at[n->id].to = to;
    r->slot.at[n->id].state = NORMAL;
    r->stack.n--;
}

static void step(struct run *r)
{
    mc_node *n = r->stack.at[r->stack.n - 1];
    struct slot *s = &r->slot.at[n->id];
    if (s->state == NORMAL) {
        r->stack.n--;
        return;
    }
    if (s->to) {
        struct slot *t = &r->slot.at[s->to->id];
        if (t->state == NORMAL) {
            set_result(r, n, t->to);
        } else if (t->state == OPEN) { /* two rules undo each other: keep the newer form */
            LOG(LOG_REWRITE, "rules undo each other at %s", n->op->name);
            set_result(r, n, n);
        } else {
            push(r, s->to);
        }
        return;
    }
    if (s->state == FRESH) {
        s->state = OPEN;
        if (wait_for_inputs(r, n)) {
            return;
        }
    }
    mc_node *next = mc_attempt_rebuild(r, n);
    if (next == n && r->status == MC_OK) {
        next = mc_attempt_rules(r, n);
    }
    if (!next || next == n) {
        set_result(r, n, n);
    } else {
        r->slot.at[n->id].to = next; /* s may be stale: slots may have moved */
    }
}

static mc_status count_uses(struct run *r, int n, mc_node *const *out)
{
    size_t count;
    mc_node **list = mc_graph_reach(n, out, &count);
    if (!list || !mc_attempt_reserve(r)) {
        mc_free(list);
        return MC_EMEMORY;
    }
    memset(r->uses.at, 0, r->uses.n * sizeof *r->uses.at);
    memset(r->slot.at, 0, r->slot.n * sizeof *r->slot.at);
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < list[i]->nin; k++) {
            r->uses.at[list[i]->in[k]->id]++;
        }
    }
    for (int i = 0; i < n; i++) {
        r->uses.at[out[i]->id]++;
    }
    r->left = FUEL_ALL * count + 1000;
    mc_free(list);
    return MC_OK;
}

/* requires: nothing.  leaves: out[] normal under the rules of the pass. */
static mc_status run_pass(struct run *r, int n, mc_node **out)
{
    TRY(count_uses(r, n, out));
    for (int i = 0; i < n && r->status == MC_OK; i++) {
        push(r, out[i]);
        while (r->stack.n && r->status == MC_OK) {
            step(r);
        }
        if (r->status == MC_OK) {
            out[i] = r->slot.at[out[i]->id].to;
        }
    }
    r->stack.n = 0;
    return r->status;
}

/* ---- all passes ---- */

static mc_status check_outputs(const char *pass, int n, mc_node *const *before, mc_node *const *after)
{
    for (int i = 0; i < n; i++) {
        bool same = before[i]->nout == after[i]->nout && before[i]->type.dtype == after[i]->type.dtype &&
                    before[i]->type.rank == after[i]->type.rank;
        for (int k = 0; same && k < before[i]->type.rank; k++) {
            int64_t a = before[i]->type.dims[k], b = after[i]->type.dims[k];
            same = a == b || a < 0 || b < 0;
        }
        if (!same) {
            return mc_fail(MC_ECHECK, "rewrite: pass %s changed the type of output %d", pass, i);
        }
    }
    return MC_OK;
}

static mc_status run_all(struct run *r, int n, mc_node **out, mc_node **before)
{
    const struct mc_pass *p;
    for (r->pass = 0; (p = mc_pass_at(r->pass)); r->pass++) {
        if (!(p->levels >> r->o->level & 1)) {
            continue;
        }
        memcpy(before, out, (size_t)n * sizeof *out);
        TRY(run_pass(r, n, out));
        TRY(check_outputs(p->name, n, before, out));
    }
    return MC_OK;
}

mc_status mc_rewrite(mc_graph *g, int n, mc_node **out, const struct mc_rewrite *o)
{
    struct mc_rewrite opt = o ? *o : (struct mc_rewrite){ .strict = mc_flag_int(FLAG_strict_math) != 0 };
    opt.including = opt.including ? opt.including : mc_flag_text(FLAG_including);
    opt.excluding = opt.excluding ? opt.excluding : mc_flag_text(FLAG_excluding);
    for (int i = 0; i < n; i++) {
        if (mc_is_error(out[i])) {
            return mc_fail(g->status < 0 ? g->status : MC_EARG, "%s",
                           g->status < 0 ? mc_error(g) : "rewrite: no output");
        }
    }
    TRY(mc_passes_ready());
    int nrule = mc_rule_count();
    struct run r = { .g = g, .o = &opt };
    mc_node **before = mc_alloc((size_t)(n + 1) * sizeof *before, "rewrite");
    mc_node **result = mc_alloc((size_t)(n + 1) * sizeof *result, "rewrite");
    r.off = mc_calloc((size_t)nrule, 2, "rewrite");
    r.status = before && result && r.off ? MC_OK : MC_EMEMORY;
    if (r.status == MC_OK) {
        r.blamed = r.off + nrule;
        for (int i = 0; i < nrule; i++) {
            r.off[i] = mc_rule_off(mc_compiled_at(i)->rule, mc_compiled_at(i)->stage, &opt);
        }
        memcpy(result, out, (size_t)n * sizeof *out);
        r.status = run_all(&r, n, result, before);
    }
    if (r.status == MC_OK) {
        memcpy(out, result, (size_t)n * sizeof *out);
    }
    VEC_FREE(r.slot);
    VEC_FREE(r.uses);
    VEC_FREE(r.stack);
    VEC_FREE(r.changed);
    mc_free(r.off);
    mc_free(before);
    mc_free(result);
    return r.status;
}

mc_status mc_rewrite_cost(mc_graph *g, mc_node **n)
{
    TRY(mc_passes_ready());
    const int nrule = mc_rule_count();
    unsigned *fired = mc_calloc((size_t)nrule, sizeof *fired, "rewrite");
    struct mc_str off = { 0 };
    mc_str_addf(&off, "%s:derivative", mc_flag_text(FLAG_excluding));
    mc_node *made = *n;
    mc_status s = fired && !off.bad
                      ? mc_rewrite(g, 1, &made,
                                   &(struct mc_rewrite){ .excluding = off.s,
                                                         .strict = mc_flag_int(FLAG_strict_math) != 0,
                                                         .level = REWRITE_COST,
                                                         .fired = fired })
                      : MC_EMEMORY;
    for (int i = 0; s == MC_OK && i < nrule; i++) {
        if (fired[i] && mc_rule_mends(i)) {
            *n = made;
        }
    }
    mc_str_free(&off);
    mc_free(fired);
    return s;
}
