/* t_ops_draws.c: distributions of random.c beyond uniform and normal numbers: how often a draw falls between
 * seven edges, against the distribution functions of SciPy; and what choices, shuffles and dropouts keep. */
#include "sample.h"
#include <math.h>

static mc_array *drawn(const char *formula, const mc_array *x)
{
    mc_graph *g = mc_graph_new();
    mc_random(g, "rng", 11);
    mc_node *in = x ? mc_input(g, "x", x->dtype, x->rank) : NULL, *n = mc_formula(g, formula);
    mc_array *out = NULL, *value = x ? mc_array_ref(x) : NULL;
    if (!mc_is_error(n)) {
        mc_eval(x != NULL, &in, &value, 1, &n, &out);
    }
    CHECK(out, "%s: %s %s", formula, mc_error(g), mc_last_error());
    mc_array_unref(&value);
    mc_graph_free(g);
    return out;
}

static double at(const mc_array *a, int64_t i)
{
    return mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size);
}

/* Edges near the eighths of the distribution, and the probabilities between them: np.diff of D.cdf of them, D
 * being scipy.stats' distribution, such as expon(scale=2.5), truncnorm(8, 14, 1, 0.5), binom(300, 0.95). */
static const struct { const char *text; mc_dtype d; double edge[7], p[8]; } rows[] = {
        { "exponential(rng, [40000])", MC_FLOAT64, { 0.1335, 0.2877, 0.47, 0.6931, 0.9808, 1.386, 2.079 },
          { 0.1249725, 0.1250409, 0.1249843, 0.1249787, 0.1250126, 0.1249374, 0.1250184, 0.1250552 } },
        { "exponential(rng, [40000], 2.5, dtype=float32)", MC_FLOAT32, { 0.3338, 0.7192, 1.175, 1.733, 2.452, 3.466, 5.199 },
          { 0.12499, 0.1250084, 0.1249993, 0.1250287, 0.1249626, 0.1250374, 0.1249934, 0.1249802 } },
        { "laplace(rng, [40000])", MC_FLOAT64, { -1.386, -0.6931, -0.2877, 0, 0.2877, 0.6931, 1.386 },
          { 0.1250368, 0.124975, 0.1249815, 0.1250067, 0.1250067, 0.1249815, 0.124975, 0.1250368 } },
        { "laplace(rng, [40000], 1, 0.5, dtype=float32)", MC_FLOAT32, { 0.3069, 0.6534, 0.8562, 1, 1.144, 1.347, 1.693 },
          { 0.1250118, 0.124975, 0.125044, 0.1249692, 0.1251192, 0.1250939, 0.1247501, 0.1250368 } },
        { "truncated_normal(rng, [40000], -1.0, 2.0)", MC_FLOAT64, { -0.6403, -0.3496, -0.08626, 0.1712, 0.4407, 0.7474, 1.15 },
          { 0.1250113, 0.1250077, 0.124983, 0.1250153, 0.1249925, 0.1249752, 0.1250181, 0.1249969 } },
        { "truncated_normal(rng, [40000], 5.0, 8.0, avg=1, std=0.5, dtype=float32)", MC_FLOAT32, { 5.008, 5.018, 5.029, 5.042, 5.06, 5.084, 5.126 },
          { 0.1219643, 0.1320195, 0.1226975, 0.1195674, 0.1290634, 0.1226818, 0.126812, 0.125194 } },
        { "truncated_normal(rng, [40000], -9.0, -4.0, dtype=float16)", MC_FLOAT16, { -4.467, -4.317, -4.226, -4.161, -4.11, -4.068, -4.031 },
          { 0.1252305, 0.1244663, 0.1258521, 0.1246795, 0.1244063, 0.1239685, 0.1282182, 0.1231786 } },
        { "random_gamma(rng, [40000], 0.3)", MC_FLOAT64, { 0.0006813, 0.0069, 0.02707, 0.07313, 0.1646, 0.3429, 0.7397 },
          { 0.1250008, 0.1250013, 0.1249928, 0.1250028, 0.1249707, 0.1250318, 0.1249971, 0.1250027 } },
        { "random_gamma(rng, [40000], 2.0, 3.0, dtype=float32)", MC_FLOAT32, { 1.828, 2.884, 3.915, 5.035, 6.354, 8.078, 10.82 },
          { 0.1249842, 0.1250359, 0.1249272, 0.1250484, 0.1249964, 0.1250137, 0.1249592, 0.1250349 } },
        { "random_gamma(rng, [40000], 50.0)", MC_FLOAT64, { 42, 45.07, 47.46, 49.67, 51.95, 54.57, 58.22 },
          { 0.125024, 0.1251392, 0.1250358, 0.1249672, 0.1250759, 0.1247316, 0.1251225, 0.1249038 } },
        { "random_beta(rng, [40000], 0.5, 0.8)", MC_FLOAT64, { 0.02059, 0.08169, 0.1811, 0.3152, 0.4779, 0.6605, 0.8478 },
          { 0.1249871, 0.1250199, 0.1249502, 0.1250581, 0.1249542, 0.1250615, 0.1249878, 0.1249811 } },
        { "random_beta(rng, [40000], 2, 3, dtype=float32)", MC_FLOAT32, { 0.1616, 0.243, 0.3151, 0.3857, 0.4599, 0.5437, 0.6516 },
          { 0.1249724, 0.1249907, 0.1250541, 0.1249347, 0.1251229, 0.1249548, 0.1250129, 0.1249576 } },
        { "poisson(rng, 0.5, [40000])", MC_INT64, { 0.5, 1.5, 1e+09, 1e+09, 1e+09, 1e+09, 1e+09 },
          { 0.6065307, 0.3032653, 0.09020401, 0, 0, 0, 0, 0 } },
        { "poisson(rng, 4, [40000], dtype=float32)", MC_FLOAT32, { 2.5, 3.5, 4.5, 5.5, 6.5, 1e+09, 1e+09 },
          { 0.2381033, 0.1953668, 0.1953668, 0.1562935, 0.1041956, 0.110674, 0, 0 } },
        { "poisson(rng, alloc(130.0, [40000]))", MC_INT64, { 117.5, 122.5, 126.5, 130.5, 133.5, 138.5, 143.5 },
          { 0.1357188, 0.1222891, 0.1264989, 0.1387967, 0.1022782, 0.148412, 0.1067598, 0.1192465 } },
        { "poisson(rng, 20.5, [40000])", MC_INT64, { 15.5, 17.5, 19.5, 20.5, 22.5, 23.5, 26.5 },
          { 0.1322738, 0.1282294, 0.1659721, 0.08829086, 0.1665009, 0.0715826, 0.1508127, 0.09633763 } },
        { "poisson(rng, 2000.0, [40000])", MC_INT64, { 1949.5, 1970.5, 1986.5, 2000.5, 2014.5, 2030.5, 2051.5 },
          { 0.1291803, 0.126238, 0.1272507, 0.1232777, 0.1224318, 0.1246326, 0.1219986, 0.1249903 } },
        { "poisson(rng, 3000000.0, [40000])", MC_INT64, { 2998008.5, 2998832.5, 2999448.5, 3000000.5, 3000552.5, 3001168.5, 3001993.5 },
          { 0.1251082, 0.1250462, 0.1249659, 0.1250333, 0.1250107, 0.1248982, 0.1250543, 0.1248833 } },
        { "binomial(rng, 0.3, [40000], 10)", MC_FLOAT64, { 1.5, 2.5, 3.5, 4.5, 5.5, 1e+09, 1e+09 },
          { 0.1493083, 0.2334744, 0.2668279, 0.2001209, 0.1029193, 0.04734899, 0, 0 } },
        { "binomial(rng, 0.95, [40000], n=300, dtype=int32)", MC_INT32, { 281.5, 283.5, 284.5, 285.5, 286.5, 288.5, 289.5 },
          { 0.175045, 0.158316, 0.09852698, 0.1050954, 0.104728, 0.1803116, 0.06567558, 0.1123014 } },
};

TEST(draws_fall_as_their_distribution_says)
{
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *y = drawn(rows[k].text, NULL);
        double seen[8] = { 0 }, chi = 0;
        if (!CHECK(y && y->dtype == rows[k].d && mc_array_size(y) == 40000, "%s", rows[k].text)) {
            continue;
        }
        for (int64_t i = 0; i < 40000; i++) {
            int bin = 0;
            while (bin < 7 && at(y, i) > rows[k].edge[bin]) {
                bin++;
            }
            seen[bin]++;
        }
        for (int i = 0; i < 8; i++) {
            const double want = 40000 * rows[k].p[i];
            CHECK(want > 0 || seen[i] == 0, "%s: %g above the last edge", rows[k].text, seen[i]);
            chi += want > 0 ? (seen[i] - want) * (seen[i] - want) / want : 0;
        }
        CHECK(chi < 32, "%s: chi squared %g of 7 degrees", rows[k].text, chi); /* beyond: one in 20,000 */
        mc_array_unref(&y);
    }
}

/* A count k of mean l is the least whose distribution function, gammaincc(k + 1, l), reaches the uniform number
 * that it is made from; 1e-13: the error of that function. */
TEST(poisson_counts_are_quantiles)
{
    static const double means[] = { 0.7, 19.9, 20, 23.7, 57, 100, 1e3, 12345.6, 2e5, 3e6, 1e10 };
    for (size_t i = 0; i < NELEM(means); i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "l = cast(%.17g, float64); u = random_uniform(rng, [20000], stream=5, dtype=float64); "
                 "k = poisson(rng, l, [20000], stream=5, dtype=float64); "
                 "sum((gammaincc(k + 1, l) < u - 1e-13) + (k > 0) * (gammaincc(k, l) >= u + 1e-13))",
                 means[i]);
        mc_array *wrong = drawn(text, NULL);
        CHECK(wrong && at(wrong, 0) == 0, "mean %g: %g counts of 20000 are another's", means[i],
              wrong ? at(wrong, 0) : -1);
        mc_array_unref(&wrong);
    }
}

TEST(choices)
{
    mc_array *w = drawn("choice(rng, 4, [40000], p=[0.1, 0.0, 0.6, 0.3])", NULL),
             *even = drawn("choice(rng, [5, 7, 9], [300, 100])", NULL),
             *once = drawn("choice(rng, 50, [5, 10], replace=False)", NULL),
             *some = drawn("choice(rng, 9, 4, p=[1.0, 0, 2, 0, 3, 0, 4, 0, 0], replace=False)", NULL),
             *many = drawn("stack(choice(rng, 3, 1, p=[0.2, 0.5, 0.3], replace=False, stream=5)[0], 1)",
                           NULL);
    double seen[4] = { 0 }, five = 0;
    int times[50] = { 0 };
    REQUIRE(w && even && once && some && many, "a choice failed");
    for (int64_t i = 0; i < 40000; i++) {
        seen[(int)at(w, i)]++;
    }
    static const double p[4] = { .1, 0, .6, .3 };
    for (int i = 0; i < 4; i++) {
        CHECK(fabs(seen[i] / 40000 - p[i]) <= 4 * sqrt(p[i] * (1 - p[i]) / 40000), "%d came %g times", i,
              seen[i]);
    }
    CHECK(even->rank == 2 && even->dims[0] == 300 && even->dtype == MC_INT64, "the shape");
    for (int64_t i = 0; i < 30000; i++) {
        CHECK(at(even, i) == 5 || at(even, i) == 7 || at(even, i) == 9, "%g was not to be chosen",
              at(even, i));
        five += at(even, i) == 5;
    }
    CHECK(fabs(five / 30000 - 1 / 3.) < 4 * sqrt(2 / 9. / 30000), "5 came %g times", five);
    for (int64_t i = 0; i < 50; i++) {
        CHECK(!times[(int)at(once, i)]++, "%g again", at(once, i));
    }
    for (int64_t i = 0; i < 4; i++) { /* all that have a weight */
        CHECK(at(some, i) == 0 || at(some, i) == 2 || at(some, i) == 4 || at(some, i) == 6,
              "%g has no weight", at(some, i));
    }
    mc_graph *g = mc_graph_new();
    mc_random(g, "rng", 11);
    mc_node *n = mc_formula(g, "choice(rng, 5, 9, replace=False)");
    mc_array *y = NULL;
    CHECK(mc_is_error(n) || mc_eval(0, NULL, NULL, 1, &n, &y) < 0, "nine of five were chosen");
    mc_array_unref(&y);
    mc_graph_free(g);
    drop((mc_array *[]){ w, even, once, some, many }, 5);
}

/* The first of a weighted choice without replacement has the weights as its probabilities. */
TEST(weights_without_replacement)
{
    int seen[3] = { 0 };
    for (int k = 0; k < 3000; k++) {
        char text[96];
        snprintf(text, sizeof text, "choice(rng, 3, 2, p=[0.2, 0.5, 0.3], replace=False, stream=%d)", k);
        mc_array *y = drawn(text, NULL);
        seen[y ? (int)at(y, 0) : 0]++;
        mc_array_unref(&y);
    }
    static const double p[3] = { .2, .5, .3 };
    for (int i = 0; i < 3; i++) {
        CHECK(fabs(seen[i] / 3000. - p[i]) < 4 * sqrt(p[i] * (1 - p[i]) / 3000),
              "%d came first %d times of 3000", i, seen[i]);
    }
}

TEST(shuffles_and_dropout)
{
    const int64_t dims[2] = { 40, 30 };
    mc_array *x = mc_array_new(MC_FLOAT32, 2, dims);
    for (int i = 0; i < 1200; i++) {
        mc_store_f64(MC_FLOAT32, x->data + (size_t)i * 4, i + 1);
    }
    mc_array *rows_ = drawn("shuffle(rng, x)", x), *each = drawn("shuffle_row_elements(rng, x)", x),
             *out = drawn("dropout(rng, x, 0.25)", x), *none = drawn("dropout(rng, x, 0.0)", x),
             *counts = drawn("multinomial(rng, alloc([0.2, 0.5, 0.3], [4000, 3]), n=12)", NULL);
    REQUIRE(rows_ && each && out && none && counts, "a draw failed");
    int dropped = 0, moved = 0, seen[40] = { 0 };
    double mean[3] = { 0 };
    for (int i = 0; i < 40; i++) {
        const int from = ((int)at(rows_, 30 * i) - 1) / 30;
        bool in[30] = { false };
        CHECK(!seen[from]++, "row %d again", from);
        for (int k = 0; k < 30; k++) {
            const int v = (int)at(each, 30 * i + k) - 1 - 30 * i;
            CHECK(at(rows_, 30 * i + k) == 30 * from + k + 1, "row %d is torn", from);
            CHECK(v >= 0 && v < 30 && !in[v], "row %d: %d again", i, v);
            in[v < 0 || v > 29 ? 0 : v] = true;
            moved += v != k;
            const double o = at(out, 30 * i + k), was = 30 * i + k + 1;
            CHECK(o == 0 || fabs(o - was / 0.75) < 1e-6 * o, "dropout made %g of %g", o, was);
            dropped += o == 0;
        }
    }
    CHECK(moved > 1000, "%d elements moved in their rows", moved);
    CHECK(fabs(dropped / 1200. - 0.25) < 4 * sqrt(.25 * .75 / 1200), "%d of 1200 dropped", dropped);
    CHECK(mc_array_differs(none, x, 0, 0) < 0, "dropout of nothing changes something");
    for (int i = 0; i < 4000; i++) {
        CHECK(at(counts, 3 * i) + at(counts, 3 * i + 1) + at(counts, 3 * i + 2) == 12, "row %d", i);
        for (int k = 0; k < 3; k++) {
            mean[k] += at(counts, 3 * i + k) / 4000;
        }
    }
    static const double p[3] = { .2, .5, .3 };
    for (int k = 0; k < 3; k++) {
        CHECK(fabs(mean[k] - 12 * p[k]) < 4 * sqrt(12 * p[k] * (1 - p[k]) / 4000), "outcome %d: mean %g", k,
              mean[k]);
    }
    drop((mc_array *[]){ x, rows_, each, out, none, counts }, 6);
}

/* Every row of the family with a formula is drawn here. */
TEST(no_distribution_goes_untested)
{
    static const char *const others[] = { "shuffle", "shuffle_row_elements", "dropout" };
    for (int i = 0; mc_op_at(i); i++) {
        const struct mc_op *op = mc_op_at(i);
        bool seen = !op->formula || strcmp(mc_op_family(op), "Random") != 0;
        for (size_t k = 0; k < NELEM(rows); k++) {
            seen |= strncmp(rows[k].text, op->name, strlen(op->name)) == 0;
        }
        for (size_t k = 0; k < NELEM(others); k++) {
            seen |= strcmp(others[k], op->name) == 0;
        }
        CHECK(seen, "%s is not drawn", op->name);
    }
}
