/* backend.h: what runs programs.  A program, the places of its values and the order of its steps are the same
 * everywhere; a backend compiles its kernels, plans each step at a shape, runs it, and moves values to and
 * from its device.
 *
 * Invariant: nothing outside a backend's own files asks which one it is. */
#ifndef MC_BACKEND_H
#define MC_BACKEND_H

#include "device/device.h"
#include "exec/function.h"
#include "lower/layout.h"

struct mc_gemm_problem;
struct mc_conv_problem;
struct mc_pool_problem;
struct mc_norm_problem;
struct mc_pooled_problem;

/* Who computes the epilogue of heavy work. */
enum mc_epilogues {
    EPILOGUE_BEHIND,            /* the step's kernel, which runs after the solver */
    EPILOGUE_BLOCKS,            /* the step's kernel, which the solver calls for each finished block */
    /* the solver, if it is a bias, a residual and an activation; else as BEHIND */
    EPILOGUE_SOLVER,
};

struct mc_backend {
    const char *name;           /* "cuda": what its devices' names begin with */
    struct mc_device *(*start)(const char *device); /* NULL: the error says what is missing */
    mc_status (*synchronize)(void); /* all its devices have done what was begun; or NULL */

    void (*describe)(struct mc_str *out); /* its devices and libraries, line by line, for mc_info; or NULL */

    /* what it does, and does not */
    enum mc_fusing fuses;
    bool numbered;              /* there may be several devices: "cuda1" */
    enum mc_epilogues epilogues;
    /* who runs a program with sizes that only running tells; NULL: error */
    const struct mc_backend *(*grows)(void);
    /* Kernels need a compiler, without which the reference runs.  may: its kernels may be had, if only from
     * the cache; has: it works, which is tried once.  NULL: always. */
    bool (*may_compile)(void), (*has_compiler)(void);
    const char *(*compiler_missing)(void); /* why there is no compiler, and what to do; "": there is one */
    bool in_place;              /* kernels make new values of shared variables where the old ones lie */
    bool dense_inputs;          /* an input's elements lie side by side */
    const char *language;       /* of kernels: "C" */
    const char *lead, *head;    /* how any kernel begins in the source; how one does, whose name is put in */
    /* the reason shown for a step that the reference runs at this shape only; "": none */
    const char *elsewhere;

    /* heavy work */
    const struct mc_site *site; /* where the plans of its solvers run; NULL: the host */
    struct mc_plan *(*product)(const struct mc_gemm_problem *q, const struct mc_plan_options *o);
    struct mc_plan *(*conv)(const struct mc_conv_problem *q, const struct mc_plan_options *o);
    struct mc_plan *(*pool)(const struct mc_pool_problem *q, const struct mc_plan_options *o);
    struct mc_plan *(*norm)(const struct mc_norm_problem *q, const struct mc_plan_options *o);
    struct mc_plan *(*pooled)(const struct mc_pooled_problem *q, const struct mc_plan_options *o);
    struct mc_layout_costs layouts; /* what the order of axes costs */

    /* From here on what may be NULL says so: there is nothing to do. A function; the device is entered.
     * compiled: has the step's kernel a compiled form?  left: is a step without a kernel left to the
     * reference, at the newest shape?  NULL: it is. */
    mc_status (*kernels)(struct mc_code_unit *u); /* compiled, for all shapes */
    bool (*compiled)(const struct mc_function *f, int step);
    bool (*left_to_reference)(const struct mc_function *f, int step);
    /* those compiled; the code may be compiled again; or NULL */
    void (*drop_kernels)(struct mc_code_unit *u);
    void (*code_free)(struct mc_code_unit *u); /* or NULL */
    mc_status (*function_init)(struct mc_function *f);  /* or NULL */
    void (*function_free)(struct mc_function *f);       /* or NULL */

    /* a shape */
    size_t (*input_bytes)(const struct mc_function *f); /* bytes of the arena before all values; or NULL */
    bool (*concurrent)(void);       /* may steps run beside each other?  NULL: no */
    mc_status (*shape)(struct mc_function *f, struct mc_shape_plan *p); /* once places are known; or NULL */
    mc_status (*plan)(struct mc_function *f, struct mc_shape_plan *p, int step);
    void (*shape_free)(struct mc_function *f, struct mc_shape_plan *p);     /* or NULL */

    /* a call.  begin: addresses are known; inputs are brought.  step: one; its time is added, unless NULL */
    char *(*address)(const struct mc_function *f, const struct mc_shape_plan *p, size_t value);
    mc_status (*begin)(struct mc_function *f, struct mc_shape_plan *p); /* or NULL */
    mc_status (*step)(struct mc_function *f, const struct mc_shape_plan *p, int step, double *seconds);
    mc_status (*run)(struct mc_function *f, struct mc_shape_plan *p);   /* all of them; NULL: one by one */
    mc_status (*error_wait)(struct mc_function *f); /* what kernels found wrong.  Waits; or NULL */
    mc_status (*error_seen)(struct mc_function *f);   /* the same, where it is known already; or NULL */

    /* values.  fetch: for the host to read; perhaps a copy.  copy: dense, within its memory.  keep: a copy
     * there */
    mc_array *(*fetch)(struct mc_function *f, const struct mc_shape_plan *p, int value);
    mc_status (*store)(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a);
    mc_status (*copy)(struct mc_function *f, const struct mc_slot *from, const char *src, char *dst);
    mc_array *(*copy_on_device)(struct mc_function *f, const struct mc_shape_plan *p, int value);
    /* results.  make: before the steps: where it goes.  take: behind them: f->result[output] */
    mc_status (*result_make)(struct mc_function *f, const struct mc_shape_plan *p, int output, const mc_arg *out);
    mc_status (*result_take)(struct mc_function *f, const struct mc_shape_plan *p, int output);
    bool (*updated)(const struct mc_shape_plan *p); /* were updates made with the steps?  NULL: never */
};
static inline bool mc_steps_concurrent(const struct mc_function *f)
{
    return f->code->backend->concurrent && f->code->backend->concurrent();
}

extern const struct mc_backend mc_backend_cpu, mc_backend_cuda;

const struct mc_backend *mc_backend_of(const char *device);                 /* by its name; NULL: error */
void mc_backends_describe(struct mc_str *out);                              /* all of them */
/* Adds a row in front of the others.  Not thread-safe: call it before anything is compiled. */
void mc_backend_add(const struct mc_backend *b);

/* destination.c: where results and updates go */
static inline bool mc_result_wanted(const mc_arg *out)
{
    return out && !(out->kind == 3 && !out->u.slot) && !(out->kind == 4 && !out->u.number) && out->kind != 5;
}
/* Can what the caller gave for output i hold such a result? */
mc_status mc_result_given(const struct mc_function *f, int i, const mc_arg *out, mc_dtype d, int rank,
                          const int64_t *dims);
/* The caller's array if it fits as it is, else a fresh one. */
mc_status mc_result_on_host(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out);
/* Is the new value made in the variable's own memory? */
bool mc_is_in_place(const struct mc_function *f, const struct mc_shape_plan *p, int update);
/* Can the new value be copied over the old one at any time after the steps? */
bool mc_update_is_plain(const struct mc_function *f, const struct mc_shape_plan *p, int i);

#endif
