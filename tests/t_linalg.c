/* t_linalg.c: linear algebra against NumPy and SciPy, by what defines each result, and by its errors; for
 * every solver of factorizations.  t_linalg_grad.c has the gradients. */
#include "agree.h"
#include "op_fixture.h"

static const char *const solvers[] = { "auto", "reference", "direct", "blocked", "lapack" };

/* Is the flag set?  A solver that refuses the problem is no failure. */
static void use(const char *solver)
{
    CHECK(mc_flag_set("factor.algo", solver) == MC_OK, "factor.algo=%s: %s", solver, mc_last_error());
}

static bool refused(void)
{
    return strstr(mc_last_error(), "which was asked for") != NULL;
}

/* The value of a formula over named arrays, compiled.  NULL: it failed. */
static mc_array *compiled(int n, const struct leaf *leaf, const char *formula, const char *mode)
{
    struct agree a = { 0 };
    mc_array *y[1] = { NULL };
    for (int i = 0; i < n; i++) {
        agree_input(&a, leaf[i].name, mc_array_ref(leaf[i].a), leaf[i].sized);
    }
    agree_output(&a, formula);
    mc_function *f = agree_compile(&a, mode, 2);
    if (!f) {
        mc_fail(mc_graph_status(a.g), "%s", mc_error(a.g));
    } else if (agree_call(&a, f, y) < 0) {
        mc_array_unref(&y[0]);
    }
    mc_function_free(f);
    agree_free(&a);
    return y[0];
}

/* ---- values from outside ---- */

static mc_array *matrix(int rows, int columns, const double *x)
{
    return columns ? mc_array_from(MC_FLOAT64, 2, (int64_t[]){ rows, columns }, x)
                   : mc_array_from(MC_FLOAT64, 1, (int64_t[]){ rows }, x);
}

static void check_value(const char *formula, const mc_array *y, int n, const double *want, const char *how)
{
    int64_t at[MC_MAX_RANK] = { 0 };
    if (!CHECK(y && mc_array_size(y) == n, "%s, %s: %s", formula, how,
               y ? "another size" : mc_last_error())) {
        return;
    }
    double most = 1e-300;
    for (int i = 0; i < n; i++) {
        most = MC_MAX(most, fabs(want[i]));
    }
    for (int i = 0; i < n; i++, next_index(y->rank, y->dims, at)) {
        const double have = mc_array_get(y, at);
        CHECK(fabs(have - want[i]) <= 2e-14 * most, "%s, %s: element %d is %.17g, not %.17g", formula, how, i,
              have, want[i]);
    }
}

TEST(values_of_numpy_and_scipy)
{
    static const struct { const char *formula; int n; double want[40]; } rows[] = {
#include "linalg_values.h"
    };
    struct leaf leaf[] = {
        { "a", matrix(3, 3, (double[]){ 2, -1, 0.5, 1, 3, -2, 0.25, 1.5, 4 }), 0, false },
        { "s", matrix(3, 3, (double[]){ 4, 1, -2, 1, 3, 0.5, -2, 0.5, 5 }), 0, false },
        { "t", matrix(4, 3, (double[]){ 1, 2, 3, 4, 5, 6, 7, 8, 10, -1, 0.5, 2 }), 0, false },
        { "b", matrix(3, 0, (double[]){ 1, -2, 3 }), 0, false },
        { "c", matrix(4, 0, (double[]){ 1, 0, 2, -1 }), 0, false },
        { "e", matrix(3, 3, (double[]){ 1, 2, 0, 3, 4, 1, 0, 1, -2 }), 0, false },
    };
    const int n = (int)NELEM(leaf);
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_array *y = run(n, leaf, rows[i].formula);
        check_value(rows[i].formula, y, rows[i].n, rows[i].want, "reference");
        mc_array_unref(&y);
        for (size_t k = 0; k < NELEM(solvers); k++) {
            use(solvers[k]);
            y = compiled(n, leaf, rows[i].formula, "FAST_RUN");
            if (y || !refused()) {
                check_value(rows[i].formula, y, rows[i].n, rows[i].want, solvers[k]);
            }
            mc_array_unref(&y);
        }
        use("auto");
    }
    for (int i = 0; i < n; i++) {
        mc_array_unref(&leaf[i].a);
    }
}

/* Values: mpmath.expm with 40 digits. */
TEST(exponentials)
{
    static const struct { const char *formula; double want[9]; } rows[] = {
        { "expm(a)", { 7.655056883298511, 2.317321907302901, 21.1131444730167, -0.3806431745491487, -13.060712985165036, -34.098930840469244, 14.429929702015855, 26.54253749672881, 14.640485465215223 } },
        { "expm(a / 128)", { 1.0157206266093326, -0.007942862635441954, 0.004061248688473578, 0.007950672841594354, 1.0235892922863268, -0.016041929393931908, 0.002046244756541589, 0.012035352148525132, 1.031653213117131 } },
        { "expm(2 * s)", { 203714.20872638945, 22495.136394226938, -250571.94935464783, 22495.136394226938, 3671.2607522677404, -26130.91845128543, -250571.94935464783, -26130.91845128543, 310310.9400795139 } },
        { "expm(-8 * s)", { 1.2760679592401672e-06, -1.2286920701739768e-06, 9.270121722186182e-07, -1.2286920701739768e-06, 1.1830751478478998e-06, -8.925954838377766e-07, 9.270121722186182e-07, -8.925954838377766e-07, 6.734371487554639e-07 } },
    };
    struct leaf leaf[] = {
        { "a", matrix(3, 3, (double[]){ 2, -1, 0.5, 1, 3, -2, 0.25, 1.5, 4 }), 0, false },
        { "s", matrix(3, 3, (double[]){ 4, 1, -2, 1, 3, 0.5, -2, 0.5, 5 }), 0, false },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_array *y = compiled(2, leaf, rows[i].formula, "FAST_RUN");
        check_value(rows[i].formula, y, 9, rows[i].want, "auto");
        mc_array_unref(&y);
    }
    mc_array_unref(&leaf[0].a);
    mc_array_unref(&leaf[1].a);
}

/* ---- what defines a result ---- */

/* Numbers that are 0 but for rounding, relative to the matrix; x: (.., m, n) random.  spd: positive
 * definite. */
#define UNIT "i = cast(eye(size(x, -1)), x.dtype); n = cast(size(x, -1), x.dtype); "
#define SPD UNIT "a = matmul(x, mT(x)) / n + i; "
static const struct identity { const char *name, *formula; bool square; } identities[] = {
    { "cholesky", SPD "l = cholesky(a); [matmul(l, mT(l)) - a, triu(l, k=1)]", true },
    { "upper cholesky", SPD "l = cholesky(a, lower=False); [matmul(mT(l), l) - a, tril(l, k=-1)]", true },
    { "solve", UNIT "a = x + 2 * sqrt(n) * i; y = solve(a, x); matmul(a, y) - x", true },
    { "solve a vector", UNIT "a = x + 2 * sqrt(n) * i; b = x[..., :1]; y = solve(a, b); matmul(a, y) - b", true },
    { "solve, positive", SPD "y = solve(a, x, assume_a='pos'); matmul(a, y) - x", true },
    { "inverse", UNIT "a = x + 2 * sqrt(n) * i; matmul(matrix_inverse(a), a) - i", true },
    { "lower", UNIT "a = x / n + i; matmul(tril(a), solve_triangular(a, x, lower=True)) - x", true },
    { "upper", UNIT "a = x / n + i; matmul(triu(a), solve_triangular(a, x)) - x", true },
    { "lower^T", UNIT "a = x / n + i; matmul(mT(tril(a)), solve_triangular(a, x, lower=True, trans=1)) - x", true },
    { "upper^T", UNIT "a = x / n + i; matmul(mT(triu(a)), solve_triangular(a, x, trans=1)) - x", true },
    { "unit lower", UNIT "a = x / n; matmul(tril(a, k=-1) + i, solve_triangular(a, x, lower=True, unit_diagonal=True)) - x",
      true },
    { "lu", "f = lu(x); matmul(f[0], matmul(f[1], f[2])) - x", false },
    { "pivots", "maximum(abs(lu(x)[1]), 1) - 1", false },
    { "lu_factor",
      UNIT "f = lu_factor(x); p = cast(eq(expand_dims(f[1], -1), arange(size(x, -1))), x.dtype); "
           "matmul(tril(f[0], k=-1) + i, triu(f[0])) - matmul(p, x)", true },
    { "qr", "f = qr(x); matmul(f[0], f[1]) - x", false },
    { "triangular r", "tril(qr(x)[1], k=-1)", false },
    { "orthogonal q", "f = qr(x); matmul(mT(f[0]), f[0]) - cast(eye(size(f[0], -1)), x.dtype)", false },
    { "complete qr", "f = qr(x, mode='complete'); matmul(f[0], f[1]) - x", false },
    { "complete q", "f = qr(x, mode='complete'); matmul(mT(f[0]), f[0]) - cast(eye(size(x, -2)), x.dtype)", false },
    { "r", "f = qr(x); qr(x, mode='r') - f[1]", false },
    { "eigh", "a = x + mT(x); e = eigh(a); matmul(a, e[1]) - e[1] * expand_dims(e[0], -2)", true },
    { "orthogonal eigh", "a = x + mT(x); v = eigh(a)[1]; matmul(mT(v), v) - cast(eye(size(x, -1)), x.dtype)", true },
    { "eigvalsh", "a = x + mT(x); eigvalsh(a) - eigh(a)[0]", true },
    { "ascending", "w = eigvalsh(x + mT(x)); maximum(w[..., :-1] - w[..., 1:], 0)", true },
    { "svd", "f = svd(x, full_matrices=False); matmul(f[0] * expand_dims(f[1], -2), f[2]) - x", false },
    { "whole u", "u = svd(x)[0]; matmul(mT(u), u) - cast(eye(size(x, -2)), x.dtype)", false },
    { "whole v", "v = svd(x)[2]; matmul(v, mT(v)) - cast(eye(size(x, -1)), x.dtype)", false },
    { "svdvals", "svdvals(x) - svd(x)[1]", false },
    { "descending", "s = svdvals(x); maximum(s[..., 1:] - s[..., :-1], 0)", false },
    { "pinv", "a = x + 2 * cast(eye(size(x, -2), size(x, -1)), x.dtype) * sqrt(cast(size(x, -1), x.dtype)); p = pinv(a); "
              "matmul(matmul(a, p), a) - a", false },
    { "eig", SPD "b = a * (1 + sum(sqr(x), axis=-2, keepdims=True) / n); e = eig(b); matmul(b, e[1]) - e[1] * expand_dims(e[0], -2)", true },
};

static double largest(const mc_array *y)
{
    double most = 0;
    int64_t at[MC_MAX_RANK] = { 0 };
    for (int64_t i = 0, n = mc_array_size(y); i < n; i++, next_index(y->rank, y->dims, at)) {
        const double v = fabs(mc_array_get(y, at));
        most = v > most || isnan(v) ? v : most;
    }
    return most;
}

static void check_identity(const struct identity *e, const mc_array *x, const char *solver)
{
    const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1];
    struct agree a = { 0 };
    mc_array *y[2] = { NULL, NULL };
    agree_input(&a, "x", mc_array_ref(x), 0);
    mc_node *result = mc_formula(a.g, e->formula);
    for (int i = 0; i < result->nout; i++) {
        a.out[a.nout++] = mc_item(result, i);
    }
    mc_function *f = agree_compile(&a, "FAST_RUN", 2);
    const mc_status s = f ? agree_call(&a, f, y) : mc_graph_status(a.g);
    if (s < 0 && refused()) {
        mc_function_free(f);
        agree_free(&a);
        return;
    }
    CHECK(f && s == MC_OK, "%s by %s of %s %lld x %lld: %s %s", e->name, solver, mc_dtype_name(x->dtype),
          (long long)m, (long long)n, mc_error(a.g), mc_last_error());
    for (int i = 0; i < 2 && y[i]; i++) {
        const double off = largest(y[i]),
                     may = 16 * mc_dtypes[x->dtype].eps * (4 + sqrt((double)m * (double)n));
        CHECK(off <= may, "%s by %s of %s %lld x %lld: result %d is off by %g, more than %g", e->name, solver,
              mc_dtype_name(x->dtype), (long long)m, (long long)n, i, off, may);
        mc_array_unref(&y[i]);
    }
    mc_function_free(f);
    agree_free(&a);
}

static void check_sizes_of(int nsize, const int64_t (*sizes)[3], const char *solver)
{
    for (int k = 0; k < nsize; k++) {
        const bool stack = sizes[k][0] > 0;
        for (int d = 0; d < 2; d++) {
            mc_array *x = sample(d ? MC_FLOAT64 : MC_FLOAT32, 2 + stack, sizes[k] + !stack, -1, 1);
            for (size_t i = 0; i < NELEM(identities); i++) {
                if (!identities[i].square || sizes[k][1] == sizes[k][2]) {
                    check_identity(&identities[i], x, solver);
                }
            }
            mc_array_unref(&x);
        }
    }
}

/* (matrices, rows, columns); 0 matrices: a single one.  Sizes on both sides of the blocks of 32 and 64. */
static const int64_t small[][3] = { { 0, 1, 1 }, { 0, 2, 2 }, { 3, 5, 5 }, { 0, 17, 17 }, { 2, 7, 4 }, { 2, 4, 7 }, { 0, 1, 6 },
                                    { 0, 6, 1 }, { 0, 40, 33 }, { 35, 5, 5 }, { 18, 17, 17 } };
static const int64_t large[][3] = { { 0, 96, 96 }, { 2, 130, 130 }, { 0, 200, 110 }, { 0, 110, 200 } };

TEST(small_matrices_by_definition)
{
    for (size_t i = 0; i < NELEM(solvers); i++) {
        use(solvers[i]);
        check_sizes_of((int)NELEM(small), small, solvers[i]);
    }
}

TEST(large_matrices_by_definition)
{
    for (size_t i = 2; i < NELEM(solvers); i++) {
        use(solvers[i]);
        check_sizes_of((int)NELEM(large), large, solvers[i]);
    }
}

TEST(every_instruction_set)
{
    static const char *const sets[] = { "avx512", "avx2", "plain" };
    for (size_t i = 0; i < NELEM(sets); i++) {
        if (!mc_isa_only(sets[i])) {
            continue;
        }
        for (size_t k = 2; k < 4; k++) {
            use(solvers[k]);
            check_sizes_of(2, large, solvers[k]);
            check_sizes_of((int)NELEM(small), small, solvers[k]);
        }
    }
    mc_isa_only(NULL);
}

/* Matrices with equal eigenvalues, without full rank, in several parts, of large and small columns: element
 * (i, j) of 70, and of 90 by 70. */
static double zero(int64_t i, int64_t j) { return 0 * (double)(i + j); }
static double unit(int64_t i, int64_t j) { return i == j; }
static double rank_one(int64_t i, int64_t j) { return cos((double)i) * cos((double)j); }
static double parts(int64_t i, int64_t j) { return i / 20 == j / 20 ? sin((double)(i * j)) : 0; }
static double graded(int64_t i, int64_t j) { return exp2(-(double)(i + j) / 4) * cos((double)(i * j + i)); }
static double zero_column(int64_t i, int64_t j) { return j == 30 || i == 30 ? 0 : sin((double)(i * j + i)); }

TEST(special_spectra)
{
    static double (*const element[])(int64_t, int64_t) = { zero, unit, rank_one, parts, graded, zero_column };
    static const char *const checked[] = { "eigh",    "orthogonal eigh", "eigvalsh", "svd",
                                           "whole u", "whole v",         "svdvals" };
    for (size_t k = 0; k < NELEM(element) * 3 * 2; k++) {
        const int64_t side = (int64_t)(k / 2 % 3), dims[2] = { side == 1 ? 90 : 70, side == 2 ? 90 : 70 };
        mc_array *x = mc_array_new(k % 2 ? MC_FLOAT64 : MC_FLOAT32, 2, dims);
        for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
            mc_array_set(x, (int64_t[]){ i / dims[1], i % dims[1] },
                         element[k / 6](i / dims[1], i % dims[1]));
        }
        for (size_t i = 0; i < NELEM(identities) * 3; i++) {
            const struct identity *e = &identities[i / 3];
            const char *solver = solvers[1 + i % 3];
            for (size_t c = 0; c < NELEM(checked); c++) {
                if (strcmp(e->name, checked[c]) == 0 && (!e->square || side == 0)) {
                    use(solver);
                    check_identity(e, x, solver);
                }
            }
        }
        mc_array_unref(&x);
    }
}

/* ---- ill-conditioned matrices ---- */

/* The Hilbert matrix of size 10 has the condition number 1.6e13: residuals must still be small, and the
 * largest singular values exact.  Values: mpmath, svd of the matrix in 50 digits. */
TEST(hilbert_matrix)
{
    static const char hilbert[] = "i = cast(arange(10), float64); h = 1 / (1 + expand_dims(i, 1) + i); ";
    static const double sigma[] = { 1.7519196702651775, 0.34292954848350904, 0.035741816271639236,
                                    0.0025308907686700384 };
    static const struct { const char *text; double may; } rows[] = {
        { "l = cholesky(h); max(abs(dot(l, l.T) - h))", 1e-15 },
        { "b = dot(h, cast(i, float64)); x = solve(h, b); max(abs(dot(h, x) - b))", 1e-14 },
        { "f = qr(h); max(abs(dot(f[0], f[1]) - h)) + max(abs(dot(f[0].T, f[0]) - eye(10)))", 8e-15 },
        { "e = eigh(h); max(abs(dot(e[1] * e[0], e[1].T) - h))", 4e-15 },
        { "f = svd(h); max(abs(dot(f[0] * f[1], f[2]) - h))", 4e-15 },
        { "abs(svdvals(h)[-1] - 1.0931538193796657e-13)", 1e-15 },
    };
    char text[300];
    for (size_t i = 0; i < NELEM(solvers); i++) {
        use(solvers[i]);
        for (size_t k = 0; k < NELEM(rows) + NELEM(sigma); k++) {
            const bool row = k < NELEM(rows);
            const int at = (int)(k - NELEM(rows));
            if (row) {
                snprintf(text, sizeof text, "%s%s", hilbert, rows[k].text);
            } else {
                snprintf(text, sizeof text, "%sabs(svdvals(h)[%d] - %.17g)", hilbert, at, sigma[at]);
            }
            mc_array *one = matrix(1, 0, (double[]){ 1 });
            struct leaf leaf = { "one", one, 0, false };
            mc_array *y = compiled(1, &leaf, text, "FAST_COMPILE");
            const double off = y ? mc_array_get(y, NULL) : NAN;
            CHECK(off <= (row ? rows[k].may : 2e-15) || (!y && refused()), "%s by %s: off by %g %s", text,
                  solvers[i], off, y ? "" : mc_last_error());
            mc_array_unref(&y);
            mc_array_unref(&one);
        }
    }
}

/* Matrices of very large and very small elements: factors and values are those of x, scaled. */
TEST(large_and_small_elements)
{
    static const char *const formulas[] = {
        "svdvals(x * c) / c - svdvals(x)",
        "svd(x * c)[0] - svd(x)[0]",
        "a = x + x.T; eigvalsh(a * c) / c - eigvalsh(a)",
        "a = x + x.T; eigh(a * c)[1] - eigh(a)[1]",
        "a = dot(x, x.T) * (1 + sum(sqr(x), axis=0)); (eigvals(a * c) / c - eigvals(a)) / 64",
        "a = dot(x, x.T) * (1 + sum(sqr(x), axis=0)); eig(a * c)[1] - eig(a)[1]",
        "qr(x * c)[1] / c - qr(x)[1]",
        "qr(x * c)[0] - qr(x)[0]",
        "solve(x * c, x[0] * c) - solve(x, x[0])",
        "matrix_inverse(x * c) * c - matrix_inverse(x)",
        "i = cast(eye(4), x.dtype); cholesky((dot(x, x.T) + i) * c) / sqrt(c) - cholesky(dot(x, x.T) + i)",
    };
    static const double scale[2][4] = { { 1e-30, 1e-20, 1e20, 1e30 }, { 1e-290, 1e-160, 1e160, 1e290 } };
    static const double x[16] = {
        2, 0.5, -1, 0.25, -0.5, 1.5, 0.75, 1, 1, -0.25, 3, 0.5, 0.125, 1, -0.75, -2
    };
    mc_array *wide = matrix(4, 4, x);
    for (int d = 0; d < 2; d++) {
        for (int k = 0; k < 4; k++) {
            const mc_dtype dtype = d ? MC_FLOAT64 : MC_FLOAT32;
            mc_array *c = mc_array_new(dtype, MC_NOSHAPE);
            mc_array_set(c, NULL, scale[d][k]);
            struct leaf leaf[] = { { "x", mc_array_cast(wide, dtype), 0, false }, { "c", c, 0, false } };
            for (size_t i = 0; i < NELEM(formulas) * NELEM(solvers); i++) {
                const char *formula = formulas[i / NELEM(solvers)], *solver = solvers[i % NELEM(solvers)];
                use(solver);
                mc_array *y = compiled(2, leaf, formula, "FAST_COMPILE");
                const double off = y ? largest(y) : NAN;
                CHECK(off <= 100 * mc_dtypes[dtype].eps || (!y && refused()),
                      "%s by %s, c = %g: off by %g %s", formula, solver, scale[d][k], off,
                      y ? "" : mc_last_error());
                mc_array_unref(&y);
            }
            mc_array_unref(&leaf[0].a);
            mc_array_unref(&c);
        }
    }
    mc_array_unref(&wide);
}

/* ---- errors, and elements that are not finite ---- */

static const struct wrong { const char *formula, *message; } wrong[] = {
    { "cholesky(x)", "cholesky: matrix 2 is not positive definite: pivot 1 is " },
    { "solve(y, x)", "solve: matrix 1 is singular: pivot 1 is 0" },
    { "matrix_inverse(y)", "matrix_inverse: matrix 1 is singular: pivot 1 is 0" },
    { "matrix_inverse(y[1])", "matrix_inverse: the matrix is singular: pivot 1 is 0" },
    { "solve_triangular(x * [[1f64, 1], [1, 0]], x)", "solve_triangular: matrix 0 is singular: element on the diagonal 1 is 0" },
    { "eigvals(y[2])", "eigvals: the matrix has complex eigenvalues" },
    { "eig(y)", "eig: matrix 2 has complex eigenvalues" },
    { "svdvals(z)", "svdvals: matrix 0 has elements that are not finite" },
    { "svdvals(z[0])", "svdvals: the matrix has elements that are not finite" },
    { "pinv(z[0])", "svd: the matrix has elements that are not finite" },
    { "matrix_rank(z[0])", "svdvals: the matrix has elements that are not finite" },
    { "matrix_rank(x[0] / 0.)", "svdvals: the matrix has elements that are not finite" },
    { "svd(z)[0]", "svd: matrix 0 has elements that are not finite" },
    { "eig(z)[0]", "eig: matrix 0 has elements that are not finite" },
    { "cholesky(x[0, 0])", "cholesky: expected a matrix or a stack of matrices, not a tensor of rank 1" },
    { "cholesky(cast(x, float16))", "cholesky: takes float32 and float64, not float16" },
    { "det(w)", "det: the matrix is not square, but 2 x 3" },
    { "slogdet(w)[1]", "slogdet: the matrix is not square, but 2 x 3" },
    { "det(x[0, 0])", "det: expected a matrix or a stack of matrices, not a tensor of rank 1" },
    { "matrix_inverse(w)", "matrix_inverse: the matrix is not square, but 2 x 3" },
    { "solve(w, w)", "solve: the matrix is not square, but 2 x 3" },
    { "solve(x[0], [1f64, 2, 3])", "solve: the matrix has 2 columns, but there are 3 right hand sides" },
    { "solve(x, x, assume_a='sym')", "solve: assume_a must be 'gen' or 'pos', not 'sym'" },
    { "qr(w, mode='full')[0]", "qr: mode must be reduced, complete or r, not 'full'" },
    { "eigh(x, UPLO='X')[0]", "eigh: UPLO must be 'L' or 'U', not 'X'" },
    { "solve_triangular(x, x, trans=2)", "solve_triangular: trans must be 0 or 1, not 2" },
    { "matrix_power(w, 2)", "matrix_power: the matrix is not square, but 2 x 3" },
    { "matrix_norm(w, ord='max')", "matrix_norm: ord must be" },
    { "trace(x[0, 0])", "trace: expected a tensor of rank 2 or more, not 1" },
    { "diagonal(x, axis1=1, axis2=-2)", "diagonal: the axis 1 is given twice" },
    { "matrix_dot(w, x)", "matrix_dot: factor 2 has rank 3" },
};

TEST(wrong_matrices_are_named)
{
    struct leaf leaf[] = {
        { "x", mc_array_from(MC_FLOAT64, 3, (int64_t[]){ 3, 2, 2 }, (double[]){ 4, 2, 2, 5, 1, 0, 0, 1, 1, 2, 2, 1 }), 0, false },
        { "y", mc_array_from(MC_FLOAT64, 3, (int64_t[]){ 3, 2, 2 }, (double[]){ 1, 2, 3, 5, 1, 2, 2, 4, 0, 1, -1, 0 }), 0, false },
        { "z", mc_array_from(MC_FLOAT64, 3, (int64_t[]){ 2, 2, 2 }, (double[]){ 1, NAN, 3, 4, 1, 2, 3, 4 }), 0, false },
        { "w", mc_array_from(MC_FLOAT64, 2, (int64_t[]){ 2, 3 }, (double[]){ 1, 2, 3, 4, 5, 6 }), 3, false },
    };
    for (size_t i = 0; i < NELEM(wrong); i++) {
        for (size_t k = 0; k <= NELEM(solvers); k++) {
            use(k ? solvers[k - 1] : "auto");
            mc_array *y = k ? compiled((int)NELEM(leaf), leaf, wrong[i].formula, "FAST_RUN")
                            : run((int)NELEM(leaf), leaf, wrong[i].formula);
            const char *said = strstr(mc_last_error(), wrong[i].message);
            CHECK(!y && (said || refused()), "%s by %s: %s, not %s", wrong[i].formula,
                  k ? solvers[k - 1] : "eval", y ? "a result" : mc_last_error(), wrong[i].message);
            mc_array_unref(&y);
        }
    }
    for (size_t i = 0; i < NELEM(leaf); i++) {
        mc_array_unref(&leaf[i].a);
    }
}

/* What NumPy gives: determinants of singular matrices, and NaN where an element is NaN. */
TEST(singular_and_nan)
{
    struct leaf leaf[] = { { "y", matrix(2, 2, (double[]){ 1, 2, 2, 4 }), 0, false },
                           { "z", matrix(2, 2, (double[]){ NAN, 1, 1, 2 }), 0, false } };
    static const struct { const char *formula; double want; } rows[] = {
        { "det(y)", 0 },          { "slogdet(y)[0]", 0 },    { "slogdet(y)[1]", -INFINITY },   { "det(z)", NAN },
        { "lu(y)[2][1, 1]", 0 },  { "cholesky(z)[0, 0]", NAN }, { "cholesky(z)[1, 1]", NAN },  { "eigvalsh(z)[0]", NAN },
        { "eigh(z)[1][0, 0]", NAN }, { "qr(z)[1][0, 0]", NAN }, { "matrix_rank(y)", 1 },       { "matrix_inverse(z)[0, 0]", NAN },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (size_t k = 0; k < NELEM(solvers); k++) {
            use(solvers[k]);
            mc_array *y = compiled(2, leaf, rows[i].formula, "FAST_RUN");
            const double have = y ? mc_array_get(y, NULL) : 99;
            CHECK(have == rows[i].want || (isnan(have) && isnan(rows[i].want)) || (!y && refused()),
                  "%s by %s is %g, not %g %s", rows[i].formula, solvers[k], have, rows[i].want,
                  y ? "" : mc_last_error());
            mc_array_unref(&y);
        }
    }
    mc_array_unref(&leaf[0].a);
    mc_array_unref(&leaf[1].a);
}

/* One of a stack that needs care, among others that are computed together with it. */
TEST(one_of_many)
{
    static const struct { const char *formula, *message; } rows[] = {
        { "solve(x * where(eq(b, 29), a, 1), y)", "solve: matrix 29 is singular: pivot 2 is 0" },
        { "cholesky(x * where(eq(b, 29), -a, 1))", "cholesky: matrix 29 is not positive definite: pivot 0 is -1" },
        { "solve(where(eq(b, 7), hole, x), y) - where(eq(b, 7), 0, y)", NULL },
        { "cholesky(where(eq(b, 7), hole, x)) - where(eq(b, 7), 0, x)", NULL },
    };
    static const char set[] =
        "b = reshape(arange(40), [40, 1, 1]); a = cast([1f64, 1, 0], float64); hole = 0f64 / 0; "
        "x = alloc(cast(eye(3), float64), [40, 3, 3]); y = cast(b + alloc(1f64, [40, 3, 1]), float64); ";
    mc_array *one = matrix(1, 0, (double[]){ 1 });
    struct leaf leaf = { "one", one, 0, false };
    for (size_t i = 0; i < NELEM(rows) * 3; i++) {
        char text[500];
        snprintf(text, sizeof text, "%s%s", set, rows[i / 3].formula);
        use(solvers[i % 3]);
        mc_array *z = compiled(1, &leaf, text, "FAST_COMPILE");
        int64_t at[MC_MAX_RANK] = { 0 };
        CHECK(rows[i / 3].message ? !z && strstr(mc_last_error(), rows[i / 3].message) : z != NULL,
              "%s by %s: %s", rows[i / 3].formula, solvers[i % 3], mc_last_error());
        for (int64_t k = 0; z && k < mc_array_size(z); k++, next_index(z->rank, z->dims, at)) {
            const bool lower = i / 3 == 2 || at[2] <= at[1];
            CHECK(at[0] == 7 && lower ? isnan(mc_array_get(z, at)) : mc_array_get(z, at) == 0,
                  "%s by %s: matrix %d has %g", rows[i / 3].formula, solvers[i % 3], (int)at[0],
                  mc_array_get(z, at));
        }
        mc_array_unref(&z);
    }
    mc_array_unref(&one);
}

TEST(empty_matrices)
{
    struct leaf leaf[] = { { "x", mc_array_new(MC_FLOAT64, MC_SHAPE(0, 0)), 0, false },
                           { "y", mc_array_new(MC_FLOAT64, MC_SHAPE(0, 3)), 0, false },
                           { "z", mc_array_new(MC_FLOAT32, MC_SHAPE(0, 2, 2)), 0, false } };
    static const struct { const char *formula; int rank; int64_t dims[3]; double sum; } rows[] = {
        { "cholesky(x)", 2, { 0, 0 }, 0 },       { "matrix_inverse(x)", 2, { 0, 0 }, 0 }, { "det(x)", 0, { 0 }, 1 },
        { "slogdet(x)[0]", 0, { 0 }, 1 },        { "slogdet(x)[1]", 0, { 0 }, 0 },        { "solve(x, y)", 2, { 0, 3 }, 0 },
        { "eigh(x)[0]", 1, { 0 }, 0 },           { "eigh(x)[1]", 2, { 0, 0 }, 0 },        { "svd(x)[1]", 1, { 0 }, 0 },
        { "svd(y)[0]", 2, { 0, 0 }, 0 },         { "svd(y)[2]", 2, { 3, 3 }, 3 },         { "svd(y.T)[0]", 2, { 3, 3 }, 3 },
        { "qr(y)[1]", 2, { 0, 3 }, 0 },          { "qr(y.T)[0]", 2, { 3, 0 }, 0 },        { "qr(y.T, mode='complete')[0]", 2, { 3, 3 }, 3 },
        { "eig(x)[1]", 2, { 0, 0 }, 0 },         { "pinv(y)", 2, { 3, 0 }, 0 },           { "cholesky(z)", 3, { 0, 2, 2 }, 0 },
        { "trace(x)", 0, { 0 }, 0 },             { "svd(y, full_matrices=False)[2]", 2, { 0, 3 }, 0 },
        { "diag(y[0:0, 0])", 2, { 0, 0 }, 0 },   { "kron(x, y)", 2, { 0, 0 }, 0 },        { "eigvals(z)", 2, { 0, 2 }, 0 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (size_t k = 0; k < NELEM(solvers); k++) {
            use(solvers[k]);
            mc_array *y = compiled(3, leaf, rows[i].formula, "FAST_RUN");
            if (!y && refused()) {
                continue;
            }
            CHECK(y && mc_dims_equal(y->rank, y->dims, rows[i].rank, rows[i].dims), "%s by %s: %s",
                  rows[i].formula, solvers[k], y ? "another shape" : mc_last_error());
            double sum = 0;
            int64_t at[MC_MAX_RANK] = { 0 };
            for (int64_t e = 0; y && e < mc_array_size(y); e++, next_index(y->rank, y->dims, at)) {
                sum += mc_array_get(y, at);
            }
            CHECK(fabs(sum - rows[i].sum) < 1e-12, "%s by %s: the sum is %g, not %g", rows[i].formula,
                  solvers[k], sum, rows[i].sum);
            mc_array_unref(&y);
        }
    }
    for (size_t i = 0; i < NELEM(leaf); i++) {
        mc_array_unref(&leaf[i].a);
    }
}

/* Timing selects among all solvers, and each is compared with the reference. */
TEST(solvers_are_timed_and_compared)
{
    CHECK(mc_flag_set("plan", "measure") == MC_OK && mc_flag_set("check", "3") == MC_OK, "%s",
          mc_last_error());
    check_sizes_of(1, (const int64_t[][3]){ { 2, 9, 9 } }, "timing");
    check_sizes_of(1, (const int64_t[][3]){ { 0, 100, 100 } }, "timing");
    mc_flag_set("plan", "estimate");
    mc_flag_set("check", "0");
}

/* Without the library its solver says what is missing, and the others are there. */
TEST(lapack_can_be_switched_off)
{
    double x[4] = { 4, 1, 1, 3 };
    mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(2, 2), x);
    struct leaf leaf = { "x", a, 0, false };
    mc_flag_set("device", "cpu");
    mc_flag_set("lapack", "none");
    use("lapack");
    mc_array *y = compiled(1, &leaf, "cholesky(x)", "FAST_RUN");
    CHECK(!y && strstr(mc_last_error(), "finds no library"), "%s", y ? "a result" : mc_last_error());
    mc_array_unref(&y);
    use("auto");
    y = compiled(1, &leaf, "cholesky(x)", "FAST_RUN");
    CHECK(y && fabs(mc_array_get(y, (int64_t[]){ 1, 0 }) - 0.5) < 1e-15, "%s", mc_last_error());
    mc_array_unref(&y);
    mc_array_unref(&a);
    mc_flag_set("lapack", "auto");
}

/* Each ends in a result or in an error, whichever allocation fails. */
TEST(without_memory)
{
    static const char *const formulas[] = { "cholesky(dot(x, x.T))", "svd(x)[0]", "lu(x)[2]",
                                            "lstsq(x, x)[0]", "expm(x)" };
    mc_array *x = matrix(2, 2, (double[]){ 1, 2, 3, 5 });
    struct leaf leaf = { "x", x, 0, false };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        ALLOC_FAIL_LOOP {
            mc_array *y = compiled(1, &leaf, formulas[i], "FAST_COMPILE");
            CHECK(y || ALLOC_FAILED, "%s: %s", formulas[i], mc_last_error());
            mc_array_unref(&y);
        }
    }
    mc_array_unref(&x);
}
