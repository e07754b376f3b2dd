/* slot.h: where a value lies at one shape, and what it looks like: a table by value, which planning fills and
 * executors read.  A slot knows no device and no plan. */
#ifndef MC_SLOT_H
#define MC_SLOT_H

#include "graph/graph.h"

/* Whose memory it is.  NONE: not planned yet; TYPE: it has no memory, only a size. */
enum mc_base { BASE_NONE, BASE_TYPE, BASE_ARENA, BASE_INPUT, BASE_SHARED, BASE_OUTPUT, BASE_FIXED };
struct mc_slot {
    enum mc_base base;
    int index;                  /* input number, output number */
    int64_t offset;             /* bytes from the start of that memory */
    mc_array *fixed;            /* BASE_FIXED: constants, early values */
    bool own;                   /* a view that had to be copied */
    struct mc_type type;        /* all sizes known */
    int64_t strides[MC_MAX_RANK]; /* bytes */
};
/* contiguous, in the arena; the offset is set later */
void mc_slot_set(struct mc_slot *slot, const struct mc_type *t);
bool mc_slot_contiguous(const struct mc_slot *slot);
size_t mc_slot_bytes(const struct mc_slot *slot);

#endif
