/* epilogue_kernel.c: what the families of solver steps share: operands, results, and the epilogue kernels
 * that run on finished blocks.
 *
 * Invariant: an epilogue kernel runs on disjoint boxes that cover the result, each after its last store. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"

int mc_heavy_source(const struct mc_function *f, const struct mc_node *n, int i)
{
    return f->code->program.value_of[n->in[i]->id];
}

int mc_heavy_result(const struct mc_step *st, int i)
{
    return st->dst[st->ndst - st->heavy->nout + i];
}

bool mc_heavy_reads(const struct mc_function *f, const struct mc_step *st, int v)
{
    const struct mc_program *p = &f->code->program;
    bool reads = false;
    for (int i = 0; st->heavy && i < st->heavy->nin; i++) {
        reads |= mc_value_root(p, mc_heavy_source(f, st->heavy, i)) == v;
    }
    for (int k = st->before; k >= 0; k = p->step.at[k].before) {
        for (int i = 0; i < p->step.at[k].nsrc; i++) {
            reads |= mc_value_root(p, p->step.at[k].src[i]) == v;
        }
    }
    return reads;
}

bool mc_heavy_calls_kernel(const struct mc_function *f, const struct mc_step *st)
{
    return st->kernel && f->code->backend->epilogues == EPILOGUE_BLOCKS;
}

size_t mc_heavy_copies(const struct mc_heavy *h)
{
    return h->finish ? h->finish->copies : 0;
}

/* ---- epilogue kernels ---- */

mc_status mc_epilogue_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    struct mc_launch *l = p->step[step].heavy->finish = mc_launch_new(f, step);
    int rank = st->kernel->rank;
    TRY(l ? mc_dense_plan(f, p, step, l) : MC_EMEMORY);
    for (int i = 0; i < l->nop; i++) {
        const struct mc_koperand *o = &st->kernel->operand.at[i];
        for (int a = 0; a < rank; a++) {
            l->step[i * MC_MAX_RANK + a] = mc_launch_stride(p->slot, o, l->value[i],
                                                            l->dense && l->dense[i] >= 0, a);
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

/* Are axes a and b one axis?  Each operand is contiguous across them, and the box has all of b. */
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
    for (second = a - 1; second > 0 && size[second] == 1;) {
        second--;
    }
    if (second >= 0) {
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
            p[i] = (char *)((uintptr_t)r->base[i] +
                            (uintptr_t)(by * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size)));
        }
        p[l->nop] = NULL;
        l->fn(p, s, n, err);
    }
    mc_running_tell(r, err);
}
