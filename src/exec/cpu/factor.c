/* factor.c: factorizations, which are steps of the host, by solver plans on the CPU.  Other devices leave
 * them to the reference, on the host. */
#include "exec/backend.h"
#include "exec/cpu/launch.h"
#include "heavy/factor/factor.h"

enum { OPERANDS = FACTOR_MOST_IN + FACTOR_MOST_OUT };
struct factor {
    struct mc_exec exec;
    struct mc_plan *plan;
    int value[OPERANDS];        /* by operand; -1: there is no such operand */
    /* offset in the scratch of memory that stands for the value's; -1: none does */
    int64_t copy[OPERANDS];
};

static size_t lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    const struct factor *x = (const struct factor *)(const void *)e;
    void *operand[MC_PLAN_OPERANDS] = { NULL };
    (void)step;
    for (int r = 0; r < OPERANDS; r++) {
        const int v = x->value[r];
        operand[r] = x->copy[r] >= 0 ? scratch + x->copy[r] : v >= 0 ? f->ptr[v] : NULL;
        if (r < FACTOR_OUT && x->copy[r] >= 0) {
            TRY(f->code->backend->copy(f, &p->slot[v], f->ptr[v], operand[r]));
        }
    }
    return x->plan->run(x->plan, operand, scratch, f->threads);
}

static void release(struct mc_exec *e)
{
    struct factor *x = (struct factor *)(void *)e;
    mc_plan_free(x->plan);
    mc_free(x);
}

static const struct mc_exec_ops ops = { .run = run, .free = release };

/* The values of the node's results: an item that nothing reads has no memory, and gets scratch. */
static mc_status place_results(const struct mc_function *f, const struct mc_shape_plan *p,
                               const struct mc_step *st,
                               const struct mc_factor *problem, struct factor *x, size_t *bytes)
{
    const mc_node *n = st->node[0];
    for (int i = 0; i < n->nout; i++) {
        const int v = n->nout == 1 ? f->code->program.value_of[n->id] : st->dst[st->ndst - n->nout + i],
                  r = FACTOR_OUT + i;
        const struct mc_slot *at = v >= 0 ? &p->slot[v] : NULL;
        x->value[r] = v;
        if (at && at->base != BASE_NONE && at->base != BASE_TYPE && !mc_slot_contiguous(at)) {
            return mc_fail(MC_EUNSUPPORTED, "%s: the result is not contiguous", n->op->name);
        }
        if (!at || at->base == BASE_NONE || at->base == BASE_TYPE) {
            x->copy[r] = (int64_t)*bytes;
            *bytes += lines((size_t)(problem->batch * problem->out[i]) * problem->out_size[i]);
        }
    }
    return MC_OK;
}

mc_status mc_factor_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **exec)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const mc_node *n = st->node[0];
    struct mc_type type[FACTOR_MOST_IN];
    struct mc_factor problem;
    if (f->code->uncompiled || mc_factor_kind_of(n->op) == FACTOR_NKIND) {
        return MC_OK;
    }
    struct factor *x = mc_calloc(1, sizeof *x, "plan");
    if (!x) {
        return MC_EMEMORY;
    }
    x->exec.ops = &ops;
    for (int r = 0; r < OPERANDS; r++) {
        x->value[r] = -1;
        x->copy[r] = -1;
    }
    for (int i = 0; i < n->nin; i++) {
        x->value[i] = f->code->program.value_of[n->in[i]->id];
        type[i] = p->slot[x->value[i]].type;
    }
    mc_status s = mc_factor_of(n, type, &problem);
    x->plan = s == MC_OK ? mc_factor_plan(&problem, &p->options) : NULL;
    if (!x->plan) {
        release(&x->exec);
        return s < 0 ? s : mc_last_status();
    }
    size_t bytes = lines(x->plan->workspace);
    for (int i = 0; i < n->nin; i++) {
        if (!mc_slot_contiguous(&p->slot[x->value[i]])) {
            x->copy[i] = (int64_t)bytes;
            bytes += lines(mc_slot_bytes(&p->slot[x->value[i]]));
        }
    }
    if (place_results(f, p, st, &problem, x, &bytes) < 0) { /* the reference takes any strides */
        mc_clear_error();
        release(&x->exec);
        return MC_OK;
    }
    p->step[step].workspace = bytes + 64;
    *exec = &x->exec;
    return MC_OK;
}
