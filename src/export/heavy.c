/* heavy.c: solver steps in an exported file: matrix products and convolutions as portable sums, pooling and
 * normalisation as loops.  The epilogue kernel comes behind them, on the whole result or on each part of it;
 * a bias and relu of a convolution are done by the sums themselves. */
#include "export/exporting.h"
#include "heavy/conv/conv.h"
#include "heavy/norm/norm.h"
#include "heavy/pool/pool.h"

/* ---- matrix products and convolutions ---- */

/* A solver without a program: the reference.  Say which problem it was. */
static mc_status no_program(const struct mc_plan *plan, mc_dtype d)
{
    if (plan->problem->family == &mc_conv_family) {
        const struct mc_conv_problem *q = (const struct mc_conv_problem *)(const void *)plan->problem;
        if (q->s.unshared) {
            return mc_fail(MC_EUNSUPPORTED,
                           "a convolution with a filter for each position (local) is not exported");
        }
        if (q->wide && d == MC_FLOAT32) {
            return mc_fail(MC_EUNSUPPORTED,
                           "a convolution of float32 summed in float64 (conv.precision) is not exported");
        }
    }
    return mc_fail(MC_EUNSUPPORTED,
                   "products and convolutions are exported in float32 and float64, not in %s",
                   mc_dtype_name(d));
}

/* Has one of the operands and the result no elements? */
static bool any_empty(const struct mc_export_one *x, const int v[3])
{
    bool empty = false;
    for (int i = 0; i < 3; i++) {
        empty |= mc_slot_bytes(&x->p->slot[v[i]]) == 0;
    }
    return empty;
}

/* v: the values of memory[0] to [2]; of these the result is v[r] */
static mc_status print_program(struct mc_export_one *x, const struct mc_plan *plan, const int v[3], int r,
                               const char *const memory[PORTABLE_NMEMORY],
                               const struct mc_portable_after *after)
{
    const struct mc_portable_program *p = mc_portable_program_of(plan);
    if (any_empty(x, v)) { /* no result, or sums of nothing */
        const size_t bytes = mc_slot_bytes(&x->p->slot[v[r]]);
        if (bytes) {
            mc_str_addf(&x->to->code, "memset(%s, 0, %zu);\n", memory[r], bytes);
        }
        return MC_OK;
    }
    if (!p) {
        return no_program(plan, x->p->slot[v[r]].type.dtype);
    }
    x->to->f32 |= p->dtype == MC_FLOAT32;
    x->to->f64 |= p->dtype == MC_FLOAT64;
    mc_portable_print(&x->to->code, p, memory, after);
    return MC_OK;
}

static mc_status product(struct mc_export_one *x, int step, bool *finished)
{
    *finished = false;
    const struct mc_step *st = &x->f->code->program.step.at[step];
    const struct mc_heavy *h = x->p->step[step].heavy;
    const char *memory[PORTABLE_NMEMORY];
    size_t work = mc_heavy_copies(h);
    int v[3] = { 0, 0, st->kernel ? st->operand[st->product] : mc_heavy_result(st, 0) };
    for (int i = 0; i < 2; i++) {
        v[i] = mc_heavy_source(x->f, st->heavy, i);
        const struct mc_slot *slot = &x->p->slot[v[i]];
        memory[i] = mc_export_pointer(x, v[i]);
        if (h->copy[i] >= 0) {
            const char *to = mc_export_scratch(x, step, (size_t)h->copy[i]);
            mc_export_dense(&x->to->code, slot, mc_export_address(x, v[i]), to);
            memory[i] = mc_export_format(x, "(%s *)(%s)", mc_export_type(slot->type.dtype), to);
            work += mc_work_rounded(mc_slot_bytes(slot));
        }
    }
    memory[2] = mc_export_pointer(x, v[2]);
    memory[PORTABLE_WORKSPACE] = mc_export_format(
        x, "(%s *)(%s)", mc_export_type(x->p->slot[v[2]].type.dtype), mc_export_scratch(x, step, work));
    return print_program(x, h->plan, v, 2, memory, NULL);
}

/* The epilogue of a convolution that is printed after each part of its result. */
struct finishing {
    struct mc_export_one *x;
    int step;
    struct mc_export_part part;
    mc_status status;
};

static void finish_part(void *arg, const char *image, const char *group, const char *block)
{
    struct finishing *f = arg;
    const char *const index[] = { image, group, block };
    memcpy(f->part.index, index, sizeof index);
    f->status = mc_export_epilogue(f->x, f->step, &f->part);
}

/* Can the epilogue run after each image, group and block?  Then it finds them in the caches. */
static bool by_parts(struct finishing *f, const struct mc_plan *plan)
{
    const struct mc_step *st = &f->x->f->code->program.step.at[f->step];
    const struct mc_portable_program *p = mc_portable_program_of(plan);
    if (!mc_heavy_calls_kernel(f->x->f, st) || !p || !mc_portable_has_parts(p) ||
        !mc_export_has_parts(f->x, f->step)) {
        return false;
    }
    const struct mc_conv_problem *q = (const struct mc_conv_problem *)(const void *)plan->problem;
    int axis[5];
    mc_conv_result_axes(st->heavy, axis);
    const bool forward = q->s.pass == CONV_FORWARD;
    const struct mc_export_part part = {
        .axis = { axis[0], axis[1], p->blocks > 1 ? axis[3] : -1 },
        .size = { 1, (forward ? q->s.f : q->s.c) / q->s.groups, q->s.out[1] / p->blocks },
        .parts = p->images * p->groups * p->blocks,
    };
    f->part = part;
    return q->s.pass != CONV_WEIGHTS && (axis[0] >= 0 || p->images == 1) && (axis[1] >= 0 || p->groups == 1);
}

/* Does relu of the kernel give the bits of the vectors' `positive`?  A maximum with 0 does; a choice by a
 * condition (the op with three arguments) loses NaN, and -0 may be another maximum. */
static bool cuts_below_zero(const struct mc_kernel *k)
{
    static const char zero[sizeof k->val.at->bits] = { 0 };
    bool good = true;
    for (size_t i = 0; i < k->val.n; i++) {
        const struct mc_kval *v = &k->val.at[i];
        good &= v->narg < 3 && (v->kind != K_CONST || memcmp(v->bits, zero, sizeof zero) == 0);
    }
    return good;
}

/* Is the epilogue a bias, relu or both, in place?  Then the sums are finished before they are stored. */
static bool by_sums(struct mc_export_one *x, int step, const struct mc_plan *plan,
                    struct mc_portable_after *after)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    const struct mc_portable_program *p = mc_portable_program_of(plan);
    const struct mc_conv_problem *q = (const struct mc_conv_problem *)(const void *)plan->problem;
    struct mc_heavy_epilogue e;
    int axis[5];
    mc_conv_result_axes(st->heavy, axis);
    if (!mc_heavy_calls_kernel(x->f, st) || !p || q->s.pass != CONV_FORWARD || !mc_portable_can_finish(p) ||
        axis[1] < 0 || !mc_heavy_epilogue_terms(x->f, x->p, step, axis[1], &e) || e.residual >= 0 ||
        e.other >= 0 || !(e.act == ACT_RELU ? cuts_below_zero(st->kernel) : e.act == ACT_NONE) ||
        strcmp(mc_export_pointer(x, e.result), mc_export_pointer(x, mc_heavy_result(st, 0))) != 0) {
        return false;
    }
    *after = (struct mc_portable_after){ .bias = e.bias < 0 ? NULL : mc_export_pointer(x, e.bias),
                                         .rows = q->s.f / q->s.groups,
                                         .relu = e.act == ACT_RELU };
    return true;
}

static mc_status convolution(struct mc_export_one *x, int step, bool *finished)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    const struct mc_heavy *h = x->p->step[step].heavy;
    const signed char *from = mc_conv_operand[mc_conv_pass_of(st->heavy->op)];
    const char *memory[PORTABLE_NMEMORY];
    int v[3], result = 0;
    for (int r = 0; r < 3; r++) {
        v[r] = from[r] < 0 ? mc_heavy_result(st, 0) : mc_heavy_source(x->f, st->heavy, from[r]);
        result = from[r] < 0 ? r : result;
        memory[r] = mc_export_pointer(x, v[r]);
    }
    memory[PORTABLE_WORKSPACE] = mc_export_format(
        x, "(%s *)(%s)", mc_export_type(x->p->slot[mc_heavy_result(st, 0)].type.dtype),
        mc_export_scratch(x, step, mc_heavy_copies(h)));
    struct finishing f = { .x = x, .step = step };
    struct mc_portable_after after = { .print = finish_part, .arg = &f };
    const bool sums = by_sums(x, step, h->plan, &after);
    *finished = !any_empty(x, v) && (sums || by_parts(&f, h->plan));
    x->to->finishes |= *finished && sums;
    TRY(print_program(x, h->plan, v, result, memory, *finished ? &after : NULL));
    return f.status;
}

/* ---- pooling and normalisation ---- */

/* The same as a typed pointer; NULL: no such operand. */
static const char *operand(struct mc_export_one *x, int value)
{
    return value < 0 ? NULL : mc_export_pointer(x, value);
}

static mc_status pooling(struct mc_export_one *x, int step, bool *finished)
{
    *finished = false;
    struct mc_pool_problem q;
    const char *at[POOL_NARRAY];
    int v[POOL_NARRAY];
    TRY(mc_pooling_problem(x->f, x->p, step, v, &q));
    for (int r = 0; r < POOL_NARRAY; r++) {
        at[r] = operand(x, v[r]);
    }
    return mc_pool_print(&x->to->code, &q, at);
}

static mc_status across(struct mc_export_one *x, int step, bool *finished)
{
    *finished = false;
    struct mc_norm_problem q;
    const char *at[3];
    int v[3];
    TRY(mc_across_problem(x->f, x->p, step, v, &q));
    for (int r = 0; r < 3; r++) {
        at[r] = operand(x, v[r]);
    }
    return mc_norm_print(&x->to->code, &q, at);
}

/* ---- all ---- */

/* finished: the epilogue is printed, too */
static mc_status (*const families[])(struct mc_export_one *x, int step, bool *finished) = {
    [SOLVERS_GEMM] = product,
    [SOLVERS_CONV] = convolution,
    [SOLVERS_POOL] = pooling,
    [SOLVERS_NORM] = across,
};

mc_status mc_export_heavy(struct mc_export_one *x, int step)
{
    const struct mc_step *st = &x->f->code->program.step.at[step];
    bool finished = false;
    TRY(families[st->heavy->op->solvers](x, step, &finished));
    return mc_heavy_calls_kernel(x->f, st) && !finished ? mc_export_epilogue(x, step, NULL) : MC_OK;
}
