/* factor.c: factorizations in an exported file: calls of the texts of src/op/matrix, which the file contains.
 *
 * Invariant: the bits are those of the reference. */
#include "export/exporting.h"
#include "op/matrix/matrix.h"

enum { OPERANDS = FACTOR_MOST_IN + FACTOR_MOST_OUT };
/* By operand: its value; where in the scratch its copy, or the memory of a result that nothing reads,
 * begins; -1: none. */
struct places {
    struct mc_factor f;
    int value[OPERANDS];
    int64_t copy[OPERANDS];
    size_t work;                /* where the memory of the work begins, behind the copies */
};

static size_t lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static bool has_memory(const struct mc_slot *at)
{
    return at->base != BASE_NONE && at->base != BASE_TYPE;
}

static mc_status find(const struct mc_function *f, const struct mc_shape_plan *p, int step, struct places *x)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const mc_node *n = st->node[0];
    struct mc_type type[FACTOR_MOST_IN];
    memset(x->value, -1, sizeof x->value);
    memset(x->copy, -1, sizeof x->copy);
    x->work = 0;
    for (int i = 0; i < n->nin; i++) {
        x->value[i] = f->code->program.value_of[n->in[i]->id];
        const struct mc_slot *at = &p->slot[x->value[i]];
        type[i] = at->type;
        if (!mc_slot_contiguous(at)) {
            x->copy[i] = (int64_t)x->work;
            x->work += lines(mc_slot_bytes(at));
        }
    }
    TRY(mc_factor_of(n, type, &x->f));
    for (int i = 0; i < n->nout; i++) {
        const int v = n->nout == 1 ? f->code->program.value_of[n->id] : st->dst[st->ndst - n->nout + i];
        x->value[FACTOR_MOST_IN + i] = v;
        if (v < 0 || !has_memory(&p->slot[v]) || !mc_slot_contiguous(&p->slot[v])) {
            x->copy[FACTOR_MOST_IN + i] = (int64_t)x->work;
            x->work += lines((size_t)(x->f.batch * x->f.out[i]) * x->f.out_size[i]);
        }
    }
    return MC_OK;
}

bool mc_export_is_factor(const struct mc_step *st)
{
    return st->kind == STEP_HOST && mc_factor_kind_of(st->node[0]->op) != FACTOR_NKIND;
}

mc_status mc_export_factor_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    struct places x;
    TRY(find(f, p, step, &x));
    p->step[step].workspace = x.work + lines(mc_factor_work(&x.f)) + 64;
    return MC_OK;
}

mc_status mc_export_factor(struct mc_export_one *x, int step)
{
    struct places at;
    const char *operand[OPERANDS] = { NULL };
    struct mc_str *out = &x->to->code;
    TRY(find(x->f, x->p, step, &at));
    if (x->to->freestanding) {
        return mc_fail(MC_EUNSUPPORTED, "a freestanding file has no factorizations of matrices");
    }
    for (int r = 0; r < OPERANDS; r++) {
        if (at.copy[r] >= 0) {
            operand[r] = mc_export_scratch(x, step, (size_t)at.copy[r]);
        } else if (at.value[r] >= 0) {
            operand[r] = mc_export_address(x, at.value[r]);
        }
        if (r < FACTOR_MOST_IN && at.copy[r] >= 0) {
            mc_export_dense(out, &x->p->slot[at.value[r]], mc_export_address(x, at.value[r]), operand[r]);
        }
    }
    x->to->factors[at.f.dtype == MC_FLOAT64] |= 1u << at.f.kind;
    mc_str_add(out, "static const int64_t sizes[] = {");
    for (int i = 0; i < FACTOR_SIZES; i++) {
        mc_str_addf(out, "%s %lld", i ? "," : "", (long long)at.f.g[i]);
    }
    mc_str_addf(out, " };\nfor (int64_t i = 0; i < %lld; i++) {\n    if (", (long long)at.f.batch);
    mc_factor_call(out, &at.f, operand, mc_export_scratch(x, step, at.work));
    mc_str_add(out, ") {\n        return 1;\n    }\n}\n");
    for (int r = FACTOR_MOST_IN; r < OPERANDS; r++) { /* results of other strides */
        const int v = at.value[r];
        if (at.copy[r] >= 0 && v >= 0 && has_memory(&x->p->slot[v])) {
            return mc_fail(MC_EUNSUPPORTED, "%s: a result that is not contiguous is not exported", at.f.op);
        }
    }
    return out->bad ? MC_EMEMORY : MC_OK;
}
