/* t_joint.c: independent maps that run as one step, on any device: their values, their bits, and that there
 * is such a step. */
#include "check.h"
#include "exec/function.h"
#include "monochord_nn.h"

/* Shapes with every number of axes, and sizes that are and are not whole vectors and cache lines. */
static const struct { int rank; int64_t dims[4]; } shapes[] = {
    { 1, { 64 } },   { 2, { 40, 31 } },  { 4, { 5, 3, 7, 7 } }, { 1, { 1 } },    { 3, { 2, 1, 9 } },
    { 1, { 5000 } }, { 2, { 128, 64 } }, { 1, { 17 } },         { 1, { 8192 } }, { 4, { 2, 2, 2, 2 } },
};
enum { PARAMETERS = NELEM(shapes), STEPS = 3 };

static mc_array *filled(int i, double scale)
{
    mc_array *a = mc_array_new(MC_FLOAT32, shapes[i].rank, shapes[i].dims);
    float *at = mc_array_data(a);
    for (int64_t k = 0; k < mc_array_size(a); k++) {
        at[k] = (float)(scale * (double)((k * 37 + i * 11) % 101 - 50) / 50);
    }
    return a;
}

/* The parameters `from` to `to` after STEPS steps of the rule; *busy: steps of the program that do work. */
static void steps_of(const char *rule, int from, int to, mc_array **got, int *busy)
{
    mc_graph *g = mc_graph_new();
    mc_node *grad[PARAMETERS];
    mc_shared *w[PARAMETERS];
    const int n = to - from;
    for (int i = 0; i < n; i++) {
        char name[2][16];
        snprintf(name[0], sizeof name[0], "w%d", i);
        snprintf(name[1], sizeof name[1], "g%d", i);
        mc_array *value = filled(from + i, 1), *slope = filled(from + i, 0.25);
        w[i] = mc_shared_new(g, name[0], value);
        grad[i] = mc_shared_node(g, mc_shared_new(g, name[1], slope));
        mc_array_unref(&value);
        mc_array_unref(&slope);
    }
    mc_updates u = mc_rule_updates(g, NULL, rule, NULL, n, w, grad);
    mc_function *f = mc_compile(g, &(mc_spec){ .update_of = u.of, .update = u.to, .nupdate = u.n });
    REQUIRE(f, "%s: %s", rule, mc_error(g));
    for (int k = 0; k < STEPS; k++) {
        CHECK(mc_call(f, MC_NONE, MC_NONE) == MC_OK, "%s: %s", rule, mc_last_error());
    }
    *busy = 0;
    for (size_t i = 0; f->plans && i < f->code->program.step.n; i++) {
        *busy += f->plans->step[i].exec != NULL;
    }
    for (int i = 0; i < n; i++) {
        got[i] = mc_shared_get(w[i]);
    }
    mc_function_free(f);
    mc_graph_free(g);
}

/* The steps of an optimizer for all parameters are one step, with the bits of each parameter alone. */
TEST(an_optimizer_steps_all_parameters_at_once)
{
    static const char *const rules[] = { "sgd rate=0.1", "momentum rate=0.1", "nesterov rate=0.1", "adam",
                                         "rmsprop",      "adagrad",           "adamax",             "adamw" };
    enum { MOST_BUSY = 5 };       /* the joint step, and what follows from the number of steps */
    mc_flag_set("device", "cpu"); /* the tests' own device has no joint steps */
    for (size_t r = 0; r < NELEM(rules); r++) {
        mc_array *all[PARAMETERS] = { NULL };
        int busy = 0, alone;
        steps_of(rules[r], 0, PARAMETERS, all, &busy);
        CHECK(busy <= MOST_BUSY, "%s: %d steps do work", rules[r], busy);
        for (int i = 0; i < PARAMETERS; i++) {
            mc_array *one = NULL, *start = filled(i, 1);
            steps_of(rules[r], i, i + 1, &one, &alone);
            CHECK(all[i] && one && mc_array_differs(all[i], one, 0, 0) < 0, "%s: parameter %d differs",
                  rules[r], i);
            CHECK(one && mc_array_differs(one, start, 0, 0) >= 0, "%s: parameter %d is as it was", rules[r],
                  i);
            mc_array_unref(&start);
            mc_array_unref(&one);
            mc_array_unref(&all[i]);
        }
    }
}

/* Updates that read each other's variables use the old values, in whatever order the steps run. */
TEST(joint_maps_read_no_new_value)
{
    static const char *const updates[] = {
        "a = b + 1; b = a + c; c = a * 2",
        "a = a + 1; b = a * b; c = a - b",
        "c = c + 1; a = a + c; b = b + a",
    };
    for (size_t r = 0; r < NELEM(updates); r++) {
        mc_graph *g = mc_graph_new();
        double v[3] = { 1, 2, 3 };
        mc_shared *s[3];
        for (int i = 0; i < 3; i++) {
            const int64_t n = 1000;
            mc_array *value = mc_array_new(MC_FLOAT32, 1, &n);
            for (int64_t k = 0; k < n; k++) {
                ((float *)mc_array_data(value))[k] = (float)v[i];
            }
            s[i] = mc_shared_new(g, i == 0 ? "a" : i == 1 ? "b" : "c", value);
            mc_array_unref(&value);
        }
        mc_function *f = mc_compile(g, &(mc_spec){ .updates = updates[r] });
        REQUIRE(f, "%s", mc_error(g));
        for (int k = 0; k < 4; k++) {
            const double a = v[0], b = v[1], c = v[2];
            CHECK(mc_call(f, MC_NONE, MC_NONE) == MC_OK, "%s", mc_last_error());
            v[0] = r == 0 ? b + 1 : r == 1 ? a + 1 : a + c;
            v[1] = r == 0 ? a + c : r == 1 ? a * b : b + a;
            v[2] = r == 0 ? a * 2 : r == 1 ? a - b : c + 1;
        }
        for (int i = 0; i < 3; i++) {
            mc_array *got = mc_shared_get(s[i]);
            for (int64_t k = 0; k < 1000; k += 333) {
                CHECK(mc_array_get(got, &k) == v[i], "%s: variable %d is %g, not %g", updates[r], i,
                      mc_array_get(got, &k), v[i]);
            }
            mc_array_unref(&got);
        }
        mc_function_free(f);
        mc_graph_free(g);
    }
}

/* A call that lacks memory for the joint step changes nothing, and the next one is right. */
TEST(joint_maps_survive_every_failed_allocation)
{
    mc_flag_set("device", "cpu"); /* the tests' own device has no joint steps */
    mc_graph *g = mc_graph_new();
    mc_array *value = filled(5, 0);
    mc_shared *s[3] = { mc_shared_new(g, "a", value), mc_shared_new(g, "b", value),
                        mc_shared_new(g, "c", value) };
    mc_function *f = mc_compile(g, &(mc_spec){ .updates = "a = a + 1; b = b + 1; c = c + 1" });
    REQUIRE(f, "%s", mc_error(g));
    double calls = 0;
    ALLOC_FAIL_LOOP {
        const mc_status status = mc_call(f, MC_NONE, MC_NONE);
        calls += status == MC_OK;
        CHECK(status == MC_OK || ALLOC_FAILED, "an error, yet memory: %s", mc_last_error());
    }
    for (int i = 0; i < 3; i++) {
        mc_array *got = mc_shared_get(s[i]);
        const int64_t last = 4999;
        CHECK(calls > 0 && mc_array_get(got, &last) == calls, "%g after %g calls", mc_array_get(got, &last),
              calls);
        mc_array_unref(&got);
    }
    mc_array_unref(&value);
    mc_function_free(f);
    mc_graph_free(g);
}
