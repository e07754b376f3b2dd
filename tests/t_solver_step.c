/* t_solver_step.c: heavy work as steps of functions: convolutions with what comes before and behind them,
 * against the reference of the whole graph. */
#include "agree.h"
#include "sample.h"

static const char *const modes[] = { "FAST_RUN", "FAST_COMPILE", "DEBUG" };

static mc_array *values(mc_dtype d, int rank, const int64_t *dims)
{
    return sample(d, rank, dims, -1, 1);
}

/* Of an x alone. */
static const struct {
    mc_dtype dtype;
    int rank;
    int64_t x[5];
    const char *out[5];
} alone[] = {
    { MC_FLOAT32,
      4,
      { 3, 5, 12, 13 },
      { "max_pool_2d(x, [2, 2])", "grad(sum(sqr(max_pool_2d(x, [2, 2]))), x)",
        "pool(x, [3, 3], stride=[2, 2], pad=[1, 1])" } },
    { MC_FLOAT32,
      4,
      { 3, 5, 12, 13 },
      { "pool(x, [3, 2], mode=\"average_inc_pad\", pad=[1, 0])", "pool(x, [3, 2], mode=\"sum\")",
        "grad(sum(sqr(pool(x, [3, 2], mode=\"average_exc_pad\"))), x)", "tanh(pool(x, [2, 2])) + 1",
        "grad(sum(sqr(pool(x, [2, 2], ties=\"all\"))), x)" } },
    { MC_FLOAT64, 5, { 2, 2, 6, 7, 8 }, { "pool(x, [2, 2, 2])", "grad(sum(tanh(pool(x, [2, 3, 2]))), x)" } },
    { MC_FLOAT16, 4, { 2, 4, 6, 6 }, { "pool(x, [2, 2])", "lrn(x)" } },
    { MC_FLOAT32,
      4,
      { 5, 8, 8, 4 },
      { "max_pool(x, ds=3, stride=2)", "grad(sum(sqr(max_pool(x, ds=3, stride=2))), x)" } },
    { MC_FLOAT32, 4, { 2, 11, 4, 5 }, { "lrn(x)", "grad(sum(sqr(lrn(x, n=5, alpha=0.1))), x)", "lrn(x.T)" } },
    { MC_FLOAT32, 4, { 0, 5, 4, 4 }, { "pool(x, [2, 2])", "lrn(x)" } },
    /* finished by a map, by every solver: rows, lanes in parts, whole planes, packed; marks beside; what is
     * spread */
    { MC_FLOAT32,
      4,
      { 7, 9, 21, 22 },
      { "relu(pool(x, [3, 3], stride=[2, 2], pad=[1, 1]) - 0.5) + arange(11)",
        "grad(sum(tanh(max_pool_2d(x, [2, 2], ignore_border=False) * 2)), x)",
        "tanh(pool_grad(x, pool(x, [2, 2], mode='sum'), [2, 2], mode='sum')) * x",
        "exp(max_pool_2d(x, [2, 2])) + x[:, :, :11, :11][:, :, :10, :11][:, :, :10]",
        "tanh(pool_pick(x, x * x, 3, 1, 1, layout='bc01')) * x" } },
    { MC_FLOAT32,
      4,
      { 2, 5, 6, 200 },
      { "sqr(pool(x, [2, 3], axis=[1, 2])) + arange(200)",
        "grad(sum(tanh(pool(x, [2, 2], axis=[1, 2]))), x) * x",
        "tanh(pool(x, [2, 2], axis=[1, 2], mode='average_exc_pad'))" } },
    { MC_FLOAT32,
      4,
      { 6, 5, 7, 7 },
      { "relu(pool(x, [7, 7], mode='average_exc_pad') + 0.1)",
        "tanh(pool_grad(x, pool(x, [7, 7], mode='sum'), [7, 7], mode='sum')) - x" } },
    { MC_FLOAT16, 4, { 3, 2, 6, 6 }, { "relu(pool(x, [2, 2])) * 3" } },
    { MC_FLOAT32, 4, { 0, 5, 4, 4 }, { "tanh(pool(x, [2, 2]))" } },
    { MC_FLOAT64,
      5,
      { 2, 3, 6, 4, 5 },
      { "exp(-pool(x, [2, 2], axis=[0, 3]))", "tanh(pool(x.T, [2, 2], mode='sum'))" } },
};

TEST(pooling_and_norms_agree_with_their_reference)
{
    for (size_t c = 0; c < NELEM(alone) * NELEM(modes); c++) {
        size_t i = c / NELEM(modes);
        struct agree a = { .scale = 400 };
        agree_input(&a, "x", values(alone[i].dtype, alone[i].rank, alone[i].x), 0);
        for (size_t k = 0; k < NELEM(alone[i].out) && alone[i].out[k]; k++) {
            CHECK(!mc_is_error(agree_output(&a, alone[i].out[k])), "%s", mc_error(a.g));
        }
        const char *wrong = agree_in(&a, modes[c % NELEM(modes)], 2);
        CHECK(!wrong, "%s and its like in %s: %s", alone[i].out[0], modes[c % NELEM(modes)], wrong);
        agree_free(&a);
    }
}

/* x: images, w: filters, b: one for each filter, y: shaped as the result. */
static const struct {
    mc_dtype dtype;
    int rank;
    int64_t x[5], w[5], b;
    const char *out[5];
} cases[] = {
    { MC_FLOAT32,
      4,
      { 2, 3, 9, 11 },
      { 8, 3, 3, 3 },
      8,
      { "conv2d(x, w)", "relu(conv2d(x, w, border_mode=\"half\") + b[newaxis, :, newaxis, newaxis])" } },
    { MC_FLOAT32,
      4,
      { 2, 3, 9, 11 },
      { 8, 3, 5, 3 },
      8,
      { "tanh(conv(x, w, border=1, stride=[2, 1], flip=False) * 2)", "grad(sum(sqr(tanh(conv2d(x, w)))), w)",
        "grad(sum(sqr(tanh(conv2d(x, w)))), x)", "w - 0.1 * grad(sum(sqr(tanh(conv2d(x, w)))), w)" } },
    { MC_FLOAT64,
      4,
      { 1, 4, 8, 8 },
      { 6, 2, 3, 3 },
      6,
      { "exp(-conv(x, w, groups=2, dilation=2))", "grad(sum(exp(conv(x, w, groups=2))), x)" } },
    { MC_FLOAT16, 4, { 2, 2, 7, 7 }, { 4, 2, 3, 3 }, 4, { "conv2d(x, w)" } },
    { MC_BFLOAT16, 4, { 2, 2, 7, 7 }, { 4, 2, 3, 3 }, 4, { "conv2d(x, w) + 1" } },
    { MC_FLOAT32,
      4,
      { 5, 9, 9, 4 },
      { 5, 3, 3, 8 },
      4,
      { "relu(conv(x, w, layout=\"c01b\"))", "grad(sum(conv(x, w, layout=\"c01b\", stride=2) ** 2), w)" } },
    { MC_FLOAT32,
      4,
      { 4, 9, 9, 5 },
      { 8, 3, 3, 5 },
      8,
      { "conv(x, w, layout=\"b01c\") + b", "grad(sum(conv(x, w, layout=\"b01c\") ** 3), x)" } },
    { MC_FLOAT32,
      5,
      { 2, 3, 5, 6, 7 },
      { 4, 3, 2, 3, 2 },
      4,
      { "sqr(conv3d(x, w))", "grad(sum(tanh(conv3d(x, w))), w)" } },
    { MC_FLOAT32, 3, { 3, 4, 20 }, { 6, 4, 5 }, 6, { "sqr(conv1d(x, w)) + b[newaxis, :, newaxis]" } },
    { MC_FLOAT32,
      4,
      { 0, 3, 9, 11 },
      { 8, 3, 3, 3 },
      8,
      { "relu(conv2d(x, w))", "grad(sum(conv2d(x, w)), w)" } },
    { MC_FLOAT32,
      4,
      { 2, 3, 9, 11 },
      { 8, 3, 3, 3 },
      8,
      { "conv2d(x.T.T[:, :, ::-1], w[:, :, ::2])", "conv2d(x, w) * conv2d(x, w, filter_flip=False)" } },
    { MC_FLOAT32,
      4,
      { 2, 3, 9, 11 },
      { 8, 3, 3, 3 },
      8,
      { "grad(sum(conv(x, w[:, :, ::-1, ::-1]) ** 3), x)", "grad(sum(conv(x, w[:, :, ::-1, ::-1]) ** 3), w)",
        "conv(x, w[:, :, ::-1])", "grad(sum(conv(x, w[:, :, ::-1]) ** 3), w)",
        "conv_inputs(w[:, :, ::-1, ::-1], conv(x, w), shape(x))" } },
};

TEST(convolutions_agree_with_their_reference)
{
    for (size_t c = 0; c < NELEM(cases) * NELEM(modes); c++) {
        size_t i = c / NELEM(modes);
        struct agree a = { .scale = 400 };
        agree_input(&a, "x", values(cases[i].dtype, cases[i].rank, cases[i].x), 0);
        agree_input(&a, "w", values(cases[i].dtype, cases[i].rank, cases[i].w), 0);
        agree_input(&a, "b", values(cases[i].dtype, 1, &cases[i].b), 0);
        for (size_t k = 0; k < NELEM(cases[i].out) && cases[i].out[k]; k++) {
            CHECK(!mc_is_error(agree_output(&a, cases[i].out[k])), "%s", mc_error(a.g));
        }
        const char *wrong = agree_in(&a, modes[c % NELEM(modes)], 2);
        CHECK(!wrong, "%s and its like in %s: %s", cases[i].out[0], modes[c % NELEM(modes)], wrong);
        agree_free(&a);
    }
}

/* What finishes a product may read a value that dies there; the product is made before it is read. */
TEST(a_finisher_reads_what_dies_with_it)
{
    static const char *const outs[] = { "tanh(dot(x, w)) * cumsum(z, axis=0)", "relu(dot(x, w) * cumsum(z, axis=1)) - cumsum(z, axis=0)",
                                        "tanh(conv(q, u)) * cumsum(q, axis=2)" };
    for (size_t c = 0; c < NELEM(outs) * NELEM(modes); c++) {
        struct agree a = { .scale = 400 };
        agree_input(&a, "x", values(MC_FLOAT32, MC_SHAPE(40, 40)), 0);
        agree_input(&a, "w", values(MC_FLOAT32, MC_SHAPE(40, 40)), 0);
        agree_input(&a, "z", values(MC_FLOAT32, MC_SHAPE(40, 40)), 0);
        agree_input(&a, "q", values(MC_FLOAT32, MC_SHAPE(1, 1, 40, 40)), 0);
        agree_input(&a, "u", values(MC_FLOAT32, MC_SHAPE(1, 1, 1, 1)), 0);
        CHECK(!mc_is_error(agree_output(&a, outs[c / NELEM(modes)])), "%s", mc_error(a.g));
        CHECK(!mc_is_error(agree_output(&a, "sum(u) + sum(q) + sum(x) + sum(w) + sum(z)")), "%s",
              mc_error(a.g)); /* no input is unused */
        const char *wrong = agree_in(&a, modes[c % NELEM(modes)], 2);
        CHECK(!wrong, "%s in %s: %s", outs[c / NELEM(modes)], modes[c % NELEM(modes)], wrong);
        agree_free(&a);
    }
}

/* The kinds of all steps, separated by spaces. */
static void check_steps(const mc_function *f, const char *out, const char *want)
{
    struct mc_str steps = { 0 };
    for (int k = 0; k < mc_function_nsteps(f); k++) {
        mc_str_addf(&steps, "%s%s", k ? " " : "", mc_function_step(f, k).kind);
    }
    CHECK(steps.s && strcmp(steps.s, want) == 0, "%s takes %s", out, steps.s ? steps.s : "no step");
    mc_str_free(&steps);
}

/* Views that flip or permute axes are read through strides: no step copies them. */
TEST(nothing_is_copied_for_a_convolution)
{
    static const struct { const char *out, *steps; } rows[] = {
        { "conv(x, w[:, :, ::-1, ::-1])",                                                            "conv" },
        { "conv(x, w[:, :, ::-1, ::-1][:, :, ::-1, ::-1])",                                          "conv" },
        { "conv(dimshuffle(dimshuffle(x, [0, 2, 3, 1]), [0, 3, 1, 2]), w)",                          "conv" },
        { "grad(sum(conv(x, w[:, :, ::-1, ::-1]) * y), w)",                                          "conv" },
        { "grad(sum(conv(x, w[:, :, ::-1, ::-1]) * y), x)",                                          "conv" },
        { "conv(dimshuffle(relu(dimshuffle(conv(x, w), [0, 2, 3, 1])), [0, 3, 1, 2]), v)",           "conv conv" },
        { "conv(dimshuffle(x, [0, 1, 3, 2]), w)",                                                    "view conv" },
        { "dimshuffle(conv(dimshuffle(x, [0, 2, 3, 1]), dimshuffle(w, [0, 2, 3, 1]), layout='b01c'), [0, 3, 1, 2])", "view view conv view" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[2, 3, 9, 9]; input w float32[4, 3, 3, 3]; input v float32[4, 4, 3, "
                      "3]; input y float32[2, 4, 7, 7]");
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "x, w, v, y", .outputs = rows[i].out, .on_unused = "ignore" });
        REQUIRE(f, "%s", mc_error(g));
        check_steps(f, rows[i].out, rows[i].steps);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(a_map_finishes_a_convolution)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 3, ?, ?]; input w float32[8, 3, 3, 3]; input b float32[8]");
    mc_function *f = mc_compile(
        g,
        &(mc_spec){ .inputs = "x, w, b", .outputs = "relu(conv2d(x, w) + b[newaxis, :, newaxis, newaxis])" });
    REQUIRE(f, "%s", mc_error(g));
    int convs = 0, kernels = 0;
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        convs += strcmp(mc_function_step(f, i).kind, "conv") == 0;
        kernels += strcmp(mc_function_step(f, i).kind, "kernel") == 0;
    }
    CHECK(convs == 1 && kernels == 0, "%d convolutions, %d kernels", convs, kernels);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Pooling, and what goes back through it, is finished by the map that follows: the steps of each formula. */
TEST(a_map_finishes_a_pooling)
{
    static const struct { const char *out, *steps; } rows[] = {
        { "relu(pool(x, [2, 2]) + b[newaxis, :, newaxis, newaxis])",                                           "view pool" },
        { "tanh(pool(conv(x, w) * 2, [2, 2], mode='sum')) - 1",                                                "conv pool" },
        { "tanh(pool(x, [3, 3], mode='average_inc_pad') + 1), pool(x, [2, 2])",                                "pool pool" },
        { "sqr(pool(dimshuffle(x, [0, 2, 3, 1]), [2, 2], axis=[1, 2]) + b)",                                   "view view pool" },
        { "y = pool(x, [2, 2]); cost = sum(sqr(tanh(y + 1))); grad(cost, x) * x",                              "pool pool" },
        { "pool(x, [2, 2]) + sum(pool(x, [2, 2]))",                                                            "pool kernel view kernel" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "input x float32[2, 3, 9, 9]; input w float32[4, 3, 3, 3]; input b float32[3]");
        const char *last = strrchr(rows[i].out, ';');
        if (last) {
            char before[128];
            snprintf(before, sizeof before, "%.*s", (int)(last - rows[i].out), rows[i].out);
            mc_formula(g, before);
        }
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w, b",
                                                   .outputs = last ? last + 1 : rows[i].out,
                                                   .on_unused = "ignore" });
        REQUIRE(f, "%s", mc_error(g));
        check_steps(f, rows[i].out, rows[i].steps);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(convolutions_without_memory)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 3, ?, ?]; input w float32[8, 3, 3, 3]");
    mc_array *x = values(MC_FLOAT32, MC_SHAPE(2, 3, 6, 6)), *w = values(MC_FLOAT32, MC_SHAPE(8, 3, 3, 3));
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x, w", .outputs = "tanh(conv2d(x, w))", .threads = 1 });
    REQUIRE(f && x && w, "%s", mc_error(g));
    ALLOC_FAIL_LOOP {
        mc_function *copy = mc_function_copy(f, true);
        mc_array *y = NULL;
        mc_arg in[] = { mc_arg_array(x), mc_arg_array(w) }, out[] = { mc_arg_slot(&y) };
        mc_status s = copy ? mc_call_args(copy, 2, in, 1, out) : MC_EMEMORY;
        CHECK(s == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
        mc_array_unref(&y);
        mc_function_free(copy);
    }
    mc_array_unref(&x);
    mc_array_unref(&w);
    mc_function_free(f);
    mc_graph_free(g);
}
