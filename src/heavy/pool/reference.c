/* reference.c: pooling by op/pool_loops.c, the definition, for every problem.
 *
 * Invariant: it refuses nothing. */
#include "heavy/pool/solver.h"

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_pool_problem *p = pooling(plan->problem);
    int64_t strides[POOL_NARRAY][MC_MAX_RANK] = { 0 };
    struct mc_pool_arrays a = { .dtype = p->dtype };
    (void)workspace;
    (void)threads;
    for (int r = 0; r < POOL_NARRAY; r++) {
        const bool present = r != POOL_KEY || mc_pool_keyed(p);
        const int64_t size =
            mc_dtypes[r == POOL_KEY && mc_pool_key_like_y(&p->s) ? p->s.mark : p->dtype].size;
        for (int i = 0; i < p->s.rank; i++) {
            strides[r][i] = p->at[r][i] * size;
        }
        a.at[r] = present ? operand[r] : NULL;
        a.strides[r] = strides[r];
    }
    TRY(mc_pool_loops(&p->s, &a));
    struct mc_pool_grid g;
    mc_pool_grid(p, &g);
    mc_pool_finish(operand, &g, 0, g.planes, 0, g.lanes);
    return MC_OK;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    return 1e-6 + 200 * mc_pool_seconds(p);
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    (void)p;
    return mc_plan_bare(run);
}

const struct mc_solver mc_pool_reference = { .name = "reference", .portable = true, .estimate = estimate, .plan = plan };
