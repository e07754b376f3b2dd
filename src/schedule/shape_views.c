/* shape_views.c: the offset and strides of views.
 *
 * Invariant: a view shares its source's memory, unless strides cannot describe it. Then it is marked as `own`
 * and copied when the step runs. */
#include "schedule/schedule.h"

/* The slot of a view, from the slot of its source. */
mc_status mc_step_view(struct mc_function *f, struct mc_shape_plan *p, const struct mc_step *st,
                       const struct mc_type *t)
{
    const mc_node *n = st->node[0];
    int v = st->dst[0];
    const struct mc_slot *from = &p->slot[st->src[0]];
    struct mc_slot *to = &p->slot[v];
    *to = *from;
    to->fixed = NULL;
    to->own = false;
    to->type = *t;
    (void)f;
    if (n->op->form == FORM_DIMSHUFFLE) {
        for (int i = 0; i < n->attr[0].n; i++) {
            int64_t a = n->attr[0].ints[i];
            to->strides[i] = a < 0 ? 0 : from->strides[a];
        }
    } else if (n->op->form == FORM_RESHAPE) {
        if (mc_slot_contiguous(from)) {
            mc_contiguous_strides(t->dtype, t->rank, t->dims, to->strides);
        } else {
            mc_slot_set(to, t);
            to->own = true; /* copied when the step runs */
            to->offset = 0;
        }
    } else if (n->op->form == FORM_SUBTENSOR) {
        return mc_fail(MC_EUNSUPPORTED, "subtensor: planned elsewhere");
    }
    if (from->base == BASE_FIXED && !to->own) {
        to->fixed = mc_array_view(from->fixed, t->rank, t->dims, to->strides, from->fixed->data);
        return to->fixed ? MC_OK : mc_last_status();
    }
    return MC_OK;
}

static int64_t bound_value(const struct mc_function *f, const struct mc_shape_plan *p,
                           const struct mc_step *st, const int64_t *spec, int kind, int64_t dflt)
{
    if (spec[kind] == BOUND_NONE) {
        return dflt;
    }
    if (spec[kind] == BOUND_CONST) {
        return spec[kind + 1];
    }
    const struct mc_slot *at = &p->slot[st->src[spec[kind + 1]]];
    const mc_array *a = at->base == BASE_INPUT ? f->arg[at->index] : at->fixed;
    return a ? mc_load_i64(a->dtype, a->data) : dflt;
}

mc_status mc_step_slice(const struct mc_function *f, struct mc_shape_plan *p, const struct mc_step *st,
                        const struct mc_type *t)
{
    const mc_node *n = st->node[0];
    const struct mc_slot *from = &p->slot[st->src[0]];
    struct mc_slot to = *from;
    int k = 0;
    to.fixed = NULL;
    to.own = false;
    to.type = *t;
    for (int a = 0; a < from->type.rank; a++) {
        const int64_t *spec = &n->attr[0].ints[a * SPEC_N];
        int64_t size = from->type.dims[a], step = bound_value(f, p, st, spec, SPEC_STEP_KIND, 1);
        int64_t start = bound_value(f, p, st, spec, SPEC_START_KIND, step < 0 ? size - 1 : 0);
        if (spec[SPEC_START_KIND] != BOUND_NONE && start < 0) {
            start += size;
        }
        if (spec[SPEC_INDEX]) {
            to.offset += start * from->strides[a];
            continue;
        }
        start = MC_MAX(MC_MIN(start, step < 0 ? size - 1 : size), step < 0 ? -1 : 0);
        if (t->dims[k] > 0) {
            to.offset += start * from->strides[a];
        }
        to.strides[k++] = step * from->strides[a];
    }
    if (from->base == BASE_FIXED) {
        to.fixed = mc_array_view(from->fixed, t->rank, t->dims, to.strides,
                                 from->fixed->data + (to.offset - from->offset));
        to.offset = from->offset;
        if (!to.fixed) {
            return mc_last_status();
        }
    }
    p->slot[st->dst[0]] = to;
    return MC_OK;
}
