/* gather_print.c: prints gathers, as x[:, rows, cols], and their updates. */
#include "op/index.h"

static void print_region(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx)
{
    const struct mc_attr *axes = &n->attr[0];
    int axis = 0, first = n->op->sig->ntensor;
    mc_print_indexed(out, n, arg, ctx);
    for (int i = 0; i < axes->n; i++, axis++) {
        for (; axis < axes->ints[i]; axis++) {
            mc_str_add(out, axis ? ", :" : "[:");
        }
        mc_str_add(out, axis ? ", " : "[");
        arg(out, n, first + i, ctx);
    }
    mc_str_add(out, "]");
}

static bool reads_back(const mc_node *n)
{
    bool tensors = false;
    for (int i = n->op->sig->ntensor; i < n->nin; i++) {
        tensors |= n->in[i]->type.rank > 0; /* scalars alone would be read back as a slice */
    }
    return tensors;
}

bool mc_gather_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx)
{
    if (reads_back(n)) {
        print_region(out, n, arg, ctx);
    }
    return reads_back(n);
}

bool mc_gather_update_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx)
{
    const mc_node *x = n->in[0];
    if (!reads_back(n) || mc_is_op(x, "subtensor") || mc_is_op(x, "gather")) {
        return false;
    }
    mc_update_print(out, n, arg, ctx, print_region);
    return true;
}
