/* convolve.c: convolution steps at one shape: the problem, the solver plan, the epilogue kernel on each
 * block. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "heavy/conv/conv.h"

/* The value ids of x, w and y. */
static void operands_by_role(const struct mc_function *f, const struct mc_step *st, int v[3])
{
    const signed char *from = mc_conv_operand[mc_conv_pass_of(st->heavy->op)];
    for (int r = 0; r < 3; r++) {
        v[r] = from[r] < 0 ? mc_heavy_result(st, 0) : mc_heavy_source(f, st->heavy, from[r]);
    }
}

/* The solver of the first shape plan, if the node's algorithm is to be chosen once; else NULL. */
static const char *remembered_choice(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                                     const struct mc_conv_problem *q)
{
    const struct mc_plan *first = NULL;
    for (const struct mc_shape_plan *other = f->plans; other; other = other->next) {
        first = other != p && other->step[step].heavy ? other->step[step].heavy->plan : first;
    }
    return first ? mc_conv_keep(q, &p->options, first) : NULL;
}

mc_status mc_convolve_problem(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                              struct mc_conv_problem *q)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_node *n = st->heavy;
    struct mc_type in[3];
    const mc_array *value[3] = { 0 };
    int v[3];
    for (int i = 0; i < n->nin; i++) {
        const struct mc_slot *at = &p->slot[mc_heavy_source(f, n, i)];
        in[i] = at->type;
        value[i] = at->fixed;
    }
    operands_by_role(f, st, v);
    const struct mc_slot *y = &p->slot[mc_heavy_result(st, 0)];
    *q = (struct mc_conv_problem){ .dtype = y->type.dtype,
                                   .alpha = 1,
                                   .has_epilogue = mc_heavy_calls_kernel(f, st) };
    q->algo = mc_attr_named(n, "algo")->text;
    q->precision = mc_attr_named(n, "precision")->text;
    TRY(mc_conv_shape_of(n, in, value, &y->type, &q->s));
    mc_conv_strides_of(n, p->slot[v[CONV_X]].strides, p->slot[v[CONV_W]].strides, p->slot[v[CONV_Y]].strides,
                       (int64_t)mc_dtypes[q->dtype].size, &q->at);
    return MC_OK;
}

/* Adds the epilogue to the problem.  False: the step's kernel computes it.  Solvers take a bias and an
 * activation only in the forward direction. */
static bool with_epilogue(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                          struct mc_conv_problem *q, struct mc_heavy_epilogue *e)
{
    int axis[5];
    mc_conv_result_axes(f->code->program.step.at[step].heavy, axis);
    const bool forward = q->s.pass == CONV_FORWARD;
    if (!mc_heavy_epilogue_at(f, p, step, forward ? axis[1] : -1, e) || e->other >= 0 ||
        (e->act != ACT_NONE && !forward)) {
        return false;
    }
    q->has_bias = e->bias >= 0;
    q->residual = e->residual >= 0;
    q->beta = e->residual >= 0;
    q->act = e->act;
    return true;
}

static struct mc_plan *plan_for(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                                const struct mc_conv_problem *asked)
{
    struct mc_conv_problem q = *asked;
    const char *kept = remembered_choice(f, p, step, &q);
    q.algo = kept ? kept : q.algo;
    return f->code->backend->conv(&q, &p->options);
}

mc_status mc_convolve_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    struct mc_step_plan *sp = &p->step[step];
    struct mc_heavy *h = sp->heavy;
    struct mc_conv_problem q, whole;
    TRY(mc_convolve_problem(f, p, step, &q));
    int v[3];
    operands_by_role(f, &f->code->program.step.at[step], v);
    q.w_stays = q.s.pass != CONV_WEIGHTS && mc_heavy_stays(f, v[CONV_W]);
    whole = q;
    h->plan = with_epilogue(f, p, step, &whole, &h->epilogue) ? plan_for(f, p, step, &whole) : NULL;
    h->epilogue.by_solver = h->plan != NULL;
    if (!h->plan) { /* also where the solver that was asked for by name computes no epilogue */
        h->plan = plan_for(f, p, step, &q);
    }
    if (!h->plan) {
        return mc_last_status();
    }
    if (q.w_stays) {
        mc_heavy_keep(f, h, v[CONV_W]);
    }
    sp->flops = 2;
    for (int a = 0; a < 3; a++) {
        sp->flops *= (double)q.s.out[a] * (double)q.s.k[a];
    }
    sp->flops *= (double)q.s.n * (double)q.s.f * (double)(q.s.c / q.s.groups);
    mc_status s = q.has_epilogue ? mc_epilogue_plan(f, p, step) : MC_OK;
    sp->workspace = mc_heavy_copies(h) + h->plan->workspace + 64;
    return s;
}

/* Does each operand of the epilogue kernel step from the end of a row of positions to the next row, of two
 * spatial axes? */
static bool rows_join(const struct mc_running *r)
{
    const struct mc_launch *l = r->l;
    const int a = r->axis[3], b = r->axis[4];
    const int64_t *step = l->step;
    bool yes = r->axis[2] < 0 && a >= 0;
    for (int k = 0; k < l->nop && yes; k++, step += MC_MAX_RANK) {
        yes = step[a] == step[b] * l->outer[b];
    }
    return yes;
}

/* Positions from `at` on, row by row. */
static void finish_rows(struct mc_running *r, const int64_t at[5], const int64_t size[5])
{
    const int64_t row = r->l->outer[r->axis[4]], rows = r->axis[3] < 0 ? 1 : r->l->outer[r->axis[3]];
    for (int64_t u = at[4], end = u + size[4], n; u < end; u += n) {
        const int64_t down = at[3] + u / row;
        n = MC_MIN(row - u % row, end - u);
        mc_convolve_block(r, (int64_t[]){ at[0], at[1], at[2] + down / rows, down % rows, u % row },
                          (int64_t[]){ size[0], size[1], 1, 1, n });
    }
}

void mc_convolve_block(struct mc_running *r, const int64_t at[5], const int64_t size[5])
{
    int64_t to[MC_MAX_RANK] = { 0 }, many[MC_MAX_RANK];
    if (r->axis[4] >= 0 && at[4] + size[4] > r->l->outer[r->axis[4]] && !rows_join(r)) {
        finish_rows(r, at, size);
        return;
    }
    memcpy(many, r->l->outer, sizeof many); /* axes of unshared filters are always complete */
    for (int i = 0; i < 5; i++) {
        if (r->axis[i] >= 0) {
            to[r->axis[i]] = at[i];
            many[r->axis[i]] = size[i];
        }
    }
    mc_launch_box(r, to, many);
}

static void finish(void *arg, const int64_t at[5], const int64_t size[5])
{
    mc_convolve_block(arg, at, size);
}

mc_status mc_convolve_with(struct mc_function *f, const struct mc_shape_plan *p, int step,
                           const mc_node *conv, const struct mc_plan *plan, void **operand,
                           char *scratch)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_heavy *h = p->step[step].heavy;
    char *base[MOST_OPERANDS + 1];
    struct mc_running r = { .st = st, .l = h->finish, .base = base };
    if (mc_heavy_calls_kernel(f, st)) {
        TRY(mc_bases(f, p, h->finish, scratch, base));
        scratch += mc_heavy_copies(h);
        mc_conv_result_axes(conv, r.axis);
        mc_conv_epilogue *box = finish;
        memcpy(&operand[CONV_EPILOGUE], &box, sizeof box); /* a function's address as an operand */
        operand[CONV_EPILOGUE_ARG] = &r;
    }
    TRY(plan->run(plan, operand, scratch, f->threads));
    return mc_running_end(f, p, step, &r);
}

mc_status mc_convolve_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_heavy *h = p->step[step].heavy;
    const struct mc_heavy_epilogue *e = &h->epilogue;
    void *operand[MC_PLAN_OPERANDS] = { [MC_PREPARED] = h->prepared };
    int v[3];
    operands_by_role(f, st, v);
    for (int i = 0; i < 3; i++) {
        operand[i] = f->ptr[e->by_solver && v[i] == mc_heavy_result(st, 0) ? e->result : v[i]];
    }
    if (e->by_solver) {
        operand[CONV_C0] = e->residual < 0 ? NULL : f->ptr[e->residual];
        operand[CONV_BIAS] = e->bias < 0 ? NULL : f->ptr[e->bias];
    }
    return mc_convolve_with(f, p, step, st->heavy, h->plan, operand, scratch);
}

void mc_convolve_prepare(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_heavy *h = p->step[step].heavy;
    int v[3];
    operands_by_role(f, &f->code->program.step.at[step], v);
    void *operand[MC_PLAN_OPERANDS] = { [CONV_W] = f->ptr[v[CONV_W]] };
    h->plan->prepare(h->plan, operand, h->prepared, scratch, f->threads);
}
