/* branch.c: branches in an exported file: if (condition) { steps of one side } else { steps of the other },
 * with the addresses of src/schedule/branch.c.
 *
 *   inK    what both sides read
 *   outK   where the values of this side are written
 *
 * K is as in loop.c.
 *
 * Invariant: the memory of both sides is the same, as one of them is computed. */
#include "export/exporting.h"
#include "op/ifelse.h"

/* What a side computes has the types that the branch's results were given. */
static mc_status check_results(const struct mc_export_one *x, const struct mc_step *st,
                             const struct mc_branch *how, bool side, const struct mc_export_one *body)
{
    const struct mc_program *pr = &body->f->code->program;
    for (int i = 0; i < pr->noutput; i++) {
        const struct mc_type *want = &x->p->slot[st->dst[mc_branch_result(how, side, i)]].type,
                             *made = &body->p->slot[pr->output[i]].type;
        if (!mc_type_equal(want, made)) {
            return mc_fail(MC_EINTERNAL,
                           "ifelse: result %d of a side has another type than that of the branch", i + 1);
        }
    }
    return MC_OK;
}

static void print_pointers(struct mc_export_one *x, const struct mc_step *st, const struct mc_branch *how,
                           bool side, struct mc_export_one *body)
{
    struct mc_str *out = &x->to->code;
    const char *in = mc_export_in(body), *to = mc_export_out(body);
    mc_str_addf(out, "const void *const %s[] = {\n", in);
    for (int i = 0; i < how->side[side]->nin; i++) {
        mc_str_addf(out, "%s,\n", mc_export_address(x, st->src[1 + i]));
    }
    mc_str_addf(out, "NULL\n};\nvoid *const %s[] = {\n", to);
    for (int i = 0; i < how->side[side]->nout; i++) {
        mc_str_addf(out, "%s,\n", mc_export_address(x, st->dst[mc_branch_result(how, side, i)]));
    }
    mc_str_addf(out, "NULL\n};\n(void)%s, (void)%s;\n", in, to);
}

/* What only the other side computes is zero. */
static void print_zeros(struct mc_export_one *x, const struct mc_step *st, const struct mc_branch *how,
                        bool side)
{
    for (int i = how->nvalue; i < how->side[!side]->nout; i++) {
        const int v = st->dst[mc_branch_result(how, !side, i)];
        const size_t bytes = mc_slot_bytes(&x->p->slot[v]);
        if (bytes) {
            mc_str_addf(&x->to->code, "memset(%s, 0, %zu);\n", mc_export_address(x, v), bytes);
        }
    }
}

static mc_status print_side(struct mc_export_one *x, int step, const struct mc_branch *how, bool side)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    struct mc_export_one body = mc_export_body_of(x, step, x->f->branch[step][side],
                                                  mc_branch_planned(x->f, x->p, step, side));
    mc_status s = check_results(x, st, how, side, &body);
    if (s == MC_OK) {
        mc_export_body_text(&x->to->code, how->side[side]);
        print_pointers(x, st, how, side, &body);
        s = mc_export_body(x, &body);
        print_zeros(x, st, how, side);
    }
    mc_free(body.constant);
    mc_arena_free(&body.names);
    return s;
}

mc_status mc_export_branch(struct mc_export_one *x, int step)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    const struct mc_branch how = mc_branch_of(st->node[0]->attr);
    struct mc_str *out = &x->to->code;
    if (!x->p->step[step].exec) {
        return mc_fail(MC_EINTERNAL, "a branch is not planned");
    }
    mc_str_addf(out, "if (*(const uint8_t *)(%s)) {\n", mc_export_address(x, st->src[0]));
    TRY(print_side(x, step, &how, true));
    mc_str_add(out, "} else {\n");
    TRY(print_side(x, step, &how, false));
    mc_str_add(out, "}\nNEXT_STEP;\n");
    return out->bad ? MC_EMEMORY : MC_OK;
}
