/* pool.c: the pooling nodes: forward, gradient, and the gradients of these. pool.h has the formulas.
 *
 * Invariant: a node has its window, stride and pad as three int64 vectors with one entry for each pooled
 * axis. Its axes are listed, ascending and non-negative. It has no layout. */
#include "op/pool_node.h"

/* ---- types ---- */

mc_status mc_pool_type(struct mc_infer *q, int first, const struct mc_type *x, struct mc_pool_shape *s,
                       struct mc_type *y)
{
    TRY(mc_pool_solve(q, first, x, s));
    *y = *x;
    mc_pool_dims(s, y->dims);
    return MC_OK;
}

static mc_status pool_infer(struct mc_infer *q)
{
    struct mc_pool_shape s = { .pass = POOL_FORWARD };
    TRY(mc_pool_type(q, 1, &q->in[0], &s, &q->out[0]));
    if (s.key == POOL_KEY_BITS && q->op->nout == 1) {
        return mc_fail(MC_EARG, "pool: ties must be 'first' or 'all'");
    }
    if ((s.mode == POOL_AVERAGE_INC || s.mode == POOL_AVERAGE_EXC) && !mc_is_float(q->in[0].dtype)) {
        return mc_fail(MC_ETYPE, "%s: averages need a float dtype, not %s", q->op->name,
                       mc_dtype_name(q->in[0].dtype));
    }
    return MC_OK;
}

static mc_status max_infer(struct mc_infer *q)
{
    TRY(pool_infer(q));
    q->out[1] = q->out[0];
    q->out[1].dtype = (mc_dtype)mc_attr_int(&q->attr[POOL_MARKS]);
    return MC_OK;
}

/* Checks that the sizes agree with those of `want`, where both are known. */
mc_status mc_pool_fits(const struct mc_infer *q, const char *what, const struct mc_type *have,
                       const struct mc_type *want)
{
    bool ok = have->rank == want->rank;
    for (int i = 0; ok && i < have->rank; i++) {
        ok = have->dims[i] < 0 || want->dims[i] < 0 || have->dims[i] == want->dims[i];
    }
    if (ok) {
        return MC_OK;
    }
    struct mc_str h = { 0 }, w = { 0 };
    mc_dims_text(&h, have->rank, have->dims);
    mc_dims_text(&w, want->rank, want->dims);
    mc_status st = mc_fail(MC_ESHAPE, "%s: %s has shape %s, but the windows give %s", q->op->name, what,
                           h.s ? h.s : "", w.s ? w.s : "");
    mc_str_free(&h);
    mc_str_free(&w);
    return st;
}

static mc_status check_key(const struct mc_infer *q, const struct mc_pool_shape *s, const struct mc_type *key,
                           const struct mc_type *x, const struct mc_type *y)
{
    if (s->key == POOL_KEY_NONE || !key) {
        return s->key == POOL_KEY_NONE && !key
                   ? MC_OK
                   : mc_fail(MC_EARG, "%s: marks or x are allowed only with mode 'max'", q->op->name);
    }
    if (s->key == POOL_KEY_BITS && (key->dtype != MC_UINT8 || s->pass == POOL_GATHER)) {
        return mc_fail(MC_ETYPE, "%s: bits must be uint8", q->op->name);
    }
    if (s->key == POOL_KEY_MARKS && key->dtype != MC_UINT8 && key->dtype != MC_INT32) {
        return mc_fail(MC_ETYPE, "%s: marks must be uint8 or int32", q->op->name);
    }
    if (s->key == POOL_KEY_X && key->dtype != x->dtype) {
        return mc_fail(MC_ETYPE, "%s: x is %s, not %s", q->op->name, mc_dtype_name(key->dtype),
                       mc_dtype_name(x->dtype));
    }
    return mc_pool_key_like_y(s) ? mc_pool_fits(q, "the array of marks", key, y)
                                 : mc_pool_fits(q, "x", key, x);
}

static mc_status spread_infer(struct mc_infer *q)
{
    struct mc_pool_shape s = { .pass = POOL_SPREAD };
    struct mc_type y, *x = &q->out[0];
    if (!mc_is_float(q->in[0].dtype)) {
        return mc_fail(MC_ETYPE, "pool_spread: gradients must be floats, not %s",
                       mc_dtype_name(q->in[0].dtype));
    }
    TRY(mc_shape_wanted(q, 1, q->in[0].dtype, x));
    TRY(mc_pool_type(q, 2, x, &s, &y));
    TRY(mc_pool_fits(q, "the gradient", &q->in[0], &y));
    return check_key(q, &s, q->nin > 5 ? &q->in[5] : NULL, x, &y);
}

static mc_status gather_infer(struct mc_infer *q)
{
    struct mc_pool_shape s = { .pass = POOL_GATHER };
    TRY(mc_pool_type(q, 2, &q->in[0], &s, &q->out[0]));
    return check_key(q, &s, &q->in[1], &q->in[0], &q->out[0]);
}

static mc_node *pooled_size(mc_node *n, int first, int axis)
{
    mc_node *i = mc_size_of(n->in[0], axis);
    int slot = mc_pool_slot(n, axis);
    return slot < 0 ? i : mc_pool_size(n, first, i, slot);
}

static mc_node *pool_size(mc_node *n, int item, int axis)
{
    (void)item;
    return pooled_size(n, 1, axis);
}

static mc_node *gather_size(mc_node *n, int item, int axis)
{
    (void)item;
    return pooled_size(n, 2, axis);
}

static mc_node *spread_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_shape_entry_node(n->in[1], axis);
}

/* ---- the reference ---- */

mc_status mc_pool_shape_at(const mc_node *n, mc_array *const *in, struct mc_pool_shape *s)
{
    struct mc_type type[8];
    for (int i = 0; i < n->nin; i++) {
        type[i] = mc_type_make(in[i]->dtype, in[i]->rank, in[i]->dims);
    }
    return mc_pool_shape_of(n, type, (const mc_array *const *)in, s);
}

static mc_status node_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_pool_shape s;
    struct mc_pool_arrays a = { .dtype = out[0]->dtype };
    int role[POOL_NARRAY];
    TRY(mc_pool_shape_at(n, in, &s));
    mc_pool_roles(n, role);
    for (int r = 0; r < POOL_NARRAY; r++) {
        const mc_array *x = role[r] < 0             ? NULL
                            : role[r] < POOL_RESULT ? in[role[r]]
                                                    : out[role[r] - POOL_RESULT];
        a.at[r] = x ? x->data : NULL;
        a.strides[r] = x ? x->strides : NULL;
    }
    return mc_pool_loops(&s, &a);
}

/* ---- gradients: each pass is the transpose of another ---- */

/* The parts for another node over the same windows. */
static void same_windows(mc_node *n, int first, struct mc_pool_parts *p)
{
    memcpy(p->vector, n->in + first, sizeof p->vector);
    memcpy(p->attr, n->attr, POOL_NATTR * sizeof *p->attr);
}

/* The gradient by the key is zero: which cell is the maximum changes only at ties. (For an integer key any
 * node stands for zero.) */
static mc_node *by_key(mc_node *key, mc_node *g)
{
    return mc_is_float(key->type.dtype) ? mc_call_op(key->graph, "zeros_like", 1, &key, NULL) : g;
}

static mc_node *pool_grad(mc_node *n, int wrt, mc_node *const *g)
{
    struct mc_pool_parts p;
    mc_node *x = n->in[0];
    if (wrt != 0 || !g[0] || !mc_is_float(x->type.dtype)) {
        return wrt == 0 ? g[0] : NULL;
    }
    same_windows(n, 1, &p);
    mc_node *in[2] = { g[0], mc_shape_of(x) }, *key = NULL;
    if (mc_pool_key_of(n->attr) != POOL_KEY_NONE) {
        key = mc_pool_key_of(n->attr) == POOL_KEY_MARKS ? mc_item(n, 1) : x;
    }
    return mc_pool_node(n->graph, "pool_spread", 2, in, &p, key);
}

/* The gradient by g: GATHER is the transpose of SPREAD. */
static mc_node *spread_grad(mc_node *n, int wrt, mc_node *const *g)
{
    struct mc_pool_parts p;
    if (wrt != 0) {
        return wrt == 5 ? by_key(n->in[5], g[0]) : NULL;
    }
    same_windows(n, 2, &p);
    mc_node *in[2] = { g[0], n->nin > 5 ? n->in[5] : NULL };
    return mc_pool_node(n->graph, in[1] ? "pool_gather" : "pool", in[1] ? 2 : 1, in, &p, NULL);
}

static mc_node *gather_grad(mc_node *n, int wrt, mc_node *const *g)
{
    struct mc_pool_parts p;
    if (wrt != 0 || !mc_is_float(n->in[0]->type.dtype)) {
        return wrt == 0 ? g[0] : wrt == 1 ? by_key(n->in[1], g[0]) : NULL;
    }
    same_windows(n, 2, &p);
    mc_node *in[2] = { g[0], mc_shape_of(n->in[0]) };
    return mc_pool_node(n->graph, "pool_spread", 2, in, &p, n->in[1]);
}

/* ---- what users write ---- */

static mc_node *build_pool(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_pool_how how = mc_pool_how(attr);
    (void)g;
    return mc_pool_make(in[0], (mc_node *[]){ in[1], nin > 2 ? in[2] : NULL, nin > 3 ? in[3] : NULL }, &how);
}

static mc_node *build_grad(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_pool_how how = mc_pool_how(attr);
    (void)g;
    return mc_pool_grad_make(in[0], in[1],
                             (mc_node *[]){ in[2], nin > 3 ? in[3] : NULL, nin > 4 ? in[4] : NULL }, &how);
}

static mc_node *build_pick(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_pool_how how = mc_pool_how(attr);
    (void)g;
    return mc_pool_pick_make(in[0], in[1],
                             (mc_node *[]){ in[2], nin > 3 ? in[3] : NULL, nin > 4 ? in[4] : NULL }, &how);
}

const struct mc_op mc_ops_pool[] = {
    { .name = "pool", .flags = OP_HEAVY | OP_BLOCKS, .solvers = SOLVERS_POOL, .params = "x, ws, stride=None, pad=None, " POOL_ATTRS, .nout = 1, .shape_args = 0xe, .build = build_pool,
      .infer = pool_infer, .size = pool_size, .eval = node_eval, .grad = pool_grad,
      .example = MANUAL("x = [[[[1., 5, 2, 0], [3, 4, 1, 7], [2, 0, 6, 1], [8, 3, 2, 2]]]]; pool(x, 2, axis=[2, 3])"),
      .doc = MANUAL("each window of x reduced to one number: mode max, sum, average_inc_pad or average_exc_pad; the "
             "pooled axes are the last ones, those of axis, or the digits of layout ('c01b'); the stride is "
             "ws by default; ignore_border=False keeps incomplete windows at the border; start selects "
             "cuda-convnet's windows; of equal maxima the first receives the gradient, with ties='all' each "
             "does") },
    BUILT({ .name = "pool_grad", .params = "x, g, ws, stride=None, pad=None, " POOL_ATTRS, .nout = 1, .build = build_grad,
      .example = MANUAL("x = [[[[1., 5, 2, 0], [3, 4, 1, 7], [2, 0, 6, 1], [8, 3, 2, 2]]]]; g = [[[[1., 2], [3, 4]]]]; pool_grad(x, g, 2, axis=[2, 3])"),
      .doc = MANUAL("the gradient of pool(x, ...) with respect to x, from the gradient of its result") })
    BUILT({ .name = "pool_pick", .params = "x, v, ws, stride=None, pad=None, " POOL_ATTRS, .nout = 1, .build = build_pick,
      .example = MANUAL("x = [[[[1., 5, 2, 0], [3, 4, 1, 7], [2, 0, 6, 1], [8, 3, 2, 2]]]]; v = 10 * x; pool_pick(x, v, 2, axis=[2, 3])"),
      .doc = MANUAL("v at the maximum of each window of x: the derivative of pool(x, ...) in the direction v") })
    { .name = "pool_max", .flags = OP_HIDDEN | OP_HEAVY | OP_BLOCKS, .solvers = SOLVERS_POOL, .params = "x, ws, stride, pad, " POOL_ATTRS ", marks=uint8:dtype", .nout = 2,
      .shape_args = 0xe, .infer = max_infer, .size = pool_size, .eval = node_eval, .grad = pool_grad,
      .doc = MANUAL("pool with mode max, and the argmax mark of each window") },
    { .name = "pool_spread", .flags = OP_HIDDEN | OP_HEAVY | OP_BLOCKS, .solvers = SOLVERS_POOL, .params = "g, shape, ws, stride, pad, key=None, " POOL_ATTRS, .nout = 1,
      .shape_args = 0x1e, .infer = spread_infer, .size = spread_size, .eval = node_eval, .grad = spread_grad,
      .doc = MANUAL("g added to the cells of its windows; key: marks, or x if ties share the gradient") },
    { .name = "pool_gather", .flags = OP_HIDDEN | OP_HEAVY | OP_BLOCKS, .solvers = SOLVERS_POOL, .params = "v, key, ws, stride, pad, " POOL_ATTRS, .nout = 1, .shape_args = 0x1c,
      .infer = gather_infer, .size = gather_size, .eval = node_eval, .grad = gather_grad,
      .doc = MANUAL("v at the cells that key marks; key: marks, or x if ties add up") },
};
const int mc_nops_pool = (int)NELEM(mc_ops_pool);
