/* stable.c: the stable form of a cost. The derivative of a formula that loses digits loses them too, and
 * no rule can repair that in the result. So the rules that mend such formulas when a function is compiled
 * are applied to the cost before it is differentiated.
 *
 * Invariant: the nodes with respect to which gradients are taken, and those where the sweep ends, are not
 * rewritten. */
#include "grad/grad.h"
#include "rewrite/rewrite.h"

struct points { VEC(mc_node *) from, to; };

/* Records a blank input as the replacement of each node that is not a leaf. */
static mc_status mark_points(struct points *p, int n, mc_node *const *nodes)
{
    for (int i = 0; i < n; i++) {
        bool taken = nodes[i]->op->flags & OP_LEAF;
        for (size_t k = 0; k < p->from.n; k++) {
            taken |= p->from.at[k] == nodes[i];
        }
        if (!taken && !(VEC_PUSH(p->from, nodes[i]) &&
                        VEC_PUSH(p->to, mc_node_blank(nodes[i]->graph, &nodes[i]->type)))) {
            return MC_EMEMORY;
        }
    }
    return MC_OK;
}

mc_status mc_grad_stable(mc_graph *g, int n, mc_node *const *wrt, const mc_grad_spec *spec, mc_node **cost)
{
    struct points p = { .from = { 0 } };
    mc_node *made = *cost;
    mc_status s = mark_points(&p, n, wrt);
    s = s < 0 ? s : mark_points(&p, spec->nconstant, spec->consider_constant);
    int count = (int)p.from.n;
    const uint64_t key = (uint64_t)made->id << 36 | SENT_COST;
    const bool keep = !count && made->id < 1u << 28;
    mc_node *known = s == MC_OK && keep ? mc_map_get(&g->sent, key, NULL) : NULL;
    if (s == MC_OK && !known) {
        s = count ? mc_graph_replace(g, count, p.from.at, p.to.at, 1, &made) : s;
        s = s < 0 ? s : mc_rewrite_cost(g, &made);
        s = s < 0 || !count ? s : mc_graph_replace(g, count, p.to.at, p.from.at, 1, &made);
        s = s < 0 || !keep || mc_map_put(&g->sent, key, made) ? s : MC_EMEMORY;
    }
    if (s == MC_OK) {
        *cost = known ? known : made;
    }
    VEC_FREE(p.from);
    VEC_FREE(p.to);
    return s;
}
