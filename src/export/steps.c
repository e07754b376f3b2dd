/* steps.c: one step of a function in an exported file: it is planned, and printed as a block of C; and the
 * steps of a body, which are a part of the step that has the body. */
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
    if (f->branch && f->branch[step][0]) {
        TRY(mc_branch_plan_sides(f, p, step, mc_export_plan_step));
        for (int side = 0; side < 2; side++) { /* one of them is computed */
            const size_t memory = mc_branch_planned(f, p, step, side)->memory;
            p->step[step].workspace = MC_MAX(p->step[step].workspace, memory);
        }
        return MC_OK;
    }
    if (st->kind != STEP_KERNEL) {
        return mc_export_is_factor(st) ? mc_export_factor_plan(f, p, step)
               : mc_export_is_ctc(st)  ? mc_export_ctc_plan(f, p, step)
                                       : MC_OK;
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
    case STEP_HOST:
        s = x->f->loop && x->f->loop[step]          ? mc_export_loop(x, step)
            : x->f->branch && x->f->branch[step][0] ? mc_export_branch(x, step)
            : mc_export_is_factor(st)               ? mc_export_factor(x, step)
            : mc_export_is_ctc(st)                  ? mc_export_ctc(x, step)
                                                    : host_op(x, step);
        break;
    }
    *nothing = x->to->code.n == before;
    return s == MC_OK && x->to->freestanding && !*nothing
               ? mc_export_check_freestanding(x, step, x->to->code.s + before)
               : s;
}

/* ---- bodies ---- */

/* A comment for each line. */
void mc_export_body_text(struct mc_str *out, const struct mc_body *b)
{
    for (const char *at = b->text; *at;) {
        const size_t n = strcspn(at, "\n");
        struct mc_str line = { 0 };
        mc_str_addn(&line, at, n);
        mc_str_add(out, "/*     ");
        mc_export_comment(out, line.s ? line.s : "");
        mc_str_add(out, " */\n");
        out->bad |= line.bad;
        mc_str_free(&line);
        at += n + (at[n] == '\n');
    }
}

struct mc_export_one mc_export_body_of(const struct mc_export_one *x, int step, struct mc_function *of,
                                       struct mc_shape_plan *p)
{
    return (struct mc_export_one){ .to = x->to,
                                   .f = of,
                                   .p = p,
                                   .name = x->name,
                                   .depth = x->depth + 1,
                                   .arena_at = x->arena_at + x->p->step[step].workspace_at };
}

/* Each step as a block, then results that no step stores where they belong. */
static mc_status print_steps(struct mc_export_one *x)
{
    struct mc_str *out = &x->to->code;
    const struct mc_program *pr = &x->f->code->program;
    for (int i = 0; i < (int)pr->step.n; i++) {
        const size_t start = out->n;
        bool nothing = false;
        mc_str_add(out, "{ /* ");
        mc_export_comment(out, mc_step_text(x->f->code, i));
        mc_str_add(out, " */\nNEXT_STEP;\n");
        const mc_status s = mc_export_step(x, i, &nothing);
        if (s < 0) {
            return mc_step_error(x->f, i, s);
        }
        if (nothing && !out->bad) {
            out->n = start;
            out->s[start] = '\0';
        } else {
            mc_str_add(out, "}\n");
        }
    }
    mc_str_add(out, "NEXT_STEP;\n");
    for (int i = 0; i < pr->noutput; i++) {
        const struct mc_slot *at = &x->p->slot[pr->output[i]];
        if (at->base != BASE_OUTPUT || at->index != i) {
            mc_export_dense(out, at, mc_export_address(x, pr->output[i]),
                            mc_export_format(x, "(char *)%s[%d]", mc_export_out(x), i));
        }
    }
    return out->bad ? MC_EMEMORY : MC_OK;
}

mc_status mc_export_body(struct mc_export_one *x, struct mc_export_one *body)
{
    body->constant = mc_calloc(body->f->code->program.value.n + 1, sizeof *body->constant, "export");
    mc_status s = body->constant ? mc_export_kernels(body) : MC_EMEMORY;
    s = s < 0 ? s : print_steps(body);
    x->bounded |= body->bounded;
    return s;
}
