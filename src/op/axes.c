/* axes.c: ops on axes and dtypes that are composed of the ops of shape.c and have no nodes of their own.
 *
 * Invariant: rows of this file have only a build function, apart from unbroadcast. The nodes that it makes
 * are what runs and what is differentiated. */
#include "op/op.h"
#include <math.h>

/* ---- axes ---- */

static mc_node *shuffle(mc_node *x, int n, const int64_t *order)
{
    struct mc_attr a = { .kind = ATTR_INTS, .n = n, .ints = (int64_t *)order };
    return mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &x, &a);
}

static mc_node *build_failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

static mc_node *build_transpose(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)g;
    (void)nin;
    int64_t order[MC_MAX_RANK];
    int r = in[0]->type.rank;
    if (!attr[0].none) {
        if (attr[0].n != r) {
            return mc_node_fail(g, MC_ESHAPE, "transpose: %d axes are given for rank %d", attr[0].n, r);
        }
        return shuffle(in[0], r, attr[0].ints);
    }
    for (int i = 0; i < r; i++) {
        order[i] = r - 1 - i;
    }
    return r < 2 ? in[0] : shuffle(in[0], r, order);
}

static mc_node *build_swapaxes(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    int64_t order[MC_MAX_RANK];
    int r = in[0]->type.rank, a, b;
    if (mc_axis_check("swapaxes", mc_attr_int(&attr[0]), r, &a) < 0 ||
        mc_axis_check("swapaxes", mc_attr_int(&attr[1]), r, &b) < 0) {
        return build_failed(g);
    }
    for (int i = 0; i < r; i++) {
        order[i] = i == a ? b : i == b ? a : i;
    }
    return shuffle(in[0], r, order);
}

static mc_node *build_expand_dims(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    int64_t order[MC_MAX_RANK + 1];
    int r = in[0]->type.rank, axis;
    if (mc_axis_check("expand_dims", mc_attr_int(&attr[0]), r + 1, &axis) < 0) {
        return build_failed(g);
    }
    for (int i = 0; i <= r; i++) {
        order[i] = i == axis ? -1 : i - (i > axis);
    }
    return shuffle(in[0], r + 1, order);
}

static mc_node *pad(mc_node *x, int left, int right)
{
    int64_t order[4 * MC_MAX_RANK];
    int n = 0;
    if (left < 0 || right < 0 || left + right + x->type.rank > MC_MAX_RANK) {
        return mc_node_fail(x->graph, MC_ESHAPE, "shape_pad: the result would have more than %d axes",
                            MC_MAX_RANK);
    }
    while (n < left) {
        order[n++] = -1;
    }
    for (int i = 0; i < x->type.rank; i++) {
        order[n++] = i;
    }
    for (int i = 0; i < right; i++) {
        order[n++] = -1;
    }
    return shuffle(x, n, order);
}

static mc_node *build_padleft(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)g;
    (void)nin;
    return pad(in[0], (int)mc_attr_int(&attr[0]), 0);
}

static mc_node *build_padright(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)g;
    (void)nin;
    return pad(in[0], 0, (int)mc_attr_int(&attr[0]));
}

static mc_node *build_squeeze(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    int64_t order[MC_MAX_RANK];
    int axis[MC_MAX_RANK], naxis = 0, n = 0, r = in[0]->type.rank;
    struct mc_infer q = { .op = mc_op_named(g, "squeeze"), .attr = attr };
    if (mc_attr_axes(&q, 0, r, axis, &naxis) < 0) {
        return build_failed(g);
    }
    for (int i = 0; i < r; i++) {
        bool drop = false;
        for (int k = 0; k < naxis; k++) {
            drop |= axis[k] == i;
        }
        if (drop && !attr[0].none && in[0]->type.dims[i] != 1) {
            return mc_node_fail(g, MC_ESHAPE, "squeeze: axis %d is not known to have size 1", i);
        }
        if (!drop || in[0]->type.dims[i] != 1) {
            order[n++] = i;
        }
    }
    return n == r ? in[0] : shuffle(in[0], n, order);
}

/* Axis source[i] goes to place destination[i]; the others keep their order. */
static mc_node *build_moveaxis(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    int64_t order[MC_MAX_RANK];
    int r = in[0]->type.rank, from, to;
    unsigned moved = 0, filled = 0;
    if (attr[0].n != attr[1].n) {
        return mc_node_fail(g, MC_EARG, "moveaxis: %d axes for %d places", attr[0].n, attr[1].n);
    }
    for (int i = 0; i < attr[0].n; i++) {
        if (mc_axis_check("moveaxis", attr[0].ints[i], r, &from) < 0 ||
            mc_axis_check("moveaxis", attr[1].ints[i], r, &to) < 0) {
            return build_failed(g);
        }
        if (moved >> from & 1 || filled >> to & 1) {
            return mc_node_fail(g, MC_EARG, "moveaxis: axis %d is given twice",
                                moved >> from & 1 ? from : to);
        }
        moved |= 1u << from;
        filled |= 1u << to;
        order[to] = from;
    }
    for (int i = 0, k = 0; i < r; i++) {
        if (!(filled >> i & 1)) {
            while (moved >> k & 1) {
                k++;
            }
            order[i] = k++;
        }
    }
    return shuffle(in[0], r, order);
}

static mc_node *build_flip(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int axis[MC_MAX_RANK], n = 0;
    struct mc_infer q = { .op = mc_op_named(g, "flip"), .attr = attr };
    struct mc_str text = { 0 };
    (void)nin;
    if (mc_attr_axes(&q, 0, in[0]->type.rank, axis, &n) < 0) {
        return build_failed(g);
    }
    mc_str_add(&text, "x[");
    for (int i = 0, k = 0; k < n; i++) {
        mc_str_add(&text, i == axis[k] ? "::-1, " : ":, ");
        k += i == axis[k];
    }
    mc_str_add(&text, "...]");
    mc_node *y = text.bad ? mc_node_no_memory(g)
                          : mc_expr(g, text.s, (struct mc_bind[]){ { "x", in[0], NULL } }, 1);
    mc_str_free(&text);
    return y;
}

static mc_node *product_of_sizes(mc_node *x, int from, int to)
{
    mc_node *n = NULL;
    int64_t known = 1;
    for (int i = from; i < to; i++) {
        if (x->type.dims[i] >= 0) {
            if (!mc_mul_i64(known, x->type.dims[i], &known)) {
                return mc_node_fail(x->graph, MC_ESHAPE, "the sizes overflow");
            }
        } else {
            mc_node *pair[2] = { n, mc_size_of(x, i) };
            n = n ? mc_call_op(x->graph, "mul", 2, pair, NULL) : pair[1];
        }
    }
    if (!n || known != 1) {
        mc_node *pair[2] = { n, mc_node_int(x->graph, known) };
        n = n ? mc_call_op(x->graph, "mul", 2, pair, NULL) : pair[1];
    }
    return n;
}

static mc_node *build_flatten(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    int64_t ndim = mc_attr_int(&attr[0]);
    int r = in[0]->type.rank;
    mc_node *size[MC_MAX_RANK], *arg[2] = { in[0], NULL };
    if (ndim < 1 || ndim > MC_MAX_RANK || (ndim > r && r)) {
        return mc_node_fail(g, MC_ESHAPE, "flatten: ndim %lld is out of range for rank %d", (long long)ndim,
                            r);
    }
    if (r == ndim) {
        return in[0];
    }
    for (int i = 0; i < ndim; i++) {
        size[i] = i + 1 < ndim ? mc_size_of(in[0], i) : product_of_sizes(in[0], i, r);
    }
    arg[1] = mc_call_op(g, "stack", (int)ndim, size, NULL);
    return mc_call_op(g, "reshape", 2, arg, "ndim=%d", (int)ndim);
}

static mc_node *build_count(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    int axis[MC_MAX_RANK], n = 0;
    struct mc_infer q = { .op = mc_op_named(g, "count"), .attr = attr };
    if (mc_attr_axes(&q, 0, in[0]->type.rank, axis, &n) < 0) {
        return build_failed(g);
    }
    mc_node *r = mc_node_int(g, 1);
    for (int i = 0; i < n; i++) {
        mc_node *pair[2] = { r, mc_size_of(in[0], axis[i]) };
        int64_t a, b, c;
        int k;
        r = mc_const_ints(pair[0], &a, 1, &k) && mc_const_ints(pair[1], &b, 1, &k) && mc_mul_i64(a, b, &c)
                ? mc_node_int(g, c)
                : mc_call_op(g, "mul", 2, pair, NULL);
    }
    return r;
}

/* ---- dtypes, and promises ---- */

static mc_node *build_as_float(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)g;
    (void)nin;
    (void)attr;
    return mc_is_float(in[0]->type.dtype) ? in[0] : mc_cast_to(in[0], MC_FLOAT64);
}

/* The dtype in which many elements can be added: half types become float32, integers float64. */
static mc_node *build_wide(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)g;
    (void)nin;
    (void)attr;
    mc_dtype d = in[0]->type.dtype;
    return !mc_is_float(d)         ? mc_cast_to(in[0], MC_FLOAT64)
           : mc_dtypes[d].size < 4 ? mc_cast_to(in[0], MC_FLOAT32)
                                   : in[0];
}

static mc_node *build_cast_to(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)g;
    (void)nin;
    return mc_cast_to(in[0], attr[0].none ? mc_dtype_floatX() : (mc_dtype)mc_attr_int(&attr[0]));
}

static mc_node *build_default(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)attr;
    return nin < 2 ? mc_node_fail(g, MC_EARG, "default: expected two arguments") : in[0] ? in[0] : in[1];
}

/* pattern[i]: 1 promises size 1 along axis i, which then broadcasts; 0 removes such a promise; any other
 * number leaves the axis as it is. */
static mc_node *rebroadcast(mc_graph *g, mc_node *x, const int64_t *pattern)
{
    int64_t sizes[MC_MAX_RANK], given_back[MC_MAX_RANK];
    int r = x->type.rank, promised = 0, n = 0;
    for (int i = 0; i < r; i++) {
        bool one = x->type.dims[i] == 1;
        sizes[i] = pattern[i] == 1 && !one ? 1 : -1;
        promised += sizes[i] == 1;
        if (pattern[i] == 0 && one) {
            given_back[n++] = i;
        }
    }
    struct mc_attr promise = { .kind = ATTR_INTS, .n = r, .ints = sizes },
                   back = { .kind = ATTR_AXES, .n = n, .ints = given_back };
    x = promised ? mc_apply(g, mc_op_named(g, "specify_shape"), 1, &x, &promise) : x;
    return n && !mc_is_error(x) ? mc_node_make(g, mc_op_named(g, "unbroadcast"), 1, &x, &back) : x;
}

/* Promises size 1 along the axes in attr, or removes the promise. */
static mc_node *along_axes(mc_graph *g, const char *op, mc_node *x, const struct mc_attr *attr, bool promised)
{
    int64_t pattern[MC_MAX_RANK];
    int axis[MC_MAX_RANK], n = 0;
    struct mc_infer q = { .op = mc_op_named(g, op), .attr = attr };
    if (mc_attr_axes(&q, 0, x->type.rank, axis, &n) < 0) {
        return build_failed(g);
    }
    for (int i = 0; i < x->type.rank; i++) {
        pattern[i] = -1;
    }
    for (int i = 0; i < n; i++) {
        pattern[axis[i]] = promised;
    }
    return rebroadcast(g, x, pattern);
}

static mc_node *build_addbroadcast(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return along_axes(g, "addbroadcast", in[0], attr, true);
}

static mc_node *build_unbroadcast(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return along_axes(g, "unbroadcast", in[0], attr, false);
}

static mc_node *build_patternbroadcast(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return attr[0].n == in[0]->type.rank
               ? rebroadcast(g, in[0], attr[0].ints)
               : mc_node_fail(g, MC_EARG, "patternbroadcast: the pattern has %d entries, but x has rank %d",
                              attr[0].n, in[0]->type.rank);
}

/* The sizes of these axes become unknown in the graph; a shape plan knows them again. */
static mc_status unbroadcast_infer(struct mc_infer *q)
{
    int axis[MC_MAX_RANK], n = 0;
    q->out[0] = q->in[0];
    TRY(mc_attr_axes(q, 0, q->in[0].rank, axis, &n));
    for (int i = 0; i < n && q->graph; i++) {
        q->out[0].dims[axis[i]] = -1;
    }
    return MC_OK;
}

static mc_status same_elements(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    (void)n;
    return mc_array_assign(out[0], in[0]);
}

/* The infinities become the largest numbers of the dtype, unless numbers are given. */
static mc_node *build_nan_to_num(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_node *x = in[0];
    if (!mc_is_float(x->type.dtype)) {
        return x;
    }
    mc_array *most = mc_array_scalar(
        x->type.dtype, ldexp(2 - mc_dtypes[x->type.dtype].eps, x->type.dtype == MC_FLOAT64   ? 1023
                                                               : x->type.dtype == MC_FLOAT16 ? 15
                                                                                             : 127));
    struct mc_bind b[] = { { "x", x, NULL },
                           { "most", mc_node_const(g, most, false), NULL },
                           { "v", NULL, &attr[0] },
                           { "pos", NULL, &attr[1] },
                           { "neg", NULL, &attr[2] } };
    const struct mc_bind least = { "neg", mc_expr(g, "-most", b, 2), NULL };
    b[3] = attr[1].none ? (struct mc_bind){ "pos", b[1].node, NULL } : b[3];
    b[4] = attr[2].none ? least : b[4];
    return mc_expr(g, "where(isnan(x), v, where(eq(x, inf), pos, where(eq(x, -inf), neg, x)))", b, NELEM(b));
}

const struct mc_op mc_ops_axes[] = {
    BUILT({ .name = "transpose", .params = "x, axes=None:ints", .nout = 1, .build = build_transpose, .doc = MANUAL("x with its axes reversed, or in the given order") })
    BUILT({ .name = "swapaxes", .params = "x, a:int, b:int", .nout = 1, .build = build_swapaxes, .doc = MANUAL("x with two axes exchanged") })
    BUILT({ .name = "moveaxis", .params = "x, source:ints, destination:ints", .nout = 1, .build = build_moveaxis, .example = MANUAL("moveaxis(x, 0, -1)"),
      .doc = MANUAL("axes moved to other places; the others keep their order") })
    BUILT({ .name = "flip", .params = "x, axis=None:axes", .nout = 1, .build = build_flip, .doc = MANUAL("x read backwards along all axes, or those given") })
    BUILT({ .name = "expand_dims", .params = "x, axis:int", .nout = 1, .build = build_expand_dims, .doc = MANUAL("x with a new axis of size 1") })
    BUILT({ .name = "shape_padleft", .params = "x, n=1:int", .nout = 1, .build = build_padleft, .doc = MANUAL("x with n axes of size 1 added in front") })
    BUILT({ .name = "shape_padright", .params = "x, n=1:int", .nout = 1, .build = build_padright, .doc = MANUAL("x with n axes of size 1 added at the end") })
    BUILT({ .name = "shape_padaxis", .params = "x, axis:int", .nout = 1, .build = build_expand_dims, .doc = MANUAL("x with a new axis of size 1") })
    BUILT({ .name = "squeeze", .params = "x, axis=None:axes", .nout = 1, .build = build_squeeze, .doc = MANUAL("x without axes of size 1") })
    BUILT({ .name = "flatten", .params = "x, ndim=1:int", .nout = 1, .build = build_flatten, .doc = MANUAL("x with its last axes merged, so that ndim axes remain") })
    BUILT({ .name = "nan_to_num", .params = "x, nan=0:real, posinf=None:real, neginf=None:real", .nout = 1, .build = build_nan_to_num,
      .example = MANUAL("x = [1., nan, -inf]; nan_to_num(x, neginf=-9)"),
      .doc = MANUAL("x with numbers in place of NaN and of the infinities, which become the largest of the dtype unless others are given") })
    BUILT({ .name = "count", .params = "x, axis=None:axes", .nout = 1, .build = build_count, .doc = MANUAL("the number of elements along the axes") })
    BUILT({ .name = "as_float", .flags = OP_HIDDEN, .params = "x", .nout = 1, .build = build_as_float, .doc = MANUAL("x; integers become float64") })
    BUILT({ .name = "wide", .flags = OP_HIDDEN, .params = "x", .nout = 1, .build = build_wide, .doc = MANUAL("x; half types become float32, integers float64") })
    BUILT({ .name = "cast_to", .flags = OP_HIDDEN, .params = "x, dtype=None:dtype", .nout = 1, .build = build_cast_to, .doc = MANUAL("x cast to a dtype; floatX if none is given") })
    BUILT({ .name = "default", .flags = OP_HIDDEN, .params = "x=None, y", .nout = 1, .build = build_default, .doc = MANUAL("x if it is given, else y") })
    BUILT({ .name = "addbroadcast", .params = "x, axis:axes", .nout = 1, .build = build_addbroadcast, .doc = MANUAL("x, with a promise that these axes have size 1") })
    { .name = "unbroadcast", .form = FORM_UNBROADCAST, .params = "x, axis:axes", .flags = OP_VIEW | OP_NOFOLD, .nout = 1, .build = build_unbroadcast,
      .infer = unbroadcast_infer, .size = mc_same_size, .eval = same_elements, .dx = { "g" },
      .doc = MANUAL("x, which no longer broadcasts along these axes") },
    BUILT({ .name = "patternbroadcast", .params = "x, pattern:ints", .nout = 1, .build = build_patternbroadcast,
      .doc = MANUAL("x; pattern has an entry for each axis: 1 as addbroadcast, 0 as unbroadcast, -1 unchanged") })
};
const int mc_nops_axes = (int)NELEM(mc_ops_axes);
