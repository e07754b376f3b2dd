/* loop.h: loops.  A loop is one node over a body (struct mc_body).  Its inputs are the number of steps, then
 *
 *   sequences   step t reads element t along axis 0
 *   states      initial values; each step makes the values that the next one reads
 *   constants   read by every step
 *
 * The body has an input for each sequence, state and constant, and as results the next value of each state,
 * the values to collect, and with `until` whether this step is the last.  Results of the node:
 *
 *   the last value of each state
 *   the values of each state that is kept, along a new axis 0
 *   the collected values, along a new axis 0
 *   with `until` the number of steps that were made; the other results are zeros behind it */
#ifndef MC_LOOP_H
#define MC_LOOP_H

#include "op/op.h"

enum { MC_MOST_STATES = 30, MC_MOST_LOOP_INPUTS = 120 };
/* What the attributes of a loop say. */
struct mc_loop {
    const struct mc_body *body;
    int nsequence, nstate, nconstant, ncollect;
    unsigned kept;         /* bit i: the values of state i at every step are a result */
    int nkept;
    bool until;
    int64_t truncate;      /* gradients flow through so many of the last steps; 0: all */
};
struct mc_loop mc_loop_of(const struct mc_attr *attr);
/* the result that has the values of state i at every step; -1: they are not kept */
int mc_loop_kept_result(const struct mc_loop *l, int state);
static inline int mc_loop_collect_result(const struct mc_loop *l, int i)
{
    return l->nstate + l->nkept + i;
}

/* Marks, by id, the nodes of a list in order whose elements depend on those of marked ones; a use of sizes
 * alone does not count.  A result of a loop depends on what its own part of the body reads. */
mc_status mc_marks_spread(mc_node *const *list, size_t count, bool *mark);
/* scan.c: could a value have both types? */
bool mc_types_meet(const struct mc_type *a, const struct mc_type *b);
/* the types of a body's results, from the types and known values of its inputs */
mc_status mc_body_types(const struct mc_body *b, const struct mc_type *in, mc_array *const *value,
                        struct mc_type *out);

/* scan_make.c: makes a loop of nodes of any graph */
enum mc_loop_part { LOOP_SEQUENCE, LOOP_STATE, LOOP_CONSTANT };
struct mc_loop_item {
    enum mc_loop_part part;
    mc_node *outer, *inner; /* the loop's input; what stands for it in the body */
    mc_node *next;          /* of a state */
    bool kept;
    int result, all;        /* set: the results of a state: the last value, all values (-1: not kept) */
};
struct mc_loop_spec {
    mc_graph *from;         /* of inner, next, collect, until */
    mc_node *steps;
    struct mc_loop_item *item;
    int nitem;
    mc_node *const *collect;
    int ncollect, collected; /* collected, set: the result of the first of them */
    mc_node *until;          /* or NULL */
    int64_t truncate;        /* as in struct mc_loop */
};
/* Sequences and constants that no result needs are left out. */
mc_node *mc_loop_make(mc_graph *g, struct mc_loop_spec *s);

/* a loop as one node; kept: by state, NULL: all */
mc_node *mc_loop_of_nodes(mc_graph *g, const mc_scan_spec *spec, const bool *kept);

/* scan_checkpoint.c: the results of loop n, made by a loop over segments of so many steps */
mc_node *mc_loop_checkpointed(mc_node *n, int64_t every);

/* scan_grad.c */
mc_node *mc_loop_grad(mc_node *n, int wrt, mc_node *const *g);

#endif
