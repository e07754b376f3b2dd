/* cublaslt.c: matrix products by cuBLASLt.
 *
 * It is column-major: a row-major C = A B is C' = B' A' with the same leading dimensions.  Its heuristic
 * proposes some algorithms.  With plan=measure they are timed, and wisdom keeps the number of the best.
 *
 * A C0 with row stride 0 is passed as the bias, a C0 with a matrix layout as cuBLASLt's C.  Any other C0
 * is copied to C first.  Pointers that are not aligned to 16 bytes use a separate algorithm.
 *
 * Invariant: sums are float32 or wider, and partial sums are not rounded to halves (no reduction in the
 * result's dtype). */
#include "heavy/gemm/cuda/cuda.h"
#include <stdio.h>
#include <stdlib.h>

enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_TF32 = 77 };
enum { LAYOUT_BATCH = 5, LAYOUT_BATCH_STRIDE = 6 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS = 8 };
enum { EPILOGUE_NONE = 1, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32 };
enum {
    PREF_WORKSPACE = 1,
    PREF_REDUCTION = 3,
    PREF_ALIGN_A = 5,
    PREF_ALIGN_B = 6,
    PREF_ALIGN_C = 7,
    PREF_ALIGN_D = 8
};
enum { REDUCE_COMPUTE_TYPE = 2, MOST = 32 };

static const struct {
    int type, compute, scale;
} dtypes[MC_NDTYPE] = {
    [MC_FLOAT16]  = { 2,  COMPUTE_32F, 0 },
    [MC_BFLOAT16] = { 14, COMPUTE_32F, 0 },
    [MC_FLOAT32]  = { 0,  COMPUTE_32F, 0 },
    [MC_FLOAT64]  = { 1,  COMPUTE_64F, 1 },
};

struct heuristic {              /* cublasLtMatmulHeuristicResult_t */
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
enum c0 { C0_NONE, C0_BIAS, C0_MATRIX, C0_SPREAD };
struct lt {
    struct mc_plan base;
    void *desc, *a, *b, *c, *d;             /* a and b as the problem has them */
    enum c0 c0;
    struct mc_cuda_copy *copy_c0;
    struct heuristic use, loose;            /* loose: for pointers aligned only to an element */
    bool has_loose;
};

static struct lt *lt(const struct mc_plan *p)
{
    return (struct lt *)(void *)(uintptr_t)p;
}

static void *handle(void)
{
    struct mc_cuda *d = mc_cuda_current();
    if (!d->blas && mc_nv.cublasLtCreate(&d->blas) != 0) {
        d->blas = NULL;
        mc_fail(MC_EUNSUPPORTED, "%s: cuBLASLt does not start", d->name);
    }
    return d->blas;
}

/* ---- accepted layouts ---- */

/* One stride is 1, and the other is at least the length along it. */
static bool regular(const int64_t *s, int64_t rows, int64_t cols)
{
    return s[0] >= 0 && ((s[2] == 1 || cols == 1) ? (rows == 1 || s[1] >= cols)
                                                  : (s[1] == 1 || rows == 1) && s[2] >= rows);
}

static enum c0 c0_of(const struct mc_gemm_problem *p)
{
    const int64_t *s = p->c0s;
    if (p->beta == 0) {
        return C0_NONE;
    }
    if (p->beta >= 1 && p->beta <= 1 && s[1] == 0 && (s[2] == 1 || p->n == 1) &&
        (p->batch == 1 || s[0] == 0)) {
        return C0_BIAS;
    }
    return (s[2] == 1 || p->n == 1) && (p->m == 1 || s[1] >= p->n) && s[0] >= 0 ? C0_MATRIX : C0_SPREAD;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const bool plain = regular(p->as, p->m, p->k) && regular(p->bs, p->k, p->n) &&
                       regular(p->cs, p->m, p->n) && (p->cs[2] == 1 || p->n == 1);
    return !dtypes[p->dtype].compute ? "takes floats"
           : mc_gemm_hollow(p)       ? mc_gemm_hollow(p)
           : !plain                  ? "takes matrices of which one stride is 1, C with adjacent columns"
           : p->batch > 1 && p->cs[0] < p->m * MC_MAX(p->cs[1], p->n) && p->cs[0] < p->n
               ? "takes no overlapping results"
           : p->act > ACT_GELU                            ? "has relu and gelu only"
           : p->act == ACT_GELU && p->dtype == MC_FLOAT64 ? "has gelu in float32 only"
           : !mc_nv_found(NV_CUBLASLT)->present           ? "finds no library"
                                                          : NULL;
}

/* The added time grows with k only up to 256, because longer sums are divided among blocks.  Fitted to 36
 * products on an H200. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    return mc_gemm_cuda_seconds(p, 0.7) +
           (double)MC_MIN(p->k, (int64_t)256) * (p->tf32 || mc_dtypes[p->dtype].size == 2 ? 5e-9 : 10e-9);
}

/* ---- descriptors ---- */

static bool set(void *desc, int attr, const void *value, size_t size)
{
    return mc_nv.cublasLtMatmulDescSetAttribute(desc, attr, value, size) == 0;
}

/* The column-major layout of our (rows, cols) matrix.  *transposed: our matrix is stored transposed. */
static void *layout(const struct mc_gemm_problem *p, const int64_t *s, int64_t rows, int64_t cols,
                    int *transposed)
{
    const bool t = !(s[2] == 1 || cols == 1);
    const int64_t wide = t ? rows : cols, many = t ? cols : rows, step = t ? s[2] : s[1];
    const int64_t lead = many == 1 ? wide : step;
    void *m = NULL;
    *transposed = t;
    if (mc_nv.cublasLtMatrixLayoutCreate(&m, dtypes[p->dtype].type, (uint64_t)wide, (uint64_t)many, lead) !=
        0) {
        return NULL;
    }
    const int32_t count = (int32_t)p->batch;
    if (p->batch > 1 &&
        (mc_nv.cublasLtMatrixLayoutSetAttribute(m, LAYOUT_BATCH, &count, sizeof count) != 0 ||
         mc_nv.cublasLtMatrixLayoutSetAttribute(m, LAYOUT_BATCH_STRIDE, &s[0], sizeof s[0]) != 0)) {
        mc_nv.cublasLtMatrixLayoutDestroy(m);
        return NULL;
    }
    return m;
}

static bool describe(struct lt *x, const struct mc_gemm_problem *p)
{
    int ta, tb, tc;
    int epilogue = p->act == ACT_RELU ? EPILOGUE_RELU : p->act == ACT_GELU ? EPILOGUE_GELU : 0;
    epilogue |= x->c0 == C0_BIAS ? EPILOGUE_BIAS : 0;
    epilogue = epilogue ? epilogue : EPILOGUE_NONE;
    const int compute = p->tf32 ? COMPUTE_TF32 : dtypes[p->dtype].compute;
    if (mc_nv.cublasLtMatmulDescCreate(&x->desc, compute, dtypes[p->dtype].scale) != 0) {
        return false;
    }
    x->a = layout(p, p->as, p->m, p->k, &ta);
    x->b = layout(p, p->bs, p->k, p->n, &tb);
    x->c = layout(p, x->c0 == C0_MATRIX ? p->c0s : p->cs, p->m, p->n, &tc);
    x->d = layout(p, p->cs, p->m, p->n, &tc);
    return x->a && x->b && x->c && x->d && set(x->desc, DESC_TRANSA, &tb, sizeof tb) &&
           set(x->desc, DESC_TRANSB, &ta, sizeof ta) &&
           set(x->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue);
}

/* The heuristic's proposals for pointers of this alignment, best first.  Returns their number. */
static int propose(const struct lt *x, unsigned alignment, int most, struct heuristic *found)
{
    void *pref = NULL;
    int n = 0;
    const size_t cap = MC_MIN(x->base.problem->options.workspace, (size_t)1 << 28);
    const uint32_t reduce = REDUCE_COMPUTE_TYPE, align = alignment;
    if (mc_nv.cublasLtMatmulPreferenceCreate(&pref) != 0) {
        return 0;
    }
    bool ok = mc_nv.cublasLtMatmulPreferenceSetAttribute(pref, PREF_WORKSPACE, &cap, sizeof cap) == 0 &&
              mc_nv.cublasLtMatmulPreferenceSetAttribute(pref, PREF_REDUCTION, &reduce, sizeof reduce) == 0;
    for (int attr = PREF_ALIGN_A; ok && attr <= PREF_ALIGN_D; attr++) {
        ok = mc_nv.cublasLtMatmulPreferenceSetAttribute(pref, attr, &align, sizeof align) == 0;
    }
    if (!ok || mc_nv.cublasLtMatmulAlgoGetHeuristic(handle(), x->desc, x->b, x->a, x->c, x->d, pref, most,
                                                    found, &n) != 0) {
        n = 0;
    }
    mc_nv.cublasLtMatmulPreferenceDestroy(pref);
    int good = 0;
    for (int i = 0; i < n; i++) {
        if (found[i].state == 0) {
            found[good++] = found[i];
        }
    }
    return good;
}

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct lt *x = lt(plan);
    const struct mc_gemm_problem *p = gemm(plan->problem);
    struct mc_cuda *gpu = mc_cuda_current();
    const void *c0 = x->c0 == C0_MATRIX ? operand[GEMM_C0] : operand[GEMM_C];
    const bool fine = mc_cuda_aligned(operand[GEMM_A]) && mc_cuda_aligned(operand[GEMM_B]) &&
                      mc_cuda_aligned(operand[GEMM_C]) && mc_cuda_aligned(c0) && mc_cuda_aligned(workspace);
    const struct heuristic *h = fine || !x->has_loose ? &x->use : &x->loose;
    const double alpha = p->alpha, beta = x->c0 == C0_MATRIX || x->c0 == C0_SPREAD ? p->beta : 0;
    const float alpha32 = (float)alpha, beta32 = (float)beta;
    const bool wide = p->dtype == MC_FLOAT64;
    (void)threads;
    if (x->copy_c0) {
        TRY(mc_cuda_copy_run(x->copy_c0, operand[GEMM_C], operand[GEMM_C0]));
    }
    if (x->c0 == C0_BIAS && !set(x->desc, DESC_BIAS, &operand[GEMM_C0], sizeof operand[GEMM_C0])) {
        return mc_fail(MC_EUNSUPPORTED, "gemm: cuBLASLt takes no bias");
    }
    const int failed = mc_nv.cublasLtMatmul(handle(), x->desc, wide ? (const void *)&alpha : &alpha32,
                                            operand[GEMM_B], x->b, operand[GEMM_A], x->a,
                                            wide ? (const void *)&beta : &beta32, c0, x->c, operand[GEMM_C],
                                            x->d, h->algo, workspace, plan->workspace, gpu->stream);
    return failed ? mc_fail(MC_EUNSUPPORTED, "gemm: cublasLtMatmul failed with status %d", failed) : MC_OK;
}

/* ---- selection of the algorithm ---- */

struct trial {
    const struct mc_plan *plan;
    void *operand[8], *workspace;
};

static mc_status run_trial(void *arg)
{
    const struct trial *t = arg;
    return t->plan->run(t->plan, t->operand, t->workspace, 0);
}

static bool word(const struct mc_gemm_problem *p, struct mc_str *key)
{
    mc_site_cuda.name(key);
    mc_str_addf(key, " cublaslt %s ", mc_nv_found(NV_CUBLASLT)->version);
    mc_gemm_key(&p->base, key);
    return !key->bad;
}

static void time_all(struct lt *x, const struct mc_gemm_problem *p, const struct heuristic *found, int n,
                     double budget)
{
    struct trial t = { .plan = &x->base };
    struct mc_str key = { 0 };
    double best = 0;
    int chosen = -1;
    char name[64];
    if (p->base.family->operands(&p->base, t.operand) < 0) {
        return;
    }
    for (int i = 0; i < n; i++) {
        x->use = found[i];
        x->base.workspace = found[i].workspace;
        t.workspace = found[i].workspace ? mc_site_cuda.take(found[i].workspace) : NULL;
        const struct mc_timing got = found[i].workspace && !t.workspace
                                         ? (struct mc_timing){ 0 }
                                         : mc_site_cuda.time(run_trial, &t, budget / n, 1.3 * best);
        mc_site_cuda.give(t.workspace);
        if (got.n > 0 && (chosen < 0 || got.least < 0.98 * best)) {
            chosen = i;
            best = got.least;
        }
    }
    p->base.family->discard(&p->base, t.operand);
    x->use = found[MC_MAX(chosen, 0)];
    mc_snprintf(name, sizeof name, "%d", chosen);
    if (chosen >= 0 && word(p, &key)) {
        mc_wisdom_put(key.s, name, best);
    }
    mc_str_free(&key);
}

static int remembered(const struct mc_gemm_problem *p, int n)
{
    struct mc_str key = { 0 };
    char name[64] = "-1";
    double seconds;
    const bool known = word(p, &key) && mc_wisdom_find(key.s, name, &seconds);
    const int at = known ? atoi(name) : -1;
    mc_str_free(&key);
    return at < n ? at : -1;
}

static bool choose(struct lt *x, const struct mc_gemm_problem *p)
{
    static const struct { int most; double budget; } modes[] = {
        [PLAN_ESTIMATE] = { 1, 0 }, [PLAN_MEASURE] = { 8, 0.05 }, [PLAN_EXHAUSTIVE] = { MOST, 0.3 },
    };
    const enum mc_plan_mode mode = p->base.options.solver_mode;
    struct heuristic found[MOST];
    const int n = propose(x, MC_CUDA_ALIGNED, MOST, found), at = remembered(p, n);
    if (n == 0) {
        return false;
    }
    x->use = found[MC_MAX(at, 0)];
    if (at < 0 && modes[mode].most > 1 && n > 1) {
        time_all(x, p, found, MC_MIN(n, modes[mode].most), modes[mode].budget);
    }
    x->has_loose = propose(x, mc_dtypes[p->dtype].size, 1, &x->loose) == 1;
    x->base.workspace = MC_MAX(x->use.workspace, x->has_loose ? x->loose.workspace : 0);
    return true;
}

/* ---- a plan ---- */

static void destroy(struct mc_plan *plan)
{
    struct lt *x = lt(plan);
    void *const layouts[] = { x->a, x->b, x->c, x->d };
    for (size_t i = 0; i < NELEM(layouts); i++) {
        if (layouts[i]) {
            mc_nv.cublasLtMatrixLayoutDestroy(layouts[i]);
        }
    }
    if (x->desc) {
        mc_nv.cublasLtMatmulDescDestroy(x->desc);
    }
    mc_cuda_copy_free(x->copy_c0);
}

static struct mc_cuda_copy *copy_c0(const struct mc_gemm_problem *p)
{
    struct mc_cuda_layout l = {
        .to = p->dtype, .from = p->dtype, .rank = 3, .size = { p->batch, p->m, p->n }
    };
    memcpy(l.to_stride, p->cs, sizeof p->cs);
    memcpy(l.from_stride, p->c0s, sizeof p->c0s);
    return mc_cuda_copy_new(&l);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct lt *x = mc_calloc(1, sizeof *x, "plans");
    if (!x || !handle()) {
        mc_free(x);
        return NULL;
    }
    x->base.run = run;
    x->base.destroy = destroy;
    x->base.problem = p_;
    x->c0 = c0_of(p);
    if (x->c0 == C0_SPREAD) {
        x->copy_c0 = copy_c0(p);
    }
    if ((x->c0 == C0_SPREAD && !x->copy_c0) || !describe(x, p) || !choose(x, p)) {
        if (mc_last_status() >= 0) {
            mc_fail(MC_EUNSUPPORTED, "gemm: cuBLASLt has no algorithm for this problem");
        }
        destroy(&x->base);
        mc_free(x);
        return NULL;
    }
    return &x->base;
}

const struct mc_solver mc_gemm_cublaslt = {
    .name = "cublaslt", .refuse = refuse, .estimate = estimate, .plan = plan,
};
