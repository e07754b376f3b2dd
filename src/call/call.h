/* call.h: the parts of a call: steps, then results, then updates. */
#ifndef MC_CALL_H
#define MC_CALL_H

#include "exec/backend.h"

/* steps.c */
mc_status mc_steps_run(struct mc_function *f, struct mc_shape_plan *p);
/* Memory for all of it.  Where that is too much, another plan; NULL: error. */
struct mc_shape_plan *mc_memory_reserve(struct mc_function *f, struct mc_shape_plan *p);
/* results.c */
/* where a step makes it */
mc_status mc_result_make(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out);
/* safe from updates */
mc_status mc_result_prepare(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out);
/* may this stand for a result at all? */
mc_status mc_result_place(const struct mc_function *f, int i, const mc_arg *out);
/* can a C number hold it?  Before any update */
mc_status mc_result_check(struct mc_function *f, int i, const mc_arg *out);
mc_status mc_result_deliver(struct mc_function *f, int i, const mc_arg *out);
mc_status mc_results_update(struct mc_function *f, const struct mc_shape_plan *p);

#endif
