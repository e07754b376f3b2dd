/* unfused.c: an unfused product on a GPU: the planner's choice for the bare product, then an epilogue kernel.
 *
 * Invariant: the child plan is that of the problem without an epilogue, so its wisdom is shared. */
#include "heavy/gemm/cuda/cuda.h"

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_gemm_problem *p = gemm(plan->problem);
    TRY(plan->child[0]->run(plan->child[0], operand, workspace, threads));
    return mc_cuda_epilogue_run(mc_cuda_epilogue_of_plan(plan), operand[GEMM_C],
                                p->beta != 0 ? operand[GEMM_C0] : NULL, NULL);
}

static struct mc_gemm_problem child_of(const struct mc_gemm_problem *p)
{
    struct mc_gemm_problem c = *p;
    c.base.options = mc_cuda_unfused_options(&p->base);
    c.beta = 0;
    c.act = ACT_NONE;
    return c;
}

static struct mc_cuda_epilogue_of epilogue_of(const struct mc_gemm_problem *p)
{
    struct mc_cuda_epilogue_of q = {
        .dtype = p->dtype, .rank = 3, .size = { p->batch, p->m, p->n }, .beta = p->beta, .act = p->act
    };
    memcpy(q.y, p->cs, sizeof p->cs);
    memcpy(q.c0, p->c0s, sizeof p->c0s);
    return q;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_), c = child_of(p);
    const struct mc_cuda_epilogue_of q = epilogue_of(p);
    return mc_cuda_unfused_plan(&c.base, &q, run);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const bool c0 = p->beta != 0, broadcast = p->c0s[1] == 0 || p->c0s[2] == 0;
    return !mc_is_float(p->dtype)             ? "takes floats"
           : c0 && !broadcast && !p->residual ? "would overwrite C0, which is the old C"
           : !c0 && p->act == ACT_NONE        ? "takes problems with an epilogue only"
                                              : NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const struct mc_gemm_problem c = child_of(p);
    const double bytes = 2.0 * (double)(p->batch * p->m * p->n) * mc_dtypes[p->dtype].size;
    return mc_plan_cheapest(&c.base) + mc_cuda_seconds(p->dtype, false, 0, bytes, 1);
}

const struct mc_solver mc_gemm_cuda_unfused = {
    .name = "apart", .refuse = refuse, .estimate = estimate, .plan = plan, .wraps = true,
};
