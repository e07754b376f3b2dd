/* debug.c: checks the rules in DEBUG mode.  Each replaced node and its replacement are computed by the
 * reference from the arguments of the call, and compared.
 *
 * Invariant: both are rebuilt over float64 twins of the inputs, so that a difference is a fault of the rule
 * and not rounding.  This also lets a stable form be compared with the form that it replaces. */
#include "compile/compiling.h"
#include <math.h>

/* relative tolerance 1/16: forms that rules make stable may be that inaccurate */
enum { LEEWAY = 16 };
enum { DEPTH = 5 };                 /* nodes below a result that are searched for cancellation */
/* absolute tolerance, relative to the largest value: what cancellation may leave */
static const double noise = 1e-6;

mc_status mc_debug_note(void *arg, const struct mc_rule *rule, mc_node *from, mc_node *to)
{
    struct compiling *c = arg;
    const char *name = mc_rule_name(rule);
    struct mc_rewritten one = {
        mc_arena_str(&c->g->arena, name, strlen(name)), rule->promise == EXACT, from, to, { from, to }
    };
    return one.rule && VEC_PUSH(c->code->rewritten, one) ? MC_OK : MC_EMEMORY;
}

/* A float input or shared variable gets a float64 input as its twin. */
static mc_status add_twin(struct compiling *c, mc_node *n)
{
    char name[40];
    mc_snprintf(name, sizeof name, "float64_of_%u", (unsigned)n->id);
    struct mc_twin t = { n, mc_is_float(n->type.dtype)
                                ? mc_input_sized(c->g, name, MC_FLOAT64, n->type.rank, n->type.dims)
                                : n };
    return !mc_is_error(t.wide) && VEC_PUSH(c->code->twin, t) ? MC_OK : MC_EMEMORY;
}

/* x in float64, if it is a constant of a narrower float dtype or a cast to one: these are not widened by the
 * twins of inputs. */
static mc_node *widened(mc_node *x)
{
    const bool narrow = mc_is_float(x->type.dtype) && x->type.dtype != MC_FLOAT64;
    if (narrow && mc_is_const(x)) {
        return mc_cast_to(x, MC_FLOAT64);
    }
    return narrow && x->op->form == FORM_CAST ? mc_cast_to(x->in[0], MC_FLOAT64) : NULL;
}

/* requires: inputs and shared variables are replaced by their twins.  The operand of a cast must depend on
 * twins too, because a call holds the locks of the variables.  Returns the number of nodes replaced; casts
 * below them may remain. */
static int widen_numbers(mc_graph *g, int n, mc_node **node)
{
    size_t have = 0;
    mc_node **from = mc_graph_reach(n, node, &have),
            **to = from ? mc_alloc((have + 1) * sizeof *to, "debug") : NULL;
    int many = 0;
    for (size_t i = 0; i < have && to; i++) {
        mc_node *x = from[i], *wide = widened(x);
        if (wide) {
            from[many] = x;
            to[many++] = wide;
        }
    }
    mc_status s = to ? mc_graph_replace(g, many, from, to, n, node) : MC_EMEMORY;
    mc_free(from);
    mc_free(to);
    return s < 0 ? (int)s : many;
}

static mc_status widen(struct compiling *c, mc_node **node, mc_node **from, mc_node **to)
{
    size_t n = c->code->rewritten.n, have = c->g->nodes.n;
    for (size_t i = 0; i < have; i++) {
        mc_node *x = c->g->nodes.at[i];
        if (x->op == &mc_op_input || x->shared) {
            TRY(add_twin(c, x));
        }
    }
    for (size_t i = 0; i < c->code->twin.n; i++) {
        from[i] = c->code->twin.at[i].of;
        to[i] = c->code->twin.at[i].wide;
    }
    for (size_t i = 0; i < n; i++) {
        node[2 * i] = c->code->rewritten.at[i].from;
        node[2 * i + 1] = c->code->rewritten.at[i].to;
    }
    TRY(mc_graph_replace(c->g, (int)c->code->twin.n, from, to, (int)(2 * n), node));
    for (int left = 1; left != 0;) {
        TRY(left = widen_numbers(c->g, (int)(2 * n), node));
    }
    for (size_t i = 0; i < n; i++) {
        c->code->rewritten.at[i].wide[0] = node[2 * i];
        c->code->rewritten.at[i].wide[1] = node[2 * i + 1];
    }
    return MC_OK;
}

/* requires: all rules were applied.  leaves: float64 twins of the nodes that they replaced, or none if an op
 * does not accept float64. */
mc_status mc_debug_widen(struct compiling *c)
{
    size_t n = c->code->rewritten.n, leaves = c->g->nodes.n;
    mc_node **node = mc_alloc((2 * n + 1) * sizeof *node, "debug");
    mc_node **from = mc_alloc((leaves + 1) * sizeof *from, "debug"),
            **to = mc_alloc((leaves + 1) * sizeof *to, "debug");
    mc_status s = node && from && to ? widen(c, node, from, to) : MC_EMEMORY;
    if (s < 0 && s != MC_EMEMORY) {
        LOG(LOG_REWRITE, "DEBUG cannot compute the rewritten nodes in float64: %s", mc_error(c->g));
        mc_graph_clear_error(c->g);
        mc_clear_error();
        c->code->rewritten.n = 0;
        s = MC_OK;
    }
    mc_free(node);
    mc_free(from);
    mc_free(to);
    return s;
}

/* ---- values ---- */

static double largest(double most, const mc_array *a)
{
    int64_t n = mc_is_float(a->dtype) && mc_array_is_contiguous(a) ? mc_array_size(a) : 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size));
        most = x > most && x < HUGE_VAL ? x : most;
    }
    return most;
}

/* The first element where both are finite and differ by more than the tolerance; -1: none.  tolerance:
 * float64, added to the tolerance; or NULL. */
static int64_t differs(const struct mc_rewritten *r, const mc_array *from, const mc_array *to,
                       const mc_array *tolerance)
{
    size_t size = mc_dtypes[from->dtype].size,
           other = mc_dtypes[to->dtype].size; /* nodes that depend on no input keep their dtype */
    if (!mc_dims_equal(from->rank, from->dims, to->rank, to->dims)) {
        return 0;
    }
    /* rounding may change the result of a comparison */
    if (!mc_is_float(from->dtype) || !mc_is_float(to->dtype)) {
        return r->exact ? mc_array_differs(from, to, 0, 0) : -1;
    }
    double least = noise * largest(largest(0, from), to);
    const double *more = tolerance ? (const double *)(const void *)tolerance->data : NULL;
    for (int64_t i = 0, n = mc_array_size(from); i < n; i++) {
        double a = mc_load_f64(from->dtype, from->data + (size_t)i * size),
               b = mc_load_f64(to->dtype, to->data + (size_t)i * other);
        if (isfinite(a) && isfinite(b) &&
            fabs(a - b) > fmax(fabs(a), fabs(b)) / LEEWAY + least + (more ? more[i] : 0)) {
            return i;
        }
    }
    return -1;
}

/* ---- the values to compute from ---- */

struct leaves { VEC(mc_node *) node; VEC(mc_array *) value; };

static mc_status add_leaf(struct leaves *l, mc_node *n, const mc_array *a)
{
    mc_array *near = mc_array_on_host(a),
             *v = near && mc_is_float(near->dtype) ? mc_array_cast(near, MC_FLOAT64) : mc_array_ref(near);
    mc_array_unref(&near);
    if (!v) {
        return mc_last_status();
    }
    if (!VEC_PUSH(l->value, v)) {
        mc_array_unref(&v);
        return MC_EMEMORY;
    }
    return VEC_PUSH(l->node, n) ? MC_OK : MC_EMEMORY;
}

/* Collects the arguments, and the shared variables before their updates; the caller holds their locks. */
static mc_status find_leaves(const struct mc_function *f, struct leaves *l)
{
    const struct mc_program *p = &f->code->program;
    for (size_t k = 0; k < f->code->twin.n; k++) {
        const struct mc_twin *t = &f->code->twin.at[k];
        const mc_array *a = t->of->shared ? t->of->shared->value : NULL;
        for (int i = 0; i < p->ninput; i++) {
            a = p->input[i] == t->of ? f->arg[i] : a;
        }
        if (a) {
            TRY(add_leaf(l, t->wide, a));
        }
    }
    return MC_OK;
}

/* By id: does the node have an effect, or depend on a node that has one?  It must not be computed again. */
static bool *is_active(const struct mc_graph *g)
{
    bool *does = mc_calloc(g->nodes.n + 1, sizeof *does, "debug");
    for (size_t i = 0; does && i < g->nodes.n; i++) {
        const mc_node *n = g->nodes.at[i];
        does[n->id] = n->op->flags & OP_IMPURE;
        for (int k = 0; k < n->nin; k++) {
            does[n->id] |= does[n->in[k]->id];
        }
    }
    return does;
}

/* ---- comparison ---- */

/* How far n may be off if the nodes below it, to this depth, are off by noise and n itself by tol.  Examples:
 * erf(6) - 1 and -erfc(6) are both small but otherwise differ, and x - 1e18 has lost x.  value: that of n.
 * Returns NULL if the bound cannot be computed. */
static mc_array *rounding_bound(const mc_node *n, const struct leaves *l, const mc_array *value, double tol,
                              int depth)
{
    mc_array *in[8] = { 0 }, *tolerance[8] = { 0 }, *all = NULL;
    mc_status s = n->nin <= 8 ? mc_eval((int)l->node.n, l->node.at, l->value.at, n->nin, n->in, in) : MC_EARG;
    for (int i = 0; i < n->nin && s >= 0; i++) {
        const bool is_float = mc_is_float(in[i]->dtype), leaf = n->in[i]->op->flags & OP_LEAF;
        tolerance[i] = is_float && depth > 1 && !leaf ? rounding_bound(n->in[i], l, in[i], noise, depth - 1)
                                                      : NULL;
        tolerance[i] = is_float && !tolerance[i] ? mc_tolerance_of(in[i], noise) : tolerance[i];
    }
    all = s >= 0 ? mc_tolerance(n, in, tolerance, value, tol) : NULL;
    for (int i = 0; i < 8; i++) {
        mc_array_unref(&in[i]);
        mc_array_unref(&tolerance[i]);
    }
    mc_clear_error();
    return all;
}

static mc_status compare(const struct mc_function *f, const struct mc_rewritten *r, const struct leaves *l,
                         const mc_array *from, const mc_array *to)
{
    int64_t bad = differs(r, from, to, NULL);
    if (bad >= 0) {
        mc_array *tolerance = rounding_bound(r->wide[0], l, from, 0, DEPTH);
        bad = differs(r, from, to, tolerance);
        mc_array_unref(&tolerance);
    }
    if (bad < 0) {
        return MC_OK;
    }
    struct mc_str a = { 0 }, b = { 0 };
    mc_node_print(&a, r->from, 5);
    mc_node_print(&b, r->to, 5);
    mc_status s = mc_fail(MC_ECHECK,
                          "%s: DEBUG: the rule '%s' changed element %lld of %.300s, which became %.300s",
                          f->name, r->rule, (long long)bad, a.s ? a.s : "", b.s ? b.s : "");
    mc_str_free(&a);
    mc_str_free(&b);
    return s;
}

mc_status mc_debug_rewrites(const struct mc_function *f)
{
    const struct mc_code_unit *u = f->code;
    struct leaves l = { 0 };
    size_t n = u->rewritten.n, count = 0;
    bool *does = is_active(u->program.graph);
    size_t *which = mc_alloc((n + 1) * sizeof *which, "debug");
    mc_node **node = mc_alloc((2 * n + 1) * sizeof *node, "debug");
    mc_array **value = mc_calloc(2 * n + 1, sizeof *value, "debug");
    mc_status s = does && which && node && value ? find_leaves(f, &l) : MC_EMEMORY;
    for (size_t i = 0; i < n && s == MC_OK; i++) {
        const struct mc_rewritten *r = &u->rewritten.at[i];
        if (!does[r->wide[0]->id] && !does[r->wide[1]->id]) {
            node[2 * count] = r->wide[0];
            node[2 * count + 1] = r->wide[1];
            which[count++] = i;
        }
    }
    if (s == MC_OK && mc_eval((int)l.node.n, l.node.at, l.value.at, (int)(2 * count), node, value) < 0) {
        LOG(LOG_REWRITE, "%s: DEBUG could not compute the rewritten nodes: %s", f->name, mc_last_error());
        /* a node that the outputs do not need may be impossible to compute */
        s = mc_last_status() == MC_EMEMORY ? MC_EMEMORY : MC_OK;
        count = 0;
    }
    for (size_t i = 0; i < count && s == MC_OK; i++) {
        s = compare(f, &u->rewritten.at[which[i]], &l, value[2 * i], value[2 * i + 1]);
    }
    for (size_t i = 0; i < 2 * n && value; i++) {
        mc_array_unref(&value[i]);
    }
    for (size_t i = 0; i < l.value.n; i++) {
        mc_array_unref(&l.value.at[i]);
    }
    VEC_FREE(l.node);
    VEC_FREE(l.value);
    mc_free(does);
    mc_free(which);
    mc_free(node);
    mc_free(value);
    return s;
}
