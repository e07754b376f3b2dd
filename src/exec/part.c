/* part.c: the part that a step sets or adds to, as a view of the step's result. */
#include "exec/function.h"
#include "op/index.h"

static mc_array *bound_at_plan_time(const struct mc_function *f, const struct mc_shape_plan *p,
                                    const mc_node *n)
{
    const struct mc_program *pr = &f->code->program;
    const int v = pr->value_of[n->id];
    const struct mc_slot *at = v < 0 ? NULL : &p->slot[v];
    const bool given = at && at->base == BASE_INPUT && pr->value.at[v].kind == VALUE_INPUT &&
                       pr->key_input[at->index];
    return n->value ? n->value : given ? f->arg[at->index] : at && at->base == BASE_FIXED ? at->fixed : NULL;
}

mc_status mc_part_of(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                     struct mc_slot *part)
{
    const mc_node *n = f->code->program.step.at[step].node[0];
    const struct mc_slot *x = &p->slot[f->code->program.step.at[step].dst[0]];
    mc_array *in[2 + 3 * MC_MAX_RANK] = { 0 }, *all, *view = NULL;
    static char nowhere[16];
    bool known = true;
    for (int i = 2; i < n->nin; i++) {
        in[i] = bound_at_plan_time(f, p, n->in[i]);
        known = known && in[i];
    }
    if (!known) {
        return MC_EUNSUPPORTED; /* a bound that depends on data */
    }
    all = mc_array_wrap(x->type.dtype, x->type.rank, x->type.dims, NULL, nowhere, NULL, NULL);
    view = all ? mc_spec_view(n, all, in) : NULL; /* no element is read */
    if (view) {
        *part = (struct mc_slot){ .base = BASE_TYPE,
                                  .offset = (int64_t)((uintptr_t)view->data - (uintptr_t)nowhere),
                                  .type = mc_type_make(view->dtype, view->rank, view->dims) };
        memcpy(part->strides, view->strides, (size_t)view->rank * sizeof *view->strides);
    }
    mc_array_unref(&all);
    const bool good = view != NULL;
    mc_array_unref(&view);
    return good ? MC_OK : mc_last_status();
}
