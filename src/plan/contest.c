/* contest.c: the likely ones of a problem's candidates timed against each other.
 *
 * Invariant: the first by estimate that wraps no other is the incumbent, so that equals stay as estimated on
 * every run. */
#include "plan/choice.h"

/* at most so many are timed by plan=measure, and so many of those that wrap ... */
enum { LIKELY = 6, WRAPPING = 2 };
static const double likely = 4;            /* ... if their estimate is within this factor of the best */
static const double budget[] = { [PLAN_MEASURE] = 0.4, [PLAN_EXHAUSTIVE] = 4 }; /* seconds of timing a problem */
/* times the best that was timed: on a GPU, an estimate beyond which nothing is tried */
static const double far_off = 5;
static const double margin = 0.95;         /* a challenger must take less than this part of the time; ... */
static const double far_margin = 0.98;     /* ... where events on a GPU tell it, than this; ... */
/* ... one that wraps others, timed on a sample, than this: it may use its axes otherwise */
static const double wrapping = 0.85;

/* Whether the i-th by estimate is to be timed: `counted` of the two kinds are already. */
static bool likely_one(const struct mc_choice *c, size_t i, size_t counted[2])
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

static size_t to_time(const struct mc_choice *c)
{
    size_t n = 0, counted[2] = { 0 };
    for (size_t i = 0; i < c->able; i++) {
        n += likely_one(c, i, counted);
    }
    return n;
}

/* Is there no use in timing it?  A GPU's estimates are rougher than times left: one is trusted that is far
 * off. */
static bool hopeless(const struct mc_choice *c, const struct mc_trials *t, const struct mc_candidate *k)
{
    return c->mode == PLAN_MEASURE &&
           (c->problem->family->site ? t->best > 0 && k->estimate > far_off * t->best
                                     : !mc_trials_worth(t, k->estimate));
}

/* The part of the best's time that one must take less than to win: of two that are as quick, what is finer
 * does. */
static double must_take(const struct mc_choice *c, const struct mc_trials *t, const struct mc_candidate *k,
                        const struct mc_solver *best)
{
    const double part = t->small && k->solver->wraps ? wrapping
                        : c->problem->family->site   ? far_margin
                                                     : margin;
    return k->solver->finer && !best->finer ? 1 / part : part;
}

/* Times one candidate; it takes the place of *best if it wins.  False: planning ends, the error says why. */
static bool challenge(struct mc_choice *c, struct mc_trials *t, const struct mc_candidate *k,
                      struct mc_plan **best)
{
    if (hopeless(c, t, k)) {
        LOG(LOG_PLAN, "%s: %s is not tried: %.3g us expected", c->word.s, k->solver->name, k->estimate * 1e6);
        return true;
    }
    const double start = mc_now();
    struct mc_plan *plan = mc_choice_plan(c, k->solver);
    const double planned = mc_now() - start;
    t->end += c->problem->family->site
                  ? planned
                  : 0; /* what is planned there may compile, and time engines of its own */
    if (!plan) {
        return true;
    }
    const double least = mc_plan_least(plan);
    if (t->best > 0 && least > t->best) {
        LOG(LOG_PLAN, "%s: %s is not tried: no less than %.3g us, the best takes %.3g", c->word.s,
            k->solver->name, least * 1e6, t->best * 1e6);
        mc_plan_free(plan);
        return true;
    }
    if (!mc_choice_verified(c, plan)) {
        mc_plan_free(plan);
        return false;
    }
    mc_choice_deepen(1);
    const bool ran = mc_trials_run(t, plan, k->estimate);
    mc_choice_deepen(-1);
    if (!ran) {
        LOG(LOG_PLAN, "%s: %s is not taken: %s", c->word.s, k->solver->name, mc_last_error());
        mc_str_addf(&c->why, "; %s failed: %s", plan->solver->name, mc_last_error());
        mc_plan_free(plan);
        return true;
    }
    LOG(LOG_PLAN, "%s: %s takes %.3g us (estimate %.3g), planned in %.3g ms, timed in %.3g", c->word.s,
        plan->solver->name, plan->cost * 1e6, k->estimate * 1e6, planned * 1e3,
        (mc_now() - start - planned) * 1e3);
    const bool wins = !*best || plan->cost < (*best)->cost * must_take(c, t, k, (*best)->solver);
    mc_plan_free(wins ? *best : plan);
    *best = wins ? plan : *best;
    return true;
}

struct mc_plan *mc_choice_fastest(struct mc_choice *c)
{
    struct mc_plan *best = NULL;
    struct mc_trials t;
    size_t counted[2] = { 0 };
    if (mc_trials_begin(&t, c->problem, budget[c->mode], to_time(c)) < 0) {
        return c->problem->family->site ? mc_choice_cheapest(c)
                                        : NULL; /* a device may hold the function's arrays, but not twice */
    }
    bool good = true;
    for (size_t i = 0; i < 2 * c->able && good; i++) { /* those that wrap others after those */
        const struct mc_candidate *k = &c->list.at[i % c->able];
        good = k->solver->wraps != (i >= c->able) || !likely_one(c, i % c->able, counted) ||
               challenge(c, &t, k, &best);
    }
    if (!good) {
        mc_plan_free(best);
        best = NULL;
    } else if (!best) {
        best = mc_choice_cheapest(c); /* the likely ones could not: any that can */
    }
    mc_trials_end(&t);
    return best;
}
