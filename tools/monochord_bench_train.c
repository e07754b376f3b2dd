/* monochord_bench_train.c: the suite nets-train: training steps of the models that come along, on pictures of
 * noise, in float32, with TF32 where a GPU may use it, and all in bfloat16; and what is shared with the suite
 * lenet: a net, its trainer, a batch.
 *
 * Invariant: a case is timed after a step whose cost is near that of a net that knows nothing, the logarithm
 * of the classes. */
#include "bench.h"
#include <math.h>
#include <string.h>

static const struct train_case {
    const char *name, *model;
    int64_t batch;
    bool far; /* too much for a processor */
} cases[] = {
    { "alexnet b128",     "alexnet",      128, true },
    { "vgg-a b64",        "vgg-a",        64,  true },
    { "resnet-50 b32",    "resnet-50",    32,  true },
    { "mobilenet-v2 b64", "mobilenet-v2", 64,  true },
    { "convnext-t b32",   "convnext-t",   32,  true },
    { "regnet-y b64",     "regnet-y",     64,  true },
    { "u-net b4",         "u-net",        4,   true },
    { "alexnet b2",       "alexnet",      2 },
    { "vgg-a b2",         "vgg-a",        2 },
    { "resnet-50 b2",     "resnet-50",    2 },
    { "mobilenet-v2 b2",  "mobilenet-v2", 2 },
    { "convnext-t b2",    "convnext-t",   2 },
    { "regnet-y b2",      "regnet-y",     2 },
    { "u-net b2",         "u-net",        2 },
};
static const struct mode {
    const char *name, *floatX, *conv, *gemm;
    bool far;
} modes[] = {
    { "float32",  "float32",  "as_input_f32", "float32" },
    { "tf32",     "float32",  "tf32",         "tf32",    true },
    { "bfloat16", "bfloat16", "as_input_f32", "float32", true },
};

/* ---- a net and its trainer ---- */

bool bench_net_make(struct bench_net *s, const char *name, const char *model)
{
    s->b = (struct bench_function){ .g = must(mc_graph_new()), .nin = 2, .nout = 2 };
    s->net = must(mc_net_new(s->b.g, NULL, 1));
    bool good = mc_net_read(s->net, name, model) >= 0;
    double start = seconds_now();
    s->b.f = good ? mc_net_trainer(s->net) : NULL;
    s->compiling = seconds_now() - start;
    return s->b.f != NULL;
}

bool bench_net_batch(struct bench_net *s, int64_t batch)
{
    uint64_t state = 1;
    int64_t dims[MC_MAX_RANK] = { 0 };
    const mc_layer *first = mc_net_layer(s->net, 0), *last = mc_net_layer(s->net, -1);
    memcpy(dims, mc_layer_dims(first), (size_t)mc_layer_rank(first) * sizeof *dims);
    dims[0] = batch;
    mc_array *x = must(
        mc_array_new(mc_node_dtype(mc_layer_node(first, MC_TRAINING)), mc_layer_rank(first), dims));
    random_fill(x, &state, 1);
    /* classes are its last axis, and each place before it has one */
    const int places = mc_layer_rank(last) - 1;
    memcpy(dims, mc_layer_dims(last), (size_t)places * sizeof *dims);
    dims[0] = batch;
    mc_array *t = must(mc_array_new(MC_INT32, places, dims));
    random_fill(t, &state, mc_layer_dims(last)[places]);
    s->b.in[0] = bench_place(x);
    s->b.in[1] = bench_place(t);
    return s->b.in[0] && s->b.in[1];
}

bool bench_net_begin(struct bench_net *s, const char *name, const char *model, int64_t batch)
{
    return bench_net_make(s, name, model) && bench_net_batch(s, batch);
}

void bench_net_end(struct bench_net *s)
{
    mc_net_free(s->net);
    s->net = NULL;
    bench_free(&s->b);
}

/* Two operations a weight and place of its layer, in each pass: forward, and both gradients but that of the
 * pictures. */
double bench_net_flops(const struct bench_net *s, int64_t batch)
{
    double all = 0;
    mc_param p;
    for (int i = 0; (p = mc_net_param(s->net, "regularizable", i)).name; i++) {
        const mc_node *w = mc_shared_node(s->b.g, p.shared);
        double one = 2. * (double)batch;
        for (int k = 0; k < mc_node_rank(w); k++) {
            one *= (double)mc_node_dims(w)[k];
        }
        const int64_t *dims = mc_layer_dims(p.layer);
        int rank = mc_layer_rank(p.layer);
        /* behind batch and channels, or between channels and batch */
        for (int k = dims[0] < 0 ? 2 : 1; k < rank && dims[k] > 0; k++) {
            one *= (double)dims[k];
        }
        all += mc_node_rank(w) > 1 ? one * (i ? 3 : 2) : 0;
    }
    return all;
}

void bench_net_profile(const struct bench_net *s)
{
    if (strcmp(mc_flag_get("profile"), "True") == 0) {
        mc_function_profile(s->b.f, stderr);
    }
}

bool bench_net_report(struct bench_net *s, const struct result *r, bool good)
{
    if (good) {
        bench_report(r);
        bench_net_profile(s);
    } else {
        bench_fail(r->name);
    }
    bench_net_end(s);
    return good;
}

/* ---- the suite ---- */

static bool run(const char *suite, const struct train_case *c, const struct mode *m)
{
    struct bench_net s = { 0 };
    struct text model = { 0 };
    struct result r = { suite, c->name, "train", m->name, "auto", .error = -1 };
    mc_flag_set("floatX", m->floatX);
    mc_flag_set("conv.precision", m->conv);
    mc_flag_set("gemm.precision", m->gemm);
    bool good = model_find(&model, c->model) && bench_net_begin(&s, c->model, model.s, c->batch) &&
                bench_call(&s.b);
    if (good) {
        mc_array *cost = mc_array_to(s.b.out[0], "cpu");
        double first = cost ? mc_array_get(cost, NULL) : NAN;
        mc_array_unref(&cost);
        const mc_layer *last = mc_net_layer(s.net, -1);
        double nothing = log((double)mc_layer_dims(last)[mc_layer_rank(last) - 1]);
        good = first > nothing / 7 && first < 100;
        good = good || mc_fail(MC_ECHECK, "the cost of the first step is %g", first) == MC_OK;
    }
    good = good && (r.time = time_calls(bench_call, &s.b, 1)).calls > 0;
    r.flops = good ? bench_net_flops(&s, c->batch) : 0;
    text_free(&model);
    return bench_net_report(&s, &r, good);
}

bool bench_train(const char *suite)
{
    bool good = true;
    mc_flag_set("plan", "measure");
    for (int i = 0; i < COUNT(cases); i++) {
        for (int m = 0; m < COUNT(modes); m++) {
            bool here = cases[i].far == bench_far() && (bench_far() || !modes[m].far);
            if (here && bench_wanted(cases[i].name, modes[m].name)) {
                good = run(suite, &cases[i], &modes[m]) && good;
            }
        }
    }
    return good;
}
