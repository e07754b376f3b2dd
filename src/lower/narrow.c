/* narrow.c: values of few kinds, kept between kernels in a byte.  The sign that a relu keeps for its gradient
 * is -1, 0, 1 or no number, whatever its dtype: a kernel stores which, and the next makes the value of it.
 *
 * requires: what again.c left to be stored.  leaves: there a value that is made of a narrower one, which
 * again.c then keeps.
 *
 * Invariant: who reads the value gets the same number; only a zero's sign is lost. */
#include "lower/make.h"

/* Of a sign y of a: a code of one byte, and what the code c stands for. */
static const char code[] = "cast(where(isnan(a), 2, y), 'int8')",
                  value[] = "where(eq(c, 2), nan, cast(c, a.dtype))";

bool mc_has_code(const mc_node *n)
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

mc_status mc_lower_narrow(const struct make *m, int nout, mc_node **out, bool *changed)
{
    *changed = false;
    for (size_t i = 0; i < m->groups.count; i++) {
        *changed |= m->coded[m->groups.list[i]->id];
    }
    return *changed ? mc_lower_sweep(m->p->graph, nout, out, narrowed, m->coded) : MC_OK;
}
