/* cuda_apart.c: on a GPU, a convolution and what follows it, one after the other: the planner's choice for the bare one, then a
 * kernel of ours on its result.  What those lose that do both at once, planning finds by timing them against this.
 *
 * Invariant: the child is the problem as if nothing followed, so all share what wisdom has of it. */
#include "conv/cuda.h"

struct apart {
    struct mc_plan base;
    struct mc_cuda_tail *tail;
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct apart *d = (const struct apart *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    TRY(plan->child[0]->run(plan->child[0], operand, workspace, threads));
    return mc_cuda_tail_run(d->tail, mc_conv_cuda_result(p, operand), p->beta != 0 ? operand[CONV_C0] : NULL, p->has_bias ? operand[CONV_BIAS] : NULL);
}

static void destroy(struct mc_plan *plan)
{
    mc_cuda_tail_free(((struct apart *)(void *)plan)->tail);
}

static struct mc_conv_problem child_of(const struct mc_conv_problem *p)
{
    struct mc_conv_problem c = *p;
    c.beta = 0;
    c.has_bias = false;
    c.act = ACT_NONE;
    c.algo = strcmp(mc_conv_asked(p), mc_conv_cuda_apart.name) == 0 ? "auto" : p->algo;
    return c;
}

static struct mc_cuda_tail *tail_of(const struct mc_conv_problem *p)
{
    const struct mc_conv_array y = mc_conv_array(p, mc_conv_result(p->s.pass));
    struct mc_cuda_tail_of q = { .dtype = p->dtype, .rank = y.rank, .has_c0 = p->beta != 0, .has_bias = p->has_bias, .beta = p->beta, .act = p->act };
    for (int i = 0; i < y.rank; i++) {
        q.size[i] = y.size[i];
        q.y[i] = q.c0[i] = y.stride[i];
        q.bias[i] = i == 1;
    }
    return mc_cuda_tail_new(&q);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_), c = child_of(p);
    struct apart *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = destroy;
    d->tail = tail_of(p);
    d->base.child[0] = d->tail ? mc_plan_alone(&c.base) : NULL;
    if (!d->base.child[0]) {
        mc_cuda_tail_free(d->tail);
        mc_free(d);
        return NULL;
    }
    d->base.workspace = d->base.child[0]->workspace;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->inner                                                     ? "is for who asks, not for solvers"
           : p->beta != 0 && !p->c0_apart                               ? "writes over a c0 that is the result"
           : p->beta == 0 && !p->has_bias && p->act == ACT_NONE ? "wants something to follow"
                                                                        : NULL;
}

double mc_conv_cuda_tail_seconds(const struct mc_conv_problem *p)
{
    const struct mc_conv_array y = mc_conv_array(p, mc_conv_result(p->s.pass));
    const double bytes = (p->beta != 0 ? 3.0 : 2.0) * (double)mc_conv_count(&y) * mc_dtypes[p->dtype].size;
    return mc_cuda_seconds(p->dtype, false, 0, bytes, 1);
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_), c = child_of(p);
    return mc_conv_cuda_best(&c) + mc_conv_cuda_tail_seconds(p);
}

const struct mc_solver mc_conv_cuda_apart = { .name = "apart", .refuse = refuse, .estimate = estimate, .plan = plan, .wraps = true };
