/* t_function_limits.c: functions of very large graphs, and of those for which there is no memory. */
#include "function_words.h"

/* ---- large graphs ---- */

static double chain(int n)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = x, *one = mc_number(g, MC_FLOAT32, 1),
            *half = mc_number(g, MC_FLOAT32, 0.5);
    for (int i = 0; i < n; i++) {
        y = i % 2 ? mc_mul(mc_add(y, x), half) : mc_tanh(mc_add(y, one));
    }
    double start = mc_now();
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x", .output = &y, .noutput = 1, .mode = "FAST_COMPILE" }));
    double took = mc_now() - start;
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(3)), *r = NULL;
    if (fine(mc_call(f, MC_IN(a), MC_OUT(&r)))) {
        CHECK(isfinite(at(r, 2)) && at(r, 2) != 0, "%g", at(r, 2));
    }
    mc_array_unref(&a);
    mc_array_unref(&r);
    mc_function_free(f);
    mc_graph_free(g);
    return took;
}

TEST(a_chain_of_100000_nodes_compiles_in_linear_time)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    double few = chain(20000), many = chain(80000);
    CHECK(many < 10 * few + 0.2, "20,000 steps took %.2f s, 80,000 %.2f s", few, many);
}

TEST_FULL(a_long_chain_becomes_kernels)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = x;
    for (int i = 0; i < 3000; i++) {
        y = mc_add(mc_tanh(y), x);
    }
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(9)), *want = NULL, *have = NULL;
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .output = &y, .noutput = 1 }));
    fine(mc_eval(1, &x, &a, 1, &y, &want));
    if (fine(mc_call(f, MC_IN(a), MC_OUT(&have)))) {
        CHECK(mc_array_differs(have, want, 1e-4, 1e-4) < 0, "%g", at(have, 3));
    }
    CHECK(mc_function_nsteps(f) < 200, "%d steps", mc_function_nsteps(f));
    mc_array_unref(&a);
    mc_array_unref(&want);
    mc_array_unref(&have);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(a_sum_of_200_operands)
{
    mc_graph *g = mc_graph_new();
    mc_node *in[200], *y = NULL;
    mc_arg args[200];
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(10)), *r = NULL;
    for (int i = 0; i < 200; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        in[i] = mc_input(g, name, MC_FLOAT32, 1);
        y = y ? mc_add(y, in[i]) : in[i];
        args[i] = mc_arg_array(a);
    }
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .input = in, .ninput = 200, .output = &y, .noutput = 1 }));
    mc_arg out = mc_arg_slot(&r);
    fine(mc_call_args(f, 200, args, 1, &out));
    CHECK(r && at(r, 9) == 1800, "%g", r ? at(r, 9) : 0);
    mc_array_unref(&r);
    mc_function_free(f);
    y = mc_op(g, "join", 200, in, "axis=0"); /* more operands than any fixed list holds */
    f = made(
        g, mc_compile(
               g, &(mc_spec){ .input = in, .ninput = 200, .outputs = "0 * 1", .output = &y, .noutput = 1 }));
    out = mc_arg_slot(&r);
    fine(mc_call_args(f, 200, args, 2, (mc_arg[]){ mc_arg_none(NULL), out }));
    CHECK(r && r->dims[0] == 2000 && at(r, 1999) == 9, "%lld", r ? (long long)r->dims[0] : 0);
    mc_array_unref(&r);
    mc_array_unref(&a);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- memory runs out ---- */

static void train(mc_array *x, mc_array *t)
{
    mc_graph *g = mc_graph_new();
    mc_function *f = NULL;
    double cost = 0;
    if (g) {
        mc_input(g, "x", MC_FLOAT32, 2);
        mc_input(g, "t", MC_INT32, 1);
        mc_shared_zeros(g, "W", MC_FLOAT32, MC_SHAPE(3, 2));
        mc_formula(g, "p = softmax(dot(x, W))");
        mc_formula(g, "cost = mean(crossentropy_1hot(p, t))");
        f = mc_compile(
            g, &(mc_spec){ .inputs = "x, t", .outputs = "cost", .updates = "W = W - 0.1 * grad(cost, W)" });
    }
    CHECK(f || ALLOC_FAILED, "no function, yet memory: %s", g ? mc_error(g) : mc_last_error());
    CHECK(f || !g || *mc_error(g), "no function and no word");
    /* a call that found no memory may be made again */
    for (int turn = 0, failures = 0; f && turn < 3; turn++) {
        mc_status s = mc_call(f, MC_IN(x, t), MC_OUT(&cost));
        CHECK(s == MC_OK || (ALLOC_FAILED && failures++ == 0 && s == MC_EMEMORY), "call %d: %s: %s", turn,
              mc_status_name(s), mc_last_error());
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(every_failed_allocation_of_a_training_step_is_one_clean_error)
{
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(4, 3)),
             *t = mc_array_from(MC_INT32, MC_SHAPE(4), (int32_t[]){ 0, 1, 1, 0 });
    train(x, t); /* a GPU is started once, and what solvers there load stays */
    ALLOC_FAIL_LOOP {
        train(x, t);
    }
    mc_array_unref(&x);
    mc_array_unref(&t);
}

TEST(every_failed_allocation_of_a_dynamic_call_is_one_clean_error)
{
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(9));
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_array *y = NULL;
        mc_function *f = NULL;
        if (g) {
            mc_input(g, "x", MC_FLOAT32, 1);
            f = mc_compile(g, &(mc_spec){ .inputs = "x",
                                          .outputs = "tanh(x[x > 3]) * 2, sum(sort(x))",
                                          .mode = "FAST_COMPILE" });
        }
        CHECK(f || ALLOC_FAILED, "no function, yet memory: %s", g ? mc_error(g) : mc_last_error());
        mc_status s = f ? mc_call(f, MC_IN(x), MC_OUT(&y)) : MC_EMEMORY;
        CHECK(s == MC_OK || (ALLOC_FAILED && s == MC_EMEMORY), "%s: %s", mc_status_name(s), mc_last_error());
        mc_function *copy = f ? mc_function_copy(f, 1) : NULL;
        CHECK(copy || ALLOC_FAILED, "no copy, yet memory");
        mc_array_unref(&y);
        mc_function_free(copy);
        mc_function_free(f);
        mc_graph_free(g);
    }
    mc_array_unref(&x);
}

/* Layers alike have kernels alike: these are printed and compiled once. */
TEST(equal_kernels_are_one_text)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 8]; y = x; y = tanh(sort(y, axis=1) * 2); y = tanh(sort(y, axis=1) * "
                  "2); y = tanh(sort(y, axis=1) * 2)");
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y" });
    REQUIRE(f, "%s", mc_last_error());
    int kernels = 0, texts = 0;
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        kernels += strncmp(mc_function_step(f, i).kind, "kernel", 6) == 0;
    }
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, " k%d(", i);
        texts += strstr(mc_function_source(f), name) != NULL;
    }
    CHECK(kernels == 3 && (texts == 1 || !*mc_function_source(f)), "%d kernels, %d texts", kernels, texts);
    float v[8] = { 3, 1, 2, 0, -1, 5, 4, -2 }, want = 0;
    mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(1, 8), v), *y = NULL;
    CHECK(mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < 3; i++) {
        want = tanhf(2 * (i ? want : 5)); /* the largest stays the last */
    }
    CHECK(y && fabs(mc_array_get(y, (int64_t[]){ 0, 7 }) - want) < 1e-6, "%g",
          y ? mc_array_get(y, (int64_t[]){ 0, 7 }) : 0);
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}
