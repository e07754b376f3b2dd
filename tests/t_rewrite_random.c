/* t_rewrite_random.c: rewrites keep the values of random graphs, and of those with sizes that are rare. */
#include "rewrite_words.h"

/* ---- random graphs ---- */

/* A formula of x's shape. */
static void grow(struct mc_str *out, int depth)
{
    static const char *const leaves[] = {
        "x", "y", "s", "2.0", "0.5", "1", "0", "x[0]", "transpose(transpose(y))", "alloc(s, x.shape)"
    };
    static const char *const unary[] = { "exp(-abs(%))", "tanh(%)", "log(1 + sqr(%))", "sigmoid(%)", "-(%)", "sqr(%)", "abs(%)", "(%)[0:4]",
                                         "softmax(%)", "transpose(transpose(%) * 2)", "reshape(%, [4, 5])", "cast(cast(%, float32), float64)",
                                         "where(c, %, y)", "(%)[::-1][::-1]", "expand_dims(sum(%, axis=1), 1)", "log(sum(exp(%), axis=1, keepdims=True))" };
    static const char *const binary[] = { "(% + %)", "(% - %)", "(% * %)", "(% / (2 + sqr(%)))", "maximum(%, %)", "where(c, %, %)", "(% + 1) * (% - 1)",
                                          "where(% > %, x, y)", "dot(%, dot(transpose(y), %))", "set_subtensor((%)[1:3], (%)[1:3])",
                                          "inc_subtensor((%)[:, 2], sum(%, axis=1))", "join([(%)[0:2], (%)[2:]])", "(%)[[3, 2, 1, 0]] * %",
                                          "expand_dims(mean(%, axis=1), 1) * %", "(%)[1] - transpose(transpose(%)[::-1])[:, ::-1]" };
    if (depth == 0 || test_random() % 8 == 0) {
        mc_str_addf(out, "(%s + 0*x)", leaves[test_random() % (sizeof leaves / sizeof *leaves)]);
        return;
    }
    bool two = test_random() & 1;
    const char *shape = two ? binary[test_random() % (sizeof binary / sizeof *binary)]
                            : unary[test_random() % (sizeof unary / sizeof *unary)];
    mc_str_add(out, "(0*y + ");
    for (; *shape; shape++) {
        if (*shape == '%') {
            grow(out, depth - 1);
        } else {
            mc_str_addn(out, shape, 1);
        }
    }
    mc_str_add(out, ")");
}

static void random_graphs(int n, bool grad)
{
    for (int i = 0; i < n; i++) {
        struct mc_str text = { 0 };
        mc_graph *g = variables(MC_FLOAT64);
        mc_str_add(&text, grad ? "grad(sum(" : "");
        grow(&text, grad ? 3 : 4);
        mc_str_add(&text, grad ? "), x)" : "");
        mc_node *node = mc_formula(g, text.s), *after = node;
        if (CHECK(!mc_is_error(node), "%s: %s", text.s, mc_error(g)) &&
            CHECK(mc_rewrite(g, 1, &after, NULL) == MC_OK, "%s: %s", text.s, mc_last_error())) {
            same_value(g, node, after, text.s);
        }
        mc_str_free(&text);
        mc_graph_free(g);
    }
}

TEST(rewrites_of_random_graphs_keep_values)
{
    random_graphs(test_is_full() ? 3000 : 250, false);
}

TEST(rewrites_of_random_gradients_keep_values)
{
    random_graphs(test_is_full() ? 1500 : 100, true);
}

/* ---- sizes that are rare: nothing, one ---- */

TEST(rewrites_hold_for_empty_and_single)
{
    static const char *const texts[] = { "x * 0 + y", "sum(x * 2, axis=0)", "softmax(x)", "log(sum(exp(x), axis=1))", "sum(sum(x, axis=1))",
                                         "x[1:][0:2] + 1", "transpose(x - x)", "sum(alloc(s, x.shape), axis=0)", "grad(sum(sqr(x)), x)",
                                         "mean(-log(softmax(x))[arange(x.shape[0]), t])", "join([x, y], axis=0)", "reshape(x * 1, [-1])" };
    static const int64_t sizes[][2] = { { 0, 5 }, { 1, 5 }, { 1, 1 }, { 3, 1 } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            mc_graph *g = variables(MC_FLOAT64);
            mc_node *leaf[16], *side[2] = { mc_formula(g, texts[i]), NULL };
            mc_array *value[16], *v[2] = { NULL, NULL };
            REQUIRE(!mc_is_error(side[0]), "%s: %s", texts[i], mc_error(g));
            side[1] = side[0];
            CHECK(mc_rewrite(g, 1, &side[1], NULL) == MC_OK, "%s: %s", texts[i], mc_last_error());
            int n = bind_all(g, 0.1, 0.9, leaf, value);
            for (int j = 0; j < 2; j++) {
                mc_array_unref(&value[j]);
                value[j] = mc_array_new(MC_FLOAT64, 2, sizes[k]);
            }
            mc_array_unref(&value[5]);
            value[5] = mc_array_new(MC_INT32, 1, sizes[k]);
            mc_status a = mc_eval(n, leaf, value, 1, &side[0], &v[0]),
                      b = mc_eval(n, leaf, value, 1, &side[1], &v[1]);
            CHECK(a < 0 || b == MC_OK, "%s at %d x %d: %s", texts[i], (int)sizes[k][0], (int)sizes[k][1],
                  mc_last_error());
            CHECK(a < 0 || b < 0 || close(v[0], v[1], 1e-9), "%s at %d x %d: another value", texts[i],
                  (int)sizes[k][0], (int)sizes[k][1]);
            for (int j = 0; j < n; j++) {
                mc_array_unref(&value[j]);
            }
            mc_array_unref(&v[0]);
            mc_array_unref(&v[1]);
            mc_graph_free(g);
        }
    }
}
