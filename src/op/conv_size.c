/* conv_size.c: the sizes of a convolution's result as formulas over the sizes of its inputs, so that they
 * are known before anything is computed. The formulas are those of conv_shape.c. */
#include "op/conv_node.h"

static mc_node *number(mc_graph *g, int64_t v)
{
    return mc_node_int(g, v);
}

mc_node *mc_conv_margin(const struct mc_conv_form *f, int slot, mc_node *k)
{
    mc_graph *g = k->graph;
    int64_t d = f->dilation[slot], taps, p = f->border ? 0 : f->before[slot] + f->behind[slot];
    int count;
    if (mc_const_ints(k, &taps, 1, &count)) { /* one number */
        int64_t e = (taps - 1) * d + 1;
        p = f->border ? f->border->before(e) + f->border->behind(e) : p;
        return number(g, p - e);
    }
    mc_node *e = d == 1 ? k
                        : mc_expr(g, "(k - 1) * d + 1",
                                  (struct mc_bind[]){ { "k", k, NULL }, { "d", number(g, d), NULL } }, 2);
    return mc_expr(g,
                   f->border ? f->border->margin
                   : p       ? "p - e"
                             : "-e",
                   (struct mc_bind[]){ { "e", e, NULL }, { "p", number(g, p), NULL } }, 2);
}

/* The operand of a role; NULL: this role is the result. */
static mc_node *operand(mc_node *n, enum mc_conv_pass pass, int role)
{
    int from = mc_conv_operand[pass][role];
    return from < 0 ? NULL : n->in[from];
}

/* (i + p - e) // s + 1, or rounded up */
static mc_node *positions(const struct mc_conv_form *f, int slot, mc_node *x, mc_node *w)
{
    mc_node *k = mc_size_of(w, f->w[2 + slot]);
    struct mc_bind b[3] = { { "i", mc_size_of(x, f->x[2 + slot]), NULL },
                            { "m", mc_conv_margin(f, slot, k), NULL },
                            { "s", number(x->graph, f->stride[slot]), NULL } };
    return mc_expr(x->graph,
                   f->stride[slot] == 1 ? "i + m + 1"
                   : f->ceil            ? "1 - (-(i + m)) // s"
                                        : "(i + m) // s + 1",
                   b, 3);
}

/* o + e - p - 1, with stride 1 */
static mc_node *length(const struct mc_conv_form *f, int slot, mc_node *w, mc_node *y)
{
    mc_node *k = mc_size_of(w, f->w[2 + slot]);
    struct mc_bind b[2] = { { "o", mc_size_of(y, f->y[2 + slot]), NULL },
                            { "m", mc_conv_margin(f, slot, k), NULL } };
    return mc_expr(w->graph, "o - m - 1", b, 2);
}

/* (i + p - o) // d + 1, or (o - i) // d + 1 where the border is full, with stride 1 */
static mc_node *taps(const struct mc_conv_form *f, int slot, mc_node *x, mc_node *y)
{
    bool full = f->border && f->border->before(2) > 0;
    struct mc_bind b[4] = { { "i", mc_size_of(x, f->x[2 + slot]), NULL },
                            { "o", mc_size_of(y, f->y[2 + slot]), NULL },
                            { "p", number(x->graph, f->border ? 0 : f->before[slot] + f->behind[slot]),
                              NULL },
                            { "d", number(x->graph, f->dilation[slot]), NULL } };
    return mc_expr(x->graph, full ? "(o - i) // d + 1" : "(i + p - o) // d + 1", b, 4);
}

/* ---- each role's sizes by meaning, in the order of struct mc_conv_strides ---- */

static mc_node *size_of_y(const struct mc_conv_form *f, int means, mc_node *x, mc_node *w)
{
    return means == 0   ? mc_size_of(x, f->x[0])
           : means == 1 ? mc_size_of(w, f->w[0])
                        : positions(f, means - 2, x, w);
}

static mc_node *size_of_x(const struct mc_conv_form *f, int means, mc_node *w, mc_node *y)
{
    if (means != 1) {
        return means == 0 ? mc_size_of(y, f->y[0]) : length(f, means - 2, w, y);
    }
    mc_node *in[2] = { mc_size_of(w, f->w[1]), number(w->graph, f->groups) };
    return f->groups == 1 ? in[0] : mc_call_op(w->graph, "mul", 2, in, NULL);
}

static mc_node *size_of_w(const struct mc_conv_form *f, int means, mc_node *x, mc_node *y)
{
    if (means != 1) {
        return means == 0   ? mc_size_of(y, f->y[1])
               : means >= 5 ? mc_size_of(y, f->y[means - 3])
                            : taps(f, means - 2, x, y);
    }
    mc_node *in[2] = { mc_size_of(x, f->x[1]), number(x->graph, f->groups) };
    return f->groups == 1 ? in[0] : mc_call_op(x->graph, "int_div", 2, in, NULL);
}

/* The size along an axis that the input `shape` gives; NULL: none, or none that has a formula. */
static mc_node *asked(mc_node *n, const struct mc_conv_form *f, int role, int axis, int slot)
{
    mc_node *shape = n->in[2];
    int64_t count = shape->type.rank ? shape->type.dims[0] : 1;
    if (count == mc_conv_rank(f, role)) {
        return mc_shape_entry_node(shape, axis);
    }
    return slot >= 0 ? mc_shape_entry_node(shape, slot - (3 - f->nd)) : NULL;
}

mc_node *mc_conv_size(mc_node *n, int item, int axis)
{
    struct mc_conv_form f;
    (void)item;
    mc_conv_form_of(n, &f);
    mc_node *x = operand(n, f.pass, CONV_X), *w = operand(n, f.pass, CONV_W), *y = operand(n, f.pass, CONV_Y);
    int role = !x ? CONV_X : !w ? CONV_W : CONV_Y, means = 0;
    while (mc_conv_axes(&f, role)[means] != axis) {
        means++;
    }
    int slot = means >= 2 && means < 5 ? means - 2 : -1;
    mc_node *said = n->nin > 2 ? asked(n, &f, role, axis, slot) : NULL;
    if (said || (slot >= 0 && n->nin > 2)) {
        return said; /* the given size does not follow from the operands */
    }
    return role == CONV_Y   ? size_of_y(&f, means, x, w)
           : role == CONV_X ? size_of_x(&f, means, w, y)
                            : size_of_w(&f, means, x, y);
}

/* Does this spatial size of the result follow from the operands? */
static bool follows(const struct mc_conv_form *f, int role, int slot)
{
    return f->stride[slot] == 1 && (role == CONV_X || !f->border || f->border->determines);
}

mc_node *mc_conv_full_shape(const struct mc_op *op, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *shape = in[2], *size[MC_MAX_RANK], *of[3] = { NULL };
    mc_graph *g = shape->graph;
    const enum mc_conv_pass pass = (enum mc_conv_pass)mc_conv_pass_of(op);
    const int role = pass == CONV_INPUTS ? CONV_X : CONV_W;
    const int64_t count = shape->type.rank ? shape->type.dims[0] : 1;
    struct mc_conv_form f;
    bool any = false;
    if (mc_conv_form_read(pass, in[pass == CONV_INPUTS]->type.rank - 2, attr, &f) < 0 ||
        (count != f.nd && count != mc_conv_rank(&f, role))) {
        mc_clear_error();
        return shape; /* invalid; infer reports it */
    }
    for (int r = 0; r < 3; r++) {
        of[r] = mc_conv_operand[pass][r] < 0 ? NULL : in[(int)mc_conv_operand[pass][r]];
        if (of[r] && of[r]->type.rank != mc_conv_rank(&f, r)) {
            return shape;
        }
    }
    for (int i = 0; i < (int)count; i++) {
        int64_t v = 0;
        int n, means = count == f.nd ? 2 + 3 - f.nd + i : 0;
        size[i] = mc_shape_entry_node(shape, i);
        if (size[i] && !(mc_const_ints(size[i], &v, 1, &n) && v == -1)) {
            continue;
        }
        if (!size[i]) {
            size[i] = shape->type.rank ? mc_pick(shape, 0, number(g, i)) : shape;
            continue;
        }
        while (count != f.nd && mc_conv_axes(&f, role)[means] != i) {
            means++;
        }
        if (means >= 2 && means < 5 && !follows(&f, role, means - 2)) {
            return mc_node_fail(
                g, MC_ESHAPE,
                "%s: size %d of the shape is -1 and does not follow from the other sizes; give it", op->name,
                i);
        }
        size[i] = role == CONV_X ? size_of_x(&f, means, of[CONV_W], of[CONV_Y])
                                 : size_of_w(&f, means, of[CONV_X], of[CONV_Y]);
        any = true;
    }
    return any ? mc_shape_stack(g, (int)count, size) : shape;
}
