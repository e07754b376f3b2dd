/* t_gpu_index.c: what kernels on a GPU compute, beside the processor: grids of every shape, rows, channels,
 * sums that run, copies.
 *
 * Invariant: each is called until it is replayed. */
#include "agree.h"
#include "cuda_test.h"
#include "sample.h"

#include <string.h>

/* Shapes at which grids differ: nothing, one, a ragged vector, long rows, long columns, split sums. */
TEST(gpu_shapes)
{
    static const int64_t shapes[][2] = { { 0, 5 },     { 1, 1 },     { 3, 7 },      { 64, 64 },
                                         { 2, 40000 }, { 40000, 3 }, { 700, 1025 }, { 1, 300000 } };
    ON_GPU();
    struct agree a = { .g = mc_graph_new(), .scale = 4096 };
    mc_node *x = mc_input(a.g, "x", MC_FLOAT32, 2);
    mc_function *f = mc_compile(
        a.g, &(mc_spec){ .inputs = "x",
                         .outputs = "sum(x), sum(x, axis=0), sum(x, axis=1), tanh(x) + x[::-1, ::-1], "
                                    "softmax(x), exp(x.T) * 2, mean(x * x, axis=0), sum(abs(x), axis=1)" });
    REQUIRE(f && x, "%s", mc_error(a.g));
    REQUIRE(mc_flag_set("device", "cpu") == MC_OK, "%s", mc_last_error());
    mc_function *h = mc_compile(
        a.g, &(mc_spec){ .inputs = "x",
                         .outputs = "sum(x), sum(x, axis=0), sum(x, axis=1), tanh(x) + x[::-1, ::-1], "
                                    "softmax(x), exp(x.T) * 2, mean(x * x, axis=0), sum(abs(x), axis=1)" });
    REQUIRE(h, "%s", mc_error(a.g));
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < NELEM(shapes); i++) {
            mc_array *v = sample(MC_FLOAT32, 2, shapes[i], -1, 1), *y[8] = { 0 }, *z[8] = { 0 };
            mc_status s = mc_call(f, MC_IN(v),
                                  MC_OUT(&y[0], &y[1], &y[2], &y[3], &y[4], &y[5], &y[6], &y[7]));
            mc_status t = mc_call(h, MC_IN(v),
                                  MC_OUT(&z[0], &z[1], &z[2], &z[3], &z[4], &z[5], &z[6], &z[7]));
            CHECK(s == MC_OK && t == MC_OK, "%lld x %lld: %s", (long long)shapes[i][0],
                  (long long)shapes[i][1], mc_last_error());
            for (int k = 0; k < 8 && s == MC_OK && t == MC_OK; k++) {
                int64_t bad = mc_array_differs(y[k], z[k], 1e-5, 3e-4);
                CHECK(bad < 0, "%lld x %lld, round %d: result %d differs at %lld: %g, %g",
                      (long long)shapes[i][0], (long long)shapes[i][1], round, k, (long long)bad,
                      mc_load_f64(MC_FLOAT32, y[k]->data + 4 * bad),
                      mc_load_f64(MC_FLOAT32, z[k]->data + 4 * bad));
            }
            for (int k = 0; k < 8; k++) {
                mc_array_unref(&y[k]);
                mc_array_unref(&z[k]);
            }
            mc_array_unref(&v);
        }
    }
    mc_function_free(f);
    mc_function_free(h);
    agree_free(&a);
}

/* Rows that lanes keep in registers: a warp each, blocks full and ragged, too long for that; whole vectors
 * and not. */
TEST(gpu_rows)
{
    static const int64_t shapes[][2] = { { 3, 64 },     { 130, 128 }, { 37, 300 }, { 9, 1024 }, { 2, 1026 },
                                         { 1100, 260 }, { 5, 4096 },  { 3, 9000 }, { 0, 256 } };
    static const char *const formulas[] = { "softmax(x)", "max(x, axis=1)", "argmax(x, axis=1)", "grad(sum(softmax(x) * v), x)", "layer_norm(x)",
                                            "grad(sum(layer_norm(x) * v), x)", "sum(layer_norm(x) * v, axis=0)", "sum(v, axis=0)", "logsumexp(x, axis=1)",
                                            "x - min(x, axis=1, keepdims=True)", "x * arange(0, x.shape[1])" };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_FLOAT16 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(shapes) * NELEM(dtypes); i++) {
        const int64_t *dims = shapes[i / NELEM(dtypes)];
        mc_dtype d = dtypes[i % NELEM(dtypes)];
        struct agree a = { .scale = 4096 };
        agree_input(&a, "x", sample(d, 2, dims, -1, 1), 0);
        agree_input(&a, "v", sample(d, 2, dims, .5, 1), 0);
        for (size_t k = 0; k < NELEM(formulas); k++) {
            bool half = d == MC_FLOAT16 && k == 5; /* a difference of two that are almost one */
            CHECK(half || !mc_is_error(agree_output(&a, formulas[k])), "%s", mc_error(a.g));
        }
        const char *wrong = a.nout ? agree_in(&a, "FAST_RUN", 1) : NULL;
        CHECK(!wrong, "%s of %lld rows of %lld: %s", mc_dtype_name(d), (long long)dims[0], (long long)dims[1],
              wrong);
        agree_free(&a);
    }
}

/* Few rows that are long: in the registers of several blocks that run together, or, odd or longer, walked by
 * blocks that leave their sums to the next launch. */
TEST(gpu_few_long_rows)
{
    static const struct { mc_dtype d; int64_t dims[2]; } cases[] = {
        { MC_FLOAT32, { 2, 20000 } }, { MC_FLOAT32, { 1, 100000 } }, { MC_FLOAT32, { 2, 20001 } }, { MC_FLOAT32, { 1, 140000 } },
        { MC_FLOAT64, { 2, 20000 } }, { MC_FLOAT64, { 1, 40003 } },  { MC_BFLOAT16, { 2, 20000 } }, { MC_BFLOAT16, { 1, 20001 } },
    };
    static const char *const formulas[] = { "softmax(x)", "argmax(x, axis=1)", "grad(sum(softmax(x) * v), x)", "layer_norm(x)", "grad(sum(layer_norm(x) * v), x)",
                                            "logsumexp(x, axis=1)", "mean(x * v, axis=1)", "sum(layer_norm(x) * v, axis=0)", "x - min(x, axis=1, keepdims=True)" };
    ON_GPU();
    for (size_t i = 0; i < NELEM(cases); i++) {
        const int64_t *dims = cases[i].dims;
        const mc_dtype d = cases[i].d;
        struct agree a = { .scale = 4096 };
        agree_input(&a, "x", sample(d, 2, dims, -1, 1), 0);
        agree_input(&a, "v", sample(d, 2, dims, .5, 1), 0);
        for (size_t k = 0; k < NELEM(formulas); k++) {
            const bool half = d == MC_BFLOAT16 && k == 4; /* a difference of two that are almost one */
            CHECK(half || !mc_is_error(agree_output(&a, formulas[k])), "%s", mc_error(a.g));
        }
        const char *wrong = a.nout ? agree_in(&a, "FAST_RUN", 1) : NULL;
        CHECK(!wrong, "%s of %lld rows of %lld: %s", mc_dtype_name(d), (long long)dims[0], (long long)dims[1],
              wrong);
        agree_free(&a);
    }
}

/* Powers about the greatest element of a long row: what rises, what is infinite, what is no number. */
TEST(gpu_powers_of_long_rows)
{
    static const struct { const char *what; double from, step, first, last; } rows[] = {
        { "rising slowly", -10, 1e-3, -10, 10 },     { "rising steeply", -8e4, 8, -8e4, 8e4 }, { "falling", 8e4, -8, 8e4, -8e4 }, { "with one infinite", 0, 0, 0, HUGE_VAL },
        { "with one that counts nothing", 0, 0, -HUGE_VAL, 0 }, { "of none that counts", -HUGE_VAL, 0, -HUGE_VAL, -HUGE_VAL }, { "with NaN", 0, 0, 1, NAN },
    };
    static const int64_t lengths[] = { 20000, 20001 }; /* in registers, walked */
    ON_GPU();
    for (size_t i = 0; i < NELEM(rows) * NELEM(lengths); i++) {
        const int64_t n = lengths[i % NELEM(lengths)];
        const size_t r = i / NELEM(lengths);
        mc_array *x = sample(MC_FLOAT32, 2, (const int64_t[]){ 2, n }, -1, 1);
        for (int64_t at = 0; at < n; at++) {
            mc_array_set(x, (int64_t[]){ 1, at },
                         at == 0       ? rows[r].first
                         : at == n - 1 ? rows[r].last
                                       : rows[r].from + rows[r].step * (double)at);
        }
        struct agree a = { .scale = 256 };
        agree_input(&a, "x", x, 0);
        agree_output(&a, "softmax(x)");
        if (fabs(rows[r].step) < 1) { /* its powers themselves are numbers, as the reference wants it */
            agree_output(&a, "logsumexp(x, axis=1)");
        }
        const char *wrong = agree_in(&a, "FAST_RUN", 1);
        CHECK(!wrong, "a row of %lld %s: %s", (long long)n, rows[r].what, wrong);
        agree_free(&a);
    }
}

/* Blocks that share a row add up in one order: each call has the same bits. */
TEST(gpu_long_rows_repeat)
{
    static const int64_t lengths[] = { 20000, 140000 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(lengths); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x", .outputs = "softmax(x), sum(x, axis=1), layer_norm(x)" });
        REQUIRE(f, "%s", mc_error(g));
        mc_array *x = sample(MC_FLOAT32, 2, (const int64_t[]){ 3, lengths[i] }, -1, 1), *once[3] = { 0 };
        for (int round = 0; round < 4; round++) {
            mc_array *y[3] = { 0 };
            CHECK(mc_call(f, MC_IN(x), MC_OUT(&y[0], &y[1], &y[2])) == MC_OK, "%s", mc_last_error());
            for (int k = 0; k < 3; k++) {
                CHECK(!round ||
                          memcmp(once[k]->data, y[k]->data, (size_t)mc_array_size(y[k]) * sizeof(float)) == 0,
                      "rows of %lld, result %d changes", (long long)lengths[i], k);
                mc_array_unref(round ? &y[k] : &once[k]);
                once[k] = round ? once[k] : y[k];
            }
        }
        for (int k = 0; k < 3; k++) {
            mc_array_unref(&once[k]);
        }
        mc_array_unref(&x);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* What is normalised over all axes but that of channels, on shapes of x whose channels are there. */
static void channels_agree(mc_dtype d, unsigned sized, const int64_t (*shapes)[4], size_t nshape,
                           int channels, const char *const *formulas, size_t nformula)
{
    for (size_t i = 0; i < nshape; i++) {
        struct agree a = { .scale = d == MC_FLOAT32 ? 16384 : 16 };
        agree_input(&a, "x", sample(d, 4, shapes[i], -1, 1), sized);
        agree_input(&a, "v", sample(d, 4, shapes[i], .5, 1), sized);
        agree_input(&a, "g", sample(d, 1, &shapes[i][channels], .5, 1), 0);
        for (size_t k = 0; k < nformula; k++) {
            CHECK(!mc_is_error(agree_output(&a, formulas[k])), "%s", mc_error(a.g));
        }
        const char *wrong = a.nout ? agree_in(&a, "FAST_RUN", 1) : NULL;
        CHECK(!wrong, "%s, shape %zu, %lld channels: %s", mc_dtype_name(d), i, (long long)shapes[i][channels],
              wrong);
        agree_free(&a);
    }
}

/* Reductions around an axis that is kept: few points, each long enough for many blocks; whole vectors and
 * not. */
TEST(gpu_channels)
{
    static const int64_t shapes[][4] = { { 4, 3, 64, 64 }, { 2, 5, 70, 71 },   { 3, 1, 90, 100 },
                                         { 2, 40, 9, 4 },  { 1, 2, 100, 100 }, { 2, 33, 64, 68 } };
    static const char *const formulas[] = { "batch_normalization_train(x, g, g, axes='spatial')[0]", "grad(sum(batch_normalization_train(x + 100, g, g, axes='spatial')[0] * v), x)",
                                            "max(x, axis=[0, 2, 3])", "sum(x * v, axis=[0, 2, 3])", "x / max(abs(x), axis=[0, 2, 3], keepdims=True)",
                                            "var(x, axis=[0, 2, 3])" };
    static const char *const of_halves = "batch_normalization_train(x + 2, g, g, axes='spatial')[0]";
    ON_GPU();
    channels_agree(MC_FLOAT32, 0, shapes, NELEM(shapes), 1, formulas, NELEM(formulas));
    channels_agree(MC_BFLOAT16, 0, shapes, NELEM(shapes), 1, &of_halves, 1);
}

/* The same with channels innermost: columns of few rows in one block, of more over several, whole warps of
 * channels and not.  One kernel makes all formulas of a call; a maximum in it has them walked another way,
 * and what a stage stores has its moments walked. */
TEST(gpu_columns)
{
    static const int64_t shapes[][4] = {
        { 3, 5, 5, 33 }, { 1, 20, 20, 16 }, { 2, 16, 16, 40 }, { 4, 50, 60, 9 }, { 1, 40, 50, 300 }
    };
    static const char *const formulas[] = { "batch_normalization_train(x + 9, g, g, axes=[0, 1, 2])[0]", "g * 3 - mean(x, axis=[0, 1, 2]) * (g + 1)",
                                            "grad(sum(batch_normalization_train(x + 9, g, g, axes=[0, 1, 2])[0] * v), x)",
                                            "x / max(abs(x), axis=[0, 1, 2], keepdims=True)", "var(x * v, axis=[0, 1, 2])" };
    ON_GPU();
    channels_agree(MC_FLOAT32, 0, shapes, NELEM(shapes), 3, formulas, 2);
    channels_agree(MC_FLOAT32, 0, shapes, NELEM(shapes), 3, &formulas[2], 1);
    channels_agree(MC_FLOAT32, 0, shapes, NELEM(shapes), 3, &formulas[3], 2);
}

TEST(gpu_columns_of_halves)
{
    static const int64_t shapes[][4] = {
        { 2, 16, 16, 40 }, { 1, 20, 20, 20 }, { 4, 50, 60, 64 }, { 3, 5, 5, 12 }, { 1, 40, 50, 9 }
    };
    static const char *const formulas[] = { "sum(x, axis=[0, 1, 2])", "x - mean(x, axis=[0, 1, 2], keepdims=True)", "sum(x * v, axis=[0, 1, 2])", "var(x, axis=[0, 1, 2])",
                                            "batch_normalization_train(x + 2, g, g, axes=[0, 1, 2])[0]", "g * 3 - mean(x, axis=[0, 1, 2]) * (g + 1)" };
    ON_GPU();
    channels_agree(MC_FLOAT16, 0, shapes, NELEM(shapes), 3, formulas, 4);
    channels_agree(MC_FLOAT16, 8, shapes, NELEM(shapes), 3, &formulas[4], 2);
    channels_agree(MC_BFLOAT16, 8, shapes, NELEM(shapes), 3, formulas, 4);
    channels_agree(MC_BFLOAT16, 0, shapes, NELEM(shapes), 3, &formulas[4], 2);
}

/* What one stage has stored the next one reads, rather than all that it was made of: blocks of their own for
 * each, or not. */
TEST(gpu_stages_read_back)
{
    static const int64_t shapes[][4] = { { 4, 3, 64, 64 }, { 2, 5, 70, 71 }, { 2, 40, 9, 4 } };
    ON_GPU();
    for (size_t i = 0; i < 2 * NELEM(shapes); i++) {
        struct agree a = { .scale = 16384 };
        const int64_t *dims = shapes[i / 2];
        const mc_dtype d = i % 2 ? MC_FLOAT16 : MC_FLOAT32;
        agree_input(&a, "x", sample(d, 4, dims, -1, 1), 0);
        agree_input(&a, "v", sample(d, 4, dims, .5, 1), 0);
        agree_input(&a, "u", sample(d, 4, dims, .5, 1), 0);
        agree_output(&a, "x * v + u");
        agree_output(&a, "s = x * v + u; s - mean(s, axis=[0, 2, 3], keepdims=True)");
        const char *wrong = agree_in(&a, "FAST_RUN", 1);
        CHECK(!wrong, "%s, %lld images, %lld channels: %s", mc_dtype_name(d), (long long)dims[0],
              (long long)dims[1], wrong);
        agree_free(&a);
    }
}

/* Sums that run and lines in order: empty, short, longer than a block's shared memory, cut into chunks; NaN,
 * equal ones; every dtype. */
TEST(gpu_lines)
{
    static const struct {
        int64_t dims[2];
        const char *axis;
    } shapes[] = { { { 3, 1 }, "0" },     { { 7, 5 }, "1" }, { { 6, 200 }, "0" }, { { 2, 5000 }, "1" },
                   { { 20000, 2 }, "0" }, { { 0, 3 }, "0" }, { { 3, 0 }, "1" },   { { 0, 3 }, "1" } };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64, MC_INT8, MC_UINT64, MC_FLOAT16 };
    ON_GPU();
    for (size_t i = 0; i < NELEM(shapes) * NELEM(dtypes); i++) {
        const int64_t *dims = shapes[i / NELEM(dtypes)].dims;
        const char *axis = shapes[i / NELEM(dtypes)].axis;
        mc_dtype d = dtypes[i % NELEM(dtypes)];
        struct agree a = { .scale = mc_is_float(d) ? 65536 : 1 };
        mc_array *x = sample(d, 2, dims, 0, 9);
        if (mc_is_float(d) && mc_array_size(x)) {
            mc_array_set(x, (int64_t[]){ dims[0] / 2, 0 }, NAN);
        }
        agree_input(&a, "x", x, 0);
        agree_input(&a, "v", sample(d, 2, dims, 1, 1), 0);
        const char *const ops[] = { "sort(x, axis=%s)", "argsort(x, axis=%s)", "argsort(x[::-1], axis=%s)",
                                    "cumsum(v, axis=%s)", "cumprod(v, axis=%s)" };
        for (size_t k = 0; k < NELEM(ops); k++) {
            char formula[64];
            snprintf(formula, sizeof formula, ops[k], axis);
            CHECK((d == MC_FLOAT16 && k == 3 && dims[0] + dims[1] > 1000) ||
                      !mc_is_error(agree_output(&a, formula)),
                  "%s", mc_error(a.g)); /* sums beyond its range */
        }
        const char *wrong = a.nout ? agree_in(&a, "FAST_RUN", 1) : NULL;
        CHECK(!wrong, "%s of %lld x %lld: %s", mc_dtype_name(d), (long long)dims[0], (long long)dims[1],
              wrong);
        agree_free(&a);
    }
}

/* Integers wrap: a product of a number with itself may be below 0. */
TEST(gpu_products_of_integers_wrap)
{
    static const struct { const char *formula; int64_t want; } rows[] = {
        { "sqr(x) // 3", -1483522947855843136 }, { "(x * x + 1) // 3", -1483522947855843136 }, { "sqr(x) % 1000003", 946299 }, { "sqr(x) // 2", -2225284421783764704 },
    };
    ON_GPU();
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_INT64, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = rows[i].formula });
        mc_array *x = mc_array_from(MC_INT64, MC_SHAPE(1), (int64_t[]){ -3587159397303722207 }), *y = NULL;
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", rows[i].formula, mc_last_error());
        CHECK(y && mc_load_i64(MC_INT64, y->data) == rows[i].want, "%s is not %lld", rows[i].formula,
              (long long)rows[i].want);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Kernels come in the forms that some shape may need. */
TEST(gpu_forms_that_sizes_rule_out)
{
    static const char *const marks[] = { "_v(const", "_r(const", "_s(const" };
    static const struct { const char *input, *formula; bool vector, row, few; } cases[] = {
        { "input x float32[?, ?]", "softmax(x)", true, true, true },     { "input x float32[?, 10]", "softmax(x)", false, false, true },
        { "input x float32[?, 16]", "softmax(x)", false, false, true },  { "input x float32[?, 64]", "softmax(x)", true, true, false },
        { "input x float32[?, 512]", "softmax(x)", true, true, false },  { "input x float32[?, 999]", "softmax(x)", false, false, false },
        { "input x float32[5, 3]", "tanh(x)", false, false, false },     { "input x float32[4, 3]", "tanh(x)", true, false, false },
        { "input x float32[?, 3]", "tanh(x)", true, false, false },
    };
    ON_GPU();
    for (size_t i = 0; i < NELEM(cases); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, cases[i].input);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = cases[i].formula });
        const char *text = mc_function_source(f);
        const bool wanted[] = { cases[i].vector, cases[i].row, cases[i].few };
        for (size_t m = 0; m < NELEM(marks); m++) {
            CHECK(f && (strstr(text, marks[m]) != NULL) == wanted[m], "%s in %s of %s: %s", marks[m],
                  cases[i].formula, cases[i].input, mc_last_error());
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* An activation behind a convolution is applied by its solver or by a kernel: both agree, after each pass. */
TEST(gpu_functions_after_every_pass)
{
    static const char *const passes[] = { "conv(x, w, border=1)", "conv_inputs(w, conv(x, w, border=1), shape=x.shape, border=1)",
                                          "conv_weights(x, conv(x, w, border=1), shape=w.shape, border=1)", "conv(x, w[:, :, :1, :1])",
                                          "conv_weights(x, conv(x, w[:, :, :1, :1]), shape=w[:, :, :1, :1].shape)" };
    static const char *const after[] = { "relu(t)", "tanh(t)", "sigmoid(t)", "elu(t)", "t * erfc(t * -0.7071067811865476)",
                                         "sigmoid(t) * t", "relu(t + v)", "t * exp(-t)" };
    ON_GPU();
    for (size_t c = 0; c < NELEM(passes) * NELEM(after); c++) {
        char formula[300];
        snprintf(formula, sizeof formula, "t = %s; %s", passes[c / NELEM(after)], after[c % NELEM(after)]);
        struct agree a = { .scale = 4096 };
        agree_input(&a, "x", sample(MC_FLOAT32, 4, (const int64_t[]){ 3, 2, 5, 6 }, -0.5, 0.5), 0xb);
        agree_input(&a, "w", sample(MC_FLOAT32, 4, (const int64_t[]){ 4, 2, 3, 3 }, -0.5, 0.5), 0xf);
        agree_input(&a, "v", sample(MC_FLOAT32, 1, (const int64_t[]){ 1 }, -0.5, 0.5), 1);
        CHECK(!mc_is_error(agree_output(&a, formula)), "%s: %s", formula, mc_error(a.g));
        const char *wrong = agree_in(&a, "FAST_RUN", 1);
        CHECK(!wrong, "%s: %s", formula, wrong);
        agree_free(&a);
    }
}

/* Joins, indices, parts that are set: there, in one recording with the kernels; repeated places are settled
 * in their order. */
TEST(gpu_work)
{
    static const struct { const char *formula, *here; } cases[] = { /* here: the step that nothing there can do */
        { "join(x, v, axis=0) * 2", NULL },           { "join(x[::-1], v.T[:6].T, axis=1)", NULL },     { "stack(x, v + 1, axis=1)", NULL },
        { "x[i]", NULL },                             { "x[:, j] + 1", NULL },                            { "x[i, i]", NULL },
        { "x.T[j]", NULL },                           { "set_subtensor(x[i], v[:7])", NULL },             { "inc_subtensor(x[:, j], 2)", NULL },
        { "inc_subtensor(x[i], v[0])", NULL },        { "set_subtensor(x[1:9:3, ::-1], v[:3])", NULL },   { "inc_subtensor(x[2], 3)", NULL },
        { "grad(sum(x[i] * x[i]), x)", NULL },        { "reshape(x.T, [66])", NULL },                     { "sort(x, axis=1)", NULL },
        { "permute_row_elements(x, argsort(v))", NULL },
    };
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT16, MC_INT64, MC_UINT8 };
    ON_GPU();
    for (size_t c = 0; c < NELEM(cases) * NELEM(dtypes); c++) {
        mc_dtype d = dtypes[c % NELEM(dtypes)];
        const char *formula = cases[c / NELEM(dtypes)].formula;
        if (!mc_is_float(d) && strstr(formula, "grad")) {
            continue;
        }
        struct agree a = { .scale = 64 };
        agree_input(&a, "x", sample(d, 2, (const int64_t[]){ 11, 6 }, 0, 9), 0);
        agree_input(&a, "v", sample(d, 2, (const int64_t[]){ 11, 6 }, 0, 9), 0);
        agree_input(&a, "i", sample(MC_INT16, 1, (const int64_t[]){ 7 }, -5, 5), 0);
        agree_input(&a, "j", sample(MC_INT64, 1, (const int64_t[]){ 9 }, -6, 5), 0);
        CHECK(!mc_is_error(agree_output(&a, formula)), "%s: %s", formula, mc_error(a.g));
        const char *wrong = agree_in(&a, "FAST_RUN", 1);
        CHECK(!wrong, "%s of %s: %s", formula, mc_dtype_name(d), wrong);
        mc_function *f = agree_compile(&a, "FAST_RUN", 1);
        mc_array *y[1] = { 0 };
        for (int round = 0; f && round < 3; round++) { /* the third is replayed */
            CHECK(agree_call(&a, f, y) == MC_OK, "%s: %s", formula, mc_last_error());
        }
        for (int i = 0; i < mc_function_nsteps(f); i++) {
            mc_step_info s = mc_function_step(f, i);
            const char *here = cases[c / NELEM(dtypes)].here;
            CHECK(strcmp(s.kind, "host") != 0 ||
                      (strcmp(s.device, "cpu") == 0) == (here && strstr(s.text, here) == s.text),
                  "%s: %s ran on %s: %s", formula, s.text, s.device, s.reason);
        }
        mc_array_unref(&y[0]);
        mc_function_free(f);
        agree_free(&a);
    }
}

/* Integers wrap on a GPU as on the host and in NumPy: also the least one, and sums, whose overflow C leaves
 * open. */
TEST(gpu_integers_wrap)
{
    static const int64_t x[6] = { INT64_MIN, INT64_MAX, INT64_MIN, 7, -7, INT64_MAX },
                         y[6] = { -1, INT64_MAX, 1, -2, 2, -1 };
    static const int64_t want[][6] = {
        { INT64_MIN, INT64_MAX, INT64_MIN, 7, 7, INT64_MAX },     /* abs(x) */
        { INT64_MIN, 1, INT64_MIN, -4, -4, -INT64_MAX },          /* x // y */
        { 0, 0, 0, -1, 1, 0 },                                    /* x % y */
        { INT64_MIN, -INT64_MAX, INT64_MIN, -7, 7, -INT64_MAX },  /* -x */
        { 1, 0, 1, 0, 0, 0 },                                     /* abs(x) < 0 */
        { -2 },                                                   /* sum(x) = 2 * (2^63 - 1) - 2 * 2^63 */
        { 4 },                                                    /* sum(x[:3] * 2 + 2) */
    };
    static const char *const formulas =
        "abs(x), x // y, x % y, -x, cast(abs(x) < 0, int64), sum(x), sum(x[:3] * 2 + 2)";
    ON_GPU();
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_INT64, 1);
    mc_input(g, "y", MC_INT64, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = formulas });
    mc_array *a = mc_array_from(MC_INT64, MC_SHAPE(6), x), *b = mc_array_from(MC_INT64, MC_SHAPE(6), y),
             *r[7] = { NULL };
    mc_arg src[2] = { MC_ARG(a), MC_ARG(b) }, dst[7];
    for (int i = 0; i < 7; i++) {
        dst[i] = MC_RES(&r[i]);
    }
    if (CHECK(f && mc_call_args(f, 2, src, 7, dst) == MC_OK, "%s %s", mc_error(g), mc_last_error())) {
        for (int i = 0; i < 7; i++) {
            mc_array *home = mc_array_to(r[i], "cpu");
            const int64_t *v = mc_array_data(home);
            for (int64_t k = 0; k < mc_array_size(home); k++) {
                CHECK(v[k] == want[i][k], "result %d [%d]: %lld, not %lld", i, (int)k, (long long)v[k],
                      (long long)want[i][k]);
            }
            mc_array_unref(&home);
        }
    }
    for (int i = 0; i < 7; i++) {
        mc_array_unref(&r[i]);
    }
    mc_array_unref(&a);
    mc_array_unref(&b);
    mc_function_free(f);
    mc_graph_free(g);
}
