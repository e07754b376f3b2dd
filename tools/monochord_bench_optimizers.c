/* monochord_bench_optimizers.c: the suite optimizers: one step of an update rule for all parameters of a
 * network, with gradients that lie in memory.
 *
 * Invariant: a call does nothing but the step; memory bounds it, so what counts is bytes a second. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RATE_PERCENT = 1 };      /* the rate of all rules, in percent */
static const struct optimizer_case {
    const char *name, *model, *rule;
    int arrays;                 /* of each parameter's size that a step reads or writes */
    bool signs;                 /* the first step moves by the gradient's sign, not by the gradient */
} cases[] = {
    { "adam resnet-50", "resnet-50", "adam rate=0.01", 7, true },
    { "momentum resnet-50", "resnet-50", "momentum rate=0.01 momentum=0.9", 5 },
    { "sgd resnet-50", "resnet-50", "sgd rate=0.01", 3 },
};

struct optimizer {
    struct bench_function b;
    mc_net *net;
    mc_shared **param;
    mc_array **grad;
    mc_node **slope;            /* the gradients' nodes */
    int n;
    double elements;
};

static bool add_parameter(struct optimizer *o, mc_shared *w, uint64_t *state)
{
    char name[32];
    const mc_node *node = mc_shared_node(o->b.g, w);
    mc_array *g = must(mc_array_new(MC_FLOAT32, mc_node_rank(node), mc_node_dims(node)));
    random_fill(g, state, 1);
    float *at = mc_array_data(g);
    for (int64_t i = 0; i < mc_array_size(g); i++) { /* of both signs, and none near zero */
        at[i] = at[i] < 0.5f ? -0.1f - at[i] : at[i];
    }
    snprintf(name, sizeof name, "slope%d", o->n);
    mc_shared *s = mc_shared_new(o->b.g, name, g);
    o->param[o->n] = w;
    o->grad[o->n] = g;
    o->slope[o->n++] = mc_shared_node(o->b.g, s);
    o->elements += (double)mc_array_size(g);
    return s != NULL;
}

static bool make(struct optimizer *o, const struct optimizer_case *c)
{
    struct text model = { 0 };
    uint64_t state = 1;
    mc_param p;
    int n = 0;
    o->b.g = mc_graph_new();
    o->net = must(mc_net_new(o->b.g, NULL, 1));
    bool good = model_find(&model, c->model) && mc_net_read(o->net, c->model, model.s) >= 0;
    text_free(&model);
    while (good && mc_net_param(o->net, "trainable", n).name) {
        n++;
    }
    o->param = must(calloc((size_t)n + 1, sizeof *o->param));
    o->grad = must(calloc((size_t)n + 1, sizeof *o->grad));
    o->slope = must(calloc((size_t)n + 1, sizeof *o->slope));
    for (int i = 0; good && (p = mc_net_param(o->net, "trainable", i)).name; i++) {
        good = add_parameter(o, p.shared, &state);
    }
    const mc_updates u = good ? mc_rule_updates(o->b.g, NULL, c->rule, NULL, o->n, o->param, o->slope)
                              : (mc_updates){ 0 };
    o->b.f = good ? mc_compile(
                        o->b.g,
                        &(mc_spec){ .name = c->name, .update_of = u.of, .update = u.to, .nupdate = u.n })
                  : NULL;
    return o->b.f != NULL;
}

/* Of the first step: how far the change of all parameters is from the rule's, in float64. */
static double error_of(struct optimizer *o, const struct optimizer_case *c)
{
    double wrong = 0, all = 0;
    mc_array **before = must(calloc((size_t)o->n + 1, sizeof *before));
    for (int i = 0; i < o->n; i++) {
        before[i] = must(mc_shared_get(o->param[i]));
    }
    const bool good = bench_call(&o->b);
    for (int i = 0; i < o->n; i++) {
        mc_array *after = must(mc_shared_get(o->param[i]));
        const float *u = mc_array_data(before[i]), *v = mc_array_data(after), *g = mc_array_data(o->grad[i]);
        for (int64_t k = 0; k < mc_array_size(after); k++) {
            const double step = RATE_PERCENT / 100. * (c->signs ? copysign(1, (double)g[k]) : (double)g[k]),
                         want = (double)u[k] - step;
            wrong += ((double)v[k] - want) * ((double)v[k] - want);
            all += want * want;
        }
        mc_array_unref(&after);
        mc_array_unref(&before[i]);
    }
    free(before);
    return good ? sqrt(wrong / all) : -1;
}

static void end(struct optimizer *o)
{
    for (int i = 0; i < o->n; i++) {
        mc_array_unref(&o->grad[i]);
    }
    free(o->param);
    free(o->grad);
    free(o->slope);
    mc_net_free(o->net);
    bench_free(&o->b);
}

bool bench_optimizers(const char *suite)
{
    bool good = true;
    mc_flag_set("floatX", "float32");
    for (int i = 0; i < COUNT(cases); i++) {
        const struct optimizer_case *c = &cases[i];
        struct optimizer o = { 0 };
        struct result r = { suite, c->name, "", "float32", "", .error = -1 };
        if (!bench_wanted(c->name, "")) {
            continue;
        }
        bool done = make(&o, c) && (r.error = error_of(&o, c)) >= 0 &&
                    (r.time = time_calls(bench_call, &o.b, bench_seconds())).calls > 0;
        if (done) {
            r.bytes = c->arrays * 4. * o.elements;
            bench_report(&r);
        } else {
            bench_fail(c->name);
        }
        end(&o);
        good = good && done;
    }
    return good;
}
