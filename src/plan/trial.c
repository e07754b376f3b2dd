/* trial.c: times plans for one problem one after another, within a time that does not depend on the size
 * of the problem.
 *
 * - If runs take long by estimate, a sample of the problem is timed.
 * - A plan whose first run is clearly slower than the best is not run again.
 * - A plan that is expected to take longer than the time that is left is not run at all.  What a first run
 *   takes more than the others, as it touches new memory, is not counted.  A plan whose estimate is near that
 *   of the best may take as much time again.
 * - An operand that stays the same, prepared or not, and the workspace are read from memory if that operand
 *   is large: in a program, those of the other steps are in the caches.
 * - A plan with a solver that has `doubted` (plan.h) and that is faster than the best must be as exact as
 *   the problem demands.  The result of its last run is checked.
 *
 * Invariant: the times are those of the whole problem, also if a sample was timed. */
#include "plan/plan.h"
#include "device/cpu/cpu.h"

static const double long_call = 10e-3; /* if a run takes more seconds by estimate, a sample is timed */
static const double hopeless = 1.3;    /* a plan is not run again if a run takes this times the best */
static const double near = 1.4; /* an estimate is near another if it is less than this multiple of it */

static const struct mc_problem *timed(const struct mc_trials *t)
{
    return t->small ? t->small : t->problem;
}

static bool take_sample(struct mc_trials *t)
{
    const struct mc_family *family = t->problem->family;
    if (!family->sample) {
        return true;
    }
    t->small = mc_alloc(family->problem_size, "planner");
    if (!t->small) {
        return false;
    }
    memcpy(t->small, t->problem, family->problem_size);
    t->small->options.depth++; /* it is planned as a candidate, by mc_trials_run */
    if (family->sample(t->problem, long_call, t->small) == 1) {
        mc_free(t->small);
        t->small = NULL;
    }
    return true;
}

mc_status mc_trials_begin(struct mc_trials *t, const struct mc_problem *p, double seconds, size_t plans)
{
    *t = (struct mc_trials){ .problem = p, .each = seconds / (double)MC_MAX(plans, (size_t)1) };
    if (!take_sample(t)) {
        return MC_EMEMORY;
    }
    const mc_status s = p->family->operands(timed(t), t->operand);
    if (s < 0) {
        mc_free(t->small);
        return s;
    }
    t->end = mc_now() + seconds;
    t->spare = 4 * seconds;
    t->reserve = seconds;
    return MC_OK;
}

void mc_trials_end(struct mc_trials *t)
{
    t->problem->family->discard(timed(t), t->operand);
    mc_free(t->small);
}

bool mc_trials_worth(const struct mc_trials *t, double estimate)
{
    const double ratio = estimate / t->best_estimate, end = t->end + (ratio < near ? t->reserve : 0);
    return t->best == 0 || mc_now() + 2 * ratio * t->best_call < end;
}

static void *alloc_operands(const struct mc_site *site, size_t bytes)
{
    return site ? site->take(bytes) : mc_alloc_pages(bytes, "planner");
}

static void free_operands(const struct mc_site *site, void *p)
{
    site ? site->give(p) : mc_free_pages(p);
}

struct call {
    const struct mc_plan *plan;
    struct mc_trials *trials;
    void *workspace;
    void *kept;                 /* an operand that no cache is to hold; NULL: there is none */
    size_t bytes;
};

static void evict(void *arg)
{
    const struct call *c = arg;
    mc_cpu_evict(c->kept, c->bytes);
    mc_cpu_evict(c->workspace, c->plan->workspace);
}

static mc_status call(void *arg)
{
    struct call *c = arg;
    return c->plan->run(c->plan, c->trials->operand, c->workspace, 0);
}

static struct mc_timing time_plan(struct mc_trials *t, const struct mc_plan *plan, double most)
{
    const struct mc_site *site = plan->problem->family->site;
    struct call c = { plan, t, plan->workspace ? alloc_operands(site, plan->workspace) : NULL, NULL, 0 };
    if (plan->workspace && !c.workspace) {
        return (struct mc_timing){ 0 };
    }
    if (plan->prepare) {
        t->operand[MC_PREPARED] = alloc_operands(site, plan->prepared);
        if (!t->operand[MC_PREPARED]) {
            free_operands(site, c.workspace);
            return (struct mc_timing){ 0 };
        }
        plan->prepare(plan, t->operand, t->operand[MC_PREPARED], c.workspace, 0);
    }
    const struct mc_family *family = plan->problem->family;
    int operand;
    c.bytes = !site && family->stays ? family->stays(plan->problem, &operand) : 0;
    if (c.bytes) {
        c.kept = t->operand[plan->prepare ? MC_PREPARED : operand];
        c.bytes = plan->prepare ? plan->prepared : c.bytes;
    }
    const bool far = 4 * c.bytes > mc_cpu()->l2;
    struct mc_timing got = site ? site->time(call, &c, t->each, most)
                                : mc_time_each(far ? evict : NULL, call, &c, t->each, most);
    if (far) { /* the least is luck with memory, a program sees the usual time */
        got.least = got.median;
    }
    if (plan->prepare) {
        free_operands(site, t->operand[MC_PREPARED]);
        t->operand[MC_PREPARED] = NULL;
    }
    free_operands(site, c.workspace);
    return got;
}

/* How many times longer the problem takes than the sample, by the solver's estimates.  That may be less
 * than the ratio of their sizes, if part of the work, as that on filters, is the same for both.  It may be
 * more, if the workspace cap forces the plan for the problem to work differently. */
static double is_slower(const struct mc_trials *t, const struct mc_solver *s, double estimate)
{
    return t->small ? estimate / s->estimate(t->small) : 1;
}

/* ---- doubt ---- */

static bool check_error(const struct mc_plan *p)
{
    bool so = p->solver->doubted;
    for (size_t i = 0; i < NELEM(p->child); i++) {
        so = so || (p->child[i] && check_error(p->child[i]));
    }
    return so;
}

bool mc_plan_exact(const struct mc_problem *p, void *const *operand, const char *who)
{
    const double error = p->family->error ? p->family->error(p, operand) : -1,
                 most = error < 0 ? 0 : p->family->allows(p);
    if (error >= 0) {
        LOG(LOG_PLAN, "    %s is off by %.1e of its result, %.1e is allowed", who, error, most);
    }
    if (error <= most) {
        return true;
    }
    mc_fail(MC_ECHECK, "%s is off by %.1e of its result, and %.1e is allowed", who, error, most);
    return false;
}

bool mc_trials_run(struct mc_trials *t, struct mc_plan *plan, double estimate)
{
    struct mc_plan *small = t->small ? mc_plan_with(t->small, plan->solver) : NULL;
    const double times = is_slower(t, plan->solver, estimate);
    const struct mc_timing got = t->small && !small
                                     ? (struct mc_timing){ 0 }
                                     : time_plan(t, small ? small : plan, hopeless * t->best / times);
    mc_plan_free(small);
    if (got.n == 0) {
        return false;
    }
    const double late = MC_MIN(MC_MAX(got.first - got.least, 0), t->spare);
    t->end += late;
    t->spare -= late;
    plan->cost = got.least * times;
    if ((t->best == 0 || plan->cost < t->best) && check_error(plan) &&
        !mc_plan_exact(timed(t), t->operand, plan->solver->name)) {
        return false;
    }
    plan->measured = true;
    if (t->best == 0 || plan->cost < t->best) {
        t->best = plan->cost;
        t->best_estimate = estimate;
        t->best_call = got.least;
    }
    return true;
}
