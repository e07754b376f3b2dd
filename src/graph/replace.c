/* replace.c: copies nodes with some of them replaced, for givens, clones and gradients. */
#include "graph/graph.h"

mc_status mc_graph_replace(mc_graph *g, int n, mc_node *const *from, mc_node *const *to, int nout,
                           mc_node **out)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(nout, out, &count);
    uint32_t top = count ? list[count - 1]->id : 0;
    mc_node **map = mc_calloc((size_t)top + 1, sizeof *map, "nodes");
    mc_status s = list && map ? MC_OK : MC_EMEMORY;

    for (int i = 0; s == MC_OK && i < n; i++) {
        if (from[i]->id <= top) {
            map[from[i]->id] = to[i];
        }
    }
    for (size_t i = 0; s == MC_OK && i < count; i++) {
        mc_node *x = list[i];
        bool changed = false;
        if (map[x->id]) {
            continue;
        }
        mc_node **in = mc_alloc((size_t)(x->nin + 1) * sizeof *in, "nodes");
        if (!in) {
            s = MC_EMEMORY;
            break;
        }
        for (int k = 0; k < x->nin; k++) {
            in[k] = map[x->in[k]->id];
            changed |= in[k] != x->in[k];
        }
        size_t first = g->nodes.n;
        map[x->id] = !changed               ? x
                     : x->op == &mc_op_item ? mc_item(in[0], x->item)
                                            : mc_apply(g, x->op, x->nin, in, x->attr);
        mc_label_since(g, first, x->label);
        mc_free(in);
        if (mc_is_error(map[x->id]) && !mc_is_error(x)) {
            s = g->status < 0 ? g->status : MC_EARG;
        }
    }
    for (int i = 0; s == MC_OK && i < nout; i++) {
        out[i] = map[out[i]->id];
    }
    mc_free(list);
    mc_free(map);
    return s;
}

/* One of these nodes that is an error, or of another graph; NULL: none is. */
static const char *fault(const mc_graph *g, int n, mc_node *const *nodes)
{
    for (int i = 0; i < n; i++) {
        if (!nodes[i] || nodes[i]->graph != g) {
            return nodes[i] ? "belongs to another graph" : "is NULL";
        }
        if (mc_is_error(nodes[i])) {
            return "is the error node";
        }
    }
    return NULL;
}

mc_status mc_replace(int n, mc_node *const *from, mc_node *const *to, int nout, mc_node **out)
{
    mc_graph *g = nout > 0 && out ? mc_graph_of(nout, out) : NULL;
    if (nout < 1 || n < 1) {
        return nout < 0 || n < 0 ? mc_fail(MC_EARG, "replace: a negative number of nodes") : MC_OK;
    }
    if (!from || !to || !out) {
        return mc_fail(MC_EARG, "replace: a list of nodes is NULL");
    }
    const char *bad = fault(g, nout, out), *what = "a result";
    if (!bad && (bad = fault(g, n, from))) {
        what = "a node";
    }
    if (!bad && (bad = fault(g, n, to))) {
        what = "a replacement";
    }
    return bad ? mc_fail(MC_EARG, "replace: %s %s", what, bad) : mc_graph_replace(g, n, from, to, nout, out);
}
