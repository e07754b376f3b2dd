/* joint.c: maps that do not depend on each other run at the same time: on the CPU in one parallel region, on
 * a GPU as one launch where their kernels are equal.  Such as the steps of an optimizer for each of many
 * parameters.
 *
 * Invariant: no joint step touches memory that another one writes, and between the first and the last
 * no other step does anything. */
#include "exec/kernels.h"
#include "schedule/schedule.h"

enum { MOST_SPANS = 4096 };     /* each is compared with each */
struct span { enum mc_base base; int index; int64_t from, end; bool write; };
struct joint {                  /* steps found so far */
    VEC(struct span) span;      /* memory that they touch */
    VEC(int) step;
};

static bool meet(const struct span *a, const struct span *b)
{
    return (a->write || b->write) && a->base == b->base && a->index == b->index && a->from < b->end &&
           b->from < a->end;
}

/* Adds step i and what it touches, if no other step is in its way; false: it is not added. */
static bool join(struct joint *b, const struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    const struct mc_step *st = &f->code->program.step.at[i];
    const size_t before = b->span.n;
    bool good = !p->step[i].workspace && !p->step[i].epilogue && before < MOST_SPANS;
    for (size_t k = 0; k < st->kernel->operand.n && good; k++) {
        const struct mc_koperand *o = &st->kernel->operand.at[k];
        const struct mc_slot *at = o->index ? NULL : &p->slot[st->operand[k]];
        if (!at || at->base == BASE_FIXED || at->base == BASE_INPUT) {
            continue;
        }
        const struct span s = { at->base, at->base == BASE_ARENA ? 0 : at->index, at->offset,
                                at->offset + (int64_t)mc_slot_bytes(at), o->dst };
        good = mc_slot_contiguous(at);
        for (size_t j = 0; j < before && good; j++) {
            good = !meet(&s, &b->span.at[j]);
        }
        good = good && VEC_PUSH(b->span, s);
    }
    good = good && VEC_PUSH(b->step, i);
    b->span.n = good ? b->span.n : before;
    return good;
}

/* The last step that makes what step i reads. */
static int ready(const struct mc_program *pr, int i)
{
    const struct mc_step *st = &pr->step.at[i];
    int last = -1;
    for (size_t k = 0; k < st->kernel->operand.n; k++) {
        const struct mc_koperand *o = &st->kernel->operand.at[k];
        const int v = o->index || o->dst ? -1 : mc_value_root(pr, st->operand[k]);
        last = v < 0 ? last : MC_MAX(last, pr->value.at[v].step);
    }
    return last;
}

/* Moves the steps that wait for the last step of all to the end.  Returns the number of the others. */
static int late_ones_last(struct joint *b, const struct mc_program *pr)
{
    const int n = (int)b->step.n;
    int late = -1, early = 0;
    for (int i = 0; i < n; i++) {
        late = MC_MAX(late, ready(pr, b->step.at[i]));
    }
    for (int i = 0; i < n; i++) {
        const int step = b->step.at[i];
        if (ready(pr, step) < late) {
            memmove(&b->step.at[early + 1], &b->step.at[early], (size_t)(i - early) * sizeof step);
            b->step.at[early++] = step;
        }
    }
    return early;
}

/* Ends the list: its first step does the work of all.  Where steps run beside each other, those that wait
 * longest are a list of their own, so that the others do not wait for them. */
static mc_status end(struct joint *b, struct mc_function *f, struct mc_shape_plan *p)
{
    const int n = (int)b->step.n, early = p->concurrent && n > 1 ? late_ones_last(b, &f->code->program) : 0;
    mc_status s = early > 1 ? f->code->backend->joint(f, p, b->step.at, early) : MC_OK;
    if (s == MC_OK && n - early > 1) {
        s = f->code->backend->joint(f, p, b->step.at + early, n - early);
    }
    b->step.n = b->span.n = 0;
    return s;
}

static bool may_join(const struct mc_function *f, const struct mc_shape_plan *p)
{
    return f->code->backend->joint && f->code->mode == MODE_FAST_RUN && !f->code->program.dynamic &&
           !f->is_body && p->concurrent != CONCURRENT_ALWAYS;
}

mc_status mc_plan_joint(struct mc_function *f, struct mc_shape_plan *p)
{
    const int n = (int)f->code->program.step.n;
    struct joint b = { { 0 }, { 0 } };
    int *first = may_join(f, p) ? mc_alloc((size_t)(n + 1) * sizeof *first, "plan") : NULL, run = -1;
    mc_status s = first || !may_join(f, p) ? MC_OK : MC_EMEMORY;
    if (first) {
        mc_joint_candidates(&f->code->program, first);
    }
    for (int i = 0; i < n && first && s == MC_OK; i++) {
        if (!p->step[i].exec) {
            continue;
        }
        if (first[i] < 0 || first[i] != run || !join(&b, f, p, i)) {
            s = end(&b, f, p);
            run = first[i];
            if (run >= 0 && s == MC_OK) {
                join(&b, f, p, i);
            }
        }
    }
    s = s < 0 ? s : end(&b, f, p);
    VEC_FREE(b.span);
    VEC_FREE(b.step);
    mc_free(first);
    return s;
}
