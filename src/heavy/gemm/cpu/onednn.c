/* onednn.c: oneDNN's dnnl_sgemm, through its C interface.
 *
 * It runs on OpenMP's threads, not on our team.  Their number is set to the team's for the calling thread
 * during the call.
 *
 * Invariant: the same bits on every run, but the bits may depend on the number of threads (it may divide
 * k). */
#include "heavy/gemm/cpu/library.h"
#include <dlfcn.h>

/* row-major */
typedef int dnnl_sgemm(char transa, char transb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                       int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

static const char *const files[] = { "libdnnl.so.3", "libdnnl.so.2", "libdnnl.so", NULL };
static struct mc_library_gemm library = {
    .flag = FLAG_onednn, .solver = "onednn", .files = files, .lock = PTHREAD_MUTEX_INITIALIZER,
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_gemm_run r = mc_gemm_bind(plan, operand, workspace, threads);
    const struct mc_gemm_problem *p = r.p;
    struct mc_library_gemm_matrix a, b;
    void *handle = mc_library_gemm_open(&library);
    dnnl_sgemm *sgemm = NULL;
    int failed = 0;
    mc_library_gemm_find(handle, "dnnl_sgemm", (void *)&sgemm);
    if (!sgemm) {
        return mc_fail(MC_EUNSUPPORTED, "gemm: oneDNN is no longer there");
    }
    mc_library_gemm_matrix(p->as, p->m, p->k, &a);
    mc_library_gemm_matrix(p->bs, p->k, p->n, &b);
    mc_library_gemm_start(&r);
    const int before = mc_library_gemm_threads(handle, r.threads);
    for (int64_t i = 0; i < p->batch && !failed; i++) {
        failed = sgemm(a.trans, b.trans, p->m, p->n, p->k, (float)p->alpha, gemm_a(&r, i, 0, 0), a.lead,
                       gemm_b(&r, i, 0, 0), b.lead, r.c0 ? (float)p->beta : 0, gemm_c(&r, i, 0, 0),
                       p->m > 1 ? p->cs[1] : p->n);
    }
    mc_library_gemm_done(handle, before);
    if (failed) {
        return mc_fail(MC_EUNSUPPORTED, "gemm: dnnl_sgemm failed with status %d", failed);
    }
    mc_gemm_finish_all(&r);
    return MC_OK;
}

static const char *refuse(const struct mc_problem *p)
{
    if (gemm(p)->dtype != MC_FLOAT32) {
        return "takes float32 only";
    }
    return mc_library_gemm_refuse(&library, &mc_gemm_onednn, gemm(p));
}

static const char *missing(const struct mc_problem *p)
{
    (void)p;
    return mc_library_gemm_missing(&library, "dnnl_sgemm");
}

static double estimate(const struct mc_problem *p)
{
    return mc_library_gemm_estimate(&library, &mc_gemm_onednn, gemm(p));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    return mc_library_gemm_plan(missing(p), run);
}

void *mc_gemm_onednn_library(void)
{
    return mc_library_gemm_open(&library);
}

const struct mc_solver mc_gemm_onednn = {
    .name = "onednn", .refuse = refuse, .missing = missing, .estimate = estimate, .plan = plan,
};
