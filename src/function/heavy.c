/* heavy.c: steps that a family of solvers does, and the kernels that finish what they make.
 *
 * Invariant: a finishing kernel runs on disjoint boxes that cover the result, each after its last store. */
#include "function/function.h"

/* What a family does with a step: plans it at a shape, with its operands copied where no solver could walk them; runs it. */
static const struct heavy {
    const char *op, *family;
    mc_status (*plan)(struct mc_function *f, struct mc_shape_plan *p, int step);
    mc_status (*run)(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch);
} rows[] = {
    { "dot",          "gemm", mc_product_plan,  mc_product_run },
    { "batched_dot",  "gemm", mc_product_plan,  mc_product_run },
    { "conv",         "conv", mc_convolve_plan, mc_convolve_run },
    { "conv_inputs",  "conv", mc_convolve_plan, mc_convolve_run },
    { "conv_weights", "conv", mc_convolve_plan, mc_convolve_run },
    { "pool",         "pool", mc_pooling_plan,  mc_pooling_run },
    { "pool_max",     "pool", mc_pooling_plan,  mc_pooling_run },
    { "pool_spread",  "pool", mc_pooling_plan,  mc_pooling_run },
    { "pool_gather",  "pool", mc_pooling_plan,  mc_pooling_run },
    { "map_norm",     "norm", mc_across_plan,   mc_across_run },
    { "map_norm_grad", "norm", mc_across_plan,  mc_across_run },
};

static const struct heavy *row_of(const struct mc_step *st)
{
    for (size_t i = 0; i < NELEM(rows); i++) {
        if (strcmp(rows[i].op, st->heavy->op->name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

mc_status mc_heavy_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct heavy *h = row_of(&f->code->program.step.at[step]);
    return h ? h->plan(f, p, step) : mc_fail(MC_EUNSUPPORTED, "no family of solvers for %s", f->code->program.step.at[step].heavy->op->name);
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e, char *scratch)
{
    (void)e;
    const struct mc_step_plan *sp = &p->step[step];
    return sp->idle     ? MC_OK
           : sp->joined ? mc_joined_run(f, p, step, scratch)
                        : row_of(&f->code->program.step.at[step])->run(f, p, step, scratch);
}

static const struct mc_exec_ops ops = { .run = run };
struct mc_exec mc_exec_heavy = { &ops };

const char *mc_heavy_family(const struct mc_step *st)
{
    const struct heavy *h = row_of(st);
    return h ? h->family : "solver";
}

const char *mc_heavy_solver(const struct mc_step_plan *sp)
{
    return sp->idle ? "idle" : sp->joined ? sp->joined->solver->name : sp->plan ? sp->plan->solver->name : "";
}

int mc_heavy_source(const struct mc_function *f, const struct mc_node *n, int i)
{
    return f->code->program.value_of[n->in[i]->id];
}

int mc_heavy_result(const struct mc_step *st, int i)
{
    return st->dst[st->ndst - st->heavy->nout + i];
}

/* ---- finishing kernels ---- */

mc_status mc_epilogue_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_launch *l = &p->step[step].launch;
    int nop = (int)st->kernel->operand.n, rank = st->kernel->rank;
    *l = (struct mc_launch){ .fn = f->code->fn[step], .nop = nop };
    l->value = mc_calloc((size_t)nop + 1, sizeof *l->value, "plan");
    l->step = mc_calloc((size_t)nop * MC_MAX_RANK + 1, sizeof *l->step, "plan");
    l->s = mc_calloc((size_t)nop * 3 + 1, sizeof *l->s, "plan");
    if (!l->value || !l->step || !l->s) {
        return MC_EMEMORY;
    }
    TRY(mc_dense_plan(f, p, step, &l->copies));
    for (int i = 0; i < nop; i++) {
        const struct mc_koperand *o = &st->kernel->operand.at[i];
        l->value[i] = o->index ? -1 : st->operand[i];
        for (int a = 0; a < rank; a++) {
            bool dense = p->step[step].dense && p->step[step].dense[i] >= 0;
            l->step[i * MC_MAX_RANK + a] = mc_launch_stride(p->place, o, l->value[i], dense, a);
        }
    }
    double flops = st->kernel->flops;
    for (int a = 0; a < rank; a++) {
        l->outer[a] = p->step[step].space[a];
        flops *= (double)l->outer[a];
    }
    p->step[step].flops += flops;
    return MC_OK;
}

/* Axis b stands right behind a for every operand, and all of it is in the box: the two are one axis. */
static bool joins(const struct mc_launch *l, int a, int b, int64_t size)
{
    if (size != l->outer[b]) {
        return false;
    }
    for (int k = 0; k < l->nop; k++) {
        if (l->step[k * MC_MAX_RANK + a] != l->step[k * MC_MAX_RANK + b] * size) {
            return false;
        }
    }
    return true;
}

void mc_launch_box(struct mc_running *r, const int64_t *at, const int64_t *size)
{
    const struct mc_launch *l = r->l;
    const struct mc_kernel *k = r->st->kernel;
    int64_t n[4] = { 1, 1, 1, 0 }, s[3 * MOST_OPERANDS], err[4] = { 0 }, count = 1;
    int inner = MC_MAX(k->inner, 0), a = inner, second = -1;
    n[0] = size[inner];
    for (; a > 0 && joins(l, a - 1, a, size[a]); a--) {
        n[0] *= size[a - 1];
    }
    if (a > 0) {
        second = a - 1;
        n[1] = size[second];
    }
    for (int i = 0; i < l->nop; i++) {
        s[3 * i] = l->step[i * MC_MAX_RANK + inner];
        s[3 * i + 1] = second < 0 ? 0 : l->step[i * MC_MAX_RANK + second];
        s[3 * i + 2] = 0;
    }
    for (int b = 0; b < second; b++) {
        count *= size[b];
    }
    for (int64_t c = 0; c < count; c++) {
        char *p[MOST_OPERANDS + 1];
        int64_t where[MC_MAX_RANK], left = c;
        for (int b = k->rank; b-- > 0;) {
            bool outer = b < second;
            where[b] = at[b] + (outer ? left % size[b] : 0);
            left = outer ? left / size[b] : left;
        }
        for (int i = 0; i < l->nop; i++) {
            const struct mc_koperand *o = &k->operand.at[i];
            int64_t by = 0;
            for (int b = 0; b < k->rank; b++) {
                by += where[b] * l->step[i * MC_MAX_RANK + b];
            }
            p[i] = (char *)((uintptr_t)r->base[i] + (uintptr_t)(by * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size)));
        }
        p[l->nop] = NULL;
        l->fn(p, s, n, err);
    }
    mc_running_tell(r, err);
}
