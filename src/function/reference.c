/* reference.c: a step by the reference, node by node: where there is no compiler, no kernel, or where
 * DEBUG wants to compare. */
#include "function/far.h"
#include <math.h>

struct known { const mc_node *node; mc_array *array; };
struct table { VEC(struct known) at; struct mc_function *f; const struct mc_shape_plan *p; };

mc_array *mc_value_array(struct mc_function *f, const struct mc_shape_plan *p, int value)
{
    const struct mc_spot *at = &p->place[value];
    if (at->base == BASE_FIXED) {
        return mc_array_ref(at->fixed);
    }
    if (at->base == BASE_INPUT && f->code->program.value.at[value].kind == VALUE_INPUT) { /* also while planning */
        return mc_array_near(f->arg[at->index]);
    }
    if (f->code->cuda) {
        return mc_far_fetch(f, p, value);
    }
    return mc_array_wrap(at->type.dtype, at->type.rank, at->type.dims, at->strides, f->ptr[value], NULL, NULL);
}

mc_status mc_value_store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a)
{
    if (f->code->cuda) {
        return mc_far_store(f, p, value, a);
    }
    mc_array *to = mc_value_array(f, p, value);
    mc_status s = to ? mc_array_assign(to, a) : mc_last_status();
    mc_array_unref(&to);
    return s;
}

static mc_array *lookup(const struct table *t, const mc_node *n)
{
    for (size_t i = t->at.n; i-- > 0;) {
        if (t->at.at[i].node == n) {
            return t->at.at[i].array;
        }
    }
    return NULL;
}

/* The array of node n: known, a value, a constant, or computed here (positions have no value). */
static mc_array *array_of(struct table *t, mc_node *n, int depth)
{
    mc_array *a = lookup(t, n), *in[8] = { 0 }, *made[16] = { 0 };
    int v = t->f->code->program.value_of[n->id];
    if (a) {
        return a;
    }
    if (v >= 0 && t->p->place[v].base != BASE_NONE && mc_position_axis(n) < 0) { /* kernels count; they read no positions */
        a = mc_value_array(t->f, t->p, v);
    } else if (n->value) {
        a = mc_array_ref(n->value);
    } else if (n->nin <= 8 && depth < 16) {
        bool ok = true;
        for (int i = 0; i < n->nin; i++) {
            ok = ok && (in[i] = array_of(t, n->in[i], depth + 1)) != NULL;
        }
        if (ok && mc_eval_node(n, in, made) == MC_OK) {
            a = made[0];
        }
    }
    struct known k = { n, a };
    if (a && !VEC_PUSH(t->at, k)) {
        mc_array_unref(&a);
    }
    return a;
}

/* The coarsest float among the step's nodes and what they read: a float64 made from float32 has its digits. */
static double tolerance(const struct mc_step *st, const mc_array *want)
{
    double eps = 0;
    for (int i = 0; i < st->nnode && mc_is_float(want->dtype); i++) {
        for (int k = -1; k < st->node[i]->nin; k++) {
            eps = MC_MAX(eps, mc_dtypes[(k < 0 ? st->node[i] : st->node[i]->in[k])->type.dtype].eps);
        }
    }
    return eps > 1e-4 ? 8 * eps : 64 * eps;
}

static double largest(const mc_array *a)
{
    double most = 0;
    int64_t n = mc_is_float(a->dtype) && mc_array_is_contiguous(a) ? mc_array_size(a) : 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size));
        most = x > most && x < HUGE_VAL ? x : most;
    }
    return most;
}

/* Sums may cancel: where something is reduced, what was added says how far two right ways of adding may differ. */
static mc_status compare_value(const struct table *t, int step, int v, const mc_array *want)
{
    const struct mc_step *st = &t->f->code->program.step.at[step];
    mc_array *have = mc_value_array(t->f, t->p, v);
    if (!have) {
        return mc_last_status();
    }
    double tol = tolerance(st, want), scale = tol > 0 ? largest(want) : 0;
    for (size_t i = 0; i < t->at.n && tol > 0 && st->kernel && st->kernel->nreduce; i++) {
        scale = MC_MAX(scale, largest(t->at.at[i].array));
    }
    int64_t bad = mc_array_differs(have, want, tol, tol * scale + (tol > 0 ? 1e-30 : 0));
    mc_array_unref(&have);
    return bad < 0 ? MC_OK : mc_fail(MC_ECHECK, "DEBUG: step %d, %s: element %lld differs from the reference", step,
                                     t->f->code->step_text[step], (long long)bad);
}

/* The places of a host step's results, which lie apart from what it reads. */
static mc_status results(const struct table *t, int step, const mc_node *n, mc_array **made)
{
    const struct mc_program *pr = &t->f->code->program;
    const struct mc_step *st = &pr->step.at[step];
    for (int k = 0; k < n->nout; k++) {
        int v = n->nout == 1 ? pr->value_of[n->id] : st->dst[k];
        if (v >= 0 && t->p->place[v].base != BASE_TYPE && t->f->ptr[v]) {
            made[k] = mc_value_array(t->f, t->p, v);
            if (!made[k]) {
                return mc_last_status();
            }
        }
    }
    return MC_OK;
}

static bool has_none(const struct mc_step *st)
{
    const struct mc_custom *c = st->node[0]->op->custom;
    return c && !c->run && !c->kernel;
}

mc_status mc_reference_step(struct mc_function *f, const struct mc_shape_plan *p, int step, bool compare)
{
    const struct mc_program *pr = &f->code->program;
    const struct mc_step *st = &pr->step.at[step];
    if (compare && st->nnode == 1 && has_none(st)) {
        return MC_OK;
    }
    struct table t = { { 0 }, f, p };
    mc_status s = MC_OK;
    bool direct = st->kind == STEP_HOST && !compare && !f->code->cuda;
    for (int i = st->heavy && st->kernel ? -1 : 0; i < st->nnode && s == MC_OK; i++) {
        mc_node *n = i < 0 ? st->heavy : st->node[i];
        mc_array **in = mc_alloc((size_t)(n->nin + 1) * sizeof *in, "reference"), *made[16] = { 0 };
        s = in ? MC_OK : MC_EMEMORY;
        for (int k = 0; k < n->nin && s == MC_OK; k++) {
            in[k] = array_of(&t, n->in[k], 0);
            s = in[k] ? MC_OK : mc_last_status();
        }
        s = s < 0 ? s : direct ? results(&t, step, n, made) : MC_OK;
        s = s < 0 ? s : direct && mc_lines_apart(n, made[0]) ? mc_lines_eval(n, in, made[0], f->threads) : mc_eval_node(n, in, made);
        mc_free(in);
        for (int k = 0; k < n->nout && s == MC_OK; k++) {
            int v = n->nout == 1 ? pr->value_of[n->id] : st->dst[st->ndst - n->nout + k];
            if (direct && v >= 0 && made[k]->data == f->ptr[v]) {
                continue; /* there already */
            }
            bool ours = v >= 0 && (pr->value.at[v].step == step || n->nout > 1) && p->place[v].base != BASE_TYPE;
            if (ours && compare) {
                s = compare_value(&t, step, v, made[k]);
            } else if (ours) {
                s = mc_value_store(f, p, v, made[k]);
            }
        }
        struct known k = { n->nout == 1 || i >= 0 ? n : mc_item(n, 0), made[0] };
        if ((n->nout == 1 || i < 0) && s == MC_OK) {
            s = VEC_PUSH(t.at, k) ? MC_OK : MC_EMEMORY;
            made[0] = s == MC_OK ? NULL : made[0];
        }
        for (int j = 0; j < n->nout; j++) {
            mc_array_unref(&made[j]);
        }
    }
    for (size_t i = 0; i < t.at.n; i++) {
        mc_array_unref(&t.at.at[i].array);
    }
    VEC_FREE(t.at);
    return s;
}
