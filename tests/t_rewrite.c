/* t_rewrite.c: passes as a whole: what formulas become, what it costs, and that values stay. */
#include "rewrite_words.h"
#include <stdlib.h>
#include <time.h>

/* ---- golden text, by what the rewrites are for ---- */

static const char *const formulas[] = {
    "# merge",
    "x * y + y * x",
    "exp(x) + exp(x)",
    "# folding",
    "x * (2.0 * 3.0f64) + dot([[1.0f64]], [[2.0f64]])",
    "x * where(1 < 2, x, y)",
    "# sizes",
    "size(dot(exp(x), W), 1)",
    "shape(reshape(tanh(x), [-1, 2]))[1]",
    "size(join([x, exp(y)], axis=0), 0)",
    "# algebra",
    "x - x + y",
    "x / x",
    "x * 0 + y",
    "-(-x) * -y",
    "(x + 1) + (y + 2) - 5",
    "x * y / y",
    "-(x - y)",
    "sum(x * 2 * s, axis=0)",
    "x * s / s",
    "# nothing to do",
    "cast(cast(x, float32), float32)",
    "where(c, x, x)",
    "reshape(x, x.shape)",
    "alloc(x, x.shape)",
    "x[:, 0:x.shape[1]]",
    "sum(expand_dims(x, 1), axis=1)",
    "log(exp(x))",
    "# dimshuffle",
    "transpose(transpose(x))",
    "transpose(exp(transpose(x)))",
    "transpose(transpose(x) + y.T * s)",
    "transpose(transpose(x)[1:3])",
    "expand_dims(sum(x, axis=1), 1)",
    "transpose(dot(transpose(W), transpose(x)))",
    "# subtensor",
    "x[1:][0]",
    "x[1:4][1:3]",
    "x[::-1][::-1]",
    "(x * 2 + b[0])[1]",
    "dot(x, W)[1]",
    "set_subtensor(x[1:3], y[1:3])[1:3]",
    "inc_subtensor(zeros_like(x)[1:], y[1:])",
    "# reshape",
    "flatten(reshape(x, [2, -1]))",
    "reshape(b, [1, -1])",
    "# alloc",
    "alloc(s, x.shape) * x",
    "exp(alloc(s, x.shape))",
    "sum(alloc(s, x.shape), axis=0)",
    "zeros_like(x) + b[0]",
    "# join",
    "join([join([x, y]), x])",
    "stack([i, 3])[1]",
    "# products",
    "dot(2 * x, W) * 3",
    "dot(-x, W) + y[:, 0:3]",
    "dot(expand_dims(b, 1), expand_dims(b, 0))",
    "# specialised",
    "x ** 2",
    "x ** 0.5",
    "x ** 7",
    "x ** -2",
    "x / 4",
    "x / 3",
    "# stability",
    "log(1 + x)",
    "log(1 + exp(x))",
    "log(1 - sigmoid(x))",
    "exp(x) / (1 + exp(x))",
    "1 / (1 + exp(-x))",
    "y * exp(-x) * sigmoid(x)",
    "log(sum(exp(x), axis=1))",
    "exp(x) / sum(exp(x), axis=1, keepdims=True)",
    "log(exp(x) / sum(exp(x), axis=1, keepdims=True))",
    "1 - erf(x)",
    "# cross-entropy",
    "mean(-log(softmax(dot(x, W) + b))[arange(x.shape[0]), t])",
    "mean(-log(softmax(x)[arange(x.shape[0]), t]))",
    "mean(crossentropy_1hot(softmax(x), t))",
    "grad(mean(-log(softmax(x))[arange(x.shape[0]), t]), x)",
    "grad(mean(-log(softmax(x)[arange(x.shape[0]), t])), x)",
    "grad(mean(-log(softmax(dot(x, W) + b))[arange(x.shape[0]), t]), b)",
    "grad(mean(categorical_crossentropy(softmax(x), y)), x)",
    "mean(binary_crossentropy(sigmoid(x), y))",
    "grad(mean(binary_crossentropy(sigmoid(x), y)), x)",
    "argmax(softmax(x), axis=1)",
    "# gradients",
    "grad(sum(sqr(x)), x)",
    "grad(sum(tanh(dot(x, W) + b)), b)",
    "grad(mean(sqr(dot(x, W) + b)), W)",
    "grad(sum(log(sum(exp(x), axis=1))), x)",
    "grad(sum(max(x, axis=1)), x)",
    "grad(sum(x[1:3]), x)",
    "# means taken away",
    "sum(x * y + (x - mean(x, axis=0, keepdims=True)) * sum(y, axis=0, keepdims=True), axis=0, keepdims=True)",
    "sum(x * s - (x - sum(x, axis=0, keepdims=True) / size(x, axis=0)) / exp(s), axis=0, keepdims=True)",
    "grad(sum(layer_norm(x) * y), x)",
    "sum(x * y + (x - mean(x, axis=1, keepdims=True)), axis=0)",                       /* over other axes: stays */
    "sum(y + (x - sum(x, axis=0, keepdims=True) / (size(x, axis=0) - 1)), axis=0)",    /* not by the count: stays */
    "sum(y + (x - mean(x, axis=0, keepdims=True)) * y, axis=0)",                       /* not by a row: stays */
    "sum(b[0] + (x - mean(x, axis=0, keepdims=True)), axis=0)",                        /* what is left does not vary: stays */
    "# poolings",
    "relu(x)",
    "pool(tanh(x + s) / 2, [2, 2])",
    "grad(sum(sqr(pool(tanh(x), [2, 2]))), x)",
    "grad(sum(sqr(pool(relu(x + s), [2, 2]))), s)",
    "sum(grad(sum(sqr(pool(sigmoid(x), [2, 2]))), x))",
};

TEST(rewrites_as_text)
{
    struct mc_str out = { 0 };
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        if (*formulas[i] == '#') {
            mc_str_addf(&out, "%s%s\n", i ? "\n" : "", formulas[i]);
            continue;
        }
        mc_graph *g = variables(MC_FLOAT64);
        mc_node *n = mc_formula(g, formulas[i]), *after = n;
        if (CHECK(!mc_is_error(n), "%s: %s", formulas[i], mc_error(g)) &&
            CHECK(mc_rewrite(g, 1, &after, NULL) == MC_OK, "%s: %s", formulas[i], mc_last_error())) {
            char *text = mc_node_text(after);
            mc_str_addf(&out, "%s\n    => %s\n", formulas[i], text);
            mc_text_free(text);
            same_value(g, n, after, formulas[i]);
            mc_node *again = after;
            CHECK(mc_rewrite(g, 1, &again, NULL) == MC_OK && again == after, "%s: a second run changes it",
                  formulas[i]);
        }
        mc_graph_free(g);
    }
    GOLDEN("rewrite.txt", out.s);
    mc_str_free(&out);
}

/* ---- what is kept ---- */

static mc_node *rewritten(mc_graph *g, const char *text, const struct mc_rewrite *o)
{
    mc_node *n = mc_formula(g, text);
    CHECK(!mc_is_error(n), "%s: %s", text, mc_error(g));
    mc_node *after = n;
    CHECK(mc_rewrite(g, 1, &after, o) == MC_OK, "%s: %s", text, mc_last_error());
    return after;
}

TEST(rewrites_keep_shapes)
{
    static const char *const texts[] = {
        "x * 0", "x - x", "x / x", "where(c, s, s)", "where(c, b[0], b[0])", "x ** 0", "x == x", "x + zeros_like(x)",
        "dot(x, W) * 0", "maximum(x, x) - x", "sum(x * 0, axis=0)", "expand_dims(b, 0) * 0 + b", "where(c, expand_dims(x[0], 0), expand_dims(x[0], 0))",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mc_graph *g = variables(MC_FLOAT64);
        mc_node *n = mc_formula(g, texts[i]), *after = n;
        REQUIRE(!mc_is_error(n), "%s: %s", texts[i], mc_error(g));
        CHECK(mc_rewrite(g, 1, &after, NULL) == MC_OK, "%s", mc_last_error());
        CHECK(after != n || i == 7, "%s stayed", texts[i]);
        same_value(g, n, after, texts[i]);
        mc_graph_free(g);
    }
}

TEST(rewrites_leave_nothing_computed_for_a_size)
{
    static const char *const texts[] = { "size(exp(x), 0)", "size(dot(tanh(x), W), 1)", "shape(softmax(x))", "size(sum(X, axis=0), 1)",
                                         "size(x[1:], 0)", "size(join([x, y]), 0)", "size(reshape(exp(x), [size(x, 1), -1]), 0)" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mc_graph *g = variables(MC_FLOAT64);
        mc_node *n = rewritten(g, texts[i], NULL);
        size_t count;
        mc_node **list = mc_graph_reach(1, &n, &count);
        for (size_t k = 0; k < count; k++) {
            CHECK(!mc_is_float(list[k]->type.dtype) || list[k]->op->flags & OP_LEAF, "%s computes %s",
                  texts[i], list[k]->op->name);
        }
        mc_free(list);
        mc_graph_free(g);
    }
}

TEST(rewrites_merge_equal_expressions)
{
    mc_graph *g = variables(MC_FLOAT64);
    mc_node *pair[2] = { mc_formula(g, "exp(x + y) * (y + x)"), mc_formula(g, "(x + y) * exp(y + x)") };
    CHECK(mc_rewrite(g, 2, pair, NULL) == MC_OK && pair[0] == pair[1], "%s and %s", mc_node_text(pair[0]),
          mc_node_text(pair[1]));
    mc_graph_free(g);
}

/* Of two layers on sequences, which rules about views reach too: two products forward, three backward. */
TEST(rewrites_compute_no_product_twice)
{
    static const char *const between[] = {
        "0.5 * m * (1 + erf(m * 0.7071067811865476))", "0.5 * m * (1 + erf(m / sqrt(2.0)))",
        "m * (1 - erf(m * 0.3))",                      "m * sigmoid(1.702 * m)",
        "m / (1 + exp(-1.702 * m))",                   "m * tanh(log(1 + exp(m)))",
        "0.5 * m * (1 + tanh(0.8 * (m + 0.04 * m ** 3)))",
    };
    for (size_t i = 0; i < NELEM(between); i++) {
        mc_graph *g = mc_graph_new();
        struct mc_str text = { 0 };
        int products = 0;
        mc_str_addf(&text,
                    "input x float32[4, 8, 16]; input w float32[16, 16]; m = dot(x, w)\n"
                    "cost = sum(sqr(x + dot(%s, w)))",
                    between[i]);
        mc_formula(g, text.s);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, w", .outputs = "cost, grad(cost, w)" });
        REQUIRE(f, "%s", mc_error(g));
        for (int k = 0; k < mc_function_nsteps(f); k++) {
            products += strcmp(mc_function_step(f, k).kind, "gemm") == 0;
        }
        CHECK(products == 5, "%s: %d products", between[i], products);
        mc_function_free(f);
        mc_str_free(&text);
        mc_graph_free(g);
    }
}

TEST(rewrites_of_random_draws_and_effects_do_not_fold)
{
    mc_graph *g = variables(MC_FLOAT64);
    mc_node *n = rewritten(g, "assert_(x * 1, c)", NULL);
    CHECK(mc_is_op(n, "assert_") || n->nin, "%s", n->op->name);
    mc_graph_free(g);
}

/* ---- choosing ---- */

TEST(rewrites_by_name_tag_and_strictness)
{
    mc_graph *g = variables(MC_FLOAT64);
    struct mc_rewrite no = { .excluding = "x * 1:reshape", .including = "" };
    CHECK(mc_is_op(rewritten(g, "x * 1", &no), "mul"), "excluded by name, yet it ran");
    CHECK(rewritten(g, "x - 0", &no) == mc_var(g, "x"), "another rule was excluded too");
    struct mc_rewrite strict = { .strict = true, .including = "", .excluding = "" };
    CHECK(mc_is_op(rewritten(g, "x + 0", &strict), "add"), "x + 0 is not x for -0");
    CHECK(rewritten(g, "x - 0", &strict) == mc_var(g, "x"), "x - 0 is x");
    CHECK(mc_is_op(rewritten(g, "i + 0", &strict), "input"), "whole numbers have no -0");
    struct mc_rewrite with = { .including = "reciprocal", .excluding = "" };
    CHECK(mc_is_op(rewritten(g, "x / 3", NULL), "true_div"), "49 / 49 must stay 1");
    CHECK(mc_is_op(rewritten(g, "x / 3", &with), "mul"), "included by name, yet it did not run");
    static const struct { const char *stage, *formula, *op; } stages[] = {
        { "canonicalize", "x * 1", "mul" }, { "recognise", "exp(x) / sum(exp(x), axis=1, keepdims=True)", "true_div" },
        { "stabilize", "log(1 + x)", "log" }, { "specialize", "x ** 3", "pow" },
    };
    for (size_t i = 0; i < NELEM(stages); i++) {
        struct mc_rewrite off = { .excluding = stages[i].stage, .including = "" };
        CHECK(mc_is_op(rewritten(g, stages[i].formula, &off), stages[i].op), "%s without %s is not %s",
              stages[i].formula, stages[i].stage, stages[i].op);
        CHECK(!mc_is_op(rewritten(g, stages[i].formula, NULL), stages[i].op), "%s stays %s",
              stages[i].formula, stages[i].op);
    }
    struct mc_rewrite fast = { .level = REWRITE_FAST, .including = "", .excluding = "" };
    CHECK(mc_is_op(rewritten(g, "log(1 + x)", &fast), "log1p"), "level FAST keeps digits");
    CHECK(mc_is_op(rewritten(g, "x ** 3", &fast), "pow") && !mc_is_op(rewritten(g, "x ** 3", NULL), "pow"),
          "level FAST looks for faster forms");
    mc_graph_free(g);
}

TEST(rewrites_of_the_user)
{
    mc_graph *g = variables(MC_FLOAT64);
    CHECK(mc_rewrite_add(g, "gammaln(x + y)", "exp(y) * x", "mine") == MC_OK, "%s", mc_last_error());
    CHECK(mc_is_op(rewritten(g, "gammaln(x + y)", NULL), "mul"), "the rule did not run");
    struct mc_rewrite no = { .excluding = "mine" };
    CHECK(mc_is_op(rewritten(g, "gammaln(x + y)", &no), "gammaln"), "excluded by tag, yet it ran");
    CHECK(mc_rewrite_add(g, "sum(abs(x), axis=a, keepdims=b)", "max(x, axis=a, keepdims=b)", NULL) == MC_OK,
          "%s", mc_last_error());
    CHECK(mc_is_op(rewritten(g, "sum(abs(x), axis=1)", NULL), "max"), "the rule with attributes did not run");
    static const struct { const char *from, *to, *says; } wrong[] = {
        { "exp(x", "x", "the formula ends" }, { "exp(x)", "y", "'y' does not occur on the left side" }, { "x", "x", "must be a function" },
        { "exp(xy)", "x", "single and lower case" }, { "mean(x)", "x", "never occurs in a graph" }, { "nosuch(x)", "x", "no function 'nosuch'" },
        { "sum(x, axes=a)", "x", "no attribute 'axes'" }, { "exp(x)", "sum(x, axis=a)", "'a' does not occur" }, { "exp(x) y", "x", "left over" },
        { "x+x+x+x+x+x+x+x+x+x+x+x+x+x+x", "x", "commute" },
        { "----------------------------------------------------------------------x", "x", "nested more than" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(mc_rewrite_add(g, wrong[i].from, wrong[i].to, NULL) < 0, "%s => %s was taken", wrong[i].from,
              wrong[i].to);
        CHECK(strstr(mc_last_error(), wrong[i].says), "%s => %s: %s", wrong[i].from, wrong[i].to,
              mc_last_error());
        CHECK(mc_graph_status(g) == MC_OK, "the graph is blamed for a rule");
    }
    CHECK(mc_rewrite_add(NULL, "exp(x)", "x", NULL) == MC_EARG &&
              mc_rewrite_add(g, NULL, "x", NULL) == MC_EARG,
          "NULL was taken");
    mc_graph_free(g);
}

/* A rule that cannot be right is undone and the others go on. */
TEST(rewrites_that_fail_are_rolled_back)
{
    mc_graph *g = variables(MC_FLOAT64);
    mc_rewrite_add(g, "gammaln(x)", "argmax(x)", NULL);     /* another dtype */
    mc_rewrite_add(g, "psi(x)", "batched_dot(x, x)", NULL); /* a mistake while building */
    mc_rewrite_add(g, "erf(x)", "sum(x)", NULL);            /* another shape: filled out, so it is taken */
    mc_node *n = rewritten(g, "gammaln(x * 1) + psi(x)", NULL);
    CHECK(mc_is_op(n, "add") && mc_is_op(n->in[0], "psi") && mc_is_op(n->in[1], "gammaln"), "%s",
          mc_node_text(n));
    CHECK(n->in[1]->in[0] == mc_var(g, "x"), "the other rules did not run");
    CHECK(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    n = rewritten(g, "erf(x)", NULL);
    CHECK(n->type.rank == 2, "rank %d", n->type.rank);
    mc_graph_free(g);
}

/* Rules that undo each other, or never end, are stopped. */
TEST(rewrites_that_never_end_are_stopped)
{
    mc_graph *g = variables(MC_FLOAT64);
    mc_rewrite_add(g, "psi(x)", "gammaln(x)", NULL);
    mc_rewrite_add(g, "gammaln(x)", "psi(x)", NULL);
    mc_rewrite_add(g, "tri_gamma(x)", "tri_gamma(arctan(x))", NULL);
    mc_node *n = rewritten(g, "psi(x) + tri_gamma(x)", NULL);
    CHECK(n->type.rank == 2 && g->nodes.n < 2000, "%zu nodes", g->nodes.n);
    mc_graph_free(g);
}

/* ---- cost ---- */

static mc_node *chain(mc_graph *g, int n)
{
    mc_node *x = mc_var(g, "x"), *y = mc_var(g, "y"), *z = x;
    mc_node *one = mc_node_number(g, MC_FLOAT64, 1);
    for (int i = 0; i < n; i += 4) {
        z = mc_op2("add", z, y);
        z = mc_op2("mul", z, one);
        z = mc_op1(i % 3 ? "tanh" : "exp", z);
        z = mc_op2("sub", z, x);
    }
    return z;
}

/* Of this process: others may keep the processor busy. */
static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static double seconds_for(int n)
{
    mc_graph *g = variables(MC_FLOAT64);
    mc_node *z = chain(g, n);
    double t = processor_seconds();
    CHECK(mc_rewrite(g, 1, &z, NULL) == MC_OK, "%s", mc_last_error());
    t = processor_seconds() - t;
    mc_graph_free(g);
    return t;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWER 10
#else
#define SLOWER 1
#endif

/* Seconds of a processor as it is, where this one is slowed by a sanitizer or an emulator. */
static double most(double seconds)
{
    return seconds * (getenv("TEST_QEMU") ? 30 : SLOWER);
}

TEST(rewrites_take_linear_time)
{
    seconds_for(100); /* reads the tables */
    double small = seconds_for(10000), large = seconds_for(100000);
    CHECK(small < most(1), "10,000 nodes took %.3f s", small);
    CHECK(large < 40 * small + 0.2, "10,000 nodes took %.3f s and 100,000 took %.3f s", small, large);
}

/* Each step uses the last one twice: 2^2000 paths. */
TEST(rewrites_remember_what_is_shared)
{
    mc_graph *g = variables(MC_FLOAT64);
    mc_node *z = mc_var(g, "x");
    for (int i = 0; i < 2000; i++) {
        mc_node *a = mc_op2("mul", z, mc_node_number(g, MC_FLOAT64, 1)),
                *b = mc_op2("mul", mc_op1("tanh", z), mc_var(g, "y"));
        z = mc_op2("add", mc_op2("add", a, b), mc_op2("mul", z, b));
    }
    double t = processor_seconds();
    CHECK(mc_rewrite(g, 1, &z, NULL) == MC_OK, "%s", mc_last_error());
    t = processor_seconds() - t;
    CHECK(t < most(2), "it took %.1f s", t);
    CHECK(g->nodes.n < 100000, "%zu nodes", g->nodes.n);
    mc_graph_free(g);
}

TEST(rewrites_without_memory_say_so)
{
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_node *n = g && mc_input(g, "x", MC_FLOAT64, 2)
                         ? mc_formula(g, "log(1 + exp(x * 1)) + sum(x, axis=0) * 2 + [1.0f64 + 2.0f64]")
                         : NULL;
        if (n && !mc_is_error(n)) {
            mc_status s = mc_rewrite_add(g, "log(gammaln(x))", "exp(x) + 1", "mine");
            CHECK(s == MC_OK || (s == MC_EMEMORY && ALLOC_FAILED), "%d %s", s, mc_last_error());
            CHECK(mc_graph_status(g) == MC_OK, "the graph is blamed");
            s = mc_rewrite(g, 1, &n, NULL);
            CHECK(s == MC_OK || (s == MC_EMEMORY && ALLOC_FAILED), "%d %s", s, mc_last_error());
            CHECK(!mc_is_error(n), "the output is lost");
        }
        mc_graph_free(g);
    }
}
