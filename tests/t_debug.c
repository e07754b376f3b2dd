/* t_debug.c: what DEBUG mode is for: a rule or a kernel that is wrong is named in the call that it spoils. */
#include "check.h"
#include "device/cpu/cpu.h"
#include "exec/function.h"
#include <math.h>
#include <string.h>

static mc_function *made(mc_graph *g, const char *formula, const char *mode)
{
    mc_node *out = mc_formula(g, formula);
    mc_function *f = mc_compile(
        g, &(mc_spec){ .name = "f", .inputs = "x", .output = &out, .noutput = 1, .mode = mode });
    CHECK(f, "%s: %s", formula, mc_error(g));
    return f;
}

static mc_status called(mc_function *f)
{
    mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 3), (float[]){ 0.5f, 1, 2, 3, 4, 5 }), *y = NULL;
    mc_status s = mc_call(f, MC_IN(x), MC_OUT(&y));
    mc_array_unref(&x);
    mc_array_unref(&y);
    return s;
}

TEST(debug_names_a_wrong_rule)
{
    static const struct { const char *formula, *from, *to; } rows[] = {
        { "tanh(x)",                     "tanh(x)",         "sinh(x) * 1.5" },
        { "sum(sqr(cosh(x)), axis=1)",   "cosh(x)",         "sinh(x)" },
        { "exp2(x) - 1",                 "exp2(x)",         "exp2(-x)" },
        { "softmax(arctan(x))",          "arctan(x)",       "-arctan(x)" },
        { "s = shared_3; grad(sum(tanh(x) * s), x)", "tanh(x)", "sinh(x) + 1" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        for (int debug = 0; debug < 2; debug++) {
            mc_graph *g = mc_graph_new();
            mc_input(g, "x", MC_FLOAT32, 2);
            mc_array *three = mc_array_scalar(MC_FLOAT32, 3);
            CHECK(mc_shared_new(g, "shared_3", three), "%s", mc_last_error());
            mc_array_unref(&three);
            CHECK(mc_rewrite_add(g, rows[i].from, rows[i].to, "wrong") == MC_OK, "%s", mc_last_error());
            mc_function *f = made(g, rows[i].formula, debug ? "DEBUG" : "FAST_RUN");
            mc_status status = f ? called(f) : MC_OK;
            CHECK(status == (debug ? MC_ECHECK : MC_OK), "%s: %s", rows[i].formula, mc_last_error());
            CHECK(!debug ||
                      (strstr(mc_last_error(), "DEBUG: the rule") && strstr(mc_last_error(), rows[i].from)),
                  "%s", mc_last_error());
            mc_function_free(f);
            mc_graph_free(g);
        }
    }
}

/* Prints and assertions happen once a call, DEBUG or not. */
TEST(debug_does_nothing_twice)
{
    static const char *const modes[] = { "FAST_RUN", "DEBUG" };
    for (size_t i = 0; i < NELEM(modes); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_function *f = made(g, "x * 1 + assert_(x * 2 * 3, x > 0) * 1", modes[i]);
        CHECK(f && called(f) == MC_OK, "%s: %s", modes[i], mc_last_error());
        mc_function_free(f);
        mc_graph_free(g);
    }
}

static mc_kernel_fn *right;

/* The kernel, but for the first element of its result, which is its last operand. */
static void wrong(char *const *p, const int64_t *s, const int64_t *n, int64_t *err)
{
    right(p, s, n, err);
    *(float *)(void *)p[1] += 1;
}

TEST(debug_names_a_wrong_kernel)
{
    if (!mc_cc_present()) {
        SKIP("no C compiler");
    }
    mc_flag_set("device", "cpu");
    for (int debug = 0; debug < 2; debug++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_function *f = made(g, "tanh(x) * 2", debug ? "DEBUG" : "FAST_RUN");
        REQUIRE(f, "%s", mc_error(g));
        int step = 0;
        while (step < f->code->nstep && !f->code->fn[step]) {
            step++;
        }
        REQUIRE(step < f->code->nstep, "no kernel");
        right = f->code->fn[step];
        f->code->fn[step] = wrong;
        mc_status s = called(f);
        CHECK(s == (debug ? MC_ECHECK : MC_OK), "%s", mc_last_error());
        CHECK(!debug || (strstr(mc_last_error(), "DEBUG: step") && strstr(mc_last_error(), "element 0")),
              "%s", mc_last_error());
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Where sums cancel, what is left may be nothing but rounding. */
TEST(debug_forgives_what_cancels)
{
    static const char *const formulas[] = {
        "conv2d(f, k)",
        "tanh(conv2d(f, k) * 1000) - 1",
        "pool(conv2d(f, k), [2, 2], mode='average_inc_pad')",
        "relu(conv2d(f, k) - conv2d(f, k + 1e-7)) * 3",
        "exp(dot(m, concatenate([m, m * -1.000001], axis=0).T)[:, :8] + dot(m, concatenate([m, m * -1.000001], axis=0).T)[:, 8:])",
        "exp(dot(concatenate([m, m], axis=1), concatenate([m, m * -1.000001], axis=1).T))",
        "batched_dot(concatenate([m, m], axis=1)[None], concatenate([m, m * -1.000001], axis=1).T[None])",
        "sqr(m) - sqr(m * 1.000001)",
        "(sqr(m) - sqr(m * 1.000001)) * 1e6",
        "m * 1.7 - m * 1.3 - m * 0.4 > 0",
        "sum(m, axis=0) - sum(m * 1.000001, axis=0)",
        "erf(abs(m) + 6) - 1",
        "1 - sigmoid(abs(m) + 40)",
        "cast(m * 1e-6, float16) * 1.5 / (abs(cast(m * 1e-6, float16)) + 1)",
        "psi(cast(m, float64) * 1e-6 + 1.4616321449683623)",
        "mean(sqr(cast(m * 400, float16)), axis=0)",
        "sqr(cast(m * 400, float16)) // 0.3",
        "argmax(sqr(cast(m, float16)) * 0.1 + 1, axis=0)",
        "logsoftmax(m - max(abs(m)) * 1e17, axis=1)",
        "x = m - max(m, axis=1, keepdims=True); grad(sum((x - mean(x, axis=1, keepdims=True)) / (std(x, axis=1, keepdims=True) + 0.5)), m)",
        "h = cast(m + 1, float16); grad(sum(sqr((h - mean(h, axis=0, keepdims=True)) / (std(h, axis=0, keepdims=True) + 0.5))), h)",
        "s = sqr(m) - sqr(m * 1.000001); swish(s, s)",
        "sqr(cast(m * 1e-4, float16)) / (sqr(cast(m * 1e-4, float16)) + sqr(cast(m[::-1] * 1e-4, float16)))",
    };
    const mc_custom swish = { .name = "swish", .nin = 2, .nout = 1, .kernel = "a / (1 + M(exp)(-a * b))" };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        mc_graph *g = mc_graph_new();
        CHECK(mc_register(g, &swish) == MC_OK, "%s", mc_last_error());
        mc_formula(g, "input f float32[?, ?, ?, ?]; input k float32[?, ?, ?, ?]; input m float32[?, ?]");
        mc_node *out = mc_formula(g, formulas[i]);
        mc_function *f = mc_compile(
            g,
            &(mc_spec){
                .inputs = "f, k, m", .output = &out, .noutput = 1, .on_unused = "ignore", .mode = "DEBUG" });
        mc_array *field = mc_array_new(MC_FLOAT32, MC_SHAPE(1, 1, 40, 40)),
                 *m = mc_array_new(MC_FLOAT32, MC_SHAPE(8, 300)), *y = NULL;
        mc_array *k = mc_array_from(MC_FLOAT32, MC_SHAPE(1, 1, 3, 3),
                                    (float[]){ 0, 1, 0, 1, -4, 1, 0, 1, 0 });
        for (int j = 0; j < 1600; j++) { /* smooth: second differences are a thousandth of it, and less */
            mc_store_f64(MC_FLOAT32, field->data + j * 4, sin(j / 40 * 0.03) * cos(j % 40 * 0.05) + 2);
        }
        for (int j = 0; j < 2400; j++) {
            mc_store_f64(MC_FLOAT32, m->data + j * 4, test_uniform(-1, 1));
        }
        REQUIRE(f, "%s: %s", formulas[i], mc_error(g));
        mc_status s = mc_call(f, MC_IN(field, k, m), MC_OUT(&y));
        CHECK(s == MC_OK, "%s: %s", formulas[i], mc_last_error());
        mc_array *all[] = { field, k, m, y };
        for (size_t j = 0; j < NELEM(all); j++) {
            mc_array_unref(&all[j]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* Rules are checked while the call holds the locks of its variables. */
TEST(debug_reads_shared_variables)
{
    mc_graph *g = mc_graph_new();
    mc_array *one = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ 1, -1 }), *y = NULL;
    CHECK(mc_shared_new(g, "w", one), "%s", mc_last_error());
    mc_function *f = mc_compile(g, &(mc_spec){ .outputs = "sigmoid_binary_crossentropy(w, w)",
                                               .updates = "w = w + 1",
                                               .mode = "DEBUG" });
    if (CHECK(f && mc_call(f, MC_NONE, MC_OUT(&y)) == MC_OK, "%s", f ? mc_last_error() : mc_error(g))) {
        static const double want[] = { 0.31326168751822283,
                                       -0.68673831248177717 }; /* log(1 + exp(-|w|)) + max(w, 0) - w * w */
        for (int i = 0; i < 2; i++) {
            CHECK(fabs(mc_load_f64(MC_FLOAT32, y->data + i * 4) - want[i]) < 1e-6, "of %d: %g", i,
                  mc_load_f64(MC_FLOAT32, y->data + i * 4));
        }
    }
    mc_array_unref(&one);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}

/* What a kernel over no elements leaves unset is not compared; a sum of no elements is 0. */
TEST(debug_knows_kernels_over_nothing)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[2, ?, ?, 2]; input y float32[1, 2]");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x, y",
                       .mode = "DEBUG",
                       .outputs = "var(minimum(exp(x) / sum(exp(x), axis=0, keepdims=True), cast(y * 2, "
                                  "float64)), axis=3, ddof=1), sum(x * sqr(y), axis=2)" });
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 8, 0, 2)),
             *y = mc_array_from(MC_FLOAT32, MC_SHAPE(1, 2), (float[]){ 3, 7 }), *v = NULL, *sum = NULL;
    CHECK(f && mc_call(f, MC_IN(x, y), MC_OUT(&v, &sum)) == MC_OK, "%s", mc_last_error());
    CHECK(v && mc_array_size(v) == 0 && sum && mc_array_size(sum) == 32, "other sizes");
    mc_array *all[] = { x, y, v, sum };
    for (size_t i = 0; i < NELEM(all); i++) {
        mc_array_unref(&all[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(debug_survives_every_failed_allocation)
{
    float v[3] = { 0.5f, 1, 2 };
    mc_flag_set("cc", ""); /* no process is started a thousand times */
    ALLOC_FAIL_LOOP {
        mc_clear_error();
        mc_graph *g = mc_graph_new();
        mc_node *x = g ? mc_input(g, "x", MC_FLOAT32, 1) : NULL,
                *out = x ? mc_formula(g, "log(1 + exp(x)) * 1 + x * 0") : NULL;
        mc_function *f = g ? mc_compile(
                                 g,
                                 &(mc_spec){ .inputs = "x", .output = &out, .noutput = 1, .mode = "DEBUG" })
                           : NULL;
        mc_array *a = mc_array_from(MC_FLOAT32, MC_SHAPE(3), v), *y = NULL;
        mc_status s = f && a ? mc_call(f, MC_IN(a), MC_OUT(&y)) : MC_EMEMORY;
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
        mc_array_unref(&a);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
