/* jacobian.c: products with the Jacobian from the left, Lop = eval . df/dwrt, and from the right,
 * Rop = df/dwrt . eval. */
#include "grad/grad.h"
#include "op/loop.h"

mc_node *mc_Lop(mc_node *f, mc_node *wrt, mc_node *eval)
{
    mc_node *out = NULL, *const given[3] = { f, wrt, eval };
    mc_graph *g = mc_graph_of(3, given);
    if (!f || !wrt || !eval) {
        return g ? mc_node_fail(g, MC_EARG, "Lop: an argument is missing (NULL)") : NULL;
    }
    mc_grads(NULL, 1, &wrt, &out, &(mc_grad_spec){ .known = &f, .known_grad = &eval, .nknown = 1 });
    return out;
}

/* Does n need the elements of x? A use of its sizes alone (disconnected) does not count. */
static mc_status needs_elements(mc_node *n, const mc_node *x, bool *needs)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(1, &n, &count);
    bool *mark = mc_calloc((size_t)n->id + 1, sizeof *mark, "grad");
    *needs = false;
    mc_status s = list && mark ? MC_OK : MC_EMEMORY;
    if (s == MC_OK && x->id <= n->id) {
        mark[x->id] = true;
        s = mc_marks_spread(list, count, mark);
        *needs = mark[n->id];
    }
    mc_free(list);
    mc_free(mark);
    return s;
}

/* Lop is linear in its last argument u, so its derivative by u, applied to eval, is df/dwrt . eval: two
 * reverse differentiations make a forward one. Of u only the sizes remain, and these are the sizes of f. */
mc_node *mc_Rop(mc_node *f, mc_node *wrt, mc_node *eval)
{
    mc_node *const given[3] = { f, wrt, eval };
    mc_graph *g = mc_graph_of(3, given);
    bool nonlinear = false;
    if (!f || !wrt || !eval) {
        return g ? mc_node_fail(g, MC_EARG, "Rop: an argument is missing (NULL)") : NULL;
    }
    if (mc_grad_check(g, "argument of Rop", 3, given) < 0) {
        return g->error;
    }
    mc_node *u = mc_node_blank(g, &f->type), *out = mc_Lop(f, wrt, u), *v = out;
    if (mc_is_error(out)) {
        return out;
    }
    mc_status s = mc_grads(
        NULL, 1, &u, &out,
        &(mc_grad_spec){
            .known = &v, .known_grad = &eval, .nknown = 1, .disconnected = MC_DISCONNECTED_ZERO });
    s = s < 0 ? s : needs_elements(out, u, &nonlinear);
    if (s == MC_OK && nonlinear) {
        return mc_node_fail(g, MC_EGRAD, "Rop: the gradient of %s(...) is not linear in its last argument",
                            f->op->name);
    }
    s = s < 0 ? s : mc_graph_replace(g, 1, &u, &f, 1, &out);
    return s < 0 ? g->error : out;
}
