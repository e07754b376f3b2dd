/* call.h: the parts of a call: steps, results, updates. */
#ifndef MC_CALL_H
#define MC_CALL_H

#include "exec/backend.h"

/* steps.c */
mc_status mc_steps_run(struct mc_function *f, struct mc_shape_plan *p);
/* Allocates the arena for p.  If there is not enough memory, returns another plan that needs less; NULL:
 * error. */
struct mc_shape_plan *mc_memory_reserve(struct mc_function *f, struct mc_shape_plan *p);
/* results.c */
/* the array that a step writes output i to */
mc_status mc_result_make(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out);
/* makes the array of output i, before any update */
mc_status mc_result_prepare(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out);
/* checks the kind of `out` */
mc_status mc_result_place(const struct mc_function *f, int i, const mc_arg *out);
/* checks that a C number can hold the result; called before any update */
mc_status mc_result_check(struct mc_function *f, int i, const mc_arg *out);
mc_status mc_result_deliver(struct mc_function *f, int i, const mc_arg *out);
mc_status mc_results_update(struct mc_function *f, const struct mc_shape_plan *p);

#endif
