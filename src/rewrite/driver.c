/* driver.c: rules applied bottom-up until none applies, in time near linear in the graph.
 *
 * Each node has a slot: what it has become, or that it is normal: no rule applies to it or below it.
 * Slots are kept for nodes made on the way too; that memo is what keeps shared sub-expressions from
 * being rewritten once a user.  An explicit stack takes the place of recursion.
 *
 * Invariant: a rule commits as a whole, with dtype, rank and sizes checked against what it replaces, or
 * it leaves no trace but dead nodes; fuel bounds what any chain of rules may do. */
#include "rewrite/passes.h"

enum { FUEL = 64, FUEL_ALL = 64 };      /* rules in a row at one place; rules in all, for each node */
enum state { FRESH, OPEN, NORMAL };

struct slot {
    mc_node *to;                        /* OPEN: waits for it to become normal; NORMAL: its normal form */
    uint16_t state, depth;              /* depth: rules behind each other that led here */
};
struct run {
    mc_graph *g;
    const struct mc_rewrite *o;
    int pass;
    VEC(struct slot) slot;              /* by node id */
    VEC(unsigned) uses;
    VEC(mc_node *) stack;
    unsigned char *off, *blamed;        /* by rule number */
    size_t left;                        /* rules that may still apply in this pass */
    int nblamed;
    mc_status status;
};

/* ---- slots ---- */

static bool make_room(struct run *r)
{
    size_t n = r->g->nodes.n, old = r->slot.n;
    if (n <= old) {
        return true;
    }
    if (!VEC_RESERVE(r->slot, n - old) || !VEC_RESERVE(r->uses, n - old)) {
        r->status = MC_EMEMORY;
        return false;
    }
    memset(r->slot.at + old, 0, (n - old) * sizeof *r->slot.at);
    memset(r->uses.at + old, 0, (n - old) * sizeof *r->uses.at);
    r->slot.n = r->uses.n = n;
    return true;
}

static bool push(struct run *r, mc_node *n)
{
    if (!VEC_PUSH(r->stack, n)) {
        r->status = MC_EMEMORY;
        return false;
    }
    return true;
}

/* n gives way to made: its users are made's from now on. */
static void inherit(struct run *r, const mc_node *n, const mc_node *made)
{
    r->uses.at[made->id] += r->uses.at[n->id];
}

static void release_inputs(struct run *r, const mc_node *n)
{
    for (int i = 0; i < n->nin; i++) {
        r->uses.at[n->in[i]->id] -= r->uses.at[n->in[i]->id] > 0;
    }
}

/* Nodes made since `mark` in place of n. */
static bool enter(struct run *r, size_t mark, const mc_node *n, unsigned depth)
{
    if (!make_room(r)) {
        return false;
    }
    for (size_t id = mark; id < r->g->nodes.n; id++) {
        mc_node *fresh = r->g->nodes.at[id];
        r->slot.at[id].depth = (uint16_t)depth;
        if (!fresh->file) {
            fresh->file = n->file;
            fresh->line = n->line;
        }
    }
    return true;
}

/* ---- one step at one node ---- */

/* The graph's mistake, put aside while a rule may make its own. */
struct aside { mc_status status; char *message; const struct mc_place *place; };

static struct aside put_aside(mc_graph *g)
{
    struct aside a = { g->status, g->message, g->place };
    g->status = MC_OK;
    g->message = NULL;
    g->place = NULL;
    return a;
}

/* True if nothing went wrong in between; out of memory ends the run. */
static bool take_back(struct run *r, struct aside a)
{
    mc_graph *g = r->g;
    bool fine = g->status == MC_OK;
    if (g->status == MC_EMEMORY) {
        r->status = MC_EMEMORY;
    }
    mc_graph_clear_error(g);
    g->status = a.status;
    g->message = a.message;
    g->place = a.place;
    return fine;
}

/* n over the normal forms of its inputs. */
static mc_node *rebuild(struct run *r, mc_node *n)
{
    mc_node *few[16], **in = n->nin <= 16 ? few : mc_alloc((size_t)n->nin * sizeof *in, "rewrite");
    bool changed = false;
    if (!in) {
        r->status = MC_EMEMORY;
        return n;
    }
    for (int i = 0; i < n->nin; i++) {
        const struct slot *s = &r->slot.at[n->in[i]->id];
        in[i] = s->state == NORMAL ? s->to : n->in[i];
        changed |= in[i] != n->in[i];
    }
    mc_node *made = n;
    if (changed) {
        struct aside a = put_aside(r->g);
        size_t mark = r->g->nodes.n;
        made = n->op == &mc_op_item ? mc_item(in[0], n->item) : mc_node_make(r->g, n->op, n->nin, in, n->attr);
        if (!take_back(r, a)) { /* sizes known by now do not fit: the node stays as it was written, and says so when run */
            made = n;
        } else if (enter(r, mark, n, r->slot.at[n->id].depth)) {
            if (made->id < mark) { /* one that was there: the inputs lose a user */
                release_inputs(r, made);
            }
            inherit(r, n, made);
        }
    }
    if (in != few) {
        mc_free(in);
    }
    return made;
}

static void blame(struct run *r, int rule, const char *name, const mc_node *n, const char *why)
{
    r->nblamed++;
    if (rule >= 0 && r->o->failed) {
        r->o->failed[rule]++;
    }
    if (rule < 0 || !r->blamed[rule]) {
        struct mc_str text = { 0 };
        mc_node_print(&text, n, 3);
        LOG(LOG_REWRITE, "%s : failed on %s: %s", name, text.s ? text.s : "", why);
        mc_str_free(&text);
    }
    if (rule >= 0) {
        r->blamed[rule] = 1;
    }
}

static void tell(const char *name, const mc_node *n, const mc_node *to)
{
    if (atomic_load_explicit(&mc_log_mask, memory_order_relaxed) & 1u << LOG_REWRITE) {
        struct mc_str a = { 0 }, b = { 0 };
        mc_node_print(&a, n, 5);
        mc_node_print(&b, to, 5);
        LOG(LOG_REWRITE, "%s : %s => %s", name, a.s ? a.s : "", b.s ? b.s : "");
        mc_str_free(&a);
        mc_str_free(&b);
    }
}

/* Only floats have -0, infinities and NaN. */
static bool allowed(const struct mc_rule *r, const mc_node *n, bool strict)
{
    bool real = mc_is_float(n->type.dtype);
    for (int i = 0; i < n->nin; i++) {
        real |= mc_is_float(n->in[i]->type.dtype);
    }
    return !(strict && real && r->promise == FINITE);
}

/* What the rule makes of n; NULL: it does not apply.  number: -1 for a user's rule. */
static mc_node *apply(struct run *r, const struct mc_rule *rule, int number, const struct mc_pattern *from,
                      const struct mc_pattern *to, mc_node *n)
{
    if (from && !mc_pattern_may_match(from, n)) {
        return NULL;
    }
    struct mc_match m = { .root = n, .g = r->g, .uses = r->uses.at, .nuses = r->uses.n };
    if (!(from ? mc_pattern_match(from, rule, n, &m) : !rule->when || rule->when(&m)) || !allowed(rule, n, r->o->strict)) {
        return NULL;
    }
    struct aside a = put_aside(r->g);
    size_t mark = r->g->nodes.n;
    mc_node *made = rule->make ? rule->make(&m) : mc_pattern_build(to, &m), *fit = NULL;
    if (made && !mc_is_error(made) && made != n) {
        fit = mc_fit(n, made);
        if (!fit && r->g->status == MC_OK) {
            mc_node_fail(r->g, MC_ESHAPE, "its result does not have the type of what it replaces");
        }
    }
    bool error = made && mc_is_error(made);
    struct mc_str why = { 0 };
    if (r->g->status < 0) {
        mc_str_add(&why, mc_error(r->g));
    }
    if (!take_back(r, a) || error) {
        blame(r, number, mc_rule_name(rule), n, why.s ? why.s : "no reason given");
        fit = NULL;
        if (r->status == MC_OK) {
            mc_clear_error();
        }
    }
    mc_str_free(&why);
    if (!fit || fit == n) {
        return NULL;
    }
    tell(mc_rule_name(rule), n, fit);
    if (r->o->watch && r->o->watch(r->o->arg, rule, n, fit) < 0) {
        r->status = MC_EMEMORY;
        return NULL;
    }
    if (!enter(r, mark, n, r->slot.at[n->id].depth + 1u)) {
        return NULL;
    }
    for (size_t id = mark; id < r->g->nodes.n; id++) {
        for (int i = 0; i < r->g->nodes.at[id]->nin; i++) {
            r->uses.at[r->g->nodes.at[id]->in[i]->id]++;
        }
    }
    release_inputs(r, n);
    inherit(r, n, fit);
    return fit;
}

static mc_node *try_rules(struct run *r, mc_node *n)
{
    int count;
    if (n->nout != 1 || n->op->flags & OP_LEAF) {
        return NULL;
    }
    if (r->slot.at[n->id].depth >= FUEL || r->left == 0) {
        LOG(LOG_REWRITE, "fuel ended at %s in %s", n->op->name, mc_pass_at(r->pass)->name);
        return NULL;
    }
    const int *list = mc_pass_rules(r->pass, n->op, &count);
    mc_node *made = NULL;
    for (int i = 0; i < count && r->status == MC_OK; i++) {
        const struct mc_compiled *c = mc_compiled_at(list[i]);
        if (r->off[list[i]] || (c->op && c->op != n->op)) {
            continue;
        }
        if ((made = apply(r, c->rule, list[i], c->from, c->to, n))) {
            if (r->o->fired) {
                r->o->fired[list[i]]++;
            }
            r->left--;
            return made;
        }
    }
    for (const struct mc_user_rule *u = r->g->rules; u && r->status == MC_OK; u = u->next) {
        if (mc_pattern_root(u->from) == n->op && !mc_rule_off(&u->rule, r->o) &&
            (made = apply(r, &u->rule, -1, u->from, u->to, n))) {
            r->left--;
            return made;
        }
    }
    return NULL;
}

/* ---- the walk ---- */

/* Pushes the inputs that are not normal yet; one that is open stands for itself (it is being replaced
 * by something made of it). */
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

static void become(struct run *r, mc_node *n, mc_node *to)
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
            become(r, n, t->to);
        } else if (t->state == OPEN) { /* two rules undo each other: stay with the newer form */
            LOG(LOG_REWRITE, "rules go round in a circle at %s", n->op->name);
            become(r, n, n);
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
    mc_node *next = rebuild(r, n);
    if (next == n && r->status == MC_OK) {
        next = try_rules(r, n);
    }
    if (!next || next == n) {
        become(r, n, n);
    } else {
        r->slot.at[n->id].to = next; /* slots may have moved */
    }
}

static mc_status count_uses(struct run *r, int n, mc_node *const *out)
{
    size_t count;
    mc_node **list = mc_graph_reach(n, out, &count);
    if (!list || !make_room(r)) {
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

/* ---- the service ---- */

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
        if (r->o->level == REWRITE_FAST && !p->fast) {
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
            return mc_fail(g->status < 0 ? g->status : MC_EARG, "%s", g->status < 0 ? mc_error(g) : "rewrite: no output");
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
            r.off[i] = mc_rule_off(mc_compiled_at(i)->rule, &opt);
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
    mc_free(r.off);
    mc_free(before);
    mc_free(result);
    return r.status;
}
