/* engines.c: the engines of cuDNN and their knobs: those that its heuristics propose for a graph, and all
 * others.
 *
 * Invariant: no engine is named whose numerical notes say that it rounds inputs to fewer bits than the
 * problem allows, sums halves in halves, or, with the flag deterministic, may give other bits on another
 * run. */
#include "heavy/conv/cuda/cuda.h"
#include <inttypes.h>
#include <stdio.h>

enum { MOST_HEURISTIC = 24, MOST_KNOBS = 24, MOST_CHOICES = 128 };

/* ---- a configuration ---- */

static bool read(void *desc, int name, int type, int64_t most, int64_t *n, void *values)
{
    *n = 0;
    return mc_nv.cudnnBackendGetAttribute(desc, name, type, most, n, values) == 0;
}

int64_t mc_dnn_number(void *desc, int name, int64_t missing)
{
    int64_t n, v = missing;
    return read(desc, name, CUDNN_TYPE_INT64, 1, &n, &v) && n == 1 ? v : missing;
}

/* Do the engine's numerical notes allow it for p? unnamed: no heuristic names it.  Such Winograd engines
 * are refused for float32: on 3x3 filters they were off by 4.1e-6 on an H200, those that the heuristics
 * name by 4.3e-7 (cuDNN 9.19). */
static bool allowed(const struct mc_conv_problem *p, void *engine, bool unnamed)
{
    int note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT + 22];
    int64_t n;
    if (!read(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, NELEM(note), &n, note)) {
        return false;
    }
    const bool narrow = mc_dtypes[p->dtype].size == 2;
    for (int64_t i = 0; i < n && i < (int64_t)NELEM(note); i++) {
        const int v = note[i];
        if ((v == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && p->dtype == MC_FLOAT32 && !p->tf32) ||
            (v == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS && !narrow) ||
            v == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
            v == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 ||
            (v == CUDNN_NUMERICAL_NOTE_WINOGRAD && unnamed && !narrow && !p->tf32) ||
            (v == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && p->base.options.deterministic)) {
            return false;
        }
    }
    return true;
}

enum { MOST_NOTES = 32 };

/* Do the engine's notes of this kind include `which`? */
static bool notes(void *engine, int name, int type, int which)
{
    int note[MOST_NOTES];
    int64_t n;
    bool so = false;
    read(engine, name, type, MOST_NOTES, &n, note);
    for (int64_t i = 0; i < n && i < MOST_NOTES; i++) {
        so = so || note[i] == which;
    }
    return so;
}

/* The engine and knobs of a configuration. */
bool mc_dnn_describe(const struct mc_conv_problem *p, void *config, struct mc_dnn_config *c)
{
    struct mc_dnn g = { 0 };
    void *engine = mc_dnn_new(&g, CUDNN_BACKEND_ENGINE_DESCRIPTOR), *knob[MOST_KNOBS];
    int64_t n = 0;
    uint64_t h = 0;
    bool ok = engine &&
              read(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) &&
              allowed(p, engine, false);
    for (size_t i = 0; i < MOST_KNOBS; i++) {
        knob[i] = mc_dnn_new(&g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    }
    if (ok && !g.failed &&
        read(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_KNOBS, &n,
             knob)) {
        for (int64_t i = 0; i < n && i < MOST_KNOBS; i++) {
            int type = -1;
            int64_t one;
            read(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &type);
            h ^= mc_hash_mix(
                (uint64_t)type,
                (uint64_t)mc_dnn_number(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, -1)); /* xor: any order */
        }
    }
    c->engine = ok ? mc_dnn_number(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1) : -1;
    c->compiles = ok && notes(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                              CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
    c->cores = ok && notes(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                           CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    mc_snprintf(c->name, sizeof c->name, "e%" PRId64 ":%016" PRIx64, c->engine, h);
    mc_dnn_free(&g);
    return ok;
}

/* ---- all configurations ---- */

static bool heuristic(void *graph, int mode, mc_dnn_visit *f, void *arg)
{
    struct mc_dnn g = { 0 };
    void *result[MOST_HEURISTIC];
    int64_t n = 0;
    enum mc_dnn_next next = DNN_ON;
    void *h = mc_dnn_new(&g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    mc_dnn_set(&g, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    mc_dnn_set(&g, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    mc_dnn_finish(&g, h);
    for (size_t i = 0; i < MOST_HEURISTIC; i++) {
        result[i] = mc_dnn_new(&g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    }
    if (!g.failed &&
        read(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_HEURISTIC, &n, result)) {
        for (int64_t i = 0; i < n && i < MOST_HEURISTIC && next == DNN_ON; i++) {
            next = f(arg, result[i], mode != CUDNN_HEUR_MODE_FALLBACK);
        }
    }
    mc_dnn_free(&g);
    return next == DNN_END;
}

struct knob { int type; int64_t least, most, step, value; };

static int64_t knobs_of(struct mc_dnn *g, void *engine, struct knob knob[MOST_KNOBS])
{
    void *info[MOST_KNOBS];
    int64_t n = 0, one;
    for (size_t i = 0; i < MOST_KNOBS; i++) {
        info[i] = mc_dnn_new(g, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
    }
    if (g->failed ||
        !read(engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_KNOBS, &n, info)) {
        return 0;
    }
    n = MC_MIN(n, (int64_t)MOST_KNOBS);
    for (int64_t i = 0; i < n; i++) {
        struct knob *k = &knob[i];
        read(info[i], CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &k->type);
        k->least = k->value = mc_dnn_number(info[i], CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, 0);
        k->most = mc_dnn_number(info[i], CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, 0);
        k->step = MC_MAX(mc_dnn_number(info[i], CUDNN_ATTR_KNOB_INFO_STRIDE, 1), (int64_t)1);
    }
    return n;
}

/* One configuration of an engine; knob NULL: with cuDNN's default knobs. */
static enum mc_dnn_next configure(void *engine, const struct knob *knob, int64_t n, mc_dnn_visit *f,
                                  void *arg)
{
    struct mc_dnn g = { 0 };
    void *choice[MOST_KNOBS];
    void *config = mc_dnn_new(&g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    mc_dnn_set(&g, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    for (int64_t i = 0; knob && i < n; i++) {
        choice[i] = mc_dnn_new(&g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        mc_dnn_set(&g, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob[i].type);
        mc_dnn_set(&g, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &knob[i].value);
        mc_dnn_finish(&g, choice[i]);
    }
    if (knob && n > 0) {
        mc_dnn_set(&g, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, choice);
    }
    mc_dnn_finish(&g, config);
    const enum mc_dnn_next next = g.failed ? DNN_ON : f(arg, config, false);
    mc_dnn_free(&g);
    return next;
}

/* The next combination of choices: knobs are the digits of a number. */
static bool turn(struct knob *knob, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        knob[i].value += knob[i].step;
        if (knob[i].value <= knob[i].most) {
            return true;
        }
        knob[i].value = knob[i].least;
    }
    return false;
}

/* Visits the engine with its default knobs and, if `every` is set, with each combination of choices. */
static bool engine(const struct mc_conv_problem *p, void *graph, int64_t index, bool every, mc_dnn_visit *f,
                   void *arg)
{
    struct mc_dnn g = { 0 };
    struct knob knob[MOST_KNOBS] = { 0 };
    enum mc_dnn_next next = DNN_LEAVE;
    void *desc = mc_dnn_new(&g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    mc_dnn_set(&g, desc, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    mc_dnn_set(&g, desc, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    mc_dnn_finish(&g, desc);
    if (!g.failed && allowed(p, desc, true)) {
        next = configure(desc, NULL, 0, f, arg);
        const int64_t n = next != DNN_ON || !every ? 0 : knobs_of(&g, desc, knob);
        bool more = n > 0;
        for (int i = 0; i < MOST_CHOICES && more && next == DNN_ON; i++) {
            next = configure(desc, knob, n, f, arg);
            more = turn(knob, n);
        }
    }
    mc_dnn_free(&g);
    return next == DNN_END;
}

bool mc_dnn_engine(const struct mc_conv_problem *p, void *graph, int64_t index, mc_dnn_visit *f, void *arg)
{
    return engine(p, graph, index, true, f, arg);
}

/* The newest engines first: where an engine that no heuristic names is the fastest, it is a new one. */
static bool every_engine(const struct mc_conv_problem *p, void *graph, bool every, mc_dnn_visit *f, void *arg)
{
    const int64_t count = mc_dnn_number(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 0);
    bool ended = false;
    for (int64_t i = count; i-- > 0 && !ended;) {
        ended = engine(p, graph, i, every, f, arg);
    }
    return ended;
}

bool mc_dnn_walk(const struct mc_conv_problem *p, void *graph, enum mc_plan_mode mode, mc_dnn_visit *f,
                 void *arg)
{
    return heuristic(graph, CUDNN_HEUR_MODE_A, f, arg) ||
           (mode >= PLAN_MEASURE && heuristic(graph, CUDNN_HEUR_MODE_B, f, arg)) ||
           (mode >= (mc_dnn_fused(p) ? PLAN_EXHAUSTIVE : PLAN_MEASURE) &&
            every_engine(p, graph, false, f, arg)) ||
           heuristic(graph, CUDNN_HEUR_MODE_FALLBACK, f, arg) ||
           (mode >= PLAN_EXHAUSTIVE && every_engine(p, graph, true, f, arg));
}
