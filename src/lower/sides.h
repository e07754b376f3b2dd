/* sides.h: two sides, and who goes where at least cost in all. */
#ifndef MC_SIDES_H
#define MC_SIDES_H

#include "base/base.h"

struct mc_arc {
    int to, next;               /* next: of the same thing; -1: none */
    int64_t room;
};
struct mc_sides {
    int things;
    VEC(struct mc_arc) arc;
    /* by thing and side: its newest arc; while searching, the arc that leads on; the search's line */
    int *newest, *by, *line;
};
mc_status mc_sides_begin(struct mc_sides *c, int things);
/* of being on either side; what is said again adds up */
mc_status mc_sides_cost(struct mc_sides *c, int thing, int64_t first, int64_t second);
/* of a and b being on different sides */
mc_status mc_sides_parted(struct mc_sides *c, int a, int b, int64_t cost);
/* where it is all the same: the first side */
void mc_sides_find(struct mc_sides *c, bool *second);
void mc_sides_free(struct mc_sides *c);

#endif
