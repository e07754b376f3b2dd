/* slot.h: where one value is stored at one shape, with sizes and strides.  Planning fills the table of slots
 * by value; executors read it.  A slot depends on no device and no shape plan. */
#ifndef MC_SLOT_H
#define MC_SLOT_H

#include "graph/graph.h"

/* Whose memory it is.  NONE: not planned yet; TYPE: no memory, only sizes. */
enum { MC_ALIGNED = 16 };      /* bytes that kernels may read at once */
enum mc_base { BASE_NONE, BASE_TYPE, BASE_ARENA, BASE_INPUT, BASE_SHARED, BASE_OUTPUT, BASE_FIXED };
struct mc_slot {
    enum mc_base base;
    int index;                  /* number of the input, shared variable or output */
    int64_t offset;             /* bytes from the start of that memory */
    mc_array *fixed;            /* BASE_FIXED: a constant or a value computed at plan time */
    bool own;                   /* a view that is stored as a copy */
    bool loose;                 /* the memory may begin at any element: addresses are not aligned */
    /* The value is made as a part of value inside - 1, a join, in whose memory it lies from byte `part` on;
     * 0: it is not. */
    int inside;
    int64_t part;
    struct mc_type type;        /* all sizes known */
    int64_t strides[MC_MAX_RANK]; /* bytes */
};
/* a contiguous value in the arena; the caller sets the offset later */
void mc_slot_set(struct mc_slot *slot, const struct mc_type *t);
bool mc_slot_contiguous(const struct mc_slot *slot);
size_t mc_slot_bytes(const struct mc_slot *slot);
/* The address so many bytes further on. It may be NULL, that of a value without elements, or the number of an
 * index; C adds to neither. */
static inline char *mc_moved(char *at, int64_t by)
{
    return (char *)((uintptr_t)at + (uintptr_t)by);
}

#endif
