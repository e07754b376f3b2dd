/* far.h: functions that run on another device than the processor: kernels as grids, values in its memory.
 *
 * The program, the places and the arena's plan are the same; addresses are the device's.  What no kernel or solver
 * there does is done by the reference here, its sources fetched and its results sent.
 *
 * Invariant: f->ptr then holds addresses of the device, and only this header's functions look behind them. */
#ifndef MC_FAR_H
#define MC_FAR_H

#include "device/cuda/cuda.h"
#include "function/backend.h"
#include "plan/cuda.h"

static inline struct mc_cuda *mc_gpu(const struct mc_code_unit *u) { return (struct mc_cuda *)u->device; }

struct mc_grid_kernel {         /* of a step, once compiled; NULL: there is none of that kind */
    void *plain, *vector, *few, *row, *together, *single, *column, *tally;
};
struct mc_grid_launch {         /* at one shape */
    struct mc_exec exec;
    void *fn, *tally;           /* tally: what adds up the teams' tallies; NULL: there are none */
    struct mc_grid grid, tally_grid;
    uint32_t stages;            /* of a reducing kernel: one, or if split one a stage, and if it `ends` one more, of a row of blocks */
    bool ends;
    bool held;                  /* makes new values of shared variables where the old ones lie: not once a check has failed */
    int *value;                 /* by operand: value id; -1: an index */
    void *args;
    size_t nargs, scratch;
    int64_t pieces, piece;      /* launches of a map, along axis `outer` */
    int outer;
};
struct mc_far_plan {            /* a shape plan's part of the device */
    char *fixed;                /* constants and early values, one block */
    int64_t *at;                /* by value: its place in that block; -1 */
    int64_t *slot;              /* by input: its place in the arena */
    void *replay;               /* what was captured; NULL: not yet, or never */
    char **seen;                /* the addresses it was captured with */
    int64_t runs;
    bool never;                 /* not captured */
    bool with_updates;          /* so it was captured */
    bool updates;               /* made with the steps: no result is a shared variable's memory, and sizes stay */
};

/* grid.c */
unsigned mc_grid_never(const struct mc_step *st);                               /* for its kernel's `never` */
mc_status mc_grid_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* far_work.c; of this and of what follows: where nothing is made, the step is another's */
bool mc_work_there(const struct mc_step *st, bool *checks);                     /* has it a way of its own?  checks: set if that looks at indices */
mc_status mc_work_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* far_lines.c: running sums and products, sort, argsort */
bool mc_lines_there(const struct mc_step *st);
mc_status mc_lines_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* far_custom.c: users' ops given as CUDA C */
mc_status mc_custom_far_compile(struct mc_code_unit *u);
mc_status mc_custom_far_plan(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec **made);
/* far_move.c */
size_t mc_far_inputs(const struct mc_function *f);                              /* bytes of the arena, at its beginning, for those that come from here */
mc_status mc_far_constants(struct mc_function *f, struct mc_shape_plan *p);     /* once places are known: sent; and places for inputs */
void mc_far_free(struct mc_function *f, struct mc_shape_plan *p);
char *mc_far_address(const struct mc_function *f, const struct mc_shape_plan *p, size_t value);
mc_status mc_far_send(struct mc_function *f, const struct mc_shape_plan *p);    /* the inputs */
bool mc_far_is(const struct mc_function *f, const mc_array *a);                 /* in the device's memory? */
mc_status mc_far_copy(struct mc_function *f, const struct mc_spot *from, const char *src, char *dst); /* dense, there */
mc_array *mc_far_fetch(struct mc_function *f, const struct mc_shape_plan *p, int value);   /* a copy here */
mc_status mc_far_store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a);
mc_array *mc_far_keep(struct mc_function *f, const struct mc_shape_plan *p, int value);    /* a copy there */
mc_status mc_far_make(struct mc_function *f, const struct mc_shape_plan *p, int output, const mc_arg *out); /* where a result goes */
mc_status mc_far_take(struct mc_function *f, const struct mc_shape_plan *p, int output);    /* it goes there */
/* far_order.c: all steps into a recording, each behind those alone that it must follow */
mc_status mc_far_record(struct mc_function *f, const struct mc_shape_plan *p);
/* far_end.c */
extern const struct mc_cuda_text mc_far_end_text, mc_far_lines_text, mc_far_region_text;
void mc_far_end_source(struct mc_str *out);                                     /* of the kernel that mc_far_end launches */
mc_status mc_far_ready(struct mc_function *f);                                  /* memory for checks, before the first call */
mc_status mc_far_end(const struct mc_function *f, const struct mc_shape_plan *p); /* updates that go with the steps; what failed, told */
mc_status mc_far_checks(struct mc_function *f);                                 /* did a kernel find an index out of range?  Waits */
mc_status mc_far_told(struct mc_function *f);                                   /* has the host been told of one?  Does not wait */
void mc_far_watch(struct mc_function *f);                                       /* mc_synchronize asks it, until mc_far_unwatch */
void mc_far_unwatch(struct mc_function *f);

#endif
