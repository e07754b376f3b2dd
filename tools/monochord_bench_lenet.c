/* monochord_bench_lenet.c: the suite lenet: a training step of LeNet, batch 500, as the layouts and solvers
 * that were compared from the first have it, an epoch of them on a GPU, and how long it takes until there is
 * one: the lines read, weights drawn, the function compiled.
 *
 * Invariant: every case is the same network from the same initial values on the same pictures; only how its
 * convolutions are said and chosen differs. */
#include "bench.h"
#include <math.h>
#include <string.h>

enum { BATCH = 500, EPOCH = 50000 };

#define TAIL "dense 500 tanh\ndense 10 softmax\nrule momentum rate=0.05 momentum=0.9\n"
#define PLAIN "input 1x28x28\nconv 32 5x5 tanh\npool 2x2\nconv 64 5x5 tanh\npool 2x2\n" TAIL
static const struct lenet_case {
    const char *name, *model, *algo, *plan; /* algo: the solver asked for, or auto */
} cases[] = {
    { "step", PLAIN, "auto", "measure" }, /* the planner's choice */
    /* plain convolution: windows as columns of a product */
    { "step, estimated", PLAIN, "auto", "estimate" },
    { "step, products", PLAIN, "im2col", "estimate" },
    { "step, shuffled",
      "input 1x28x28\nconv_cc 32 5x5 tanh\npool_cc 2\nconv_cc 64 5x5 tanh\npool_cc 2\n" TAIL, "auto",
      "measure" },
    { "step, c01b",
      "input 1x28x28\nbc01_to_c01b\nconv_cc 32 5x5 tanh dimshuffle=false\npool_cc 2 dimshuffle=false\n"
      "conv_cc 64 5x5 tanh dimshuffle=false\npool_cc 2 dimshuffle=false\nc01b_to_bc01\n" TAIL,
      "auto", "measure" },
};
static const char *const directions[] = { "conv.algo_fwd", "conv.algo_bwd_data", "conv.algo_bwd_filter" };

/* ---- errors ---- */

/* The same net from the same values on the same pictures, all in float64, by the processor. */
static bool begin_truth(struct bench_net *truth, const struct bench_net *s, const char *model)
{
    char device[32];
    mc_param p;
    snprintf(device, sizeof device, "%s", mc_flag_get("device"));
    mc_flag_set("floatX", "float64");
    mc_flag_set("device", "cpu");
    bool good = bench_net_begin(truth, "lenet", model, BATCH);
    mc_flag_set("floatX", "float32");
    mc_flag_set("device", device);
    mc_array *x = good ? mc_array_cast(s->b.in[0], MC_FLOAT64) : NULL;
    if (x) {
        mc_array_unref(&truth->b.in[0]);
        truth->b.in[0] = x;
    }
    for (int i = 0; x && (p = mc_net_param(s->net, NULL, i)).name; i++) {
        mc_array *narrow = must(mc_shared_get(p.shared)), *wide = must(mc_array_cast(narrow, MC_FLOAT64));
        good = good && mc_shared_set(mc_net_param(truth->net, NULL, i).shared, wide) == MC_OK;
        mc_array_unref(&narrow);
        mc_array_unref(&wide);
    }
    return good && x;
}

/* Adds squares of differences and of b's numbers. */
static void compare(mc_shared *a, mc_shared *b, double sum[2])
{
    mc_array *narrow = must(mc_shared_get(a)), *x = must(mc_array_cast(narrow, MC_FLOAT64)),
             *y = must(mc_shared_get(b));
    const double *u = mc_array_data(x), *v = mc_array_data(y);
    for (int64_t i = 0; i < mc_array_size(y); i++) {
        sum[0] += (u[i] - v[i]) * (u[i] - v[i]);
        sum[1] += v[i] * v[i];
    }
    mc_array_unref(&narrow);
    mc_array_unref(&x);
    mc_array_unref(&y);
}

/* Of all gradients together: after one step the rule's memory is they, times the rate. */
static double error_of(const char *model)
{
    struct bench_net s = { 0 }, truth = { 0 };
    double sum[2] = { 0 };
    mc_param p;
    bool good = bench_net_begin(&s, "lenet", model, BATCH) && begin_truth(&truth, &s, model) &&
                bench_call(&s.b) && bench_call(&truth.b);
    for (int i = 0; good && (p = mc_net_param(s.net, "state", i)).name; i++) {
        size_t n = strlen(p.name);
        if (n > 2 && strcmp(p.name + n - 2, "_v") == 0) {
            compare(p.shared, mc_net_param(truth.net, "state", i).shared, sum);
        }
    }
    bench_net_end(&s);
    bench_net_end(&truth);
    return sum[1] > 0 ? sqrt(sum[0] / sum[1]) : NAN;
}

/* ---- memory ---- */

/* A line of /proc/self/status in MiB: VmRSS, what this process has in memory; VmHWM, the most it had.  0: not
 * told. */
static double resident(const char *name)
{
    char line[256];
    double kib = 0;
    FILE *from = fopen("/proc/self/status", "r");
    while (from && fgets(line, sizeof line, from)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            sscanf(line + strlen(name), ": %lf", &kib);
        }
    }
    if (from) {
        fclose(from);
    }
    return kib / 1024;
}

/* The peak is forgotten: from now on. */
static bool forget_peak(void)
{
    FILE *to = fopen("/proc/self/clear_refs", "w");
    bool good = to && fputs("5", to) >= 0;
    return to && fclose(to) == 0 && good;
}

/* On a GPU what the function and its net hold there: intermediate values with workspaces, variables, a
 * batch. */
static double far_memory(const struct bench_net *s)
{
    static const char *const tags[] = { NULL, "state" };
    double bytes = (double)mc_function_memory(s->b.f) + (BATCH * 28. * 28 + BATCH) * 4;
    for (int t = 0; t < COUNT(tags); t++) {
        bytes += 4. * (double)mc_net_count(s->net, tags[t]);
    }
    return bytes / (1 << 20);
}

/* Of a step after the first; MiB stand where other rows have milliseconds. */
static bool memory(void)
{
    struct bench_net s = { 0 };
    struct result r = { "lenet", "step, MiB of memory", "train", "float32", "auto", .error = -1 };
    double before = resident("VmRSS"), most = 0;
    mc_flag_set("plan", "measure");
    bool good = bench_net_begin(&s, "lenet", PLAIN, BATCH) && bench_call(&s.b) && bench_call(&s.b),
         told = good && forget_peak();
    good = good && bench_call(&s.b) && bench_call(&s.b);
    most = !good ? 0 : bench_far() ? far_memory(&s) : told ? resident("VmHWM") - before : 0;
    if (most > 0) {
        r.time = (struct timing){ most * 1e-3, most * 1e-3, most * 1e-3, 1 };
        bench_report(&r);
    }
    bench_net_end(&s);
    return good || bench_fail(r.name);
}

/* ---- steps ---- */

static bool run(const struct lenet_case *c)
{
    struct bench_net s = { 0 };
    struct result r = { "lenet", c->name, "train", "float32", c->algo };
    if (!bench_wanted(c->name, "train")) {
        return true;
    }
    for (int i = 0; i < COUNT(directions); i++) {
        mc_flag_set(directions[i], c->algo);
    }
    mc_flag_set("plan", c->plan);
    r.error = error_of(c->model);
    bool good = r.error < 1e-3 && bench_net_begin(&s, "lenet", c->model, BATCH) && bench_call(&s.b) &&
                (r.time = time_calls(bench_call, &s.b, 2)).calls > 0;
    if (good) {
        r.flops = bench_net_flops(&s, BATCH);
        bench_report(&r);
        bench_net_profile(&s);
    } else {
        bench_fail(c->name);
    }
    bench_net_end(&s);
    return good;
}

/* ---- an epoch ---- */

struct epochs {
    struct bench_net *s;
    mc_batches *batches;
    int64_t n; /* begun */
};

/* As `monochord train` does it: another order each time, and only sums come home, at the end. */
static bool epoch(void *arg)
{
    struct epochs *e = arg;
    const mc_array *x, *t;
    double sums[2];
    int more;
    mc_batches_start(e->batches, e->n++, 0);
    while ((more = mc_batches_next(e->batches, &x, &t)) == 1) {
        if (mc_call(e->s->b.f, MC_IN(x, t), MC_NONE) < 0) {
            return false;
        }
    }
    return more == 0 && mc_net_sums(e->s->net, sums) == MC_OK && isfinite(sums[0]);
}

/* Of pictures of noise, which stay on the GPU. */
static bool epochs(void)
{
    struct bench_net s = { 0 };
    struct result r = { "lenet", "epoch of 50,000", "train", "float32", "auto", .error = -1 };
    mc_flag_set("plan", "measure");
    mc_flag_set("cuda.beside", "True");
    bool good = bench_net_make(&s, "lenet", PLAIN);
    mc_function_free(s.b.f);
    s.b.f = good ? mc_net_learner(s.net) : NULL;
    uint64_t state = 1;
    mc_array *x = must(mc_array_new(MC_FLOAT32, MC_SHAPE(EPOCH, 1, 28, 28))),
             *t = must(mc_array_new(MC_INT32, MC_SHAPE(EPOCH)));
    random_fill(x, &state, 1);
    random_fill(t, &state, 10);
    mc_data *d = must(mc_data_new(x, t, 10));
    struct epochs e = {
        &s, mc_batches_new(d, &(mc_batch_spec){ .size = BATCH, .shuffle = 1, .seed = 1, .resident = 1 }), 0
    };
    good = s.b.f && e.batches && epoch(&e) && (r.time = time_calls(epoch, &e, 2)).calls > 0;
    if (good) {
        r.flops = EPOCH / BATCH * bench_net_flops(&s, BATCH);
        bench_report(&r);
    }
    mc_batches_free(e.batches);
    mc_data_free(d);
    mc_array_unref(&x);
    mc_array_unref(&t);
    mc_flag_set("cuda.beside", "auto");
    bench_net_end(&s);
    return good || bench_fail(r.name);
}

int bench_lenet_child(void)
{
    struct bench_net s = { 0 };
    mc_flag_set("floatX", "float32");
    double device = bench_start_device(), start = seconds_now();
    bool good = bench_net_make(&s, "lenet", PLAIN);
    double made = seconds_now();
    good = good && bench_net_batch(&s, BATCH) && bench_call(&s.b);
    double called = seconds_now();
    good ? printf("%.6f %.6f %.6f %.6f\n", (called - start) * 1e3, (made - start) * 1e3, s.compiling * 1e3,
                  device)
         : complain_library("lenet");
    bench_net_end(&s);
    return !good;
}

bool bench_lenet(const char *suite)
{
    mc_flag_set("floatX", "float32");
    bool good = !bench_wanted("step, MiB of memory", "train") ||
                memory(); /* first: nothing else has been here */
    for (int i = 0; i < COUNT(cases); i++) {
        good = run(&cases[i]) && good;
    }
    good = (!bench_far() || !bench_wanted("epoch of 50,000", "train") || epochs()) && good;
    return (!bench_wanted("cold", "") ||
            bench_children(suite, "lenet-child", bench_compiling, MOST_ROUNDS)) &&
           good;
}
