/* linalg_names.c: diagonals, powers, norms and other ops on matrices that are built of other ops. */
#include "op/op.h"
#include <math.h>

static mc_node *failed(mc_graph *g)
{
    return mc_node_fail(g, mc_last_status(), "%s", mc_last_error());
}

static mc_node *one(mc_graph *g, const char *text, mc_node *x)
{
    return mc_expr(g, text, (struct mc_bind[]){ { "x", x, NULL } }, 1);
}

/* ---- diagonals ---- */

/* The k-th diagonal of the last two axes.  Of contiguous x it is a view: x with those axes merged, in steps
 * of one more than the number of columns. */
static mc_node *diagonal_of(mc_node *x, const struct mc_attr *k)
{
    mc_graph *g = x->graph;
    const int r = x->type.rank;
    mc_node *size[MC_MAX_RANK], *in[2] = { x, NULL };
    for (int i = 0; i < r - 2; i++) {
        size[i] = mc_size_of(x, i);
    }
    size[r - 2] = one(g, "size(x, -2) * size(x, -1)", x);
    in[1] = mc_shape_stack(g, r - 1, size);
    mc_node *flat = mc_is_error(size[r - 2]) ? g->error : mc_call_op(g, "reshape", 2, in, "ndim=%d", r - 1);
    return mc_expr(
        g,
        mc_attr_int(k) < 0
            ? "n = size(x, -1); m = maximum(minimum(size(x, -2) + k, n), 0); y[..., -k * n:-k * n + m * (n + "
              "1):n + 1]"
            : "n = size(x, -1); m = maximum(minimum(size(x, -2), n - k), 0); y[..., k:k + m * (n + 1):n + 1]",
        (struct mc_bind[]){ { "x", x, NULL }, { "y", flat, NULL }, { "k", NULL, k } }, 3);
}

/* x with two axes moved to the end. */
static mc_node *axes_last(mc_graph *g, const char *op, mc_node *x, int64_t first, int64_t second)
{
    const int r = x->type.rank;
    int64_t order[MC_MAX_RANK];
    int a, b, n = 0;
    if (r < 2) {
        return mc_node_fail(g, MC_ESHAPE, "%s: expected a tensor of rank 2 or more, not %d", op, r);
    }
    if (mc_axis_check(op, first, r, &a) < 0 || mc_axis_check(op, second, r, &b) < 0) {
        return failed(g);
    }
    if (a == b) {
        return mc_node_fail(g, MC_EARG, "%s: the axis %d is given twice", op, a);
    }
    for (int i = 0; i < r; i++) {
        if (i != a && i != b) {
            order[n++] = i;
        }
    }
    order[n++] = a;
    order[n++] = b;
    const struct mc_attr axes = { .kind = ATTR_INTS, .n = n, .ints = order };
    return mc_apply(g, mc_op_named(g, "transpose"), 1, &x, &axes);
}

static mc_node *build_diagonal(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_node *x = axes_last(g, "diagonal", in[0], mc_attr_int(&attr[1]), mc_attr_int(&attr[2]));
    return mc_is_error(x) ? x : diagonal_of(x, &attr[0]);
}

static mc_node *build_trace(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    mc_node *x = axes_last(g, "trace", in[0], mc_attr_int(&attr[1]), mc_attr_int(&attr[2]));
    x = mc_is_error(x) ? x : diagonal_of(x, &attr[0]);
    return mc_is_error(x) ? x : one(g, "sum(x, axis=-1)", x);
}

static mc_node *build_diag(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const int64_t k = mc_attr_int(&attr[0]);
    int64_t size = k < 0 ? -k : k;
    const struct mc_attr pad = { .kind = ATTR_INT, .n = 1, .ints = &size };
    const int r = in[0]->type.rank;
    (void)nin;
    if (r < 1 || r > 2) {
        return mc_node_fail(g, MC_ESHAPE, "diag: expected a vector or a matrix, not a tensor of rank %d", r);
    }
    if (r == 2) {
        return diagonal_of(in[0], &attr[0]);
    }
    return mc_expr(g,
                   k < 0 ? "v = join(x, alloc(cast(0, x.dtype), [p])); i = arange(size(v, 0)); "
                           "where(eq(expand_dims(i, 1) + k, i), v, cast(0, x.dtype))"
                         : "v = join(x, alloc(cast(0, x.dtype), [p])); i = arange(size(v, 0)); "
                           "where(eq(expand_dims(i, 1) + k, i), expand_dims(v, 1), cast(0, x.dtype))",
                   (struct mc_bind[]){ { "x", in[0], NULL }, { "k", NULL, &attr[0] }, { "p", NULL, &pad } },
                   3);
}

/* ---- products ---- */

/* By squaring. */
static mc_node *build_matrix_power(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    int64_t n = mc_attr_int(&attr[0]);
    const int r = in[0]->type.rank;
    mc_node *x = in[0], *y = NULL;
    (void)nin;
    if (r < 2) {
        return mc_node_fail(g, MC_ESHAPE,
                            "matrix_power: expected a matrix or a stack of matrices, not a tensor of rank %d",
                            r);
    }
    if (x->type.dims[r - 1] >= 0 && x->type.dims[r - 2] >= 0 && x->type.dims[r - 1] != x->type.dims[r - 2]) {
        return mc_node_fail(g, MC_ESHAPE, "matrix_power: the matrix is not square, but %lld x %lld",
                            (long long)x->type.dims[r - 2], (long long)x->type.dims[r - 1]);
    }
    if (n == 0) {
        return one(g, "alloc(cast(eye(size(x, -1)), x.dtype), x.shape)", x);
    }
    if (n < 0) {
        x = mc_call_op(g, "matrix_inverse", 1, &x, NULL);
        n = -n;
    }
    for (; n && !mc_is_error(x); n /= 2) {
        if (n % 2) {
            y = y ? mc_call_op(g, "matmul", 2, (mc_node *[]){ y, x }, NULL) : x;
        }
        x = n > 1 ? mc_call_op(g, "matmul", 2, (mc_node *[]){ x, x }, NULL) : x;
    }
    return mc_is_error(x) ? x : y;
}

enum { MOST_FACTORS = 64 };

/* The product of the factors from..to in the order that cost[][] found; a size that is not known counts as
 * 1. */
static mc_node *chain(mc_graph *g, mc_node *const *in, int from, int to, int (*split)[MOST_FACTORS])
{
    if (from == to) {
        return in[from];
    }
    mc_node *x[2] = { chain(g, in, from, split[from][to], split),
                      chain(g, in, split[from][to] + 1, to, split) };
    return mc_is_error(x[0]) || mc_is_error(x[1]) ? g->error : mc_call_op(g, "dot", 2, x, NULL);
}

/* In the order of the fewest multiplications. */
static mc_node *build_matrix_dot(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    static const int first = 0;
    int split[MOST_FACTORS][MOST_FACTORS];
    double cost[MOST_FACTORS][MOST_FACTORS], size[MOST_FACTORS + 1];
    (void)attr;
    if (nin < 1 || nin > MOST_FACTORS) {
        return mc_node_fail(g, MC_EARG, "matrix_dot: expected 1 to %d factors, got %d", MOST_FACTORS, nin);
    }
    for (int i = 0; i < nin; i++) {
        const struct mc_type *t = &in[i]->type;
        if (t->rank < 1 || t->rank > 2 || (t->rank == 1 && i > 0 && i < nin - 1)) {
            return mc_node_fail(
                g, MC_ESHAPE,
                "matrix_dot: factor %d has rank %d; the factors are matrices, the first and the last may be "
                "vectors",
                i + 1, t->rank);
        }
        const int64_t row = t->rank == 1 && i == 0 ? 1 : t->dims[0],
                      column = t->rank == 1 && i ? 1 : t->dims[t->rank - 1];
        size[i] = i == first || size[i] < 2 ? (double)MC_MAX(row, 1) : size[i];
        size[i + 1] = (double)MC_MAX(column, 1);
    }
    for (int n = 0; n < nin; n++) {
        for (int i = 0; i + n < nin; i++) {
            const int k = i + n;
            cost[i][k] = n ? HUGE_VAL : 0;
            for (int at = i; at < k; at++) {
                const double c = cost[i][at] + cost[at + 1][k] + size[i] * size[at + 1] * size[k + 1];
                if (c < cost[i][k]) {
                    cost[i][k] = c;
                    split[i][k] = at;
                }
            }
        }
    }
    return chain(g, in, 0, nin - 1, split);
}

/* x with an axis of size 1 behind, or before, each of its axes. */
static mc_node *spread(mc_node *x, bool behind)
{
    int64_t order[2 * MC_MAX_RANK];
    const int r = x->type.rank;
    for (int i = 0; i < r; i++) {
        order[2 * i + !behind] = i;
        order[2 * i + behind] = -1;
    }
    const struct mc_attr a = { .kind = ATTR_INTS, .n = 2 * r, .ints = order };
    return mc_apply(x->graph, mc_op_named(x->graph, "dimshuffle"), 1, &x, &a);
}

static mc_node *build_kron(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    const int r = MC_MAX(in[0]->type.rank, in[1]->type.rank);
    mc_node *x[2], *size[MC_MAX_RANK], *product[2];
    (void)nin;
    (void)attr;
    if (2 * r > MC_MAX_RANK) {
        return mc_node_fail(g, MC_ESHAPE, "kron: takes tensors of up to %d axes, not %d", MC_MAX_RANK / 2, r);
    }
    for (int i = 0; i < 2; i++) {
        const int more = r - in[i]->type.rank;
        x[i] = more ? mc_call_op(g, "shape_padleft", 1, &in[i], "n=%d", more) : in[i];
        if (mc_is_error(x[i])) {
            return x[i];
        }
    }
    for (int i = 0; i < r; i++) {
        mc_node *both[2] = { mc_size_of(x[0], i), mc_size_of(x[1], i) };
        size[i] = mc_call_op(g, "mul", 2, both, NULL);
    }
    mc_node *far[2] = { spread(x[0], true), spread(x[1], false) };
    product[0] = mc_is_error(far[0]) || mc_is_error(far[1]) ? g->error : mc_call_op(g, "mul", 2, far, NULL);
    product[1] = r ? mc_shape_stack(g, r, size) : NULL;
    return mc_is_error(product[0]) || !r ? product[0] : mc_call_op(g, "reshape", 2, product, "ndim=%d", r);
}

/* ---- systems with a Cholesky factor ---- */

static mc_node *build_cho_solve(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return mc_expr(g,
                   mc_attr_int(&attr[0])
                       ? "solve_triangular(c, solve_triangular(c, b, lower=True), trans=1, lower=True)"
                       : "solve_triangular(c, solve_triangular(c, b, trans=1))",
                   (struct mc_bind[]){ { "c", in[0], NULL }, { "b", in[1], NULL } }, 2);
}

/* ---- norms, ranks, least squares ---- */

static mc_node *build_matrix_norm(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    static const struct { const char *ord, *text; } rows[] = {
        { "fro", "norm(x, 2, axis=[-2, -1])" },
        { "nuc", "sum(svdvals(x), axis=-1)" },
        { "2", "max(svdvals(x), axis=-1)" },
        { "-2", "min(svdvals(x), axis=-1)" },
        { "1", "max(sum(abs(x), axis=-2), axis=-1)" },
        { "-1", "min(sum(abs(x), axis=-2), axis=-1)" },
        { "inf", "max(sum(abs(x), axis=-1), axis=-1)" },
        { "-inf", "min(sum(abs(x), axis=-1), axis=-1)" },
    };
    mc_node *x = mc_is_float(in[0]->type.dtype) ? in[0] : mc_cast_to(in[0], MC_FLOAT64);
    (void)nin;
    if (x->type.rank < 2) {
        return mc_node_fail(g, MC_ESHAPE,
                            "matrix_norm: expected a matrix or a stack of matrices, not a tensor of rank %d",
                            x->type.rank);
    }
    for (size_t i = 0; i < NELEM(rows); i++) {
        if (strcmp(attr[0].text, rows[i].ord) == 0) {
            return one(g, rows[i].text, x);
        }
    }
    return mc_node_fail(g, MC_EARG, "matrix_norm: ord must be fro, nuc, 1, -1, 2, -2, inf or -inf, not '%s'",
                        attr[0].text);
}

/* The singular values below this part of the largest one count as zero: rcond, or the precision times the
 * longer side. */
static mc_node *cutoff(mc_graph *g, mc_node *x, const struct mc_attr *rcond)
{
    struct mc_attr eps = { .kind = ATTR_REAL, .real = mc_dtypes[x->type.dtype].eps };
    return rcond->none ? mc_expr(g, "cast(e * cast(maximum(size(x, -1), size(x, -2)), float64), x.dtype)",
                                 (struct mc_bind[]){ { "x", x, NULL }, { "e", NULL, &eps } }, 2)
                       : mc_node_number(g, x->type.dtype, rcond->real);
}

static mc_node *with_cutoff(mc_graph *g, const char *op, const char *text, mc_node *const *in,
                            const struct mc_attr *rcond)
{
    mc_node *x = mc_is_float(in[0]->type.dtype) ? in[0] : mc_cast_to(in[0], MC_FLOAT64);
    if (x->type.rank < 2) {
        return mc_node_fail(g, MC_ESHAPE,
                            "%s: expected a matrix or a stack of matrices, not a tensor of rank %d", op,
                            x->type.rank);
    }
    mc_node *c = cutoff(g, x, rcond);
    return mc_is_error(c)
               ? c
               : mc_expr(g, text,
                         (struct mc_bind[]){ { "x", x, NULL }, { "c", c, NULL }, { "b", in[1], NULL } }, 3);
}

static mc_node *build_pinv(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return with_cutoff(g, "pinv", "pinv_above(x, c)", (mc_node *[]){ in[0], in[0] }, &attr[0]);
}

static mc_node *build_matrix_rank(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return with_cutoff(g, "matrix_rank",
                       "s = svdvals(x); sum(s > c * sup(s, axis=-1, keepdims=True), axis=-1)",
                       (mc_node *[]){ in[0], in[0] }, &attr[0]);
}

static mc_node *build_lstsq(mc_graph *g, int nin, mc_node *const *in, const struct mc_attr *attr)
{
    (void)nin;
    return with_cutoff(
        g, "lstsq",
        in[1]->type.rank == 1
            ? "y = lstsq_above(x, expand_dims(b, 1), c); s = svdvals(x); "
              "[y[..., 0], sum(sqr(expand_dims(b, 1) - matmul(x, y)), axis=-2), "
              "sum(s > c * sup(s, axis=-1, keepdims=True), axis=-1), s]"
            : "y = lstsq_above(x, b, c); s = svdvals(x); [y, sum(sqr(b - matmul(x, y)), axis=-2), "
              "sum(s > c * sup(s, axis=-1, keepdims=True), axis=-1), s]",
        in, &attr[0]);
}

const struct mc_op mc_ops_linalg_names[] = {
    BUILT({ .name = "diagonal", .params = "x, offset=0:int, axis1=0:int, axis2=1:int", .nout = 1, .build = build_diagonal,
      .example = MANUAL("x = [[1., 2, 3], [4, 5, 6]]; diagonal(x, 1)"),
      .doc = MANUAL("the elements x[i, i + offset] of two axes, which become the last axis of the result") })
    BUILT({ .name = "diag", .params = "x, k=0:int", .nout = 1, .build = build_diag,
      .example = MANUAL("x = [1., 2]; diag(x, 1)"),
      .doc = MANUAL("of a vector: the matrix with it on the k-th diagonal, else zeros; of a matrix: its k-th diagonal") })
    BUILT({ .name = "trace", .params = "x, offset=0:int, axis1=0:int, axis2=1:int", .nout = 1, .build = build_trace,
      .example = MANUAL("x = [[1., 2], [3, 4]]; trace(x)"),
      .doc = MANUAL("the sum of diagonal(x)") })
    BUILT({ .name = "matrix_power", .params = "x, n:int", .nout = 1, .build = build_matrix_power,
      .example = MANUAL("x = [[1., 1], [1, 0]]; matrix_power(x, 10)"),
      .doc = MANUAL("the product of n factors x, by squaring; n = 0: the unit matrix; n < 0: of the inverse") })
    BUILT({ .name = "matrix_dot", .params = "*xs", .nout = 1, .build = build_matrix_dot,
      .example = MANUAL("matrix_dot(eye(2) + 1, tri(2), arange(2))"),
      .doc = MANUAL("the product of matrices, in the order that takes the fewest multiplications by the sizes known when the "
             "graph is built; the first and the last factor may be vectors") })
    BUILT({ .name = "kron", .params = "a, b", .nout = 1, .build = build_kron,
      .example = MANUAL("a = [[1., 2]]; b = [[1., 1], [0, 1]]; kron(a, b)"),
      .doc = MANUAL("the Kronecker product: a block a[i, j] * b for each element of a") })
    BUILT({ .name = "cho_solve", .params = "c, b, lower=True:bool", .nout = 1, .build = build_cho_solve,
      .example = MANUAL("c = [[2., 0], [1, 3]]; b = [8., 13]; cho_solve(c, b)"),
      .doc = MANUAL("the solution x of a x = b, from the Cholesky factor c of a; lower=False: the upper one") })
    BUILT({ .name = "matrix_norm", .params = "x, ord=fro:text", .nout = 1, .build = build_matrix_norm,
      .example = MANUAL("x = [[1., 2], [3, 4]]; matrix_norm(x, 'nuc')"),
      .doc = MANUAL("the norm of a matrix: 'fro' Frobenius, 'nuc' the sum of singular values, '2' and '-2' the largest and the least, "
             "'1' and '-1' of the sums of columns, 'inf' and '-inf' of the sums of rows, of magnitudes") })
    BUILT({ .name = "pinv", .params = "x, rcond=None:real", .nout = 1, .build = build_pinv,
      .example = MANUAL("x = [[1., 2], [2, 4]]; pinv(x)"),
      .doc = MANUAL("the pseudo-inverse of a matrix; singular values up to rcond times the largest count as zero, by default the "
             "precision of the dtype times the longer side, as in SciPy") })
    BUILT({ .name = "matrix_rank", .params = "x, rcond=None:real", .nout = 1, .build = build_matrix_rank,
      .example = MANUAL("x = [[1., 2], [2, 4]]; matrix_rank(x)"),
      .doc = MANUAL("the number of singular values above rcond times the largest; rcond is that of pinv") })
    BUILT({ .name = "lstsq", .params = "a, b, rcond=None:real", .nout = 4, .build = build_lstsq,
      .example = MANUAL("a = [[1., 1], [1, 2], [1, 3]]; b = [1., 2, 2]; lstsq(a, b)"),
      .doc = MANUAL("the x of least norm(b - a x), and of these the least x; the sums of squares of b - a x; the rank of a; its "
             "singular values. rcond is that of pinv. NumPy leaves the sums out where a has not full rank or no more rows than columns") })
};
const int mc_nops_linalg_names = (int)NELEM(mc_ops_linalg_names);
