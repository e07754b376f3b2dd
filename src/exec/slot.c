/* slot.c: sizes and strides of a slot. */
#include "exec/slot.h"

size_t mc_slot_bytes(const struct mc_slot *slot)
{
    return (size_t)mc_dims_count(slot->type.rank, slot->type.dims) * mc_dtypes[slot->type.dtype].size;
}

bool mc_slot_contiguous(const struct mc_slot *slot)
{
    int64_t want = (int64_t)mc_dtypes[slot->type.dtype].size;
    for (int i = slot->type.rank; i-- > 0;) {
        if (slot->type.dims[i] != 1 && slot->strides[i] != want) {
            return false;
        }
        want *= slot->type.dims[i];
    }
    return true;
}

void mc_slot_set(struct mc_slot *slot, const struct mc_type *t)
{
    slot->base = BASE_ARENA;
    slot->type = *t;
    mc_contiguous_strides(t->dtype, t->rank, t->dims, slot->strides);
}
