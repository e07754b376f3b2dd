/* monochord_bench_ops.c: suites that are tables of functions: exp, call, elementwise, rows.
 *
 * Invariant: what is timed is mc_call and nothing else; results are checked against float64 afterwards,
 * on rows spread over the whole. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One row: in[i] is the row's part of input i, or all of it where it has no row for each; n: of input 0. */
typedef void reference(const double *const *in, int n, double *out);
static reference exp_row, plus_row, chain_row, softmax_row, softmax_back, logsumexp_row, logsumexp_back,
    layernorm_row, layernorm_back;

enum { M = 1 << 20, WIDE = 1024, TALL = 4096, CELLS = TALL * WIDE };
#define CHAIN "y = a * x + b * tanh(x) - c / (1 + x * x)"
#define LAYERNORM "y = layer_norm(x, w, b)"
#define X2 { "x", 2, { TALL, WIDE } }
#define V2 { "v", 2, { TALL, WIDE } }

static const struct function_case {
    const char *suite, *name, *pass;
    struct { const char *name; int rank; int64_t dims[2]; } in[MOST_ARGS];
    const char *formulas, *outputs;
    double bytes;
    reference *row;
    int n, m, checked; /* elements of a row of input 0, and of output `checked` */
    bool fresh;
    enum { ANYWHERE, NEAR, FAR } where; /* on the processor only, or not there */
} cases[] = {
    /* suite      case                  pass       inputs                       formulas   outputs */
    { "exp",
      "exp 230400",
      "",
      { { "x", 1, { 230400 } } },
      "y = exp(x)",
      "borrow(y)",
      2. * 4 * 230400,
      exp_row,
      1024,
      1024,
      0,
      false },
    { "exp",
      "exp 230400 new",
      "",
      { { "x", 1, { 230400 } } },
      "y = exp(x)",
      "gpu_from_host(y)",
      2. * 4 * 230400,
      exp_row,
      1024,
      1024,
      0,
      true },
    { "exp",
      "exp 230400 home",
      "",
      { { "x", 1, { 230400 } } },
      "y = exp(x)",
      "y",
      2. * 4 * 230400,
      exp_row,
      1024,
      1024,
      0,
      true,
      FAR },
    { "call", "x + 1, 4 floats", "", { { "x", 1, { 4 } } }, "y = x + 1", "y", 0, plus_row, 4, 4, 0, false },
    { "call",
      "x + 1, 4 floats borrow",
      "",
      { { "x", 1, { 4 } } },
      "y = x + 1",
      "borrow(y)",
      0,
      plus_row,
      4,
      4,
      0,
      false },
    { "elementwise",
      "chain 64M",
      "",
      { { "x", 1, { 64 * M } }, { "a", 0 }, { "b", 0 }, { "c", 0 } },
      CHAIN,
      "borrow(y)",
      2. * 4 * 64 * M,
      chain_row,
      1024,
      1024,
      0,
      false,
      NEAR },
    { "elementwise",
      "chain 64K, in cache",
      "",
      { { "x", 1, { 64 * 1024 } }, { "a", 0 }, { "b", 0 }, { "c", 0 } },
      CHAIN,
      "borrow(y)",
      2. * 4 * 64 * 1024,
      chain_row,
      1024,
      1024,
      0,
      false,
      NEAR }, /* the arithmetic alone: a 1024th of the row above, if memory is no limit */
    { "elementwise",
      "chain 256M",
      "",
      { { "x", 1, { 256 * M } }, { "a", 0 }, { "b", 0 }, { "c", 0 } },
      CHAIN,
      "borrow(y)",
      2. * 4 * 256 * M,
      chain_row,
      1024,
      1024,
      0,
      false,
      FAR },
    { "rows",
      "softmax 4096x1024",
      "fwd",
      { X2 },
      "y = softmax(x)",
      "borrow(y)",
      2. * 4 * CELLS,
      softmax_row,
      WIDE,
      WIDE,
      0,
      false },
    { "rows",
      "softmax 4096x1024",
      "fwd+bwd",
      { X2, V2 },
      "y = softmax(x)",
      "borrow(y), borrow(grad(sum(y * v), x))",
      4. * 4 * CELLS,
      softmax_back,
      WIDE,
      WIDE,
      1,
      false },
    { "rows",
      "logsumexp 4096x1024",
      "fwd",
      { X2 },
      "y = logsumexp(x, axis=1)",
      "borrow(y)",
      1. * 4 * CELLS,
      logsumexp_row,
      WIDE,
      1,
      0,
      false },
    { "rows",
      "logsumexp 4096x1024",
      "fwd+bwd",
      { X2, { "v", 1, { TALL } } },
      "y = logsumexp(x, axis=1)",
      "borrow(y), borrow(grad(sum(y * v), x))",
      2. * 4 * CELLS,
      logsumexp_back,
      WIDE,
      WIDE,
      1,
      false },
    { "rows",
      "layernorm 4096x1024",
      "fwd",
      { X2, { "w", 1, { WIDE } }, { "b", 1, { WIDE } } },
      LAYERNORM,
      "borrow(y)",
      2. * 4 * CELLS,
      layernorm_row,
      WIDE,
      WIDE,
      0,
      false },
    { "rows",
      "layernorm 4096x1024",
      "fwd+bwd",
      { X2, { "w", 1, { WIDE } }, { "b", 1, { WIDE } }, V2 },
      LAYERNORM,
      "borrow(y), borrow(grad(sum(y * v), x)), borrow(grad(sum(y * v), w)), borrow(grad(sum(y * v), b))",
      4. * 4 * CELLS,
      layernorm_back,
      WIDE,
      WIDE,
      1,
      false },
};

/* ---- references ---- */

static void exp_row(const double *const *in, int n, double *out)
{
    for (int i = 0; i < n; i++) {
        out[i] = exp(in[0][i]);
    }
}

static void plus_row(const double *const *in, int n, double *out)
{
    for (int i = 0; i < n; i++) {
        out[i] = in[0][i] + 1;
    }
}

static void chain_row(const double *const *in, int n, double *out)
{
    for (int i = 0; i < n; i++) {
        double x = in[0][i];
        out[i] = *in[1] * x + *in[2] * tanh(x) - *in[3] / (1 + x * x);
    }
}

static double log_sum_exp(const double *x, int n)
{
    double most = x[0], sum = 0;
    for (int i = 1; i < n; i++) {
        most = x[i] > most ? x[i] : most;
    }
    for (int i = 0; i < n; i++) {
        sum += exp(x[i] - most);
    }
    return most + log(sum);
}

static void softmax_row(const double *const *in, int n, double *out)
{
    double l = log_sum_exp(in[0], n);
    for (int i = 0; i < n; i++) {
        out[i] = exp(in[0][i] - l);
    }
}

static void softmax_back(const double *const *in, int n, double *out)
{
    double sum = 0;
    softmax_row(in, n, out);
    for (int i = 0; i < n; i++) {
        sum += out[i] * in[1][i];
    }
    for (int i = 0; i < n; i++) {
        out[i] *= in[1][i] - sum;
    }
}

static void logsumexp_row(const double *const *in, int n, double *out)
{
    out[0] = log_sum_exp(in[0], n);
}

static void logsumexp_back(const double *const *in, int n, double *out)
{
    softmax_row(in, n, out);
    for (int i = 0; i < n; i++) {
        out[i] *= *in[1];
    }
}

/* x less its mean, over its deviation; returns one over the deviation. */
static double standardised(const double *x, int n, double *out)
{
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++) {
        mean += x[i] / n;
    }
    for (int i = 0; i < n; i++) {
        out[i] = x[i] - mean;
        var += out[i] * out[i] / n;
    }
    double scale = 1 / sqrt(var + 1e-5);
    for (int i = 0; i < n; i++) {
        out[i] *= scale;
    }
    return scale;
}

static void layernorm_row(const double *const *in, int n, double *out)
{
    standardised(in[0], n, out);
    for (int i = 0; i < n; i++) {
        out[i] = out[i] * in[1][i] + in[2][i];
    }
}

static void layernorm_back(const double *const *in, int n, double *out)
{
    double scale = standardised(in[0], n, out), mean = 0, along = 0;
    for (int i = 0; i < n; i++) {
        double g = in[3][i] * in[1][i];
        mean += g / n;
        along += g * out[i] / n;
    }
    for (int i = 0; i < n; i++) {
        out[i] = scale * (in[3][i] * in[1][i] - mean - out[i] * along);
    }
}

/* ---- checking ---- */

/* Where row r of an array of `rows` rows lies, and how many elements it has; all of it if it has no rows. */
static const float *part(const mc_array *a, int64_t rows, int64_t r, int64_t *n)
{
    int64_t size = mc_array_size(a);
    bool split = size >= rows && size % rows == 0;
    *n = split ? size / rows : size;
    return (const float *)mc_array_data(a) + (split ? r * *n : 0);
}

static double error_of(const struct function_case *c, const struct bench_function *b)
{
    enum { CHECKED = 1 << 20 };
    int64_t rows = mc_array_size(b->in[0]) / c->n, step = 1 + rows * c->n / CHECKED, n;
    double *row[MOST_ARGS], *want = must(calloc((size_t)c->m, sizeof *want)), wrong = 0, all = 0;
    for (int i = 0; i < b->nin; i++) {
        part(b->in[i], rows, 0, &n);
        row[i] = must(calloc((size_t)n, sizeof *row[i]));
    }
    for (int64_t r = 0; r < rows; r += step) {
        for (int i = 0; i < b->nin; i++) {
            const float *from = part(b->in[i], rows, r, &n);
            for (int64_t k = 0; k < n; k++) {
                row[i][k] = from[k];
            }
        }
        c->row((const double *const *)row, c->n, want);
        const float *got = (const float *)mc_array_data(b->out[c->checked]) + r * c->m;
        for (int k = 0; k < c->m; k++) {
            wrong += (got[k] - want[k]) * (got[k] - want[k]);
            all += want[k] * want[k];
        }
    }
    for (int i = 0; i < b->nin; i++) {
        free(row[i]);
    }
    free(want);
    return sqrt(wrong / all);
}

/* ---- running ---- */

static bool make(const struct function_case *c, struct bench_function *b)
{
    struct text inputs = { 0 }, outputs = { 0 };
    uint64_t state = 1;
    b->g = must(mc_graph_new());
    b->fresh = c->fresh;
    for (; b->nin < MOST_ARGS && c->in[b->nin].name; b->nin++) {
        mc_input(b->g, c->in[b->nin].name, MC_FLOAT32, c->in[b->nin].rank);
        text_addf(&inputs, "%s%s", b->nin ? ", " : "", c->in[b->nin].name);
        b->in[b->nin] = must(mc_array_new(MC_FLOAT32, c->in[b->nin].rank, c->in[b->nin].dims));
        random_fill(b->in[b->nin], &state, 2);
        b->in[b->nin] = must(bench_place(b->in[b->nin]));
    }
    mc_formula(b->g, c->formulas);
    bench_stay(&outputs, c->outputs);
    b->f = mc_compile(b->g, &(mc_spec){ .name = c->name, .inputs = inputs.s, .outputs = outputs.s });
    b->nout = mc_function_noutputs(b->f);
    text_free(&inputs);
    text_free(&outputs);
    return b->f != NULL;
}

/* The same memory, as fast as it can be copied: x to the result. */
static void report_copies(const struct function_case *c, const struct bench_function *b)
{
    static const char *const name[] = { "copy 64M memcpy", "copy 64M streaming" };
    size_t n = (size_t)c->bytes / 2;
    for (int k = 0; k < 1 + copy_can_stream(); k++) {
        struct result r = { c->suite, name[k], "", "float32", "", .bytes = c->bytes, .error = -1 };
        int threads = atoi(mc_flag_get("threads"));
        r.time = copy_time(mc_array_data(b->out[0]), mc_array_data(b->in[0]), n, threads > 0 ? threads : 2,
                           k == 1, 1);
        bench_report(&r);
    }
}

static bool run(const struct function_case *c)
{
    struct bench_function b = { 0 };
    struct result r = { c->suite, c->name, c->pass, "float32", c->fresh ? "new" : "", .bytes = c->bytes };
    bool good = make(c, &b) && (r.time = time_calls(bench_call, &b, bench_seconds())).calls > 0;
    if (good) {
        bench_home(&b);
        r.error = error_of(c, &b);
        bench_report(&r);
        if (strcmp(c->suite, "elementwise") == 0 && c->bytes > 64. * M && !bench_far()) { /* memory decides */
            report_copies(c, &b);
        }
    } else {
        bench_fail(c->name);
    }
    bench_free(&b);
    return good;
}

bool bench_cases(const char *suite)
{
    bool good = true;
    for (int i = 0; i < COUNT(cases); i++) {
        if (strcmp(cases[i].suite, suite) == 0 && cases[i].where != (bench_far() ? NEAR : FAR) &&
            bench_wanted(cases[i].name, "")) {
            good = run(&cases[i]) && good;
        }
    }
    return good;
}
