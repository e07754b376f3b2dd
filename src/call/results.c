/* results.c: delivers outputs to the caller, and makes the updates, all from old values.
 *
 * Invariant: no shared variable changes before every output is safe. */
#include "call/call.h"
#include <math.h>

/* Checks that `out` can receive a result. */
mc_status mc_result_place(const struct mc_function *f, int i, const mc_arg *out)
{
    if (out && out->kind == 5 && out->u.number) {
        return mc_fail(MC_EARG,
                       "%s: the place for output %d is a void *, which has no type; give an int64_t *, a "
                       "float *, ..., or NULL",
                       f->name, i);
    }
    if (out && (out->kind < 3 || out->kind > 5)) {
        return mc_fail(MC_EARG, "%s: the place for output %d is a value, not an address", f->name, i);
    }
    return MC_OK;
}

/* Does a C number of type `to` hold this element?  Floats are rounded, but a finite one must not become
 * infinite. */
static bool number_holds(mc_dtype to, mc_dtype from, const void *at)
{
    if (mc_is_float(to)) {
        uint64_t box = 0;
        const double v = mc_load_f64(from, at);
        mc_store_f64(to, &box, v);
        return !isfinite(v) || isfinite(mc_load_f64(to, &box));
    }
    const int64_t v = mc_load_i64(from, at);
    const bool minus = v < 0 && from != MC_UINT64, sign = mc_dtypes[to].kind == KIND_INT;
    const int bits = to == MC_BOOL ? 1 : 8 * (int)mc_dtypes[to].size - sign;
    const uint64_t most = UINT64_MAX >> (64 - bits),
                   u = minus ? ~(uint64_t)v : (uint64_t)v; /* ~v is -v - 1 */
    return u <= most && (!minus || sign);
}

mc_status mc_result_check(struct mc_function *f, int i, const mc_arg *out)
{
    if (!mc_result_wanted(out) || out->kind != 4) {
        return MC_OK;
    }
    if (mc_array_space(f->result[i])) {
        mc_array *near = mc_array_on_host(f->result[i]);
        mc_array_unref(&f->result[i]);
        f->result[i] = near;
        TRY(near ? MC_OK : mc_last_status());
    }
    const mc_array *r = f->result[i];
    if (!number_holds(out->dtype, r->dtype, r->data)) {
        char value[40];
        if (mc_is_float(r->dtype)) {
            mc_snprintf(value, sizeof value, "%.17g", mc_load_f64(r->dtype, r->data));
        } else {
            const int64_t v = mc_load_i64(r->dtype, r->data);
            mc_snprintf(value, sizeof value, "%s%llu", v < 0 && r->dtype != MC_UINT64 ? "-" : "",
                        v < 0 && r->dtype != MC_UINT64 ? 0 - (unsigned long long)v : (unsigned long long)v);
        }
        return mc_fail(MC_ETYPE, "%s: output %d is %s, which does not fit into the given %s", f->name, i,
                       value, mc_dtype_name(out->dtype));
    }
    return MC_OK;
}

mc_status mc_result_make(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out)
{
    return f->code->backend->result_make(f, p, i, out);
}

/* Makes the array of output i before updates change values that it may be a view of. */
mc_status mc_result_prepare(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out)
{
    if (!mc_result_wanted(out)) {
        return MC_OK;
    }
    TRY(f->code->backend->result_take(f, p, i));
    const mc_array *r = f->result[i];
    return mc_result_given(f, i, out, r->dtype, r->rank, r->dims);
}

mc_status mc_result_deliver(struct mc_function *f, int i, const mc_arg *out)
{
    if (!mc_result_wanted(out)) {
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

/* Is the new value where it belongs, or copied there on the device, without an array of its own? */
static bool needs_no_array(const struct mc_function *f, const struct mc_shape_plan *p, int i)
{
#ifdef MC_RUNTIME /* on the CPU */
    (void)f;
    (void)p;
    (void)i;
    return false;
#else
    const mc_array *to = f->target[i]->value;
    return mc_is_in_place(f, p, i) ||
           (to->dtype == p->slot[f->code->program.update[i]].type.dtype && mc_array_space(to));
#endif
}

/* Copies new values over the old ones; if sizes changed, a new array replaces the old one.  All memory that
 * this takes is allocated before the first value changes. */
mc_status mc_results_update(struct mc_function *f, const struct mc_shape_plan *p)
{
    const struct mc_program *pr = &f->code->program;
    /* the backend made the updates as steps or after them */
    if (f->code->backend->updated && f->code->backend->updated(p)) {
        for (int i = 0; i < pr->nupdate; i++) {
            f->target[i]->version++;
        }
        return MC_OK;
    }
    /* next: arrays that replace the old ones, or, of a plain update, that are copied over them */
    mc_array *on_stack[8] = { 0 },
             **next = pr->nupdate <= 8 ? on_stack : mc_calloc((size_t)pr->nupdate, sizeof *next, "call");
    mc_status s = next ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < pr->nupdate && s == MC_OK; i++) {
        const struct mc_slot *at = &p->slot[pr->update[i]];
        const bool plain = mc_update_is_plain(f, p, i);
        if (!plain || !needs_no_array(f, p, i)) {
            next[i] = (plain ? mc_value_array : f->code->backend->copy_on_device)(f, p, pr->update[i]);
            s = next[i] ? MC_OK : mc_last_status();
        }
        for (int k = 0; s == MC_OK && k < at->type.rank; k++) {
            if (f->target[i]->type.dims[k] >= 0 && f->target[i]->type.dims[k] != at->type.dims[k]) {
                s = mc_fail(MC_ESHAPE, "%s: the update of %s has size %lld on axis %d, not %lld", f->name,
                            f->target[i]->name, (long long)at->type.dims[k], k,
                            (long long)f->target[i]->type.dims[k]);
            }
        }
    }
    for (int i = 0; i < pr->nupdate && s == MC_OK; i++) {
        struct mc_shared *t = f->target[i];
        if (!mc_update_is_plain(f, p, i)) {
            mc_array_unref(&t->value);
            t->value = next[i];
            next[i] = NULL;
        } else if (next[i]) {
            s = mc_array_assign(t->value, next[i]);
#ifndef MC_RUNTIME
        } else if (!mc_is_in_place(f, p, i)) {
            s = f->code->backend->copy(f, &p->slot[pr->update[i]], f->ptr[pr->update[i]], t->value->data);
#endif
        }
        t->version++;
    }
    for (int i = 0; i < pr->nupdate && next; i++) {
        mc_array_unref(&next[i]);
    }
    if (next != on_stack) {
        mc_free(next);
    }
    return s;
}

