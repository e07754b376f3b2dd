/* cuda.h: shared by the GPU solvers of every family.
 *
 * A plan's run() enqueues work on the device's stream and returns.  It allocates nothing, does not wait
 * and passes scalars by value, so that it can be captured in a CUDA graph.  While it plans and runs, the
 * thread has entered the device (mc_cuda_current).
 *
 * Invariant: the resources of a plan belong to the device that was current when it was made. */
#ifndef MC_HEAVY_CUDA_H
#define MC_HEAVY_CUDA_H

#include "device/cuda/cuda.h"
#include "plan/plan.h"

extern const struct mc_site mc_site_cuda;

/* ---- plan_device.c: operands for timing, and the check against the host's reference ---- */
/* allocates random operands in the device's memory */
mc_status mc_cuda_operands(const struct mc_extent *e, int n, void *operand[8]);
void mc_cuda_discard(const struct mc_extent *e, int n, void *operand[8]);
/* mc_cuda_verify runs the plan on the device and the reference on the host, with the same operands, and
 * compares the results. */
struct mc_cuda_check {
    const struct mc_family *host;       /* makes the operands */
    const struct mc_solver *reference;
    /* applied to the reference's result, such as an activation; may be NULL */
    void (*after)(const struct mc_problem *p, void *const *operand);
    mc_status (*compare)(const struct mc_problem *p, const struct mc_plan *plan, void *const *got,
                         void *const *want);
};
double mc_cuda_acted(enum mc_act act, double v);  /* the activation of v */
/* y = act(y + bias[position on axis `channel`]), in the host's memory; bias may be NULL */
struct mc_cuda_finish {
    mc_dtype dtype;
    int rank, channel;
    const int64_t *size, *stride;       /* of y, in elements */
    enum mc_act act;
};
void mc_cuda_finish_on_host(const struct mc_cuda_finish *q, void *y, const void *bias);
mc_status mc_cuda_verify(const struct mc_cuda_check *c, const struct mc_problem *p,
                         const struct mc_plan *plan, const struct mc_extent *e, int n);

/* ---- text.c: kernels of solvers.  The source is prelude.cu, defines, the texts that are included, the
 * text ---- */
struct mc_cuda_text {
    const char *name;           /* "heavy/gemm/cuda/general.cu" */
    const char *text;
    const struct mc_cuda_text *on;      /* the text that must precede it, or NULL */
};
extern const struct mc_cuda_text mc_cuda_copy_text, mc_cuda_fill_text, mc_cuda_epilogue_text;
void mc_cuda_source(const struct mc_cuda_text *t, const char *defines, struct mc_str *out);
/* A kernel of the current device.  Each text is loaded once a process.  NULL: error set, with the compiler's
 * message. */
void *mc_cuda_kernel(const struct mc_cuda_text *t, const char *defines, const char *name);
/* From now on the code (struct mc_cuda_code) of kernels that this thread asks for is added to the list, each
 * once; NULL: to none.  Returns the list before. */
mc_code_list *mc_cuda_note(mc_code_list *list);
/* Sets several kernels; one without a name is set to NULL.  Always frees the defines. */
struct mc_cuda_kernel_ref {
    void **to;
    const char *name;
};
bool mc_cuda_kernels(const struct mc_cuda_text *t, struct mc_str *defines, const struct mc_cuda_kernel_ref *k,
                     size_t n);
/* Defines T, the dtype ("half"), A, the dtype of sums ("float"), and FLOAT. */
void mc_cuda_types(struct mc_str *defines, mc_dtype t, bool wide);
/* Defines INDEX, an unsigned type for numbers up to count.  32 bits are faster. */
void mc_cuda_index(struct mc_str *defines, int64_t count);
struct mc_cuda_divider mc_cuda_divider(int64_t by);
/* A one-dimensional grid for `count` elements, of at most 2^20 blocks; the kernel loops over the rest. */
struct mc_grid mc_cuda_grid_1d(int64_t count, unsigned threads);

/* ---- copy.c: copies to another layout or dtype, with broadcast and flipped axes ---- */
struct mc_cuda_copy;
struct mc_cuda_layout {
    mc_dtype to, from;
    int rank;                   /* at most 8 */
    int64_t size[8], to_stride[8], from_stride[8]; /* in elements */
    bool flip[8];               /* the axis of `from` is read from its end */
};
struct mc_cuda_copy *mc_cuda_copy_new(const struct mc_cuda_layout *l);
mc_status mc_cuda_copy_run(const struct mc_cuda_copy *c, void *to, const void *from);
void mc_cuda_copy_free(struct mc_cuda_copy *c);

/* Axes of several arrays.  Collapse removes those of size 1, sorts them by the strides of the first array,
 * largest first, and joins neighbours that are contiguous in all arrays. */
struct mc_cuda_axes {
    int rank, arrays;
    int64_t *size, *stride[3];
};
void mc_cuda_axes_collapse(struct mc_cuda_axes *a);

/* ---- epilogue.c: y = act(y + bias + beta c0) in place, for unfused solvers ---- */
struct mc_cuda_epilogue;
struct mc_cuda_epilogue_of {
    mc_dtype dtype;
    int rank;                   /* at most 8 */
    /* strides in elements; those of an absent c0 or bias are ignored */
    int64_t size[8], y[8], c0[8], bias[8];
    bool has_bias;
    double beta;                /* 0: no c0 */
    enum mc_act act;
};
struct mc_cuda_epilogue *mc_cuda_epilogue_new(const struct mc_cuda_epilogue_of *q);
mc_status mc_cuda_epilogue_run(const struct mc_cuda_epilogue *t, void *y, const void *c0, const void *bias);
void mc_cuda_epilogue_free(struct mc_cuda_epilogue *t);
/* The plan of an unfused solver (named "apart"): child 0 is the planner's choice for the problem without an
 * epilogue; then a kernel computes the epilogue. */
struct mc_cuda_unfused {
    struct mc_plan base;
    struct mc_cuda_epilogue *epilogue;
};
static inline const struct mc_cuda_epilogue *mc_cuda_epilogue_of_plan(const struct mc_plan *p)
{
    return ((const struct mc_cuda_unfused *)(const void *)p)->epilogue;
}
/* The options of child 0: depth 0, so that it is planned like a problem of its own. */
struct mc_plan_options mc_cuda_unfused_options(const struct mc_problem *p);
struct mc_plan *mc_cuda_unfused_plan(const struct mc_problem *bare, const struct mc_cuda_epilogue_of *q,
                                   mc_status (*run)(const struct mc_plan *p, void *const *operand,
                                                    void *workspace, int threads));

/* bytes that kernels and libraries move at once if the address is aligned to them */
enum { MC_CUDA_ALIGNED = 16 };
static inline bool mc_cuda_aligned(const void *p)
{
    return (uintptr_t)p % MC_CUDA_ALIGNED == 0;
}

int mc_cuda_multiprocessors(void);       /* multiprocessors of the entered GPU; 100 if none is entered */
/* refuses GPUs without asynchronous copies to shared memory and tensor cores for m16n8k16; NULL: it has
 * them */
const char *mc_cuda_needs_sm80(void);

/* ---- estimates: seconds, good enough to order solvers ---- */
/* reduced: TF32; part: the fraction of the peak that is reached */
double mc_cuda_seconds(mc_dtype t, bool reduced, double flops, double bytes, double part);
double mc_cuda_lower_bound(mc_dtype t, bool reduced, double flops);

#endif
