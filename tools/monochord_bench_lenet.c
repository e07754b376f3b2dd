/* monochord_bench_lenet.c: the suite lenet: a training step of LeNet, batch 500, as the layouts and solvers that were
 * compared from the first have it, and how long it takes until there is one: the lines read, weights drawn, the function compiled.
 *
 * Invariant: every case is the same network from the same initial values on the same pictures; only how its convolutions
 * are said and chosen differs. */
#include "bench.h"
#include <math.h>

enum { BATCH = 500, CLASSES = 10 };

#define TAIL "dense 500 tanh\ndense 10 softmax\nrule momentum rate=0.05 momentum=0.9\n"
#define PLAIN "input 1x28x28\nconv 32 5x5 tanh\npool 2x2\nconv 64 5x5 tanh\npool 2x2\n" TAIL
static const struct lenet_case {
    const char *name, *model, *algo, *plan; /* algo: the solver asked for, or auto */
} cases[] = {
    { "step",           PLAIN, "auto",   "measure" }, /* the planner's choice */
    { "step, estimated", PLAIN, "auto",  "estimate" },
    { "step, products", PLAIN, "im2col", "estimate" }, /* plain convolution: windows as columns of a product */
    { "step, shuffled",
      "input 1x28x28\nconv_cc 32 5x5 tanh\npool_cc 2\nconv_cc 64 5x5 tanh\npool_cc 2\n" TAIL, "auto", "measure" },
    { "step, c01b",
      "input 1x28x28\nbc01_to_c01b\nconv_cc 32 5x5 tanh dimshuffle=false\npool_cc 2 dimshuffle=false\n"
      "conv_cc 64 5x5 tanh dimshuffle=false\npool_cc 2 dimshuffle=false\nc01b_to_bc01\n" TAIL, "auto", "measure" },
};
static const char *const directions[] = { "conv.algo_fwd", "conv.algo_bwd_data", "conv.algo_bwd_filter" };

/* Of the cost of the first step. */
static double first_cost(const char *model)
{
    struct bench_net s = { 0 };
    double cost = bench_net_begin(&s, "lenet", model, BATCH) && bench_call(&s.b) ? mc_array_get(s.b.out[0], NULL) : NAN;
    bench_net_end(&s);
    return cost;
}

static bool run(const struct lenet_case *c)
{
    struct bench_net s = { 0 };
    struct result r = { "lenet", c->name, "train", "float32", c->algo, .error = -1 };
    if (!bench_wanted(c->name, "train")) {
        return true;
    }
    for (int i = 0; i < COUNT(directions); i++) {
        mc_flag_set(directions[i], c->algo);
    }
    mc_flag_set("plan", c->plan);
    double wrong = fabs(first_cost(c->model) / log(CLASSES) - 1); /* it knows nothing yet: the logarithm of the classes */
    bool good = wrong < 0.1 && bench_net_begin(&s, "lenet", c->model, BATCH) && bench_call(&s.b) && (r.time = time_calls(bench_call, &s.b, 2)).calls > 0;
    if (good) {
        r.flops = bench_net_flops(&s, BATCH);
        bench_report(&r);
    } else {
        bench_fail(c->name);
    }
    bench_net_end(&s);
    return good;
}

int bench_lenet_child(void)
{
    struct bench_net s = { 0 };
    mc_flag_set("floatX", "float32");
    double start = seconds_now();
    bool good = bench_net_begin(&s, "lenet", PLAIN, BATCH);
    double compiled = seconds_now();
    good = good && bench_call(&s.b);
    double called = seconds_now();
    good ? printf("%.6f %.6f\n", (called - start) * 1e3, (compiled - start) * 1e3) : complain_library("lenet");
    bench_net_end(&s);
    return !good;
}

bool bench_lenet(const char *suite)
{
    bool good = true;
    mc_flag_set("floatX", "float32");
    for (int i = 0; i < COUNT(cases); i++) {
        good = run(&cases[i]) && good;
    }
    return (!bench_wanted("cold", "") || bench_children(suite, "lenet-child")) && good;
}
