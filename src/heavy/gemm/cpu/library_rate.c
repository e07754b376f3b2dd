/* library_rate.c: how fast the libraries are on this machine, compared with our own solvers.
 *
 * plan=estimate does not time the user's products.  But no constants predict whether a library is faster for
 * large matrices on a given processor.  So there is one example product for each of three kinds.  It is timed
 * when a large product of its kind is first planned, and the result is kept as wisdom:
 *
 *     rate gemm f32 nn m768n768k768 t2 onednn    onednn 1.16e-03
 *
 * Invariant: the kept result decides.  A library that was not faster by 8 % is not opened again. */
#include "heavy/gemm/cpu/library.h"

enum { THIN = 16, SHORT = 64 };             /* limits of min(m, n) and of k in `kinds` */
static const double worth = 200e-6;         /* seconds; products with a smaller estimate start no timing */
static const double budget = 16e-3;         /* seconds for one timing */
static const double gain = 0.92;            /* a library must take less than this fraction of our time */

static const struct {
    int64_t thin, k;                        /* a kind: most of min(m, n), and most of k */
    int64_t example[3];                     /* m, n, k */
} kinds[] = {
    { THIN,      INT64_MAX, { 1024, 16, 1024 } },
    { INT64_MAX, SHORT,     { 2048, 2048, 32 } },
    { INT64_MAX, INT64_MAX, { 768, 768, 768 }  },
};

static struct mc_gemm_problem example_problem(const struct mc_gemm_problem *p)
{
    size_t at = 0;
    while (MC_MIN(p->m, p->n) > kinds[at].thin || p->k > kinds[at].k) {
        at++;
    }
    const int64_t m = kinds[at].example[0], n = kinds[at].example[1], k = kinds[at].example[2];
    return (struct mc_gemm_problem){ .base = p->base,
                                     .dtype = p->dtype,
                                     .batch = 1,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .as = { 0, k, 1 },
                                     .bs = { 0, n, 1 },
                                     .cs = { 0, n, 1 },
                                     .alpha = 1 };
}

/* ---- timing ---- */

/* Seconds of solver s for p; 0 if it failed.  Does not call a library's own estimate, because that calls
 * mc_gemm_rate, which is waiting for this timing.  For the same reason the family must have no sample():
 * trials would call the estimates of its plans. */
static double timed(const struct mc_gemm_problem *p, const struct mc_solver *s)
{
    struct mc_trials t;
    struct mc_plan *plan = mc_plan_bind(&p->base, s);
    double seconds = 0;
    if (plan && mc_trials_begin(&t, &p->base, budget, 1) >= 0) {
        seconds = mc_trials_run(&t, plan, mc_gemm_own(p)->estimate(&p->base)) ? plan->cost : 0;
        mc_trials_end(&t);
    }
    mc_plan_free(plan);
    return seconds;
}

/* Seconds kept in the wisdom for p and `name`; 0: none.  *word becomes the key. */
static double remembered_rate(const struct mc_gemm_problem *p, const char *name, struct mc_str *word)
{
    char solver[64];
    double seconds = 0;
    word->n = 0;
    mc_str_add(word, "rate ");
    p->base.family->key(&p->base, word);
    mc_str_addf(word, " t%d %s", mc_team_size(), name);
    return !word->bad && mc_wisdom_find(word->s, solver, &seconds) ? seconds : 0;
}

/* Times s and returns the smaller of `before` and the new time; 0 if there is neither. */
static double measure_library(const struct mc_gemm_problem *p, const char *name, const struct mc_solver *s,
                      double before)
{
    struct mc_str word = { 0 };
    const double known_now = remembered_rate(p, name, &word), now = timed(p, s);
    const double least = before > 0 && before < now ? before : now > 0 ? now : before;
    if (least > 0 && least != known_now && !word.bad) {
        LOG(LOG_PLAN, "%s: %s takes %.3g us", word.s, s->name, least * 1e6);
        mc_wisdom_put(word.s, s->name, least);
    }
    mc_str_free(&word);
    return least;
}

/* Our solver is timed first, because a library's threads may spin for a while after its call.  If it seems
 * slower it is timed again, because another program may have used the processors. */
static double compare(struct mc_library_gemm *f, const struct mc_solver *library,
                      const struct mc_gemm_problem *p)
{
    struct mc_str word = { 0 };
    double ours = remembered_rate(p, "own", &word),
           theirs = ours > 0 ? remembered_rate(p, f->solver, &word) : 0;
    mc_str_free(&word);
    if (!(theirs > 0) && mc_library_gemm_open(f)) {
        ours = ours > 0 ? ours : measure_library(p, "own", mc_gemm_own(p), 0);
        theirs = ours > 0 ? measure_library(p, f->solver, library, 0) : 0;
        if (theirs < gain * ours) {
            ours = measure_library(p, "own", mc_gemm_own(p), ours);
        }
        mc_clear_error(); /* a failed timing is not the caller's error */
    }
    return ours > 0 && theirs > 0 && theirs < gain * ours ? theirs / ours : 1;
}

/* ---- external ---- */

double mc_gemm_rate(struct mc_library_gemm *f, const struct mc_solver *library,
                    const struct mc_gemm_problem *p)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    const bool row = p->m == 1 || p->n == 1; /* memory-bound, so no solver is faster */
    if (row || mc_dtypes[p->dtype].size < 4 || mc_gemm_own(p)->estimate(&p->base) < worth) {
        return 1;
    }
    const struct mc_gemm_problem e = example_problem(p);
    pthread_mutex_lock(&one_at_a_time);
    const double rate = compare(f, library, &e);
    pthread_mutex_unlock(&one_at_a_time);
    return rate;
}

static bool estimate_mode(const struct mc_library_gemm *f, const struct mc_gemm_problem *p)
{
    return p->base.options.mode == PLAN_ESTIMATE && strcmp(mc_flag_text(FLAG_gemm_algo), f->solver) != 0;
}

const char *mc_library_gemm_refuse(struct mc_library_gemm *f, const struct mc_solver *library,
                              const struct mc_gemm_problem *p)
{
    struct mc_library_gemm_matrix any;
    if (mc_gemm_hollow(p)) {
        return mc_gemm_hollow(p);
    }
    if (p->alpha == 0) {
        return "does not read A and B when alpha is 0, but their NaN must propagate";
    }
    if (!mc_library_gemm_matrix(p->as, p->m, p->k, &any) ||
        !mc_library_gemm_matrix(p->bs, p->k, p->n, &any) || (p->m > 1 && p->cs[1] < p->n)) {
        return "takes no overlapping rows";
    }
    if (estimate_mode(f, p) && mc_gemm_rate(f, library, p) >= 1) {
        return "was not faster on products like this; plan=measure, or its name in gemm.algo, tries it again";
    }
    return NULL;
}

double mc_library_gemm_estimate(struct mc_library_gemm *f, const struct mc_solver *library,
                           const struct mc_gemm_problem *p)
{
    struct mc_gemm_problem each = *p; /* a library copies B in each call, also one that stays the same */
    each.b_stays = false;
    const struct mc_solver *like = p->b_stays ? &mc_gemm_packed : mc_gemm_own(p);
    return estimate_mode(f, p) ? mc_gemm_rate(f, library, p) * like->estimate(&each.base)
                               : 1e-6 + 1.1 * mc_gemm_packed.estimate(&each.base);
}
