/* second_order.c: gradients of gradients. A gradient is a function of all that its cost depends on, even
 * if its formula is constant: the gradient of 2 * x is 2, and differentiated by x again it is 0, not an
 * error. So the graph records of which nodes each gradient was taken.
 *
 * Invariant: inputs, shared variables and constants have no such record, because they have other uses as
 * well. */
#include "grad/grad.h"

struct mc_taken { mc_node *of; struct mc_taken *next; };

mc_status mc_grad_remember(mc_graph *g, mc_node **grad, int n, mc_node *const *of)
{
    if (mc_is_const(*grad)) { /* a separate node, which can have a record */
        *grad = mc_call_op(g, "consider_constant", 1, grad, NULL);
    }
    if (mc_is_error(*grad) || (*grad)->op->flags & OP_LEAF) {
        return mc_is_error(*grad) ? MC_EMEMORY : MC_OK;
    }
    for (int i = 0; i < n; i++) {
        struct mc_taken *first = mc_map_get(&g->taken, (*grad)->id, NULL), *t = first;
        while (t && t->of != of[i]) {
            t = t->next;
        }
        if (!t) {
            t = mc_arena_alloc(&g->arena, sizeof *t);
            if (!t) {
                return MC_EMEMORY;
            }
            *t = (struct mc_taken){ of[i], first };
            if (!mc_map_put(&g->taken, (*grad)->id, t)) {
                return MC_EMEMORY;
            }
        }
    }
    return MC_OK;
}

struct open { VEC(mc_node *) node; struct mc_map seen; };

static bool add(struct open *o, mc_node *n)
{
    return mc_map_get(&o->seen, n->id, NULL) || (mc_map_put(&o->seen, n->id, n) && VEC_PUSH(o->node, n));
}

/* Adds the nodes of which the gradients that c depends on were taken. */
static mc_status add_taken(struct open *o, mc_node *c, const mc_grad_spec *spec)
{
    size_t count = 0, n = 0;
    mc_node **list = mc_graph_reach(1, &c, &count),
            **link = list ? mc_alloc((count + 1) * sizeof *link, "grad") : NULL;
    for (size_t i = 0; link && i < count; i++) {
        if (mc_map_get(&c->graph->taken, list[i]->id, NULL)) {
            list[n++] = list[i];
        }
    }
    mc_status s = link ? mc_grad_links(c, spec, (int)n, list, link) : MC_EMEMORY;
    for (size_t i = 0; i < n && s == MC_OK; i++) {
        for (const struct mc_taken *t = link[i] ? mc_map_get(&c->graph->taken, list[i]->id, NULL) : NULL;
             t && s == MC_OK; t = t->next) {
            s = add(o, t->of) ? MC_OK : MC_EMEMORY;
        }
    }
    mc_free(list);
    mc_free(link);
    return s;
}

mc_status mc_grad_depends(int n, mc_node *const *known, const mc_grad_spec *spec, mc_node *wrt, bool *depends)
{
    struct open o = { .seen = { 0 } };
    mc_status s = MC_OK;
    *depends = false;
    for (int i = 0; i < n && s == MC_OK; i++) {
        s = add(&o, known[i]) ? MC_OK : MC_EMEMORY;
    }
    for (size_t i = 0; i < o.node.n && s == MC_OK && !*depends; i++) {
        mc_node *link = NULL;
        s = mc_grad_links(o.node.at[i], spec, 1, &wrt, &link);
        *depends = link != NULL;
        s = s < 0 || link ? s : add_taken(&o, o.node.at[i], spec);
    }
    VEC_FREE(o.node);
    mc_map_free(&o.seen);
    return s;
}
