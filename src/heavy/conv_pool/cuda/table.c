/* table.c: the family of pooled convolutions on a GPU: the problems of the host's family with solvers of
 * its own. */
#include "heavy/cuda/cuda.h"
#include "heavy/conv_pool/solver.h"

static const struct mc_solver *const solvers[] = { &mc_pooled_cuda_small_channels, NULL };

/* ---- operands ---- */

/* Random, except for marks. */
static mc_status operands(const struct mc_problem *p_, void *operand[8])
{
    const struct mc_pooled_problem *p = pooled(p_);
    struct mc_extent e[POOLED_NEXTENT];
    mc_pooled_extents(p, e);
    const size_t size = mc_dtypes[p->marks].size, bytes = (size_t)e[POOLED_MARKS].count * size,
                 front = (size_t)e[POOLED_MARKS].before * size;
    char *marks = mc_alloc_pages(bytes, "planner");
    mc_status s = marks ? mc_cuda_operands(e, POOLED_NEXTENT, operand) : MC_EMEMORY;
    if (s >= 0) {
        mc_pooled_some_marks(p, marks + front);
        s = mc_cuda_copy_to_device(mc_cuda_current(), (char *)operand[POOLED_MARKS] - front, marks, bytes);
        if (s < 0) {
            mc_cuda_discard(e, POOLED_NEXTENT, operand);
        }
    }
    mc_free_pages(marks);
    return s;
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[POOLED_NEXTENT];
    mc_pooled_extents(pooled(p), e);
    mc_cuda_discard(e, POOLED_NEXTENT, operand);
}

/* Bias and activation of the maxima. */
static void after(const struct mc_problem *p_, void *const *operand)
{
    const struct mc_pooled_problem *p = pooled(p_);
    const int64_t size[] = { p->conv.s.n, p->conv.s.f, p->out[0], p->out[1], p->out[2] };
    if (p->conv.s.pass == CONV_FORWARD) {
        mc_cuda_finish_on_host(&(struct mc_cuda_finish){ p->conv.dtype, 5, 1, size, p->g, p->conv.act },
                               operand[POOLED_G], p->conv.has_bias ? operand[POOLED_BIAS] : NULL);
    }
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan)
{
    static const struct mc_cuda_check check = { &mc_pooled_family, &mc_pooled_reference, after,
                                                mc_pooled_compare };
    struct mc_extent e[POOLED_NEXTENT];
    mc_pooled_extents(pooled(p), e);
    return mc_cuda_verify(&check, p, plan, e, POOLED_NEXTENT);
}

const struct mc_family mc_pooled_cuda = {
    .name         = "pooled",
    .solvers      = solvers,
    .problem_size = sizeof(struct mc_pooled_problem),
    .site         = &mc_site_cuda,
    .key         = mc_pooled_key,
    .operands     = operands,
    .discard      = discard,
    .verify       = verify,
};

struct mc_plan *mc_pooled_cuda_plan(const struct mc_pooled_problem *p, const struct mc_plan_options *o)
{
    return mc_pooled_plan_in(&mc_pooled_cuda, p, o);
}
