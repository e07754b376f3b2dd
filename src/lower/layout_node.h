/* layout_node.h: nodes whose images can be in b01c, channels innermost. */
#ifndef MC_LAYOUT_NODE_H
#define MC_LAYOUT_NODE_H

#include "graph/graph.h"

enum { LAYOUT_RANK = 4 };
/* orders of a dimshuffle from bc01 to b01c and back; axis i of bc01 is axis mc_layout_to_nchw[i] of b01c */
extern const int64_t mc_layout_to_nhwc[LAYOUT_RANK], mc_layout_to_nchw[LAYOUT_RANK];

struct mc_layout_kind {                /* a kind of node that can have its images in b01c */
    bool (*is)(const mc_node *n);
    mc_node *(*turned)(mc_node *n, mc_node **in); /* in[]: images in the new order */
};
const struct mc_layout_kind *mc_layout_kind_of(const mc_node *n);       /* NULL: it stays as it was written */
/* is input i images, whose axes are permuted with the node? */
bool mc_layout_image(const mc_node *n, int i);
bool mc_layout_makes_images(const mc_node *n);              /* are the result's axes permuted, too? */
bool mc_layout_pools(const mc_node *n);
mc_node *mc_layout_axes(mc_node *x, const int64_t *order);  /* a view */

#endif
