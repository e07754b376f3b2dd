/* reference.c: normalisation by op/norm.c, the definition, for every problem.
 *
 * Invariant: it refuses nothing. */
#include "heavy/norm/solver.h"

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_norm_problem *p = norming(plan->problem);
    const int64_t size = mc_dtypes[p->dtype].size;
    int64_t strides[3][MC_MAX_RANK];
    (void)workspace;
    (void)threads;
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < p->s.rank; i++) {
            strides[r][i] = p->at[r][i] * size;
        }
    }
    return mc_norm_loops(&p->s, &(struct mc_norm_arrays){ .dtype = p->dtype,
                                                          .x = operand[NORM_X],
                                                          .g = p->s.backward ? operand[NORM_G] : NULL,
                                                          .y = operand[NORM_Y],
                                                          .xs = strides[NORM_X],
                                                          .gs = strides[NORM_G],
                                                          .ys = strides[NORM_Y] });
}

static double estimate(const struct mc_problem *p)
{
    return 1e-6 + 50 * mc_norm_seconds(norming(p));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    (void)p;
    return mc_plan_bare(run);
}

const struct mc_solver mc_norm_reference = { .name = "reference", .portable = true, .estimate = estimate, .plan = plan };
