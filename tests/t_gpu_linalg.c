/* t_gpu_linalg.c: factorizations on a GPU: small matrices by a block of threads or a thread each; large ones
 * by cuSOLVER and cuBLAS; others by the solvers of the host.
 *
 * Invariant: matrices are well-conditioned, so that results agree with the reference's to a few roundings. */
#include "agree.h"
#include "cuda_test.h"
#include "heavy/factor/cuda/cusolver.h"
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

/* by a block of threads each: rows that are exchanged, and bases that are completed, too */
static const char *const blocks[] = {
    "cholesky(s)",          "cholesky(swapaxes(s, -1, -2))",          "solve(g[:, ::-1], b)",
    "matrix_inverse(g)",    "lu_factor(g[:, ::-1])[0]",               "lu_factor(g[:, ::-1])[1]",
    "det(g[:, ::-1])",      "lu_factor(g[..., 1:])[0]",               "lu_factor(g[:, 1:])[1]",
    "solve_triangular(g, b, lower=True)",                             "solve_triangular(g, b)",
    "solve_triangular(g, b, lower=True, trans=1)",                    "solve_triangular(g, b, trans=1, unit_diagonal=True)",
    "solve_triangular(g, s, lower=True, unit_diagonal=True)",
    "eigvalsh(s)",          "eigh(s)[0]",                             "eigh(s)[1]",
    "matmul(s, eigh(s)[1]) - eigh(s)[1] * expand_dims(eigh(s)[0], -2)", "eigh(s, UPLO='U')[1]",
    "matmul(swapaxes(eigh(s)[1], -1, -2), eigh(s)[1])",
    "svdvals(g)",           "matmul(svd(g)[0] * expand_dims(svd(g)[1], -2), svd(g)[2])",
    "matmul(swapaxes(svd(g)[0], -1, -2), svd(g)[0])",
    "svdvals(g[:, 1:])",
    "matmul(svd(g[..., 1:])[0], swapaxes(svd(g[..., 1:])[0], -1, -2))",
    "matmul(svd(g[:, 1:])[2], swapaxes(svd(g[:, 1:])[2], -1, -2))",
    "svdvals(matmul(b, swapaxes(b, -1, -2)))",
    "matmul(svd(matmul(b, swapaxes(b, -1, -2)))[0], swapaxes(svd(matmul(b, swapaxes(b, -1, -2)))[0], -1, -2))",
    "matmul(svd(0 * g)[0], svd(0 * g)[2])",
    "grad(sum(sqr(cholesky(s))), s)", "grad(sum(sqr(solve(g, b))), g)",
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

/* Steps stay on the GPU; `what` computes those that it can. */
static void stay(const char *what)
{
    REQUIRE(mc_flag_set("cuda.host", "False") == MC_OK && mc_flag_set("cuda.factor", what) == MC_OK, "%s",
            mc_last_error());
}

static void stay_no_more(void)
{
    mc_flag_set("cuda.host", "True");
    mc_flag_set("cuda.factor", "auto");
}

/* All formulas at a few sizes. */
TEST(gpu_blocks)
{
    ON_GPU();
    stay("blocks");
    compare_all(MC_FLOAT64, 1, 5, NULL, blocks, NELEM(blocks));
    compare_all(MC_FLOAT64, 7, 17, NULL, blocks, NELEM(blocks));
    compare_all(MC_FLOAT64, 2, 33, NULL, blocks, NELEM(blocks));
    stay_no_more();
}

/* What is at the edges of panels, warps and blocks. */
TEST(gpu_blocks_of_ragged_sizes)
{
    static const struct { mc_dtype dtype; int64_t batch, n; } cases[] = {
        { MC_FLOAT32, 1000, 1 }, { MC_FLOAT64, 7, 2 },  { MC_FLOAT32, 1000, 3 }, { MC_FLOAT32, 7, 16 },
        { MC_FLOAT64, 1, 31 },   { MC_FLOAT32, 2, 47 }, { MC_FLOAT64, 2, 64 },   { MC_FLOAT32, 7, 65 },
        { MC_FLOAT64, 1, 100 },  { MC_FLOAT32, 1, 100 }, { MC_FLOAT32, 2, 129 },
    };
    ON_GPU();
    stay("blocks");
    for (size_t i = 0; i < NELEM(cases); i++) {
        compare_all(
            cases[i].dtype, cases[i].batch, cases[i].n,
            "cholesky(s) solve(g[:, ::-1], b) solve_triangular(g, b, lower=True) eigvalsh(s) svdvals(g)",
            blocks, NELEM(blocks));
    }
    stay_no_more();
}

/* Columns in the scratch, where shared memory is too small. */
TEST(gpu_blocks_beyond_shared_memory)
{
    ON_GPU();
    stay("blocks");
    compare_all(MC_FLOAT64, 3, 230, "cholesky(s) lu_factor(g[:, ::-1])[0] solve_triangular(g, b)", blocks,
                NELEM(blocks));
    compare_all(MC_FLOAT32, 1, 300, "cholesky(s) solve(g[:, ::-1], b)", blocks, NELEM(blocks));
    stay_no_more();
}

/* Where the host is forbidden the libraries compute matrices of any size. */
TEST(gpu_large_matrices)
{
    ON_GPU();
    NEEDS_CUSOLVER();
    stay("blocks"); /* but for those that only the libraries know */
    compare_all(MC_FLOAT64, 3, 9, NULL, large, NELEM(large));
    stay("library");
    compare_all(MC_FLOAT64, 1, 6, NULL, large, NELEM(large));
    compare_all(MC_FLOAT64, 3, 9, NULL, large, NELEM(large));
    compare_all(MC_FLOAT32, 2, 33,
                "cholesky(s) solve(g, b) matrix_inverse(g) eigvalsh(s) qr(g)[0] svdvals(g)", large,
                NELEM(large));
    mc_flag_set("cuda.host", "True");
    compare_all(MC_FLOAT64, 1, 257, "cholesky(s) solve(g, b) qr(g)[1] eigvalsh(s) lu_factor(g)[1]", large,
                NELEM(large));
    stay_no_more();
}

/* What factorizations do with NaN and infinities: the values of NumPy. */
static void check_not_finite(const char *what)
{
    static const struct { const char *formula, *error; double nan; } cases[] = {
        { "sum(isnan(cholesky(x)))", NULL, 3 },   { "sum(isnan(eigh(x)[0]))", NULL, 3 },
        { "sum(isnan(eigh(x)[1]))", NULL, 9 },    { "sum(isnan(eigvalsh(x)))", NULL, 3 },
        { "svd(x)[1]", "svd: the matrix has elements that are not finite", 0 },
        { "svdvals(x)", "svdvals: the matrix has elements that are not finite", 0 },
    };
    const float values[9] = { 4, 1, 1, 1, NAN, 1, 1, 1, 6 };
    const int64_t dims[] = { 3, 3 };
    stay(what);
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
    stay_no_more();
}

TEST(gpu_large_matrices_that_are_not_finite)
{
    ON_GPU();
    NEEDS_CUSOLVER();
    check_not_finite("library");
}

TEST(gpu_blocks_that_are_not_finite)
{
    ON_GPU();
    check_not_finite("blocks");
}

/* The host's solvers. */
TEST(gpu_matrices_of_the_host)
{
    ON_GPU();
    mc_flag_set("cuda.factor", "host");
    compare(MC_FLOAT64, 1, 6, NULL);
    compare(MC_FLOAT32, 2, 70, "cholesky(s) solve(g, b) eigvalsh(s) qr(g)[0]");
    mc_flag_set("cuda.factor", "auto");
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
    stay("library");
    check_failures(1, 0);
    check_failures(4, 2);
    stay_no_more();
}

TEST(gpu_block_that_fails)
{
    ON_GPU();
    stay("blocks");
    check_failures(1, 0);
    check_failures(80, 66);
    stay_no_more();
}

/* One matrix of a stack of unit matrices has -2 at the pivot, or 0. */
TEST(gpu_block_that_fails_in_a_panel)
{
    static const struct { const char *formula, *says; double pivot; } cases[] = {
        { "cholesky(x)", "cholesky: matrix 5 is not positive definite: pivot 37 is -2", -2 },
        { "solve(x, x)", "solve: matrix 5 is singular: pivot 37 is 0", 0 },
        { "matrix_inverse(x)", "matrix_inverse: matrix 5 is singular: pivot 37 is 0", 0 },
        { "solve_triangular(x, x)", "solve_triangular: matrix 5 is singular: element on the diagonal 37 is 0", 0 },
    };
    const int64_t dims[] = { 9, 40, 40 };
    ON_GPU();
    stay("blocks");
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_array *x = mc_array_new(MC_FLOAT64, 3, dims), *y = NULL;
        for (int64_t e = 0; e < 9 * 1600; e++) {
            const bool bad = e / 1600 == 5 && e % 1600 == 37 * 41;
            ((double *)(void *)x->data)[e] = bad ? cases[i].pivot : e % 1600 % 41 == 0;
        }
        mc_input(g, "x", MC_FLOAT64, 3);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        REQUIRE(f, "%s", mc_error(g));
        CHECK(mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_ECHECK && strstr(mc_last_error(), cases[i].says),
              "%s: %s", cases[i].formula, mc_last_error());
        mc_function_free(f);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_graph_free(g);
    }
    stay_no_more();
}

/* ---- handles that are half made ---- */

static int handles; /* made and not destroyed */
static int counted_create(void **h)
{
    *h = &handles;
    return handles++, 0;
}

static int counted_destroy(void *h)
{
    return *(int *)h -= 1, 0;
}

static int refused_stream(void *h, void *stream)
{
    (void)h;
    (void)stream;
    return 1;
}

TEST(gpu_library_that_does_not_start)
{
    static const struct { enum mc_factor_kind kind; const char *says; } cases[] = {
        { FACTOR_CHOLESKY, "cuSOLVER does not start" }, { FACTOR_TRIANGULAR, "cuBLAS does not start" },
    };
    ON_GPU();
    NEEDS_CUSOLVER();
    struct mc_cuda *d = mc_cuda_start(0);
    REQUIRE(d && mc_cuda_enter(d) == MC_OK, "%s", mc_last_error());
    const struct mc_nv before = mc_nv;
    void *const solver = d->solver, *const triangular = d->triangular;
    d->solver = d->triangular = NULL;
    mc_nv.cusolverDnCreate = mc_nv.cublasCreate_v2 = counted_create;
    mc_nv.cusolverDnDestroy = mc_nv.cublasDestroy_v2 = counted_destroy;
    mc_nv.cusolverDnSetStream = mc_nv.cublasSetStream_v2 = refused_stream;
    for (size_t i = 0; i < NELEM(cases); i++) {
        const struct mc_factor f = { .kind = cases[i].kind, .op = "test", .dtype = MC_FLOAT32, .batch = 1 };
        struct mc_cusolver *x = mc_cusolver_new(&f);
        CHECK(!x && strstr(mc_last_error(), cases[i].says), "%s", mc_last_error());
        CHECK(handles == 0, "%d handles of %s are open", handles, cases[i].says);
        mc_cusolver_free(x);
    }
    mc_nv = before;
    d->solver = solver;
    d->triangular = triangular;
    mc_cuda_leave(d);
}
