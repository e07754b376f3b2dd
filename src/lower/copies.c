/* copies.c: some values get a copy as a node of its own.  The kernel that makes or reads the value stores the
 * copy too, which is cheaper than a kernel that only copies.
 *
 *   an elementwise part of a join, which something else reads too: a kernel writes a part where the join
 *   wants it only if nothing but the join reads it (schedule/join_parts.c).  In the gradient of a GRU two
 *   joins share parts.
 *   a result that is a part of a solver's result, and that an elementwise op reads: that op's kernel has
 *   loaded the part
 *
 * requires: a graph of expand.c.  leaves: the same values.
 *
 * Invariant: copies are distinct nodes: the second copy of x is a copy of its first. */
#include "lower/lower.h"

struct readers {
    int *joins, *others;        /* by node id of the old graph: joins of which it is a part; other readers */
    int *taken;                 /* by node id: parts that have their value */
    int *elements;              /* by node id: elementwise ops that read it */
};

/* All parts are made by kernels that can write them where the join wants them. */
static bool takes_parts(const mc_node *n)
{
    bool all = n->op->form == FORM_JOIN && mc_is_float(n->type.dtype);
    for (int i = 0; i < n->nin && all; i++) {
        all = mc_is_elementwise(n->in[i]) && n->in[i]->type.dtype == n->type.dtype;
    }
    return all;
}

/* A cast to the dtype that it has. */
static mc_node *copy_of(mc_node *x)
{
    int64_t dtype = x->type.dtype;
    const struct mc_attr to = { .kind = ATTR_DTYPE, .n = 1, .ints = &dtype };
    return mc_node_make(x->graph, mc_op_named(x->graph, "cast"), 1, &x, &to);
}

static mc_node *copy_parts(mc_node *n, mc_node **in, const void *arg)
{
    const struct readers *r = arg;
    for (int i = 0; takes_parts(n) && i < n->nin; i++) {
        const uint32_t id = n->in[i]->id;
        const int copies = r->taken[id]++ + (r->others[id] > 0);
        for (int k = 0; k < copies && !mc_is_error(in[i]); k++) {
            in[i] = copy_of(in[i]);
        }
    }
    return mc_apply(n->graph, n->op, n->nin, in, n->attr);
}

static void count(struct readers *r, const mc_node *n)
{
    for (int i = 0; i < n->nin; i++) {
        (takes_parts(n) ? r->joins : r->others)[n->in[i]->id]++;
        r->elements[n->in[i]->id] += mc_is_elementwise(n);
    }
}

/* Is n a part of a solver's result? */
static bool is_part(const mc_node *n)
{
    return n->op->form == FORM_SUBTENSOR && mc_is_float(n->type.dtype) && n->in[0]->op->flags & OP_HEAVY;
}

mc_status mc_lower_copies(mc_graph *g, int n, mc_node **out)
{
    size_t nlist = 0;
    mc_node **list = mc_graph_reach(n, out, &nlist);
    const size_t top = nlist ? list[nlist - 1]->id + 1u : 1;
    int *at = mc_calloc(4 * top, sizeof *at, "lower");
    struct readers r = { at, at + top, at + 2 * top, at + 3 * top };
    bool shared = false;
    mc_status st = list && at ? MC_OK : MC_EMEMORY;
    for (size_t i = 0; st == MC_OK && i < nlist; i++) {
        count(&r, list[i]);
    }
    for (int i = 0; st == MC_OK && i < n; i++) {
        if (is_part(out[i]) && r.elements[out[i]->id]) {
            out[i] = copy_of(out[i]);
            st = mc_is_error(out[i]) ? g->status : MC_OK;
            continue;
        }
        r.others[out[i]->id]++;
    }
    for (size_t i = 0; st == MC_OK && i < nlist; i++) {
        shared |= r.joins[list[i]->id] && r.joins[list[i]->id] + r.others[list[i]->id] > 1;
    }
    st = shared ? mc_lower_sweep(g, n, out, copy_parts, &r) : st;
    mc_free(list);
    mc_free(at);
    return st;
}
