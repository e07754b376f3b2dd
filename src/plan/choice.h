/* choice.h: the selection of a solver for one problem: planner.c collects the candidates, contest.c times
 * them.
 *
 * Invariant: the first `able` of `list` do not refuse the problem and are sorted by estimate, lowest
 * first. */
#ifndef MC_PLAN_CHOICE_H
#define MC_PLAN_CHOICE_H

#include "plan/plan.h"

struct mc_candidate {
    const struct mc_solver *solver;
    const char *no; /* the reason to refuse, or NULL */
    double estimate;
    int row; /* in the family's table; breaks ties */
};
struct mc_choice {
    const struct mc_problem *problem;
    struct mc_str key;
    VEC(struct mc_candidate) list; /* then those that refuse */
    size_t able;
    struct mc_str why; /* why candidates could not be planned */
    int64_t mode;      /* enum mc_plan_mode; a flag of the family may have set it */
    /* the solver is a chosen one: it was timed as a whole, so children that are not listed as chosen are
     * selected by estimate */
    bool chosen;
};

/* ---- planner.c ---- */
/* NULL: it could not be planned, or needs more workspace than the cap; the reason is in c->why */
struct mc_plan *mc_choice_plan(struct mc_choice *c, const struct mc_solver *s);
bool mc_choice_verified(struct mc_choice *c, const struct mc_plan *plan);
struct mc_plan *mc_choice_cheapest(struct mc_choice *c);       /* the first by estimate that can be planned */
/* ---- plan.c ---- */
/* like mc_plan_with, for these options instead of p's */
struct mc_plan *mc_plan_under(const struct mc_problem *p, const struct mc_solver *s,
                              const struct mc_plan_options *options);
/* site->note, if the problem's family has it */
mc_code_list *mc_plan_note(const struct mc_problem *p, mc_code_list *list);
/* Adds the plan's code to the list that this thread notes.  NULL: no memory; the plan is freed. */
struct mc_plan *mc_plan_noted(struct mc_plan *plan);
/* ---- contest.c ---- */
/* times the likely candidates against each other */
struct mc_plan *mc_choice_fastest(struct mc_choice *c);

#endif
