/* shape.h: the parts of planning a step at one shape. */
#ifndef MC_SHAPE_H
#define MC_SHAPE_H

#include "function/function.h"

/* shape_types.c */
struct mc_step_types {
    struct mc_function *f;
    struct mc_shape_plan *p;
    struct mc_type *type;   /* of nodes inside the kernel, in the order of the step's nodes */
    const struct mc_step *step;
};
mc_status mc_step_input_type(struct mc_step_types *q, mc_node *x, struct mc_type *t, const mc_array **value);
mc_status mc_step_infer(struct mc_step_types *q, mc_node *n, struct mc_infer *out);
/* shape_views.c */
mc_status mc_step_view(struct mc_function *f, struct mc_shape_plan *p, const struct mc_step *st, const struct mc_type *t);
mc_status mc_step_slice(const struct mc_function *f, struct mc_shape_plan *p, const struct mc_step *st, const struct mc_type *t);

#endif
