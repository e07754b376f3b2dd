/* running.c: cumulative sums and products along one axis.
 *
 * Invariant: the axis of a node is non-negative and never None; flattening is a separate node. */
#include "op/lines.h"
#include <math.h>

enum { CHUNK = MC_SUM_BLOCK }; /* elements converted and added at a time */

union acc { double f64; float f32; int64_t i64; uint64_t u64; };
typedef void run(union acc *a, void *px, int n); /* in place */

typedef void step(void *a, void *px, int n);          /* one step of n lines */

/* Along one line, and one step of n lines: y is the result so far. */
#define RUN(name, cls, T, next)                                                                    \
    static void name##_##cls(union acc *a, void *px, int n)                                        \
    {                                                                                              \
        T *x = px, y = a->cls;                                                                     \
        for (int i = 0; i < n; i++) {                                                              \
            x[i] = y = next;                                                                       \
        }                                                                                          \
        a->cls = y;                                                                                \
    }                                                                                              \
    static void name##s_##cls(void *pa, void *px, int n)                                           \
    {                                                                                              \
        T *a = pa, *x = px;                                                                        \
        for (int i = 0; i < n; i++) {                                                              \
            const T y = a[i];                                                                      \
            x[i] = a[i] = next;                                                                    \
        }                                                                                          \
    }
#define RUNS(cls, T)                                                                               \
    RUN(sum, cls, T, y + x[i])                                                                     \
    RUN(prod, cls, T, y *x[i])                                                                     \
    RUN(most, cls, T, x[i] > y || x[i] != x[i] ? x[i] : y)                                         \
    RUN(least, cls, T, x[i] < y || x[i] != x[i] ? x[i] : y)
RUNS(f64, double)
RUNS(f32, float)
RUNS(i64, int64_t)
RUNS(u64, uint64_t)

enum way { SUM, PRODUCT, MOST, LEAST };
#define WAYS(cls)                                                                                  \
    { sum_##cls, prod_##cls, most_##cls, least_##cls },                                            \
    {                                                                                              \
        sums_##cls, prods_##cls, mosts_##cls, leasts_##cls                                         \
    }
static const struct class_row {
    mc_dtype read; /* the dtype with the layout of the class; chunks are converted to it */
    run *run[4];   /* by enum way */
    step *step[4];
} classes[MC_NCLASS] = {
    [CLASS_I64] = { MC_INT64, WAYS(i64) },
    [CLASS_U64] = { MC_UINT64, WAYS(u64) },
    [CLASS_F32] = { MC_FLOAT32, WAYS(f32) },
    [CLASS_F64] = { MC_FLOAT64, WAYS(f64) },
};

static enum way way_of(const struct mc_op *op)
{
    static const char *const names[] = { "cumsum", "cumprod", "cummax", "cummin" };
    int way = 0;
    while (strcmp(op->name, names[way]) != 0) {
        way++;
    }
    return (enum way)way;
}

static mc_node *build(const char *name, mc_graph *g, mc_node *x, const struct mc_attr *axis)
{
    int at = 0;
    if (axis->none && x->type.rank != 1) {
        x = mc_call_op(g, "flatten", 1, &x, NULL);
    } else if (!axis->none && mc_axis_check(name, mc_attr_int(axis), x->type.rank, &at) < 0) {
        return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
    }
    int64_t v = at;
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &v };
    return mc_node_make(g, mc_op_named(g, name), 1, &x, &a);
}

#define BUILD(name)                                                                                \
    static mc_node *build_##name(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr) \
    {                                                                                              \
        (void)nin;                                                                                 \
        return build(#name, g, in[0], &attr[0]);                                                   \
    }
BUILD(cumsum)
BUILD(cumprod)
BUILD(cummax)
BUILD(cummin)

static mc_status running_infer(struct mc_infer *q)
{
    int axis;
    q->out[0] = q->in[0];
    q->out[0].dtype = way_of(q->op) < MOST ? mc_sum_dtype(q->in[0].dtype) : q->in[0].dtype;
    return mc_axis_check(q->op->name, mc_attr_int(&q->attr[0]), q->in[0].rank, &axis);
}

struct running {
    const struct class_row *row;
    const mc_array *x;
    mc_array *y;
    int axis;
    enum way way;
};

/* What a line begins with. */
static void begin(const struct running *r, void *a)
{
    const bool most = r->way == MOST;
    if (r->way < MOST) {
        mc_store_i64(r->row->read, a, r->way == PRODUCT);
    } else if (mc_is_float(r->row->read)) {
        mc_store_f64(r->row->read, a, most ? -INFINITY : INFINITY);
    } else {
        const bool sign = r->row->read == MC_INT64;
        mc_store_i64(r->row->read, a, most ? (sign ? INT64_MIN : 0) : (sign ? INT64_MAX : -1));
    }
}

/* Sums of floats of one chunk, each from zero, after what precedes the chunk: blocks can be computed side by
 * side. */
static void sum_block(union acc *before, double *x, int n)
{
    union acc a = { .f64 = 0 };
    sum_f64(&a, x, n);
    for (int i = 0; i < n; i++) {
        x[i] = before->f64 + x[i];
    }
    before->f64 = before->f64 + a.f64;
}

/* One line along the axis. */
static void along(const struct running *r, const char *x, char *y)
{
    const int64_t size = mc_dtypes[r->row->read].size, sx = r->x->strides[r->axis],
                  sy = r->y->strides[r->axis];
    _Alignas(16) char chunk[CHUNK * 8];
    union acc a;
    begin(r, &a);
    for (int64_t at = 0; at < r->x->dims[r->axis]; at += CHUNK) {
        int m = (int)MC_MIN(r->x->dims[r->axis] - at, CHUNK);
        mc_convert(r->row->read, chunk, size, r->x->dtype, x + at * sx, sx, m);
        if (r->way == SUM && r->row->read == MC_FLOAT64) {
            sum_block(&a, (double *)(void *)chunk, m);
        } else {
            r->row->run[r->way](&a, chunk, m);
        }
        mc_convert(r->y->dtype, y + at * sy, sy, r->row->read, chunk, size, m);
    }
}

/* `n` lines at once, adjacent along the last axis, in the order of memory. */
static void across(const struct running *r, const char *x, char *y, int64_t n)
{
    const int64_t size = mc_dtypes[r->row->read].size, last = r->x->rank - 1, sx = r->x->strides[last],
                  sy = r->y->strides[last];
    _Alignas(16) char chunk[CHUNK * 8], a[CHUNK * 8];
    for (int64_t from = 0; from < n; from += CHUNK) {
        int m = (int)MC_MIN(n - from, CHUNK);
        for (int i = 0; i < m; i++) {
            begin(r, a + i * size);
        }
        for (int64_t at = 0; at < r->x->dims[r->axis]; at++) {
            const char *px = x + from * sx + at * r->x->strides[r->axis];
            mc_convert(r->row->read, chunk, size, r->x->dtype, px, sx, m);
            r->row->step[r->way](a, chunk, m);
            mc_convert(r->y->dtype, y + from * sy + at * r->y->strides[r->axis], sy, r->row->read, chunk,
                       size, m);
        }
    }
}

static mc_status running_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct running r = {
        .x = in[0], .y = out[0], .axis = (int)mc_attr_int(&n->attr[0]), .way = way_of(n->op)
    };
    const mc_array *x = in[0], *y = out[0];
    bool side = r.axis + 1 < x->rank;
    int rank = 0;
    int64_t dims[MC_MAX_RANK], sx[MC_MAX_RANK], sy[MC_MAX_RANK], n_side = side ? x->dims[x->rank - 1] : 0;
    struct mc_walk w;

    r.row = &classes[mc_dtypes[mc_sum_acc(y->dtype)].cls];
    for (int i = 0; i < x->rank - side; i++) {
        if (i != r.axis) {
            dims[rank] = x->dims[i];
            sx[rank] = x->strides[i];
            sy[rank++] = y->strides[i];
        }
    }
    if (!mc_walk_begin(&w, rank, dims, 0, 2, (char *[]){ x->data, y->data }, (const int64_t *[]){ sx, sy })) {
        return MC_OK;
    }
    do {
        if (side) {
            across(&r, w.p[0], w.p[1], n_side);
        } else {
            along(&r, w.p[0], w.p[1]);
        }
    } while (mc_walk_next(&w));
    return MC_OK;
}

/* ---- recurrences ---- */

enum { RECUR_AXIS, RECUR_START, RECUR_BACK };

static mc_status recurrence_infer(struct mc_infer *q)
{
    int axis;
    q->out[0] = q->in[0];
    if (!mc_is_float(q->in[0].dtype) || q->in[1].dtype != q->in[0].dtype || q->in[1].rank != q->in[0].rank) {
        return mc_fail(MC_ETYPE, "%s: x and v must be floats of one dtype and rank", q->op->name);
    }
    for (int i = 0; i < q->in[0].rank; i++) {
        const int64_t a = q->in[0].dims[i], b = q->in[1].dims[i];
        if (a >= 0 && b >= 0 && a != b) {
            return mc_fail(MC_ESHAPE, "%s: x and v must have the same shape", q->op->name);
        }
        q->out[0].dims[i] = MC_MAX(a, b);
    }
    return mc_axis_check(q->op->name, mc_attr_int(&q->attr[RECUR_AXIS]), q->in[0].rank, &axis);
}

static mc_status recurrence_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const int axis = (int)mc_attr_int(&n->attr[RECUR_AXIS]);
    const bool back = mc_attr_int(&n->attr[RECUR_BACK]) != 0;
    const mc_array *x = in[0], *v = in[1], *y = out[0];
    const int64_t count = x->dims[axis], sx = x->strides[axis], sv = v->strides[axis], sy = y->strides[axis];
    int rank = 0;
    int64_t dims[MC_MAX_RANK], strides[3][MC_MAX_RANK];
    struct mc_walk w;
    for (int i = 0; i < x->rank; i++) {
        if (i != axis) {
            dims[rank] = x->dims[i];
            strides[0][rank] = x->strides[i];
            strides[1][rank] = v->strides[i];
            strides[2][rank++] = y->strides[i];
        }
    }
    if (!mc_walk_begin(&w, rank, dims, 0, 3, (char *[]){ x->data, v->data, y->data },
                       (const int64_t *[]){ strides[0], strides[1], strides[2] })) {
        return MC_OK;
    }
    do {
        double s = n->attr[RECUR_START].real, a, b;
        for (int64_t k = 0; k < count; k++) {
            const int64_t i = back ? count - 1 - k : k;
            mc_convert(MC_FLOAT64, &a, 0, x->dtype, w.p[0] + i * sx, 0, 1);
            mc_convert(MC_FLOAT64, &b, 0, v->dtype, w.p[1] + i * sv, 0, 1);
            mc_convert(y->dtype, w.p[2] + i * sy, 0, MC_FLOAT64, &s, 0, 1);
            s = a * s + b;
        }
    } while (mc_walk_next(&w));
    return MC_OK;
}

/* ---- gradients ---- */

static bool is_smooth(const mc_node *n, mc_node *const *g)
{
    return g[0] && mc_is_float(n->in[0]->type.dtype);
}

static mc_node *with_axis(const mc_node *n, const char *text, mc_node *g)
{
    struct mc_bind b[4] = { { "x", n->in[0], NULL },
                            { "v", n->nin > 1 ? n->in[1] : NULL, NULL },
                            { "g", g, NULL },
                            { "axis", NULL, &n->attr[0] } };
    return mc_expr(n->graph, text, b, 4);
}

static mc_node *cumsum_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return is_smooth(n, g) ? with_axis(n, "cumsum_behind(g, axis=axis)", g[0]) : g[0];
}

static mc_node *cumprod_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return is_smooth(n, g) ? with_axis(n, "cumprod_back(x, g, axis=axis)", g[0]) : g[0];
}

/* Each result's gradient goes to the first element that it equals: where the result last changed. */
static mc_node *extreme_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const int axis = (int)mc_attr_int(&n->attr[0]);
    struct mc_bind b[] = { { "x", n->in[0], NULL },       { "m", n, NULL },      { "g", g[0], NULL },
                           { "axis", NULL, &n->attr[0] }, { "all", NULL, NULL }, { "first", NULL, NULL },
                           { "u", NULL, NULL },           { "v", NULL, NULL } };
    (void)wrt;
    if (!is_smooth(n, g)) {
        return g[0];
    }
    b[4].node = mc_expr(n->graph, "or_(isnan(m), True)", b, 4);
    b[5].node = mc_part(b[4].node, axis, NULL, mc_node_int(n->graph, 1));
    b[6].node = mc_part(n, axis, mc_node_int(n->graph, 1), NULL);
    b[7].node = mc_part(n, axis, NULL, mc_node_int(n->graph, -1));
    return mc_expr(
        n->graph,
        "p = cummax(where(join(first, neq(u, v), axis=axis), cumsum(all, axis=axis) - 1, 0), axis=axis); "
        "put_along_axis(zeros_like(x), p, g, axis=axis, mode='add')",
        b, NELEM(b));
}

/* The gradient of cumprod_back(x, v) = p * (v + t), with p the products of the preceding elements and
 * t_i = x_k * (v_k + t_k) for k = i + 1. No element is compared with 0. */
static mc_node *back_grad(mc_node *n, int wrt, mc_node *const *g)
{
    static const char *const by[] = {
        "p = recurrence(x, zeros_like(x), axis=axis, start=1); s = v + recurrence(x, x * v, axis=axis, back=True); "
        "p * recurrence(x, g * s, axis=axis, back=True) + s * recurrence(x, g * p, axis=axis)",
        "p = recurrence(x, zeros_like(x), axis=axis, start=1); g * p + x * recurrence(x, g * p, axis=axis)" };
    return with_axis(n, by[wrt], g[0]);
}

/* For y_(i+1) = x_i * y_i + v_i, the gradient of y_(i+1) is r_i, with r_(i-1) = x_i * r_i + g_i. */
static mc_node *recurrence_grad(mc_node *n, int wrt, mc_node *const *g)
{
    struct mc_bind b[] = { { "x", n->in[0], NULL },
                           { "g", g[0], NULL },
                           { "axis", NULL, &n->attr[RECUR_AXIS] } };
    mc_node *r = mc_expr(n->graph,
                         mc_attr_int(&n->attr[RECUR_BACK]) ? "recurrence(x, g, axis=axis)"
                                                           : "recurrence(x, g, axis=axis, back=True)",
                         b, 3);
    return wrt ? r : mc_expr(n->graph, "y * r", (struct mc_bind[]){ { "y", n, NULL }, { "r", r, NULL } }, 2);
}

#define RUNNING                                                                                    \
    .params = "x, axis=None:int", .flags = OP_LINES, .nout = 1, .infer = running_infer, .size = mc_same_size, \
    .eval = running_eval
const struct mc_op mc_ops_running[] = {
    { .name = "cumsum", RUNNING, .line = LINE_SUMS, .build = build_cumsum, .grad = cumsum_grad,
      .doc = MANUAL("cumulative sum along an axis; with axis=None of flattened x") },
    BUILT({ .name = "cumsum_behind", .flags = OP_HIDDEN, .params = "x, axis:int", .nout = 1,
      .formula = "flip(cumsum(flip(x, axis=axis), axis=axis), axis=axis)",
      .doc = MANUAL("cumulative sum along an axis from its end") })
    /* With s the elements with zeros replaced by 1, c = cumprod(s), and k the number of zeros so far,
     * cumprod(x) is c where k = 0. The derivative by an element is c / s where no other zero is counted in
     * k. Nothing is divided by zero. */
    { .name = "cumprod_back", .flags = OP_HIDDEN | OP_EXPANDS, .params = "x, v, axis:int", .nout = 1, .size = mc_same_size,
      .infer = mc_formula_infer, .eval = mc_formula_eval, .grad = back_grad,
      .formula = "z = eq(x, 0); s = where(z, 1, x); k = cumsum(z, axis=axis); c = v * cumprod(s, axis=axis); "
                 "where(z, cumsum_behind(where(eq(k, 1), c, 0), axis=axis), cumsum_behind(where(eq(k, 0), c, 0), axis=axis)) / s",
      .doc = MANUAL("the gradient of cumprod(x), from the gradient v of its result") },
    { .name = "recurrence", .flags = OP_HIDDEN | OP_LINES, .line = LINE_RECURS, .params = "x, v, axis:int, start=0:real, back=False:bool", .nout = 1,
      .infer = recurrence_infer, .size = mc_same_size, .eval = recurrence_eval, .grad = recurrence_grad,
      .doc = MANUAL("y[0] = start, y[i + 1] = x[i] * y[i] + v[i] along an axis; back: from the end of the axis") },
    { .name = "cumprod", RUNNING, .line = LINE_PRODUCTS, .build = build_cumprod, .grad = cumprod_grad,
      .doc = MANUAL("cumulative product along an axis; with axis=None of flattened x") },
    { .name = "cummax", RUNNING, .line = LINE_MOST, .build = build_cummax, .grad = extreme_grad,
      .doc = MANUAL("the largest of the first elements along an axis, from a NaN on NaN; None flattens") },
    { .name = "cummin", RUNNING, .line = LINE_LEAST, .build = build_cummin, .grad = extreme_grad,
      .doc = MANUAL("the smallest of the first elements along an axis, from a NaN on NaN; None flattens") },
};
const int mc_nops_running = (int)NELEM(mc_ops_running);
