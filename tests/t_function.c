/* t_function.c: compiled functions as programs use them: what goes in and comes out, modes, and what is left of a
 * function after something went wrong. */
#include "function_words.h"

/* ---- in and out ---- */

TEST(inputs_by_name_and_by_node)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = mc_input(g, "y", MC_FLOAT32, 0), *z = mc_formula(g, "x * 10 + y");
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "y", .input = &x, .ninput = 1, .outputs = "x + y", .output = &z, .noutput = 1 }));
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(3)), *p = NULL, *q = NULL;
    (void)y;
    if (fine(mc_call(f, MC_IN(2.5, a), MC_OUT(&p, &q)))) {
        CHECK(at(p, 2) == 4.5 && at(q, 2) == 22.5, "%g %g", at(p, 2), at(q, 2));
    }
    mc_array_unref(&p);
    mc_array_unref(&q);
    mc_array_unref(&a);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(inputs_have_defaults)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_input(g, "lr", MC_FLOAT32, 0);
    mc_input(g, "v", MC_FLOAT64, 1);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "step", .inputs = "x, lr=0.5, v", .outputs = "x * lr + sum(v)" }));
    double y = 0;
    refused(mc_call(f, MC_IN(3.0), MC_OUT(&y)), MC_EARG, "input 2 ('v') is missing");
    mc_array *v = ramp(MC_FLOAT64, MC_SHAPE(3));
    fine(mc_function_set(f, "v", mc_arg_array(v)));
    mc_array_set(v, (int64_t[]){ 0 }, 100); /* it was copied */
    CHECK(mc_call(f, MC_IN(3.0), MC_OUT(&y)) == MC_OK && y == 4.5, "%g %s", y, mc_last_error());
    CHECK(mc_call(f, MC_IN(3.0, 2.0), MC_OUT(&y)) == MC_OK && y == 9, "%g", y);
    fine(mc_function_set(f, "lr", mc_arg_real(10)));
    CHECK(mc_call(f, MC_IN(3.0), MC_OUT(&y)) == MC_OK && y == 33, "%g", y);
    mc_arg some[3] = { mc_arg_real(1), mc_arg_none(NULL), mc_arg_array(v) };
    CHECK(mc_call_args(f, 3, some, MC_OUT(&y)) == MC_OK && y == 113, "%g", y);
    refused(mc_function_set(f, "rate", mc_arg_real(1)), MC_EARG, "rate");
    refused(mc_function_set(f, "v", mc_arg_real(1)), MC_ESHAPE, "'v'");
    mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(numbers_go_in_and_out)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "i", MC_INT32, 0);
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "i, x", .outputs = "i * 2, x + i, i > 3, x * 2" }));
    int32_t a = 0;
    float b = 0;
    int64_t c = 7;
    double d = 0;
    fine(mc_call(f, MC_IN(4, 0.5f), MC_OUT(&a, &b, &c, &d)));
    CHECK(a == 8 && b == 4.5f && c == 1 && d == 1, "%d %g %lld %g", a, (double)b, (long long)c, d);
    fine(mc_call(f, MC_IN(4.0, 1), MC_OUT(NULL, &b)));
    CHECK(b == 5, "%g", (double)b);
    refused(mc_call(f, MC_IN(4.5, 1), MC_OUT(&a)), MC_ETYPE, "'i'");
    refused(mc_call(f, MC_IN(4, 1, 5), MC_OUT(&a)), MC_EARG, "3 inputs are given, it has 2");
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(outputs_go_where_they_are_wanted)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x", .outputs = "x.T + 1, borrow(tanh(x)), x" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(3, 4)), *y = NULL, *t = NULL, *same = NULL;
    fine(mc_call(f, MC_IN(x), MC_OUT(&y, &t, &same)));
    CHECK(at(y, 1) == 5 && fabs(at(t, 1) - tanh(1)) < 1e-6, "%g %g", at(y, 1), at(t, 1));
    CHECK(same && same->data != x->data && at(same, 11) == 11, "an output that is an input is an array of its own");
    void *before = mc_array_data(y);
    mc_array_set(x, (int64_t[]){ 0, 1 }, 7);
    fine(mc_call(f, MC_IN(x), MC_OUT(&y)));
    CHECK(mc_array_data(y) == before && at(y, 3) == 8, "the array given is the array used: %g", at(y, 3));
    mc_array *turned = mc_array_transpose(same, NULL); /* not contiguous */
    fine(mc_call(f, MC_IN(x), MC_OUT(&turned)));
    CHECK(at(turned, 3) == 8 && at(same, 1) == 8, "%g %g", at(turned, 3), at(same, 1));
    mc_array *wide = mc_array_new(MC_FLOAT64, MC_SHAPE(4, 3)), *narrow = mc_array_new(MC_FLOAT16, MC_SHAPE(4, 3)), *wrong = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 4));
    fine(mc_call(f, MC_IN(x), MC_OUT(&wide)));
    CHECK(at(wide, 3) == 8, "%g", at(wide, 3));
    refused(mc_call(f, MC_IN(x), MC_OUT(&narrow)), MC_ETYPE, "output 0");
    refused(mc_call(f, MC_IN(x), MC_OUT(&wrong)), MC_ESHAPE, "output 0 has shape (4, 3)");
    double number = 0;
    refused(mc_call(f, MC_IN(x), MC_OUT(&number)), MC_ESHAPE, "12 elements");
    mc_array_unref(&y);
    mc_array_unref(&t);
    mc_array_unref(&same);
    mc_array_unref(&turned);
    mc_array_unref(&wide);
    mc_array_unref(&narrow);
    mc_array_unref(&wrong);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(outputs_may_overlap_inputs)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + x.T + sum(x, axis=0), x * 2" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(5, 5)), *copy = mc_array_copy(x), *want[2] = { NULL, NULL }, *two = NULL;
    fine(mc_call(f, MC_IN(copy), MC_OUT(&want[0], &want[1])));
    mc_array *into = mc_array_ref(x);
    fine(mc_call(f, MC_IN(x), MC_OUT(&into, &two)));
    CHECK(mc_array_same_bits(into, want[0]) && mc_array_same_bits(two, want[1]), "written over its own input");
    mc_array *both = mc_array_ref(copy), *again = mc_array_ref(copy); /* one array for two results: the last one is in it */
    fine(mc_call(f, MC_IN(copy), MC_OUT(&both, &again)));
    CHECK(mc_array_same_bits(copy, want[1]), "two results in one array");
    mc_array_unref(&both);
    mc_array_unref(&again);
    mc_array_unref(&into);
    mc_array_unref(&two);
    mc_array_unref(&want[0]);
    mc_array_unref(&want[1]);
    mc_array_unref(&copy);
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(outputs_of_shared_variables_are_the_old_values)
{
    mc_graph *g = mc_graph_new();
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(4));
    mc_shared *W = mc_shared_new(g, "W", v);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .outputs = "W, W[::-1], W * 2", .updates = "W = W + 1" }));
    mc_array *a = NULL, *b = NULL, *c = NULL;
    fine(mc_call(f, MC_NONE, MC_OUT(&a, &b, &c)));
    CHECK(at(a, 3) == 3 && at(b, 0) == 3 && at(c, 3) == 6 && shared_at(W, 3) == 4, "%g %g %g %g", at(a, 3), at(b, 0), at(c, 3), shared_at(W, 3));
    mc_array *inside = mc_shared_borrow(W), *into = mc_array_ref(inside); /* the variable's own memory as an output */
    fine(mc_call(f, MC_NONE, MC_OUT(NULL, NULL, &into)));
    mc_array_unref(&into);
    mc_array_unref(&inside);
    mc_array_unref(&a);
    mc_array_unref(&b);
    mc_array_unref(&c);
    mc_array_unref(&v);
    mc_function_free(f);
    mc_graph_free(g);
}

/* Steps without a kernel write right into the results, also where the caller's array is what they read. */
TEST(results_of_host_steps_may_overlap_inputs)
{
    static const char *const formulas[] = {
        "x[[2, 0, 1, 3]]", "cumsum(x, axis=0)", "sort(x, axis=0)", "join([x[1:], x[:1]], axis=0)", "set_subtensor(x[1:3], x[0:2])",
        "inc_subtensor(x[[0, 0, 1]], x[1:4])", "cumsum(x[::-1], axis=1)[::-1]", "roll(x, 1, axis=0)",
    };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        struct agree a = { 0 };
        agree_input(&a, "x", ramp(MC_FLOAT32, MC_SHAPE(4, 3)), 0);
        agree_output(&a, formulas[i]);
        mc_array *want = NULL, *same = mc_array_copy(a.value[0]);
        mc_function *f = made(a.g, agree_compile(&a, "FAST_RUN", 1));
        CHECK(mc_eval(1, a.in, a.value, 1, a.out, &want) == MC_OK, "%s", mc_last_error());
        mc_array *out = same;
        CHECK(fine(mc_call(f, MC_IN(same), MC_OUT(&out))), "%s", formulas[i]);
        CHECK(out == same && mc_array_same_bits(same, want), "%s over what it reads", formulas[i]);
        mc_array_unref(&same);
        mc_array_unref(&want);
        mc_function_free(f);
        agree_free(&a);
    }
}

/* ---- modes ---- */

TEST(nanguard_names_the_step)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_shared *n = scalar(g, "n", MC_FLOAT32, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x", .mode = "NANGUARD", .outputs = "sum(log(x))", .updates = "n = n + 1" }));
    mc_array *good = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ 1, 2 }), *bad = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ 1, -2 }),
             *zero = mc_array_new(MC_FLOAT32, MC_SHAPE(2));
    double y = 0;
    CHECK(mc_call(f, MC_IN(good), MC_OUT(&y)) == MC_OK && fabs(y - log(2)) < 1e-6, "%g", y);
    refused(mc_call(f, MC_IN(bad), MC_OUT(&y)), MC_ECHECK, "log(x)");
    refused(mc_call(f, MC_IN(zero), MC_OUT(&y)), MC_ECHECK, "infinity");
    CHECK(shared_at(n, 0) == 1, "%g", shared_at(n, 0));
    mc_array_unref(&good);
    mc_array_unref(&bad);
    mc_array_unref(&zero);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(fast_compile_needs_no_compiler)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    fine(mc_flag_set("cc", "/nonexistent"));
    static const char *const modes[] = { "FAST_COMPILE", "FAST_RUN", "DEBUG", "NANGUARD" };
    for (size_t m = 0; m < NELEM(modes); m++) {
        struct agree a = { 0 };
        agree_input(&a, "x", sample(MC_FLOAT32, MC_SHAPE(4, 6), -2, 2), 0);
        agree_output(&a, "softmax(dot(x, x.T) + 1)");
        agree_output(&a, "sum(tanh(x)[::-1], axis=0) + arange(6)");
        agree_output(&a, "tanh(dot(x.T, x) * 2)");
        const char *wrong = agree_in(&a, modes[m], 2);
        CHECK(!wrong, "%s", wrong);
        agree_free(&a);
    }
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "exp(x)" }));
    CHECK(strstr(mc_function_step(f, 0).reason, "compiler"), "'%s'", mc_function_step(f, 0).reason);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(unused_inputs_are_refused_or_not)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_input(g, "y", MC_FLOAT32, 0);
    CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = "x + 1" }) && strstr(mc_error(g), "'y'"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    static const char *const words[] = { "warn", "ignore" };
    for (int i = 0; i < 2; i++) {
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "y, x", .outputs = "x + 1", .on_unused = words[i] }));
        double v = 0;
        CHECK(mc_call(f, MC_IN(5, 2), MC_OUT(&v)) == MC_OK && v == 3, "%g", v);
        mc_function_free(f);
    }
    CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1", .on_unused = "shout" }) && strstr(mc_error(g), "shout"), "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(memory_is_given_back_after_calls_if_asked)
{
    fine(mc_flag_set("allow_gc", "True"));
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "borrow(dot(x, x) + 1), sort(tanh(x), axis=0) * 2" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(5, 5)), *y = NULL, *z = NULL;
    for (int i = 0; i < 3; i++) {
        fine(mc_call(f, MC_IN(x), MC_OUT(&y, &z)));
        CHECK(at(y, 0) == 151, "%g", at(y, 0)); /* a borrowed result stays until the next call */
        mc_array_unref(&y);
        mc_array_unref(&z);
    }
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- large graphs ---- */

static double chain(int n)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = x, *one = mc_number(g, MC_FLOAT32, 1), *half = mc_number(g, MC_FLOAT32, 0.5);
    for (int i = 0; i < n; i++) {
        y = i % 2 ? mc_mul(mc_add(y, x), half) : mc_tanh(mc_add(y, one));
    }
    double start = mc_now();
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .output = &y, .noutput = 1, .mode = "FAST_COMPILE" }));
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
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .input = in, .ninput = 200, .output = &y, .noutput = 1 }));
    mc_arg out = mc_arg_slot(&r);
    fine(mc_call_args(f, 200, args, 1, &out));
    CHECK(r && at(r, 9) == 1800, "%g", r ? at(r, 9) : 0);
    mc_array_unref(&r);
    mc_function_free(f);
    y = mc_op(g, "join", 200, in, "axis=0"); /* more operands than any fixed list holds */
    f = made(g, mc_compile(g, &(mc_spec){ .input = in, .ninput = 200, .outputs = "0 * 1", .output = &y, .noutput = 1 }));
    out = mc_arg_slot(&r);
    fine(mc_call_args(f, 200, args, 2, (mc_arg[]){ mc_arg_none(NULL), out }));
    CHECK(r && r->dims[0] == 2000 && at(r, 1999) == 9, "%lld", r ? (long long)r->dims[0] : 0);
    mc_array_unref(&r);
    mc_array_unref(&a);
    mc_function_free(f);
    mc_graph_free(g);
}

/* ---- graphs and functions live apart ---- */

TEST(functions_outlive_their_graph)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(3, 3)), *y = NULL;
    mc_shared_new(g, "W", v);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "dot(x, W) + 1", .updates = "W = W * 2" }));
    mc_function *d = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "tanh(dot(x, W))", .mode = "DEBUG" }));
    mc_graph_free(g);
    for (int i = 0; i < 3; i++) {
        fine(mc_call(f, MC_IN(v), MC_OUT(&y)));
        CHECK(at(y, 0) == 15 * (1 << i) + 1, "%g", at(y, 0));
        mc_array_unref(&y);
        fine(mc_call(d, MC_IN(v), MC_OUT(&y)));
        mc_array_unref(&y);
    }
    mc_array_unref(&v);
    mc_function_free(f);
    mc_function_free(d);
}

TEST(one_graph_makes_many_functions)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_formula(g, "y = tanh(x)");
    double v = 0;
    mc_array *a = ramp(MC_FLOAT32, MC_SHAPE(2));
    for (int i = 0; i < 20; i++) {
        char text[40];
        snprintf(text, sizeof text, "sum(y) + %d", i);
        mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = text, .mode = i % 2 ? "FAST_COMPILE" : NULL }));
        CHECK(mc_call(f, MC_IN(a), MC_OUT(&v)) == MC_OK && fabs(v - i - tanh(1)) < 1e-6, "%g", v);
        mc_function_free(f);
    }
    mc_array_unref(&a);
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
        f = mc_compile(g, &(mc_spec){ .inputs = "x, t", .outputs = "cost", .updates = "W = W - 0.1 * grad(cost, W)" });
    }
    CHECK(f || ALLOC_FAILED, "no function, yet memory: %s", g ? mc_error(g) : mc_last_error());
    CHECK(f || !g || *mc_error(g), "no function and no word");
    for (int turn = 0, failures = 0; f && turn < 3; turn++) { /* a call that found no memory may be made again */
        mc_status s = mc_call(f, MC_IN(x, t), MC_OUT(&cost));
        CHECK(s == MC_OK || (ALLOC_FAILED && failures++ == 0 && s == MC_EMEMORY), "call %d: %s: %s", turn, mc_status_name(s), mc_last_error());
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(every_failed_allocation_of_a_training_step_is_one_clean_error)
{
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(4, 3)), *t = mc_array_from(MC_INT32, MC_SHAPE(4), (int32_t[]){ 0, 1, 1, 0 });
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
            f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "tanh(x[x > 3]) * 2, sum(sort(x))", .mode = "FAST_COMPILE" });
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
    mc_formula(g, "input x float32[?, 8]; y = x; y = tanh(sort(y, axis=1) * 2); y = tanh(sort(y, axis=1) * 2); y = tanh(sort(y, axis=1) * 2)");
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
    CHECK(y && fabs(mc_array_get(y, (int64_t[]){ 0, 7 }) - want) < 1e-6, "%g", y ? mc_array_get(y, (int64_t[]){ 0, 7 }) : 0);
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}
