/* monochord_bench_inference.c: the suite inference: predictors of the models that come along, on pictures of
 * noise, with solvers chosen by timing.
 *
 * Invariant: a case is timed after two calls, so that filters and weights that stay are prepared. */
#include "bench.h"

static const struct inference_case { const char *name, *model; int64_t batch; } cases[] = {
    { "alexnet b1",       "alexnet",      1 },
    { "alexnet b16",      "alexnet",      16 },
    { "vgg-a b1",         "vgg-a",        1 },
    { "vgg-a b16",        "vgg-a",        16 },
    { "resnet-50 b1",     "resnet-50",    1 },
    { "resnet-50 b16",    "resnet-50",    16 },
    { "mobilenet-v2 b1",  "mobilenet-v2", 1 },
    { "mobilenet-v2 b16", "mobilenet-v2", 16 },
    { "convnext-t b1",    "convnext-t",   1 },
    { "convnext-t b16",   "convnext-t",   16 },
    { "regnet-y b1",      "regnet-y",     1 },
    { "regnet-y b16",     "regnet-y",     16 },
    { "u-net b1",         "u-net",        1 },
    { "u-net b4",         "u-net",        4 },
};

static const struct mode { const char *name; bool far; } modes[] = { { "float32" }, { "bfloat16", true } };

static bool run(const char *suite, const struct inference_case *c, const char *mode)
{
    struct text model = { 0 };
    struct bench_net s = { 0 };
    struct result r = { suite, c->name, "predict", mode, "auto", .error = -1 };
    mc_flag_set("floatX", mode);
    bool good = model_find(&model, c->model) && bench_net_begin(&s, c->model, model.s, c->batch);
    if (good) {
        mc_function_free(s.b.f);
        s.b.f = mc_net_predictor(s.net);
        s.b.nin = s.b.nout = 1;
        good = s.b.f && bench_call(&s.b) && bench_call(&s.b) &&
               (r.time = time_calls(bench_call, &s.b, 1)).calls > 0;
    }
    text_free(&model);
    return bench_net_report(&s, &r, good);
}

bool bench_inference(const char *suite)
{
    bool good = true;
    mc_flag_set("plan", "measure");
    for (int i = 0; i < COUNT(cases) * COUNT(modes); i++) {
        const struct inference_case *c = &cases[i / COUNT(modes)];
        const struct mode *m = &modes[i % COUNT(modes)];
        if ((bench_far() || !m->far) && bench_wanted(c->name, "predict")) {
            good = run(suite, c, m->name) && good;
        }
    }
    return good;
}
