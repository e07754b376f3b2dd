/* run.c: the operands of a call, C0 and the epilogue, and the parts of estimates.
 *
 * Invariant: a task may run on any thread and in any order; no two write the same element. */
#include "heavy/gemm/solver.h"
#include "device/cpu/cpu.h"

/* ---- operands ---- */

struct mc_gemm_run mc_gemm_bind(const struct mc_plan *plan, void *const *operand, void *workspace,
                                int threads)
{
    const struct mc_gemm_problem *p = gemm(plan->problem);
    struct mc_gemm_run r = {
        .p = p, .a = operand[GEMM_A], .b = operand[GEMM_B], .c = operand[GEMM_C],
        .arg = operand[GEMM_EPILOGUE_ARG],
        .size = mc_dtypes[p->dtype].size, .workspace = workspace,
        .threads = threads > 0 ? threads : mc_team_size(),
    };
    if (p->b_stays) {
        r.prepared = operand[MC_PREPARED];
    }
    if (p->beta != 0) {
        r.c0 = operand[GEMM_C0];
    }
    if (p->has_epilogue) {
        /* ISO C has no cast from void * to a function pointer */
        memcpy(&r.epilogue, &operand[GEMM_EPILOGUE], sizeof r.epilogue);
    }
    return r;
}

/* ---- C0 and the epilogue ---- */

void mc_gemm_tile_c0(const struct mc_gemm_run *r, int64_t batch, int64_t i, int64_t j, struct mc_gemm_tile *t,
                     void *spare)
{
    const int64_t *s = r->p->c0s;
    t->beta = 0;
    if (!r->c0) {
        return;
    }
    t->beta = r->p->beta;
    t->c0 = gemm_c0(r, batch, i, j);
    t->c0_row = s[1];
    if (s[2] != 1 && t->n > 1) {
        for (int64_t y = 0; y < t->m; y++) {
            for (int64_t x = 0; x < t->n; x++) {
                memcpy((char *)spare + (y * t->n + x) * r->size, gemm_c0(r, batch, i + y, j + x),
                       (size_t)r->size);
            }
        }
        t->c0 = spare;
        t->c0_row = t->n;
    }
}

enum { FINISH_ROWS = 64 };

static void finish_rows(void *arg, int64_t task, int slot)
{
    const struct mc_gemm_run *r = arg;
    const int64_t blocks = gemm_ceil(r->p->m, FINISH_ROWS);
    const int64_t i = task % blocks * FINISH_ROWS;
    (void)slot;
    gemm_finish(r, task / blocks, i, 0, MC_MIN(r->p->m - i, FINISH_ROWS), r->p->n);
}

void mc_gemm_finish_all(const struct mc_gemm_run *r)
{
    const struct mc_gemm_problem *p = r->p;
    if (r->epilogue && p->n > 0) {
        mc_team_tasks(finish_rows, (void *)r, p->batch * gemm_ceil(p->m, FINISH_ROWS), r->threads, r->threads,
                      (double)p->batch * (double)p->m * (double)p->n * 1e-10);
    }
}

bool mc_gemm_streams(const struct mc_gemm_problem *p)
{
    const int64_t size = mc_dtypes[p->dtype].size;
    const double bytes = (double)p->batch * (double)p->m * (double)p->n * (double)size;
    return size > 2 && mc_gemm_kernel(p->dtype)->drain && (p->beta == 0 || p->residual) && !p->has_epilogue &&
           bytes > (double)mc_cpu()->shared;
}

/* ---- estimates ---- */

/* Threads assumed by estimates.  With the real number the selected solver, and so the bits, would depend
 * on it. */
enum { NOMINAL = 4 };

static const double clock_hz = 3.5e9;

double mc_gemm_peak(const struct mc_gemm_problem *p)
{
    return mc_gemm_kernel(p->dtype)->flops * clock_hz;
}

static double bytes_of(const struct mc_gemm_problem *p)
{
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    return (double)p->batch * (m * k + k * n + 2 * m * n) * mc_dtypes[p->dtype].size;
}

/* Rather too many seconds: one thread too many costs little, one too few up to half of the speed. */
double mc_gemm_work(const struct mc_gemm_problem *p)
{
    const double math = 2 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k / mc_gemm_peak(p);
    const double bytes = bytes_of(p);
    return MC_MAX(math, bytes / (bytes < (double)mc_cpu()->l2 ? 60e9 : 15e9));
}

double mc_gemm_team_seconds(double seconds, double tasks)
{
    static const double wake = 1e-6;
    return seconds < MC_TEAM_WORTH ? seconds : seconds / MC_MIN((double)NOMINAL, MC_MAX(tasks, 1)) + wake;
}

/* Cached operands are mostly read while sums are computed; traffic with memory is not hidden. */
double mc_gemm_traffic(const struct mc_gemm_problem *p)
{
    const double bytes = bytes_of(p);
    return bytes / (bytes < (double)mc_cpu()->l3 ? 160e9 : 22e9);
}

const char *mc_gemm_hollow(const struct mc_gemm_problem *p)
{
    return p->batch * p->m * p->n == 0 ? "leaves empty results to the reference"
           : p->k == 0                 ? "leaves empty sums (k = 0) to the reference"
                                       : NULL;
}
