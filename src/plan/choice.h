/* choice.h: one problem's choice among solvers while it is made: what planner.c knows of the candidates, and
 * contest.c times.
 *
 * Invariant: of `list` the first `able` can do it, cheapest first by estimate. */
#ifndef MC_PLAN_CHOICE_H
#define MC_PLAN_CHOICE_H

#include "plan/plan.h"

struct mc_candidate {
    const struct mc_solver *solver;
    const char *no; /* why not, or NULL */
    double estimate;
    int row; /* in the family's table: breaks ties */
};
struct mc_choice {
    const struct mc_problem *problem;
    struct mc_str word;
    VEC(struct mc_candidate) list; /* those that can do it, cheapest first, then those that decline */
    size_t able;
    struct mc_str why; /* reasons met while planning */
    int64_t mode;
};

/* ---- planner.c ---- */
/* within the workspace cap; the reason for a NULL goes to c->why */
struct mc_plan *mc_choice_plan(struct mc_choice *c, const struct mc_solver *s);
bool mc_choice_verified(struct mc_choice *c, const struct mc_plan *plan);
struct mc_plan *mc_choice_cheapest(struct mc_choice *c);       /* the first by estimate that can be had */
/* plans made from here on are a candidate's own; -1: no more */
void mc_choice_deepen(int by);
/* ---- contest.c ---- */
/* of the likely ones, timed against each other */
struct mc_plan *mc_choice_fastest(struct mc_choice *c);

#endif
