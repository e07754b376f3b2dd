/* conv_pool.c: a convolution and the max pooling of its result, two steps of a program, are planned as one
 * pooled convolution (heavy/conv_pool/conv_pool.h) where that is faster at a shape.
 *
 * Invariant: a step is idle only if each step that reads its result does its work too. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "heavy/pool/pool.h"
#include "heavy/conv_pool/conv_pool.h"

static const double margin = 0.95; /* it must take less than this fraction of the time of the two steps */

_Static_assert((int)POOLED_EPILOGUE_ARG == (int)CONV_EPILOGUE_ARG,
               "mc_convolve_with sets the epilogue's operands for both");

/* The two steps, in either order. */
struct pair {
    const mc_node *conv;
    int conv_step, pool_step;
};

static struct pair find_pair(const struct mc_function *f, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const bool forward = mc_conv_pass_of(st->heavy->op) < 0;
    struct pair q = { .conv_step = forward ? st->before : step, .pool_step = forward ? step : st->before };
    q.conv = f->code->program.step.at[q.conv_step].heavy;
    return q;
}

/* The axis of y for image, filter and each spatial axis; -1: there is none. */
static void axes_of_y(const mc_node *conv, int64_t axis[5])
{
    int64_t number[MC_MAX_RANK];
    struct mc_conv_strides at;
    for (int i = 0; i < MC_MAX_RANK; i++) {
        number[i] = i + 1;
    }
    mc_conv_strides_of(conv, number, number, number, 1, &at);
    for (int i = 0; i < 5; i++) {
        axis[i] = at.y[i] - 1;
    }
}

/* Sets the windows by spatial axis.  False: it is no max pooling with marks, or pools other axes too. */
static bool windows(const mc_node *conv, const struct mc_pool_shape *s, struct mc_pooled_problem *q)
{
    int64_t axis[5];
    int found = 0;
    axes_of_y(conv, axis);
    for (int i = 0; i < 3; i++) {
        q->w[i] = q->stride[i] = 1;
        q->out[i] = q->conv.s.out[i];
        for (int slot = 0; slot < 3; slot++) {
            if (axis[2 + i] >= 0 && s->axis[slot] == axis[2 + i]) {
                q->w[i] = s->w[slot];
                q->stride[i] = s->stride[slot];
                q->pad[i] = s->pad[slot];
                q->out[i] = s->out[slot];
                found++;
            }
        }
    }
    return found == s->nd && s->mode == POOL_MAX && mc_pool_key_like_y(s);
}

static void strides_as_y(const mc_node *conv, const int64_t *strides, mc_dtype t, int64_t to[5])
{
    struct mc_conv_strides at;
    mc_conv_strides_of(conv, strides, strides, strides, (int64_t)mc_dtypes[t].size, &at);
    memcpy(to, at.y, sizeof at.y);
}

/* *is: false if the two steps cannot be one such problem. */
static mc_status problem_of(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                            struct mc_pooled_problem *q, bool *is)
{
    const struct pair two = find_pair(f, step);
    struct mc_pool_problem pool;
    int v[POOL_NARRAY];
    *q = (struct mc_pooled_problem){ .marks = MC_UINT8 };
    TRY(mc_convolve_problem(f, p, two.conv_step, &q->conv));
    TRY(mc_pooling_problem(f, p, two.pool_step, v, &pool));
    q->marks = pool.s.mark;
    q->bits = pool.s.key == POOL_KEY_BITS;
    q->unmarked = v[POOL_KEY] < 0;
    q->conv.has_epilogue = mc_heavy_calls_kernel(f, &f->code->program.step.at[step]);
    const struct mc_heavy_epilogue *e = &p->step[two.pool_step].heavy->epilogue;
    if (e->by_solver) {
        q->conv.has_bias = e->bias >= 0;
        q->conv.act = e->act;
    }
    *is = windows(two.conv, &pool.s, q);
    strides_as_y(two.conv, p->slot[v[POOL_Y]].strides, q->conv.dtype, q->g);
    if (v[POOL_KEY] >= 0) {
        strides_as_y(two.conv, p->slot[v[POOL_KEY]].strides, q->marks, q->mark);
    } else {
        memcpy(q->mark, q->g, sizeof q->g);
    }
    return MC_OK;
}

static int readers(const struct mc_program *pr, int step)
{
    int n = 0;
    for (size_t i = 0; i < pr->step.n; i++) {
        n += pr->step.at[i].before == step;
    }
    return n;
}

/* Is the step run by its plan?  Without a compiler the reference runs a step that calls a kernel, and reads
 * the result of the step before. */
static bool by_plan(const struct mc_function *f, int step)
{
    return !mc_heavy_calls_kernel(f, &f->code->program.step.at[step]) || mc_step_compiled(f, step);
}

/* Selects the plan of the pooled convolution if it is faster than the step's own plan and the step's share of
 * the step before. */
static mc_status choose_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const int front = f->code->program.step.at[step].before;
    struct mc_step_plan *sp = &p->step[step];
    struct mc_heavy *h = sp->heavy;
    struct mc_pooled_problem q;
    bool is = false;
    TRY(problem_of(f, p, step, &q, &is));
    struct mc_plan *plan = !is ? NULL : f->code->backend->pooled(&q, &p->options);
    if (is && !plan && mc_last_status() == MC_EMEMORY) {
        return MC_EMEMORY;
    }
    if (plan && plan->cost < margin * (h->plan->cost + p->step[front].heavy->plan->cost /
                                                           readers(&f->code->program, front))) {
        h->pooled = plan;
        sp->workspace = mc_heavy_copies(h) + plan->workspace + 64;
        return MC_OK;
    }
    mc_plan_free(plan);
    return MC_OK;
}

/* Is the step the second of a convolution and a pooling that may run as one?  The forward convolutions that
 * have a step before are chains (conv_chain.c). */
static bool is_pooled(const struct mc_program *pr, size_t step)
{
    const struct mc_step *st = &pr->step.at[step];
    return st->before >= 0 && mc_conv_pass_of(st->heavy->op) != CONV_FORWARD;
}

mc_status mc_pooled_step_plan(struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    for (size_t i = 0; i < pr->step.n && f->code->mode == MODE_FAST_RUN; i++) {
        if (is_pooled(pr, i) && by_plan(f, (int)i)) {
            TRY(choose_plan(f, p, (int)i));
        }
    }
    for (size_t i = 0; i < pr->step.n; i++) {
        if (is_pooled(pr, i)) {
            p->step[pr->step.at[i].before].heavy->idle = true;
        }
    }
    for (size_t i = 0; i < pr->step.n; i++) {
        if (is_pooled(pr, i) && !p->step[i].heavy->pooled) {
            p->step[pr->step.at[i].before].heavy->idle = false;
        }
    }
#ifndef MC_RUNTIME
    for (int i = (int)pr->step.n - 1; i >= 0 && f->code->mode == MODE_FAST_RUN;
         i--) { /* the last ones first */
        if (pr->step.at[i].before >= 0 && !is_pooled(pr, (size_t)i)) {
            TRY(mc_conv_chain_plan(f, p, i));
        }
    }
#endif
    for (size_t i = 0; i < pr->step.n; i++) {
        p->step[i].workspace = mc_heavy_is_skipped(&p->step[i]) ? 0 : p->step[i].workspace;
    }
    return MC_OK;
}

mc_status mc_pooled_step_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct pair two = find_pair(f, step);
    const signed char *from = mc_conv_operand[mc_conv_pass_of(two.conv->op)];
    const struct mc_step *conv = &f->code->program.step.at[two.conv_step];
    void *operand[CONV_NOPERAND] = { 0 };
    struct mc_pool_problem pool;
    int v[POOL_NARRAY];
    for (int r = CONV_X; r <= CONV_W; r++) {
        operand[r] = f->ptr[from[r] < 0 ? mc_heavy_result(conv, 0) : mc_heavy_source(f, two.conv, from[r])];
    }
    TRY(mc_pooling_problem(f, p, two.pool_step, v, &pool));
    operand[POOLED_G] = f->ptr[v[POOL_Y]];
    operand[POOLED_MARKS] = v[POOL_KEY] < 0 ? NULL : f->ptr[v[POOL_KEY]];
    const struct mc_heavy_epilogue *e = &p->step[step].heavy->epilogue;
    if (e->by_solver) {
        operand[POOLED_G] = f->ptr[e->result];
        operand[POOLED_BIAS] = e->bias < 0 ? NULL : f->ptr[e->bias];
    }
    return mc_convolve_with(f, p, step, two.conv, p->step[step].heavy->pooled, operand, scratch);
}
