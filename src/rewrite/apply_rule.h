/* apply_rule.h: a rewriting while it goes on; between driver.c, which walks, and apply_rule.c, which changes one
 * node. */
#ifndef MC_REWRITE_APPLY_RULE_H
#define MC_REWRITE_APPLY_RULE_H

#include "rewrite/passes.h"

enum state { FRESH, OPEN, NORMAL };

struct slot {
    mc_node *to;                        /* OPEN: waits for it to become normal; NORMAL: its normal form */
    uint16_t state, depth;              /* depth: rules behind each other that led here */
};
struct run {
    mc_graph *g;
    const struct mc_rewrite *o;
    int pass;
    VEC(struct slot) slot;              /* by node id */
    VEC(unsigned) uses;
    VEC(mc_node *) stack;
    unsigned char *off, *blamed;        /* by rule number */
    size_t left;                        /* rules that may still apply in this pass */
    mc_status status;
};

/* slots for all nodes there are; false: r->status says why */
bool mc_attempt_room(struct run *r);
/* n over the normal forms of its inputs; n itself if nothing changed */
mc_node *mc_attempt_rebuild(struct run *r, mc_node *n);
/* what the first rule that applies makes of n; NULL: none does */
mc_node *mc_attempt_rules(struct run *r, mc_node *n);

#endif
