/* step_info.c: public information about a function and its steps. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "inspect/profile.h"

static const char *const kinds[] = { [STEP_KERNEL] = "kernel", [STEP_VIEW] = "view", [STEP_PLAN_TIME] = "size", [STEP_TYPE] = "size", [STEP_HOST] = "host" };

int mc_function_ninputs(const mc_function *f)
{
    return f ? f->code->program.ninput : 0;
}

int mc_function_noutputs(const mc_function *f)
{
    return f ? f->code->program.noutput : 0;
}

const char *mc_function_name(const mc_function *f)
{
    return f ? f->name : "";
}

const char *mc_function_input_name(const mc_function *f, int i)
{
    return f && i >= 0 && i < f->code->program.ninput ? f->input[i].name : "";
}

const char *mc_function_output_name(const mc_function *f, int i)
{
    const bool has = f && i >= 0 && i < f->code->program.noutput && f->code->output_name &&
                     f->code->output_name[i];
    return has ? f->code->output_name[i] : "";
}

int mc_function_nshared(const mc_function *f)
{
    return f ? f->nshared : 0;
}

/* Variables are sorted by address, so the i-th name is the one that i others precede. */
mc_shared *mc_function_shared(const mc_function *f, int i)
{
    for (int k = 0; f && k < f->nshared; k++) {
        int before = 0;
        for (int j = 0; j < f->nshared; j++) {
            before += strcmp(f->shared[j]->name, f->shared[k]->name) < 0;
        }
        if (before == i) {
            return f->shared[k];
        }
    }
    return NULL;
}

mc_shared *mc_function_shared_named(const mc_function *f, const char *name)
{
    for (int k = 0; f && name && k < f->nshared; k++) {
        if (strcmp(f->shared[k]->name, name) == 0) {
            return f->shared[k];
        }
    }
    return NULL;
}

int mc_function_nsteps(const mc_function *f)
{
    return f ? f->code->nstep : 0;
}

mc_step_info mc_function_step(const mc_function *f, int i)
{
    mc_step_info info = { .kind = "", .name = "", .text = "", .device = "cpu", .solver = "", .reason = "" };
    if (!f || i < 0 || i >= f->code->nstep) {
        return info;
    }
    const struct mc_step *s = &f->code->program.step.at[i];
    info.kind = s->heavy ? mc_heavy_family(s) : kinds[s->kind];
    info.kind = mc_function_body(f, i) ? "loop" : info.kind;
    info.name = mc_step_name(f->code, i);
    info.text = mc_step_text(f->code, i);
    info.reason = s->reason;
    bool host = s->kind == STEP_HOST && !mc_function_body(f, i) &&
                (!f->code->backend->left_to_reference || f->code->backend->left_to_reference(f, i));
    if (!host && s->kind != STEP_PLAN_TIME && s->kind != STEP_TYPE) {
        info.device = f->code->device->name;
    } else if (host && !*info.reason) {
        info.reason = f->code->backend->elsewhere;
    }
    info.calls = f->time[i].calls;
    info.seconds = f->time[i].seconds;
    info.flops = f->time[i].flops;
    info.bytes = f->time[i].bytes;
    if (s->kernel) {
        info.solver = s->kernel->name;
    }
    const struct mc_shape_plan *plan = mc_newest_plan(f);
    if (s->heavy && plan && plan->step[i].heavy) {
        info.solver = mc_heavy_solver(plan->step[i].heavy);
    }
    return info;
}

const char *mc_function_warning(const mc_function *f)
{
    return f && f->code->warning ? f->code->warning : "";
}
const char *mc_function_source(const mc_function *f)
{
    return f ? f->code->source : "";
}
const char *mc_function_graph_text(const mc_function *f)
{
    return f ? f->code->text : "";
}
size_t mc_function_memory(const mc_function *f)
{
    const struct mc_shape_plan *plan = f ? mc_newest_plan(f) : NULL;
    return plan ? plan->memory + mc_loops_memory(f) + mc_prepared_memory(f, plan) : 0;
}
size_t mc_loops_memory(const struct mc_function *f)
{
    const struct mc_shape_plan *plan = mc_newest_plan(f);
    size_t bytes = 0;
    for (int i = 0; plan && i < f->code->nstep; i++) {
        bytes += plan->step[i].memory;
    }
    return bytes;
}
const mc_function *mc_function_body(const mc_function *f, int step)
{
    return f && f->loop && step >= 0 && step < f->code->nstep ? f->loop[step] : NULL;
}
