/* capture.c: captures a call, its steps in order, or in dynamic launch order.  There each step waits only for
 * the steps that it depends on, so that a GPU runs others at the same time: the gradient of filters beside
 * that of images, sums beside the steps that read them last.  Where the plan reuses memory at once, all steps
 * keep their order, but for collectives, which run beside the steps after them.
 *
 * If results that go to the host are made before the last steps, the graph is marked there: the host has them
 * while gradients and updates still run, and prepares the next call.  The mark waits for all checks as well,
 * so that a call returns its own error.
 *
 * Invariant: if two steps touch the same memory and one of them writes it, the later waits for the earlier.
 * Collectives follow each other in the order of the steps, which is the same on all ranks.  Inputs and
 * constants are only read, so only the arena, results and shared variables matter. */
#include "exec/cuda/cuda.h"
#include "exec/heavy/heavy.h"

enum { COLLECTIVE = -1, IN_ORDER = -2, VARIABLES = -3 };
struct span {
    /* 0: the arena; i + 1: result i; VARIABLES - i: shared variable i.  COLLECTIVE, IN_ORDER: what steps
     * write that follow each other */
    int of;
    int64_t from, end;          /* bytes of that memory */
    bool write;
};
typedef VEC(struct span) spans;
struct order {
    const struct mc_function *f;
    const struct mc_shape_plan *p;
    spans span;                 /* memory of all steps; step i's entries are first[i] to first[i + 1] */
    int *first;
    /* a row of bits for each step: the steps that it waits for, also indirectly */
    uint64_t *behind;
    size_t words;               /* in a row */
    VEC(void *) node;           /* last graph nodes of the steps; step i's are last[i] to last[i + 1] */
    int *last;
    bool *followed;             /* does a later step wait for it? */
};

/* ---- the memory of a step ---- */

static bool add_value(struct order *o, int v, bool write)
{
    v = mc_cuda_fn_memory_of(o->f, o->p, v);
    const struct mc_slot *slot = v < 0 ? NULL : &o->p->slot[v];
    if (!slot || (slot->base != BASE_ARENA && slot->base != BASE_OUTPUT && slot->base != BASE_SHARED)) {
        return true;
    }
    const int of = slot->base == BASE_OUTPUT   ? slot->index + 1
                   : slot->base == BASE_SHARED ? VARIABLES - slot->index
                                               : 0;
    return VEC_PUSH(o->span,
                    ((struct span){ of, slot->offset, slot->offset + (int64_t)mc_slot_bytes(slot), write }));
}

static bool add_sources(struct order *o, const struct mc_step *st)
{
    bool good = true;
    for (int i = 0; i < st->nsrc; i++) {
        good = good && add_value(o, st->src[i], false);
    }
    for (int i = 0; st->heavy && i < st->heavy->nin; i++) {
        good = good && add_value(o, mc_heavy_source(o->f, st->heavy, i), false);
    }
    return good;
}

static bool has_work(const struct mc_step *st, const struct mc_step_plan *sp)
{
    return sp->exec && !sp->exec->ops->host && !sp->exec->ops->ahead &&
           (!mc_heavy_is_skipped(sp) || st->kernel);
}

/* Includes the inputs of the step before, as the plan of a pooled convolution reads them. */
static bool add_values(struct order *o, int step)
{
    const struct mc_program *pr = &o->f->code->program;
    const struct mc_step *st = &pr->step.at[step];
    bool good = true;
    for (const struct mc_step *s = st; s; s = s->before >= 0 ? &pr->step.at[s->before] : NULL) {
        good = good && add_sources(o, s);
    }
    for (int i = 0; i < st->ndst; i++) {
        good = good && add_value(o, st->dst[i], true);
    }
    for (size_t i = 0; st->kernel && i < st->kernel->operand.n; i++) {
        const struct mc_koperand *k = &st->kernel->operand.at[i];
        good = good &&
               (k->index || add_value(o, st->operand[i], k->dst || (st->heavy && (int)i == st->product)));
    }
    return good;
}

static bool add_step(struct order *o, int step)
{
    const struct mc_step_plan *sp = &o->p->step[step];
    int others = 0;
    if (!has_work(&o->f->code->program.step.at[step], sp)) {
        return true;
    }
    const int *joint = mc_grid_joint_steps(sp->exec, &others);
    bool good = add_values(o, step);
    for (int i = 0; i < others; i++) {
        good = good && (joint[i] == step || add_values(o, joint[i]));
    }
    const struct span scratch = { 0, (int64_t)sp->workspace_at, (int64_t)(sp->workspace_at + sp->workspace),
                                  true };
    if (mc_cuda_is_ranks(sp->exec) || !o->p->reuse_distance) {
        const int of = mc_cuda_is_ranks(sp->exec) ? COLLECTIVE : IN_ORDER;
        good = good && VEC_PUSH(o->span, ((struct span){ of, 0, 1, true }));
    }
    return good && (!sp->workspace || VEC_PUSH(o->span, scratch));
}

static bool conflicts(const struct order *o, int a, int b)
{
    for (int i = o->first[a]; i < o->first[a + 1]; i++) {
        for (int k = o->first[b]; k < o->first[b + 1]; k++) {
            const struct span *s = &o->span.at[i], *t = &o->span.at[k];
            if ((s->write || t->write) && s->of == t->of && s->from < t->end && t->from < s->end) {
                return true;
            }
        }
    }
    return false;
}

/* ---- capture ---- */

/* What follows the steps, as one more of them: it reads the results that go to the host. */
static bool add_mark(struct order *o)
{
    const struct mc_program *pr = &o->f->code->program;
    bool good = true;
    for (int i = 0; i < pr->noutput && good; i++) {
        good = o->f->output[i].on_device || add_value(o, pr->output[i], false);
    }
    return good;
}

/* The end of the call, as another one: it copies new values over old ones. */
static bool add_end(struct order *o)
{
    const struct mc_program *pr = &o->f->code->program;
    bool good = true;
    for (int i = 0; i < pr->nupdate && good; i++) {
        if (mc_is_in_place(o->f, o->p, i)) {
            continue;
        }
        for (int k = 0; k < o->f->nshared && good; k++) {
            good = o->f->shared[k] != o->f->target[i] ||
                   VEC_PUSH(o->span, ((struct span){ VARIABLES - k, 0, INT64_MAX, true }));
        }
        good = good && add_value(o, pr->update[i], false);
    }
    return good;
}

static bool begin_capture(struct order *o)
{
    const size_t n = o->f->code->program.step.n;
    o->words = n / 64 + 1;
    o->first = mc_calloc(n + 3, sizeof *o->first, "plan");
    o->last = mc_calloc(n + 3, sizeof *o->last, "plan");
    o->followed = mc_calloc(n + 2, sizeof *o->followed, "plan");
    o->behind = mc_calloc(n + 2, o->words * sizeof *o->behind, "plan");
    bool good = o->first && o->last && o->followed && o->behind;
    for (size_t i = 0; i < n && good; i++) {
        good = add_step(o, (int)i);
        o->first[i + 1] = (int)o->span.n;
    }
    good = good && add_mark(o);
    if (good) {
        o->first[n + 1] = (int)o->span.n;
        good = add_end(o);
        o->first[n + 2] = (int)o->span.n;
    }
    return good;
}

static void end_capture(struct order *o)
{
    VEC_FREE(o->span);
    VEC_FREE(o->node);
    mc_free(o->first);
    mc_free(o->last);
    mc_free(o->followed);
    mc_free(o->behind);
}

static bool checks(const struct order *o, int step)
{
    const struct mc_step *st = &o->f->code->program.step.at[step];
    int others = 0;
    const int *joint = mc_grid_joint_steps(o->p->step[step].exec, &others);
    bool so = mc_cuda_fn_of(o->f)->checks && (st->kind == STEP_HOST || st->kind == STEP_VIEW ||
                                              (st->kernel && mc_kernel_checks(st->kernel)));
    for (int i = 0; i < others && !so; i++) {
        so = joint[i] != step && checks(o, joint[i]);
    }
    return so;
}

static bool updates_in_place(const struct order *o, int step)
{
    const struct mc_step *st = &o->f->code->program.step.at[step];
    int others = 0;
    const int *joint = mc_grid_joint_steps(o->p->step[step].exec, &others);
    bool so = false;
    for (int i = 0; i < st->ndst && !so; i++) {
        so = o->p->slot[st->dst[i]].base == BASE_SHARED;
    }
    for (int i = 0; i < others && !so; i++) {
        so = joint[i] != step && updates_in_place(o, joint[i]);
    }
    return so;
}

/* Does step b wait for step a?  The mark and the end of the call are the steps after the last.  They wait for
 * all checks, and so does what writes over a variable, since a failed call makes no update. */
static bool precedes(const struct order *o, int a, int b)
{
    return conflicts(o, a, b) ||
           (checks(o, a) && (b >= (int)o->f->code->program.step.n || updates_in_place(o, b)));
}

/* The last nodes of the steps that this step must wait for.  Those that one of them waits for already are
 * left out: the search runs from the latest step back. */
static bool gather(struct order *o, int step, void ***node, int *n)
{
    uint64_t *const mine = o->behind + (size_t)step * o->words;
    VEC(void *) found = { 0 };
    bool good = true;
    for (int i = MC_MIN(step, (int)o->f->code->program.step.n) - 1; i >= 0 && good; i--) {
        if ((mine[i / 64] >> (i % 64) & 1) || !precedes(o, i, step)) {
            continue;
        }
        for (size_t w = 0; w < o->words; w++) {
            mine[w] |= o->behind[(size_t)i * o->words + w];
        }
        mine[i / 64] |= UINT64_C(1) << (i % 64);
        for (int k = o->last[i]; k < o->last[i + 1] && good; k++) {
            good = VEC_PUSH(found, o->node.at[k]);
        }
    }
    *node = found.at;
    *n = (int)found.n;
    return good;
}

/* The nodes that the capture would depend on next are the last ones of this step. */
static mc_status keep_last_nodes(struct order *o, struct mc_cuda *d, int step)
{
    int n = 0;
    TRY(mc_cuda_capture_get_dependencies(d, 0, NULL, &n));
    if (!VEC_RESERVE(o->node, (size_t)n)) {
        return MC_EMEMORY;
    }
    TRY(mc_cuda_capture_get_dependencies(d, n, o->node.at + o->node.n, &n));
    o->node.n += (size_t)n;
    o->last[step + 1] = (int)o->node.n;
    return MC_OK;
}

/* The next launch depends on these nodes, the last ones of steps that this step waits for. */
static mc_status depend_on(struct order *o, struct mc_cuda *d, int step, void **node, int n)
{
    const uint64_t *mine = o->behind + (size_t)step * o->words;
    for (int i = 0; i < step; i++) {
        o->followed[i] |= mine[i / 64] >> (i % 64) & 1;
    }
    return mc_cuda_capture_set_dependencies(d, node, n);
}

static mc_status record_step(struct order *o, struct mc_function *f, int step)
{
    void **node = NULL;
    int n = 0;
    o->last[step + 1] = o->last[step];
    if (!has_work(&f->code->program.step.at[step], &o->p->step[step])) {
        return MC_OK;
    }
    mc_status s = gather(o, step, &node, &n) ? depend_on(o, mc_cuda_of(f->code), step, node, n) : MC_EMEMORY;
    mc_free(node);
    s = s < 0 ? s : mc_step_run(f, o->p, step);
    return s < 0 ? mc_step_error(f, step, s) : keep_last_nodes(o, mc_cuda_of(f->code), step);
}

/* ---- the mark ---- */

static bool has_host_results(const struct order *o)
{
    const size_t n = o->f->code->program.step.n;
    return mc_cuda_can_mark_capture() && o->first[n] < o->first[n + 1];
}

static bool waits_for_all(const struct order *o, int step)
{
    const uint64_t *mine = o->behind + (size_t)step * o->words;
    bool so = true;
    for (int i = 0; i < step && so; i++) {
        so = (mine[i / 64] >> (i % 64) & 1) || o->last[i] == o->last[i + 1];
    }
    return so;
}

/* Marks where all results that go to the host are made, and all checks, if other steps go on there. */
static mc_status mark_results(struct order *o, struct mc_cuda *d)
{
    const int mark = (int)o->f->code->program.step.n;
    void **node = NULL;
    int n = 0;
    if (!has_host_results(o)) {
        return MC_OK;
    }
    mc_status s = gather(o, mark, &node, &n) ? MC_OK : MC_EMEMORY;
    if (n && s == MC_OK && !waits_for_all(o, mark)) {
        s = mc_cuda_capture_set_dependencies(d, node, n);
        s = s < 0 ? s : mc_cuda_capture_mark(d);
    }
    mc_free(node);
    return s;
}

/* Of steps that keep their order: the one after which that is so; -1: none, or it is the last. */
static int step_before_mark(const struct order *o)
{
    const int n = (int)o->f->code->program.step.n;
    int last = -1, at = -1;
    for (int i = 0; i < n; i++) {
        const bool works = has_work(&o->f->code->program.step.at[i], &o->p->step[i]);
        last = works ? i : last;
        at = works && precedes(o, i, n) ? i : at;
    }
    return has_host_results(o) && at < last ? at : -1;
}

static mc_status record_end(struct order *o, const struct mc_function *f)
{
    const int n = (int)f->code->program.step.n;
    void **node = NULL;
    int count = 0;
    o->last[n + 1] = o->last[n]; /* the mark has no node that others wait for */
    mc_status s = gather(o, n + 1, &node, &count) ? depend_on(o, mc_cuda_of(f->code), n + 1, node, count)
                                                  : MC_EMEMORY;
    mc_free(node);
    s = s < 0 ? s : mc_finish_call(f, o->p);
    return s < 0 ? s : keep_last_nodes(o, mc_cuda_of(f->code), n + 1);
}

static mc_status record_in_order(struct order *o, struct mc_function *f)
{
    const int mark = step_before_mark(o);
    for (int i = 0; i < (int)f->code->program.step.n; i++) {
        const mc_status s = mc_step_is_ahead(o->p, i) ? MC_OK : mc_step_run(f, o->p, i);
        if (s < 0) {
            return mc_step_error(f, i, s);
        }
        TRY(i == mark ? mc_cuda_capture_mark(mc_cuda_of(f->code)) : MC_OK);
    }
    return mc_finish_call(f, o->p);
}

/* ---- all steps ---- */

/* Nodes captured after this wait for all steps. */
static mc_status join_branches(struct order *o, struct mc_cuda *d)
{
    VEC(void *) open = { 0 };
    bool good = true;
    for (size_t i = 0; i < o->f->code->program.step.n + 2 && good; i++) {
        for (int k = o->last[i]; k < o->last[i + 1] && good && !o->followed[i]; k++) {
            good = VEC_PUSH(open, o->node.at[k]);
        }
    }
    mc_status s = good ? mc_cuda_capture_set_dependencies(d, open.at, (int)open.n) : MC_EMEMORY;
    VEC_FREE(open);
    return s;
}

/* Logs how many steps wait for all steps before them. */
static void log_dependencies(const struct order *o)
{
    int all = 0, waits = 0;
    for (size_t i = 0; i < o->f->code->program.step.n; i++) {
        int behind = 0;
        for (size_t w = 0; w < o->words; w++) {
            behind += __builtin_popcountll(o->behind[i * o->words + w]);
        }
        if (has_work(&o->f->code->program.step.at[i], &o->p->step[i])) {
            waits += behind == all++;
        }
    }
    LOG(LOG_PLAN, "%s: %d of %d recorded steps wait for all before them", o->f->name, waits, all);
}

static mc_status record_branches(struct order *o, struct mc_function *f)
{
    struct mc_cuda *d = mc_cuda_of(f->code);
    for (int i = 0; i < (int)f->code->program.step.n; i++) {
        TRY(record_step(o, f, i));
    }
    TRY(mark_results(o, d));
    TRY(record_end(o, f));
    TRY(join_branches(o, d));
    log_dependencies(o);
    return MC_OK;
}

mc_status mc_cuda_fn_capture(struct mc_function *f, const struct mc_shape_plan *p, bool forks)
{
    struct order o = { .f = f, .p = p };
    mc_status s = begin_capture(&o) ? MC_OK : MC_EMEMORY;
    s = s < 0 ? s : (forks ? record_branches : record_in_order)(&o, f);
    end_capture(&o);
    return s;
}
