/* expand.c: the last changes of the graph before it is grouped into kernels.
 *
 *   formula ops    softmax(x) becomes its formula
 *   random draws   become words of Philox at positions (draw.c) if kernels are to compute them. The reference
 *                  makes a block of numbers at once, which is faster on one thread
 *   no-ops         consider_constant, grad_clip, ... are dropped: only gradients read them
 *   reductions     keep their axes with size 1, so that all values of a kernel have one rank. A dimshuffle
 *                  after the reduction drops the axes, and moves past the ops that follow, so that
 *                  log(sum(x, 1)) stays in the row kernel
 *   new axes       are added to leaves rather than to expressions of them, so that a kernel that reads
 *                  0.9 * b can compute it
 *
 * leaves: no OP_EXPANDS node, every reduction with keepdims=True. */
#include "lower/lower.h"

static mc_node *shuffle(mc_node *x, int n, const int64_t *order)
{
    bool same = n == x->type.rank;
    for (int i = 0; same && i < n; i++) {
        same = order[i] == i;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = n, .ints = (int64_t *)order };
    return same ? x : mc_apply(x->graph, mc_op_find("dimshuffle"), 1, &x, &a);
}

enum { MOST_OPS = 6 };

/* x, at most MOST_OPS cheap ops over leaves, rebuilt over leaves that have the new axes; NULL if it is
 * anything else. x is not a scalar. */
static mc_node *broadcast_leaves(mc_node *x, int n, const int64_t *order, int *ops)
{
    mc_node *in[4];
    if (x->op->flags & OP_LEAF || x->op->form == FORM_SUBTENSOR) { /* in memory, or a view of what is */
        return shuffle(x, n, order);
    }
    if (!mc_is_elementwise(x) || x->op->flags & OP_COSTLY || x->nin > 4 || --*ops < 0) {
        return NULL;
    }
    for (int i = 0; i < x->nin; i++) {
        in[i] = x->in[i]->type.rank ? broadcast_leaves(x->in[i], n, order, ops) : x->in[i];
        if (!in[i] || mc_is_error(in[i])) {
            return in[i];
        }
    }
    return mc_apply(x->graph, x->op, x->nin, in, x->attr);
}

/* dimshuffle(x). Axes that are only added are added to its leaves if broadcast_leaves can. */
static mc_node *broadcast_leaf(mc_node *x, int n, const int64_t *order)
{
    int ops = MOST_OPS, next = 0;
    bool adds = x->type.rank > 0 && n > x->type.rank;
    for (int i = 0; i < n && adds; i++) {
        adds = order[i] < 0 || order[i] == next++;
    }
    adds = adds && next == x->type.rank;
    mc_node *y = adds ? broadcast_leaves(x, n, order, &ops) : NULL;
    return y ? y : shuffle(x, n, order);
}

/* Is n a dimshuffle of a fusible node that only drops axes? */
static bool is_no_op(const mc_node *n)
{
    if (n->op->form != FORM_DIMSHUFFLE || n->type.rank >= n->in[0]->type.rank || !mc_is_fusible(n->in[0])) {
        return false;
    }
    for (int i = 0; i < n->attr[0].n; i++) {
        if (n->attr[0].ints[i] < 0 || (i && n->attr[0].ints[i] <= n->attr[0].ints[i - 1])) {
            return false;
        }
    }
    return true;
}

/* f(drop(a), drop(b), c) = drop(f(a, b, expand(c))) */
static mc_node *sink_dimshuffle(mc_node *n, mc_node **in)
{
    const mc_node *d = NULL;
    mc_node *arg[4];
    for (int i = 0; i < n->nin; i++) {
        d = !d && in[i]->type.rank == n->type.rank && is_no_op(in[i]) ? in[i] : d;
    }
    if (!d) {
        return NULL;
    }
    int full = d->in[0]->type.rank;
    const int64_t *kept = d->attr[0].ints;
    for (int i = 0; i < n->nin; i++) {
        int64_t order[MC_MAX_RANK];
        if (in[i]->type.rank == 0 && full) { /* a scalar, with its dropped axes if it has as many */
            arg[i] = is_no_op(in[i]) && in[i]->in[0]->type.rank == full ? in[i]->in[0] : in[i];
            continue;
        }
        bool same = is_no_op(in[i]) && in[i]->in[0]->type.rank == full &&
                    memcmp(in[i]->attr[0].ints, kept, (size_t)d->attr[0].n * sizeof *kept) == 0;
        for (int a = 0, k = 0; a < full; a++) {
            order[a] = k < d->attr[0].n && kept[k] == a ? k++ : -1;
        }
        arg[i] = same ? in[i]->in[0] : broadcast_leaf(in[i], full, order);
    }
    mc_node *f = mc_apply(n->graph, n->op, n->nin, arg, n->attr);
    return mc_is_error(f) ? f : shuffle(f, d->attr[0].n, kept);
}

/* dimshuffle(drop(a)) as one dimshuffle of a. An axis of size 1 that is dropped and then added at the same
 * place is kept. */
static mc_node *compose_dimshuffles(mc_node *n, mc_node *x)
{
    int64_t order[MC_MAX_RANK];
    const struct mc_attr *outer = &n->attr[0], *inner = &x->attr[0];
    unsigned used = 0;
    for (int i = 0; i < inner->n; i++) {
        used |= inner->ints[i] >= 0 ? 1u << inner->ints[i] : 0;
    }
    for (int i = 0; i < outer->n; i++) {
        order[i] = outer->ints[i] < 0 ? -1 : inner->ints[outer->ints[i]];
        if (order[i] < 0 && i < x->in[0]->type.rank && !(used & 1u << i) && x->in[0]->type.dims[i] == 1) {
            order[i] = i;
            used |= 1u << i;
        }
    }
    return shuffle(x->in[0], outer->n, order);
}

static mc_node *keep_axes(mc_node *n, mc_node *x)
{
    int axis[MC_MAX_RANK];
    int64_t full[MC_MAX_RANK], order[MC_MAX_RANK];
    int naxis = mc_axes_of(n, 0, x->type.rank, axis), rank = x->type.rank, k = 0;
    bool keep = mc_attr_int(&n->attr[1]) != 0;
    mc_node *base = x;
    if (naxis < 0) {
        return mc_node_fail(n->graph, mc_last_status(), "%s", mc_last_error());
    }
    for (int i = 0; i < naxis; i++) {
        full[i] = axis[i];
    }
    bool dropped = is_no_op(x) &&
                   n->op->reduction != REDUCE_POSITION; /* reduce the input of the drop instead */
    if (dropped) {
        base = x->in[0];
        for (int i = 0; i < naxis; i++) {
            full[i] = x->attr[0].ints[axis[i]];
        }
    }
    struct mc_attr attr[8];
    int64_t yes = 1;
    memcpy(attr, n->attr, (size_t)n->op->sig->nattr * sizeof *attr);
    attr[0] = (struct mc_attr){ .kind = ATTR_AXES, .n = naxis, .ints = full };
    attr[1] = (struct mc_attr){ .kind = ATTR_BOOL, .n = 1, .ints = &yes };
    mc_node *r = mc_apply(n->graph, n->op, 1, &base, attr);
    if (mc_is_error(r)) {
        return r;
    }
    for (int i = 0; i < rank; i++) {
        bool reduced = false;
        for (int j = 0; j < naxis; j++) {
            reduced |= axis[j] == i;
        }
        if (keep || !reduced) {
            order[k++] = dropped ? x->attr[0].ints[i] : i;
        }
    }
    return shuffle(r, k, order);
}

/* The size of x in terms of sizes of its inputs, so that x need not be stored for its size. */
static mc_node *resolve_size(mc_node *x, int axis)
{
    mc_node *n = mc_size_of(x, axis);
    for (int steps = 0; steps < 10000 && !mc_is_error(n) && n->op->form == FORM_SIZE; steps++) {
        mc_node *of = n->in[0], *tuple = of->op == &mc_op_item ? of->in[0] : of;
        mc_node *better = tuple->op->size ? tuple->op->size(tuple, of->item, (int)mc_attr_int(&n->attr[0]))
                                          : NULL;
        if (!better || mc_is_error(better) || better == n) {
            break;
        }
        n = better;
    }
    return n;
}

static mc_node *expand_one(mc_node *n, mc_node **in, const void *arg)
{
    (void)arg;
    mc_graph *g = n->graph;
    if (n->op->form == FORM_SIZE) {
        return resolve_size(in[0], (int)mc_attr_int(&n->attr[0]));
    }
    if (n->op->form == FORM_FORWARD) {
        return in[0];
    }
    if (n->op->reduction != REDUCE_NONE) {
        return keep_axes(n, in[0]);
    }
    if (n->op->form == FORM_DIMSHUFFLE && in[0]->op->form == FORM_DIMSHUFFLE) {
        return compose_dimshuffles(n, in[0]);
    }
    if (n->op->form == FORM_DIMSHUFFLE) {
        return broadcast_leaf(in[0], n->attr[0].n, n->attr[0].ints);
    }
    mc_node *r = mc_is_elementwise(n) ? sink_dimshuffle(n, in) : NULL;
    return r ? r : mc_apply(g, n->op, n->nin, in, n->attr);
}

/* map[]: the new node by the id of the old one. */
mc_status mc_lower_sweep(mc_graph *g, int n, mc_node **out,
                         mc_node *(*one)(mc_node *n, mc_node **in, const void *arg), const void *arg)
{
    size_t count = 0, widest = 1;
    mc_node **list = mc_graph_reach(n, out, &count);
    uint32_t top = count ? list[count - 1]->id : 0;
    mc_node **map = mc_calloc((size_t)top + 1, sizeof *map, "lower"), **in = NULL;
    for (size_t i = 0; list && i < count; i++) {
        widest = MC_MAX(widest, (size_t)list[i]->nin);
    }
    in = mc_alloc(widest * sizeof *in, "lower");
    mc_status s = list && map && in ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        mc_node *x = list[i];
        if (x->op->flags & OP_LEAF) {
            map[x->id] = x;
            continue;
        }
        for (int k = 0; k < x->nin; k++) {
            in[k] = map[x->in[k]->id];
        }
        size_t first = g->nodes.n;
        map[x->id] = x->op == &mc_op_item ? mc_item(in[0], x->item) : one(x, in, arg);
        mc_label_since(g, first, x->label);
        if (mc_is_error(map[x->id])) {
            s = g->status < 0 ? g->status : MC_EARG;
        }
    }
    for (int i = 0; s == MC_OK && i < n; i++) {
        out[i] = map[out[i]->id];
    }
    mc_free(list);
    mc_free(map);
    mc_free(in);
    return s;
}

static mc_node *expand_formula(mc_node *n, mc_node **in, const void *arg)
{
    (void)arg;
    return n->op->flags & OP_EXPANDS ? mc_formula_expand(n->graph, n->op, n->nin, in, n->attr)
                                     : mc_apply(n->graph, n->op, n->nin, in, n->attr);
}

static mc_node *expand_draw(mc_node *n, mc_node **in, const void *arg)
{
    (void)arg;
    return n->op->flags & OP_RANDOM ? mc_lower_draw(n, in) : mc_apply(n->graph, n->op, n->nin, in, n->attr);
}

mc_status mc_lower_expand(mc_graph *g, int n, mc_node **out, bool draws)
{
    if (draws) {
        TRY(mc_lower_sweep(g, n, out, expand_draw, NULL));
    }
    for (bool more = true; more;) { /* a formula may contain formula ops */
        TRY(mc_lower_sweep(g, n, out, expand_formula, NULL));
        size_t count = 0;
        mc_node **list = mc_graph_reach(n, out, &count);
        more = false;
        for (size_t i = 0; list && i < count; i++) {
            more |= (list[i]->op->flags & OP_EXPANDS) != 0;
        }
        mc_free(list);
    }
    return mc_lower_sweep(g, n, out, expand_one, NULL);
}
