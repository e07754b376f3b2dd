/* join_parts.c: a join whose parts are made by kernels for it alone copies nothing: the kernels write each
 * part where the join wants it.
 *
 * Invariant: a part that lies in the memory of a join is read by that join only. */
#include "schedule/schedule.h"
#include "exec/heavy/heavy.h"

struct search {
    const struct mc_function *f;
    const struct mc_shape_plan *p;
    int *readers;               /* by value: how many steps and views read it */
};

static mc_status count_readers(struct search *s)
{
    const struct mc_program *pr = &s->f->code->program;
    s->readers = mc_calloc(pr->value.n + 1, sizeof *s->readers, "plan");
    if (!s->readers) {
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < pr->step.n; i++) {
        const struct mc_step *st = &pr->step.at[i];
        for (int k = 0; k < st->nsrc; k++) {
            s->readers[st->src[k]]++;
        }
        for (size_t k = 0; st->kernel && k < st->kernel->operand.n; k++) {
            const struct mc_koperand *o = &st->kernel->operand.at[k];
            if (!o->dst && !o->index) {
                s->readers[st->operand[k]] += 2;
            }
        }
        for (int k = 0; st->heavy && k < st->heavy->nin; k++) {
            s->readers[mc_heavy_source(s->f, st->heavy, k)] += 2;
        }
    }
    for (size_t v = 0; v < pr->value.n; v++) {
        if (pr->value.at[v].view_of >= 0) {
            s->readers[pr->value.at[v].view_of] += 2;
        }
    }
    for (int i = 0; i < pr->noutput; i++) {
        s->readers[pr->output[i]] += 2;
    }
    for (int i = 0; i < pr->nupdate; i++) {
        s->readers[pr->update[i]] += 2;
    }
    return MC_OK;
}

/* Can a kernel write v with the strides of `to`, and does nothing else read it?  Along its innermost axis,
 * which need not be the last one, a kernel writes neighbours. */
static bool is_movable(const struct search *s, int v, const struct mc_slot *to)
{
    const struct mc_program *pr = &s->f->code->program;
    if (v < 0 || pr->value.at[v].kind != VALUE_TEMP || s->readers[v] != 1) {
        return false;
    }
    const int made = pr->value.at[v].step;
    const struct mc_step *st = &pr->step.at[made];
    const int64_t size = (int64_t)mc_dtypes[to->type.dtype].size;
    return st->kind == STEP_KERNEL && st->kernel->mode == KERNEL_MAP && !st->kernel->bounded &&
           (st->kernel->inner < 0 || to->strides[st->kernel->inner] == size) &&
           mc_step_compiled(s->f, made) && mc_slot_bytes(&s->p->slot[v]) > 0;
}

static bool is_join(const struct mc_step *st)
{
    return st->kind == STEP_HOST && st->nnode == 1 && st->node[0]->op->form == FORM_JOIN;
}

static mc_status place_parts(const struct search *s, struct mc_shape_plan *p, const struct mc_step *st)
{
    const struct mc_program *pr = &s->f->code->program;
    const mc_node *n = st->node[0];
    const struct mc_slot *to = &p->slot[st->dst[0]];
    int axis;
    bool all = true;
    TRY(mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), to->type.rank, &axis));
    for (int i = 0; i < n->nin && all; i++) {
        const int v = pr->value_of[n->in[i]->id];
        all = is_movable(s, v, to) && p->slot[v].type.dtype == to->type.dtype;
    }
    int64_t at = 0;
    for (int i = 0; i < n->nin && all; i++) {
        struct mc_slot *part = &p->slot[pr->value_of[n->in[i]->id]];
        part->inside = st->dst[0] + 1;
        part->part = at * to->strides[axis];
        memcpy(part->strides, to->strides, sizeof part->strides);
        at += part->type.dims[axis];
    }
    return MC_OK;
}

mc_status mc_plan_join_parts(const struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    struct search s = { .f = f, .p = p };
    mc_status st = MC_OK;
    if (f->code->mode != MODE_FAST_RUN || p->options.portable) {
        return MC_OK; /* other modes read values as they are stored; exports print a join as copies */
    }
    for (size_t i = 0; i < pr->step.n && st == MC_OK; i++) {
        if (is_join(&pr->step.at[i])) {
            st = s.readers ? MC_OK : count_readers(&s);
            st = st < 0 ? st : place_parts(&s, p, &pr->step.at[i]);
        }
    }
    mc_free(s.readers);
    return st;
}

bool mc_join_is_made(const struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    if (!is_join(st)) {
        return false;
    }
    const int first = f->code->program.value_of[st->node[0]->in[0]->id];
    return first >= 0 && p->slot[first].inside == st->dst[0] + 1;
}
