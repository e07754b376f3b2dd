/* t_gpu_linalg.c: factorizations on a GPU: stacks of small matrices, a thread each; others by the solvers of
 * the host.
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

static bool named(const char *list, const char *formula)
{
    return strstr(list, formula) != NULL;
}

static void compare(mc_dtype d, int64_t batch, int64_t n, const char *most)
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
    for (size_t i = 0; i < NELEM(formulas); i++) {
        if (!most || named(most, formulas[i])) {
            CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s: %s", formulas[i], mc_error(a.g));
        }
    }
    const char *wrong = agree_in(&a, "FAST_RUN", 1);
    CHECK(!wrong, "%s, %lld of %lld: %s", mc_dtype_name(d), (long long)batch, (long long)n,
          wrong ? wrong : "");
    agree_free(&a);
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

/* One matrix, and large ones: the host's solvers. */
TEST(gpu_matrices_of_the_host)
{
    ON_GPU();
    compare(MC_FLOAT64, 1, 6, NULL);
    compare(MC_FLOAT32, 2, 70, "cholesky(s) solve(g, b) eigvalsh(s) qr(g)[0]");
}

TEST(gpu_matrix_that_fails)
{
    static const struct { const char *formula, *says; } cases[] = {
        { "cholesky(x)", "cholesky: matrix 66 is not positive definite: pivot 1 is -3" },
        { "solve(x - x, x)", "is singular: pivot 0 is 0" },
        { "sum(cholesky(x)) + 1", "cholesky: matrix 66 is not positive definite: pivot 1 is -3" },
    };
    const int64_t dims[] = { 80, 2, 2 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_new(MC_FLOAT32, 3, dims), *y = NULL;
        for (int64_t e = 0; e < 80 * 4; e++) {
            ((float *)(void *)x->data)[e] = e % 4 == 0 || e % 4 == 3 ? 1 : 0;
        }
        ((float *)(void *)x->data)[66 * 4 + 3] = -3;
        mc_input(g, "x", MC_FLOAT32, 3);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        REQUIRE(f, "%s", mc_error(g));
        for (int call = 0; call < 3; call++) {
            const mc_status s = mc_call(f, MC_IN(x), MC_OUT(&y));
            CHECK(s == MC_ECHECK && strstr(mc_last_error(), cases[i].says), "%s, call %d: %s",
                  cases[i].formula, call, s < 0 ? mc_last_error() : "no error");
        }
        mc_function_free(f);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_graph_free(g);
    }
}
