/* t_label.c: labels: what steps are called by them, and that nothing else changes. */
#include "check.h"
#include "graph/graph.h"
#include <monochord.h>
#include <string.h>

/* Two layers with a loss and a step of gradient descent, labelled or not. */
static mc_function *made(mc_graph *g, bool labelled)
{
    mc_input_sized(g, "x", MC_FLOAT32, 2, (int64_t[]){ 8, 6 });
    mc_input_sized(g, "t", MC_FLOAT32, 2, (int64_t[]){ 8, 3 });
    mc_shared_zeros(g, "W1", MC_FLOAT32, MC_SHAPE(6, 5));
    mc_shared_zeros(g, "b1", MC_FLOAT32, MC_SHAPE(5));
    mc_shared_zeros(g, "W2", MC_FLOAT32, MC_SHAPE(5, 3));
    const char *const parts[][2] = { { "fc1", "h = tanh(dot(x, W1) + b1)" },
                                     { "fc2", "y = dot(h, W2)" },
                                     { "loss", "cost = mean(sqr(y - t))" } };
    for (size_t i = 0; i < NELEM(parts); i++) {
        const char *before = mc_label(g, labelled ? parts[i][0] : NULL);
        mc_formula(g, parts[i][1]);
        mc_label(g, before);
    }
    return mc_compile(
        g, &(mc_spec){ .name = "step",
                       .inputs = "x, t",
                       .outputs = "cost",
                       .updates = "W1 = W1 - 0.1f32 * grad(cost, W1); b1 = b1 - 0.1f32 * grad(cost, "
                                  "b1); W2 = W2 - 0.1f32 * grad(cost, W2)" });
}

static bool some_step(const mc_function *f, const char *says)
{
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        if (strstr(mc_function_step(f, i).name, says)) {
            return true;
        }
    }
    return false;
}

TEST(steps_are_called_by_labels)
{
    static const char *const says[] = { "fc1 forward", "fc2 forward", "loss forward", "fc1 backward", "gradient of W1", "gradient of W2", "update of W1", "update of b1",
                                        "update of W2" };
    mc_graph *g = mc_graph_new();
    mc_function *f = made(g, true);
    REQUIRE(f, "%s", mc_error(g));
    for (size_t i = 0; i < NELEM(says); i++) {
        if (!CHECK(some_step(f, says[i]), "no step is called '%s'", says[i])) {
            for (int k = 0; k < mc_function_nsteps(f); k++) {
                printf("%d: %s | %s\n", k, mc_function_step(f, k).name, mc_function_step(f, k).text);
            }
        }
    }
    for (int i = 0; i < mc_function_nsteps(f); i++) {
        CHECK(*mc_function_step(f, i).name, "step %d has no name", i);
    }
    mc_function_free(f);
    f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y" });
    CHECK(f && some_step(f, "fc1") && !some_step(f, "forward"), "without gradients there is one direction");
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(without_labels_steps_go_by_their_values)
{
    mc_graph *g = mc_graph_new();
    mc_function *f = made(g, false);
    REQUIRE(f, "%s", mc_error(g));
    CHECK(some_step(f, "cost") && some_step(f, "gradient of W1") && some_step(f, "update of W2") &&
              !some_step(f, "forward"),
          "names of results and variables");
    CHECK(*mc_function_step(f, 0).name && !*mc_function_step(f, -1).name, "names");
    mc_function_free(f);
    mc_graph_free(g);
}

/* The same nodes, the same kernels, the same formulas. */
TEST(labels_change_nothing_else)
{
    mc_graph *g = mc_graph_new(), *h = mc_graph_new();
    mc_function *with = made(g, true), *without = made(h, false);
    REQUIRE(with && without, "%s %s", mc_error(g), mc_error(h));
    CHECK(g->nodes.n == h->nodes.n, "%zu and %zu nodes", g->nodes.n, h->nodes.n);
    CHECK(strcmp(mc_function_source(with), mc_function_source(without)) == 0, "kernels");
    CHECK(strcmp(mc_function_graph_text(with), mc_function_graph_text(without)) == 0, "formulas");
    CHECK(mc_function_nsteps(with) == mc_function_nsteps(without), "steps");
    mc_function_free(with);
    mc_function_free(without);
    mc_graph_free(g);
    mc_graph_free(h);
}

TEST(labels_are_said_in_turn)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    CHECK(mc_label(g, "outer") == NULL, "there was none");
    mc_node *a = mc_formula(g, "exp(x)");
    CHECK(strcmp(mc_label(g, "inner"), "outer") == 0, "the one before");
    mc_node *b = mc_formula(g, "tanh(x)");
    CHECK(mc_formula(g, "exp(x)") == a && strcmp(a->label->text, "outer") == 0,
          "a node that was there stays, with its label");
    CHECK(strcmp(b->label->text, "inner") == 0 && strcmp(mc_label(g, NULL), "inner") == 0, "the one between");
    CHECK(!mc_formula(g, "log(x)")->label && mc_label(g, "") == NULL && mc_label(NULL, "x") == NULL, "none");
    CHECK(mc_label_of(g, "outer", NULL, false) == a->label, "one struct a label");
    mc_graph_free(g);
}
