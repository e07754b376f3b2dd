/* monochord_bench_tables.c: ops on tables of numbers, and random numbers: the suites tables and random.
 *
 * Invariant: errors of tables are against plain loops in float64, 0 where the result is the same; those of
 * random numbers are how far mean and variance are from those of the distribution, relative to its
 * deviation and variance. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 10000000 };
enum check { ORDER, SORTED, TOP, SEARCH, COUNT_OF, SUMS, MOMENTS };

static const struct table_case {
    const char *suite, *name, *dtype;
    int64_t rows, columns;          /* rows 0: a vector */
    const char *inputs;             /* x; and a, x sorted */
    const char *formula;
    enum check check;
    int64_t below;                  /* of whole numbers; k of topk */
    double mean, variance;
} cases[] = {
#define ROWS(what, formula, check, dtype, below)                                                   \
    { "tables", what " 1e3", dtype, 0, 1000, "x", formula, check, below },                         \
    { "tables", what " 1e5", dtype, 0, 100000, "x", formula, check, below },                       \
    { "tables", what " 1e7", dtype, 0, LONG, "x", formula, check, below },                         \
    { "tables", what " 1000x1000", dtype, 1000, 1000, "x", formula, check, below }
    ROWS("sort", "sort(x)", SORTED, "float32", 0),
    ROWS("sort", "sort(x)", SORTED, "int32", 1 << 30),
    ROWS("sort", "sort(x)", SORTED, "int64", INT64_C(1) << 50),
    ROWS("argsort", "argsort(x)", ORDER, "float32", 0),
    ROWS("argsort", "argsort(x)", ORDER, "int64", INT64_C(1) << 50),
    ROWS("topk 10", "topk(x, 10)", TOP, "float32", 10),
    ROWS("topk 100", "topk(x, 100)", TOP, "float32", 100),
    ROWS("cumsum", "cumsum(x, axis=-1)", SUMS, "float32", 0),
    ROWS("cumsum", "cumsum(x, axis=-1)", SUMS, "int64", 1000),
#undef ROWS
#define VECTORS(what, inputs, formula, check, dtype, below)                                        \
    { "tables", what " 1e3", dtype, 0, 1000, inputs, formula, check, below },                      \
    { "tables", what " 1e5", dtype, 0, 100000, inputs, formula, check, below },                    \
    { "tables", what " 1e7", dtype, 0, LONG, inputs, formula, check, below }
    VECTORS("searchsorted", "a, x", "searchsorted(a, x)", SEARCH, "float32", 0),
    VECTORS("searchsorted", "a, x", "searchsorted(a, x)", SEARCH, "int64", INT64_C(1) << 50),
    VECTORS("bincount", "x", "bincount(x)", COUNT_OF, "int64", 1000),
#undef VECTORS
    { "random", "uniform 1e6", "float32", 0, 0, "", "uniform(rng, [1000000], dtype=float32)", MOMENTS, 0, 0.5, 1. / 12 },
    { "random", "uniform 1e6", "float64", 0, 0, "", "uniform(rng, [1000000], dtype=float64)", MOMENTS, 0, 0.5,
      1. / 12 },
    { "random", "normal 1e6", "float32", 0, 0, "", "normal(rng, [1000000], dtype=float32)", MOMENTS, 0, 0, 1 },
    { "random", "normal 1e6", "float64", 0, 0, "", "normal(rng, [1000000], dtype=float64)", MOMENTS, 0, 0, 1 },
    { "random", "poisson 4 1e6", "int64", 0, 0, "", "poisson(rng, 4., [1000000])", MOMENTS, 0, 4, 4 },
    { "random", "poisson 100 1e6", "int64", 0, 0, "", "poisson(rng, 100., [1000000])", MOMENTS, 0, 100, 100 },
    { "random", "choice 1e6", "int64", 0, 0, "", "choice(rng, 1000000, [1000000])", MOMENTS, 0, 499999.5,
      (1e12 - 1) / 12 },
    { "random", "choice once 1e6", "int64", 0, 0, "", "choice(rng, 1000000, [1000000], replace=False)", MOMENTS,
      0, 499999.5, (1e12 - 1) / 12 },
    { "random", "choice weights 1e6", "int64", 0, 1000, "x",
      "choice(rng, 1000, [1000000], p=x * 0 + 1)", MOMENTS, 0, 499.5, (1e6 - 1) / 12 },
};

static double at(const mc_array *a, int64_t i)
{
    const void *p = mc_array_data(a);
    switch (mc_array_dtype(a)) {
    case MC_FLOAT32: return (double)((const float *)p)[i];
    case MC_FLOAT64: return ((const double *)p)[i];
    case MC_INT32: return ((const int32_t *)p)[i];
    default: return (double)((const int64_t *)p)[i];
    }
}

static int by_value(const void *a, const void *b)
{
    const double u = *(const double *)a, v = *(const double *)b;
    return (u > v) - (u < v);
}

/* What the case's result is to be for one line of n elements, in want; how many elements. */
static int64_t plain(const struct table_case *c, const struct bench_function *b, const double *x, int64_t n,
                     double *want)
{
    double sum = 0;
    int64_t most = -1;
    switch (c->check) {
    case ORDER:
    case SORTED:
    case TOP:
        memcpy(want, x, (size_t)n * sizeof *x);
        qsort(want, (size_t)n, sizeof *want, by_value);
        for (int64_t i = 0; c->check == TOP && i < n / 2; i++) {
            const double t = want[i];
            want[i] = want[n - 1 - i];
            want[n - 1 - i] = t;
        }
        return c->check == TOP ? c->below : n;
    case SUMS:
        for (int64_t i = 0; i < n; i++) {
            want[i] = sum += x[i];
        }
        return n;
    case SEARCH:
        for (int64_t i = 0; i < n; i++) {
            int64_t low = 0, high = n;
            while (low < high) {
                const int64_t middle = (low + high) / 2;
                *(at(b->in[0], middle) < x[i] ? &low : &high) = middle + (at(b->in[0], middle) < x[i]);
            }
            want[i] = (double)low;
        }
        return n;
    default:
        memset(want, 0, (size_t)n * sizeof *want);
        for (int64_t i = 0; i < n; i++) {
            want[(int64_t)x[i]] += 1;
            most = x[i] > (double)most ? (int64_t)x[i] : most;
        }
        return most + 1;
    }
}

static double error_of(const struct table_case *c, const struct bench_function *b)
{
    const mc_array *x = b->in[b->nin - 1], *y = b->out[0];
    const int64_t n = c->columns, rows = c->rows ? c->rows : 1;
    double *line = must(malloc((size_t)n * sizeof *line)), *want = must(malloc((size_t)n * sizeof *want));
    double wrong = 0, all = 0;
    for (int64_t r = 0; r < rows; r += 100) {
        for (int64_t i = 0; i < n; i++) {
            line[i] = at(x, r * n + i);
        }
        const int64_t m = plain(c, b, line, n, want);
        for (int64_t i = 0; i < m; i++) {
            const double have = at(y, r * m + i),
                         d = (c->check == ORDER ? line[(int64_t)have] : have) - want[i];
            wrong += d * d;
            all += want[i] * want[i];
        }
    }
    free(line);
    free(want);
    return all > 0 ? sqrt(wrong / all) : wrong;
}

/* Of a draw: the larger distance of mean and variance from what they should be, relative to the deviation and
 * to the variance. */
static double moments_off(const struct table_case *c, const mc_array *y)
{
    const int64_t n = mc_array_size(y);
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) {
        mean += at(y, i) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        variance += (at(y, i) - mean) * (at(y, i) - mean) / (double)n;
    }
    return fmax(fabs(mean - c->mean) / sqrt(c->variance), fabs(variance / c->variance - 1));
}

static mc_array *filled(const struct table_case *c, mc_dtype d)
{
    const int64_t dims[2] = { c->rows ? c->rows : c->columns, c->columns };
    uint64_t state = 1;
    mc_array *a = must(mc_array_new(d, c->rows ? 2 : 1, dims));
    random_fill(a, &state, c->below);
    return a;
}

/* The second of two inputs is drawn; the first is drawn otherwise and sorted, by a function of its own. */
static mc_array *sorted(mc_array *x)
{
    mc_graph *g = must(mc_graph_new());
    mc_array *y = NULL;
    mc_input(g, "x", mc_array_dtype(x), 1);
    mc_formula(g, "y = sort(x[::-1])");
    mc_function *f = must(mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y" }));
    const mc_arg in = mc_arg_array(x), out = mc_arg_slot(&y);
    must(mc_call(f, 1, &in, 1, &out) == MC_OK ? f : NULL);
    mc_function_free(f);
    mc_graph_free(g);
    return y;
}

static bool make(const struct table_case *c, struct bench_function *b)
{
    const mc_dtype d = strcmp(c->dtype, "int32") == 0     ? MC_INT32
                       : strcmp(c->dtype, "int64") == 0   ? MC_INT64
                       : strcmp(c->dtype, "float64") == 0 ? MC_FLOAT64
                                                          : MC_FLOAT32;
    struct text formula = { 0 }, outputs = { 0 };
    b->g = must(mc_graph_new());
    if (c->columns) {
        const bool search = c->check == SEARCH;
        mc_array *x = filled(c, c->check == MOMENTS ? MC_FLOAT64 : d);
        if (search) {
            mc_input(b->g, "a", d, 1);
            b->in[b->nin++] = sorted(x);
        }
        mc_input(b->g, "x", mc_array_dtype(x), c->rows ? 2 : 1);
        b->in[b->nin++] = x;
    }
    for (int i = 0; i < b->nin; i++) {
        b->in[i] = must(bench_place(b->in[i]));
    }
    if (c->check == MOMENTS) {
        mc_random(b->g, "rng", 1);
    }
    text_addf(&formula, "y = %s", c->formula);
    mc_formula(b->g, formula.s);
    bench_stay(&outputs, "borrow(y)");
    b->f = mc_compile(b->g, &(mc_spec){ .name = c->name, .inputs = c->inputs, .outputs = outputs.s });
    b->nout = 1;
    text_free(&formula);
    text_free(&outputs);
    return b->f != NULL;
}

static bool run(const struct table_case *c)
{
    struct bench_function b = { 0 };
    struct result r = { c->suite, c->name, "", c->dtype, "" };
    bool good = make(c, &b) && (r.time = time_calls(bench_call, &b, bench_seconds() / 2)).calls > 0;
    if (good) {
        bench_home(&b);
        r.error = c->check == MOMENTS ? moments_off(c, b.out[0]) : error_of(c, &b);
        bench_report(&r);
    } else {
        bench_fail(c->name);
    }
    bench_free(&b);
    return good;
}

bool bench_tables(const char *suite)
{
    bool good = true;
    for (int i = 0; i < COUNT(cases); i++) {
        if (strcmp(cases[i].suite, suite) == 0 && bench_wanted(cases[i].name, cases[i].dtype)) {
            good = run(&cases[i]) && good;
        }
    }
    return good;
}
