/* monochord_bench_compile.c: what compiling takes, and a step of what was compiled: logistic regression.
 *
 * Cold and warm are measured in processes of their own, on a cache folder of their own: cold is a fresh
 * folder, warm the same folder again.  Invariant: those folders are gone afterwards. */
#include "bench.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 600, PIXELS = 784, CLASSES = 10, ROUNDS = MOST_ROUNDS };

/* ---- the function ---- */

static mc_function *logistic(mc_graph *g)
{
    mc_formula(g,
               "input x float32[?, 784]; input t int32[?]; shared W float32[784, 10]; shared b float32[10]");
    mc_formula(g, "p = softmax(dot(x, W) + b); cost = mean(crossentropy_1hot(p, t))");
    return mc_compile(g, &(mc_spec){ .name = "logistic",
                                     .inputs = "x, t",
                                     .outputs = "cost",
                                     .updates = "W = W - 0.1 * grad(cost, W); b = b - 0.1 * grad(cost, b)" });
}

static void make_data(struct bench_function *b, int64_t batch)
{
    uint64_t state = 1;
    b->in[0] = must(mc_array_new(MC_FLOAT32, MC_SHAPE(batch, PIXELS)));
    b->in[1] = must(mc_array_new(MC_INT32, MC_SHAPE(batch)));
    b->nin = 2;
    b->nout = 1;
    random_fill(b->in[0], &state, 1);
    random_fill(b->in[1], &state, CLASSES);
}

/* The cost after one step from zero, in float64: what the second call returns. */
static double second_cost(const struct bench_function *b)
{
    const float *x = mc_array_data(b->in[0]);
    const int32_t *t = mc_array_data(b->in[1]);
    double *W = must(calloc(PIXELS * CLASSES, sizeof *W)), bias[CLASSES] = { 0 }, cost = 0;
    for (int i = 0; i < BATCH; i++) {
        for (int c = 0; c < CLASSES; c++) {
            double d = 0.1 / BATCH * ((t[i] == c) - 0.1);
            bias[c] += d;
            for (int k = 0; k < PIXELS; k++) {
                W[k * CLASSES + c] += d * x[i * PIXELS + k];
            }
        }
    }
    for (int i = 0; i < BATCH; i++) {
        double z[CLASSES], sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            z[c] = bias[c];
            for (int k = 0; k < PIXELS; k++) {
                z[c] += W[k * CLASSES + c] * x[i * PIXELS + k];
            }
            sum += exp(z[c]);
        }
        cost += (log(sum) - z[t[i]]) / BATCH;
    }
    free(W);
    return cost;
}

bool bench_logreg(const char *suite)
{
    struct bench_function b = { .g = must(mc_graph_new()) };
    struct result r = { suite,   "step 600x784x10",
                        "train", "float32",
                        "",      .flops = 4. * BATCH * PIXELS * CLASSES };
    make_data(&b, BATCH);
    b.f = logistic(b.g);
    bool good = b.f && bench_call(&b) && bench_call(&b);
    if (good) {
        double want = second_cost(&b);
        r.error = fabs(mc_array_get(b.out[0], NULL) - want) / want;
        r.time = time_calls(bench_call, &b, 1);
        bench_report(&r);
    } else {
        bench_fail(r.name);
    }
    bench_free(&b);
    return good;
}

/* ---- in a process of its own ---- */

double bench_start_device(void)
{
    const char *device = mc_flag_get("device");
    double start = seconds_now();
    if (strcmp(device, "cpu") == 0) {
        return 0;
    }
    mc_array *here = must(mc_array_new(MC_FLOAT32, 0, NULL)), *there = mc_array_to(here, device);
    mc_array_unref(&here);
    mc_array_unref(&there);
    return (seconds_now() - start) * 1e3;
}

/* The graph is two formulas: what is made is as good as compiled alone. */
int bench_compile_child(void)
{
    struct bench_function b = { 0 };
    make_data(&b, BATCH);
    double device = bench_start_device(), start = seconds_now();
    b.g = must(mc_graph_new());
    b.f = logistic(b.g);
    double compiled = seconds_now();
    bool good = b.f && bench_call(&b);
    double called = seconds_now();
    good ? printf("%.6f %.6f %.6f %.6f\n", (called - start) * 1e3, (compiled - start) * 1e3,
                  (compiled - start) * 1e3, device)
         : complain_library("compile");
    bench_free(&b);
    return !good;
}

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            struct text name = { 0 };
            text_addf(&name, "%s/%s", path, e->d_name);
            if (unlink(name.s) != 0) {
                remove_folder(name.s);
            }
            text_free(&name);
        }
    }
    if (d) {
        closedir(d);
    }
    rmdir(path);
}

static bool run_child(const char *cache, const char *child, double ms[CHILD_TIMES])
{
    char self[4096];
    struct text command = { 0 };
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) {
        return complain("compile: cannot find this program") == 0;
    }
    self[n] = '\0';
    text_addf(&command, "XDG_CACHE_HOME='%s' '%s' bench %s", cache, self, child);
    FILE *from = popen(command.s, "r");
    bool good = from && fscanf(from, "%lf %lf %lf %lf", &ms[0], &ms[1], &ms[2], &ms[3]) == CHILD_TIMES;
    good = from && pclose(from) == 0 && good;
    text_free(&command);
    return good || complain("compile: the child failed") == 0;
}

static void report_times(const char *suite, const char *name, const char *algo, double *ms, int n)
{
    for (int i = 0; i < n; i++) {
        ms[i] *= 1e-3;
    }
    bench_report(
        &(struct result){ suite, name, "", "float32", algo, .time = time_summary(ms, n), .error = -1 });
}

const char *const bench_compiling[CHILD_TIMES] = { "first result", "made and compiled", "mc_compile alone", NULL };

bool bench_children(const char *suite, const char *child, const char *const what[CHILD_TIMES], int rounds)
{
    double ms[CHILD_TIMES], cold[CHILD_TIMES][MOST_ROUNDS], warm[CHILD_TIMES][MOST_ROUNDS];
    const char *tmp = getenv("TMPDIR");
    for (int i = 0; i < rounds; i++) {
        struct text cache = { 0 };
        text_addf(&cache, "%s/monochord-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        bool good = mkdtemp(cache.s) != NULL;
        memset(ms, 0, sizeof ms);
        for (int round = 0; round < 2; round++) {
            good = good && run_child(cache.s, child, ms);
            for (int k = 0; k < CHILD_TIMES; k++) {
                (round ? warm : cold)[k][i] = ms[k];
            }
        }
        remove_folder(cache.s);
        text_free(&cache);
        if (!good) {
            return false;
        }
    }
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < CHILD_TIMES && what[k]; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s, %s", round ? "warm" : "cold", what[k]);
            report_times(suite, name, "", (round ? warm : cold)[k], rounds);
        }
    }
    if (!what[CHILD_TIMES - 1] && warm[CHILD_TIMES - 1][0] > 0) {
        report_times(suite, "the device, before all that", "", warm[CHILD_TIMES - 1], rounds);
    }
    return true;
}

/* ---- in this process ---- */

/* First calls at sizes not seen before, less an ordinary call at that size. */
static bool new_sizes(const char *suite)
{
    struct bench_function b = { .g = must(mc_graph_new()) };
    double whole[ROUNDS], extra[ROUNDS];
    b.f = logistic(b.g);
    bool good = b.f != NULL;
    for (int i = -1; i < ROUNDS && good; i++) { /* the first call of all starts threads and gets memory */
        make_data(&b, BATCH - 1 - i);
        double start = seconds_now();
        good = bench_call(&b);
        double first = seconds_now() - start, least = 1;
        for (int k = 0; k < 20 && good; k++) {
            start = seconds_now();
            good = bench_call(&b);
            double again = seconds_now() - start;
            least = again < least ? again : least;
        }
        if (i >= 0) {
            whole[i] = first * 1e3;
            extra[i] = (first - least) * 1e3;
        }
        mc_array_unref(&b.in[0]);
        mc_array_unref(&b.in[1]);
    }
    if (good) {
        report_times(suite, "new batch size, that call", "", whole, ROUNDS);
        report_times(suite, "new batch size, planning", "", extra, ROUNDS);
    } else {
        bench_fail("new batch size");
    }
    bench_free(&b);
    return good;
}

/* A thousand little networks side by side: ten nodes each, with something to simplify in all of them. */
static mc_node *many_nodes(mc_graph *g, mc_node *x, int n)
{
    mc_node *sum = NULL;
    for (int i = 0; i < n / 10; i++) {
        mc_node *k = mc_number(g, MC_FLOAT32, 1 + i * 1e-3);
        mc_node *u = mc_mul(mc_add(x, k), mc_number(g, MC_FLOAT32, 1));
        mc_node *v = mc_log(mc_add(mc_number(g, MC_FLOAT32, 1), mc_sqr(mc_tanh(u))));
        mc_node *w = mc_sub(mc_exp(mc_neg(v)), mc_mul(v, mc_number(g, MC_FLOAT32, 0)));
        sum = sum ? mc_add(sum, w) : w;
    }
    return sum;
}

static mc_node *chain_of(mc_graph *g, mc_node *x, int n)
{
    mc_node *y = x;
    (void)g;
    for (int i = 0; i < n / 2; i++) {
        y = mc_tanh(mc_add(y, x));
    }
    return y;
}

static bool large_graph(const char *suite, const char *what,
                        mc_node *(*build)(mc_graph *g, mc_node *x, int n), int n, const char *mode,
                        bool rewriting)
{
    enum { TIMES = 3 };
    double whole[TIMES], rules[TIMES];
    bool good = true;
    for (int i = 0; i < TIMES && good; i++) {
        mc_graph *g = must(mc_graph_new());
        mc_node *x = mc_input(g, "x", MC_FLOAT32, 1), *y = build(g, x, n);
        double start = seconds_now();
        mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .output = &y, .noutput = 1, .mode = mode });
        whole[i] = (seconds_now() - start) * 1e3;
        rules[i] = mc_function_compile_info(f).rewrite_seconds * 1e3;
        good = f || bench_fail(what);
        mc_function_free(f);
        mc_graph_free(g);
    }
    if (good) {
        report_times(suite, what, mode, rewriting ? rules : whole, TIMES);
    }
    return good;
}

bool bench_compile(const char *suite)
{
    bool good = bench_children(suite, "compile-child", bench_compiling, ROUNDS);
    good = new_sizes(suite) && good;
    good = large_graph(suite, "rewriting 10000 nodes", many_nodes, 10000, "FAST_RUN", true) && good;
    good = large_graph(suite, "chain of 100000 nodes", chain_of, 100000, "FAST_COMPILE", false) && good;
    return good;
}
