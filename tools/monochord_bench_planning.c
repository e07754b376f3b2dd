/* monochord_bench_planning.c: the suite planning: what it takes to choose the solvers of a step of training, in processes of
 * their own: by measuring, with a fresh folder, and from the wisdom that this left.
 *
 * Invariant: only the choice is counted, with the memory plan beside it: neither compiling nor the step that follows. */
#include "bench.h"
#include <string.h>

/* In the order in which a child prints them; the last are per layer with weights. */
static const char *const what[CHILD_TIMES] = { "LeNet b500, all layers", "AlexNet b16, all layers", "AlexNet b16, a layer", NULL };
static const struct net { const char *name; int64_t batch; } nets[] = { { "lenet", 500 }, { "alexnet", 16 } };

static int layers_of(const struct bench_net *s)
{
    int n = 0;
    mc_param p;
    for (int i = 0; (p = mc_net_param(s->net, "regularizable", i)).name; i++) {
        n += mc_node_rank(mc_shared_node(s->b.g, p.shared)) > 1;
    }
    return n;
}

/* Milliseconds of planning; negative: failed. */
static double plan_one(const struct net *n, int *layers)
{
    struct bench_net s = { 0 };
    struct text model = { 0 };
    const bool good = model_find(&model, n->name) && bench_net_begin(&s, n->name, model.s, n->batch) && bench_call(&s.b);
    const double ms = good ? mc_function_compile_info(s.b.f).plan_seconds * 1e3 : -1;
    *layers = good ? layers_of(&s) : 0;
    text_free(&model);
    bench_net_end(&s);
    return ms;
}

int bench_planning_child(void)
{
    double ms[COUNT(nets)];
    int layers = 1;
    mc_flag_set("floatX", "float32");
    mc_flag_set("plan", "measure");
    for (int i = 0; i < COUNT(nets); i++) {
        ms[i] = plan_one(&nets[i], &layers);
        if (ms[i] < 0) {
            return complain_library("planning");
        }
    }
    printf("%.6f %.6f %.6f 0\n", ms[0], ms[1], ms[1] / layers);
    return 0;
}

bool bench_planning(const char *suite)
{
    return bench_children(suite, "planning-child", what, 1);
}
