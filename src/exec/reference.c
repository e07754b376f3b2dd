/* reference.c: runs a step by the reference, node by node: without a compiler, without a kernel, or to
 * compare with a kernel in DEBUG mode. */
#include "exec/backend.h"
#include <math.h>

/* made: computed by this step. asked: tolerances has been computed. */
struct known { const mc_node *node; mc_array *array, *tolerances; bool made, asked; };
struct table { VEC(struct known) at; struct mc_function *f; const struct mc_shape_plan *p; };

mc_array *mc_value_array(struct mc_function *f, const struct mc_shape_plan *p, int value)
{
    const struct mc_slot *at = &p->slot[value];
    if (at->base == BASE_FIXED) {
        return mc_array_ref(at->fixed);
    }
    if (at->base == BASE_INPUT &&
        f->code->program.value.at[value].kind == VALUE_INPUT) { /* while planning, f->ptr is not set yet */
        return mc_array_on_host(f->arg[at->index]);
    }
    return f->code->backend->fetch(f, p, value);
}

mc_status mc_value_store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a)
{
    return f->code->backend->store(f, p, value, a);
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

/* The array of node n: from the table, a value of the program, a constant, or computed here (positions have
 * no value). */
static mc_array *array_of(struct table *t, mc_node *n, int depth)
{
    mc_array *a = lookup(t, n), *in[8] = { 0 }, *made[MC_MOST_RESULTS] = { 0 };
    int v = t->f->code->program.value_of[n->id];
    if (a) {
        return a;
    }
    if (v >= 0 && t->p->slot[v].base != BASE_NONE &&
        mc_position_axis(n) < 0) { /* kernels compute positions; the value may be unset */
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
    struct known k = { .node = n, .array = a };
    if (a && !VEC_PUSH(t->at, k)) {
        mc_array_unref(&a);
    }
    return a;
}

/* The dtype that n accumulates in: its attribute, else its own dtype. */
static mc_dtype accumulator_dtype(const mc_node *n)
{
    const bool asked = n->op->flags & OP_REDUCES && n->op->sig->nattr > 3 && !n->attr[3].none;
    return asked ? (mc_dtype)mc_attr_int(&n->attr[3]) : n->type.dtype;
}

/* From the coarsest float dtype of the step's nodes and their inputs: a float64 made from float32 is only as
 * precise as that. */
static double tolerance(const struct mc_step *st)
{
    double eps = 0;
    for (int i = 0; i < st->nnode; i++) {
        for (int k = -1; k < st->node[i]->nin; k++) {
            mc_dtype d = k < 0 ? accumulator_dtype(st->node[i]) : st->node[i]->in[k]->type.dtype;
            eps = mc_is_float(d) ? MC_MAX(eps, mc_dtypes[d].eps) : eps;
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

static mc_array *tolerances_of(struct table *t, mc_node *n, double tol);

static mc_array *tolerances_at(struct table *t, mc_node *n, mc_array *value, double tol)
{
    mc_array *in[8] = { 0 }, *tolerances[8] = { 0 };
    bool ok = n->nin <= 8;
    for (int i = 0; ok && i < n->nin; i++) {
        tolerances[i] = tolerances_of(t, n->in[i], tol);
        in[i] = array_of(t, n->in[i], 0);
        ok = in[i] != NULL;
    }
    return ok ? mc_tolerance(n, in, tolerances, value, tol) : NULL;
}

/* The tolerance of n, as this step computed it; NULL: another step computed n, so it is exact.  Kept in the
 * table. */
static mc_array *tolerances_of(struct table *t, mc_node *n, double tol)
{
    size_t i = 0;
    while (i < t->at.n && t->at.at[i].node != n) {
        i++;
    }
    if (i == t->at.n || !t->at.at[i].made || t->at.at[i].asked) {
        return i == t->at.n ? NULL : t->at.at[i].tolerances;
    }
    t->at.at[i].asked = true;
    mc_array *tolerances = tolerances_at(t, n->op == &mc_op_item ? n->in[0] : n, t->at.at[i].array, tol);
    t->at.at[i].tolerances = tolerances; /* the recursion may have reallocated the table */
    return tolerances;
}

/* The first element that is outside its own tolerance; -1: none.  Where elements have no tolerances of their
 * own it is `bad`. */
static int64_t first_out_of_tolerance(struct table *t, mc_node *n, const mc_array *have, mc_array *want,
                                      double tol, double rough, int64_t bad)
{
    mc_array *tolerances = tolerances_at(t, n, want, tol), *near = tolerances ? mc_array_copy(have) : NULL;
    const bool each = near && mc_array_is_contiguous(want);
    size_t size = mc_dtypes[want->dtype].size;
    bad = each ? -1 : bad;
    for (int64_t i = 0, many = each ? mc_array_size(want) : 0; i < many && bad < 0; i++) {
        const char *pa = near->data + (size_t)i * size, *pb = want->data + (size_t)i * size;
        double a = mc_load_f64(want->dtype, pa), b = mc_load_f64(want->dtype, pb);
        double may = ((const double *)(const void *)tolerances->data)[i];
        bool same = memcmp(pa, pb, size) == 0 || (isnan(a) && isnan(b)) ||
                    (mc_is_float(want->dtype) && a == b);
        bool near_enough = may >= MC_TOLERANCE_ANY ||
                           (isfinite(a) && isfinite(b) && fabs(a - b) <= may + rough);
        bad = same || near_enough ? -1 : i;
    }
    mc_array_unref(&tolerances);
    mc_array_unref(&near);
    return bad;
}

/* Compares result `item` of n, stored in value v, with `want`.  Sums may cancel.  So if the kernel reduces,
 * the tolerance is relative to the largest summand; where that fails, each element has its own tolerance
 * (tolerance.c). */
static mc_status compare_value(struct table *t, int step, int v, mc_node *n, int item, mc_array *want)
{
    const struct mc_step *st = &t->f->code->program.step.at[step];
    mc_array *have = mc_value_array(t->f, t->p, v);
    if (!have) {
        return mc_last_status();
    }
    double eps = tolerance(st), tol = mc_is_float(want->dtype) ? eps : 0, scale = tol > 0 ? largest(want) : 0;
    for (size_t i = 0; i < t->at.n && tol > 0 && st->kernel && st->kernel->nreduce; i++) {
        scale = MC_MAX(scale, largest(t->at.at[i].array));
    }
    double least = want->dtype == MC_FLOAT16 ? 0x1p-22 : 1e-30; /* a few times the smallest positive number */
    double rough = tol > 0 ? tol * scale + least : 0;
    int64_t bad = mc_array_differs(have, want, tol, rough);
    if (bad >= 0 && item == 0 && mc_dims_equal(have->rank, have->dims, want->rank, want->dims)) {
        bad = first_out_of_tolerance(t, n, have, want, eps, rough, bad);
    }
    mc_array_unref(&have);
    return bad < 0 ? MC_OK
                   : mc_fail(MC_ECHECK, "DEBUG: step %d, %s: element %lld differs from the reference", step,
                             mc_step_text(t->f->code, step), (long long)bad);
}

/* The memory of a host step's results, to be written directly; it overlaps none of the step's inputs. */
static mc_status result_arrays(const struct table *t, int step, const mc_node *n, mc_array **made)
{
    const struct mc_program *pr = &t->f->code->program;
    const struct mc_step *st = &pr->step.at[step];
    for (int k = 0; k < n->nout; k++) {
        int v = n->nout == 1 ? pr->value_of[n->id] : st->dst[k];
        if (v >= 0 && t->p->slot[v].base != BASE_TYPE && t->f->ptr[v]) {
            made[k] = mc_value_array(t->f, t->p, v);
            if (!made[k]) {
                return mc_last_status();
            }
        }
    }
    return MC_OK;
}

static bool has_no_reference(const struct mc_step *st)
{
    const struct mc_custom *c = st->node[0]->op->custom;
    return c && !c->run && !c->kernel;
}

/* Does the step's kernel have a result without elements?  Then its loop does not run, and its other results
 * stay unset; all their readers loop over no elements either. */
static bool has_empty_result(const struct mc_step *st, const struct mc_shape_plan *p)
{
    bool none = false;
    for (int k = 0; st->kernel && k < st->ndst; k++) {
        const struct mc_slot *at = &p->slot[st->dst[k]];
        const bool has_memory = at->base != BASE_NONE && at->base != BASE_TYPE;
        none |= has_memory && mc_dims_count(at->type.rank, at->type.dims) == 0;
    }
    return none;
}

mc_status mc_reference_step(struct mc_function *f, const struct mc_shape_plan *p, int step, bool compare)
{
    const struct mc_program *pr = &f->code->program;
    const struct mc_step *st = &pr->step.at[step];
    if (compare && st->nnode == 1 && has_no_reference(st)) {
        return MC_OK;
    }
    struct table t = { { 0 }, f, p };
    mc_status s = MC_OK;
    bool direct = st->kind == STEP_HOST && !compare && !f->code->device->space;
    for (int i = st->heavy && st->kernel ? -1 : 0; i < st->nnode && s == MC_OK; i++) {
        mc_node *n = i < 0 ? st->heavy : st->node[i];
        mc_array **in = mc_alloc((size_t)(n->nin + 1) * sizeof *in, "reference"),
                 *made[MC_MOST_RESULTS] = { 0 };
        bool left_out = compare && has_empty_result(st, p);
        s = in ? MC_OK : MC_EMEMORY;
        for (int k = 0; k < n->nin && s == MC_OK; k++) {
            in[k] = array_of(&t, n->in[k], 0);
            s = in[k] ? MC_OK : mc_last_status();
            left_out &= s == MC_OK && mc_array_size(in[k]) > 0;
        }
        s = s < 0 ? s : direct ? result_arrays(&t, step, n, made) : MC_OK;
        s = s < 0                                         ? s
            : direct && mc_reference_parallel(n, made[0]) ? mc_lines_eval(n, in, made[0], f->threads)
                                                          : mc_eval_node(n, in, made);
        mc_free(in);
        for (int k = 0; k < n->nout && s == MC_OK; k++) {
            int v = n->nout == 1 ? pr->value_of[n->id] : st->dst[st->ndst - n->nout + k];
            if (direct && v >= 0 && made[k]->data == f->ptr[v]) {
                continue; /* written there directly */
            }
            bool ours = v >= 0 && (pr->value.at[v].step == step || n->nout > 1) &&
                        p->slot[v].base != BASE_TYPE;
            if (ours && compare && !left_out) {
                s = compare_value(&t, step, v, n, k, made[k]);
            } else if (ours && !compare) {
                s = mc_value_store(f, p, v, made[k]);
            }
        }
        struct known k = { .node = n->nout == 1 || i >= 0 ? n : mc_item(n, 0),
                           .array = made[0],
                           .made = true };
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
        mc_array_unref(&t.at.at[i].tolerances);
    }
    VEC_FREE(t.at);
    return s;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)e;
    (void)scratch;
    return mc_reference_step(f, p, step, false);
}

static const struct mc_exec_ops ops = { .run = run, .host = true };
struct mc_exec mc_exec_reference = { &ops };
