/* apply_rule.c: one step of rewriting at one node: the node is rebuilt over the normal forms of its inputs,
 * or one rule replaces it.
 *
 * Invariant: a rule applies as a whole, after dtype, rank and sizes of its result are checked against the
 * node that it replaces. A rule that fails leaves nothing but dead nodes. */
#include "rewrite/apply_rule.h"

enum { FUEL = 64 };                     /* the most rules in a row at one place */

/* ---- slots ---- */

bool mc_attempt_reserve(struct run *r)
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

/* The inputs of n gain a user or lose one.  A node that loses its last user uses nothing itself. */
static void count_inputs(struct run *r, const mc_node *n, bool gained)
{
    do {
        for (int i = 0; i < n->nin; i++) {
            const size_t id = (size_t)n->in[i]->id;
            const bool last = !gained && r->uses.at[id] == 1, again = gained && r->slot.at[id].unused;
            r->uses.at[id] = gained ? r->uses.at[id] + 1 : r->uses.at[id] - (r->uses.at[id] > 0);
            r->slot.at[id].unused = last || (r->slot.at[id].unused && !again);
            if ((last || again) && !VEC_PUSH(r->changed, n->in[i])) {
                r->status = MC_EMEMORY;
            }
        }
        n = r->changed.n ? r->changed.at[--r->changed.n] : NULL;
    } while (n);
}

/* `made` replaces n and takes over its users. */
static void inherit(struct run *r, const mc_node *n, const mc_node *made)
{
    r->uses.at[made->id] += r->uses.at[n->id];
    if (r->slot.at[made->id].unused && r->uses.at[made->id]) {
        r->slot.at[made->id].unused = false;
        count_inputs(r, made, true);
    }
}

/* The nodes from id `mark` on replace n: they get its source location, its label and a rule depth. */
static bool set_result(struct run *r, size_t mark, const mc_node *n, unsigned depth)
{
    if (!mc_attempt_reserve(r)) {
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
    mc_label_since(r->g, mark, n->label);
    return true;
}

/* ---- attempts ---- */

/* The graph's error, saved while a rule runs, which may fail with an error of its own. */
struct aside { mc_status status; char *message; const struct mc_source_location *location; };

static struct aside defer_node(mc_graph *g)
{
    struct aside a = { g->status, g->message, g->location };
    g->status = MC_OK;
    g->message = NULL;
    g->location = NULL;
    return a;
}

/* Restores the saved error. True if there was no error since it was saved; out of memory ends the run. */
static bool undo(struct run *r, struct aside a)
{
    mc_graph *g = r->g;
    bool fine = g->status == MC_OK;
    if (g->status == MC_EMEMORY) {
        r->status = MC_EMEMORY;
    }
    mc_graph_clear_error(g);
    g->status = a.status;
    g->message = a.message;
    g->location = a.location;
    return fine;
}

mc_node *mc_attempt_rebuild(struct run *r, mc_node *n)
{
    mc_node *on_stack[16], **in = n->nin <= 16 ? on_stack : mc_alloc((size_t)n->nin * sizeof *in, "rewrite");
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
        struct aside a = defer_node(r->g);
        size_t mark = r->g->nodes.n;
        made = n->op == &mc_op_item ? mc_item(in[0], n->item)
                                    : mc_node_make(r->g, n->op, n->nin, in, n->attr);
        /* if the sizes, now known, do not fit, the node stays as written and fails when it is run */
        if (!undo(r, a)) {
            made = n;
        } else if (set_result(r, mark, n, r->slot.at[n->id].depth)) {
            inherit(r, n, made);
            if (made->id < mark) { /* the node existed already: its inputs lose a user */
                count_inputs(r, made, false);
            }
        }
    }
    if (in != on_stack) {
        mc_free(in);
    }
    return made;
}

static void report_rule(struct run *r, int rule, const char *name, const mc_node *n, const char *why)
{
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

static void log_rule(const char *name, const mc_node *n, const mc_node *to)
{
    if (mc_logs(LOG_REWRITE)) {
        struct mc_str a = { 0 }, b = { 0 };
        mc_node_print(&a, n, 5);
        mc_node_print(&b, to, 5);
        LOG(LOG_REWRITE, "%s : %s => %s", name, a.s ? a.s : "", b.s ? b.s : "");
        mc_str_free(&a);
        mc_str_free(&b);
    }
}

/* Only floats have -0, infinities and NaN. */
static bool rule_applies(const struct mc_rule *r, const mc_node *n, bool strict)
{
    bool real = mc_is_float(n->type.dtype);
    for (int i = 0; i < n->nin; i++) {
        real |= mc_is_float(n->in[i]->type.dtype);
    }
    return !(strict && real && r->promise == FINITE);
}

/* The node that the rule makes of n; NULL if it does not apply. number: -1 for a user's rule. */
static mc_node *apply(struct run *r, const struct mc_rule *rule, int number, const struct mc_pattern *from,
                      const struct mc_pattern *to, mc_node *n)
{
    if (from && !mc_pattern_may_match(from, n)) {
        return NULL;
    }
    struct mc_match m; /* bindings are cleared where a pattern is matched; most rules tried here have none */
    m.root = n;
    m.g = r->g;
    m.uses = r->uses.at;
    m.nuses = r->uses.n;
    if (!(from ? mc_pattern_match(from, rule, n, &m) : !rule->when || rule->when(&m)) ||
        !rule_applies(rule, n, r->o->strict)) {
        return NULL;
    }
    struct aside a = defer_node(r->g);
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
    if (!undo(r, a) || error) {
        report_rule(r, number, mc_rule_name(rule), n, why.s ? why.s : "no reason given");
        fit = NULL;
        if (r->status == MC_OK) {
            mc_clear_error();
        }
    }
    mc_str_free(&why);
    if (!fit || fit == n) {
        return NULL;
    }
    log_rule(mc_rule_name(rule), n, fit);
    if (r->o->watch && r->o->watch(r->o->arg, rule, n, fit) < 0) {
        r->status = MC_EMEMORY;
        return NULL;
    }
    if (!set_result(r, mark, n, r->slot.at[n->id].depth + 1u)) {
        return NULL;
    }
    for (size_t id = mark; id < r->g->nodes.n; id++) {
        count_inputs(r, r->g->nodes.at[id], true);
    }
    inherit(r, n, fit);
    count_inputs(r, n, false); /* last: its input may be the result, which is used all along */
    return fit;
}

mc_node *mc_attempt_rules(struct run *r, mc_node *n)
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
    /* users' rules do not apply to what gradients are taken of */
    const struct mc_user_rule *own = r->o->level == REWRITE_COST ? NULL : r->g->rules;
    for (const struct mc_user_rule *u = own; u && r->status == MC_OK; u = u->next) {
        if (mc_pattern_root(u->from) == n->op && !mc_rule_off(&u->rule, NULL, r->o) &&
            (made = apply(r, &u->rule, -1, u->from, u->to, n))) {
            r->left--;
            return made;
        }
    }
    return NULL;
}
