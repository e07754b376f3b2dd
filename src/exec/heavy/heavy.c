/* heavy.c: solver steps: the family of each, and its functions. */
#include "exec/heavy/heavy.h"

/* A family's functions for a step. plan: at a shape; operands whose strides no solver takes are copied. run:
 * the plan. prepare: calls the plan's prepare() for the step's prepared memory. */
static const struct heavy {
    const char *family;
    mc_status (*plan)(struct mc_function *f, struct mc_shape_plan *p, int step);
    mc_status (*run)(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
    void (*prepare)(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
} rows[] = {
    [SOLVERS_GEMM] = { "gemm", mc_product_plan,  mc_product_run, mc_product_prepare },
    [SOLVERS_CONV] = { "conv", mc_convolve_plan, mc_convolve_run, mc_convolve_prepare },
    [SOLVERS_POOL] = { "pool", mc_pooling_plan,  mc_pooling_run },
    [SOLVERS_NORM] = { "norm", mc_across_plan,   mc_across_run },
};

static const struct heavy *row_of(const struct mc_step *st)
{
    const enum mc_solvers s = st->heavy->op->solvers;
    return s == SOLVERS_NONE ? NULL : &rows[s];
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    const struct mc_heavy *h = (struct mc_heavy *)e;
    if (h->idle) {
        return MC_OK;
    }
    if (h->pooled) {
        return mc_pooled_step_run(f, p, step, scratch);
    }
#ifndef MC_RUNTIME
    if (h->chain) {
        return mc_conv_chain_run(f, p, step, scratch);
    }
#endif
    const struct heavy *row = row_of(&f->code->program.step.at[step]);
    if (h->kept.calls && mc_heavy_is_due((struct mc_heavy *)e)) {
        row->prepare(f, p, step, scratch);
    }
    return row->run(f, p, step, scratch);
}

mc_status mc_heavy_prepare(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    struct mc_heavy *h = p->step[step].heavy;
    if (!h || h->idle || h->pooled || h->chain || !h->plan->prepare) {
        return MC_OK;
    }
    h->prepared = h->prepared ? h->prepared : mc_alloc_pages(h->plan->prepared, "loop");
    if (!h->prepared) {
        return MC_EMEMORY;
    }
    row_of(&f->code->program.step.at[step])->prepare(f, p, step, scratch);
    return MC_OK;
}

static const struct mc_exec_ops ops = { .run = run };

mc_status mc_heavy_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct heavy *row = row_of(&f->code->program.step.at[step]);
    if (!row) {
        return mc_fail(MC_EUNSUPPORTED, "no family of solvers for %s",
                       f->code->program.step.at[step].heavy->op->name);
    }
    struct mc_heavy *h = mc_calloc(1, sizeof *h, "plan");
    if (!h) {
        return MC_EMEMORY;
    }
    h->exec.ops = &ops;
    h->copy[0] = h->copy[1] = -1;
    p->step[step].heavy = h;
    return row->plan(f, p, step);
}

void mc_heavy_free(struct mc_heavy *h)
{
    if (h) {
        mc_plan_free(h->plan);
        mc_plan_free(h->pooled);
#ifndef MC_RUNTIME
        mc_conv_chain_free(h->chain);
#endif
        mc_launch_free(h->finish);
        mc_free_pages(h->prepared);
        mc_free(h);
    }
}

const char *mc_heavy_family(const struct mc_step *st)
{
    const struct heavy *h = row_of(st);
    return h ? h->family : "solver";
}

const char *mc_heavy_solver(const struct mc_heavy *h)
{
    return !h          ? ""
           : h->idle   ? "idle"
           : h->pooled ? h->pooled->solver->name
           : h->chain  ? "chain"
           : h->plan   ? h->plan->solver->name
                       : "";
}
