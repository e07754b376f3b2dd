/* plan_options.h: options for plans that a test makes itself: as the flags are at that moment. */
#ifndef PLAN_OPTIONS_H
#define PLAN_OPTIONS_H

#include "plan/plan.h"

/* A pointer, valid until the end of the block. */
#define AS_FLAGS(site) ((const struct mc_plan_options[]){ mc_plan_options_of(site) })

/* For a problem that is not given to a family's own function. */
static inline void plan_as_flags(struct mc_problem *p)
{
    p->options = mc_plan_options_of(p->family->site);
}

#endif
