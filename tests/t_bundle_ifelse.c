/* t_bundle_ifelse.c: functions with choices beside what is loaded from their files, bit for bit; and what
 * loading refuses of a choice.  A row has both a condition and its opposite, so that each call takes both
 * sides. */
#include "bundle_formulas.h"

TEST(choices_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, s",
          .outputs = "ifelse(s > 0, tanh(x) * 2, exp(-x)), ifelse(s <= 0, tanh(x) * 2, exp(-x))" },
        { .inputs = "x, s",
          .lines = "o, p = ifelse(s > 0, [exp(x), sum(x)], [x * x, prod(x)])\n"
                   "q, r = ifelse(s <= 0, [exp(x), sum(x)], [x * x, prod(x)])",
          .outputs = "o, p, q, r" },
        { .inputs = "x, y, s",
          .outputs = "ifelse(s > 0, dot(x, y), zeros([size(x, 0), size(y, 1)], "
                     "dtype='float32')), ifelse(s <= 0, tanh(dot(x, y)), dot(x, -y))" },
        { .inputs = "img, w, s",
          .outputs = "ifelse(s > 0, sum(conv(img, w)), 0), ifelse(s <= 0, max(conv(img, w) * 0.5), 1)" },
        { .inputs = "x, s, n", .outputs = "ifelse(s > 0, x[1:], x), ifelse(n > 3, x, x[:, 1:])" },
        { .inputs = "x, s",
          .outputs = "ifelse(s > 0, ifelse(s > 1, x * 2, x / 3), ifelse(s < -1, exp(x), -x)), ifelse(s <= 0, "
                     "ifelse(s < -0.5, sum(x), 1), ifelse(s > 0.5, max(abs(x)), 2))" },
        { .inputs = "s, n", .outputs = "ifelse(s > 0, n * 3, n - 4), ifelse(n > 3, s > 0, s < 1)" });
}

TEST(gradients_and_updates_of_choices_after_loading)
{
    SAME_FORMULAS({ .inputs = "x, s",
                    .lines = "cost = ifelse(s > 0, sum(sqr(dot(x[:, 0:3], W))), sum(abs(W)))\n"
                             "other = ifelse(s <= 0, mean(sqr(dot(x[:, 0:3], W) - 1)), sum(exp(W)))",
                    .outputs = "cost, other, grad(cost, x)",
                    .updates = "W = W - 0.1 * grad(cost + other, W)" },
                  { .inputs = "x, y, s",
                    .lines = "p = ifelse(s > 0, tanh(dot(x, y)), dot(x, y) * 0.5)\n"
                             "q = ifelse(s <= 0, tanh(dot(x, y)), dot(x, y) * 0.5)",
                    .outputs = "grad(sum(sqr(p)) + sum(q), [x, y]), "
                               "grad(sum(sqr(grad(sum(sqr(q)), y))), x)" },
                  { .inputs = "x, s",
                    .outputs = "ifelse(s > 0, x * c, x), c",
                    .updates = "c = ifelse(s > 0, c + 1, c * 2)" });
}

TEST(choices_in_loops_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, v",
          .outputs = "scan(r in x, h from v * 0: h = ifelse(sum(r) > 0, h + r, h * 0.5); yield h)" },
        { .inputs = "x, v, s",
          .outputs = "ifelse(s > 0, scan(r in x, h from v * 0: h = h + r; yield last h), v), ifelse(s <= 0, "
                     "scan(r in x, h from v * 0: h = tanh(h - r); yield last h), v)" },
        { .inputs = "x, v",
          .lines = "z = scan(r in x, h from v * 0: h = ifelse(sum(r) > 0, scan(steps=3, k from h: k = ifelse("
                   "sum(k) > 0, k * 0.5 - r, k + r); yield last k), tanh(h)); yield h)",
          .outputs = "z, grad(sum(sqr(z)), x)" },
        { .inputs = "x",
          .lines = "hs = scan(r in x[:, 0:3], h from zeros([3], dtype='float32'): h = ifelse(sum(r) > 0, "
                   "tanh(dot(r, W) + dot(h, W)), h * 0.5))\ncost = mean(sqr(hs - 0.1))",
          .outputs = "cost",
          .updates = "W = W - 0.1 * grad(cost, W)" });
}

TEST(what_sides_may_have_after_loading)
{
    SAME_FORMULAS(
        { .inputs = "x, s", .outputs = "ifelse(s > 0, smooth(x), x), ifelse(s <= 0, sum(smooth(x)), 0)" },
        { .inputs = "x, s",
          .outputs = "ifelse(s > 0, sort(x, axis=1), cumsum(x, axis=1)), "
                     "ifelse(s <= 0, argmax(x, axis=1), argmin(x, axis=1))" },
        { .inputs = "x, i, s",
          .outputs = "ifelse(s > 0, x[i % 3], x[i % 2] * 2), ifelse(s <= 0, x[i % 3], -x[i % 2])" },
        { .inputs = "x, s",
          .outputs = "ifelse(s > 0, x + uniform(rng, shape(x), dtype='float32'), x), "
                     "ifelse(s <= 0, x * normal(rng, shape(x), dtype='float32'), x)" },
        { .inputs = "x, s",
          .outputs = "ifelse(s > 0, smooth(x), x), ifelse(s <= 0, sum(smooth(x)), 0)",
          .mode = "FAST_COMPILE" },
        { .inputs = "x, s",
          .outputs = "ifelse(s > 0, tanh(x) / 2, x), ifelse(s <= 0, sum(x), 0)",
          .mode = "NANGUARD" });
}

/* Numbers that are known, of each side; the index of the side that is not taken is out of range. */
TEST(values_of_a_loaded_choice)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input c int64; input x float64[?]; input i int64");
    mc_function *f = mc_compile(
                    g, &(mc_spec){ .inputs = "c, x, i",
                                   .outputs = "ifelse(c, x[i], x[0] * 100), ifelse(c, sum(x), prod(x)), "
                                              "ifelse(c > 1, x[1:], x)" }),
                *loaded = f ? reloaded(f) : NULL;
    mc_array *x = mc_array_from(MC_FLOAT64, MC_SHAPE(4), (double[]){ 2, 3, 5, 7 }), *y[3] = { 0 };
    static const struct { int c, i; double first, second; int size; } rows[] = {
        { 1, 3, 7, 17, 4 }, { 0, 9, 200, 210, 4 }, { 2, 1, 3, 17, 3 }, { 0, -8, 200, 210, 4 } };
    for (size_t k = 0; k < NELEM(rows); k++) {
        REQUIRE(loaded &&
                    mc_call(loaded, MC_IN(rows[k].c, x, rows[k].i), MC_OUT(&y[0], &y[1], &y[2])) == MC_OK,
                "%s%s", mc_error(g), mc_last_error());
        CHECK(mc_load_f64(MC_FLOAT64, y[0]->data) == rows[k].first, "row %zu", k);
        CHECK(mc_load_f64(MC_FLOAT64, y[1]->data) == rows[k].second, "row %zu", k);
        CHECK(mc_array_size(y[2]) == rows[k].size, "row %zu", k);
        for (int i = 0; i < 3; i++) {
            mc_array_unref(&y[i]);
        }
    }
    CHECK(mc_call(loaded, MC_IN(1, x, 9), MC_OUT(&y[0], &y[1], &y[2])) < 0,
          "index 9 of 4 elements is no error");
    for (int i = 0; i < 3; i++) {
        mc_array_unref(&y[i]);
    }
    mc_array_unref(&x);
    mc_function_free(f), mc_function_free(loaded);
    mc_graph_free(g);
    drop_folder();
}

/* Solvers of products on a side that was taken, and on one inside of it, are in the file. */
TEST(measured_solvers_of_a_side)
{
    NEEDS_COMPILER();
    mc_flag_set("plan", "measure");
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 16]; input w float32[16, 16]; input c int64\n"
                  "y = ifelse(c, tanh(dot(x, w)), x)\n"
                  "z = ifelse(c, ifelse(c > 1, tanh(dot(x, w)), x * 2), x)");
    for (int nested = 0; nested < 2; nested++) {
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, w, c", .outputs = nested ? "z" : "y", .on_unused = "ignore" });
        mc_array *x = sample(MC_FLOAT32, 2, (int64_t[]){ 7, 16 }, -1, 1),
                 *w = sample(MC_FLOAT32, 2, (int64_t[]){ 16, 16 }, -1, 1), *y = NULL;
        for (int c = 0; c < 3; c += 2) {
            REQUIRE(f && mc_call(f, MC_IN(x, w, c), MC_OUT(&y)) == MC_OK, "%s%s", mc_error(g),
                    mc_last_error());
            mc_function *loaded = reloaded(f);
            REQUIRE(loaded, "not loaded");
            CHECK((loaded->code->chosen && loaded->code->chosen->n > 0) == (c > 0), "c = %d", c);
            mc_function_free(loaded);
        }
        mc_function_free(f);
        mc_array_unref(&x), mc_array_unref(&w), mc_array_unref(&y);
    }
    mc_graph_free(g);
    drop_folder();
}

/* ---- what is refused ---- */

TEST(how_deep_choices_may_be)
{
    ON_CPU();
    for (int depth = MC_BUNDLE_SIDES; depth <= MC_BUNDLE_SIDES + 1; depth++) {
        mc_graph *g = given_graph();
        struct mc_str text = { 0 };
        for (int i = 0; i < depth; i++) {
            mc_str_addf(&text, "ifelse(n < %d, sin(s + %d), ", i, i);
        }
        mc_str_add(&text, "cos(s)");
        for (int i = 0; i < depth; i++) {
            mc_str_add(&text, ")");
        }
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "s, n", .outputs = text.s, .mode = "FAST_COMPILE" });
        REQUIRE(f, "%s", mc_error(g));
        if (depth == MC_BUNDLE_SIDES) {
            mc_function *loaded = reloaded(f);
            for (int n = -1; n < depth + 1; n += 13) {
                same_call(f, loaded, 2, (mc_arg[]){ mc_arg_real(0.75), mc_arg_real(n) }, "nested");
            }
            mc_function_free(loaded);
        } else {
            CHECK(mc_function_save(f, in_folder("deep.mcf")) == MC_EUNSUPPORTED, "saved");
            CHECK(strstr(mc_last_error(), "at most 64 ifelse can be inside of each other"), "%s",
                  mc_last_error());
            CHECK(access(in_folder("deep.mcf"), F_OK) != 0, "a file is there");
        }
        mc_str_free(&text);
        mc_function_free(f);
        mc_graph_free(g);
    }
    drop_folder();
}

static const struct formulas small = {
    .inputs = "x, v",
    .outputs = "ifelse(sum(v) > 0, [x + 1, sum(x)], [ifelse(max(v) > 1, exp(x), x), prod(x)])[0], "
               "ifelse(sum(v) <= 0, x[1:], x)",
    .mode = "FAST_COMPILE"
};

TEST(damaged_choices)
{
    ON_CPU();
    no_byte_may_change(&small);
}

TEST(numbers_of_a_choice_that_are_wrong)
{
    ON_CPU();
    wrong_numbers(&small);
}

TEST(choices_survive_every_failed_allocation)
{
    NEEDS_COMPILER();
    every_failed_allocation(&small);
}
