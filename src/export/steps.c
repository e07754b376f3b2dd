/* steps.c: one step of a function in an exported file: it is planned, and printed as a block of C. */
#include "export/exporting.h"

mc_status mc_export_plan_step(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_loop_planned loop;
    if (f->loop && f->loop[step]) {
        TRY(mc_loop_plan(f, p, step, mc_export_plan_step));
        p->step[step].workspace = mc_loop_planned(f, p, step, &loop) ? loop.memory : 0;
        return MC_OK;
    }
    if (st->kind != STEP_KERNEL) {
        return MC_OK;
    }
    TRY(mc_launch_plan(f, p, step, &p->step[step].exec));
    return p->step[step].exec
               ? MC_OK
               : mc_step_error(
                     f, step,
                     mc_fail(MC_EUNSUPPORTED, "a reduction over so many separate axes is not exported"));
}

static struct mc_export_value value_of(struct mc_export_one *x, int v)
{
    const struct mc_slot *at = &x->p->slot[v];
    return (struct mc_export_value){ at->type, at->strides, mc_export_address(x, v),
                                     at->base == BASE_FIXED ? at->fixed : NULL };
}

/* An op that has no kernel, or a view with memory of its own. */
static mc_status host_op(struct mc_export_one *x, int step)
{
    enum { MOST_VALUES = 64 };
    const struct mc_step *st = &x->f->code->program.step.at[step];
    const mc_node *n = st->node[0];
    struct mc_export_value in[MOST_VALUES], out[MOST_VALUES];
    if (n->nin > MOST_VALUES || st->ndst > MOST_VALUES) {
        return mc_fail(MC_EUNSUPPORTED, "%s of %d inputs is not exported", n->op->name, n->nin);
    }
    for (int i = 0; i < n->nin; i++) {
        in[i] = value_of(x, x->f->code->program.value_of[n->in[i]->id]);
    }
    for (int i = 0; i < st->ndst; i++) {
        out[i] = value_of(x, st->dst[i]);
    }
    const bool copied = st->kind == STEP_VIEW &&
                        mc_dims_equal(in[0].type.rank, in[0].type.dims, out[0].type.rank, out[0].type.dims);
    return copied ? mc_export_copy(&x->to->code, &in[0], &out[0])
                  : mc_export_host_op(&x->to->code, n, in, out);
}

static mc_status view(struct mc_export_one *x, int step)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    return x->p->slot[st->dst[0]].own ? host_op(x, step) : MC_OK;
}

mc_status mc_export_step(struct mc_export_one *x, int step, bool *nothing)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    const size_t before = x->to->code.n;
    mc_status s = MC_OK;
    switch (st->kind) {
    case STEP_PLAN_TIME:
    case STEP_TYPE: break;
    case STEP_VIEW: s = view(x, step); break;
    case STEP_KERNEL: s = mc_export_kernel(x, step, (struct mc_launch *)x->p->step[step].exec); break;
    case STEP_HEAVY: s = mc_export_heavy(x, step); break;
    case STEP_HOST: s = x->f->loop && x->f->loop[step] ? mc_export_loop(x, step) : host_op(x, step); break;
    }
    *nothing = x->to->code.n == before;
    return s == MC_OK && x->to->freestanding && !*nothing
               ? mc_export_check_freestanding(x, step, x->to->code.s + before)
               : s;
}
