/* monochord_bench_linalg.c: factorizations and systems of equations, by a LAPACK library and without one.
 *
 * The pass says which: "lapack" is what a user gets with the library that the flag `lapack` names, "own" is
 * lapack=none.  On a GPU there is one pass, "": matrices and results stay there.  Errors are residuals in
 * float64, relative to the norms of what was multiplied. */
#include "bench.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_SIZES = 11 };
/* rows, and matrices of a stack; 0: one matrix */
#define SPECTRA { { 16, 0 }, { 32, 0 }, { 64, 0 }, { 128, 0 }, { 256, 0 }, { 512, 0 }, { 16, 1000 }, { 64, 20 } }
#define FACTORED \
    { \
        { 16, 0 }, { 32, 0 }, { 64, 0 }, { 128, 0 }, { 256, 0 }, { 512, 0 }, { 1024, 0 }, { 2048, 0 }, { 16, 1000 }, \
            { 64, 100 }, { 256, 8 } \
    }
/* residual: of the inputs x, b and the results y0, y1, y2 */
static const struct work {
    const char *name, *formulas, *outputs, *residual;
    int nout;
    bool right, symmetric, positive; /* a right hand side; what x is */
    struct { int64_t n, batch; } size[MOST_SIZES];
} works[] = {
    { "cholesky",
      "",
      "borrow(cholesky(x))",
      "norm(x - matmul(y0, swapaxes(y0, -1, -2))) / norm(x)",
      1,
      .symmetric = true,
      .positive = true,
      .size = FACTORED },
    { "solve",
      "",
      "borrow(solve(x, b))",
      "norm(matmul(x, y0) - b) / (norm(x) * norm(y0))",
      1,
      .right = true,
      .size = FACTORED },
    { "eigh",
      "e = eigh(x)",
      "borrow(e[0]), borrow(e[1])",
      "norm(matmul(x, y1) - einsum('...ij,...j->...ij', y1, y0)) / norm(x)",
      2,
      .symmetric = true,
      .size = SPECTRA },
    { "svd",
      "e = svd(x, full_matrices=False)",
      "borrow(e[0]), borrow(e[1]), borrow(e[2])",
      "norm(x - matmul(einsum('...ij,...j->...ij', y0, y1), y2)) / norm(x)",
      3,
      .size = SPECTRA },
};

/* Numbers from -1 to 1; x as the work needs it. */
static void fill(const struct work *w, mc_array *x, int64_t n, bool right)
{
    uint64_t state = 1;
    float *a = mc_array_data(x);
    for (int64_t i = 0; i < mc_array_size(x); i++) {
        a[i] = (float)(2 * random_next(&state) - 1);
    }
    for (float *end = a + mc_array_size(x); a < end && w->symmetric && !right; a += n * n) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < i; j++) {
                a[j * n + i] = a[i * n + j];
            }
            a[i * n + i] += w->positive ? (float)n : 0;
        }
    }
}

static bool make(const struct work *w, mc_dtype dtype, int64_t n, int64_t batch, struct bench_function *b)
{
    const int rank = batch ? 3 : 2;
    b->g = must(mc_graph_new());
    for (b->nin = 0; b->nin < (w->right ? 2 : 1); b->nin++) {
        const int64_t dims[3] = { batch, n, b->nin ? 1 : n };
        mc_input(b->g, b->nin ? "b" : "x", dtype, rank);
        mc_array *a = must(mc_array_new(MC_FLOAT32, rank, dims + 3 - rank));
        fill(w, a, n, b->nin);
        b->in[b->nin] = must(bench_place(must(mc_array_cast(a, dtype))));
        mc_array_unref(&a);
    }
    if (w->formulas[0]) {
        mc_formula(b->g, w->formulas);
    }
    struct text outputs = { 0 };
    bench_stay(&outputs, w->outputs);
    b->f = mc_compile(b->g,
                      &(mc_spec){ .name = w->name, .inputs = w->right ? "x, b" : "x", .outputs = outputs.s });
    b->nout = w->nout;
    text_free(&outputs);
    return b->f != NULL;
}

static double residual(const struct work *w, const struct bench_function *b)
{
    static const char *const names[] = { "y0", "y1", "y2" };
    struct bench_function r = { .g = must(mc_graph_new()) };
    struct text inputs = { 0 };
    double error = -1;
    for (int i = 0; i < b->nin + b->nout; i++) {
        const mc_array *from = i < b->nin ? b->in[i] : b->out[i - b->nin];
        const char *name = i >= b->nin ? names[i - b->nin] : i ? "b" : "x";
        mc_input(r.g, name, MC_FLOAT64, mc_array_rank(from));
        text_addf(&inputs, "%s%s", i ? ", " : "", name);
        r.in[r.nin++] = must(mc_array_cast(from, MC_FLOAT64));
    }
    r.f = mc_compile(r.g, &(mc_spec){ .inputs = inputs.s, .outputs = w->residual });
    r.nout = 1;
    if (r.f && bench_call(&r)) {
        error = *(const double *)mc_array_data(r.out[0]);
    }
    text_free(&inputs);
    bench_free(&r);
    return error;
}

static bool run(const struct work *w, int64_t n, int64_t batch, mc_dtype dtype, bool own)
{
    struct bench_function b = { 0 };
    char name[48], algo[48] = "";
    struct result r = { "linalg", name,
                        bench_far() ? ""
                        : own       ? "own"
                                    : "lapack",
                        mc_dtype_name(dtype), algo };
    snprintf(name, sizeof name, batch ? "%s %d b%d" : "%s %d", w->name, (int)n, (int)batch);
    if (!bench_wanted(name, r.pass)) {
        return true;
    }
    char *before = must(strdup(mc_flag_get("lapack")));
    if (own) {
        mc_flag_set("lapack", "none");
    }
    const bool good = make(w, dtype, n, batch, &b) &&
                      (r.time = time_calls(bench_call, &b, bench_seconds() / 4)).calls > 0;
    if (good) {
        for (int i = 0; i < mc_function_nsteps(b.f); i++) {
            mc_step_info step = mc_function_step(b.f, i);
            if (step.solver && step.solver[0]) {
                snprintf(algo, sizeof algo, "%s", step.solver);
            }
        }
        bench_home(&b);
        r.error = residual(w, &b);
        bench_report(&r);
    } else {
        bench_fail(name);
    }
    mc_flag_set("lapack", before);
    free(before);
    bench_free(&b);
    return good;
}

bool bench_linalg(const char *suite)
{
    bool good = true;
    (void)suite;
    for (int i = 0; i < COUNT(works); i++) {
        for (int k = 0; k < MOST_SIZES && works[i].size[k].n; k++) {
            for (int way = 0; way < 4; way += bench_far() ? 2 : 1) {
                good = run(&works[i], works[i].size[k].n, works[i].size[k].batch,
                           way < 2 ? MC_FLOAT32 : MC_FLOAT64, way % 2) &&
                       good;
            }
        }
    }
    return good;
}
