/* call.c: calls a function: checks the arguments, finds the shape plan, runs the steps, returns the results,
 * and makes the updates.
 *
 * Invariant: updates are made after every result is safe. */
#include "call/call.h"
#include "compile/compiling.h"
#include "inspect/profile.h"
#include "schedule/schedule.h"
#include <math.h>

/* ---- arguments ---- */

static mc_status shape_error(const struct mc_function *f, int i, const mc_array *a,
                             const struct mc_type *want)
{
    struct mc_str have = { 0 }, need = { 0 };
    mc_str_addf(&have, "%s", mc_dtype_name(a->dtype));
    mc_dims_text(&have, a->rank, a->dims);
    mc_type_text(&need, want);
    mc_status s = mc_fail(MC_ESHAPE, "%s: input %d ('%s') is %s, not %s", f->name, i, f->input[i].name,
                          have.s ? have.s : "", need.s ? need.s : "");
    mc_str_free(&have);
    mc_str_free(&need);
    return s;
}

static mc_status check_array(const struct mc_function *f, int i, const mc_array *a)
{
    const struct mc_type *want = &f->code->program.input[i]->type;
    if (a->rank != want->rank) {
        return shape_error(f, i, a, want);
    }
    for (int k = 0; k < a->rank; k++) {
        if (want->dims[k] >= 0 && want->dims[k] != a->dims[k]) {
            return shape_error(f, i, a, want);
        }
    }
    return MC_OK;
}

/* So many numbers are counted where they are: fewer are copied sooner.  On an H100 (bench SUITE=tables)
 * counting there took 87 us for 1,000 and for 100,000, and at home 10 us and 230 us. */
enum { COUNTS_LEAST = 1 << 15 };

/* Is input i, in another memory, read by counts alone, which that memory's device makes where the numbers
 * are? */
static bool counts_in_place(const struct mc_function *f, int i)
{
    const struct mc_program *pr = &f->code->program;
    const mc_array *a = f->arg[i];
    const mc_node *x = pr->input[i];
    const int v = pr->value_of[x->id];
    bool so = pr->dynamic && mc_array_space(a)->counts && mc_array_is_contiguous(a) && a->dtype == MC_INT64 &&
              a->rank == 1 && a->dims[0] >= COUNTS_LEAST && f->code->mode != MODE_DEBUG;
    for (size_t s = 0; s < pr->step.n && so; s++) {
        const struct mc_step *st = &pr->step.at[s];
        for (int k = 0; k < st->nsrc && so; k++) {
            const mc_node *n = st->node[0];
            so = st->src[k] != v ||
                 (st->kind == STEP_HOST && st->nnode == 1 && n->op->line == LINE_COUNTS && n->in[0] == x &&
                  n->in[1]->type.rank == 0 && n->in[1]->type.dtype == MC_INT64);
        }
    }
    for (int k = 0; k < pr->noutput && so; k++) {
        so = pr->output[k] != v;
    }
    for (int k = 0; k < pr->nupdate && so; k++) {
        so = pr->update[k] != v;
    }
    return so;
}

/* Takes an array for input i.  Another dtype is converted if no value can be lost, or if downcasting is
 * allowed. */
static mc_status take_array(struct mc_function *f, int i, const mc_array *a)
{
    mc_dtype want = f->code->program.input[i]->type.dtype;
    TRY(check_array(f, i, a));
    if (a->dtype == want) {
        bool whole = true;
        for (int k = 0; k < a->rank; k++) {
            whole &= a->strides[k] % (int64_t)mc_dtypes[want].size == 0;
        }
        f->arg[i] = whole && (uintptr_t)a->data % mc_dtypes[want].size == 0 ? mc_array_ref(a)
                                                                            : mc_array_copy(a);
        if (f->arg[i] && f->code->backend->dense_inputs && !mc_array_is_contiguous(f->arg[i])) {
            mc_array_unref(&f->arg[i]);
            f->arg[i] = mc_array_copy(a);
        }
    } else if (mc_dtype_promote(a->dtype, want) == want || mc_flag_int(FLAG_allow_downcast)) {
        f->arg[i] = mc_array_cast(a, want);
    } else {
        return mc_fail(
            MC_ETYPE, "%s: input %d ('%s') is %s, which %s cannot hold; cast it, or set allow_input_downcast",
            f->name, i, f->input[i].name, mc_dtype_name(a->dtype), mc_dtype_name(want));
    }
    const struct mc_space *space = f->arg[i] ? mc_array_space(f->arg[i]) : NULL;
    if (space && (f->code->program.key_input[i] || space != f->code->device->space) &&
        !counts_in_place(f, i)) {
        /* the host reads inputs that decide sizes; arrays of other devices are copied by way of the host */
        mc_array *near = mc_array_on_host(f->arg[i]);
        mc_array_unref(&f->arg[i]);
        f->arg[i] = near;
    }
    return f->arg[i] ? MC_OK : mc_last_status();
}

static mc_status take_number(struct mc_function *f, int i, const mc_arg *arg)
{
    const struct mc_type *want = &f->code->program.input[i]->type;
    if (want->rank != 0) {
        return mc_fail(MC_ESHAPE, "%s: input %d ('%s') has rank %d; only rank 0 accepts a number", f->name, i,
                       f->input[i].name, want->rank);
    }
    const bool wide = arg->kind == 2 && arg->dtype == MC_UINT64 && arg->u.integer < 0; /* 2^63 and above */
    const double v = arg->kind == 1 ? arg->u.real
                     : wide         ? (double)(uint64_t)arg->u.integer
                                    : (double)arg->u.integer;
    f->arg[i] = mc_array_empty(want->dtype, 0, NULL);
    if (!f->arg[i]) {
        return mc_last_status();
    }
    char *data = f->arg[i]->data;
    bool kept = true;
    if (mc_is_float(want->dtype)) { /* rounded, but a finite number must not become infinite */
        mc_store_f64(want->dtype, data, v);
        kept = !isfinite(v) || isfinite(mc_load_f64(want->dtype, data));
    } else if (arg->kind == 1) {
        kept = v == floor(v) && v >= -0x1p63 && v < (want->dtype == MC_UINT64 ? 0x1p64 : 0x1p63);
        if (kept) {
            mc_store_f64(want->dtype, data, v);
            kept = mc_load_f64(want->dtype, data) == v;
        }
    } else {
        mc_store_i64(want->dtype, data, arg->u.integer);
        kept = mc_load_i64(want->dtype, data) == arg->u.integer;
        kept = kept && (want->dtype == MC_UINT64 ? wide || arg->u.integer >= 0 : !wide);
    }
    return kept ? MC_OK
                : mc_fail(MC_ETYPE, "%s: input %d ('%s') is %s, which does not hold %.17g", f->name, i,
                          f->input[i].name, mc_dtype_name(want->dtype), v);
}

static mc_status take_input(struct mc_function *f, int i, const mc_arg *arg)
{
    if (arg && arg->kind == 5 && arg->u.number) {
        return mc_fail(MC_EARG,
                       "%s: input %d ('%s') is given as a void *, which has no type; give an array, a "
                       "number, or NULL for its default",
                       f->name, i, f->input[i].name);
    }
    if (!arg || arg->kind == 5) {
        if (!f->input[i].has_default) {
            return mc_fail(MC_EARG, "%s: input %d ('%s') is missing", f->name, i, f->input[i].name);
        }
        f->arg[i] = mc_array_ref(f->input[i].dflt);
        return MC_OK;
    }
    if (arg->kind == 1 || arg->kind == 2) {
        return take_number(f, i, arg);
    }
    if (arg->kind != 0 || !arg->u.array) {
        return mc_fail(MC_EARG, "%s: input %d ('%s') is NULL", f->name, i, f->input[i].name);
    }
    return take_array(f, i, arg->u.array);
}

/* Moves the values of shared variables to the function's device, where they stay. */
static mc_status settle(struct mc_function *f)
{
    struct mc_device *d = f->code->device;
    for (int i = 0; i < f->nshared; i++) {
        mc_array *old = f->shared[i]->value;
        if (mc_array_space(old) == d->space) {
            continue;
        }
        mc_array *now = d->ops->array(d, old->dtype, old->rank, old->dims);
        mc_status s = now ? mc_array_assign(now, old) : mc_last_status();
        if (s < 0) {
            mc_array_unref(&now);
            return s;
        }
        mc_array_unref(&f->shared[i]->value);
        f->shared[i]->value = now;
    }
    return MC_OK;
}

static mc_status call_locked(struct mc_function *f, int nin, const mc_arg *in, int nout, const mc_arg *out)
{
    const struct mc_program *pr = &f->code->program;
    TRY(settle(f));
    for (int i = 0; i < nout; i++) {
        TRY(mc_result_place(f, i, &out[i]));
    }
    for (int i = 0; i < pr->ninput; i++) {
        TRY(take_input(f, i, i < nin ? &in[i] : NULL));
    }
#ifndef MC_RUNTIME
    TRY(f->code->backend->in_place ? mc_inputs_unalias(f) : MC_OK);
#endif
    struct mc_shape_plan *p = mc_shape_plan_find(f, INT64_MAX);
    p = p ? mc_memory_reserve(f, p) : p;
    if (!p) {
        return mc_last_status();
    }
    for (int i = 0; i < pr->noutput && !pr->dynamic; i++) {
        TRY(mc_result_make(f, p, i, i < nout ? &out[i] : NULL));
    }
    TRY(mc_steps_run(f, p));
    TRY(f->code->check_rules ? f->code->check_rules(f) : MC_OK);
    for (int i = 0; i < pr->noutput; i++) {
        TRY(mc_result_prepare(f, p, i, i < nout ? &out[i] : NULL));
    }
    TRY(f->code->backend->error_seen ? f->code->backend->error_seen(f) : MC_OK);
    for (int i = 0; i < pr->noutput; i++) {
        TRY(mc_result_check(f, i, i < nout ? &out[i] : NULL));
    }
    if (!f->skip_updates) {
        TRY(mc_results_update(f, p));
    }
    for (int i = 0; i < nout && i < pr->noutput; i++) {
        TRY(mc_result_deliver(f, i, &out[i]));
    }
    return MC_OK;
}

mc_status mc_call_args(mc_function *f, int nin, const mc_arg *in, int nout, const mc_arg *out)
{
    if (!f) {
        return mc_fail(MC_EARG, "call: the function is NULL");
    }
    const struct mc_program *pr = &f->code->program;
    if (nin > pr->ninput || nout > pr->noutput) {
        return mc_fail(MC_EARG, "%s: %d %s given, it has %d", f->name, nin > pr->ninput ? nin : nout,
                       nin > pr->ninput ? "inputs are" : "places for outputs are",
                       nin > pr->ninput ? pr->ninput : pr->noutput);
    }
    pthread_mutex_lock(&f->lock);
    double start = f->profile ? mc_now() : 0;
    for (int i = 0; i < f->nshared; i++) { /* in the order of addresses, so that two calls cannot deadlock */
        pthread_mutex_lock(&f->shared[i]->lock);
    }
    mc_status s = mc_device_enter(f->code->device);
    const bool entered = s == MC_OK;
    s = entered ? call_locked(f, nin, in, nout, out) : s;
    for (int i = f->nshared; i-- > 0;) {
        pthread_mutex_unlock(&f->shared[i]->lock);
    }
    if (pr->dynamic && f->plans) {
        mc_shape_plan_release_arrays(f, f->plans);
    }
    for (int i = 0; i < pr->ninput; i++) {
        mc_array_unref(&f->arg[i]);
    }
    for (int i = 0; i < pr->noutput; i++) {
        mc_array_unref(&f->result[i]);
    }
    if (mc_flag_int(FLAG_allow_gc)) {
        mc_memory_free(f);
    }
    if (entered) {
        mc_device_leave(f->code->device);
    }
    f->calls++;
    double seconds = f->profile ? mc_now() - start : 0;
    f->call_seconds += seconds;
    if (f->traced) {
        mc_trace_call(f, start, seconds);
    }
    pthread_mutex_unlock(&f->lock);
    return s;
}

mc_status mc_function_set(mc_function *f, const char *input, mc_arg value)
{
    for (int i = 0; f && input && i < f->code->program.ninput; i++) {
        if (strcmp(f->input[i].name, input) == 0) {
            pthread_mutex_lock(&f->lock);
            mc_status s = take_input(f, i, &value);
            if (s == MC_OK) {
                mc_array *copy = mc_array_copy(f->arg[i]);
                s = copy ? MC_OK : mc_last_status();
                if (copy) {
                    mc_array_unref(&f->input[i].dflt);
                    f->input[i].dflt = copy;
                    f->input[i].has_default = true;
                }
            }
            mc_array_unref(&f->arg[i]);
            pthread_mutex_unlock(&f->lock);
            return s;
        }
    }
    return mc_fail(MC_EARG, "%s: there is no input '%s'", f ? f->name : "function", input ? input : "");
}
