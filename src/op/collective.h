/* collective.h: what a node of ranks asks for, for those that run it on a device. */
#ifndef MC_OP_COLLECTIVE_H
#define MC_OP_COLLECTIVE_H

#include "comm/comm.h"
#include "graph/graph.h"

enum mc_collective_kind { RANKS_REDUCE, RANKS_SCATTER, RANKS_GATHER, RANKS_BROADCAST };
struct mc_collective {
    enum mc_collective_kind kind;
    mc_comm *comm;              /* the graph holds it */
    enum mc_ranks_op how;       /* of a reduction */
    bool any_order;
    int root;
};
/* False: it is none, or its rank is alone, or the number of ranks is not the one it was made for. */
bool mc_collective_of(const mc_node *n, struct mc_collective *out);
/* What n is where its rank is alone: its input; NULL: it is none of these, or there are others. */
mc_node *mc_collective_alone(const mc_node *n);

#endif
