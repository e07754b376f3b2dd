/* t_kernel_reduce.c: kernels of reductions and of rows in several stages against the reference. */
#include "random_graph.h"

#include <string.h>

/* ---- reductions ---- */

static const char *const reductions[] = { "sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean", "var" };

/* x under each of these reductions over each set of axes, twice: kept (and used again, as a second walk
 * would) and dropped. */
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
static void over_shapes(struct agree *a, const char *mode, mc_dtype d, int rank, int nshape,
                        const int64_t (*shape)[4])
{
    mc_function *f = agree_compile(a, mode, 2);
    CHECK(f != NULL, "%s", mc_error(a->g));
    for (int i = 0; f && i < nshape; i++) {
        mc_array_unref(&a->value[0]);
        a->value[0] = sample(d, rank, shape[i], mc_dtypes[d].kind == KIND_UINT || d == MC_BOOL ? 0 : -2,
                             d == MC_BOOL ? 1 : 2);
        const char *wrong = agree_calls(a, f, mode);
        CHECK(!wrong, "%s (%lld, %lld, %lld, %lld): %s", mc_dtype_name(d), (long long)shape[i][0],
              (long long)shape[i][1], (long long)shape[i][2], (long long)shape[i][3], wrong);
    }
    mc_function_free(f);
}

static void reductions_of(const char *x, mc_dtype d, int rank, int from, int to, int nshape,
                          const int64_t (*shape)[4])
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
    reductions_of("x", MC_FLOAT32, 3, 0, 2, NELEM(empty), empty); /* 0 and 1 */
    reductions_of("x", MC_INT8, 2, 4, 6, NELEM(empty), empty);
    for (int r = 2; r < 8; r += 4) { /* an error, unless nothing is asked for */
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
                  mc_array_get(have[3], (int64_t[]){ 2 }) == 0,
              "%g %g %g", mc_array_get(have[3], (int64_t[]){ 0 }), mc_array_get(have[3], (int64_t[]){ 1 }),
              mc_array_get(have[3], (int64_t[]){ 2 }));
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

/* ---- digits of sums ---- */

/* The first number of a formula's result, compiled in a mode; NaN: it failed. */
static double first_of(const char *mode, const char *formula, const mc_array *x)
{
    static const int64_t unknown[MC_MAX_RANK] = { -1, -1 };
    mc_graph *g = mc_graph_new();
    mc_input_sized(g, "x", x->dtype, x->rank, unknown);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = formula, .mode = mode });
    mc_array *y = NULL;
    CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", formula,
          f ? mc_last_error() : mc_error(g));
    double v = y ? mc_load_f64(y->dtype, y->data) : NAN;
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
    return v;
}

static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE" };

TEST(sums_add_in_the_type_that_is_asked_for)
{
    static const float big[] = { 16777216, 1, 1, 1, 1 }, split[] = { 1.5f, 1.5f, -2.7f };
    static const int32_t most[] = { 2147483647, 2147483647 };
    static const double wide[] = { 16777216, 16777217, 1 };
    const struct {
        mc_array *x;
        const char *formula;
        double want; /* NumPy's */
    } rows[] = {
        { mc_array_from(MC_FLOAT32, MC_SHAPE(5), big), "sum(x, dtype=float64)", 16777220 },
        { mc_array_from(MC_FLOAT32, MC_SHAPE(5), big), "sum(x, acc_dtype=float64)", 16777220 },
        { mc_array_from(MC_FLOAT32, MC_SHAPE(5, 1), big), "sum(x, dtype=float64, axis=0)", 16777220 },
        { mc_array_from(MC_FLOAT32, MC_SHAPE(1, 5), big), "sum(x, dtype=float64, axis=1)", 16777220 },
        { mc_array_from(MC_FLOAT32, MC_SHAPE(1, 5), big), "sum(x * 1.5, acc_dtype=float64, axis=1)",
          25165830 },
        { mc_array_from(MC_FLOAT32, MC_SHAPE(3), split), "sum(x, dtype=int64)", 0 },
        { mc_array_from(MC_INT32, MC_SHAPE(2), most), "sum(x)", 4294967294. },
        { mc_array_from(MC_INT32, MC_SHAPE(2), most), "sum(x, dtype=int32)", -2 },
        { mc_array_from(MC_FLOAT64, MC_SHAPE(3), wide), "sum(x, dtype=float32)", 33554432 },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (size_t m = 0; m < NELEM(modes); m++) {
            const double have = first_of(modes[m], rows[i].formula, rows[i].x);
            CHECK(have == rows[i].want, "%s: %s is %.17g, not %.17g", modes[m], rows[i].formula, have,
                  rows[i].want);
        }
        mc_array *x = rows[i].x;
        mc_array_unref(&x);
    }
}

/* n times 0.1: each addition rounds the same way.  NumPy, which adds in pairs, is off by 1.2e-7 of the
 * sum. */
TEST(long_sums_lose_few_digits)
{
    enum { N = 2000000 };
    static const char *const formulas[] = { "sum(x)", "mean(x)", "sum(exp(log(x)))", "sum(reshape(x, [1, -1]), axis=1)",
                                            "sum(reshape(x, [-1, 4]), axis=0)", "sum(reshape(x, [4, -1]), axis=1)", "cumsum(x)[-1]", "sum(x[::-1])" };
    static const double parts[] = { 1, N, 1, 1, 4, 4, 1, 1 };
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(N));
    for (int i = 0; i < N; i++) {
        ((float *)(void *)x->data)[i] = 0.1f;
    }
    for (size_t i = 0; i < NELEM(formulas); i++) {
        for (size_t m = 0; m < NELEM(modes); m++) {
            const double want = N * (double)0.1f / parts[i],
                         error = fabs(first_of(modes[m], formulas[i], x) / want - 1);
            CHECK(error <= 5e-7, "%s: %s is off by %g", modes[m], formulas[i], error);
        }
    }
    mc_array_unref(&x);
}
