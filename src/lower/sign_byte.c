/* sign_byte.c: signs that kernels store are stored in a byte.  The sign that a relu keeps for its gradient is
 * -1, 0, 1 or NaN, whatever its dtype.  The kernel that makes it stores a code; kernels that read it compute
 * the sign from the code.
 *
 * requires: recompute.c's choice of signs.  leaves: a graph in which each of them is made from its code.
 * breaks: groups and all that was decided with them.  recompute.c then stores the code, not the sign.
 *
 * Why the graph changes after grouping: which signs are stored follows from the groups, and a stored value is
 * a node.  Shape plans, the reference and the profile read its dtype from the node.
 *
 * Invariant: readers get the same number; only the sign of a zero is lost. */
#include "lower/make.h"

/* The code of one byte of y, the sign of a; and the sign that the code c means. */
static const char code[] = "cast(where(isnan(a), 2, y), 'int8')",
                  value[] = "where(eq(c, 2), nan, cast(c, a.dtype))";

bool mc_fits_in_byte(const mc_node *n)
{
    return n->op->flags & OP_SIGN && mc_is_float(n->type.dtype);
}

static mc_node *narrowed(mc_node *n, mc_node **in, const void *coded)
{
    mc_node *y = mc_apply(n->graph, n->op, n->nin, in, n->attr);
    if (!((const unsigned char *)coded)[n->id] || mc_is_error(y)) {
        return y;
    }
    mc_node *c = mc_expr(n->graph, code, (struct mc_bind[]){ { "a", in[0], NULL }, { "y", y, NULL } }, 2);
    return mc_is_error(c)
               ? c
               : mc_expr(n->graph, value, (struct mc_bind[]){ { "a", in[0], NULL }, { "c", c, NULL } }, 2);
}

mc_status mc_lower_sign_bytes(const struct make *m, int nout, mc_node **out, bool *changed)
{
    *changed = false;
    for (size_t i = 0; i < m->groups.count; i++) {
        *changed |= m->coded[m->groups.list[i]->id];
    }
    return *changed ? mc_lower_sweep(m->p->graph, nout, out, narrowed, m->coded) : MC_OK;
}
