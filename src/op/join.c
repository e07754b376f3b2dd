/* join.c: concatenates tensors and splits them.
 *
 * Invariant: the operands of a join or stack node have its dtype, and its axis is non-negative. */
#include "op/op.h"

/* ---- join(*xs, axis) ---- */

static mc_status join_infer(struct mc_infer *q)
{
    int axis;
    struct mc_type *y = &q->out[0];
    if (q->nin == 0 || q->in[0].rank == 0) {
        return q->nin ? mc_fail(MC_ESHAPE, "join: scalars have no axis to join along; use stack")
                      : mc_fail(MC_EARG, "join: no tensors are given");
    }
    *y = q->in[0];
    TRY(mc_axis_check("join", mc_attr_int(&q->attr[0]), y->rank, &axis));
    for (int i = 1; i < q->nin; i++) {
        const struct mc_type *x = &q->in[i];
        if (x->rank != y->rank) {
            return mc_fail(MC_ESHAPE, "join: argument %d has rank %d, argument 1 has rank %d", i + 1, x->rank,
                           y->rank);
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
                return mc_fail(MC_ESHAPE, "join: sizes %lld and %lld differ on axis %d (argument %d)",
                               (long long)*have, (long long)d, k, i + 1);
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

/* The offset of operand `upto` along the axis. */
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

/* Casts all operands to their common dtype. */
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
        return mc_node_fail(g, MC_ESHAPE,
                            nin ? "join: scalars have no axis to join along; use stack"
                                : "join: no tensors are given");
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
    return nin == 1 ? part[0] : mc_node_make(g, mc_op_named(g, "join"), nin, part, &a);
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

/* ---- stack(*xs, axis): a node only for scalars, of which shape vectors are made ---- */

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

/* A stack of constants is a constant vector, so shapes made of constants stay constant. */
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
            return mc_node_fail(g, MC_ESHAPE, "stack: argument %d has rank %d, argument 1 has rank %d", i + 1,
                                in[i]->type.rank, rank);
        }
        known &= mc_is_const(part[i]);
        part[i] = rank ? mc_call_op(g, "expand_dims", 1, &part[i], "axis=%d", axis) : part[i];
    }
    if (rank) {
        return join_along(g, nin, part, axis);
    }
    int64_t zero = 0;
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &zero };
    return known ? fold_stack(g, nin, part) : mc_node_make(g, mc_op_named(g, "stack"), nin, part, &a);
}

/* ---- split(x, sizes, axis): a tuple of parts of x ---- */

/* x with a promise that its size along the axis is the sum of the parts; otherwise a missing part would
 * not be noticed. */
static mc_node *promise(mc_node *x, int axis, int64_t total)
{
    int64_t sizes[MC_MAX_RANK];
    if (x->type.dims[axis] == total) {
        return x;
    }
    for (int i = 0; i < x->type.rank; i++) {
        sizes[i] = i == axis ? total : -1;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank, .ints = sizes };
    return mc_apply(x->graph, mc_op_named(x->graph, "specify_shape"), 1, &x, &a);
}

static mc_node *build_split(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_node *part[16];
    const struct mc_attr *sizes = &attr[0];
    int axis;
    int64_t at = 0, total = 0;
    if (mc_axis_check("split", mc_attr_int(&attr[1]), in[0]->type.rank, &axis) < 0) {
        return failed(g);
    }
    if (sizes->n < 1 || sizes->n > (int)NELEM(part)) {
        return mc_node_fail(g, MC_EARG, "split: expected 1 to %d parts, got %d", (int)NELEM(part), sizes->n);
    }
    for (int i = 0; i < sizes->n; i++) {
        if (sizes->ints[i] < 0 || !mc_add_i64(total, sizes->ints[i], &total)) {
            return mc_node_fail(g, MC_ESHAPE, "split: %lld is not a valid size", (long long)sizes->ints[i]);
        }
    }
    int64_t have = in[0]->type.dims[axis];
    if (have >= 0 && have != total) {
        return mc_node_fail(g, MC_ESHAPE, "split: the sizes add up to %lld, but axis %d has size %lld",
                            (long long)total, axis, (long long)have);
    }
    mc_node *x = promise(in[0], axis, total);
    for (int i = 0; i < sizes->n; at += sizes->ints[i++]) {
        part[i] = mc_part(x, axis, mc_node_int(g, at), mc_node_int(g, at + sizes->ints[i]));
    }
    return sizes->n == 1 ? part[0] : mc_node_make(g, &mc_op_tuple, sizes->n, part, NULL);
}

/* ---- roll, tile, repeat ---- */

/* x flattened if no axis is given. */
static mc_node *axis_or_flat(mc_graph *g, const char *op, mc_node *x, const struct mc_attr *attr, int *axis)
{
    *axis = 0;
    if (attr->none) {
        return mc_call_op(g, "ravel", 1, &x, NULL);
    }
    return mc_axis_check(op, mc_attr_int(attr), x->type.rank, axis) < 0 ? failed(g) : x;
}

static bool whole_number(const mc_node *n)
{
    return n->type.rank == 0 && mc_is_int(n->type.dtype);
}

/* Moves the last `shift` elements to the front. */
static mc_node *build_roll(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    int axis, n;
    int64_t shift;
    mc_node *x = axis_or_flat(g, "roll", in[0], &attr[0], &axis);
    if (mc_is_error(x)) {
        return x;
    }
    if (!whole_number(in[1])) {
        return mc_node_fail(g, MC_ETYPE, "roll: the shift must be an integer scalar");
    }
    struct mc_bind b[2] = { { "s", mc_cast_to(in[1], MC_INT64), NULL }, { "n", mc_size_of(x, axis), NULL } };
    int64_t size = x->type.dims[axis];
    mc_node *front_size; /* size of the part of x at its front that moves to the end */
    if (size >= 0 && mc_const_ints(b[0].node, &shift, 1, &n)) {
        front_size = mc_node_int(g, size ? (size - shift % size) % size : 0);
    } else {
        front_size = mc_expr(g, "(-s) % n", b, 2);
    }
    mc_node *part[2] = { mc_part(x, axis, front_size, NULL), mc_part(x, axis, NULL, front_size) };
    mc_node *y = join_along(g, 2, part, axis);
    mc_node *back[2] = { y, attr[0].none && !mc_is_error(y) ? mc_shape_of(in[0]) : NULL };
    return back[1] ? mc_call_op(g, "reshape", 2, back, "ndim=%d", in[0]->type.rank) : y;
}

/* Repeats each element (inner) or the whole axis n times: adds a new axis of size n after or before it and
 * merges both. */
static mc_node *repeat_axis(mc_node *x, int axis, mc_node *n, bool inner)
{
    mc_graph *g = x->graph;
    mc_node *size[MC_MAX_RANK + 1], *in[2];
    int rank = x->type.rank;
    if (rank == MC_MAX_RANK) {
        return mc_node_fail(g, MC_ESHAPE, "repeat: the tensor must have fewer than %d axes", MC_MAX_RANK);
    }
    for (int i = 0; i <= rank; i++) {
        size[i] = i == axis + inner ? n : mc_size_of(x, i - (i > axis + inner));
    }
    in[0] = mc_call_op(g, "expand_dims", 1, &x, "axis=%d", axis + inner);
    in[1] = mc_call_op(g, "stack", rank + 1, size, NULL);
    in[0] = mc_call_op(g, "alloc", 2, in, NULL);
    int64_t count, have;
    int k;
    mc_node *pair[2] = { mc_size_of(x, axis), n };
    bool known = mc_const_ints(n, &count, 1, &k) && x->type.dims[axis] >= 0 &&
                 mc_mul_i64(count, x->type.dims[axis], &have);
    for (int i = 0; i < rank; i++) {
        size[i] = i != axis ? mc_size_of(x, i)
                  : known   ? mc_node_int(g, have)
                            : mc_call_op(g, "mul", 2, pair, NULL);
    }
    in[1] = mc_call_op(g, "stack", rank, size, NULL);
    return mc_call_op(g, "reshape", 2, in, "ndim=%d", rank);
}

static mc_node *build_repeat(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    int axis, n;
    int64_t count = 1;
    mc_node *x = axis_or_flat(g, "repeat", in[0], &attr[0], &axis);
    if (mc_is_error(x)) {
        return x;
    }
    if (in[1]->type.rank == 1 &&
        mc_is_int(in[1]->type.dtype)) { /* a count for each element: its position so often */
        struct mc_bind b[2] = { { "n", mc_cast_to(in[1], MC_INT64), NULL },
                                { "size", mc_size_of(x, axis), NULL } };
        mc_node *at = mc_expr(g,
                              "c = cumsum(n); searchsorted(c, arange(max(concatenate([[0], c]))), "
                              "side='right') + 0 * agreed_size(size(n, 0), size, op='repeat')",
                              b, 2);
        return mc_is_error(at) ? at : mc_call_op(g, "take", 2, (mc_node *[]){ x, at }, "axis=%d", axis);
    }
    if (!whole_number(in[1]) || (mc_const_ints(in[1], &count, 1, &n) && count < 0)) {
        return mc_node_fail(g, MC_ETYPE,
                            "repeat: the counts must be nonnegative integers, a scalar or a vector");
    }
    return repeat_axis(x, axis, mc_cast_to(in[1], MC_INT64), true);
}

static mc_node *build_tile(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_node *x = in[0];
    int more = attr[0].n - x->type.rank;
    if (more > 0) {
        x = mc_call_op(g, "shape_padleft", 1, &x, "n=%d", more);
    }
    for (int i = 0; i < attr[0].n && !mc_is_error(x); i++) {
        int64_t n = attr[0].ints[i];
        if (n < 0) {
            return mc_node_fail(g, MC_ESHAPE, "tile: the number of repeats, %lld, is negative", (long long)n);
        }
        x = n == 1 ? x : repeat_axis(x, x->type.rank - attr[0].n + i, mc_node_int(g, n), false);
    }
    return x;
}

const struct mc_op mc_ops_join[] = {
    { .name = "join", .form = FORM_JOIN, .params = "*xs, axis=0:int", .nout = 1, .infer = join_infer, .size = join_size,
      .eval = join_eval, .grad = join_grad, .build = build_join, .doc = MANUAL("tensors joined along an axis") },
    { .name = "stack", .form = FORM_STACK, .params = "*xs, axis=0:int", .nout = 1, .infer = stack_infer, .eval = stack_eval,
      .grad = stack_grad, .build = build_stack, .doc = MANUAL("tensors of the same shape joined along a new axis") },
    BUILT({ .name = "concatenate", .params = "*xs, axis=0:int", .nout = 1, .build = build_join,
      .doc = MANUAL("tensors joined along an axis; the same as join") })
    BUILT({ .name = "vertical_stack", .params = "*xs", .nout = 1, .build = build_vertical,
      .doc = MANUAL("matrices joined along axis 0") })
    BUILT({ .name = "horizontal_stack", .params = "*xs", .nout = 1, .build = build_horizontal,
      .doc = MANUAL("matrices joined along axis 1") })
    BUILT({ .name = "split", .params = "x, sizes:ints, axis=0:int", .nout = 1, .build = build_split,
      .example = MANUAL("split(x, [1, 2], axis=1)"),
      .doc = MANUAL("x split along an axis into parts of these sizes") })
    BUILT({ .name = "roll", .params = "x, shift, axis=None:int", .nout = 1, .build = build_roll,
      .example = MANUAL("roll(x, 1, axis=1)"),
      .doc = MANUAL("x rotated by shift along an axis: the last shift elements move to the front; without an axis, x is rotated as if it were flat") })
    BUILT({ .name = "tile", .params = "x, reps:ints", .nout = 1, .build = build_tile,
      .doc = MANUAL("x repeated reps[i] times along each axis i") })
    BUILT({ .name = "repeat", .params = "x, n, axis=None:int", .nout = 1, .build = build_repeat,
      .doc = MANUAL("each element of x repeated n times along an axis; without an axis, x is flattened first") })
};
const int mc_nops_join = (int)NELEM(mc_ops_join);
