/* cuda.h: functions on a GPU: kernels as grids, steps on the stream, or captured and replayed.
 *
 * The program, the slots and the arena are planned as on any device.  A step without a kernel or solver on
 * the GPU is a fallback: the reference runs it on the host; its inputs are copied there and its results
 * back. */
#ifndef MC_EXEC_CUDA_H
#define MC_EXEC_CUDA_H

#include "comm/comm.h"
#include "device/cuda/cuda.h"
#include "exec/remote.h"
#include "heavy/cuda/cuda.h"

static inline struct mc_cuda *mc_cuda_of(const struct mc_code_unit *u) { return (struct mc_cuda *)u->device; }

/* ---- the backend's data of a code unit, a shape plan and a function ---- */
struct mc_grid_kernel {         /* the compiled entries of a step's kernel; NULL: no such entry */
    void *plain, *vector, *few_elements, *row, *row_cluster, *row_scalar, *column, *column_sums, *many;
};
struct mc_grid_launch {         /* at one shape */
    struct mc_exec exec;
    void *fn, *column_sums;           /* column_sums: adds the teams' column sums; or NULL */
    struct mc_grid grid, column_sums_grid;
    /* launches of a reducing kernel: 1; if split, one for each stage, and, if `ends`, one more of one row of
     * blocks */
    uint32_t stages;
    bool ends;
    /* updates shared variables in place: must not run after a failed check */
    bool skip_after_error;
    int *value;                 /* by operand: value id; -1: an index */
    void *args;
    size_t nargs, scratch;
    int64_t pieces, piece;      /* a map: launches, and elements of each along axis `outer` */
    int outer;
};
struct mc_cuda_fn_code {
    /* its kernels, in texts that are compiled at the same time, and the kernel that ends a call */
    struct mc_cuda_code *text[MC_CUDA_TEXTS];
    struct mc_grid_kernel *grid; /* by step */
    bool checks;                /* some kernel checks indices */
    bool ranks;                 /* a step is a collective of NCCL */
    mc_comm *comm;              /* of all of them; NULL: several */
    bool settles;               /* the kernel that ends a call was compiled */
    /* what the kernels of solvers and other steps were compiled from, in all calls so far, those of copies
     * too; the device is entered */
    mc_code_list code;
};
/* a captured call; address: those of the values, the arena and the updated variables, or NULL */
struct mc_cuda_captured {
    char **address;
    void *replay;               /* NULL: no call with these addresses is captured yet */
    bool with_updates;          /* it makes the updates */
    int64_t used;               /* the run that used it last */
};
enum { MC_CUDA_CAPTURES = 4 };
/* which calls are captured: all, with results that stay on the GPU in their own arrays, or in memory of the
 * plan, from where they are copied; or those whose addresses a call had before */
enum mc_cuda_way { MC_CUDA_CAPTURE_DIRECT, MC_CUDA_CAPTURE_COPIED, MC_CUDA_CAPTURE_AGAIN };
struct mc_cuda_fn_plan {
    struct mc_remote remote;
    struct mc_cuda_captured captured[MC_CUDA_CAPTURES];
    enum mc_cuda_way way;
    int unseen;                 /* calls in a row whose addresses had no capture */
    char **made_in;             /* by output: the memory of the plan that a result is copied from; or NULL */
    const struct mc_cuda_captured *replayed; /* by the call; NULL: its steps were launched one by one */
    int64_t runs;
    bool no_capture;                 /* the call is never captured */
    /* the steps make the updates: no result is a shared variable's memory, and shapes stay */
    bool updates;
    struct mc_cuda_resident *resident; /* of a body: all its steps in one kernel; NULL: not yet asked for */
};
struct mc_cuda_fn_function {
    bool *pinned;                 /* by output: the result is written by the GPU to pinned memory */
    void *failed;               /* error words on the GPU that a failed check sets */
    /* error flag in host memory: word 0 is nonzero after a check failed on the device */
    mc_array *error_flag;
    struct mc_function *checking; /* the next function in the list of those that check */
    bool checks;                /* a kernel of the function, or of the body of a loop, checks indices */
    /* The function is the body of a loop: a failed check is an error of step `step` of the function that is
     * called, and `failed` belongs to that. */
    bool is_body;
    int step;
    void *registered;           /* the arena, with the communicator of its collectives; NULL: it is not */
};
static inline struct mc_cuda_fn_code *mc_cuda_fn_code(const struct mc_function *f) { return f->code->own; }
static inline struct mc_cuda_fn_plan *mc_cuda_fn_plan(const struct mc_shape_plan *p) { return p->own; }
static inline struct mc_cuda_fn_function *mc_cuda_fn_of(const struct mc_function *f) { return f->own; }
/* the number of a step in error words */
static inline int mc_cuda_fn_number(const struct mc_function *f, int step)
{
    return mc_cuda_fn_of(f)->is_body ? mc_cuda_fn_of(f)->step : step;
}

/* grid.c */
/* for mc_kernel.never */
unsigned mc_grid_excluded_forms(const struct mc_step *st);
mc_status mc_grid_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* the launch that mc_grid_plan made; NULL: it made none */
const struct mc_grid_launch *mc_grid_launch_of(const struct mc_exec *e);
/* joint.c.  many: by step, the step whose NAME_many it can use; -1: none */
mc_status mc_grid_find_many(struct mc_program *p, const int *first, int *many);
mc_status mc_grid_joint(struct mc_function *f, struct mc_shape_plan *p, const int *step, int n);
/* the steps that e runs in one; NULL: it is no such executor */
const int *mc_grid_joint_steps(const struct mc_exec *e, int *n);
/* Word 0 of error words: one of MC_CUDA_ERR_ (device/cuda/args.h), or an index: -1 - axis of a region, else
 * 1 + the number of a value of the kernel. */
/* copy_step.c.  Here and below: *made stays NULL if the step is not of that kind. */
/* can copy_step.c run it? checks: set if that checks indices */
bool mc_copy_step_can(const struct mc_program *pr, const struct mc_step *st, bool *checks);
mc_status mc_copy_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* lines.c: results so far along an axis, sorting, searching */
bool mc_lines_can(const struct mc_step *st, bool *checks);
mc_status mc_lines_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* factor.c: factorizations of stacks of small matrices, and of large ones; host: of any, by the solvers of
 * the CPU */
bool mc_cuda_factor_can(const struct mc_step *st, bool *checks);
mc_status mc_cuda_factor_plan(struct mc_function *f, struct mc_shape_plan *p, int step, bool host,
                              struct mc_exec **made);
/* fft.c: Fourier transforms of real tensors by cuFFT */
bool mc_cuda_fft_can(const struct mc_step *st);
mc_status mc_cuda_fft_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* ctc.c: ctc_loss and its derivatives */
bool mc_cuda_ctc_can(const struct mc_step *st, bool *checks);
mc_status mc_cuda_ctc_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
/* ranks.c: ops in which ranks work together, where each has a GPU */
mc_comm *mc_cuda_ranks_of(const struct mc_step *st, const struct mc_cuda *d); /* NULL: none on this GPU */
bool mc_cuda_is_ranks(const struct mc_exec *e); /* of such an op */
/* for a backend's row */
char *mc_cuda_fn_arena(struct mc_function *f, size_t bytes);
void mc_cuda_fn_arena_free(struct mc_function *f);
mc_status mc_cuda_ranks_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made);
void mc_ctc_source(int kind, mc_dtype d, mc_dtype label, mc_dtype length, struct mc_str *defines);
struct mc_factor;
void mc_factor_source(const struct mc_factor *f, struct mc_str *defines); /* what precedes the text */
/* the error that the kernel of e has set in the error words */
mc_status mc_cuda_factor_error(const struct mc_exec *e, const int64_t *err);
/* counts.c: the space's functions `largest` and `counts` */
void mc_cuda_space_counts(struct mc_cuda *d);
/* custom.c: users' ops given as CUDA C */
mc_status mc_cuda_fn_custom_compile(struct mc_code_unit *u);
mc_status mc_cuda_fn_custom_plan(struct mc_function *f, const struct mc_shape_plan *p, int step,
                                 struct mc_exec **made);
/* loop.c: bodies of loops, whose steps are launched as a part of the call */
mc_status mc_cuda_fn_bodies(struct mc_function *f); /* f's bodies share its error words */
void mc_cuda_fn_body(const struct mc_function *f, struct mc_function *body);
mc_status mc_cuda_fn_zero(struct mc_function *f, char *at, size_t bytes);
/* resident.c: loops in one kernel; see struct mc_backend */
bool mc_cuda_resident_begin(struct mc_function *f, const struct mc_shape_plan *p,
                            const struct mc_body_steps *s);
bool mc_cuda_resident_note(struct mc_function *f, const struct mc_shape_plan *p, char *const *to);
mc_status mc_cuda_resident_run(struct mc_function *f, const struct mc_shape_plan *p);
void mc_cuda_resident_free(struct mc_cuda_resident *r);
/* values.c */
/* the value in whose memory v lies: a view with its own copy, and a join of which v is a part; -1: v is -1 */
int mc_cuda_fn_memory_of(const struct mc_function *f, const struct mc_shape_plan *p, int v);
void mc_cuda_fn_made_in_free(const struct mc_function *f, struct mc_cuda_fn_plan *q);
/* a contiguous copy on the device */
mc_status mc_cuda_fn_copy(struct mc_function *f, const struct mc_slot *from, const char *src, char *dst);
mc_status mc_cuda_fn_result_make(struct mc_function *f, const struct mc_shape_plan *p, int output,
                                 const mc_arg *out);
mc_status mc_cuda_fn_result_take(struct mc_function *f, const struct mc_shape_plan *p, int output);
/* images.c: for bundles */
mc_status mc_cuda_fn_note(struct mc_code_unit *u, const struct mc_plan *p); /* p may be NULL */
mc_status mc_cuda_fn_images(struct mc_function *f, const char *archs, struct mc_images *list);
/* what a value's address is in this call */
char *mc_cuda_fn_address(const struct mc_function *f, const struct mc_shape_plan *p, size_t v);
/* captured.c: launches all steps one by one, or replays a captured call with the same addresses, which it may
 * make first */
mc_status mc_cuda_fn_steps(struct mc_function *f, const struct mc_shape_plan *p);
mc_status mc_cuda_fn_replay(struct mc_function *f, struct mc_shape_plan *p);
void mc_cuda_fn_captures_free(struct mc_function *f, struct mc_cuda_fn_plan *q);
/* capture.c: captures all steps and the end of the call in their order, or, if it forks, each waiting only
 * for those that it depends on */
mc_status mc_cuda_fn_capture(struct mc_function *f, const struct mc_shape_plan *p, bool forks);
/* finish_call.c */
extern const struct mc_cuda_text mc_finish_call_text, mc_running_text, mc_order_text,
    mc_first_text, mc_each_text, mc_counts_text, mc_factor_step_text, mc_index_step_text,
    mc_ctc_step_text, mc_fft_step_text, mc_ranks_step_text;
/* source of the kernel that mc_finish_call launches */
void mc_finish_call_source(struct mc_str *out);
/* copies the views that move from call to call, in one launch if they are contiguous */
mc_status mc_copies_ahead(struct mc_function *f, const struct mc_shape_plan *p);
/* allocates the error words before the first call */
mc_status mc_cuda_fn_ready(struct mc_function *f);
/* makes the updates that go with the steps, and sets the error flag */
mc_status mc_finish_call(const struct mc_function *f, const struct mc_shape_plan *p);
/* the error of a failed index check; waits for the GPU */
mc_status mc_cuda_fn_error_wait(struct mc_function *f);
/* the same if the error flag is set; does not wait */
mc_status mc_cuda_fn_error_seen(struct mc_function *f);
mc_status mc_cuda_fn_synchronize(void);                                             /* waits for all GPUs */
/* mc_cuda_fn_synchronize checks its error flag until mc_cuda_fn_unwatch */
void mc_cuda_fn_watch(struct mc_function *f);
void mc_cuda_fn_unwatch(struct mc_function *f);
/* nccl.c.  The functions below enqueue work on the stream of the rank's GPU, which is entered; addresses are
 * the GPU's. */
struct mc_cuda *mc_comm_device(const mc_comm *c);             /* NULL: the rank has none */
/* Can NCCL reduce this dtype in this way?  any_order: in whatever order; else with the bits of the tree. */
bool mc_comm_device_reduces(const mc_comm *c, enum mc_ranks_op how, mc_dtype d, bool any_order);
mc_status mc_comm_device_reduce(mc_comm *c, enum mc_ranks_op how, mc_dtype d, const void *x, void *y,
                                int64_t n);
/* y: n elements */
mc_status mc_comm_device_scatter(mc_comm *c, enum mc_ranks_op how, mc_dtype d, const void *x, void *y,
                                 int64_t n);
mc_status mc_comm_device_gather(mc_comm *c, const void *x, void *y, size_t bytes);
/* Memory of mc_cuda_alloc_shared that NCCL reads and writes in place from then on. */
bool mc_comm_device_shares(const mc_comm *c);
mc_status mc_comm_device_register(const mc_comm *c, void *p, size_t bytes, void **handle);
void mc_comm_device_forget(const mc_comm *c, void *handle);
mc_status mc_comm_device_broadcast(mc_comm *c, int root, const void *x, void *y, size_t bytes);
#endif
