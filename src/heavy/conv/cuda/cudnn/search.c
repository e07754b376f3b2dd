/* search.c: selects one of cuDNN's configurations for a problem.
 *
 *   estimate    the first usable configuration that its heuristic (mode A) names
 *   measure     times configurations within a budget: those of modes A and B (each list until 10 in a row
 *               have not won; 3 in later lists), every engine with its default knobs, the newest first, and
 *               mode fallback.  The heuristics do not name the transforms of forward passes, which are up
 *               to 28 times as fast as what they name, nor the engines that they would have to compile.
 *               For graphs with an epilogue only those of the heuristics are timed: the others are timed
 *               for the bare convolution, which runs with an epilogue kernel.
 *   exhaustive  the same, and every engine with every choice of its knobs, up to a limit for each
 *
 * A configuration is named "e38:5f1c...", by its engine and a hash of its knobs; wisdom keeps the
 * fastest.  Its notes do not always tell how it rounds: before one is selected its result is checked
 * (mc_plan_exact), and wisdom keeps the outcome.
 *
 * Invariant: the selected configuration can be captured, needs no more workspace than the flag allows,
 * passes the checks of engines.c, and is as exact as the problem requires. */
#include "heavy/conv/cuda/cuda.h"
#include <stdio.h>
#include <stdlib.h>

void *mc_dnn_handle(void)
{
    struct mc_cuda *d = mc_cuda_current();
    void *made = NULL;
    if (d->dnn) {
        return d->dnn;
    }
    if (mc_nv.cudnnCreate(&made) != 0) {
        made = NULL;
    } else if (mc_nv.cudnnSetStream(made, d->stream) == 0) {
        return d->dnn = made;
    }
    if (made) {
        mc_nv.cudnnDestroy(made);
    }
    mc_fail(MC_EUNSUPPORTED, "%s: cuDNN does not start", d->name);
    return NULL;
}

mc_status mc_dnn_execute(const struct mc_dnn_ready *r, const struct mc_conv_problem *p, void *const *operand,
                         void *workspace)
{
    static const int from[] = {
        [DNN_X] = CONV_X, [DNN_W] = CONV_W, [DNN_Y] = CONV_Y, [DNN_C0] = CONV_C0, [DNN_BIAS] = CONV_BIAS
    };
    const bool exists[] = { true, true, true, mc_dnn_fused(p) && p->beta != 0, p->has_bias };
    struct mc_dnn g = { 0 };
    int64_t id[NELEM(from)], n = 0;
    void *at[NELEM(from)];
    for (int i = 0; i < (int)NELEM(from); i++) {
        if (exists[i]) {
            id[n] = i;
            at[n++] = operand[from[i]];
        }
    }
    void *pack = mc_dnn_new(&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    mc_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, id);
    mc_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at);
    mc_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    mc_dnn_finish(&g, pack);
    const int failed = g.failed ? -1 : mc_nv.cudnnBackendExecute(mc_dnn_handle(), r->plan, pack);
    mc_dnn_free(&g);
    return failed ? mc_fail(MC_EUNSUPPORTED, "conv: cuDNN's %s failed: %s", r->name,
                            failed < 0 ? "no variant pack" : mc_nv.cudnnGetErrorString(failed))
                  : MC_OK;
}

/* ---- execution plans ---- */

void mc_dnn_forget(struct mc_dnn_ready *r)
{
    mc_dnn_free(&r->made);
    r->plan = NULL;
}

/* Finalizes a configuration; false: it cannot be, is not usable for p, or needs more workspace than the
 * flag allows. */
static bool prepare(const struct mc_conv_problem *p, void *config, struct mc_dnn_ready *r)
{
    void *h = mc_dnn_handle();
    struct mc_dnn_config c;
    *r = (struct mc_dnn_ready){ 0 };
    if (!mc_dnn_describe(p, config, &c)) {
        return false;
    }
    memcpy(r->name, c.name, sizeof r->name);
    r->plan = mc_dnn_new(&r->made, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    mc_dnn_set(&r->made, r->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
    mc_dnn_set(&r->made, r->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
               &config);
    mc_dnn_finish(&r->made, r->plan);
    const int64_t bytes = r->made.failed
                              ? -1
                              : mc_dnn_number(r->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0);
    if (bytes < 0 || bytes > (int64_t)p->base.options.workspace) {
        mc_dnn_forget(r);
        return false;
    }
    r->workspace = (size_t)bytes;
    return true;
}

/* ---- selection ---- */

struct search {
    const struct mc_conv_problem *p;
    struct mc_dnn_ready best;
    double seconds;
    const char *wanted;         /* the name of one that was checked; NULL: any */
    bool believed;              /* accept unchecked configurations by their notes */
    void *operand[8];
    VEC(uint64_t) seen;
    double each, budget, end;   /* seconds: for one, for all after the first; end: when the budget is spent */
    enum mc_plan_mode mode;
    /* since the last win: how many were tried in this list, and how many that compile */
    int idle, built;
    bool left, unnamed;         /* left: a list was left early; unnamed: past the heuristics' lists */
};

struct trial {
    const struct mc_dnn_ready *r;
    const struct search *s;
    void *workspace;
};

static mc_status run_trial(void *arg)
{
    const struct trial *t = arg;
    return mc_dnn_execute(t->r, t->s->p, t->s->operand, t->workspace);
}

static double seconds_of(const struct search *s, const struct mc_dnn_ready *r)
{
    struct trial t = { .r = r, .s = s, .workspace = r->workspace ? mc_site_cuda.take(r->workspace) : NULL };
    struct mc_timing got = { 0 };
    if (t.workspace || !r->workspace) {
        got = mc_site_cuda.time(run_trial, &t, s->each, 1.3 * s->seconds);
    }
    mc_site_cuda.give(t.workspace);
    return got.n > 0 ? got.least : -1;
}

/* ---- checks of exactness ---- */

/* cuDNN sees the same problem whatever wraps it. */
static bool key_of(const struct mc_conv_problem *p, const char *what, struct mc_str *key)
{
    struct mc_conv_problem bare = *p;
    bare.inner = 0;
    mc_site_cuda.name(key);
    mc_str_addf(key, " cudnn %s%s ", mc_nv_found(NV_CUDNN)->version, what);
    mc_conv_key(&bare.base, key);
    return !key->bad;
}

/* Checks the result of the run that has just ended. */
static bool check_error_now(const struct search *s, const struct mc_dnn_ready *r)
{
    return mc_plan_exact(&s->p->base, s->operand, r->name);
}

/* Checks a configuration that was not timed, by a run of its own.  If there is no memory for the run, its
 * notes are believed. */
static bool check_error_once(struct search *s, const struct mc_dnn_ready *r, bool *asked)
{
    const struct mc_family *family = s->p->base.family;
    struct trial t = { .r = r, .s = s, .workspace = r->workspace ? mc_site_cuda.take(r->workspace) : NULL };
    bool ok = true;
    *asked = (t.workspace || !r->workspace) && family->operands(&s->p->base, s->operand) >= 0;
    if (*asked) {
        ok = run_trial(&t) >= 0 && check_error_now(s, r);
        family->discard(&s->p->base, s->operand);
    } else {
        mc_clear_error();
    }
    mc_site_cuda.give(t.workspace);
    return ok;
}

static bool exact(struct search *s, const struct mc_dnn_ready *r)
{
    struct mc_str key = { 0 };
    char said[64], what[MC_DNN_NAME + 8];
    double unused;
    bool ok, asked = false;
    mc_snprintf(what, sizeof what, " %s is", r->name);
    const bool named = key_of(s->p, what, &key);
    if (named && mc_wisdom_find(key.s, said, &unused)) {
        ok = strcmp(said, "exact") == 0 || mc_fail(MC_ECHECK, "%s is not exact enough", r->name) == MC_OK;
    } else {
        ok = s->believed || check_error_once(s, r, &asked);
    }
    if (named && asked) {
        mc_wisdom_put(key.s, ok ? "exact" : "inexact", 0);
    }
    mc_str_free(&key);
    return ok;
}

static enum mc_dnn_next take_first(void *arg, void *config, bool named)
{
    struct search *s = arg;
    struct mc_dnn_config c;
    (void)named;
    if ((s->wanted && (!mc_dnn_describe(s->p, config, &c) || strcmp(c.name, s->wanted) != 0)) ||
        !prepare(s->p, config, &s->best)) {
        return DNN_ON;
    }
    if (!s->wanted && !exact(s, &s->best)) {
        LOG(LOG_PLAN, "    cudnn is not taken: %s", mc_last_error());
        mc_dnn_forget(&s->best);
    }
    return s->best.plan ? DNN_END : DNN_ON;
}

/* ---- configurations that are not worth trying ---- */

/* PATIENCE: how many in a row may lose; LATER: in later lists; MORE: times that for long calls; BUILT: of
 * named ones that compile */
enum { PATIENCE = 10, LATER = 3, MORE = 2, BUILT = 2 };
static const double long_call = 300e-6;
/* A factor on the time at the peak: nothing is compiled to come closer than that. */
static const double near = 1.25;
/* of float32's peak: engine 0 sums element by element, at 0.03 to 3.4 TFLOP/s on an H200 */
static const double by_element = 0.1;

/* Why a configuration that compiles is skipped.  Compiling takes 0.3 to 2.5 s, as long as timing all
 * others.  Of those that no heuristic names only the newest that uses tensor cores won, forward and in
 * gradients of inputs; with TF32 only where transforms were as fast. */
static const char *was_not_compiled(const struct search *s, const struct mc_dnn_config *c, bool named)
{
    return !c->cores ? "would have to be compiled and uses no tensor cores"
           : s->built >= (named ? BUILT : 1)
               ? "would have to be compiled, and the last compiled ones did not win"
           : named ? NULL
           : s->p->s.pass == CONV_WEIGHTS || mc_dtypes[s->p->dtype].size != 2
               ? "would have to be compiled, and never won on such problems"
           : s->seconds < near * mc_conv_cuda_seconds(s->p, 1)
               ? "would have to be compiled, and the best is near the peak already"
               : NULL;
}

/* Why a measured plan skips this configuration; NULL: it is worth timing. */
static const char *is_hopeless(const struct search *s, const struct mc_dnn_config *c, bool named)
{
    if (s->mode == PLAN_EXHAUSTIVE || !s->best.plan) {
        return NULL;
    }
    return c->engine == 0 &&
                   mc_cuda_seconds(MC_FLOAT32, false, mc_conv_flops(s->p), 0, by_element) > s->seconds
               ? "sums element by element"
           : c->compiles ? was_not_compiled(s, c, named)
                         : NULL;
}

/* Configurations that no heuristic names and that win are transforms, which do not help filters of one
 * tap, and the newest engines. */
static bool list_exhausted(struct search *s, bool named)
{
    s->built = named || s->unnamed ? s->built : 0;
    s->unnamed = !named;
    return !named && s->mode != PLAN_EXHAUSTIVE && s->best.plan && conv_volume(s->p->s.k) == 1;
}

static bool should_stop(const struct search *s, bool named)
{
    const int most = s->left ? LATER : PATIENCE;
    return named && s->mode != PLAN_EXHAUSTIVE && s->best.plan &&
           s->idle >= most * (s->seconds > long_call ? MORE : 1);
}

static bool known(struct search *s, const char *name)
{
    const uint64_t h = mc_hash_str(name);
    for (size_t i = 0; i < s->seen.n; i++) {
        if (s->seen.at[i] == h) {
            return true;
        }
    }
    VEC_PUSH(s->seen, h);
    return false;
}

/* True: r is now the best; else r is freed. */
static bool challenge(struct search *s, struct mc_dnn_ready *r, double t)
{
    const bool wins = t > 0 && (!s->best.plan || t < 0.98 * s->seconds), good = wins && check_error_now(s, r);
    if (wins && !good) {
        LOG(LOG_PLAN, "    cudnn is not taken: %s", mc_last_error());
    }
    if (good) {
        mc_dnn_forget(&s->best);
        s->best = *r;
        s->seconds = t;
    } else {
        mc_dnn_forget(r);
    }
    return good;
}

static enum mc_dnn_next time_one(void *arg, void *config, bool named)
{
    struct search *s = arg;
    struct mc_dnn_ready r;
    struct mc_dnn_config c;
    if (list_exhausted(s, named)) {
        return DNN_END;
    }
    if (!mc_dnn_describe(s->p, config, &c) || known(s, c.name)) {
        return DNN_ON;
    }
    const char *why = is_hopeless(s, &c, named);
    const double start = mc_now();
    if (why) {
        LOG(LOG_PLAN, "    cudnn %s %s", c.name, why);
    }
    if (why || !prepare(s->p, config, &r)) {
        return DNN_ON;
    }
    const double ready = mc_now() - start, t = seconds_of(s, &r);
    LOG(LOG_PLAN, "    cudnn %s takes %.3g us, ready in %.3g ms%s, workspace %zu", r.name, t * 1e6,
        ready * 1e3, c.compiles ? ", compiled" : "", r.workspace);
    const bool good = challenge(s, &r, t);
    s->built = good && named ? 0 : s->built + c.compiles;
    s->idle = good ? 0 : s->idle + 1;
    s->end = s->end == 0 ? mc_now() + s->budget
                         : s->end; /* the first of a process loads the library's kernels */
    if (should_stop(s, named)) {
        s->idle = s->built = 0;
        s->left = true;
        return DNN_LEAVE;
    }
    return mc_now() > s->end && s->best.plan ? DNN_END : DNN_ON;
}

/* The key of the fastest checked configuration. */
static bool word(const struct mc_conv_problem *p, enum mc_plan_mode mode, struct mc_str *key)
{
    return key_of(p, mode == PLAN_EXHAUSTIVE ? " exact all" : " exact", key);
}

/* Takes what wisdom has; the result of an exhaustive search serves every mode. */
static bool remembered(struct search *s, void *graph)
{
    const int lowest = MC_MAX((int)s->p->base.options.solver_mode, (int)PLAN_MEASURE);
    for (int mode = PLAN_EXHAUSTIVE; mode >= lowest; mode--) {
        struct mc_str key = { 0 };
        char name[64];
        double seconds;
        if (word(s->p, (enum mc_plan_mode)mode, &key) && mc_wisdom_find(key.s, name, &seconds)) {
            s->wanted = name;
            if (!mc_dnn_walk(s->p, graph, PLAN_MEASURE, take_first, s)) {
                mc_dnn_engine(s->p, graph, strtoll(name + 1, NULL, 10), take_first, s);
            }
            s->wanted = NULL;
        }
        mc_str_free(&key);
        if (s->best.plan) {
            return true;
        }
    }
    return false;
}

static void time_all(struct search *s, void *graph, enum mc_plan_mode mode)
{
    struct mc_str key = { 0 };
    if (s->p->base.family->operands(&s->p->base, s->operand) < 0) {
        return;
    }
    s->mode = mode;
    s->each = mode == PLAN_EXHAUSTIVE ? 0.02 : 0.01;
    s->budget = mode == PLAN_EXHAUSTIVE ? 60 : 1.5;
    mc_dnn_walk(s->p, graph, mode, time_one, s);
    s->p->base.family->discard(&s->p->base, s->operand);
    if (s->best.plan && word(s->p, mode, &key)) {
        mc_wisdom_put(key.s, s->best.name, s->seconds);
    }
    mc_str_free(&key);
    VEC_FREE(s->seen);
}

bool mc_dnn_choose(const struct mc_conv_problem *p, void *graph, struct mc_dnn_ready *use)
{
    struct search s = { .p = p };
    const enum mc_plan_mode mode = p->base.options.solver_mode;
    if (!remembered(&s, graph) && mode >= PLAN_MEASURE) {
        time_all(&s, graph, mode);
    }
    if (!s.best.plan) {
        mc_dnn_walk(p, graph, PLAN_MEASURE, take_first, &s);
    }
    *use = s.best;
    return use->plan != NULL;
}

bool mc_dnn_choose_like(const struct mc_conv_problem *p, void *graph, const struct mc_dnn_ready *like,
                        struct mc_dnn_ready *use)
{
    struct search s = { .p = p, .wanted = like->name, .believed = p->tf32 || mc_dtypes[p->dtype].size == 2 };
    if (!mc_dnn_walk(p, graph, PLAN_ESTIMATE, take_first, &s)) {
        s.wanted = NULL;
        mc_dnn_walk(p, graph, PLAN_ESTIMATE, take_first, &s);
    }
    *use = s.best;
    return use->plan != NULL;
}
