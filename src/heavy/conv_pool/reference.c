/* reference.c: the definition. It stores y, computed by the reference of convolutions or from maxima and
 * marks.
 *
 * Invariant: it refuses no pooled convolution. */
#include "heavy/conv_pool/solver.h"

static mc_status pool(const struct mc_pooled_problem *p, enum mc_pool_pass pass, char *y,
                      void *const *operand)
{
    const struct mc_pool_shape w = mc_pooled_windows(p, pass);
    const int64_t size = (int64_t)mc_dtypes[p->conv.dtype].size, each = (int64_t)mc_dtypes[p->marks].size;
    int64_t at[3][5], step = size;
    struct mc_pool_arrays a = { .dtype = p->conv.dtype,
                                .at = { y, operand[POOLED_G], operand[POOLED_MARKS] },
                                .strides = { at[0], at[1], at[2] } };
    for (int i = 4; i >= 0; i--) {
        at[POOL_X][i] = step;
        at[POOL_Y][i] = p->g[i] * size;
        at[POOL_KEY][i] = p->mark[i] * each;
        step *= w.dims[i];
    }
    return mc_pool_loops(&w, &a);
}

/* The convolution alone, with y in C order. */
static struct mc_plan *around_y(const struct mc_pooled_problem *p)
{
    struct mc_conv_problem q = p->conv;
    q.base = (struct mc_problem){ &mc_conv_family, p->base.options };
    q.has_epilogue = false;
    const struct mc_conv_array y = mc_conv_array(&q, CONV_Y);
    mc_conv_dense_strides(&y, q.at.y);
    return mc_plan_with(&q.base, &mc_conv_reference);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_pooled_problem *p = pooled(plan->problem);
    const bool forward = p->conv.s.pass == CONV_FORWARD;
    const struct mc_conv_array array = mc_conv_array(&p->conv, CONV_Y);
    char *y = mc_alloc_pages((size_t)mc_conv_count(&array) * mc_dtypes[p->conv.dtype].size, "planner");
    struct mc_plan *unfused = y ? around_y(p) : NULL;
    void *with[CONV_NOPERAND] = { [CONV_X] = operand[POOLED_X], [CONV_W] = operand[POOLED_W], [CONV_Y] = y };
    (void)workspace;
    mc_status s = !unfused ? MC_EMEMORY : forward ? MC_OK : pool(p, POOL_SPREAD, y, operand);
    s = s < 0 ? s : unfused->run(unfused, with, NULL, threads);
    s = s < 0 || !forward ? s : pool(p, POOL_FORWARD, y, operand);
    mc_plan_free(unfused);
    mc_free_pages(y);
    return s;
}

static double estimate(const struct mc_problem *p)
{
    return 1e-6 + 1e-9 * mc_conv_flops(&pooled(p)->conv);
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    (void)p;
    return mc_plan_bare(run);
}

const struct mc_solver mc_pooled_reference = { .name = "reference", .estimate = estimate, .plan = plan };
