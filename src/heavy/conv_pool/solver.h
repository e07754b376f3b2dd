/* solver.h: what the solvers of pooled convolutions share.
 *
 * Invariant: a result depends on the problem alone, never on the number of threads. */
#ifndef MC_CONV_POOL_SOLVER_H
#define MC_CONV_POOL_SOLVER_H

#include "heavy/conv/solver.h"
#include "heavy/conv_pool/conv_pool.h"

extern const struct mc_solver mc_pooled_window_grad, mc_pooled_image_blocks, mc_pooled_reference,
    mc_pooled_cuda_small_channels;
extern const struct mc_cuda_text mc_pooled_small_channels_text;

static inline const struct mc_pooled_problem *pooled(const struct mc_problem *p)
{
    return (const struct mc_pooled_problem *)(const void *)p;
}

/* ---- problem.c ---- */
void mc_pooled_key(const struct mc_problem *p, struct mc_str *out);
void mc_pooled_extents(const struct mc_pooled_problem *p, struct mc_extent e[POOLED_NEXTENT]);
/* random marks of cells inside of y */
void mc_pooled_some_marks(const struct mc_pooled_problem *p, void *marks);
mc_status mc_pooled_compare(const struct mc_problem *p, const struct mc_plan *plan, void *const *got,
                            void *const *want);
struct mc_plan *mc_pooled_plan_in(const struct mc_family *family, const struct mc_pooled_problem *asked,
                                  const struct mc_plan_options *o);

/* ---- geometry.c ---- */
int mc_pooled_result(const struct mc_pooled_problem *p);    /* the first operand that is written */
/* the run of p->conv; its x, w and result */
struct mc_conv_run mc_pooled_bind(const struct mc_plan *plan, void *const *operand, int threads);
/* The windows as a pooling of y, with axes n, f and three spatial ones. */
struct mc_pool_shape mc_pooled_windows(const struct mc_pooled_problem *p, enum mc_pool_pass pass);
/* refuses what no solver takes: other dtypes than float32, three axes, groups, dilation, marks of more than
 * one byte, maxima or marks that are not contiguous */
const char *mc_pooled_not_plain(const struct mc_pooled_problem *p);

#endif
