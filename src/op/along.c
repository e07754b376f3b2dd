/* along.c: ops that work along one axis of x, by index tensors and slices: composed of other ops, but for
 * scatter_pick, which has loops. */
#include "op/index.h"
#include "op/lines.h"

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

/* ---- index tensors for all axes: index along one, 0, 1, 2, ... along the others ---- */

struct places {
    int rank, axis;
    mc_node *at[MC_MAX_RANK];
    int64_t axes[MC_MAX_RANK];
};

static bool places_make(struct places *p, const char *op, mc_node *x, mc_node *index,
                        const struct mc_attr *axis)
{
    mc_graph *g = x->graph;
    p->rank = x->type.rank;
    if (mc_axis_check(op, mc_attr_int(axis), p->rank, &p->axis) < 0) {
        failed(g);
        return false;
    }
    if (index->type.rank != p->rank || !mc_is_int(index->type.dtype)) {
        mc_node_fail(g, mc_is_int(index->type.dtype) ? MC_ESHAPE : MC_ETYPE,
                     "%s: the indices must be integers and have the rank of x, %d, not %s of rank %d", op,
                     p->rank, mc_dtype_name(index->type.dtype), index->type.rank);
        return false;
    }
    for (int i = 0; i < p->rank; i++) {
        int64_t order[MC_MAX_RANK];
        const int64_t a = x->type.dims[i], b = index->type.dims[i];
        if (i != p->axis && a >= 0 && b >= 0 && a != b && a != 1 && b != 1) {
            mc_node_fail(g, MC_ESHAPE, "%s: along axis %d x has size %lld, the indices have %lld", op, i,
                         (long long)a, (long long)b);
            return false;
        }
        for (int k = 0; k < p->rank; k++) {
            order[k] = k == i ? 0 : -1;
        }
        mc_node *size = mc_size_of(x, i), *count = mc_call_op(g, "arange", 1, &size, NULL);
        struct mc_attr a_ = { .kind = ATTR_INTS, .n = p->rank, .ints = order };
        p->at[i] = i == p->axis ? index : mc_apply(g, mc_op_named(g, "dimshuffle"), 1, &count, &a_);
        p->axes[i] = i;
    }
    return true;
}

static mc_node *gather_at(mc_node *x, const struct places *p)
{
    mc_node *in[1 + MC_MAX_RANK] = { x };
    struct mc_attr axes = { .kind = ATTR_INTS, .n = p->rank, .ints = (int64_t *)(uintptr_t)p->axes };
    memcpy(in + 1, p->at, (size_t)p->rank * sizeof *in);
    return mc_apply(x->graph, mc_op_named(x->graph, "gather"), 1 + p->rank, in, &axes);
}

static mc_node *build_take_along(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct places p;
    (void)nin;
    return places_make(&p, "take_along_axis", in[0], in[1], &attr[0]) ? gather_at(in[0], &p) : g->error;
}

/* ---- scatter: elements of v put to x at indices along an axis ---- */

static mc_node *build_put_along(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    static const char *const ways[] = { "set", "add", "max", "min" };
    struct places p;
    size_t way = 0;
    (void)nin;
    while (way < NELEM(ways) && strcmp(ways[way], attr[1].text) != 0) {
        way++;
    }
    if (way == NELEM(ways)) {
        return mc_node_fail(g, MC_EARG,
                            "put_along_axis: there is no mode '%s'; there are set, add, max and min",
                            attr[1].text);
    }
    if (!places_make(&p, "put_along_axis", in[0], in[1], &attr[0])) {
        return g->error;
    }
    if (way < 2) {
        struct mc_attr axes = { .kind = ATTR_INTS, .n = p.rank, .ints = p.axes };
        return mc_region_put("gather_update", in[0], in[2], p.rank, p.at, &axes, way == 0);
    }
    mc_node *size[MC_MAX_RANK];
    for (int i = 0; i < p.rank; i++) {
        size[i] = mc_size_of(i == p.axis ? in[1] : in[0], i);
    }
    mc_node *shape = mc_shape_stack(g, p.rank, size);
    mc_node *arg[3] = { in[0],
                        mc_call_op(g, "alloc", 2, (mc_node *[]){ mc_cast_to(in[2], in[0]->type.dtype), shape }, NULL),
                        mc_call_op(g, "alloc", 2, (mc_node *[]){ mc_cast_to(in[1], MC_INT64), shape }, NULL) };
    return mc_call_op(g, "scatter_pick", 3, arg, "axis=%d, least=%s", p.axis, way == 3 ? "True" : "False");
}

static mc_status pick_infer(struct mc_infer *q)
{
    int axis;
    const struct mc_type *x = &q->in[0], *v = &q->in[1], *i = &q->in[2];
    q->out[0] = *x;
    TRY(mc_axis_check(q->op->name, mc_attr_int(&q->attr[0]), x->rank, &axis));
    for (int k = 0; k < x->rank; k++) {
        const bool along = k == axis;
        if ((v->dims[k] >= 0 && i->dims[k] >= 0 && v->dims[k] != i->dims[k]) ||
            (!along && x->dims[k] >= 0 && v->dims[k] >= 0 && x->dims[k] != v->dims[k])) {
            return mc_fail(MC_ESHAPE, "put_along_axis: the sizes of axis %d differ", k);
        }
    }
    return MC_OK;
}

/* Is a to replace b? A NaN replaces everything. */
static bool wins(mc_dtype d, const char *a, const char *b, bool least)
{
    if (mc_is_float(d)) {
        const double u = mc_load_f64(d, a), v = mc_load_f64(d, b);
        return u != u || (least ? u < v : u > v);
    }
    const uint64_t flip = mc_dtypes[d].cls == CLASS_U64 ? 0 : UINT64_C(1) << 63;
    const uint64_t u = (uint64_t)mc_load_i64(d, a) ^ flip, v = (uint64_t)mc_load_i64(d, b) ^ flip;
    return least ? u < v : u > v;
}

static mc_status pick_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const mc_array *v = in[1], *index = in[2];
    mc_array *y = out[0];
    const bool least = mc_attr_int(&n->attr[1]) != 0;
    const size_t size = mc_dtypes[y->dtype].size;
    struct mc_lines l;
    int axis;
    TRY(mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), y->rank, &axis));
    TRY(mc_array_assign(y, in[0]));
    const int64_t many = y->dims[axis];
    if (!mc_lines_begin(&l, axis, 3, (const mc_array *[]){ index, v, y })) {
        return MC_OK;
    }
    do {
        for (int64_t i = 0; i < l.count; i++) {
            const int64_t to = mc_load_i64(index->dtype, l.walk.p[0] + i * l.step[0]);
            if (to < -many || to >= many) {
                return mc_fail(MC_EINDEX, "index %lld is out of range for axis %d with size %lld",
                               (long long)to, axis, (long long)many);
            }
            char *at = l.walk.p[2] + (to < 0 ? to + many : to) * l.step[2];
            const char *from = l.walk.p[1] + i * l.step[1];
            if (wins(y->dtype, from, at, least)) {
                memcpy(at, from, size);
            }
        }
    } while (mc_walk_next(&l.walk));
    return MC_OK;
}

/* As of max: all elements that equal the result receive the whole gradient. */
static mc_node *pick_grad(mc_node *n, int wrt, mc_node *const *g)
{
    struct mc_bind b[] = { { "x", n->in[0], NULL }, { "v", n->in[1], NULL },       { "i", n->in[2], NULL },
                           { "y", n, NULL },        { "axis", NULL, &n->attr[0] }, { "g", g[0], NULL } };
    if (wrt == 2 || !g[0] || !mc_is_float(n->type.dtype)) {
        return wrt == 2 ? NULL : g[0];
    }
    return mc_expr(n->graph,
                   wrt ? "where(eq(v, take_along_axis(y, i, axis=axis)), take_along_axis(g, i, axis=axis), 0)"
                       : "where(eq(x, y), g, 0)",
                   b, NELEM(b));
}

/* ---- the k largest ---- */

/* Where the elements of x stand in falling order, equal ones in the order of x; or, if k is negative, in
 * rising order: the first |k|. */
static mc_node *first_of_order(mc_graph *g, const char *op, mc_node *x, int64_t k,
                               const struct mc_attr *axis, int *at)
{
    int64_t count = k < 0 ? -k : k;
    if (mc_axis_check(op, mc_attr_int(axis), x->type.rank, at) < 0) {
        return failed(g);
    }
    if (x->type.dims[*at] >= 0 && count > x->type.dims[*at]) {
        return mc_node_fail(g, MC_ESHAPE, "%s: %lld of %lld elements", op, (long long)count,
                            (long long)x->type.dims[*at]);
    }
    return mc_call_op(g, k < 0 ? "first_of_rising" : "first_of_falling", 1, &x, "axis=%d, k=%lld", *at,
                      (long long)count);
}

static mc_node *top(mc_graph *g, const char *op, mc_node *x, const struct mc_attr *attr, mc_node **where)
{
    int axis;
    *where = first_of_order(g, op, x, mc_attr_int(&attr[0]), &attr[1], &axis);
    mc_node *in[2] = { x, *where };
    return mc_is_error(*where) ? *where : mc_call_op(g, "take_along_axis", 2, in, "axis=%d", axis);
}

static mc_node *build_topk(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *where;
    (void)nin;
    return top(g, "topk", in[0], attr, &where);
}

static mc_node *build_argtopk(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int axis;
    (void)nin;
    return first_of_order(g, "argtopk", in[0], mc_attr_int(&attr[0]), &attr[1], &axis);
}

static mc_node *build_both(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *pair[2];
    (void)nin;
    pair[0] = top(g, "topk_and_argtopk", in[0], attr, &pair[1]);
    return mc_is_error(pair[0]) ? pair[0] : mc_node_make(g, &mc_op_tuple, 2, pair, NULL);
}

/* ---- quantiles ---- */

/* The formula over x's lines along its last axis, in s, and q; the axis that q adds goes in front. */
static mc_node *of_sorted(mc_graph *g, const char *op, mc_node *x, mc_node *q,
                          const struct mc_attr *axis, bool keep, const char *text)
{
    int at = 0, rank = x->type.rank;
    if (axis->none) {
        x = mc_call_op(g, "ravel", 1, &x, NULL);
    } else if (mc_axis_check(op, mc_attr_int(axis), rank, &at) < 0) {
        return failed(g);
    } else {
        x = mc_call_op(g, "moveaxis", 1, &x, "source=%d, destination=-1", at);
    }
    struct mc_bind b[] = { { "x", x, NULL }, { "q", q, NULL }, { "s", NULL, NULL } };
    b[2].node = mc_expr(g, "sort(as_float(x))", b, 1);
    mc_node *y = mc_expr(g, text, b, 3);
    const int more = q && !mc_is_error(q) ? q->type.rank : 0;
    if (more && !mc_is_error(y)) {
        y = mc_call_op(g, "moveaxis", 1, &y, "source=-1, destination=0");
    }
    for (int i = 0; keep && axis->none && i < rank && !mc_is_error(y); i++) {
        y = mc_call_op(g, "expand_dims", 1, &y, "axis=%d", more);
    }
    return keep && !axis->none && !mc_is_error(y) ? mc_call_op(g, "expand_dims", 1, &y, "axis=%d", at + more)
                                                  : y;
}

static mc_node *build_median(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return of_sorted(g, "median", in[0], NULL, &attr[0], mc_attr_int(&attr[1]) != 0,
                     "n = size(s, -1) - 1; a = take(s, n // 2, axis=-1); b = take(s, (n + 1) // 2, axis=-1); "
                     "where(isnan(take(s, n, axis=-1)), nan, where(eq(a, b), a, 0.5 * a + 0.5 * b))");
}

/* The methods of NumPy that differ in the position p of the quantile between elements 0 and n. */
static const struct { const char *name, *position; } methods[] = {
    { "linear",    "p = q * cast(n, float64)" },
    { "lower",     "p = floor(q * cast(n, float64))" },
    { "higher",    "p = ceil(q * cast(n, float64))" },
    { "nearest",   "p = round(q * cast(n, float64))" },
    { "midpoint",  "u = q * cast(n, float64); p = 0.5 * (floor(u) + ceil(u))" },
    { "hazen",     "p = clip(q * cast(n + 1, float64) - 0.5, 0, cast(n, float64))" },
    { "weibull",   "p = clip(q * cast(n + 2, float64) - 1, 0, cast(n, float64))" },
    { "median_unbiased", "p = clip(q * (cast(n + 1, float64) + 1 / 3) + 1 / 3 - 1, 0, cast(n, float64))" },
    { "normal_unbiased", "p = clip(q * (cast(n + 1, float64) + 0.25) + 0.375 - 1, 0, cast(n, float64))" },
};

static mc_node *quantile(mc_graph *g, const char *op, mc_node *x, mc_node *q, const struct mc_attr *attr)
{
    struct mc_str text = { 0 };
    const char *position = NULL;
    for (size_t i = 0; i < NELEM(methods); i++) {
        position = strcmp(attr[2].text, methods[i].name) == 0 ? methods[i].position : position;
    }
    if (!position) {
        return mc_node_fail(
            g, MC_EARG,
            "%s: there is no method '%s'; there are linear, lower, higher, nearest, midpoint, hazen, "
            "weibull, median_unbiased and normal_unbiased",
            op, attr[2].text);
    }
    if (q->type.rank > 1) {
        return mc_node_fail(g, MC_ESHAPE, "%s: q is a number or a vector", op);
    }
    mc_str_addf(
        &text,
        "n = size(s, -1) - 1; %s; l = floor(p); i = cast(l, int64); t = cast(p - l, s.dtype); "
        "a = take(s, i, axis=-1); b = take(s, minimum(i + 1, n), axis=-1); "
        "v = where(or_(eq(a, b), eq(t, 0)), a, where(t < 0.5, a + (b - a) * t, b - (b - a) * (1 - t))); "
        "where(isnan(take(s, %s, axis=-1)), nan, v)",
        position, q->type.rank ? "[n]" : "n");
    mc_node *y = text.bad ? mc_node_no_memory(g)
                          : of_sorted(g, op, x, mc_cast_to(q, MC_FLOAT64), &attr[0],
                                      mc_attr_int(&attr[1]) != 0, text.s);
    mc_str_free(&text);
    return y;
}

static mc_node *build_quantile(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return quantile(g, "quantile", in[0], in[1], attr);
}

static mc_node *build_percentile(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return quantile(g, "percentile", in[0],
                    mc_expr(g, "cast(q, float64) / 100", (struct mc_bind[]){ { "q", in[1], NULL } }, 1),
                    attr);
}

/* ---- differences ---- */

static mc_node *build_diff(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *x = in[0];
    int axis;
    (void)nin;
    if (mc_axis_check("diff", mc_attr_int(&attr[1]), x->type.rank, &axis) < 0) {
        return failed(g);
    }
    if (mc_attr_int(&attr[0]) < 0) {
        return mc_node_fail(g, MC_EARG, "diff: n is not negative");
    }
    for (int64_t i = mc_attr_int(&attr[0]); i > 0 && !mc_is_error(x); i--) {
        mc_node *pair[2] = { mc_part(x, axis, mc_node_int(g, 1), NULL),
                             mc_part(x, axis, NULL, mc_node_int(g, -1)) };
        x = mc_call_op(g, x->type.dtype == MC_BOOL ? "neq" : "sub", 2, pair, NULL);
    }
    return x;
}

#define TABLE "x = [[3., 1, 2], [0, 5, 4]]; "
const struct mc_op mc_ops_along[] = {
    BUILT({ .name = "take_along_axis", .params = "x, index, axis=-1:int", .nout = 1, .build = build_take_along,
      .example = MANUAL(TABLE "index = [[2, 0], [1, 1]]; take_along_axis(x, index)"),
      .doc = MANUAL("elements of each line of x along an axis, at the indices of the same line") })
    BUILT({ .name = "put_along_axis", .params = "x, index, v, axis=-1:int, mode=set:text", .nout = 1, .build = build_put_along,
      .example = MANUAL(TABLE "index = [[0, 0], [1, 2]]; put_along_axis(x, index, 10., mode='add')"),
      .doc = MANUAL("x with its elements at the indices of each line set to v (mode set), increased by v as often as an index repeats (add), "
             "or replaced by v where that is larger (max) or smaller (min)") })
    { .name = "scatter_pick", .flags = OP_HIDDEN, .line = LINE_PICKED, .params = "x, v, index, axis:int, least=False:bool", .nout = 1, .infer = pick_infer,
      .size = mc_same_size, .eval = pick_eval, .grad = pick_grad, .doc = MANUAL("the larger, or smaller, of x and of v at indices along an axis") },
    BUILT({ .name = "topk", .params = "x, k:int, axis=-1:int", .nout = 1, .build = build_topk, .example = MANUAL(TABLE "topk(x, 2)"),
      .doc = MANUAL("the k largest elements along an axis, in falling order, NaN first; of k < 0 the -k smallest, in rising order") })
    BUILT({ .name = "argtopk", .params = "x, k:int, axis=-1:int", .nout = 1, .build = build_argtopk, .example = MANUAL(TABLE "argtopk(x, 2)"),
      .doc = MANUAL("where the elements of topk stand in x; equal ones in the order of x") })
    BUILT({ .name = "topk_and_argtopk", .params = "x, k:int, axis=-1:int", .nout = 1, .build = build_both, .example = MANUAL(TABLE "topk_and_argtopk(x, 1)"),
      .doc = MANUAL("the two as one op of two results") })
    BUILT({ .name = "median", .params = "x, axis=None:int, keepdims=False:bool", .nout = 1, .build = build_median,
      .doc = MANUAL("the element in the middle along an axis, or of all; of an even count the mean of two; NaN if one is NaN") })
    BUILT({ .name = "quantile", .params = "x, q, axis=None:int, keepdims=False:bool, method=linear:text", .nout = 1, .build = build_quantile,
      .example = MANUAL("x = [1., 4, 2, 8]; q = [0.5, 0.9]; quantile(x, q)"),
      .doc = MANUAL("the number below which a fraction q of the elements lies; of a vector q one for each, along a first axis; method: linear, lower, "
             "higher, nearest, midpoint, hazen, weibull, median_unbiased, normal_unbiased") })
    BUILT({ .name = "percentile", .params = "x, q, axis=None:int, keepdims=False:bool, method=linear:text", .nout = 1, .build = build_percentile,
      .example = MANUAL("x = [1., 4, 2, 8]; q = 75; percentile(x, q)"), .doc = MANUAL("quantile of q / 100") })
    BUILT({ .name = "diff", .params = "x, n=1:int, axis=-1:int", .nout = 1, .build = build_diff, .example = MANUAL("x = [1., 4, 2, 8]; diff(x)"),
      .doc = MANUAL("each element along an axis less the one before, n times; of bool whether they differ") })
};
const int mc_nops_along = (int)NELEM(mc_ops_along);
