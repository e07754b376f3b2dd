/* ifelse.h: a choice of which only one side is computed.  It has two forms.
 *
 *   ifelse   as users make it: a condition and, one after another, the values of both sides
 *   branch   as it is compiled: a condition and two bodies over the same inputs (rewrite/branches.c)
 *
 * A region is the set of nodes that are needed on one side of one condition only.  They become the bodies. */
#ifndef MC_IFELSE_H
#define MC_IFELSE_H

#include "op/op.h"

/* ifelse.c: the choice between n values.  They have equal dtypes and ranks; proven: and sizes, whatever the
 * condition is. */
mc_node *mc_ifelse_make(mc_graph *g, mc_node *condition, int n, mc_node *const *yes, mc_node *const *no,
                        bool proven);
/* the error of types that do not fit */
mc_status mc_ifelse_differ(int i, const struct mc_type *yes, const struct mc_type *no);
static inline int mc_ifelse_values(const mc_node *n) { return (n->nin - 1) / 2; }
/* value i of the side that the condition chooses */
static inline mc_node *mc_ifelse_value(const mc_node *n, bool condition, int i)
{
    return n->in[1 + (condition ? 0 : mc_ifelse_values(n)) + i];
}

/* branch.c.  Results: the values; then those that only the true side computes; then those of the other side.
 * A value of the side that is not taken is zero. */
struct mc_branch {
    const struct mc_body *side[2]; /* by the condition: false, true */
    int nvalue, nown[2];
    bool ragged;
};
struct mc_branch mc_branch_of(const struct mc_attr *attr);
/* the result that result i of a side's body is */
static inline int mc_branch_result(const struct mc_branch *b, bool side, int i)
{
    return i < b->nvalue || side ? i : i + b->nown[true];
}
mc_node *mc_branch_make(mc_graph *g, int nin, mc_node *const *in, const struct mc_body *yes,
                        const struct mc_body *no, int nvalue, bool ragged);

/* region.c: regions of a list of nodes, in the order of ids, by id.  REGION_NONE: nothing in the list needs
 * the node.  fixed[]: nodes that are in no region, such as results. */
enum { REGION_NONE, REGION_OUTSIDE, REGION_FIRST };
static inline uint64_t mc_region_of(const mc_node *condition, bool side)
{
    return REGION_FIRST + 2 * (uint64_t)condition->id + side;
}
struct mc_regions {
    uint64_t *of;           /* by id */
    uint64_t *inner;        /* by id: the same for choices inside of a region; see mc_is_deep */
    bool *from_data;        /* by id: the value does not follow from sizes and constants alone */
    uint64_t *read;         /* by id: bit i: result i of the node is read */
};
/* Is the node needed only by one side of a choice that is itself in a region? */
static inline bool mc_is_deep(const struct mc_regions *r, const mc_node *n)
{
    return r->inner[n->id] >= REGION_FIRST;
}
mc_status mc_regions_find(struct mc_regions *r, size_t count, mc_node *const *list, int nfixed,
                          mc_node *const *fixed);
void mc_regions_free(struct mc_regions *r);

#endif
