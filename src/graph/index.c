/* index.c: splits x[...] into ops: slices and numbers (subtensor), new axes (dimshuffle), index tensors
 * (gather).  A mask is replaced by the index vectors of its True elements. */
#include "graph/parse.h"

struct plan_index {
    int64_t spec[MC_MAX_RANK * SPEC_N];
    mc_node *in[1 + 3 * MC_MAX_RANK];      /* x and symbolic bounds */
    int nin;
    int64_t order[2 * MC_MAX_RANK];        /* of the dimshuffle after the subtensor */
    int norder, kept;
    bool basic, shuffled;
    mc_node *index[MC_MAX_RANK];           /* index tensors, and the axis of each after the dimshuffle */
    int64_t axis[MC_MAX_RANK];
    int nindex;
};

static bool is_scalar_int(const struct val *v)
{
    return v->kind == V_INT || (v->kind == V_ATTR && v->attr->kind == ATTR_INT) ||
           (v->kind == V_NODE && v->node && v->node->type.rank == 0 && !mc_is_float(v->node->type.dtype) &&
            v->node->type.dtype != MC_BOOL);
}

static void bound(struct parser *p, struct plan_index *q, const struct val *v, int64_t *kind, int64_t *value)
{
    int64_t c;
    int n;
    if (v->kind == V_NONE) {
        *kind = BOUND_NONE;
    } else if (v->kind == V_INT) {
        *kind = BOUND_CONST;
        *value = v->i;
    } else if (!is_scalar_int(v)) {
        mc_parse_fail(p, v->at,
                      "an index must be a whole number, a slice, a list, a tensor of integers or a mask");
    } else {
        mc_node *node = mc_val_node(p, v);
        if (mc_const_ints(node, &c, 1, &n)) {
            *kind = BOUND_CONST;
            *value = c;
        } else {
            *kind = BOUND_INPUT;
            *value = q->nin;
            q->in[q->nin++] = node;
        }
    }
}

static void whole_axis(int64_t *spec)
{
    memset(spec, 0, SPEC_N * sizeof *spec);
    spec[SPEC_STEP_KIND] = BOUND_CONST;
    spec[SPEC_STEP] = 1;
}

/* The number of axes of x that an entry uses. */
static int axes_used(const struct val *v)
{
    if (v->kind == V_NONE || v->kind == V_ELLIPSIS) {
        return 0;
    }
    return v->kind == V_NODE && v->node && v->node->type.dtype == MC_BOOL && v->node->type.rank > 0
               ? v->node->type.rank
               : 1;
}

/* The positions where a mask is True, as an index vector for each axis.  The mask has the sizes of the axes
 * of x that it indexes. */
static mc_node *mask_indices(mc_node *mask, mc_node *x, int axis)
{
    mc_node *in[1 + MC_MAX_RANK] = { mask };
    bool known = true;
    for (int k = 0; k < mask->type.rank; k++) {
        int64_t have = mask->type.dims[k], want = x->type.dims[axis + k];
        known &= have >= 0 && want >= 0;
        if (have >= 0 && want >= 0 && have != want) {
            return mc_node_fail(x->graph, MC_ESHAPE, "the mask has size %lld, but axis %d has size %lld",
                                (long long)have, axis + k, (long long)want);
        }
        in[1 + k] = mc_size_of(x, axis + k);
    }
    return mc_apply_plain(x->graph, known ? "nonzero" : "mask_where", known ? 1 : 1 + mask->type.rank, in);
}

static void one_entry(struct parser *p, struct plan_index *q, const struct val *v, int *axis, bool advanced)
{
    int64_t *spec = &q->spec[*axis * SPEC_N];
    if (v->kind == V_NONE) {
        q->order[q->norder++] = -1;
        q->shuffled = true;
        return;
    }
    whole_axis(spec);
    if (v->kind == V_SLICE) {
        bound(p, q, &v->item[0], &spec[SPEC_START_KIND], &spec[SPEC_START]);
        bound(p, q, &v->item[1], &spec[SPEC_STOP_KIND], &spec[SPEC_STOP]);
        if (v->item[2].kind != V_NONE) {
            bound(p, q, &v->item[2], &spec[SPEC_STEP_KIND], &spec[SPEC_STEP]);
            if (spec[SPEC_STEP_KIND] == BOUND_CONST && spec[SPEC_STEP] == 0) {
                mc_parse_fail(p, v->item[2].at, "a slice cannot have step 0");
            }
        }
        q->basic |= v->item[0].kind != V_NONE || v->item[1].kind != V_NONE || v->item[2].kind != V_NONE;
    } else if (is_scalar_int(v) && !advanced) {
        bound(p, q, v, &spec[SPEC_START_KIND], &spec[SPEC_START]);
        spec[SPEC_INDEX] = 1;
        q->basic = true;
        ++*axis;
        return;
    } else {
        mc_node *n = mc_val_node(p, v);
        if (p->failed) {
            return;
        }
        if (n->type.dtype == MC_BOOL && n->type.rank > 0) {
            mc_node *where = mask_indices(n, q->in[0], *axis);
            if (mc_is_error(where)) {
                p->failed = true;
                return;
            }
            for (int k = 0; k < n->type.rank && !mc_is_error(where); k++) {
                whole_axis(&q->spec[*axis * SPEC_N]);
                q->index[q->nindex] = mc_item(where, k);
                q->axis[q->nindex++] = q->norder;
                q->order[q->norder++] = q->kept++;
                ++*axis;
            }
            return;
        }
        if (mc_is_float(n->type.dtype) || v->kind == V_WIDE) {
            mc_parse_fail(p, v->at,
                          "an index must be a whole number, a slice, a list, a tensor of integers or a mask");
            return;
        }
        q->index[q->nindex] = n;
        q->axis[q->nindex++] = q->norder;
    }
    q->order[q->norder++] = q->kept++;
    ++*axis;
}

static bool adjacent(int n, const int64_t *axis)
{
    bool all = true;
    for (int i = 1; i < n; i++) {
        all &= axis[i] == axis[i - 1] + 1;
    }
    return all;
}

/* Applies gather to the axes of x, then a dimshuffle that adds new axes, so that an update can be inverted op
 * by op.  As in NumPy, a new axis between index tensors separates them, and the axes that they span come
 * first. */
static mc_node *gather(const struct plan_index *q, mc_node *x)
{
    mc_node *in[1 + MC_MAX_RANK] = { x };
    int64_t axis[MC_MAX_RANK], order[2 * MC_MAX_RANK], from[MC_MAX_RANK];
    int span = 0, n = 0, at = 0;
    for (int i = 0; i < q->nindex; i++) {
        in[1 + i] = q->index[i];
        axis[i] = q->order[q->axis[i]];
        span = MC_MAX(span, q->index[i]->type.rank);
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = q->nindex, .ints = axis };
    mc_node *y = mc_apply(x->graph, mc_op_named(x->graph, "gather"), 1 + q->nindex, in, &a);
    if (!q->shuffled || mc_is_error(y)) {
        return y;
    }
    /* first_axis: the first axis of y that the index tensors span; from[k]: where axis k of x is in y */
    int first_axis = adjacent(q->nindex, axis) ? (int)axis[0] : 0;
    for (int k = 0; k < q->kept; k++) {
        bool taken = false;
        for (int i = 0; i < q->nindex; i++) {
            taken |= axis[i] == k;
        }
        from[k] = at < first_axis ? at : at + span;
        at += !taken;
    }
    bool together = adjacent(q->nindex, q->axis);
    for (int i = 0; i <= q->norder; i++) {
        bool taken = false;
        if (i == (together ? q->axis[0] : 0)) {
            for (int k = 0; k < span; k++) {
                order[n++] = first_axis + k;
            }
        }
        for (int k = 0; k < q->nindex; k++) {
            taken |= q->axis[k] == i;
        }
        if (i < q->norder && !taken) {
            order[n++] = q->order[i] < 0 ? -1 : from[q->order[i]];
        }
    }
    if (n > MC_MAX_RANK) {
        return mc_node_fail(x->graph, MC_ESHAPE, "the result would have more than %d axes", MC_MAX_RANK);
    }
    struct mc_attr to = { .kind = ATTR_INTS, .n = n, .ints = order };
    return mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &y, &to);
}

/* *unfolded: if stack([a, b])[0] was folded to a, the subtensor node before folding; otherwise NULL. */
static mc_node *apply(struct parser *p, mc_node *x, struct val *item, int n, mc_node **unfolded)
{
    struct plan_index q = { .in = { x }, .nin = 1 };
    mc_graph *g = p->g;
    int used = 0, dots = 0, axis = 0;
    bool advanced = false;

    for (int i = 0; i < n; i++) {
        if (item[i].kind == V_LIST) {
            item[i] = (struct val){
                .kind = V_NODE, .node = mc_val_node(p, &item[i]), .at = item[i].at, .dtype = -1
            };
        }
        used += axes_used(&item[i]);
        dots += item[i].kind == V_ELLIPSIS;
        advanced |= item[i].kind == V_NODE && item[i].node && item[i].node->type.rank > 0;
    }
    if (dots > 1 || used > x->type.rank) {
        return mc_node_fail(g, MC_ESHAPE,
                            dots > 1 ? "an index can have only one ..."
                                     : "too many indices: %d for a tensor of rank %d",
                            used, x->type.rank);
    }
    for (int i = 0; i <= n && !p->failed; i++) {
        bool fill = (i < n && item[i].kind == V_ELLIPSIS) || (i == n && !dots);
        for (int k = used; fill && k < x->type.rank; k++) {
            whole_axis(&q.spec[axis++ * SPEC_N]);
            q.order[q.norder++] = q.kept++;
        }
        if (i < n && item[i].kind != V_ELLIPSIS) {
            one_entry(p, &q, &item[i], &axis, advanced);
        }
    }
    if (p->failed) {
        return g->error;
    }
    if (q.norder > MC_MAX_RANK && !q.nindex) {
        return mc_node_fail(g, MC_ESHAPE, "the result would have more than %d axes", MC_MAX_RANK);
    }
    if (q.basic) {
        struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank * SPEC_N, .ints = q.spec };
        const struct mc_op *op = mc_op_named(g, "subtensor");
        mc_node *part = mc_apply(g, op, q.nin, q.in, &a);
        if (part != x && !mc_is_error(part) && part->op != op && !q.nindex && !q.shuffled) {
            *unfolded = mc_node_make(g, op, q.nin, q.in, &a);
        }
        x = part;
    }
    if (q.nindex && !mc_is_error(x)) {
        return gather(&q, x);
    }
    if (q.shuffled && !mc_is_error(x)) {
        struct mc_attr a = { .kind = ATTR_INTS, .n = q.norder, .ints = q.order };
        x = mc_apply(g, mc_op_named(g, "dimshuffle"), 1, &x, &a);
    }
    return x;
}

/* The node remembers x, so that set_subtensor(x[...], y) can return x with that part changed, also if x is
 * itself a part of another tensor.  A folded part remembers its unfolded node, which remembers x. */
mc_node *mc_index_apply(struct parser *p, mc_node *x, struct val *item, int n)
{
    mc_node *unfolded = NULL, *part = apply(p, x, item, n, &unfolded);
    if (unfolded && !mc_is_error(unfolded)) {
        unfolded->indexed = x;
        part->indexed = unfolded;
    } else if (!mc_is_error(part)) {
        part->indexed = x;
    }
    return part;
}

/* x[:] is x itself, so a region that is not an indexed tensor means all of x. */
static mc_node *update_all(mc_node *x, mc_node *y, bool set)
{
    int64_t spec[MC_MAX_RANK * SPEC_N], flag = set;
    struct mc_attr a[2] = { { .kind = ATTR_INTS, .n = x->type.rank * SPEC_N, .ints = spec },
                            { .kind = ATTR_BOOL, .n = 1, .ints = &flag } };
    for (int i = 0; i < x->type.rank; i++) {
        whole_axis(&spec[i * SPEC_N]);
    }
    return mc_apply(x->graph, mc_op_named(x->graph, "subtensor_update"), 2, (mc_node *[]){ x, y }, a);
}

/* y has the axes of dimshuffle(region).  Returns it with the axes of the region. */
static mc_node *shuffled_back(mc_node *region, mc_node *y)
{
    const struct mc_attr *order = &region->attr[0];
    mc_graph *g = region->graph;
    int64_t back[MC_MAX_RANK], pad[MC_MAX_RANK];
    const int rank = region->type.rank, less = rank - y->type.rank;
    if (less < 0) {
        return mc_node_fail(g, MC_ESHAPE, "the value has rank %d, but the region has rank %d", y->type.rank,
                            rank);
    }
    for (int i = 0; i < rank; i++) {
        pad[i] = MC_MAX(i - less, -1);
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = pad };
    y = less ? mc_apply(g, mc_op_named(g, "dimshuffle"), 1, &y, &a) : y;
    for (int i = 0; i < rank && !mc_is_error(y); i++) {
        if (order->ints[i] >= 0) {
            back[order->ints[i]] = i;
        } else if (y->type.dims[i] != 1) { /* a new axis has size 1, so that of y must be 1 */
            int64_t at = i;
            struct mc_attr axis = { .kind = ATTR_AXES, .n = 1, .ints = &at };
            y = mc_apply(g, mc_op_named(g, "addbroadcast"), 1, &y, &axis);
        }
    }
    a = (struct mc_attr){ .kind = ATTR_INTS, .n = region->in[0]->type.rank, .ints = back };
    return mc_is_error(y) ? y : mc_apply(g, mc_op_named(g, "dimshuffle"), 1, &y, &a);
}

/* An update of `region` as an update of `base`.  region is a chain of gather, subtensor and dimshuffle over
 * base; the chain is inverted from its last op to its first. */
static mc_node *update_of(const mc_node *base, mc_node *region, mc_node *y, bool set)
{
    mc_graph *g = region->graph;
    int64_t flag = set;
    struct mc_attr a[2] = { { 0 }, { .kind = ATTR_BOOL, .n = 1, .ints = &flag } };
    bool sub = region->op->form == FORM_SUBTENSOR, gathers = region->op->form == FORM_GATHER;
    if (region == base) {
        return update_all(region, y, set);
    }
    if (region->op->form == FORM_DIMSHUFFLE &&
        (region->in[0] == base || region->in[0]->op->form == FORM_SUBTENSOR ||
         region->in[0]->op->form == FORM_GATHER) &&
        region->in[0]->type.rank <= region->type.rank) {
        return update_of(base, region->in[0], y->type.rank ? shuffled_back(region, y) : y, set);
    }
    if (!sub && !gathers && region->op->flags & OP_VIEW) {
        return mc_node_fail(g, MC_EARG,
                            "%s: the first argument must be an indexed tensor like x[2:4], not %s(...)",
                            set ? "set_subtensor" : "inc_subtensor", region->op->name);
    }
    if (!sub && !gathers) {
        return update_all(region, y, set);
    }
    mc_node *in[2 + 3 * MC_MAX_RANK] = { region->in[0], y };
    for (int i = 1; i < region->nin; i++) {
        in[1 + i] = region->in[i];
    }
    a[0] = region->attr[0];
    mc_node *x = region->in[0];
    mc_node *inner = mc_apply(g, mc_op_named(g, sub ? "subtensor_update" : "gather_update"), region->nin + 1,
                              in, a);
    if (!mc_is_error(inner) && x != base && (x->op->form == FORM_SUBTENSOR || x->op->form == FORM_GATHER)) {
        return update_of(base, x, inner, true); /* x[1:, idx]: put the changed part back */
    }
    return inner;
}

static bool is_folded(const mc_node *part)
{
    const mc_node *x = part->indexed;
    return x && x->op->form == FORM_SUBTENSOR && x->type.rank == part->type.rank &&
           part->op->form != FORM_SUBTENSOR && part->op->form != FORM_GATHER && !(part->op->flags & OP_VIEW);
}

mc_node *mc_index_update(mc_node *region, mc_node *y, bool set)
{
    if (!region || !y || mc_is_error(region) || mc_is_error(y)) {
        return region && region->graph ? region->graph->error : NULL;
    }
    const mc_node *part = region;
    while (!part->indexed && part->op->form == FORM_DIMSHUFFLE) { /* x[1:, :2].T */
        part = part->in[0];
    }
    if (part == region && is_folded(part)) {
        part = region = part->indexed;
    }
    return update_of(part->indexed, region, y, set);
}

static mc_node *update(mc_node *region, mc_node *y, bool set)
{
    mc_graph *g = mc_graph_of(2, (mc_node *[]){ region, y });
    if (g && (!region || !y || region->graph != y->graph)) {
        return mc_node_fail(g, MC_EARG, "%s: %s", set ? "set_subtensor" : "inc_subtensor",
                            !region ? "the region is NULL"
                            : !y    ? "the value is NULL"
                                    : "region and value belong to different graphs");
    }
    return g ? mc_index_update(region, y, set) : NULL;
}

mc_node *mc_set_subtensor(mc_node *region, mc_node *y)
{
    return update(region, y, true);
}

mc_node *mc_inc_subtensor(mc_node *region, mc_node *y)
{
    return update(region, y, false);
}
