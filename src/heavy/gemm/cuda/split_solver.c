/* split_solver.c: float32 matrix products on Hopper's tensor cores, with operands split into pairs of
 * halves: several times the speed of the float32 units, with no larger error (split.cu has the algebra).
 *
 * Invariant: results from rows with an infinity are computed in plain float32, so that infinities and NaN
 * give the same results as in float32. */
#include "heavy/gemm/cuda/split.h"

struct split {
    struct mc_plan base;
    struct mc_split s;
    int64_t rows[2], steps;     /* rows of A and columns of B, padded to whole tiles */
    size_t at[5];               /* offsets in the workspace: `seen` of A and B, their halves, partial sums */
};

static size_t round_up(size_t n)
{
    return (n + 1023) / 1024 * 1024;
}

/* Packs the rows of A, or the columns of B, with k fastest. */
static mc_status pack(const struct split *d, const struct mc_gemm_problem *p, int which, const void *x,
                      char *workspace)
{
    const int64_t count = which ? p->n : p->m, *s = which ? p->bs : p->as;
    const struct mc_split_pack pack = {
        .x = x, .to = (void *)(workspace + d->at[2 + which]),
        .rows = (void *)(workspace + d->at[which]), .tile = which ? d->s.tn : SPLIT_TM,
        .xs = { s[0], 0, which ? s[2] : s[1], which ? s[1] : s[2] }, .inner = 1, .n_rows = (int)count,
        .n_cols = (int)p->k,
        .rows_pad = (int)d->rows[which], .cols_pad = (int)(d->steps * SPLIT_TK),
        .seen_outer = (int)count, .seen_row = 1, .up = SPLIT_UP,
    };
    return mc_split_pack_rows(&d->s.pack, &pack, (int)p->batch, (size_t)(count * p->batch));
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct split *d = (const struct split *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    const int64_t each = 2 * d->steps * SPLIT_TK;
    char *w = workspace;
    struct mc_split_args a = {
        .a = (void *)(w + d->at[2]), .b = (void *)(w + d->at[3]), .a_batch = d->rows[0] * each,
        .b_batch = d->rows[1] * each,
        .a_seen = (void *)(w + d->at[0]), .b_seen = (void *)(w + d->at[1]), .a_seen_batch = p->m,
        .b_seen_batch = p->n,
        .c = operand[GEMM_C], .c0 = p->beta != 0 ? operand[GEMM_C0] : NULL,
        .cs = { p->cs[0], 0, p->cs[1], p->cs[2] },
        .c0s = { p->c0s[0], 0, p->c0s[1], p->c0s[2] }, .m = (int)p->m, .n = (int)p->n,
        .steps = (int)d->steps, .parts = (int)p->batch,
        .a_seen_rows = 1, .b_seen_cols = 1, .group_rows = (int)p->m, .alpha = (float)p->alpha,
        .beta = (float)p->beta, .act = (int)p->act,
        .plain_a = operand[GEMM_A], .plain_b = operand[GEMM_B], .k = (int)p->k,
    };
    (void)threads;
    memcpy(a.as, p->as, sizeof a.as);
    memcpy(a.bs, p->bs, sizeof a.bs);
    TRY(pack(d, p, 0, operand[GEMM_A], w));
    TRY(pack(d, p, 1, operand[GEMM_B], w));
    return mc_split_run(&d->s, &a, w + d->at[4]);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t most = INT32_MAX / 2;
    return p->dtype != MC_FLOAT32 ? "takes float32 only"
           : mc_gemm_hollow(p)    ? mc_gemm_hollow(p)
           : p->m > most || p->n > most || p->k > most || p->batch > 65535 || p->m * p->n > most * 64
               ? "takes no sizes this large"
               : mc_hopper_refuse();
}

static struct mc_split_size size(const struct mc_gemm_problem *p)
{
    const int64_t steps = gemm_ceil(p->k, SPLIT_TK);
    return (struct mc_split_size){ p->m, p->n, p->batch, steps, steps };
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const struct mc_split_size z = size(p);
    return mc_split_seconds(mc_split_width(p->n, SPLIT_MATRICES), &z,
                            (double)(p->batch * z.steps * SPLIT_TK) * (double)(p->m + p->n));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct split *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    const struct mc_split_size z = size(p);
    d->s.tn = mc_split_width(p->n, SPLIT_MATRICES);
    d->steps = z.steps;
    d->rows[0] = gemm_ceil(p->m, SPLIT_TM) * SPLIT_TM;
    d->rows[1] = gemm_ceil(p->n, d->s.tn) * d->s.tn;
    if (mc_split_make(&d->s, SPLIT_MATRICES, 8, false, &z) < 0) {
        mc_free(d);
        return NULL;
    }
    const size_t batch = (size_t)p->batch, each = sizeof(struct mc_split_seen),
                 k = (size_t)d->steps * SPLIT_TK * 2 * sizeof(uint16_t);
    const size_t bytes[5] = { batch * (size_t)p->m * each, batch * (size_t)p->n * each,
                             batch * (size_t)d->rows[0] * k, batch * (size_t)d->rows[1] * k, d->s.partial };
    for (int i = 0; i < 5; i++) {
        d->at[i] = d->base.workspace;
        d->base.workspace += round_up(bytes[i]);
    }
    return &d->base;
}

const struct mc_solver mc_gemm_cuda_split = {
    .name = "split", .refuse = refuse, .estimate = estimate, .plan = plan,
};
