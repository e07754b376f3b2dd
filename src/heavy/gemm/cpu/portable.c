/* portable.c: products as portable sums: each result is one sum over k in order, or, where both operands are
 * contiguous along k, sixteen partial sums.
 *
 * Invariant: the bits depend on the problem alone, and are those of an exported file. */
#include "heavy/gemm/solver.h"
#include "heavy/portable/portable.h"

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_gemm_run r = mc_gemm_bind(plan, operand, workspace, threads);
    void *const memory[] = { operand[GEMM_A], operand[GEMM_B], operand[GEMM_C], workspace };
    mc_portable_run(mc_portable_program_of(plan), memory);
    mc_gemm_finish_all(&r);
    return MC_OK;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    return p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64      ? "takes float32 and float64 only"
           : p->alpha != 1 || p->beta != 0 || p->act != ACT_NONE ? "computes the bare product only"
                                                                 : mc_gemm_hollow(p);
}

/* Are both operands contiguous along k? */
static bool by_k(const struct mc_gemm_problem *p)
{
    return p->bs[2] != 1 && p->n > 1 && p->bs[1] == 1 && (p->as[2] == 1 || p->k == 1);
}

static const char *refuse_columns(const struct mc_problem *p)
{
    const char *no = refuse(p);
    return no ? no : by_k(gemm(p)) ? NULL : "takes operands that are contiguous along k";
}

/* They run in one thread.  Under the flag portable they come before the reference. */
static double by_rank(const struct mc_problem *p, int rank)
{
    return p->options.portable ? 1e-9 * rank : 1e-6 + (19 + rank) * mc_gemm_work(gemm(p));
}

static double estimate(const struct mc_problem *p)
{
    return by_rank(p, 2);
}

/* It comes first where partial sums along k would be of a few elements. */
static double estimate_columns(const struct mc_problem *p)
{
    enum { SHORT = 32 };
    return by_rank(p, gemm(p)->k < SHORT && gemm(p)->m >= 8 ? 1 : 3);
}

/* Copies a matrix to the workspace, transposed: to [cols][rows]. */
static bool transpose(struct mc_portable_program *to, const struct mc_portable_at *from, const int64_t s[3],
                      int64_t rows, int64_t cols)
{
    struct mc_portable_call *c = mc_portable_add(to, PORTABLE_COPY, 0);
    if (c) {
        const int64_t g[12] = { 1, 1, cols, rows, 0, 0, rows, 1, 0, 0, s[2], s[1] };
        memcpy(c->g, g, sizeof g);
        c->from = *from;
        c->to = (struct mc_portable_at){ .memory = PORTABLE_WORKSPACE };
        to->workspace = rows * cols;
    }
    return c != NULL;
}

/* B is contiguous along n, or a copy is. */
static bool columns(struct mc_portable_program *to, const struct mc_gemm_problem *p)
{
    struct mc_portable_at b = { .memory = GEMM_B, .group = p->bs[0] };
    int64_t row = p->bs[1];
    if (p->bs[2] != 1 && p->n > 1) {
        if (!transpose(to, &b, (const int64_t[3]){ 0, p->bs[2], p->bs[1] }, p->n, p->k)) {
            return false;
        }
        b = (struct mc_portable_at){ .memory = PORTABLE_WORKSPACE };
        row = p->n;
    }
    struct mc_portable_call *c = mc_portable_add(to, PORTABLE_COLUMNS, 2);
    if (c) {
        /* many rows read a column of B: it is copied first, so that its elements adjoin */
        const bool packs = p->m >= 64 && p->k >= 64;
        const int64_t g[12] = { p->m, p->k, 1, p->n, p->as[1], p->as[2], row, p->cs[1], packs ? p->n : 0, 1 };
        memcpy(c->g, g, sizeof g);
        c->with = (struct mc_portable_at){ .memory = GEMM_A, .group = p->as[0] };
        c->from = b;
        c->to = (struct mc_portable_at){ .memory = GEMM_C, .group = p->cs[0] };
        mc_portable_panel(to, c);
    }
    return c != NULL;
}

static bool dots(struct mc_portable_program *to, const struct mc_gemm_problem *p)
{
    struct mc_portable_call *c = mc_portable_add(to, PORTABLE_DOTS, 2);
    if (c) {
        const int64_t g[14] = { p->m, p->n, 1, 1, p->k, p->as[1], 0, p->bs[2], p->cs[1], 1 };
        memcpy(c->g, g, sizeof g);
        c->from = (struct mc_portable_at){ .memory = GEMM_A, .group = p->as[0] };
        c->with = (struct mc_portable_at){ .memory = GEMM_B, .group = p->bs[0] };
        c->to = (struct mc_portable_at){ .memory = GEMM_C, .group = p->cs[0] };
        mc_portable_panel(to, c);
    }
    return c != NULL;
}

static struct mc_plan *plan_of(const struct mc_gemm_problem *p, bool use_dots)
{
    struct mc_portable_plan *made = mc_portable_plan(run);
    if (!made) {
        return NULL;
    }
    made->program.dtype = p->dtype;
    made->program.groups = p->batch;
    return mc_portable_finish(made, use_dots ? dots(&made->program, p) : columns(&made->program, p));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    return plan_of(gemm(p), by_k(gemm(p)));
}

static struct mc_plan *plan_columns(const struct mc_problem *p)
{
    return plan_of(gemm(p), false);
}

const struct mc_solver mc_gemm_portable = {
    .name = "portable",
    .portable = true,
    .refuse = refuse,
    .estimate = estimate,
    .plan = plan,
};

const struct mc_solver mc_gemm_portable_columns = {
    .name = "portable_columns",
    .portable = true,
    .refuse = refuse_columns,
    .estimate = estimate_columns,
    .plan = plan_columns,
};
