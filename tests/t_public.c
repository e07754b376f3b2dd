/* t_public.c: the functions made from the table of ops (monochord_ops.h) do what formulas do. */
#include "check.h"
#include "op/op.h"

TEST(functions_make_what_formulas_make)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 2), *t = mc_input(g, "t", MC_INT64, 1);
    CHECK(mc_exp(x) == mc_formula(g, "exp(x)"), "exp");
    CHECK(mc_sum(x, "axis=%d, keepdims=True", 1) == mc_formula(g, "sum(x, axis=1, keepdims=True)"), "sum: %s",
          mc_error(g));
    CHECK(mc_cast(x, "float64") == mc_formula(g, "cast(x, float64)"), "cast");
    CHECK(mc_join(2, (mc_node *[]){ x, mc_neg(x) }, "axis=1") == mc_formula(g, "join(x, -x, axis=1)"),
          "join");
    CHECK(mc_variance(x, NULL) == mc_formula(g, "var(x)"), "var");
    CHECK(mc_layer_norm(x, NULL, NULL, NULL) == mc_formula(g, "layer_norm(x)"), "optional tensors: %s",
          mc_error(g));
    CHECK(mc_take(x, t, "axis=1, mode=\"%s\"", "clip") == mc_formula(g, "take(x, t, axis=1, mode=\"clip\")"),
          "text: %s", mc_error(g));
    CHECK(mc_index(x, "%d:, ::%d", 1, -1) == mc_formula(g, "x[1:, ::-1]"), "index: %s", mc_error(g));
    CHECK(mc_index(x, "t") == mc_formula(g, "x[t]"), "index by name: %s", mc_error(g));
    CHECK(mc_set_subtensor(mc_index(x, "0"), t) != NULL && mc_graph_status(g) == MC_ETYPE,
          "float32 from int64: %s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_inc_subtensor(mc_index(x, "0"), mc_index(x, "1")) == mc_formula(g, "inc_subtensor(x[0], x[1])"),
          "inc: %s", mc_error(g));
    CHECK(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(formulas_are_printed_into)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT64, 2), *k = mc_input(g, "k", MC_INT64, 1);
    CHECK(mc_formulaf(g, "%s * %g + %d", "x", 0.5, 3) == mc_formula(g, "x * 0.5 + 3"), "%s", mc_error(g));
    CHECK(mc_formulaf(g, "k %% %d", 3) == mc_formula(g, "k % 3"), "%% is an operator: %s", mc_error(g));
    CHECK(mc_formulaf(g, "x") == x && mc_formulaf(g, "%s", "k") == k, "%s", mc_error(g));
    CHECK(mc_opf(g, "sum", 1, &x, "axis=%d", 1) == mc_formula(g, "sum(x, axis=1)") &&
              mc_opf(g, "sum", 1, &x, NULL) == mc_formula(g, "sum(x)"),
          "%s", mc_error(g));
    char more[3000];
    memset(more, ' ', sizeof more);
    more[sizeof more - 1] = '\0';
    CHECK(mc_formulaf(g, "x%s + %d", more, 12345) == mc_formula(g, "x + 12345"), "a long text: %s",
          mc_error(g));
    CHECK(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    int line = __LINE__ + 1;
    CHECK(mc_formulaf(g, "x + %s", "y1") == g->error, "no such variable");
    char where[40];
    snprintf(where, sizeof where, "t_public.c:%d", line);
    CHECK(strstr(mc_error(g), "no variable 'y1'\n    x + y1\n        ^") && strstr(mc_error(g), where), "%s",
          mc_error(g));
    mc_graph_clear_error(g);
    const char *none = NULL;
    CHECK(mc_formulaf(g, none, 0) == g->error && strstr(mc_error(g), "the text is NULL"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_formulaf(g, "%s", "") == g->error && strstr(mc_error(g), "the formula is empty"), "%s",
          mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_opf(g, "sum", 1, &x, "axs=%d", 1) == g->error &&
              strstr(mc_error(g), "sum has no parameter 'axs'"),
          "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_opf(g, NULL, 1, &x, "axis=%d", 1) == g->error && strstr(mc_error(g), "op: no name"), "%s",
          mc_error(g));
    CHECK(!mc_formulaf(NULL, "x") && !mc_opf(NULL, "sum", 1, &x, "axis=%d", 1), "no graph");
    mc_graph_free(g);
}

TEST(every_failed_allocation_of_a_printed_formula)
{
    mc_op_find("add");
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        if (g) {
            mc_node *x = mc_formulaf(g, "input x float64[?, %d]", 3), *y = mc_formulaf(g, "x * %.3f", 0.25),
                    *z = mc_opf(g, "sum", 1, &y, "axis=%d", 1);
            bool failed = mc_is_error(x) || mc_is_error(y) || mc_is_error(z);
            CHECK(!failed || (ALLOC_FAILED && mc_graph_status(g) == MC_EMEMORY && *mc_error(g)), "%s",
                  mc_error(g));
            CHECK(failed || (mc_node_rank(z) == 1 && mc_is_op(z, "sum")), "another op");
        }
        mc_graph_free(g);
    }
}

/* More than a dozen arguments: all come, in order. */
TEST(calls_take_32_arguments)
{
    mc_graph *g = mc_graph_new();
    char names[400] = "", outputs[400] = "";
    for (int i = 0; i < 32; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        mc_input(g, name, MC_FLOAT64, 0);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", name);
        snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%s * 2", i ? ", " : "",
                 name);
    }
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = names, .outputs = outputs, .mode = "FAST_COMPILE" });
    double y[32] = { 0 };
    REQUIRE(f, "%s", mc_error(g));
    mc_status s = mc_call(f,
                          MC_IN(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                22, 23, 24, 25, 26, 27, 28, 29, 30, 31.5f),
                          MC_OUT(y, y + 1, y + 2, y + 3, y + 4, y + 5, y + 6, y + 7, y + 8, y + 9, y + 10,
                                 y + 11, y + 12, y + 13, y + 14, y + 15, y + 16, y + 17, y + 18, y + 19,
                                 y + 20, y + 21, y + 22, y + 23, y + 24, y + 25, y + 26, y + 27, y + 28,
                                 y + 29, y + 30, y + 31));
    CHECK(s == MC_OK, "%s", mc_last_error());
    for (int i = 0; i < 32; i++) {
        CHECK(y[i] == (i < 31 ? 2 * i : 63), "result %d is %g", i, y[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(functions_note_the_line)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 2);
    mc_node *y = mc_tanh(x);
    CHECK(y->line == __LINE__ - 1 && strcmp(y->file, __FILE__) == 0, "%s:%d", y->file ? y->file : "",
          y->line);
    mc_graph_free(g);
}

TEST(functions_say_what_is_missing)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 2);
    CHECK(mc_add(x, NULL) == g->error && strstr(mc_error(g), "argument 2 is missing"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_sum(x, "axes=1") == g->error && strstr(mc_error(g), "no parameter 'axes'"), "%s", mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_add(NULL, NULL) == NULL && strstr(mc_last_error(), "add"), "%s", mc_last_error());
    CHECK(mc_index(x, "3, 4, 5") == g->error && strstr(mc_error(g), "too many indices: 3"), "%s",
          mc_error(g));
    CHECK(mc_set_subtensor(NULL, x) == g->error, "a region is needed");
    mc_graph_free(g);
}
