/* t_portable.c: the flag portable: kernels have the same bits whatever compiler builds them, for whatever
 * instructions. */
#include "agree.h"
#include "sample.h"

#include <string.h>

/* Each of these is a kernel or a few: rows, columns, everything, elements; sums, products, extremes,
 * positions; functions with a bound; column sums of a row kernel. */
static const char *const formulas[] = {
    "sum(x, axis=1)",
    "softmax(x)",
    "layer_norm(x)",
    "mean(x)",
    "var(x, axis=1)",
    "max(x, axis=1) - min(x, axis=1)",
    "argmax(x, axis=1)",
    "argmin(x, axis=0)",
    "argmax(x)",
    "max(abs(x))",
    "logsumexp(x, axis=1)",
    "prod(1 + x * 1e-3, axis=1)",
    "any(x > 1.9, axis=1)",
    "all(x < 1.9)",
    "sum(x, axis=0)",
    "cumsum(x, axis=0)",
    "logsoftmax(x, axis=0)",
    "sum(softmax(x) * x, axis=0)",
    "tanh(x) * exp(x) + 1",
    "erf(x) - log1p(abs(x)) * x",
    "pow(abs(x), x) + expm1(x) * x",
    "sum(sin(x) * x, axis=1)",
    "sum(cos(3 * x + 1))",
    "sum(x > 0, axis=1)",
    "sum(x[::-1, ::2] * x[:, ::2], axis=1)",
};

/* The first few are compared in the everyday tests. */
static const struct {
    const char *cc, *cflags, *isa;
} ways[] = {
    { "cc", "", "avx2" },      { "cc", "", "avx512" },  { "cc", "", "sse2" },    { "clang", "-O3", "avx2" },
    { "cc", "-O3", "native" }, { "cc", "-O1", "avx2" }, { "cc", "-O3", "sse2" }, { "clang", "", "avx512" },
};
enum { FEW_WAYS = 4 };

static bool can_run(const char *isa)
{
    const struct mc_cpu *cpu = mc_cpu();
    return (strcmp(isa, "avx512") != 0 || cpu->avx512f) && (strcmp(isa, "avx2") != 0 || cpu->avx2);
}

static void compile_each_way(struct agree *a, size_t n, mc_function **f)
{
    for (size_t w = 0; w < n; w++) {
        mc_flag_set("cc", ways[w].cc);
        mc_flag_set("cflags", ways[w].cflags);
        mc_flag_set("cpu.isa", ways[w].isa);
        if (mc_cc_present() && can_run(ways[w].isa)) {
            f[w] = agree_compile(a, NULL, 1 + (int)(w % 3));
            CHECK(f[w], "%s %s %s: %s", ways[w].cc, ways[w].cflags, ways[w].isa, mc_error(a->g));
        }
    }
    mc_flag_set("cc", "cc");
    mc_flag_set("cflags", "");
    mc_flag_set("cpu.isa", "native");
}

/* Compares all results of the first n_ways of ways[], and the first way's with the reference. */
static void each_way_has_the_same_bits(mc_dtype d, size_t n_ways)
{
    mc_flag_set("device", "cpu");
    mc_flag_set("portable", "True");
    static const int64_t sizes[] = { 1, 15, 16, 17, 100, 127, 1000, 5000 };
    struct agree a = { .scale = 400 };
    mc_function *f[NELEM(ways)] = { NULL };
    agree_input(&a, "x", sample(d, 2, (int64_t[]){ 1, 1 }, -2, 2), 0);
    for (size_t i = 0; i < NELEM(formulas); i++) {
        CHECK(!mc_is_error(agree_output(&a, formulas[i])), "%s: %s", formulas[i], mc_error(a.g));
    }
    compile_each_way(&a, n_ways, f);
    for (size_t k = 0; k < 2 * NELEM(sizes); k++) {
        const int64_t n = sizes[k / 2], dims[] = { k % 2 ? n : 5, k % 2 ? 7 : n };
        mc_array *have[NELEM(ways)][AGREE_MOST] = { { 0 } };
        mc_array_unref(&a.value[0]);
        a.value[0] = sample(d, 2, dims, -2, 2);
        for (size_t w = 0; w < NELEM(ways); w++) {
            if (!f[w]) {
                continue;
            }
            CHECK(agree_call(&a, f[w], have[w]) == MC_OK, "%s", mc_last_error());
            for (int i = 0; i < a.nout && f[0]; i++) {
                CHECK(have[0][i] && have[w][i] && mc_array_same_bits(have[0][i], have[w][i]),
                      "%s of %s (%lld, %lld) differs: %s %s, %s", formulas[i], mc_dtype_name(d),
                      (long long)dims[0], (long long)dims[1], ways[w].cc, ways[w].cflags, ways[w].isa);
            }
        }
        const char *wrong = f[0] ? agree_calls(&a, f[0], "portable") : NULL;
        CHECK(!wrong, "%s (%lld, %lld): %s", mc_dtype_name(d), (long long)dims[0], (long long)dims[1], wrong);
        for (size_t w = 0; w < NELEM(ways); w++) {
            drop(have[w], a.nout);
        }
    }
    for (size_t w = 0; w < NELEM(ways); w++) {
        mc_function_free(f[w]);
    }
    agree_free(&a);
    mc_flag_set("portable", "False");
}

TEST(portable_kernels_have_the_same_bits)
{
    each_way_has_the_same_bits(MC_FLOAT32, FEW_WAYS);
    each_way_has_the_same_bits(MC_FLOAT64, FEW_WAYS);
}

TEST_FULL(portable_kernels_have_the_same_bits_with_more_compilers)
{
    each_way_has_the_same_bits(MC_FLOAT32, NELEM(ways));
    each_way_has_the_same_bits(MC_FLOAT64, NELEM(ways));
    each_way_has_the_same_bits(MC_BFLOAT16, NELEM(ways));
}

/* The text leaves no order to the compiler; without the flag it does. */
TEST(portable_kernels_have_lanes)
{
    static const char *const texts[] = { "fp-contract=off", "for (i64 i = 0; i < 8; i++)", "reduction(" };
    mc_flag_set("device", "cpu");
    for (int on = 0; on < 2; on++) {
        mc_graph *g = mc_graph_new();
        mc_flag_set("portable", on ? "True" : "False");
        mc_formula(g, "input x float64[?, ?]");
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "softmax(x), mean(x)" });
        CHECK(f, "%s", mc_error(g));
        for (size_t i = 0; i < NELEM(texts) && f; i++) {
            const bool has = strstr(f->code->source, texts[i]);
            CHECK(has == (i < 2 ? on : !on), "portable=%d: '%s'", on, texts[i]);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_flag_set("portable", "False");
}
