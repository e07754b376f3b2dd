/* t_export_linalg.c: factorizations in exported files: the bits of the reference, at two sizes; errors;
 * what is refused. */
#include "export_formulas.h"

/* a (3, 3) positive definite; s: a stack of two */
#define MATRICES "a = dot(W, W.T) + cast(eye(3), W.dtype)\nb = dot(d.T, d) + eye(3)\ns = stack(b, b.T * 2 + eye(3))\n"

TEST(exported_factorizations)
{
    SAME_AS_LIBRARY(
        { .lines = MATRICES,
          .outputs = "cholesky(a), cholesky(b, lower=False), solve(a, v), solve(b, d.T), matrix_inverse(a)" },
        { .lines = MATRICES, .outputs = "det(s), slogdet(a)[1], lu(b)[0], lu(d)[1], lu_factor(x.T)[1]" },
        { .lines = MATRICES,
          .outputs = "qr(x)[0], qr(x)[1], qr(d.T, mode='complete')[0], qr(d, mode='r'), "
                     "solve_triangular(a, v, lower=True), solve_triangular(b, d.T, trans=1)" },
        { .lines = MATRICES,
          .outputs = "eigh(a)[0], eigh(s)[1], eigvalsh(b), svd(x)[0], svd(d, full_matrices=False)[2], "
                     "svdvals(x.T)" },
        { .lines = MATRICES "e = eig(dot(a, dot(W.T, W) + cast(eye(3), W.dtype)))",
          .outputs = "e[0], e[1], pinv(x), lstsq(d, d[:, 0])[0], expm(b / 8), matrix_power(a, -2)" },
        { .lines = MATRICES "nll = dot(v, cho_solve(cholesky(a), v)) + sum(log(diag(cholesky(a))))",
          .outputs = "nll, grad(nll, v)",
          .updates = "W = W - 0.01 * grad(nll, W)" },
        { .outputs = "scan(r in x, h from v * 0 + 1: h = solve(dot(W, W.T) + cast(eye(3), W.dtype), h + r); "
                     "yield h)" });
}

/* Vectors of every kind, and as C++. */
TEST(kinds_of_files_with_factorizations)
{
    NEEDS_COMPILER();
    same_in_every_kind(&(struct row){
        .lines = MATRICES,
        .outputs = "cholesky(a), solve(s, d.T)[1], qr(x)[0], eigh(a)[1], svd(d)[2], eigvals(b), dot(x, W)",
        .hosted = true });
}

/* A matrix that cannot be factorized ends the exported function with an error. */
TEST(exported_errors)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, NULL, "cholesky(x[:2, :2] * 0 - 1)", NULL, NULL);
    if (f && exported(f, NULL, false)) {
        struct mc_code *code = code_around(1, "");
        any_function *at = function_of(code, "call_0");
        float x[15] = { 0 }, v[3] = { 0 }, y[4] = { 0 }, model[16] = { 0 };
        double d[15] = { 0 };
        void *p[] = { x, d, v, y };
        CHECK(at && ((calling *)at)(model, NULL, p) != 0,
              "a matrix that is not positive definite has a factor");
        mc_code_unref(&code);
    }
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

TEST(freestanding_files_have_no_factorizations)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, NULL, "cholesky(dot(W, W.T))", NULL, NULL);
    mc_export_function at = { f, "at", sizes[0] };
    const mc_export_spec spec = {
        .path = in_folder("f.c"), .nfunction = 1, .function = &at, .freestanding = true
    };
    CHECK(f && mc_export(&spec) == MC_EUNSUPPORTED &&
              strstr(mc_last_error(), "has no factorizations of matrices"),
          "%s", mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}
