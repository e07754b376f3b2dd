/* shape.c: casts, and ops that change the shape of a tensor or give its sizes. */
#include "op/op.h"

/* ---- cast ---- */

static mc_status cast_infer(struct mc_infer *q)
{
    q->out[0] = q->in[0];
    q->out[0].dtype = (mc_dtype)mc_attr_int(&q->attr[0]);
    return MC_OK;
}

mc_node *mc_same_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_size_of(n->in[0], axis);
}

static mc_status copy_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)n;
    return mc_array_assign(out[0], in[0]);
}

static mc_node *cast_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    mc_dtype from = n->in[0]->type.dtype; /* an integer is connected, but its gradient is zero */
    return !mc_is_float(n->type.dtype) || !g[0] ? NULL : mc_is_float(from) ? mc_cast_to(g[0], from) : g[0];
}

/* A node that has the dtype already is returned; a literal becomes a constant of the dtype. */
static mc_node *build_cast(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_dtype d = (mc_dtype)mc_attr_int(&attr[0]);
    return in[0]->weak && in[0]->type.dtype == d ? mc_node_const(g, mc_array_ref(in[0]->value), false)
                                                 : mc_cast_to(in[0], d);
}

/* ---- dimshuffle: axis i of the result is axis order[i] of the input; -1 is a new axis of size 1 ---- */

static mc_status dimshuffle_infer(struct mc_infer *q)
{
    const struct mc_attr *order = &q->attr[0];
    unsigned seen = 0;
    if (order->n > MC_MAX_RANK) {
        return mc_fail(MC_ESHAPE, "dimshuffle: the result would have more than %d axes", MC_MAX_RANK);
    }
    q->out[0] = (struct mc_type){ .dtype = q->in[0].dtype, .rank = order->n };
    for (int i = 0; i < order->n; i++) {
        int64_t a = order->ints[i];
        if (a < -1 || a >= q->in[0].rank || (a >= 0 && seen & 1u << a)) {
            return mc_fail(MC_ESHAPE, "dimshuffle: %lld is not an axis of rank %d, or is given twice",
                           (long long)a, q->in[0].rank);
        }
        q->out[0].dims[i] = a < 0 ? 1 : q->in[0].dims[a];
        seen |= a < 0 ? 0 : 1u << a;
    }
    for (int k = 0; k < q->in[0].rank; k++) {
        if (!(seen & 1u << k) && q->in[0].dims[k] != 1) {
            return mc_fail(MC_ESHAPE, "dimshuffle: axis %d cannot be dropped, its size is not known to be 1",
                           k);
        }
    }
    return MC_OK;
}

static mc_node *dimshuffle_size(mc_node *n, int item, int axis)
{
    (void)item;
    int64_t from = n->attr[0].ints[axis];
    return from < 0 ? mc_node_int(n->graph, 1) : mc_size_of(n->in[0], (int)from);
}

static mc_status dimshuffle_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    int64_t strides[MC_MAX_RANK];
    for (int i = 0; i < n->attr[0].n; i++) {
        int64_t a = n->attr[0].ints[i];
        strides[i] = a < 0 ? 0 : in[0]->strides[a];
    }
    mc_array *view = mc_array_view(in[0], out[0]->rank, out[0]->dims, strides, in[0]->data);
    mc_status s = view ? mc_array_assign(out[0], view) : mc_last_status();
    mc_array_unref(&view);
    return s;
}

static mc_node *dimshuffle_grad(mc_node *n, int wrt, mc_node *const *g)
{
    int64_t back[MC_MAX_RANK];
    (void)wrt;
    int r = n->in[0]->type.rank;
    for (int k = 0; k < r; k++) {
        back[k] = -1;
    }
    for (int i = 0; i < n->attr[0].n; i++) {
        if (n->attr[0].ints[i] >= 0) {
            back[n->attr[0].ints[i]] = i;
        }
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = r, .ints = back };
    mc_node *x = g[0];
    return x ? mc_apply(n->graph, mc_op_named(n->graph, "dimshuffle"), 1, &x, &a) : NULL;
}

/* ---- reshape(x, shape): one size may be -1; ndim is needed when the length of shape is unknown ---- */

static mc_status reshape_infer(struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0], *s = &q->in[1];
    if (mc_is_float(s->dtype) || s->rank > 1) {
        return mc_fail(MC_ETYPE, "reshape: the shape must be a vector of integers");
    }
    int64_t rank = s->rank == 0      ? 1
                   : s->dims[0] >= 0 ? s->dims[0]
                   : q->attr[0].none ? -1
                                     : mc_attr_int(&q->attr[0]);
    if (rank < 0) {
        return mc_fail(MC_ESHAPE, "reshape: the length of the shape is not known; give ndim");
    }
    if (rank > MC_MAX_RANK) {
        return mc_fail(MC_ESHAPE, "reshape: the result would have more than %d axes", MC_MAX_RANK);
    }
    q->out[0] = mc_type_make(x->dtype, (int)rank, NULL);
    int64_t total = mc_dims_count(x->rank, x->dims), known = 1;
    int open = -1;
    for (int i = 0; i < x->rank; i++) {
        total = x->dims[i] < 0 ? -1 : total;
    }
    for (int i = 0; i < rank; i++) {
        int64_t d;
        if (!mc_shape_entry(q, 1, i, &d)) {
            total = -1; /* the remaining size is unknown */
            continue;
        }
        if (d < -1 || (d == -1 && open >= 0)) {
            return mc_fail(MC_ESHAPE,
                           d < -1 ? "reshape: size %lld is negative" : "reshape: only one size may be -1",
                           (long long)d);
        }
        if (d == -1) {
            open = i;
        } else if (!mc_mul_i64(known, d, &known)) {
            return mc_fail(MC_ESHAPE, "reshape: the sizes overflow");
        }
        q->out[0].dims[i] = d;
    }
    if (open >= 0) {
        q->out[0].dims[open] = total >= 0 && known > 0 ? total / known : total == 0 && known == 0 ? 0 : -1;
    }
    if (total >= 0 && (open >= 0 ? (known ? total % known != 0 : total != 0) : total != known)) {
        struct mc_str a = { 0 }, b = { 0 };
        mc_dims_text(&a, x->rank, x->dims);
        mc_dims_text(&b, q->out[0].rank, q->out[0].dims);
        mc_status st = mc_fail(MC_ESHAPE, "reshape: %lld elements of shape %s do not fit shape %s",
                               (long long)total, a.s ? a.s : "", b.s ? b.s : "");
        mc_str_free(&a);
        mc_str_free(&b);
        return st;
    }
    return MC_OK;
}

static mc_node *reshape_size(mc_node *n, int item, int axis)
{
    (void)item;
    int64_t v;
    int count;
    mc_node *one = mc_shape_entry_node(n->in[1], axis), *all = mc_node_int(n->graph, 1), *others = all;
    if (!one || !mc_const_ints(one, &v, 1, &count) || v >= 0) {
        return one;
    }
    for (int i = 0; i < n->in[0]->type.rank; i++) { /* for -1: the number of elements over the other sizes */
        all = mc_call_op(n->graph, "mul", 2, (mc_node *[]){ all, mc_size_of(n->in[0], i) }, NULL);
    }
    for (int i = 0; i < n->type.rank; i++) {
        mc_node *size = mc_shape_entry_node(n->in[1], i);
        others = i == axis || !size ? others
                                    : mc_call_op(n->graph, "mul", 2, (mc_node *[]){ others, size }, NULL);
        if (!size) {
            return NULL;
        }
    }
    return mc_call_op(n->graph, "int_div", 2, (mc_node *[]){ all, others }, NULL);
}

static mc_status reshape_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)n;
    mc_array *c = mc_array_reshape(in[0], out[0]->rank, out[0]->dims);
    mc_status s = c ? mc_array_assign(out[0], c) : mc_last_status();
    mc_array_unref(&c);
    return s;
}

static mc_node *reshape_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (wrt != 0 || !g[0]) {
        return NULL;
    }
    mc_node *in[2] = { g[0], mc_shape_of(n->in[0]) };
    return mc_call_op(n->graph, "reshape", 2, in, "ndim=%d", n->in[0]->type.rank);
}

/* ---- shape, size ---- */

static mc_status shape_infer(struct mc_infer *q)
{
    int64_t n = q->in[0].rank;
    q->out[0] = mc_type_make(MC_INT64, 1, &n);
    return MC_OK;
}

static mc_status shape_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)n;
    memcpy(out[0]->data, in[0]->dims, (size_t)in[0]->rank * sizeof(int64_t));
    return MC_OK;
}

static mc_status size_infer(struct mc_infer *q)
{
    int axis;
    TRY(mc_axis_check("size", mc_attr_int(&q->attr[0]), q->in[0].rank, &axis));
    q->out[0] = mc_type_make(MC_INT64, 0, NULL);
    return MC_OK;
}

/* A known size becomes a constant at once. */
static mc_node *build_size(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int axis;
    (void)nin;
    if (mc_axis_check("size", mc_attr_int(&attr[0]), in[0]->type.rank, &axis) < 0) {
        return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
    }
    int64_t at = axis;
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &at };
    return in[0]->type.dims[axis] >= 0 ? mc_node_int(g, in[0]->type.dims[axis])
                                       : mc_node_make(g, mc_op_named(g, "size"), 1, in, &a);
}

static mc_status size_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    int axis;
    TRY(mc_axis_check("size", mc_attr_int(&n->attr[0]), in[0]->rank, &axis));
    mc_store_i64(MC_INT64, out[0]->data, in[0]->dims[axis]);
    return MC_OK;
}

/* ---- specify_shape(x, [600, -1]): a promise that is checked in each call ---- */

static mc_status specify_infer(struct mc_infer *q)
{
    q->out[0] = q->in[0];
    if (q->attr[0].n != q->in[0].rank) {
        return mc_fail(MC_ESHAPE, "specify_shape: %d sizes are given for rank %d", q->attr[0].n,
                       q->in[0].rank);
    }
    for (int i = 0; i < q->in[0].rank; i++) {
        int64_t want = q->attr[0].ints[i], have = q->in[0].dims[i];
        if (want >= 0 && have >= 0 && want != have) {
            return mc_fail(MC_ESHAPE, "specify_shape: axis %d has size %lld, not %lld", i, (long long)have,
                           (long long)want);
        }
        q->out[0].dims[i] = want >= 0 ? want : have;
    }
    return MC_OK;
}

static mc_node *first_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)n;
    return wrt == 0 ? g[0] : NULL;
}

/* ---- check_index(t, n): t, with a check that every element is an index below n ---- */

static mc_status check_infer(struct mc_infer *q)
{
    q->out[0] = q->in[0];
    if (mc_is_float(q->in[0].dtype)) {
        return mc_fail(MC_ETYPE, "an index must be an integer, not %s", mc_dtype_name(q->in[0].dtype));
    }
    return q->in[1].rank == 0 ? MC_OK : mc_fail(MC_ESHAPE, "check_index: the bound must be a scalar");
}

static mc_status check_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)n;
    TRY(mc_array_assign(out[0], in[0]));
    int64_t bound = mc_load_i64(in[1]->dtype, in[1]->data), count = mc_array_size(out[0]);
    for (int64_t i = 0; i < count; i++) {
        int64_t t = mc_load_i64(out[0]->dtype, out[0]->data + (size_t)i * mc_dtypes[out[0]->dtype].size);
        if (t < 0 || t >= bound) {
            return mc_fail(MC_EINDEX, "index %lld is out of range for size %lld", (long long)t,
                           (long long)bound);
        }
    }
    return MC_OK;
}

const struct mc_op mc_ops_shape[] = {
    { .name = "cast", .form = FORM_CAST, .params = "x, dtype:dtype", .nout = 1, .build = build_cast, .infer = cast_infer, .size = mc_same_size, .eval = copy_eval,
      .grad = cast_grad, .doc = MANUAL("x converted to a dtype") },
    { .name = "dimshuffle", .form = FORM_DIMSHUFFLE, .params = "x, order:ints", .flags = OP_VIEW, .nout = 1, .infer = dimshuffle_infer,
      .size = dimshuffle_size, .eval = dimshuffle_eval, .grad = dimshuffle_grad,
      .doc = MANUAL("x with its axes in another order; -1 adds an axis of size 1, axes of size 1 may be left out") },
    { .name = "reshape", .form = FORM_RESHAPE, .params = "x, shape, ndim=None:int", .flags = OP_VIEW, .nout = 1, .shape_args = 2, .infer = reshape_infer,
      .size = reshape_size, .eval = reshape_eval, .grad = reshape_grad, .doc = MANUAL("the elements of x in another shape; one size may be -1") },
    { .name = "shape", .form = FORM_SHAPE, .params = "x", .nout = 1, .infer = shape_infer, .eval = shape_eval, .disconnected = 1, .doc = MANUAL("the sizes of x as a vector") },
    { .name = "size", .form = FORM_SIZE, .params = "x, axis:int", .nout = 1, .build = build_size, .infer = size_infer, .eval = size_eval, .disconnected = 1,
      .doc = MANUAL("the size of x along an axis") },
    { .name = "specify_shape", .form = FORM_SPECIFY, .params = "x, sizes:ints", .flags = OP_VIEW, .nout = 1, .infer = specify_infer, .size = mc_same_size,
      .eval = copy_eval, .grad = first_grad, .doc = MANUAL("x, with a promise of its sizes; -1: unknown") },
    { .name = "check_index", .form = FORM_CHECK, .flags = OP_HIDDEN, .params = "t, n", .nout = 1, .infer = check_infer, .size = mc_same_size, .eval = check_eval,
      .disconnected = 3, .doc = MANUAL("t; an error at run time if an element is negative or not less than n") },
};
const int mc_nops_shape = (int)NELEM(mc_ops_shape);
