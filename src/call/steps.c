/* steps.c: runs the steps of a call in order, and allocates the memory that they need.
 *
 * Invariant: the error names the step that failed, and a failed call changes no shared variable. */
#include "call/call.h"
#include "compile/compiling.h"
#include "exec/heavy/heavy.h"
#include "inspect/profile.h"
#include "schedule/schedule.h"

/* ---- memory ---- */

static mc_status grow_arena(struct mc_function *f, size_t need)
{
    if (need <= f->arena_size) {
        return MC_OK;
    }
    mc_memory_free(f);
    f->arena = f->code->backend->arena ? f->code->backend->arena(f, need)
                                       : f->code->device->ops->alloc(f->code->device, need, f->name);
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

static mc_status run_checked(struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    double took;
    mc_status s = mc_step_watched(f, p, step, &took);
    if (f->traced) {
        mc_trace_step(f, p, step, mc_now() - took, took);
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
    if (b->run && !mc_steps_watched(f)) {
        return b->run(f, p);
    }
    const bool checked = f->traced || mc_steps_watched(f);
    for (int i = 0; i < (int)f->code->program.step.n; i++) {
        const mc_status s = checked ? run_checked(f, p, i) : b->step(f, p, i, NULL);
        if (s < 0) {
            return checked ? s : mc_step_error(f, i, s);
        }
    }
    return b->error_wait ? b->error_wait(f) : MC_OK;
}

mc_status mc_steps_run(struct mc_function *f, struct mc_shape_plan *p)
{
    return f->code->program.dynamic ? run_dynamic(f, p) : run_static(f, p);
}
