/* toy_family.h: a family whose solvers do nothing, for as long as they are told. */
#ifndef TOY_FAMILY_H
#define TOY_FAMILY_H

#include "check.h"
#include "plan/plan.h"
#include "spin.h"

struct toy {
    struct mc_problem base;
    int size;
};
static double quick_takes, slow_takes; /* seconds of a run */
static double first_takes;             /* seconds more of the next run of quick */
static int ran, slow_ran, verified, plans;
static bool wrong;

static mc_status run_quick(const struct mc_plan *p, void *const *operand, void *workspace, int threads)
{
    (void)p, (void)operand, (void)workspace, (void)threads;
    ran++;
    spin(quick_takes + first_takes);
    first_takes = 0;
    return MC_OK;
}

static mc_status run_slow(const struct mc_plan *p, void *const *operand, void *workspace, int threads)
{
    (void)p, (void)operand, (void)workspace, (void)threads;
    ran++;
    slow_ran++;
    spin(slow_takes);
    return MC_OK;
}

static mc_status run_failing(const struct mc_plan *p, void *const *operand, void *workspace, int threads)
{
    (void)p, (void)operand, (void)workspace, (void)threads;
    return mc_fail(MC_EDEVICE, "it fell over");
}

static void destroy(struct mc_plan *p)
{
    (void)p;
    plans--;
}

static struct mc_plan *make(mc_status (*run)(const struct mc_plan *, void *const *, void *, int),
                            size_t workspace)
{
    struct mc_plan *p = mc_calloc(1, sizeof *p, "plans");
    if (p) {
        p->run = run;
        p->workspace = workspace;
        p->destroy = destroy;
        plans++;
    }
    return p;
}

static struct mc_plan *plan_quick(const struct mc_problem *p)
{
    (void)p;
    return make(run_quick, 4096);
}

static struct mc_plan *plan_slow(const struct mc_problem *p)
{
    (void)p;
    return make(run_slow, 0);
}

static struct mc_plan *plan_failing(const struct mc_problem *p)
{
    (void)p;
    return make(run_failing, 0);
}

static struct mc_plan *plan_never(const struct mc_problem *p)
{
    (void)p;
    mc_fail(MC_EUNSUPPORTED, "the moon is not full");
    return NULL;
}

/* How many times longer they say that the whole takes than a sample; and slow, of which others know less. */
enum { SAMPLED = 1000, LARGER = 100 }; /* sizes from which a sample is timed, a hundredth of them */
static double slow_grows = LARGER;
static double grows(const struct mc_problem *p, double by)
{
    return ((const struct toy *)(const void *)p)->size >= SAMPLED ? by : 1;
}
static double cost1(const struct mc_problem *p)
{
    return grows(p, LARGER) * 1e-6;
}
static double cost2(const struct mc_problem *p)
{
    return grows(p, LARGER) * 2e-6;
}
static double cost_near(const struct mc_problem *p)
{
    return grows(p, LARGER) * 2.5e-6;
}
static double cost3(const struct mc_problem *p)
{
    return grows(p, LARGER) * 3e-6;
}
static double cost_slow(const struct mc_problem *p)
{
    return grows(p, slow_grows) * 3e-6;
}
static double cost9(const struct mc_problem *p)
{
    return grows(p, LARGER) * 9e-6;
}

static const char *odd_only(const struct mc_problem *p)
{
    return ((const struct toy *)(const void *)p)->size % 2 ? NULL : "takes odd sizes only";
}

static const char *positive_only(const struct mc_problem *p)
{
    return ((const struct toy *)(const void *)p)->size > 0 ? NULL : "takes positive sizes only";
}

static const struct mc_solver loose   = { "loose",   true,  NULL,          cost1, plan_quick   };
static const struct mc_solver never   = { "never",   false, odd_only,      cost1, plan_never   };
static const struct mc_solver quick   = { "quick",   false, positive_only, cost2, plan_quick   };
static const struct mc_solver falling = { "falling", false, odd_only,      cost3, plan_failing };
static const struct mc_solver slow    = { "slow",    false, positive_only, cost_slow, plan_slow };
static const struct mc_solver far_off = { "far",     false, positive_only, cost9, plan_quick   };

static const struct mc_solver wrap_a  = { "wrap_a",  false, positive_only, cost3, plan_quick, .wraps = true };
static const struct mc_solver wrap_b  = { "wrap_b",  false, positive_only, cost3, plan_quick, .wraps = true };
static const struct mc_solver wrap_c  = { "wrap_c",  false, positive_only, cost3, plan_quick, .wraps = true };

static const struct mc_solver *const solvers[] = { &loose, &never, &quick, &falling, &wrap_a, &wrap_b, &wrap_c, &slow, &far_off, NULL };

static const char *algo = "auto";
static const char *forced(const struct mc_problem *p, int64_t *mode) { (void)p; (void)mode; return algo; }

static void word(const struct mc_problem *p, struct mc_str *out)
{
    mc_str_addf(out, "toy %d", ((const struct toy *)(const void *)p)->size);
}

static mc_status operands(const struct mc_problem *p, void *operand[8])
{
    (void)p;
    memset(operand, 0, 8 * sizeof operand[0]);
    operand[0] = mc_alloc(16, "planner");
    return operand[0] ? MC_OK : MC_EMEMORY;
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    (void)p;
    mc_free(operand[0]);
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan)
{
    (void)p, (void)plan;
    verified++;
    return wrong ? mc_fail(MC_ECHECK, "toy: wrong result") : MC_OK;
}


static double sample(const struct mc_problem *p, double seconds, struct mc_problem *small)
{
    struct toy *t = (struct toy *)(void *)small;
    const double times = ((const struct toy *)(const void *)p)->size >= SAMPLED && seconds > 0 ? LARGER : 1;
    t->size /= (int)times;
    return times;
}

static const struct mc_family family = {
    "toy", solvers, sizeof(struct toy), word, operands, discard, verify, forced, sample,
};

static struct mc_plan *planned(int size)
{
    const struct toy t = { { &family, mc_plan_options_of(NULL) }, size };
    return mc_plan_make(&t.base);
}

#endif
