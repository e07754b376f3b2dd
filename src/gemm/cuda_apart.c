/* cuda_apart.c: on a GPU, a product and what follows it, one after the other: the planner's choice for the bare one, then a
 * kernel of ours on its result.
 *
 * Invariant: the child is the problem as if nothing followed, so all share what wisdom has of it. */
#include "gemm/cuda.h"

struct apart {
    struct mc_plan base;
    struct mc_cuda_tail *tail;
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct apart *d = (const struct apart *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    TRY(plan->child[0]->run(plan->child[0], operand, workspace, threads));
    return mc_cuda_tail_run(d->tail, operand[GEMM_C], p->has_c0 && p->beta != 0 ? operand[GEMM_C0] : NULL, NULL);
}

static void destroy(struct mc_plan *plan)
{
    mc_cuda_tail_free(((struct apart *)(void *)plan)->tail);
}

static struct mc_gemm_problem child_of(const struct mc_gemm_problem *p)
{
    struct mc_gemm_problem c = *p;
    c.beta = 0;
    c.has_c0 = false;
    c.act = ACT_NONE;
    return c;
}

static struct mc_cuda_tail *tail_of(const struct mc_gemm_problem *p)
{
    struct mc_cuda_tail_of q = { .dtype = p->dtype, .rank = 3, .size = { p->batch, p->m, p->n }, .has_c0 = p->has_c0 && p->beta != 0, .beta = p->beta, .act = p->act };
    memcpy(q.y, p->cs, sizeof p->cs);
    memcpy(q.c0, p->c0s, sizeof p->c0s);
    return mc_cuda_tail_new(&q);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_), c = child_of(p);
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
    const struct mc_gemm_problem *p = gemm(p_);
    const bool c0 = p->has_c0 && p->beta != 0, broadcast = p->c0s[1] == 0 || p->c0s[2] == 0;
    return !mc_is_float(p->dtype)             ? "takes floats"
           : c0 && !broadcast && !p->c0_apart ? "writes over a C0 that is C"
           : !c0 && p->act == ACT_NONE        ? "wants something to follow"
                                              : NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const struct mc_gemm_problem c = child_of(p);
    double best = 1e30;
    for (const struct mc_solver *const *s = mc_gemm_cuda_solvers; *s; s++) {
        best = (*s)->refuse && (*s)->refuse(&c.base) ? best : MC_MIN(best, (*s)->estimate(&c.base));
    }
    const double bytes = 2.0 * (double)(p->batch * p->m * p->n) * mc_dtypes[p->dtype].size;
    return best + mc_cuda_seconds(p->dtype, false, 0, bytes, 1);
}

const struct mc_solver mc_gemm_cuda_apart = { .name = "apart", .refuse = refuse, .estimate = estimate, .plan = plan, .wraps = true };
