/* apply_rule.h: the state of a rewriting. driver.c walks the graph, apply_rule.c changes one node. */
#ifndef MC_REWRITE_APPLY_RULE_H
#define MC_REWRITE_APPLY_RULE_H

#include "rewrite/passes.h"

enum state { FRESH, OPEN, NORMAL };

struct slot {
    mc_node *to;                        /* OPEN: its replacement, not normal yet; NORMAL: its normal form */
    uint16_t state, depth;              /* depth: number of rules applied in a row to get this node */
    bool unused;                        /* its last user is gone, so its inputs do not count it as a user */
};
struct run {
    mc_graph *g;
    const struct mc_rewrite *o;
    int pass;
    VEC(struct slot) slot;              /* by node id */
    VEC(unsigned) uses;                 /* by node id: number of users */
    VEC(mc_node *) stack;
    VEC(const mc_node *) changed;       /* nodes that lost their last user or got one again */
    unsigned char *off, *blamed;        /* by rule number: excluded; its failure has been logged */
    size_t left;                        /* rules that may still apply in this pass */
    mc_status status;
};

/* makes a slot for each node of the graph; false: r->status has the reason */
bool mc_attempt_reserve(struct run *r);
/* n rebuilt over the normal forms of its inputs; n itself if nothing changed */
mc_node *mc_attempt_rebuild(struct run *r, mc_node *n);
/* the node that the first rule that applies makes of n; NULL: none applies */
mc_node *mc_attempt_rules(struct run *r, mc_node *n);

#endif
