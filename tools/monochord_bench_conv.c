/* monochord_bench_conv.c: five convolutions in three passes: planned by measuring, and by oneDNN alone.
 *
 * Invariant: the row whose algo begins with "auto" is what a user gets with plan=measure, wisdom included. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The layers of the benchmark that compared convolutions in 2014: stride 1, no padding. */
static const struct layer { const char *name; int c, size, f, k; } layers[] = {
    { "L1", 3, 128, 96, 11 }, { "L2", 64, 64, 128, 9 }, { "L3", 128, 32, 128, 9 }, { "L4", 128, 16, 128, 7 }, { "L5", 384, 13, 384, 3 },
};
static const struct pass { const char *name, *inputs, *output; int result; } passes[] = {
    { "fwd",     "x, w", "conv(x, w, flip=False)",         2 },
    { "inputs",  "w, y", "conv_inputs(w, y, flip=False)",  0 },
    { "weights", "x, y", "conv_weights(x, y, flip=False)", 1 },
};
static const char *const solvers[] = { "auto", "onednn" };
enum { BATCH = 16, SAMPLES = 300 };

/* Sizes of x, w and y: first axis, second, and the two others. */
static void sizes(const struct layer *l, int64_t dims[3][4])
{
    int64_t out = l->size - l->k + 1;
    memcpy(dims[0], (int64_t[]){ BATCH, l->c, l->size, l->size }, sizeof dims[0]);
    memcpy(dims[1], (int64_t[]){ l->f, l->c, l->k, l->k }, sizeof dims[1]);
    memcpy(dims[2], (int64_t[]){ BATCH, l->f, out, out }, sizeof dims[2]);
}

/* One element of a pass in float64. */
static double element(const struct layer *l, int result, float *const *a, const int64_t at[4])
{
    int64_t o = l->size - l->k + 1, s = l->size, k = l->k, c = l->c, f = l->f;
    double sum = 0;
    for (int64_t i = 0; i < (result == 2 ? c : result == 0 ? f : BATCH); i++) {
        for (int64_t u = 0; u < (result == 1 ? o : k); u++) {
            for (int64_t v = 0; v < (result == 1 ? o : k); v++) {
                int64_t p = at[2] - u, q = at[3] - v;
                if (result == 2) {
                    sum += (double)a[0][((at[0] * c + i) * s + at[2] + u) * s + at[3] + v] * a[1][((at[1] * c + i) * k + u) * k + v];
                } else if (result == 1) {
                    sum += (double)a[0][((i * c + at[1]) * s + at[2] + u) * s + at[3] + v] * a[2][((i * f + at[0]) * o + u) * o + v];
                } else if (p >= 0 && q >= 0 && p < o && q < o) {
                    sum += (double)a[2][((at[0] * f + i) * o + p) * o + q] * a[1][((i * c + at[1]) * k + u) * k + v];
                }
            }
        }
    }
    return sum;
}

/* Relative Frobenius, of elements drawn from the result. */
static double error_of(const struct layer *l, int result, float *const *a, const float *have)
{
    int64_t dims[3][4];
    double wrong = 0, all = 0;
    uint64_t state = 7;
    sizes(l, dims);
    for (int i = 0; i < SAMPLES; i++) {
        int64_t at[4], place = 0;
        for (int k = 0; k < 4; k++) {
            at[k] = (int64_t)(random_next(&state) * (double)dims[result][k]);
            place = place * dims[result][k] + at[k];
        }
        double want = element(l, result, a, at), d = have[place] - want;
        wrong += d * d;
        all += want * want;
    }
    return sqrt(wrong / all);
}

static bool measure(const char *suite, const struct layer *l, const struct pass *p, const char *solver)
{
    static const char *const flags[] = { "conv.algo_bwd_data", "conv.algo_bwd_filter", "conv.algo_fwd" };
    static const char *const names[] = { "x", "w", "y" };
    struct bench_function b = { .g = must(mc_graph_new()), .nin = 2, .nout = 1 };
    mc_array *array[3];
    float *a[3];
    int64_t dims[3][4];
    uint64_t state = 1;
    char name[16], algo[48];
    struct result r = { suite, name, p->name, "float32", algo, .error = -1 };
    sizes(l, dims);
    for (int i = 0; i < 3; i++) {
        array[i] = must(mc_array_new(MC_FLOAT32, 4, dims[i]));
        a[i] = mc_array_data(array[i]);
        for (int64_t k = mc_array_size(array[i]); k-- > 0;) {
            a[i][k] = (float)(2 * random_next(&state) - 1);
        }
        mc_input_sized(b.g, names[i], MC_FLOAT32, 4, dims[i]);
    }
    b.in[0] = array[p->result == 0];
    b.in[1] = array[p->result == 2 ? 1 : 2];
    char output[80];
    snprintf(output, sizeof output, "borrow(%s)", p->output);
    mc_flag_set(flags[p->result], solver);
    mc_flag_set("plan", "measure");
    b.f = mc_compile(b.g, &(mc_spec){ .name = "conv", .inputs = p->inputs, .outputs = output });
    snprintf(name, sizeof name, "%s b%d", l->name, BATCH);
    double out = l->size - l->k + 1;
    r.flops = 2. * BATCH * out * out * l->f * l->c * l->k * l->k;
    if (b.f) {
        r.time = time_calls(bench_call, &b, 0.5);
    }
    snprintf(algo, sizeof algo, "%s", solver);
    if (r.time.calls > 0 && strcmp(solver, "auto") == 0) {
        snprintf(algo, sizeof algo, "auto:%s", mc_function_step(b.f, mc_function_nsteps(b.f) - 1).solver);
    }
    bool good = r.time.calls > 0;
    if (good) {
        r.error = error_of(l, p->result, a, mc_array_data(b.out[0]));
        bench_report(&r);
    }
    b.in[0] = b.in[1] = NULL;
    for (int i = 0; i < 3; i++) {
        mc_array_unref(&array[i]);
    }
    bench_free(&b);
    mc_flag_set(flags[p->result], "auto");
    mc_flag_set("plan", "estimate");
    return good;
}

bool bench_conv(const char *suite)
{
    bool good = true;
    for (int i = 0; i < COUNT(layers) * COUNT(passes); i++) {
        for (int k = 0; k < COUNT(solvers); k++) {
            if (!measure(suite, &layers[i / COUNT(passes)], &passes[i % COUNT(passes)], solvers[k]) && k == 0) {
                good = bench_fail("conv");
            }
        }
    }
    return good;
}
