/* size.c: the sizes of a node in terms of sizes of its inputs, as the ops tell them. */
#include "op/size.h"

mc_node *mc_source_of_size(mc_node *s)
{
    while (!mc_is_error(s) && s->op->form == FORM_SIZE) {
        mc_node *of = s->in[0], *tuple = of->op == &mc_op_item ? of->in[0] : of,
                *up = mc_lifted_size(tuple, of->item, (int)mc_attr_int(&s->attr[0]));
        if (!up) {
            break;
        }
        s = up;
    }
    return s;
}

/* The size of a formula op's result is lifted through the whole expansion at once: the expansion itself might
 * be rewritten to the formula op again. */
mc_node *mc_lifted_size(mc_node *n, int item, int axis)
{
    const struct mc_type *t = &n->types[item];
    mc_node *x = NULL;
    if (t->dims[axis] >= 0) {
        return mc_node_int(n->graph, t->dims[axis]);
    }
    if (n->op->size) {
        x = n->op->size(n, item, axis);
    } else if (n->op->formula && n->op->flags & OP_EXPANDS) {
        mc_node *y = mc_formula_expand(n->graph, n->op, n->nin, n->in, n->attr);
        x = mc_source_of_size(mc_is_error(y) ? y : mc_size_of(mc_item(y, item), axis));
    }
    return x;
}
