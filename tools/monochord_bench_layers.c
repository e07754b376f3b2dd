/* monochord_bench_layers.c: the layers between convolutions: suites pool, norm, softmax.
 *
 * Invariant: errors are against the same formulas on the same numbers in float64. */
#include "bench.h"
#include <math.h>
#include <string.h>

#define X(...) { "x", { __VA_ARGS__ } }
#define V(...) { "v", { __VA_ARGS__ } }
#define MAX3 "y = pool(x, [3, 3], [2, 2])"
#define MAX3P "y = pool(x, [3, 3], [2, 2], [1, 1])"
#define MAX2 "y = pool(x, [2, 2], [2, 2])"
#define MEAN7 "y = pool(x, [7, 7], [7, 7], mode='average_exc_pad')"
#define MEAN3 "y = pool(x, [3, 3], [1, 1], [1, 1], mode='average_inc_pad')"
#define LRN "y = lrn(x, n=5, alpha=0.0001, beta=0.75, k=2)"
#define BATCH "t = batch_normalization_train(x, g, b, axes='spatial'); y = t[0]"
#define PARAMETERS(n) { "g", { n } }, { "b", { n } }
#define FORWARD "borrow(y)"
#define BACKWARD "borrow(y), borrow(grad(sum(y * v), x))"

static const struct layer_case {
    const char *suite, *name, *pass;
    struct { const char *name; int64_t dims[4]; } in[MOST_ARGS]; /* sizes end at 0 */
    const char *formulas, *outputs;
} cases[] = {
    /* suite case pass inputs formulas */
    { "pool", "max 3x3 s2 16x96x55x55", "fwd", { X(16, 96, 55, 55) }, MAX3, FORWARD },
    { "pool", "max 3x3 s2 16x96x55x55", "fwd+bwd", { X(16, 96, 55, 55), V(16, 96, 27, 27) }, MAX3, BACKWARD },
    { "pool", "max 3x3 s2 p1 16x64x112x112", "fwd", { X(16, 64, 112, 112) }, MAX3P, FORWARD },
    { "pool",
      "max 3x3 s2 p1 16x64x112x112",
      "fwd+bwd",
      { X(16, 64, 112, 112), V(16, 64, 56, 56) },
      MAX3P,
      BACKWARD },
    { "pool", "max 2x2 16x64x112x112", "fwd", { X(16, 64, 112, 112) }, MAX2, FORWARD },
    { "pool",
      "max 2x2 16x64x112x112",
      "fwd+bwd",
      { X(16, 64, 112, 112), V(16, 64, 56, 56) },
      MAX2,
      BACKWARD },
    { "pool", "max 2x2 500x32x24x24", "fwd", { X(500, 32, 24, 24) }, MAX2, FORWARD },
    { "pool", "max 2x2 500x32x24x24", "fwd+bwd", { X(500, 32, 24, 24), V(500, 32, 12, 12) }, MAX2, BACKWARD },
    { "pool", "max 2x2 16x32x24x24", "fwd", { X(16, 32, 24, 24) }, MAX2, FORWARD },
    { "pool", "max 2x2 16x32x24x24", "fwd+bwd", { X(16, 32, 24, 24), V(16, 32, 12, 12) }, MAX2, BACKWARD },
    { "pool", "mean 7x7 16x2048x7x7", "fwd", { X(16, 2048, 7, 7) }, MEAN7, FORWARD },
    { "pool", "mean 7x7 16x2048x7x7", "fwd+bwd", { X(16, 2048, 7, 7), V(16, 2048, 1, 1) }, MEAN7, BACKWARD },
    { "pool", "mean 3x3 p1 16x192x28x28", "fwd", { X(16, 192, 28, 28) }, MEAN3, FORWARD },
    { "pool",
      "mean 3x3 p1 16x192x28x28",
      "fwd+bwd",
      { X(16, 192, 28, 28), V(16, 192, 28, 28) },
      MEAN3,
      BACKWARD },
    { "norm", "lrn 16x96x27x27", "fwd", { X(16, 96, 27, 27) }, LRN, FORWARD },
    { "norm", "lrn 16x96x27x27", "fwd+bwd", { X(16, 96, 27, 27), V(16, 96, 27, 27) }, LRN, BACKWARD },
    { "norm", "lrn 16x64x56x56", "fwd", { X(16, 64, 56, 56) }, LRN, FORWARD },
    { "norm", "lrn 16x64x56x56", "fwd+bwd", { X(16, 64, 56, 56), V(16, 64, 56, 56) }, LRN, BACKWARD },
    { "norm", "batch 32x64x56x56", "fwd", { X(32, 64, 56, 56), PARAMETERS(64) }, BATCH, FORWARD },
    { "norm",
      "batch 32x64x56x56",
      "fwd+bwd",
      { X(32, 64, 56, 56), PARAMETERS(64), V(32, 64, 56, 56) },
      BATCH,
      BACKWARD },
    { "softmax", "rows 600x10", "fwd", { X(600, 10) }, "y = softmax(x)", FORWARD },
    { "softmax", "rows 600x10", "fwd+bwd", { X(600, 10), V(600, 10) }, "y = softmax(x)", BACKWARD },
    { "softmax", "rows 128x1000", "fwd", { X(128, 1000) }, "y = softmax(x)", FORWARD },
    { "softmax", "rows 128x1000", "fwd+bwd", { X(128, 1000), V(128, 1000) }, "y = softmax(x)", BACKWARD },
    { "softmax", "rows 64x32000", "fwd", { X(64, 32000) }, "y = softmax(x)", FORWARD },
    { "softmax", "rows 64x32000", "fwd+bwd", { X(64, 32000), V(64, 32000) }, "y = softmax(x)", BACKWARD },
    { "softmax", "rows 8x262144", "fwd", { X(8, 262144) }, "y = softmax(x)", FORWARD },
    { "softmax", "rows 8x262144", "fwd+bwd", { X(8, 262144), V(8, 262144) }, "y = softmax(x)", BACKWARD },
    { "softmax", "log rows 128x1000", "fwd", { X(128, 1000) }, "y = logsoftmax(x)", FORWARD },
    { "softmax",
      "log rows 128x1000",
      "fwd+bwd",
      { X(128, 1000), V(128, 1000) },
      "y = logsoftmax(x)",
      BACKWARD },
    { "softmax", "channels 8x21x64x64", "fwd", { X(8, 21, 64, 64) }, "y = dnn_softmax(x)", FORWARD },
    { "softmax",
      "channels 8x21x64x64",
      "fwd+bwd",
      { X(8, 21, 64, 64), V(8, 21, 64, 64) },
      "y = dnn_softmax(x)",
      BACKWARD },
};

static int rank_of(const int64_t dims[4])
{
    int rank = 0;
    while (rank < 4 && dims[rank]) {
        rank++;
    }
    return rank;
}

/* The case's function in a dtype, on numbers that are those of `like`, or new ones where that is NULL. */
static bool make(const struct layer_case *c, mc_dtype dtype, const struct bench_function *like,
                 struct bench_function *b)
{
    struct text inputs = { 0 }, outputs = { 0 };
    uint64_t state = 1;
    b->g = must(mc_graph_new());
    for (; b->nin < MOST_ARGS && c->in[b->nin].name; b->nin++) {
        const int64_t *dims = c->in[b->nin].dims;
        mc_input(b->g, c->in[b->nin].name, dtype, rank_of(dims));
        text_addf(&inputs, "%s%s", b->nin ? ", " : "", c->in[b->nin].name);
        if (like) {
            b->in[b->nin] = must(mc_array_cast(like->in[b->nin], dtype));
        } else {
            b->in[b->nin] = must(mc_array_new(dtype, rank_of(dims), dims));
            random_fill(b->in[b->nin], &state, 2);
        }
    }
    for (int i = 0; i < b->nin; i++) {
        b->in[i] = must(bench_place(b->in[i]));
    }
    mc_formula(b->g, c->formulas);
    bench_stay(&outputs, c->outputs);
    b->f = mc_compile(b->g, &(mc_spec){ .name = c->name, .inputs = inputs.s, .outputs = outputs.s });
    b->nout = b->f ? mc_function_noutputs(b->f) : 0;
    text_free(&inputs);
    text_free(&outputs);
    return b->f != NULL;
}

/* Relative Frobenius, of the last output: what came first is in it. */
static double error_of(const struct layer_case *c, const struct bench_function *b)
{
    struct bench_function truth = { 0 };
    double wrong = 0, all = 0;
    if (make(c, MC_FLOAT64, b, &truth) && bench_call(&truth)) {
        bench_home(&truth);
        const float *have = mc_array_data(b->out[b->nout - 1]);
        const double *want = mc_array_data(truth.out[b->nout - 1]);
        for (int64_t i = mc_array_size(b->out[b->nout - 1]); i-- > 0;) {
            wrong += (have[i] - want[i]) * (have[i] - want[i]);
            all += want[i] * want[i];
        }
    }
    bench_free(&truth);
    return all > 0 ? sqrt(wrong / all) : -1;
}

static bool run(const struct layer_case *c)
{
    struct bench_function b = { 0 };
    struct result r = { c->suite, c->name, c->pass, "float32", "" };
    bool good = make(c, MC_FLOAT32, NULL, &b) &&
                (r.time = time_calls(bench_call, &b, bench_seconds() / 2)).calls > 0;
    if (good) {
        for (int i = 0; i < b.nin; i++) {
            r.bytes += 4. * (double)mc_array_size(b.in[i]);
        }
        for (int i = 0; i < b.nout; i++) {
            r.bytes += 4. * (double)mc_array_size(b.out[i]);
        }
        bench_home(&b);
        r.error = error_of(c, &b);
        bench_report(&r);
    } else {
        bench_fail(c->name);
    }
    bench_free(&b);
    return good;
}

bool bench_layers(const char *suite)
{
    bool good = true;
    for (int i = 0; i < COUNT(cases); i++) {
        if (strcmp(cases[i].suite, suite) == 0 && bench_wanted(cases[i].name, "")) {
            good = run(&cases[i]) && good;
        }
    }
    return good;
}
