/* monochord_bench_export.c: the suite export: models as C files, compiled by cc, beside the library; bundles,
 * loaded by new processes.
 * Both run on one thread.
 *
 * Invariant: both are timed on the same inputs and parameters, and the error is between their results. */
#include "bench.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Depthwise and pointwise convolutions in turn, as MobileNet has them. */
static const char mobile[] =
    "input 3x224x224\nconv 32 3x3 stride=2 pad=1 W=he_normal\n"
    "conv 32 3x3 groups=32 pad=1 W=he_normal\nconv 64 1x1 W=he_normal\nconv 64 3x3 groups=64 stride=2 pad=1 W=he_normal\nconv 128 1x1 W=he_normal\n"
    "conv 128 3x3 groups=128 pad=1 W=he_normal\nconv 128 1x1 W=he_normal\nconv 128 3x3 groups=128 stride=2 pad=1 W=he_normal\nconv 256 1x1 W=he_normal\n"
    "conv 256 3x3 groups=256 pad=1 W=he_normal\nconv 256 1x1 W=he_normal\nconv 256 3x3 groups=256 stride=2 pad=1 W=he_normal\nconv 512 1x1 W=he_normal\n"
    "conv 512 3x3 groups=512 pad=1 W=he_normal\nconv 512 1x1 W=he_normal\nconv 512 3x3 groups=512 stride=2 pad=1 W=he_normal\nconv 1024 1x1 W=he_normal\n"
    "global_pool\ndense 1000 softmax\n";
static const struct export_case {
    const char *name, *model, *text; /* text: of a model that does not come along */
    int64_t batch;
    bool train;
} cases[] = {
    { "lenet b1",     "lenet",     NULL,   1 },
    { "lenet b32",    "lenet",     NULL,   32 },
    { "mlp b1",       "mlp",       NULL,   1 },
    { "mobile b1",    "mobile",    mobile, 1 },
    { "resnet-50 b1", "resnet-50", NULL,   1 },
    { "lenet b32",    "lenet",     NULL,   32,  true },
    { "lenet b500",   "lenet",     NULL,   500, true },
};

typedef int predict(const void *model, void *memory, const void *x, float *y);
typedef int step(void *model, void *memory, const void *x, const void *t, float *cost, float *wrong);
/* An exported file that was compiled and opened. */
struct opened {
    void *library, *model;
    predict *predict;
    step *step;
    const mc_array *const *in;
    float *y, wrong;
};

static bool call_exported(void *arg)
{
    struct opened *o = arg;
    return (o->step
                ? o->step(o->model, NULL, mc_array_data(o->in[0]), mc_array_data(o->in[1]), o->y, &o->wrong)
                : o->predict(o->model, NULL, mc_array_data(o->in[0]), o->y)) == 0;
}

static bool run_shell(const char *command)
{
    return system(command) == 0 || (complain("export: this failed: %s", command), false);
}

/* KiB of code and constants of the compiled file, without parameters; negative: complained. */
static double code_kib(const char *folder)
{
    struct text command = { 0 };
    double bytes = -1024;
    text_addf(&command, "cc -O3 -march=native -c '%s/net.c' -o '%s/net.o' && size '%s/net.o' | tail -n 1",
              folder, folder, folder);
    FILE *f = popen(command.s, "r");
    if (!f || fscanf(f, "%lf", &bytes) != 1) {
        complain("export: this failed: %s", command.s);
    }
    if (f) {
        pclose(f);
    }
    text_free(&command);
    return bytes / 1024;
}

/* KiB stand where other rows have milliseconds. */
static void report_code(const char *suite, const struct export_case *c, const char *folder)
{
    struct text name = { 0 };
    struct result r = { suite, NULL, c->train ? "train" : "predict", "float32", "exported", .error = -1 };
    const double kib = code_kib(folder) * 1e-3;
    text_addf(&name, "%s, KiB of code", c->name);
    r.name = name.s;
    r.time = (struct timing){ kib, kib, kib, 1 };
    if (kib > 0) {
        bench_report(&r);
    }
    text_free(&name);
}

/* Exports f, compiles it and loads its parameters.  False: complained. */
static bool open_export(struct opened *o, mc_function *f, const char *name, const char *shapes,
                        const char *folder)
{
    struct text c = { 0 }, bin = { 0 }, command = { 0 }, so = { 0 };
    char *bytes = NULL;
    size_t n = 0;
    text_addf(&c, "%s/net.c", folder);
    text_addf(&bin, "%s/net.bin", folder);
    text_addf(&so, "%s/net.so", folder);
    text_addf(&command, "cc -O3 -march=native -shared -fPIC '%s' -o '%s' -lm", c.s, so.s);
    const mc_export_function one = { f, name, shapes };
    const mc_export_spec spec = { .path = c.s, .nfunction = 1, .function = &one, .parameters = bin.s };
    bool good = (mc_export(&spec) == MC_OK && mc_file_read(bin.s, &bytes, &n) == MC_OK) ||
                (complain_library("export"), false);
    good = good && run_shell(command.s);
    o->library = good ? dlopen(so.s, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*load)(void *, const void *, size_t) = NULL;
    if (o->library) {
        void *at = dlsym(o->library, "net_load"),
             *fn = dlsym(o->library, strcmp(name, "train") == 0 ? "net_train" : "net_predict");
        memcpy(&load, &at, sizeof load);
        memcpy(strcmp(name, "train") == 0 ? (void *)&o->step : (void *)&o->predict, &fn, sizeof fn);
    }
    o->model = aligned_alloc(64, (n + 4096 + 63) / 64 * 64);
    good = good && load && (o->step || o->predict) && o->model && load(o->model, bytes, n) == 0;
    mc_free(bytes);
    text_free(&c);
    text_free(&bin);
    text_free(&command);
    text_free(&so);
    return good;
}

static void close_export(struct opened *o)
{
    if (o->library) {
        dlclose(o->library);
    }
    free(o->model);
    free(o->y);
}

/* The greatest difference, of the greatest element. */
static double error_of(const struct opened *o, const mc_array *want)
{
    double most = 0, size = 0;
    mc_array *plain = must(mc_array_copy(want));
    const float *w = mc_array_data(plain);
    for (int64_t i = 0; i < mc_array_size(plain); i++) {
        most = fmax(most, fabs((double)w[i] - (double)o->y[i]));
        size = fmax(size, fabs((double)w[i]));
    }
    mc_array_unref(&plain);
    return size > 0 ? most / size : most;
}

static bool run(const char *suite, const struct export_case *c, const char *folder)
{
    struct text model = { 0 }, shapes = { 0 }, name = { 0 };
    struct bench_net s = { 0 };
    struct opened o = { 0 };
    bool good = c->text ? (text_addf(&model, "%s", c->text), true) : model_find(&model, c->model);
    good = good && bench_net_begin(&s, c->model, model.s, c->batch);
    if (good && !c->train) {
        mc_function_free(s.b.f);
        s.b.f = mc_net_predictor(s.net);
        s.b.nin = s.b.nout = 1;
        good = s.b.f != NULL;
    }
    if (good) {
        const int64_t *dims = mc_array_dims(s.b.in[0]);
        text_addf(&shapes, "%s[", mc_layer_name(mc_net_layer(s.net, 0)));
        for (int a = 0; a < mc_array_rank(s.b.in[0]); a++) {
            text_addf(&shapes, a ? ", %lld" : "%lld", (long long)dims[a]);
        }
        text_addf(&shapes, c->train ? "], %s[%lld]" : "]", c->train ? mc_node_name(mc_net_target(s.net)) : "",
                  (long long)c->batch);
        good = open_export(&o, s.b.f, c->train ? "train" : "predict", shapes.s, folder) && bench_call(&s.b);
    }
    if (good) {
        const mc_array *const in[] = { s.b.in[0], s.b.in[1] };
        o.in = in;
        o.y = calloc((size_t)mc_array_size(s.b.out[0]) + 64, sizeof *o.y);
        good = o.y && call_exported(&o);
        const double error = good ? error_of(&o, s.b.out[0]) : -1;
        struct result r = { suite,     c->name,    c->train ? "train" : "predict",
                            "float32", "exported", .error = error };
        r.time = time_calls(call_exported, &o, 1);
        bench_report(&r);
        text_addf(&name, "library %s", c->name);
        r.name = name.s, r.algo = "auto", r.error = -1;
        r.time = time_calls(bench_call, &s.b, 1);
        bench_report(&r);
        if (strncmp(c->name, "lenet", 5) == 0) {
            report_code(suite, c, folder);
        }
    } else {
        bench_fail(c->name);
    }
    close_export(&o);
    text_free(&model);
    text_free(&shapes);
    text_free(&name);
    bench_net_end(&s);
    return good;
}

/* ---- loading ---- */

/* Seconds that a new process takes to load a bundle, as it says; negative: it could not. */
static double load_once(const char *path)
{
    struct text command = { 0 };
    double ms = -1e3;
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    text_addf(&command, "'%s' info '%s'", self, path);
    FILE *f = popen(command.s, "r");
    if (f) {
        if (fscanf(f, "%*d functions, loaded in %lf ms", &ms) != 1) {
            ms = -1e3;
        }
        pclose(f);
    }
    text_free(&command);
    return ms * 1e-3;
}

static bool time_load(const char *suite, const char *name, const char *folder)
{
    enum { TIMES = 11 };
    double seconds[TIMES];
    struct text model = { 0 }, path = { 0 };
    struct bench_net s = { 0 };
    text_addf(&path, "%s/%s.mcf", folder, name);
    bool good = model_find(&model, name) && bench_net_begin(&s, name, model.s, 1);
    mc_function *f = good ? mc_net_predictor(s.net) : NULL;
    good = f && mc_function_save(f, path.s) == MC_OK;
    for (int i = 0; i < TIMES && good; i++) {
        seconds[i] = load_once(path.s);
        good = seconds[i] >= 0;
    }
    if (good) {
        struct result r = { suite, name, "load", "float32", "bundle", .error = -1 };
        r.time = time_summary(seconds, TIMES);
        bench_report(&r);
    } else {
        bench_fail(name);
    }
    mc_function_free(f);
    text_free(&model);
    text_free(&path);
    bench_net_end(&s);
    return good;
}

bool bench_export(const char *suite)
{
    static const char *const loaded[] = { "lenet", "resnet-50" };
    char folder[] = "/tmp/monochord-export-XXXXXX", command[128];
    bool good = mkdtemp(folder) != NULL || (complain("export: no temporary folder"), false);
    mc_flag_set("floatX", "float32");
    mc_flag_set("threads", "1");
    for (int i = 0; i < COUNT(cases) && good; i++) {
        if (bench_wanted(cases[i].name, cases[i].train ? "train" : "predict")) {
            good = run(suite, &cases[i], folder);
        }
    }
    for (int i = 0; i < COUNT(loaded) && good; i++) {
        good = !bench_wanted(loaded[i], "load") || time_load(suite, loaded[i], folder);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return run_shell(command) && good;
}
