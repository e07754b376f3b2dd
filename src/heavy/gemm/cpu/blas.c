/* blas.c: sgemm and dgemm of a BLAS, through the Fortran interface.
 *
 * A BLAS runs on its own threads, and their number is a setting of the whole process.  So it is not used
 * if the thread team has one thread.
 *
 * Invariant: the same bits on every run, but the bits may depend on the number of threads. */
#include "heavy/gemm/cpu/library.h"
#include "device/cpu/cpu.h"
#include <dlfcn.h>
#include <limits.h>

/* Column-major; arguments by reference, except the lengths of the two strings, which come last. */
typedef void gemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
                   const void *alpha, const void *a, const int *lda, const void *b, const int *ldb,
                   const void *beta, void *c, const int *ldc, size_t, size_t);

static const char *const files[] = { "libopenblas.so.0", "libmkl_rt.so.2", "libblas.so.3", NULL };
static struct mc_library_gemm library = {
    .flag = FLAG_blas, .solver = "blas", .files = files, .lock = PTHREAD_MUTEX_INITIALIZER,
};

static const char *symbol(mc_dtype d)
{
    return d == MC_FLOAT64 ? "dgemm_" : "sgemm_";
}

/* Row-major C = A B is column-major C^T = B^T A^T in the same memory, with the same transpose letters. */
static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_gemm_run r = mc_gemm_bind(plan, operand, workspace, threads);
    const struct mc_gemm_problem *p = r.p;
    const double beta = r.c0 ? p->beta : 0;
    const float alpha_f = (float)p->alpha, beta_f = (float)beta;
    const bool wide = p->dtype == MC_FLOAT64;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    struct mc_library_gemm_matrix a, b;
    void *handle = mc_library_gemm_open(&library), *found = handle ? dlsym(handle, symbol(p->dtype)) : NULL;
    gemm_ *multiply;
    if (!found) {
        return mc_fail(MC_EUNSUPPORTED, "gemm: the BLAS is no longer there");
    }
    memcpy(&multiply, &found, sizeof found);
    mc_library_gemm_matrix(p->as, p->m, p->k, &a);
    mc_library_gemm_matrix(p->bs, p->k, p->n, &b);
    mc_library_gemm_start(&r);
    const int lda = (int)a.lead, ldb = (int)b.lead, ldc = p->m > 1 ? (int)p->cs[1] : n;
    for (int64_t i = 0; i < p->batch; i++) {
        multiply(&b.trans, &a.trans, &n, &m, &k, wide ? (const void *)&p->alpha : &alpha_f,
                 gemm_b(&r, i, 0, 0), &ldb, gemm_a(&r, i, 0, 0), &lda, wide ? (const void *)&beta : &beta_f,
                 gemm_c(&r, i, 0, 0), &ldc, 1, 1);
    }
    mc_gemm_finish_all(&r);
    return MC_OK;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_library_gemm_matrix a, b;
    if (p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64) {
        return "takes float32 and float64 only";
    }
    if (mc_team_size() == 1) {
        return "uses its own threads, but the thread team has only one";
    }
    const char *no = mc_library_gemm_refuse(&library, &mc_gemm_blas, p);
    if (no) {
        return no;
    }
    mc_library_gemm_matrix(p->as, p->m, p->k, &a);
    mc_library_gemm_matrix(p->bs, p->k, p->n, &b);
    if (MC_MAX(MC_MAX(p->m, p->n), MC_MAX(p->k, p->cs[1])) > INT_MAX || MC_MAX(a.lead, b.lead) > INT_MAX) {
        return "takes sizes of 31 bits only";
    }
    return NULL;
}

static const char *missing(const struct mc_problem *p)
{
    return mc_library_gemm_missing(&library, symbol(gemm(p)->dtype));
}

static double estimate(const struct mc_problem *p)
{
    return mc_library_gemm_estimate(&library, &mc_gemm_blas, gemm(p));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    return mc_library_gemm_plan(missing(p), run);
}

void *mc_gemm_blas_library(void)
{
    return mc_library_gemm_open(&library);
}

const struct mc_solver mc_gemm_blas = {
    .name = "blas", .refuse = refuse, .missing = missing, .estimate = estimate, .plan = plan,
};
