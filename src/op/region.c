/* region.c: finds what only one side of a condition needs.
 *
 * From the results down, each node learns who needs it.  A value on a side of an ifelse is needed in the
 * region of that side; what a node of a region reads is needed in the same region; what two regions need is
 * in none.  Several ifelse with one condition share its regions.  An ifelse inside a region belongs to it as
 * a whole; its own sides are found when that region is a body. */
#include "op/ifelse.h"

void mc_regions_free(struct mc_regions *r)
{
    mc_free(r->of);
    mc_free(r->inner);
    mc_free(r->from_data);
    mc_free(r->read);
}

static void need(uint64_t *of, uint64_t region)
{
    *of = *of == REGION_NONE || *of == region ? region : REGION_OUTSIDE;
}

/* Who needs input k of n? */
static uint64_t region_of_input(const struct mc_regions *r, const mc_node *n, int k, uint64_t own)
{
    bool value;
    if (mc_is_shape_arg(n, k) && r->from_data[n->in[k]->id]) {
        return REGION_OUTSIDE; /* sizes of a body are known before it is computed */
    }
    if (n->op->form != FORM_IFELSE || k == 0 || own != REGION_OUTSIDE) {
        return own;
    }
    const int values = mc_ifelse_values(n), i = (k - 1) % values;
    const bool side = k <= values;
    if (!(r->read[n->id] >> i & 1)) {
        return REGION_NONE;
    }
    if (mc_is_const(n->in[0])) {
        value = *n->in[0]->value->data != 0;
        return value == side ? own : REGION_NONE;
    }
    return mc_region_of(n->in[0], side);
}

mc_status mc_regions_find(struct mc_regions *r, size_t count, mc_node *const *list, int nfixed,
                          mc_node *const *fixed)
{
    const size_t top = count ? (size_t)list[count - 1]->id + 1 : 1;
    r->of = mc_calloc(top, sizeof *r->of, "regions");
    r->inner = mc_calloc(top, sizeof *r->inner, "regions");
    r->from_data = mc_calloc(top, sizeof *r->from_data, "regions");
    r->read = mc_calloc(top, sizeof *r->read, "regions");
    if (!r->of || !r->inner || !r->from_data || !r->read) {
        mc_regions_free(r);
        *r = (struct mc_regions){ 0 };
        return MC_EMEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const mc_node *n = list[i];
        bool *from = &r->from_data[n->id];
        *from = n->op->flags & OP_LEAF && !mc_is_const(n);
        for (int k = 0; k < n->nin && !mc_reads_type_only(n); k++) {
            *from |= r->from_data[n->in[k]->id];
        }
        *from |= (n->op->flags & (OP_IMPURE | OP_RANDOM)) != 0;
        if (n->op == &mc_op_item) {
            r->read[n->in[0]->id] |= (uint64_t)1 << n->item;
        } else if (n->nout == 1) {
            r->read[n->id] = 1;
        }
    }
    for (int i = 0; i < nfixed; i++) {
        if (fixed[i]->id < top) {
            r->of[fixed[i]->id] = REGION_OUTSIDE;
        }
    }
    for (size_t i = count; i-- > 0;) {
        const mc_node *n = list[i];
        if (r->of[n->id] == REGION_NONE) {
            continue;
        }
        if (n->op->flags & OP_LEAF && n->nin == 0) {
            r->of[n->id] = REGION_OUTSIDE;
        }
        for (int k = 0; k < n->nin; k++) {
            const mc_node *in = n->in[k];
            const bool inside = r->of[n->id] != REGION_OUTSIDE;
            const uint64_t region = region_of_input(r, n, k, r->of[n->id]),
                           inner = inside ? region_of_input(r, n, k, r->inner[n->id]) : region;
            if (region != REGION_NONE) {
                need(&r->of[in->id], region);
            }
            if (inner != REGION_NONE) {
                need(&r->inner[in->id], inside ? inner : REGION_OUTSIDE);
            }
        }
    }
    for (size_t i = 0; i < count; i++) { /* an item is where its tuple is, which other regions may read too */
        const mc_node *n = list[i];
        if (n->op == &mc_op_item && r->of[n->id] != REGION_NONE && r->of[n->in[0]->id] == REGION_OUTSIDE) {
            r->of[n->id] = r->inner[n->id] = REGION_OUTSIDE;
        }
    }
    return MC_OK;
}
