/* cuda.h: functions on a GPU: kernels as grids, steps on its stream or captured and replayed.
 *
 * The program, the places and the arena's plan are those of any device.  A step that no kernel or solver of
 * the GPU does runs on the host by the reference; its sources are fetched and its results sent. */
#ifndef MC_EXEC_CUDA_H
#define MC_EXEC_CUDA_H

#include "device/cuda/cuda.h"
#include "exec/remote.h"
#include "heavy/cuda/cuda.h"

static inline struct mc_cuda *mc_cuda_of(const struct mc_code_unit *u) { return (struct mc_cuda *)u->device; }

/* ---- what a code unit, a shape plan and a function own here ---- */
struct mc_grid_kernel {         /* of a step, once compiled; NULL: there is none of that kind */
    void *plain, *vector, *few_elements, *row, *row_cluster, *row_scalar, *column, *column_sums;
};
struct mc_grid_launch {         /* at one shape */
    struct mc_exec exec;
    void *fn, *column_sums;           /* column_sums: adds up the teams' column sums; or NULL */
    struct mc_grid grid, column_sums_grid;
    /* of a reducing kernel: one, or if split one a stage, and if it `ends` one more, of a row of blocks */
    uint32_t stages;
    bool ends;
    /* makes new values of shared variables where the old ones lie: not once a check has failed */
    bool skip_after_error;
    int *value;                 /* by operand: value id; -1: an index */
    void *args;
    size_t nargs, scratch;
    int64_t pieces, piece;      /* launches of a map, along axis `outer` */
    int outer;
};
struct mc_cuda_fn_code {
    /* its kernels, in as many texts as are compiled at once, and what ends a call */
    struct mc_cuda_code *text[MC_CUDA_TEXTS];
    struct mc_grid_kernel *grid; /* by step */
    bool checks;                /* some kernel checks indices */
};
struct mc_cuda_fn_plan {
    struct mc_remote remote;
    void *replay;               /* what was captured; NULL: not yet, or never */
    char **captured_addresses;                /* the addresses it was captured with */
    int64_t runs;
    bool no_capture;                 /* not captured */
    bool with_updates;          /* so it was captured */
    /* made with the steps: no result is a shared variable's memory, and sizes stay */
    bool updates;
};
struct mc_cuda_fn_function {
    bool *pinned;                 /* by output: the result is made in memory that the GPU writes itself */
    void *failed;               /* where kernels tell a failed check */
    mc_array *error_flag;             /* memory of the host: word 0 is nonzero once the GPU has met one */
    struct mc_function *checking; /* the next one whose kernels check */
};
static inline struct mc_cuda_fn_code *mc_cuda_fn_code(const struct mc_function *f) { return f->code->own; }
static inline struct mc_cuda_fn_plan *mc_cuda_fn_plan(const struct mc_shape_plan *p) { return p->own; }
static inline struct mc_cuda_fn_function *mc_cuda_fn_of(const struct mc_function *f) { return f->own; }

/* grid.c */
unsigned mc_grid_excluded_forms(const struct mc_step *st);                               /* for its kernel's `never` */
mc_status mc_grid_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* far_work.c; of this and of what follows: where nothing is made, the step is another's */
/* has it a way of its own?  checks: set if that looks at indices */
bool mc_copy_step_can(const struct mc_step *st, bool *checks);
mc_status mc_copy_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* far_lines.c: running sums and products, sort, argsort */
bool mc_scan_sort_can(const struct mc_step *st);
mc_status mc_lines_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* far_custom.c: users' ops given as CUDA C */
mc_status mc_cuda_fn_custom_compile(struct mc_code_unit *u);
mc_status mc_cuda_fn_custom_plan(struct mc_function *f, const struct mc_shape_plan *p, int step,
                             struct mc_exec **made);
/* far_move.c */
mc_status mc_cuda_fn_constants(struct mc_function *f, struct mc_shape_plan *p);
void mc_cuda_fn_free(struct mc_function *f, struct mc_shape_plan *p);
/* contiguous, there */
mc_status mc_cuda_fn_copy(struct mc_function *f, const struct mc_slot *from, const char *src, char *dst);
mc_status mc_cuda_fn_result_make(struct mc_function *f, const struct mc_shape_plan *p, int output, const mc_arg *out);
mc_status mc_cuda_fn_result_take(struct mc_function *f, const struct mc_shape_plan *p, int output);
/* far_order.c: all steps into a recording, each behind those alone that it must follow */
mc_status mc_cuda_fn_capture(struct mc_function *f, const struct mc_shape_plan *p);
/* far_end.c */
extern const struct mc_cuda_text mc_finish_call_text, mc_scan_sort_text, mc_index_step_text;
/* of the kernel that mc_finish_call launches */
void mc_finish_call_source(struct mc_str *out);
/* memory for checks, before the first call */
mc_status mc_cuda_fn_ready(struct mc_function *f);
/* updates that go with the steps; what failed, told */
mc_status mc_finish_call(const struct mc_function *f, const struct mc_shape_plan *p);
/* did a kernel find an index out of range?  Waits */
mc_status mc_cuda_fn_error_wait(struct mc_function *f);
/* has the host been told of one?  Does not wait */
mc_status mc_cuda_fn_error_seen(struct mc_function *f);
mc_status mc_cuda_fn_synchronize(void);                                             /* all GPUs */
/* mc_cuda_fn_synchronize asks it, until mc_cuda_fn_unwatch */
void mc_cuda_fn_watch(struct mc_function *f);
void mc_cuda_fn_unwatch(struct mc_function *f);

#endif
