/* t_gpu_linalg.c: factorizations on a GPU: stacks of small matrices, a thread each; large ones by cuSOLVER
 * and cuBLAS; others by the solvers of the host.
 *
 * Invariant: matrices are well-conditioned, so that results agree with the reference's to a few roundings. */
#include "agree.h"
#include "cuda_test.h"
#include "sample.h"

#include <string.h>

/* s: symmetric and positive definite; g: any; b: right hand sides. */
static const char *const formulas[] = {
    "cholesky(s)",          "solve(g, b)",         "matrix_inverse(g)",  "det(g)",
    "slogdet(g)[1]",        "solve_triangular(s, b, lower=True)",        "qr(g)[0]",
    "qr(g, mode='r')",      "eigvalsh(s)",         "abs(eigh(s)[1])",    "svdvals(g)",
    "svd(g)[1]",            "lstsq(g, b)[0]",      "grad(sum(sqr(cholesky(s))), s)",
    "eigvals(s)",           "cholesky(swapaxes(s, -1, -2))",
};

/* by the libraries: the same, and matrices that are not square, not contiguous, and have other triangles */
static const char *const large[] = {
    "cholesky(s)",        "cholesky(swapaxes(s, -1, -2))",            "solve(g, b)",
    "solve(g, b[..., 0:1])", "matrix_inverse(g)",                     "det(g)",
    "slogdet(g)[1]",      "lu_factor(g)[0]",                          "lu_factor(g)[1]",
    "lu_factor(g[..., 1:])[0]", "lu_factor(g[:, 1:])[1]",
    "solve_triangular(g, b, lower=True)",                             "solve_triangular(g, b)",
    "solve_triangular(g, b, lower=True, trans=1)",                    "solve_triangular(g, b, trans=1, unit_diagonal=True)",
    "qr(g)[0]",           "qr(g)[1]",                                 "qr(g, mode='r')",
    "qr(g[..., 1:])[0]",  "qr(g[:, 1:])[1]",                          "qr(g[..., 1:], mode='complete')[0]",
    "qr(g[..., 1:], mode='complete')[1]",                             "qr(g[:, 1:])[0]",
    "eigvalsh(s)",        "eigh(s)[0]",                               "eigh(s)[1]",
    "eigh(s, UPLO='U')[1]", "svdvals(g)",                             "svdvals(g[:, 1:])",
    "svd(g)[1]",          "svd(g[..., 1:], full_matrices=False)[0]",  "svd(g[..., 1:], full_matrices=False)[2]",
    "svd(g[:, 1:], full_matrices=False)[0]",                          "svd(g[:, 1:], full_matrices=False)[2]",
    "matmul(svd(g[:, 1:])[2], swapaxes(svd(g[:, 1:])[2], -1, -2))",   "svd(g[:, 1:])[0]",
    "matmul(svd(g[..., 1:])[0], swapaxes(svd(g[..., 1:])[0], -1, -2))", "svd(g[..., 1:])[2]",
    "grad(sum(sqr(cholesky(s))), s)", "grad(sum(sqr(solve(g, b))), g)", "grad(sum(sqr(qr(g)[1])), g)",
};

static bool named(const char *list, const char *formula)
{
    return strstr(list, formula) != NULL;
}

static void compare_all(mc_dtype d, int64_t batch, int64_t n, const char *most, const char *const *formula,
                        size_t count)
{
    struct agree a = { .scale = 4096 };
    const int64_t square[] = { batch, n, n }, right[] = { batch, n, 2 };
    mc_array *g = mc_array_new(d, 3, square), *s = mc_array_new(d, 3, square);
    REQUIRE(g && s, "%s", mc_last_error());
    for (int64_t e = 0; e < batch * n * n; e++) {
        const int64_t m = e / (n * n), i = e / n % n, j = e % n;
        const double u = (double)((m * 31 + i * 7 + j * 13) % 17) / 17 - 0.5,
                     w = (double)((m * 31 + (i + j) * 7 + i * j) % 17) / 17 - 0.5;
        mc_store_f64(d, g->data + e * (int64_t)mc_dtypes[d].size, u + (i == j ? 2.0 * (double)n : 0));
        mc_store_f64(d, s->data + e * (int64_t)mc_dtypes[d].size, w + (i == j ? (double)(n + i) : 0));
    }
    agree_input(&a, "g", g, 0);
    agree_input(&a, "s", s, 0);
    agree_input(&a, "b", sample(d, 3, right, -1, 1), 0);
    for (size_t i = 0; i < count; i++) {
        if (!most || named(most, formula[i])) {
            CHECK(!mc_is_error(agree_output(&a, formula[i])), "%s: %s", formula[i], mc_error(a.g));
        }
    }
    const char *wrong = agree_in(&a, "FAST_RUN", 1);
    CHECK(!wrong, "%s, %lld of %lld: %s", mc_dtype_name(d), (long long)batch, (long long)n,
          wrong ? wrong : "");
    agree_free(&a);
}

static void compare(mc_dtype d, int64_t batch, int64_t n, const char *most)
{
    compare_all(d, batch, n, most, formulas, NELEM(formulas));
}

/* Stacks of small matrices do not leave the GPU. */
TEST(gpu_small_matrices)
{
    ON_GPU();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    compare(MC_FLOAT64, 70, 5, NULL);
    compare(MC_FLOAT32, 65, 1, "cholesky(s) solve(g, b) eigvalsh(s) svdvals(g)");
    compare(MC_FLOAT32, 300, 12, "cholesky(s) solve(g, b) matrix_inverse(g) eigvalsh(s)");
    mc_flag_set("cuda.host", "True");
}

#define NEEDS_CUSOLVER()                                                                                              \
    do {                                                                                                              \
        if (!mc_nv_found(NV_CUSOLVER)->present || !mc_nv_found(NV_CUBLAS)->present) {                                 \
            SKIP("%s", mc_nv_found(NV_CUSOLVER)->why);                                                                \
        }                                                                                                             \
    } while (0)

/* Where the host is forbidden the libraries compute matrices of any size. */
TEST(gpu_large_matrices)
{
    ON_GPU();
    NEEDS_CUSOLVER();
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK, "%s", mc_last_error());
    compare_all(MC_FLOAT64, 1, 6, NULL, large, NELEM(large));
    compare_all(MC_FLOAT64, 3, 9, NULL, large, NELEM(large));
    compare_all(MC_FLOAT32, 2, 33,
                "cholesky(s) solve(g, b) matrix_inverse(g) eigvalsh(s) qr(g)[0] svdvals(g)", large,
                NELEM(large));
    mc_flag_set("cuda.host", "True");
    compare_all(MC_FLOAT64, 1, 257, "cholesky(s) solve(g, b) qr(g)[1] eigvalsh(s) lu_factor(g)[1]", large,
                NELEM(large));
}

/* What factorizations do with NaN and infinities: the values of NumPy. */
TEST(gpu_large_matrices_that_are_not_finite)
{
    static const struct { const char *formula, *error; double nan; } cases[] = {
        { "sum(isnan(cholesky(x)))", NULL, 3 },   { "sum(isnan(eigh(x)[0]))", NULL, 3 },
        { "sum(isnan(eigh(x)[1]))", NULL, 9 },    { "sum(isnan(eigvalsh(x)))", NULL, 3 },
        { "svd(x)[1]", "svd: the matrix has elements that are not finite", 0 },
        { "svdvals(x)", "svdvals: the matrix has elements that are not finite", 0 },
    };
    const float values[9] = { 4, 1, 1, 1, NAN, 1, 1, 1, 6 };
    const int64_t dims[] = { 3, 3 };
    ON_GPU();
    NEEDS_CUSOLVER();
    mc_flag_set("cuda.host", "False");
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_from(MC_FLOAT32, 2, dims, values), *y = NULL;
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        REQUIRE(f && x, "%s", mc_error(g));
        const mc_status s = mc_call(f, MC_IN(x), MC_OUT(&y));
        if (cases[i].error) {
            CHECK(s == MC_ECHECK && strstr(mc_last_error(), cases[i].error), "%s: %s", cases[i].formula,
                  s < 0 ? mc_last_error() : "no error");
        } else {
            mc_array *there = s < 0 ? NULL : mc_array_cast(y, MC_FLOAT64);
            CHECK(s == MC_OK && there && mc_load_f64(MC_FLOAT64, there->data) == cases[i].nan, "%s: %g, %s",
                  cases[i].formula, there ? mc_load_f64(MC_FLOAT64, there->data) : -1,
                  s < 0 ? mc_last_error() : "");
            mc_array_unref(&there);
        }
        mc_function_free(f);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_graph_free(g);
    }
    mc_flag_set("cuda.host", "True");
}

/* One matrix, and those of middle size: the host's solvers. */
TEST(gpu_matrices_of_the_host)
{
    ON_GPU();
    compare(MC_FLOAT64, 1, 6, NULL);
    compare(MC_FLOAT32, 2, 70, "cholesky(s) solve(g, b) eigvalsh(s) qr(g)[0]");
}

static void check_failures(int64_t batch, int64_t failing)
{
    static const struct { const char *formula, *says; } cases[] = {
        { "cholesky(x)", "is not positive definite: pivot 1 is -3" },
        { "solve(x - x, x)", "is singular: pivot 0 is 0" },
        { "sum(cholesky(x)) + 1", "is not positive definite: pivot 1 is -3" },
    };
    const int64_t dims[] = { batch, 2, 2 };
    for (size_t i = 0; i < NELEM(cases); i++) {
        char which[32];
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_new(MC_FLOAT32, 3, dims), *y = NULL;
        for (int64_t e = 0; e < batch * 4; e++) {
            ((float *)(void *)x->data)[e] = e % 4 == 0 || e % 4 == 3 ? 1 : 0;
        }
        ((float *)(void *)x->data)[failing * 4 + 3] = -3;
        mc_input(g, "x", MC_FLOAT32, 3);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        REQUIRE(f, "%s", mc_error(g));
        for (int call = 0; call < 3; call++) {
            const mc_status s = mc_call(f, MC_IN(x), MC_OUT(&y));
            snprintf(which, sizeof which, batch > 1 ? "matrix %d is" : "the matrix is",
                     i == 1 ? 0 : (int)failing);
            CHECK(s == MC_ECHECK && strstr(mc_last_error(), cases[i].says) &&
                      (i == 1 || strstr(mc_last_error(), which)),
                  "%s, call %d: %s", cases[i].formula, call, s < 0 ? mc_last_error() : "no error");
        }
        mc_function_free(f);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_graph_free(g);
    }
}

TEST(gpu_matrix_that_fails)
{
    ON_GPU();
    check_failures(80, 66);
}

TEST(gpu_large_matrix_that_fails)
{
    ON_GPU();
    NEEDS_CUSOLVER();
    mc_flag_set("cuda.host", "False");
    check_failures(1, 0);
    check_failures(4, 2);
    mc_flag_set("cuda.host", "True");
}
