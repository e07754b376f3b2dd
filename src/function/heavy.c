/* heavy.c: steps that a family of solvers does, and the kernels that finish what they make.
 *
 * Invariant: a finishing kernel runs on disjoint boxes that cover the result, each after its last store. */
#include "function/backend.h"
#include "function/heavy.h"

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

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e, char *scratch)
{
    const struct mc_heavy *h = (struct mc_heavy *)e;
    return h->idle     ? MC_OK
           : h->joined ? mc_joined_run(f, p, step, scratch)
                       : row_of(&f->code->program.step.at[step])->run(f, p, step, scratch);
}

static const struct mc_exec_ops ops = { .run = run };

mc_status mc_heavy_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct heavy *row = row_of(&f->code->program.step.at[step]);
    if (!row) {
        return mc_fail(MC_EUNSUPPORTED, "no family of solvers for %s", f->code->program.step.at[step].heavy->op->name);
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
        mc_plan_free(h->joined);
        mc_launch_free(h->finish);
        mc_free(h);
    }
}

bool mc_heavy_calls_kernel(const struct mc_function *f, const struct mc_step *st)
{
    return st->kernel && f->code->backend->epilogues == EPILOGUE_BLOCKS;
}

size_t mc_heavy_copies(const struct mc_heavy *h)
{
    return h->finish ? h->finish->copies : 0;
}

const char *mc_heavy_family(const struct mc_step *st)
{
    const struct heavy *h = row_of(st);
    return h ? h->family : "solver";
}

const char *mc_heavy_solver(const struct mc_heavy *h)
{
    return !h ? "" : h->idle ? "idle" : h->joined ? h->joined->solver->name : h->plan ? h->plan->solver->name : "";
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
    struct mc_launch *l = p->step[step].heavy->finish = mc_launch_new(f, step);
    int rank = st->kernel->rank;
    TRY(l ? mc_dense_plan(f, p, step, l) : MC_EMEMORY);
    for (int i = 0; i < l->nop; i++) {
        const struct mc_koperand *o = &st->kernel->operand.at[i];
        for (int a = 0; a < rank; a++) {
            l->step[i * MC_MAX_RANK + a] = mc_launch_stride(p->place, o, l->value[i], l->dense && l->dense[i] >= 0, a);
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
