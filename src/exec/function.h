/* function.h: compiled functions.
 *
 *   code unit    program and kernels; shared by copies of a function, never changed after compiling
 *   shape plan   the program at one shape: sizes, offsets in the arena, launches, solver plans
 *   function     code unit, shape plans, arena, defaults of inputs, times
 *
 * Invariant: a call makes all of its updates or none. */
#ifndef MC_FUNCTION_H
#define MC_FUNCTION_H

#include "lower/lower.h"
#include "plan/plan.h"
#include "rewrite/rewrite.h"
#include "exec/slot.h"

/* The flags that kernels are compiled with.  Signed integers wrap; pragmas on loops say which sums may be
 * reordered.  GCC 12 and 13 miscompile sums beside stores of 16 bits for AVX-512 where jump threading has
 * merged conditions (t_kernel/sums_of_signs_beside_the_signs). */
#define MC_KERNEL_FLAGS "-fwrapv -fopenmp-simd -fno-thread-jumps"

enum mc_mode { MODE_FAST_RUN, MODE_FAST_COMPILE, MODE_DEBUG, MODE_NANGUARD };

/* exact: the rule promises the same bits. wide: the twins of `from` and `to` */
struct mc_rewritten { const char *rule; bool exact; mc_node *from, *to, *wide[2]; };
struct mc_twin { mc_node *of, *wide; };

/* Text and name of a step.  Each is made on first use, by any thread, and kept.  NULL: not made yet. */
struct mc_step_words {
    char *_Atomic text;         /* its formula */
    char *_Atomic name;         /* its purpose: "conv1 forward" */
};

enum { MC_TEXTS = 8 };          /* C texts compiled at the same time, at most */
struct mc_code_unit {           /* shared by copies of a function; counted */
    _Atomic int refs;
    mc_graph *graph;
    struct mc_program program;
    struct mc_device *device;
    const struct mc_backend *backend;
    void *own;                  /* the backend's data */
    struct mc_code *lib[MC_TEXTS]; /* compiled C kernels; all NULL: the reference runs every step */
    mc_kernel_fn **fn, **reduce_fn;  /* its functions, by step */
    /* compiled forms of users' ops, which came with a bundle; or NULL */
    struct mc_code *custom;
    char *source, *text;        /* source of the kernels; text of the rewritten graph */
    enum mc_mode mode;
    bool uncompiled;            /* compile nothing: the reference runs every step */
    VEC(struct mc_rewritten) rewritten; /* MODE_DEBUG: what rules replaced */
    VEC(struct mc_twin) twin;   /* MODE_DEBUG: float64 twins of inputs and shared variables */
    /* MODE_DEBUG: compares what rules replaced with the replacements, for the arguments of f; else NULL */
    mc_status (*check_rules)(const struct mc_function *f);
    struct mc_step_words *words; /* by step */
    /* by step: the body of a loop; NULL: it has none, or the reference computes it.  Or NULL: no loops */
    struct mc_code_unit **loop;
    /* by step: the bodies of a branch, by the condition; as above */
    struct mc_code_unit *(*branch)[2];
    int texts;                  /* on a GPU: what its kernels are divided among; 0: not compiled yet */
    struct mc_images *images;   /* of the bundle that it is from, on a GPU; or NULL */
    const struct mc_chosen *chosen; /* solvers that a bundle lists, in the program's arena; or NULL */
    char *warning;              /* what slows the function down that could be avoided; NULL: nothing */
    const char **output_name;   /* the user's names of outputs; NULL: none */
    int nstep;
    double compile_seconds, rewrite_seconds, cc_seconds;
    size_t nodes_before, nodes_after;
};

enum { MOST_OPERANDS = 512 };   /* operands of a kernel, at most */
/* An executor: the first member of a backend's data for one step at one shape. */
struct mc_function;
struct mc_shape_plan;
struct mc_exec { const struct mc_exec_ops *ops; };
struct mc_exec_ops {
    mc_status (*run)(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch);
    void (*free)(struct mc_exec *e); /* frees the executor; NULL: it belongs to someone else */
    bool host;                  /* the reference runs the step, on the host */
    bool eager;                 /* on the device, but not in captures: a library waits for the device */
    /* run before all other steps and outside of captures: its source may lie elsewhere at each call */
    bool ahead;
};
/* How all steps of a loop run whose body is one step: the states are updated in place, or have two buffers
 * each. */
enum mc_repeats { REPEATS_NOT, REPEATS_IN_PLACE, REPEATS_BY_TURNS };
struct mc_repeat {
    int64_t times;
    const int64_t *move;        /* by value: bytes from step to step */
    const bool *turns;          /* by value: it moves back in the next step; NULL: none does */
};

struct mc_step_plan {
    struct mc_exec *exec;       /* NULL: the step does nothing */
    struct mc_exec *epilogue;     /* a kernel that runs after exec, on a solver's result; or NULL */
    struct mc_heavy *heavy;     /* of a solver step, else NULL */
    double flops, bytes;        /* of the solver and the kernel together; bytes: of the kernel alone */
    size_t memory;              /* of a loop: bytes that its executor holds beside the function's arena */
    size_t workspace, workspace_at; /* bytes; offset in the arena */
    /* a part of the step's source, or of its result, whose offset is another at each call; or NULL */
    const struct mc_slot *moving;
    int64_t space[MC_MAX_RANK]; /* sizes of the kernel's iteration space */
};
/* The executor of a solver step.  It is the first member of struct mc_heavy. */
static inline struct mc_exec *mc_heavy_exec(const struct mc_step_plan *sp)
{
    return (struct mc_exec *)sp->heavy;
}
/* bytes of the arena that are used from step `first` to step `last` */
struct mc_block { int64_t at, size; int first, last; };
typedef VEC(struct mc_block) mc_blocks;
struct mc_moves;                /* schedule/moves.c */
/* may steps run at the same time? */
enum mc_concurrent { CONCURRENT_NEVER, CONCURRENT_IF_SMALL, CONCURRENT_ALWAYS };

struct mc_shape_plan {
    struct mc_shape_plan *next;
    int64_t *key;
    int nkey;
    struct mc_moves *moves;     /* views that move with inputs' elements; NULL: none can */
    const bool *again;          /* by value: may be another at plan time when the plan has moved; or NULL */
    int64_t moved;              /* how often it has */
    struct mc_slot *slot;     /* by value */
    struct mc_step_plan *step;  /* by step */
    struct mc_plan_options options; /* options of its solver plans */
    size_t arena;               /* bytes for values */
    size_t scratch;             /* bytes for row buffers and workspaces: the most that one step needs */
    /* bytes of both.  Workspaces of a step may overlap values that are not live at that step. */
    size_t memory;
    mc_blocks block;            /* memory of values and their liveness; kept until workspaces are placed */
    enum mc_concurrent concurrent;      /* steps may run at the same time, if there is memory for that */
    /* steps between two uses of the same memory, so that neighbours can run at the same time; 0: steps run in
     * order */
    int reuse_distance;
    void *own;                  /* the backend's data */
    bool direct_output;         /* some outputs are computed directly in the caller's memory */
    uint64_t used;
};
struct mc_input_info { char *name; bool has_default; mc_array *dflt; };
struct mc_output_info { bool borrow, on_device; }; /* on_device: the result stays on the device */
struct mc_step_time {
    int64_t calls, taken[2];    /* taken: of a branch: the calls in which it took each side */
    double seconds, flops, bytes;
    int64_t traced_calls;       /* of a step of a body: what the trace has reported already */
    double traced_seconds;
};

struct mc_function {
    struct mc_code_unit *code;
    char *name;
    struct mc_input_info *input;
    struct mc_output_info *output;
    struct mc_shared **shared;  /* every shared variable it reads or updates, sorted by address */
    int nshared;
    struct mc_shared **target;  /* by update */
    struct mc_shape_plan *plans;
    int nplans;
    uint64_t clock;
    pthread_mutex_t lock;
    char *arena;
    size_t arena_size;
    /* valid during one call */
    char **ptr;                 /* by value */
    int64_t *key;
    mc_array **arg;             /* by input */
    mc_array **result;          /* by output: where the result is written */
    mc_array **borrowed;            /* by output: the view that was lent last */
    int threads;
    void *own;                  /* the backend's data */
    struct mc_function **loop;  /* by step: the body of a loop; or NULL */
    bool is_body;               /* it is in such a list, and nobody calls it */
    const struct mc_shape_plan *body_plan; /* of a body: at the sizes of its last run; or NULL */
    struct mc_function *(*branch)[2]; /* by step: the bodies of a branch; or NULL */
    bool profile, traced;       /* traced: profiled, and written to the file that the flag `trace` names */
    bool skip_updates;          /* calls of this copy make no updates */
    /* of a body: its solver steps take the solvers of this plan, if they can; or NULL */
    const struct mc_shape_plan *like;
    int first_constant;         /* of a body: this input, and those behind it, are the same in all steps */
    struct mc_step_time *time;
    int64_t calls, planned;
    double call_seconds, plan_seconds;
};

static inline bool mc_step_is_ahead(const struct mc_shape_plan *p, int step)
{
    return p->step[step].exec && p->step[step].exec->ops->ahead;
}

/* The value in whose memory v lies: a view that is copied has its own. */
static inline int mc_memory_of(const struct mc_program *pr, const struct mc_shape_plan *p, int v)
{
    while (pr->value.at[v].view_of >= 0 && !p->slot[v].own) {
        v = pr->value.at[v].view_of;
    }
    return v;
}

/* the newest shape plan; NULL: none yet */
static inline const struct mc_shape_plan *mc_newest_plan(const struct mc_function *f)
{
    return f->is_body ? f->body_plan : f->plans;
}

/* step_name.c: kept with the code unit; "": there is no such step, or out of memory */
const char *mc_step_text(const struct mc_code_unit *u, int step);
const char *mc_step_name(const struct mc_code_unit *u, int step);
/* step.c */
/* does the step have a kernel with a compiled form? */
bool mc_step_compiled(const struct mc_function *f, int step);
mc_status mc_step_run(struct mc_function *f, const struct mc_shape_plan *p, int step);
/* watch.c: are the steps timed, or checked by the mode?  Then mc_step_watched runs them; *took: the time of
 * a profiled step, else 0 */
bool mc_steps_watched(const struct mc_function *f);
mc_status mc_step_watched(struct mc_function *f, const struct mc_shape_plan *p, int step, double *took);
/* Adds the names of the function and the step to the last error; returns s. */
mc_status mc_step_error(const struct mc_function *f, int step, mc_status s);
/* number of CPU threads for a step. asked: the number wanted; 0: the flag `threads`, else all */
int mc_step_threads(int asked);
void mc_exec_free(struct mc_exec *e); /* for executors that own no other memory */
/* part.c: the part of its result that the step sets or adds to, with the offset at which it begins.
 * MC_EUNSUPPORTED: that depends on data */
mc_status mc_part_of(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                     struct mc_slot *part);
/* reference.c */
extern struct mc_exec mc_exec_reference;
/* the value as the host can read it; for remote memory a copy */
mc_array *mc_value_array(struct mc_function *f, const struct mc_shape_plan *p, int value);
mc_status mc_value_store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a);
mc_status mc_reference_step(struct mc_function *f, const struct mc_shape_plan *p, int step, bool compare);
/* tolerance.c: float64: tol times each element's magnitude, 0 where it is not finite */
#define MC_TOLERANCE_ANY 1e300
mc_array *mc_tolerance_of(const mc_array *a, double tol);
/* How far two right results of n over `in` may differ, element by element. tolerance[i] is that of in[i];
 * NULL: in[i] is exact. value: n's first result. */
mc_array *mc_tolerance(const mc_node *n, mc_array *const *in, mc_array *const *tolerance,
                       const mc_array *value, double tol);
/* cpu/custom_run.c: sets mc_custom_kernel_hook. compile.c calls it so that static linking keeps the file. */
void mc_custom_install(void);
/* reference_threads.c: can threads share the work of n?  Then mc_lines_eval computes `out` with that many
 * threads. */
bool mc_reference_parallel(const mc_node *n, const mc_array *out);
mc_status mc_lines_eval(const mc_node *n, mc_array *const *in, mc_array *out, int threads);
/* cpu/compile_kernels.c: the reason shown for a step that the reference runs for lack of a compiler */
extern const char mc_no_compiler[];

#endif
