/* t_graph_wrong.c: mistakes while a graph is built: what is said, and that nothing after the first one
 * hurts. */
#include "check.h"
#include "op/op.h"

#include <math.h>
#include <stdlib.h>

/* The graphs that sizes are inferred in, and rules read, know ops alone. */
TEST(graphs_without_gradients_say_so)
{
    static const char *const rows[] = { "grad(sum(x), x)", "Lop(x * 2, x, x)", "Rop(x * 2, x, x)" };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_graph *g = mc_graph_make(&mc_op_language);
        mc_input(g, "x", MC_FLOAT32, 1);
        CHECK(mc_is_error(mc_formula(g, rows[i])) && strstr(mc_error(g), "cannot take gradients"), "%s: %s",
              rows[i], mc_error(g));
        mc_graph_free(g);
    }
}

TEST(the_first_mistake_stays)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_node *bad = mc_formula(g, "dot(x, nothing)");
    CHECK(mc_is_error(bad) && mc_graph_status(g) == MC_ESYNTAX, "%s", mc_error(g));
    mc_formula(g, "another(mistake)");
    CHECK(strstr(mc_error(g), "nothing") && !strstr(mc_error(g), "another"), "%s", mc_error(g));
    mc_node *fine = mc_formula(g, "exp(x)"); /* what is right is still built */
    CHECK(!mc_is_error(fine) && mc_graph_status(g) == MC_ESYNTAX, "%s", mc_node_op(fine));
    mc_graph_clear_error(g);
    CHECK(mc_graph_status(g) == MC_OK && !*mc_error(g), "%s", mc_error(g));
    CHECK(!mc_is_error(mc_formula(g, "exp(x) + 1")) && mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(the_error_node_goes_through_every_builder)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 2), *bad = mc_formula(g, "x +"), *out[2] = { x, x };
    mc_shared *s = mc_shared_zeros(g, "s", MC_FLOAT32, MC_NOSHAPE);
    char *first = mc_strdup(mc_error(g));
    double worst;
    REQUIRE(mc_is_error(bad) && *first, "%s", mc_error(g));

    for (int i = 0; i < mc_op_count(); i++) {
        const struct mc_op *op = mc_op_at(i);
        for (int n = 0; n <= op->sig->ntensor + 1; n++) {
            mc_node *arg[24];
            for (int k = 0; k < 24; k++) {
                arg[k] = bad;
            }
            CHECK(mc_is_error(mc_op(g, op->name, n, arg, NULL)) || n == 0, "%s of errors is something",
                  op->name);
            if (n > 1) {
                arg[0] = x;
                CHECK(mc_is_error(mc_op(g, op->name, n, arg, NULL)), "%s of x and errors is something",
                      op->name);
            }
        }
    }
    CHECK(mc_name(bad, "bad") == bad && mc_is_error(mc_var(g, "bad")), "the error node was named");
    CHECK(mc_is_error(mc_item(bad, 0)) && mc_is_error(mc_item(bad, 5)), "item");
    CHECK(mc_is_error(mc_grad(bad, x)) && mc_is_error(mc_grad(x, bad)) && mc_is_error(mc_grad(bad, bad)),
          "grad");
    CHECK(mc_is_error(mc_Lop(bad, x, x)) && mc_is_error(mc_Lop(x, bad, x)) && mc_is_error(mc_Lop(x, x, bad)),
          "Lop");
    CHECK(mc_is_error(mc_Rop(bad, x, x)) && mc_is_error(mc_Rop(x, bad, x)) && mc_is_error(mc_Rop(x, x, bad)),
          "Rop");
    CHECK(mc_grads(bad, 1, &x, out, NULL) < 0 && mc_is_error(out[0]), "grads");
    mc_array *at = mc_array_new(MC_FLOAT32, MC_SHAPE(2, 2));
    CHECK(mc_verify_grad(bad, 1, &x, &at, &worst) < 0 && mc_verify_grad(x, 1, &bad, &at, &worst) < 0,
          "verify_grad");
    mc_array_unref(&at);
    CHECK(mc_shared_default_update(g, s, bad) < 0, "default_update");
    char *text = mc_node_text(bad), *whole = mc_graph_text(g, 1, &bad);
    CHECK(text && strcmp(text, "error") == 0 && whole, "printed as %s", text ? text : "nothing");
    mc_text_free(text);
    mc_text_free(whole);
    CHECK(strcmp(mc_node_op(bad), "error") == 0 && mc_node_rank(bad) == 0 && mc_node_ninputs(bad) == 0 &&
              !mc_node_input(bad, 0) && !mc_node_value(bad) && !*mc_node_name(bad),
          "reading the error node");
    CHECK(strcmp(mc_error(g), first) == 0, "the message became: %s", mc_error(g));
    mc_text_free(first);
    mc_graph_free(g);
}

TEST(nothing_in_gives_nothing_or_an_error)
{
    mc_graph *g = mc_graph_new(), *h = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 0), *of_h = mc_input(h, "x", MC_FLOAT32, 0), *none = NULL, *out;
    double worst;
    CHECK(!mc_input(NULL, "x", MC_FLOAT32, 0) && !mc_formula(NULL, "1") && !mc_var(NULL, "x") &&
              !mc_constant(NULL, NULL),
          "no graph");
    CHECK(!mc_op(NULL, "exp", 0, NULL, NULL) && !mc_number(NULL, MC_FLOAT32, 1) && !mc_item(NULL, 0) &&
              !mc_name(NULL, "x"),
          "no graph");
    CHECK(!mc_grad(NULL, NULL) && !mc_Lop(NULL, NULL, NULL) && !mc_Rop(NULL, NULL, NULL), "no nodes");
    CHECK(mc_is_error(mc_grad(x, NULL)) && mc_is_error(mc_grad(NULL, x)), "half a gradient");
    CHECK(mc_grads(NULL, 0, NULL, NULL, NULL) == MC_EARG && mc_grads(x, 1, NULL, &out, NULL) == MC_EARG, "%s",
          mc_last_error());
    CHECK(mc_verify_grad(NULL, 0, NULL, NULL, &worst) == MC_EARG, "%s", mc_last_error());
    CHECK(mc_is_error(mc_formula(g, NULL)) && mc_is_error(mc_op(g, NULL, 0, NULL, NULL)) &&
              mc_is_error(mc_op(g, "exp", 1, &none, NULL)),
          "NULL");
    CHECK(mc_is_error(mc_var(g, NULL)) && mc_is_error(mc_constant(g, NULL)) &&
              mc_is_error(mc_input(g, NULL, MC_FLOAT32, 0)),
          "NULL");
    mc_graph_clear_error(g);
    CHECK(mc_is_error(mc_op(g, "exp", 1, &of_h, NULL)) && strstr(mc_error(g), "another graph"), "%s",
          mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_is_error(mc_grad(x, of_h)) && strstr(mc_error(g), "another graph"), "%s", mc_error(g));
    CHECK(!*mc_node_op(NULL) && !*mc_node_name(NULL) && !mc_node_dims(NULL) && mc_node_rank(NULL) == 0 &&
              !mc_node_value(NULL),
          "NULL node");
    mc_graph_free(NULL);
    mc_shared_unref(NULL);
    CHECK(!mc_shared_ref(NULL) && !mc_shared_get(NULL) && !mc_shared_borrow(NULL) &&
              mc_shared_set(NULL, NULL) == MC_EARG,
          "NULL shared");
    mc_graph_free(g);
    mc_graph_free(h);
}

/* Wrong calls and what is said about them. */
static mc_node *input_twice(mc_graph *g) { return mc_input(g, "x", MC_FLOAT32, 1); }
static mc_node *input_name(mc_graph *g) { return mc_input(g, "2x", MC_FLOAT32, 1); }
static mc_node *input_rank(mc_graph *g) { return mc_input(g, "w", MC_FLOAT32, 9); }
static mc_node *input_dtype(mc_graph *g) { return mc_input(g, "w", (mc_dtype)99, 1); }
static mc_node *input_size(mc_graph *g) { return mc_input_sized(g, "w", MC_FLOAT32, MC_SHAPE(2, -3)); }
static mc_node *no_op(mc_graph *g) { return mc_op(g, "expp", 0, NULL, NULL); }
static mc_node *few(mc_graph *g) { return mc_op(g, "add", 1, (mc_node *[]){ mc_var(g, "x") }, NULL); }
static mc_node *many(mc_graph *g)
{
    return mc_op(g, "exp", 2, (mc_node *[]){ mc_var(g, "x"), mc_var(g, "x") }, NULL);
}
static mc_node *attribute(mc_graph *g)
{
    return mc_op(g, "sum", 1, (mc_node *[]){ mc_var(g, "x") }, "axiz=1");
}
static mc_node *axis(mc_graph *g)
{
    return mc_op(g, "sum", 1, (mc_node *[]){ mc_var(g, "x") }, "axis=2");
}
static mc_node *axis_twice(mc_graph *g)
{
    return mc_op(g, "sum", 1, (mc_node *[]){ mc_var(g, "x") }, "axis=[0, -1]");
}
static mc_node *leaf_op(mc_graph *g)
{
    return mc_op(g, "dimshuffle", 1, (mc_node *[]){ mc_var(g, "x") }, "order=[0, 0]");
}
static mc_node *tuple_in(mc_graph *g)
{
    return mc_op(g, "exp", 1, (mc_node *[]){ mc_formula(g, "max_and_argmax(x)") }, NULL);
}
static mc_node *item_far(mc_graph *g) { return mc_item(mc_formula(g, "max_and_argmax(x)"), 2); }
static mc_node *bad_name(mc_graph *g) { return mc_name(mc_formula(g, "x + 1"), "a b"); }
static mc_node *no_var(mc_graph *g) { return mc_var(g, "nobody"); }
static mc_node *sizes(mc_graph *g)
{
    mc_node *p = mc_input_sized(g, "p", MC_FLOAT32, MC_SHAPE(3, 4)),
            *q = mc_input_sized(g, "q", MC_FLOAT32, MC_SHAPE(3, 5));
    return mc_op(g, "add", 2, (mc_node *[]){ p, q }, NULL);
}

TEST(wrong_calls_and_what_is_said)
{
    static const struct { mc_node *(*call)(mc_graph *g); mc_status status; const char *says; } wrong[] = {
        { input_twice, MC_EARG, "input: the name 'x' is already in use" },
        { input_name, MC_EARG, "input: '2x' is not a valid name" },
        { input_rank, MC_ESHAPE, "input w: rank 9 is not between 0 and 8" },
        { input_dtype, MC_ETYPE, "input w: 99 is not a dtype" },
        { input_size, MC_ESHAPE, "input w: size -3 of axis 1 is negative" },
        { no_op, MC_EARG, "there is no op 'expp'" },
        { few, MC_EARG, "add needs the argument 'b': add(a, b)" },
        { many, MC_EARG, "exp takes 1 argument, not 2: exp(a)" },
        { attribute, MC_ESYNTAX, "sum has no parameter 'axiz'" },
        { axis, MC_ESHAPE, "sum: axis 2 is out of range for rank 1  [x: float32[?]]" },
        { axis_twice, MC_EARG, "sum: axis 0 is given twice" },
        { leaf_op, MC_ESHAPE, "dimshuffle: 0 is not an axis of rank 1, or is given twice" },
        { tuple_in, MC_EARG, "exp: argument 1 is a tuple; take one of its items" },
        { item_far, MC_EARG, "2 results, asked for number 2" },
        { bad_name, MC_EARG, "'a b' is not a valid name" },
        { no_var, MC_EARG, "there is no variable 'nobody'" },
        { sizes, MC_ESHAPE, "add: shapes (3, 4) and (3, 5) do not broadcast: sizes 4 and 5 on axis 1  [p: float32[3, 4], q: float32[3, 5]]" },
    };
    for (size_t i = 0; i < NELEM(wrong); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 1);
        mc_node *n = wrong[i].call(g);
        CHECK(mc_is_error(n) && mc_graph_status(g) == wrong[i].status, "row %zu: status %d: %s", i,
              (int)mc_graph_status(g), mc_error(g));
        CHECK(strstr(mc_error(g), wrong[i].says), "row %zu says: %s", i, mc_error(g));
        CHECK(strcmp(mc_error(g), mc_last_error()) == 0, "mc_last_error says: %s", mc_last_error());
        mc_graph_free(g);
    }
}
