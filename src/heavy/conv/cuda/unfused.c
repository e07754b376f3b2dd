/* unfused.c: on a GPU, a convolution and its epilogue one after the other: the plan that the planner
 * selects for the bare convolution, then an epilogue kernel on its result.  Planning times solvers with
 * fused epilogues against this one.
 *
 * Invariant: the child is the problem without epilogue, so that all epilogues share its wisdom. */
#include "heavy/conv/cuda/cuda.h"

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_conv_problem *p = conv(plan->problem);
    TRY(plan->child[0]->run(plan->child[0], operand, workspace, threads));
    return mc_cuda_epilogue_run(mc_cuda_epilogue_of_plan(plan), mc_conv_cuda_result(p, operand),
                                p->beta != 0 ? operand[CONV_C0] : NULL,
                                p->has_bias ? operand[CONV_BIAS] : NULL);
}

static struct mc_conv_problem child_of(const struct mc_conv_problem *p)
{
    struct mc_conv_problem c = *p;
    c.base.options = mc_cuda_unfused_options(&p->base);
    c.beta = 0;
    c.has_bias = false;
    c.act = ACT_NONE;
    c.algo = strcmp(mc_conv_asked(p), mc_conv_cuda_unfused.name) == 0 ? "auto" : p->algo;
    return c;
}

static struct mc_cuda_epilogue_of epilogue_of(const struct mc_conv_problem *p)
{
    const struct mc_conv_array y = mc_conv_array(p, mc_conv_result(p->s.pass));
    struct mc_cuda_epilogue_of q = { .dtype = p->dtype, .rank = y.rank, .has_bias = p->has_bias,
                                     .beta = p->beta, .act = p->act };
    for (int i = 0; i < y.rank; i++) {
        q.size[i] = y.size[i];
        q.y[i] = q.c0[i] = y.stride[i];
        q.bias[i] = i == 1;
    }
    return q;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_), c = child_of(p);
    const struct mc_cuda_epilogue_of q = epilogue_of(p);
    return mc_cuda_unfused_plan(&c.base, &q, run);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->inner                                             ? "is not for child plans"
           : p->beta != 0 && !p->residual                       ? "would overwrite c0, which is the result"
           : p->beta == 0 && !p->has_bias && p->act == ACT_NONE ? "requires an epilogue"
                                                                : NULL;
}

double mc_conv_cuda_epilogue_seconds(const struct mc_conv_problem *p)
{
    const struct mc_conv_array y = mc_conv_array(p, mc_conv_result(p->s.pass));
    const double bytes = (p->beta != 0 ? 3.0 : 2.0) * (double)mc_conv_count(&y) * mc_dtypes[p->dtype].size;
    return mc_cuda_seconds(p->dtype, false, 0, bytes, 1);
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_), c = child_of(p);
    return mc_plan_cheapest(&c.base) + mc_conv_cuda_epilogue_seconds(p);
}

const struct mc_solver mc_conv_cuda_unfused = { .name = "apart", .refuse = refuse, .estimate = estimate,
                                                .plan = plan, .wraps = true };
