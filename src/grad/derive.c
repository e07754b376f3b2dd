/* derive.c: derives one node: the gradient of one input from the gradients of its results. A scalar row
 * has a formula, a structured row a function, a user's op either. Their results are brought to the type of
 * the input here. */
#include "grad/grad.h"

mc_node mc_grad_zero_mark;

static mc_node *no_gradient(mc_node *n, int wrt)
{
    struct mc_str text = { 0 };
    mc_node_print(&text, n, 2);
    mc_node *e = mc_node_fail(n->graph, MC_EGRAD, "%s has no gradient with respect to argument %d: %s",
                              n->op->name, wrt + 1, text.s ? text.s : "");
    mc_str_free(&text);
    return e;
}

/* ---- shapes ---- */

mc_node *mc_grad_zeros(mc_node *like)
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

mc_node *mc_grad_fit(mc_node *c, mc_node *x)
{
    int64_t sizes[MC_MAX_RANK];
    bool lost = false;
    if (mc_is_error(c)) {
        return c;
    }
    if (c->type.rank != x->type.rank) {
        return mc_node_fail(x->graph, MC_EGRAD, "a gradient of rank %d for %s(...) of rank %d", c->type.rank,
                            x->op->name, x->type.rank);
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

/* c has the shape of the scalar node n. It is summed over the axes along which x was broadcast. */
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
    if (small) { /* the derivative does not name g */
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

/* ---- the gradient of one input from the gradients of the results ---- */

/* A derivative given as a formula over the parameters and attributes of the op, the result y and its
 * gradient g. */
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

/* A user's callback receives a gradient for every result; missing ones are zeros. */
static mc_node *by_callback(mc_node *n, int wrt, mc_node *const *g)
{
    const struct mc_custom *op = n->op->custom;
    mc_node *out[MC_MOST_RESULTS], *all[MC_MOST_RESULTS];
    for (int i = 0; i < n->nout; i++) {
        out[i] = mc_item(n, i);
        all[i] = g[i] || mc_is_error(out[i]) ? g[i] : mc_grad_zeros(out[i]);
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

int mc_grad_branch(const mc_node *g)
{
    int branch = 0;
    for (int i = 1; i <= 2 && g->op->typing == TYPE_WHERE; i++) {
        double v;
        branch = mc_const_number(g->in[i], &v) && v == 0 ? 3 - i : branch;
    }
    return branch;
}

mc_node *mc_grad_within(mc_node *g, int branch, mc_node *c)
{
    mc_node *in[3] = { g->in[0], g->in[1], g->in[2] };
    in[branch] = c;
    return mc_is_error(c) ? c : mc_call_op(g->graph, "where", 3, in, NULL);
}

/* Applies by_formula inside the branch of g. A derivative may be infinite where a branch is not taken, and
 * 0 * inf is NaN. Conditions nest; at most `levels` are entered, so that a chain of them stays linear in
 * size. */
static mc_node *by_branch(mc_node *n, const char *dx, mc_node *g, int levels)
{
    const int branch = n->op->arity && levels ? mc_grad_branch(g) : 0;
    return branch ? mc_grad_within(g, branch, by_branch(n, dx, g->in[branch], levels - 1))
                  : by_formula(n, dx, g);
}

/* Applies op->grad inside the branch of g[0] if n only moves or converts elements, because the derivatives
 * of the nodes below may need the branch (by_branch). */
static mc_node *by_function(mc_node *n, int k, mc_node *const *g, int levels)
{
    const bool moves = n->op->form == FORM_DIMSHUFFLE,
               converts = n->op->form == FORM_CAST && mc_is_float(n->in[0]->type.dtype);
    const int branch = (moves || converts) && levels && g[0] ? mc_grad_branch(g[0]) : 0;
    if (!branch) {
        return n->op->grad(n, k, g);
    }
    mc_node *in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = g[0]->in[i];
        if (in[i]->type.rank == n->type.rank && (moves || i)) {
            in[i] = by_function(n, k, &g[0]->in[i], levels - 1);
        }
        if (!in[i] || mc_is_error(in[i])) {
            return in[i];
        }
    }
    return mc_call_op(n->graph, "where", 3, in, NULL);
}

static mc_node *derive(mc_node *n, int k, const char *dx, mc_node *const *g)
{
    const struct mc_op *op = n->op;
    bool whole = !mc_is_float(n->in[k]->type.dtype);
    mc_node *c = NULL;
    if (dx && strcmp(dx, "!") != 0 && !op->grad) {
        c = by_branch(n, dx, g[0], MC_GRAD_LEVELS);
        c = op->arity && !mc_is_error(c) ? unbroadcast(c, n, n->in[k]) : c;
    } else if (op->custom && op->custom->grad) {
        c = by_callback(n, k, g);
    } else if (op->grad) {
        c = by_function(n, k, g, MC_GRAD_LEVELS);
    } else {
        return whole ? ZERO : no_gradient(n, k);
    }
    return !c ? NULL : whole && !mc_is_error(c) ? ZERO : mc_grad_fit(c, n->in[k]);
}

mc_node *mc_grad_send(mc_node *n, int k, mc_node *const *g, bool none)
{
    const struct mc_op *op = n->op;
    const char *dx = k < (int)NELEM(op->dx) ? op->dx[k] : NULL;

    if ((k < 8 && op->disconnected >> k & 1) || (op->arity && !dx)) {
        return NULL;
    }
    if (none || (dx && strcmp(dx, "0") == 0) || (dx && !mc_is_float(n->in[k]->type.dtype))) {
        return ZERO;
    }
    /* Nodes are immutable, so a derivative can be reused for ever. Ids of up to 28 bits make an exact key. */
    bool small = n->nout == 1 && n->id < 1u << 28 && g[0]->id < 1u << 28 && k < SENT_COST;
    uint64_t key = small ? (uint64_t)n->id << 36 | (uint64_t)g[0]->id << 8 | (uint64_t)k : 0;
    mc_node *c = small ? mc_map_get(&n->graph->sent, key, NULL) : NULL;
    if (!c) {
        c = derive(n, k, dx, g);
        if (small && c && c != ZERO && !mc_is_error(c) && !mc_map_put(&n->graph->sent, key, c)) {
            return n->graph->error;
        }
    }
    return c;
}
