/* turn.h: nodes whose images can lie with channels innermost. */
#ifndef MC_TURN_H
#define MC_TURN_H

#include "graph/graph.h"

enum { TURN_RANK = 4 };
/* of dimshuffle; mc_turn_back[i] is where axis i goes, too */
extern const int64_t mc_turn_there[TURN_RANK], mc_turn_back[TURN_RANK];

struct mc_turn {                /* a kind of node that can be turned */
    bool (*is)(const mc_node *n);
    mc_node *(*turned)(mc_node *n, mc_node **in); /* in[]: images in the new order */
};
const struct mc_turn *mc_turn_of(const mc_node *n);       /* NULL: it stays as it was written */
/* is input i images, whose axes are turned with the node? */
bool mc_turn_image(const mc_node *n, int i);
bool mc_turn_makes_images(const mc_node *n);              /* are the result's axes turned with the node? */
bool mc_turn_pools(const mc_node *n);
mc_node *mc_turn_axes(mc_node *x, const int64_t *order);  /* a view */

#endif
