/* t_rows.c: kernels over rows that are one vector of the processor's, and those just longer, against the
 * reference. */
#include "agree.h"
#include "sample.h"

/* x (a matrix), v (its like), t (a class of each row): reductions of each kind, positions, NaN, sums that
 * ride along, one result for a row, results that several walks share. */
static const char *const formulas[][4] = {
    { "softmax(x)", "sum(v, axis=0)", "sum(softmax(x) * v, axis=0)" },
    { "argmax(x, axis=1)", "max(sqrt(x + 1.8), axis=1)", "min(x, axis=1)" },
    { "crossentropy_1hot(softmax(x), t)", "grad(sum(crossentropy_1hot(softmax(x), t)), x)" },
    { "x - mean(x, axis=1, keepdims=True)", "sum(sqr(x - mean(x, axis=1, keepdims=True)), axis=1)" },
    { "layer_norm(x) * v", "sum(x, axis=1)" },
    { "x / sum(v, axis=1, keepdims=True)", "exp(x - max(v, axis=1, keepdims=True))" },
};

/* sized: the length of a row is promised, so one form alone is printed. */
static void check_rows(const char *const *out, int64_t n, unsigned sized, int threads)
{
    const int64_t dims[] = { 300, n };
    struct agree a = { .scale = 400 };
    mc_array *t = mc_array_new(MC_INT32, 1, dims);
    REQUIRE(t, "%s", mc_last_error());
    for (int64_t i = 0; i < dims[0]; i++) {
        ((int32_t *)mc_array_data(t))[i] = (int32_t)(i * 7 % n);
    }
    agree_input(&a, "x", sample(MC_FLOAT32, 2, dims, -2, 2), sized);
    agree_input(&a, "v", sample(MC_FLOAT32, 2, dims, .5, 1), sized);
    agree_input(&a, "t", t, 0);
    for (size_t k = 0; k < 4 && out[k]; k++) {
        CHECK(!mc_is_error(agree_output(&a, out[k])), "%s", mc_error(a.g));
    }
    const char *wrong = agree_in(&a, "FAST_RUN", threads);
    CHECK(!wrong, "%s and its like, rows of %lld%s: %s", out[0], (long long)n, sized ? ", promised" : "",
          wrong);
    agree_free(&a);
}

TEST(short_rows_agree_with_the_reference)
{
    static const int64_t lengths[] = { 1, 2, 3, 9, 10, 15, 16, 17, 31, 33 };
    for (size_t f = 0; f < NELEM(formulas); f++) {
        for (size_t i = 0; i < NELEM(lengths); i++) {
            check_rows(formulas[f], lengths[i], 0, 1 + (int)(i % 2));
        }
        check_rows(formulas[f], 10, 2, 2);
        check_rows(formulas[f], 16, 2, 1);
        check_rows(formulas[f], 17, 2, 2);
    }
}

/* Reduced axes that lie apart are walked one inside the other: a row of them is no vector, though it be
 * short. */
TEST(short_rows_in_pieces_agree_with_the_reference)
{
    static const int64_t dims[] = { 3, 40, 4 };
    for (unsigned sized = 0; sized < 8; sized++) {
        struct agree a = { .scale = 400 };
        agree_input(&a, "x", sample(MC_FLOAT32, 3, dims, -2, 2), sized);
        agree_output(&a, "x - max(x, axis=[0, 2], keepdims=True)");
        agree_output(&a, "exp(x) / sum(exp(x), axis=[0, 2], keepdims=True)");
        const char *wrong = agree_in(&a, "FAST_RUN", 2);
        CHECK(!wrong, "sizes promised: %u: %s", sized, wrong);
        agree_free(&a);
    }
}

/* What is promised of a row decides which forms are printed. */
TEST(a_promised_length_leaves_out_a_form)
{
    static const struct { const char *type; bool vector, loop; } cases[] = {
        { "float32[?, ?]", true, true }, { "float32[?, 16]", true, false }, { "float32[?, 17]", false, true }, { "float64[?, 16]", false, true },
    };
    mc_flag_set("device", "cpu");
    for (size_t i = 0; i < NELEM(cases); i++) {
        char text[80];
        mc_graph *g = mc_graph_new();
        snprintf(text, sizeof text, "input x %s", cases[i].type);
        mc_formula(g, text);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "softmax(x)" });
        REQUIRE(f, "%s", mc_error(g));
        const char *source = mc_function_source(f);
        const bool wide = strstr(source, "VECTOR vf op_exp_v") != NULL;
        CHECK(!wide || (strstr(source, "v_load(a0, keep)") != NULL) == cases[i].vector,
              "%s: a row as one vector: %s", cases[i].type, source);
        CHECK(!wide || (strstr(source, "if (m >= e) break;") != NULL) == cases[i].loop,
              "%s: a row of any length: %s", cases[i].type, source);
        CHECK(wide || !cases[i].vector || !mc_cpu()->avx512f, "%s: not over vectors", cases[i].type);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
