/* monochord_bench_gemm.c: matrix products by each solver that takes them.
 *
 * Solvers that take products apart by libraries run on those libraries' own threads.  Invariant: the row
 * whose algo begins with "auto" is what a user gets who sets no flag. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* turned: which operand lies the other way; gpu: only there */
static const struct shape { int m, k, n; char turned; bool gpu; } shapes[] = {
    { 500, 500, 500 },  { 1000, 1000, 1000 }, { 2000, 2000, 2000 }, { 4096, 4096, 4096 },
    { 600, 784, 10 },   { 784, 600, 10 },     { 600, 784, 500 },    { 4096, 4096, 16 },
    { 1, 4096, 4096 },  { 16, 4096, 4096 },   { 128, 128, 128 },    { 64, 100000, 64 },
    /* of LeNet's dense layers: forward, gradient of inputs, of weights */
    { 500, 1024, 500 }, { 500, 500, 1024, 'B' }, { 1024, 500, 500, 'A' },
    { 500, 500, 10 },   { 500, 10, 500, 'B' },   { 500, 500, 10, 'A' },
    /* large, only on a GPU: each order, sizes that fill no tile */
    { 4096, 4096, 4096, 'A', true }, { 4096, 4096, 4096, 'B', true }, { 3001, 2999, 3003, .gpu = true },
    { 8192, 8192, 8192, .gpu = true },
};
/* large: also where one call takes long; the last four are a GPU's */
static const struct { const char *name; bool large; } solvers[] = {
    { "auto", true },  { "packed", true }, { "thin", false },    { "splitk", false }, { "direct", false }, { "onednn", true },
    { "blas", true },  { "cut", false },   { "split", true },    { "split_large", true },
    { "cublaslt", true },
};

/* Frobenius, on rows spread over the result. */
static double error_of(const struct shape *s, const struct bench_function *b)
{
    mc_array *home[] = { must(mc_array_to(b->in[0], "cpu")), must(mc_array_to(b->in[1], "cpu")),
                         must(mc_array_to(b->out[0], "cpu")) };
    const float *x = mc_array_data(home[0]), *y = mc_array_data(home[1]), *z = mc_array_data(home[2]);
    const size_t m = (size_t)s->m, n = (size_t)s->n, depth = (size_t)s->k;
    const size_t along_a = s->turned == 'A' ? m : 1, down_a = s->turned == 'A' ? 1 : depth,
                 along_b = s->turned == 'B' ? depth : 1, down_b = s->turned == 'B' ? 1 : n;
    double *row = must(calloc(n, sizeof *row)), wrong = 0, all = 0;
    int step = s->m > 16 ? s->m / 16 : 1;
    for (int i = 0; i < s->m; i += step) {
        memset(row, 0, n * sizeof *row);
        for (int k = 0; k < s->k; k++) {
            double a = x[(size_t)i * down_a + (size_t)k * along_a];
            for (int j = 0; j < s->n; j++) {
                row[j] += a * y[(size_t)k * down_b + (size_t)j * along_b];
            }
        }
        for (int j = 0; j < s->n; j++) {
            double d = z[(size_t)i * n + (size_t)j] - row[j];
            wrong += d * d;
            all += row[j] * row[j];
        }
    }
    free(row);
    for (int i = 0; i < COUNT(home); i++) {
        mc_array_unref(&home[i]);
    }
    return sqrt(wrong / all);
}

static bool make(const struct shape *s, struct bench_function *b)
{
    uint64_t state = 1;
    b->g = must(mc_graph_new());
    mc_input(b->g, "A", MC_FLOAT32, 2);
    mc_input(b->g, "B", MC_FLOAT32, 2);
    const bool a = s->turned == 'A', other = s->turned == 'B';
    b->in[0] = must(mc_array_new(MC_FLOAT32, MC_SHAPE(a ? s->k : s->m, a ? s->m : s->k)));
    b->in[1] = must(mc_array_new(MC_FLOAT32, MC_SHAPE(other ? s->n : s->k, other ? s->k : s->n)));
    b->nin = 2;
    for (int i = 0; i < 2; i++) { /* centred: sums that cancel show errors */
        float *x = mc_array_data(b->in[i]);
        for (int64_t k = mc_array_size(b->in[i]); k-- > 0;) {
            x[k] = (float)(2 * random_next(&state) - 1);
        }
        b->in[i] = must(bench_place(b->in[i]));
    }
    struct text stays = { 0 };
    bench_stay(&stays, a ? "borrow(dot(A.T, B))" : other ? "borrow(dot(A, B.T))" : "borrow(dot(A, B))");
    b->f = mc_compile(b->g, &(mc_spec){ .name = "gemm", .inputs = "A, B", .outputs = stays.s });
    b->nout = 1;
    text_free(&stays);
    return b->f != NULL;
}

/* False: not by this solver. */
static bool by_solver(const char *suite, const char *name, const struct shape *s, const char *solver,
                      struct bench_function *b)
{
    char algo[48];
    struct result r = { suite, name, "", "float32", algo, .error = -1 };
    mc_flag_set("gemm.algo", solver);
    mc_function *f = b->f;
    b->f = must(mc_function_copy(f, 1)); /* with no plans yet */
    r.flops = 2. * s->m * s->k * s->n;
    r.bytes = 4. * ((double)s->m * s->k + (double)s->k * s->n + (double)s->m * s->n);
    r.time = time_calls(bench_call, b, 0.4);
    snprintf(algo, sizeof algo, "%s", solver);
    for (int i = 0; i < mc_function_nsteps(b->f) && strcmp(solver, "auto") == 0; i++) {
        mc_step_info step = mc_function_step(b->f, i);
        if (strcmp(step.kind, "gemm") == 0) {
            snprintf(algo, sizeof algo, "auto:%s", step.solver);
        }
    }
    if (r.time.calls > 0) {
        r.error = error_of(s, b);
        bench_report(&r);
    }
    mc_array_unref(&b->out[0]);
    mc_function_free(b->f);
    b->f = f;
    mc_flag_set("gemm.algo", "auto");
    return r.time.calls > 0;
}

bool bench_gemm(const char *suite)
{
    bool good = true;
    for (int i = 0; i < COUNT(shapes); i++) {
        const struct shape *s = &shapes[i];
        struct bench_function b = { 0 };
        char name[48];
        snprintf(name, sizeof name, "%dx%dx%d%s", s->m, s->k, s->n,
                 s->turned == 'A'   ? " tn"
                 : s->turned == 'B' ? " nt"
                                    : "");
        if (!bench_wanted(name, "") || (s->gpu && !bench_far())) {
            continue;
        }
        bool large = (double)s->m * s->k * s->n > 1e10;
        bool made = make(s, &b);
        for (int k = 0; made && k < COUNT(solvers); k++) {
            if ((!large || solvers[k].large) && !by_solver(suite, name, s, solvers[k].name, &b) && k == 0) {
                made = false; /* the others may decline */
            }
        }
        if (!made) {
            good = bench_fail("gemm");
        }
        bench_free(&b);
    }
    return good;
}
