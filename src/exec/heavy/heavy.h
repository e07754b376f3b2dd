/* heavy.h: a step of heavy work at one shape: the plan of its solver, and who computes its epilogue: the
 * solver, or the step's kernel. */
#ifndef MC_HEAVY_H
#define MC_HEAVY_H

#include "exec/cpu/launch.h"

/* An epilogue at one shape (epilogue.c).  Value ids; -1: there is no such term. */
struct mc_heavy_epilogue {
    bool by_solver;             /* the plan computes the epilogue, and the step's kernel does not run */
    enum mc_act act;
    int bias;                   /* one number for each filter or column, adjacent in memory */
    int residual;               /* has the result's sizes and strides */
    int other;                  /* has other ones */
    int result;
};
struct mc_heavy {
    struct mc_exec exec;
    struct mc_plan *plan;
    struct mc_plan *joined;     /* that, and the work of the step in front; NULL: not so */
    /* the kernel that the solver calls for each finished block; NULL: it calls none */
    struct mc_launch *finish;
    struct mc_heavy_epilogue epilogue;
    bool idle;                  /* the work is done by those that read it */
    /* by operand of a product: where in the scratch it is made contiguous first; -1: it is not */
    int64_t copy[2];
};
/* Is it a step of heavy work that those steps do that read its result? */
static inline bool mc_heavy_is_skipped(const struct mc_step_plan *sp) { return sp->heavy && sp->heavy->idle; }

/* heavy.c: families of solvers */
const char *mc_heavy_family(const struct mc_step *st);  /* "gemm", "conv" */
/* who does the work at that shape: "fft"; "idle" where those that read it do */
const char *mc_heavy_solver(const struct mc_heavy *h);
/* sizes and strides are known, offsets not yet */
mc_status mc_heavy_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
void mc_heavy_free(struct mc_heavy *h);
/* epilogue_kernel.c: what they share: operands, results, finishing kernels */
/* the value of its input */
int mc_heavy_source(const struct mc_function *f, const struct mc_node *n, int i);
/* the i-th value it makes, before its kernel */
int mc_heavy_result(const struct mc_step *st, int i);
/* Does the heavy work that a kernel finishes, and that of the step in front which it does as well, read v?
 * It does while blocks are finished. */
bool mc_heavy_reads(const struct mc_function *f, const struct mc_step *st, int v);
/* for each finished block */
bool mc_heavy_calls_kernel(const struct mc_function *f, const struct mc_step *st);
/* bytes of operands of the finishing kernel that are made contiguous first */
size_t mc_heavy_copies(const struct mc_heavy *h);
mc_status mc_epilogue_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
/* a finishing kernel, along the kernel's axes */
void mc_launch_box(struct mc_running *r, const int64_t *at, const int64_t *size);
/* joined.c */
/* once heavy work is planned: who does that of the step in front */
mc_status mc_pooled_step_plan(struct mc_function *f, struct mc_shape_plan *p);
mc_status mc_pooled_step_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
/* convolve.c */
struct mc_conv_problem;
mc_status mc_convolve_problem(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                              struct mc_conv_problem *q);
/* Runs a plan on operands as a convolution has them, with the kernel that finishes the step. */
mc_status mc_convolve_with(struct mc_function *f, const struct mc_shape_plan *p, int step,
                           const struct mc_plan *plan, void **operand, char *scratch);
mc_status mc_convolve_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_convolve_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
/* pooling.c */
struct mc_pool_problem;
/* v: the value of each role; -1: there is no such array, or nobody reads the marks that would be made */
mc_status mc_pooling_problem(const struct mc_function *f, const struct mc_shape_plan *p, int step, int v[3],
                             struct mc_pool_problem *q);
mc_status mc_pooling_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_pooling_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
mc_status mc_across_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_across_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
/* epilogue.c: may a solver compute the step's epilogue, as far as the program and sizes and strides tell?
 * Fills e, by_solver left false.  axis: of the result, along which a bias has its numbers; -1: there is no
 * bias. */
bool mc_heavy_epilogue_at(const struct mc_function *f, const struct mc_shape_plan *p, int step, int axis,
                          struct mc_heavy_epilogue *e);
/* product.c */
mc_status mc_product_plan(struct mc_function *f, struct mc_shape_plan *p, int step);
mc_status mc_product_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);

#endif
