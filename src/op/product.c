/* product.c: products of tensors.  Two nodes do the work: dot of two matrices, and batched_dot of two
 * stacks of matrices; every other rank and pairing of axes is brought to them by dimshuffle and reshape.
 *
 * Invariant: both operands of a node have its dtype. */
#include "op/op.h"

/* ---- the nodes ---- */

static mc_status matrices(struct mc_infer *q, int batch)
{
    const struct mc_type *a = &q->in[0], *b = &q->in[1];
    int64_t k = a->dims[batch + 1], l = b->dims[batch];
    if (a->rank != batch + 2 || b->rank != batch + 2) {
        return mc_fail(MC_ESHAPE, "%s: ranks %d and %d", q->op->name, a->rank, b->rank);
    }
    if (batch && a->dims[0] >= 0 && b->dims[0] >= 0 && a->dims[0] != b->dims[0]) {
        return mc_fail(MC_ESHAPE, "%s: %lld and %lld products", q->op->name, (long long)a->dims[0],
                       (long long)b->dims[0]);
    }
    if (k >= 0 && l >= 0 && k != l) {
        return mc_fail(MC_ESHAPE, "%s: inner sizes %lld and %lld differ", q->op->name, (long long)k, (long long)l);
    }
    q->out[0] = *a;
    q->out[0].dims[0] = MC_MAX(a->dims[0], batch ? b->dims[0] : -1);
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
    return mc_size_of(n->in[axis == n->type.rank - 1], axis);
}

/* a in C order, and b with its last two axes exchanged in C order, both as wide numbers: then every
 * element of the product is one sum over neighbours, in double or in wrapping integers. */
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
    (void)node;
    struct rows r = { 0 };
    const mc_array *a = in[0], *b = in[1];
    int last = a->rank - 1;
    int64_t m = a->dims[last - 1], k = a->dims[last], n = b->dims[last], batch = a->rank == 3 ? a->dims[0] : 1;
    mc_status s = rows_make(&r, a, b);
    for (int64_t i = 0; s == MC_OK && i < batch; i++) {
        multiply(&r, out[0], i * m * k, i * n * k, i * m * n, m, n, k);
    }
    mc_array_unref(&r.a);
    mc_array_unref(&r.b);
    return s;
}

/* ---- any ranks ---- */

static mc_node *shuffle(mc_node *x, int n, const int64_t *order)
{
    bool same = n == x->type.rank;
    for (int i = 0; i < n; i++) {
        same &= order[i] == i;
    }
    struct mc_attr a = { .kind = ATTR_INTS, .n = n, .ints = (int64_t *)(uintptr_t)order };
    return same ? x : mc_apply(x->graph, mc_op_find("dimshuffle"), 1, &x, &a);
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

/* How one operand's axes fall into three groups, and x with each group made one axis: (batch, free,
 * inner) for the left operand, (batch, inner, free) for the right one. */
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

static mc_node *as_matrix(const struct side *s, bool left)
{
    int64_t order[2 * MC_MAX_RANK] = { 0 };
    mc_node *size[3];
    int n = 0, nsize = 0;
    bool simple = s->nfree <= 1 && s->ninner <= 1; /* no axes to merge: new ones of size 1 are enough */
    if (s->batch) {
        order[n++] = 0;
        size[nsize++] = mc_size_of(s->x, 0);
    }
    for (int group = 0; group < 2; group++) {
        bool inner = (group == 1) == left;
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
    return simple ? x : reshape(x, nsize, size);
}

/* The sum over the paired inner axes: batch axis, a's free axes, b's free axes. */
static mc_node *contract(const struct mc_op *op, const struct side *a, const struct side *b)
{
    mc_graph *g = a->x->graph;
    mc_node *size[2 * MC_MAX_RANK], *pair[2];
    int64_t order[3] = { 0 };
    int rank = a->batch + a->nfree + b->nfree, n = 0;
    if (rank > MC_MAX_RANK) {
        return mc_node_fail(g, MC_ESHAPE, "%s: the result would have more than %d axes", op->name, MC_MAX_RANK);
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
    mc_node *y = mc_node_make(g, mc_op_find(a->batch ? "batched_dot" : "dot"), 2, pair, NULL);
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
        size[n++] = mc_size_of(a->x, 0);
    }
    for (int i = 0; i < a->nfree; i++) {
        size[n++] = mc_size_of(a->x, (int)a->free[i]);
    }
    for (int i = 0; i < b->nfree; i++) {
        size[n++] = mc_size_of(b->x, (int)b->free[i]);
    }
    return reshape(y, n, size);
}

/* Both operands in the dtype in which they meet. */
static bool meet(mc_node *const *in, mc_node **out)
{
    mc_dtype d = mc_meet(2, in, 0);
    out[0] = mc_cast_to(in[0], d);
    out[1] = mc_cast_to(in[1], d);
    return !mc_is_error(out[0]) && !mc_is_error(out[1]);
}

static mc_node *build_dot(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    (void)attr;
    mc_node *x[2];
    int ra = in[0]->type.rank, rb = in[1]->type.rank;
    if (ra == 0 || rb == 0) {
        return mc_call_op(g, "mul", 2, in, NULL);
    }
    if (!meet(in, x)) {
        return g->error;
    }
    struct side a = side_make(x[0], 0, 1, (int64_t[]){ ra - 1 }),
                b = side_make(x[1], 0, 1, (int64_t[]){ MC_MAX(rb - 2, 0) });
    return contract(mc_op_find("dot"), &a, &b);
}

/* As dot, for each index of the first axis, which both have. */
static mc_node *build_batched(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    (void)attr;
    mc_node *x[2];
    int ra = in[0]->type.rank, rb = in[1]->type.rank;
    if (ra == 0 || rb == 0) {
        return mc_node_fail(g, MC_ESHAPE, "batched_dot: a number has no batch axis");
    }
    if (!meet(in, x)) {
        return g->error;
    }
    if (ra == 1 && rb == 1) {
        return mc_call_op(g, "mul", 2, x, NULL);
    }
    if (ra == 1 || rb == 1) { /* a number for each of the batch */
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
    return contract(mc_op_find("batched_dot"), &a, &b);
}

/* axes=2: the last two of a with the first two of b.  axes=[1, 2], axes_b=[0, 3]: pair by pair. */
static mc_node *build_tensordot(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_node *x[2];
    int64_t axis[2][MC_MAX_RANK];
    int n = attr[1].none ? (int)mc_attr_int(&attr[0]) : attr[0].n;
    if (attr[1].none && attr[0].n != 1) {
        return mc_node_fail(g, MC_EARG, "tensordot: axes is a count, or else axes_b has to pair with it");
    }
    if (!attr[1].none && attr[1].n != n) {
        return mc_node_fail(g, MC_EARG, "tensordot: %d axes are paired with %d", n, attr[1].n);
    }
    if (n < 0 || n > in[0]->type.rank || n > in[1]->type.rank) {
        return mc_node_fail(g, MC_ESHAPE, "tensordot: %d axes of ranks %d and %d", n, in[0]->type.rank,
                            in[1]->type.rank);
    }
    if (!meet(in, x)) {
        return g->error;
    }
    for (int k = 0; k < 2; k++) {
        unsigned seen = 0;
        for (int i = 0; i < n; i++) {
            int r = x[k]->type.rank, at;
            int64_t given = !attr[1].none ? attr[k].ints[i] : k ? i : r - n + i;
            if (mc_axis_check("tensordot", given, r, &at) < 0) {
                return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
            }
            if (seen & 1u << at) {
                return mc_node_fail(g, MC_EARG, "tensordot: axis %d is given twice", at);
            }
            seen |= 1u << at;
            axis[k][i] = at;
        }
    }
    struct side a = side_make(x[0], 0, n, axis[0]), b = side_make(x[1], 0, n, axis[1]);
    return contract(mc_op_find("tensordot"), &a, &b);
}

const struct mc_op mc_ops_product[] = {
    { .name = "dot", .flags = OP_HEAVY, .params = "a, b", .nout = 1, .infer = dot_infer, .size = product_size, .eval = product_eval,
      .dx = { "dot(g, b.T)", "dot(a.T, g)" }, .build = build_dot,
      .doc = "matrix product; the sum over a's last axis and b's last but one" },
    { .name = "batched_dot", .flags = OP_HEAVY, .params = "a, b", .nout = 1, .infer = batched_infer, .size = product_size,
      .eval = product_eval, .build = build_batched,
      .dx = { "batched_dot(g, dimshuffle(b, [0, 2, 1]))", "batched_dot(dimshuffle(a, [0, 2, 1]), g)" },
      .doc = "dot(a[i], b[i]) for each i" },
    { .name = "tensordot", .params = "a, b, axes=2:ints, axes_b=None:ints", .nout = 1, .build = build_tensordot,
      .doc = "sum over the last axes of a and the first of b, or over a's axes paired with b's axes_b" },
};
const int mc_nops_product = (int)NELEM(mc_ops_product);
