/* t_bundle_loops.c: functions with loops beside what is loaded from their files, bit for bit; and what
 * loading refuses of a loop. */
#include "bundle_formulas.h"

/* ---- the same bits ---- */

TEST(loops_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = h * 0.5 + tanh(r) * v; yield h, sum(h))" },
        { .inputs = "x, v", .outputs = "scan(r in x[::-1], h from v * 0: h = maximum(h, r); yield last h)" },
        { .inputs = "n, s",
          .outputs = "scan(steps=n, a from 0i64, b from 1i64: a, b = b, a + b; yield a), s" },
        { .inputs = "d, u",
          .outputs =
              "scan(r in d, k in u, h from d[0] * 0: h = h + r * cast(k, 'float64'); yield h, last h)" },
        { .inputs = "h", .outputs = "scan(r in h, a from h[0]: a = a * 0.5 + r; yield a)" },
        { .inputs = "x, y",
          .outputs = "scan(r in x, h from zeros([size(y, 1)]): h = tanh(dot(r, y) + h); yield h, max(h))" },
        { .inputs = "img, w",
          .outputs = "scan(steps=3, a from img: a = tanh(a * 0.5 + sum(conv(a, w, border='same'), axis=1, "
                     "keepdims=True)); yield last a)" });
}

/* The body is a net: products of states with weights, an update by its gradient. */
TEST(recurrent_training_after_loading)
{
    SAME_FORMULAS({ .inputs = "x",
                    .lines = "hs = scan(r in x[:, 0:3], h from zeros([3], dtype='float32'): h = tanh(dot(r, "
                             "W) + dot(h, W)))\n"
                             "cost = mean(sqr(hs - 0.1))",
                    .outputs = "cost, sum(hs)",
                    .updates = "W = W - 0.1 * grad(cost, W)" },
                  { .inputs = "x, y, v",
                    .lines = "z = scan(r in x, h from zeros([size(y, 1)], dtype='float32'), k from 1.0f32: "
                             "h = tanh(dot(r, y) + h * k); k = k * 0.9 + sum(h) * 0.01; yield h, k)\ncost = "
                             "sum(sqr(z[0])) + sum(z[1])",
                    .outputs = "grad(cost, [x, y]), grad(sum(sqr(grad(cost, y))), x)" });
}

TEST(loops_that_end_by_themselves_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "s",
          .outputs =
              "scan(steps=100, x from 1.0f32 + abs(s): old = x; x = (x + 2 / x) / 2; yield last x, count; "
              "until abs(x - old) < 1e-5)" },
        { .inputs = "x, v", .outputs = "scan(r in x, h from v * 0: h = h + r; yield h; until sum(h) > 3)" },
        { .inputs = "x, v", .outputs = "scan(r in x, h from v * 0: h = h + r; yield h; halt sum(h) > 3)" });
}

TEST(nested_loops_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, n",
          .outputs =
              "scan(r in x, h from zeros([size(x, 1)]): q = scan(e in r, k from 0.0f32: k = k * 0.5 + e); "
              "h = h + q; yield h)" },
        { .inputs = "x, n",
          .lines = "o = scan(r in x, h from 0.5f32: h = h + scan(e in r, k from h: k = tanh(k + e); yield "
                   "last k))",
          .outputs =
              "o, grad(sum(o), x), scan(steps=n, a from 0i64: b = scan(steps=3, k from a: k = k + scan("
              "steps=2, j from k: j = j + 1; yield last j); yield last k); a = a + b; yield a)" });
}

TEST(what_bodies_may_have_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = h * 0.5 + smooth(r); yield h, sum(smooth(h)))" },
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = sort(h + r) + cumsum(r, axis=0); yield h, argmax(h))" },
        { .inputs = "x, i",
          .outputs = "scan(r in x, h from r0: h = h + r[i % 3]; yield h)",
          .lines = "r0 = i * 0.0f32" },
        { .inputs = "v",
          .outputs = "scan(steps=4, h from v: h = h + uniform(rng, shape(v), dtype='float32'); yield h)" },
        { .inputs = "x, n",
          .outputs = "scan(steps=n, h from 0.0f32: h = h + sum(x) * c; yield h), c",
          .updates = "c = c + 1" },
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = tanh(h + r)), scan(r in x, h from v * 0: "
                     "h = tanh(h + r); yield last h)" },
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = smooth(h + r); yield h)",
          .mode = "FAST_COMPILE" },
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = h + r / 2; yield h)",
          .mode = "NANGUARD" });
}

/* Numbers that are known: the loaded function counts, adds and multiplies. */
TEST(values_of_a_loaded_loop)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input n int64; input x float64[?, 2]\n"
                  "f = scan(steps=n, a from 0i64, b from 1i64: a, b = b, a + b; yield a)\n"
                  "p, k = scan(steps=50, p from 1i64: p = p * 3; yield last p, count; until p > n * n)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "n, x",
                                               .outputs = "f, p, k, scan(r in x, h from [0.0, 0]: "
                                                          "h = h * 10 + r; yield last h)" }),
                *loaded = f ? reloaded(f) : NULL;
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(3, 2), (double[]){ 1, 4, 2, 5, 3, 6 }), *y[4] = { 0 };
    REQUIRE(loaded && mc_call(loaded, MC_IN(9, x), MC_OUT(&y[0], &y[1], &y[2], &y[3])) == MC_OK, "%s%s",
            mc_error(g), mc_last_error());
    static const int64_t fibonacci[] = { 1, 1, 2, 3, 5, 8, 13, 21, 34 };
    CHECK(mc_array_size(y[0]) == 9 && memcmp(y[0]->data, fibonacci, sizeof fibonacci) == 0,
          "not Fibonacci's");
    CHECK(mc_load_i64(MC_INT64, y[1]->data) == 243 && mc_load_i64(MC_INT64, y[2]->data) == 5, "not 3^5");
    CHECK(((double *)(void *)y[3]->data)[0] == 123 && ((double *)(void *)y[3]->data)[1] == 456,
          "not 123, 456");
    for (int i = 0; i < 4; i++) {
        mc_array_unref(&y[i]);
    }
    mc_array_unref(&x);
    mc_function_free(f), mc_function_free(loaded);
    mc_graph_free(g);
    drop_folder();
}

/* Solvers of products in a body, and in the body of a body, are in the file. */
TEST(measured_solvers_of_a_body)
{
    NEEDS_COMPILER();
    mc_flag_set("plan", "measure");
    mc_graph *g = mc_graph_new();
    mc_formula(
        g, "input x float32[?, ?, 16]; input w float32[16, 16]\n"
           "y = scan(r in x, h from x[0]: h = tanh(dot(h, w) + r); yield h)\n"
           "z = scan(steps=2, a from x[0]: a = scan(steps=3, b from a: b = tanh(dot(b, w)); yield last b); "
           "yield last a)");
    for (int nested = 0; nested < 2; nested++) {
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, w", .outputs = nested ? "z" : "y", .on_unused = "ignore" });
        mc_array *x = sample(MC_FLOAT32, 3, (int64_t[]){ 4, 7, 16 }, -1, 1),
                 *w = sample(MC_FLOAT32, 2, (int64_t[]){ 16, 16 }, -1, 1), *y = NULL;
        REQUIRE(f && mc_call(f, MC_IN(x, w), MC_OUT(&y)) == MC_OK, "%s%s", mc_error(g), mc_last_error());
        mc_function *loaded = reloaded(f);
        REQUIRE(loaded, "not loaded");
        CHECK(loaded->code->chosen && loaded->code->chosen->n > 0, "no solver of the body is in the file");
        mc_function_free(loaded), mc_function_free(f);
        mc_array_unref(&x), mc_array_unref(&w), mc_array_unref(&y);
    }
    mc_graph_free(g);
    drop_folder();
}

/* ---- what is refused ---- */

/* scan(...) inside of scan(...), so many times */
static char *nested(int depth)
{
    struct mc_str text = { 0 };
    for (int i = 0; i < depth; i++) {
        mc_str_addf(&text, "scan(steps=2, a%d from ", i);
        mc_str_addf(&text, i ? "a%d" : "s", i - 1);
        mc_str_addf(&text, ": a%d = a%d * 0.5 + ", i, i);
    }
    mc_str_addf(&text, "sin(a%d)", depth - 1);
    for (int i = depth; i-- > 0;) {
        mc_str_addf(&text, "; yield last a%d)", i);
    }
    return mc_str_take(&text);
}

TEST(how_deep_loops_may_be)
{
    ON_CPU();
    for (int depth = MC_BUNDLE_LOOPS; depth <= MC_BUNDLE_LOOPS + 1; depth++) {
        mc_graph *g = given_graph();
        char *text = nested(depth);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "s", .outputs = text, .mode = "FAST_COMPILE", .excluding = "loops" });
        REQUIRE(f, "%s", mc_error(g));
        if (depth == MC_BUNDLE_LOOPS) {
            mc_function *loaded = reloaded(f);
            same_call(f, loaded, 1, (mc_arg[]){ mc_arg_real(0.75) }, "nested");
            mc_function_free(loaded);
        } else {
            CHECK(mc_function_save(f, in_folder("deep.mcf")) == MC_EUNSUPPORTED, "saved");
            CHECK(strstr(mc_last_error(), "at most 16 loops can be inside of each other"), "%s",
                  mc_last_error());
            CHECK(access(in_folder("deep.mcf"), F_OK) != 0, "a file is there");
        }
        mc_free(text);
        mc_function_free(f);
        mc_graph_free(g);
    }
    drop_folder();
}

static const struct formulas small = {
    .inputs = "x, v",
    .outputs = "scan(r in x, h from v * 0: h = h + scan(e in r, k from 0.5f32: k = k + e; yield last k); yield h; "
               "halt sum(h) > 9)",
    .mode = "FAST_COMPILE"
};

TEST(damaged_loops)
{
    ON_CPU();
    no_byte_may_change(&small);
}

TEST(numbers_of_a_loop_that_are_wrong)
{
    ON_CPU();
    wrong_numbers(&small);
}

TEST(loops_survive_every_failed_allocation)
{
    NEEDS_COMPILER();
    every_failed_allocation(&small);
}
