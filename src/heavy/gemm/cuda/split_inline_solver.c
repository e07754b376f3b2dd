/* split_inline_solver.c: float32 products of small matrices on tensor cores.  Blocks split their operands
 * into pairs of halves themselves (split_inline.cu), so nothing is packed first.  Split-K uses as many
 * blocks as fill the GPU.
 *
 * Invariant: infinities and NaN give the same results as in float32. */
#include "heavy/gemm/cuda/split_inline.h"
#include "heavy/gemm/solver.h"

struct split_inline {
    struct mc_plan base;
    struct mc_split_inline c;
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct split_inline *d = (const struct split_inline *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    (void)threads;
    return mc_split_inline_run(&d->c, operand[GEMM_A], operand[GEMM_B],
                               p->beta != 0 ? operand[GEMM_C0] : NULL, operand[GEMM_C], workspace);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    return p->dtype != MC_FLOAT32                                  ? "takes float32 only"
           : mc_gemm_hollow(p)                                     ? mc_gemm_hollow(p)
           : !mc_split_inline_small(p->m, p->n, p->k, p->batch, 1) ? "takes small matrices"
                                                                   : mc_cuda_needs_sm80();
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    return mc_split_inline_seconds(p->m, p->n, p->k, p->batch, 1);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct split_inline *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    struct mc_split_inline_args *a = &d->c.args;
    d->base.run = run;
    *a = (struct mc_split_inline_args){ .m = (int)p->m,
                                        .n = (int)p->n,
                                        .k = (int)p->k,
                                        .batch = (int)p->batch,
                                        .outer = 1,
                                        .alpha = (float)p->alpha,
                                        .beta = (float)p->beta,
                                        .bs = p->bs[0],
                                        .cs = { p->cs[0], p->cs[1] },
                                        .b_terms = mc_split_inline_line(p->bs[1]),
                                        .b_cols = mc_split_inline_line(p->bs[2]),
                                        .c_cols = mc_split_inline_line(p->cs[2]),
                                        .around = { 1, 1 } };
    memcpy(a->as, p->as, sizeof p->as);
    memcpy(a->c0s, p->c0s, sizeof p->c0s);
    if (!mc_split_inline_make(&d->c, p->act, &d->base.workspace)) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

const struct mc_solver mc_gemm_cuda_split_inline = {
    .name = "cut", .refuse = refuse, .estimate = estimate, .plan = plan,
};
