/* profile.h: times of a function's steps and offsets of its values in the arena, as rows for the tables of
 * profile.c and the page of report.c.
 *
 * Invariant: rows point into the function, so its lock is held while they are made and used. */
#ifndef MC_PROFILE_H
#define MC_PROFILE_H

#include "exec/function.h"
#include "graph/picture.h"

struct mc_step_row {
    const struct mc_function *f; /* whose step it is: the profiled function or the body of a loop in it */
    int step;
    int depth;                   /* number of loops that it is in */
    const char *type;            /* "C", "lib", "ref", "view", "loop" */
    char class[48];              /* kind of kernel, solver, op */
    int64_t calls;
    double seconds, flops, bytes; /* of a loop: with its body */
    double own;                  /* seconds without those of steps of its body */
};
typedef VEC(struct mc_step_row) mc_step_rows;
struct mc_life {                 /* a value in the arena */
    int value;
    size_t bytes;
    int64_t offset;
    int first, last;             /* the steps between which it is live */
};
struct mc_profile {
    /* The slowest first; a loop is followed by the steps of its body.  Steps that never ran are left out. */
    mc_step_rows row;
    double seconds;              /* of all steps */
    VEC(struct mc_life) life;    /* the largest first; empty before the first call */
    size_t arena, scratch, separate; /* planned bytes; separate: if no two values shared memory */
    size_t loops;                /* bytes for values and states of the bodies of loops */
    size_t prepared;             /* bytes that solvers keep from call to call */
};
mc_status mc_profile_make(struct mc_profile *p, const struct mc_function *f);
void mc_profile_free(struct mc_profile *p);
/* the row of that step; NULL: it never ran */
const struct mc_step_row *mc_profile_row(const struct mc_profile *p, const struct mc_function *f, int step);
/* of the newest shape: memory of all loops */
size_t mc_loops_memory(const struct mc_function *f);
void mc_value_text(struct mc_str *out, const struct mc_function *f, int value); /* name or formula, short */
void mc_seconds_text(struct mc_str *out, double seconds);                       /* "1.5 ms" */
/* amount / seconds in units of 1e9; "-" if there is none */
void mc_rate_text(struct mc_str *out, double amount, double seconds);

/* trace.c */
/* opens the file of the flag; *on: the flag names a file */
mc_status mc_trace_open(bool *on);
void mc_trace_step(const struct mc_function *f, const struct mc_shape_plan *p, int step, double from,
                   double seconds);
/* an event is dropped if memory runs out */
void mc_trace_call(const struct mc_function *f, double from, double seconds);

#endif
