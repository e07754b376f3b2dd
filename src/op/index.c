/* index.c: parts of a tensor selected by numbers and slices, and tensors with such a part changed.
 *
 * Invariant: equal parts are equal nodes: build folds constant bounds into the spec, and x[:] is x. */
#include "op/index.h"

/* ---- subtensor ---- */

static mc_status subtensor_infer(struct mc_infer *q)
{
    return mc_spec_infer(q, 1, &q->out[0]);
}

static mc_status subtensor_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    mc_array *view = mc_spec_view(n, in[0], in);
    mc_status s = view ? mc_array_assign(out[0], view) : mc_last_status();
    mc_array_unref(&view);
    return s;
}

/* The axis of x that an axis of the result comes from. */
static int axis_of_x(const struct mc_attr *spec, int axis)
{
    int i = 0;
    while (spec->ints[i * SPEC_N + SPEC_INDEX] || axis-- > 0) {
        i++;
    }
    return i;
}

/* A formula for constant bounds with a positive step; min and max are left out where a bound is absent. */
static mc_node *subtensor_size(mc_node *n, int item, int axis)
{
    (void)item;
    int from = axis_of_x(&n->attr[0], axis);
    const int64_t *s = &n->attr[0].ints[from * SPEC_N];
    mc_node *size = mc_size_of(n->in[0], from);
    int64_t step = s[SPEC_STEP_KIND] ? s[SPEC_STEP] : 1;
    struct mc_bind b[4] = { { "n", size, NULL },
                            { "a", mc_node_int(n->graph, s[SPEC_START]), NULL },
                            { "b", mc_node_int(n->graph, s[SPEC_STOP]), NULL },
                            { "s", mc_node_int(n->graph, step), NULL } };
    bool starts = s[SPEC_START_KIND] != BOUND_NONE, stops = s[SPEC_STOP_KIND] != BOUND_NONE;
    if (s[SPEC_START_KIND] == BOUND_INPUT || s[SPEC_STOP_KIND] == BOUND_INPUT ||
        s[SPEC_STEP_KIND] == BOUND_INPUT) {
        return NULL;
    }
    if (step < 0) {
        b[3].node = mc_node_int(n->graph, -step);
        return s[SPEC_START_KIND] || s[SPEC_STOP_KIND] ? NULL
               : step == -1                            ? size
                                                       : mc_expr(n->graph, "-((-n) // s)", b, 4);
    }
    const char *text = !starts && !stops ? "n"
                       : !starts         ? (s[SPEC_STOP] < 0 ? "maximum(n + b, 0)" : "minimum(n, b)")
                       : !stops          ? (s[SPEC_START] < 0 ? "minimum(n, -a)" : "maximum(n - a, 0)")
                       : s[SPEC_START] < 0
                           ? (s[SPEC_STOP] < 0 ? "maximum(maximum(n + b, 0) - maximum(n + a, 0), 0)"
                                               : "maximum(minimum(n, b) - maximum(n + a, 0), 0)")
                       : s[SPEC_STOP] < 0 ? "maximum(n + b - a, 0)"
                                          : "maximum(minimum(n, b) - a, 0)";
    mc_node *length = mc_expr(n->graph, text, b, 4);
    b[0].node = length;
    return step == 1 ? length : mc_expr(n->graph, "-((-n) // s)", b, 4);
}

mc_node *mc_region_put(const char *op, mc_node *x, mc_node *y, int n, mc_node *const *at,
                       const struct mc_attr *where, bool set)
{
    int64_t flag = set;
    mc_node *in[2 + 3 * MC_MAX_RANK] = { x, y };
    struct mc_attr a[2] = { *where, { .kind = ATTR_BOOL, .n = 1, .ints = &flag } };
    if (mc_is_error(x) || mc_is_error(y)) {
        return x->graph->error;
    }
    memcpy(in + 2, at, (size_t)n * sizeof *at);
    return mc_apply(x->graph, mc_op_named(x->graph, op), 2 + n, in, a);
}

static mc_node *subtensor_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (wrt || !g[0]) {
        return NULL;
    }
    mc_node *zeros = mc_call_op(n->graph, "zeros_like", 1, n->in, NULL);
    return mc_region_put("subtensor_update", zeros, g[0], n->nin - 1, n->in + 1, &n->attr[0], false);
}

/* The element if it is known without indexing: x.shape[0], [n, 10][1], a number of a constant vector. */
static mc_node *known_element(mc_node *x, const int64_t *s)
{
    int64_t size = x->type.dims[0], at = s[SPEC_START] < 0 ? s[SPEC_START] + size : s[SPEC_START];
    if (x->type.rank != 1 || !s[SPEC_INDEX] || s[SPEC_START_KIND] != BOUND_CONST || size < 0 || at < 0 ||
        at >= size) {
        return NULL;
    }
    if (mc_is_op(x, "shape")) {
        return mc_size_of(x->in[0], (int)at);
    }
    if (mc_is_op(x, "stack")) {
        return x->in[at];
    }
    if (mc_is_const(x)) {
        return mc_node_const(
            x->graph, mc_array_from(x->type.dtype, 0, NULL, x->value->data + at * x->value->strides[0]),
            false);
    }
    return NULL;
}

static mc_node *build_subtensor(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mc_op *op = mc_op_named(g, "subtensor");
    int64_t ints[MC_MAX_RANK * SPEC_N];
    mc_node *arg[1 + 3 * MC_MAX_RANK] = { in[0] };
    bool whole = true;
    if (!mc_spec_is_sound(attr, in[0], nin - 1)) {
        return mc_node_make(g, op, nin, in, attr);
    }
    struct mc_attr spec = { .kind = ATTR_INTS, .n = attr->n, .ints = ints };
    int n = 1 + mc_spec_fold(attr, in, ints, arg + 1);
    for (int i = 0; i < spec.n; i += SPEC_N) {
        whole &= mc_spec_is_whole(&ints[i]);
    }
    mc_node *known = whole ? in[0] : known_element(in[0], ints);
    return known ? known : mc_node_make(g, op, n, arg, &spec);
}

/* An element of a literal list would be read back as the literal itself, so constants are printed as a
 * call. */
static bool subtensor_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx)
{
    if (mc_is_const(n->in[0]) || n->in[0]->type.rank == 0) {
        return false;
    }
    mc_spec_print(out, n, arg, ctx);
    return true;
}

/* ---- subtensor_update ---- */

mc_node *mc_region_value(const char *op, mc_node *x, mc_node *y, int rank)
{
    int64_t order[MC_MAX_RANK];
    int more = rank - y->type.rank;
    if (more < 0) {
        return mc_node_fail(x->graph, MC_ESHAPE, "%s: the value has rank %d, but the region has rank %d", op,
                            y->type.rank, rank);
    }
    bool rounds = y->weak ? mc_is_float(y->type.dtype) && !mc_is_float(x->type.dtype)
                          : mc_dtype_promote(x->type.dtype, y->type.dtype) != x->type.dtype;
    if (rounds) {
        return mc_node_fail(x->graph, MC_ETYPE, "%s: a value of dtype %s would be rounded to %s; cast it", op,
                            mc_dtype_name(y->type.dtype), mc_dtype_name(x->type.dtype));
    }
    y = mc_cast_to(y, x->type.dtype);
    if (!mc_is_error(y) && y->weak) {
        y = mc_node_const(x->graph, mc_array_ref(y->value), false);
    }
    if (!more || mc_is_error(y)) {
        return y;
    }
    for (int i = 0; i < rank; i++) {
        order[i] = i < more ? -1 : i - more;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = order };
    return mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &y, &a);
}

static mc_status region_fits(const char *op, const struct mc_type *y, const struct mc_type *region)
{
    bool fits = y->rank == region->rank;
    for (int i = 0; fits && i < y->rank; i++) {
        fits = y->dims[i] == 1 || y->dims[i] < 0 || region->dims[i] < 0 || y->dims[i] == region->dims[i];
    }
    if (fits) {
        return MC_OK;
    }
    struct mc_str a = { 0 }, b = { 0 };
    mc_dims_text(&a, y->rank, y->dims);
    mc_dims_text(&b, region->rank, region->dims);
    mc_status s = mc_fail(MC_ESHAPE, "%s: a value of shape %s does not broadcast to a region of shape %s", op,
                          a.s ? a.s : "", b.s ? b.s : "");
    mc_str_free(&a);
    mc_str_free(&b);
    return s;
}

mc_status mc_region_update(struct mc_infer *q, const struct mc_type *region)
{
    q->out[0] = q->in[0];
    if (q->in[1].dtype != q->in[0].dtype) {
        return mc_fail(MC_ETYPE, "%s: the value has dtype %s; expected %s", q->op->name,
                       mc_dtype_name(q->in[1].dtype), mc_dtype_name(q->in[0].dtype));
    }
    return region_fits(q->op->name, &q->in[1], region);
}

mc_status mc_region_strides(const mc_node *n, const mc_array *y, int rank, const int64_t *dims,
                            int64_t *strides)
{
    struct mc_type have = mc_type_make(y->dtype, y->rank, y->dims), want = mc_type_make(y->dtype, rank, dims);
    TRY(region_fits(n->op->name, &have, &want));
    for (int i = 0; i < rank; i++) {
        strides[i] = y->dims[i] == 1 ? 0 : y->strides[i];
        if (y->dims[i] == 1 && dims[i] != 1 && n->in[1]->type.dims[i] != 1) {
            return mc_fail(MC_ESHAPE,
                           "%s: axis %d of the value has size 1, but that of the region has %lld; declare "
                           "the size 1 to broadcast it",
                           n->op->name, i, (long long)dims[i]);
        }
    }
    return MC_OK;
}

mc_node *mc_region_grad(mc_node *g, mc_node *y)
{
    for (int i = 0; i < y->type.rank && !mc_is_error(g); i++) {
        if (y->type.dims[i] == 1 && g->type.dims[i] != 1) {
            g = mc_call_op(g->graph, "sum", 1, &g, "axis=%d, keepdims=True", i);
        }
    }
    return g;
}

#define ADDS(name, T)                                                                              \
    static void name(char *x, int64_t xstep, const char *y, int64_t ystep, int64_t n)              \
    {                                                                                              \
        if (xstep == (int64_t)sizeof(T) && ystep == (int64_t)sizeof(T)) {                          \
            T *to = (T *)(void *)x;                                                                \
            const T *from = (const T *)(const void *)y;                                            \
            for (int64_t i = 0; i < n; i++) {                                                      \
                to[i] += from[i];                                                                  \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++, x += xstep, y += ystep) {                                  \
            *(T *)(void *)x += *(const T *)(const void *)y;                                        \
        }                                                                                          \
    }
ADDS(add_f32, float)
ADDS(add_f64, double)

void mc_region_row(mc_dtype d, bool set, char *x, int64_t xstep, const char *y, int64_t ystep, int64_t n)
{
    if (set) {
        mc_convert(d, x, xstep, d, y, ystep, n);
        return;
    }
    if (d == MC_FLOAT32) {
        add_f32(x, xstep, y, ystep, n);
        return;
    }
    if (d == MC_FLOAT64) {
        add_f64(x, xstep, y, ystep, n);
        return;
    }
    for (int64_t i = 0; i < n; i++, x += xstep, y += ystep) {
        if (mc_is_float(d)) { /* the sum of two halves is computed in double and rounded once */
            mc_store_f64(d, x, mc_load_f64(d, x) + mc_load_f64(d, y));
        } else {
            mc_store_i64(d, x, (int64_t)((uint64_t)mc_load_i64(d, x) + (uint64_t)mc_load_i64(d, y)));
        }
    }
}

static mc_status update_infer(struct mc_infer *q)
{
    struct mc_type region;
    TRY(mc_spec_infer(q, 2, &region));
    return mc_region_update(q, &region);
}

static mc_status update_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_walk w;
    int64_t strides[MC_MAX_RANK];
    TRY(mc_array_assign(out[0], in[0]));
    mc_array *x = mc_spec_view(n, out[0], in);
    mc_status s = x ? mc_region_strides(n, in[1], x->rank, x->dims, strides) : mc_last_status();
    if (s == MC_OK && mc_walk_begin(&w, x->rank, x->dims, 1, 2, (char *[]){ x->data, in[1]->data },
                                    (const int64_t *[]){ x->strides, strides })) {
        int last = x->rank - 1;
        do {
            mc_region_row(x->dtype, mc_attr_int(&n->attr[1]), w.p[0], last < 0 ? 0 : x->strides[last], w.p[1],
                          last < 0 ? 0 : strides[last], last < 0 ? 1 : x->dims[last]);
        } while (mc_walk_next(&w));
    }
    mc_array_unref(&x);
    return s;
}

static mc_node *update_grad(mc_node *n, int wrt, mc_node *const *g)
{
    if (wrt > 1 || !g[0]) {
        return NULL;
    }
    if (wrt == 0) {
        return mc_attr_int(&n->attr[1]) ? mc_region_put("subtensor_update", g[0], mc_node_like(g[0], 0),
                                                        n->nin - 2, n->in + 2, &n->attr[0], true)
                                        : g[0];
    }
    mc_node *in[1 + 3 * MC_MAX_RANK] = { g[0] };
    memcpy(in + 1, n->in + 2, (size_t)(n->nin - 2) * sizeof *in);
    return mc_region_grad(mc_apply(n->graph, mc_op_named(n->graph, "subtensor"), n->nin - 1, in, &n->attr[0]),
                          n->in[1]);
}

static mc_node *build_update(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const struct mc_op *op = mc_op_named(g, "subtensor_update");
    int64_t ints[MC_MAX_RANK * SPEC_N];
    mc_node *arg[2 + 3 * MC_MAX_RANK] = { in[0], in[1] };
    int rank = 0;
    if (!mc_spec_is_sound(&attr[0], in[0], nin - 2)) {
        return mc_node_make(g, op, nin, in, attr);
    }
    struct mc_attr a[2] = { { .kind = ATTR_INTS, .n = attr[0].n, .ints = ints }, attr[1] };
    int n = 2 + mc_spec_fold(&attr[0], in + 1, ints, arg + 2);
    for (int i = 0; i < a[0].n; i += SPEC_N) {
        rank += !ints[i + SPEC_INDEX];
    }
    arg[1] = mc_region_value(mc_attr_int(&attr[1]) ? "set_subtensor" : "inc_subtensor", in[0], in[1], rank);
    return mc_is_error(arg[1]) ? arg[1] : mc_node_make(g, op, n, arg, a);
}

void mc_update_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx,
                     void region(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx))
{
    mc_str_add(out, mc_attr_int(&n->attr[1]) ? "set_subtensor(" : "inc_subtensor(");
    region(out, n, arg, ctx);
    mc_str_add(out, ", ");
    arg(out, n, 1, ctx);
    mc_str_add(out, ")");
}

/* For a part of a part, x[...][...] would be read back as a change of the whole, so it is printed as a
 * call. */
static bool update_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx)
{
    const mc_node *x = n->in[0];
    bool whole = true;
    for (int i = 0; i < n->attr[0].n; i += SPEC_N) {
        whole &= mc_spec_is_whole(&n->attr[0].ints[i]);
    }
    if (whole || mc_is_const(x) || mc_is_op(x, "subtensor") || mc_is_op(x, "gather")) {
        return false;
    }
    mc_update_print(out, n, arg, ctx, mc_spec_print);
    return true;
}

/* ---- selections along one axis, for gradients and builds of other ops ---- */

static mc_node *along(mc_node *x, int axis, mc_node *start, mc_node *stop, bool pick)
{
    int64_t ints[MC_MAX_RANK * SPEC_N] = { 0 };
    mc_node *in[3] = { x };
    int nin = 1;
    if (mc_is_error(x) || (start && mc_is_error(start)) || (stop && mc_is_error(stop))) {
        return x->graph->error;
    }
    for (int i = 0; i < x->type.rank; i++) {
        ints[i * SPEC_N + SPEC_STEP_KIND] = BOUND_CONST;
        ints[i * SPEC_N + SPEC_STEP] = 1;
    }
    int64_t *s = &ints[axis * SPEC_N];
    s[SPEC_INDEX] = pick;
    if (start) {
        s[SPEC_START_KIND] = BOUND_INPUT;
        s[SPEC_START] = nin;
        in[nin++] = start;
    }
    if (stop) {
        s[SPEC_STOP_KIND] = BOUND_INPUT;
        s[SPEC_STOP] = nin;
        in[nin++] = stop;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = x->type.rank * SPEC_N, .ints = ints };
    return mc_apply(x->graph, mc_op_named(x->graph, "subtensor"), nin, in, &a);
}

mc_node *mc_part(mc_node *x, int axis, mc_node *start, mc_node *stop)
{
    return along(x, axis, start, stop, false);
}

mc_node *mc_pick(mc_node *x, int axis, mc_node *i)
{
    return along(x, axis, i, NULL, true);
}

const struct mc_op mc_ops_index[] = {
    { .name = "subtensor", .form = FORM_SUBTENSOR, .params = "x, *bounds, spec:ints", .flags = OP_VIEW | OP_HIDDEN, .nout = 1,
      .shape_args = 1u << 31, .infer = subtensor_infer, .size = subtensor_size, .eval = subtensor_eval, .grad = subtensor_grad,
      .build = build_subtensor, .print = subtensor_print, .doc = MANUAL("x[1:3, ::-1, i]") },
    { .name = "subtensor_update", .form = FORM_SUBTENSOR_UPDATE, .params = "x, y, *bounds, spec:ints, set:bool", .flags = OP_HIDDEN, .nout = 1,
      .infer = update_infer, .size = mc_same_size, .eval = update_eval, .grad = update_grad, .build = build_update,
      .print = update_print, .doc = MANUAL("x with a region set to y, or increased by y") },
};
const int mc_nops_index = (int)NELEM(mc_ops_index);
