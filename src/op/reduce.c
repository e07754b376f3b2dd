/* reduce.c: sum, product, maximum, minimum, any and all over axes.
 *
 * Invariant: a reduction visits its elements in C order of the reduced axes, whatever the strides. This
 * defines "the first maximum" and "the flattened index". */
#include "op/op.h"
#include <math.h>

/* CHUNK elements are converted and reduced at a time; up to PAIRWISE_LEAST are added sequentially */
enum { CHUNK = 256, PAIRWISE_LEAST = 16 };

union number { double f64; float f32; int64_t i64; uint64_t u64; };
struct acc {
    union number v;
    int64_t seen, at;      /* elements so far; index of the extreme among them */
    uint64_t chunks;       /* number of chunks so far; if bit i is set, part[i] is a sum of 2^i chunks */
    union number part[64];
};
typedef void reduce_chunk(struct acc *a, const void *px, int n); /* n > 0 */
typedef void total(struct acc *a);

#define NEVER(x) false
#define ISNAN(x) ((x) != (x))

/* Pairwise summation: rounding errors grow with log n. total_* adds the partial sums in part to v. */
#define REDUCTIONS(cls, T, NAN_)                                                                        \
    static T pairwise_##cls(const T *x, int n)                                                     \
    {                                                                                              \
        T s = 0;                                                                                   \
        if (n > PAIRWISE_LEAST) {                                                                             \
            const int half = (n + 1) / 2;                                                          \
            return pairwise_##cls(x, half) + pairwise_##cls(x + half, n - half);                   \
        }                                                                                          \
        for (int i = 0; i < n; i++) {                                                              \
            s += x[i];                                                                             \
        }                                                                                          \
        return s;                                                                                  \
    }                                                                                              \
    static void sum_##cls(struct acc *a, const void *px, int n)                                    \
    {                                                                                              \
        T s = pairwise_##cls(px, n);                                                               \
        int i = 0;                                                                                 \
        for (; a->chunks >> i & 1; i++) {                                                          \
            s = a->part[i].cls + s;                                                                \
        }                                                                                          \
        a->part[i].cls = s;                                                                        \
        a->chunks++;                                                                               \
    }                                                                                              \
    static void total_##cls(struct acc *a)                                                         \
    {                                                                                              \
        for (int i = 0; i < 64; i++) {                                                             \
            a->v.cls += a->chunks >> i & 1 ? a->part[i].cls : 0;                                   \
        }                                                                                          \
    }                                                                                              \
    static void prod_##cls(struct acc *a, const void *px, int n)                                   \
    {                                                                                              \
        const T *x = px;                                                                           \
        for (int i = 0; i < n; i++) {                                                              \
            a->v.cls *= x[i];                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void max_##cls(struct acc *a, const void *px, int n)                                    \
    {                                                                                              \
        const T *x = px;                                                                           \
        T m = a->seen ? a->v.cls : x[0];                                                           \
        for (int i = 0; i < n; i++) {                                                              \
            if ((x[i] > m || NAN_(x[i])) && !NAN_(m)) {                                            \
                m = x[i];                                                                          \
                a->at = a->seen + i;                                                               \
            }                                                                                      \
        }                                                                                          \
        a->v.cls = m;                                                                              \
    }                                                                                              \
    static void min_##cls(struct acc *a, const void *px, int n)                                    \
    {                                                                                              \
        const T *x = px;                                                                           \
        T m = a->seen ? a->v.cls : x[0];                                                           \
        for (int i = 0; i < n; i++) {                                                              \
            if ((x[i] < m || NAN_(x[i])) && !NAN_(m)) {                                            \
                m = x[i];                                                                          \
            }                                                                                      \
        }                                                                                          \
        a->v.cls = m;                                                                              \
    }
REDUCTIONS(f64, double, ISNAN)
REDUCTIONS(f32, float, ISNAN)
REDUCTIONS(i64, int64_t, NEVER)
REDUCTIONS(u64, uint64_t, NEVER)

static void any_bool(struct acc *a, const void *px, int n)
{
    a->v.i64 |= memchr(px, 1, (size_t)n) != NULL;
}

static void all_bool(struct acc *a, const void *px, int n)
{
    a->v.i64 &= memchr(px, 0, (size_t)n) == NULL;
}

#define EACH_CLASS(f) { [CLASS_I64] = f##_i64, [CLASS_U64] = f##_u64, [CLASS_F32] = f##_f32, [CLASS_F64] = f##_f64 }
static total *const totals[MC_NCLASS] = EACH_CLASS(total);
enum reads { READS_WIDE, READS_SAME, READS_BOOL };          /* class of the accumulator; of x; truth values */
enum gives { GIVES_WIDE, GIVES_SAME, GIVES_BOOL, GIVES_AT };
static const struct reduction {
    const char *name;
    reduce_chunk *reduce[MC_NCLASS];
    enum reads reads;
    enum gives gives;
    int start;         /* the result over no elements */
    bool needs_some;   /* a reduction over no elements is an error */
    bool lowest;       /* the result over no elements is the least number of the dtype */
} reductions[] = {
    { "sum",     EACH_CLASS(sum),           .reads = READS_WIDE, .gives = GIVES_WIDE, .start = 0 },
    { "prod",    EACH_CLASS(prod),          .reads = READS_WIDE, .gives = GIVES_WIDE, .start = 1 },
    { "max",     EACH_CLASS(max),           .reads = READS_SAME, .gives = GIVES_SAME, .needs_some = true },
    { "sup",     EACH_CLASS(max),           .reads = READS_SAME, .gives = GIVES_SAME, .lowest = true },
    { "min",     EACH_CLASS(min),           .reads = READS_SAME, .gives = GIVES_SAME, .needs_some = true },
    { "argmax",  EACH_CLASS(max),           .reads = READS_SAME, .gives = GIVES_AT,   .needs_some = true },
    { "any",     { [CLASS_I64] = any_bool }, .reads = READS_BOOL, .gives = GIVES_BOOL, .start = 0 },
    { "all",     { [CLASS_I64] = all_bool }, .reads = READS_BOOL, .gives = GIVES_BOOL, .start = 1 },
};

static const struct reduction *reduction_of(const struct mc_op *op)
{
    const struct reduction *r = reductions;
    while (strcmp(r->name, op->name) != 0) {
        r++;
    }
    return r;
}

/* ---- types ---- */

mc_dtype mc_sum_dtype(mc_dtype d)
{
    return mc_is_float(d) ? d : mc_dtypes[d].kind == KIND_UINT ? MC_UINT64 : MC_INT64;
}

mc_dtype mc_sum_acc(mc_dtype d)
{
    return mc_is_float(d) ? MC_FLOAT64 : d;
}

static mc_dtype result_dtype(const struct mc_op *op, mc_dtype x, const struct mc_attr *attr)
{
    switch (reduction_of(op)->gives) {
    case GIVES_BOOL: return MC_BOOL;
    case GIVES_AT: return MC_INT64;
    case GIVES_SAME: return x;
    case GIVES_WIDE: break;
    }
    return attr[2].none ? mc_sum_dtype(x) : (mc_dtype)mc_attr_int(&attr[2]);
}

static bool is_gone(int i, int n, const int *axis)
{
    for (int k = 0; k < n; k++) {
        if (axis[k] == i) {
            return true;
        }
    }
    return false;
}

/* The maximum of an empty array is an error, unless the result has no elements either. */
static mc_status check_some(const struct mc_infer *q, int n, const int *axis)
{
    bool nothing = false;
    for (int i = 0; i < n; i++) {
        nothing |= q->in[0].dims[axis[i]] == 0;
    }
    for (int i = 0; i < q->out[0].rank; i++) {
        nothing &= q->out[0].dims[i] > 0;
    }
    return nothing
               ? mc_fail(MC_ESHAPE, "%s: the %s of an empty array is not defined", q->op->name, q->op->name)
               : MC_OK;
}

static mc_status reduce_infer(struct mc_infer *q)
{
    const struct mc_type *x = &q->in[0];
    struct mc_type *y = &q->out[0];
    int axis[MC_MAX_RANK], n;
    bool keep = mc_attr_int(&q->attr[1]) != 0;
    TRY(mc_attr_axes(q, 0, x->rank, axis, &n));
    *y = (struct mc_type){ .dtype = result_dtype(q->op, x->dtype, q->attr) };
    for (int i = 0; i < x->rank; i++) {
        bool gone = is_gone(i, n, axis);
        if (!gone || keep) {
            y->dims[y->rank++] = gone ? 1 : x->dims[i];
        }
    }
    return reduction_of(q->op)->needs_some ? check_some(q, n, axis) : MC_OK;
}

static mc_node *reduce_size(mc_node *n, int item, int axis)
{
    int gone[MC_MAX_RANK], rank = n->in[0]->type.rank, count = (int)mc_axes_of(n, 0, rank, gone), from = axis;
    (void)item;
    if (mc_attr_int(&n->attr[1])) {
        return is_gone(axis, count, gone) ? mc_node_int(n->graph, 1) : mc_size_of(n->in[0], axis);
    }
    for (int k = 0; k < count; k++) { /* ascending: each removed axis at or before `from` shifts it by one */
        from += gone[k] <= from;
    }
    return mc_size_of(n->in[0], from);
}

/* ---- the reference ---- */

/* The dtype with the layout of a class; chunks are converted to it. */
static const mc_dtype class_dtype[MC_NCLASS] = {
    [CLASS_I64] = MC_INT64, [CLASS_U64] = MC_UINT64, [CLASS_F32] = MC_FLOAT32, [CLASS_F64] = MC_FLOAT64,
};

/* The dtype to which chunks are converted, and the class that reduces them. */
static mc_dtype reading(const mc_node *n, const struct reduction *r, mc_dtype x, mc_dtype y,
                        enum mc_class *cls)
{
    mc_dtype d = x;
    if (r->reads == READS_BOOL) {
        *cls = CLASS_I64;
        return MC_BOOL;
    }
    if (r->reads == READS_WIDE) {
        d = n->attr[3].none ? mc_sum_acc(y) : (mc_dtype)mc_attr_int(&n->attr[3]);
    }
    *cls = mc_dtypes[d].cls;
    return class_dtype[*cls];
}

static void start(struct acc *a, enum mc_class cls, int v)
{
    a->v = (union number){ 0 };
    a->seen = a->at = 0;
    a->chunks = 0;
    mc_store_i64(class_dtype[cls], &a->v, v);
}

/* Folds all elements of one result: rows of the reduced axes, in chunks. */
static void reduce_all(struct acc *a, reduce_chunk *f, mc_dtype read, const mc_array *x, char *data, int rank,
                       const int64_t *dims, const int64_t *strides)
{
    _Alignas(16) char chunk[CHUNK * 8];
    int64_t inner = rank ? dims[rank - 1] : 1, step = rank ? strides[rank - 1] : 0;
    struct mc_walk w;
    if (!mc_walk_begin(&w, rank, dims, 1, 1, &data, &strides)) {
        return;
    }
    do {
        for (int64_t at = 0; at < inner; at += CHUNK) {
            int m = (int)MC_MIN(inner - at, CHUNK);
            mc_convert(read, chunk, mc_dtypes[read].size, x->dtype, w.p[0] + at * step, step, m);
            f(a, chunk, m);
            a->seen += m;
        }
    } while (mc_walk_next(&w));
}

static void store_lowest(mc_dtype d, void *to)
{
    if (mc_is_float(d)) {
        mc_store_f64(d, to, -(double)INFINITY);
    } else {
        mc_store_i64(d, to,
                     mc_dtypes[d].kind == KIND_INT ? -(INT64_C(1) << (mc_dtypes[d].size * 8 - 2)) * 2 : 0);
    }
}

static mc_status reduce_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const struct reduction *r = reduction_of(n->op);
    const mc_array *x = in[0];
    mc_array *y = out[0];
    enum mc_class cls;
    mc_dtype read = reading(n, r, x->dtype, y->dtype, &cls);
    int axis[MC_MAX_RANK], count = (int)mc_axes_of(n, 0, x->rank, axis), ngone = 0, nkept = 0;
    int64_t kept[MC_MAX_RANK], kept_stride[MC_MAX_RANK], gone[MC_MAX_RANK], gone_stride[MC_MAX_RANK];
    struct mc_walk w;

    TRY((mc_status)count);
    for (int i = 0; i < x->rank; i++) {
        if (is_gone(i, count, axis)) {
            gone[ngone] = x->dims[i];
            gone_stride[ngone++] = x->strides[i];
        } else {
            kept[nkept] = x->dims[i];
            kept_stride[nkept++] = x->strides[i];
        }
    }
    char *to = y->data;
    if (!mc_walk_begin(&w, nkept, kept, 0, 1, (char *[]){ x->data }, (const int64_t *[]){ kept_stride })) {
        return MC_OK;
    }
    do {
        struct acc a;
        start(&a, cls, r->start);
        reduce_all(&a, r->reduce[cls], read, x, w.p[0], count, gone, gone_stride);
        if (a.chunks) {
            totals[cls](&a);
        }
        if (r->gives == GIVES_AT) {
            mc_store_i64(y->dtype, to, a.at);
        } else if (r->lowest && !a.seen) {
            store_lowest(y->dtype, to);
        } else {
            mc_convert(y->dtype, to, 0, class_dtype[cls], &a.v, 0, 1);
        }
        to += mc_dtypes[y->dtype].size;
    } while (mc_walk_next(&w));
    return MC_OK;
}

/* ---- gradients ---- */

/* g with the reduced axes restored as size 1, so that it broadcasts against x. */
static mc_node *with_axes(mc_node *n, mc_node *g)
{
    int axis[MC_MAX_RANK], rank = n->in[0]->type.rank, count = (int)mc_axes_of(n, 0, rank, axis), from = 0;
    int64_t order[MC_MAX_RANK];
    if (mc_attr_int(&n->attr[1]) || count == 0) {
        return g;
    }
    for (int i = 0; i < rank; i++) {
        order[i] = is_gone(i, count, axis) ? -1 : from++;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = order };
    return mc_apply(n->graph, mc_op_named(n->graph, "dimshuffle"), 1, &g, &a);
}

/* If false, the gradient is connected but zero, and any node stands for it. */
static bool is_smooth(const mc_node *n, mc_node *const *g)
{
    return g[0] && mc_is_float(n->in[0]->type.dtype) && mc_is_float(n->type.dtype);
}

/* dx = g everywhere, as a plain alloc, which rewrite rules recognize. */
static mc_node *sum_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    if (!is_smooth(n, g)) {
        return g[0];
    }
    mc_node *x = n->in[0], *in[2] = { mc_cast_to(with_axes(n, g[0]), x->type.dtype), mc_shape_of(x) };
    return mc_call_op(n->graph, "alloc", 2, in, NULL);
}

static mc_node *prod_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    if (!is_smooth(n, g)) {
        return g[0];
    }
    mc_node *x = n->in[0];
    return mc_expr(n->graph, "g * prod_others(x, axis=axis)",
                   (struct mc_bind[]){ { "x", x, NULL },
                                       { "g", mc_cast_to(with_axes(n, g[0]), x->type.dtype), NULL },
                                       { "axis", NULL, &n->attr[0] } },
                   3);
}

static mc_node *turned(mc_node *x, int rank, const int64_t *order)
{
    int64_t own[MC_MAX_RANK];
    memcpy(own, order, sizeof own);
    struct mc_attr a = { .kind = ATTR_INTS, .n = rank, .ints = own };
    return mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &x, &a);
}

/* The product of the other elements along one axis: the product of those before times the product of those
 * after. Both are recurrences, as are their derivatives, so no element is compared with 0. */
static mc_node *others_along(mc_node *x, mc_node *g, int64_t axis)
{
    struct mc_attr a = { .kind = ATTR_INT, .n = 1, .ints = &axis };
    struct mc_bind b[] = { { "x", x, NULL }, { "g", g, NULL }, { "a", NULL, &a } };
    return mc_expr(x->graph,
                   "p = recurrence(x, zeros_like(x), axis=a, start=1); q = recurrence(x, zeros_like(x), "
                   "axis=a, start=1, back=True); "
                   "p * recurrence(x, g * q, axis=a, back=True) + q * recurrence(x, g * p, axis=a)",
                   b, 3);
}

/* Several axes are merged into one, the last. */
static mc_node *others_grad(mc_node *n, int wrt, mc_node *const *g)
{
    mc_node *x = n->in[0], *line[MC_MAX_RANK + 1], *in[2];
    int axis[MC_MAX_RANK], rank = x->type.rank, count = (int)mc_axes_of(n, 0, rank, axis), kept = 0, gone = 0;
    int64_t order[MC_MAX_RANK] = { 0 }, back[MC_MAX_RANK] = { 0 };
    (void)wrt;
    if (count <= 1) {
        return count ? others_along(x, g[0], axis[0]) : NULL; /* no axes: the product of no others is 1 */
    }
    for (int i = 0; i < rank; i++) {
        const int to = is_gone(i, count, axis) ? rank - count + gone++ : kept++;
        order[to] = i;
        back[i] = to;
    }
    mc_node *lines[2] = { turned(x, rank, order), turned(g[0], rank, order) }, *whole = mc_shape_of(lines[0]);
    for (int i = 0; i < kept; i++) {
        line[i] = mc_size_of(lines[0], i);
    }
    line[kept] = mc_node_number(n->graph, MC_INT64, 1);
    for (int i = kept; i < rank; i++) {
        line[kept] = mc_call_op(n->graph, "mul", 2, (mc_node *[]){ line[kept], mc_size_of(lines[0], i) },
                                NULL);
    }
    for (int i = 0; i < 2; i++) {
        in[0] = lines[i];
        in[1] = mc_shape_stack(n->graph, kept + 1, line);
        lines[i] = mc_call_op(n->graph, "reshape", 2, in, NULL);
    }
    in[0] = others_along(lines[0], lines[1], kept);
    in[1] = whole;
    mc_node *y = mc_call_op(n->graph, "reshape", 2, in, NULL);
    return mc_is_error(y) ? y : turned(y, rank, back);
}

/* Does every reduction have one element? Then the gradient passes without a comparison of the element with
 * the result, which may be rounded differently. */
static bool is_alone(const mc_node *n)
{
    int axis[MC_MAX_RANK], count = (int)mc_axes_of(n, 0, n->in[0]->type.rank, axis);
    for (int i = 0; i < count; i++) {
        if (n->in[0]->type.dims[axis[i]] != 1) {
            return false;
        }
    }
    return true;
}

/* All elements that equal the extreme receive the whole gradient. A NaN equals nothing. */
static mc_node *extreme_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    if (!is_smooth(n, g)) {
        return g[0];
    }
    if (is_alone(n)) {
        return with_axes(n, g[0]);
    }
    return mc_expr(n->graph, "where(eq(x, y), g, 0)",
                   (struct mc_bind[]){ { "x", n->in[0], NULL },
                                       { "y", with_axes(n, n), NULL },
                                       { "g", with_axes(n, g[0]), NULL } },
                   3);
}

/* ---- composed of the others ---- */

/* ~x reverses the order of all integers; -x fails for unsigned numbers and for the least signed one. */
static mc_node *build_argmin(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_node *x = mc_call_op(g, mc_is_float(in[0]->type.dtype) ? "neg" : "invert", 1, in, NULL);
    return mc_apply(g, mc_op_named(g, "argmax"), 1, &x, attr);
}

/* Orders 0, inf and -inf have formulas of their own; a NaN stays a NaN. */
static mc_node *build_norm(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    static const struct { double ord; const char *text; } rows[] = {
        { INFINITY, "max(abs(x), axis=axis)" },
        { -INFINITY, "min(abs(x), axis=axis)" },
        { 0, "sum(cast(neq(x, 0), x.dtype), axis=axis)" },
    };
    const double ord = attr[0].real;
    const bool even = fmod(ord, 2) == 0; /* abs(x) has no second derivative at 0 */
    const char *text = even ? "pow(sum(x ** ord, axis=axis), 1 / ord)"
                            : "pow(sum(abs(x) ** ord, axis=axis), 1 / ord)";
    mc_node *x = mc_is_float(in[0]->type.dtype) ? in[0] : mc_cast_to(in[0], mc_dtype_floatX());
    for (size_t i = 0; i < NELEM(rows); i++) {
        text = ord >= rows[i].ord && ord <= rows[i].ord ? rows[i].text : text;
    }
    return isnan(ord) ? mc_node_fail(g, MC_EARG, "norm: ord is NaN")
                      : mc_expr(g, text,
                                (struct mc_bind[]){
                                    { "x", x, NULL }, { "ord", NULL, &attr[0] }, { "axis", NULL, &attr[1] } },
                                3);
}

#define REDUCTION .nout = 1, .infer = reduce_infer, .size = reduce_size, .eval = reduce_eval
#define REDUCES(f) .flags = OP_REDUCES, .reduction = f, REDUCTION
#define AXES "x, axis=None:axes, keepdims=False:bool"
const struct mc_op mc_ops_reduce[] = {
    { .name = "sum",    .params = AXES ", dtype=None:dtype, acc_dtype=None:dtype", REDUCES(REDUCE_SUM), .grad = sum_grad,
      .doc = MANUAL("sum over axes; small integers are summed in 64 bits") },
    { .name = "prod",   .params = AXES ", dtype=None:dtype, acc_dtype=None:dtype", REDUCES(REDUCE_PRODUCT), .grad = prod_grad,
      .doc = MANUAL("product over axes; small integers are multiplied in 64 bits") },
    /* With s the elements with zeros replaced by 1, and p their product: the result is p / x if there is
     * no zero, p at a single zero, and 0 elsewhere. Nothing is divided by zero. */
    { .name = "prod_others", .flags = OP_HIDDEN | OP_EXPANDS, .params = "x, axis=None:axes", .nout = 1, .size = mc_same_size,
      .infer = mc_formula_infer, .eval = mc_formula_eval, .grad = others_grad,
      .formula = "z = eq(x, 0); s = where(z, 1, x); n = sum(z, axis=axis, keepdims=True); p = prod(s, axis=axis, keepdims=True); "
                 "where(z, where(eq(n, 1), p, 0), where(eq(n, 0), p, 0) / s)",
      .doc = MANUAL("for each element the product of the others over axes") },
    { .name = "max",    .params = AXES, REDUCES(REDUCE_MOST), .grad = extreme_grad,
      .doc = MANUAL("the largest element over axes; NaN if one is NaN") },
    { .name = "sup",    .params = AXES, .flags = OP_REDUCES | OP_HIDDEN, .reduction = REDUCE_MOST, REDUCTION,
      .grad = extreme_grad, .doc = MANUAL("the largest element over axes; for no elements the least number of the dtype, for floats -inf") },
    { .name = "min",    .params = AXES, REDUCES(REDUCE_LEAST), .grad = extreme_grad,
      .doc = MANUAL("the smallest element over axes; NaN if one is NaN") },
    { .name = "argmax", .params = AXES, REDUCES(REDUCE_POSITION), .disconnected = 1,
      .doc = MANUAL("the index of the first largest element, or of the first NaN, in the flattened reduced axes") },
    BUILT({ .name = "argmin", .params = AXES, .nout = 1, .build = build_argmin, .doc = MANUAL("the index of the first smallest element, or of the first NaN, in the flattened reduced axes") })
    { .name = "any",    .params = AXES, REDUCES(REDUCE_ANY), .disconnected = 1, .doc = MANUAL("True if an element over axes is nonzero") },
    { .name = "all",    .params = AXES, REDUCES(REDUCE_ALL), .disconnected = 1, .doc = MANUAL("True if all elements over axes are nonzero") },
    BUILT({ .name = "norm",   .params = "x, ord=2:real, axis=None:axes", .nout = 1, .build = build_norm,
      .doc = MANUAL("the norm of order ord over axes: the ord-th root of the sum of abs(x) ** ord; inf: the largest magnitude, -inf: the smallest, 0: the number of nonzero elements") })
};
const int mc_nops_reduce = (int)NELEM(mc_ops_reduce);
