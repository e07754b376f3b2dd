/* steps.c: runs the steps of a call in order, and allocates the memory that they need.
 *
 * Invariant: the error names the step that failed, and a failed call changes no shared variable. */
#include "call/call.h"
#include "compile/compiling.h"
#include "exec/heavy/heavy.h"
#include "inspect/profile.h"
#include "schedule/schedule.h"
#include <math.h>

/* ---- memory ---- */

static mc_status grow_arena(struct mc_function *f, size_t need)
{
    if (need <= f->arena_size) {
        return MC_OK;
    }
    mc_memory_free(f);
    f->arena = f->code->device->ops->alloc(f->code->device, need, f->name);
    if (!f->arena) {
        return mc_last_status();
    }
    f->arena_size = need;
    return MC_OK;
}

static mc_status out_of_memory(const struct mc_function *f, const struct mc_shape_plan *p)
{
    int most = 0;
    for (int i = 0; i < f->code->nstep; i++) {
        most = p->step[i].workspace > p->step[most].workspace ? i : most;
    }
    return mc_fail_again("%s: %zu bytes of values, %zu for step %d, %.200s: ", f->name, p->arena, p->scratch,
                         most, mc_step_text(f->code, most));
}

/* If there is not enough memory for a plan, the shape is planned again, with solvers whose workspace is at
 * most a quarter of the previous scratch memory.  This is repeated until the plan gets no smaller. */
struct mc_shape_plan *mc_memory_reserve(struct mc_function *f, struct mc_shape_plan *p)
{
    while (!f->code->program.dynamic && grow_arena(f, p->memory) < 0) {
        if (mc_last_status() != MC_EMEMORY) {
            return NULL;
        }
        out_of_memory(f, p);
        char said[1000];
        mc_snprintf(said, sizeof said, "%s", mc_last_error());
        size_t had = p->scratch;
        mc_shape_plan_drop(f, p);
        p = mc_shape_plan_find(f, (int64_t)had / 4);
        if (!p || p->scratch >= had) {
            mc_fail(MC_EMEMORY, "%s", said);
            return NULL;
        }
    }
    return p;
}

/* ---- steps ---- */

/* Reports that element `at` of the value is v.  A step may compute several values; the formula is that of
 * this one. */
static mc_status not_finite(const struct mc_function *f, int value, int step, double v, int64_t at)
{
    enum { COLUMNS = 240 };
    struct mc_str formula = { 0 }, line = { 0 };
    mc_node_print(&formula, f->code->program.value.at[value].node, 3);
    mc_str_line(&line, formula.s ? formula.s : "", COLUMNS);
    mc_status s = formula.bad || line.bad
                      ? MC_EMEMORY
                      : mc_fail(MC_ECHECK, "NANGUARD: step %d makes %s at element %lld: %s", step,
                                isnan(v) ? "NaN" : "an infinity", (long long)at, line.s);
    mc_str_free(&formula);
    mc_str_free(&line);
    return s;
}

static mc_status check_finite(struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    for (int i = 0; i < st->ndst; i++) {
        const struct mc_slot *at = &p->slot[st->dst[i]];
        if (!mc_is_float(at->type.dtype) || st->kind == STEP_VIEW) {
            continue;
        }
        mc_array *a = mc_value_array(f, p, st->dst[i]);
        int64_t n = a ? mc_array_size(a) : 0, bad = 0;
        double v = 0;
        while (bad < n && isfinite(v = mc_load_f64(at->type.dtype,
                                                   a->data + (size_t)bad * mc_dtypes[at->type.dtype].size))) {
            bad++;
        }
        mc_array_unref(&a);
        if (!a && n == 0 && mc_dims_count(at->type.rank, at->type.dims) > 0) {
            return mc_last_status();
        }
        if (bad < n) {
            return not_finite(f, st->dst[i], step, v, bad);
        }
    }
    return MC_OK;
}

static mc_status run_checked(struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_backend *b = f->code->backend;
    double took = 0;
    mc_status s = b->step(f, p, step, f->profile ? &took : NULL);
    s = s < 0 ? mc_step_error(f, step, s) : s;
    if (f->profile) {
        struct mc_step_time *t = &f->time[step];
        t->seconds += took;
        t->calls++;
        t->flops += p->step[step].flops;
        t->bytes += p->step[step].bytes;
        if (f->traced) {
            mc_trace_step(f, p, step, mc_now() - took, took);
        }
    }
    enum mc_step_kind kind = f->code->program.step.at[step].kind;
    if (s == MC_OK && f->code->mode == MODE_DEBUG) {
        /* report a device's index error before the reference finds the same one */
        s = b->error_wait ? b->error_wait(f) : MC_OK;
    }
    if (s == MC_OK && f->code->mode == MODE_DEBUG && (kind == STEP_KERNEL || kind == STEP_HEAVY)) {
        s = mc_reference_step(f, p, step, true);
    }
    if (s == MC_OK && f->code->mode == MODE_NANGUARD) {
        s = check_finite(f, p, step);
    }
    return s;
}

static void set_pointers(struct mc_function *f, const struct mc_shape_plan *p)
{
    for (size_t v = 0; v < f->code->program.value.n; v++) {
        f->ptr[v] = f->code->backend->address(f, p, v);
    }
}

/* For sizes that depend on data: plans each step, allocates its results and runs it before the next one. */
static mc_status run_dynamic(struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    set_pointers(f, p);
    for (int i = 0; i < (int)pr->step.n; i++) {
        const struct mc_step *st = &pr->step.at[i];
        TRY(mc_shape_plan_step(f, p, i));
        int extra = st->heavy && st->kernel ? st->operand[st->product] : -1;
        for (int k = 0; k < st->ndst + (extra >= 0); k++) {
            int v = k < st->ndst ? st->dst[k] : extra;
            struct mc_slot *at = &p->slot[v];
            if (!at->fixed && at->base != BASE_TYPE && (st->kind != STEP_VIEW || at->own)) {
                at->fixed = mc_array_empty(at->type.dtype, at->type.rank, at->type.dims);
                at->base = BASE_FIXED;
                at->offset = 0;
                if (!at->fixed) {
                    return mc_last_status();
                }
            }
            f->ptr[v] = f->code->backend->address(f, p, (size_t)v);
        }
        TRY(st->kind == STEP_HEAVY ? mc_heavy_plan(f, p, i) : MC_OK);
        TRY(mc_shape_plan_work(f, p, i));
        TRY(grow_arena(f, p->scratch));
        TRY(run_checked(f, p, i));
    }
    return MC_OK;
}

static mc_status run_static(struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_backend *b = f->code->backend;
    set_pointers(f, p);
    TRY(b->begin ? b->begin(f, p) : MC_OK);
    if (b->run && !f->profile && f->code->mode != MODE_DEBUG && f->code->mode != MODE_NANGUARD) {
        return b->run(f, p);
    }
    for (int i = 0; i < (int)f->code->program.step.n; i++) {
        TRY(run_checked(f, p, i));
    }
    return b->error_wait ? b->error_wait(f) : MC_OK;
}

mc_status mc_steps_run(struct mc_function *f, struct mc_shape_plan *p)
{
    return f->code->program.dynamic ? run_dynamic(f, p) : run_static(f, p);
}
