/* t_function.c: compiled functions as programs use them: what goes in and comes out, modes, and what is left
 * of a function after something went wrong. */
#include "function_words.h"

/* ---- in and out ---- */

TEST(inputs_by_name_and_by_node)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = mc_input(g, "y", MC_FLOAT32, 0),
            *z = mc_formula(g, "x * 10 + y");
    mc_function *f = made(
        g,
        mc_compile(
            g,
            &(mc_spec){
                .inputs = "y", .input = &x, .ninput = 1, .outputs = "x + y", .output = &z, .noutput = 1 }));
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
    mc_function *f = made(
        g,
        mc_compile(g, &(mc_spec){ .name = "step", .inputs = "x, lr=0.5, v", .outputs = "x * lr + sum(v)" }));
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
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "i, x", .outputs = "i * 2, x + i, i > 3, x * 2" }));
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
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .name = "f", .inputs = "x", .outputs = "x.T + 1, borrow(tanh(x)), x" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(3, 4)), *y = NULL, *t = NULL, *same = NULL;
    fine(mc_call(f, MC_IN(x), MC_OUT(&y, &t, &same)));
    CHECK(at(y, 1) == 5 && fabs(at(t, 1) - tanh(1)) < 1e-6, "%g %g", at(y, 1), at(t, 1));
    CHECK(same && same->data != x->data && at(same, 11) == 11,
          "an output that is an input is an array of its own");
    void *before = mc_array_data(y);
    mc_array_set(x, (int64_t[]){ 0, 1 }, 7);
    fine(mc_call(f, MC_IN(x), MC_OUT(&y)));
    CHECK(mc_array_data(y) == before && at(y, 3) == 8, "the array given is the array used: %g", at(y, 3));
    mc_array *turned = mc_array_transpose(same, NULL); /* not contiguous */
    fine(mc_call(f, MC_IN(x), MC_OUT(&turned)));
    CHECK(at(turned, 3) == 8 && at(same, 1) == 8, "%g %g", at(turned, 3), at(same, 1));
    mc_array *wide = mc_array_new(MC_FLOAT64, MC_SHAPE(4, 3)),
             *narrow = mc_array_new(MC_FLOAT16, MC_SHAPE(4, 3)),
             *wrong = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 4));
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
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + x.T + sum(x, axis=0), x * 2" }));
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(5, 5)), *copy = mc_array_copy(x), *want[2] = { NULL, NULL },
             *two = NULL;
    fine(mc_call(f, MC_IN(copy), MC_OUT(&want[0], &want[1])));
    mc_array *into = mc_array_ref(x);
    fine(mc_call(f, MC_IN(x), MC_OUT(&into, &two)));
    CHECK(mc_array_same_bits(into, want[0]) && mc_array_same_bits(two, want[1]),
          "written over its own input");
    mc_array *both = mc_array_ref(copy),
             *again = mc_array_ref(copy); /* one array for two results: the last one is in it */
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
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .outputs = "W, W[::-1], W * 2", .updates = "W = W + 1" }));
    mc_array *a = NULL, *b = NULL, *c = NULL;
    fine(mc_call(f, MC_NONE, MC_OUT(&a, &b, &c)));
    CHECK(at(a, 3) == 3 && at(b, 0) == 3 && at(c, 3) == 6 && shared_at(W, 3) == 4, "%g %g %g %g", at(a, 3),
          at(b, 0), at(c, 3), shared_at(W, 3));
    mc_array *inside = mc_shared_borrow(W),
             *into = mc_array_ref(inside); /* the variable's own memory as an output */
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
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f",
                                                       .inputs = "x",
                                                       .mode = "NANGUARD",
                                                       .outputs = "sum(log(x))",
                                                       .updates = "n = n + 1" }));
    mc_array *good = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ 1, 2 }),
             *bad = mc_array_from(MC_FLOAT32, MC_SHAPE(2), (float[]){ 1, -2 }),
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
    CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x, y", .outputs = "x + 1" }) && strstr(mc_error(g), "'y'"),
          "%s", mc_error(g));
    mc_graph_clear_error(g);
    static const char *const words[] = { "warn", "ignore" };
    for (int i = 0; i < 2; i++) {
        mc_function *f = made(
            g, mc_compile(g, &(mc_spec){ .inputs = "y, x", .outputs = "x + 1", .on_unused = words[i] }));
        double v = 0;
        CHECK(mc_call(f, MC_IN(5, 2), MC_OUT(&v)) == MC_OK && v == 3, "%g", v);
        mc_function_free(f);
    }
    CHECK(!mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1", .on_unused = "shout" }) &&
              strstr(mc_error(g), "shout"),
          "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(memory_is_given_back_after_calls_if_asked)
{
    fine(mc_flag_set("allow_gc", "True"));
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x",
                                     .outputs = "borrow(dot(x, x) + 1), sort(tanh(x), axis=0) * 2" }));
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

/* ---- graphs and functions live apart ---- */

TEST(functions_outlive_their_graph)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_array *v = ramp(MC_FLOAT32, MC_SHAPE(3, 3)), *y = NULL;
    mc_shared_new(g, "W", v);
    mc_function *f = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "dot(x, W) + 1", .updates = "W = W * 2" }));
    mc_function *d = made(
        g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "tanh(dot(x, W))", .mode = "DEBUG" }));
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
        mc_function *f = made(
            g, mc_compile(
                   g, &(mc_spec){ .inputs = "x", .outputs = text, .mode = i % 2 ? "FAST_COMPILE" : NULL }));
        CHECK(mc_call(f, MC_IN(a), MC_OUT(&v)) == MC_OK && fabs(v - i - tanh(1)) < 1e-6, "%g", v);
        mc_function_free(f);
    }
    mc_array_unref(&a);
    mc_graph_free(g);
}
