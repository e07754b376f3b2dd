/* layouts.h: the order in which images lie, chosen for a whole graph. */
#ifndef MC_LAYOUTS_H
#define MC_LAYOUTS_H

#include "graph/graph.h"

enum { LAYOUT_AUTO, LAYOUT_WRITTEN, LAYOUT_B01C }; /* the flag layout */
/* requires: rewritten.  leaves: the same values for out[0..n), in their order of axes.  far: it will run on a GPU that the thread has entered. */
mc_status mc_lower_layouts(mc_graph *g, int n, mc_node **out, bool far);

#endif
