/* t_linalg_grad.c: gradients of linear algebra against finite differences, and those that are refused. */
#include "op_fixture.h"
#include <math.h>
#include <stdio.h>

/* x: square, with eigenvalues and singular values apart; w: (3, 5); b: (4, 2); v: (4); s: (2, 4, 4) */
#define SPD "a = matmul(x, mT(x)) + cast(eye(size(x, -1)), x.dtype); "
#define SYMMETRIC "a = x + mT(x); "
static const char *const formulas[] = {
    SPD "cholesky(a)",
    SPD "cholesky(a, lower=False)",
    "cholesky(tril(x) + 9 * cast(eye(4), x.dtype))", /* the upper triangle is not read */
    SPD "cho_solve(cholesky(a), b)",
    SPD "solve(a, b, assume_a='pos')",
    "solve(x, b)",
    "solve(x, v)",
    "matrix_inverse(x)",
    "solve_triangular(x, b)",
    "solve_triangular(x, b, lower=True)",
    "solve_triangular(x, v, trans=1)",
    "solve_triangular(x, b, trans=1, lower=True)",
    "solve_triangular(x / 4, b, lower=True, unit_diagonal=True)",
    "solve_triangular(x / 4, b, trans=1, unit_diagonal=True)",
    "det(x)",
    "slogdet(x)[1]",
    "lu(x)[1]",
    "lu(x)[2]",
    "lu_factor(x)[0]",
    "qr(x)[0]",
    "qr(x)[1]",
    "qr(w)[0]",
    "qr(w)[1]",
    "qr(w.T)[0]",
    "qr(w.T)[1]",
    "qr(w.T, mode='r')",
    "qr(w, mode='r')",
    SYMMETRIC "eigh(a)[0]",
    SYMMETRIC "eigh(a)[1]",
    SYMMETRIC "eigh(a, UPLO='U')[1]",
    "eigvalsh(x)",
    "eigh(x)[1]", /* the lower triangle alone */
    "svdvals(x)",
    "svdvals(w)",
    "f = svd(x); f[0] * sum(f[1]) * sum(f[2])",
    "svd(w, full_matrices=False)[0]",
    "svd(w, full_matrices=False)[2]",
    "svd(w.T, full_matrices=False)[0]",
    "svd(w.T, full_matrices=False)[2]",
    "svd(w)[1]",
    SPD "eigvals(a * (1 + sum(sqr(x), axis=0)))",
    SPD "eig(a * (1 + sum(sqr(x), axis=0)))[0]",
    SPD "eig(a * (1 + sum(sqr(x), axis=0)))[1]",
    "pinv(w)",
    "pinv(w.T)",
    "lstsq(w.T, w.T[:, 0] * w.T[:, 1])[0]",
    "lstsq(x, b)[0]",
    "matrix_power(x, 3)",
    "matrix_power(x, -2)",
    "matrix_dot(w.T, w, w.T)",
    "kron(w, b)",
    "expm(x)",
    "expm(s / 8)",
    "trace(x)",
    "diagonal(w, offset=1)",
    "diagonal(w, offset=-1)",
    "diag(v, k=1)",
    "matrix_norm(w, ord='nuc')",
    "matrix_norm(w, ord='2')",
    "matrix_norm(w)",
    /* stacks */
    "solve(s, b)",
    "solve(x, s)",
    "det(s)",
    "matrix_inverse(s)",
    "cholesky(matmul(s, mT(s)) + cast(eye(4), s.dtype))",
    "eigh(s + mT(s))[1]",
    "qr(s)[0]",
    "svd(s[:, :3], full_matrices=False)[0]",
    "trace(s, axis1=1, axis2=2)",
};

static mc_array *numbers(int rank, const int64_t *dims, uint32_t seed, double diagonal)
{
    mc_array *a = mc_array_new(MC_FLOAT64, rank, dims);
    const int64_t n = mc_array_size(a), columns = dims[rank - 1], rows = rank > 1 ? dims[rank - 2] : 1;
    double *x = (double *)(void *)a->data;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (double)(int32_t)seed * 0x1p-31;
        x[i] += rank > 1 && i / columns % rows == i % columns ? diagonal * (double)(1 + i % columns) : 0;
    }
    return a;
}

TEST(against_finite_differences)
{
    struct leaf leaf[] = {
        { "x", numbers(2, (int64_t[]){ 4, 4 }, 1, 1.2), 3, false }, { "w", numbers(2, (int64_t[]){ 3, 5 }, 2, 1), 0, false },
        { "b", numbers(2, (int64_t[]){ 4, 2 }, 3, 0), 0, false },   { "v", numbers(1, (int64_t[]){ 4 }, 4, 0), 0, false },
        { "s", numbers(3, (int64_t[]){ 2, 4, 4 }, 5, 1.2), 0, false },
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        check_slopes((int)NELEM(leaf), leaf, formulas[i]);
    }
    for (size_t i = 0; i < NELEM(leaf); i++) {
        mc_array_unref(&leaf[i].a);
    }
}

TEST(no_gradient_goes_untested)
{
    struct leaf leaf[] = {
        { "x", numbers(2, (int64_t[]){ 4, 4 }, 1, 1.2), 3, false },
        { "w", numbers(2, (int64_t[]){ 3, 5 }, 2, 1), 0, false },
        { "b", numbers(2, (int64_t[]){ 4, 2 }, 3, 0), 0, false },
        { "v", numbers(1, (int64_t[]){ 4 }, 4, 0), 0, false },
        { "s", numbers(3, (int64_t[]){ 2, 4, 4 }, 5, 1.2), 0, false },
    };
    static bool seen[1024];
    for (size_t i = 0; i < NELEM(formulas); i++) {
        struct world u = world_new((int)NELEM(leaf), leaf, formulas[i]);
        size_t count;
        mc_node **list = mc_graph_reach(1, &u.y, &count);
        for (size_t k = 0; k < count; k++) {
            seen[(size_t)list[k]->op->index % NELEM(seen)] |= mc_op_at(list[k]->op->index) == list[k]->op;
        }
        mc_free(list);
        mc_graph_free(u.g);
    }
    for (int i = 0; i < mc_nops_linalg; i++) {
        const struct mc_op *op = mc_op_find(mc_ops_linalg[i].name);
        CHECK(seen[op->index] || (!op->grad && !op->dx[0]),
              "%s has a gradient, and no formula of this file uses it", op->name);
    }
    for (size_t i = 0; i < NELEM(leaf); i++) {
        mc_array_unref(&leaf[i].a);
    }
}

/* float32 matrices have float32 gradients. */
TEST(gradients_have_the_dtype_of_the_matrix)
{
    static const char *const of[] = { "sum(cholesky(x))", "sum(solve(x, x[0]))", "det(x)", "sum(eigh(x)[1])", "sum(svd(x)[0])",
                                      "sum(qr(x)[0])", "sum(pinv(x))", "sum(lu(x)[1])", "sum(eigvals(x))" };
    for (size_t i = 0; i < NELEM(of); i++) {
        mc_graph *g = mc_graph_new();
        mc_node *x = mc_input_sized(g, "x", MC_FLOAT32, 2, (int64_t[]){ 3, 3 });
        mc_node *d = mc_grad(mc_formula(g, of[i]), x);
        CHECK(!mc_is_error(d) && d->type.dtype == MC_FLOAT32 && d->type.rank == 2, "grad of %s: %s", of[i],
              mc_error(g));
        mc_graph_free(g);
    }
}

static const struct { const char *formula, *message; } refusals[] = {
    { "grad(sum(svd(x)[0]), x)", "svd: with full_matrices=True only the singular values have a gradient" },
    { "grad(sum(qr(x, mode='complete')[0]), x)", "qr: with mode='complete' there is no gradient" },
    { "grad(sum(lu(x)[1]), x)", "lu: only square matrices have a gradient" },
};

TEST(gradients_that_are_refused)
{
    for (size_t i = 0; i < NELEM(refusals); i++) {
        mc_graph *g = mc_graph_new();
        mc_input_sized(g, "x", MC_FLOAT64, 2, (int64_t[]){ 5, 3 });
        mc_node *d = mc_formula(g, refusals[i].formula);
        CHECK(mc_is_error(d) && mc_graph_status(g) == MC_EGRAD && strstr(mc_error(g), refusals[i].message),
              "%s: %s", refusals[i].formula, mc_error(g));
        mc_graph_free(g);
    }
}

/* Of equal eigenvalues the sum has a gradient; their vectors have none, and no number stands for it. */
TEST(equal_eigenvalues)
{
    static const struct { const char *cost; bool finite; double sum; } rows[] = {
        { "sum(eigh(x)[0])", true, 3 },
        { "sum(sqr(eigvalsh(x)))", true, 18 },
        { "sum(svdvals(x))", true, 3 },
        { "sum(eigh(x)[1])", false, 0 },
        { "sum(svd(x)[0])", false, 0 },
    };
    double x[9] = { 2, 0, 0, 0, 2, 0, 0, 0, 5 }, got;
    for (size_t i = 0; i < NELEM(rows); i++) {
        char text[100];
        mc_graph *g = mc_graph_new();
        mc_input_sized(g, "x", MC_FLOAT64, 2, (int64_t[]){ 3, 3 });
        snprintf(text, sizeof text, "y = sum(grad(%s, x))", rows[i].cost);
        mc_formula(g, text);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y" });
        mc_array *a = mc_array_from(MC_FLOAT64, 2, (int64_t[]){ 3, 3 }, x);
        REQUIRE(f && mc_call(f, MC_IN(a), MC_OUT(&got)) == MC_OK, "%s %s", mc_error(g), mc_last_error());
        CHECK(rows[i].finite ? fabs(got - rows[i].sum) < 1e-12 : !isfinite(got),
              "%s: the sum of the gradient is %.17g", rows[i].cost, got);
        mc_array_unref(&a);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
