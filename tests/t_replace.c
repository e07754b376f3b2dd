/* t_replace.c: mc_replace computes a program with some nodes replaced, all at once, and copies no more than
 * it must. */
#include "check.h"
#include "graph/graph.h"

static mc_graph *two_inputs(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float64[?]; input y float64[?]; input xs float64[?, ?]");
    return g;
}

TEST(replace_gives_the_formula_with_the_replacement)
{
    static const struct { const char *e, *from, *to, *want; } rows[] = {
        { "exp(x) + y", "x", "2 * y", "exp(2 * y) + y" },
        { "exp(x) + y", "exp(x)", "y", "y + y" },
        { "exp(x)", "exp(x)", "y", "y" },
        { "x", "x", "y + 1", "y + 1" },
        { "sum(x)", "y", "x", "sum(x)" },
        { "a, b = split(x, [1, 2]); a * 2", "x", "y * 3", "a, b = split(y * 3, [1, 2]); a * 2" },
        { "x[1:] + x[:-1]", "x", "sqr(x)", "sqr(x)[1:] + sqr(x)[:-1]" },
    };
    mc_graph *g = two_inputs();
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_node *from = mc_formula(g, rows[i].from), *to = mc_formula(g, rows[i].to);
        mc_node *out = mc_formula(g, rows[i].e), *want = mc_formula(g, rows[i].want);
        CHECK(mc_replace(1, &from, &to, 1, &out) == MC_OK && out == want && !mc_is_error(out), "%s: %s",
              rows[i].e, mc_last_error());
    }
    mc_graph_free(g);
}

TEST(replacements_are_made_at_once)
{
    mc_graph *g = two_inputs();
    mc_node *x = mc_var(g, "x"), *y = mc_var(g, "y");
    mc_node *from[] = { x, y }, *to[] = { y, x }; /* exchanged, not one after the other */
    mc_node *out[] = { mc_formula(g, "x - y"), mc_formula(g, "exp(x)"), x };
    CHECK(mc_replace(2, from, to, 3, out) == MC_OK, "%s", mc_last_error());
    CHECK(out[0] == mc_formula(g, "y - x") && out[1] == mc_formula(g, "exp(y)") && out[2] == y, "exchanged");
    to[0] = mc_formula(g, "x * 2"); /* what is put in is not replaced itself */
    out[0] = mc_formula(g, "x + 1");
    CHECK(mc_replace(1, from, to, 1, out) == MC_OK && out[0] == mc_formula(g, "x * 2 + 1"), "once");
    size_t before = g->nodes.n;
    out[0] = mc_formula(g, "exp(x) * exp(y)");
    size_t made = g->nodes.n;
    CHECK(mc_replace(1, &y, &x, 1, out) == MC_OK && g->nodes.n <= made + 1 && made > before,
          "%zu nodes are new", g->nodes.n - made);
    mc_graph_free(g);
}

/* A gradient is an ordinary expression: what stands for a variable afterwards is not differentiated. */
TEST(replacing_in_a_gradient_differentiates_nothing)
{
    mc_graph *g = two_inputs();
    mc_node *x = mc_var(g, "x"), *y = mc_var(g, "y"), *to = mc_formula(g, "3 * x");
    mc_node *out = mc_grad(mc_formula(g, "sum(x * y)"), x), *want = mc_grad(mc_formula(g, "sum(x * y)"), x);
    CHECK(mc_replace(1, &y, &to, 1, &out) == MC_OK && out != want, "%s", mc_last_error());
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .output = &out, .noutput = 1 });
    double values[] = { 1, -2 };
    mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(2), values), *r = NULL;
    CHECK(f && mc_call(f, MC_IN(a), MC_OUT(&r)) == MC_OK, "%s", mc_error(g));
    const double *got = mc_array_data(r);
    CHECK(got[0] == 3 && got[1] == -6, "%g %g, not 3 * x", got[0], got[1]);
    mc_array_unref(&r);
    mc_array_unref(&a);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(replacing_reaches_the_body_of_a_loop)
{
    mc_graph *g = two_inputs();
    mc_node *x = mc_var(g, "x"), *to = mc_formula(g, "x + 1");
    mc_node *out[] = { mc_formula(g, "scan(r in xs, h from y: h = h * x + r)"),
                       mc_formula(g, "z = x + 1; scan(r in xs, h from y: h = h * z + r)") };
    CHECK(mc_replace(1, &x, &to, 1, out) == MC_OK, "%s", mc_last_error());
    out[0] = mc_item(out[0], 0);
    out[1] = mc_item(out[1], 0);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, y, xs", .output = out, .noutput = 2 });
    mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(2), (double[]){ 1, 2 });
    mc_array *xs = mc_array_from(MC_FLOAT64, MC_SHAPE(2, 2), (double[]){ 1, 1, 1, 1 });
    mc_array *r[2] = { NULL, NULL };
    CHECK(f && mc_call(f, MC_IN(a, a, xs), MC_OUT(&r[0], &r[1])) == MC_OK, "%s", mc_error(g));
    const double want[] = { 3, 7, 7, 22 }; /* h * (x + 1) + 1, twice, from h = x */
    for (int i = 0; i < 2; i++) {
        CHECK(r[i] && memcmp(mc_array_data(r[i]), want, sizeof want) == 0, "result %d", i);
        mc_array_unref(&r[i]);
    }
    mc_array_unref(&a);
    mc_array_unref(&xs);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(replace_refuses_what_is_wrong)
{
    mc_graph *g = two_inputs(), *other = two_inputs();
    mc_node *x = mc_var(g, "x"), *y = mc_var(g, "y"), *out = mc_formula(g, "exp(x) + y"), *same = out;
    mc_node *foreign = mc_var(other, "x"), *none = NULL, *matrix = mc_var(g, "xs");
    CHECK(mc_replace(1, &x, &foreign, 1, &out) == MC_EARG && strstr(mc_last_error(), "another graph"), "%s",
          mc_last_error());
    CHECK(mc_replace(1, &none, &y, 1, &out) == MC_EARG && strstr(mc_last_error(), "NULL"), "%s",
          mc_last_error());
    CHECK(mc_replace(1, NULL, &y, 1, &out) == MC_EARG && mc_replace(1, &x, &y, 1, NULL) == MC_EARG, "NULL");
    CHECK(mc_replace(-1, &x, &y, 1, &out) == MC_EARG && mc_replace(0, NULL, NULL, 1, &out) == MC_OK,
          "numbers");
    CHECK(out == same, "a refused call changes nothing");
    mc_node *dot = mc_formula(g, "xs[:, :2] @ zeros([2, 3])"), *part = mc_formula(g, "xs[:, :2]");
    mc_node *wide = mc_formula(g, "zeros([4, 5])");
    CHECK(mc_replace(1, &part, &wide, 1, &dot) < 0 && mc_graph_status(g) < 0, "shapes that do not fit");
    mc_graph_clear_error(g);
    CHECK(mc_replace(1, &matrix, &matrix, 1, &out) == MC_OK && out == same, "nothing to do");
    mc_graph_free(other);
    mc_graph_free(g);
}
