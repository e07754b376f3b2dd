/* problem.c: the family of convolutions: its keys, the check of sizes, and planning.
 *
 *     conv f32 fwd n128c64i64x64 f128k9x9o56x56 s2x2 d2x2 p1x1 g2 flip unshared x:b01c a c0 e
 *
 * Invariant: problems with equal keys differ at most in addresses and in the values of alpha and beta. */
#include "heavy/conv/solver.h"
#include <inttypes.h>

static const char short_name[MC_NDTYPE][5] = {
    [MC_FLOAT16] = "f16", [MC_BFLOAT16] = "bf16", [MC_FLOAT32] = "f32", [MC_FLOAT64] = "f64",
};
static const char *const pass_name[] = { [CONV_FORWARD] = "fwd", [CONV_INPUTS] = "inputs",
                                         [CONV_WEIGHTS] = "weights" };

/* ---- key ---- */

static void triple(struct mc_str *out, const char *name, const int64_t *v, int from)
{
    mc_str_add(out, name);
    for (int i = from; i < 3; i++) {
        mc_str_addf(out, "%s%" PRId64, i > from ? "x" : "", v[i]);
    }
}

static void triple_unless(struct mc_str *out, const char *name, const int64_t *v, int from, int64_t usual)
{
    for (int i = from; i < 3; i++) {
        if (v[i] != usual) {
            triple(out, name, v, from);
            return;
        }
    }
}

static const struct {
    const char *name[3]; /* of x, w, y */
    int order[5];        /* outermost first */
} layouts[] = {
    { { "b01c", "f01c", "b01c" }, { 0, 2, 3, 4, 1 } },
    { { "c01b", "c01f", "c01b" }, { 1, 2, 3, 4, 0 } },
};

static bool in_order(const struct mc_conv_array *a, const int *order)
{
    int64_t step = 1;
    for (int i = 4; i >= 0; i--) {
        if (a->size[order[i]] > 1 && a->stride[order[i]] != step) {
            return false;
        }
        step *= a->size[order[i]];
    }
    return a->rank == 5;
}

/* Adds nothing for C order, else the name of the layout, or all strides of axes larger than 1. */
static void layout(struct mc_str *out, const struct mc_conv_problem *p, int role)
{
    const struct mc_conv_array a = mc_conv_array(p, role);
    if (mc_conv_dense(p, role)) {
        return;
    }
    mc_str_addf(out, " %c:", "xwy"[role]);
    for (size_t i = 0; i < NELEM(layouts); i++) {
        if (in_order(&a, layouts[i].order)) {
            mc_str_add(out, layouts[i].name[role]);
            return;
        }
    }
    for (int i = 0; i < a.rank; i++) {
        mc_str_add(out, i ? "," : "");
        if (a.size[i] > 1) {
            mc_str_addf(out, "%" PRId64, a.stride[i]);
        }
    }
}

void mc_conv_key(const struct mc_problem *p_, struct mc_str *out)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    int from = 3 - MC_MIN(MC_MAX(s->nd, 1), 3);
    for (int i = from - 1; i >= 0; i--) {
        from = s->in[i] != 1 || s->out[i] != 1 || s->k[i] != 1 ? i : from;
    }
    mc_str_addf(out, "conv %s %s n%" PRId64 "c%" PRId64, short_name[p->dtype], pass_name[s->pass], s->n,
                s->c);
    triple(out, "i", s->in, from);
    mc_str_addf(out, " f%" PRId64, s->f);
    triple(out, "k", s->k, from);
    triple(out, "o", s->out, from);
    triple_unless(out, " s", s->stride, from, 1);
    triple_unless(out, " d", s->dilation, from, 1);
    triple_unless(out, " p", s->pad, from, 0);
    if (s->groups != 1) {
        mc_str_addf(out, " g%" PRId64, s->groups);
    }
    mc_str_add(out, s->flip ? " flip" : "");
    mc_str_add(out, s->unshared ? " unshared" : "");
    for (int role = CONV_X; role <= CONV_Y; role++) {
        layout(out, p, role);
    }
    mc_str_add(out, p->alpha != 1 ? " a" : "");
    mc_str_add(out, p->beta == 0 ? "" : p->residual ? " c0 apart" : " c0");
    mc_str_add(out, p->has_epilogue ? " e" : "");
    mc_str_add(out, p->w_stays ? " stays" : "");
    mc_str_add(out, p->has_bias ? " bias" : "");
    mc_str_add(out, mc_act_names[p->act]);
    mc_str_add(out, p->wide ? " wide" : "");
    mc_str_add(out, p->tf32 ? " tf32" : "");
    if (p->inner) {
        mc_str_addf(out, " in%u", p->inner); /* fewer solvers are possible inside a wrapper */
    }
}

/* ---- planning ---- */

bool mc_conv_may_round(mc_dtype t, const char *precision)
{
    return t == MC_FLOAT32 && strcmp(precision ? precision : mc_flag_text(FLAG_conv_precision), "tf32") == 0;
}

/* Sets what does not affect the result to its usual value, so that equal work has equal keys. */
static void settle(struct mc_conv_problem *p)
{
    struct mc_conv_shape *s = &p->s;
    bool one = true;
    for (int i = 0; i < 3; i++) {
        s->dilation[i] = s->k[i] == 1 ? 1 : s->dilation[i];
        s->stride[i] = s->out[i] == 1 ? 1 : s->stride[i];
        one &= s->k[i] == 1;
    }
    s->flip &= !one;
    const char *precision = p->precision ? p->precision : mc_flag_text(FLAG_conv_precision);
    p->tf32 = p->base.family->site &&
              ((p->tf32 && p->dtype == MC_FLOAT32) || (!p->inner && mc_conv_may_round(p->dtype, precision)));
    p->wide |= p->dtype != MC_FLOAT64 && !p->inner && strcmp(precision, "float64") == 0;
    p->precision = NULL; /* the plan keeps the problem, but the caller owns this text */
    p->algo = p->algo && !p->inner ? mc_conv_lasting(p->algo) : NULL;
}

static bool possible(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    if (s->n < 0 || s->c < 0 || s->f < 0 || s->groups < 1 || s->c % s->groups || s->f % s->groups) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        if (s->in[i] < 0 || s->out[i] < 0 || s->k[i] < 0 || s->stride[i] < 1 || s->dilation[i] < 1) {
            return false;
        }
    }
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(p, role);
        int64_t count = 8; /* bytes */
        for (int i = 0; i < a.rank; i++) {
            if (!mc_mul_i64(count, MC_MAX(a.size[i], (int64_t)1), &count)) {
                return false;
            }
        }
    }
    return true;
}

const char *mc_conv_keep(const struct mc_conv_problem *asked, const struct mc_plan_options *o,
                         const struct mc_plan *first)
{
    struct mc_conv_problem p = *asked;
    p.base = (struct mc_problem){ first->problem->family, *o };
    if (!mc_conv_chooses_once(mc_conv_asked(&p)) || !possible(&p)) {
        return NULL;
    }
    settle(&p);
    return mc_plan_declines(&p.base, first->solver) ? NULL : first->solver->name;
}

struct mc_plan *mc_conv_plan_in(const struct mc_family *family, const struct mc_conv_problem *asked,
                                const struct mc_plan_options *o)
{
    struct mc_conv_problem p = *asked;
    p.base = (struct mc_problem){ family, *o };
    if (p.dtype < 0 || p.dtype >= MC_NDTYPE || !*short_name[p.dtype]) {
        mc_fail(MC_ETYPE, "conv: the dtype must be a float");
        return NULL;
    }
    if (!possible(&p)) {
        struct mc_str text = { 0 };
        mc_conv_key(&p.base, &text);
        mc_fail(MC_ESHAPE, "%s: these sizes are impossible", text.s ? text.s : "conv");
        mc_str_free(&text);
        return NULL;
    }
    settle(&p);
    return mc_plan_make(&p.base);
}

double mc_conv_seconds(const struct mc_family *family, const struct mc_conv_problem *asked,
                       const struct mc_plan_options *o)
{
    struct mc_conv_problem p = *asked;
    p.base = (struct mc_problem){ family, *o };
    settle(&p);
    return possible(&p) ? mc_plan_seconds(&p.base) : -1;
}
