/* join.c: tensors side by side, and taken apart again.
 *
 * Invariant: a join or stack node has operands of its own dtype and a non-negative axis. */
#include "op/op.h"

/* ---- join(*xs, axis) ---- */

static mc_status join_infer(struct mc_infer *q)
{
    int axis;
    struct mc_type *y = &q->out[0];
    if (q->nin == 0 || q->in[0].rank == 0) {
        return q->nin ? mc_fail(MC_ESHAPE, "join: numbers have no axis to join; stack them")
                      : mc_fail(MC_EARG, "join: there is nothing to join");
    }
    *y = q->in[0];
    TRY(mc_axis_check("join", mc_attr_int(&q->attr[0]), y->rank, &axis));
    for (int i = 1; i < q->nin; i++) {
        const struct mc_type *x = &q->in[i];
        if (x->rank != y->rank) {
            return mc_fail(MC_ESHAPE, "join: argument %d has rank %d, argument 1 has rank %d", i + 1, x->rank, y->rank);
        }
        for (int k = 0; k < y->rank; k++) {
            int64_t *have = &y->dims[k], d = x->dims[k];
            if (k == axis) {
                if (*have < 0 || d < 0) {
                    *have = -1;
                } else if (!mc_add_i64(*have, d, have)) {
                    return mc_fail(MC_ESHAPE, "join: the sizes overflow");
                }
            } else if (*have >= 0 && d >= 0 && *have != d) {
                return mc_fail(MC_ESHAPE, "join: sizes %lld and %lld differ on axis %d (argument %d)", (long long)*have,
                               (long long)d, k, i + 1);
            } else {
                *have = MC_MAX(*have, d);
            }
        }
    }
    return MC_OK;
}

static mc_node *add(mc_node *a, mc_node *b)
{
    int64_t x, y, z;
    int n;
    if (mc_is_error(a) || mc_is_error(b)) {
        return mc_is_error(a) ? a : b;
    }
    bool ka = mc_const_ints(a, &x, 1, &n), kb = mc_const_ints(b, &y, 1, &n);
    if (ka && kb && mc_add_i64(x, y, &z)) {
        return mc_node_int(a->graph, z);
    }
    return ka && x == 0 ? b : kb && y == 0 ? a : mc_call_op(a->graph, "add", 2, (mc_node *[]){ a, b }, NULL);
}

/* Where operand `upto` begins along the axis. */
static mc_node *offset(mc_node *n, int upto, int axis)
{
    mc_node *at = mc_node_int(n->graph, 0);
    for (int i = 0; i < upto; i++) {
        at = add(at, mc_size_of(n->in[i], axis));
    }
    return at;
}

static mc_node *join_size(mc_node *n, int item, int axis)
{
    (void)item;
    return axis == mc_attr_int(&n->attr[0]) ? offset(n, n->nin, axis) : mc_size_of(n->in[0], axis);
}

static mc_status join_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    int axis;
    int64_t at = 0;
    mc_status s = mc_axis_check("join", mc_attr_int(&n->attr[0]), out[0]->rank, &axis);
    for (int i = 0; i < n->nin && s == MC_OK; i++) {
        mc_array *part = mc_array_slice(out[0], axis, at, in[i]->dims[axis], 1);
        s = part ? mc_array_assign(part, in[i]) : mc_last_status();
        mc_array_unref(&part);
        at += in[i]->dims[axis];
    }
    return s;
}

static mc_node *join_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (!g[0]) {
        return NULL;
    }
    int axis = (int)mc_attr_int(&n->attr[0]);
    mc_node *from = offset(n, wrt, axis);
    return mc_part(g[0], axis, from, add(from, mc_size_of(n->in[wrt], axis)));
}

/* All operands in the dtype in which they meet. */
static bool meet(mc_graph *g, int nin, mc_node *const *in, mc_node **out)
{
    mc_dtype d = mc_meet(nin, in, 0);
    bool ok = true;
    for (int i = 0; i < nin; i++) {
        out[i] = mc_cast_to(in[i], d);
        if (out[i]->weak) {
            out[i] = mc_node_const(g, mc_array_ref(out[i]->value), false);
        }
        ok &= !mc_is_error(out[i]);
    }
    return ok;
}

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

static mc_node *join_along(mc_graph *g, int nin, mc_node *const *in, int64_t where)
{
    int axis;
    if (nin == 0 || in[0]->type.rank == 0) {
        return mc_node_fail(g, MC_ESHAPE, nin ? "join: numbers have no axis to join; stack them" : "join: there is nothing to join");
    }
    if (mc_axis_check("join", where, in[0]->type.rank, &axis) < 0) {
        return failed(g);
    }
    mc_node **part = mc_arena_alloc(&g->arena, (size_t)nin * sizeof *part);
    if (!part || !meet(g, nin, in, part)) {
        return part ? g->error : failed(g);
    }
    int64_t k = axis;
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &k };
    return nin == 1 ? part[0] : mc_node_make(g, mc_op_find("join"), nin, part, &a);
}

static mc_node *build_join(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    return join_along(g, nin, in, mc_attr_int(&attr[0]));
}

static mc_node *build_vertical(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)attr;
    return join_along(g, nin, in, 0);
}

static mc_node *build_horizontal(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)attr;
    return join_along(g, nin, in, nin && in[0]->type.rank > 1 ? 1 : 0);
}

/* ---- stack(*xs, axis): a node for numbers only; it is what shape vectors are made of ---- */

static mc_status stack_infer(struct mc_infer *q)
{
    int64_t n = q->nin;
    for (int i = 0; i < q->nin; i++) {
        if (q->in[i].rank != 0) {
            return mc_fail(MC_ESHAPE, "stack: argument %d has rank %d, not 0", i + 1, q->in[i].rank);
        }
    }
    q->out[0] = mc_type_make(q->nin ? q->in[0].dtype : MC_INT64, 1, &n);
    return MC_OK;
}

static mc_status stack_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    int64_t size = mc_dtypes[out[0]->dtype].size;
    for (int i = 0; i < n->nin; i++) {
        mc_convert(out[0]->dtype, out[0]->data + i * size, size, in[i]->dtype, in[i]->data, 0, 1);
    }
    return MC_OK;
}

static mc_node *stack_grad(mc_node *n, int wrt, mc_node *const *g)
{
    return g[0] ? mc_pick(g[0], 0, mc_node_int(n->graph, wrt)) : NULL;
}

/* A stack of known numbers is a known vector: shapes of constants stay constants. */
static mc_node *fold_stack(mc_graph *g, int nin, mc_node *const *part)
{
    mc_dtype d = nin ? part[0]->type.dtype : MC_INT64;
    mc_array *v = mc_array_empty(d, 1, (int64_t[]){ nin });
    for (int i = 0; v && i < nin; i++) {
        memcpy(v->data + (size_t)i * mc_dtypes[d].size, part[i]->value->data, mc_dtypes[d].size);
    }
    return mc_node_const(g, v, false);
}

static mc_node *build_stack(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int axis = 0, rank = nin ? in[0]->type.rank : 0;
    bool known = true;
    if (mc_axis_check("stack", mc_attr_int(&attr[0]), rank + 1, &axis) < 0) {
        return failed(g);
    }
    mc_node **part = mc_arena_alloc(&g->arena, (size_t)(nin + 1) * sizeof *part);
    if (!part || (nin && !meet(g, nin, in, part))) {
        return part ? g->error : failed(g);
    }
    for (int i = 0; i < nin; i++) {
        if (in[i]->type.rank != rank) {
            return mc_node_fail(g, MC_ESHAPE, "stack: argument %d has rank %d, argument 1 has rank %d", i + 1, in[i]->type.rank, rank);
        }
        known &= mc_is_const(part[i]);
        part[i] = rank ? mc_call_op(g, "expand_dims", 1, &part[i], "axis=%d", axis) : part[i];
    }
    if (rank) {
        return join_along(g, nin, part, axis);
    }
    int64_t zero = 0;
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &zero };
    return known ? fold_stack(g, nin, part) : mc_node_make(g, mc_op_find("stack"), nin, part, &a);
}

const struct mc_op mc_ops_join[] = {
    { .name = "join", .params = "*xs, axis=0:int", .nout = 1, .infer = join_infer, .size = join_size, .eval = join_eval,
      .grad = join_grad, .build = build_join, .doc = "tensors one behind the other along an axis" },
    { .name = "stack", .params = "*xs, axis=0:int", .nout = 1, .infer = stack_infer, .eval = stack_eval, .grad = stack_grad,
      .build = build_stack, .doc = "tensors of one shape along a new axis" },
    { .name = "concatenate", .params = "*xs, axis=0:int", .nout = 1, .build = build_join, .doc = "join by its other name" },
    { .name = "vertical_stack", .params = "*xs", .nout = 1, .build = build_vertical, .doc = "matrices one below the other" },
    { .name = "horizontal_stack", .params = "*xs", .nout = 1, .build = build_horizontal, .doc = "matrices side by side" },
};
const int mc_nops_join = (int)NELEM(mc_ops_join);
