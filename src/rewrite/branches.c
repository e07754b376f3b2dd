/* branches.c: each ifelse becomes a branch, whose bodies have the nodes that only one side of it needs.
 *
 * Nodes of a region go into the body of the first ifelse that needs them.  What a later ifelse with the same
 * condition reads of them is a further result of that body: the gradient of a side reads what the side has
 * computed.
 *
 * Invariant: an ifelse only reads results of branches with smaller ids, so the order of ids stays a
 * topological order. */
#include "op/ifelse.h"
#include "rewrite/rewrite.h"

typedef VEC(mc_node *) nodes;
struct work {
    mc_graph *g;
    mc_node **list;
    size_t count;
    struct mc_regions region;
    mc_node **owner;        /* by id: the ifelse whose body has the node */
    bool *saved;            /* by id: the node is a further result of that body */
    mc_node **map;          /* by id: what became of a node, outside of the bodies */
    mc_node **made;         /* by id: the branch that an ifelse became */
    uint32_t *mark, round;  /* by id: the last walk that visited the node */
    nodes open;
};

/* ---- who computes what ---- */

/* Is n computed in every body that reads it?  Sizes are, as bodies need them before they are computed. */
static bool is_free(const struct work *w, const mc_node *n)
{
    return !w->region.from_data[n->id];
}

static bool in_region(const struct work *w, const mc_node *n, uint64_t region)
{
    return w->region.of[n->id] == region && !mc_is_const(n);
}

static mc_status visit(struct work *w, mc_node *n)
{
    if (w->mark[n->id] == w->round) {
        return MC_OK;
    }
    w->mark[n->id] = w->round;
    return VEC_PUSH(w->open, n) ? MC_OK : MC_EMEMORY;
}

static mc_status visit_inputs(struct work *w, const mc_node *n)
{
    for (int k = 0; k < n->nin; k++) {
        TRY(visit(w, n->in[k]));
    }
    return MC_OK;
}

static mc_status visit_values(struct work *w, const mc_node *n, bool side)
{
    w->round++;
    for (int i = 0; i < n->nout; i++) {
        TRY(w->region.read[n->id] >> i & 1 ? visit(w, mc_ifelse_value(n, side, i)) : MC_OK);
    }
    return MC_OK;
}

/* Is the node of a region computed in the body of another ifelse?  An item is where its tuple is. */
static mc_node *other_owner(struct work *w, const mc_node *x, const mc_node *n)
{
    mc_node *owner = w->owner[x->id];
    if (!owner && x->op == &mc_op_item) {
        owner = w->owner[x->in[0]->id];
    }
    return owner != n ? owner : NULL;
}

/* Makes n the owner of what the values of its side need and no other ifelse owns.  What another one owns is a
 * further result of that, unless it is only needed by one side of a choice in the body: as a result it would
 * always be computed.  That, and what finds no room among the results, is computed again. */
static mc_status own_side(struct work *w, mc_node *n, bool side, int *results)
{
    const uint64_t region = mc_region_of(n->in[0], side);
    TRY(visit_values(w, n, side));
    while (w->open.n) {
        mc_node *x = w->open.at[--w->open.n];
        if (!in_region(w, x, region)) {
            continue;
        }
        mc_node *owner = is_free(w, x) ? NULL : other_owner(w, x, n);
        if (owner && x->nout == 1 && !mc_is_deep(&w->region, x)) {
            const bool again = w->saved[x->id];
            w->owner[x->id] = owner;
            if (again || results[owner->id] < MC_MOST_RESULTS) {
                results[owner->id] += !again;
                w->saved[x->id] = true;
                continue;
            }
        }
        if (!owner && !is_free(w, x)) {
            w->owner[x->id] = n;
        }
        TRY(visit_inputs(w, x));
    }
    return MC_OK;
}

static bool is_branch(const struct work *w, const mc_node *n)
{
    return n->op->form == FORM_IFELSE && w->region.of[n->id] == REGION_OUTSIDE && !mc_is_const(n->in[0]);
}

static mc_status find_owners(struct work *w, size_t top)
{
    int *results = mc_calloc(top, sizeof *results, "ifelse");
    mc_status s = results ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; i < w->count && s == MC_OK; i++) {
        mc_node *n = w->list[i];
        if (is_branch(w, n)) {
            results[n->id] = n->nout;
            s = own_side(w, n, true, results);
            s = s < 0 ? s : own_side(w, n, false, results);
        }
    }
    mc_free(results);
    return s;
}

/* ---- bodies ---- */

struct bodies {
    mc_node *n;             /* the ifelse */
    nodes in;               /* what the bodies read */
    nodes out[2];           /* by side: values, then saved nodes */
    int nvalue;
};

/* Finds what the body of a side reads: everything outside of the region, and what earlier branches saved. */
static mc_status find_inputs(struct work *w, struct bodies *b, bool side)
{
    const uint64_t region = mc_region_of(b->n->in[0], side);
    w->round++;
    for (size_t i = 0; i < b->out[side].n; i++) {
        TRY(visit(w, b->out[side].at[i]));
    }
    while (w->open.n) {
        mc_node *x = w->open.at[--w->open.n];
        if (mc_is_const(x)) {
            continue;
        }
        const bool saved = w->saved[x->id] && w->owner[x->id] != b->n;
        if (in_region(w, x, region) && !saved) {
            TRY(visit_inputs(w, x));
            continue;
        }
        bool have = false;
        for (size_t i = 0; i < b->in.n && !have; i++) {
            have = b->in.at[i] == x;
        }
        if (!have && !VEC_PUSH(b->in, x)) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

static mc_status find_outs(struct work *w, struct bodies *b)
{
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < b->n->nout; i++) {
            if (w->region.read[b->n->id] >> i & 1 &&
                !VEC_PUSH(b->out[side], mc_ifelse_value(b->n, side, i))) {
                return MC_EMEMORY;
            }
        }
        b->nvalue = (int)b->out[side].n;
    }
    for (size_t i = 0; i < w->count; i++) { /* an item may be younger than the ifelse that owns its tuple */
        mc_node *x = w->list[i];
        if (w->saved[x->id] && w->owner[x->id] == b->n) {
            const bool side = w->region.of[x->id] == mc_region_of(b->n->in[0], true);
            if (!VEC_PUSH(b->out[side], x)) {
                return MC_EMEMORY;
            }
        }
    }
    return MC_OK;
}

static mc_status failed(void)
{
    return mc_last_status() < 0 ? mc_last_status() : MC_EMEMORY;
}

/* Makes the branch, and says what became of the saved nodes. */
static mc_status make_branch(struct work *w, struct bodies *b)
{
    const int nin = (int)b->in.n;
    const struct mc_body *body[2] = { NULL, NULL };
    mc_node **in = mc_alloc((size_t)(nin + 1) * sizeof *in, "ifelse"), *made = NULL;
    mc_status s = in ? MC_OK : MC_EMEMORY;
    for (int i = 0; i <= nin && s == MC_OK; i++) {
        in[i] = w->map[i ? b->in.at[i - 1]->id : b->n->in[0]->id];
    }
    for (int side = 0; side < 2 && s == MC_OK; side++) {
        body[side] = mc_body_make(w->g, nin, b->in.at, (int)b->out[side].n, b->out[side].at);
        s = body[side] ? MC_OK : failed();
    }
    if (s == MC_OK) {
        made = mc_branch_make(w->g, nin + 1, in, body[true], body[false], b->nvalue,
                              b->n->attr[IFELSE_RAGGED].ints[0] != 0);
        s = mc_is_error(made) ? failed() : MC_OK;
    }
    if (s == MC_OK) {
        const struct mc_branch how = mc_branch_of(made->attr);
        w->made[b->n->id] = made;
        w->map[b->n->id] = mc_item(made, 0);
        for (int side = 0; side < 2; side++) {
            for (int i = b->nvalue; i < (int)b->out[side].n; i++) {
                mc_node *item = mc_item(made, mc_branch_result(&how, side, i));
                w->map[b->out[side].at[i]->id] = item;
                s = mc_is_error(item) ? failed() : s;
            }
        }
        s = mc_is_error(w->map[b->n->id]) ? failed() : s;
    }
    mc_body_unref(body[0]);
    mc_body_unref(body[1]);
    mc_free(in);
    return s;
}

static mc_status branch(struct work *w, mc_node *n)
{
    struct bodies b = { .n = n };
    mc_status s = find_outs(w, &b);
    s = s < 0 ? s : find_inputs(w, &b, true);
    s = s < 0 ? s : find_inputs(w, &b, false);
    s = s < 0 ? s : make_branch(w, &b);
    VEC_FREE(b.in);
    VEC_FREE(b.out[0]);
    VEC_FREE(b.out[1]);
    return s;
}

/* ---- the graph ---- */

/* The result of a branch that has value i of the ifelse: values that nothing reads are left out. */
static int result_of(const struct work *w, const mc_node *n, int i)
{
    int at = 0;
    for (int k = 0; k < i; k++) {
        at += (int)(w->region.read[n->id] >> k & 1);
    }
    return at;
}

static mc_node *remake(struct work *w, mc_node *x)
{
    const mc_node *choice = x->op == &mc_op_item && x->in[0]->op->form == FORM_IFELSE ? x->in[0] : x;
    const int item = choice == x ? 0 : x->item;
    if (choice->op->form == FORM_IFELSE && mc_is_const(choice->in[0])) {
        return w->map[mc_ifelse_value(choice, *choice->in[0]->value->data != 0, item)->id];
    }
    if (choice->op->form == FORM_IFELSE) {
        return mc_item(w->made[choice->id], result_of(w, choice, item));
    }
    mc_node **in = mc_alloc((size_t)(x->nin + 1) * sizeof *in, "ifelse");
    bool changed = false;
    for (int k = 0; k < x->nin && in; k++) {
        in[k] = w->map[x->in[k]->id];
        changed |= in[k] != x->in[k];
    }
    mc_node *made = !in                    ? NULL
                    : !changed             ? x
                    : x->op == &mc_op_item ? mc_item(in[0], x->item)
                                           : mc_node_make(w->g, x->op, x->nin, in, x->attr);
    mc_free(in);
    return made;
}

static mc_status make_all(struct work *w)
{
    for (size_t i = 0; i < w->count; i++) {
        mc_node *x = w->list[i];
        if (w->region.of[x->id] != REGION_OUTSIDE) {
            continue;
        }
        const size_t first = w->g->nodes.n;
        mc_here(x->file, x->line);
        if (is_branch(w, x)) {
            TRY(branch(w, x));
        } else if (x->op->form != FORM_IFELSE || x->nout == 1) {
            w->map[x->id] = remake(w, x);
            if (mc_is_error(w->map[x->id])) {
                return failed();
            }
        }
        mc_label_since(w->g, first, x->label);
    }
    return MC_OK;
}

mc_status mc_branches_make(mc_graph *g, int n, mc_node **out)
{
    struct work w = { .g = g, .list = mc_graph_reach(n, out, &w.count) };
    bool any = false;
    for (size_t i = 0; w.list && i < w.count; i++) {
        any |= w.list[i]->op->form == FORM_IFELSE;
    }
    if (!w.list || !any) {
        mc_free(w.list);
        return w.list ? MC_OK : MC_EMEMORY;
    }
    const size_t top = g->nodes.n + 1;
    w.owner = mc_calloc(top, sizeof *w.owner, "ifelse");
    w.saved = mc_calloc(top, sizeof *w.saved, "ifelse");
    w.map = mc_calloc(top, sizeof *w.map, "ifelse");
    w.made = mc_calloc(top, sizeof *w.made, "ifelse");
    w.mark = mc_calloc(top, sizeof *w.mark, "ifelse");
    mc_status s = w.owner && w.saved && w.map && w.made && w.mark
                      ? mc_regions_find(&w.region, w.count, w.list, n, out)
                      : MC_EMEMORY;
    s = s < 0 ? s : find_owners(&w, top);
    s = s < 0 ? s : make_all(&w);
    for (int i = 0; i < n && s == MC_OK; i++) {
        out[i] = w.map[out[i]->id];
    }
    mc_regions_free(&w.region);
    VEC_FREE(w.open);
    mc_free(w.list);
    mc_free(w.owner);
    mc_free(w.saved);
    mc_free(w.map);
    mc_free(w.made);
    mc_free(w.mark);
    return s;
}
