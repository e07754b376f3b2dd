/* t_custom.c: users' ops: C callbacks with several results, kernel text, their gradients, mistakes, and their
 * life beyond the graph they were registered in. */
#include "agree.h"
#include "sample.h"

#include <math.h>
#include <string.h>

/* ---- a callback with two results: quotient and remainder of rows, [n, m] and [m] -> [n, m], [n] ---- */

struct counter { int runs, released; bool fails; };

static mc_status pair_infer(void *arg, int nin, const mc_dtype *dtype, const int *rank,
                            const int64_t *const *dims, int i, mc_dtype *out_dtype, int *out_rank,
                            int64_t *out_dims)
{
    (void)arg, (void)nin, (void)dtype;
    if (rank[0] != 2) {
        return MC_ESHAPE;
    }
    *out_dtype = MC_FLOAT64;
    *out_rank = i ? 1 : 2;
    out_dims[0] = dims[0][0];
    out_dims[1] = i ? 0 : dims[0][1];
    return MC_OK;
}

static mc_status pair_run(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out)
{
    struct counter *c = arg;
    const double *x = (const double *)mc_array_data(in[0]), *b = (const double *)mc_array_data(in[1]);
    double *y = (double *)mc_array_data(out[0]), *s = (double *)mc_array_data(out[1]);
    int64_t n = mc_array_dims(in[0])[0], m = mc_array_dims(in[0])[1];
    (void)nin, (void)nout;
    c->runs++;
    if (c->fails) {
        return MC_ECHECK;
    }
    for (int64_t i = 0; i < n; i++) {
        s[i] = 0;
        for (int64_t j = 0; j < m; j++) {
            y[i * m + j] = x[i * m + j] * b[j];
            s[i] += x[i * m + j];
        }
    }
    return MC_OK;
}

static mc_node *pair_grad(void *arg, int nin, mc_node *const *in, int nout, mc_node *const *out,
                          mc_node *const *g, int wrt)
{
    (void)arg, (void)nin, (void)nout, (void)out;
    mc_node *zero = mc_zeros_like(in[wrt]);
    mc_node *through = g[0] ? mc_mul(g[0], wrt ? in[0] : mc_expand_dims(in[1], "axis=0")) : NULL;
    if (wrt) {
        return through ? mc_sum(through, "axis=0") : zero;
    }
    mc_node *rest = g[1] ? mc_add(zero, mc_expand_dims(g[1], "axis=1")) : zero;
    return through ? mc_add(through, rest) : rest;
}

static void let_go(void *arg)
{
    ((struct counter *)arg)->released++;
}

static mc_custom pair(struct counter *c)
{
    return (mc_custom){ .name = "pair",
                        .nin = 2,
                        .nout = 2,
                        .infer = pair_infer,
                        .run = pair_run,
                        .grad = pair_grad,
                        .release = let_go,
                        .arg = c };
}

TEST(callbacks_with_several_results)
{
    struct counter c = { 0 };
    mc_custom op = pair(&c);
    struct agree a = { .g = mc_graph_new() };
    CHECK(mc_register(a.g, &op) == MC_OK, "%s", mc_last_error());
    agree_input(&a, "x", sample(MC_FLOAT64, MC_SHAPE(4, 3), -2, 2), 0);
    agree_input(&a, "b", sample(MC_FLOAT64, MC_SHAPE(3), -2, 2), 0);
    static const char *const formulas[] = {
        "p, s = pair(x + 1, b); tanh(p) + 1", "p, s = pair(x + 1, b); s * 2", "p, s = pair(x.T, b[[0, 1, 2, 0]]); sum(p) + sum(s)",
        "p, s = pair(x, b); grad(sum(p * p) + sum(s * s), x)", "p, s = pair(x, b); grad(sum(p * p), b)",
        "p, s = pair(x, b); grad(sum(tanh(s)), x)", "pair(x[:0], b)[1]",
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s: %s", formulas[i], mc_error(a.g));
    }
    for (int i = 0; i < 70; i++) { /* of many tuples one item each */
        char text[40];
        snprintf(text, sizeof text, "pair(x + %d, b)[%d]", i, i % 2);
        CHECK(!mc_is_error(agree_output(&a, text)), "%s", mc_error(a.g));
    }
    double worst = 0;
    mc_node *cost = mc_formula(a.g, "p2, s2 = pair(x, b); sum(p2 ** 2) + sum(s2 ** 3)");
    CHECK(mc_verify_grad(cost, 2, a.in, a.value, &worst) == MC_OK, "%s", mc_last_error());
    agree(&a, "pair");
    CHECK(c.released == 1 && c.runs > 10, "released %d times after %d runs", c.released, c.runs);
}

TEST(functions_with_callbacks_outlive_their_graph)
{
    struct counter c = { 0 };
    mc_custom op = pair(&c);
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT64, 2);
    mc_input(g, "b", MC_FLOAT64, 1);
    CHECK(mc_register(g, &op) == MC_OK, "%s", mc_last_error());
    mc_function *f = mc_compile(g,
                                &(mc_spec){ .name = "f", .inputs = "x, b", .outputs = "sum(pair(x, b)[0])" });
    CHECK(f != NULL, "%s", mc_error(g));
    mc_function *twin = mc_function_copy(f, 1);
    mc_graph_free(g);
    CHECK(c.released == 0, "released while a function needs it");
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(1, 2), (double[]){ 2, 3 }),
             *b = mc_array_from(MC_FLOAT64, MC_SHAPE(2), (double[]){ 5, 7 });
    double y = 0;
    CHECK(mc_call(f, MC_IN(x, b), MC_OUT(&y)) == MC_OK && y == 31, "%g %s", y, mc_last_error());
    c.fails = true;
    CHECK(mc_call(f, MC_IN(x, b), MC_OUT(&y)) == MC_ECHECK && strstr(mc_last_error(), "pair"), "%s",
          mc_last_error());
    c.fails = false;
    mc_function_free(f);
    CHECK(mc_call(twin, MC_IN(x, b), MC_OUT(&y)) == MC_OK && y == 31, "%g", y);
    CHECK(c.released == 0, "released while a copy needs it");
    mc_function_free(twin);
    CHECK(c.released == 1, "released %d times", c.released);
    mc_array_unref(&x);
    mc_array_unref(&b);
}

/* ---- kernel text ---- */

static const mc_custom swish = { .name = "swish", .nin = 2, .nout = 1, .kernel = "a / (1 + M(exp)(-a * b))",
                                 .kernel_grad = { "g * (y * b + sigmoid(a * b) * (1 - y * b))", "g * sqr(a) * sigmoid(a * b) * (1 - sigmoid(a * b))" } };

static void with_swish(mc_dtype d, const char *mode)
{
    struct agree a = { .g = mc_graph_new() };
    CHECK(mc_register(a.g, &swish) == MC_OK, "%s", mc_last_error());
    agree_input(&a, "x", sample(d, MC_SHAPE(5, 6), -2, 2), 0);
    agree_input(&a, "b", sample(d, MC_SHAPE(1, 6), 0, 2), 1);
    agree_input(&a, "s", sample(d, MC_NOSHAPE, 0, 2), 0);
    static const char *const formulas[] = {
        "swish(x, b)", "swish(x.T, s) * 2", "sum(swish(x + 1, b), axis=0)", "swish(x[::-1], 1.5)", "swish(s, s)", "softmax(swish(x, b))",
        "grad(sum(swish(cast(x, 'float64'), b) ** 2), b)", "swish(x[:0], b)", "swish(2.0, 1.0) + x",
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        if (mc_is_float(d) || !strstr(formulas[i], "grad")) {
            CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s: %s", formulas[i], mc_error(a.g));
        }
    }
    const char *wrong = agree_in(&a, mode, 2);
    CHECK(!wrong, "%s: %s", mc_dtype_name(d), wrong);
    agree_free(&a);
}

TEST(kernel_text_fuses_and_has_a_reference)
{
    with_swish(MC_FLOAT32, "FAST_RUN");
    with_swish(MC_FLOAT32, "DEBUG");
    with_swish(MC_FLOAT64, "FAST_COMPILE");
    with_swish(MC_FLOAT16, "DEBUG");
    with_swish(MC_INT32, "FAST_RUN");
}

/* Of literals alone it is computed when the formula is read: 2 / (1 + exp(-2)). */
TEST(kernel_text_of_literals)
{
    static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };
    for (size_t i = 0; i < 2 * NELEM(modes); i++) {
        const mc_dtype d = i & 1 ? MC_FLOAT32 : MC_FLOAT64;
        mc_graph *g = mc_graph_new();
        CHECK(mc_register(g, &swish) == MC_OK, "%s", mc_last_error());
        mc_input(g, "x", d, 0);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x",
                           .outputs = "swish(2.0, 1.0) + x, swish(2, 1) * x, swish(2.0, 1)",
                           .mode = modes[i / 2] });
        double sum = 0, product = 0, alone = 0;
        const double want = 1.7615941559557649;
        CHECK(f && mc_call(f, MC_IN(0.5), MC_OUT(&sum, &product, &alone)) == MC_OK, "%s",
              f ? mc_last_error() : mc_error(g));
        CHECK(fabs(sum - want - 0.5) < 1e-6 && fabs(product - want / 2) < 1e-6 && fabs(alone - want) < 1e-6,
              "%s of %s: %g, %g, %g", modes[i / 2], mc_dtype_name(d), sum, product, alone);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(kernel_text_computes_what_it_says)
{
    mc_graph *g = mc_graph_new();
    CHECK(mc_register(g, &swish) == MC_OK, "%s", mc_last_error());
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = mc_formula(g, "swish(x, 1)");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x", .outputs = "swish(x, 1) + 1, grad(sum(swish(x, 1)), x)" });
    CHECK(f != NULL, "%s", mc_error(g));
    mc_array *a = mc_array_from(MC_FLOAT32, MC_SHAPE(3), (float[]){ -1, 0.5f, 3 }), *ref = NULL, *have = NULL,
             *slope = NULL;
    CHECK(mc_eval(1, &x, &a, 1, &y, &ref) == MC_OK, "%s", mc_last_error());
    CHECK(mc_call(f, MC_IN(a), MC_OUT(&have, &slope)) == MC_OK, "%s", mc_last_error());
    for (int64_t i = 0; i < 3 && ref && have && slope; i++) {
        double v = mc_array_get(a, &i), s = 1 / (1 + exp(-v));
        CHECK(fabs(mc_array_get(ref, &i) - v * s) < 1e-6 && fabs(mc_array_get(have, &i) - v * s - 1) < 1e-6 &&
                  fabs(mc_array_get(slope, &i) - (s + v * s * (1 - s))) < 1e-6,
              "swish(%g) is %g, %g, its slope %g", v, mc_array_get(ref, &i), mc_array_get(have, &i) - 1,
              mc_array_get(slope, &i));
    }
    CHECK(mc_function_nsteps(f) >= 1 && strcmp(mc_function_step(f, 0).kind, "kernel") == 0, "%s",
          mc_function_step(f, 0).kind);
    double worst = 0;
    mc_array *at[1] = { mc_array_cast(a, MC_FLOAT64) };
    mc_graph *h = mc_graph_new();
    CHECK(mc_register(h, &swish) == MC_OK, "%s", mc_last_error());
    mc_node *z = mc_input(h, "z", MC_FLOAT64, 1);
    CHECK(mc_verify_grad(mc_formula(h, "swish(z, 1.5)"), 1, &z, at, &worst) == MC_OK, "%s", mc_last_error());
    mc_graph_free(h);
    mc_graph_free(g);
    CHECK(mc_call(f, MC_IN(a), MC_OUT(&have)) == MC_OK, "%s", mc_last_error());
    mc_array_unref(&at[0]);
    mc_array_unref(&a);
    mc_array_unref(&ref);
    mc_array_unref(&have);
    mc_array_unref(&slope);
    mc_function_free(f);
}

/* Words of C beside those that kernels have over vectors: the loop is then printed element by element. */
TEST(kernel_text_may_say_anything_that_is_c)
{
    static const struct { const char *text; double at; double y; } rows[] = {
        { "a / (1 + exp(-b * a))",           0.5,  0.31122967 }, { "sqrt(a * a + b * b)",         0.75, 1.25       },
        { "a > 0 ? a : 0",                   0.5,  0.5        }, { "(a > 0) * a",                 0.5,  0.5        },
        { "0.1 * a + b",                     0.5,  1.05       }, { "0.5f * a + b",                0.5,  1.25       },
        { "fmaxf(a, b) - 1",                 0.5,  0          }, { "a * 16777217",                1,    16777216   },
        { "(float)(int)(a * 3)",             0.5,  1          }, { "fabsf(a) / (1e-3 + fabs(a))", 0.5,  0.99800399 },
        { "SEL(GT(a, b), a, b)",             0.5,  1          }, { "a != b && !(a < 0)",          0.5,  1          },
        { "M(tanh)(a) - C(0.1)",             0.5,  0.36211716 }, { "M(cosh)(a)",                  0.5,  1.1276260  },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_custom op = { .name = "mine", .nin = 2, .nout = 1, .kernel = rows[i].text };
        mc_graph *g = mc_graph_new();
        CHECK(mc_register(g, &op) == MC_OK, "%s", mc_last_error());
        mc_input(g, "x", MC_FLOAT32, 1);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "mine(x, 1) + 1" });
        mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(19)), *y = NULL;
        for (int64_t k = 0; k < 19; k++) {
            mc_array_set(x, &k, rows[i].at);
        }
        CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", rows[i].text, mc_last_error());
        for (int64_t k = 0; y && k < 19; k++) {
            CHECK(fabs(mc_array_get(y, &k) - 1 - rows[i].y) <= 2e-7 * (1 + fabs(rows[i].y)),
                  "%s is %.9g, not %.9g", rows[i].text, mc_array_get(y, &k) - 1, rows[i].y);
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(kernel_text_without_a_compiler_is_an_error_of_the_call)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    mc_flag_set("cc", "/nonexistent");
    mc_graph *g = mc_graph_new();
    mc_register(g, &swish);
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "swish(x, 1)" });
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(3)), *y = NULL;
    CHECK(f != NULL, "%s", mc_error(g));
    CHECK(f && mc_call(f, MC_IN(a), MC_OUT(&y)) == MC_EUNSUPPORTED && strstr(mc_last_error(), "swish"), "%s",
          mc_last_error());
    mc_array_unref(&a);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- mistakes ---- */

TEST(wrong_registrations_are_refused)
{
    static const struct { mc_custom op; const char *says; } rows[] = {
        { { .name = "f", .nin = 1, .nout = 1 },                                          "has no implementation" },
        { { .name = "f", .nin = 9, .nout = 1, .run = pair_run },                         "0 to 8 inputs" },
        { { .name = "f", .nin = 1, .nout = 0, .run = pair_run },                         "1 to 8 results" },
        { { .name = "f", .nin = 4, .nout = 1, .kernel = "a" },                           "1 to 3 inputs" },
        { { .name = "f", .nin = 1, .nout = 2, .kernel = "a" },                           "one result" },
        { { .name = "tanh", .nin = 1, .nout = 1, .kernel = "a" },                        "is the name of an existing op" },
        { { .name = "two words", .nin = 1, .nout = 1, .kernel = "a" },                   "is not a valid name" },
        { { .name = "2nd", .nin = 1, .nout = 1, .kernel = "a" },                         "is not a valid name" },
        { { .name = "", .nin = 1, .nout = 1, .kernel = "a" },                            "the name is missing" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        CHECK(mc_register(g, &rows[i].op) == MC_EARG && strstr(mc_last_error(), rows[i].says), "%s: %s",
              rows[i].says, mc_last_error());
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    CHECK(mc_register(g, &swish) == MC_OK && mc_register(g, &swish) == MC_EARG &&
              strstr(mc_error(g), "already"),
          "%s", mc_error(g));
    CHECK(mc_register(NULL, &swish) == MC_EARG && mc_register(g, NULL) == MC_EARG, "%s", mc_last_error());
    mc_graph_free(g);
}

TEST(wrong_uses_of_users_ops_say_so)
{
    static const struct { const char *formula, *says; } rows[] = {
        { "swish(x)",            "swish" }, { "swish(x, x, x)", "swish" }, { "pair(v, v)", "pair" }, { "swash(x, x)", "did you mean 'swish'" },
        { "swish(x, y)",         "swish" }, { "grad(sum(blunt(v)), v)", "blunt" },
    };
    struct counter c = { 0 };
    mc_custom op = pair(&c), blunt = { .name = "blunt", .nin = 1, .nout = 1, .run = pair_run, .arg = &c };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_register(g, &swish);
        mc_register(g, &op);
        mc_register(g, &blunt);
        mc_input(g, "v", MC_FLOAT32, 1);
        mc_input_sized(g, "x", MC_FLOAT32, MC_SHAPE(3));
        mc_input_sized(g, "y", MC_FLOAT32, MC_SHAPE(4));
        mc_formula(g, rows[i].formula);
        CHECK(mc_graph_status(g) < 0 && strstr(mc_error(g), rows[i].says), "%s: '%s' is not in: %s",
              rows[i].formula, rows[i].says, mc_error(g));
        mc_graph_free(g);
    }
}

TEST(kernel_text_that_is_no_c_is_told_by_the_compiler)
{
    mc_graph *g = mc_graph_new();
    mc_custom op = { .name = "broken", .nin = 1, .nout = 1, .kernel = "a +* nothing" };
    CHECK(mc_register(g, &op) == MC_OK, "%s", mc_last_error());
    mc_input(g, "x", MC_FLOAT32, 1);
    CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "broken(x)" }) &&
              mc_graph_status(g) == MC_ECOMPILE && strstr(mc_error(g), "nothing"),
          "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(every_failed_allocation_of_users_ops_is_one_clean_error)
{
    mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(2, 3)), *b = mc_array_new(MC_FLOAT64, MC_SHAPE(3));
    ALLOC_FAIL_LOOP {
        struct counter c = { 0 };
        mc_custom op = pair(&c);
        mc_graph *g = mc_graph_new();
        mc_array *y = NULL;
        bool ours = g && mc_register(g, &op) == MC_OK, both = ours && mc_register(g, &swish) == MC_OK;
        CHECK(both || ALLOC_FAILED, "not registered, yet memory: %s", mc_last_error());
        mc_function *f = NULL;
        if (both) {
            mc_input(g, "x", MC_FLOAT64, 2);
            mc_input(g, "b", MC_FLOAT64, 1);
            f = mc_compile(g, &(mc_spec){ .inputs = "x, b",
                                          .outputs = "pair(x, b)[0], swish(x, 1)",
                                          .mode = "FAST_COMPILE" });
        }
        CHECK(f || ALLOC_FAILED, "no function, yet memory: %s", g ? mc_error(g) : mc_last_error());
        mc_status s = f ? mc_call(f, MC_IN(x, b), MC_OUT(&y)) : MC_EMEMORY;
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
        CHECK(c.released == ours, "released %d times", c.released);
    }
    mc_array_unref(&x);
    mc_array_unref(&b);
}
