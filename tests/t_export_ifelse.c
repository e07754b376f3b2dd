/* t_export_ifelse.c: choices (ifelse) in exported files: the bits of the library, at two sizes, in every kind
 * of file; and what is refused.  A row has both a condition and its opposite, so that each call takes both
 * sides.  tests/export.py has choices in random loops. */
#include "export_formulas.h"
#include <math.h>

TEST(exported_choices)
{
    SAME_AS_LIBRARY(
        { .outputs = "ifelse(v[0] > 0, tanh(x) * 2, exp(-x)), ifelse(v[0] <= 0, tanh(x) * 2, exp(-x))" },
        { .lines = "o, p = ifelse(v[0] > 0, [exp(x), sum(x)], [x * x, prod(x)])\n"
                   "q, r = ifelse(v[0] <= 0, [exp(x), sum(x)], [x * x, prod(x)])",
          .outputs = "o, p, q, r" },
        { .outputs = "ifelse(v[0] > 0, x, -x), ifelse(v[0] <= 0, x, x), ifelse(v[0], v[::-1], v * 2)" },
        { .outputs = "ifelse(v[0] > 0, ifelse(v[1] > 0, x * 2, x / 3), ifelse(v[1] > 0, exp(x), -x)), "
                     "ifelse(v[0] <= 0, ifelse(v[1] > 0, sum(x), 1), ifelse(v[1] > 0, max(abs(x)), 2))" },
        { .outputs = "ifelse(sum(x) > 0, d * 2, -d), ifelse(sum(x) <= 0, cast(x, 'float32'), x * 2)",
          .mode = "FAST_COMPILE" },
        { .outputs = "ifelse(v[0] > 0, x[:0], x[:0] + 1), ifelse(v[0] > 0, v[0] > v[1], v[0] < v[1])" });
}

TEST(exported_gradients_and_updates_of_choices)
{
    SAME_AS_LIBRARY(
        { .lines = "cost = ifelse(v[0] > 0, sum(sqr(dot(x, W))), sum(abs(W)))\n"
                   "other = ifelse(v[0] <= 0, mean(sqr(dot(x, W) - 1)), sum(exp(W)))",
          .outputs = "cost, other, grad(cost, x)",
          .updates = "W = W - 0.1 * grad(cost + other, W)" },
        { .lines = "p = ifelse(v[0] > 0, tanh(dot(x, W)), dot(x, W) * 0.5)\n"
                   "q = ifelse(v[0] <= 0, tanh(dot(x, W)), dot(x, W) * 0.5)",
          .outputs = "grad(sum(sqr(p)) + sum(q), [x, W]), grad(sum(sqr(grad(sum(sqr(q)), W))), x)" },
        { .outputs = "sum(W)", .updates = "W = ifelse(v[0] > 0, W + 1, W.T)" });
}

TEST(exported_choices_in_loops)
{
    SAME_AS_LIBRARY(
        { .outputs = "scan(r in x, h from v * 0: h = ifelse(sum(r) > 0, h + r, h * 0.5); yield h)" },
        { .outputs =
              "ifelse(v[0] > 0, scan(r in x, h from v * 0: h = h + r; yield last h), v), ifelse(v[0] <= 0, "
              "scan(r in x, h from x[0] * 0: h = tanh(h - r); yield h), x)" },
        { .lines = "z = scan(r in x, h from v * 0: h = ifelse(sum(r) > 0, scan(steps=3, k from h: k = ifelse("
                   "sum(k) > 0, k * 0.5 - r, k + r); yield last k), tanh(h)); yield h)",
          .outputs = "z, grad(sum(sqr(z)), x)" },
        { .lines = "hs = scan(r in x, h from zeros([3], dtype='float32'): h = ifelse(sum(r) > 0, "
                   "tanh(dot(r, W) + dot(h, W)), h * 0.5))\ncost = mean(sqr(hs - 0.1))",
          .outputs = "cost",
          .updates = "W = W - 0.1 * grad(cost, W)" },
        { .outputs = "scan(r in x, h from v: h = ifelse(sum(h) > 1, h * 0.5, h + abs(r)); yield h, count; "
                     "halt sum(h) > 2)" });
}

TEST(exported_choices_with_other_ops)
{
    SAME_AS_LIBRARY({ .outputs = "ifelse(v[0] > 0, sort(x, axis=1), cumsum(x, axis=1)), "
                                 "ifelse(v[0] <= 0, argmax(x, axis=1), argmin(x, axis=1))" },
                    { .outputs = "ifelse(v[0] > 0, x + uniform(rng, shape(x), dtype='float32'), x), "
                                 "ifelse(v[0] <= 0, softmax(x), x)" },
                    { .outputs = "ifelse(v[0] > 0, cast(x, 'float16') * 2, cast(x, 'float16')), "
                                 "ifelse(v[0] <= 0, dot(d, d.T), zeros([size(d, 0), size(d, 0)]))" });
}

TEST(kinds_of_files_with_choices)
{
    NEEDS_COMPILER();
    same_in_every_kind(&(struct row){
        .lines = "cost = ifelse(v[0] > 0, sum(sqr(tanh(dot(x, W)))), sum(abs(W)))",
        .outputs =
            "cost, scan(r in x, h from 0.5f32: h = ifelse(sum(r) > 0, h + sum(r), ifelse(h > 1, h * 0.5, "
            "tanh(h))); yield h)",
        .updates = "W = W - 0.1 * grad(cost, W)" });
}

/* ---- one side is computed ---- */

/* An index out of range is an error of the side that has it; then no variable has changed. */
TEST(the_other_side_is_not_computed)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, "k = cast(v[1:2], 'int64')", "ifelse(v[0] > 0, sum(x[k, 0]), v[0])",
                              "W = W + ifelse(v[0] > 0, sum(x[k, 0]), 1)", NULL);
    REQUIRE(f && exported(f, NULL, false), "%s", mc_last_error());
    struct mc_code *code = code_around(1, "");
    any_function *set = function_of(code, "set"), *call = function_of(code, "call_0");
    REQUIRE(set && call, "no code");
    float model[64] = { 0 }, x[15], y = 0, first;
    double d[15] = { 0 };
    for (int i = 0; i < 15; i++) {
        x[i] = (float)i;
    }
    ((setting *)set)(model);
    first = model[0];
    static const struct { float v[3]; int status; float y, added; } rows[] = {
        { { 1, 4, 0 }, 0, 12, 12 }, { { -2, 9, 0 }, 0, -2, 13 }, { { 1, 9, 0 }, 1, 0, 13 }, { { -3, -9, 0 }, 0, -3, 14 } };
    for (size_t i = 0; i < NELEM(rows); i++) {
        void *p[4] = { x, d, (void *)rows[i].v, &y };
        const int status = ((calling *)call)(model, NULL, p);
        CHECK(status == rows[i].status, "row %zu: %d", i, status);
        CHECK(status || y == rows[i].y, "row %zu: %g", i, (double)y);
        CHECK(fabsf(model[0] - first - rows[i].added) < 1e-4f, "row %zu: W is %g, it was %g", i,
              (double)model[0], (double)first);
    }
    mc_code_unref(&code);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* The bytes that the header says. */
static long long memory_of(const char *outputs)
{
    long long bytes = -1;
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, NULL, outputs, NULL, NULL);
    if (f && exported(f, NULL, false)) {
        char *text = text_of("f.h");
        const char *at = strstr(text, "F_MEMORY ");
        bytes = at ? strtoll(at + strlen("F_MEMORY "), NULL, 10) : -1;
        free(text);
    }
    mc_function_free(f);
    mc_graph_free(g);
    return bytes;
}

TEST(sides_share_memory)
{
    NEEDS_COMPILER();
    const long long none = memory_of("ifelse(v[0] > 0, d[0, 0], d[0, 1])"),
                    one = memory_of("ifelse(v[0] > 0, sum(sort(d, axis=0)), d[0, 1])"),
                    both = memory_of("ifelse(v[0] > 0, sum(sort(d, axis=0)), sum(sort(d, axis=1)))");
    CHECK(none >= 0 && one >= none + 15 * 8, "%lld bytes, with an array on one side %lld", none, one);
    CHECK(both == one, "%lld bytes, with an array on both sides %lld", one, both);
    drop_folder();
}

TEST(text_of_an_exported_choice)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, NULL, "ifelse(v[0] > 0, exp(x), ifelse(v[1] > 0, sqrt(abs(x)), -x))", NULL,
                              NULL);
    REQUIRE(f && exported(f, NULL, false), "%s", mc_last_error());
    char *text = text_of("f.c");
    static const char *const words[] = { "if (*(const uint8_t *)(", "} else {", "/*     t1 = exp(x) */",
                                         "const void *const in1[] = {", "void *const out2[] = {" };
    for (size_t i = 0; i < NELEM(words); i++) {
        CHECK(strstr(text, words[i]), "no '%s'", words[i]);
    }
    free(text);
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

/* ---- what is refused ---- */

/* An exported file has both sides.  The library finds out when it takes the side. */
TEST(sizes_of_a_side_that_do_not_fit)
{
    NEEDS_COMPILER();
    mc_graph *g = mc_graph_new();
    mc_function *f = compiled(g, NULL, "ifelse(v[0] > 0, sum(dot(x, x)), 1)", NULL, NULL);
    mc_export_function at = { f, "run", sizes[0] };
    CHECK(f && mc_export_c(in_folder("f.c"), 1, &at) == MC_ESHAPE && strstr(mc_last_error(), "dot"), "%s",
          mc_last_error());
    CHECK(access(in_folder("f.c"), F_OK) != 0, "a file is there");
    at.shapes = "x[3, 3], d[1, 1], v[1]";
    CHECK(f && mc_export_c(in_folder("f.c"), 1, &at) == MC_OK, "%s", mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);
    drop_folder();
}

TEST(choices_that_are_not_exported)
{
    NEEDS_COMPILER();
    static const struct { const char *outputs, *says; } rows[] = {
        { "ifelse(v[0] > 0, x[1:], x)", "sizes of f depend on data" },
        { "ifelse(v[0] > 0, x[x > 0], x[0])", "sizes of f depend on data" },
        { "ifelse(v[0] > 0, print_(x), x)", "print_" },
        { "scan(r in x, h from 0.0f32: h = h + ifelse(h > 0, sum(r[r > 0]), 1); yield h)", "sizes of f depend on data" },
        { "ifelse(v[0] > 0, sum(x[x > 0]), 1)", "sizes of f depend on data" },
        { "ifelse(v[0] > 0, sum(v[:cast(v[1], 'int64')]), 1)", "sizes of f depend on data" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_function *f = compiled(g, NULL, rows[i].outputs, NULL, NULL);
        mc_export_function at = { f, "run", sizes[0] };
        CHECK(f && mc_export_c(in_folder("f.c"), 1, &at) == MC_EUNSUPPORTED &&
                  strstr(mc_last_error(), rows[i].says),
              "%s: %s", rows[i].outputs, mc_last_error());
        CHECK(access(in_folder("f.c"), F_OK) != 0 && access(in_folder("f.h"), F_OK) != 0, "a file is there");
        mc_function_free(f);
        mc_graph_free(g);
    }
    drop_folder();
}

TEST(choices_are_exported_without_memory)
{
    NEEDS_COMPILER();
    exported_without_memory("ifelse(v[0] > 0, exp(x), ifelse(v[1] > 0, sort(x), -x)), "
                            "scan(r in x, h from v: h = ifelse(sum(r) > 0, h + r, h); yield h)");
}
