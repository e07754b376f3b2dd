/* narrow.c: values of few kinds, kept between kernels in a byte.  The sign that a relu keeps for its gradient
 * is -1, 0, 1 or no number, whatever its dtype: a kernel stores which, and the next makes the value of it.
 *
 * requires: what again.c left to be stored.  leaves: there a value that is made of a narrower one, which
 * again.c then keeps.
 *
 * Invariant: who reads the value gets the same number; only a zero's sign is lost. */
#include "lower/make.h"

static const struct narrow { const char *op, *code, *value; } table[] = {
    /*         a code of one byte                            what it stands for; a has the dtype */
    { "sgn", "cast(where(isnan(a), 2, sgn(a)), 'int8')", "where(eq(c, 2), nan, cast(c, a.dtype))" },
};

static const struct narrow *row_of(const mc_node *n)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (mc_is_op(n, table[i].op) && mc_is_float(n->type.dtype)) {
            return &table[i];
        }
    }
    return NULL;
}

bool mc_has_code(const mc_node *n)
{
    return row_of(n) != NULL;
}

static mc_node *narrowed(mc_node *n, mc_node **in, const void *coded)
{
    mc_node *y = mc_apply(n->graph, n->op, n->nin, in, n->attr);
    if (!((const unsigned char *)coded)[n->id] || mc_is_error(y)) {
        return y;
    }
    const struct narrow *row = row_of(n);
    mc_node *c = mc_expr(n->graph, row->code, (struct mc_bind[]){ { "a", in[0], NULL } }, 1);
    return mc_is_error(c) ? c
                          : mc_expr(n->graph, row->value,
                                    (struct mc_bind[]){ { "a", in[0], NULL }, { "c", c, NULL } }, 2);
}

mc_status mc_lower_narrow(const struct make *m, int nout, mc_node **out, bool *changed)
{
    *changed = false;
    for (size_t i = 0; i < m->groups.count; i++) {
        *changed |= m->coded[m->groups.list[i]->id];
    }
    return *changed ? mc_lower_sweep(m->p->graph, nout, out, narrowed, m->coded) : MC_OK;
}
