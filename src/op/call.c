/* call.c: the common body of the functions of monochord_ops.h. Trailing optional tensors that are NULL are
 * not passed on, so that a C call and a formula make the same node. */
#include "op/call.h"

static mc_node *apply(const char *name, mc_graph *g, int nfirst, mc_node *const *first, int n,
                      mc_node *const *more, const char *attrs)
{
    mc_node *on_stack[16], **in = nfirst + n <= (int)NELEM(on_stack) ? on_stack : NULL;
    g = g ? g : mc_graph_of(nfirst, first);
    g = g ? g : mc_graph_of(n, more);
    if (!g) {
        mc_fail(MC_EARG, "%s: no arguments are given", name);
        return NULL;
    }
    const struct mc_op *op = mc_op_named(g, name);
    if (n < 0 || (n && !more)) {
        return mc_node_fail(g, MC_EARG, "%s: the list of %d tensors is invalid or NULL", name, n);
    }
    if (!in && !(in = mc_arena_alloc(&g->arena, (size_t)(nfirst + n) * sizeof *in))) {
        return mc_node_fail(g, MC_EMEMORY, "%s", mc_last_error());
    }
    for (int i = 0; i < nfirst; i++) {
        in[i] = first[i];
    }
    for (int i = 0; i < n; i++) {
        in[nfirst + i] = more[i];
    }
    while (op && n == 0 && nfirst > 0 && !in[nfirst - 1] && op->sig->param[nfirst - 1].optional) {
        nfirst--;
    }
    return mc_call_op(g, name, nfirst + n, in, attrs ? "%s" : NULL, attrs);
}

mc_node *mc_call_plain(const char *name, mc_graph *g, int nfirst, mc_node *const *first, int n,
                       mc_node *const *more)
{
    return apply(name, g, nfirst, first, n, more, NULL);
}

mc_node *mc_call_how(const char *name, mc_graph *g, int nfirst, mc_node *const *first, int n,
                     mc_node *const *more, const char *how, va_list ap)
{
    struct mc_str text = { 0 };
    if (how) {
        mc_str_addv(&text, how, ap);
    }
    mc_node *y = apply(name, g, nfirst, first, n, more, text.s);
    if (text.bad && y) {
        y = mc_node_fail(y->graph, MC_EMEMORY, "%s", mc_last_error());
    }
    mc_str_free(&text);
    return y;
}
