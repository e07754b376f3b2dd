/* known.h: nodes of a loop's body that are known before the loop.
 *
 *   once    it depends on no step: one value
 *   every   it follows from sequences, and from what is known once: the values of all steps */
#ifndef MC_REWRITE_KNOWN_H
#define MC_REWRITE_KNOWN_H

#include "op/loop.h"

struct mc_loop_known {
    mc_graph *g;                /* of the loop */
    mc_node *const *outer;      /* the loop's inputs, in g */
    struct mc_loop l;
    const struct mc_body *body;
    struct mc_map every, once;  /* by node of the body: the nodes of g */
};
/* Finds them among the nodes of the body in list; again after the body has changed. */
mc_status mc_known_find(struct mc_loop_known *w, mc_node *const *list, size_t count);
void mc_known_free(struct mc_loop_known *w);
mc_node *mc_known_once(const struct mc_loop_known *w, const mc_node *n); /* NULL: it is not */
mc_node *mc_known_every(const struct mc_loop_known *w, const mc_node *n);
int mc_known_input(const struct mc_loop_known *w, const mc_node *n); /* the number of the body's input; -1 */

static inline bool mc_known_is_constant(const struct mc_loop_known *w, int input)
{
    return input >= w->l.nsequence + w->l.nstate;
}

/* A product of matrices, which may leave the loop. */
static inline bool mc_known_is_product(const mc_node *n)
{
    return n->op->flags & OP_MATMUL && n->type.rank == 2 && mc_is_float(n->type.dtype);
}

#endif
