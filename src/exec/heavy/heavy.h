/* heavy.h: a solver step at one shape: its solver plan, and who computes its epilogue: the solver, or the
 * step's kernel. */
#ifndef MC_HEAVY_H
#define MC_HEAVY_H

#include "exec/cpu/launch.h"

/* An epilogue at one shape (epilogue.c).  Terms are value ids; -1: there is no such term. */
struct mc_heavy_epilogue {
    bool by_solver;             /* the solver computes the epilogue, and the step's kernel does not run */
    enum mc_act act;
    int bias;                   /* one number for each filter or column, adjacent in memory */
    int residual;               /* has the sizes and strides of the result */
    int other;                  /* a term of any other sizes or strides */
    int result;
};
/* the one term of a product's epilogue; -1: there is none */
static inline int mc_heavy_term(const struct mc_heavy_epilogue *e)
{
    return e->bias >= 0 ? e->bias : e->residual >= 0 ? e->residual : e->other;
}
/* Of a call: the value of the operand that stays the same until somebody changes its variable.  A value is
 * prepared when a second call reads it. */
struct mc_kept {
    const struct mc_shared *of; /* NULL: a constant */
    bool calls;                 /* the plan's operand stays the same from call to call */
    bool seen;                  /* a call has read the value of this version at this address */
    const void *at;
    uint64_t version;
};
struct mc_heavy {
    struct mc_exec exec;
    struct mc_plan *plan;
    /* does this step's work and that of the step before; NULL: they run separately */
    struct mc_plan *pooled;
    struct mc_conv_chain *chain; /* does it for several convolutions (conv_chain.c); or NULL */
    /* the epilogue kernel that the solver calls for each finished block; or NULL */
    struct mc_launch *finish;
    struct mc_heavy_epilogue epilogue;
    bool idle;                  /* the steps that read the result do this step's work */
    /* by operand of a product: offset in the scratch of its contiguous copy; -1: not copied */
    int64_t copy[2];
    /* what the plan made of the operand that stays the same, at `prepared`; NULL: nothing */
    void *prepared;
    struct mc_kept kept;
};
/* Is it a solver step whose work is done by the steps that read its result? */
static inline bool mc_heavy_is_skipped(const struct mc_step_plan *sp) { return sp->heavy && sp->heavy->idle; }

/* heavy.c: families of solvers */
const char *mc_heavy_family(const struct mc_step *st);  /* "gemm", "conv" */
/* name of the solver at that shape: "fft"; "idle" if the steps that read the result do the work */
const char *mc_heavy_solver(const struct mc_heavy *h);
/* For operands that stay the same in all steps of a loop: before the first step; addresses are known. */
mc_status mc_heavy_prepare(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
/* called when sizes and strides are known, before offsets are */
mc_status mc_heavy_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
void mc_heavy_free(struct mc_heavy *h);
/* epilogue_kernel.c: what families share: operands, results, epilogue kernels */
/* the value of input i of n */
int mc_heavy_source(const struct mc_function *f, const struct mc_node *n, int i);
/* the i-th value that the solver makes, before the epilogue kernel */
int mc_heavy_result(const struct mc_step *st, int i);
/* Does the solver read value v while the epilogue kernel runs on finished blocks?  Includes the inputs of the
 * step before, as the plan of a pooled convolution reads them. */
bool mc_heavy_reads(const struct mc_function *f, const struct mc_step *st, int v);
/* does the solver call the step's kernel for each finished block? */
bool mc_heavy_calls_kernel(const struct mc_function *f, const struct mc_step *st);
/* bytes of the contiguous copies of the epilogue kernel's operands */
size_t mc_heavy_copies(const struct mc_heavy *h);
mc_status mc_epilogue_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
/* runs the epilogue kernel on a box of the result */
void mc_launch_box(struct mc_running *r, const int64_t *at, const int64_t *size);
/* conv_pool.c */
/* after all solver steps are planned: selects plans of pooled convolutions where they are faster */
mc_status mc_pooled_step_plan(struct mc_function *f, struct mc_shape_plan *p);
mc_status mc_pooled_step_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
/* conv_chain.c: where the step is to do the work of convolutions before it, sets its `chain`; those are
 * idle */
mc_status mc_conv_chain_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_conv_chain_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
void mc_conv_chain_free(struct mc_conv_chain *d);
/* convolve.c */
struct mc_conv_problem;
mc_status mc_convolve_problem(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                              struct mc_conv_problem *q);
/* Runs a plan with a convolution's operands, and the epilogue kernel of the step, whose result has the axes
 * of that of `conv`. */
mc_status mc_convolve_with(struct mc_function *f, const struct mc_shape_plan *p, int step,
                           const struct mc_node *conv, const struct mc_plan *plan, void **operand,
                           char *scratch);
/* Runs the epilogue kernel on a finished block, whose axes are image, filter, spatial axes. */
void mc_convolve_block(struct mc_running *r, const int64_t at[5], const int64_t size[5]);
mc_status mc_convolve_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_convolve_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
void mc_convolve_prepare(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
/* pooling.c */
struct mc_pool_problem;
/* v: the value of each role; -1: there is no such array, or nothing reads the marks */
mc_status mc_pooling_problem(const struct mc_function *f, const struct mc_shape_plan *p, int step, int v[3],
                             struct mc_pool_problem *q);
mc_status mc_pooling_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_pooling_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
struct mc_norm_problem;
/* v: the value of each operand; -1: there is no such array */
mc_status mc_across_problem(const struct mc_function *f, const struct mc_shape_plan *p, int step, int v[3],
                            struct mc_norm_problem *q);
mc_status mc_across_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_across_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
/* epilogue.c: may a solver compute the step's epilogue, as far as the program, sizes and strides allow?
 * Fills e; by_solver stays false. axis: the axis of the result along which a bias varies; -1: no bias is
 * allowed. */
bool mc_heavy_epilogue_at(const struct mc_function *f, const struct mc_shape_plan *p, int step, int axis,
                          struct mc_heavy_epilogue *e);
/* the same, whatever the backend's solvers can do */
bool mc_heavy_epilogue_terms(const struct mc_function *f, const struct mc_shape_plan *p, int step, int axis,
                             struct mc_heavy_epilogue *e);
/* prepared.c: operands that stay the same.  Does value v stay the same in all steps of the loop whose body f
 * is, or from call to call?  Nothing is prepared in a device's own memory. */
bool mc_heavy_stays(const struct mc_function *f, int v);
/* once the plan is made, whose problem says that v stays the same */
void mc_heavy_keep(const struct mc_function *f, struct mc_heavy *h, int v);
/* In a call of a step whose operand is kept: is it to be prepared now?  Then there is memory for it. */
bool mc_heavy_is_due(struct mc_heavy *h);
/* bytes that the steps of the plan hold from call to call */
size_t mc_prepared_memory(const struct mc_function *f, const struct mc_shape_plan *p);
/* product.c */
void mc_product_prepare(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
mc_status mc_product_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_product_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);

#endif
