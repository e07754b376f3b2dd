/* grad.c: reverse accumulation. Starting at the cost, the gradient of each node is the sum of the
 * contributions of its users. The node then passes on to its inputs what derive.c computes.
 *
 * Invariant: a node's inputs have smaller ids, so one sweep over descending ids visits every node after
 * all its users. A gradient has the dtype, rank and size of its node; integers only ever get ZERO. */
#include "grad/grad.h"
#include "op/ifelse.h"
#include <stdlib.h>

struct part {
    mc_node *node;
    mc_node *grad;  /* the sum so far; NULL: no contribution yet */
    mc_node **item; /* for a tuple: a sum for each result */
    bool wanted;    /* requested, or depends on a requested node */
    bool given;     /* its gradient is known; further contributions are ignored */
    bool edge;      /* the sweep ends here */
};
struct sweep {
    mc_graph *graph;
    VEC(struct part) part;  /* by ascending id */
    struct mc_map at;       /* id -> number in part, plus one */
    struct mc_arena memory; /* of the item arrays */
    struct mc_regions region; /* what only one side of an ifelse needs; of is NULL: there is no ifelse */
};
/* EDGE_WANTED: nodes of the edge may be wanted.  KNOWN_ADDS: known gradients are added to those that come
 * from other known nodes; else they replace them. */
enum { EDGE_WANTED = 1, KNOWN_ADDS = 2 };

static mc_status sweep_through(mc_graph *g, int nknown, mc_node *const *known, mc_node *const *known_grad,
                               int nedge, mc_node *const *edge, int nwrt, mc_node *const *wrt, unsigned how,
                               mc_node **grad);

static mc_status failure(const mc_graph *g)
{
    return mc_last_status() < 0 ? mc_last_status() : g->status < 0 ? g->status : MC_EMEMORY;
}

/* ---- the sweep ---- */

static struct part *find(const struct sweep *s, const mc_node *n)
{
    size_t at = (size_t)(uintptr_t)mc_map_get(&s->at, n->id, NULL);
    return at && at <= s->part.n ? &s->part.at[at - 1] : NULL;
}

/* a + b. Two gradients inside the same branch of a condition are added inside it. */
static mc_node *add(mc_node *a, mc_node *b, int levels)
{
    const int branch = levels ? mc_grad_branch(a) : 0;
    if (branch && branch == mc_grad_branch(b) && a->in[0] == b->in[0]) {
        return mc_grad_within(a, branch, add(a->in[branch], b->in[branch], levels - 1));
    }
    return mc_call_op(a->graph, "add", 2, (mc_node *[]){ a, b }, NULL);
}

static mc_status collect(mc_node **sum, mc_node *c)
{
    if (!*sum || *sum == ZERO) {
        *sum = c;
    } else if (c != ZERO) {
        *sum = add(*sum, c, MC_GRAD_LEVELS);
    }
    return *sum != ZERO && mc_is_error(*sum) ? failure((*sum)->graph) : MC_OK;
}

static mc_status add_to_input(struct sweep *s, mc_node *to, mc_node *c)
{
    struct part *p = find(s, to);
    if (c != ZERO && c && mc_is_error(c)) {
        return failure(s->graph);
    }
    return c && p && p->wanted && !p->given ? collect(&p->grad, c) : MC_OK;
}

static mc_status propagate_item(struct sweep *s, mc_node *item, mc_node *c)
{
    struct part *p = find(s, item->in[0]);
    if (!p->item && !(p->item = mc_arena_alloc(&s->memory, (size_t)p->node->nout * sizeof *p->item))) {
        return MC_EMEMORY;
    }
    return collect(&p->item[item->item], c);
}

/* A formula op without a derivative of its own: expands it and sweeps the expansion down to the arguments. */
static mc_status propagate_expanded(struct sweep *s, mc_node *n, mc_node *const *g)
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
    TRY(sweep_through(s->graph, nknown, known, grad, n->nin, n->in, nwrt, wrt, EDGE_WANTED, sum));
    for (int k = 0; k < nwrt; k++) {
        TRY(add_to_input(s, wrt[k], sum[k]));
    }
    return MC_OK;
}

/* ---- choices ---- */

/* What the values on one side of an ifelse are made of: the nodes that its region reads. */
struct border { VEC(mc_node *) node, open; struct mc_map seen; };

static mc_status visit(struct border *b, mc_node *n)
{
    if (mc_map_get(&b->seen, n->id, NULL)) {
        return MC_OK;
    }
    return mc_map_put(&b->seen, n->id, n) && VEC_PUSH(b->open, n) ? MC_OK : MC_EMEMORY;
}

/* The nodes outside of the region that the values of n with a gradient are made of and that are wanted. */
static mc_status find_border(const struct sweep *s, const mc_node *n, bool side, mc_node *const *g, bool none,
                             struct border *b)
{
    const uint64_t region = mc_region_of(n->in[0], side);
    for (int i = 0; i < n->nout; i++) {
        TRY(g[i] || none ? visit(b, mc_ifelse_value(n, side, i)) : MC_OK);
    }
    while (b->open.n) {
        mc_node *x = b->open.at[--b->open.n];
        const struct part *p = find(s, x);
        if (p && s->region.of[x->id] != region) {
            if (p->wanted && !VEC_PUSH(b->node, x)) {
                return MC_EMEMORY;
            }
            continue;
        }
        for (int k = 0; k < x->nin && p; k++) {
            TRY(visit(b, x->in[k]));
        }
    }
    return MC_OK;
}

/* The gradients of the border of one side, from those of the values of n.  sum[]: in the border's order */
static mc_status side_gradients(struct sweep *s, mc_node *n, bool side, mc_node *const *g, struct border *b,
                                mc_node **sum)
{
    mc_node *known[MC_MOST_RESULTS], *grad[MC_MOST_RESULTS];
    int nknown = 0;
    for (int i = 0; i < n->nout; i++) {
        if (g[i]) {
            known[nknown] = mc_ifelse_value(n, side, i);
            grad[nknown] = mc_grad_fit(g[i], known[nknown]);
            nknown++;
        }
    }
    const int count = (int)b->node.n;
    return sweep_through(s->graph, nknown, known, grad, count, b->node.at, count, b->node.at,
                         EDGE_WANTED | KNOWN_ADDS, sum);
}

struct choice_grad { mc_node *of, *side[2]; };

/* Adds ifelse(c, its gradient on the true side, on the other side) to each node; zeros where none is. */
static mc_status add_choices(struct sweep *s, const mc_node *n, size_t count, struct choice_grad *c)
{
    mc_node *value[2][MC_MOST_RESULTS], *of[MC_MOST_RESULTS];
    int many = 0;
    for (size_t i = 0; i < count; i++) {
        bool none = true;
        for (int side = 0; side < 2; side++) {
            none &= !c[i].side[side] || c[i].side[side] == ZERO;
        }
        if (none) {
            TRY(c[i].side[0] || c[i].side[1] ? add_to_input(s, c[i].of, ZERO) : MC_OK);
        }
        for (int side = 0; side < 2 && !none; side++) {
            mc_node *one = c[i].side[side];
            value[side][many] = mc_grad_fit(one && one != ZERO ? one : mc_grad_zeros(c[i].of), c[i].of);
        }
        of[many] = c[i].of;
        many += !none;
        if (many == MC_MOST_RESULTS || (many && i + 1 == count)) {
            mc_node *made = mc_ifelse_make(s->graph, n->in[0], many, value[true], value[false], true);
            for (int k = 0; k < many; k++) {
                TRY(add_to_input(s, of[k], mc_is_error(made) ? made : mc_item(made, k)));
            }
            many = 0;
        }
    }
    return MC_OK;
}

/* A choice passes its gradient on as a choice: to the nodes that its sides are made of, through each side.
 * The nodes of a side get no gradient, so that the gradient of the side that is not taken is not computed. */
static mc_status propagate_choice(struct sweep *s, mc_node *n, mc_node *const *g, bool none)
{
    struct border b[2] = { 0 };
    mc_node **sum[2] = { NULL };
    VEC(struct choice_grad) all = { 0 };
    struct mc_map at = { 0 };
    mc_status st = MC_OK;
    for (int side = 1; side >= 0 && st == MC_OK; side--) {
        st = find_border(s, n, side, g, none, &b[side]);
        sum[side] = mc_calloc(b[side].node.n + 1, sizeof *sum[side], "grad");
        st = st < 0       ? st
             : !sum[side] ? MC_EMEMORY
             : none       ? MC_OK
                          : side_gradients(s, n, side, g, &b[side], sum[side]);
        for (size_t i = 0; i < b[side].node.n && st == MC_OK; i++) {
            mc_node *x = b[side].node.at[i];
            size_t k = (size_t)(uintptr_t)mc_map_get(&at, x->id, NULL);
            if (!k) {
                const bool good = VEC_PUSH(all, ((struct choice_grad){ .of = x })) &&
                                  mc_map_put(&at, x->id, (void *)(uintptr_t)all.n);
                st = good ? MC_OK : MC_EMEMORY;
                k = all.n;
            }
            if (st == MC_OK) {
                all.at[k - 1].side[side] = none ? ZERO : sum[side][i];
            }
        }
    }
    st = st < 0 ? st : add_choices(s, n, all.n, all.at);
    for (int side = 0; side < 2; side++) {
        VEC_FREE(b[side].node);
        VEC_FREE(b[side].open);
        mc_map_free(&b[side].seen);
        mc_free(sum[side]);
    }
    VEC_FREE(all);
    mc_map_free(&at);
    return st;
}

/* Finds the regions of all choices that are swept. */
static mc_status find_regions(struct sweep *s, int nknown, mc_node *const *known, int nedge,
                              mc_node *const *edge, int nwrt, mc_node *const *wrt)
{
    bool any = false;
    for (size_t i = 0; i < s->part.n; i++) {
        any |= s->part.at[i].node->op->form == FORM_IFELSE && !s->part.at[i].edge;
    }
    const int nfixed = nknown + nedge + nwrt;
    mc_node **list = any ? mc_alloc((s->part.n + (size_t)nfixed + 1) * sizeof *list, "grad") : NULL;
    if (!list) {
        return any ? MC_EMEMORY : MC_OK;
    }
    mc_node **fixed = list + s->part.n;
    for (size_t i = 0; i < s->part.n; i++) {
        list[i] = s->part.at[i].node;
    }
    for (int i = 0; i < nfixed; i++) {
        fixed[i] = i < nknown ? known[i] : i < nknown + nedge ? edge[i - nknown] : wrt[i - nknown - nedge];
    }
    mc_status st = mc_regions_find(&s->region, s->part.n, list, nfixed, fixed);
    mc_free(list);
    return st;
}

static mc_status propagate(struct sweep *s, struct part *p)
{
    mc_node *n = p->node, *g[MC_MOST_RESULTS] = { 0 };
    bool none = true, expand = n->op->formula && !n->op->grad;
    s->graph->label = n->label; /* label of the expansion of n */
    if (n->op->flags & OP_LEAF) {
        return MC_OK;
    }
    if (n->op == &mc_op_item) {
        return propagate_item(s, n, p->grad);
    }
    for (int i = 0; i < n->nout; i++) {
        mc_node *one = p->item ? p->item[i] : i == 0 ? p->grad : NULL;
        g[i] = one == ZERO ? NULL : one;
        none &= !g[i];
    }
    if (n->op->form == FORM_IFELSE) {
        return propagate_choice(s, n, g, none);
    }
    if (expand && !none) {
        TRY(propagate_expanded(s, n, g));
    }
    for (int k = 0; k < n->nin; k++) {
        const struct part *to = find(s, n->in[k]);
        bool has_formula = k < (int)NELEM(n->op->dx) && n->op->dx[k];
        if (to && to->wanted && !to->given && (!expand || none || has_formula)) {
            s->graph->label = mc_label_gradient(n, k);
            TRY(add_to_input(s, n->in[k], mc_grad_send(n, k, g, none)));
        }
    }
    return MC_OK;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct part *)a)->node->id, y = ((const struct part *)b)->node->id;
    return (x > y) - (x < y);
}

/* Collects all nodes from `from` down to the edge, in the order of ids. */
static mc_status mark_reachable(struct sweep *s, int n, mc_node *const *from, int nedge, mc_node *const *edge)
{
    enum { EDGE = 1, SEEN };
    VEC(mc_node *) open = { 0 };
    bool ok = true;
    for (int i = 0; ok && i < nedge; i++) {
        ok = mc_map_put(&s->at, edge[i]->id, (void *)(uintptr_t)EDGE);
    }
    for (int i = 0; ok && i < n; i++) {
        ok = VEC_PUSH(open, from[i]);
    }
    while (ok && open.n) {
        mc_node *x = open.at[--open.n];
        uintptr_t state = (uintptr_t)mc_map_get(&s->at, x->id, NULL);
        struct part p = { .node = x, .edge = state == EDGE };
        if (state == SEEN) {
            continue;
        }
        ok = mc_map_put(&s->at, x->id, (void *)(uintptr_t)SEEN) && VEC_PUSH(s->part, p);
        for (int k = 0; ok && !p.edge && k < x->nin; k++) {
            ok = VEC_PUSH(open, x->in[k]);
        }
    }
    VEC_FREE(open);
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

static void mark_wanted(struct sweep *s, int nwrt, mc_node *const *wrt, unsigned how)
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
        p->wanted &= !p->edge || how & EDGE_WANTED;
    }
}

/* Computes grad[i] of wrt[i] from the gradients of the known nodes: NULL if disconnected, ZERO if zero. */
static mc_status sweep_through(mc_graph *g, int nknown, mc_node *const *known, mc_node *const *known_grad,
                               int nedge, mc_node *const *edge, int nwrt, mc_node *const *wrt, unsigned how,
                               mc_node **grad)
{
    struct sweep s = { .graph = g };
    const struct mc_label *label = g->label;
    mc_status st = mark_reachable(&s, nknown, known, nedge, edge);
    if (st == MC_OK) {
        mark_wanted(&s, nwrt, wrt, how);
        st = find_regions(&s, nknown, known, nedge, edge, nwrt, wrt);
    }
    for (int i = 0; st == MC_OK && i < nknown; i++) {
        struct part *p = find(&s, known[i]);
        const bool adds = p->given || how & KNOWN_ADDS;
        st = adds ? collect(&p->grad, known_grad[i]) : MC_OK;
        p->grad = adds ? p->grad : known_grad[i];
        p->given = !(how & KNOWN_ADDS);
    }
    for (size_t i = s.part.n; st == MC_OK && i-- > 0;) {
        struct part *p = &s.part.at[i];
        if (p->wanted && !p->edge && (p->grad || p->item)) {
            st = propagate(&s, p);
        }
    }
    g->label = label;
    for (int i = 0; i < nwrt; i++) {
        const struct part *p = st == MC_OK ? find(&s, wrt[i]) : NULL;
        grad[i] = p && p->wanted ? p->grad : NULL;
    }
    VEC_FREE(s.part);
    mc_map_free(&s.at);
    mc_arena_free(&s.memory);
    mc_regions_free(&s.region);
    return st;
}

/* ---- checks and the known gradients ---- */

mc_status mc_grad_check(mc_graph *g, const char *what, int n, mc_node *const *nodes)
{
    for (int i = 0; i < n; i++) {
        if (!nodes[i] || nodes[i]->graph != g) {
            mc_node_fail(g, MC_EARG, "grad: %s %d %s", what, i + 1,
                         nodes[i] ? "belongs to another graph" : "is missing (NULL)");
            return MC_EARG;
        }
        if (mc_is_error(nodes[i])) {
            return g->status < 0 ? mc_fail(g->status, "%s", mc_error(g))
                                 : mc_fail(MC_EARG, "grad: %s %d is the error node", what, i + 1);
        }
        if (nodes[i]->nout != 1) {
            mc_node_fail(g, MC_EARG, "grad: %s %d is a tuple; take one of its items", what, i + 1);
            return MC_EARG;
        }
    }
    return MC_OK;
}

/* The known nodes and their gradients. The cost is one of them, with gradient 1. */
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
        grad[i] = mc_grad_fit(spec->known_grad[i], known[i]);
        if (mc_is_error(grad[i])) {
            return failure(g);
        }
    }
    if (cost) {
        if (cost->type.rank || !mc_is_float(cost->type.dtype)) {
            struct mc_str text = { 0 };
            mc_type_text(&text, &cost->type);
            mc_node_fail(g, MC_EGRAD, "grad: the cost must be a float scalar, not %s; take its sum or mean",
                         text.s ? text.s : "");
            mc_str_free(&text);
            return MC_EGRAD;
        }
        known[n] = cost;
        grad[n] = mc_node_like(cost, 1);
        return mc_is_error(grad[n]) ? failure(g) : MC_OK;
    }
    return MC_OK;
}

/* ---- gradients of stable forms ---- */

/* A node that the stable form does not use is still connected if the cost depends on it: its gradient is
 * zero. */
static mc_status connect(mc_graph *g, mc_node *known, mc_node *known_grad, const mc_grad_spec *spec, int n,
                         mc_node *const *wrt, mc_node **grad)
{
    bool lost = false;
    for (int i = 0; i < n; i++) {
        lost |= !grad[i];
    }
    mc_node **plain = lost ? mc_alloc((size_t)n * sizeof *plain, "grad") : NULL;
    if (!lost || !plain) {
        return lost ? MC_EMEMORY : MC_OK;
    }
    mc_status s = sweep_through(g, 1, &known, &known_grad, spec->nconstant, spec->consider_constant, n, wrt,
                                0, plain);
    for (int i = 0; i < n && s == MC_OK; i++) {
        grad[i] = grad[i] || !plain[i] ? grad[i] : ZERO;
    }
    mc_free(plain);
    return s;
}

mc_status mc_grad_links(mc_node *c, const mc_grad_spec *spec, int n, mc_node *const *wrt, mc_node **link)
{
    mc_node *zero = mc_grad_zeros(c); /* not ZERO, for which no op's gradient is called */
    return mc_is_error(zero) ? failure(c->graph)
                             : sweep_through(c->graph, 1, &c, &zero, spec->nconstant, spec->consider_constant,
                                             n, wrt, 0, link);
}

/* A single known node is swept from its stable form. With several, one may be part of another, so they are
 * left unchanged. */
static mc_status sweep_all(mc_graph *g, int nknown, mc_node **known, mc_node **known_grad,
                             const mc_grad_spec *spec, int n, mc_node *const *wrt, mc_node **grad)
{
    mc_node *plain = known[0];
    TRY(nknown == 1 ? mc_grad_stable(g, n, wrt, spec, &known[0]) : MC_OK);
    TRY(sweep_through(g, nknown, known, known_grad, spec->nconstant, spec->consider_constant, n, wrt, 0,
                      grad));
    return known[0] == plain ? MC_OK : connect(g, plain, known_grad[0], spec, n, wrt, grad);
}

static mc_status finish(mc_node *wrt, mc_node **grad, int nknown, mc_node *const *known,
                        const mc_grad_spec *spec)
{
    bool depends = *grad || spec->disconnected != MC_DISCONNECTED_RAISE;
    TRY(depends ? MC_OK : mc_grad_depends(nknown, known, spec, wrt, &depends));
    if (!depends) {
        struct mc_str text = { 0 };
        mc_node_print(&text, wrt, 2);
        mc_node_fail(wrt->graph, MC_EGRAD, "grad: the cost does not depend on %s", text.s ? text.s : "");
        mc_str_free(&text);
        return MC_EGRAD;
    }
    if (!*grad || *grad == ZERO) {
        *grad = mc_grad_zeros(wrt);
        *grad = mc_is_float(wrt->type.dtype) && !mc_is_error(*grad) ? mc_grad_fit(*grad, wrt) : *grad;
    }
    return mc_is_error(*grad) ? failure(wrt->graph) : mc_grad_remember(wrt->graph, grad, nknown, known);
}

static mc_status grads(mc_graph *g, mc_node *cost, int n, mc_node *const *wrt, mc_node **grad,
                       const mc_grad_spec *spec)
{
    int nknown = spec->nknown + (cost != NULL);
    TRY(mc_grad_check(g, "cost", cost != NULL, &cost));
    TRY(mc_grad_check(g, "wrt", n, wrt));
    TRY(mc_grad_check(g, "known node", spec->nknown, spec->known));
    TRY(mc_grad_check(g, "known gradient", spec->nknown, spec->known_grad));
    TRY(mc_grad_check(g, "constant", spec->nconstant, spec->consider_constant));
    if (!nknown) {
        mc_node_fail(g, MC_EARG, "grad: there is neither a cost nor a known gradient");
        return MC_EARG;
    }
    mc_node **known = mc_alloc((size_t)nknown * 3 * sizeof *known, "grad"),
            **of = known ? known + 2 * nknown : NULL;
    mc_status s = known ? start(g, cost, spec, known, known + nknown) : MC_EMEMORY;
    if (s == MC_OK) {
        memcpy(of, known, (size_t)nknown * sizeof *of); /* saved before they are replaced by stable forms */
        s = sweep_all(g, nknown, known, known + nknown, spec, n, wrt, grad);
    }
    for (int i = 0; s == MC_OK && i < n; i++) {
        s = finish(wrt[i], &grad[i], nknown, of, spec);
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
    const struct mc_label *label = g ? g->label : NULL;
    if (g) {
        g->label = NULL; /* gradients have labels of their own */
    }
    mc_status s = g ? grads(g, cost, n, wrt, out, spec) : mc_fail(MC_EARG, "grad: the cost is NULL");
    if (g) {
        g->label = label;
    }
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
        return one ? mc_node_fail(one->graph, MC_EARG, "grad: the %s is missing (NULL)",
                                  cost ? "wrt" : "cost")
                   : NULL;
    }
    mc_grads(cost, 1, &wrt, &out, NULL);
    return out;
}
