/* product.c: products of tensors. Two nodes do the work: dot, of two matrices, and batched_dot, of two
 * stacks of matrices, one of which may be a single matrix for all. All other ranks and pairings of axes
 * are reduced to these by dimshuffle and reshape.
 *
 * Invariant: both operands of a node have its dtype. */
#include "op/op.h"

/* ---- the nodes ---- */

static mc_status matrices(struct mc_infer *q, int batch)
{
    const struct mc_type *a = &q->in[0], *b = &q->in[1];
    int64_t k = a->dims[batch + 1], l = b->dims[batch];
    if (a->rank != batch + 2 || b->rank != batch + 2) {
        return mc_fail(MC_ESHAPE, "%s: operands of ranks %d and %d do not fit", q->op->name, a->rank,
                       b->rank);
    }
    int64_t many = !batch || b->dims[0] == 1           ? a->dims[0]
                   : a->dims[0] == 1 || a->dims[0] < 0 ? b->dims[0]
                                                       : a->dims[0];
    if (batch && a->dims[0] >= 0 && b->dims[0] >= 0 && a->dims[0] != b->dims[0] && a->dims[0] != 1 &&
        b->dims[0] != 1) {
        return mc_fail(MC_ESHAPE, "%s: batch sizes %lld and %lld differ", q->op->name, (long long)a->dims[0],
                       (long long)b->dims[0]);
    }
    if (k >= 0 && l >= 0 && k != l) {
        return mc_fail(MC_ESHAPE, "%s: inner sizes %lld and %lld differ", q->op->name, (long long)k,
                       (long long)l);
    }
    q->out[0] = *a;
    q->out[0].dims[0] = many;
    q->out[0].dims[batch + 1] = b->dims[batch + 1];
    return MC_OK;
}

static mc_status dot_infer(struct mc_infer *q)
{
    return matrices(q, 0);
}

static mc_status batched_infer(struct mc_infer *q)
{
    return matrices(q, 1);
}

static mc_node *product_size(mc_node *n, int item, int axis)
{
    (void)item;
    bool single = n->type.rank == 3 && n->in[0]->type.dims[0] == 1;
    return mc_size_of(n->in[axis == n->type.rank - 1 || (axis == 0 && single)], axis);
}

/* A size of 1 broadcasts only if it was promised, because gradients are built from the promise. */
mc_status mc_product_fits(const mc_node *n, int64_t a, int64_t b)
{
    bool fits = a == b || (a == 1 && n->in[0]->type.dims[0] == 1) || (b == 1 && n->in[1]->type.dims[0] == 1);
    return fits ? MC_OK
                : mc_fail(MC_ESHAPE,
                          "%s: batch sizes %lld and %lld differ; only a size known to be 1 broadcasts",
                          n->op->name, (long long)a, (long long)b);
}

/* Contiguous copies of a, and of b with its last two axes exchanged, both in a wide dtype. Every element
 * of the product is then one sum over contiguous elements, in double or in wrapping integers. */
struct rows {
    mc_array *a, *b;
};

static mc_status rows_make(struct rows *r, const mc_array *a, const mc_array *b)
{
    int order[3] = { 0, 1, 2 }, last = b->rank - 1;
    mc_dtype wide = mc_is_float(a->dtype) ? MC_FLOAT64 : MC_INT64;
    order[last] = last - 1;
    order[last - 1] = last;
    mc_array *t = mc_array_transpose(b, order);
    r->b = t ? mc_array_cast(t, wide) : NULL;
    r->a = r->b ? mc_array_cast(a, wide) : NULL;
    mc_array_unref(&t);
    return r->a && r->b ? MC_OK : mc_last_status();
}

static void multiply(const struct rows *r, mc_array *y, int64_t at_a, int64_t at_b, int64_t at_y, int64_t m,
                     int64_t n, int64_t k)
{
    size_t size = mc_dtypes[y->dtype].size;
    const double *fa = (const double *)(const void *)r->a->data + at_a,
                 *fb = (const double *)(const void *)r->b->data + at_b;
    const uint64_t *ia = (const uint64_t *)(const void *)r->a->data + at_a,
                   *ib = (const uint64_t *)(const void *)r->b->data + at_b;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            char *to = y->data + (size_t)(at_y + i * n + j) * size;
            double real = 0;
            uint64_t whole = 0;
            for (int64_t l = 0; mc_is_float(y->dtype) && l < k; l++) {
                real += fa[i * k + l] * fb[j * k + l];
            }
            for (int64_t l = 0; !mc_is_float(y->dtype) && l < k; l++) {
                whole += ia[i * k + l] * ib[j * k + l];
            }
            if (mc_is_float(y->dtype)) {
                mc_store_f64(y->dtype, to, real);
            } else {
                mc_store_i64(y->dtype, to, (int64_t)whole);
            }
        }
    }
}

static mc_status product_eval(const mc_node *node, mc_array *const *in, mc_array *const *out)
{
    struct rows r = { 0 };
    const mc_array *a = in[0], *b = in[1];
    int last = a->rank - 1;
    int64_t m = a->dims[last - 1], k = a->dims[last], n = b->dims[last],
            batch = a->rank == 3 ? out[0]->dims[0] : 1;
    bool one_a = a->rank == 3 && a->dims[0] == 1, one_b = a->rank == 3 && b->dims[0] == 1;
    mc_status s = a->rank == 3 ? mc_product_fits(node, a->dims[0], b->dims[0]) : MC_OK;
    s = s == MC_OK ? rows_make(&r, a, b) : s;
    for (int64_t i = 0; s == MC_OK && i < batch; i++) {
        multiply(&r, out[0], one_a ? 0 : i * m * k, one_b ? 0 : i * n * k, i * m * n, m, n, k);
    }
    mc_array_unref(&r.a);
    mc_array_unref(&r.b);
    return s;
}

/* The gradient of an operand that is shared by the whole batch is summed over the batch within the
 * product. */
static mc_node *batched_grad(mc_node *n, int wrt, mc_node *const *g)
{
    mc_node *a = n->in[0], *b = n->in[1];
    bool broadcast = n->in[wrt]->type.dims[0] == 1 && n->type.dims[0] != 1;
    static const char *const texts[2][2] = {
        { "batched_dot(g, dimshuffle(b, [0, 2, 1]))", "expand_dims(tensordot(g, b, axes=[0, 2], axes_b=[0, 2]), 0)" },
        { "batched_dot(dimshuffle(a, [0, 2, 1]), g)", "expand_dims(tensordot(a, g, axes=[0, 1], axes_b=[0, 1]), 0)" },
    };
    return g[0] ? mc_expr(n->graph, texts[wrt][broadcast],
                          (struct mc_bind[]){ { "a", a, NULL }, { "b", b, NULL }, { "g", g[0], NULL } }, 3)
                : NULL;
}

/* ---- a check that two operands have the same size ---- */

static mc_status agreed_infer(struct mc_infer *q)
{
    q->out[0] = mc_type_make(MC_INT64, 0, NULL);
    return MC_OK;
}

static mc_status agreed_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    int64_t a = mc_load_i64(MC_INT64, in[0]->data), b = mc_load_i64(MC_INT64, in[1]->data);
    if (a != b) {
        return mc_fail(MC_ESHAPE,
                       "%s: sizes %lld and %lld of a batch axis differ; only a size known to be 1 broadcasts",
                       n->attr[0].text, (long long)a, (long long)b);
    }
    mc_store_i64(MC_INT64, out[0]->data, a);
    return MC_OK;
}

/* ---- any ranks ---- */

static mc_node *shuffle(mc_node *x, int n, const int64_t *order)
{
    bool same = n == x->type.rank;
    for (int i = 0; i < n; i++) {
        same &= order[i] == i;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = n, .ints = (int64_t *)(uintptr_t)order };
    return same ? x : mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &x, &a);
}

static mc_node *reshape(mc_node *x, int n, mc_node *const *size)
{
    mc_node *in[2] = { x, mc_call_op(x->graph, "stack", n, size, NULL) };
    return mc_call_op(x->graph, "reshape", 2, in, "ndim=%d", n);
}

static mc_node *times(mc_node *a, mc_node *b)
{
    int64_t x, y, z;
    int n;
    if (mc_const_ints(a, &x, 1, &n) && mc_const_ints(b, &y, 1, &n) && mc_mul_i64(x, y, &z)) {
        return mc_node_int(a->graph, z);
    }
    return mc_call_op(a->graph, "mul", 2, (mc_node *[]){ a, b }, NULL);
}

/* An operand's axes in three groups. as_matrix merges each group into one axis: (batch, free, inner) for
 * the left operand, (batch, inner, free) for the right one. */
struct side {
    mc_node *x;
    int batch, nfree, ninner;
    int64_t free[MC_MAX_RANK], inner[MC_MAX_RANK];
};

static struct side side_make(mc_node *x, int batch, int ninner, const int64_t *inner)
{
    struct side s = { .x = x, .batch = batch, .ninner = ninner };
    unsigned taken = 0;
    for (int i = 0; i < ninner; i++) {
        s.inner[i] = inner[i];
        taken |= 1u << inner[i];
    }
    for (int i = batch; i < x->type.rank; i++) {
        if (!(taken & 1u << i)) {
            s.free[s.nfree++] = i;
        }
    }
    return s;
}

static mc_node *size_of_group(mc_node *x, int n, const int64_t *axis)
{
    mc_node *all = mc_node_int(x->graph, 1);
    for (int i = 0; i < n; i++) {
        all = i ? times(all, mc_size_of(x, (int)axis[i])) : mc_size_of(x, (int)axis[i]);
    }
    return all;
}

/* Are the axes of x in the order of these groups, behind the batch axis? */
static bool in_order(const struct side *s, bool inner_first)
{
    int64_t next = s->batch;
    bool so = true;
    for (int group = 0; group < 2; group++) {
        const bool inner = (group == 0) == inner_first;
        for (int i = 0; i < (inner ? s->ninner : s->nfree); i++) {
            so &= (inner ? s->inner : s->free)[i] == next++;
        }
    }
    return so;
}

/* The matrix of the free and the inner axes, which are its columns if it is the left one.  Axes that only
 * change places as two groups do so after they are merged, so that contiguous memory stays where it is. */
static mc_node *as_matrix(const struct side *s, bool left)
{
    int64_t order[2 * MC_MAX_RANK] = { 0 };
    mc_node *size[3];
    int n = 0, nsize = 0;
    bool simple = s->nfree <= 1 && s->ninner <= 1; /* no axes to merge; at most new axes of size 1 */
    const bool turned = !simple && in_order(s, left) && !in_order(s, !left);
    if (s->batch) {
        order[n++] = 0;
        size[nsize++] = mc_size_of(s->x, 0);
    }
    for (int group = 0; group < 2; group++) {
        bool inner = (group == 1) == (left != turned);
        int count = inner ? s->ninner : s->nfree;
        const int64_t *axis = inner ? s->inner : s->free;
        if (simple && count == 0) {
            order[n++] = -1;
        }
        for (int i = 0; i < count; i++) {
            order[n++] = axis[i];
        }
        size[nsize++] = size_of_group(s->x, count, axis);
    }
    mc_node *x = shuffle(s->x, n, order);
    x = simple ? x : reshape(x, nsize, size);
    return !turned || mc_is_error(x)
               ? x
               : shuffle(x, nsize, s->batch ? (int64_t[]){ 0, 2, 1 } : (int64_t[]){ 1, 0 });
}

/* The sum over the paired inner axes. The result has the batch axis, a's free axes, b's free axes. */
static mc_node *contract(const struct mc_op *op, const struct side *a, const struct side *b)
{
    mc_graph *g = a->x->graph;
    mc_node *size[2 * MC_MAX_RANK], *pair[2];
    int64_t order[3] = { 0 };
    int rank = a->batch + a->nfree + b->nfree, n = 0;
    if (rank > MC_MAX_RANK) {
        return mc_node_fail(g, MC_ESHAPE, "%s: the result would have more than %d axes", op->name,
                            MC_MAX_RANK);
    }
    for (int i = 0; i < a->ninner; i++) {
        int64_t k = a->x->type.dims[a->inner[i]], l = b->x->type.dims[b->inner[i]];
        if (k >= 0 && l >= 0 && k != l) {
            return mc_node_fail(g, MC_ESHAPE, "%s: inner sizes %lld and %lld differ", op->name, (long long)k,
                                (long long)l);
        }
    }
    pair[0] = as_matrix(a, true);
    pair[1] = as_matrix(b, false);
    mc_node *y = mc_node_make(g, mc_op_named(g, a->batch ? "batched_dot" : "dot"), 2, pair, NULL);
    if (mc_is_error(y)) {
        return y;
    }
    bool drops = (a->nfree || y->type.dims[a->batch] == 1) && (b->nfree || y->type.dims[a->batch + 1] == 1);
    if (drops && a->nfree <= 1 && b->nfree <= 1) {
        if (a->batch) {
            order[n++] = 0;
        }
        if (a->nfree) {
            order[n++] = a->batch;
        }
        if (b->nfree) {
            order[n++] = a->batch + 1;
        }
        return shuffle(y, n, order);
    }
    if (a->batch) {
        size[n++] = mc_size_of(a->x->type.dims[0] == 1 ? b->x : a->x, 0);
    }
    for (int i = 0; i < a->nfree; i++) {
        size[n++] = mc_size_of(a->x, (int)a->free[i]);
    }
    for (int i = 0; i < b->nfree; i++) {
        size[n++] = mc_size_of(b->x, (int)b->free[i]);
    }
    return reshape(y, n, size);
}

/* Casts both operands to their common dtype. */
static bool meet(mc_node *const *in, mc_node **out)
{
    mc_dtype d = mc_meet(2, in, 0);
    out[0] = mc_cast_to(in[0], d);
    out[1] = mc_cast_to(in[1], d);
    return !mc_is_error(out[0]) && !mc_is_error(out[1]);
}

/* Sums over the last axis of x and the last but one of y. */
static mc_node *product(const char *op, mc_node *x, mc_node *y)
{
    struct side a = side_make(x, 0, 1, (int64_t[]){ x->type.rank - 1 }),
                b = side_make(y, 0, 1, (int64_t[]){ MC_MAX(y->type.rank - 2, 0) });
    return contract(mc_op_named(x->graph, op), &a, &b);
}

static mc_node *build_dot(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    (void)attr;
    mc_node *x[2];
    if (in[0]->type.rank == 0 || in[1]->type.rank == 0) {
        return mc_call_op(g, "mul", 2, in, NULL);
    }
    return meet(in, x) ? product("dot", x[0], x[1]) : g->error;
}

/* ---- matmul: stacks of matrices with broadcast batch axes ---- */

/* x with `rank` axes: adds axes of size 1 in front, or drops them. */
static mc_node *with_rank(mc_node *x, int rank)
{
    int64_t order[MC_MAX_RANK] = { 0 };
    for (int i = 0; i < rank; i++) {
        order[i] = MC_MAX(x->type.rank - rank + i, -1);
    }
    return shuffle(x, rank, order);
}

static bool single(const mc_node *x)
{
    bool all = true;
    for (int i = 0; i < x->type.rank - 2; i++) {
        all &= x->type.dims[i] == 1;
    }
    return all;
}

/* The common sizes of the n batch axes of x[0] and x[1]. A size known of one operand is promised for the
 * other. */
static bool batch_sizes(mc_graph *g, int n, mc_node **x, mc_node **size)
{
    int64_t promise[2][MC_MAX_RANK];
    bool promises[2] = { false, false };
    memset(promise, -1, sizeof promise);
    for (int i = 0; i < n; i++) {
        const int64_t d[2] = { x[0]->type.dims[i], x[1]->type.dims[i] };
        if (d[0] > -1 && d[1] > -1 && d[0] != d[1] && d[0] != 1 && d[1] != 1) {
            mc_node_fail(g, MC_ESHAPE, "matmul: sizes %lld and %lld of a batch axis differ", (long long)d[0],
                         (long long)d[1]);
            return false;
        }
        for (int k = 0; k < 2; k++) {
            bool known = d[k] < 0 && d[1 - k] >= 0 && d[1 - k] != 1;
            promise[k][i] = known ? d[1 - k] : -1;
            promises[k] |= known;
        }
    }
    for (int k = 0; k < 2; k++) {
        struct mc_attr a = { .kind = ATTR_INTS, .n = x[k]->type.rank, .ints = promise[k] };
        x[k] = promises[k] ? mc_apply(g, mc_op_named(g, "specify_shape"), 1, &x[k], &a) : x[k];
        if (mc_is_error(x[k])) {
            return false;
        }
    }
    for (int i = 0; i < n; i++) {
        bool one[2] = { x[0]->type.dims[i] == 1, x[1]->type.dims[i] == 1 };
        mc_node *s[2] = { mc_size_of(x[0], i), mc_size_of(x[1], i) };
        size[i] = one[0]                   ? s[1]
                  : one[1] || s[0] == s[1] ? s[0]
                                           : mc_call_op(g, "agreed_size", 2, s, "op=\"matmul\"");
    }
    return true;
}

/* Merges the n batch axes into one. For a transposed matrix, the exchange of its axes is moved after the
 * merge, so that contiguous memory is reshaped as a view. */
static mc_node *one_batch(mc_node *x, int n, mc_node *const *size)
{
    mc_node *to[3] = { size[0] };
    const struct mc_attr *order = mc_is_op(x, "dimshuffle") ? &x->attr[0] : NULL;
    bool transposed = order && order->n == n + 2 && x->in[0]->type.rank == n + 2 && order->ints[n] == n + 1 &&
                      order->ints[n + 1] == n;
    for (int i = 0; transposed && i < n; i++) {
        transposed = order->ints[i] == i;
    }
    x = transposed ? x->in[0] : x;
    for (int i = 1; i < n; i++) {
        to[0] = times(to[0], size[i]);
    }
    to[1] = mc_size_of(x, n);
    to[2] = mc_size_of(x, n + 1);
    x = n > 1 ? reshape(x, 3, to) : x;
    return transposed && !mc_is_error(x) ? shuffle(x, 3, (int64_t[]){ 0, 2, 1 }) : x;
}

/* x broadcast along the batch axes where it has size 1 and the batch does not. */
static mc_node *filled(mc_node *x, int n, mc_node **size)
{
    bool full = true;
    for (int i = 0; i < n; i++) {
        int64_t v = 0;
        int count;
        full &= x->type.dims[i] != 1 || (mc_const_ints(size[i], &v, 1, &count) && v == 1);
    }
    if (full) {
        return x;
    }
    size[n] = mc_size_of(x, n);
    size[n + 1] = mc_size_of(x, n + 1);
    return mc_call_op(x->graph, "alloc", 2,
                      (mc_node *[]){ x, mc_call_op(x->graph, "stack", n + 2, size, NULL) }, NULL);
}

static mc_node *stacks(mc_graph *g, mc_node *a, mc_node *b)
{
    int rank = MC_MAX(a->type.rank, b->type.rank), n = rank - 2;
    if (single(b)) { /* a single product with all rows */
        mc_node *y = product("matmul", a, with_rank(b, 2));
        return mc_is_error(y) ? y : with_rank(y, rank);
    }
    mc_node *x[2] = { with_rank(a, rank), with_rank(b, rank) }, *size[MC_MAX_RANK];
    if (!batch_sizes(g, n, x, size)) {
        return g->error;
    }
    const bool shared = single(x[0]);
    x[0] = shared ? with_rank(x[0], 3) : filled(x[0], n, size);
    x[1] = filled(x[1], n, size);
    for (int k = 0; k < 2; k++) {
        x[k] = mc_is_error(x[k]) || (shared && k == 0) ? x[k] : one_batch(x[k], n, size);
    }
    mc_node *y = mc_node_make(g, mc_op_named(g, "batched_dot"), 2, x, NULL);
    size[n] = mc_size_of(a, a->type.rank - 2);
    size[n + 1] = mc_size_of(b, b->type.rank - 1);
    return n > 1 && !mc_is_error(y) ? reshape(y, rank, size) : y;
}

static mc_node *build_matmul(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    (void)attr;
    mc_node *x[2];
    if (in[0]->type.rank == 0 || in[1]->type.rank == 0) {
        return mc_node_fail(g, MC_ESHAPE,
                            "matmul: expected a matrix, got a scalar; multiply by a scalar with *");
    }
    if (!meet(in, x)) {
        return g->error;
    }
    const int64_t k = x[0]->type.dims[x[0]->type.rank - 1],
                  l = x[1]->type.dims[MC_MAX(x[1]->type.rank - 2, 0)];
    if (k >= 0 && l >= 0 && k != l) {
        return mc_node_fail(g, MC_ESHAPE, "matmul: inner sizes %lld and %lld differ", (long long)k,
                            (long long)l);
    }
    if (x[1]->type.rank <= 2) {
        return product("matmul", x[0], x[1]);
    }
    const bool vector = x[0]->type.rank == 1;
    mc_node *y = stacks(g, vector ? with_rank(x[0], 2) : x[0], x[1]);
    int64_t order[MC_MAX_RANK] = { 0 };
    const int rank = x[1]->type.rank;
    for (int i = 0; vector && i < rank - 1; i++) {
        order[i] = i < rank - 2 ? i : i + 1;
    }
    return vector && !mc_is_error(y) ? shuffle(y, rank - 1, order) : y;
}

/* As dot, for each index of the first axis, which both operands have. */
static mc_node *build_batched(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    (void)attr;
    mc_node *x[2];
    int ra = in[0]->type.rank, rb = in[1]->type.rank;
    if (ra == 0 || rb == 0) {
        return mc_node_fail(g, MC_ESHAPE, "batched_dot: expected a batch axis, got a scalar");
    }
    if (!meet(in, x)) {
        return g->error;
    }
    if (ra == 1 && rb == 1) {
        return mc_call_op(g, "mul", 2, x, NULL);
    }
    if (ra == 1 || rb == 1) { /* one number for each batch index */
        int64_t order[MC_MAX_RANK] = { 0 };
        int wide = ra == 1, rank = MC_MAX(ra, rb);
        for (int i = 1; i < rank; i++) {
            order[i] = -1;
        }
        x[!wide] = shuffle(x[!wide], rank, order);
        return mc_call_op(g, "mul", 2, x, NULL);
    }
    struct side a = side_make(x[0], 1, 1, (int64_t[]){ ra - 1 }),
                b = side_make(x[1], 1, 1, (int64_t[]){ MC_MAX(rb - 2, 1) });
    return contract(mc_op_named(g, "batched_dot"), &a, &b);
}

/* axes=2 pairs the last two axes of a with the first two of b. axes=[1, 2], axes_b=[0, 3] pairs them one
 * by one. The first `batch` axes of both are paired and stay. */
static mc_node *tensordot(mc_graph *g, const char *op, int batch, mc_node *const *in,
                          const struct mc_attr *attr)
{
    mc_node *x[2];
    int64_t axis[2][MC_MAX_RANK];
    int n = attr[1].none ? (int)mc_attr_int(&attr[0]) : attr[0].n;
    if (attr[1].none && attr[0].n != 1) {
        return mc_node_fail(g, MC_EARG, "tensordot: axes must be a count unless axes_b is given");
    }
    if (!attr[1].none && attr[1].n != n) {
        return mc_node_fail(g, MC_EARG, "tensordot: axes has %d entries, but axes_b has %d", n, attr[1].n);
    }
    if (n < 0 || n > in[0]->type.rank || n > in[1]->type.rank) {
        return mc_node_fail(g, MC_ESHAPE, "tensordot: cannot sum over %d axes of ranks %d and %d", n,
                            in[0]->type.rank, in[1]->type.rank);
    }
    if (!meet(in, x)) {
        return g->error;
    }
    for (int k = 0; k < 2; k++) {
        unsigned seen = batch ? 1 : 0;
        for (int i = 0; i < n; i++) {
            int r = x[k]->type.rank, at;
            int64_t given = !attr[1].none ? attr[k].ints[i] : k ? batch + i : r - n + i;
            if (mc_axis_check(op, given, r, &at) < 0) {
                return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
            }
            if (seen & 1u << at) {
                return mc_node_fail(
                    g, MC_EARG,
                    batch && !at ? "%s: axis %d is that of the batch" : "%s: axis %d is given twice", op, at);
            }
            seen |= 1u << at;
            axis[k][i] = at;
        }
    }
    struct side a = side_make(x[0], batch, n, axis[0]), b = side_make(x[1], batch, n, axis[1]);
    return contract(mc_op_named(g, op), &a, &b);
}

static mc_node *build_tensordot(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return tensordot(g, "tensordot", 0, in, attr);
}

static mc_node *build_batched_tensordot(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return tensordot(g, "batched_tensordot", 1, in, attr);
}

const struct mc_op mc_ops_product[] = {
    { .name = "dot", .flags = OP_HEAVY | OP_MATMUL | OP_BLOCKS, .solvers = SOLVERS_GEMM, .params = "a, b", .nout = 1, .infer = dot_infer, .size = product_size, .eval = product_eval,
      .dx = { "dot(g, b.T)", "dot(a.T, g)" }, .build = build_dot,
      .example = MANUAL("a = [[1., 2, 3], [4, 5, 6]]; b = [[1., 0], [2, -1], [0, 1]]; dot(a, b)"),
      .doc = MANUAL("matrix product: the sum over the last axis of a and the last but one of b") },
    { .name = "batched_dot", .flags = OP_HEAVY | OP_MATMUL, .solvers = SOLVERS_GEMM, .params = "a, b", .nout = 1, .infer = batched_infer, .size = product_size,
      .eval = product_eval, .build = build_batched, .grad = batched_grad,
      .example = MANUAL("a = [[[1., 2]], [[3., 4]]]; b = [[[1.], [0]], [[2], [-1]]]; batched_dot(a, b)"),
      .doc = MANUAL("dot(a[i], b[i]) for each i; a first axis of size 1 broadcasts") },
    BUILT({ .name = "matmul", .params = "a, b", .nout = 1, .build = build_matmul,
      .example = MANUAL("a = [[1., 2, 3], [4, 5, 6]]; b = [[1., 0], [2, -1], [0, 1]]; matmul(a, b)"),
      .doc = MANUAL("NumPy's matmul: products of the matrices in the last two axes; the axes before them broadcast; the same as a @ b") })
    { .name = "agreed_size", .flags = OP_HIDDEN, .params = "a, b, op:text", .nout = 1, .infer = agreed_infer, .eval = agreed_eval, .disconnected = 3,
      .doc = MANUAL("a, checked to be equal to b") },
    BUILT({ .name = "tensordot", .params = "a, b, axes=2:ints, axes_b=None:ints", .nout = 1, .build = build_tensordot,
      .example = MANUAL("a = [[1., 2, 3], [4, 5, 6]]; b = [[1., 0], [2, -1], [0, 1]]; tensordot(a, b, axes=1)"),
      .doc = MANUAL("sum over the last axes of a and the first of b, or over a's axes paired with b's axes_b") })
    BUILT({ .name = "batched_tensordot", .params = "a, b, axes=2:ints, axes_b=None:ints", .nout = 1, .build = build_batched_tensordot,
      .example = MANUAL("a = [[[1., 2]], [[3., 4]]]; b = [[1., 0], [2, -1]]; batched_tensordot(a, b, axes=1)"),
      .doc = MANUAL("tensordot(a[i], b[i]) for each i; axes count from the batch axis, 0") })
    BUILT({ .name = "vdot", .params = "a, b", .nout = 1, .formula = "dot(ravel(a), ravel(b))", .example = MANUAL("a = [[1., 2], [3, 4]]; b = a; vdot(a, b)"),
      .doc = MANUAL("the sum of a * b over all elements: dot of a and b as vectors") })
    BUILT({ .name = "inner", .params = "a, b", .nout = 1, .formula = "tensordot(a, b, axes=[-1], axes_b=[-1])",
      .example = MANUAL("a = [[1., 2], [3, 4]]; b = [1., -1]; inner(a, b)"), .doc = MANUAL("the sum over the last axis of a and the last of b") })
    BUILT({ .name = "outer", .params = "a, b", .nout = 1, .formula = "expand_dims(ravel(a), 1) * expand_dims(ravel(b), 0)",
      .example = MANUAL("a = [1., 2]; b = [3., 4, 5]; outer(a, b)"), .doc = MANUAL("a[i] * b[j], of a and b as vectors") })
    BUILT({ .name = "cross", .params = "a, b", .nout = 1,
      .formula = "p = split(a, [1, 1, 1], axis=-1); q = split(b, [1, 1, 1], axis=-1); "
                 "concatenate(p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0], axis=-1)",
      .example = MANUAL("a = [1., 0, 0]; b = [0., 2, 0]; cross(a, b)"), .doc = MANUAL("the vector product along the last axis, which has size 3") })
};
const int mc_nops_product = (int)NELEM(mc_ops_product);
