/* rate.c: how the libraries fare beside our own solvers, on this machine.
 *
 * plan=estimate times no product of the user's.  But which of two ways to multiply large matrices is faster
 * on a processor, no table of constants tells; so two products of ours stand for all of their kind, are
 * timed when a large one of that kind is first planned, and remembered as wisdom:
 *
 *     rate gemm f32 nn m512n512k512 t2 onednn    onednn 1.16e-03
 *
 * Invariant: what is remembered decides; a library that gained less than a seventh then is never opened. */
#include "gemm/foreign.h"

enum { THIN = 16 };                         /* rows or columns at most */
static const double worth = 200e-6;         /* estimated seconds from which a product may ask for timing */
static const double budget = 8e-3;          /* seconds a timing */
static const double gain = 0.85;            /* a library must take less than this part of our time */

static const struct {
    int64_t most;                           /* of m and n, the lesser one: products of the kind */
    int64_t m, n, k;                        /* their example */
} kinds[] = {
    { THIN,      1024, 16,   1024 },
    { INT64_MAX, 512,  512,  512  },
};

static struct mc_gemm_problem example(const struct mc_gemm_problem *p)
{
    size_t at = 0;
    while (MC_MIN(p->m, p->n) > kinds[at].most) {
        at++;
    }
    const int64_t m = kinds[at].m, n = kinds[at].n, k = kinds[at].k;
    return (struct mc_gemm_problem){ .base.family = &mc_gemm_family, .dtype = p->dtype, .batch = 1, .m = m, .n = n,
                                     .k = k, .as = { 0, k, 1 }, .bs = { 0, n, 1 }, .cs = { 0, n, 1 }, .alpha = 1 };
}

/* ---- timing ---- */

/* Seconds for p by s; 0 where that failed. */
static double timed(const struct mc_gemm_problem *p, const struct mc_solver *s)
{
    struct mc_trials t;
    struct mc_plan *plan = mc_plan_with(&p->base, s);
    double seconds = 0;
    if (plan && mc_trials_begin(&t, &p->base, budget, 1) >= 0) {
        seconds = mc_trials_run(&t, plan, plan->cost) ? plan->cost : 0;
        mc_trials_end(&t);
    }
    mc_plan_free(plan);
    return seconds;
}

/* Seconds remembered for p by `name`, or those of s now; 0: neither. */
static double known(const struct mc_gemm_problem *p, const char *name, const struct mc_solver *s)
{
    struct mc_str word = { 0 };
    char solver[64];
    double seconds = 0;
    mc_str_add(&word, "rate ");
    mc_gemm_family.word(&p->base, &word);
    mc_str_addf(&word, " t%d %s", mc_team_size(), name);
    if (!word.bad && !mc_wisdom_find(word.s, solver, &seconds) && s) {
        seconds = timed(p, s);
        if (seconds > 0) {
            LOG(LOG_PLAN, "%s: %s takes %.3g us", word.s, s->name, seconds * 1e6);
            mc_wisdom_put(word.s, s->name, seconds);
        }
    }
    mc_str_free(&word);
    return seconds;
}

/* ---- external ---- */

const struct mc_solver *mc_gemm_own(const struct mc_gemm_problem *p)
{
    static const struct mc_solver *const own[] = { &mc_gemm_direct, &mc_gemm_thin, &mc_gemm_packed };
    const struct mc_solver *found = &mc_gemm_packed;
    for (size_t i = 0; i < NELEM(own); i++) {
        if (!own[i]->refuse(&p->base) && own[i]->estimate(&p->base) < found->estimate(&p->base)) {
            found = own[i];
        }
    }
    return found;
}

/* Ours is timed first: the threads of a library may spin on for a while after its call. */
double mc_gemm_rate(struct mc_foreign *f, const struct mc_solver *library, const struct mc_gemm_problem *p)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    static _Thread_local bool timing; /* planning an example asks for its estimate, and so comes here again */
    const bool row = p->m == 1 || p->n == 1; /* memory is as fast for everyone */
    if (timing || row || mc_dtypes[p->dtype].size < 4 || mc_gemm_own(p)->estimate(&p->base) < worth) {
        return 1;
    }
    const struct mc_gemm_problem e = example(p);
    pthread_mutex_lock(&one_at_a_time);
    timing = true;
    double theirs = known(&e, f->solver, NULL), ours = theirs > 0 ? known(&e, "own", NULL) : 0;
    if (!(ours > 0) && mc_foreign_open(f)) {
        ours = known(&e, "own", mc_gemm_own(&e));
        theirs = ours > 0 ? known(&e, f->solver, library) : 0;
        mc_clear_error(); /* a timing that failed is no one's error */
    }
    timing = false;
    pthread_mutex_unlock(&one_at_a_time);
    return ours > 0 && theirs > 0 && theirs < gain * ours ? theirs / ours : 1;
}
