/* running.c: sums and products that run along one axis.
 *
 * Invariant: a node's axis is never negative and never None; flattening is a node of its own. */
#include "op/op.h"

enum { CHUNK = 256 }; /* elements converted and added at a time */

union acc { double f64; float f32; int64_t i64; uint64_t u64; };
typedef void run(union acc *a, void *px, int n); /* in place */

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
    }
RUNS(f64, double)
RUNS(f32, float)
RUNS(i64, int64_t)
RUNS(u64, uint64_t)

static const struct class_row {
    mc_dtype read; /* the dtype whose layout equals the class: what chunks are converted to */
    run *run[2];   /* sum, product */
} classes[MC_NCLASS] = {
    [CLASS_I64] = { MC_INT64, { sum_i64, prod_i64 } },
    [CLASS_U64] = { MC_UINT64, { sum_u64, prod_u64 } },
    [CLASS_F32] = { MC_FLOAT32, { sum_f32, prod_f32 } },
    [CLASS_F64] = { MC_FLOAT64, { sum_f64, prod_f64 } },
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

static mc_node *same_size(mc_node *n, int item, int axis)
{
    (void)item;
    return mc_size_of(n->in[0], axis);
}

static mc_status running_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const mc_array *x = in[0];
    mc_array *y = out[0];
    bool product = strcmp(n->op->name, "cumprod") == 0;
    const struct class_row *row = &classes[mc_dtypes[mc_sum_acc(y->dtype)].cls];
    int axis = (int)mc_attr_int(&n->attr[0]), rank = 0;
    int64_t dims[MC_MAX_RANK], sx[MC_MAX_RANK], sy[MC_MAX_RANK], size = mc_dtypes[row->read].size;
    struct mc_walk w;
    _Alignas(16) char chunk[CHUNK * 8];

    for (int i = 0; i < x->rank; i++) {
        if (i != axis) {
            dims[rank] = x->dims[i];
            sx[rank] = x->strides[i];
            sy[rank++] = y->strides[i];
        }
    }
    if (!mc_walk_begin(&w, rank, dims, 0, 2, (char *[]){ x->data, y->data }, (const int64_t *[]){ sx, sy })) {
        return MC_OK;
    }
    do {
        union acc a;
        mc_store_i64(row->read, &a, product);
        for (int64_t at = 0; at < x->dims[axis]; at += CHUNK) {
            int m = (int)MC_MIN(x->dims[axis] - at, CHUNK);
            mc_convert(row->read, chunk, size, x->dtype, w.p[0] + at * x->strides[axis], x->strides[axis], m);
            row->run[product](&a, chunk, m);
            mc_convert(y->dtype, w.p[1] + at * y->strides[axis], y->strides[axis], row->read, chunk, size, m);
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
    .params = "x, axis=None:int", .nout = 1, .infer = running_infer, .size = same_size, .eval = running_eval
const struct mc_op mc_ops_running[] = {
    { .name = "cumsum", RUNNING, .build = build_cumsum, .grad = cumsum_grad,
      .doc = "sums of the first elements along an axis; None flattens" },
    { .name = "cumprod", RUNNING, .build = build_cumprod, .grad = cumprod_grad,
      .doc = "products of the first elements along an axis; None flattens" },
};
const int mc_nops_running = (int)NELEM(mc_ops_running);
