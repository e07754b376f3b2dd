/* function.h: compiled functions.
 *
 *   code       program and kernels; shared by copies of a function, never changed after compiling
 *   plan       code at one shape: sizes, offsets in the arena, launches, solvers' plans
 *   function   code, its plans, its arena, its inputs' defaults, its times
 *
 * Invariant: a call either does all of its updates or none. */
#ifndef MC_FUNCTION_H
#define MC_FUNCTION_H

#include "lower/lower.h"
#include "plan/plan.h"
#include "rewrite/rewrite.h"
#include "exec/slot.h"

/* What kernels are compiled with: integers wrap, loops say themselves what may be reordered.  GCC 12 and 13
 * miscompile sums beside stores of 16 bits for AVX-512 where jump threading has merged conditions
 * (t_kernel/sums_of_signs_beside_the_signs). */
#define MC_KERNEL_FLAGS "-fwrapv -fopenmp-simd -fno-thread-jumps"

enum mc_mode { MODE_FAST_RUN, MODE_FAST_COMPILE, MODE_DEBUG, MODE_NANGUARD };

/* exact: the rule promises the same bits; wide: both in float64 */
struct mc_rewritten { const char *rule; bool exact; mc_node *from, *to, *wide[2]; };
struct mc_twin { mc_node *of, *wide; };

/* A step in words.  Made when first asked for, by any thread; kept from then on.  NULL: not made yet. */
struct mc_step_words {
    char *_Atomic text;         /* its formula */
    char *_Atomic name;         /* what it is for: "conv1 forward" */
};

enum { MC_TEXTS = 8 };          /* of C, compiled at once */
struct mc_code_unit {           /* shared by copies; counted */
    _Atomic int refs;
    mc_graph *graph;
    struct mc_program program;
    struct mc_device *device;   /* that it runs on */
    const struct mc_backend *backend;
    void *own;                  /* what the backend keeps */
    struct mc_code *lib[MC_TEXTS]; /* kernels in C; all NULL: everything by the reference */
    mc_kernel_fn **fn, **join;  /* the same by step */
    char *source, *text;        /* of the kernels; of the graph after rewriting */
    enum mc_mode mode;
    bool uncompiled;            /* nothing is compiled: the reference runs every step */
    VEC(struct mc_rewritten) rewritten; /* MODE_DEBUG: what rules replaced */
    VEC(struct mc_twin) twin;   /* there: inputs and shared variables, in float64 */
    struct mc_step_words *words; /* by step */
    char *warning;              /* what makes it slow that need not be; NULL: nothing */
    const char **output_name;   /* what the user calls them; NULL: nothing */
    int nstep;
    double compile_seconds, rewrite_seconds, cc_seconds;
    size_t nodes_before, nodes_after;
};

enum { MOST_OPERANDS = 512 };   /* of a kernel */
/* What does a step at one shape: the first member of what its backend keeps for that. */
struct mc_function;
struct mc_shape_plan;
struct mc_exec { const struct mc_exec_ops *ops; };
struct mc_exec_ops {
    mc_status (*run)(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch);
    void (*free)(struct mc_exec *e); /* what it owns, and itself; NULL: it is kept elsewhere */
    bool host;                  /* the reference does it, on the host */
};
struct mc_step_plan {
    struct mc_exec *exec;       /* NULL: there is nothing to do */
    struct mc_exec *epilogue;     /* what runs behind that: a kernel that finishes heavy work; NULL: nothing */
    struct mc_heavy *heavy;     /* what a solver does; NULL: it is no such step */
    double flops, bytes;        /* of heavy work and of the kernel, which alone counts bytes */
    size_t workspace, workspace_at; /* bytes, and where in the arena */
    int64_t space[MC_MAX_RANK]; /* a kernel's sizes */
};
/* The solver of a step of heavy work; its first member is its executor. */
static inline struct mc_exec *mc_heavy_exec(const struct mc_step_plan *sp)
{
    return (struct mc_exec *)sp->heavy;
}
struct mc_block { int64_t at, size; int first, last; }; /* in the arena, from step to step */
typedef VEC(struct mc_block) mc_blocks;
struct mc_shape_plan {
    struct mc_shape_plan *next;
    int64_t *key;
    int nkey;
    struct mc_slot *slot;     /* by value */
    struct mc_step_plan *step;  /* by step */
    struct mc_plan_options options; /* of its solver plans */
    size_t arena;               /* bytes of values */
    size_t scratch;             /* of the step that needs most beside them: row buffers, workspaces */
    size_t memory;              /* of both: what a step needs lies where no value is alive */
    mc_blocks block;            /* where values lie and when; until workspaces have their places */
    /* steps that lie between two uses of the same memory; 0: they run one after another */
    int reuse_distance;
    void *own;                  /* what the backend keeps */
    bool direct_output;         /* some outputs are made where the caller wants them */
    uint64_t used;
};
struct mc_input_info { char *name; bool has_default; mc_array *dflt; };
struct mc_output_info { bool borrow, on_device; }; /* stays: on the device */
struct mc_step_time { int64_t calls; double seconds, flops, bytes; };

struct mc_function {
    struct mc_code_unit *code;
    char *name;
    struct mc_input_info *input;
    struct mc_output_info *output;
    struct mc_shared **shared;  /* every shared variable it touches, by address */
    int nshared;
    struct mc_shared **target;  /* by update */
    struct mc_shape_plan *plans;
    int nplans;
    uint64_t clock;
    pthread_mutex_t lock;
    char *arena;
    size_t arena_size;
    /* scratch of one call */
    char **ptr;                 /* by value */
    int64_t *key;
    mc_array **arg;             /* by input */
    mc_array **result;          /* by output: where it is made */
    mc_array **borrowed;            /* by output: the borrowed view handed out last */
    int threads;
    void *own;                  /* what the backend keeps */
    bool profile, traced;       /* traced: profiled and written to the file of the flag `trace` */
    bool skip_updates;          /* a copy that only looks */
    struct mc_step_time *time;
    int64_t calls, planned;
    double call_seconds, plan_seconds;
};

/* step_name.c: a step in words, kept with the code; "": there is no such step, or no memory for its words */
const char *mc_step_text(const struct mc_code_unit *u, int step);
const char *mc_step_name(const struct mc_code_unit *u, int step);
/* step.c */
/* does it have a kernel, and a compiled form of it? */
bool mc_step_compiled(const struct mc_function *f, int step);
mc_status mc_step_run(struct mc_function *f, const struct mc_shape_plan *p, int step);
/* The last error, with the names of the function and the step added; returns s. */
mc_status mc_step_error(const struct mc_function *f, int step, mc_status s);
/* threads of the processor that steps use; asked 0: those of the flag, else all */
int mc_step_threads(int asked);
void mc_exec_free(struct mc_exec *e); /* of an executor that owns nothing but itself */
/* reference.c */
extern struct mc_exec mc_exec_reference;
/* on a GPU: a copy on the host */
mc_array *mc_value_array(struct mc_function *f, const struct mc_shape_plan *p, int value);
mc_status mc_value_store(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a);
mc_status mc_reference_step(struct mc_function *f, const struct mc_shape_plan *p, int step, bool compare);
/* tolerance.c: tol of each element's magnitude, 0 where it is not finite */
#define MC_TOLERANCE_ANY 1e300
mc_array *mc_tolerance_of(const mc_array *a, double tol);
/* How far apart two right ways to compute n over in may be.  in[i] may be off by slack[i]; NULL: both read
 * the same. */
mc_array *mc_tolerance(const mc_node *n, mc_array *const *in, mc_array *const *slack, const mc_array *value,
                   double tol);
/* custom.c: sets mc_custom_kernel_hook.  compile.c calls it so that archives bring the file along */
void mc_custom_install(void);
/* reference_threads.c: can threads share the work of n?  Then mc_lines_eval fills out with that many threads. */
bool mc_reference_parallel(const mc_node *n, const mc_array *out);
mc_status mc_lines_eval(const mc_node *n, mc_array *const *in, mc_array *out, int threads);
/* cpu/compile_kernels.c: the reason of a step that runs by the reference for want of a compiler */
extern const char mc_no_compiler[];

#endif
