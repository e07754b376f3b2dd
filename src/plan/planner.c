/* planner.c: selects a solver for a problem.
 *
 * A solver that the options list as chosen is used.  For other problems the flag `plan` decides:
 *
 *   plan=estimate    the lowest estimate
 *   plan=measure     what wisdom has for the problem; else the likely solvers are timed, and the fastest is
 *                    put into wisdom
 *   plan=exhaustive  the same, and every solver that does not refuse is timed
 *
 * A candidate is timed together with its children.  So the children are selected one mode lower: by estimate
 * under plan=measure (see struct mc_plan_options).
 *
 * Invariant: the solver of a plan does not refuse the problem, the plan needs no more workspace than the
 * options allow, and under check=3 its result agreed with the reference. */
#include "plan/choice.h"
#include "device/cpu/cpu.h"
#include <inttypes.h>
#include <stdlib.h>

/* ---- options ---- */

enum { CHECK_PLANS = 3 }; /* of the flag check */

struct mc_plan_options mc_plan_options_of(const struct mc_site *site)
{
    const enum mc_plan_mode mode = (enum mc_plan_mode)mc_flag_int(FLAG_plan);
    return (struct mc_plan_options){
        .mode = mode,
        .solver_mode = mode,
        .workspace = (size_t)mc_flag_int(site ? FLAG_cuda_workspace : FLAG_workspace),
        .deterministic = mc_flag_int(FLAG_deterministic),
        .portable = !site && mc_flag_int(FLAG_portable),
        .check = mc_flag_int(FLAG_check) >= CHECK_PLANS,
    };
}

void mc_plan_options_limit(struct mc_plan_options *o, size_t bytes)
{
    o->workspace = MC_MIN(o->workspace, bytes);
    o->out_of_memory = true;
}

static int64_t mode_of(const struct mc_problem *p)
{
    return MC_MAX((int64_t)p->options.mode - p->options.depth, (int64_t)PLAN_ESTIMATE);
}

/* ---- candidates ---- */

/* Calls no library. */
static const char *refuses(const struct mc_problem *p, const struct mc_solver *s)
{
    if (s->nondeterministic && p->options.deterministic) {
        return "is not deterministic, and the flag deterministic is set";
    }
    if (p->options.portable && !s->portable) {
        return "is not portable, and the flag portable is set";
    }
    return s->refuse ? s->refuse(p) : NULL;
}

const char *mc_plan_declines(const struct mc_problem *p, const struct mc_solver *s)
{
    const char *no = refuses(p, s);
    return no || !s->missing ? no : s->missing(p);
}

void mc_plan_reasons(const struct mc_problem *p, struct mc_str *out)
{
    for (const struct mc_solver *const *s = p->family->solvers; *s; s++) {
        const char *no = mc_plan_declines(p, *s);
        if (no) {
            mc_str_addf(out, "%s%s %s", out->n ? "; " : "", (*s)->name, no);
        }
    }
}

struct mc_plan *mc_choice_plan(struct mc_choice *c, const struct mc_solver *s)
{
    struct mc_plan_options options = c->problem->options;
    options.depth++;
    options.solver = NULL;
    options.solver_mode = (enum mc_plan_mode)c->mode;
    options.mode = c->chosen ? PLAN_ESTIMATE : options.mode;
    struct mc_plan *plan = mc_plan_under(c->problem, s, &options);
    if (!plan) {
        mc_str_addf(&c->why, "; %s failed: %s", s->name, mc_last_error());
    } else if (options.workspace < plan->workspace) {
        mc_str_addf(&c->why, "; %s needs %zu bytes of workspace, %s %zu", s->name, plan->workspace,
                    options.out_of_memory ? "there is room for" : "the flag allows", options.workspace);
        mc_plan_free(plan);
        plan = NULL;
    }
    return plan;
}

bool mc_choice_verified(struct mc_choice *c, const struct mc_plan *plan)
{
    const struct mc_family *family = c->problem->family;
    return !c->problem->options.check || !family->verify || family->verify(c->problem, plan) >= 0;
}

static int by_estimate(const void *a_, const void *b_)
{
    const struct mc_candidate *a = a_, *b = b_;
    if (!a->no != !b->no) {
        return a->no ? 1 : -1;
    }
    return a->estimate < b->estimate ? -1 : a->estimate > b->estimate ? 1 : a->row - b->row;
}

/* By estimate only the cheapest solver is planned, which opens its library and fails if that cannot do the
 * problem.  So no library is opened here. */
static bool collect_candidates(struct mc_choice *c)
{
    const struct mc_solver *const *s = c->problem->family->solvers;
    const char *(*declines)(const struct mc_problem *,
                            const struct mc_solver *) = c->mode == PLAN_ESTIMATE ? refuses : mc_plan_declines;
    for (int row = 0; s[row]; row++) {
        struct mc_candidate k = { s[row], declines(c->problem, s[row]), 0, row };
        k.estimate = k.no ? 0 : s[row]->estimate(c->problem);
        if (!VEC_PUSH(c->list, k)) {
            return false;
        }
        c->able += !k.no;
    }
    qsort(c->list.at, c->list.n, sizeof c->list.at[0], by_estimate);
    return true;
}

struct mc_plan *mc_choice_cheapest(struct mc_choice *c)
{
    for (size_t i = 0; i < c->able; i++) {
        struct mc_plan *plan = mc_choice_plan(c, c->list.at[i].solver);
        if (plan && mc_choice_verified(c, plan)) {
            return plan;
        }
        mc_plan_free(plan);
        if (plan || mc_last_status() == MC_EMEMORY) {
            return NULL; /* error set: a failed check, or no memory */
        }
    }
    mc_fail(MC_EUNSUPPORTED, "no solver for %s%s", c->key.s, c->why.s ? c->why.s : "");
    return NULL;
}

/* ---- wisdom ---- */

/* What a timing depends on beside the problem: the number of threads, the solvers, the workspace cap, and
 * whether only portable solvers were timed.
 * Many solvers of a GPU are for one precision or one generation.  There only those that do not refuse count,
 * so that a new solver leaves the wisdom about other problems valid. */
static bool wisdom_key(const struct mc_choice *c, bool exhaustive, struct mc_str *key)
{
    uint64_t h = mc_hash_mix(0, c->problem->options.workspace);
    if (c->problem->family->site) {
        c->problem->family->site->name(key);
        mc_str_add(key, " ");
    }
    for (const struct mc_solver *const *s = c->problem->family->solvers; *s; s++) {
        h = c->problem->family->site && mc_plan_declines(c->problem, *s)
                ? h
                : mc_hash_mix(h, mc_hash_str((*s)->name));
    }
    mc_str_addf(key, "%s t%d s%08x%s%s", c->key.s, mc_team_size(), (unsigned)h,
                c->problem->options.portable ? " portable" : "", exhaustive ? " all" : "");
    return !key->bad;
}

static bool wisdom_of(const struct mc_choice *c, bool exhaustive, char name[64], double *seconds)
{
    struct mc_str key = { 0 };
    const bool found = wisdom_key(c, exhaustive, &key) && mc_wisdom_find(key.s, name, seconds);
    mc_str_free(&key);
    return found;
}

/* A plan by the solver of that name.  NULL: there is no such solver, or it cannot do the problem. */
static struct mc_plan *measured_before(struct mc_choice *c, const char *name, double seconds)
{
    struct mc_plan *plan = NULL;
    for (const struct mc_solver *const *s = c->problem->family->solvers; *s; s++) {
        if (strcmp((*s)->name, name) == 0 && !refuses(c->problem, *s)) {
            plan = mc_choice_plan(c, *s);
            if (plan) {
                plan->cost = seconds;
                plan->measured = true;
            }
            break;
        }
    }
    return plan;
}

static struct mc_plan *remembered(struct mc_choice *c, bool exhaustive)
{
    char name[64];
    double seconds;
    return wisdom_of(c, exhaustive, name, &seconds) ? measured_before(c, name, seconds) : NULL;
}

static int by_key(const void *key, const void *chosen)
{
    return strcmp(key, ((const struct mc_chosen_solver *)chosen)->key);
}

static const struct mc_chosen_solver *listed(const struct mc_choice *c)
{
    const struct mc_chosen *list = c->problem->options.chosen;
    return list && list->n ? bsearch(c->key.s, list->at, list->n, sizeof *list->at, by_key) : NULL;
}

static struct mc_plan *chosen_before(struct mc_choice *c)
{
    const struct mc_chosen_solver *one = listed(c);
    c->chosen = one != NULL;
    struct mc_plan *plan = one ? measured_before(c, one->solver, one->seconds) : NULL;
    c->chosen = false;
    return plan;
}

static void remember(const struct mc_choice *c, const struct mc_plan *plan)
{
    struct mc_str key = { 0 };
    if (plan && plan->measured && wisdom_key(c, c->mode == PLAN_EXHAUSTIVE, &key)) {
        mc_wisdom_put(key.s, plan->solver->name, plan->cost);
    }
    mc_str_free(&key);
}

/* Puts the plan that wisdom names into *plan; NULL: it names none that can be made.  False: the result of
 * that plan was wrong. */
static bool plan_from_wisdom(struct mc_choice *c, struct mc_plan **plan)
{
    *plan = remembered(c, true);
    if (!*plan && c->mode == PLAN_MEASURE) {
        *plan = remembered(c, false);
    }
    if (*plan && !mc_choice_verified(c, *plan)) {
        mc_plan_free(*plan);
        *plan = NULL;
        return false;
    }
    return true;
}

/* ---- the solver that a flag names ---- */

size_t mc_solver_names(const struct mc_solver *const *solvers, const char **names, size_t n, size_t most)
{
    if (n == 0 && most) {
        names[n++] = "auto";
    }
    for (; *solvers && n < most; solvers++) {
        names[n++] = (*solvers)->name;
    }
    return n;
}

static const struct mc_solver *named(const struct mc_choice *c, const char *name)
{
    struct mc_str all = { 0 };
    for (const struct mc_solver *const *s = c->problem->family->solvers; *s; s++) {
        if (strcmp((*s)->name, name) == 0) {
            mc_str_free(&all);
            return *s;
        }
        mc_str_addf(&all, " %s", (*s)->name);
    }
    mc_fail(MC_EARG, "%s has no solver '%s'; there are: auto%s", c->problem->family->name, name,
            all.s ? all.s : "");
    mc_str_free(&all);
    return NULL;
}

static struct mc_plan *forced(struct mc_choice *c, const char *name)
{
    const struct mc_solver *s = named(c, name);
    if (!s) {
        return NULL;
    }
    const char *no = mc_plan_declines(c->problem, s);
    if (no) {
        mc_fail(MC_EUNSUPPORTED, "%s: solver %s, which was asked for, %s", c->key.s, name, no);
        return NULL;
    }
    struct mc_plan *plan = mc_choice_plan(c, s);
    if (!plan) {
        if (mc_last_status() != MC_EMEMORY) {
            mc_fail(MC_EUNSUPPORTED, "%s%s", c->key.s, c->why.s ? c->why.s : "");
        }
        return NULL;
    }
    if (!mc_choice_verified(c, plan)) {
        mc_plan_free(plan);
        return NULL;
    }
    return plan;
}

static void log_plan(const struct mc_choice *c, const struct mc_plan *plan)
{
    struct mc_str text = { 0 };
    mc_plan_text(plan, &text);
    LOG(LOG_PLAN, "%s -> %s, %.3g us %s, workspace %zu", c->key.s, text.s ? text.s : "", plan->cost * 1e6,
        plan->measured ? "measured" : "estimated", plan->workspace);
    for (size_t i = c->able; i < c->list.n; i++) {
        LOG(LOG_PLAN, "    %s %s", c->list.at[i].solver->name, c->list.at[i].no);
    }
    mc_str_free(&text);
}

static struct mc_plan *choose(struct mc_choice *c)
{
#ifndef MC_RUNTIME
    const struct mc_solver *wanted = c->problem->options.solver;
    if (wanted && !mc_plan_declines(c->problem, wanted)) {
        return forced(c, wanted->name);
    }
#endif
    const char *name = c->problem->family->forced ? c->problem->family->forced(c->problem, &c->mode) : "auto";
    if (!name) {
        return NULL;
    }
    if (strcmp(name, "auto") != 0) {
        return forced(c, name);
    }
    const bool times = c->mode != PLAN_ESTIMATE && c->problem->family->operands;
    struct mc_plan *plan = chosen_before(c);
    if (plan && !mc_choice_verified(c, plan)) {
        mc_plan_free(plan);
        return NULL;
    }
    if (plan || (times && (!plan_from_wisdom(c, &plan) || plan))) {
        return plan;
    }
    if (!collect_candidates(c)) {
        return NULL;
    }
    if (c->able == 0) {
        struct mc_str why = { 0 };
        mc_plan_reasons(c->problem, &why);
        mc_fail(MC_EUNSUPPORTED, "no solver for %s: %s", c->key.s, why.s ? why.s : "");
        mc_str_free(&why);
        return NULL;
    }
    if (!times) {
        return mc_choice_cheapest(c);
    }
    plan = mc_choice_fastest(c);
    remember(c, plan);
    return plan;
}

struct mc_plan *mc_plan_make(const struct mc_problem *p)
{
    struct mc_choice c = { .problem = p, .mode = mode_of(p) };
    struct mc_plan *plan = NULL;
    mc_clear_error(); /* so that mc_last_status tells of this call only */
    p->family->key(p, &c.key);
    if (!c.key.bad && c.key.s) {
        mc_code_list *before = mc_plan_note(p, NULL); /* not of candidates that lose */
        plan = choose(&c);
        mc_plan_note(p, before);
        plan = mc_plan_noted(plan);
    }
    if (plan) {
        log_plan(&c, plan);
    }
    mc_str_free(&c.key);
    mc_str_free(&c.why);
    VEC_FREE(c.list);
    return plan;
}

double mc_plan_cheapest(const struct mc_problem *p)
{
    double least = 1e30;
    for (const struct mc_solver *const *s = p->family->solvers; *s; s++) {
        const double seconds = (*s)->refuse && (*s)->refuse(p) ? least : (*s)->estimate(p);
        if (seconds < least && !((*s)->missing && (*s)->missing(p))) {
            least = seconds;
        }
    }
    return least;
}

double mc_plan_seconds(const struct mc_problem *p)
{
    struct mc_choice c = { .problem = p, .mode = mode_of(p) };
    char name[64];
    double seconds = -1;
    const char *asked = p->family->forced ? p->family->forced(p, &c.mode) : "auto";
    p->family->key(p, &c.key);
    const bool good = !c.key.bad && c.key.s && asked && strcmp(asked, "auto") == 0;
    const struct mc_chosen_solver *one = good ? listed(&c) : NULL;
    const bool timed = one || (good && c.mode != PLAN_ESTIMATE &&
                               (wisdom_of(&c, true, name, &seconds) || wisdom_of(&c, false, name, &seconds)));
    seconds = one ? one->seconds : seconds;
    if (good && !timed && collect_candidates(&c) && c.able) {
        seconds = c.list.at[0].estimate;
    }
    if (!asked) {
        mc_clear_error(); /* planning will report it */
    }
    mc_str_free(&c.key);
    VEC_FREE(c.list);
    return seconds;
}
