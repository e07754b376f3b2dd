/* make.c: tensors made from a shape: alloc, arange and grids; also reads shapes for all ops that take one.
 *
 * Invariant: while a graph is built, a size is known as a number or has a formula over the sizes and
 * values of the inputs. Both are read from the node of the shape here. */
#include "op/op.h"
#include <math.h>

/* ---- shapes as tensors ---- */

bool mc_shape_entry(const struct mc_infer *q, int i, int k, int64_t *size)
{
    const mc_array *v = q->value[i];
    const mc_node *n = q->node ? q->node[i] : NULL;
    int count;
    if (v) {
        *size = mc_load_i64(v->dtype, v->data + (v->rank ? k * v->strides[0] : 0));
        return true;
    }
    if (n && mc_is_op(n, "shape") && n->in[0]->type.dims[k] >= 0) {
        *size = n->in[0]->type.dims[k];
        return true;
    }
    return n && mc_is_op(n, "stack") && n->nin == n->type.dims[0] && mc_const_ints(n->in[k], size, 1, &count);
}

mc_node *mc_shape_entry_node(mc_node *shape, int k)
{
    int64_t v[MC_MAX_RANK];
    int count;
    if (mc_const_ints(shape, v, MC_MAX_RANK, &count)) {
        return mc_node_int(shape->graph, v[k]);
    }
    if (mc_is_op(shape, "shape")) {
        return mc_size_of(shape->in[0], k);
    }
    if (mc_is_op(shape, "stack") && shape->nin == shape->type.dims[0]) {
        return mc_cast_to(shape->in[k], MC_INT64);
    }
    return shape->type.rank == 0 ? mc_cast_to(shape, MC_INT64) : NULL;
}

mc_status mc_shape_wanted(const struct mc_infer *q, int i, mc_dtype d, struct mc_type *out)
{
    const struct mc_type *s = &q->in[i];
    int64_t rank = s->rank == 0 ? 1 : s->dims[0], known = 1;
    if (mc_is_float(s->dtype) || s->dtype == MC_BOOL || s->rank > 1) {
        return mc_fail(MC_ETYPE, "the shape must be a vector of integers");
    }
    if (rank < 0 || rank > MC_MAX_RANK) {
        return rank < 0 ? mc_fail(MC_ESHAPE, "the length of the shape must be known when the graph is built")
                        : mc_fail(MC_ESHAPE, "the result would have more than %d axes", MC_MAX_RANK);
    }
    *out = mc_type_make(d, (int)rank, NULL);
    for (int k = 0; k < rank; k++) {
        int64_t size;
        if (mc_shape_entry(q, i, k, &size)) {
            if (size < 0) {
                return mc_fail(MC_ESHAPE, "size %lld of axis %d is negative", (long long)size, k);
            }
            if (size && !mc_mul_i64(known, size, &known)) {
                return mc_fail(MC_ESHAPE, "the sizes overflow");
            }
            out->dims[k] = size;
        }
    }
    return MC_OK;
}

mc_node *mc_shape_stack(mc_graph *g, int n, mc_node *const *size)
{
    int64_t v[MC_MAX_RANK] = { 0 };
    int known = 0, count;
    while (known < n && mc_const_ints(size[known], &v[known], 1, &count)) {
        known++;
    }
    return known == n ? mc_node_ints(g, n, v) : mc_call_op(g, "stack", n, size, NULL);
}

/* ---- alloc(x, shape): x broadcast to a shape ---- */

static mc_status alloc_infer(struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0];
    struct mc_type *y = &q->out[0];
    TRY(mc_shape_wanted(q, 1, x->dtype, y));
    if (x->rank > y->rank) {
        return mc_fail(MC_ESHAPE, "alloc: a value of rank %d does not broadcast to %d axes", x->rank,
                       y->rank);
    }
    for (int i = 0; i < x->rank; i++) {
        int axis = y->rank - x->rank + i;
        if (x->dims[i] < 0 || x->dims[i] == 1) {
            continue;
        }
        if (y->dims[axis] >= 0 && y->dims[axis] != x->dims[i]) {
            return mc_fail(MC_ESHAPE,
                           "alloc: size %lld of axis %d of the value does not broadcast to size %lld",
                           (long long)x->dims[i], i, (long long)y->dims[axis]);
        }
        y->dims[axis] = x->dims[i];
    }
    return MC_OK;
}

static mc_node *alloc_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_shape_entry_node(n->in[1], axis);
}

/* As in scalar ops, only a promised size of 1 broadcasts, because the gradient is built from the promise. */
mc_status mc_alloc_fits(const mc_node *n, const int64_t *x, const int64_t *y)
{
    const struct mc_type *type = &n->in[0]->type;
    for (int i = 0; i < type->rank; i++) {
        const int64_t to = y[n->type.rank - type->rank + i];
        if (x[i] != to && type->dims[i] != 1) {
            return mc_fail(
                MC_ESHAPE,
                "alloc: axis %d of the value has size %lld, not %lld; declare a size of 1 to broadcast it", i,
                (long long)x[i], (long long)to);
        }
    }
    return MC_OK;
}

static mc_status alloc_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    int64_t strides[MC_MAX_RANK] = { 0 };
    const mc_array *x = in[0];
    mc_array *y = out[0];
    TRY(mc_alloc_fits(n, x->dims, y->dims));
    for (int i = 0; i < x->rank; i++) {
        const int axis = y->rank - x->rank + i;
        strides[axis] = x->dims[i] == y->dims[axis] ? x->strides[i] : 0;
    }
    mc_array *view = mc_array_view(x, y->rank, y->dims, strides, x->data);
    mc_status s = view ? mc_array_assign(y, view) : mc_last_status();
    mc_array_unref(&view);
    return s;
}

/* Sums g over the axes along which x was repeated. */
static mc_node *alloc_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const struct mc_type *x = &n->in[0]->type, *y = &n->type;
    int64_t axis[MC_MAX_RANK], order[MC_MAX_RANK];
    int naxis = 0, more = y->rank - x->rank, from = 0;
    if (wrt != 0 || !g[0] || !mc_is_float(x->dtype)) {
        return wrt == 0 ? g[0] : NULL;
    }
    for (int i = 0; i < y->rank; i++) {
        bool repeated = i < more || (x->dims[i - more] == 1 && y->dims[i] != 1);
        if (repeated) {
            axis[naxis++] = i;
        }
        if (i >= more) {
            order[i - more] = repeated ? -1 : from;
        }
        from += !repeated;
    }
    struct mc_attr over = { .kind = ATTR_AXES, .n = naxis, .ints = axis },
                   back = { .kind = ATTR_INTS, .n = x->rank, .ints = order };
    mc_node *dx = g[0];
    if (naxis) {
        dx = mc_expr(n->graph, "sum(g, axis=axis)",
                     (struct mc_bind[]){ { "g", dx, NULL }, { "axis", NULL, &over } }, 2);
    }
    return from == x->rank ? dx : mc_apply(n->graph, mc_op_named(n->graph, "dimshuffle"), 1, &dx, &back);
}

/* ---- arange: start + i * step.  The three numbers have one dtype, int64 or a float ---- */

/* The common dtype of the bounds; integers become int64. */
static mc_dtype bounds_dtype(int n, mc_node *const *in)
{
    mc_node *given[3];
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (in[i]) {
            given[k++] = in[i];
        }
    }
    mc_dtype d = mc_meet(k, given, 0);
    return mc_is_float(d) ? d : MC_INT64;
}

static mc_node *build_arange(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_dtype d = bounds_dtype(nin, in);
    mc_node *stop = nin > 1 && in[1] ? in[1] : in[0],
            *step = nin > 2 && in[2] ? in[2] : mc_node_number(g, d, 1);
    mc_node *arg[3] = { stop == in[0] && !(nin > 1 && in[1]) ? mc_node_number(g, d, 0) : in[0], stop, step };
    int64_t to = attr[0].none ? (int64_t)d : mc_attr_int(&attr[0]);
    struct mc_attr dtype = { .kind = ATTR_DTYPE, .n = 1, .ints = &to };
    for (int i = 0; i < 3; i++) {
        arg[i] = mc_cast_to(arg[i], d);
        if (!mc_is_error(arg[i]) && arg[i]->weak) {
            arg[i] = mc_node_const(g, mc_array_ref(arg[i]->value), false);
        }
    }
    return mc_node_make(g, mc_op_named(g, "arange"), 3, arg, &dtype);
}

/* The number of elements: exact for integers; for floats the quotient in double, rounded up. */
static mc_status arange_count(const mc_array *const *v, int64_t *count)
{
    mc_dtype d = v[0]->dtype;
    *count = 0;
    if (mc_is_float(d)) {
        double step = mc_load_f64(d, v[2]->data),
               n = ceil((mc_load_f64(d, v[1]->data) - mc_load_f64(d, v[0]->data)) / step);
        if (!(step < 0 || step > 0) || !(fabs(n) < 0x1p62)) {
            return mc_fail(MC_ESHAPE, step < 0 || step > 0 ? "arange: the length is too large or not finite"
                                                           : "arange: the step is 0");
        }
        *count = n > 0 ? (int64_t)n : 0;
        return MC_OK;
    }
    int64_t start = mc_load_i64(d, v[0]->data), stop = mc_load_i64(d, v[1]->data),
            step = mc_load_i64(d, v[2]->data);
    if (step == 0) {
        return mc_fail(MC_ESHAPE, "arange: the step is 0");
    }
    if (step > 0 ? start < stop
                 : start > stop) { /* unsigned, the distance from start to stop never overflows */
        uint64_t way = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
        uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step, n = (way - 1) / by + 1;
        if (n > INT64_MAX) {
            return mc_fail(MC_ESHAPE, "arange: the length is too large or not finite");
        }
        *count = (int64_t)n;
    }
    return MC_OK;
}

static mc_status arange_infer(struct mc_infer *q)
{
    q->out[0] = mc_type_make((mc_dtype)mc_attr_int(&q->attr[0]), 1, NULL);
    for (int i = 0; i < 3; i++) {
        if (q->in[i].rank != 0) {
            return mc_fail(MC_ESHAPE, "arange: start, stop and step must be scalars");
        }
    }
    return q->value[0] && q->value[1] && q->value[2] ? arange_count(q->value, &q->out[0].dims[0]) : MC_OK;
}

static bool never_negative(const mc_node *n)
{
    int64_t v;
    int count;
    return mc_is_op(n, "size") || (mc_const_ints(n, &v, 1, &count) && v >= 0);
}

static mc_node *arange_size(mc_node *n, int item, int axis)
{
    (void)item;
    (void)axis;
    struct mc_bind b[3] = { { "start", n->in[0], NULL },
                            { "stop", n->in[1], NULL },
                            { "step", n->in[2], NULL } };
    double start, step;
    if (mc_is_float(n->in[0]->type.dtype)) {
        return mc_expr(n->graph,
                       "cast(maximum(ceil((cast(stop, float64) - cast(start, float64)) / cast(step, "
                       "float64)), 0), int64)",
                       b, 3);
    }
    if (mc_const_number(n->in[0], &start) && start >= 0 && start <= 0 && mc_const_number(n->in[2], &step) &&
        step >= 1 && step <= 1) {
        return never_negative(n->in[1]) ? n->in[1] : mc_expr(n->graph, "maximum(stop, 0)", b, 3);
    }
    return mc_expr(n->graph, "maximum(-((start - stop) // step), 0)", b, 3);
}

static mc_status arange_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_array *y = out[0];
    char *to = y->data;
    (void)n;
    for (int64_t i = 0; i < y->dims[0]; i++, to += mc_dtypes[y->dtype].size) {
        if (mc_is_float(in[0]->dtype)) {
            mc_store_f64(y->dtype, to,
                         mc_load_f64(in[0]->dtype, in[0]->data) +
                             (double)i * mc_load_f64(in[2]->dtype, in[2]->data));
        } else {
            mc_store_i64(y->dtype, to,
                         mc_load_i64(in[0]->dtype, in[0]->data) + i * mc_load_i64(in[2]->dtype, in[2]->data));
        }
    }
    return MC_OK;
}

/* ---- grids: the coordinates of each point of a box, one tensor for each axis ---- */

/* Vector i varies along axis i; with `swap` the first two axes are exchanged. Along the other axes its
 * size is 1 if `open`. */
static mc_node *grid(mc_graph *g, const char *name, int n, mc_node *const *vector, bool swap, bool open)
{
    mc_node *part[MC_MAX_RANK], *size[MC_MAX_RANK] = { NULL }, *in[2];
    if (n < 1 || n > MC_MAX_RANK) {
        return mc_node_fail(g, MC_ESHAPE, "%s: expected 1 to %d arguments, got %d", name, MC_MAX_RANK, n);
    }
    for (int i = 0; i < n; i++) {
        int64_t order[MC_MAX_RANK];
        int r = vector[i]->type.rank, axis = swap && n > 1 && i < 2 ? 1 - i : i;
        if (r > 1) {
            return mc_node_fail(g, MC_ESHAPE, "%s: argument %d has rank %d; expected a vector", name, i + 1,
                                r);
        }
        for (int k = 0; k < n; k++) {
            order[k] = r == 1 && k == axis ? 0 : -1;
        }
        struct mc_attr a = { .kind = ATTR_INTS, .n = n, .ints = order };
        part[i] = mc_apply(g, mc_op_named(g, "dimshuffle"), 1, &vector[i], &a);
        size[axis] = mc_is_error(part[i]) ? part[i] : mc_size_of(part[i], axis);
    }
    in[1] = open ? NULL : mc_shape_stack(g, n, size);
    for (int i = 0; i < n && !open; i++) {
        in[0] = part[i];
        part[i] = mc_call_op(g, "alloc", 2, in, NULL);
    }
    return n == 1 ? part[0] : mc_node_make(g, &mc_op_tuple, n, part, NULL);
}

static mc_node *build_meshgrid(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    bool swap = strcmp(attr[0].text, "xy") == 0;
    return swap || strcmp(attr[0].text, "ij") == 0
               ? grid(g, "meshgrid", nin, in, swap, mc_attr_int(&attr[1]) != 0)
               : mc_node_fail(g, MC_EARG, "meshgrid: indexing must be 'xy' or 'ij', not '%s'", attr[0].text);
}

/* A scalar n stands for arange(n). */
static mc_node *counted(mc_graph *g, const char *name, int n, mc_node *const *in, bool open)
{
    mc_node *vector[MC_MAX_RANK];
    for (int i = 0; i < n && i < MC_MAX_RANK; i++) {
        vector[i] = in[i]->type.rank == 0 ? mc_call_op(g, "arange", 1, &in[i], NULL) : in[i];
    }
    return grid(g, name, n, vector, false, open);
}

static mc_node *build_mgrid(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)attr;
    return counted(g, "mgrid", nin, in, false);
}

static mc_node *build_ogrid(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)attr;
    return counted(g, "ogrid", nin, in, true);
}

static mc_node *build_full(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    const mc_dtype own = !in[1]->weak                     ? in[1]->type.dtype
                         : mc_is_float(in[1]->type.dtype) ? mc_dtype_floatX()
                                                          : mc_dtype_promote(MC_INT64, in[1]->type.dtype);
    mc_node *v = mc_cast_to(in[1], attr[0].none ? own : (mc_dtype)mc_attr_int(&attr[0]));
    return mc_is_error(v) ? v : mc_call_op(g, "alloc", 2, (mc_node *[]){ v, in[0] }, NULL);
}

const struct mc_op mc_ops_make[] = {
    { .name = "alloc", .form = FORM_ALLOC, .params = "x, shape", .flags = OP_NOFOLD, .nout = 1, .shape_args = 2, .infer = alloc_infer,
      .size = alloc_size,
      .eval = alloc_eval, .grad = alloc_grad, .doc = MANUAL("x broadcast to this shape") },
    BUILT({ .name = "full", .params = "shape, value, dtype=None:dtype", .nout = 1, .build = build_full, .example = MANUAL("full([2], 7.)"),
      .doc = MANUAL("value repeated until it has this shape; of its dtype unless another is given") })
    { .name = "arange", .form = FORM_ARANGE, .params = "start, stop=None, step=None, dtype=None:dtype", .flags = OP_NOFOLD, .nout = 1,
      .shape_args = 7,
      .build = build_arange, .infer = arange_infer, .size = arange_size, .eval = arange_eval, .disconnected = 7,
      .doc = MANUAL("start, start + step, ... up to but not including stop; arange(n) starts at 0") },
    BUILT({ .name = "meshgrid", .params = "*xs, indexing=xy:text, sparse=False:bool", .nout = 1, .build = build_meshgrid,
      .doc = MANUAL("the coordinates of the points of a grid, from a vector for each axis; the first vector varies along axis 1 with 'xy', along axis 0 with 'ij'") })
    BUILT({ .name = "mgrid", .params = "*xs", .nout = 1, .build = build_mgrid, .doc = MANUAL("meshgrid with 'ij'; a scalar n stands for arange(n)") })
    BUILT({ .name = "ogrid", .params = "*xs", .nout = 1, .build = build_ogrid, .doc = MANUAL("mgrid with results of size 1 along the other axes") })
};
const int mc_nops_make = (int)NELEM(mc_ops_make);
