/* t_graph.c: nodes are shared when equal, walks do not recurse, names and shared variables keep
 * their promises, and a failed allocation is a clean error. */
#include "check.h"
#include "op/op.h"

#include <math.h>
#include <stdlib.h>

static mc_node *call1(const char *op, mc_node *x)
{
    return mc_op(x->graph, op, 1, &x, NULL);
}

static mc_node *call2(const char *op, mc_node *x, mc_node *y)
{
    return mc_op(x->graph, op, 2, (mc_node *[]){ x, y }, NULL);
}

/* ---- sharing ---- */

TEST(equal_expressions_are_one_node)
{
    static const char *const same[][2] = {
        { "exp(x) * y", "exp(x) * y" },
        { "sum(x, axis=1)", "sum(x, axis=[1])" },
        { "sum(x, axis=-1)", "x.sum(axis=-1)" },
        { "x.T", "transpose(x)" },
        { "x + 1", "x + 1.0" }, /* both are float32 ones */
        { "x[1:3]", "x[1:3, :]" },
        { "relu(x)", "relu(x, alpha=0)" },
        { "softmax(x)", "softmax(x, axis=-1)" },
        { "[1, 2, 3]", "[1, 2, 3]" },
        { "a = exp(x); a + a", "exp(x) + exp(x)" },
    };
    static const char *const other[][2] = {
        { "x + y", "y + x" }, { "sum(x, axis=0)", "sum(x, axis=1)" }, { "sum(x)", "sum(x, axis=0)" }, { "x + 0.0", "x + -0.0" },
        { "1.0f32", "1.0f64" }, { "[1, 2]", "[[1, 2]]" }, { "softmax(x, axis=0)", "softmax(x)" },
    };
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, ?]; input y float32[?, ?]");
    for (size_t i = 0; i < NELEM(same); i++) {
        mc_node *a = mc_formula(g, same[i][0]), *b = mc_formula(g, same[i][1]);
        CHECK(!mc_is_error(a) && a == b, "%s and %s are two nodes %s", same[i][0], same[i][1], mc_error(g));
    }
    for (size_t i = 0; i < NELEM(other); i++) {
        mc_node *a = mc_formula(g, other[i][0]), *b = mc_formula(g, other[i][1]);
        CHECK(!mc_is_error(a) && a != b, "%s and %s are one node %s", other[i][0], other[i][1], mc_error(g));
    }
    size_t before = g->nodes.n;
    mc_formula(g, "exp(x) * y + sum(x, axis=1, keepdims=True)");
    size_t after = g->nodes.n;
    mc_formula(g, "exp(x) * y + sum(x, axis=1, keepdims=True)");
    CHECK(after > before && g->nodes.n == after, "%zu nodes more", g->nodes.n - after);
    mc_graph_free(g);
}

TEST(constants_are_shared_by_their_bits)
{
    mc_graph *g = mc_graph_new();
    const float nans[2] = { NAN, 1 }, zeros[2] = { 0, 0 }, minus[2] = { -0.0f, 0 };
    mc_array *a = mc_array_from(MC_FLOAT32, MC_SHAPE(2), nans),
             *b = mc_array_from(MC_FLOAT32, MC_SHAPE(2), nans);
    mc_array *z = mc_array_from(MC_FLOAT32, MC_SHAPE(2), zeros),
             *m = mc_array_from(MC_FLOAT32, MC_SHAPE(2), minus);
    CHECK(mc_constant(g, a) == mc_constant(g, b), "equal NaNs are two");
    CHECK(mc_constant(g, z) != mc_constant(g, m), "0 and -0 are one");
    CHECK(mc_number(g, MC_FLOAT32, 3) == mc_number(g, MC_FLOAT32, 3), "3 and 3 are two");
    CHECK(mc_number(g, MC_FLOAT32, 3) != mc_number(g, MC_FLOAT64, 3), "3 in two dtypes is one");
    mc_array_set(a, NULL, 7); /* the graph has a copy */
    CHECK(isnan(mc_array_get(mc_node_value(mc_constant(g, b)), NULL)),
          "the constant changed with the caller's array");
    mc_array_unref(&a);
    mc_array_unref(&b);
    mc_array_unref(&z);
    mc_array_unref(&m);
    mc_graph_free(g);
}

TEST(inputs_are_older_than_their_users)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 3]; y = softmax(tanh(x) * 2 + x); z = y + 1; unused = exp(x)");
    mc_node *out[2] = { mc_var(g, "z"), mc_var(g, "y") };
    size_t n;
    mc_node **list = mc_graph_reach(2, out, &n);
    for (size_t i = 0; i < g->nodes.n; i++) {
        CHECK(g->nodes.at[i]->id == i, "node %zu is number %u", i, g->nodes.at[i]->id);
        for (int k = 0; k < g->nodes.at[i]->nin; k++) {
            CHECK(g->nodes.at[i]->in[k]->id < i, "node %zu points up", i);
        }
    }
    for (size_t i = 1; i < n; i++) {
        CHECK(list[i - 1]->id < list[i]->id, "the list is out of order at %zu", i);
    }
    for (size_t i = 0; i < n; i++) {
        CHECK(list[i] != mc_var(g, "unused"), "what is not needed was reached");
        for (int k = 0; k < list[i]->nin; k++) {
            bool there = false;
            for (size_t j = 0; j < i; j++) {
                there |= list[j] == list[i]->in[k];
            }
            CHECK(there, "an input of %s was not reached", list[i]->op->name);
        }
    }
    CHECK(n > 5 && list[n - 1] == out[0], "%zu nodes", n);
    mc_free(list);
    mc_graph_free(g);
}

/* ---- large graphs ---- */

enum { LONG = 100000 };

/* x -> x + 0.0001 * sin(x), LONG / 3 times. */
static mc_node *long_chain(mc_graph *g, mc_node *x)
{
    mc_node *a = mc_number(g, x->type.dtype, 1e-4);
    for (int i = 0; i < LONG / 3; i++) {
        x = call2("add", x, call2("mul", a, call1("sin", x)));
    }
    return x;
}

/* x -> maximum(1.0001 * x, k): its gradient nests a condition for each maximum.  x stays the larger: the
 * gradient is 1.0001 to the number of steps. */
TEST(a_chain_of_conditions_has_a_gradient_of_linear_size)
{
    enum { STEPS = 20000 };
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT64, 0), *y = x, *up = mc_number(g, MC_FLOAT64, 1.0001);
    for (int i = 0; i < STEPS; i++) {
        y = call2("maximum", call2("mul", y, up), mc_number(g, MC_FLOAT64, i % 7 * 0.01));
    }
    mc_node *dx = mc_grad(y, x);
    mc_array *at = mc_array_scalar(MC_FLOAT64, 1), *out = NULL;
    size_t n;
    mc_free(mc_graph_reach(1, &dx, &n));
    CHECK(n < 12 * STEPS, "%zu nodes for %d steps", n, STEPS);
    CHECK(mc_eval(1, &x, &at, 1, &dx, &out) == MC_OK, "%s", mc_last_error());
    CHECK(out && fabs(mc_array_get(out, NULL) / exp(STEPS * log1p(1e-4)) - 1) < 1e-9, "%.17g",
          out ? mc_array_get(out, NULL) : 0);
    mc_array_unref(&at);
    mc_array_unref(&out);
    mc_graph_free(g);
}

TEST(a_chain_of_100000_nodes)
{
    mc_graph *g = mc_graph_new(), *h = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT64, 0), *y = mc_name(long_chain(g, x), "y"), *dx = mc_grad(y, x);
    mc_array *at = mc_array_scalar(MC_FLOAT64, .7), *out[2] = { 0 }, *again[2] = { 0 };
    mc_node *wanted[2] = { y, mc_name(dx, "dx") };
    double v = .7, d = 1;
    REQUIRE(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    size_t n;
    mc_node **list = mc_graph_reach(1, &y, &n);
    CHECK(n == LONG / 3 * 3 + 2, "%zu nodes", n); /* and x, 0.0001 */
    mc_free(list);
    for (int i = 0; i < LONG / 3; i++) {
        d *= 1 + 1e-4 * cos(v);
        v += 1e-4 * sin(v);
    }
    CHECK(mc_eval(1, &x, &at, 2, wanted, out) == MC_OK, "%s", mc_last_error());
    CHECK(fabs(mc_array_get(out[0], NULL) - v) < 1e-14, "%.17g, not %.17g", mc_array_get(out[0], NULL), v);
    CHECK(fabs(mc_array_get(out[1], NULL) - d) <= 1e-9 * fabs(d), "%g, not %g", mc_array_get(out[1], NULL),
          d);

    char *text = mc_graph_text(g, 2, wanted); /* and read again */
    mc_formula(h, text);
    mc_node *twin[2] = { mc_var(h, "y"), mc_var(h, "dx") }, *tx = mc_var(h, "x");
    if (CHECK(mc_graph_status(h) == MC_OK, "%s", mc_error(h))) {
        CHECK(mc_eval(1, &tx, &at, 2, twin, again) == MC_OK, "%s", mc_last_error());
        CHECK(mc_array_same_bits(out[0], again[0]) && mc_array_same_bits(out[1], again[1]),
              "read again it is another");
    }
    mc_text_free(text);
    mc_text_free(mc_node_text(y));

    mc_node *other = mc_input(g, "other", MC_FLOAT64, 0), *moved = y;
    CHECK(mc_graph_replace(g, 1, &x, &other, 1, &moved) == MC_OK && moved != y, "%s", mc_error(g));
    struct mc_str shown = { 0 };
    mc_node_print(&shown, y, 3);
    CHECK(shown.n < 200, "%zu bytes for three levels", shown.n);
    mc_str_free(&shown);
    for (int i = 0; i < 2; i++) {
        mc_array_unref(&out[i]);
        mc_array_unref(&again[i]);
    }
    mc_array_unref(&at);
    mc_graph_free(g);
    mc_graph_free(h);
}

/* One node with many users, one with many inputs. */
TEST(wide_graphs)
{
    enum { WIDE = 20000 };
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT64, 0), **part = malloc(WIDE * sizeof(mc_node *));
    for (int i = 0; i < WIDE; i++) {
        part[i] = call2("mul", x, mc_number(g, MC_FLOAT64, i));
    }
    mc_node *y = mc_op(g, "sum", 1, (mc_node *[]){ mc_op(g, "stack", WIDE, part, NULL) }, NULL),
            *dx = mc_grad(y, x);
    mc_array *at = mc_array_scalar(MC_FLOAT64, 2), *out = NULL;
    CHECK(mc_graph_status(g) == MC_OK && mc_eval(1, &x, &at, 1, &dx, &out) == MC_OK, "%s %s", mc_error(g),
          mc_last_error());
    CHECK(out && mc_array_get(out, NULL) == (double)WIDE * (WIDE - 1) / 2, "%g",
          out ? mc_array_get(out, NULL) : 0.0);
    mc_array_unref(&out);
    mc_array_unref(&at);
    free(part);
    mc_graph_free(g);
}

/* ---- names ---- */

TEST(names)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = mc_formula(g, "y = exp(x)");
    CHECK(mc_var(g, "x") == x && mc_var(g, "y") == y && strcmp(mc_node_name(y), "y") == 0, "%s",
          mc_node_name(y));
    mc_node *again = mc_formula(g, "y = y + 1"); /* the last assignment wins */
    CHECK(mc_var(g, "y") == again && again != y && mc_node_input(again, 0) == y, "%s", mc_error(g));
    CHECK(mc_is_error(mc_formula(g, "x = y")) &&
              strstr(mc_error(g), "'x' is an input and cannot be assigned"),
          "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_is_error(mc_name(y, "x")) && mc_var(g, "x") == x, "the name of an input was taken");
    mc_graph_clear_error(g);
    CHECK(mc_is_error(mc_formula(g, "z = x; z = y; z")) == false && mc_var(g, "x") == x, "%s", mc_error(g));
    CHECK(mc_name(y, "z") == y && mc_var(g, "z") == y && strcmp(mc_node_name(y), "y") == 0, "a second name");
    CHECK(!mc_is_error(mc_formula(g, "a, b = max_and_argmax(x)")) &&
              mc_node_dtype(mc_var(g, "b")) == MC_INT64,
          "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(what_a_node_is_can_be_read)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input_sized(g, "x", MC_FLOAT32, MC_SHAPE(-1, 3)),
            *y = mc_formula(g, "sum(x * 2.5, axis=0)");
    CHECK(strcmp(mc_node_op(x), "input") == 0 && strcmp(mc_node_op(y), "sum") == 0, "%s", mc_node_op(y));
    CHECK(mc_node_dtype(y) == MC_FLOAT32 && mc_node_rank(y) == 1 && mc_node_dims(y)[0] == 3 &&
              mc_node_dims(x)[0] == -1,
          "type");
    CHECK(mc_node_ninputs(y) == 1 && mc_node_input(mc_node_input(y, 0), 0) == x && !mc_node_input(y, 1) &&
              !mc_node_input(y, -1),
          "inputs");
    CHECK(mc_array_get(mc_node_value(mc_node_input(mc_node_input(y, 0), 1)), NULL) == 2.5 &&
              !mc_node_value(y),
          "value");
    CHECK(mc_node_id(x) < mc_node_id(y), "ids");
    mc_graph_free(g);
}

/* ---- shared variables ---- */

TEST(shared_variables)
{
    mc_graph *g = mc_graph_new(), *h = mc_graph_new();
    const float v[2] = { 1, 2 };
    mc_array *a = mc_array_from(MC_FLOAT32, MC_SHAPE(2), v);
    mc_shared *w = mc_shared_new(g, "w", a);
    mc_array_set(a, NULL, 9);
    mc_array *got = mc_shared_get(w);
    CHECK(mc_array_get(got, NULL) == 1, "the value followed the caller's array");
    mc_array_set(got, NULL, 9);
    mc_array_unref(&got);
    mc_array *own = mc_shared_borrow(w);
    CHECK(mc_array_get(own, NULL) == 1, "get is no copy");
    CHECK(mc_shared_set(w, a) == MC_OK && mc_array_get(own, NULL) == 9, "borrow is not the memory itself");
    mc_array_unref(&own);

    mc_node *n = mc_var(g, "w");
    CHECK(mc_shared_node(g, w) == n && mc_shared_named(g, "w") == w && !mc_shared_named(g, "v"),
          "found otherwise");
    CHECK(strcmp(mc_shared_name(w), "w") == 0 && mc_node_dims(n)[0] == 2 &&
              strcmp(mc_node_op(n), "shared") == 0,
          "%s", mc_node_op(n));
    CHECK(!mc_shared_new(g, "w", a) && strstr(mc_error(g), "the name 'w' is already in use"), "%s",
          mc_error(g));

    mc_node *there = mc_shared_node(h, w); /* one variable in two graphs */
    CHECK(there != n && there->graph == h && mc_var(h, "w") == there, "%s", mc_error(h));
    mc_input(h, "u", MC_FLOAT32, 0);
    mc_shared *u = mc_shared_zeros(g, "u", MC_FLOAT32, MC_SHAPE(2, 3));
    CHECK(mc_is_error(mc_shared_node(h, u)) && strstr(mc_error(h), "already in use"), "%s", mc_error(h));

    mc_shared_ref(w); /* and it outlives both */
    mc_graph_free(g);
    mc_graph_free(h);
    got = mc_shared_get(w);
    CHECK(got && mc_array_get(got, NULL) == 9, "the value went with the graph");
    mc_array_unref(&got);
    mc_shared_unref(&w);
    CHECK(!w, "still pointing");
    mc_array_unref(&a);
}

TEST(what_may_be_put_into_a_shared_variable)
{
    mc_graph *g = mc_graph_new();
    mc_shared *w = mc_shared_zeros(g, "w", MC_FLOAT32, MC_SHAPE(2, 3));
    mc_array *half = mc_array_new(MC_FLOAT16, MC_SHAPE(2, 3)),
             *wide = mc_array_new(MC_FLOAT64, MC_SHAPE(2, 3)),
             *tall = mc_array_new(MC_FLOAT32, MC_SHAPE(3, 3)), *flat = mc_array_new(MC_FLOAT32, MC_SHAPE(6));
    CHECK(mc_shared_set(w, half) == MC_OK, "%s", mc_last_error());
    CHECK(mc_shared_set(w, wide) == MC_ETYPE &&
              strstr(mc_last_error(), "w has dtype float32; a value of dtype float64 would lose digits"),
          "%s", mc_last_error());
    CHECK(mc_shared_set(w, tall) == MC_ESHAPE && strstr(mc_last_error(), "w has shape (2, 3), not (3, 3)"),
          "%s", mc_last_error());
    CHECK(mc_shared_set(w, flat) == MC_ESHAPE && mc_shared_set(w, NULL) == MC_EARG, "%s", mc_last_error());
    CHECK(!mc_shared_zeros(g, "v", MC_FLOAT32, MC_SHAPE(-2)) && mc_graph_status(g) < 0, "negative zeros");
    mc_graph_clear_error(g);
    mc_node *next = mc_formula(g, "w + 1");
    CHECK(mc_shared_default_update(g, w, next) == MC_OK &&
              mc_shared_default_update(g, w, mc_var(g, "w")) == MC_OK,
          "%s", mc_last_error());
    CHECK(g->defaults.n == 1 && g->defaults.at[0].value == mc_var(g, "w"),
          "the newer one replaces the older");
    CHECK(mc_shared_default_update(g, NULL, next) == MC_EARG &&
              mc_shared_default_update(g, w, NULL) == MC_EARG,
          "%s", mc_last_error());
    mc_array_unref(&half);
    mc_array_unref(&wide);
    mc_array_unref(&tall);
    mc_array_unref(&flat);
    mc_graph_free(g);
}

/* ---- memory ---- */

TEST(a_failed_allocation_while_building)
{
    mc_op_find("add"); /* the table of ops is made once, before */
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        CHECK(g || ALLOC_FAILED, "no graph");
        if (g) {
            mc_formula(g, "input x float64[?, 3]; shared W float64[3, 2]; input t float64[?, 2]");
            mc_node *cost = mc_formula(
                g, "p = softmax(dot(x, W) + 0.5); cost = mean(sqr(p - t) + relu(p[:, 0:1]))");
            mc_node *w = mc_var(g, "W"), *dw = mc_formula(g, "grad(cost, W)"),
                    *dx = mc_grad(cost, mc_var(g, "x"));
            bool failed = mc_is_error(cost) || mc_is_error(w) || mc_is_error(dw) || mc_is_error(dx);
            CHECK(!failed || ALLOC_FAILED, "%s", mc_error(g));
            CHECK(!failed || (mc_graph_status(g) == MC_EMEMORY && *mc_error(g)), "%s", mc_error(g));
            char *text = mc_graph_text(g, 1, &dw);
            CHECK(text || ALLOC_FAILED, "no text");
            mc_text_free(text);
        }
        mc_graph_free(g);
    }
}

TEST(a_failed_allocation_while_evaluating)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float32[?, 3]; y = softmax(x); a, b = max_and_argmax(x, axis=1)");
    mc_node *x = mc_var(g, "x"), *out[3] = { mc_var(g, "y"), mc_var(g, "a"), mc_var(g, "b") };
    mc_array *at = mc_array_new(MC_FLOAT32, MC_SHAPE(4, 3));
    REQUIRE(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    ALLOC_FAIL_LOOP {
        mc_array *y[3] = { 0 };
        mc_status s = mc_eval(1, &x, &at, 3, out, y);
        CHECK(s == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
        CHECK(s == MC_OK ? y[0] && y[1] && y[2] : !y[0] && !y[1] && !y[2], "half a result");
        for (int i = 0; i < 3; i++) {
            mc_array_unref(&y[i]);
        }
    }
    mc_array_unref(&at);
    mc_graph_free(g);
}
