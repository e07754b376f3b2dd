/* monochord_bench_planning.c: the suite planning: what it takes to choose the solvers of a step of training,
 * in processes of their own: by measuring, with a fresh folder, and from the wisdom that this left.
 *
 * Invariant: only the choice is counted, with the memory plan beside it: neither compiling nor the step that
 * follows. */
#include "bench.h"
#include <string.h>

/* In the order in which a child prints them.  Who is first in a process opens the libraries, and has them
 * make what they run; again: another function of the same. */
static const char *const what[CHILD_TIMES] = { "LeNet b500", "LeNet b500 again", "AlexNet b16", "AlexNet b16 again" };
static const struct net { const char *name; int64_t batch; } nets[] = { { "lenet", 500 }, { "alexnet", 16 } };

/* Milliseconds of planning; negative: failed. */
static double plan_one(const struct net *n)
{
    struct bench_net s = { 0 };
    struct text model = { 0 };
    const bool good = model_find(&model, n->name) && bench_net_begin(&s, n->name, model.s, n->batch) &&
                      bench_call(&s.b);
    const double ms = good ? mc_function_compile_info(s.b.f).plan_seconds * 1e3 : -1;
    text_free(&model);
    bench_net_end(&s);
    return ms;
}

int bench_planning_child(void)
{
    double ms[CHILD_TIMES];
    mc_flag_set("floatX", "float32");
    mc_flag_set("plan", "measure");
    for (int i = 0; i < CHILD_TIMES; i++) {
        ms[i] = plan_one(&nets[i / 2]);
        if (ms[i] < 0) {
            return complain_library("planning");
        }
    }
    printf("%.6f %.6f %.6f %.6f\n", ms[0], ms[1], ms[2], ms[3]);
    return 0;
}

bool bench_planning(const char *suite)
{
    return bench_children(suite, "planning-child", what, 1);
}
