/* body.c: what loops and branches share: a body is a function without a caller, whose steps run as a part of
 * the call of another one. */
#include "schedule/schedule.h"

/* Does a value determine sizes that are known while shapes are planned? */
static bool is_known(const struct mc_function *f, const struct mc_shape_plan *p, int value)
{
    return p->slot[value].fixed || f->code->program.value.at[value].kind == VALUE_INPUT;
}

mc_array *mc_body_input(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_body_input *in)
{
    static _Alignas(MC_ALIGNED) char nothing[2 * MC_ALIGNED];
    const struct mc_slot *at = &p->slot[in->value];
    const struct mc_type *t = &at->type;
    if (in->key) { /* a copy, for the caller may change the array between calls */
        mc_array *a = in->running || is_known(f, p, in->value) ? mc_value_array(f, p, in->value) : NULL,
                 *own = a ? mc_array_copy(a) : NULL;
        if (!a && mc_last_status() == MC_OK) {
            mc_fail(MC_EUNSUPPORTED, "sizes in the body depend on data");
        }
        mc_array_unref(&a);
        return own;
    }
    int64_t dense[MC_MAX_RANK];
    mc_contiguous_strides(t->dtype, t->rank, t->dims, dense);
    mc_array *a = mc_array_wrap(t->dtype, t->rank - in->skip, t->dims + in->skip,
                                in->dense ? dense : at->strides + in->skip,
                                nothing + (in->loose ? mc_dtypes[t->dtype].size : 0), NULL, NULL);
    if (a) {
        a->storage->space = f->code->device->space;
    }
    return a;
}

mc_status mc_body_step(struct mc_function *body, const struct mc_shape_plan *p, int step, bool watched)
{
    double took;
    if (watched) {
        return mc_step_watched(body, p, step, &took);
    }
    mc_status s = mc_step_run(body, p, step);
    return s < 0 ? mc_step_error(body, step, s) : s;
}
