/* pooling.c: pooling, and normalisation across channels, at one shape: the problem, the solver plan. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "heavy/norm/norm.h"
#include "heavy/pool/pool.h"

enum { MOST_INPUTS = 8 };

/* ---- pooling ---- */

/* The value of each role; -1: there is no such array, or nothing reads the marks. */
static void roles(const struct mc_function *f, const struct mc_step *st, int step, int v[POOL_NARRAY])
{
    const struct mc_program *p = &f->code->program;
    mc_pool_roles(st->heavy, v);
    for (int r = 0; r < POOL_NARRAY; r++) {
        if (v[r] >= POOL_RESULT) {
            v[r] = mc_heavy_result(st, v[r] - POOL_RESULT);
            bool unread = p->value.at[v[r]].last <= step && !p->value.at[v[r]].is_output &&
                          f->code->mode != MODE_DEBUG;
            v[r] = r == POOL_KEY && unread ? -1 : v[r];
        } else if (v[r] >= 0) {
            v[r] = mc_heavy_source(f, st->heavy, v[r]);
        }
    }
}

mc_status mc_pooling_problem(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                             int v[POOL_NARRAY], struct mc_pool_problem *q)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_type in[MOST_INPUTS];
    const mc_array *value[MOST_INPUTS] = { 0 };
    const int64_t *strides[POOL_NARRAY];
    for (int i = 0; i < st->heavy->nin; i++) {
        const struct mc_slot *at = &p->slot[mc_heavy_source(f, st->heavy, i)];
        in[i] = at->type;
        value[i] = at->fixed;
    }
    roles(f, st, step, v);
    for (int r = 0; r < POOL_NARRAY; r++) {
        strides[r] = v[r] < 0 ? NULL : p->slot[v[r]].strides;
    }
    return mc_pool_problem_of(st->heavy, in, value, strides, q);
}

/* Adds the epilogue to the problem.  False: the step's kernel computes it. */
static bool with_epilogue(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                          struct mc_pool_problem *q, struct mc_heavy_epilogue *e)
{
    bool found = false;
    for (int axis = 0; axis < q->s.rank && !found; axis++) {
        const bool pooled = axis == q->s.axis[0] || axis == q->s.axis[1] || axis == q->s.axis[2];
        found = mc_heavy_epilogue_at(f, p, step, pooled ? -1 : axis, e) && e->residual < 0 && e->other < 0;
        q->channel = axis;
    }
    q->has_bias = found && e->bias >= 0;
    q->act = found ? e->act : ACT_NONE;
    return found && q->s.pass == POOL_FORWARD && mc_is_float(q->dtype);
}

mc_status mc_pooling_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_step_plan *sp = &p->step[step];
    struct mc_heavy *h = sp->heavy;
    struct mc_pool_problem q, whole;
    int v[POOL_NARRAY];
    TRY(mc_pooling_problem(f, p, step, v, &q));
    whole = q;
    h->epilogue.by_solver = with_epilogue(f, p, step, &whole, &h->epilogue);
    h->plan = f->code->backend->pool(h->epilogue.by_solver ? &whole : &q, &p->options);
    if (!h->plan) {
        return mc_last_status();
    }
    mc_status s = mc_heavy_calls_kernel(f, st) ? mc_epilogue_plan(f, p, step) : MC_OK;
    sp->workspace = mc_heavy_copies(h) + h->plan->workspace + 64;
    return s;
}

static void finish(void *arg, const int64_t at[MC_MAX_RANK], const int64_t size[MC_MAX_RANK])
{
    mc_launch_box(arg, at, size);
}

mc_status mc_pooling_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_heavy *h = p->step[step].heavy;
    char *base[MOST_OPERANDS + 1];
    struct mc_running r = { .st = st, .l = h->finish, .base = base };
    void *operand[POOL_NOPERAND] = { NULL };
    int v[POOL_NARRAY];
    roles(f, st, step, v);
    for (int i = 0; i < POOL_NARRAY; i++) {
        operand[i] = v[i] < 0 ? NULL : f->ptr[v[i]];
    }
    if (h->epilogue.by_solver) {
        operand[POOL_Y] = f->ptr[h->epilogue.result];
        operand[POOL_BIAS] = h->epilogue.bias < 0 ? NULL : f->ptr[h->epilogue.bias];
    }
    if (mc_heavy_calls_kernel(f, st)) {
        TRY(mc_bases(f, p, h->finish, scratch, base));
        scratch += mc_heavy_copies(h);
        mc_pool_epilogue *box = finish;
        memcpy(&operand[POOL_EPILOGUE], &box, sizeof box); /* a function's address as an operand */
        operand[POOL_EPILOGUE_ARG] = &r;
    }
    TRY(h->plan->run(h->plan, operand, scratch, f->threads));
    return mc_running_end(f, p, step, &r);
}

/* ---- normalisation across channels ---- */

static void across_values(const struct mc_function *f, const struct mc_step *st, int v[3])
{
    v[NORM_X] = mc_heavy_source(f, st->heavy, 0);
    v[NORM_G] = st->heavy->nin > 1 ? mc_heavy_source(f, st->heavy, 1) : -1;
    v[NORM_Y] = st->dst[0];
}

mc_status mc_across_problem(const struct mc_function *f, const struct mc_shape_plan *p, int step, int v[3],
                            struct mc_norm_problem *q)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const int64_t *strides[3];
    across_values(f, st, v);
    for (int r = 0; r < 3; r++) {
        strides[r] = v[r] < 0 ? NULL : p->slot[v[r]].strides;
    }
    return mc_norm_problem_of(st->heavy, &p->slot[v[NORM_X]].type, strides, q);
}

mc_status mc_across_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    struct mc_step_plan *sp = &p->step[step];
    struct mc_heavy *h = sp->heavy;
    struct mc_norm_problem q;
    int v[3];
    TRY(mc_across_problem(f, p, step, v, &q));
    h->plan = f->code->backend->norm(&q, &p->options);
    sp->workspace = h->plan ? h->plan->workspace + 64 : 0;
    return h->plan ? MC_OK : mc_last_status();
}

mc_status mc_across_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    void *operand[3];
    int v[3];
    across_values(f, &f->code->program.step.at[step], v);
    for (int r = 0; r < 3; r++) {
        operand[r] = v[r] < 0 ? NULL : f->ptr[v[r]];
    }
    const struct mc_plan *plan = p->step[step].heavy->plan;
    return plan->run(plan, operand, scratch, f->threads);
}
