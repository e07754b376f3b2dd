/* call.c: calling a function: arguments checked, the plan found, steps run, results handed over, and
 * only then the updates made. */
#include "function/function.h"
#include <math.h>

/* ---- arguments ---- */

static mc_status shape_error(const struct mc_function *f, int i, const mc_array *a, const struct mc_type *want)
{
    struct mc_str have = { 0 }, need = { 0 };
    mc_str_addf(&have, "%s", mc_dtype_name(a->dtype));
    mc_dims_text(&have, a->rank, a->dims);
    mc_type_text(&need, want);
    mc_status s = mc_fail(MC_ESHAPE, "%s: input %d ('%s') is %s, not %s", f->name, i, f->input[i].name, have.s ? have.s : "",
                          need.s ? need.s : "");
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

/* An array of the wanted dtype; another one is converted if nothing can be lost, or downcasting is allowed. */
static mc_status take_array(struct mc_function *f, int i, const mc_array *a)
{
    mc_dtype want = f->code->program.input[i]->type.dtype;
    TRY(check_array(f, i, a));
    if (a->dtype == want) {
        bool whole = true;
        for (int k = 0; k < a->rank; k++) {
            whole &= a->strides[k] % (int64_t)mc_dtypes[want].size == 0;
        }
        f->arg[i] = whole && (uintptr_t)a->data % mc_dtypes[want].size == 0 ? mc_array_ref(a) : mc_array_copy(a);
    } else if (mc_dtype_promote(a->dtype, want) == want || mc_flag_int(FLAG_allow_downcast)) {
        f->arg[i] = mc_array_cast(a, want);
    } else {
        return mc_fail(MC_ETYPE, "%s: input %d ('%s') is %s, which %s cannot hold; cast it, or set allow_input_downcast", f->name, i,
                       f->input[i].name, mc_dtype_name(a->dtype), mc_dtype_name(want));
    }
    return f->arg[i] ? MC_OK : mc_last_status();
}

static mc_status take_number(struct mc_function *f, int i, const mc_arg *arg)
{
    const struct mc_type *want = &f->code->program.input[i]->type;
    if (want->rank != 0) {
        return mc_fail(MC_ESHAPE, "%s: input %d ('%s') has rank %d, not 0: a number does not do", f->name, i, f->input[i].name, want->rank);
    }
    double v = arg->kind == 1 ? arg->u.real : (double)arg->u.integer;
    f->arg[i] = mc_array_empty(want->dtype, 0, NULL);
    if (!f->arg[i]) {
        return mc_last_status();
    }
    char *data = f->arg[i]->data;
    bool kept = true;
    if (mc_is_float(want->dtype) || (arg->kind == 1 && v == floor(v))) {
        mc_store_f64(want->dtype, data, v);
        kept = mc_is_float(want->dtype) || mc_load_f64(want->dtype, data) == v;
    } else if (arg->kind == 2) {
        mc_store_i64(want->dtype, data, arg->u.integer);
        kept = mc_load_i64(want->dtype, data) == arg->u.integer;
    } else {
        kept = false;
    }
    return kept ? MC_OK : mc_fail(MC_ETYPE, "%s: input %d ('%s') is %s, which does not hold %.17g", f->name, i, f->input[i].name,
                                  mc_dtype_name(want->dtype), v);
}

static mc_status take_input(struct mc_function *f, int i, const mc_arg *arg)
{
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
        return mc_fail(MC_EARG, "%s: input %d ('%s') is no array%s%s", f->name, i, f->input[i].name, *mc_last_error() ? ": " : "",
                       mc_last_error());
    }
    return take_array(f, i, arg->u.array);
}

/* ---- addresses ---- */

static void set_pointer(struct mc_function *f, const struct mc_shape_plan *p, size_t v)
{
    const struct mc_spot *at = &p->place[v];
    char *base = NULL;
    switch (at->base) {
    case BASE_ARENA: base = f->arena; break;
    case BASE_INPUT: base = f->arg[at->index]->data; break;
    case BASE_SHARED: base = f->shared[at->index]->value->data; break;
    case BASE_OUTPUT: base = f->result[at->index]->data; break;
    case BASE_FIXED: base = at->fixed->data; break;
    case BASE_NONE:
    case BASE_TYPE: break;
    }
    f->ptr[v] = base ? base + at->offset : NULL;
}

static mc_status grow_arena(struct mc_function *f, size_t need)
{
    if (need <= f->arena_size) {
        return MC_OK;
    }
    mc_free_pages(f->arena);
    f->arena_size = 0;
    f->arena = mc_alloc_pages(need, "arena");
    if (!f->arena) {
        return mc_last_status();
    }
    f->arena_size = need;
    return MC_OK;
}

/* The array a result is made in: the caller's if it fits as it is, else a fresh one. */
static mc_status make_result(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out)
{
    const struct mc_spot *at = &p->place[f->code->program.output[i]];
    mc_array *given = out && out->kind == 3 && out->u.slot ? *out->u.slot : NULL;
    bool fits = given && given->dtype == at->type.dtype && mc_array_is_contiguous(given) &&
                mc_dims_equal(given->rank, given->dims, at->type.rank, at->type.dims);
    for (int k = 0; fits && k < f->code->program.ninput; k++) { /* an input read later must not be written now */
        fits = !mc_array_overlaps(given, f->arg[k]);
    }
    for (int k = 0; fits && k < f->nshared; k++) {
        fits = !mc_array_overlaps(given, f->shared[k]->value);
    }
    for (int k = 0; fits && k < i; k++) {
        fits = !f->result[k] || !mc_array_overlaps(given, f->result[k]);
    }
    f->result[i] = fits ? mc_array_ref(given) : mc_array_empty(at->type.dtype, at->type.rank, at->type.dims);
    return f->result[i] ? MC_OK : mc_last_status();
}

/* ---- steps ---- */

static mc_status check_finite(struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    for (int i = 0; i < st->ndst; i++) {
        const struct mc_spot *at = &p->place[st->dst[i]];
        if (!mc_is_float(at->type.dtype) || st->kind == STEP_VIEW) {
            continue;
        }
        int64_t n = mc_dims_count(at->type.rank, at->type.dims);
        for (int64_t k = 0; k < n; k++) {
            double v = mc_load_f64(at->type.dtype, f->ptr[st->dst[i]] + (size_t)k * mc_dtypes[at->type.dtype].size);
            if (!isfinite(v)) {
                return mc_fail(MC_ECHECK, "NANGUARD: step %d makes %s at element %lld: %s", step, isnan(v) ? "NaN" : "an infinity",
                               (long long)k, mc_step_name(f, step));
            }
        }
    }
    return MC_OK;
}

static mc_status run_step(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    switch (st->kind) {
    case STEP_EARLY:
    case STEP_TYPE:
        return MC_OK;
    case STEP_VIEW:
        return p->place[st->dst[0]].own ? mc_reference_step(f, p, step, false) : MC_OK;
    case STEP_KERNEL:
        return p->step[step].launch.fn ? mc_launch_run(f, p, step, scratch) : mc_reference_step(f, p, step, false);
    case STEP_HEAVY:
        return st->kernel && !f->code->fn[step] ? mc_reference_step(f, p, step, false) : mc_heavy_run(f, p, step, scratch);
    case STEP_HOST:
        return mc_reference_step(f, p, step, false);
    }
    return MC_OK;
}

/* "train: index 9 is out of range for axis 0 with size 2" and behind it the step. */
static mc_status blame(const struct mc_function *f, int step, mc_status s)
{
    char said[600];
    snprintf(said, sizeof said, "%s", mc_last_error());
    return s == MC_EMEMORY ? s : mc_fail(s, "%s: %s\n    in %.400s", f->name, said, mc_step_name(f, step));
}

static mc_status run_checked(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    double start = f->profile ? mc_now() : 0;
    mc_status s = run_step(f, p, step, scratch);
    s = s < 0 ? blame(f, step, s) : s;
    if (f->profile) {
        struct mc_step_time *t = &f->time[step];
        t->seconds += mc_now() - start;
        t->calls++;
        t->flops += p->step[step].launch.flops + p->step[step].flops;
        t->bytes += p->step[step].launch.bytes;
    }
    enum mc_step_kind kind = f->code->program.step.at[step].kind;
    if (s == MC_OK && f->code->mode == MODE_DEBUG && (kind == STEP_KERNEL || kind == STEP_HEAVY)) {
        s = mc_reference_step(f, p, step, true);
    }
    if (s == MC_OK && f->code->mode == MODE_NANGUARD) {
        s = check_finite(f, p, step);
    }
    return s;
}

/* Sizes that only running tells: plan a step, give its results memory, run it, and so on. */
static mc_status run_dynamic(struct mc_function *f, struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    for (size_t v = 0; v < pr->value.n; v++) {
        set_pointer(f, p, v);
    }
    for (int i = 0; i < (int)pr->step.n; i++) {
        const struct mc_step *st = &pr->step.at[i];
        TRY(mc_shape_plan_step(f, p, i));
        int extra = st->heavy && st->kernel ? st->operand[st->product] : -1;
        for (int k = 0; k < st->ndst + (extra >= 0); k++) {
            int v = k < st->ndst ? st->dst[k] : extra;
            struct mc_spot *at = &p->place[v];
            if (!at->fixed && at->base != BASE_TYPE && (st->kind != STEP_VIEW || at->own)) {
                at->fixed = mc_array_empty(at->type.dtype, at->type.rank, at->type.dims);
                at->base = BASE_FIXED;
                at->offset = 0;
                if (!at->fixed) {
                    return mc_last_status();
                }
            }
            set_pointer(f, p, (size_t)v);
        }
        TRY(mc_shape_plan_work(f, p, i));
        TRY(grow_arena(f, p->scratch));
        TRY(run_checked(f, p, i, f->arena));
    }
    return MC_OK;
}

static mc_status run_static(struct mc_function *f, const struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    char *scratch = f->arena + p->arena;
    for (size_t v = 0; v < pr->value.n; v++) {
        set_pointer(f, p, v);
    }
    for (int i = 0; i < (int)pr->step.n; i++) {
        TRY(run_checked(f, p, i, scratch));
    }
    return MC_OK;
}

/* ---- results and updates ---- */

/* A view of the arena; the last call's if nobody holds it any more and it still fits. */
static mc_array *lend(struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    int v = f->code->program.output[i];
    const struct mc_spot *at = &p->place[v];
    mc_array *old = f->lent[i];
    if (!old || atomic_load(&old->refs) != 1 || old->data != f->ptr[v] || !mc_dims_equal(old->rank, old->dims, at->type.rank, at->type.dims) ||
        memcmp(old->strides, at->strides, (size_t)old->rank * sizeof *old->strides) != 0) {
        mc_array_unref(&f->lent[i]);
        f->lent[i] = mc_value_array(f, p, v);
    }
    return mc_array_ref(f->lent[i]);
}

/* out[i] as an array of its own, before any update changes what it may be a view of. */
static mc_status prepare_output(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out)
{
    const struct mc_program *pr = &f->code->program;
    if (!out || (out->kind == 3 && !out->u.slot) || out->kind == 5) {
        return MC_OK;
    }
    bool stays = p->place[pr->output[i]].base == BASE_ARENA && !mc_flag_int(FLAG_allow_gc);
    if (!f->result[i] && f->output[i].borrow && stays) {
        f->result[i] = lend(f, p, i);
    } else if (!f->result[i]) {
        mc_array *view = mc_value_array(f, p, pr->output[i]);
        f->result[i] = view ? mc_array_copy(view) : NULL;
        mc_array_unref(&view);
    }
    if (!f->result[i]) {
        return mc_last_status();
    }
    if (out->kind == 4 && mc_array_size(f->result[i]) != 1) {
        return mc_fail(MC_ESHAPE, "%s: output %d has %lld elements; a number holds one", f->name, i, (long long)mc_array_size(f->result[i]));
    }
    mc_array *given = out->kind == 3 ? *out->u.slot : NULL;
    if (given && given != f->result[i]) {
        const mc_array *r = f->result[i];
        if (!mc_dims_equal(given->rank, given->dims, r->rank, r->dims)) {
            struct mc_str a = { 0 }, b = { 0 };
            mc_dims_text(&a, given->rank, given->dims);
            mc_dims_text(&b, r->rank, r->dims);
            mc_status s = mc_fail(MC_ESHAPE, "%s: output %d has shape %s; the array given has %s", f->name, i, b.s ? b.s : "", a.s ? a.s : "");
            mc_str_free(&a);
            mc_str_free(&b);
            return s;
        }
        if (given->dtype != r->dtype && mc_dtype_promote(r->dtype, given->dtype) != given->dtype) {
            return mc_fail(MC_ETYPE, "%s: output %d is %s, which the given array's %s cannot hold", f->name, i, mc_dtype_name(r->dtype),
                           mc_dtype_name(given->dtype));
        }
    }
    return MC_OK;
}

static mc_status deliver(struct mc_function *f, int i, const mc_arg *out)
{
    if (!out || (out->kind == 3 && !out->u.slot) || out->kind == 5) {
        return MC_OK;
    }
    if (out->kind == 4) {
        mc_convert(out->dtype, out->u.number, 0, f->result[i]->dtype, f->result[i]->data, 0, 1);
        return MC_OK;
    }
    mc_array *given = *out->u.slot;
    if (!given) {
        *out->u.slot = f->result[i];
        f->result[i] = NULL;
        return MC_OK;
    }
    return given == f->result[i] ? MC_OK : mc_array_assign(given, f->result[i]);
}

/* New values are copied over the old; where sizes changed a new array takes the old one's place. */
static mc_status make_updates(struct mc_function *f, const struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    mc_array *few[8] = { 0 }, **next = pr->nupdate <= 8 ? few : mc_calloc((size_t)pr->nupdate, sizeof *next, "call");
    mc_status s = next ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < pr->nupdate && s == MC_OK; i++) {
        const struct mc_spot *at = &p->place[pr->update[i]];
        const mc_array *old = f->target[i]->value;
        bool moved = at->base != BASE_ARENA || !mc_dims_equal(at->type.rank, at->type.dims, old->rank, old->dims);
        for (int k = 0; !moved && k < i; k++) {
            moved = pr->update[k] == pr->update[i];
        }
        if (moved) { /* from a shared variable or an input: it may change before it is copied */
            mc_array *view = mc_value_array(f, p, pr->update[i]);
            next[i] = view ? mc_array_copy(view) : NULL;
            mc_array_unref(&view);
            s = next[i] ? MC_OK : mc_last_status();
        }
        for (int k = 0; s == MC_OK && k < at->type.rank; k++) {
            if (f->target[i]->type.dims[k] >= 0 && f->target[i]->type.dims[k] != at->type.dims[k]) {
                s = mc_fail(MC_ESHAPE, "%s: the update of %s has size %lld on axis %d, not %lld", f->name, f->target[i]->name,
                            (long long)at->type.dims[k], k, (long long)f->target[i]->type.dims[k]);
            }
        }
    }
    for (int i = 0; i < pr->nupdate && s == MC_OK; i++) {
        struct mc_shared *t = f->target[i];
        if (next[i]) {
            mc_array_unref(&t->value);
            t->value = next[i];
            next[i] = NULL;
        } else {
            mc_array *view = mc_value_array(f, p, pr->update[i]);
            s = view ? mc_array_assign(t->value, view) : mc_last_status();
            mc_array_unref(&view);
        }
        t->version++;
    }
    for (int i = 0; i < pr->nupdate && next; i++) {
        mc_array_unref(&next[i]);
    }
    if (next != few) {
        mc_free(next);
    }
    return s;
}

static mc_status call_locked(struct mc_function *f, int nin, const mc_arg *in, int nout, const mc_arg *out)
{
    const struct mc_program *pr = &f->code->program;
    for (int i = 0; i < pr->ninput; i++) {
        TRY(take_input(f, i, i < nin ? &in[i] : NULL));
    }
    struct mc_shape_plan *p = mc_shape_plan_find(f);
    if (!p) {
        return mc_last_status();
    }
    if (!pr->dynamic) {
        TRY(grow_arena(f, p->arena + p->scratch));
        for (int i = 0; i < pr->noutput; i++) {
            if (p->place[pr->output[i]].base == BASE_OUTPUT) {
                TRY(make_result(f, p, i, i < nout ? &out[i] : NULL));
            }
        }
        TRY(run_static(f, p));
    } else {
        TRY(run_dynamic(f, p));
    }
    for (int i = 0; i < pr->noutput; i++) {
        TRY(prepare_output(f, p, i, i < nout ? &out[i] : NULL));
    }
    if (!f->skip_updates) {
        TRY(make_updates(f, p));
    }
    for (int i = 0; i < nout && i < pr->noutput; i++) {
        TRY(deliver(f, i, &out[i]));
    }
    return MC_OK;
}

mc_status mc_call_args(mc_function *f, int nin, const mc_arg *in, int nout, const mc_arg *out)
{
    if (!f) {
        return mc_fail(MC_EARG, "call: there is no function");
    }
    const struct mc_program *pr = &f->code->program;
    if (nin > pr->ninput || nout > pr->noutput) {
        return mc_fail(MC_EARG, "%s: %d %s given, it has %d", f->name, nin > pr->ninput ? nin : nout,
                       nin > pr->ninput ? "inputs are" : "places for outputs are", nin > pr->ninput ? pr->ninput : pr->noutput);
    }
    pthread_mutex_lock(&f->lock);
    double start = f->profile ? mc_now() : 0;
    for (int i = 0; i < f->nshared; i++) { /* in the order of addresses: no two calls wait for each other */
        pthread_mutex_lock(&f->shared[i]->lock);
    }
    mc_status s = call_locked(f, nin, in, nout, out);
    for (int i = f->nshared; i-- > 0;) {
        pthread_mutex_unlock(&f->shared[i]->lock);
    }
    if (pr->dynamic && f->plans) {
        mc_shape_plan_let_go(f, f->plans);
    }
    for (int i = 0; i < pr->ninput; i++) {
        mc_array_unref(&f->arg[i]);
    }
    for (int i = 0; i < pr->noutput; i++) {
        mc_array_unref(&f->result[i]);
    }
    if (mc_flag_int(FLAG_allow_gc)) {
        mc_free_pages(f->arena);
        f->arena = NULL;
        f->arena_size = 0;
    }
    f->calls++;
    f->call_seconds += f->profile ? mc_now() - start : 0;
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
