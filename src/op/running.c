/* running.c: sums and products that run along one axis.
 *
 * Invariant: a node's axis is never negative and never None; flattening is a node of its own. */
#include "op/op.h"

enum { CHUNK = 256 }; /* elements converted and added at a time */

union acc { double f64; float f32; int64_t i64; uint64_t u64; };
typedef void run(union acc *a, void *px, int n); /* in place */

typedef void step(void *a, void *px, int n);          /* n lines at once, each by one */

#define RUNS(cls, T)                                                                               \
    static void sum_##cls(union acc *a, void *px, int n)                                           \
    {                                                                                              \
        T *x = px;                                                                                 \
        for (int i = 0; i < n; i++) {                                                              \
            x[i] = a->cls += x[i];                                                                 \
        }                                                                                          \
    }                                                                                              \
    static void prod_##cls(union acc *a, void *px, int n)                                          \
    {                                                                                              \
        T *x = px;                                                                                 \
        for (int i = 0; i < n; i++) {                                                              \
            x[i] = a->cls *= x[i];                                                                 \
        }                                                                                          \
    }                                                                                              \
    static void sums_##cls(void *pa, void *px, int n)                                              \
    {                                                                                              \
        T *a = pa, *x = px;                                                                        \
        for (int i = 0; i < n; i++) {                                                              \
            x[i] = a[i] += x[i];                                                                   \
        }                                                                                          \
    }                                                                                              \
    static void prods_##cls(void *pa, void *px, int n)                                             \
    {                                                                                              \
        T *a = pa, *x = px;                                                                        \
        for (int i = 0; i < n; i++) {                                                              \
            x[i] = a[i] *= x[i];                                                                   \
        }                                                                                          \
    }
RUNS(f64, double)
RUNS(f32, float)
RUNS(i64, int64_t)
RUNS(u64, uint64_t)

static const struct class_row {
    mc_dtype read; /* the dtype whose layout equals the class: what chunks are converted to */
    run *run[2];   /* sum, product */
    step *step[2];
} classes[MC_NCLASS] = {
    [CLASS_I64] = { MC_INT64, { sum_i64, prod_i64 }, { sums_i64, prods_i64 } },
    [CLASS_U64] = { MC_UINT64, { sum_u64, prod_u64 }, { sums_u64, prods_u64 } },
    [CLASS_F32] = { MC_FLOAT32, { sum_f32, prod_f32 }, { sums_f32, prods_f32 } },
    [CLASS_F64] = { MC_FLOAT64, { sum_f64, prod_f64 }, { sums_f64, prods_f64 } },
};

static mc_node *build(mc_graph *g, const char *name, mc_node *x, const struct mc_attr *axis)
{
    int at = 0;
    if (axis->none && x->type.rank != 1) {
        x = mc_call_op(g, "flatten", 1, &x, NULL);
    } else if (!axis->none && mc_axis_check(name, mc_attr_int(axis), x->type.rank, &at) < 0) {
        return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
    }
    int64_t v = at;
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &v };
    return mc_node_make(g, mc_op_find(name), 1, &x, &a);
}

static mc_node *build_cumsum(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return build(g, "cumsum", in[0], &attr[0]);
}

static mc_node *build_cumprod(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return build(g, "cumprod", in[0], &attr[0]);
}

static mc_status running_infer(struct mc_infer *q)
{
    int axis;
    q->out[0] = q->in[0];
    q->out[0].dtype = mc_sum_dtype(q->in[0].dtype);
    return mc_axis_check(q->op->name, mc_attr_int(&q->attr[0]), q->in[0].rank, &axis);
}

struct running {
    const struct class_row *row;
    const mc_array *x;
    mc_array *y;
    int axis;
    bool product;
};

/* One line after the other. */
static void along(const struct running *r, const char *x, char *y)
{
    const int64_t size = mc_dtypes[r->row->read].size, sx = r->x->strides[r->axis], sy = r->y->strides[r->axis];
    _Alignas(16) char chunk[CHUNK * 8];
    union acc a;
    mc_store_i64(r->row->read, &a, r->product);
    for (int64_t at = 0; at < r->x->dims[r->axis]; at += CHUNK) {
        int m = (int)MC_MIN(r->x->dims[r->axis] - at, CHUNK);
        mc_convert(r->row->read, chunk, size, r->x->dtype, x + at * sx, sx, m);
        r->row->run[r->product](&a, chunk, m);
        mc_convert(r->y->dtype, y + at * sy, sy, r->row->read, chunk, size, m);
    }
}

/* `n` lines side by side along the last axis, as they lie in memory. */
static void across(const struct running *r, const char *x, char *y, int64_t n)
{
    const int64_t size = mc_dtypes[r->row->read].size, last = r->x->rank - 1, sx = r->x->strides[last], sy = r->y->strides[last];
    _Alignas(16) char chunk[CHUNK * 8], a[CHUNK * 8];
    for (int64_t from = 0; from < n; from += CHUNK) {
        int m = (int)MC_MIN(n - from, CHUNK);
        for (int i = 0; i < m; i++) {
            mc_store_i64(r->row->read, a + i * size, r->product);
        }
        for (int64_t at = 0; at < r->x->dims[r->axis]; at++) {
            const char *px = x + from * sx + at * r->x->strides[r->axis];
            mc_convert(r->row->read, chunk, size, r->x->dtype, px, sx, m);
            r->row->step[r->product](a, chunk, m);
            mc_convert(r->y->dtype, y + from * sy + at * r->y->strides[r->axis], sy, r->row->read, chunk, size, m);
        }
    }
}

static mc_status running_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct running r = { .x = in[0], .y = out[0], .axis = (int)mc_attr_int(&n->attr[0]), .product = mc_is_op(n, "cumprod") };
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

/* ---- gradients ---- */

/* x summed along the axis from behind. */
static mc_node *sum_from_behind(mc_node *x, int axis)
{
    struct mc_str flip = { 0 };
    mc_str_add(&flip, "x[");
    for (int i = 0; i < axis; i++) {
        mc_str_add(&flip, ":, ");
    }
    mc_str_add(&flip, "::-1]");
    mc_node *y = flip.bad ? mc_node_fail(x->graph, MC_EMEMORY, "%s", mc_last_error())
                          : mc_expr(x->graph, flip.s, (struct mc_bind[]){ { "x", x, NULL } }, 1);
    y = mc_call_op(x->graph, "cumsum", 1, &y, "axis=%d", axis);
    y = flip.bad ? y : mc_expr(x->graph, flip.s, (struct mc_bind[]){ { "x", y, NULL } }, 1);
    mc_str_free(&flip);
    return y;
}

static bool is_smooth(const mc_node *n, mc_node *const *g)
{
    return g[0] && mc_is_float(n->in[0]->type.dtype);
}

static mc_node *cumsum_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return is_smooth(n, g) ? sum_from_behind(g[0], (int)mc_attr_int(&n->attr[0])) : g[0];
}

/* With s the elements, zeros replaced by 1, c = cumprod(s) and k the zeros so far, y is c where k = 0.
 * An element's derivative is c / s where k counts no zero but itself: nothing is divided by zero.
 * (Differentiated again it is right unless two of the factors are zero.) */
static mc_node *cumprod_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    if (!is_smooth(n, g)) {
        return g[0];
    }
    int axis = (int)mc_attr_int(&n->attr[0]);
    struct mc_bind b[5] = { { "x", n->in[0], NULL }, { "g", g[0], NULL }, { "axis", NULL, &n->attr[0] } };
    mc_node *zero = mc_expr(n->graph, "eq(x, 0)", b, 3);
    mc_node *safe = mc_expr(n->graph, "where(eq(x, 0), 1, x)", b, 3);
    b[3] = (struct mc_bind){ "s", safe, NULL };
    b[4] = (struct mc_bind){ "z", zero, NULL };
    mc_node *none = mc_expr(n->graph, "where(eq(cumsum(z, axis=axis), 0), g * cumprod(s, axis=axis), 0)", b, 5);
    mc_node *one = mc_expr(n->graph, "where(eq(cumsum(z, axis=axis), 1), g * cumprod(s, axis=axis), 0)", b, 5);
    b[0] = (struct mc_bind){ "none", sum_from_behind(none, axis), NULL };
    b[1] = (struct mc_bind){ "one", sum_from_behind(one, axis), NULL };
    return mc_expr(n->graph, "where(z, one, none) / s", b, 5);
}

#define RUNNING                                                                                    \
    .params = "x, axis=None:int", .flags = OP_LINES, .nout = 1, .infer = running_infer, .size = mc_same_size, .eval = running_eval
const struct mc_op mc_ops_running[] = {
    { .name = "cumsum", RUNNING, .build = build_cumsum, .grad = cumsum_grad,
      .doc = "sums of the first elements along an axis; None flattens" },
    { .name = "cumprod", RUNNING, .build = build_cumprod, .grad = cumprod_grad,
      .doc = "products of the first elements along an axis; None flattens" },
};
const int mc_nops_running = (int)NELEM(mc_ops_running);
