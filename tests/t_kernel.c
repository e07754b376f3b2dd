/* t_kernel.c: kernels against the reference of the graphs they come from: every scalar op and dtype, odd
 * sizes and strides, memory that is used again.  What is compared is always whole functions, in FAST_RUN and
 * in DEBUG. */
#include "random_graph.h"

#include <string.h>

/* ---- scalar ops ---- */

static bool takes(const struct mc_op *op, mc_dtype d)
{
    bool no_bool = strcmp(op->name, "sub") == 0 || strcmp(op->name, "neg") == 0;
    return !(op->typing == TYPE_BITS && mc_is_float(d)) && !(no_bool && d == MC_BOOL);
}

static mc_array *within(mc_dtype d, int rank, const int64_t *dims, const struct mc_op *op)
{
    bool unsigned_ = mc_dtypes[d].kind == KIND_UINT || d == MC_BOOL;
    double lo = unsigned_ ? MC_MAX(op->lo, 0) : op->lo, hi = d == MC_BOOL ? 1 : op->hi;
    return sample(d, rank, dims, mc_is_float(d) ? lo : ceil(lo),
                  mc_is_float(d) ? hi : MC_MAX(floor(hi), ceil(lo)));
}

/* All scalar ops on one dtype in one function: each op has operands of its own. */
static void scalar_ops(mc_dtype d, int rank, const int64_t *dims)
{
    const struct mc_op *op;
    for (int row = 0; (op = mc_op_at(row)) && op->arity;) {
        struct agree a = { .g = mc_graph_new() };
        for (; (op = mc_op_at(row)) && op->arity && a.nout < 24 && a.nin < AGREE_MOST - 4; row++) {
            mc_node *arg[3];
            if (!takes(op, d)) {
                continue;
            }
            for (int i = 0; i < op->arity; i++) {
                char name[40];
                snprintf(name, sizeof name, "%s_%d", op->name, i);
                mc_dtype t = op->typing == TYPE_WHERE && i == 0 ? MC_BOOL : d;
                arg[i] = agree_input(&a, name, within(t, rank, dims, op), 0);
            }
            a.out[a.nout++] = mc_op(a.g, op->name, op->arity, arg, NULL);
        }
        if (a.nout) {
            agree(&a, mc_dtype_name(d));
        } else {
            agree_free(&a);
        }
    }
}

/* A value of fewer axes is repeated along the axes in front of it. */
TEST(alloc_repeats_what_has_fewer_axes)
{
    struct agree a = { 0 };
    agree_input(&a, "x", sample(MC_FLOAT32, 1, (const int64_t[]){ 6 }, -1, 1), 0);
    CHECK(!mc_is_error(agree_output(&a, "alloc(x, [3, 6]) * 2")), "%s", mc_error(a.g));
    CHECK(!mc_is_error(agree_output(&a, "reshape(alloc(x, [3, 6]), [3, 2, 3])[:, 1, 1:2] + 1")), "%s",
          mc_error(a.g));
    const char *wrong = agree_in(&a, "FAST_RUN", 1);
    CHECK(!wrong, "%s", wrong);
    agree_free(&a);
}

TEST(kernels_of_scalar_ops_on_floats)
{
    scalar_ops(MC_FLOAT32, MC_SHAPE(67));
    scalar_ops(MC_FLOAT64, MC_SHAPE(5, 7));
}

TEST(kernels_of_scalar_ops_on_integers)
{
    scalar_ops(MC_INT32, MC_SHAPE(61));
    scalar_ops(MC_BOOL, MC_SHAPE(9));
}

TEST_FULL(kernels_of_scalar_ops_on_all_dtypes)
{
    for (int d = 0; d < MC_NDTYPE; d++) {
        scalar_ops((mc_dtype)d, MC_SHAPE(3, 35));
    }
}

/* ---- broadcasts, views, host steps ---- */

TEST(kernels_with_broadcasts_and_views)
{
    struct agree a = { 0 };
    agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(6, 7), -2, 2), 0);
    agree_input(&a, "row", sample(MC_FLOAT32, MC_SHAPE(1, 7), -2, 2), 1);
    agree_input(&a, "col", sample(MC_FLOAT32, MC_SHAPE(6, 1), -2, 2), 2);
    agree_input(&a, "s", sample(MC_FLOAT64, MC_NOSHAPE, -2, 2), 0);
    agree_input(&a, "v", sample(MC_INT32, MC_SHAPE(7), -2, 2), 0);
    agree_input(&a, "n", sample(MC_INT64, MC_NOSHAPE, 2, 2), 0);
    static const char *const formulas[] = {
        "x + row", "x * col", "row + col", "row - s", "x + v", "s + 1", "tanh(s) * x.T", "x.T + dimshuffle(v, order=[0, -1])",
        "x[::-1] + x", "x[::-1, ::2] * 2", "x[n:] + 1", "x[:n].T * 2", "x[n, :] + x[:, n][3]", "x[1:n + 2, ::-1]", "reshape(x.T, [n, 21]) + 1",
        "reshape(x[::-1], [-1])", "sum(reshape(x, [3, 14]), axis=0)", "join([x, row, -x], axis=0)", "join([x, col], axis=1)[:, 3:]",
        "x[v[:3] + 2]", "x[:, [0, 2, 4]]", "sort(x, axis=0)", "argsort(v)", "cumsum(x, axis=1) - x", "tile(row, [3, 2])",
        "set_subtensor(x[n:], col[:4])", "inc_subtensor(x[:, 1], 5)", "eye(n + 1)", "arange(n * 3)", "arange(7) + v", "alloc(s, [n, n])",
        "dot(x, x.T)", "tanh(dot(x.T, x)) + 1", "dot(x, row.T) * col", "dot(x, v)", "x[x > 0]", "where(x > 0, x, s)", "stack([x, x * 2])",
        "sum(x[::-1], axis=1)[::-1]", "max(x.T, axis=1) + v", "ones_like(x) * row", "zeros([n, 3]) + 1", "tril(dot(x, x.T))",
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        mc_node *y = agree_output(&a, formulas[i]);
        CHECK(!mc_is_error(y), "%s: %s", formulas[i], mc_error(a.g));
        mc_graph_clear_error(a.g);
        a.nout -= mc_is_error(y);
    }
    agree(&a, "views");
}

TEST(lines_are_shared_by_threads)
{
    static const char *const formulas[] = { "sort(x, axis=1)", "argsort(x, axis=0)", "cumsum(x, axis=1)", "cumprod(x, axis=0)",
        "permute_row_elements(x, argsort(-x))", "sort(x.T, axis=-1)", "cumsum(reshape(x, [70, 10, 60]), axis=1)", "sort(x[0])" };
    mc_array *x = sample(MC_FLOAT32, MC_SHAPE(70, 600), .9, 1.1),
             *bad = mc_array_new(MC_INT64, MC_SHAPE(70, 600));
    for (size_t i = 0; i < NELEM(formulas); i++) {
        struct agree a = { 0 };
        mc_array *one[1] = { 0 }, *three[1] = { 0 };
        agree_input(&a, "x", mc_array_ref(x), 0);
        agree_output(&a, formulas[i]);
        mc_function *f = agree_compile(&a, NULL, 1), *g = agree_compile(&a, NULL, 3);
        if (CHECK(f && g && agree_call(&a, f, one) == MC_OK && agree_call(&a, g, three) == MC_OK, "%s: %s",
                  formulas[i], mc_last_error())) {
            CHECK(mc_array_differs(one[0], three[0], 0, 0) < 0, "%s depends on threads", formulas[i]);
        }
        mc_array_unref(&one[0]);
        mc_array_unref(&three[0]);
        mc_function_free(f);
        mc_function_free(g);
        agree(&a, formulas[i]);
    }
    /* a mistake in one of the parts: the first is told of */
    mc_graph *g = mc_graph_new();
    mc_array *y = NULL;
    mc_formula(g, "input x float32[?, ?]; input p int64[?, ?]");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x, p", .outputs = "permute_row_elements(x, p)", .threads = 3 });
    mc_array_set(bad, (int64_t[]){ 40, 7 }, 601);
    mc_array_set(bad, (int64_t[]){ 60, 7 }, 602);
    CHECK(f && mc_call(f, MC_IN(x, bad), MC_OUT(&y)) == MC_EINDEX &&
              strstr(mc_last_error(), "index 601 is out of range"),
          "%s", mc_last_error());
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
    mc_array_unref(&x);
    mc_array_unref(&bad);
}

TEST(kernels_with_views_one_at_a_time)
{
    static const char *const formulas[] = {
        "x[::-1]", "x[2:, ::-2].T", "reshape(x.T, [-1])[5:9]", "x.T[1]", "x", "x[0, 0]",
        "x[:0]",   "x[:, 3:3] + 1"
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        struct agree a = { 0 };
        agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(6, 7), -2, 2), 0);
        agree_output(&a, formulas[i]);
        agree(&a, formulas[i]);
    }
}

/* ---- memory used again ---- */

TEST(kernels_that_write_over_what_they_read)
{
    static const char *const formulas[] = {
        "y = sort(x, axis=0); z = sort(tanh(y), axis=1); sort(z + y, axis=0) * z",
        "y = sort(x, axis=0); y + y.T", "y = sort(x, axis=0); y + y[::-1]", "y = sort(x, axis=0); (y[::-1] + 1) * 2 + y[0]",
        "y = sort(x, axis=0); z = y * 2; w = sort(z, axis=1); z - w + sum(w, axis=0, keepdims=True)",
        "y = cumsum(x, axis=0); z = cumsum(y + 1, axis=1); w = cumsum(z - y, axis=0); cumsum(w, axis=1) + z.T",
        "y = sort(x, axis=0); [y + 1, y - 1, y * 2, tanh(y)][2]",
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        struct agree a = { 0 };
        agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(33, 33), -2, 2), 0);
        CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s", mc_error(a.g));
        agree(&a, formulas[i]);
    }
}

/* ---- threads ---- */

/* Of huge arguments kernels know no sine: the step is done by the reference, wherever its function stands. */
TEST(functions_beyond_their_bound)
{
    static const char *const formulas[] = {
        "sin(x)",                                     /* map */
        "cos(-x) + tan(x)",
        "v = sqr(x * 1e-5); cos(v * v)",              /* would write over what it reads */
        "sum(sin(x), axis=1)",                        /* row */
        "w = sin(x); w / sum(abs(w), axis=1, keepdims=True)",
        "sin(sum(floor(y), axis=1) * 1e12)",          /* sums of whole numbers: exact in any order */
        "sum(cos(x), axis=0)",                        /* column */
        "cos(max(abs(x), axis=0)) * 2",
        "sum(sin(x))",                                /* fold */
        "tan(max(x))",
        "sin(dot(floor(y.T), floor(y)) * 1e12)",      /* finishes a product */
        "sin(cast(i, 'float64'))",                    /* each at home is in float64 */
    };
    static const double huge[] = { 0x1p45, -0x1p45, 1e20, -3e37, 0x1p44, 1e14, 35184372088831.0 };
    for (int d = MC_FLOAT32; d <= MC_FLOAT64; d++) {
        for (size_t i = 0; i < NELEM(formulas); i++) {
            struct agree a = { .g = mc_graph_new() };
            mc_array *strided = sample((mc_dtype)d, MC_SHAPE(9, 37), -9, 9), *x = mc_array_copy(strided),
                     *n = mc_array_new(MC_INT64, MC_SHAPE(3));
            for (size_t k = 0; k < NELEM(huge); k++) {
                mc_store_f64((mc_dtype)d, x->data + 41 * k * mc_dtypes[d].size, huge[k]);
            }
            ((int64_t *)mc_array_data(n))[1] = INT64_MAX / 3;
            mc_array_unref(&strided);
            agree_input(&a, "x", x, 0);
            agree_input(&a, "y", sample((mc_dtype)d, MC_SHAPE(37, 5), 1, 9), 0);
            agree_input(&a, "i", n, 0);
            agree_output(&a, formulas[i]);
            agree(&a, formulas[i]);
        }
    }
}

TEST(threads_change_no_bit)
{
    static const int64_t large[][4] = { { 700, 513 }, { 3, 40001 }, { 50000, 3 }, { 1, 200000 } };
    static const char *const formulas[] = {
        "tanh(x) * x + 1", "sum(x)", "sum(x, axis=0)", "sum(x, axis=1)", "softmax(x)", "argmax(x)", "argmax(x, axis=0)", "mean(sqr(x))",
        "logsoftmax(x, axis=0)", "max(x)", "x + x[::-1]", "prod(1 + x * 1e-4)", "dot(x[:40, :300], x[:40, :300].T)", "sum(x.T)", "layer_norm(x)",
    };
    struct agree a = { 0 };
    agree_input(&a, "x", sample(MC_FLOAT32, 2, (int64_t[]){ 1, 1 }, -1, 1), 0);
    for (size_t i = 0; i < NELEM(formulas); i++) {
        agree_output(&a, formulas[i]);
    }
    a.scale = 1000; /* rows of three may have hardly any variance to divide by */
    mc_function *f[3] = { agree_compile(&a, NULL, 1), agree_compile(&a, NULL, 2),
                          agree_compile(&a, NULL, 3) };
    for (size_t k = 0; k < NELEM(large); k++) {
        mc_array *have[3][AGREE_MOST] = { { 0 } };
        mc_array_unref(&a.value[0]);
        a.value[0] = mc_array_new(MC_FLOAT32, 2, large[k]);
        for (int64_t i = 0; i < mc_array_size(a.value[0]); i++) {
            ((float *)mc_array_data(a.value[0]))[i] = (float)test_uniform(-1, 1);
        }
        for (int t = 0; t < 3; t++) {
            CHECK(f[t] && agree_call(&a, f[t], have[t]) == MC_OK, "%s%s", mc_error(a.g), mc_last_error());
        }
        for (int t = 1; t < 3; t++) {
            for (int i = 0; i < a.nout && have[0][i] && have[t][i]; i++) {
                CHECK(mc_array_same_bits(have[0][i], have[t][i]),
                      "%s of (%lld, %lld) differs with %d threads", formulas[i], (long long)large[k][0],
                      (long long)large[k][1], t + 1);
            }
        }
        const char *wrong = agree_calls(&a, f[1], "two threads");
        CHECK(!wrong, "%s", wrong);
        for (int t = 0; t < 3; t++) {
            for (int i = 0; i < a.nout; i++) {
                mc_array_unref(&have[t][i]);
            }
        }
    }
    for (int t = 0; t < 3; t++) {
        mc_function_free(f[t]);
    }
    agree_free(&a);
}

/* GCC 12 miscompiled this for AVX-512: bfloat16 is stored in 16 bits beside a sum in 32. */
TEST(sums_of_signs_beside_the_signs)
{
    static const mc_dtype dtypes[] = { MC_FLOAT16, MC_BFLOAT16, MC_FLOAT32, MC_FLOAT64,
                                       MC_INT8,    MC_INT16,    MC_INT32 };
    for (size_t i = 0; i < NELEM(dtypes); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", dtypes[i], 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "sgn(x), sum(sgn(x))" });
        CHECK(f, "%s", mc_error(g));
        for (int n = 1; n < 200 && f; n += 1 + n / 7) {
            mc_array *x = mc_array_new(dtypes[i], MC_SHAPE(n)), *y = NULL, *sum = NULL;
            const size_t size = mc_dtypes[dtypes[i]].size;
            int want = 0, wrong = 0;
            for (int k = 0; k < n; k++) {
                const int v = (int)(test_random() % 7) - 3;
                mc_store_f64(dtypes[i], x->data + (size_t)k * size, v);
                want += (v > 0) - (v < 0);
            }
            CHECK(mc_call(f, MC_IN(x), MC_OUT(&y, &sum)) == MC_OK, "%s", mc_last_error());
            for (int k = 0; y && k < n; k++) {
                const double v = mc_load_f64(dtypes[i], x->data + (size_t)k * size);
                wrong += mc_load_f64(dtypes[i], y->data + (size_t)k * size) != (v > 0) - (v < 0);
            }
            const double have = sum ? mc_load_f64(sum->dtype, sum->data) : NAN;
            CHECK(wrong == 0 && have == want,
                  "%d of %s: %d signs are wrong, their sum is %g and should be %d", n,
                  mc_dtype_name(dtypes[i]), wrong, have, want);
            mc_array_unref(&x);
            mc_array_unref(&y);
            mc_array_unref(&sum);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* x / row is a number where 1 / row overflows. */
TEST(rows_near_zero_divide)
{
    static const struct { mc_dtype dtype; double x; const char *formula; double want, off; } rows[] = {
        { MC_FLOAT32, 1e-39, "x / sum(x, axis=1, keepdims=True)", 1.0 / 3, 1e-6 }, { MC_FLOAT32, 1e-40, "x / max(x, axis=1, keepdims=True)", 1, 1e-6 },
        { MC_FLOAT32, -1e-39, "x / sum(x, axis=0, keepdims=True)", 0.25, 1e-6 }, { MC_FLOAT64, 1e-309, "x / sum(x, axis=1, keepdims=True)", 1.0 / 3, 1e-6 },
        { MC_BFLOAT16, 0x1p-130, "x / sum(x, axis=1, keepdims=True)", 1.0 / 3, 2e-3 }, { MC_FLOAT32, 1e-39, "sum(x / sum(x, axis=1, keepdims=True), axis=1)", 1, 1e-6 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", rows[i].dtype, 2);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = rows[i].formula });
        mc_array *x = mc_array_new(rows[i].dtype, MC_SHAPE(4, 3)), *y = NULL;
        const size_t size = mc_dtypes[rows[i].dtype].size;
        for (int k = 0; k < 12; k++) {
            mc_store_f64(rows[i].dtype, x->data + (size_t)k * size, rows[i].x);
        }
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", rows[i].formula,
              f ? mc_last_error() : mc_error(g));
        for (int64_t k = 0; y && k < mc_array_size(y); k++) {
            const double have = mc_load_f64(y->dtype, y->data + (size_t)k * size);
            CHECK(fabs(have - rows[i].want) <= rows[i].off, "%s of %g: %g, not %g", rows[i].formula,
                  rows[i].x, have, rows[i].want);
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* ---- at random ---- */

static unsigned draw(void *arg)
{
    (void)arg;
    return (unsigned)(test_random() >> 8);
}

static void random_graphs(int n, int steps)
{
    for (int i = 0; i < n; i++) {
        struct random_graph r = { .structured = i % 2, .random = draw };
        rg_make(&r, steps);
        char *text = mc_graph_text(r.a.g, r.a.nout, r.a.out);
        agree(&r.a, text);
        mc_text_free(text);
    }
}

TEST(random_graphs_agree)
{
    random_graphs(10, 14);
}

TEST_FULL(many_random_graphs_agree)
{
    random_graphs(150, 10);
    random_graphs(20, 60);
}
