/* joint.c: independent maps on the CPU, in one parallel region.
 *
 * Invariant: elements are computed by the kernels that compute them alone, so neither the number of threads
 * nor the join changes a bit. */
#include "exec/cpu/launch.h"

enum { CELL = 64 };             /* elements that are not divided: whole cache lines, and vectors */
struct member {
    struct mc_launch *l;
    const struct mc_kernel *kernel;
    int step;
    int64_t first;              /* its first cell, of those of all members */
    char **base;                /* by operand: its address in this call */
    bool stream;
};
struct joint {
    struct mc_exec exec;
    int n, threads;
    int64_t cells;
    char **addresses;           /* what members' `base` points into */
    struct member member[];
};

/* ---- running ---- */

/* Computes cells `from` to `to` of a member, counted from its first one. */
static void run_cells(const struct member *m, int64_t from, int64_t to)
{
    const struct mc_launch *l = m->l;
    const int64_t at = from * CELL;
    int64_t n[4] = { MC_MIN(to * CELL, l->n[0]) - at, 1, 1, m->stream }, err[4] = { 0 };
    char *p[MOST_OPERANDS + 1];
    for (int k = 0; k < l->nop; k++) {
        const struct mc_koperand *o = &m->kernel->operand.at[k];
        const int64_t by = at * l->s[3 * k] * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size);
        p[k] = (char *)((uintptr_t)m->base[k] + (uintptr_t)by);
    }
    p[l->nop] = NULL;
    l->fn(p, l->s, n, err);
}

static void work(void *arg, int64_t from, int64_t to, int thread)
{
    const struct joint *b = arg;
    int low = 0, high = b->n - 1;
    (void)thread;
    while (low < high) { /* the last member that begins at `from` or before */
        const int middle = (low + high + 1) / 2;
        low = b->member[middle].first <= from ? middle : low;
        high = b->member[middle].first <= from ? high : middle - 1;
    }
    for (; low < b->n && b->member[low].first < to; low++) {
        const struct member *m = &b->member[low];
        const int64_t end = low + 1 < b->n ? m[1].first : b->cells;
        if (end > m->first) {
            run_cells(m, MC_MAX(from, m->first) - m->first, MC_MIN(to, end) - m->first);
        }
    }
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    struct joint *b = (struct joint *)e;
    (void)step;
    for (int i = 0; i < b->n; i++) {
        struct member *m = &b->member[i];
        TRY(mc_bases(f, p, m->l, scratch, m->base));
        m->stream = mc_launch_can_stream(m->l, m->kernel, m->base);
    }
    mc_team_run(work, b, b->cells, 1, b->threads);
    return MC_OK;
}

static void release(struct mc_exec *e)
{
    struct joint *b = (struct joint *)e;
    for (int i = 0; i < b->n; i++) {
        mc_launch_free(b->member[i].l);
    }
    mc_free(b->addresses);
    mc_free(b);
}

static const struct mc_exec_ops ops = { .run = run, .free = release };

/* ---- planning ---- */

/* Is it one loop over contiguous elements, which any thread may take a part of? */
static bool is_one_loop(const struct mc_launch *l)
{
    return l && l->n[1] == 1 && l->n[2] == 1 && l->outer_total == 1 && !l->copies && !l->scratch;
}

mc_status mc_launch_joint(struct mc_function *f, struct mc_shape_plan *p, const int *step, int n)
{
    size_t operands = 0;
    struct joint *b = mc_calloc(1, sizeof *b + (size_t)n * sizeof *b->member, "plan");
    if (!b) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < n; i++) {
        struct mc_launch *l = mc_launch_of(p->step[step[i]].exec);
        if (is_one_loop(l)) {
            b->member[b->n++] = (struct member){ .l = l, .step = step[i], .first = b->cells };
            b->cells += (l->n[0] + CELL - 1) / CELL;
            operands += (size_t)l->nop;
        }
    }
    b->addresses = b->n > 1 ? mc_calloc(operands + 1, sizeof *b->addresses, "plan") : NULL;
    if (!b->addresses) {
        const bool few = b->n < 2;
        mc_free(b);
        return few ? MC_OK : MC_EMEMORY;
    }
    struct mc_step_plan *all = &p->step[b->member[0].step];
    char **base = b->addresses;
    for (int i = 0; i < b->n; i++) {
        struct member *m = &b->member[i];
        struct mc_step_plan *one = &p->step[m->step];
        m->kernel = f->code->program.step.at[m->step].kernel;
        m->base = base;
        base += m->l->nop;
        if (i) {
            all->flops += one->flops;
            all->bytes += one->bytes;
            one->flops = one->bytes = 0;
            one->exec = NULL;
        }
    }
    b->threads = mc_launch_threads(f, all->flops, all->bytes);
    b->exec.ops = &ops;
    all->exec = &b->exec;
    return MC_OK;
}
