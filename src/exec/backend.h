/* backend.h: what runs programs.  The program, the slots of its values and the order of its steps are the
 * same on every device.  A backend compiles the kernels, plans each step at a shape, runs it, and copies
 * values to and from its device.
 *
 * Invariant: only a backend's own files depend on which backend it is. */
#ifndef MC_BACKEND_H
#define MC_BACKEND_H

#include "device/device.h"
#include "device/image.h"
#include "exec/function.h"
#include "lower/layout.h"

struct mc_gemm_problem;
struct mc_conv_problem;
struct mc_pool_problem;
struct mc_norm_problem;
struct mc_pooled_problem;

/* The steps of a body that do something, and the values that are copied to results after them. */
struct mc_body_steps {
    const int *run, *copied;
    int nrun, ncopied;
    int64_t times;              /* steps of the loop */
};

/* Who computes the epilogue of a solver step. */
enum mc_epilogues {
    EPILOGUE_BEHIND,            /* the step's kernel, after the solver */
    EPILOGUE_BLOCKS,            /* the step's kernel, called by the solver for each finished block */
    /* the solver, if the epilogue is a bias, a residual and an activation; else as EPILOGUE_BEHIND */
    EPILOGUE_SOLVER,
};

struct mc_backend {
    const char *name;           /* "cuda": the prefix of its devices' names */
    struct mc_device *(*start)(const char *device); /* NULL: error; the message says what is missing */
    mc_status (*synchronize)(void); /* waits for all its devices; or NULL */

    /* adds its devices and libraries to mc_info's text, a line each; or NULL */
    void (*describe)(struct mc_str *out);
    /* Can this library be opened?  -1: it is none of the backend's.  NULL: the backend has no libraries. */
    int (*has)(const char *library);

    /* what the backend can do */
    enum mc_fusing fuses;
    bool numbered;              /* it may have several devices: "cuda1" */
    enum mc_epilogues epilogues;
    /* the backend that runs programs with dynamic sizes in place of this one; NULL: error */
    const struct mc_backend *(*grows)(void);
    /* Kernels need a compiler; without one the reference runs. may_compile: kernels may be available, if only
     * from the cache. has_compiler: the compiler works, which is tried once.  NULL: always. */
    bool (*may_compile)(void), (*has_compiler)(void);
    const char *(*compiler_missing)(void); /* why no compiler was found, and what to do; "": there is one */
    bool in_place;              /* kernels can update shared variables in place */
    bool starts;                /* steps read from memory where the parts begin that move (moves.c) */
    bool dense_inputs;          /* inputs must be contiguous */
    const char *language;       /* of the kernels: "C" */
    /* in the source: how every kernel begins; how the kernel of that name (%s) begins */
    const char *lead, *head;
    /* the reason shown for a step that the reference runs at this shape alone; "": none */
    const char *elsewhere;

    /* solver steps */
    const struct mc_site *site; /* where its solver plans run; NULL: the host */
    struct mc_plan *(*product)(const struct mc_gemm_problem *q, const struct mc_plan_options *o);
    struct mc_plan *(*conv)(const struct mc_conv_problem *q, const struct mc_plan_options *o);
    struct mc_plan *(*pool)(const struct mc_pool_problem *q, const struct mc_plan_options *o);
    struct mc_plan *(*norm)(const struct mc_norm_problem *q, const struct mc_plan_options *o);
    struct mc_plan *(*pooled)(const struct mc_pooled_problem *q, const struct mc_plan_options *o);
    struct mc_layout_costs layouts; /* the costs of layouts */
    bool tie_bits;              /* pool takes POOL_KEY_BITS */

    /* The functions below are called with the device entered.  Those marked "or NULL" are optional. compiled:
     * does the step's kernel have a compiled form?  left_to_reference: does the reference run this step,
     * which has no kernel, in the newest shape plan?  NULL: it does. */
    mc_status (*kernels)(struct mc_code_unit *u); /* compiles them, for all shapes */
    bool (*compiled)(const struct mc_function *f, int step);
    bool (*left_to_reference)(const struct mc_function *f, int step);
    /* frees the compiled kernels; the unit may be compiled again; or NULL */
    void (*drop_kernels)(struct mc_code_unit *u);
    void (*code_free)(struct mc_code_unit *u); /* or NULL */
    mc_status (*function_init)(struct mc_function *f);  /* or NULL */
    void (*function_free)(struct mc_function *f);       /* or NULL */

    /* The memory of the function's values; arena_free frees it.  NULL: the device's `alloc` and `free`. */
    char *(*arena)(struct mc_function *f, size_t bytes);
    void (*arena_free)(struct mc_function *f);

    /* planning a shape */
    /* bytes for inputs at the start of the arena; or NULL */
    size_t (*input_bytes)(const struct mc_function *f);
    enum mc_concurrent (*concurrent)(void); /* may steps run at the same time?  NULL: never */
    /* after offsets in the arena are set; or NULL */
    mc_status (*shape)(struct mc_function *f, struct mc_shape_plan *p);
    mc_status (*plan)(struct mc_function *f, struct mc_shape_plan *p, int step);
    /* Independent maps, which are planned: the executor of the first becomes one that runs all, and the
     * others have none; it may leave them as they are.  NULL: each runs alone */
    mc_status (*joint)(struct mc_function *f, struct mc_shape_plan *p, const int *step, int n);
    void (*shape_free)(struct mc_function *f, struct mc_shape_plan *p);     /* or NULL */

    /* a call. begin: addresses are known; copies the inputs. step: runs one step, and adds its time to
     * *seconds unless that is NULL */
    char *(*address)(const struct mc_function *f, const struct mc_shape_plan *p, size_t value);
    mc_status (*begin)(struct mc_function *f, struct mc_shape_plan *p); /* or NULL */
    mc_status (*step)(struct mc_function *f, const struct mc_shape_plan *p, int step, double *seconds);
    mc_status (*run)(struct mc_function *f, struct mc_shape_plan *p);   /* all steps; NULL: each by `step` */
    /* returns the error of a failed check; waits for the device; or NULL */
    mc_status (*error_wait)(struct mc_function *f);
    /* the same without waiting, if the host has it already; or NULL */
    mc_status (*error_seen)(struct mc_function *f);

    /* values.  fetch: an array that the host can read, a copy or a view.  copy: to contiguous memory of the
     * same device.  copy_on_device: a new array on the device */
    mc_array *(*fetch)(struct mc_function *f, const struct mc_shape_plan *p, int value);
    mc_status (*store)(struct mc_function *f, const struct mc_shape_plan *p, int value, const mc_array *a);
    mc_status (*copy)(struct mc_function *f, const struct mc_slot *from, const char *src, char *dst);
    /* Loops.  zero: clears memory of the device; NULL: the reference computes loops, and bodies are not
     * compiled.  body: prepares the body for its steps, which run as a part of f's call; or NULL */
    mc_status (*zero)(struct mc_function *f, char *at, size_t bytes);
    void (*body)(const struct mc_function *f, struct mc_function *body);
    /* All steps of a loop as one piece of work; or NULL.  resident: can a body's steps be that?  note: the
     * body's addresses are those of the next step of the loop, and to[] those of the copied results; false:
     * they move in another way than it can follow.  run_noted: runs the steps that were noted */
    bool (*resident)(struct mc_function *body, const struct mc_shape_plan *p, const struct mc_body_steps *s);
    bool (*note)(struct mc_function *body, const struct mc_shape_plan *p, char *const *to);
    mc_status (*run_noted)(struct mc_function *body, const struct mc_shape_plan *p);
    /* The same for a body of one step; or NULL.  repeats: state[v] is i + 1 for values that are read from or
     * stored in state i, else 0.  repeat: the addresses are those of the first of these steps.  *beyond: the
     * results are void, since an argument of a bounded kernel was beyond its bound */
    enum mc_repeats (*repeats)(const struct mc_function *body, const struct mc_shape_plan *p, int step,
                               const int *state);
    mc_status (*repeat)(struct mc_function *body, const struct mc_shape_plan *p, int step,
                        const struct mc_repeat *how, bool *beyond);
    /* Loops whose bodies are row-wise (schedule/band.h); or NULL.  bands: how many bands their rows are to be
     * divided into, which run at the same time; less than 2: none.  each: runs one(arg, i) for each i of n,
     * on a thread each */
    int (*bands)(const struct mc_function *body, const struct mc_shape_plan *p, const struct mc_body_steps *s,
                 int64_t rows);
    void (*each)(void (*one)(void *arg, int i), void *arg, int n);
    mc_array *(*copy_on_device)(struct mc_function *f, const struct mc_shape_plan *p, int value);
    /* results. result_make: before the steps, prepares where the result goes. result_take: after them, sets
     * f->result[output] */
    mc_status (*result_make)(struct mc_function *f, const struct mc_shape_plan *p, int output,
                             const mc_arg *out);
    mc_status (*result_take)(struct mc_function *f, const struct mc_shape_plan *p, int output);
    /* Bundles, for backends whose kernels are compiled from texts at run time; or NULL.  images: adds the
     * machine code of all kernels that f needs, for architectures in the device's words; NULL: for f's
     * device.  image_rank: how well the device runs an image for an architecture; 0: not at all */
    mc_status (*images)(struct mc_function *f, const char *archs, struct mc_images *list);
    int (*image_rank)(const struct mc_device *d, const char *arch);
    bool (*updated)(const struct mc_shape_plan *p); /* did the steps make the updates already?  NULL: never */
};
extern const struct mc_backend mc_backend_cpu, mc_backend_cuda;

/* by a device's name; NULL: error */
const struct mc_backend *mc_backend_of(const char *device);
void mc_backends_describe(struct mc_str *out);                              /* of all backends */
int mc_backends_have(const char *library);                                  /* -1: no backend knows it */
/* Adds a row, which is tried before the others.  Not thread-safe: call it before anything is compiled. */
void mc_backend_add(const struct mc_backend *b);

/* destination.c: memory for results and updates */
static inline bool mc_result_wanted(const mc_arg *out)
{
    return out && !(out->kind == 3 && !out->u.slot) && !(out->kind == 4 && !out->u.number) && out->kind != 5;
}
/* Can the caller's destination for output i hold a result of this dtype and shape? */
mc_status mc_result_given(const struct mc_function *f, int i, const mc_arg *out, mc_dtype d, int rank,
                          const int64_t *dims);
/* Sets f->result[i], on the device where it stays there: the caller's array if it fits as it is, else a new
 * one. */
mc_status mc_result_array(struct mc_function *f, const struct mc_shape_plan *p, int i, const mc_arg *out);
/* Is the new value written to the variable's own memory? */
bool mc_is_in_place(const struct mc_function *f, const struct mc_shape_plan *p, int update);
/* Can the new value be copied over the old one at any time after the steps? */
bool mc_update_is_plain(const struct mc_function *f, const struct mc_shape_plan *p, int i);

#endif
