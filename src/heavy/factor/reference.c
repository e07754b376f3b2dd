/* reference.c: factorizations by the reference (op/matrix/matrix.c), one matrix after another.
 *
 * Invariant: it refuses nothing. */
#include "heavy/factor/solver.h"

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_factor *f = factoring(plan->problem);
    (void)threads;
    return mc_factor_each(f, mc_factor_reference[f->dtype == MC_FLOAT64][f->kind],
                          (const void *const *)operand, operand + FACTOR_OUT, workspace);
}

static double estimate(const struct mc_problem *p)
{
    return 1e-6 + 2e-9 * mc_factor_flops(factoring(p));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    struct mc_plan *made = mc_plan_bare(run);
    if (made) {
        made->workspace = mc_factor_work(factoring(p));
    }
    return made;
}

const struct mc_solver mc_factor_by_reference = {
    .name = "reference", .portable = true, .estimate = estimate, .plan = plan,
};
