/* t_shapes.c: one function called with many shapes: plans made, kept, found again; sizes that only running
 * tells; what broadcasts. */
#include "function_words.h"

/* ---- plans ---- */

TEST(shapes_that_come_back_find_their_plan)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "softmax(dot(x, x.T))" }));
    mc_array *x[3] = { ramp(MC_FLOAT32, MC_SHAPE(3, 4)), ramp(MC_FLOAT32, MC_SHAPE(5, 2)),
                       ramp(MC_FLOAT32, MC_SHAPE(4, 3)) },
             *y = NULL;
    x[2] = (mc_array_unref(&x[2]), mc_array_transpose(x[0], NULL));
    for (int i = 0; i < 30; i++) {
        fine(mc_call(f, MC_IN(x[i % 3]), MC_OUT(&y)));
        mc_array_unref(&y);
    }
    CHECK(f->planned == 3 && f->nplans == 3, "planned %lld times, %d kept", (long long)f->planned, f->nplans);
    for (int i = 0; i < 200; i++) { /* more shapes than plans are kept */
        mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(1 + i, 2));
        fine(mc_call(f, MC_IN(a), MC_OUT(&y)));
        mc_array_unref(&y);
        mc_array_unref(&a);
    }
    CHECK(f->nplans <= 64, "%d plans are kept", f->nplans);
    fine(mc_call(f, MC_IN(x[0]), MC_OUT(&y)));
    CHECK(fabs(at(y, 0) + at(y, 1) + at(y, 2) - 1) < 1e-6, "%g", at(y, 0));
    mc_array_unref(&y);
    for (int i = 0; i < 3; i++) {
        mc_array_unref(&x[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

/* What decides sizes is told apart by its bits, not by its whole part. */
TEST(contents_that_decide_sizes_find_their_own_plan)
{
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE" };
    for (int k = 0; k < 2; k++) {
        mc_graph *g = mc_graph_new();
        mc_input_sized(g, "x", MC_FLOAT32, 1, (int64_t[]){ 3 });
        mc_input(g, "n", MC_FLOAT64, 0);
        mc_function *values = made(
            g,
            mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "nonzero_values(x * 2)", .mode = modes[k] }));
        mc_function *range = made(g, mc_compile(g, &(mc_spec){ .inputs = "n",
                                                               .outputs = "arange(cast(n * 4, int64))",
                                                               .mode = modes[k] }));
        static const float of[][3] = {
            { .75f, .75f, .75f }, { .25f, .25f, .25f }, { .75f, .5f, .25f }, { .75f, .75f, .75f }
        };
        for (size_t i = 0; i < NELEM(of); i++) {
            mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(3), of[i]), *y = NULL;
            fine(mc_call(values, MC_IN(x), MC_OUT(&y)));
            for (int j = 0; j < 3; j++) {
                CHECK(at(y, j) == 2 * of[i][j], "%s, call %zu: element %d is %g", modes[k], i, j, at(y, j));
            }
            mc_array_unref(&y);
            fine(mc_call(range, MC_IN((double)of[i][1]), MC_OUT(&y)));
            CHECK(mc_array_size(y) == (int64_t)(4 * of[i][1]), "%s, call %zu: %lld", modes[k], i,
                  (long long)mc_array_size(y));
            mc_array_unref(&y);
            mc_array_unref(&x);
        }
        mc_function_free(values);
        mc_function_free(range);
        mc_graph_free(g);
    }
}

TEST(sizes_that_only_running_tells)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_shared *n = scalar(g, "n", MC_INT64, 0);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x",
                                     .outputs = "x[x > 2] * 2, nonzero(x), sum(x[x > 2]), x[x > 2].shape[0]",
                                     .updates = "n = n + x[x > 2].shape[0]" }));
    for (int k = 1; k < 8; k++) {
        mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(k)), *y = NULL, *z = NULL;
        double s = 0, want = 0;
        int64_t count = -1;
        fine(mc_call(f, MC_IN(x), MC_OUT(&y, &z, &s, &count)));
        for (int i = 3; i < k; i++) {
            want += i;
        }
        CHECK(y && y->dims[0] == MC_MAX(k - 3, 0) && z->dims[0] == k - 1 && s == want &&
                  count == MC_MAX(k - 3, 0),
              "of %d: %lld, %g, %lld", k, y ? (long long)y->dims[0] : -1, s, (long long)count);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&z);
    }
    CHECK(shared_at(n, 0) == 10, "%g", shared_at(n, 0));
    mc_function_free(f);
    mc_graph_free(g);
}

/* Sizes from inputs' values, from variables, from masks, from what was computed: by plan, or while
 * running. */
TEST(sizes_from_anywhere)
{
    static const char *const formulas[] = {
        "x[i[1]:]", "x[i[0]:i[1]] * 2", "arange(i[1])", "x[sum(i):]", "x[W[1]:]", "arange(W[1])", "zeros([W[0], k])", "x[max(W):, k]",
        "reshape(x, [W[1] * k, -1])", "x[i[1]]", "x[:, W[1] - 1]", "arange(sum(cast(v, 'int64')))", "x[x[:, 0] > 3]", "x[x > 3][k:]",
        "sum(x[nonzero(x[:, 0])], axis=0)", "x[nonzero(v)[0]:]", "zeros(shape(x[x > 3])) + 1", "x[shape(x[x > 3])[0] - 5:]",
        "tanh(x)[i[1]:][::-1] + 1", "eye(W[1])", "join([x[x > 3], v], axis=0)", "softmax(x[x[:, 0] > 3])", "dot(x[x[:, 0] > 3], x.T)",
        "tanh(dot(x[x[:, 0] > 3], x.T) + 1)", "cumsum(v)[W[1]:]", "x[k:][k:]", "x[:k, k - 1]", "arange(k, k * 3, k)",
        "inc_subtensor(x[i[1]:], 1)", "set_subtensor(x[W[1]], 5)", "grad(sum(x[i[1]:] ** 2), x)", "grad(sum(x[x > 3] ** 2), x)",
        "grad(sum(x[W] ** 2), x)", "zeros_like(x[W[1]:])", "tile(x, [2, 2])[W[1]:]", "x[-k:]", "x[::-k]", "x[W][i]",
    };
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE" };
    for (size_t r = 0; r < NELEM(formulas) * 2; r++) {
        struct agree a = { .g = mc_graph_new() };
        mc_array *w = mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 1, 2 });
        mc_shared_sized(a.g, "W", w, NULL);
        agree_input(&a, "x", ramp(MC_FLOAT32, MC_SHAPE(5, 3)), 0);
        agree_input(&a, "i", mc_array_from(MC_INT64, MC_SHAPE(2), (int64_t[]){ 1, 3 }), 0);
        agree_input(&a, "k", mc_array_scalar(MC_INT64, 2), 0);
        agree_input(&a, "v", mc_array_from(MC_FLOAT32, MC_SHAPE(4), (float[]){ 0, 3, 0, 1 }), 0);
        agree_output(&a, formulas[r / 2]);
        const char *wrong = agree_in(&a, modes[r % 2], 2);
        CHECK(!wrong, "%s: %s", formulas[r / 2], wrong);
        mc_array_unref(&w);
        agree_free(&a);
    }
}

TEST(many_slices_of_many_kernels)
{
    struct agree a = { 0 };
    agree_input(&a, "x", ramp(MC_FLOAT32, MC_SHAPE(6)), 0);
    for (int i = 0; i < 80; i++) {
        char text[80];
        snprintf(text, sizeof text, "split(tanh(x + %d), [%d, %d, %d])[%d]", i, i % 3, 3 - i % 3, 3, i % 3);
        CHECK(!mc_is_error(agree_output(&a, text)), "%s", mc_error(a.g));
    }
    const char *wrong = agree_in(&a, "FAST_COMPILE", 1);
    CHECK(!wrong, "%s", wrong);
    agree_free(&a);
}

TEST(slices_and_ranges_with_bounds_from_inputs)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "i", MC_INT64, 0);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x, i",
                                     .outputs = "x[i*3:(i+1)*3], sum(x[i:] + 1), arange(i), x[i], x[::i-3, "
                                                "1], sum(arange(i * 2) * 2)" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(8, 2));
    for (int i = 0; i < 3; i++) {
        mc_array *a = NULL, *r = NULL, *row = NULL, *col = NULL;
        double s = 0, want = 0, twice = 0;
        fine(mc_call(f, MC_IN(x, i), MC_OUT(&a, &s, &r, &row, &col, &twice)));
        for (int k = 2 * i; k < 16; k++) {
            want += k + 1;
        }
        CHECK(a && a->dims[0] == MC_MIN(3, 8 - 3 * i) && at(a, 0) == 6 * i && s == want && r->dims[0] == i &&
                  at(row, 1) == 2 * i + 1 && at(col, 0) == 15 && col->dims[0] == (7 + 3 - i) / (3 - i) &&
                  twice == 2 * i * (2 * i - 1),
              "%d: %g %g %g", i, s, want, twice);
        mc_array_unref(&a);
        mc_array_unref(&r);
        mc_array_unref(&row);
        mc_array_unref(&col);
    }
    refused(mc_call(f, MC_IN(x, 9), MC_NONE), MC_EINDEX, "9");
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- promises of size 1 ---- */

/* row (1, 3) and x (2, 3): where an axis of size 1 may be repeated, and where that is a mistake when
 * called. */
TEST(promises_given_back_and_made_again)
{
    static const struct { const char *formula; bool meets; } rows[] = {
        { "x + row", true },
        { "x + unbroadcast(row, 0)", false },
        { "x + unbroadcast(row, [0, 1])", false },
        { "x + unbroadcast(row, 1)", true },
        { "x + addbroadcast(unbroadcast(row * 2, 0), 0)", true },
        { "x + patternbroadcast(row, [0, 0])", false },
        { "x + patternbroadcast(row, [-1, 0])", true },
        { "x + patternbroadcast(unbroadcast(exp(row), 0), [True, False])", true },
        { "row + patternbroadcast(x[:1], [1, -1]) + x", true },
        { "x + row + patternbroadcast(x, [1, -1])", false },
        { "x + grad(sum(sqr(unbroadcast(row, 0))), row)", true },
        { "x + row + unbroadcast([[1.0f32, 2, 3]], 0)", false },
    };
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE" };
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(2, 3)), *row = ramp(MC_FLOAT32, MC_SHAPE(1, 3));
    for (size_t k = 0; k < 2 * NELEM(rows); k++) {
        mc_graph *g = mc_graph_new();
        mc_array *y = NULL;
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_input_sized(g, "row", MC_FLOAT32, 2, row->dims);
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x, row",
                                                           .outputs = rows[k / 2].formula,
                                                           .mode = modes[k % 2] }));
        mc_status s = f ? mc_call(f, MC_IN(x, row), MC_OUT(&y)) : MC_EARG;
        CHECK(s == (rows[k / 2].meets ? MC_OK : MC_ESHAPE), "%s: %d: %s", rows[k / 2].formula, s,
              mc_last_error());
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x);
    mc_array_unref(&row);
}

TEST(promises_that_do_not_fit_are_refused)
{
    static const char *const rows[][2] = {
        { "unbroadcast(x, 2)", "unbroadcast: axis 2 is out of range for rank 2" }, { "patternbroadcast(x, [1])", "patternbroadcast: the pattern has 1 entries, but x has rank 2" },
        { "addbroadcast([[1, 2]], 1)", "specify_shape: axis 1 has size 2, not 1" },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        CHECK(mc_is_error(mc_formula(g, rows[k][0])) && strstr(mc_error(g), rows[k][1]), "%s says '%s'",
              rows[k][0], mc_error(g));
        mc_graph_free(g);
    }
}

/* A rule may drop an operand; its known sizes stay checked: 1 row is refused where c has 4. */
TEST(sizes_of_operands_that_are_left_out)
{
    static const char *const formulas[] = { "where(c > 0, x, x)", "where(isclose(c, c), x, 1)",
                                            "where(c > 0, x, x) + c", "x * 1 ** c",
                                            "sum(where(c == c, x, x), axis=1)" };
    for (size_t k = 0; k < NELEM(formulas); k++) {
        for (int64_t rows = 1; rows <= 4; rows += 3) {
            mc_graph *g = mc_graph_new();
            mc_formula(g, "input x float32[?, ?]; input c float32[4, 1]");
            mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x, c", .outputs = formulas[k] }));
            mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(rows, 3)),
                     *c = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 1)), *y = NULL;
            const mc_status s = mc_call(f, MC_IN(x, c), MC_OUT(&y));
            CHECK(s == (rows == 4 ? MC_OK : MC_ESHAPE), "%s of %lld rows: %s", formulas[k], (long long)rows,
                  mc_status_name(s));
            CHECK(s != MC_OK || y->dims[0] == 4, "%s has %lld rows", formulas[k], (long long)y->dims[0]);
            mc_array_unref(&x);
            mc_array_unref(&c);
            mc_array_unref(&y);
            mc_function_free(f);
            mc_graph_free(g);
        }
    }
}

/* A size of 1 that was not declared: what lies behind the one element must not be read. */
TEST(vectors_of_one_do_not_fill_rows)
{
    static const char *const formulas[] = { "where(c, x, x)", "where(c, x * 2, x * 2)", "where(c, x, x) + 1", "sum(where(c, x, x), axis=0)",
                                            "alloc(x, c.shape)", "where(c, sqr(x), sqr(x))[::-1]" };
    for (size_t k = 0; k < NELEM(formulas); k++) {
        for (int64_t n = 1; n <= 3; n += 2) {
            mc_graph *g = mc_graph_new();
            mc_formula(g, "input x float32[?]; input c bool[?, ?]");
            mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x, c", .outputs = formulas[k] }));
            mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(n)), *c = mc_array_new(MC_BOOL, MC_SHAPE(2, 3)),
                     *y = NULL;
            const mc_status s = mc_call(f, MC_IN(x, c), MC_OUT(&y));
            CHECK(s == (n == 3 ? MC_OK : MC_ESHAPE), "%s of %lld: %s", formulas[k], (long long)n,
                  mc_status_name(s));
            mc_array_unref(&x);
            mc_array_unref(&c);
            mc_array_unref(&y);
            mc_function_free(f);
            mc_graph_free(g);
        }
    }
}

/* The product's elements are needed for how many are not 0, and by the kernel of its square. */
TEST(counts_of_products_that_a_kernel_reads)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float64[?, ?]; t = dot(x, x.T)");
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x",
                                     .outputs = "sum(nonzero(t)[0] * 0 + 1), grad(sum(sqr(t)), x)" }));
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(2, 3), (double[]){ 1, 0, 0, 0, 2, 0 }), *count = NULL,
             *slope = NULL;
    if (f && fine(mc_call(f, MC_IN(x), MC_OUT(&count, &slope)))) { /* t = diag(1, 4); 4 t x */
        static const double want[] = { 4, 0, 0, 0, 32, 0 };
        CHECK(at(count, 0) == 2, "%g are not 0", at(count, 0));
        for (int i = 0; i < 6; i++) {
            CHECK(at(slope, i) == want[i], "element %d of the gradient is %g, not %g", i, at(slope, i),
                  want[i]);
        }
    }
    mc_array_unref(&x);
    mc_array_unref(&count);
    mc_array_unref(&slope);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- axes of size 1: their strides mean nothing ---- */

/* A view over rising numbers with these strides, in elements, through a formula on unknown sizes. */
static void check_view(const char *formula, int rank, const int64_t *dims, const int64_t *strides, int n,
                       const double *want)
{
    static const int64_t unknown[] = { -1, -1, -1, -1 };
    float data[256];
    int64_t bytes[MC_MAX_RANK];
    for (size_t i = 0; i < NELEM(data); i++) {
        data[i] = (float)i;
    }
    for (int a = 0; a < rank; a++) {
        bytes[a] = strides[a] * (int64_t)sizeof *data;
    }
    mc_graph *g = mc_graph_new();
    mc_input_sized(g, "x", MC_FLOAT32, rank, unknown);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = formula }));
    mc_array *x = mc_array_wrap(MC_FLOAT32, rank, dims, bytes, data, NULL, NULL), *y = NULL;
    if (fine(mc_call(f, MC_IN(x), MC_OUT(&y))) &&
        CHECK(mc_array_size(y) == n, "%s: %lld elements", formula, (long long)mc_array_size(y))) {
        for (int i = 0; i < n; i++) {
            CHECK(at(y, i) == want[i], "%s: element %d is %g, not %g", formula, i, at(y, i), want[i]);
        }
    }
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(strides_of_axes_of_size_1_mean_nothing)
{
    static const struct {
        const char *formula;
        int rank, n;
        int64_t dims[4], strides[4];
        double want[12];
    } rows[] = {
        { "dimshuffle(x, [2,0,1]) * 2", 3, 6, { 3, 1, 2 }, { 2, 2, 1 }, { 0, 4, 8, 2, 6, 10 } },
        { "x * 2", 3, 6, { 2, 3, 1 }, { 2, 4, 4 }, { 0, 8, 16, 4, 12, 20 } },
        { "x * 2", 3, 6, { 2, 3, 1 }, { 2, 4, -4 }, { 0, 8, 16, 4, 12, 20 } },
        { "x * 2", 2, 3, { 3, 1 }, { 5, 0 }, { 0, 10, 20 } },
        { "x[::-1] + 1", 3, 4, { 2, 2, 1 }, { 1, 2, 2 }, { 2, 4, 1, 3 } },
        { "sum(x, axis=1)", 4, 2, { 1, 3, 2, 1 }, { 3, 1, 3, 3 }, { 3, 12 } },
        { "x + sum(x, axis=0, keepdims=True)", 3, 4, { 2, 2, 1 }, { 1, 2, 2 }, { 1, 7, 2, 8 } },
        { "argmax(-x, axis=0)", 3, 3, { 3, 3, 1 }, { 1, 3, 3 }, { 0, 0, 0 } },
        { "reshape(x, [-1]) + 1", 3, 4, { 2, 1, 2 }, { 3, 3, 7 }, { 1, 8, 4, 11 } },
        { "dot(x, x.T)", 2, 4, { 2, 1 }, { 3, 3 }, { 0, 0, 0, 9 } },
        { "dot(x.T, x) + 1", 2, 1, { 3, 1 }, { 3, 3 }, { 46 } },
        { "cumsum(x, axis=0)", 3, 4, { 2, 2, 1 }, { 1, 2, 2 }, { 0, 2, 1, 5 } },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        check_view(rows[i].formula, rows[i].rank, rows[i].dims, rows[i].strides, rows[i].n, rows[i].want);
    }
}

/* alloc(x, [1]) says that x has one element, sum(x, axis=0) of a matrix that is summed once more has dropped
 * two axes. */
TEST(axes_of_size_1_are_promised_and_dropped)
{
    static const struct { const char *formula; int rank; int n; double want[6]; } cases[] = { /* x is 3, m [[1, 2], [3, 4]] */
        { "alloc(x, [1]) * y",                               1, 3, { 3, 6, 9 } },
        { "alloc(x, [1])",                                   1, 1, { 3 } },
        { "alloc(x, [1]) * y",                               0, 3, { 3, 6, 9 } },
        { "exp(alloc(x, [1, 1])) * 0 + y",                   1, 3, { 1, 2, 3 } },
        { "sum(alloc(x, [2, 1]) * y, axis=0)",               1, 3, { 6, 12, 18 } },
        { "cast(alloc(x, [1]), float64) * y",                1, 3, { 3, 6, 9 } },
        { "grad(sum(alloc(x, [1]) * y), x)",                 1, 1, { 6 } },
        { "grad(2 * max(alloc(x, [1, 1, 1])), x)",           1, 1, { 2 } },
        { "grad(2 * max(alloc(x, [1, 1, 1])), x)",           0, 1, { 2 } },
        { "grad(2 * min(alloc(x, [1])) + prod(alloc(x, [1, 1])), x)", 1, 1, { 3 } },
        { "logsumexp(sum(m ** 2, axis=0))",                  1, 1, { 20.0000453988992168646 } },
        { "grad(logsumexp(sum(m ** 2, axis=0)), m)",         1, 4, { 9.0795737e-05, 3.9998184, 2.7238721e-04, 7.9996368 } },
        { "exp(sum(m, axis=0)) / sum(exp(sum(m, axis=0)))",  1, 2, { 0.11920292, 0.88079708 } },
        { "sum(m, axis=0) - max(sum(m, axis=0))",            1, 2, { -2, 0 } },
        { "sum(m, axis=1) * sum(sum(m, axis=0)) + max(m)",   1, 2, { 34, 74 } },
        /* what follows heavy work has an axis of 3 where the work's own has size 1 */
        { "conv(alloc(x, [1, 1, 1]), alloc(m[0, 1], [1, 1, 1])) + y",             1, 3, { 7, 8, 9 } },
        { "conv(alloc(x, [1, 1, 1, 1]), alloc(m[0, 1], [1, 1, 1, 1])) * dimshuffle(y, [0, -1])", 1, 3, { 6, 12, 18 } },
        { "cast(conv(alloc(x, [1, 1, 1]), alloc(m[0, 1], [1, 1, 1])), float64) + y", 1, 3, { 7, 8, 9 } },
        { "y / (abs(pool(alloc(x, [1, 1, 1]), [1], mode='sum')) + 1)",            1, 3, { 0.25, 0.5, 0.75 } },
        { "alloc(conv(alloc(x, [1, 1, 1]), alloc(m[0, 1], [1, 1, 1])) * 2, [1, 1, 3])", 1, 3, { 12, 12, 12 } },
        { "grad(sum(conv(alloc(y[0], [1, 1, 1]), alloc(m[0, 1], [1, 1, 1])) * y), y)", 1, 3, { 14, 2, 2 } },
    };
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i / 3].formula, *mode = modes[i % 3];
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, cases[i / 3].rank);
        mc_input(g, "y", MC_FLOAT32, 1);
        mc_input(g, "m", MC_FLOAT32, 2);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, y, m", .outputs = text, .on_unused = "ignore", .mode = mode });
        mc_array *x = mc_array_from(MC_FLOAT32, cases[i / 3].rank, (int64_t[]){ 1 }, (float[]){ 3 }),
                 *r = NULL;
        mc_array *y = mc_array_from(MC_FLOAT32, MC_SHAPE(3), (float[]){ 1, 2, 3 });
        mc_array *m = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 2), (float[]){ 1, 2, 3, 4 });
        if (CHECK(f, "%s in %s: %s", text, mode, mc_error(g)) &&
            CHECK(mc_call(f, MC_IN(x, y, m), MC_OUT(&r)) == MC_OK, "%s in %s: %s", text, mode,
                  mc_last_error()) &&
            CHECK(mc_array_size(r) == cases[i / 3].n, "%s in %s has %lld elements", text, mode,
                  (long long)mc_array_size(r))) {
            for (int k = 0; k < cases[i / 3].n; k++) {
                CHECK(fabs(at(r, k) - cases[i / 3].want[k]) <= 1e-5 * (1 + fabs(cases[i / 3].want[k])),
                      "%s in %s: [%d] is %g, not %g", text, mode, k, at(r, k), cases[i / 3].want[k]);
            }
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&m);
        mc_array_unref(&r);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
