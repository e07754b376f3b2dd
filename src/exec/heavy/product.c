/* product.c: matrix products at one shape: the gemm problem, the solver plan, operands that must be copied
 * first, the epilogue kernel on each tile. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "heavy/gemm/gemm.h"

/* Strides of a matrix in elements.  False: neither of its last two strides is 1, so it must be copied. */
static bool matrix_strides(const struct mc_slot *p, int64_t out[3])
{
    int r = p->type.rank;
    int64_t size = (int64_t)mc_dtypes[p->type.dtype].size, rows = p->type.dims[r - 2],
            cols = p->type.dims[r - 1];
    out[0] = r == 3 ? p->strides[0] / size : 0;
    out[1] = p->strides[r - 2] / size;
    out[2] = p->strides[r - 1] / size;
    if (cols == 1 && out[1] != 1) {
        out[2] = 1;
    } else if (rows == 1 && out[2] != 1) {
        out[1] = 1;
    }
    bool by_row = out[2] == 1 && (out[1] >= cols || rows == 1),
         by_col = out[1] == 1 && (out[2] >= rows || cols == 1);
    if (by_row && rows == 1 && out[1] < cols) {
        out[1] = cols;
    }
    if (by_col && !by_row && cols == 1 && out[2] < rows) {
        out[2] = rows;
    }
    return by_row || by_col;
}

static void dense_strides(const struct mc_slot *p, int64_t out[3])
{
    int r = p->type.rank;
    out[2] = 1;
    out[1] = p->type.dims[r - 1];
    out[0] = p->type.dims[r - 1] * p->type.dims[r - 2];
}

/* May a solver compute the epilogue?  On the host solvers add C0 and apply no activation; the portable ones
 * do not add C0 either.  Halves need the step's kernel, too: their sums are rounded before a term is
 * added. */
static bool by_solver(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                      const struct mc_gemm_problem *q, struct mc_heavy_epilogue *e)
{
    const int axis = f->code->program.step.at[step].heavy->type.rank - 1;
    if (q->has_epilogue) {
        return f->code->mode == MODE_FAST_RUN && !p->options.portable && mc_dtypes[q->dtype].size > 2 &&
               mc_heavy_epilogue_terms(f, p, step, axis, e) && e->act == ACT_NONE;
    }
    return mc_heavy_epilogue_at(f, p, step, axis, e);
}

/* Adds the epilogue to the problem, with its one term as C0, of any strides.  False: the step's kernel
 * computes it. */
static bool with_epilogue(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                          struct mc_gemm_problem *q, struct mc_heavy_epilogue *e)
{
    const int r = f->code->program.step.at[step].heavy->type.rank;
    if (!by_solver(f, p, step, q, e) || (e->bias >= 0) + (e->residual >= 0) + (e->other >= 0) > 1) {
        return false;
    }
    const int term = mc_heavy_term(e);
    for (int i = 0; term >= 0 && i < 3; i++) {
        const struct mc_slot *c0 = &p->slot[term];
        const int a = r - 3 + i;
        q->c0s[i] = a < 0 || c0->type.dims[a] == 1 ? 0 : c0->strides[a] / (int64_t)mc_dtypes[q->dtype].size;
    }
    q->has_epilogue = false;
    q->residual = term >= 0;
    q->beta = term >= 0;
    q->act = e->act;
    return true;
}

mc_status mc_product_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_node *n = st->heavy;
    struct mc_step_plan *sp = &p->step[step];
    struct mc_heavy *h = sp->heavy;
    int c = st->kernel ? st->operand[st->product] : st->dst[0];
    const struct mc_slot *a = &p->slot[mc_heavy_source(f, n, 0)], *b = &p->slot[mc_heavy_source(f, n, 1)],
                         *y = &p->slot[c];
    struct mc_gemm_problem q;
    int r = a->type.rank;
    q = (struct mc_gemm_problem){ .dtype = y->type.dtype,
                                  .batch = r == 3 ? y->type.dims[0] : 1,
                                  .m = a->type.dims[r - 2],
                                  .k = a->type.dims[r - 1],
                                  .n = b->type.dims[r - 1],
                                  .alpha = 1,
                                  .has_epilogue = mc_heavy_calls_kernel(f, st) };
    size_t copies = 0;
    if (!matrix_strides(a, q.as)) {
        dense_strides(a, q.as);
        h->copy[0] = (int64_t)copies;
        copies += mc_work_rounded(mc_slot_bytes(a));
    }
    if (!matrix_strides(b, q.bs)) {
        dense_strides(b, q.bs);
        h->copy[1] = (int64_t)copies;
        copies += mc_work_rounded(mc_slot_bytes(b));
    }
    if (r == 3) {
        TRY(mc_product_fits(n, a->type.dims[0], b->type.dims[0]));
        q.as[0] = a->type.dims[0] == 1 ? 0 : q.as[0];
        q.bs[0] = b->type.dims[0] == 1 ? 0 : q.bs[0];
    }
    dense_strides(y, q.cs);
    q.b_stays = q.batch == 1 && h->copy[1] < 0 && mc_heavy_stays(f, mc_heavy_source(f, n, 1));
    struct mc_gemm_problem whole = q;
    const struct mc_backend *backend = f->code->backend;
    const struct mc_plan_options *o = &p->options;
#ifndef MC_RUNTIME
    struct mc_plan_options same = p->options;
    if (f->like) {
        same.solver = f->like->step[step].heavy->plan->solver;
        o = &same;
    }
#endif
    h->plan = with_epilogue(f, p, step, &whole, &h->epilogue) ? backend->product(&whole, o) : NULL;
    h->epilogue.by_solver = h->plan != NULL;
    if (!h->plan) { /* also where the solver that a flag names computes no epilogue */
        h->plan = backend->product(&q, o);
    }
    if (!h->plan) {
        return mc_last_status();
    }
    if (q.b_stays) {
        mc_heavy_keep(f, h, mc_heavy_source(f, n, 1));
    }
    sp->flops = 2.0 * (double)q.batch * (double)q.m * (double)q.n * (double)q.k;
    mc_status s = q.has_epilogue && !h->epilogue.by_solver ? mc_epilogue_plan(f, p, step) : MC_OK;
    sp->workspace = copies + mc_heavy_copies(h) + h->plan->workspace + 64;
    return s;
}

void mc_product_prepare(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_heavy *h = p->step[step].heavy;
    const int b = mc_heavy_source(f, f->code->program.step.at[step].heavy, 1);
    void *operand[MC_PLAN_OPERANDS] = { [GEMM_B] = f->ptr[b] };
    h->plan->prepare(h->plan, operand, h->prepared, scratch, f->threads);
}

mc_status mc_product_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_node *n = st->heavy;
    const struct mc_heavy *h = p->step[step].heavy;
    char *base[MOST_OPERANDS + 1];
    struct mc_running r = { .st = st, .l = h->finish, .base = base };
    int v[2] = { mc_heavy_source(f, n, 0), mc_heavy_source(f, n, 1) },
        c = st->kernel ? st->operand[st->product] : st->dst[0];
    const struct mc_heavy_epilogue *e = &h->epilogue;
    const int term = e->by_solver ? mc_heavy_term(e) : -1;
    void *operand[MC_PLAN_OPERANDS] = { f->ptr[v[0]], f->ptr[v[1]], f->ptr[e->by_solver ? e->result : c],
                                        term >= 0 ? f->ptr[term] : NULL };
    operand[MC_PREPARED] = h->prepared;
    char *work = scratch;
    for (int i = 0; i < 2; i++) {
        if (h->copy[i] >= 0) {
            TRY(f->code->backend->copy(f, &p->slot[v[i]], f->ptr[v[i]], scratch + h->copy[i]));
            operand[i] = scratch + h->copy[i];
            work = MC_MAX(work, scratch + h->copy[i] + mc_work_rounded(mc_slot_bytes(&p->slot[v[i]])));
        }
    }
    if (h->finish) {
        TRY(mc_bases(f, p, h->finish, work, base));
        work += mc_heavy_copies(h);
        mc_gemm_epilogue *tile = mc_launch_tile;
        memcpy(&operand[GEMM_EPILOGUE], &tile, sizeof tile); /* a function's address as an operand */
        operand[GEMM_EPILOGUE_ARG] = &r;
    }
    TRY(h->plan->run(h->plan, operand, work, f->threads));
    return mc_running_end(f, p, step, &r);
}
