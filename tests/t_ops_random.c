/* t_ops_random.c: the generator against published words, draws against their definition, and statistics wide
 * enough that a sound generator passes them for the seeds fixed here. */
#include "sample.h"
#include <math.h>

/* The value of a formula over the stream rng of this seed and step; NULL: it failed. */
static mc_array *drawn_at(const char *formula, uint64_t seed, uint64_t step)
{
    mc_graph *g = mc_graph_new();
    mc_shared *s = mc_random(g, "rng", seed);
    uint64_t now[2] = { seed, step };
    mc_array *state = mc_array_from(MC_UINT64, MC_SHAPE(2), now), *out = NULL;
    mc_shared_set(s, state);
    mc_array_unref(&state);
    mc_node *n = mc_formula(g, formula);
    if (!mc_is_error(n)) {
        mc_eval(0, NULL, NULL, 1, &n, &out);
    }
    mc_graph_free(g);
    return out;
}

static mc_array *drawn(const char *formula)
{
    return drawn_at(formula, 7, 0);
}

static double at(const mc_array *a, int64_t i)
{
    return mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size);
}

static void moments(const mc_array *a, double *mean, double *var)
{
    int64_t n = mc_array_size(a);
    *mean = *var = 0;
    for (int64_t i = 0; i < n; i++) {
        *mean += at(a, i) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        *var += (at(a, i) - *mean) * (at(a, i) - *mean) / (double)n;
    }
}

TEST(philox_gives_the_published_words)
{
    static const struct { uint32_t key[2], counter[4], words[4]; } rows[] = {
        { { 0, 0 }, { 0, 0, 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0xa4093822, 0x299f31d0 }, { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        uint32_t out[4];
        mc_philox(rows[k].key, rows[k].counter, out);
        CHECK(memcmp(out, rows[k].words, sizeof out) == 0, "row %zu: %08x %08x %08x %08x", k, out[0], out[1],
              out[2], out[3]);
    }
}

/* Element i from its definition, word by word. */
static double uniform_by_hand(mc_dtype d, uint64_t seed, uint64_t step, int64_t stream, uint64_t i)
{
    uint64_t key = mc_random_mix(seed, (uint64_t)stream), block = d == MC_FLOAT64 ? i / 2 : i / 4;
    uint32_t w[4], k[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
    uint32_t c[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)step, (uint32_t)(step >> 32) };
    mc_philox(k, c, w);
    switch ((int)d) {
    case MC_FLOAT64:
        return ldexp((double)(w[2 * (i % 2) + 1]), -32) + ldexp((double)(w[2 * (i % 2)] >> 11), -53);
    case MC_FLOAT16: return ldexp((double)(w[i % 4] >> 21), -11);
    case MC_BFLOAT16: return ldexp((double)(w[i % 4] >> 24), -8);
    default: return ldexp((double)(w[i % 4] >> 8), -24);
    }
}

TEST(uniforms_follow_their_definition)
{
    static const uint64_t steps[] = { 0, 1, 1000, UINT64_C(0x123456789abcdef0) };
    for (mc_dtype d = MC_FLOAT16; d <= MC_FLOAT64; d++) {
        for (size_t k = 0; k < NELEM(steps); k++) {
            for (int64_t n = 0; n < 12; n++) {
                char text[96];
                uint64_t seed = test_random();
                snprintf(text, sizeof text, "uniform(rng, [%lld], dtype=%s, stream=%d)", (long long)n,
                         mc_dtype_name(d), (int)k);
                mc_array *y = drawn_at(text, seed, steps[k]);
                REQUIRE(y && y->dtype == d && y->rank == 1 && y->dims[0] == n, "%s: %s", text,
                        mc_last_error());
                for (int64_t i = 0; i < n; i++) {
                    double want = uniform_by_hand(d, seed, steps[k], (int64_t)k, (uint64_t)i);
                    CHECK(at(y, i) == want && want >= 0 && want < 1, "%s[%lld] is %.17g, not %.17g", text,
                          (long long)i, at(y, i), want);
                }
                mc_array_unref(&y);
            }
        }
    }
}

TEST(the_shape_does_not_change_the_numbers)
{
    mc_array *a = drawn("uniform(rng, [3, 5, 2], stream=4)"),
             *b = drawn("reshape(uniform(rng, 30, stream=4), [3, 5, 2])");
    CHECK(a && b && mc_array_same_bits(a, b), "%s", mc_last_error());
    mc_array_unref(&a);
    mc_array_unref(&b);
}

TEST(each_draw_has_its_own_stream)
{
    mc_graph *g = mc_graph_new();
    mc_shared *s = mc_random(g, "rng", 3);
    mc_node *n[5] = { mc_formula(g, "uniform(rng, [4])"), mc_formula(g, "uniform(rng, [4])"), mc_formula(g, "normal(rng, [4])"),
                      mc_formula(g, "uniform(rng, [4])"), mc_formula(g, "uniform(rng, [4], stream=0)") };
    REQUIRE(mc_graph_status(g) == MC_OK, "%s", mc_error(g));
    CHECK(s->is_random && s->random == 5, "5 streams are taken, not %d", s->random);
    CHECK(n[0] == n[4], "a draw by its number is the draw that had it");
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++) {
            mc_node *pair[2] = { n[i], n[j] };
            mc_array *y[2] = { NULL };
            CHECK(mc_eval(0, NULL, NULL, 2, pair, y) == MC_OK, "%s", mc_last_error());
            CHECK(y[0] && !mc_array_same_bits(y[0], y[1]), "draws %d and %d are one", i, j);
            mc_array_unref(&y[0]);
            mc_array_unref(&y[1]);
        }
    }
    CHECK(g->defaults.n == 1 && g->defaults.at[0].shared == s, "a stream has a default update");
    mc_array *next = NULL;
    mc_eval(0, NULL, NULL, 1, &g->defaults.at[0].value, &next);
    uint64_t want[2] = { 3, 1 };
    CHECK(next && next->dtype == MC_UINT64 && memcmp(next->data, want, sizeof want) == 0,
          "which counts the step: %s", mc_last_error());
    mc_array_unref(&next);
    mc_graph_free(g);
}

/* What is printed draws the same numbers when read again. */
TEST(draws_print_with_their_stream)
{
    mc_graph *g = mc_graph_new();
    mc_random(g, "rng", 3);
    mc_formula(g, "uniform(rng, [4])");
    mc_node *n = mc_formula(g, "bernoulli(rng, 0.5, [2, 3])");
    char *text = mc_node_text(n);
    CHECK(text && mc_formula(g, text) == n, "%s: %s", text ? text : "", mc_error(g));
    mc_text_free(text);
    mc_graph_free(g);
}

TEST(moments_of_distributions)
{
    static const struct { const char *text; mc_dtype d; double mean, var; } rows[] = {
        { "uniform(rng, [200, 200])", MC_FLOAT64, .5, 1 / 12. },
        { "uniform(rng, [40000], dtype=float32)", MC_FLOAT32, .5, 1 / 12. },
        { "uniform(rng, [40000], dtype=bfloat16)", MC_BFLOAT16, .5 - 0x1p-9, 1 / 12. },
        { "uniform(rng, [40000], -3, 5)", MC_FLOAT64, 1, 64 / 12. },
        { "uniform(rng, [40000], low=[[-1.0], [1.0]][0], high=2, dtype=float32)", MC_FLOAT32, .5, 9 / 12. },
        { "normal(rng, [40000])", MC_FLOAT64, 0, 1 },
        { "normal(rng, [40000], dtype=float16)", MC_FLOAT16, 0, 1 },
        { "normal(rng, [200, 200], 2, 0.5, dtype=float32)", MC_FLOAT32, 2, .25 },
        { "normal(rng, [4, 10000], std=3)", MC_FLOAT64, 0, 9 },
        { "bernoulli(rng, 0.3, [40000])", MC_FLOAT64, .3, .21 },
        { "binomial(rng, alloc(0.3, [40000]), dtype=bool)", MC_BOOL, .3, .21 },
        { "random_integers(rng, [40000], -2, 2)", MC_INT64, 0, 2 },
        { "random_integers(rng, [40000], 0, 99, dtype=uint8)", MC_UINT8, 49.5, 9999 / 12. },
        { "cast(permutation(rng, 40000), float64) / 40000", MC_FLOAT64, .5, 1 / 12. },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_array *y = drawn(rows[k].text);
        double mean, var;
        if (CHECK(y && y->dtype == rows[k].d && mc_array_size(y) == 40000, "%s: %s", rows[k].text,
                  mc_last_error())) {
            moments(y, &mean, &var);
            CHECK(fabs(mean - rows[k].mean) < 4 * sqrt(rows[k].var / 40000), "%s: mean %g, not %g",
                  rows[k].text, mean, rows[k].mean);
            CHECK(fabs(var / rows[k].var - 1) < .04, "%s: variance %g, not %g", rows[k].text, var,
                  rows[k].var);
        }
        mc_array_unref(&y);
    }
}

/* Each pair of neighbours of the same draw, of two steps and of two streams, in an 8 by 8 table. */
TEST(draws_are_independent)
{
    enum { N = 40000 };
    mc_array *a = drawn_at("uniform(rng, 40001, stream=0)", 9, 0),
             *b = drawn_at("uniform(rng, 40001, stream=0)", 9, 1);
    mc_array *c = drawn_at("uniform(rng, 40001, stream=1)", 9, 0),
             *d = drawn_at("uniform(rng, 40001, stream=0)", 10, 0);
    REQUIRE(a && b && c && d, "%s", mc_last_error());
    const struct { const mc_array *other; int64_t shift; const char *name; } rows[] = {
        { a, 1, "neighbours" }, { b, 0, "steps" }, { c, 0, "streams" }, { d, 0, "seeds" } };
    for (size_t k = 0; k < NELEM(rows); k++) {
        int seen[64] = { 0 };
        double chi = 0;
        for (int64_t i = 0; i < N; i++) {
            seen[(int)(at(a, i) * 8) * 8 + (int)(at(rows[k].other, i + rows[k].shift) * 8)]++;
        }
        for (int i = 0; i < 64; i++) {
            chi += (seen[i] - N / 64.) * (seen[i] - N / 64.) / (N / 64.);
        }
        CHECK(chi > 30 && chi < 110, "%s: chi squared %g of 63 degrees", rows[k].name,
              chi); /* beyond: one in 10^4 */
    }
    mc_array_unref(&a);
    mc_array_unref(&b);
    mc_array_unref(&c);
    mc_array_unref(&d);
}

TEST(normals_are_box_and_muller)
{
    for (mc_dtype d = MC_FLOAT32; d <= MC_FLOAT64; d++) {
        char text[96];
        snprintf(text, sizeof text, "normal(rng, [50], 1, 2, dtype=%s, stream=6)", mc_dtype_name(d));
        mc_array *y = drawn_at(text, 5, 3);
        REQUIRE(y, "%s", mc_last_error());
        for (int64_t i = 0; i < 50; i++) {
            double u = uniform_by_hand(d, 5, 3, 6, (uint64_t)i), v = uniform_by_hand(d, 5, 3, 7, (uint64_t)i);
            double want = 1 + 2 * sqrt(-2 * log(1 - u)) * cos(6.283185307179586477 * v);
            CHECK(fabs(at(y, i) - want) < 40 * mc_dtypes[d].eps, "%s[%lld] is %g, not %g", text, (long long)i,
                  at(y, i), want);
        }
        mc_array_unref(&y);
    }
}

TEST(multinomial_rows)
{
    enum { N = 30000 };
    static const double want[4] = { .1, 0, .6, .3 };
    for (mc_dtype d = MC_FLOAT16; d <= MC_FLOAT64; d++) {
        char text[160]; /* rows need not add up to one */
        snprintf(text, sizeof text, "multinomial(rng, alloc(cast([0.5, 0.0, 3.0, 1.5], %s), [%d, 4]))",
                 mc_dtype_name(d), N);
        mc_array *y = drawn(text);
        REQUIRE(y && y->dtype == MC_INT64 && y->dims[0] == N && y->dims[1] == 4, "%s: %s", text,
                mc_last_error());
        int64_t seen[4] = { 0 };
        for (int64_t i = 0; i < N; i++) {
            int64_t ones = 0;
            for (int64_t k = 0; k < 4; k++) {
                ones += at(y, 4 * i + k) == 1;
                seen[k] += at(y, 4 * i + k) != 0;
            }
            CHECK(ones == 1, "row %lld has %lld ones", (long long)i, (long long)ones);
        }
        for (int k = 0; k < 4; k++) {
            double p = (double)seen[k] / N;
            CHECK(fabs(p - want[k]) <= 4 * sqrt(want[k] * (1 - want[k]) / N), "%s: column %d has %g, not %g",
                  text, k, p, want[k]);
        }
        mc_array_unref(&y);
    }
    mc_array *v = drawn("multinomial(rng, [0.0, 1.0, 0.0], dtype=float32)");
    CHECK(v && v->rank == 1 && v->dtype == MC_FLOAT32 && at(v, 0) == 0 && at(v, 1) == 1 && at(v, 2) == 0,
          "a vector is a row: %s", mc_last_error());
    mc_array_unref(&v);
}

TEST(integers_and_permutations)
{
    int seen[5] = { 0 };
    mc_array *y = drawn("random_integers(rng, [20, 50], 3, 7)"), *p = drawn("permutation(rng, 100)"),
             *one = drawn("random_integers(rng, [9], 4, 4)");
    REQUIRE(y && p && one && p->dtype == MC_INT64 && p->dims[0] == 100, "%s", mc_last_error());
    for (int64_t i = 0; i < 1000; i++) {
        int64_t v = (int64_t)at(y, i);
        if (CHECK(v >= 3 && v <= 7, "%lld is not between 3 and 7", (long long)v)) {
            seen[v - 3]++;
        }
    }
    for (int i = 0; i < 5; i++) {
        CHECK(seen[i] > 140 && seen[i] < 260, "%d came %d times of 1000", i + 3, seen[i]);
    }
    bool there[100] = { false };
    int still = 0;
    for (int64_t i = 0; i < 100; i++) {
        int64_t v = (int64_t)at(p, i);
        CHECK(v >= 0 && v < 100 && !there[v], "%lld again", (long long)v);
        there[v] = true;
        still += v == i;
    }
    CHECK(still < 10, "%d of 100 did not move", still);
    for (int64_t i = 0; i < 9; i++) {
        CHECK(at(one, i) == 4, "%g from 4 to 4", at(one, i));
    }
    mc_array_unref(&y);
    mc_array_unref(&p);
    mc_array_unref(&one);
}

/* Gradients pass through the parameters of a draw, not through the stream, the shape or a choice. */
TEST(gradients_of_draws)
{
    static const struct { const char *text; double want; } rows[] = {
        { "grad(sum(normal(rng, [6], a, 2, stream=0)), a)", 6 },
        { "grad(sum(uniform(rng, [6], a, 3, stream=0)), a) + sum(uniform(rng, [6], stream=0))", 6 },
        { "grad(sum(normal(rng, [6], 0, a, stream=0)), a) - sum(normal(rng, [6], stream=0))", 0 },
        { "grad(sum(a * bernoulli(rng, 0.5, [6], stream=0)), a) - sum(bernoulli(rng, 0.5, [6], stream=0))", 0 },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_graph *g = mc_graph_new();
        mc_random(g, "rng", 5);
        mc_node *a = mc_input(g, "a", MC_FLOAT64, 0), *n = mc_formula(g, rows[k].text);
        mc_array *two = mc_array_scalar(MC_FLOAT64, 2), *y = NULL;
        CHECK(!mc_is_error(n) && mc_eval(1, &a, &two, 1, &n, &y) == MC_OK &&
                  fabs(mc_array_get(y, NULL) - rows[k].want) < 1e-12,
              "%s is %g: %s %s", rows[k].text, y ? mc_array_get(y, NULL) : (double)NAN, mc_error(g),
              mc_last_error());
        mc_array_unref(&two);
        mc_array_unref(&y);
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    mc_random(g, "rng", 5);
    mc_input(g, "a", MC_FLOAT64, 0);
    mc_formula(g, "grad(sum(bernoulli(rng, a, [6])), a)");
    CHECK(mc_graph_status(g) == MC_EGRAD || mc_graph_status(g) == MC_EARG, "a choice has no gradient: %s",
          mc_error(g));
    mc_graph_free(g);
}

TEST(random_complaints)
{
    static const struct { const char *text, *says; } rows[] = {
        { "uniform([1, 2], [3])", "by stream=" },
        { "uniform(x, [3], stream=0)", "a random stream must be two uint64" },
        { "uniform(rng, [3], dtype=int32)", "the dtype of uniform numbers must be a float, not int32" },
        { "normal(rng, [3], dtype=bool)", "the dtype must be a float, not bool" },
        { "uniform(rng, [-3])", "size -3 of axis 0 is negative" },
        { "uniform(rng, [2.5])", "the shape must be a vector of integers" },
        { "multinomial(rng, [1, 2])", "the probabilities must be rows of floats" },
        { "permutation(rng, [1, 2])", "n must be a scalar" },
        { "random_integers(rng, [3], 0.5, 2)", "low and high must be integers" },
        { "uniform(rng)", "needs the argument 'shape'" },
    };
    for (size_t k = 0; k < NELEM(rows); k++) {
        mc_graph *g = mc_graph_new();
        mc_random(g, "rng", 1);
        mc_input(g, "x", MC_FLOAT32, 1);
        mc_formula(g, rows[k].text);
        CHECK(strstr(mc_error(g), rows[k].says), "%s says '%s'", rows[k].text, mc_error(g));
        mc_graph_free(g);
    }
    mc_graph *g = mc_graph_new();
    mc_shared *s = mc_random(g, "rng", 1), *again = mc_random(g, "rng", 1);
    CHECK(s && !again && strstr(mc_error(g), "already in use"), "two of a name: %s", mc_error(g));
    CHECK(mc_random(NULL, "rng", 1) == NULL, "a stream of no graph");
    mc_graph_free(g);
}

TEST(random_without_memory)
{
    mc_op_count(); /* the table of ops is there */
    ALLOC_FAIL_LOOP {
        mc_graph *g = mc_graph_new();
        mc_shared *s = g ? mc_random(g, "rng", 5) : NULL;
        mc_node *n = s ? mc_formula(g, "multinomial(rng, normal(rng, [2, 3]))") : NULL;
        mc_array *y = NULL;
        mc_status done = n && !mc_is_error(n) ? mc_eval(0, NULL, NULL, 1, &n, &y) : MC_EMEMORY;
        CHECK(done == MC_OK || ALLOC_FAILED, "no draw, yet memory: %s", mc_last_error());
        mc_array_unref(&y);
        mc_graph_free(g);
    }
}
