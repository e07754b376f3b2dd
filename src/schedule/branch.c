/* branch.c: the executor of a branch: reads the condition, and runs the body of one side, a function without
 * a caller, in place.
 *
 * Invariant: a body is planned when it is taken for the first time, so that sizes that do not fit on a side
 * that is never taken are no error. */
#include "op/ifelse.h"
#include "schedule/schedule.h"

struct side {
    struct mc_function *body;
    struct mc_shape_plan *plan; /* NULL: not taken yet */
    mc_array **arg;             /* what the body's inputs look like; their memory is that of the call */
    char *arena;
};
struct branch {
    struct mc_exec exec;
    struct mc_branch how;
    struct side side[2];        /* by the condition */
};

static void side_free(struct side *x, int nin)
{
    struct mc_device *d = x->body->code->device;
    mc_shape_plan_free(x->body, x->plan);
    d->ops->free(d, x->arena);
    for (int i = 0; x->arg && i < nin; i++) {
        mc_array_unref(&x->arg[i]);
    }
    mc_free(x->arg);
}

static void branch_free(struct mc_exec *e)
{
    struct branch *x = (struct branch *)e;
    for (int side = 0; side < 2; side++) {
        side_free(&x->side[side], x->how.side[side]->nin);
    }
    mc_free(x);
}

/* ---- planning ---- */

/* running: values are computed already */
static mc_status plan_side(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                           const struct mc_body *of, struct side *x, bool running, mc_shape_plan_one *work)
{
    struct mc_function *b = x->body;
    mc_status s = MC_OK;
    x->arg = x->arg ? x->arg : mc_calloc((size_t)of->nin + 1, sizeof *x->arg, "ifelse");
    s = x->arg ? s : MC_EMEMORY;
    for (int i = 0; i < of->nin && s == MC_OK; i++) {
        const struct mc_slot *at = &p->slot[st->src[1 + i]];
        const struct mc_body_input in = { .value = st->src[1 + i],
                                          .key = of->key[i],
                                          .running = running,
                                          .loose = at->loose || at->offset % MC_ALIGNED };
        x->arg[i] = x->arg[i] ? x->arg[i] : mc_body_input(f, p, &in);
        b->arg[i] = x->arg[i];
        s = b->arg[i] ? MC_OK : mc_last_status();
    }
    struct mc_shape_plan *plan = s == MC_OK ? mc_shape_plan_make(b, &p->options, work) : NULL;
    s = s < 0 || plan ? s : mc_last_status();
    x->plan = plan;
    memset(b->arg, 0, (size_t)of->nin * sizeof *b->arg);
    return s;
}

/* ---- running ---- */

/* Inputs and results of the body lie where those of the branch are. */
static void place(const struct mc_function *f, const struct mc_step *st, const struct mc_branch *how,
                  bool side, const struct side *x)
{
    struct mc_function *b = x->body;
    for (size_t v = 0; v < b->code->program.value.n; v++) {
        const struct mc_slot *at = &x->plan->slot[v];
        b->ptr[v] = at->base == BASE_INPUT ? f->ptr[st->src[1 + at->index]] + at->offset
                    : at->base == BASE_OUTPUT
                        ? f->ptr[st->dst[mc_branch_result(how, side, at->index)]] + at->offset
                        : b->code->backend->address(b, x->plan, v);
    }
}

static mc_status check_result(const struct mc_shape_plan *p, const struct mc_step *st, int result,
                              const struct mc_slot *made)
{
    const struct mc_type *want = &p->slot[st->dst[result]].type;
    if (mc_type_equal(want, &made->type)) {
        return MC_OK;
    }
    return mc_types_differ(MC_ESHAPE, "ifelse: value", result + 1, want, "on one side", &made->type,
                           "on the other");
}

static mc_status run_side(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_step *st,
                          const struct mc_branch *how, bool side, struct side *x)
{
    struct mc_function *b = x->body;
    const struct mc_program *pr = &b->code->program;
    const struct mc_backend *backend = b->code->backend;
    const bool watched = mc_steps_watched(b);
    for (int i = 0; i < how->side[side]->nin; i++) {
        b->arg[i] = x->arg[i];
        x->arg[i]->data = how->side[side]->key[i] ? x->arg[i]->data : f->ptr[st->src[1 + i]];
    }
    if (backend->body) {
        backend->body(f, b);
    }
    for (int i = 0; i < pr->noutput; i++) {
        TRY(check_result(p, st, mc_branch_result(how, side, i), &x->plan->slot[pr->output[i]]));
    }
    place(f, st, how, side, x);
    for (int i = 0; i < (int)pr->step.n; i++) {
        const struct mc_step_plan *sp = &x->plan->step[i];
        TRY(sp->exec || sp->epilogue ? mc_body_step(b, x->plan, i, watched) : MC_OK);
    }
    for (int i = 0; i < pr->noutput; i++) {
        const int v = pr->output[i], result = mc_branch_result(how, side, i);
        const struct mc_slot *at = &x->plan->slot[v];
        if (at->base != BASE_OUTPUT || at->index != i) {
            TRY(backend->copy(b, at, b->ptr[v], f->ptr[st->dst[result]]));
        }
    }
    return MC_OK;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    struct branch *x = (struct branch *)e;
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_space *remote = f->code->device->space;
    bool side = false;
    (void)scratch;
    if (remote && p->slot[st->src[0]].base != BASE_FIXED) {
        TRY(remote->get(remote, &side, f->ptr[st->src[0]], sizeof side));
    } else {
        mc_array *c = mc_value_array(f, p, st->src[0]);
        if (!c) {
            return mc_last_status();
        }
        side = *c->data != 0;
        mc_array_unref(&c);
    }
    struct side *taken = &x->side[side];
    TRY(taken->plan ? MC_OK : plan_side(f, p, st, x->how.side[side], taken, true, mc_shape_plan_work));
    if (!taken->arena) {
        struct mc_device *d = f->code->device;
        taken->arena = d->ops->alloc(d, taken->plan->memory + 64, "ifelse");
        TRY(taken->arena ? MC_OK : mc_last_status());
    }
    taken->body->arena = taken->arena;
    mc_status s = run_side(f, p, st, &x->how, side, taken);
    taken->body->arena = NULL;
    memset(taken->body->arg, 0, (size_t)x->how.side[side]->nin * sizeof *taken->body->arg);
    for (int i = x->how.nvalue; i < x->how.side[!side]->nout && s == MC_OK; i++) {
        const int v = st->dst[mc_branch_result(&x->how, !side, i)];
        s = f->code->backend->zero(f, f->ptr[v], mc_slot_bytes(&p->slot[v]));
    }
    f->time[step].taken[side]++;
    return s;
}

static const struct mc_exec_ops ops = { .run = run, .free = branch_free },
                                on_host = { .run = run, .free = branch_free, .host = true };

mc_status mc_branch_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct branch *x = mc_calloc(1, sizeof *x, "ifelse");
    if (!x) {
        return MC_EMEMORY;
    }
    x->exec.ops = f->code->device->space ? &on_host : &ops; /* the host reads the condition */
    x->how = mc_branch_of(st->node[0]->attr);
    for (int side = 0; side < 2; side++) {
        x->side[side].body = f->branch[step][side];
    }
    p->step[step].exec = &x->exec;
    return MC_OK;
}

mc_status mc_branch_plan_sides(struct mc_function *f, struct mc_shape_plan *p, int step,
                               mc_shape_plan_one *work)
{
    TRY(mc_branch_plan(f, p, step));
    struct branch *x = (struct branch *)p->step[step].exec;
    const struct mc_step *st = &f->code->program.step.at[step];
    TRY(plan_side(f, p, st, x->how.side[true], &x->side[true], false, work));
    return plan_side(f, p, st, x->how.side[false], &x->side[false], false, work);
}

struct mc_shape_plan *mc_branch_planned(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                                        bool side)
{
    const struct branch *x = (const struct branch *)p->step[step].exec;
    return x && f->branch && f->branch[step][0] ? x->side[side].plan : NULL;
}
