/* launch.h: a kernel at one shape on the CPU: its loops, the strides of its operands, how threads share
 * it. */
#ifndef MC_LAUNCH_H
#define MC_LAUNCH_H

#include "device/cpu/cpu.h"
#include "exec/function.h"

extern const struct mc_exec_ops mc_launch_exec;
struct mc_launch {
    struct mc_exec exec;
    bool stream;                /* results are larger than the caches and are stored past them */
    mc_kernel_fn *fn, *reduce_fn;
    int nop, nouter;
    int *value;                 /* by operand: value id; -1: an index */
    int64_t *s;                 /* 3 strides for each operand, in elements */
    int64_t n[4];
    int64_t outer[MC_MAX_RANK]; /* sizes of the outer loops, around the kernel's own */
    /* strides of each operand along the outer loops, in bytes (positions for an index) */
    int64_t *step;
    int64_t outer_total;
    enum { SPLIT_NOT, SPLIT_OUTER, SPLIT_1, SPLIT_0, SPLIT_FULL_REDUCTION, SPLIT_COLUMN_SUMS } split;
    /* units of the loop that is split, and the least number that a thread takes */
    int64_t units, grain;
    int64_t chunk;              /* SPLIT_FULL_REDUCTION: elements of a chunk; SPLIT_COLUMN_SUMS: rows */
    size_t column_sums;               /* bytes of a chunk's column sums; 0: there are none */
    int threads;
    /* by operand: offset in the scratch of its contiguous copy; -1: not copied; NULL: no operand is */
    int64_t *dense;
    size_t copies;              /* bytes of those copies */
    size_t scratch;             /* bytes of row buffers for each thread; or of accumulators for all */
    double bytes;
    double ns;                  /* an estimate of the time of one thread */
};
struct mc_running {             /* one kernel step while it runs */
    const struct mc_step *st;
    const struct mc_launch *l;
    const struct mc_slot *slot;
    char *const *base;          /* by operand: its address */
    char *scratch, *column_sums;
    bool stream;
    /* a convolution: the result's axis for image, filter and spatial axes; -1: none */
    int axis[5];
    int64_t err[4];             /* set by kernels (kernel.h) */
};
static inline bool mc_is_launch(const struct mc_exec *e) { return e && e->ops == &mc_launch_exec; }
/* runs units [from, to) of the loop that is split, as that thread */
void mc_launch_part(struct mc_running *r, int64_t from, int64_t to, int thread);
/* repeat.c: all steps of a loop whose body is one map (backend.h) */
enum mc_repeats mc_launch_repeats(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                                  const int *state);
mc_status mc_launch_repeat(struct mc_function *f, const struct mc_shape_plan *p, int step,
                           const struct mc_repeat *how, bool *beyond);
/* bands.c: loops whose bodies are row-wise (backend.h) */
struct mc_body_steps;
int mc_launch_bands(const struct mc_function *f, const struct mc_shape_plan *p, const struct mc_body_steps *s,
                    int64_t rows);
void mc_launch_each(void (*one)(void *arg, int i), void *arg, int n);
int64_t mc_launch_stride(const struct mc_slot *slot, const struct mc_koperand *o, int v, bool dense, int a);
/* *exec stays NULL if the kernel has too few loops for the axes of this shape. */
mc_status mc_launch_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **exec);
/* operands are set, loops not yet; NULL: error */
struct mc_launch *mc_launch_new(const struct mc_function *f, int step);
void mc_launch_free(struct mc_launch *l);
/* the launch that mc_launch_plan made; NULL: it made none */
struct mc_launch *mc_launch_of(struct mc_exec *e);
/* Are the addresses such that its results can be stored past the caches, if they are to be? */
static inline bool mc_launch_can_stream(const struct mc_launch *l, const struct mc_kernel *k,
                                        char *const *base)
{
    bool can = l->stream;
    for (int i = 0; i < l->nop && can; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        can = !o->dst || o->column_sums || !k->val.at[o->val].element || (uintptr_t)base[i] % 64 == 0;
    }
    return can;
}
/* adds a kernel's err to the step's, from any thread */
void mc_running_tell(struct mc_running *r, const int64_t *err);
mc_status mc_running_end(struct mc_function *f, const struct mc_shape_plan *p, int step,
                         const struct mc_running *r);
void mc_launch_tile(void *arg, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n, void *c,
                    int64_t row_stride);
/* finds the operands that need a contiguous copy */
mc_status mc_dense_plan(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                        struct mc_launch *l);
mc_status mc_dense_copy(const struct mc_slot *from, char *src, char *dst);
mc_status mc_bases(const struct mc_function *f, const struct mc_shape_plan *p, const struct mc_launch *l,
                   char *scratch, char **base);
/* compile_kernels.c: for any backend whose kernels are C */
mc_status mc_compile_kernels(struct mc_code_unit *u);
/* The kernels of a program for one set of instructions: libraries, and by step the form that was printed. */
struct mc_kernel_form { bool wide; unsigned never; };
struct mc_kernel_set {
    const char *level;          /* mc_cpu_level */
    VEC(struct mc_str) image;
    VEC(struct mc_kernel_form) form;
};
/* p was compiled before.  flags: the compiler's for that level. */
mc_status mc_kernel_set_make(struct mc_kernel_set *set, const struct mc_program *p, const char *flags);
void mc_kernel_set_free(struct mc_kernel_set *set);
/* find_kernels.c: looks up the functions of a step's kernel; leaves them NULL if the library lacks it */
void mc_find_kernel(struct mc_code_unit *u, int step, const struct mc_code *lib);
/* sets u->fn, for kernels in the libraries u->lib; without libraries the reference runs */
mc_status mc_find_kernels(struct mc_code_unit *u);
void mc_drop_kernels(struct mc_code_unit *u);
/* custom_run.c: users' ops that are given as kernel text */
enum { MC_CUSTOM_SYMBOL = 24 }; /* as the name of a kernel */
/* dtypes of the inputs and of the result of n; false: n is no such op */
bool mc_custom_dtypes(const mc_node *n, mc_dtype *dtype);
/* the name of its compiled form in a library */
void mc_custom_symbol(const struct mc_op *op, const mc_dtype *dtype, char name[MC_CUSTOM_SYMBOL]);
bool mc_custom_kernels(const mc_graph *g);               /* has g such ops? */
/* gives the ops of g their compiled forms, which are in the library; an error if it lacks one */
mc_status mc_custom_find(const mc_graph *g, const struct mc_code *lib);
/* custom.c.  *lib owns the code.  NULL: error */
mc_kernel_fn *mc_custom_compile(const struct mc_op *op, const mc_dtype *dtype, struct mc_code **lib,
                                mc_status *s);
/* a library with the compiled forms of all such ops of g, for that set of instructions */
mc_status mc_custom_image(const mc_graph *g, const char *level, struct mc_str *image);
/* describe.c */
void mc_cpu_describe(struct mc_str *out);
int mc_cpu_has_library(const char *library); /* -1: none of its libraries */
/* split.c */
void mc_launch_split(const struct mc_function *f, const struct mc_step *st, struct mc_launch *l,
                     double elements);
/* threads for a map of so many operations and bytes */
int mc_launch_threads(const struct mc_function *f, double flops, double bytes);
bool mc_launch_streams(const struct mc_shape_plan *p, const struct mc_step *st, const struct mc_launch *l);
/* joint.c: see struct mc_backend */
mc_status mc_launch_joint(struct mc_function *f, struct mc_shape_plan *p, const int *step, int n);
/* column_sums.c: column sums of a row kernel */
void mc_column_sums_plan(const struct mc_step *st, const struct mc_shape_plan *p, struct mc_launch *l);
/* points the operands with column sums to zeroed partial sums of the chunk */
void mc_column_sums_bases(const struct mc_running *r, int64_t chunk, char **base);
void mc_column_sums_join(const struct mc_running *r, char *const *base);

/* copied_view.c: what makes the copy that the view is stored as */
struct mc_exec *mc_copied_view(const struct mc_function *f, const struct mc_shape_plan *p, int step);

/* factor.c: *exec stays NULL for ops that are no factorizations, and where the reference is to run the
 * step */
mc_status mc_factor_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step,
                              struct mc_exec **exec);
/* lines.c: the same for ops on lines */
mc_status mc_line_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **exec);

#endif
