/* monochord_bench_layers.c: layers between convolutions, and recurrent ones: pool, norm, softmax, recurrent;
 * the norms of the suite zoo; and einsum, whose cases are formulas as theirs are.
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

/* Recurrent layers of 100 steps, each as one loop.  gru and lstm are PyTorch's; mgu is a cell of one gate
 * that no vendor's library knows. */
#define LSTM(h) \
    "y = scan(x in x, c from h, h from h: p = dot(x, W) + dot(h, U) + b; i = sigmoid(p[:, :" #h "]); " \
    "f = sigmoid(p[:, " #h ":2 * " #h "]); o = sigmoid(p[:, 3 * " #h ":]); " \
    "c = f * c + i * tanh(p[:, 2 * " #h ":3 * " #h "]); h = o * tanh(c); yield h)"
#define GRU(h) \
    "y = scan(x in x, h from h: p = dot(x, W) + b; q = dot(h, U); r = sigmoid(p[:, :" #h "] + q[:, :" #h "]); " \
    "z = sigmoid(p[:, " #h ":2 * " #h "] + q[:, " #h ":2 * " #h "]); " \
    "n = tanh(p[:, 2 * " #h ":] + r * q[:, 2 * " #h ":]); h = (1 - z) * n + z * h; yield h)"
#define MGU(h) \
    "y = scan(x in x, h from h: p = dot(x, W) + b; f = sigmoid(p[:, :" #h "] + dot(h, U[:, :" #h "])); " \
    "n = tanh(p[:, " #h ":] + dot(f * h, U[:, " #h ":])); h = (1 - f) * h + f * n; yield h)"
#define SPRING \
    "y = scan(steps=10000, x from x, v from v: u = v - 0.01 * x; x, v = x + 0.01 * u, u; yield last x)"
#define CELL(h, b, gates) \
    { { "x", { 100, b, h } }, { "h", { b, h } }, { "W", { h, gates * h } }, { "U", { h, gates * h } }, \
      { "b", { gates * h } }, { "v", { 100, b, h } } }
#define GRADIENTS "borrow(y), borrow(grad(sum(y * v), x)), borrow(grad(sum(y * v), W)), " \
                  "borrow(grad(sum(y * v), b)), borrow(grad(sum(y * v), U))"
#define CELLS(h, b) \
    { "recurrent", "lstm h" #h " b" #b, "fwd", CELL(h, b, 4), LSTM(h), FORWARD, 2. / h }, \
    { "recurrent", "lstm h" #h " b" #b, "fwd+bwd", CELL(h, b, 4), LSTM(h), GRADIENTS, 2. / h }, \
    { "recurrent", "gru h" #h " b" #b, "fwd", CELL(h, b, 3), GRU(h), FORWARD, 2. / h }, \
    { "recurrent", "gru h" #h " b" #b, "fwd+bwd", CELL(h, b, 3), GRU(h), GRADIENTS, 2. / h }

/* Norms of zoo.def, forward and with the gradients of all inputs. */
#define SIZES(...) __VA_ARGS__
#define OF_batch(channels, rows, columns) channels
#define OF_layer(rows, columns) columns
#define NORM(kind, name, sizes) NORM_OF(kind, name, 1, sizes) NORM_OF(kind, name, 16, sizes)
#define NORM_OF(kind, name, n, sizes) NORM_##kind("norm " name " b" #n, n, sizes)
#define NORM_batch(name, n, sizes) SCALED(name, n, sizes, OF_batch sizes, BATCH)
#define NORM_layer(name, n, sizes) SCALED(name, n, sizes, OF_layer sizes, "y = layer_norm(x, g, b)")
#define NORM_softmax(name, n, sizes) \
    { "zoo", name, "fwd", { X(n, SIZES sizes) }, "y = softmax(x)", FORWARD }, \
    { "zoo", name, "fwd+bwd", { X(n, SIZES sizes), V(n, SIZES sizes) }, "y = softmax(x)", BACKWARD },
#define SCALED(name, n, sizes, parameters, formula) \
    { "zoo", name, "fwd", { X(n, SIZES sizes), PARAMETERS(parameters) }, formula, FORWARD }, \
    { "zoo", name, "fwd+bwd", { X(n, SIZES sizes), PARAMETERS(parameters), V(n, SIZES sizes) }, formula, \
      "borrow(y), borrow(grad(sum(y * v), g)), borrow(grad(sum(y * v), b)), borrow(grad(sum(y * v), x))" },

static const struct layer_case {
    const char *suite, *name, *pass;
    struct { const char *name; int64_t dims[4]; } in[MOST_ARGS]; /* sizes end at 0 */
    const char *formulas, *outputs;
    double variance;    /* of the numbers, which are centred then; 0: they are from 0 to 1 */
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
#include "zoo.def"
    { "zoo", "rate copy", "fwd", { X(64 << 20) }, "y = 2 * x", FORWARD },
    CELLS(256, 1), CELLS(256, 32), CELLS(256, 128), CELLS(1024, 1), CELLS(1024, 32), CELLS(1024, 128),
    { "recurrent", "mgu h256 b32", "fwd", CELL(256, 32, 2), MGU(256), FORWARD, 2. / 256 },
    { "recurrent", "mgu h256 b32", "fwd+bwd", CELL(256, 32, 2), MGU(256), GRADIENTS, 2. / 256 },
    { "recurrent", "spring, 10,000 steps", "fwd", { X(256), { "v", { 256 } } }, SPRING, FORWARD },
    { "einsum", "ij,jk->ik 512", "", { { "x", { 512, 512 } }, { "w", { 512, 512 } } }, "y = einsum(x, w, subscripts='ij,jk->ik')", FORWARD, 1 },
    { "einsum", "bij,bjk->bik 64x64", "", { { "x", { 64, 64, 64 } }, { "w", { 64, 64, 64 } } }, "y = einsum(x, w, subscripts='bij,bjk->bik')", FORWARD, 1 },
    { "einsum", "ij,kj->ik 256x1024", "", { { "x", { 256, 1024 } }, { "w", { 256, 1024 } } }, "y = einsum(x, w, subscripts='ij,kj->ik')", FORWARD, 1 },
    { "einsum", "bi,ij,bj->b 256", "", { { "x", { 256, 256 } }, { "w", { 256, 256 } }, { "v", { 256, 256 } } }, "y = einsum(x, w, v, subscripts='bi,ij,bj->b')", FORWARD, 1 },
    { "einsum", "bqhd,bkhd->bhqk 8x128", "", { { "x", { 8, 128, 8, 64 } }, { "w", { 8, 128, 8, 64 } } }, "y = einsum(x, w, subscripts='bqhd,bkhd->bhqk')", FORWARD, 1 },
    { "einsum", "bhqk,bkhd->bqhd 8x128", "", { { "x", { 8, 8, 128, 128 } }, { "w", { 8, 128, 8, 64 } } }, "y = einsum(x, w, subscripts='bhqk,bkhd->bqhd')", FORWARD, 1 },
    { "einsum", "ijk,kl,jm->ilm 32x64", "", { { "x", { 32, 64, 64 } }, { "w", { 64, 16 } }, { "v", { 64, 16 } } }, "y = einsum(x, w, v, subscripts='ijk,kl,jm->ilm')", FORWARD, 1 },
    { "einsum", "bi,bi->b 4096x128", "", { { "x", { 4096, 128 } }, { "w", { 4096, 128 } } }, "y = einsum(x, w, subscripts='bi,bi->b')", FORWARD, 1 },
    { "einsum", "i,j->ij 1000", "", { { "x", { 1000 } }, { "w", { 1000 } } }, "y = einsum(x, w, subscripts='i,j->ij')", FORWARD, 1 },
    { "einsum", "ij->i 2000x1000", "", { { "x", { 2000, 1000 } } }, "y = einsum(x, subscripts='ij->i')", FORWARD, 1 },
    { "einsum", "ii->i 1000", "", { { "x", { 1000, 1000 } } }, "y = einsum(x, subscripts='ii->i')", FORWARD, 1 },
    { "einsum", "ii-> 1000", "", { { "x", { 1000, 1000 } } }, "y = einsum(x, subscripts='ii->')", FORWARD, 1 },
};

static int rank_of(const int64_t dims[4])
{
    int rank = 0;
    while (rank < 4 && dims[rank]) {
        rank++;
    }
    return rank;
}

/* Numbers from 0 to 1 become numbers around 0 of that variance; 0: they stay. */
static void centre(mc_array *a, double variance)
{
    float *x = mc_array_data(a);
    for (int64_t i = mc_array_size(a); variance > 0 && i-- > 0;) {
        x[i] = (float)((x[i] - 0.5) * sqrt(12 * variance));
    }
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
            mc_array *numbers = must(mc_array_new(MC_FLOAT32, rank_of(dims), dims));
            random_fill(numbers, &state, 2);
            centre(numbers, c->variance);
            b->in[b->nin] = must(mc_array_cast(numbers, dtype));
            mc_array_unref(&numbers);
        }
    }
    for (int i = 0; i < b->nin; i++) {
        b->in[i] = must(bench_place(b->in[i]));
    }
    mc_formula(b->g, c->formulas);
    bench_stay(&outputs, c->outputs);
    b->f = mc_compile(
        b->g, &(mc_spec){ .name = c->name, .inputs = inputs.s, .outputs = outputs.s, .on_unused = "ignore" });
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
        mc_array *last = must(mc_array_cast(b->out[b->nout - 1], MC_FLOAT32));
        const float *have = mc_array_data(last);
        const double *want = mc_array_data(truth.out[b->nout - 1]);
        for (int64_t i = mc_array_size(last); i-- > 0;) {
            wrong += (have[i] - want[i]) * (have[i] - want[i]);
            all += want[i] * want[i];
        }
        mc_array_unref(&last);
    }
    bench_free(&truth);
    return all > 0 ? sqrt(wrong / all) : -1;
}

static bool run(const struct layer_case *c, mc_dtype dtype)
{
    struct bench_function b = { 0 };
    const bool zoo = strcmp(c->suite, "zoo") == 0;
    const double size = (double)mc_dtype_size(dtype), seconds = zoo ? 0.05 : bench_seconds() / 2;
    struct result r = { c->suite, c->name, c->pass, mc_dtype_name(dtype), zoo ? "auto" : "" };
    bool good = make(c, dtype, NULL, &b) && (r.time = time_calls(bench_call, &b, seconds)).calls > 0;
    if (good) {
        for (int i = 0; i < b.nin; i++) {
            r.bytes += size * (double)mc_array_size(b.in[i]);
        }
        for (int i = 0; i < b.nout; i++) {
            r.bytes += size * (double)mc_array_size(b.out[i]);
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

/* A training step of an LSTM of 256 units, for sequences of any length and batches of any size. */
int bench_recurrent_child(void)
{
    struct bench_function b = { .nin = 2, .nout = 1 };
    uint64_t state = 1;
    b.in[0] = must(mc_array_new(MC_FLOAT32, MC_SHAPE(100, 32, 256)));
    b.in[1] = must(mc_array_new(MC_FLOAT32, MC_SHAPE(32, 256)));
    for (int i = 0; i < b.nin; i++) {
        random_fill(b.in[i], &state, 1);
    }
    const double device = bench_start_device(), start = seconds_now();
    b.g = must(mc_graph_new());
    mc_formula(b.g,
               "input x float32[?, ?, 256]; input h float32[?, 256]\n"
               "shared W float32[256, 1024] = glorot_uniform(); shared U float32[256, 1024] = orthogonal()\n"
               "shared b float32[1024] = zeros()\n" LSTM(256) "\ncost = mean(sqr(y[-1]))");
    b.f = mc_compile(b.g, &(mc_spec){ .inputs = "x, h",
                                      .outputs = "cost",
                                      .updates = "W = W - 0.1 * grad(cost, W); U = U - 0.1 * grad(cost, U); "
                                                 "b = b - 0.1 * grad(cost, b)" });
    const double compiled = seconds_now();
    const bool good = b.f && bench_call(&b);
    const double called = seconds_now();
    good ? printf("%.6f %.6f %.6f %.6f\n", (called - start) * 1e3, (compiled - start) * 1e3,
                  (compiled - start) * 1e3, device)
         : complain_library("recurrent");
    bench_free(&b);
    return !good;
}

bool bench_layers(const char *suite)
{
    static const char *const compiling[CHILD_TIMES] = { "first step of an LSTM", NULL };
    bool good = strcmp(suite, "recurrent") != 0 || !bench_wanted(compiling[0], "") ||
                bench_children(suite, "recurrent-child", compiling, MOST_ROUNDS);
    for (int i = 0; i < COUNT(cases); i++) {
        const struct layer_case *c = &cases[i];
        const bool zoo = strcmp(suite, "zoo") == 0, rate = zoo && strncmp(c->name, "rate", 4) == 0;
        if (strcmp(c->suite, suite) != 0 || (zoo && !rate && !bench_in_shard(c->name)) ||
            (!rate && !bench_wanted(c->name, c->pass))) {
            continue;
        }
        good = run(c, MC_FLOAT32) && good;
        if (zoo && !rate && bench_far()) {
            good = run(c, MC_BFLOAT16) && good;
        }
    }
    return good;
}
