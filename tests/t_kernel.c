/* t_kernel.c: kernels against the reference of the graphs they come from: every scalar op and dtype, every
 * kind of reduction over every set of axes, rows in several stages, odd sizes and strides, memory that is
 * used again.  What is compared is always whole functions, in FAST_RUN and in DEBUG. */
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
    return sample(d, rank, dims, mc_is_float(d) ? lo : ceil(lo), mc_is_float(d) ? hi : MC_MAX(floor(hi), ceil(lo)));
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
    CHECK(!mc_is_error(agree_output(&a, "reshape(alloc(x, [3, 6]), [3, 2, 3])[:, 1, 1:2] + 1")), "%s", mc_error(a.g));
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

/* ---- reductions ---- */

static const char *const reductions[] = { "sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean", "var" };

/* x under each of these reductions over each set of axes, twice: kept (and used again, as a second walk would) and dropped. */
static void reduce_all_ways(struct agree *a, const char *x, int rank, int from, int to)
{
    for (int r = from; r < to; r++) {
        for (unsigned axes = 1; axes < 1u << rank; axes++) {
            char list[32], text[200];
            int at = 0;
            for (int k = 0; k < rank; k++) {
                if (axes >> k & 1) {
                    at += snprintf(list + at, sizeof list - (size_t)at, at ? ", %d" : "%d", k);
                }
            }
            if (a->nout < AGREE_MOST) {
                snprintf(text, sizeof text, "%s(%s, axis=[%s])", reductions[r], x, list);
                agree_output(a, text);
            }
        }
    }
}

/* One function called with arrays of all these shapes. */
static void over_shapes(struct agree *a, const char *mode, mc_dtype d, int rank, int nshape, const int64_t (*shape)[4])
{
    mc_function *f = agree_compile(a, mode, 2);
    CHECK(f != NULL, "%s", mc_error(a->g));
    for (int i = 0; f && i < nshape; i++) {
        mc_array_unref(&a->value[0]);
        a->value[0] = sample(d, rank, shape[i], mc_dtypes[d].kind == KIND_UINT || d == MC_BOOL ? 0 : -2, d == MC_BOOL ? 1 : 2);
        const char *wrong = agree_calls(a, f, mode);
        CHECK(!wrong, "%s (%lld, %lld, %lld, %lld): %s", mc_dtype_name(d), (long long)shape[i][0], (long long)shape[i][1],
              (long long)shape[i][2], (long long)shape[i][3], wrong);
    }
    mc_function_free(f);
}

static void reductions_of(const char *x, mc_dtype d, int rank, int from, int to, int nshape, const int64_t (*shape)[4])
{
    struct agree a = { 0 };
    agree_input(&a, "x", sample(d, rank, shape[0], 0, 1), 0);
    reduce_all_ways(&a, x, rank, from, to);
    over_shapes(&a, "FAST_RUN", d, rank, nshape, shape);
    if (test_is_full()) {
        over_shapes(&a, "DEBUG", d, rank, nshape, shape);
    }
    agree_free(&a);
}

static const int64_t shapes[][4] = {
    { 3, 4, 5, 2 }, { 1, 1, 1, 1 }, { 1, 7, 1, 3 }, { 9, 1, 130, 1 }, { 17, 2, 1, 65 }, { 2, 300, 3, 1 }, { 64, 5, 16, 2 }, { 129, 1, 2, 1 },
};
static const int64_t empty[][4] = { { 0, 3, 2, 2 }, { 3, 0, 2, 1 }, { 2, 3, 0, 4 }, { 0, 0, 0, 0 }, { 5, 1, 2, 0 } };

TEST(kernels_reduce_over_every_set_of_axes)
{
    reductions_of("x", MC_FLOAT32, 1, 0, (int)NELEM(reductions), NELEM(shapes), shapes);
    reductions_of("x", MC_FLOAT32, 3, 0, (int)NELEM(reductions), NELEM(shapes), shapes);
    reductions_of("x", MC_INT32, 2, 0, (int)NELEM(reductions), NELEM(shapes), shapes);
}

TEST(kernels_reduce_over_nothing)
{
    reductions_of("x", MC_FLOAT32, 3, 0, 2, NELEM(empty), empty);   /* 0 and 1 */
    reductions_of("x", MC_INT8, 2, 4, 6, NELEM(empty), empty);
    for (int r = 2; r < 8; r += 4) {                                /* an error, unless nothing is asked for */
        struct agree a = { 0 };
        char text[40];
        agree_input(&a, "x", sample(MC_FLOAT32, 2, empty[0], 0, 1), 0);
        snprintf(text, sizeof text, "%s(x, axis=1)", reductions[r]);
        agree_output(&a, text);
        over_shapes(&a, "FAST_RUN", MC_FLOAT32, 2, NELEM(empty), empty);
        agree_free(&a);
    }
}

TEST_FULL(kernels_reduce_every_dtype_over_every_set_of_axes)
{
    for (int d = 0; d < MC_NDTYPE; d++) {
        mc_dtype t = (mc_dtype)d;
        int last = t == MC_BOOL ? (int)NELEM(reductions) - 1 : (int)NELEM(reductions); /* no bool - bool */
        reductions_of("x", t, 3, 0, last, NELEM(shapes), shapes);
    }
    reductions_of("tanh(x)", MC_FLOAT32, 4, 0, 5, NELEM(shapes), shapes);
    reductions_of("x.T", MC_FLOAT64, 4, 4, (int)NELEM(reductions), NELEM(shapes), shapes);
}

static mc_array *numbers(int rank, const int64_t *dims, const float *v)
{
    return mc_array_from(MC_FLOAT32, rank, dims, v);
}

TEST(argmax_is_the_first_of_equals_and_nan_wins)
{
    static const float row[] = { 1, 3, 3, 2, NAN, 5, NAN, 1, -1, -1, -1, -2 };
    struct agree a = { 0 };
    agree_input(&a, "x", numbers(MC_SHAPE(3, 4), row), 0);
    for (int i = 0; i < 3; i++) {
        static const char *const axes[] = { "axis=0", "axis=1", "axis=[0, 1]" };
        char text[60];
        snprintf(text, sizeof text, "argmax(x, %s)", axes[i]);
        agree_output(&a, text);
        snprintf(text, sizeof text, "argmin(x[:, ::-1], %s)", axes[i]);
        agree_output(&a, text);
        snprintf(text, sizeof text, "max(x, %s)", axes[i]);
        agree_output(&a, text);
    }
    mc_function *f = agree_compile(&a, NULL, 1);
    mc_array *have[AGREE_MOST] = { 0 };
    if (CHECK(f && agree_call(&a, f, have) == MC_OK, "%s%s", mc_error(a.g), mc_last_error())) {
        CHECK(mc_array_get(have[3], (int64_t[]){ 0 }) == 1 && mc_array_get(have[3], (int64_t[]){ 1 }) == 0 &&
                  mc_array_get(have[3], (int64_t[]){ 2 }) == 0, "%g %g %g", mc_array_get(have[3], (int64_t[]){ 0 }),
              mc_array_get(have[3], (int64_t[]){ 1 }), mc_array_get(have[3], (int64_t[]){ 2 }));
        CHECK(mc_array_get(have[6], NULL) == 4, "%g", mc_array_get(have[6], NULL));
    }
    for (int i = 0; i < a.nout; i++) {
        mc_array_unref(&have[i]);
    }
    mc_function_free(f);
    agree(&a, "argmax");
}

/* Few different numbers, so that many are equal; in some rows nothing but -inf, or NaN here and there. */
TEST(argmax_of_rows_of_any_length)
{
    static const int64_t lengths[] = { 1, 2, 15, 16, 17, 63, 1000, 2048, 2049, 5000 };
    for (size_t l = 0; l < NELEM(lengths); l++) {
        struct agree a = { 0 };
        int64_t dims[2] = { 12, lengths[l] };
        mc_array *x = sample(MC_FLOAT32, MC_SHAPE(12, lengths[l]), -3, 3);
        for (int64_t i = 0; i < 12 * dims[1]; i++) {
            int64_t at[2] = { i / dims[1], i % dims[1] };
            double v = floor(mc_array_get(x, at));
            bool nan = at[0] % 4 == 1 && test_random() % (uint64_t)dims[1] < 3;
            mc_array_set(x, at, nan ? NAN : at[0] % 4 == 2 || v < -1 ? -INFINITY : v);
        }
        agree_input(&a, "x", x, 0);
        static const char *const formulas[] = { "argmax(x, axis=1)", "argmin(x, axis=1)", "argmax(x[:, ::-1], axis=1)", "argmax(x)", "argmax(-x)",
            "argmax(x * 2 + 1, axis=1)", "argmax(x.T, axis=1)", "argmax(x.T, axis=0)", "argmin(x, axis=0)", "max(x, axis=1)", "argmax(x[2])", "argmax(x[1:3])" };
        for (size_t i = 0; i < NELEM(formulas); i++) {
            agree_output(&a, formulas[i]);
        }
        agree(&a, "argmax");
    }
}

/* What reduces the same elements along the same axes is one kernel; along others it is not. */
TEST(reductions_of_the_same_elements_are_one_kernel)
{
    static const struct { int kernels; const char *formula[3]; } rows[] = {
        { 1, { "max(x, axis=1)", "argmax(x, axis=1)" } },
        { 1, { "max(x, axis=0)", "argmax(x, axis=0)" } },
        { 1, { "max(x)", "argmax(x)" } },
        { 1, { "sum(x, axis=1)", "max(x, axis=1)", "mean(sqr(x), axis=1)" } },
        { 2, { "sum(x, axis=1)", "max(y, axis=1)" } },
        { 1, { "sum(x * y, axis=1)", "max(y, axis=1)", "softmax(y)" } },
        { 2, { "argmax(x, axis=1)", "argmax(x, axis=0)" } },
        { 2, { "sum(x)", "max(x, axis=1)" } },
        { 2, { "max(x / sum(x), axis=1)", "sum(x)" } }, /* one waits for the other */
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct agree a = { 0 };
        int kernels = 0;
        agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(6, 37), .5, 2), 0);
        agree_input(&a, "y", sample(MC_FLOAT32, MC_SHAPE(6, 37), -2, 2), 0);
        for (int k = 0; k < 3 && rows[i].formula[k]; k++) {
            agree_output(&a, rows[i].formula[k]);
        }
        mc_function *f = agree_compile(&a, NULL, 1);
        for (int k = 0; f && k < mc_function_nsteps(f); k++) {
            kernels += strcmp(mc_function_step(f, k).kind, "kernel") == 0;
        }
        CHECK(kernels == rows[i].kernels, "%s and its like: %d kernels", rows[i].formula[0], kernels);
        mc_function_free(f);
        agree(&a, rows[i].formula[0]);
    }
}

/* ---- rows in several stages ---- */

static const char *const staged[] = {
    "softmax(x)", "logsoftmax(x)", "softmax(x, axis=0)", "x - mean(x, axis=1, keepdims=True)",
    "d = x - mean(x, axis=0, keepdims=True); d / sqrt(mean(sqr(d), axis=0, keepdims=True) + 1)",
    "layer_norm(x)", "e = exp(x - max(x)); e / sum(e)", "logsumexp(x, axis=1)", "std(x, axis=0)",
    "m = max(x, axis=1, keepdims=True); sum(exp(x - m), axis=1) + m[:, 0]",
    "sum(softmax(tanh(x)) * x, axis=1)", "x / (1 + sum(abs(x), axis=1, keepdims=True)) + sum(x, axis=0, keepdims=True)",
    "r = sum(x, axis=1, keepdims=True); where(r > 0, x - r, x + r)", "var(x) + x",
    "crossentropy_softmax_1hot(x, cast(argmax(x, axis=1), 'int64'))", "max(x, axis=1) - sum(x, axis=1) * min(x, axis=1)",
    "sum(exp(softmax(x) - 1), axis=0)", "x * max(x, axis=0, keepdims=True) + max(x, axis=1, keepdims=True)",
};

TEST(kernels_of_rows_in_several_stages)
{
    static const int64_t some[][4] = { { 3, 5 }, { 1, 1 }, { 1, 300 }, { 260, 3 }, { 64, 64 }, { 7, 1 } };
    struct agree a = { 0 };
    agree_input(&a, "x", sample(MC_FLOAT32, 2, some[0], -2, 2), 0);
    for (size_t i = 0; i < NELEM(staged); i++) {
        agree_output(&a, staged[i]);
    }
    over_shapes(&a, "FAST_RUN", MC_FLOAT32, 2, NELEM(some), some);
    over_shapes(&a, "DEBUG", MC_FLOAT32, 2, NELEM(some), some);
    agree_free(&a);
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
    mc_array *x = sample(MC_FLOAT32, MC_SHAPE(70, 600), .9, 1.1), *bad = mc_array_new(MC_INT64, MC_SHAPE(70, 600));
    for (size_t i = 0; i < NELEM(formulas); i++) {
        struct agree a = { 0 };
        mc_array *one[1] = { 0 }, *three[1] = { 0 };
        agree_input(&a, "x", mc_array_ref(x), 0);
        agree_output(&a, formulas[i]);
        mc_function *f = agree_compile(&a, NULL, 1), *g = agree_compile(&a, NULL, 3);
        if (CHECK(f && g && agree_call(&a, f, one) == MC_OK && agree_call(&a, g, three) == MC_OK, "%s: %s", formulas[i], mc_last_error())) {
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
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, p", .outputs = "permute_row_elements(x, p)", .threads = 3 });
    mc_array_set(bad, (int64_t[]){ 40, 7 }, 601);
    mc_array_set(bad, (int64_t[]){ 60, 7 }, 602);
    CHECK(f && mc_call(f, MC_IN(x, bad), MC_OUT(&y)) == MC_EINDEX && strstr(mc_last_error(), "no place 601"), "%s", mc_last_error());
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
    mc_array_unref(&x);
    mc_array_unref(&bad);
}

TEST(kernels_with_views_one_at_a_time)
{
    static const char *const formulas[] = { "x[::-1]", "x[2:, ::-2].T", "reshape(x.T, [-1])[5:9]", "x.T[1]", "x", "x[0, 0]", "x[:0]", "x[:, 3:3] + 1" };
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
            mc_array *strided = sample((mc_dtype)d, MC_SHAPE(9, 37), -9, 9), *x = mc_array_copy(strided), *n = mc_array_new(MC_INT64, MC_SHAPE(3));
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
    mc_function *f[3] = { agree_compile(&a, NULL, 1), agree_compile(&a, NULL, 2), agree_compile(&a, NULL, 3) };
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
                CHECK(mc_array_same_bits(have[0][i], have[t][i]), "%s of (%lld, %lld) differs with %d threads", formulas[i],
                      (long long)large[k][0], (long long)large[k][1], t + 1);
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
