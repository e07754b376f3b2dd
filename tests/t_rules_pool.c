/* t_rules_pool.c: what is done to cells around a pooling is done to windows, in value and gradients; and
 * where it may not be, nothing changes.  For src/rewrite/rules_pool.c. */
#include "agree.h"
#include "rewrite/rewrite.h"
#include "sample.h"

/* Nodes of the graph behind out[] that compute as many elements as x has. */
static int count_large(int n, mc_node *const *out, const mc_node *x)
{
    size_t count;
    int large = 0;
    mc_node **list = mc_graph_reach(n, out, &count);
    for (size_t i = 0; list && i < count; i++) {
        bool same = list[i]->op->arity && list[i]->type.rank == x->type.rank;
        for (int k = 0; same && k < x->type.rank; k++) {
            same = list[i]->type.dims[k] == x->type.dims[k];
        }
        large += same;
    }
    mc_free(list);
    return large;
}

static const struct { const char *what; int64_t dims[5]; int rank; } windows[] = {
    { "[2, 2]",                                  { 2, 3, 6, 7 }, 4 },
    { "[3, 3], [2, 2]",                          { 2, 3, 7, 9 }, 4 },    /* windows overlap */
    { "[3, 2], [2, 2], [1, 1]",                  { 2, 3, 5, 8 }, 4 },
    { "[2, 3], ignore_border=False",             { 1, 3, 5, 8 }, 4 },
    { "[3, 3], [1, 2]",                          { 1, 3, 5, 8 }, 4 },
    { "[3], [2], axis=2",                        { 2, 3, 9 },    3 },
    { "[2, 2, 2], axis=[2, 3, 4]",               { 1, 3, 4, 5, 6 }, 5 },
};
static const char *const cells[] = {
    "tanh(v)", "sigmoid(v)", "softplus(v)", "relu(v)", "arctan(v)", "maximum(v, 0.1)", "clip(v, -0.3, 0.4)", "hard_sigmoid(v)",
    "minimum(v, 0.2)", "1.7 * tanh(2 / 3 * v)", "softplus(v) / 2", "exp(maximum(v, 0))", "exp2(v / 4) + 1",
};

static void begin(struct agree *a, size_t w, mc_dtype d, unsigned sized)
{
    char text[96] = "b4 = dimshuffle(b, [-1, 0";
    agree_input(a, "x", sample(d, windows[w].rank, windows[w].dims, -1, 1), sized);
    agree_input(a, "b", sample(d, MC_SHAPE(3), -0.5, 0.5), sized);
    for (int i = 2; i < windows[w].rank; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), ", -1");
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "])");
    REQUIRE(!mc_is_error(mc_formula(a->g, text)), "%s", mc_error(a->g));
}

static void one_net(size_t w, const char *f, mc_dtype d, unsigned sized)
{
    struct agree a = { 0 };
    char text[256];
    begin(&a, w, d, sized);
    snprintf(text, sizeof text, "v = x + b4; t = %s; y = pool(t, %s)", f, windows[w].what);
    agree_output(&a, text);
    agree_output(&a, "cost = sum(y * sqr(y)); grad(cost, x)");
    agree_output(&a, "grad(cost, b)");
    REQUIRE(!mc_is_error(a.out[0]) && !mc_is_error(a.out[1]) && !mc_is_error(a.out[2]), "%s: %s", text,
            mc_error(a.g));
    if (sized == ~0u) {
        mc_node *out[3];
        memcpy(out, a.out, sizeof out);
        CHECK(mc_rewrite(a.g, 3, out, NULL) == MC_OK, "%s", mc_last_error());
        CHECK(count_large(3, out, a.in[0]) == 0, "%s: %d nodes still work on cells", text,
              count_large(3, out, a.in[0]));
    }
    agree(&a, text);
}

TEST(cells_around_poolings_become_windows)
{
    for (size_t w = 0; w < NELEM(windows); w++) {
        for (size_t f = 0; f < NELEM(cells); f++) {
            one_net(w, cells[f], (w + f) % 2 ? MC_FLOAT32 : MC_FLOAT64, (w + f) % 3 ? ~0u : 0);
        }
    }
}

/* What would be wrong, or costs more. */
TEST(cells_that_are_asked_for_stay)
{
    static const struct { const char *formula; bool changes; } kept[] = {
        { "t = tanh(x); tuple(pool(t, [2, 2]), t)",                            false }, /* t is asked for */
        { "pool(tanh(x), [2, 2], stride=1)",                                   false }, /* as many windows as cells */
        { "pool(cos(x), [2, 2])",                                              false }, /* does not grow */
        { "pool(x * -2, [2, 2])",                                              false },
        { "pool(x / b4, [2, 2])",                                              false }, /* b may be negative */
        { "pool(tanh(x + sqr(x)), [2, 2])",                                    true },  /* tanh, not the sum */
        { "pool(x + x[:, :, ::-1], [2, 2])",                                   false },
        { "tanh(x) * pool_grad(x, pool(x, [3, 3]), [3, 3], mode='sum')",       false }, /* every cell gets its share */
        { "x * pool_grad(x, x[:, :, :3, :3], [2, 2], ties='all')",             false },
        { "d = pool_grad(x, x[:, :, :3, :3], [2, 2]); tuple(d * x, d)",        false }, /* the spread is asked for */
        { "d = pool_grad(x, x[:, :, :3, :3], [2, 2]); d * d",                  false }, /* not proportional */
        { "d = pool_grad(x, x[:, :, :3, :3], [2, 2]); 1 / d + x",              false },
        { "d = pool_grad(x, x[:, :, :3, :3], [2, 2]); d * x + x",              true },  /* the product, not the sum */
        { "d = pool_grad(x, x[:, :, :3, :3], [2, 2]); sum(d, axis=[0, 2])",    false }, /* each row its own windows */
        { "sum(pool_grad(x, x[:, :, :3, :3], [2, 2], ties='all'), axis=[2, 3])", false },
    };
    for (size_t i = 0; i < NELEM(kept); i++) {
        struct agree a = { 0 };
        begin(&a, 0, MC_FLOAT64, ~0u);
        mc_node *n = mc_formula(a.g, kept[i].formula), *out[2];
        REQUIRE(!mc_is_error(n), "%s: %s", kept[i].formula, mc_error(a.g));
        unsigned *fired = mc_calloc((size_t)mc_rule_count(), sizeof *fired, "test");
        int changed = 0;
        a.nout = n->nout;
        for (int k = 0; k < n->nout; k++) {
            out[k] = a.out[k] = n->nout > 1 ? mc_item(n, k) : n;
        }
        CHECK(mc_rewrite(a.g, a.nout, out, &(struct mc_rewrite){ .fired = fired }) == MC_OK, "%s",
              mc_last_error());
        for (int k = 0; k < mc_rules_pool.n; k++) {
            for (int r = 0; r < mc_rule_count(); r++) {
                changed += mc_rule_at(r) == &mc_rules_pool.row[k] && fired[r];
            }
        }
        CHECK((changed > 0) == kept[i].changes, "%s: %d rules fired", kept[i].formula, changed);
        mc_free(fired);
        agree(&a, kept[i].formula);
    }
}

/* Where a rectifier makes cells equal the first of them gets the gradient, as long as anybody can see it. */
TEST(marks_of_equal_cells_stay_where_they_are_seen)
{
    mc_graph *g = mc_graph_new();
    mc_node *x = mc_input_sized(g, "x", MC_FLOAT32, MC_SHAPE(2, 4));
    mc_array *v = mc_array_from(MC_FLOAT32, MC_SHAPE(2, 4), (float[]){ -4, -1, 3, -1, -3, -2, -2, 2 }),
             *d[2] = { NULL, NULL };
    mc_node *n = mc_formula(g, "t = maximum(x, 0); y = pool(t, [2, 2]); grad(sum(y), t)"),
            *out[2] = { n, mc_formula(g, "y") };
    static const float want[8] = { 1, 0, 1, 0, 0, 0, 0, 0 };
    REQUIRE(!mc_is_error(n) && mc_rewrite(g, 2, out, NULL) == MC_OK, "%s", mc_error(g));
    CHECK(mc_eval(1, &x, &v, 2, out, d) == MC_OK && d[0] && memcmp(d[0]->data, want, sizeof want) == 0,
          "the gradient went elsewhere");
    mc_array_unref(&d[0]);
    mc_array_unref(&d[1]);
    mc_array_unref(&v);
    mc_graph_free(g);
}

/* log(sum(exp(x))) is made stable before the largest is taken in front of it. */
TEST(logarithms_are_stable_before_they_are_pooled)
{
    static const char *const formulas[] = { "pool(logsumexp(x, axis=3, keepdims=True), [2, 1])", "pool(log(1 + exp(x)), [2, 2])",
                                            "pool(log1p(sum(exp(x), axis=3, keepdims=True)), [2, 1])" };
    for (size_t i = 0; i < NELEM(formulas); i++) {
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT32, 4);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = formulas[i] });
        mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(1, 1, 2, 2), (float[]){ 1000, 3, 4, -1000 }),
                 *y = NULL;
        if (CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s: %s", formulas[i],
                  f ? mc_last_error() : mc_error(g))) {
            const double have = mc_load_f64(MC_FLOAT32, y->data);
            CHECK(have >= 1000 && have <= 1000, "%s: %g, not 1000", formulas[i], have);
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_graph_free(g);
    }
}
