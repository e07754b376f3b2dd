/* t_ops_ctc.c: ctc_loss against all alignments written out, against PyTorch, and its gradient against
 * differences. */
#include "check.h"
#include "op_fixture.h"
#include <math.h>

static mc_array *ints(int64_t rows, int64_t columns, const int *v)
{
    mc_array *a = columns < 0 ? mc_array_empty(MC_INT32, 1, &rows)
                              : mc_array_empty(MC_INT32, 2, (int64_t[]){ rows, columns });
    memcpy(a->data, v, (size_t)mc_array_size(a) * sizeof *v);
    return a;
}

/* scale * sin(3t + 5b + 7c + t * c): what the script that asked PyTorch fed it with. */
static mc_array *waves(mc_dtype d, int64_t steps, int64_t examples, int64_t classes, double scale)
{
    mc_array *a = mc_array_empty(d, 3, (int64_t[]){ steps, examples, classes });
    for (int64_t i = 0; i < mc_array_size(a); i++) {
        const double c = (double)(i % classes), b = (double)(i / classes % examples),
                     t = (double)(i / classes / examples);
        mc_store_f64(d, a->data + (size_t)i * mc_dtypes[d].size, scale * sin(3 * t + 5 * b + 7 * c + t * c));
    }
    return a;
}

static double at(const mc_array *a, int64_t i)
{
    return mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size);
}

/* Costs, and the gradient of the sum of (1 + b / 2) * cost[b]. */
struct results { mc_array *cost, *grad; };

static struct results of(mc_array *x, mc_array *labels, mc_array *lengths, bool zero_infinity, int threads)
{
    struct results r = { NULL, NULL };
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", x->dtype, 3);
    mc_input(g, "labels", labels->dtype, 2);
    mc_input(g, "lengths", lengths->dtype, 1);
    mc_formula(g, zero_infinity ? "cost = ctc_loss(x, labels, lengths, zero_infinity=True)"
                                : "cost = ctc_loss(x, labels, lengths)");
    mc_formula(g, "slope = grad(sum(cast(1 + arange(size(x, 1)) * 0.5, float64) * cost), x)");
    mc_function *f = mc_compile(
        g, &(mc_spec){ .inputs = "x, labels, lengths", .outputs = "cost, slope", .threads = threads });
    if (CHECK(f, "%s", mc_error(g))) {
        CHECK(mc_call(f, MC_IN(x, labels, lengths), MC_OUT(&r.cost, &r.grad)) == MC_OK, "%s",
              mc_last_error());
    }
    mc_function_free(f);
    mc_graph_free(g);
    return r;
}

/* ---- all alignments ---- */

/* Minus the logarithm of the probability of the labels, by adding up all paths that spell them. */
static double all_paths(const mc_array *x, int64_t b, int64_t steps, int nlabel, const int *label)
{
    const int64_t examples = x->dims[1], classes = x->dims[2];
    int64_t paths = 1;
    double sum = 0;
    for (int64_t t = 0; t < steps; t++) {
        paths *= classes;
    }
    for (int64_t path = 0; path < paths; path++) {
        int64_t rest = path, last = 0;
        int said = 0;
        bool right = true;
        double p = 1;
        for (int64_t t = 0; t < steps; t++, rest /= classes) {
            const int64_t c = rest % classes;
            double all = 0;
            for (int64_t k = 0; k < classes; k++) {
                all += exp(at(x, (t * examples + b) * classes + k));
            }
            p *= exp(at(x, (t * examples + b) * classes + c)) / all;
            if (c && c != last) {
                right &= said < nlabel && label[said] == c;
                said++;
            }
            last = c;
        }
        sum += right && said == nlabel ? p : 0;
    }
    return -log(sum);
}

TEST(costs_add_up_all_alignments)
{
    enum { EXAMPLES = 9, STEPS = 5, CLASSES = 4, LABELS = 3 };
    static const int labels[EXAMPLES * LABELS] = { -1, -1, -1, 1, -1, -1, 2, 2, -1, 1, 2, 3, 3, 3, 3,
                                                   1, 1, -1,   1, 1, 2,   2, -1, -1, -1, 3, -1 },
                     lengths[EXAMPLES] = { 5, 5, 5, 4, 5, 2, 3, 1, 4 };
    for (int seed = 0; seed < 5; seed++) {
        mc_array *x = waves(MC_FLOAT64, STEPS, EXAMPLES, CLASSES, 1 + seed),
                 *y = ints(EXAMPLES, LABELS, labels), *n = ints(EXAMPLES, -1, lengths);
        struct results r = of(x, y, n, false, 0);
        for (int b = 0; r.cost && b < EXAMPLES; b++) {
            int spelt[LABELS], count = 0;
            for (int k = 0; k < LABELS; k++) {
                if (labels[b * LABELS + k] >= 0) {
                    spelt[count++] = labels[b * LABELS + k];
                }
            }
            const double want = all_paths(x, b, lengths[b], count, spelt), have = at(r.cost, b);
            CHECK(isinf(want) ? isinf(have) && have > 0 : fabs(have - want) <= 1e-12 * (1 + fabs(want)),
                  "example %d costs %.17g, not %.17g", b, have, want);
        }
        mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&n);
        mc_array_unref(&r.cost), mc_array_unref(&r.grad);
    }
}

/* ---- PyTorch's torch.nn.functional.ctc_loss(log_softmax(x), ...), in float64 ---- */

enum { MOST_EXAMPLES = 4, MOST_LABELS = 8 };
static const struct torch {
    int steps, examples, classes, most;
    double scale;
    int labels[MOST_EXAMPLES * MOST_LABELS], lengths[MOST_EXAMPLES];
    double cost[MOST_EXAMPLES], squares, picked[3]; /* of the gradient with zero_infinity=True */
} torch[] = {
    { 12, 4, 6, 3, 2, { 1, 2, 3, 5, 5, -1, 4, -1, -1, 1, 2, 1 }, { 12, 9, 12, 7 },
      { 19.0723391189076, 14.4371520435235, 20.9209618620199, 8.18483396595413 },
      50.6408473528884, { -0.161666915060851, 0, 0.111457188595727 } },
    { 50, 3, 28, 8, 3, { 3, 1, 20, 1, 18, 4, 4, 9, 1, 1, 1, 1, -1, -1, -1, -1, 27, 26, 25, 24, 23, 22, 21, 20 }, { 50, 40, 33 },
      { 166.636096100158, 166.171859517805, 119.275638498475 },
      164.274497282043, { -0.0737862058350873, 0, 0.0201985308067582 } },
    { 1, 3, 4, 1, 1, { 2, -1, 3 }, { 1, 1, 1 },
      { 1.08010538279913, 2.41135727159593, 1.11438347812908 },
      5.66543490179485, { 0.126095876284356, -1.34376498365236, 0.407754223626586 } },
    { 3, 4, 4, 2, 1.5, { 1, 1, 1, 2, 1, 1, 3, 2 }, { 3, 3, 2, 1 }, /* the last two have no alignment */
      { 4.29715138211665, 5.49850723099054, INFINITY, INFINITY },
      8.56970578374643, { 0.0861633168978362, 0, 0 } },
};

TEST(values_of_pytorch)
{
    for (size_t i = 0; i < NELEM(torch); i++) {
        const struct torch *q = &torch[i];
        for (int zero = 0; zero < 4; zero++) {
            const mc_dtype d = zero & 2 ? MC_FLOAT32 : MC_FLOAT64;
            const double tolerance = d == MC_FLOAT64 ? 1e-12 : 3e-6;
            mc_array *x = waves(d, q->steps, q->examples, q->classes, q->scale),
                     *y = ints(q->examples, q->most, q->labels), *n = ints(q->examples, -1, q->lengths);
            struct results r = of(x, y, n, zero & 1, 0);
            REQUIRE(r.cost && r.grad, "%s", mc_last_error());
            CHECK(r.cost->dtype == d && r.grad->dtype == d, "another dtype");
            for (int b = 0; b < q->examples; b++) {
                const double want = zero & 1 && isinf(q->cost[b]) ? 0 : q->cost[b], have = at(r.cost, b);
                CHECK(isinf(want) ? have == want : fabs(have - want) <= tolerance * (1 + want),
                      "row %zu, example %d costs %.15g, not %.15g", i, b, have, want);
            }
            const int64_t pick[] = { 0, mc_array_size(x) - 1,
                                     ((int64_t)(q->steps / 2) * q->examples + q->examples / 2) * q->classes +
                                         q->classes / 2 };
            double squares = 0;
            for (int64_t k = 0; k < mc_array_size(r.grad); k++) {
                squares += at(r.grad, k) * at(r.grad, k);
            }
            CHECK(fabs(squares - q->squares) <= 10 * tolerance * q->squares, "row %zu: %.15g, not %.15g", i,
                  squares, q->squares);
            for (int k = 0; k < 3; k++) {
                CHECK(fabs(at(r.grad, pick[k]) - q->picked[k]) <= tolerance,
                      "row %zu, element %lld: %.15g, not %.15g", i, (long long)pick[k], at(r.grad, pick[k]),
                      q->picked[k]);
            }
            mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&n);
            mc_array_unref(&r.cost), mc_array_unref(&r.grad);
        }
    }
}

/* ---- the gradient ---- */

TEST(gradients_are_those_of_differences)
{
    static const struct { int steps, examples, classes, most; int labels[8], lengths[4]; } rows[] = {
        { 6, 2, 5, 3, { 1, 2, 2, 4, -1, -1 }, { 6, 4 } },
        { 4, 3, 3, 2, { -1, -1, 1, 1, 2, 1 }, { 4, 3, 2 } },
        { 1, 2, 3, 1, { 2, -1 }, { 1, 1 } },
        { 3, 1, 4, 3, { 1, 2, 3 }, { 3 } },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_array *x = waves(MC_FLOAT64, rows[i].steps, rows[i].examples, rows[i].classes, 1.5);
        struct leaf leaf[] = {
            { .name = "x", .a = x },
            { .name = "y", .a = ints(rows[i].examples, rows[i].most, rows[i].labels), .constant = true },
            { .name = "n", .a = ints(rows[i].examples, -1, rows[i].lengths), .constant = true }
        };
        check_slopes(3, leaf, "sum(sqr(ctc_loss(x, y, n)))");
        check_slopes(3, leaf, "sum(sqr(grad(sum(ctc_loss(x, y, n) * [1, -2, 3, 4][:size(x, 1)]), x)))");
        for (int k = 0; k < 3; k++) {
            mc_array_unref(&leaf[k].a);
        }
    }
}

/* The change of the gradient along v = cos(0.7 i), by JAX: forward over reverse through a scan in logarithms,
 * in float64.  The costs are weighed as above, examples without an alignment left out. */
static const struct { double squares, picked[3]; } hessian[] = {
    { 11.3182177104875, { 0.11838244000198, 0, 0.0464504097577899 } },
    { 14.077271924956, { -0.104402818988494, 0, -0.0201648635645469 } },
    { 0.342333019614223, { 0.097991480947543, -0.299167123013497, -0.0970064547451507 } },
    { 0.737165558618421, { 0.0710977015765872, 0, 0 } },
};

TEST(second_derivatives_of_jax)
{
    static const char formula[] =
        "v = reshape(cos(cast(arange(size(x, 0) * size(x, 1) * size(x, 2)), float64) * 0.7), shape(x))\n"
        "c = sum((1 + arange(size(x, 1)) * 0.5) * ctc_loss(x, y, n, zero_infinity=True))\n"
        "h = grad(sum(grad(c, x) * v), x)";
    for (size_t i = 0; i < NELEM(torch); i++) {
        const struct torch *q = &torch[i];
        mc_array *x = waves(MC_FLOAT64, q->steps, q->examples, q->classes, q->scale),
                 *y = ints(q->examples, q->most, q->labels), *n = ints(q->examples, -1, q->lengths),
                 *h = NULL;
        mc_graph *g = mc_graph_new();
        mc_input(g, "x", MC_FLOAT64, 3);
        mc_input(g, "y", MC_INT32, 2);
        mc_input(g, "n", MC_INT32, 1);
        mc_formula(g, formula);
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x, y, n", .outputs = "h" });
        REQUIRE(f && mc_call(f, MC_IN(x, y, n), MC_OUT(&h)) == MC_OK, "%s %s", mc_error(g), mc_last_error());
        const int64_t pick[] = { 0, mc_array_size(x) - 1,
                                 ((int64_t)(q->steps / 2) * q->examples + q->examples / 2) * q->classes +
                                     q->classes / 2 };
        double squares = 0;
        for (int64_t k = 0; k < mc_array_size(h); k++) {
            squares += at(h, k) * at(h, k);
        }
        CHECK(fabs(squares - hessian[i].squares) <= 1e-11 * hessian[i].squares, "row %zu: %.15g, not %.15g",
              i, squares, hessian[i].squares);
        for (int k = 0; k < 3; k++) {
            CHECK(fabs(at(h, pick[k]) - hessian[i].picked[k]) <= 1e-12,
                  "row %zu, element %lld: %.15g, not %.15g", i, (long long)pick[k], at(h, pick[k]),
                  hessian[i].picked[k]);
        }
        mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&n), mc_array_unref(&h);
        mc_function_free(f);
        mc_graph_free(g);
    }
}

TEST(there_is_no_third_derivative)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 3);
    mc_formula(g, "a = grad(sum(sqr(grad(sum(ctc_loss(x, [[1]])), x))), x)\nb = grad(sum(sqr(a)), x)");
    CHECK(strstr(mc_error(g), "ctc_loss has no third derivative"), "%s", mc_error(g));
    mc_graph_free(g);
}

/* A NaN of the activations is one of the cost of its example alone, wherever it stands. */
TEST(nan_of_activations)
{
    for (int64_t t = 0; t < 4; t++) {
        for (int64_t c = 0; c < 3; c++) {
            mc_array *x = waves(MC_FLOAT64, 4, 2, 3, 1), *y = ints(2, 1, (int[]){ 1, 1 }),
                     *n = ints(2, -1, (int[]){ 4, 4 });
            mc_store_f64(MC_FLOAT64, x->data + (size_t)((t * 2 + 1) * 3 + c) * sizeof(double), NAN);
            struct results r = of(x, y, n, true, 0);
            CHECK(r.cost && isfinite(at(r.cost, 0)) && isnan(at(r.cost, 1)), "step %lld, class %lld",
                  (long long)t, (long long)c);
            mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&n);
            mc_array_unref(&r.cost), mc_array_unref(&r.grad);
        }
    }
}

/* Each element of a sum over no alignments: inf, but no NaN in the gradient. */
TEST(labels_without_an_alignment)
{
    mc_array *x = waves(MC_FLOAT32, 4, 4, 3, 1),
             *y = ints(4, 3, (int[]){ 1, 1, 1, 2, 1, 2, 1, -1, -1, -1, -1, -1 }),
             *n = ints(4, -1, (int[]){ 4, 2, 0, 0 });
    for (int zero = 0; zero < 2; zero++) {
        struct results r = of(x, y, n, zero, 0);
        REQUIRE(r.cost && r.grad, "%s", mc_last_error());
        for (int b = 0; b < 4; b++) { /* no steps spell no labels */
            const double want = b == 3 || zero ? 0 : INFINITY;
            CHECK(at(r.cost, b) == want, "example %d costs %g", b, at(r.cost, b));
        }
        for (int64_t i = 0; i < mc_array_size(r.grad); i++) {
            CHECK(at(r.grad, i) == 0, "element %lld is %g", (long long)i, at(r.grad, i));
        }
        mc_array_unref(&r.cost), mc_array_unref(&r.grad);
    }
    mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&n);
}

/* The gradient of each step of a sequence adds up to 0, and is 0 behind its end, however large x is. */
TEST(long_sequences_and_large_activations)
{
    enum { STEPS = 700, EXAMPLES = 5, CLASSES = 30, LABELS = 60 };
    int labels[EXAMPLES * LABELS], lengths[EXAMPLES];
    for (int i = 0; i < EXAMPLES * LABELS; i++) {
        labels[i] = i % 7 == 6 ? -1 : 1 + i * i % (CLASSES - 1);
    }
    for (int b = 0; b < EXAMPLES; b++) {
        lengths[b] = STEPS - 100 * b;
    }
    for (int large = 0; large < 2; large++) {
        mc_array *x = waves(MC_FLOAT64, STEPS, EXAMPLES, CLASSES, large ? 5000 : 2),
                 *y = ints(EXAMPLES, LABELS, labels), *n = ints(EXAMPLES, -1, lengths);
        struct results one = of(x, y, n, false, 1), two = of(x, y, n, false, 2);
        REQUIRE(one.cost && two.cost, "%s", mc_last_error());
        CHECK(mc_array_differs(one.cost, two.cost, 0, 0) < 0 &&
                  mc_array_differs(one.grad, two.grad, 0, 0) < 0,
              "the number of threads changes bits");
        for (int64_t i = 0; i < STEPS * EXAMPLES; i++) {
            double sum = 0, sizes = 0;
            for (int64_t c = 0; c < CLASSES; c++) {
                sum += at(one.grad, i * CLASSES + c);
                sizes += fabs(at(one.grad, i * CLASSES + c));
            }
            const bool inside = i / EXAMPLES < lengths[i % EXAMPLES];
            CHECK(inside ? fabs(sum) < 1e-9 : sizes == 0, "step %lld adds up to %g", (long long)i, sum);
        }
        mc_array_unref(&x), mc_array_unref(&y), mc_array_unref(&n);
        mc_array_unref(&one.cost), mc_array_unref(&one.grad), mc_array_unref(&two.cost),
            mc_array_unref(&two.grad);
    }
}

/* ---- arguments ---- */

TEST(lengths_may_be_left_out)
{
    mc_array *x = waves(MC_FLOAT32, 5, 3, 4, 1);
    struct leaf leaf[] = { { .name = "x", .a = x },
                           { .name = "y", .a = ints(3, 2, (int[]){ 1, 2, 3, -1, 2, 2 }) },
                           { .name = "n", .a = ints(3, -1, (int[]){ 5, 5, 5 }) } };
    mc_array *a = run(3, leaf, "ctc_loss(x, y, n)"), *b = run(3, leaf, "ctc_loss(x, y)");
    CHECK(a && b && mc_array_differs(a, b, 0, 0) < 0, "%s", mc_last_error());
    mc_array_unref(&a), mc_array_unref(&b);
    for (int k = 0; k < 3; k++) {
        mc_array_unref(&leaf[k].a);
    }
}

TEST(wrong_arguments_are_named)
{
    static const struct { const char *formula, *says; } rows[] = {
        { "ctc_loss(x[0], y, n)", "the activations have rank 2, not 3 (steps, examples, classes)" },
        { "ctc_loss(x, x[0], n)", "the labels are float32 of rank 2, not integers of rank 2" },
        { "ctc_loss(x, y[0], n)", "the labels are int32 of rank 1, not integers of rank 2" },
        { "ctc_loss(x, y, y)", "the lengths are int32 of rank 2, not integers of rank 1" },
        { "ctc_loss(cast(x, int32), y, n)", "the activations are int32, not floats" },
        { "ctc_loss(x, y[:2], n)", "activations of 3 examples, labels of 2 and lengths of 3" },
        { "ctc_loss(x, y + 2, n)", "the label 4, but there are 4 classes" },
        { "ctc_loss(x, y - 1, n)", "0 is a label; it is the blank" },
        { "ctc_loss(x, y, n + 1)", "the length 6, but there are 5 steps" },
        { "ctc_loss(x, y, n - 6)", "the length -1, but there are 5 steps" },
        { "ctc_loss(x[:, :, :0], y, n)", "there are no classes" },
    };
    for (size_t i = 0; i < NELEM(rows); i++) {
        mc_array *x = waves(MC_FLOAT32, 5, 3, 4, 1);
        struct leaf leaf[] = { { .name = "x", .a = x },
                               { .name = "y", .a = ints(3, 2, (int[]){ 1, 2, 1, 2, 2, 2 }) },
                               { .name = "n", .a = ints(3, -1, (int[]){ 5, 5, 5 }) } };
        mc_array *a = run(3, leaf, rows[i].formula);
        CHECK(!a && strstr(mc_last_error(), rows[i].says), "%s: %s", rows[i].formula,
              a ? "" : mc_last_error());
        mc_array_unref(&a);
        for (int k = 0; k < 3; k++) {
            mc_array_unref(&leaf[k].a);
        }
    }
}
