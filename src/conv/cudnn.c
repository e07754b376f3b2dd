/* cudnn.c: convolutions by cuDNN's backend: every pass, its heuristics, every engine and knob.
 *
 *   estimate    the first configuration that its heuristic (mode A) names and that can be had
 *   measure     those of modes A, B and fallback, and every engine as it sets its own knobs, timed as long as a budget lasts:
 *               the heuristics do not name the transforms of forward passes, which are up to 28 times as fast as what they do
 *   exhaustive  the same, and every engine with every choice of its knobs, up to a number of each
 *
 * A configuration is known as "e38:5f1c...", its engine and a hash of its knobs; wisdom keeps the fastest.  Its notes are
 * not the last word on what it rounds: before one is taken its result is looked at (mc_plan_exact), and what was found is
 * remembered.
 *
 * Invariant: what is taken can be recorded, needs no more workspace than the flag allows, is let through by
 * cudnn_engines.c, and was as exact as the problem allows. */
#include "conv/cuda.h"
#include <stdio.h>
#include <stdlib.h>

enum { ALIGNED = 16 };

struct ready {                  /* an execution plan */
    struct mc_dnn made;
    void *plan;
    size_t workspace;
    char name[MC_DNN_NAME];
};
struct dnn {
    struct mc_plan base;
    struct mc_dnn graph, loose_graph;
    struct ready use, loose;    /* loose: for pointers that are aligned to an element only */
    struct mc_cuda_copy *c0;
};

static struct dnn *dnn(const struct mc_plan *p)
{
    return (struct dnn *)(void *)(uintptr_t)p;
}

static void *handle(void)
{
    struct mc_cuda *d = mc_cuda_current();
    if (!d->dnn && (mc_nv.cudnnCreate(&d->dnn) != 0 || mc_nv.cudnnSetStream(d->dnn, d->stream) != 0)) {
        d->dnn = NULL;
        mc_fail(MC_EUNSUPPORTED, "%s: cuDNN does not start", d->name);
    }
    return d->dnn;
}

/* ---- a call ---- */

static mc_status execute(const struct ready *r, const struct mc_conv_problem *p, void *const *operand, void *workspace)
{
    static const int from[] = { [DNN_X] = CONV_X, [DNN_W] = CONV_W, [DNN_Y] = CONV_Y, [DNN_C0] = CONV_C0, [DNN_BIAS] = CONV_BIAS };
    const bool there[] = { true, true, true, mc_dnn_fused(p) && p->beta != 0, p->has_bias };
    struct mc_dnn g = { 0 };
    int64_t id[NELEM(from)], n = 0;
    void *at[NELEM(from)];
    for (int i = 0; i < (int)NELEM(from); i++) {
        if (there[i]) {
            id[n] = i;
            at[n++] = operand[from[i]];
        }
    }
    void *pack = mc_dnn_new(&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    mc_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, id);
    mc_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at);
    mc_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    mc_dnn_finish(&g, pack);
    const int failed = g.failed ? -1 : mc_nv.cudnnBackendExecute(handle(), r->plan, pack);
    mc_dnn_free(&g);
    return failed ? mc_fail(MC_EUNSUPPORTED, "conv: cuDNN's %s failed: %s", r->name, failed < 0 ? "no variant pack" : mc_nv.cudnnGetErrorString(failed))
                  : MC_OK;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct dnn *d = dnn(plan);
    const struct mc_conv_problem *p = conv(plan->problem);
    uintptr_t low = (uintptr_t)workspace;
    void *result = mc_conv_cuda_result(p, operand);
    (void)threads;
    for (int i = CONV_X; i <= CONV_Y; i++) {
        low |= (uintptr_t)operand[i];
    }
    low |= mc_dnn_fused(p) && p->beta != 0 ? (uintptr_t)operand[CONV_C0] : 0;
    low |= p->has_bias ? (uintptr_t)operand[CONV_BIAS] : 0;
    if (d->c0 && operand[CONV_C0] != result) {
        TRY(mc_cuda_copy_run(d->c0, result, operand[CONV_C0]));
    }
    return execute(low % ALIGNED && d->loose.plan ? &d->loose : &d->use, p, operand, workspace);
}

/* ---- execution plans ---- */

static void forget(struct ready *r)
{
    mc_dnn_free(&r->made);
    r->plan = NULL;
}

/* A configuration made ready to run; false: it cannot be, is not for p, or needs more workspace than the flag allows. */
static bool prepare(const struct mc_conv_problem *p, void *config, struct ready *r)
{
    void *h = handle();
    *r = (struct ready){ 0 };
    if (!mc_dnn_describe(p, config, r->name)) {
        return false;
    }
    r->plan = mc_dnn_new(&r->made, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    mc_dnn_set(&r->made, r->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
    mc_dnn_set(&r->made, r->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    mc_dnn_finish(&r->made, r->plan);
    const int64_t bytes = r->made.failed ? -1 : mc_dnn_number(r->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0);
    if (bytes < 0 || bytes > (int64_t)mc_plan_cap(&mc_site_cuda)) {
        forget(r);
        return false;
    }
    r->workspace = (size_t)bytes;
    return true;
}

/* ---- which is taken ---- */

struct search {
    struct dnn *d;
    const struct mc_conv_problem *p;
    struct ready best;
    double seconds;
    const char *wanted;         /* a name from wisdom; NULL: any */
    void *operand[8];
    VEC(uint64_t) seen;
    double each, end;           /* seconds for one, and when to stop */
};

struct trial {
    const struct ready *r;
    const struct search *s;
    void *workspace;
};

static mc_status run_trial(void *arg)
{
    const struct trial *t = arg;
    return execute(t->r, t->s->p, t->s->operand, t->workspace);
}

static double seconds_of(const struct search *s, const struct ready *r)
{
    struct trial t = { .r = r, .s = s, .workspace = r->workspace ? mc_site_cuda.take(r->workspace) : NULL };
    struct mc_timing got = { 0 };
    if (t.workspace || !r->workspace) {
        got = mc_site_cuda.time(run_trial, &t, s->each, 1.3 * s->seconds);
    }
    mc_site_cuda.give(t.workspace);
    return got.n > 0 ? got.least : -1;
}

/* ---- doubt ---- */

static bool key_of(const struct mc_conv_problem *p, const char *what, struct mc_str *key)
{
    mc_site_cuda.word(key);
    mc_str_addf(key, " cudnn %s%s ", mc_nv_found(NV_CUDNN)->version, what);
    mc_conv_word(&p->base, key);
    return !key->bad;
}

/* Of one that has just run. */
static bool exact_now(const struct search *s, const struct ready *r)
{
    return mc_plan_exact(&s->p->base, s->operand, r->name);
}

/* Of one that nobody has timed, by a run of its own.  Where there is no memory for that its notes are believed. */
static bool exact_once(struct search *s, const struct ready *r, bool *asked)
{
    const struct mc_family *family = s->p->base.family;
    struct trial t = { .r = r, .s = s, .workspace = r->workspace ? mc_site_cuda.take(r->workspace) : NULL };
    bool ok = true;
    *asked = (t.workspace || !r->workspace) && family->operands(&s->p->base, s->operand) >= 0;
    if (*asked) {
        ok = run_trial(&t) >= 0 && exact_now(s, r);
        family->discard(&s->p->base, s->operand);
    } else {
        mc_clear_error();
    }
    mc_site_cuda.give(t.workspace);
    return ok;
}

static bool exact(struct search *s, const struct ready *r)
{
    struct mc_str key = { 0 };
    char said[64], what[MC_DNN_NAME + 8];
    double unused;
    bool ok, asked = false;
    snprintf(what, sizeof what, " %s is", r->name);
    const bool named = key_of(s->p, what, &key);
    if (named && mc_wisdom_find(key.s, said, &unused)) {
        ok = strcmp(said, "exact") == 0 || mc_fail(MC_ECHECK, "%s is not as exact as is asked", r->name) == MC_OK;
    } else {
        ok = exact_once(s, r, &asked);
    }
    if (named && asked) {
        mc_wisdom_put(key.s, ok ? "exact" : "inexact", 0);
    }
    mc_str_free(&key);
    return ok;
}

static bool take_first(void *arg, void *config)
{
    struct search *s = arg;
    char name[MC_DNN_NAME];
    if ((s->wanted && (!mc_dnn_describe(s->p, config, name) || strcmp(name, s->wanted) != 0)) || !prepare(s->p, config, &s->best)) {
        return false;
    }
    if (!s->wanted && !exact(s, &s->best)) {
        LOG(LOG_PLAN, "    cudnn is not taken: %s", mc_last_error());
        forget(&s->best);
    }
    return s->best.plan != NULL;
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

static bool time_one(void *arg, void *config)
{
    struct search *s = arg;
    struct ready r;
    char name[MC_DNN_NAME];
    if (!mc_dnn_describe(s->p, config, name) || known(s, name) || !prepare(s->p, config, &r)) {
        return false;
    }
    const double t = seconds_of(s, &r);
    LOG(LOG_PLAN, "    cudnn %s takes %.3g us, workspace %zu", r.name, t * 1e6, r.workspace);
    const bool wins = t > 0 && (!s->best.plan || t < 0.98 * s->seconds), good = wins && exact_now(s, &r);
    if (wins && !good) {
        LOG(LOG_PLAN, "    cudnn is not taken: %s", mc_last_error());
    }
    if (good) {
        forget(&s->best);
        s->best = r;
        s->seconds = t;
    } else {
        forget(&r);
    }
    return mc_now() > s->end && s->best.plan;
}

/* What was fastest, of those that were looked at. */
static bool word(const struct mc_conv_problem *p, enum mc_plan_mode mode, struct mc_str *key)
{
    return key_of(p, mode == PLAN_EXHAUSTIVE ? " exact all" : " exact", key);
}

/* What wisdom remembers; an exhaustive search counts for every mode. */
static bool remembered(struct search *s, void *graph)
{
    for (int mode = PLAN_EXHAUSTIVE; mode >= (int)mc_plan_mode() && mode >= PLAN_MEASURE; mode--) {
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
    s->each = mode == PLAN_EXHAUSTIVE ? 0.02 : 0.01;
    s->end = mc_now() + (mode == PLAN_EXHAUSTIVE ? 60 : 1.5);
    mc_dnn_walk(s->p, graph, mode, time_one, s);
    s->p->base.family->discard(&s->p->base, s->operand);
    if (s->best.plan && word(s->p, mode, &key)) {
        mc_wisdom_put(key.s, s->best.name, s->seconds);
    }
    mc_str_free(&key);
    VEC_FREE(s->seen);
}

static bool choose(struct dnn *d, const struct mc_conv_problem *p, void *graph)
{
    struct search s = { .d = d, .p = p };
    const enum mc_plan_mode mode = mc_plan_mode();
    if (!remembered(&s, graph) && mode >= PLAN_MEASURE) {
        time_all(&s, graph, mode);
    }
    if (!s.best.plan) {
        mc_dnn_walk(p, graph, PLAN_MEASURE, take_first, &s);
    }
    d->use = s.best;
    return d->use.plan != NULL;
}

/* ---- a plan ---- */

static void destroy(struct mc_plan *plan)
{
    struct dnn *d = dnn(plan);
    forget(&d->use);
    forget(&d->loose);
    mc_dnn_free(&d->graph);
    mc_dnn_free(&d->loose_graph);
    mc_cuda_copy_free(d->c0);
}

/* The first that the heuristic names for pointers that lie anywhere. */
static void choose_loose(struct dnn *d, const struct mc_conv_problem *p)
{
    struct search s = { .d = d, .p = p };
    void *graph = mc_dnn_graph(&d->loose_graph, handle(), p, mc_dtypes[p->dtype].size);
    if (graph && mc_dnn_walk(p, graph, PLAN_ESTIMATE, take_first, &s)) {
        d->loose = s.best;
    }
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct dnn *d = mc_calloc(1, sizeof *d, "plans");
    if (!d || !handle()) {
        mc_free(d);
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = destroy;
    void *graph = mc_dnn_graph(&d->graph, handle(), p, ALIGNED);
    bool ok = graph && choose(d, p, graph);
    if (ok && p->beta != 0 && !mc_dnn_fused(p)) {
        d->c0 = mc_conv_cuda_c0_copy(p);
        ok = d->c0 != NULL;
    }
    if (!ok) {
        if (mc_last_status() >= 0) {
            mc_fail(MC_EUNSUPPORTED, graph ? "conv: cuDNN has no engine for this" : "conv: cuDNN makes no graph of this");
        }
        destroy(&d->base);
        mc_free(d);
        return NULL;
    }
    choose_loose(d, p);
    d->base.workspace = MC_MAX(d->use.workspace, d->loose.workspace);
    return &d->base;
}

static const char *refuse(const struct mc_problem *p)
{
    const char *no = mc_dnn_refuse(conv(p));
    return no                                         ? no
           : mc_flag_int(FLAG_dnn_enabled) == DNN_NEVER ? "is switched off by the flag dnn.enabled"
           : !mc_nv_found(NV_CUDNN)->there            ? "finds no library"
                                                      : NULL;
}

enum { TILE = 64, THICK = 32 };

/* How much of the units few channels keep at work: tensor cores sum over channels first (3 of bfloat16 ran at 23 TFLOP/s on an
 * H200, 3 of TF32 at 17), and a gradient of images has a column for each. */
static double thick(const struct mc_conv_problem *p)
{
    const bool matters = p->tf32 || mc_dtypes[p->dtype].size == 2 || p->s.pass == CONV_INPUTS;
    return matters && p->s.groups == 1 ? MC_MIN((double)p->s.c / THICK, 1) : 1;
}

/* As products of matrices that are never written: a gradient of images looks at every tap of every place of x, and few
 * tiles of a result keep few processors busy.  224 x 224 taps for 3 x 3 places take 16 to 41 ms on an H200, at 0.7 GFLOP. */
static double implicit(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const struct mc_cuda *d = mc_cuda_current();
    const double places = (double)conv_volume(s->out), seen = s->pass == CONV_INPUTS ? MC_MAX((double)conv_volume(s->in) / places, 1) : 1;
    const double walked = mc_conv_flops(p) * MC_MAX(seen / (double)conv_volume(s->stride), 1);
    const int64_t rows = s->n * conv_volume(s->pass == CONV_INPUTS ? s->in : s->out), cols = s->pass == CONV_INPUTS ? s->c : s->f;
    const double tiles = (double)(conv_ceil(rows, TILE) * conv_ceil(cols, TILE));
    const double busy = s->pass == CONV_WEIGHTS || !d ? 1 : MC_MIN(4 * tiles / d->processors, 1);   /* sums of weights are cut in parts */
    return mc_cuda_seconds(p->dtype, p->tf32, walked, mc_conv_bytes(p), thick(p) * busy * (mc_dtypes[p->dtype].size == 2 ? 0.3 : 0.6));
}

/* It transforms too, though its heuristics may not say so: what ours takes, and a little. */
static double estimate(const struct mc_problem *p)
{
    const struct mc_solver *fft = &mc_conv_cuda_fft;
    return 2e-6 + (fft->refuse(p) ? implicit(conv(p)) : MC_MIN(implicit(conv(p)), 1.1 * fft->estimate(p)));
}

const struct mc_solver mc_conv_cudnn = { .name = "cudnn", .refuse = refuse, .estimate = estimate, .plan = plan };
