/* reference.c: the definition of a matrix product; every faster solver is tested against it.
 *
 * Invariant: every element of C is one float64 sum over k in order, rounded once. */
#include "heavy/gemm/solver.h"

enum { ROWS = 8, COLS = 64 };

struct block {
    double acc[ROWS][COLS], a[ROWS], b[COLS];
};

static double number(mc_dtype d, const void *p)
{
    return mc_load_f64(d, p);
}

static void store(const struct mc_gemm_run *r, const struct block *t, int64_t batch, int64_t i0, int64_t j0,
                  int64_t m, int64_t n)
{
    const mc_dtype d = r->p->dtype;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double v = r->p->alpha * t->acc[i][j];
            if (r->c0) {
                v += r->p->beta * number(d, gemm_c0(r, batch, i0 + i, j0 + j));
            }
            mc_store_f64(d, gemm_c(r, batch, i0 + i, j0 + j), v);
        }
    }
}

/* Rows [i0, i0+m) and columns [j0, j0+n). */
static void multiply(const struct mc_gemm_run *r, int64_t batch, int64_t i0, int64_t j0, int64_t m, int64_t n)
{
    const mc_dtype d = r->p->dtype;
    const int64_t *as = r->p->as, *bs = r->p->bs;
    struct block t = { 0 };
    for (int64_t k = 0; k < r->p->k; k++) {
        mc_convert(MC_FLOAT64, t.a, sizeof(double), d, gemm_a(r, batch, i0, k), as[1] * r->size, m);
        mc_convert(MC_FLOAT64, t.b, sizeof(double), d, gemm_b(r, batch, k, j0), bs[2] * r->size, n);
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j < COLS; j++) {
                t.acc[i][j] += t.a[i] * t.b[j];
            }
        }
    }
    store(r, &t, batch, i0, j0, m, n);
}

static void row_block(void *arg, int64_t task, int slot)
{
    const struct mc_gemm_run *r = arg;
    const int64_t blocks = gemm_ceil(r->p->m, ROWS), batch = task / blocks, i = task % blocks * ROWS;
    const int64_t m = MC_MIN(r->p->m - i, (int64_t)ROWS);
    (void)slot;
    for (int64_t j = 0; j < r->p->n; j += COLS) {
        multiply(r, batch, i, j, m, MC_MIN(r->p->n - j, (int64_t)COLS));
    }
    gemm_finish(r, batch, i, 0, m, r->p->n);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    struct mc_gemm_run r = mc_gemm_bind(plan, operand, workspace, threads);
    if (r.p->n > 0) {
        mc_team_tasks(row_block, &r, r.p->batch * gemm_ceil(r.p->m, ROWS), r.threads, r.threads,
                      mc_gemm_work(r.p));
    }
    return MC_OK;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    return 1e-7 + (double)p->batch * (double)p->m * (double)p->n * (10e-9 + 0.7e-9 * (double)p->k);
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    (void)p;
    return mc_plan_bare(run);
}

const struct mc_solver mc_gemm_reference = { .name = "reference", .portable = MC_PORTABLE, .estimate = estimate, .plan = plan };
