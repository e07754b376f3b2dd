/* effect.c: ops whose result is their input, and that have an effect on the gradient or outside of the
 * graph.
 *
 * Invariant: ops that only affect gradients are views, and lowering removes them. Ops with effects outside
 * are impure and run as often as they were written. */
#include "op/op.h"

static mc_status same_infer(struct mc_infer *q)
{
    q->out[0] = q->in[0];
    return MC_OK;
}

static mc_node *same_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_size_of(n->in[0], axis);
}

static mc_status same_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)n;
    return mc_array_assign(out[0], in[0]);
}

/* ---- effects on the gradient ---- */

static mc_node *grad_clip_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    if (!g[0] || !mc_is_float(g[0]->type.dtype)) {
        return g[0];
    }
    mc_node *in[3] = { g[0], mc_node_like(g[0], n->attr[0].real), mc_node_like(g[0], n->attr[1].real) };
    return mc_call_op(n->graph, "clip", 3, in, NULL);
}

static mc_node *grad_scale_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    if (!g[0] || !mc_is_float(g[0]->type.dtype)) {
        return g[0];
    }
    mc_node *in[2] = { g[0], mc_node_like(g[0], n->attr[0].real) };
    return mc_call_op(n->graph, "mul", 2, in, NULL);
}

static mc_node *first_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)n;
    return wrt == 0 ? g[0] : NULL;
}

/* The gradient of x, checked. */
static mc_node *grad_assert_grad(mc_node *n, int wrt, mc_node *const *g)
{
    mc_node *y = wrt == 0 ? g[0] : NULL;
    for (int i = 1; y && i < n->nin; i++) {
        y = mc_hold(y, n->in[i], n->attr[0].text);
    }
    return y;
}

/* ---- effects outside of the graph ---- */

static bool is_true(const mc_array *a)
{
    struct mc_walk w;
    bool all = true;
    if (mc_walk_begin(&w, a->rank, a->dims, 0, 1, (char *[]){ a->data }, (const int64_t *[]){ a->strides })) {
        do {
            bool one;
            mc_convert(MC_BOOL, &one, 0, a->dtype, w.p[0], 0, 1);
            all &= one;
        } while (mc_walk_next(&w));
    }
    return all;
}

static mc_status assert_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    for (int i = 1; i < n->nin; i++) {
        if (!is_true(in[i])) {
            const char *msg = n->attr[0].text;
            return msg ? mc_fail(MC_ECHECK, "assert_: %s", msg)
                       : mc_fail(MC_ECHECK, "assert_: condition %d does not hold", i);
        }
    }
    return same_eval(n, in, out);
}

/* Printed as one string, so that output of other threads does not mix with it. */
static mc_status print_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_str line = { 0 };
    char *value = mc_array_text(in[0]);
    if (n->attr[0].text) {
        mc_str_addf(&line, "%s ", n->attr[0].text);
    }
    mc_str_addf(&line, "%s\n", value ? value : "");
    mc_status s = !value || line.bad ? MC_EMEMORY : same_eval(n, in, out);
    if (s == MC_OK) {
        mc_say(line.s);
    }
    mc_text_free(value);
    mc_str_free(&line);
    return s;
}

/* ---- checks of sizes ---- */

mc_node *mc_hold(mc_node *x, mc_node *condition, const char *says)
{
    if (mc_is_error(x) || mc_is_error(condition)) {
        return mc_is_error(x) ? x : condition;
    }
    size_t count = 0;
    mc_array *value = NULL;
    mc_node **list = mc_graph_reach(1, &condition, &count);
    bool known = list != NULL;
    for (size_t i = 0; known && i < count; i++) {
        known = !(list[i]->op->flags & OP_LEAF) || mc_is_const(list[i]);
    }
    mc_free(list);
    if (!known) {
        struct mc_attr msg = { .kind = ATTR_TEXT, .text = says };
        return list ? mc_apply(x->graph, mc_op_named(x->graph, "assert_"), 2, (mc_node *[]){ x, condition },
                               &msg)
                    : mc_node_fail(x->graph, MC_EMEMORY, "%s", mc_last_error());
    }
    if (mc_eval(0, NULL, NULL, 1, &condition, &value) < 0) {
        return mc_node_fail(x->graph, mc_last_status(), "%s", mc_last_error());
    }
    bool holds = is_true(value);
    mc_array_unref(&value);
    return holds ? x : mc_node_fail(x->graph, MC_ESHAPE, "%s", says);
}

/* y with nodes replaced; the pairs of what is replaced and by what follow it. */
static mc_node *build_clone(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *from[MC_MAX_RANK], *to[MC_MAX_RANK], *y = in[0];
    const int n = (nin - 1) / 2;
    (void)attr;
    if (nin % 2 == 0 || n > MC_MAX_RANK) {
        return mc_node_fail(g, MC_EARG, "clone: up to %d pairs of what is replaced and by what follow y",
                            MC_MAX_RANK);
    }
    for (int i = 0; i < n; i++) {
        from[i] = in[1 + 2 * i];
        to[i] = in[2 + 2 * i];
    }
    return mc_replace(n, from, to, 1, &y) < 0 ? mc_node_fail(g, mc_last_status(), "%s", mc_last_error()) : y;
}

#define PASSES .nout = 1, .infer = same_infer, .size = same_size
const struct mc_op mc_ops_effect[] = {
    { .name = "consider_constant", .form = FORM_FORWARD, .params = "x", .flags = OP_VIEW, PASSES, .eval = same_eval, .disconnected = 1,
      .doc = MANUAL("x, treated as a constant by gradients") },
    { .name = "undefined_grad", .form = FORM_FORWARD, .params = "x", .flags = OP_VIEW, PASSES, .eval = same_eval, .dx = { "!" },
      .doc = MANUAL("x; asking for its gradient is an error") },
    { .name = "grad_clip", .form = FORM_FORWARD, .params = "x, lo:real, hi:real", .flags = OP_VIEW, PASSES, .eval = same_eval,
      .grad = grad_clip_grad,
      .doc = MANUAL("x, whose gradient is limited to the range from lo to hi") },
    { .name = "grad_scale", .form = FORM_FORWARD, .params = "x, by:real", .flags = OP_VIEW, PASSES, .eval = same_eval,
      .grad = grad_scale_grad,
      .doc = MANUAL("x, whose gradient is multiplied by a number") },
    { .name = "grad_assert", .form = FORM_FORWARD, .params = "x, *conditions, msg=None:text", .flags = OP_VIEW | OP_HIDDEN, PASSES,
      .eval = same_eval, .grad = grad_assert_grad,
      .doc = MANUAL("x; asking for its gradient is an error unless the conditions hold") },
    { .name = "assert_", .params = "x, *conditions, msg=None:text", .flags = OP_IMPURE, PASSES,
      .eval = assert_eval, .grad = first_grad,
      .doc = MANUAL("x; an error at run time if a condition has a zero element") },
    { .name = "print_", .params = "x, message=None:text", .flags = OP_IMPURE, PASSES, .eval = print_eval,
      .grad = first_grad,
      .doc = MANUAL("x; prints a message and x each time it is computed") },
    BUILT({ .name = "clone", .params = "y, *pairs", .nout = 1, .build = build_clone, .example = MANUAL("x = [1., 2]; z = [5., 6]; clone(x * 3 + 1, x, z)"),
      .doc = MANUAL("y computed with other values: of each pair after it the first is replaced by the second wherever y depends on it") })
};
const int mc_nops_effect = (int)NELEM(mc_ops_effect);
