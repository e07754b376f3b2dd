/* t_rewrite_stable.c: what rewrites do for formulas that lose digits as they are written: by the reference,
 * rewritten, against what is true. */
#include "rewrite_words.h"

/* ---- stability: the whole table, in float32 against what is true ---- */

static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double true_log1p(double x) { return log1p(x); }
static double true_log1m(double x) { return log1p(-x); }
static double true_expm1(double x) { return expm1(x); }
static double true_logsig(double x) { return -softplus(-x); }
static double true_log1msig(double x) { return -softplus(x); }
static double true_sig(double x) { return logistic(x); }
static double true_csig(double x) { return 3 * logistic(-x); }
static double true_1msig(double x) { return exp(-softplus(x)); }
static double true_softplus(double x) { return softplus(x); }
static double true_erfc(double x) { return erfc(x); }
static double true_erf(double x) { return erf(x); }
static double true_logadd(double x) { return x + log(2); }
static double true_lse(double x) { return x + log(20); }

/* log(erfc(x)) and exp(-x*x)/erfc(x) by the continued fraction of erfc, good for x > 2. */
static double erfcx(double x)
{
    double f = x;
    for (int k = 200; k > 0; k--) {
        f = x + k / 2.0 / f;
    }
    return 1 / (f * sqrt(3.14159265358979323846));
}
static double true_logerfc(double x) { return x > 2 ? log(erfcx(x)) - x * x : log(erfc(x)); }
static double true_ratio(double x) { return x > 2 ? 1 / erfcx(x) : exp(-x * x) / erfc(x); }
static double true_dlogerfc(double x) { return -2 / sqrt(3.14159265358979323846) * true_ratio(x); }

static const struct { const char *text; double at; double (*truth)(double x); } stable[] = {
    { "log(1 + x)", 1e-10, true_log1p },             { "log(1 - x)", 1e-10, true_log1m },
    { "exp(x) - 1", 1e-10, true_expm1 },             { "log(exp(x) + exp(x * 1))", 200, true_logadd },
    { "log(exp(x) + exp(y))", -200, true_logadd },   { "log(exp(x) + exp(y))", 200, true_logadd },
    { "log(sum(exp(x)))", 200, true_lse },           { "log(sum(exp(x), keepdims=True))", -200, true_lse },
    { "log(sigmoid(x))", -200, true_logsig },        { "log(1 - sigmoid(x))", 200, true_log1msig },
    { "log(1 - sigmoid(x))", -30, true_log1msig },   { "log1p(exp(x))", 200, true_softplus },
    { "log(1 + exp(x))", -30, true_softplus },       { "log1p(-sigmoid(x))", 200, true_log1msig },
    { "exp(x) / (1 + exp(x))", 200, true_sig },      { "3 / (1 + exp(x))", -200, true_csig },
    { "1 / (1 + exp(-x))", 50, true_sig },           { "exp(x) * sigmoid(-x)", 100, true_sig },
    { "3 * exp(-x) * sigmoid(x)", -100, true_csig }, { "1 - sigmoid(x)", 30, true_1msig },
    { "1 - erf(x)", 5, true_erfc },                  { "-erf(x) + 1", 5, true_erfc },
    { "1 + (-erf(x))", 5, true_erfc },               { "1 - erfc(x)", 1e-9, true_erf },
    { "log(erfc(x))", 15, true_logerfc },            { "log(erfc(x))", 9, true_logerfc },
    { "log(erfc(x))", -3, true_logerfc },            { "exp(-sqr(x)) / erfc(x)", 15, true_ratio },
    { "exp(-sqr(x)) / erfc(x)", 1, true_ratio },     { "grad(sum(log(erfc(x))), x)", 15, true_dlogerfc },
    { "grad(sum(log(erfc(x))), x)", -1, true_dlogerfc },
};

/* The formula, rewritten or not, at one number throughout; the first element of the result. */
static double at_number(const char *text, double v, bool rewrite)
{
    mc_graph *g = variables(MC_FLOAT32);
    mc_node *leaf[16], *n = mc_formula(g, text);
    mc_array *value[16], *out = NULL;
    double r = NAN;
    CHECK(!mc_is_error(n), "%s: %s", text, mc_error(g));
    if (rewrite) {
        CHECK(mc_rewrite(g, 1, &n, NULL) == MC_OK, "%s: %s", text, mc_last_error());
    }
    int count = bind_all(g, v, v, leaf, value);
    if (CHECK(mc_eval(count, leaf, value, 1, &n, &out) == MC_OK, "%s: %s", text, mc_last_error())) {
        r = mc_load_f64(out->dtype, out->data);
    }
    for (int i = 0; i < count; i++) {
        mc_array_unref(&value[i]);
    }
    mc_array_unref(&out);
    mc_graph_free(g);
    return r;
}

TEST(rewrites_are_stable)
{
    int improved = 0, n = (int)(sizeof stable / sizeof *stable);
    for (int i = 0; i < n; i++) {
        double want = stable[i].truth(stable[i].at), tol = 3e-6 * fabs(want);
        double plain = at_number(stable[i].text, stable[i].at, false),
               got = at_number(stable[i].text, stable[i].at, true);
        CHECK(fabs(got - want) <= tol, "%s at %g: %.9g, not %.9g (unrewritten %.9g)", stable[i].text,
              stable[i].at, got, want, plain);
        improved += !(fabs(plain - want) <= tol);
    }
    CHECK(improved > 2 * n / 3, "only %d of %d formulas need their rule", improved, n);
}

/* ---- softmax and cross-entropy where probabilities vanish ---- */

static double softmax_case(const char *text, int row, int col)
{
    mc_graph *g = variables(MC_FLOAT32);
    mc_node *leaf[16], *n = mc_formula(g, text);
    mc_array *value[16], *out = NULL;
    double r = NAN;
    CHECK(!mc_is_error(n) && mc_rewrite(g, 1, &n, NULL) == MC_OK, "%s: %s", text, mc_last_error());
    int count = bind_all(g, 0, 0, leaf, value);
    for (int i = 0; i < 20; i++) { /* x: the last column wins by 1000; y: one-hot in column 0 */
        mc_array_set(value[0], (int64_t[]){ i / 5, i % 5 }, i % 5 == 4 ? 1000 : i % 5);
        mc_array_set(value[1], (int64_t[]){ i / 5, i % 5 }, i % 5 == 0);
    }
    for (int i = 0; i < 4; i++) {
        mc_array_set(value[5], (int64_t[]){ i }, i == 3 ? -5 : 0);
    }
    if (CHECK(mc_eval(count, leaf, value, 1, &n, &out) == MC_OK, "%s: %s", text, mc_last_error())) {
        r = mc_array_get(out, out->rank == 2   ? (int64_t[]){ row, col }
                              : out->rank == 1 ? (int64_t[]){ row }
                                               : NULL);
    }
    for (int i = 0; i < count; i++) {
        mc_array_unref(&value[i]);
    }
    mc_array_unref(&out);
    mc_graph_free(g);
    return r;
}

TEST(rewrites_keep_softmax_from_vanishing)
{
    static const struct { const char *text; int row, col; double want; } cases[] = {
        { "exp(x) / sum(exp(x), axis=1, keepdims=True)", 0, 4, 1 },
        { "log(softmax(x))", 0, 0, -1000 },
        { "log(exp(x) / sum(exp(x), axis=1, keepdims=True))", 1, 2, -998 },
        { "x - log(sum(exp(x), axis=1, keepdims=True))", 1, 2, -998 },
        { "-log(softmax(x))[arange(x.shape[0]), t]", 0, 0, 1000 },
        { "-log(softmax(x)[arange(x.shape[0]), t])", 3, 0, 1000 },
        { "mean(-log(softmax(x))[arange(x.shape[0]), t])", 0, 0, 1000 },
        { "mean(crossentropy_1hot(softmax(x), t))", 0, 0, 1000 },
        { "mean(categorical_crossentropy(softmax(x), y))", 0, 0, 1000 },
        { "grad(mean(-log(softmax(x))[arange(x.shape[0]), t]), x)", 0, 0, -0.25 },
        { "grad(mean(-log(softmax(x))[arange(x.shape[0]), t]), x)", 3, 0, -0.25 },
        { "grad(mean(-log(softmax(x))[arange(x.shape[0]), t]), x)", 3, 4, 0.25 },
        { "grad(mean(-log(softmax(x)[arange(x.shape[0]), t])), x)", 0, 0, -0.25 },
        { "grad(mean(-log(softmax(x)[arange(x.shape[0]), t])), x)", 3, 4, 0.25 },
        { "grad(sum(-log(softmax(x))[arange(x.shape[0]), t]), x)", 2, 4, 1 },
        { "grad(mean(crossentropy_1hot(softmax(x), t)), x)", 0, 0, -0.25 },
        { "grad(mean(categorical_crossentropy(softmax(x), y)), x)", 0, 0, -0.25 },
        { "grad(mean(categorical_crossentropy(softmax(x), y)), x)", 0, 4, 0.25 },
        { "grad(sum(log(sum(exp(x), axis=1))), x)", 0, 4, 1 },
        { "mean(binary_crossentropy(sigmoid(x), y), axis=0)", 4, 0, 1000 },
        { "grad(sum(binary_crossentropy(sigmoid(x), y)), x)", 0, 4, 1 },
        { "grad(sum(binary_crossentropy(sigmoid(-x), y + 1)), x)", 0, 4, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = softmax_case(cases[i].text, cases[i].row, cases[i].col);
        CHECK(fabs(got - cases[i].want) <= 1e-5 * fabs(cases[i].want), "%s at %d, %d: %g, not %g",
              cases[i].text, cases[i].row, cases[i].col, got, cases[i].want);
    }
}
