/* t_nn_rule.c: rules, losses, penalties, initial values: Lasagne's printed numbers, and mathematics.
 *
 * Invariant: the numbers of lasagne_values were computed by another library (torch.optim) and are in
 * Lasagne's tests. */
#include "sample_moments.h"
#include "nn_words.h"
#include "op/op.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- rules ---- */

/* sum([0.1, 0.2, 0.3] * a^2) from ones, ten steps. */
static const struct {
    const char *rule;
    double value[3];
} lasagne_values[] = {
    { "sgd 0.1",                        { 0.81707280688755, 0.6648326359915, 0.5386151140949 } },
    { "momentum 0.1 momentum=0.5",      { 0.6848486952183, 0.44803321781003, 0.27431190123502 } },
    { "nesterov 0.1 momentum=0.5",      { 0.67466543592725, 0.44108468114241, 0.2769002108997 } },
    { "adagrad 0.1",                    { 0.55373120047759, 0.55373120041518, 0.55373120039438 } },
    { "rmsprop 0.01",                   { 0.83205403985348, 0.83205322744821, 0.83205295664444 } },
    { "adadelta",                       { 0.95453237704725, 0.9545237471374, 0.95452214847397 } },
    { "adam 0.01",                      { 0.90034972009036, 0.90034967993061, 0.90034966654402 } },
    { "adamax 0.01",                    { 0.90211749000754, 0.90211748762402, 0.90211748682951 } },
    { "amsgrad 0.01",                   { 0.90034979581833, 0.90034979581833, 0.90034979581833 } },
};

/* A net, a parameter a, a cost, and steps of a rule; false where it would not compile. */
static bool descend(const char *rule, const char *cost, int steps, double out[3])
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_array *ones = mc_array_new(MC_FLOAT64, MC_SHAPE(3));
    for (int64_t i = 0; i < 3; i++) {
        mc_array_set(ones, &i, 1);
    }
    mc_shared *a = mc_shared_new(g, "a", ones);
    mc_updates u = mc_updates_of(net, mc_formula(g, cost), 1, &a, NULL, rule);
    mc_function *f = mc_compile(g, &(mc_spec){ .update_of = u.of, .update = u.to, .nupdate = u.n });
    bool good = CHECK(f && u.n, "%s: %s", rule, mc_last_error());
    for (int i = 0; good && i < steps; i++) {
        good = CHECK(mc_call(f, MC_NONE, MC_NONE) == MC_OK, "%s: %s", rule, mc_last_error());
    }
    for (int i = 0; i < 3; i++) {
        out[i] = first(a, i);
    }
    mc_array_unref(&ones);
    mc_function_free(f);
    mc_net_free(net);
    mc_graph_free(g);
    return good;
}

TEST(rules_give_lasagnes_numbers)
{
    for (int i = 0; i < COUNT(lasagne_values); i++) {
        double got[3];
        if (descend(lasagne_values[i].rule, "sum([0.1, 0.2, 0.3] * a ** 2)", 10, got)) {
            for (int k = 0; k < 3; k++) {
                CHECK(fabs(got[k] - lasagne_values[i].value[k]) < 1e-5 * lasagne_values[i].value[k],
                      "%s: %.14f, not %.14f", lasagne_values[i].rule, got[k], lasagne_values[i].value[k]);
            }
        }
    }
}

/* Steps from ones, by torch.optim.AdamW in float64, version 2.13. */
TEST(adamw_gives_pytorchs_numbers)
{
    static const struct {
        const char *rule, *cost;
        int steps;
        double value[3];
    } rows[] = {
        { "adamw 0.01",
          "sum([0.1, 0.2, 0.3] * a ** 2)",
          10,
          { 0.899398702845482, 0.899398700307123, 0.899398699461003 } },
        { "adamw",
          "sum([0.1, 0.2, 0.3] * a ** 2)",
          10,
          { 0.989903734862758, 0.989903734612364, 0.989903734528898 } },
        { "adamw 0.05 decay=0.3 beta1=0.8 beta2=0.95 epsilon=1e-4",
          "sum([0.1, -0.2, 0.3] * a ** 2)",
          25,
          { -0.0195645872847086, 1.79019664049112, -0.0197202270888631 } },
        { "adamw 0.1 decay=0",
          "sum([1e-9, -2e-9, 3e-8] * a ** 2)",
          8, /* where epsilon counts */
          { 0.870371149150047, 1.23802830605696, 0.35306064964911 } },
        { "adamw 0.1 decay=0.5",
          "sum([0.0, 0.0, 0.0] * a)",
          8,
          { 0.663420431289062, 0.663420431289062, 0.663420431289062 } },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        double got[3];
        for (int k = 0; descend(rows[i].rule, rows[i].cost, rows[i].steps, got) && k < 3; k++) {
            CHECK(fabs(got[k] - rows[i].value[k]) < 1e-12, "%s: %.15g, not %.15g", rows[i].rule, got[k],
                  rows[i].value[k]);
        }
    }
}

/* ---- without a net ---- */

/* The same numbers in a graph that knows nothing of nets, in two dtypes at once; a is of floatX, b is of
 * float32. */
TEST(rules_without_a_net)
{
    for (int i = 0; i < COUNT(lasagne_values); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g, "shared a float64[3] = 1; shared b float32[3] = 1");
        mc_shared *of[] = { mc_shared_named(g, "a"), mc_shared_named(g, "b") };
        mc_node *cost = mc_formula(g, "sum([0.1, 0.2, 0.3] * a ** 2) + sum([0.1, 0.2, 0.3] * b ** 2)");
        mc_updates u = mc_rule_updates(g, NULL, lasagne_values[i].rule, cost, 2, of, NULL);
        mc_function *f = mc_compile(g, &(mc_spec){ .update_of = u.of, .update = u.to, .nupdate = u.n });
        REQUIRE(f && u.n >= 2, "%s: %s", lasagne_values[i].rule, mc_last_error());
        CHECK(!mc_shared_named(g, "random"), "nothing is drawn");
        for (int k = 0; k < u.n; k++) { /* none is computed in float64 for a float32 variable */
            CHECK(mc_node_dtype(u.to[k]) == mc_node_dtype(u.of[k]), "%s: %s becomes %s",
                  lasagne_values[i].rule, mc_node_name(u.of[k]), mc_dtype_name(mc_node_dtype(u.to[k])));
        }
        for (int k = 0; k < 10; k++) {
            CHECK(mc_call(f, MC_NONE, MC_NONE) == MC_OK, "%s: %s", lasagne_values[i].rule, mc_last_error());
        }
        for (int k = 0; k < 3; k++) {
            double want = lasagne_values[i].value[k];
            CHECK(fabs(first(of[0], k) - want) < 1e-5 * want && fabs(first(of[1], k) - want) < 1e-4 * want,
                  "%s: %.14f and %.14f, not %.14f", lasagne_values[i].rule, first(of[0], k), first(of[1], k),
                  want);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* By hand: a = 3, its gradient is 1: two steps of 0.5, then two of 0.25.  A second function goes on with the
 * velocity. */
TEST(the_rate_is_a_variable_and_rules_go_on)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "shared a float64 = 3; shared c float64 = 3");
    mc_shared *a = mc_shared_named(g, "a"), *c = mc_shared_named(g, "c");
    mc_node *ca = mc_formula(g, "1 * a"), *cc = mc_formula(g, "1 * c");
    mc_updates u = mc_rule_updates(g, NULL, "sgd 0.5", ca, 1, &a, NULL),
               v = mc_rule_updates(g, "critic", "sgd 2", cc, 1, &c, NULL);
    mc_function *f = mc_compile(g, &(mc_spec){ .update_of = u.of, .update = u.to, .nupdate = u.n });
    mc_function *h = mc_compile(g, &(mc_spec){ .update_of = v.of, .update = v.to, .nupdate = v.n });
    REQUIRE(f && h, "%s", mc_error(g));
    mc_call(f, MC_NONE, MC_NONE), mc_call(f, MC_NONE, MC_NONE), mc_call(h, MC_NONE, MC_NONE);
    CHECK(first(a, 0) == 2 && first(c, 0) == 1, "%g and %g", first(a, 0), first(c, 0));
    mc_array *quarter = mc_array_scalar(MC_FLOAT64, 0.25);
    CHECK(mc_shared_set(mc_shared_named(g, "rate"), quarter) == MC_OK, "%s", mc_last_error());
    mc_call(f, MC_NONE, MC_NONE), mc_call(f, MC_NONE, MC_NONE), mc_call(h, MC_NONE, MC_NONE);
    CHECK(first(a, 0) == 1.5 && first(c, 0) == -1, "%g and %g", first(a, 0), first(c, 0));
    mc_function_free(f), mc_function_free(h);

    mc_node *two = mc_number(g, MC_FLOAT64, 2); /* a gradient that is given: velocity -2, then -2 * 0.5 - 2 */
    u = mc_rule_updates(g, "m", "momentum 1 momentum=0.5", NULL, 1, &a, &two);
    f = mc_compile(g, &(mc_spec){ .update_of = u.of, .update = u.to, .nupdate = u.n });
    REQUIRE(f, "%s", mc_error(g));
    mc_call(f, MC_NONE, MC_NONE);
    u = mc_rule_updates(g, "m", "momentum 1 momentum=0.5", NULL, 1, &a, &two);
    h = mc_compile(g, &(mc_spec){ .update_of = u.of, .update = u.to, .nupdate = u.n });
    CHECK(h && mc_call(h, MC_NONE, MC_NONE) == MC_OK && first(a, 0) == 1.5 - 2 - 3, "%g: %s", first(a, 0),
          mc_error(g));
    mc_function_free(f), mc_function_free(h);
    mc_array_unref(&quarter);
    mc_graph_free(g);
}

static const struct { const char *rule; int n; bool params, cost; const char *which, *says; mc_status status; } wrong_rules[] = {
    { "adma 0.1",        1, true,  true,  "a",  "there is no rule 'adma'; did you mean 'adam'?\n    adma 0.1\n    ^", MC_EARG },
    { "adam beta=0.1",   1, true,  true,  "a",  "adam has no setting 'beta'; did you mean 'beta1'?", MC_EARG },
    { "sgd -1",          1, true,  true,  "a",  "sgd: rate takes a number in [0, inf), not '-1'", MC_EARG },
    { "",                1, true,  true,  "a",  "a rule is missing", MC_EARG },
    { NULL,              1, true,  true,  "a",  "rule: no rule is given", MC_EARG },
    { "sgd",             0, true,  true,  "a",  "rule: no parameter is given", MC_EARG },
    { "sgd",             1, false, true,  "a",  "rule: no parameter is given", MC_EARG },
    { "sgd",             1, true,  true,  "no", "rule: parameter 1 is NULL", MC_EARG },
    { "sgd",             1, true,  true,  "k",  "rule: parameter 1, k, has dtype int32; only floats can be trained", MC_ETYPE },
    { "sgd",             1, true,  false, "a",  "neither a cost nor gradients are given", MC_EARG },
    { "sgd",             1, true,  true,  "b",  "the cost does not depend on b", MC_EGRAD },
};

TEST(wrong_rules_without_a_net)
{
    for (int i = 0; i < COUNT(wrong_rules); i++) {
        mc_graph *g = mc_graph_new();
        mc_formula(g,
                   "shared a float64[3] = 1; shared b float64 = 1; shared k int32 = 1; cost = sum(sqr(a))");
        mc_shared *p = mc_shared_named(g, wrong_rules[i].which);
        mc_updates u = mc_rule_updates(g, NULL, wrong_rules[i].rule,
                                       wrong_rules[i].cost ? mc_var(g, "cost") : NULL, wrong_rules[i].n,
                                       wrong_rules[i].params ? &p : NULL, NULL);
        CHECK(u.n == 0 && strstr(mc_error(g), wrong_rules[i].says) &&
                  mc_graph_status(g) == wrong_rules[i].status,
              "row %d: %s: %s", i, mc_status_name(mc_graph_status(g)), mc_error(g));
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    mc_formula(g, "shared a float64 = 1; shared rate float64[2]; cost = sqr(a)");
    mc_shared *a = mc_shared_named(g, "a");
    CHECK(mc_rule_updates(g, NULL, "sgd", mc_var(g, "cost"), 1, &a, NULL).n == 0 &&
              strstr(mc_error(g), "rate has shape (2,), not ()"),
          "%s", mc_error(g));
    mc_graph_free(g);
}

TEST(every_failed_allocation_of_a_rule)
{
    mc_op_find("add");
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        if (g) {
            mc_formula(g, "shared a float32[3] = 1; cost = sum(sqr(a))");
            mc_shared *a = mc_shared_named(g, "a");
            mc_updates u = mc_rule_updates(g, NULL, "adam 0.1 clip=1", mc_var(g, "cost"), 1, &a, NULL);
            CHECK(u.n == 4 || (u.n == 0 && ALLOC_FAILED && mc_graph_status(g) < 0 && *mc_error(g)),
                  "%d updates: %s", u.n, mc_error(g));
        }
        mc_graph_free(g);
    }
}

/* Momentum upon another rule is apply_momentum: with a factor of 0 it is that rule alone. */
TEST(momentum_goes_upon_any_rule)
{
    double with[3], alone[3];
    descend("nesterov 0.01 momentum=0 base=rmsprop(rho=0.8)", "sum(a ** 4)", 5, with);
    descend("rmsprop 0.01 rho=0.8", "sum(a ** 4)", 5, alone);
    CHECK(fabs(with[0] - alone[0]) < 1e-12, "%g, not %g", with[0], alone[0]);
    descend("momentum 0.01 base=rmsprop(rho=0.8)", "sum(a ** 4)", 5, with);
    CHECK(with[0] < alone[0] - 1e-3, "%g is not below %g", with[0], alone[0]);
}

TEST(gradients_are_clipped_together)
{
    double got[3];
    descend("sgd 1 clip=0.5", "sum([3, 0, 4] * a)", 1, got);
    CHECK(fabs(got[0] - (1 - 0.3)) < 1e-6 && fabs(got[1] - 1) < 1e-6 && fabs(got[2] - (1 - 0.4)) < 1e-6,
          "%g %g %g", got[0], got[1], got[2]);
}

TEST(norms_are_held)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 3);
    mc_net_read(net, "test",
                "input 20\ndense 7 linear W=normal(5)\nloss squared_error\nrule sgd 0 max_norm=2\n");
    mc_function *f = mc_net_trainer(net);
    mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(2, 20)), *t = mc_array_new(MC_FLOAT64, MC_SHAPE(2, 7));
    double cost;
    CHECK(f && mc_call(f, MC_IN(x, t), MC_OUT(&cost)) == MC_OK, "%s", mc_last_error());
    mc_array *w = mc_shared_get(mc_net_param(net, "regularizable", 0).shared);
    for (int64_t c = 0; c < 7; c++) {
        double norm = 0;
        for (int64_t r = 0; r < 20; r++) {
            double v = mc_array_get(w, (int64_t[]){ r, c });
            norm += v * v;
        }
        CHECK(fabs(sqrt(norm) - 2) < 1e-5, "column %d has norm %g", (int)c, sqrt(norm));
    }
    mc_array_unref(&w);
    mc_array_unref(&x);
    mc_array_unref(&t);
    mc_function_free(f);
    mc_net_free(net);
    mc_graph_free(g);
}

/* ---- losses and penalties ---- */

static const struct {
    const char *loss;
    mc_dtype dtype; /* of targets; whole numbers have one axis less */
    double p[6], t[6], want[6];
    int columns, results;
} loss_rows[] = {
    { "categorical_crossentropy",
      MC_INT32,
      { 0.5, 0.25, 0.25, 0.1, 0.8, 0.1 },
      { 0, 1 },
      { 0.69314718055994531, 0.22314355131420976 },
      3,
      2 },
    { "categorical_crossentropy",
      MC_FLOAT64,
      { 0.5, 0.25, 0.25, 0.1, 0.8, 0.1 },
      { 1, 0, 0, 0.5, 0.5, 0 },
      { 0.69314718055994531, 1.2628643221541278 },
      3,
      2 },
    { "binary_crossentropy",
      MC_FLOAT64,
      { 0.5, 0.25, 0.9, 0.1 },
      { 1, 0, 1, 1 },
      { 0.69314718055994531, 0.28768207245178090, 0.10536051565782628, 2.3025850929940455 },
      2,
      4 },
    { "squared_error", MC_FLOAT64, { 1, 2, 3, 4 }, { 1, 1, 1, 2 }, { 0, 1, 4, 4 }, 2, 4 },
    { "absolute_error", MC_FLOAT64, { 1, 2, 3, 4 }, { 1, 1, 5, 2 }, { 0, 1, 2, 2 }, 2, 4 },
    { "huber", MC_FLOAT64, { 1, 2, 3, 4 }, { 1, 1.5, 1, 7 }, { 0, 0.125, 1.5, 2.5 }, 2, 4 },
    { "huber delta=2", MC_FLOAT64, { 1, 2, 3, 4 }, { 1, 1.5, 1, 7 }, { 0, 0.125, 2, 4 }, 2, 4 },
    { "binary_hinge", MC_FLOAT64, { 0.5, -2, 3, -0.5 }, { 1, 0, 0, 0 }, { 0.5, 0, 4, 0.5 }, 2, 4 },
    { "multiclass_hinge", MC_INT32, { 1, 2, 3, 4, 0, 0 }, { 1, 0 }, { 2, 0 }, 3, 2 },
    { "multiclass_hinge delta=5", MC_FLOAT64, { 1, 2, 3, 4, 0, 0 }, { 0, 1, 0, 1, 0, 0 }, { 6, 1 }, 3, 2 },
};

static mc_array *array_of(mc_dtype d, int rank, const int64_t *dims, const double *v)
{
    mc_array *a = mc_array_from(MC_FLOAT64, rank, dims, v), *cast = mc_array_cast(a, d);
    mc_array_unref(&a);
    return cast;
}

TEST(losses_are_right)
{
    for (int i = 0; i < COUNT(loss_rows); i++) {
        bool labels = loss_rows[i].dtype == MC_INT32;
        int64_t dims[2] = { 2, loss_rows[i].columns };
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        mc_node *p = mc_input(g, "p", MC_FLOAT64, 2),
                *t = mc_input(g, "t", loss_rows[i].dtype, labels ? 1 : 2);
        mc_node *loss = mc_loss(net, loss_rows[i].loss, p, t),
                *gradient = mc_grad(mc_aggregate(net, "sum", loss, NULL), p), *out[] = { loss, gradient };
        mc_function *f = mc_compile(
            g, &(mc_spec){ .inputs = "p, t", .output = out, .noutput = 2, .mode = "FAST_COMPILE" });
        mc_array *pv = array_of(MC_FLOAT64, 2, dims, loss_rows[i].p),
                 *tv = array_of(loss_rows[i].dtype, labels ? 1 : 2, dims, loss_rows[i].t);
        mc_array *y = NULL, *d = NULL, *flat = NULL;
        if (CHECK(f && mc_call(f, MC_IN(pv, tv), MC_OUT(&y, &d)) == MC_OK, "%s: %s", loss_rows[i].loss,
                  mc_last_error())) {
            int64_t n = mc_array_size(y);
            flat = mc_array_reshape(y, 1, &n);
            CHECK(n == loss_rows[i].results, "%s: %d results", loss_rows[i].loss, (int)n);
            for (int64_t k = 0; k < n; k++) {
                CHECK(fabs(mc_array_get(flat, &k) - loss_rows[i].want[k]) < 1e-9,
                      "%s: result %d is %.15g, not %.15g", loss_rows[i].loss, (int)k, mc_array_get(flat, &k),
                      loss_rows[i].want[k]);
            }
            for (int64_t k = 0; k < mc_array_size(d); k++) {
                CHECK(isfinite(((double *)mc_array_data(d))[k]), "%s: its gradient is not finite",
                      loss_rows[i].loss);
            }
        }
        mc_array_unref(&flat);
        mc_array_unref(&y);
        mc_array_unref(&d);
        mc_array_unref(&pv);
        mc_array_unref(&tv);
        mc_function_free(f);
        mc_net_free(net);
        mc_graph_free(g);
    }
}

/* Targets that are whole numbers may have more axes than one: pictures, whose every place has a class. */
TEST(losses_of_classes_at_every_position)
{
    static const double p[] = { 0.5, 0.5, 0.25, 0.75, 0.1, 0.9, 0.8, 0.2 }, t[] = { 0, 1, 1, 0 };
    static const struct {
        const char *loss;
        double want[4];
    } rows[] = {
        { "categorical_crossentropy",
          { 0.69314718055994531, 0.28768207245178090, 0.10536051565782628, 0.22314355131420976 } },
        { "multiclass_hinge", { 1, 0.5, 0.2, 0.4 } },
    };
    for (int i = 0; i < COUNT(rows); i++) {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 1);
        mc_node *loss = mc_loss(net, rows[i].loss, mc_input(g, "p", MC_FLOAT64, 3),
                                mc_input(g, "t", MC_INT32, 2));
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "p, t", .output = &loss, .noutput = 1 });
        mc_array *pv = array_of(MC_FLOAT64, 3, (int64_t[]){ 2, 2, 2 }, p),
                 *tv = array_of(MC_INT32, 2, (int64_t[]){ 2, 2 }, t), *y = NULL;
        if (CHECK(f && mc_call(f, MC_IN(pv, tv), MC_OUT(&y)) == MC_OK, "%s: %s", rows[i].loss,
                  mc_last_error())) {
            CHECK(mc_array_rank(y) == 2 && mc_array_size(y) == 4, "%s: %d axes", rows[i].loss,
                  mc_array_rank(y));
            for (int64_t k = 0; k < 4 && mc_array_rank(y) == 2; k++) {
                const double got = mc_array_get(y, (int64_t[]){ k / 2, k % 2 });
                CHECK(fabs(got - rows[i].want[k]) < 1e-9, "%s: result %d is %.15g", rows[i].loss, (int)k,
                      got);
            }
        }
        mc_array_unref(&pv);
        mc_array_unref(&tv);
        mc_array_unref(&y);
        mc_function_free(f);
        mc_net_free(net);
        mc_graph_free(g);
    }
}

static double value_of(mc_graph *g, mc_node *n)
{
    double v = NAN;
    mc_function *f = mc_compile(g, &(mc_spec){ .output = &n, .noutput = 1, .mode = "FAST_COMPILE" });
    CHECK(f && mc_call(f, MC_NONE, MC_OUT(&v)) == MC_OK, "%s", mc_last_error());
    mc_function_free(f);
    return v;
}

TEST(accuracies_means_and_penalties)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 1);
    mc_node *p = mc_formula(g, "[[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.2, 0.3, 0.5]]"),
            *t = mc_formula(g, "[1, 2, 0]"), *w = mc_formula(g, "[1.0, 2.0, 3.0]");
    static const struct {
        const char *accuracy;
        double sum;
    } rows[] = { { "categorical", 1 }, { "top 2", 2 }, { "top 3", 3 } };
    for (int i = 0; i < COUNT(rows); i++) {
        double v = value_of(
            g, mc_aggregate(net, "sum", mc_cast(mc_accuracy(net, rows[i].accuracy, p, t), "dtype=float64"),
                            NULL));
        CHECK(v == rows[i].sum, "%s: %g right", rows[i].accuracy, v);
    }
    CHECK(value_of(g, mc_aggregate(net, "mean", w, NULL)) == 2, "mean");
    CHECK(value_of(g, mc_aggregate(net, "sum", w, w)) == 14, "weighted sum");
    CHECK(fabs(value_of(g, mc_aggregate(net, "normalized_sum", w, w)) - 14. / 6) < 1e-12, "normalized sum");
    mc_net_read(net, "test", "input 3\na = dense 2 W=0.5 b=3\nb = dense 1 W=-2\n");
    CHECK(fabs(value_of(g, mc_penalty(net, "l1 0.1", NULL, NULL)) - 0.1 * (6 * 0.5 + 2 * 2)) < 1e-12, "l1");
    CHECK(fabs(value_of(g, mc_penalty(net, "l2", mc_net_find(net, "a"), NULL)) - 6 * 0.25) < 1e-12,
          "l2 of a layer");
    CHECK(fabs(value_of(g, mc_penalty(net, "l1", NULL, "trainable -regularizable")) - 6) < 1e-12,
          "l1 of biases");
    CHECK(!*mc_error(g), "%s", mc_error(g));
    CHECK(mc_graph_status(g) == MC_OK && mc_aggregate(net, "normalized_sum", w, NULL) &&
              strstr(mc_error(g), "needs weights"),
          "%s", mc_error(g));
    mc_net_free(net);
    mc_graph_free(g);
}

/* ---- initial values: mean and spread within what so many numbers allow ---- */

static const struct {
    const char *init;
    int64_t dims[4];
    double mean, std, most; /* most: no value is larger; 0: some may be */
} inits[] = {
    { "3",                              { 40, 50 }, 3, 0, 3 },
    { "constant(0.5)",                  { 40, 50 }, 0.5, 0, 0.5 },
    { "normal",                         { 40, 50 }, 0, 0.01, 0 },
    { "normal(2, mean=1)",              { 40, 50 }, 1, 2, 0 },
    { "uniform",                        { 40, 50 }, 0, 0.01 / 1.7320508, 0.01 },
    { "uniform(0, 2)",                  { 40, 50 }, 1, 1 / 1.7320508, 2 },
    { "uniform(std=0.5)",               { 40, 50 }, 0, 0.5, 0.8661 },
    { "glorot_uniform",                 { 40, 50 }, 0, 0.14907120, 0.25821 },
    { "glorot_normal(relu)",            { 40, 50 }, 0, 0.21081851, 0 },
    { "glorot_uniform",                 { 16, 8, 5, 5 }, 0, 0.057735027, 0.1001 },
    { "glorot_uniform(c01b=true)",      { 8, 5, 5, 16 }, 0, 0.057735027, 0.1001 },
    { "he_normal(relu)",                { 40, 50 }, 0, 0.22360680, 0 },
    { "he_uniform",                     { 16, 8, 5, 5 }, 0, 0.070710678, 0.12248 },
    { "he_normal(c01b=true)",           { 8, 5, 5, 16 }, 0, 0.070710678, 0 },
    { "sparse(0.25, std=2)",            { 40, 50 }, 0, 1, 0 },
    { "orthogonal",                     { 40, 50 }, 0, 0.14142136, 1 },
};

TEST(initial_values)
{
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 5);
    for (int i = 0; i < COUNT(inits); i++) {
        int rank = inits[i].dims[2] ? 4 : 2;
        mc_array *a = mc_init(net, inits[i].init, rank, inits[i].dims);
        REQUIRE(a, "%s: %s", inits[i].init, mc_error(g));
        check_moments(inits[i].init, a, inits[i].mean, inits[i].std, inits[i].most);
        mc_array_unref(&a);
    }
    mc_net_free(net);
    mc_graph_free(g);
}

TEST(what_is_no_initial_value)
{
    static const struct { const char *init, *says; } wrongs[] = {
        { "nrmal",                   "there is no initial value and no variable 'nrmal'; did you mean 'normal'?\n    nrmal\n    ^" },
        { "glorot_uniform(gain=foo)", "glorot_uniform: gain takes a number or relu, not 'foo'\n    glorot_uniform(gain=foo)\n                        ^" },
        { "uniform(low=1)",          "uniform: low is given without high" },
        { "he_normal(c01b=true)",    "he_normal: with c01b=true the parameter must have four axes" },
    };
    for (int i = 0; i < COUNT(wrongs); i++) {
        mc_graph *g = mc_graph_new();
        mc_net *net = mc_net_new(g, NULL, 5);
        mc_array *a = mc_init(net, wrongs[i].init, MC_SHAPE(4, 5));
        CHECK(!a && strstr(mc_error(g), wrongs[i].says), "%s: %s", wrongs[i].init, mc_error(g));
        mc_array_unref(&a);
        mc_net_free(net);
        mc_graph_free(g);
    }
}

TEST(orthogonal_is_and_sparse_has_its_share)
{
    static const int64_t shapes[][3] = { { 6, 4, 3 }, { 20, 3, 5 } };
    mc_graph *g = mc_graph_new();
    mc_net *net = mc_net_new(g, NULL, 5);
    for (int i = 0; i < COUNT(shapes); i++) {
        int64_t rows = shapes[i][0], columns = shapes[i][1] * shapes[i][2];
        mc_array *a = mc_init(net, "orthogonal(2)", 3, shapes[i]),
                 *flat = mc_array_reshape(a, 2, (int64_t[]){ rows, columns });
        bool wide = columns > rows;
        for (int64_t p = 0; p < (wide ? rows : columns); p++) {
            for (int64_t q = 0; q <= p; q++) {
                double dot = 0;
                for (int64_t k = 0; k < (wide ? columns : rows); k++) {
                    dot += wide ? mc_array_get(flat, (int64_t[]){ p, k }) *
                                      mc_array_get(flat, (int64_t[]){ q, k })
                                : mc_array_get(flat, (int64_t[]){ k, p }) *
                                      mc_array_get(flat, (int64_t[]){ k, q });
                }
                CHECK(fabs(dot - (p == q ? 4 : 0)) < 1e-9, "vectors %d and %d: %g", (int)p, (int)q, dot);
            }
        }
        mc_array_unref(&flat);
        mc_array_unref(&a);
    }
    mc_array *s = mc_init(net, "sparse", MC_SHAPE(30, 8));
    for (int64_t c = 0; c < 8; c++) {
        int some = 0;
        for (int64_t r = 0; r < 30; r++) {
            some += mc_array_get(s, (int64_t[]){ r, c }) != 0;
        }
        CHECK(some == 3, "%d numbers in column %d", some, (int)c);
    }
    mc_array_unref(&s);
    mc_net_free(net);
    mc_graph_free(g);
}
