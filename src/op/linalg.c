/* linalg.c: linear algebra on stacks of matrices, the last two axes of a tensor: factorizations, systems of
 * equations, eigenvalues, singular values.
 *
 * The nodes are factor problems (op/matrix/matrix.h); what can be written with them is a formula
 * (formulas.def).
 *
 * Invariant: the inputs of a node have its dtype, float32 or float64, and the same axes before the last
 * two. */
#include "op/matrix/matrix.h"
#include "op/op.h"
#include <math.h>

/* ---- types ---- */

static bool differ(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 && a != b;
}

static mc_status check_matrices(const struct mc_infer *q, enum mc_factor_kind kind)
{
    const struct mc_type *x = &q->in[0], *b = &q->in[1];
    const int r = x->rank;
    const char *name = kind == FACTOR_LU ? q->attr[0].text : q->op->name;
    const bool any_shape = (kind == FACTOR_LU && strcmp(name, "lu") == 0) || kind == FACTOR_QR ||
                           kind == FACTOR_R || kind == FACTOR_SVD || kind == FACTOR_SVDVALS;
    if (r < 2) {
        return mc_fail(MC_ESHAPE, "%s: expected a matrix or a stack of matrices, not a tensor of rank %d",
                       name, r);
    }
    if (x->dtype != MC_FLOAT32 && x->dtype != MC_FLOAT64) {
        return mc_fail(MC_ETYPE, "%s: takes float32 and float64, not %s", name, mc_dtype_name(x->dtype));
    }
    if (!any_shape && differ(x->dims[r - 2], x->dims[r - 1])) {
        return mc_fail(MC_ESHAPE, "%s: the matrix is not square, but %lld x %lld", name,
                       (long long)x->dims[r - 2], (long long)x->dims[r - 1]);
    }
    if (q->nin < 2) {
        return MC_OK;
    }
    if (b->rank != r || b->dtype != x->dtype) {
        return mc_fail(MC_ESHAPE, "%s: operands of ranks %d and %d do not fit", name, r, b->rank);
    }
    for (int i = 0; i < r - 2; i++) {
        if (differ(x->dims[i], b->dims[i])) {
            return mc_fail(MC_ESHAPE, "%s: sizes %lld and %lld of a batch axis differ", name,
                           (long long)x->dims[i], (long long)b->dims[i]);
        }
    }
    return differ(x->dims[r - 1], b->dims[r - 2])
               ? mc_fail(MC_ESHAPE, "%s: the matrix has %lld columns, but there are %lld right hand sides",
                         name, (long long)x->dims[r - 1], (long long)b->dims[r - 2])
               : MC_OK;
}

static int64_t least(int64_t m, int64_t n)
{
    return m == 0 || n == 0 ? 0 : m < 0 || n < 0 ? -1 : MC_MIN(m, n);
}

static mc_status matrix_infer(struct mc_infer *q)
{
    const enum mc_factor_kind kind = mc_factor_kind_of(q->op);
    TRY(check_matrices(q, kind));
    const struct mc_type x = q->in[0];
    const int r = x.rank;
    const int64_t m = x.dims[r - 2], n = x.dims[r - 1], few = least(m, n);
    struct mc_type *y = q->out, line = mc_type_make(x.dtype, r - 1, x.dims);
    const bool whole = (kind == FACTOR_QR || kind == FACTOR_SVD) && mc_attr_int(&q->attr[0]);
    y[0] = y[1] = y[2] = x;
    switch (kind) {
    case FACTOR_CHOLESKY:
    case FACTOR_INVERSE: y[0].dims[r - 2] = y[0].dims[r - 1] = m < 0 ? n : m; break;
    case FACTOR_TRIANGULAR:
    case FACTOR_SOLVE: y[0].dims[r - 1] = q->in[1].dims[r - 1]; break;
    case FACTOR_LU:
        y[1] = line;
        y[1].dtype = MC_INT64;
        y[2] = mc_type_make(x.dtype, r - 2, x.dims);
        break;
    case FACTOR_QR: y[0].dims[r - 1] = whole ? m : few; /* fall through */
    case FACTOR_R: y[kind == FACTOR_QR].dims[r - 2] = whole ? m : few; break;
    case FACTOR_SVD:
    case FACTOR_SVDVALS:
        y[0].dims[r - 1] = whole ? m : few;
        y[2].dims[r - 2] = whole ? n : few;
        line.dims[r - 2] = few;
        y[kind == FACTOR_SVD] = line;
        break;
    case FACTOR_EIGH:
    case FACTOR_EIG:
    case FACTOR_EIGVALSH:
    case FACTOR_EIGVALS: y[0] = line; break;
    case FACTOR_NKIND: break;
    }
    return MC_OK;
}

/* The axis of the input that gives the size, or both of the last two: their minimum. */
static mc_node *matrix_size(mc_node *n, int item, int axis)
{
    const enum mc_factor_kind kind = mc_factor_kind_of(n->op);
    mc_node *x = n->in[0];
    const int r = x->type.rank;
    const bool qr = kind == FACTOR_QR || kind == FACTOR_R, svd = kind == FACTOR_SVD || kind == FACTOR_SVDVALS;
    bool few = (kind == FACTOR_QR && item == 0 && axis == r - 1) ||
               (qr && item == (kind == FACTOR_QR) && axis == r - 2) ||
               (kind == FACTOR_SVD && item == 0 && axis == r - 1) ||
               (kind == FACTOR_SVD && item == 2 && axis == r - 2) ||
               (svd && item == (kind == FACTOR_SVD) && axis == r - 2);
    if (few && (kind == FACTOR_QR || (kind == FACTOR_SVD && item != 1)) && mc_attr_int(&n->attr[0])) {
        return mc_size_of(x, kind == FACTOR_QR || item == 0 ? r - 2 : r - 1);
    }
    if (few) {
        return mc_call_op(n->graph, "minimum", 2, (mc_node *[]){ mc_size_of(x, r - 2), mc_size_of(x, r - 1) },
                          NULL);
    }
    return mc_size_of(n->in[n->nin > 1 && axis == r - 1], axis);
}

/* ---- the reference ---- */

static mc_status matrix_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    struct mc_type type[FACTOR_MOST_IN];
    struct mc_factor f;
    const void *from[FACTOR_MOST_IN] = { NULL };
    void *to[FACTOR_MOST_OUT] = { NULL }, *work = NULL;
    mc_array *copy[FACTOR_MOST_IN] = { NULL };
    mc_status s = MC_OK;
    for (int i = 0; i < n->nin && s == MC_OK; i++) {
        type[i] = mc_type_make(in[i]->dtype, in[i]->rank, in[i]->dims);
        copy[i] = mc_array_is_contiguous(in[i]) ? mc_array_ref(in[i]) : mc_array_copy(in[i]);
        s = copy[i] ? MC_OK : mc_last_status();
        from[i] = copy[i] ? copy[i]->data : NULL;
    }
    s = s < 0 ? s : mc_factor_of(n, type, &f);
    for (int i = 0; s == MC_OK && i < n->nout; i++) {
        to[i] = out[i]->data;
    }
    if (s == MC_OK && !(work = mc_alloc(mc_factor_work(&f), "linalg"))) {
        s = MC_EMEMORY;
    }
    s = s < 0 ? s : mc_factor_each(&f, mc_factor_reference[f.dtype == MC_FLOAT64][f.kind], from, to, work);
    mc_free(work);
    for (int i = 0; i < n->nin; i++) {
        mc_array_unref(&copy[i]);
    }
    return s;
}

/* ---- what users write ---- */


static mc_node *as_float(mc_node *x)
{
    return mc_is_float(x->type.dtype) ? x : mc_cast_to(x, MC_FLOAT64);
}

/* Integers become float64. */
static mc_node *build_one(mc_graph *g, const char *op, mc_node *x, const struct mc_attr *attr)
{
    x = as_float(x);
    return mc_is_error(x) ? x : mc_node_make(g, mc_op_named(g, op), 1, &x, attr);
}

static mc_node *swapped(mc_node *x)
{
    return x->type.rank < 2 ? x : mc_call_op(x->graph, "swapaxes", 1, &x, "a=-1, b=-2");
}

/* With the upper triangle: the transposed matrix. */
static mc_node *build_cholesky(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const bool lower = mc_attr_int(&attr[0]) != 0;
    int64_t one = 1;
    struct mc_attr own = attr[0];
    (void)nin;
    own.ints = &one;
    mc_node *y = build_one(g, "cholesky", lower ? in[0] : swapped(in[0]), &own);
    return lower || mc_is_error(y) ? y : swapped(y);
}

static mc_node *build_symmetric(mc_graph *g, const char *op, mc_node *x, const struct mc_attr *attr)
{
    struct mc_attr own = *attr;
    const bool upper = strcmp(attr->text, "U") == 0;
    if (!upper && strcmp(attr->text, "L") != 0) {
        return mc_node_fail(g, MC_EARG, "%s: UPLO must be 'L' or 'U', not '%s'", op, attr->text);
    }
    own.text = "L";
    return build_one(g, op, upper ? swapped(x) : x, &own);
}

static mc_node *build_eigh(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return build_symmetric(g, "eigh", in[0], attr);
}

static mc_node *build_eigvalsh(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return build_symmetric(g, "eigvalsh", in[0], attr);
}

#define BUILD_ONE(name)                                                                                          \
    static mc_node *build_##name(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)            \
    {                                                                                                            \
        (void)nin;                                                                                               \
        return build_one(g, #name, in[0], attr);                                                                 \
    }
BUILD_ONE(matrix_inverse)
BUILD_ONE(lu_rows)
BUILD_ONE(svdvals)
BUILD_ONE(eig)
BUILD_ONE(eigvals)

static mc_node *build_svd(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    struct mc_attr own[2] = { attr[0], attr[1] };
    int64_t one = 1;
    (void)nin;
    own[1].ints = &one;
    return mc_attr_int(&attr[1]) ? build_one(g, "svd", in[0], own) : build_one(g, "svdvals", in[0], NULL);
}

static mc_node *build_qr(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const char *mode = attr[0].text;
    int64_t complete = strcmp(mode, "complete") == 0;
    const struct mc_attr own = { .kind = ATTR_BOOL, .n = 1, .ints = &complete };
    (void)nin;
    return strcmp(mode, "r") == 0 ? build_one(g, "qr_r", in[0], NULL)
           : complete || strcmp(mode, "reduced") == 0
               ? build_one(g, "qr_factors", in[0], &own)
               : mc_node_fail(g, MC_EARG, "qr: mode must be reduced, complete or r, not '%s'", mode);
}

/* x with `rank` axes, by axes of size 1 in front. */
static mc_node *with_rank(mc_node *x, int rank)
{
    return x->type.rank < rank ? mc_call_op(x->graph, "shape_padleft", 1, &x, "n=%d", rank - x->type.rank)
                               : x;
}

/* x whose axes before the last two have the sizes of y's, where a size of 1 broadcasts. */
static mc_node *with_batch(mc_node *x, mc_node *y)
{
    const int r = x->type.rank;
    mc_node *size[MC_MAX_RANK], *in[2] = { x, NULL };
    bool same = true;
    for (int i = 0; i < r; i++) {
        const bool repeats = i < r - 2 && x->type.dims[i] == 1 && y->type.dims[i] != 1;
        size[i] = mc_size_of(repeats ? y : x, i);
        same &= !repeats;
    }
    if (same) {
        return x;
    }
    in[1] = mc_shape_stack(x->graph, r, size);
    return mc_call_op(x->graph, "alloc", 2, in, NULL);
}

/* a, b with a common dtype, rank and batch.  b of rank 1 is a vector, and the result becomes one. */
static mc_node *build_system(mc_graph *g, const char *op, mc_node *const *in, const struct mc_attr *attr)
{
    mc_node *x[2] = { as_float(in[0]), as_float(in[1]) };
    const bool vector = in[1]->type.rank == 1;
    if (in[0]->type.rank < 2 || in[1]->type.rank < 1) {
        return mc_node_fail(g, MC_ESHAPE,
                            "%s: expected a matrix and a vector or matrix, not tensors of ranks %d and %d",
                            op, in[0]->type.rank, in[1]->type.rank);
    }
    const mc_dtype d = mc_meet(2, x, 0);
    x[0] = mc_cast_to(x[0], d);
    x[1] = mc_cast_to(vector ? mc_call_op(g, "expand_dims", 1, &x[1], "axis=1") : x[1], d);
    for (int i = 0; i < 2; i++) {
        x[i] = mc_is_error(x[i]) || mc_is_error(x[1 - i]) ? x[i] : with_rank(x[i], x[1 - i]->type.rank);
    }
    if (mc_is_error(x[0]) || mc_is_error(x[1])) {
        return g->error;
    }
    mc_node *y[2] = { with_batch(x[0], x[1]), with_batch(x[1], x[0]) };
    mc_node *result = mc_is_error(y[0]) || mc_is_error(y[1])
                          ? g->error
                          : mc_node_make(g, mc_op_named(g, op), 2, y, attr);
    return vector && !mc_is_error(result)
               ? mc_expr(g, "x[..., 0]", (struct mc_bind[]){ { "x", result, NULL } }, 1)
               : result;
}

static mc_node *build_triangular(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const int64_t trans = mc_attr_int(&attr[0]);
    (void)nin;
    return trans < 0 || trans > 1
               ? mc_node_fail(g, MC_EARG, "solve_triangular: trans must be 0 or 1, not %lld",
                              (long long)trans)
               : build_system(g, "solve_triangular", in, attr);
}

static mc_node *build_solve(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const char *assume = attr[0].text;
    struct mc_attr own = attr[0];
    (void)nin;
    own.text = "gen";
    if (strcmp(assume, "pos") == 0) {
        return mc_expr(g, "cho_solve(cholesky(a), b)",
                       (struct mc_bind[]){ { "a", in[0], NULL }, { "b", in[1], NULL } }, 2);
    }
    return strcmp(assume, "gen") == 0
               ? build_system(g, "solve", in, &own)
               : mc_node_fail(g, MC_EARG, "solve: assume_a must be 'gen' or 'pos', not '%s'", assume);
}

/* ---- gradients ---- */

/* A formula over x, b: the inputs; y, y1, y2: the results; g, g1, g2: their gradients, zeros where there is
 * none. */
static mc_node *grad_text(mc_node *n, const char *text, mc_node *const *g)
{
    static const char *const results[] = { "y", "y1", "y2" }, *const grads[] = { "g", "g1", "g2" };
    struct mc_bind bind[2 * FACTOR_MOST_OUT + FACTOR_MOST_IN];
    int k = 0;
    for (int i = 0; i < n->nin; i++) {
        bind[k++] = (struct mc_bind){ i ? "b" : "x", n->in[i], NULL };
    }
    for (int i = 0; i < n->nout; i++) {
        mc_node *y = mc_item(n, i);
        bind[k++] = (struct mc_bind){ results[i], y, NULL };
        bind[k++] = (struct mc_bind){ grads[i], g[i] ? g[i] : mc_call_op(n->graph, "zeros_like", 1, &y, NULL),
                                      NULL };
    }
    return mc_expr(n->graph, text, bind, k);
}

static mc_node *triangular_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const bool trans = mc_attr_int(&n->attr[0]) != 0, lower = mc_attr_int(&n->attr[1]) != 0,
               unit = mc_attr_int(&n->attr[2]) != 0;
    char solved[120], text[240];
    mc_snprintf(solved, sizeof solved, "solve_triangular(x, g, trans=%d, lower=%s, unit_diagonal=%s)", !trans,
                lower ? "True" : "False", unit ? "True" : "False");
    mc_snprintf(text, sizeof text, "h = %s; -%s(%s, k=%d)", solved, lower ? "tril" : "triu",
                trans ? "matmul(y, mT(h))" : "matmul(h, mT(y))",
                !unit   ? 0
                : lower ? -1
                        : 1);
    return grad_text(n, wrt ? solved : text, g);
}

static mc_node *solve_grad(mc_node *n, int wrt, mc_node *const *g)
{
    return grad_text(n, wrt ? "solve(mT(x), g)" : "-matmul(solve(mT(x), g), mT(y))", g);
}

/* The texts for a matrix of which the lower triangle is read: the gradient is zero above the diagonal. */
static mc_node *cholesky_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return grad_text(n,
                     "m = matmul(mT(y), g); p = tril(m) - 0.5 * tril(triu(m)); "
                     "h = solve_triangular(y, p, trans=1, lower=True); "
                     "s = solve_triangular(y, mT(h), trans=1, lower=True); tril(s + mT(s)) - tril(triu(s))",
                     g);
}

/* d[i, j] = w[j] - w[i], z: i == j.  Of equal eigenvalues the vectors have no derivative: what divides by d
 * is not finite. */
#define GAPS "n = arange(size(y, -1)); z = eq(expand_dims(n, 1), n); d = expand_dims(y, -2) - expand_dims(y, -1); "
#define LOWER "tril(s + mT(s)) - tril(triu(s))"
static mc_node *eigh_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return grad_text(n,
                     g[1] ? GAPS "f = where(z, 0, matmul(mT(y1), g1) / where(z, 1, d)); "
                                 "s = matmul(matmul(y1, f) + y1 * expand_dims(g, -2), mT(y1)); " LOWER
                          : "s = matmul(y1 * expand_dims(g, -2), mT(y1)); " LOWER,
                     g);
}

static mc_node *eigvalsh_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return grad_text(n, "v = eigh(x)[1]; s = matmul(v * expand_dims(g, -2), mT(v)); " LOWER, g);
}

static mc_node *svdvals_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return grad_text(n, "p = svd(x, full_matrices=False); matmul(p[0] * expand_dims(g, -2), p[2])", g);
}

/* Is the matrix known to have as many rows as columns? */
static bool is_square(const mc_node *x)
{
    const int r = x->type.rank;
    return x->type.dims[r - 1] >= 0 && x->type.dims[r - 1] == x->type.dims[r - 2];
}

/* As with eigenvalues.  What the vectors of a matrix that is not square lack of a basis is divided by
 * singular values. */
#define PAIRS                                                                                                  \
    "n = arange(size(y1, -1)); z = eq(expand_dims(n, 1), n); r = expand_dims(y1, -2); c = expand_dims(y1, -1); " \
    "f = where(z, 0, 1 / where(z, 1, (r - c) * (r + c))); u = matmul(mT(y), g); v = matmul(y2, mT(g2)); "        \
    "j = f * u; k = f * v; a = (j + mT(j)) * r + c * (k + mT(k)); "
static mc_node *svd_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const bool whole = mc_attr_int(&n->attr[0]) && !is_square(n->in[0]);
    (void)wrt;
    if (!g[0] && !g[2]) {
        return grad_text(n, "p = svd(x, full_matrices=False); matmul(p[0] * expand_dims(g1, -2), p[2])", g);
    }
    return whole ? mc_node_fail(n->graph, MC_EGRAD,
                                "svd: with full_matrices=True only the singular values have a gradient, "
                                "unless the matrix "
                                "is known to be square; use full_matrices=False")
                 : grad_text(
                       n,
                       is_square(n->in[0]) ? PAIRS "matmul(matmul(y, a) + y * expand_dims(g1, -2), y2)"
                                           : PAIRS
                           "matmul(matmul(y, a) + y * expand_dims(g1, -2) + (g - matmul(y, u)) / r, y2) + "
                           "matmul(y / r, g2 - matmul(mT(v), y2))",
                       g);
}

/* For a matrix with more columns than rows: of Q R1 = the first columns; the others are Q^T times theirs. */
static mc_node *qr_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const int r = n->in[0]->type.rank;
    const int64_t rows = n->in[0]->type.dims[r - 2], columns = n->in[0]->type.dims[r - 1];
    (void)wrt;
    if (mc_attr_int(&n->attr[0]) && !(rows >= 0 && columns >= rows)) {
        return mc_node_fail(
            n->graph, MC_EGRAD,
            "qr: with mode='complete' there is no gradient, unless the matrix is known to have no more "
            "rows than columns; use mode='reduced'");
    }
    return grad_text(n,
                     "k = size(y, -1); r = y1[..., :k]; h = g1[..., k:]; q = g + matmul(x[..., k:], mT(h)); "
                     "m = matmul(r, mT(g1[..., :k])) - matmul(mT(q), y); c = tril(m) + mT(tril(m, k=-1)); "
                     "a = mT(solve_triangular(r, mT(q + matmul(y, c)))); join(a, matmul(y, h), axis=-1)",
                     g);
}

static mc_node *r_grad(mc_node *n, int wrt, mc_node *const *g)
{
    int64_t complete = 0;
    const struct mc_attr own = { .kind = ATTR_BOOL, .n = 1, .ints = &complete };
    mc_node *qr = mc_node_make(n->graph, mc_op_named(n->graph, "qr_factors"), 1, n->in, &own),
            *both[2] = { NULL, g[0] };
    return mc_is_error(qr) ? qr : qr_grad(qr, wrt, both);
}

static mc_node *lu_grad(mc_node *n, int wrt, mc_node *const *g)
{
    const int r = n->in[0]->type.rank;
    (void)wrt;
    if (differ(n->in[0]->type.dims[r - 2], n->in[0]->type.dims[r - 1])) {
        return mc_node_fail(n->graph, MC_EGRAD, "lu: only square matrices have a gradient");
    }
    return g[0] ? grad_text(n,
                            "l = tril(y, k=-1) + cast(eye(size(y, -1)), y.dtype); u = triu(y); "
                            "m = tril(matmul(mT(l), tril(g, k=-1)), k=-1) + triu(matmul(triu(g), mT(u))); "
                            "h = solve_triangular(y, m, trans=1, lower=True, unit_diagonal=True); "
                            "a = mT(solve_triangular(y, mT(h))); "
                            "p = eq(expand_dims(arange(size(y, -2)), 1), expand_dims(y1, -2)); "
                            "matmul(cast(p, y.dtype), a)",
                            g)
                : NULL;
}

static mc_node *eig_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return grad_text(
        n,
        g[1] ? GAPS
            "w = mT(y1); e = matmul(w, g1); "
            "f = where(z, 0, (e - matmul(w, y1) * sum(y1 * g1, axis=-2, keepdims=True)) / where(z, 1, d)); "
            "i = cast(eye(size(y, -1)), y.dtype); matmul(solve(w, f + i * expand_dims(g, -1)), w)"
             : "w = mT(y1); solve(w, expand_dims(g, -1) * w)",
        g);
}

static mc_node *eigvals_grad(mc_node *n, int wrt, mc_node *const *g)
{
    (void)wrt;
    return grad_text(n, "w = mT(eig(x)[1]); solve(w, expand_dims(g, -1) * w)", g);
}

#define NODE .infer = matrix_infer, .size = matrix_size, .eval = matrix_eval
const struct mc_op mc_ops_linalg[] = {
    { .name = "cholesky", .params = "x, lower=True:bool", .nout = 1, NODE, .build = build_cholesky, .grad = cholesky_grad,
      .example = MANUAL("x = [[4., 2], [2, 10]]; cholesky(x)"),
      .doc = MANUAL("the lower triangular L with L L^T = x, for symmetric positive definite x, whose lower triangle is read; "
             "lower=False: the upper triangular U with U^T U = x, from the upper triangle") },
    { .name = "solve_triangular", .params = "a, b, trans=0:int, lower=False:bool, unit_diagonal=False:bool", .nout = 1, NODE,
      .build = build_triangular, .grad = triangular_grad,
      .example = MANUAL("a = [[2., 0], [1, 4]]; b = [2., 9]; solve_triangular(a, b, lower=True)"),
      .doc = MANUAL("the solution x of a x = b, or with trans=1 of a^T x = b, for triangular a, of which one triangle is read; "
             "unit_diagonal: its diagonal counts as ones; b is a vector or a matrix") },
    { .name = "lu_rows", .flags = OP_HIDDEN, .params = "x, op=lu:text", .nout = 3, NODE, .build = build_lu_rows, .grad = lu_grad,
      .doc = MANUAL("L without its diagonal and U in one matrix, the order p of rows so that x[p] = L U, and the sign of p; "
             "for det and slogdet, which op names, x must be square") },
    { .name = "solve", .params = "a, b, assume_a=gen:text", .nout = 1, NODE, .build = build_solve, .grad = solve_grad,
      .example = MANUAL("a = [[1., 2], [3, 4]]; b = [5., 6]; solve(a, b)"),
      .doc = MANUAL("the solution x of a x = b, by LU factors with partial pivoting, or with assume_a='pos' by Cholesky's; "
             "b of rank 1 is a vector, else a matrix or a stack of matrices") },
    { .name = "matrix_inverse", .params = "x", .nout = 1, NODE, .build = build_matrix_inverse,
      .dx = { "h = mT(y); -matmul(matmul(h, g), h)" },
      .example = MANUAL("x = [[1., 2], [3, 4]]; matrix_inverse(x)"),
      .doc = MANUAL("the inverse of a matrix; NumPy's linalg.inv. inv(x) is 1 / x") },
    BUILT({ .name = "qr", .params = "x, mode=reduced:text", .nout = 2, .build = build_qr,
      .example = MANUAL("x = [[3., 1], [4, 2]]; qr(x)"),
      .doc = MANUAL("Q with orthonormal columns and upper triangular R with Q R = x, by reflections; of an m by n matrix with "
             "k = min(m, n) Q is m by k, with mode='complete' m by m; mode='r': R alone. Signs are LAPACK's: the diagonal "
             "of R may be negative") })
    { .name = "qr_factors", .flags = OP_HIDDEN, .params = "x, complete=False:bool", .nout = 2, NODE, .grad = qr_grad, .doc = MANUAL("qr(x)") },
    { .name = "qr_r", .flags = OP_HIDDEN, .params = "x", .nout = 1, NODE, .grad = r_grad, .doc = MANUAL("the R of qr(x)") },
    { .name = "eigh", .params = "x, UPLO=L:text", .nout = 2, NODE, .build = build_eigh, .grad = eigh_grad,
      .example = MANUAL("x = [[2., 1], [1, 2]]; eigh(x)"),
      .doc = MANUAL("eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns; the lower triangle is read, or "
             "with UPLO='U' the upper one. In each vector the first element that is at least half as large as the largest "
             "one is positive") },
    { .name = "eigvalsh", .params = "x, UPLO=L:text", .nout = 1, NODE, .build = build_eigvalsh, .grad = eigvalsh_grad,
      .example = MANUAL("x = [[2., 1], [1, 2]]; eigvalsh(x)"),
      .doc = MANUAL("eigenvalues of a symmetric matrix, ascending; the triangle that is read is that of eigh") },
    { .name = "svd", .params = "x, full_matrices=True:bool, compute_uv=True:bool", .nout = 3, NODE, .build = build_svd, .grad = svd_grad,
      .example = MANUAL("x = [[3., 0], [4, 5]]; svd(x)"),
      .doc = MANUAL("U, s and V^T with U diag(s) V^T = x: singular values s, descending, and vectors as columns of U and rows of "
             "V^T; full_matrices=False: of the longer side only min(m, n) vectors; compute_uv=False: s alone. Signs of the "
             "columns of U are those of eigh's vectors") },
    { .name = "svdvals", .params = "x", .nout = 1, NODE, .build = build_svdvals, .grad = svdvals_grad,
      .example = MANUAL("x = [[3., 0], [4, 5]]; svdvals(x)"),
      .doc = MANUAL("singular values of a matrix, descending") },
    { .name = "eig", .params = "x", .nout = 2, NODE, .build = build_eig, .grad = eig_grad,
      .example = MANUAL("x = [[2., 1], [2, 3]]; eig(x)"),
      .doc = MANUAL("eigenvalues of a square matrix, ascending, and eigenvectors of length 1 as columns, with signs as eigh's; complex "
             "eigenvalues are an error, MC_ECHECK, when the function is called") },
    { .name = "eigvals", .params = "x", .nout = 1, NODE, .build = build_eigvals, .grad = eigvals_grad,
      .example = MANUAL("x = [[2., 1], [2, 3]]; eigvals(x)"),
      .doc = MANUAL("eigenvalues of a square matrix, ascending; complex ones are an error") },
};
const int mc_nops_linalg = (int)NELEM(mc_ops_linalg);
