/* t_stable.c: formulas that lose everything as they are written, far from where they are usually called.
 * Each row of the table of stable forms is compiled for float32 and must give what it means. */
#include "check.h"
#include <math.h>
#include <monochord.h>
#include <stdlib.h>
#include <string.h>

/* x and y are matrices of one row, t is [1]; the first element of the result, summed over the rest with [0,
 * -1]. */
static const struct stable_case {
    const char *formula;
    double x[2], y[2], want;
} cases[] = {
    /* formula                                     x              y             means */
    { "log(1 + x)",                                { 1e-10, 0 },  { 0, 0 },     1e-10 },
    { "log(1 - x)",                                { 1e-10, 0 },  { 0, 0 },     -1e-10 },
    { "exp(x) - 1",                                { 1e-10, 0 },  { 0, 0 },     1e-10 },
    { "log(exp(x) + exp(y))",                      { 200, 0 },    { -300, 0 },  200 },
    { "log(exp(x) + exp(y))",                      { 1000, 0 },   { 1000, 0 },  1000.6931471805599 },
    { "log(exp(x) + exp(y))",                      { -1000, 0 },  { -1001, 0 }, -999.68673831248177 },
    { "log(exp(x) + exp(y[0]))",                   { 200, 0 },    { -300, 0 },  200 },
    { "log(exp(x) + alloc(1.0f32, [1, 2]))",       { 200, 0 },    { 0, 0 },     200 },
    { "log(exp(x) + exp(y * 0) + 2)",              { 200, 0 },    { 0, 0 },     200 },
    { "log(3 * exp(x[0]) + exp(y) / 2)",           { 200, 0 },    { 0, 0 },     201.09861228866811 },
    { "log1p(exp(expand_dims(x, 0)) + exp(y))[0]", { 200, 0 },    { 0, 0 },     200 },
    { "log(sum(exp(x), axis=1, keepdims=True))",   { 500, 500 },  { 0, 0 },     500.69314718055995 },
    { "log(sum(exp(x), axis=1, keepdims=True))",   { -500, -501 }, { 0, 0 },    -499.68673831248177 },
    { "logsumexp(x, axis=1, keepdims=True)",       { 500, 400 },  { 0, 0 },     500 },
    { "log(sigmoid(x))",                           { -200, 0 },   { 0, 0 },     -200 },
    { "log(1 - sigmoid(x))",                       { 200, 0 },    { 0, 0 },     -200 },
    { "log(1 + exp(x))",                           { 200, 0 },    { 0, 0 },     200 },
    { "log1p(exp(x))",                             { 200, 0 },    { 0, 0 },     200 },
    { "log1p(-sigmoid(x))",                        { 200, 0 },    { 0, 0 },     -200 },
    { "exp(x) / (1 + exp(x))",                     { 200, 0 },    { 0, 0 },     1 },
    { "y / (1 + exp(x))",                          { 80, 0 },     { 3, 0 },     5.4145403e-35 },
    { "1 / (1 + exp(-x))",                         { -80, 0 },    { 0, 0 },     1.8048514e-35 },
    { "exp(x) * sigmoid(-x)",                      { 200, 0 },    { 0, 0 },     1 },
    { "y * exp(x) * sigmoid(-x) * -2",             { 200, 0 },    { 3, 0 },     -6 },
    { "1 - sigmoid(x)",                            { 50, 0 },     { 0, 0 },     1.9287498479639178e-22 },
    { "exp(x) / sum(exp(x), axis=1, keepdims=True)", { 300, 300 }, { 0, 0 },    0.5 },
    { "softmax(x + y)",                            { 3e4, 3e4 },  { 100, 100 }, 0.5 },
    { "softmax_with_bias(x, y[0])",                { 3e4, 3e4 },  { 100, 100 }, 0.5 },
    { "log(softmax(x))",                           { -300, 0 },   { 0, 0 },     -300 },
    { "log(exp(x) / sum(exp(x), axis=1, keepdims=True))", { -300, 0 }, { 0, 0 }, -300 },
    { "log(softmax(x))[arange(1), t]",             { 0, -300 },   { 0, 0 },     -300 },
    { "log(softmax(x)[arange(x.shape[0]), t])",             { 0, -300 },   { 0, 0 },     -300 },
    { "mean(crossentropy_1hot(softmax(x + y), t))", { 0, -300 },  { 7, 7 },     300 },
    { "categorical_crossentropy(softmax(x), y)",   { 0, -300 },   { 0, 1 },     300 },
    { "binary_crossentropy(sigmoid(x), y)",        { 150, 0 },    { 0, 0 },     150 },
    { "sigmoid_binary_crossentropy(x, y)",         { 150, 0 },    { 0, 0 },     150 },
    { "1 - erf(x)",                                { 6, 0 },      { 0, 0 },     2.1519736712498913e-17 },
    { "-erf(x) + 1",                               { 6, 0 },      { 0, 0 },     2.1519736712498913e-17 },
    { "1 + erf(x)",                                { -6, 0 },     { 0, 0 },     2.1519736712498913e-17 },
    { "1 - erfc(x)",                               { 1e-9, 0 },   { 0, 0 },     1.1283791670955126e-9 },
    { "log(erfc(x))",                              { 20, 0 },     { 0, 0 },     -403.56934333410024 },
    { "exp(-sqr(x)) / erfc(x)",                    { 20, 0 },     { 0, 0 },     35.493316747798616 },
    { "argmax(exp(x), axis=1)",                    { 300, 301 },  { 0, 0 },     1 },
    { "argmax(softmax(x), axis=1)",                { -300, -299 }, { 0, 0 },    1 },
    { "argmax(log(exp(x) + 1), axis=1)",           { 800, 900 },  { 0, 0 },     1 },
    { "argmax(logsumexp(concatenate([x, x - 1], axis=0), axis=0))", { 800, 900 }, { 0, 0 }, 1 },
    { "argmax(tanh(x), axis=1)",                   { 30, 31 },    { 0, 0 },     1 },
    { "argmax(sigmoid(x), axis=1)",                { 30, 31 },    { 0, 0 },     1 },
    /* their gradients */
    { "grad(sum(log(1 + exp(x))), x)",             { 200, 0 },    { 0, 0 },     1 },
    { "grad(sum(log(sigmoid(x))), x)",             { -200, 0 },   { 0, 0 },     1 },
    { "grad(sum(log(1 - sigmoid(x))), x)",         { 200, 0 },    { 0, 0 },     -1 },
    { "grad(sum(exp(x) / (1 + exp(x))), x)",       { 200, 0 },    { 0, 0 },     0 },
    { "grad(sum(sin(transpose(exp(x) / (1 + exp(x))))), x)", { -20, 0 }, { 0, 0 }, 2.0611536e-9 },
    { "grad(sum(sin(transpose(exp(x) / (1 + exp(x))))), x)", { 80, 0 }, { 0, 0 }, 9.751653e-36 },
    { "grad(sum(log(sum(exp(x), axis=1))), x)",    { 500, 500 },  { 0, 0 },     0.5 },
    { "grad(sum(log(exp(x) + exp(y))), x)",        { 500, 0 },    { 500, 0 },   0.5 },
    { "grad(sum(log(exp(x) + exp(y[0]))), x)",     { 500, 0 },    { 500, 0 },   0.5 },
    { "grad(sum(log(exp(x) + exp(y * 0))), x)",    { 100, 0 },    { 0, 0 },     1 },
    { "grad(sum(log(sigmoid(log(exp(x) + exp(y[0]))))), x)", { 80, 0 }, { 1, 0 }, 1.8048513878454e-35 },
    { "grad(sum(log(softmax(x))[:, 0]), x)",       { -300, 0 },   { 0, 0 },     1 },
    { "grad(mean(-log(softmax(x))[arange(1), t]), x)", { 300, 0 }, { 0, 0 },    1 },
    { "grad(mean(-log(softmax(x)[arange(x.shape[0]), t])), x)", { 300, 0 }, { 0, 0 },    1 },
    { "grad(sum(categorical_crossentropy(softmax(x), y)), x)", { -300, 0 }, { 1, 0 }, -1 },
    { "grad(sum(binary_crossentropy(sigmoid(x), y)), x)", { 150, 0 }, { 0, 0 }, 1 },
    { "grad(sum(log(erfc(x))), x)",                { 20, 0 },     { 0, 0 },     -40.049875774108 },
};

static double first_of(const struct stable_case *c, const char *mode)
{
    mc_graph *g = mc_graph_new();
    double got = (double)NAN;
    mc_input(g, "x", MC_FLOAT32, 2);
    mc_input(g, "y", MC_FLOAT32, 2);
    mc_input(g, "t", MC_INT32, 1);
    mc_node *out = mc_formula(g, c->formula);
    mc_function *f = mc_compile(
        g,
        &(mc_spec){ .inputs = "x, y, t", .output = &out, .noutput = 1, .on_unused = "ignore", .mode = mode });
    if (CHECK(f, "%s: %s", c->formula, mc_error(g))) {
        float in[2][2] = { { (float)c->x[0], (float)c->x[1] }, { (float)c->y[0], (float)c->y[1] } };
        mc_array *x = mc_array_from(MC_FLOAT32, MC_SHAPE(1, 2), in[0]),
                 *y = mc_array_from(MC_FLOAT32, MC_SHAPE(1, 2), in[1]), *r = NULL;
        mc_array *t = mc_array_from(MC_INT32, MC_SHAPE(1), (int32_t[]){ 1 });
        CHECK(mc_call(f, MC_IN(x, y, t), MC_OUT(&r)) == MC_OK, "%s: %s", c->formula, mc_last_error());
        mc_array *wide = r ? mc_array_cast(r, MC_FLOAT64) : NULL;
        got = wide ? *(const double *)mc_array_data(wide) : got;
        mc_array_unref(&wide);
        mc_array_unref(&r);
        mc_array_unref(&x);
        mc_array_unref(&y);
        mc_array_unref(&t);
    }
    mc_function_free(f);
    mc_graph_free(g);
    return got;
}

static bool means_it(const struct stable_case *c, double got)
{
    return fabs(got - c->want) <= 1e-5 * fabs(c->want);
}

TEST(stable_forms_mean_what_they_say)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = first_of(&cases[i], "FAST_RUN");
        CHECK(means_it(&cases[i], got), "%s at %g, %g: %.9g, not %.9g", cases[i].formula, cases[i].x[0],
              cases[i].y[0], got, cases[i].want);
    }
}

/* DEBUG compares each form with the one it mends, and does not take what that one lost for a fault of the
 * rule. */
TEST(stable_forms_are_no_faults)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = first_of(&cases[i], "DEBUG");
        CHECK(means_it(&cases[i], got), "%s: %.9g, not %.9g", cases[i].formula, got, cases[i].want);
    }
}
