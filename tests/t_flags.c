/* t_flags.c: flags whose effect is on functions: set, each changes what it says; set back, nothing stays. */
#include "plain.h"
#include <math.h>
#include <monochord.h>
#include <stdlib.h>
#include <string.h>

/* What a program sees of one formula over x = [-0, 2] (float32), i = 3 (int32) and a stream: text that tests
 * compare. */
static void look(const char *formula, char *out, size_t size)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_input(g, "i", MC_INT32, 0);
    mc_random(g, "rng", MC_SEED_OF_FLAG);
    mc_node *n = mc_formula(g, formula);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, i", .output = &n, .noutput = 1 });
    mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ -0.0f, 2 }), *y = NULL;
    if (!f || mc_call(f, MC_IN(x, 3), MC_OUT(&y)) < 0) {
        snprintf(out, size, "error: %s", f ? mc_last_error() : mc_error(g));
    } else {
        mc_array *d = mc_array_cast(y, MC_FLOAT64);
        const double *v = mc_array_data(d);
        bool timed = false;
        for (int k = 0; k < mc_function_nsteps(f); k++) {
            timed |= mc_function_step(f, k).calls > 0;
        }
        snprintf(out, size, "%s %g%s", mc_dtype_name(mc_array_dtype(y)), v[0], timed ? " timed" : "");
        mc_array_unref(&d);
    }
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(flags_do_what_they_say)
{
    static const struct { const char *formula, *without, *flag, *value, *with; } rows[] = {
        /* formula without flag value with */
        { "i / 2 + x[0]",                   "float64 1.5",              "floatX",                "float32",   "float32 1.5" },
        { "sum(uniform(rng, [9])) * i + x[0]", "",                      "seed",                  "777",       "!" },
        { "sum(x) + 1",                     "error: compile: input 'i' is not used", "on_unused_input", "ignore", "float32 3" },
        { "sum(x) + 1",                     "error: compile: input 'i' is not used", "on_unused_input", "warn", "float32 3" },
        { "(x + 1) * i",                    "float64 3",                "profile",               "True",      "float64 3 timed" },
        { "(x + 1) * i",                    "float64 3",                "mode",                  "FAST_COMPILE", "float64 3" },
        { "log(x) * i",                     "float64 -inf",             "mode",                  "NANGUARD",  "error: NANGUARD" },
        { "(x + 1) * i",                    "float64 3",                "vectors",               "False",     "float64 3" },
        { "(x + 1) * i",                    "float64 3",                "cc",                    "",          "float64 3" },
        { "(x + 1) * i",                    "float64 3",                "allow_gc",              "True",      "float64 3" },
        { "(x + 1) * i",                    "float64 3",                "threads",               "1",         "float64 3" },
        { "(x + 1) * i",                    "float64 3",                "mode",                  "DEBUG",     "float64 3" },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char without[600], with[600], after[600], *before = strdup(mc_flag_get(rows[k].flag));
        look(rows[k].formula, without, sizeof without);
        CHECK(mc_flag_set(rows[k].flag, rows[k].value) == MC_OK, "%s", mc_last_error());
        look(rows[k].formula, with, sizeof with);
        mc_flag_set(rows[k].flag, before);
        look(rows[k].formula, after, sizeof after);
        CHECK(strncmp(without, rows[k].without, strlen(rows[k].without)) == 0, "%s: %s, not %s",
              rows[k].formula, without, rows[k].without);
        CHECK(*rows[k].with == '!' ? strcmp(with, without) != 0 && !strstr(with, "error")
                                   : strncmp(with, rows[k].with, strlen(rows[k].with)) == 0,
              "%s with %s=%s: %s, not %s", rows[k].formula, rows[k].flag, rows[k].value, with, rows[k].with);
        CHECK(strcmp(without, after) == 0, "%s: %s, and after %s was set back %s", rows[k].formula, without,
              rows[k].flag, after);
        free(before);
    }
}

/* x * 0 is 0 for all finite x: a rule, unless the flag says that infinities count. */
/* It was True or False, in all the ways that these are written, before it had a third word. */
TEST(deterministic_has_three_words)
{
    static const struct { const char *set, *is; } rows[] = {
        { "strict", "strict" }, { "False", "False" }, { "true", "True" }, { "0", "False" },
        { "on", "True" },       { "no", "False" },    { "1", "True" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(mc_flag_set("deterministic", rows[i].set) == MC_OK &&
                  strcmp(mc_flag_get("deterministic"), rows[i].is) == 0,
              "deterministic=%s is %s: %s", rows[i].set, mc_flag_get("deterministic"), mc_last_error());
    }
    CHECK(mc_flag_set("deterministic", "strickt") == MC_EARG &&
              strstr(mc_last_error(), "did you mean 'strict'?"),
          "%s", mc_last_error());
    CHECK(mc_flag_set("deterministic", "True") == MC_OK, "%s", mc_last_error());
}

TEST(strict_math_keeps_infinities)
{
    for (int strict = 0; strict < 2; strict++) {
        mc_flag_set("strict_math", strict ? "True" : "False");
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 0);
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x", .outputs = "x - x + 1", .on_unused = "ignore" });
        double y = 0;
        CHECK(f && mc_call(f, MC_IN((double)INFINITY), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
        CHECK(strict ? isnan(y) : y == 1, "strict_math=%d: inf - inf + 1 is %g", strict, y);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_flag_set("strict_math", "False");
}

/* log(sum(exp(x))) of one element is x: there is no maximum to subtract. */
TEST(strict_math_knows_sums_of_one)
{
    static const char *const formulas[] = { "logsumexp(x[0, 0])", "logsumexp(x)", "logsumexp(x, axis=1)", "log(sum(exp(x[0])))", "x * exp(x) / sum(exp(x))",
                                            "sum(x * exp(x)) / sum(exp(x))", "log(exp(x) / sum(exp(x))) + x", "log(softmax(x)) + x" };
    mc_flag_set("strict_math", "True");
    for (size_t i = 0; i < NELEM(formulas); i++) {
        for (int k = 0; k < 3; k++) {
            const float number = k == 0 ? 1000.0f : k == 1 ? -1000.0f : 0.5f;
            mc_graph *g = mc_graph_new();
            mc_input_sized(g, "x", MC_FLOAT32, 2, (int64_t[]){ 1, 1 });
            mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = formulas[i] });
            mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(1, 1), &number), *y = NULL;
            if (CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", formulas[i],
                      mc_last_error())) {
                const double have = mc_load_f64(MC_FLOAT32, y->data);
                CHECK(have >= (double)number && have <= (double)number, "%s of %g: %g", formulas[i],
                      (double)number, have);
            }
            mc_array_unref(&x);
            mc_array_unref(&y);
            mc_function_free(f);
            mc_graph_free(g);
        }
    }
    mc_flag_set("strict_math", "False");
}

/* Numbers of every C type go in and come out, and a function says how many of each it has and what memory it
 * took. */
TEST(numbers_of_every_c_type)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "a", MC_FLOAT64, 0);
    mc_input(g, "b", MC_INT64, 0);
    mc_function *f = mc_compile(
        g,
        &(mc_spec){ .inputs = "a, b", .outputs = "cast(a + 1, float32), a + b, cast(b * 2, int32), b * 3" });
    REQUIRE(f, "%s", mc_error(g));
    float s = 0;
    double d = 0;
    int32_t i = 0;
    int64_t l = 0;
    CHECK(mc_function_ninputs(f) == 2 && mc_function_noutputs(f) == 4, "%d and %d", mc_function_ninputs(f),
          mc_function_noutputs(f));
    CHECK(mc_call(f, MC_IN(0.5f, 7), MC_OUT(&s, &d, &i, &l)) == MC_OK, "%s", mc_last_error());
    CHECK(s == 1.5f && d == 7.5 && i == 14 && l == 21, "%g %g %d %lld", (double)s, d, i, (long long)l);
    CHECK(mc_call(f, MC_IN(0.25, INT64_C(1) << 40), MC_OUT(&s, &d, &i, &l)) == MC_OK, "%s", mc_last_error());
    CHECK(s == 1.25f && l == INT64_C(3) << 40, "%g %lld", (double)s, (long long)l);
    CHECK(mc_synchronize() == MC_OK, "%s", mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);

    g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "sort(tanh(x), axis=0)" });
    REQUIRE(f, "%s", mc_error(g));
    CHECK(mc_function_memory(f) == 0, "not planned yet, but %zu bytes", mc_function_memory(f));
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(100, 100)), *y = NULL;
    CHECK(mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK && mc_function_memory(f) >= 40000, "%zu bytes",
          mc_function_memory(f));
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}
