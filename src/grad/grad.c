/* grad.c: reverse accumulation.  From the cost down, each node's gradient is the sum of what its
 * users send it; the node then sends on to its inputs.
 *
 * Invariant: a node's inputs have smaller ids, so one sweep over falling ids meets every node after
 * all its users.  A gradient has its node's dtype, rank and size; integers only ever get &zero. */
#include "grad/grad.h"
#include <stdlib.h>

static mc_node zero; /* stands for a gradient that is connected, but zero: costs no nodes */

struct part {
    mc_node *node;
    mc_node *grad;  /* the sum so far; NULL: nothing reached it yet */
    mc_node **item; /* of a tuple: a sum for each result */
    bool wanted;    /* asked for, or leads to one that is */
    bool given;     /* its gradient is known and takes no more */
    bool edge;      /* the sweep ends here */
};
struct sweep {
    mc_graph *graph;
    VEC(struct part) part;  /* by rising id */
    struct mc_map at;       /* id -> number in part, plus one */
    struct mc_arena memory; /* of the item arrays */
};

static mc_status sweep_through(mc_graph *g, int nknown, mc_node *const *known, mc_node *const *known_grad, int nedge,
                               mc_node *const *edge, int nwrt, mc_node *const *wrt, bool edge_wanted, mc_node **grad);

static mc_status failure(const mc_graph *g)
{
    return mc_last_status() < 0 ? mc_last_status() : g->status < 0 ? g->status : MC_EMEMORY;
}

static mc_node *no_gradient(mc_node *n, int wrt)
{
    struct mc_str text = { 0 };
    mc_node_print(&text, n, 2);
    mc_node *e = mc_node_fail(n->graph, MC_EGRAD, "%s has no gradient by its argument %d: %s", n->op->name, wrt + 1,
                              text.s ? text.s : "");
    mc_str_free(&text);
    return e;
}

/* ---- shapes ---- */

static mc_node *zeros(mc_node *like)
{
    mc_graph *g = like->graph;
    const struct mc_type *t = &like->type;
    mc_node *in[2] = { mc_node_number(g, mc_is_float(t->dtype) ? t->dtype : mc_dtype_floatX(), 0), NULL };
    bool known = true;
    for (int i = 0; i < t->rank; i++) {
        known &= t->dims[i] >= 0;
    }
    if (t->rank == 0) {
        return in[0];
    }
    in[1] = known ? mc_node_ints(g, t->rank, t->dims) : mc_shape_of(like);
    return mc_call_op(g, "alloc", 2, in, NULL);
}

/* c in x's dtype, and with x's promises of size 1: without them sums with it would not broadcast. */
static mc_node *fit(mc_node *c, mc_node *x)
{
    int64_t sizes[MC_MAX_RANK];
    bool lost = false;
    if (mc_is_error(c)) {
        return c;
    }
    if (c->type.rank != x->type.rank) {
        return mc_node_fail(x->graph, MC_EGRAD, "a gradient of rank %d for %s(...) of rank %d", c->type.rank, x->op->name,
                            x->type.rank);
    }
    for (int i = 0; i < x->type.rank; i++) {
        bool one = x->type.dims[i] == 1 && c->type.dims[i] < 0;
        sizes[i] = one ? 1 : -1;
        lost |= one;
    }
    c = mc_cast_to(c, x->type.dtype);
    struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank, .ints = sizes };
    return lost ? mc_apply(x->graph, mc_op_find("specify_shape"), 1, &c, &a) : c;
}

/* c has the shape of the scalar node n; what reached n by broadcasting x goes back to x as a sum. */
static mc_node *unbroadcast(mc_node *c, mc_node *n, const mc_node *x)
{
    mc_graph *g = n->graph;
    struct mc_str axes = { 0 };
    bool small = c->type.rank < n->type.rank;
    if (mc_is_error(c)) {
        return c;
    }
    for (int i = 0; !small && i < n->type.rank; i++) {
        small = c->type.dims[i] == 1 && n->type.dims[i] != 1;
    }
    if (small) { /* a derivative that does not name g */
        mc_node *in[2] = { c, mc_shape_of(n) };
        c = mc_call_op(g, "alloc", 2, in, NULL);
    }
    if (x->type.rank < n->type.rank) {
        return mc_call_op(g, "sum", 1, &c, NULL);
    }
    for (int i = 0; i < n->type.rank; i++) {
        if (x->type.dims[i] == 1 && n->type.dims[i] != 1) {
            mc_str_addf(&axes, axes.n ? ", %d" : "%d", i);
        }
    }
    if (axes.n) {
        c = mc_call_op(g, "sum", 1, &c, "axis=[%s], keepdims=True", axes.s);
    }
    bool bad = axes.bad;
    mc_str_free(&axes);
    return bad ? mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error()) : c;
}

/* ---- one node: from the gradients of its results to that of one input ---- */

/* A derivative as a formula: over the parameters and attributes of the op, the result y and its gradient g. */
static mc_node *by_formula(mc_node *n, const char *dx, mc_node *g)
{
    const struct mc_signature *sig = n->op->sig;
    struct mc_bind bind[26];
    int nbind = 0, tensor = 0, attr = 0;
    if (strcmp(dx, "g") == 0) {
        return g;
    }
    for (int i = 0; i < sig->nparam; i++) {
        const struct mc_param *p = &sig->param[i];
        if (p->kind > ATTR_TENSORS) {
            bind[nbind++] = (struct mc_bind){ p->name, NULL, &n->attr[attr++] };
        } else if (p->kind == ATTR_TENSOR) {
            bind[nbind++] = (struct mc_bind){ p->name, tensor < n->nin ? n->in[tensor] : NULL, NULL };
            tensor++;
        }
    }
    bind[nbind++] = (struct mc_bind){ "y", n, NULL };
    bind[nbind++] = (struct mc_bind){ "g", g, NULL };
    return mc_expr(n->graph, dx, bind, nbind);
}

static mc_node *by_kernel_formula(mc_node *n, int wrt, mc_node *g)
{
    static const char *const letter[] = { "a", "b", "c", "d", "e", "f", "g", "h" }; /* the gradient hides a seventh input */
    struct mc_bind bind[10];
    const char *dx = wrt < 8 ? n->op->custom->kernel_grad[wrt] : NULL;
    int nbind = 0;
    if (!dx) {
        return no_gradient(n, wrt);
    }
    for (int i = 0; i < n->nin && i < 8; i++) {
        bind[nbind++] = (struct mc_bind){ letter[i], n->in[i], NULL };
    }
    bind[nbind++] = (struct mc_bind){ "y", n, NULL };
    bind[nbind++] = (struct mc_bind){ "g", g, NULL };
    mc_node *c = mc_expr(n->graph, dx, bind, nbind);
    return mc_is_error(c) ? c : unbroadcast(c, n, n->in[wrt]);
}

/* A user's callback is shown a gradient for every result. */
static mc_node *by_callback(mc_node *n, int wrt, mc_node *const *g)
{
    const struct mc_custom *op = n->op->custom;
    mc_node *out[16], *all[16];
    for (int i = 0; i < n->nout; i++) {
        out[i] = mc_item(n, i);
        all[i] = g[i] || mc_is_error(out[i]) ? g[i] : zeros(out[i]);
        if (mc_is_error(out[i]) || mc_is_error(all[i])) {
            return n->graph->error;
        }
    }
    mc_node *c = op->grad(op->arg, n->nin, n->in, n->nout, out, all, wrt);
    if (c && c->graph != n->graph) {
        return mc_node_fail(n->graph, MC_EGRAD, "%s: its gradient belongs to another graph", n->op->name);
    }
    return c;
}

/* NULL: disconnected.  `none`: all that arrived is zero, so only the connection matters. */
static mc_node *contribution(mc_node *n, int k, mc_node *const *g, bool none)
{
    const struct mc_op *op = n->op;
    bool whole = !mc_is_float(n->in[k]->type.dtype);
    const char *dx = k < (int)NELEM(op->dx) ? op->dx[k] : NULL;
    mc_node *c = NULL;

    if ((k < 8 && op->disconnected >> k & 1) || (op->arity && !dx)) {
        return NULL;
    }
    if (none || (dx && strcmp(dx, "0") == 0) || (dx && whole)) {
        return &zero;
    }
    if (dx && strcmp(dx, "!") != 0 && !op->grad) {
        c = by_formula(n, dx, g[0]);
        c = op->arity && !mc_is_error(c) ? unbroadcast(c, n, n->in[k]) : c;
    } else if (op->custom && op->custom->grad) {
        c = by_callback(n, k, g);
    } else if (op->custom && op->custom->kernel) {
        c = by_kernel_formula(n, k, g[0]);
    } else if (op->grad) {
        c = op->grad(n, k, g);
    } else {
        return whole ? &zero : no_gradient(n, k);
    }
    return !c ? NULL : whole && !mc_is_error(c) ? &zero : fit(c, n->in[k]);
}

/* ---- the sweep ---- */

static struct part *find(const struct sweep *s, const mc_node *n)
{
    size_t at = (size_t)(uintptr_t)mc_map_get(&s->at, n->id, NULL);
    return at && at <= s->part.n ? &s->part.at[at - 1] : NULL;
}

static mc_status collect(mc_node **sum, mc_node *c)
{
    if (!*sum || *sum == &zero) {
        *sum = c;
    } else if (c != &zero) {
        mc_node *pair[2] = { *sum, c };
        *sum = mc_call_op(c->graph, "add", 2, pair, NULL);
    }
    return *sum != &zero && mc_is_error(*sum) ? failure((*sum)->graph) : MC_OK;
}

static mc_status send(struct sweep *s, mc_node *to, mc_node *c)
{
    struct part *p = find(s, to);
    if (c != &zero && c && mc_is_error(c)) {
        return failure(s->graph);
    }
    return c && p && p->wanted && !p->given ? collect(&p->grad, c) : MC_OK;
}

static mc_status send_item(struct sweep *s, mc_node *item, mc_node *c)
{
    struct part *p = find(s, item->in[0]);
    if (!p->item && !(p->item = mc_arena_alloc(&s->memory, (size_t)p->node->nout * sizeof *p->item))) {
        return MC_EMEMORY;
    }
    return collect(&p->item[item->item], c);
}

/* A formula without a derivative of its own: expanded, and swept down to its arguments. */
static mc_status send_expanded(struct sweep *s, mc_node *n, mc_node *const *g)
{
    mc_node *result[16], *grad[16], *known[16], *sum[16], *wrt[16];
    int nknown = 0, nwrt = 0;
    mc_node *e = mc_formula_expand(s->graph, n->op, n->nin, n->in, n->attr);
    if (mc_is_error(e)) {
        return failure(s->graph);
    }
    for (int i = 0; i < n->nout; i++) {
        if (g[i]) {
            known[nknown] = result[i] = mc_item(e, i);
            grad[nknown++] = g[i];
        }
    }
    for (int k = 0; k < n->nin; k++) {
        bool again = k < (int)NELEM(n->op->dx) && n->op->dx[k];
        for (int j = 0; j < nwrt; j++) {
            again |= wrt[j] == n->in[k];
        }
        if (!again) {
            wrt[nwrt++] = n->in[k];
        }
    }
    TRY(sweep_through(s->graph, nknown, known, grad, n->nin, n->in, nwrt, wrt, true, sum));
    for (int k = 0; k < nwrt; k++) {
        TRY(send(s, wrt[k], sum[k]));
    }
    return MC_OK;
}

static mc_status send_on(struct sweep *s, struct part *p)
{
    mc_node *n = p->node, *g[16] = { 0 };
    bool none = true, expand = n->op->formula && !n->op->grad;
    if (n->op->flags & OP_LEAF) {
        return MC_OK;
    }
    if (n->op == &mc_op_item) {
        return send_item(s, n, p->grad);
    }
    for (int i = 0; i < n->nout; i++) {
        mc_node *one = p->item ? p->item[i] : i == 0 ? p->grad : NULL;
        g[i] = one == &zero ? NULL : one;
        none &= !g[i];
    }
    if (expand && !none) {
        TRY(send_expanded(s, n, g));
    }
    for (int k = 0; k < n->nin; k++) {
        const struct part *to = find(s, n->in[k]);
        bool has_formula = k < (int)NELEM(n->op->dx) && n->op->dx[k];
        if (to && to->wanted && !to->given && (!expand || none || has_formula)) {
            TRY(send(s, n->in[k], contribution(n, k, g, none)));
        }
    }
    return MC_OK;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct part *)a)->node->id, y = ((const struct part *)b)->node->id;
    return (x > y) - (x < y);
}

/* Everything above the edge, in order of ids. */
static mc_status reach(struct sweep *s, int n, mc_node *const *from, int nedge, mc_node *const *edge)
{
    enum { EDGE = 1, SEEN };
    VEC(mc_node *) todo = { 0 };
    bool ok = true;
    for (int i = 0; ok && i < nedge; i++) {
        ok = mc_map_put(&s->at, edge[i]->id, (void *)(uintptr_t)EDGE);
    }
    for (int i = 0; ok && i < n; i++) {
        ok = VEC_PUSH(todo, from[i]);
    }
    while (ok && todo.n) {
        mc_node *x = todo.at[--todo.n];
        uintptr_t state = (uintptr_t)mc_map_get(&s->at, x->id, NULL);
        struct part p = { .node = x, .edge = state == EDGE };
        if (state == SEEN) {
            continue;
        }
        ok = mc_map_put(&s->at, x->id, (void *)(uintptr_t)SEEN) && VEC_PUSH(s->part, p);
        for (int k = 0; ok && !p.edge && k < x->nin; k++) {
            ok = VEC_PUSH(todo, x->in[k]);
        }
    }
    VEC_FREE(todo);
    if (ok && s->part.n) {
        qsort(s->part.at, s->part.n, sizeof *s->part.at, by_id);
    }
    mc_map_free(&s->at);
    s->at = (struct mc_map){ 0 };
    for (size_t i = 0; ok && i < s->part.n; i++) {
        ok = mc_map_put(&s->at, s->part.at[i].node->id, (void *)(uintptr_t)(i + 1));
    }
    return ok ? MC_OK : MC_EMEMORY;
}

static void mark_wanted(struct sweep *s, int nwrt, mc_node *const *wrt, bool edge_wanted)
{
    for (int i = 0; i < nwrt; i++) {
        struct part *p = find(s, wrt[i]);
        if (p) {
            p->wanted = true;
        }
    }
    for (size_t i = 0; i < s->part.n; i++) {
        struct part *p = &s->part.at[i];
        for (int k = 0; !p->edge && !p->wanted && k < p->node->nin; k++) {
            p->wanted = find(s, p->node->in[k])->wanted;
        }
        p->wanted &= !p->edge || edge_wanted;
    }
}

/* grad[i] of wrt[i], given the gradients of the known nodes: NULL where disconnected, &zero where zero. */
static mc_status sweep_through(mc_graph *g, int nknown, mc_node *const *known, mc_node *const *known_grad, int nedge,
                               mc_node *const *edge, int nwrt, mc_node *const *wrt, bool edge_wanted, mc_node **grad)
{
    struct sweep s = { .graph = g };
    mc_status st = reach(&s, nknown, known, nedge, edge);
    if (st == MC_OK) {
        mark_wanted(&s, nwrt, wrt, edge_wanted);
    }
    for (int i = 0; st == MC_OK && i < nknown; i++) {
        struct part *p = find(&s, known[i]);
        st = p->given ? collect(&p->grad, known_grad[i]) : MC_OK;
        p->grad = p->given ? p->grad : known_grad[i];
        p->given = true;
    }
    for (size_t i = s.part.n; st == MC_OK && i-- > 0;) {
        struct part *p = &s.part.at[i];
        if (p->wanted && !p->edge && (p->grad || p->item)) {
            st = send_on(&s, p);
        }
    }
    for (int i = 0; i < nwrt; i++) {
        const struct part *p = st == MC_OK ? find(&s, wrt[i]) : NULL;
        grad[i] = p && p->wanted ? p->grad : NULL;
    }
    VEC_FREE(s.part);
    mc_map_free(&s.at);
    mc_arena_free(&s.memory);
    return st;
}

/* ---- what is asked for ---- */

static mc_status check_nodes(mc_graph *g, const char *what, int n, mc_node *const *nodes)
{
    for (int i = 0; i < n; i++) {
        if (!nodes[i] || nodes[i]->graph != g) {
            mc_node_fail(g, MC_EARG, "grad: %s %d %s", what, i + 1, nodes[i] ? "belongs to another graph" : "is missing (NULL)");
            return MC_EARG;
        }
        if (mc_is_error(nodes[i])) {
            return g->status < 0 ? g->status : MC_EARG;
        }
        if (nodes[i]->nout != 1) {
            mc_node_fail(g, MC_EARG, "grad: %s %d is a tuple; take one of its items", what, i + 1);
            return MC_EARG;
        }
    }
    return MC_OK;
}

/* A cost is a known node, too: with gradient one. */
static mc_status start(mc_graph *g, mc_node *cost, const mc_grad_spec *spec, mc_node **known, mc_node **grad)
{
    int n = spec->nknown;
    for (int i = 0; i < n; i++) {
        known[i] = spec->known[i];
        if (!mc_is_float(known[i]->type.dtype)) {
            mc_node_fail(g, MC_EGRAD, "grad: known node %d is %s; only floats have gradients", i + 1,
                         mc_dtype_name(known[i]->type.dtype));
            return MC_EGRAD;
        }
        grad[i] = fit(spec->known_grad[i], known[i]);
        if (mc_is_error(grad[i])) {
            return failure(g);
        }
    }
    if (cost) {
        if (cost->type.rank || !mc_is_float(cost->type.dtype)) {
            struct mc_str text = { 0 };
            mc_type_text(&text, &cost->type);
            mc_node_fail(g, MC_EGRAD, "grad: the cost must be a float scalar, not %s; take its sum or mean", text.s ? text.s : "");
            mc_str_free(&text);
            return MC_EGRAD;
        }
        known[n] = cost;
        grad[n] = mc_node_like(cost, 1);
        return mc_is_error(grad[n]) ? failure(g) : MC_OK;
    }
    return MC_OK;
}

static mc_status finish(mc_node *wrt, mc_node **grad, bool raise)
{
    if (!*grad && raise) {
        struct mc_str text = { 0 };
        mc_node_print(&text, wrt, 2);
        mc_node_fail(wrt->graph, MC_EGRAD, "grad: the cost does not depend on %s", text.s ? text.s : "");
        mc_str_free(&text);
        return MC_EGRAD;
    }
    if (!*grad || *grad == &zero) {
        *grad = zeros(wrt);
        *grad = mc_is_float(wrt->type.dtype) && !mc_is_error(*grad) ? fit(*grad, wrt) : *grad;
    }
    return mc_is_error(*grad) ? failure(wrt->graph) : MC_OK;
}

static mc_status grads(mc_graph *g, mc_node *cost, int n, mc_node *const *wrt, mc_node **grad, const mc_grad_spec *spec)
{
    int nknown = spec->nknown + (cost != NULL);
    TRY(check_nodes(g, "cost", cost != NULL, &cost));
    TRY(check_nodes(g, "wrt", n, wrt));
    TRY(check_nodes(g, "known node", spec->nknown, spec->known));
    TRY(check_nodes(g, "known gradient", spec->nknown, spec->known_grad));
    TRY(check_nodes(g, "constant", spec->nconstant, spec->consider_constant));
    if (!nknown) {
        mc_node_fail(g, MC_EARG, "grad: there is neither a cost nor a known gradient");
        return MC_EARG;
    }
    mc_node **known = mc_alloc((size_t)nknown * 2 * sizeof *known, "grad");
    mc_status s = known ? start(g, cost, spec, known, known + nknown) : MC_EMEMORY;
    if (s == MC_OK) {
        s = sweep_through(g, nknown, known, known + nknown, spec->nconstant, spec->consider_constant, n, wrt, false, grad);
    }
    for (int i = 0; s == MC_OK && i < n; i++) {
        s = finish(wrt[i], &grad[i], spec->disconnected == MC_DISCONNECTED_RAISE);
    }
    mc_free(known);
    return s;
}

mc_status mc_grads(mc_node *cost, int n, mc_node *const *wrt, mc_node **out, const mc_grad_spec *spec)
{
    static const mc_grad_spec plain;
    spec = spec ? spec : &plain;
    mc_graph *g = cost ? cost->graph : mc_graph_of(n, wrt);
    if (n < 0 || (n && (!wrt || !out))) {
        return mc_fail(MC_EARG, "grad: an argument is missing");
    }
    mc_status s = g ? grads(g, cost, n, wrt, out, spec) : mc_fail(MC_EARG, "grad: there is no node");
    for (int i = 0; s < 0 && i < n; i++) {
        out[i] = g ? g->error : NULL;
    }
    if (s == MC_EMEMORY && g) {
        mc_node_fail(g, s, "%s", mc_last_error());
    }
    return s;
}

mc_node *mc_grad(mc_node *cost, mc_node *wrt)
{
    mc_node *out = NULL;
    if (!cost || !wrt) {
        mc_node *one = cost ? cost : wrt;
        return one ? mc_node_fail(one->graph, MC_EARG, "grad: the %s is missing (NULL)", cost ? "wrt" : "cost") : NULL;
    }
    mc_grads(cost, 1, &wrt, &out, NULL);
    return out;
}

mc_node *mc_Lop(mc_node *f, mc_node *wrt, mc_node *eval)
{
    mc_node *out = NULL, *const given[3] = { f, wrt, eval };
    mc_graph *g = mc_graph_of(3, given);
    if (!f || !wrt || !eval) {
        return g ? mc_node_fail(g, MC_EARG, "Lop: an argument is missing (NULL)") : NULL;
    }
    mc_grads(NULL, 1, &wrt, &out, &(mc_grad_spec){ .known = &f, .known_grad = &eval, .nknown = 1 });
    return out;
}

/* Does n need the elements of x?  Its sizes alone (a disconnected use) do not count. */
static mc_status needs_elements(mc_node *n, const mc_node *x, bool *needs)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(1, &n, &count);
    unsigned char *mark = mc_calloc((size_t)n->id + 1, 1, "grad");
    *needs = false;
    if (list && mark && x->id <= n->id) {
        mark[x->id] = 1;
        for (size_t i = 0; i < count; i++) {
            for (int k = 0; k < list[i]->nin; k++) {
                mark[list[i]->id] |= mark[list[i]->in[k]->id] && !(k < 8 && list[i]->op->disconnected >> k & 1);
            }
        }
        *needs = mark[n->id];
    }
    mc_status s = list && mark ? MC_OK : MC_EMEMORY;
    mc_free(list);
    mc_free(mark);
    return s;
}

/* Lop is linear in its last argument u, so its derivative by u, applied to eval, is df/dwrt . eval:
 * forward differentiation by two reverse ones.  u drops out, but for its sizes, which are f's. */
mc_node *mc_Rop(mc_node *f, mc_node *wrt, mc_node *eval)
{
    mc_node *const given[3] = { f, wrt, eval };
    mc_graph *g = mc_graph_of(3, given);
    bool nonlinear = false;
    if (!f || !wrt || !eval) {
        return g ? mc_node_fail(g, MC_EARG, "Rop: an argument is missing (NULL)") : NULL;
    }
    if (check_nodes(g, "argument of Rop", 3, given) < 0) {
        return g->error;
    }
    mc_node *u = mc_node_blank(g, &f->type), *out = mc_Lop(f, wrt, u), *v = out;
    if (mc_is_error(out)) {
        return out;
    }
    mc_status s = mc_grads(NULL, 1, &u, &out, &(mc_grad_spec){ .known = &v, .known_grad = &eval, .nknown = 1,
                                                               .disconnected = MC_DISCONNECTED_ZERO });
    s = s < 0 ? s : needs_elements(out, u, &nonlinear);
    if (s == MC_OK && nonlinear) {
        return mc_node_fail(g, MC_EGRAD, "Rop: the gradient of %s(...) is not linear in its last argument", f->op->name);
    }
    s = s < 0 ? s : mc_graph_replace(g, 1, &u, &f, 1, &out);
    return s < 0 ? g->error : out;
}

__attribute__((constructor)) void mc_grad_install(void)
{
    mc_grad_hook = mc_grad;
}
