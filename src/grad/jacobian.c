/* jacobian.c: products with the Jacobian from the left, Lop = eval . df/dwrt, and from the right,
 * Rop = df/dwrt . eval; the Jacobian itself, row by row, and that of a gradient. */
#include "grad/grad.h"
#include "op/loop.h"
#include "rewrite/rewrite.h"

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

/* Does n need the elements of x? */
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
    s = s < 0 ? s : mc_loops_simplify(g, 1, &out, false); /* gradients of loops by all they read */
    s = s < 0 ? s : needs_elements(out, u, &nonlinear);
    if (s == MC_OK && nonlinear) {
        return mc_node_fail(g, MC_EGRAD, "Rop: the gradient of %s(...) is not linear in its last argument",
                            f->op->name);
    }
    s = s < 0 ? s : mc_graph_replace(g, 1, &u, &f, 1, &out);
    return s < 0 ? g->error : out;
}

/* ---- the Jacobian ---- */

/* Is y computed from x element by element, with no axis of x repeated?  Then all but the diagonal is 0. */
static mc_status is_diagonal(mc_node *y, const mc_node *x, bool *is)
{
    size_t count = 0;
    mc_node **list = mc_graph_reach(1, &y, &count);
    bool *mark = mc_calloc((size_t)MC_MAX(y->id, x->id) + 1, sizeof *mark, "grad");
    mc_status s = list && mark ? MC_OK : MC_EMEMORY;
    *is = s == MC_OK;
    if (s == MC_OK) {
        mark[x->id] = true;
        s = mc_marks_spread(list, count, mark);
    }
    for (size_t i = 0; i < count && s == MC_OK && *is; i++) {
        const mc_node *n = list[i];
        if (mark[n->id] && n != x) {
            *is = mc_is_elementwise(n) && n->nout == 1 && n->type.rank == x->type.rank;
            for (int k = 0; *is && k < x->type.rank; k++) {
                *is = (n->type.dims[k] == 1) == (x->type.dims[k] == 1);
            }
        }
    }
    *is = s == MC_OK && *is && mark[y->id];
    mc_free(list);
    mc_free(mark);
    return s;
}

static mc_node *diagonal(mc_graph *g, mc_node *y, mc_node *x)
{
    struct mc_bind b[3] = { { "x", x, NULL }, { "d", NULL, NULL }, { "r", NULL, NULL } };
    b[1].node = mc_Lop(y, x, mc_apply_plain(g, "ones_like", 1, &y));
    b[1].node = mc_is_error(b[1].node) ? b[1].node : mc_expr(g, "ravel(d)", b, 2);
    b[2].node = mc_is_error(b[1].node) ? b[1].node : mc_expr(g, "arange(size(d, axis=0))", b, 2);
    return mc_is_error(b[2].node)
               ? g->error
               : mc_expr(g, "reshape(where(r[:, None] == r, d, 0), concatenate(shape(x), shape(x)))", b, 3);
}

/* A loop over the elements of y: row i is the product of the Jacobian with a vector that is 1 at i. */
static mc_node *rows(mc_graph *g, mc_node *y, mc_node *x)
{
    struct mc_bind b[4] = { { "y", y, NULL }, { "x", x, NULL } };
    mc_node *index = mc_expr(g, "arange(size(ravel(y), axis=0))", b, 2);
    mc_node *at = mc_is_error(index) ? index : mc_scan_element(index);
    b[2] = (struct mc_bind){ "index", index, NULL };
    b[3] = (struct mc_bind){ "at", at, NULL };
    mc_node *hit = mc_is_error(at) ? at : mc_expr(g, "reshape(index == at, shape(y))", b, 4);
    mc_node *row = mc_is_error(hit) ? hit : mc_Lop(y, x, mc_cast_to(hit, y->type.dtype));
    if (mc_is_error(row)) {
        return row;
    }
    mc_node *loop = mc_scan(g,
                            &(mc_scan_spec){ .element = &at, .nelement = 1, .collect = &row, .ncollect = 1 });
    mc_node *all = mc_is_error(loop) ? loop : mc_item(loop, 0);
    b[2] = (struct mc_bind){ "all", all, NULL };
    return mc_is_error(all) || y->type.rank == 1
               ? all
               : mc_expr(g, "reshape(all, concatenate(shape(y), shape(x)))", b, 3);
}

mc_node *mc_jacobian(mc_node *y, mc_node *x)
{
    mc_node *const given[2] = { y, x };
    mc_graph *g = mc_graph_of(2, given);
    bool one_pass = false;
    if (!y || !x) {
        return g ? mc_node_fail(g, MC_EARG, "jacobian: an argument is missing (NULL)") : NULL;
    }
    if (mc_grad_check(g, "argument of jacobian", 2, given) < 0) {
        return g->error;
    }
    if (y->type.rank + x->type.rank > MC_MAX_RANK) {
        return mc_node_fail(g, MC_ESHAPE, "jacobian: it would have %d axes, those of y and x; at most %d",
                            y->type.rank + x->type.rank, MC_MAX_RANK);
    }
    if (y->type.rank == 0) {
        mc_node *one = mc_is_float(y->type.dtype) ? mc_node_like(y, 1) : y;
        return mc_is_error(one) ? one : mc_Lop(y, x, one);
    }
    return is_diagonal(y, x, &one_pass) < 0 ? mc_node_no_memory(g)
           : one_pass                       ? diagonal(g, y, x)
                                            : rows(g, y, x);
}

mc_node *mc_hessian(mc_node *cost, mc_node *x)
{
    mc_node *grad = mc_grad(cost, x);
    return !grad || mc_is_error(grad) ? grad : mc_jacobian(grad, x);
}
