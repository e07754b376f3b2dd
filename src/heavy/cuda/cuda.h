/* cuda.h: what the solvers of every family share on a GPU.
 *
 * A plan's run() enqueues on the device's stream and returns: no allocation, no waiting, scalars by value, so
 * that it can be recorded in a CUDA graph.  The thread has entered the device (mc_cuda_current) while it
 * plans and runs.
 *
 * Invariant: what a plan holds belongs to the device that was current when it was made. */
#ifndef MC_HEAVY_CUDA_H
#define MC_HEAVY_CUDA_H

#include "device/cuda/cuda.h"
#include "plan/plan.h"

extern const struct mc_site mc_site_cuda;

/* ---- cuda.c: operands to time with, and the check against the host's reference ---- */
/* in the device's memory, random */
mc_status mc_cuda_operands(const struct mc_extent *e, int n, void *operand[8]);
void mc_cuda_discard(const struct mc_extent *e, int n, void *operand[8]);
/* Runs plan on the device on the operands that `host` makes, its reference on the same, and compares. */
struct mc_cuda_check {
    const struct mc_family *host;
    const struct mc_solver *reference;
    /* what the reference leaves out; may be NULL */
    void (*after)(const struct mc_problem *p, void *const *operand);
    mc_status (*compare)(const struct mc_problem *p, const struct mc_plan *plan, void *const *got,
                         void *const *want);
};
mc_status mc_cuda_verify(const struct mc_cuda_check *c, const struct mc_problem *p,
                         const struct mc_plan *plan, const struct mc_extent *e, int n);

/* ---- cuda_text.c: kernels of solvers: prelude.cu, defines, what the text builds upon, and the text ---- */
struct mc_cuda_text {
    const char *name;           /* "heavy/gemm/cuda/general.cu" */
    const char *text;
    const struct mc_cuda_text *on;      /* what it builds upon, or NULL */
};
extern const struct mc_cuda_text mc_cuda_copy_text, mc_cuda_fill_text, mc_cuda_epilogue_text;
void mc_cuda_source(const struct mc_cuda_text *t, const char *defines, struct mc_str *out);
/* A kernel of the current device, loaded once a process and text; NULL: failed, the error has the compiler's
 * message. */
void *mc_cuda_kernel(const struct mc_cuda_text *t, const char *defines, const char *name);
/* Several of them, each to its place; one without a name is NULL.  Frees the defines, whatever comes of
 * it. */
struct mc_cuda_kernel_ref {
    void **to;
    const char *name;
};
bool mc_cuda_kernels(const struct mc_cuda_text *t, struct mc_str *defines, const struct mc_cuda_kernel_ref *k,
                     size_t n);
/* The names of a dtype and of what it is summed in, as texts know them: "half", "float". */
void mc_cuda_types(struct mc_str *defines, mc_dtype t, bool wide);
/* INDEX, an unsigned type that counts so far: the short one is faster */
void mc_cuda_index(struct mc_str *defines, int64_t count);
struct mc_cuda_divider mc_cuda_divider(int64_t by);
/* A line of `threads` for `count` elements; more than a grid can have is walked by the kernel itself. */
struct mc_grid mc_cuda_grid_1d(int64_t count, unsigned threads);

/* ---- cuda_copy.c: an array into another layout or dtype, broadcast and mirrored axes included ---- */
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

/* Axes of several arrays: those of size 1 go, neighbours join; outermost first, as the first array lies. */
struct mc_cuda_axes {
    int rank, arrays;
    int64_t *size, *stride[3];
};
void mc_cuda_axes_collapse(struct mc_cuda_axes *a);

/* ---- cuda_epilogue.c: y = act(y + bias + beta c0) in place, for solvers that compute none of it themselves
 * ---- */
struct mc_cuda_epilogue;
struct mc_cuda_epilogue_of {
    mc_dtype dtype;
    int rank;                   /* at most 8 */
    /* strides in elements; those of what is not there do not matter */
    int64_t size[8], y[8], c0[8], bias[8];
    bool has_bias;
    double beta;                /* 0: there is no c0 */
    enum mc_act act;
};
struct mc_cuda_epilogue *mc_cuda_epilogue_new(const struct mc_cuda_epilogue_of *q);
mc_status mc_cuda_epilogue_run(const struct mc_cuda_epilogue *t, void *y, const void *c0, const void *bias);
void mc_cuda_epilogue_free(struct mc_cuda_epilogue *t);
/* The plan of a solver "apart": child 0 is the planner's choice for the problem without an epilogue; a kernel
 * computes that behind it. */
struct mc_cuda_unfused {
    struct mc_plan base;
    struct mc_cuda_epilogue *epilogue;
};
static inline const struct mc_cuda_epilogue *mc_cuda_epilogue_of_plan(const struct mc_plan *p)
{
    return ((const struct mc_cuda_unfused *)(const void *)p)->epilogue;
}
/* The options of child 0, which the planner selects as if nobody had asked for the problem around it. */
struct mc_plan_options mc_cuda_unfused_options(const struct mc_problem *p);
struct mc_plan *mc_cuda_unfused_plan(const struct mc_problem *bare, const struct mc_cuda_epilogue_of *q,
                                   mc_status (*run)(const struct mc_plan *p, void *const *operand,
                                                    void *workspace, int threads));

/* bytes that kernels and libraries move at once, where an address allows it */
enum { MC_CUDA_ALIGNED = 16 };
static inline bool mc_cuda_aligned(const void *p)
{
    return (uintptr_t)p % MC_CUDA_ALIGNED == 0;
}

int mc_cuda_multiprocessors(void);       /* multiprocessors of the GPU that is entered; 100 while none is */
/* for memory that is fetched into shared memory, and matrices of halves by the warp; NULL: it is not */
const char *mc_cuda_needs_sm80(void);

/* ---- estimates: seconds, good enough to order solvers ---- */
/* part: of the peak that is reached */
double mc_cuda_seconds(mc_dtype t, bool reduced, double flops, double bytes, double part);
double mc_cuda_lower_bound(mc_dtype t, bool reduced, double flops);   /* no kernel on those units takes less */

#endif
