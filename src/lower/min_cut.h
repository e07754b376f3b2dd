/* min_cut.h: assigns things to two sides at the least total cost. */
#ifndef MC_MIN_CUT_H
#define MC_MIN_CUT_H

#include "base/base.h"

struct mc_min_cut_arc {
    int to, next;               /* next: of the same thing; -1: none */
    int64_t capacity;
};
struct mc_min_cut {
    int things;
    VEC(struct mc_min_cut_arc) arc;
    /* by thing and side: its newest arc; while searching, the arc that leads on. line: the search's queue */
    int *newest, *by, *line;
};
mc_status mc_min_cut_begin(struct mc_min_cut *c, int things);
/* costs of a thing on either side; they add to earlier ones */
mc_status mc_min_cut_side_cost(struct mc_min_cut *c, int thing, int64_t first, int64_t second);
/* cost of a and b being on different sides */
mc_status mc_min_cut_edge(struct mc_min_cut *c, int a, int b, int64_t cost);
/* second[i]: thing i is on the second side; it is on the first where both cost the same */
void mc_min_cut_solve(struct mc_min_cut *c, bool *second);
void mc_min_cut_free(struct mc_min_cut *c);

#endif
