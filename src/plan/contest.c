/* contest.c: times the likely candidates for a problem against each other.
 *
 * Invariant: the candidate with the lowest estimate that is no wrapper is timed first, and the others must
 * beat it by a margin.  So solvers that are equally fast are selected by estimate, on every run. */
#include "plan/choice.h"

/* The most solvers, and the most wrappers, that plan=measure times, ... */
enum { LIKELY = 6, WRAPPING = 2 };
static const double likely = 4;            /* ... if their estimate is within this factor of the lowest */
static const double budget[] = { [PLAN_MEASURE] = 0.4, [PLAN_EXHAUSTIVE] = 4 }; /* seconds of timing a problem */
/* On a GPU: a candidate is not timed if its estimate is above this factor times the best time so far. */
static const double far_off = 5;
/* To win, a candidate must take less than this part of the best time: on the host, ... */
static const double margin = 0.95;
static const double far_margin = 0.98;     /* ... on a GPU, whose events measure more exactly, ... */
/* ... and for a wrapper that is timed on a sample, which says less about the whole problem. */
static const double wrapping = 0.85;

/* Is the candidate with the i-th lowest estimate to be timed?  counted: solvers and wrappers so far. */
static bool is_likely(const struct mc_choice *c, size_t i, size_t counted[2])
{
    const struct mc_candidate *k = &c->list.at[i];
    const size_t most = k->solver->wraps ? WRAPPING : LIKELY;
    if (c->mode == PLAN_MEASURE && !c->problem->family->site &&
        (counted[k->solver->wraps] >= most || k->estimate > likely * c->list.at[0].estimate)) {
        return false;
    }
    counted[k->solver->wraps]++;
    return true;
}

static size_t candidates_to_time(const struct mc_choice *c)
{
    size_t n = 0, counted[2] = { 0 };
    for (size_t i = 0; i < c->able; i++) {
        n += is_likely(c, i, counted);
    }
    return n;
}

/* Is it useless to time the candidate?  On the host there must be time left for it.  On a GPU it is
 * skipped if its estimate is far too high. */
static bool is_hopeless(const struct mc_choice *c, const struct mc_trials *t, const struct mc_candidate *k)
{
    return c->mode == PLAN_MEASURE &&
           (c->problem->family->site ? t->best > 0 && k->estimate > far_off * t->best
                                     : !mc_trials_worth(t, k->estimate));
}

/* The part of the best time below which the candidate wins.  Between equal times a solver wins that is finer
 * (struct mc_solver). */
static double required_margin(const struct mc_choice *c, const struct mc_trials *t,
                              const struct mc_candidate *k, const struct mc_solver *best)
{
    const double part = t->small && k->solver->wraps ? wrapping
                        : c->problem->family->site   ? far_margin
                                                     : margin;
    return k->solver->finer && !best->finer ? 1 / part : part;
}

/* Times one candidate and puts it into *best if it wins.  False: planning fails, error set. */
static bool challenge(struct mc_choice *c, struct mc_trials *t, const struct mc_candidate *k,
                      struct mc_plan **best)
{
    if (is_hopeless(c, t, k)) {
        LOG(LOG_PLAN, "%s: %s is not tried: %.3g us expected", c->key.s, k->solver->name, k->estimate * 1e6);
        return true;
    }
    const double start = mc_now();
    struct mc_plan *plan = mc_choice_plan(c, k->solver);
    const double planned = mc_now() - start;
    t->end += c->problem->family->site
                  ? planned
                  : 0; /* planning may compile kernels, and time algorithms of a library */
    if (!plan) {
        return true;
    }
    const double least = mc_plan_least(plan);
    if (t->best > 0 && least > t->best) {
        LOG(LOG_PLAN, "%s: %s is not tried: no less than %.3g us, the best takes %.3g", c->key.s,
            k->solver->name, least * 1e6, t->best * 1e6);
        mc_plan_free(plan);
        return true;
    }
    if (!mc_choice_verified(c, plan)) {
        mc_plan_free(plan);
        return false;
    }
    const bool ran = mc_trials_run(t, plan, k->estimate);
    if (!ran) {
        LOG(LOG_PLAN, "%s: %s is not taken: %s", c->key.s, k->solver->name, mc_last_error());
        mc_str_addf(&c->why, "; %s failed: %s", plan->solver->name, mc_last_error());
        mc_plan_free(plan);
        return true;
    }
    LOG(LOG_PLAN, "%s: %s takes %.3g us (estimate %.3g), planned in %.3g ms, timed in %.3g", c->key.s,
        plan->solver->name, plan->cost * 1e6, k->estimate * 1e6, planned * 1e3,
        (mc_now() - start - planned) * 1e3);
    const bool wins = !*best || plan->cost < (*best)->cost * required_margin(c, t, k, (*best)->solver);
    mc_plan_free(wins ? *best : plan);
    *best = wins ? plan : *best;
    return true;
}

struct mc_plan *mc_choice_fastest(struct mc_choice *c)
{
    struct mc_plan *best = NULL;
    struct mc_trials t;
    size_t counted[2] = { 0 };
    if (mc_trials_begin(&t, c->problem, budget[c->mode], candidates_to_time(c)) < 0) {
        return c->problem->family->site ? mc_choice_cheapest(c)
                                        : NULL; /* a GPU may have no memory for a second set of arrays */
    }
    bool good = true;
    for (size_t i = 0; i < 2 * c->able && good; i++) { /* wrappers after the others */
        const struct mc_candidate *k = &c->list.at[i % c->able];
        good = k->solver->wraps != (i >= c->able) || !is_likely(c, i % c->able, counted) ||
               challenge(c, &t, k, &best);
    }
    if (!good) {
        mc_plan_free(best);
        best = NULL;
    } else if (!best) {
        best = mc_choice_cheapest(c); /* none of the likely ones could be planned and run */
    }
    mc_trials_end(&t);
    return best;
}
