/* t_column_sums.c: sums over rows that ride along with a row kernel, against the reference. */
#include "agree.h"
#include "sample.h"

static const struct {
    int rank;
    int64_t dims[4];
    const char *out[4];
} cases[] = {
    { 2,
      { 300, 33 },
      { "softmax(x) * v", "sum(v, axis=0)", "sum(softmax(x) * v, axis=0)", "sum(x, axis=1)" } },
    { 2,
      { 1, 7 },
      { "x - mean(x, axis=1, keepdims=True)", "sum(x - mean(x, axis=1, keepdims=True), axis=0)" } },
    { 2,
      { 0, 7 },
      { "x - mean(x, axis=1, keepdims=True)", "sum(x - max(x, axis=1, keepdims=True), axis=0)" } },
    { 2,
      { 129, 1600 },
      { "layer_norm(x) * v", "sum(layer_norm(x) * v, axis=0, keepdims=True)", "sum(x, axis=0) + 1" } },
    { 3,
      { 20, 11, 18 },
      { "softmax(x)", "sum(softmax(x) * v, axis=[0, 1])", "sum(v, axis=[0, 1], keepdims=True)" } },
    { 3,
      { 5, 40, 16 },
      { "x / sum(v, axis=[1, 2], keepdims=True)", "sum(x * v, axis=0)",
        "sum(x / sum(v, axis=[1, 2], keepdims=True), axis=0)" } },
    { 3,
      { 6, 5, 16 },
      { "softmax(dimshuffle(x, [1, 0, 2]))", "sum(softmax(dimshuffle(x, [1, 0, 2])), axis=[0, 1])" } },
};

TEST(tallies_agree_with_the_reference)
{
    static const mc_dtype dtypes[] = { MC_FLOAT32, MC_FLOAT64 };
    static const char *const modes[] = { "FAST_RUN", "DEBUG" };
    for (size_t c = 0; c < NELEM(cases) * 4; c++) {
        size_t i = c / 4;
        struct agree a = { .scale = 400 };
        agree_input(&a, "x", sample(dtypes[c % 2], cases[i].rank, cases[i].dims, -1, 1), 0);
        agree_input(&a, "v", sample(dtypes[c % 2], cases[i].rank, cases[i].dims, .5, 1), 0);
        for (size_t k = 0; k < NELEM(cases[i].out) && cases[i].out[k]; k++) {
            CHECK(!mc_is_error(agree_output(&a, cases[i].out[k])), "%s", mc_error(a.g));
        }
        const char *wrong = agree_in(&a, modes[c / 2 % 2], 1 + (int)(c % 2));
        CHECK(!wrong, "%s and its like, %s, in %s: %s", cases[i].out[0], mc_dtype_name(dtypes[c % 2]),
              modes[c / 2 % 2], wrong);
        agree_free(&a);
    }
}

/* A layer normalisation with all its gradients walks over its operands once. */
TEST(a_normalisation_and_its_gradients_are_one_kernel)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, ?]; input w float32[?]; input b float32[?]; input v float32[?, ?]; y = "
                  "layer_norm(x, w, b); c = sum(y * v)");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x, w, b, v", .outputs = "y, grad(c, x), grad(c, w), grad(c, b)" });
    REQUIRE(f, "%s", mc_error(g));
    int kernels = 0;
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        kernels += strcmp(mc_function_step(f, i).kind, "kernel") == 0;
    }
    CHECK(kernels == 1, "%d kernels", kernels);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(tallies_do_not_depend_on_threads)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, ?]; s = softmax(x); t = sum(s * x, axis=0)");
    mc_array *x = sample(MC_FLOAT32, MC_SHAPE(1000, 50), -1, 1), *want = NULL;
    for (int threads = 1; threads < 4; threads++) {
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "s, t", .threads = threads });
        REQUIRE(f, "%s", mc_error(g));
        mc_array *s = NULL, *t = NULL;
        mc_arg in[] = { mc_arg_array(x) }, out[] = { mc_arg_slot(&s), mc_arg_slot(&t) };
        CHECK(mc_call_args(f, 1, in, 2, out) == MC_OK, "%s", mc_last_error());
        CHECK(!want || mc_array_differs(t, want, 0, 0) < 0, "%d threads give other bits", threads);
        mc_array_unref(&s);
        want ? mc_array_unref(&t) : (void)(want = t);
        mc_function_free(f);
    }
    mc_array_unref(&want);
    mc_array_unref(&x);
    mc_graph_free(g);
}
