/* schedule.h: one shape of a function: types, views, memory.
 *
 * Invariant: a shape plan depends only on the program, the shapes and the backend's row. */
#ifndef MC_SCHEDULE_H
#define MC_SCHEDULE_H

#include "exec/backend.h"
#include "op/loop.h"

/* shape_plan.c */
/* The shape plan for the shapes in f->arg, made if it is missing. NULL: error. workspace_cap: a cap in bytes
 * on the workspace of a new solver plan, besides that of the flag; INT64_MAX: only the flag's. */
struct mc_shape_plan *mc_shape_plan_find(struct mc_function *f, int64_t workspace_cap);
/* A plan for the shapes in f->arg that f does not keep; work plans one step after addresses are known. */
typedef mc_status mc_shape_plan_one(struct mc_function *f, struct mc_shape_plan *p, int step);
struct mc_shape_plan *mc_shape_plan_make(struct mc_function *f, const struct mc_plan_options *o,
                                         mc_shape_plan_one *work);
void mc_shape_plan_free(struct mc_function *f, struct mc_shape_plan *p);
/* removes it from f and frees it */
void mc_shape_plan_drop(struct mc_function *f, struct mc_shape_plan *p);
/* releases the arrays of a call that has ended */
void mc_shape_plan_release_arrays(const struct mc_function *f, struct mc_shape_plan *p);
/* the types and views of one step; during a call if sizes depend on data */
mc_status mc_shape_plan_step(struct mc_function *f, struct mc_shape_plan *p, int step);
/* the launch of one step, after addresses are known */
mc_status mc_shape_plan_work(struct mc_function *f, struct mc_shape_plan *p, int step);
/* loop.c: the executor of a loop with a compiled body; work plans one step of the body */
mc_status mc_loop_plan(struct mc_function *f, struct mc_shape_plan *p, int step, mc_shape_plan_one *work);
/* What was planned for such a loop. */
struct mc_loop_planned {
    struct mc_loop l;
    struct mc_function *body;
    struct mc_shape_plan *plan;     /* of the body, a part of the loop's */
    int64_t steps;
    /* by state: its bytes; where its two buffers begin, in memory that begins with that of the body's plan */
    const int64_t *bytes, *buffer;
    size_t memory;                  /* bytes of all */
    int bands;                      /* of its rows (band.h), which run at the same time; 0: none */
};
/* the distance between the two buffers of a state of n bytes */
static inline int64_t mc_loop_rounded(int64_t n)
{
    return (n + 63) / 64 * 64;
}
/* false: the step is no such loop, or is not planned */
bool mc_loop_planned(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                     struct mc_loop_planned *out);
/* moves.c: views whose start is a value of the call, and parts that are set there.  find: before the first
 * step is planned.  slice: the step's view has been planned; where the host cannot address memory it may
 * become a copy, which is made before the other steps or by its own. */
mc_status mc_moves_find(const struct mc_function *f, struct mc_shape_plan *p);
void mc_moves_free(struct mc_shape_plan *p);
void mc_moves_slice(const struct mc_function *f, struct mc_shape_plan *p, int step);
/* of a step that sets or adds to a part of a value */
mc_status mc_moves_part(const struct mc_function *f, struct mc_shape_plan *p, int step);
/* Is the plan good for no other elements of the input? */
bool mc_moves_pin(const struct mc_function *f, const struct mc_shape_plan *p, int input);
/* Moves a plan's views to where the elements of f->arg put them, if all else stays; else changes nothing. */
bool mc_moves_make(struct mc_function *f, struct mc_shape_plan *p);
/* join_parts.c: parts of joins that are made where the join wants them, so that nothing is copied.  Called
 * before memory is placed. */
mc_status mc_plan_join_parts(const struct mc_function *f, struct mc_shape_plan *p);
/* are all parts of the join where it wants them? */
bool mc_join_is_made(const struct mc_function *f, const struct mc_shape_plan *p, int step);
/* body.c: what loops and branches share.  An array in place of a body's input, for its sizes and strides; of
 * a key the elements too. */
struct mc_body_input {
    int value;              /* of the function around it */
    bool key;               /* its elements determine sizes */
    bool running;           /* values are computed already, not only planned */
    bool dense, loose;      /* dense: contiguous, whatever the value is; loose: as in a slot */
    int skip;               /* so many axes in front are left out */
};
mc_array *mc_body_input(struct mc_function *f, const struct mc_shape_plan *p, const struct mc_body_input *in);
/* watched: as mc_steps_watched says of the body */
mc_status mc_body_step(struct mc_function *body, const struct mc_shape_plan *p, int step, bool watched);
/* branch.c: the executor of a branch whose bodies are compiled */
mc_status mc_branch_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
/* the same with the plans of both sides, before any value is computed */
mc_status mc_branch_plan_sides(struct mc_function *f, struct mc_shape_plan *p, int step,
                               mc_shape_plan_one *work);
/* the plan of a side's body; NULL: the step is no such branch, or the side has not been taken */
struct mc_shape_plan *mc_branch_planned(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                                        bool side);
/* memory.c */
mc_status mc_plan_memory(struct mc_function *f, struct mc_shape_plan *p);
/* places workspaces, after their sizes are known */
mc_status mc_plan_workspaces(const struct mc_function *f, struct mc_shape_plan *p);
/* joint.c: finds independent maps, for the backend to run at the same time */
mc_status mc_plan_joint(struct mc_function *f, struct mc_shape_plan *p);
/* in_place.c: the index in f->shared of the variable in whose memory the step writes its new value v; -1: not
 * in place, v is copied later */
int mc_update_aliases(const struct mc_function *f, const struct mc_shape_plan *p, int step, int v);
/* copies inputs that overlap memory that updates write; called before planning */
mc_status mc_inputs_unalias(struct mc_function *f);

/* ---- parts of planning a step ---- */

/* shape_types.c */
struct mc_step_types {
    struct mc_function *f;
    struct mc_shape_plan *p;
    struct mc_type *type;   /* of the kernel's nodes, in the order of the step's nodes */
    const struct mc_step *step;
};
mc_status mc_step_input_type(struct mc_step_types *q, mc_node *x, struct mc_type *t, const mc_array **value);
mc_status mc_step_infer(struct mc_step_types *q, mc_node *n, struct mc_infer *out);
/* shape_views.c */
mc_status mc_step_view(struct mc_function *f, struct mc_shape_plan *p, const struct mc_step *st,
                       const struct mc_type *t);
mc_status mc_step_slice(const struct mc_function *f, struct mc_shape_plan *p, const struct mc_step *st,
                        const struct mc_type *t);

#endif
