/* layout.h: the layout of images, chosen for a whole graph. */
#ifndef MC_LAYOUT_H
#define MC_LAYOUT_H

#include "graph/graph.h"

struct mc_family;
struct mc_layout_costs {        /* of the device that the program will run on; the thread has entered it */
    const struct mc_family *convs; /* whose estimates count */
    double bandwidth;           /* of its memory, bytes a second */
    bool tensor;                /* it has tensor cores, which need channels innermost */
};

enum { LAYOUT_AUTO, LAYOUT_WRITTEN, LAYOUT_B01C }; /* the flag layout */
/* requires: rewritten.  leaves: the same values for out[0..n), in their order of axes. */
mc_status mc_lower_layout(mc_graph *g, int n, mc_node **out, const struct mc_layout_costs *costs);

#endif
