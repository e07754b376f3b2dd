/* language.c: the language of users' graphs: formulas have all ops, and gradients. */
#include "grad/grad.h"
#include "op/loop.h"

static const struct mc_language language = {
    .find = mc_op_find, .op = mc_op_at, .expand = mc_formula_expand, .forget = mc_custom_unref,
    .share = mc_custom_share, .scan = mc_loop_of_nodes, .read_body = mc_body_read, .grads = mc_grads, .Lop = mc_Lop, .Rop = mc_Rop,
    .jacobian = mc_jacobian, .hessian = mc_hessian,
};

mc_graph *mc_graph_new(void)
{
    return mc_graph_make(&language);
}
