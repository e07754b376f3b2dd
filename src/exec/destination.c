/* destination.c: the memory that results and updates are written to: the caller's arrays, new arrays, or
 * shared variables. */
#include "exec/backend.h"

/* ---- results ---- */

mc_status mc_result_given(const struct mc_function *f, int i, const mc_arg *out, mc_dtype d, int rank,
                          const int64_t *dims)
{
    const mc_array *given = out->kind == 3 ? *out->u.slot : NULL;
    int64_t count = mc_dims_count(rank, dims);
    if (out->kind == 4 && count != 1) {
        return mc_fail(MC_ESHAPE, "%s: output %d has %lld elements; a number holds one", f->name, i,
                       (long long)count);
    }
    if (out->kind == 4 && mc_is_float(d) && !mc_is_float(out->dtype)) {
        return mc_fail(MC_ETYPE,
                       "%s: output %d is %s, which the given number's %s cannot hold; give a float * or a "
                       "double *, or cast it in the formula",
                       f->name, i, mc_dtype_name(d), mc_dtype_name(out->dtype));
    }
    if (given && !mc_dims_equal(given->rank, given->dims, rank, dims)) {
        struct mc_str have = { 0 }, want = { 0 };
        mc_dims_text(&have, given->rank, given->dims);
        mc_dims_text(&want, rank, dims);
        mc_status s = mc_fail(MC_ESHAPE, "%s: output %d has shape %s; the array given has %s", f->name, i,
                              want.s ? want.s : "", have.s ? have.s : "");
        mc_str_free(&have);
        mc_str_free(&want);
        return s;
    }
    if (given && given->dtype != d && mc_dtype_promote(d, given->dtype) != given->dtype) {
        return mc_fail(MC_ETYPE, "%s: output %d is %s, which the given array's %s cannot hold", f->name, i,
                       mc_dtype_name(d), mc_dtype_name(given->dtype));
    }
    return MC_OK;
}

mc_status mc_result_array(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out)
{
    const struct mc_type *t = &p->slot[f->code->program.output[i]].type;
    struct mc_device *const d = f->output[i].on_device ? f->code->device : NULL;
    const struct mc_space *space = d ? d->space : NULL;
    mc_array *given = out && out->kind == 3 && out->u.slot ? *out->u.slot : NULL;
    bool fits = given && mc_array_space(given) == space && given->dtype == t->dtype &&
                mc_array_is_contiguous(given) && mc_dims_equal(given->rank, given->dims, t->rank, t->dims) &&
                (!space || (uintptr_t)given->data % MC_ALIGNED == 0);
    /* The result is written while inputs, shared variables and other results may still be read. */
    for (int k = 0; fits && k < f->code->program.ninput; k++) {
        fits = !mc_array_overlaps(given, f->arg[k]);
    }
    for (int k = 0; fits && k < f->nshared; k++) {
        fits = !mc_array_overlaps(given, f->shared[k]->value);
    }
    for (int k = 0; fits && k < i; k++) {
        fits = !f->result[k] || !mc_array_overlaps(given, f->result[k]);
    }
    f->result[i] = fits    ? mc_array_ref(given)
                   : space ? d->ops->array(d, t->dtype, t->rank, t->dims)
                           : mc_array_empty(t->dtype, t->rank, t->dims);
    return f->result[i] ? MC_OK : mc_last_status();
}

/* ---- updates ---- */

bool mc_is_in_place(const struct mc_function *f, const struct mc_shape_plan *p, int update)
{
    const struct mc_slot *at = &p->slot[f->code->program.update[update]];
    return at->base == BASE_SHARED && f->shared[at->index] == f->target[update] &&
           f->code->program.value.at[f->code->program.update[update]].kind == VALUE_TEMP;
}

/* Not if the new value is an input or a shared variable, which may change before the copy, is the new value
 * of an earlier update too, or has another shape than the old one. */
bool mc_update_is_plain(const struct mc_function *f, const struct mc_shape_plan *p, int i)
{
    const struct mc_program *pr = &f->code->program;
    const struct mc_slot *at = &p->slot[pr->update[i]];
    const mc_array *old = f->target[i]->value;
    bool plain = (at->base == BASE_ARENA || mc_is_in_place(f, p, i)) &&
                 mc_dims_equal(at->type.rank, at->type.dims, old->rank, old->dims);
    for (int k = 0; plain && k < i; k++) {
        plain = pr->update[k] != pr->update[i];
    }
    return plain;
}
