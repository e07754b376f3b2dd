/* exchange.c: on a GPU, a convolution computed by a solver for another direction
 * (heavy/conv/cpu/exchange.c has the algebra).
 *
 * Invariant: the child has the sums of the problem, element for element; alpha, beta and c0 are passed
 * through. */
#include "heavy/conv/cuda/cuda.h"

struct exchange {
    struct mc_plan base;
    int roles;
    int64_t shift;              /* bytes to the first element of the child's y */
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct exchange *d = (const struct exchange *)(const void *)plan;
    const int result = mc_conv_result(conv(plan->child[0]->problem)->s.pass);
    void *with[8] = { 0 };
    for (int i = CONV_X; i <= CONV_Y; i++) {
        with[i] = (char *)operand[mc_conv_exchange_role[d->roles][i]] + (i == CONV_Y ? d->shift : 0);
    }
    if (conv(plan->problem)->beta != 0) {
        with[CONV_C0] = (char *)operand[CONV_C0] + (result == CONV_Y ? d->shift : 0);
    }
    return plan->child[0]->run(plan->child[0], with, workspace, threads);
}

static struct mc_conv_problem child_of(const struct mc_conv_problem *p, int roles)
{
    struct mc_conv_problem c = roles == EXCHANGE_POSITIONS ? mc_conv_taps_as_positions(p)
                                                           : mc_conv_taps_reversed(p);
    c.inner |= INNER_EXCHANGE;
    return c;
}

static struct mc_plan *make(const struct mc_conv_problem *p, int roles)
{
    const struct mc_conv_problem c = child_of(p, roles);
    struct exchange *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->roles = roles;
    d->shift = mc_conv_exchange_shift(p, roles);
    d->base.child[0] = mc_conv_plan_in(p->base.family, &c, &p->base.options);
    if (!d->base.child[0]) {
        mc_free(d);
        return NULL;
    }
    d->base.workspace = d->base.child[0]->workspace;
    return &d->base;
}

static const char *refuse(const struct mc_conv_problem *p, const char *no)
{
    return no ? no : p->has_bias || p->act != ACT_NONE ? "fuses nothing" : NULL;
}

static double estimate(const struct mc_conv_problem *p, int roles)
{
    const struct mc_conv_problem c = child_of(p, roles);
    return 1.05 * mc_plan_cheapest(&c.base);
}

static const char *refuse_positions(const struct mc_problem *p)
{
    return refuse(conv(p), mc_conv_no_positions(conv(p)));
}

static double estimate_positions(const struct mc_problem *p)
{
    return estimate(conv(p), EXCHANGE_POSITIONS);
}

static struct mc_plan *plan_positions(const struct mc_problem *p)
{
    return make(conv(p), EXCHANGE_POSITIONS);
}

const struct mc_solver mc_conv_cuda_exchange = {
    .name = "exchange", .refuse = refuse_positions, .estimate = estimate_positions, .plan = plan_positions,
    .wraps = true, };

static const char *refuse_reversed(const struct mc_problem *p)
{
    return refuse(conv(p), mc_conv_no_reversed(conv(p)));
}

static double estimate_reversed(const struct mc_problem *p)
{
    return estimate(conv(p), EXCHANGE_REVERSED);
}

static struct mc_plan *plan_reversed(const struct mc_problem *p)
{
    return make(conv(p), EXCHANGE_REVERSED);
}

const struct mc_solver mc_conv_cuda_exchange_full = {
    .name = "exchange_full", .refuse = refuse_reversed, .estimate = estimate_reversed, .plan = plan_reversed,
    .wraps = true, };
