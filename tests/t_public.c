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
    CHECK(mc_join(2, (mc_node *[]){ x, mc_neg(x) }, "axis=1") == mc_formula(g, "join(x, -x, axis=1)"), "join");
    CHECK(mc_variance(x, NULL) == mc_formula(g, "var(x)"), "var");
    CHECK(mc_layer_norm(x, NULL, NULL, NULL) == mc_formula(g, "layer_norm(x)"), "optional tensors: %s", mc_error(g));
    CHECK(mc_take(x, t, "axis=1, mode=\"%s\"", "clip") == mc_formula(g, "take(x, t, axis=1, mode=\"clip\")"),
          "text: %s", mc_error(g));
    CHECK(mc_index(x, "%d:, ::%d", 1, -1) == mc_formula(g, "x[1:, ::-1]"), "index: %s", mc_error(g));
    CHECK(mc_index(x, "t") == mc_formula(g, "x[t]"), "index by name: %s", mc_error(g));
    CHECK(mc_set_subtensor(mc_index(x, "0"), t) != NULL && mc_graph_status(g) == MC_ETYPE, "float32 from int64: %s",
          mc_error(g));
    mc_graph_clear_error(g);
    CHECK(mc_inc_subtensor(mc_index(x, "0"), mc_index(x, "1")) == mc_formula(g, "inc_subtensor(x[0], x[1])"),
          "inc: %s", mc_error(g));
    CHECK(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(functions_note_the_line)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input(g, "x", MC_FLOAT32, 2);
    mc_node *y = mc_tanh(x);
    CHECK(y->line == __LINE__ - 1 && strcmp(y->file, __FILE__) == 0, "%s:%d", y->file ? y->file : "", y->line);
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
    CHECK(mc_index(x, "3, 4, 5") == g->error && strstr(mc_error(g), "3 indices"), "%s", mc_error(g));
    CHECK(mc_set_subtensor(NULL, x) == g->error, "a region is needed");
    mc_graph_free(g);
}
