/* general.c: matrix products on a GPU by a kernel of our own: any dtype, integers included, and any strides.
 *
 * Invariant: it refuses only integer products whose alpha or beta is no integer or whose activation is not
 * relu. */
#include "heavy/gemm/cuda/cuda.h"
#include "heavy/gemm/cuda/general_args.h"

static const char text[] = {
#include "heavy/gemm/cuda/general_text.h"
    , 0 };
const struct mc_cuda_text mc_gemm_plain_text = { "heavy/gemm/cuda/general.cu", text };

struct plain {
    struct mc_plan base;
    void *kernel;
    struct mc_grid grid;
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct plain *d = (const struct plain *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    struct mc_gemm_plain_args args = { .a = operand[GEMM_A], .b = operand[GEMM_B], .c = operand[GEMM_C],
                                       .c0 = p->beta != 0 ? operand[GEMM_C0] : NULL, .batch = p->batch,
                                       .m = p->m, .n = p->n, .k = p->k, .alpha = p->alpha, .beta = p->beta };
    (void)workspace;
    (void)threads;
    if (p->batch * p->m * p->n == 0) {
        return MC_OK;
    }
    memcpy(args.as, p->as, sizeof args.as);
    memcpy(args.bs, p->bs, sizeof args.bs);
    memcpy(args.cs, p->cs, sizeof args.cs);
    memcpy(args.c0s, p->c0s, sizeof args.c0s);
    return mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, "gemm", &d->grid, &args, sizeof args);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const bool whole = p->alpha >= -0x1p62 && p->alpha <= 0x1p62 && p->beta >= -0x1p62 && p->beta <= 0x1p62 &&
                       p->alpha == (double)(int64_t)p->alpha && p->beta == (double)(int64_t)p->beta;
    return !mc_is_float(p->dtype) && (!whole || p->act > ACT_RELU)
               ? "takes integers only with integer alpha and beta, and with no activation but relu"
               : NULL;
}

static int64_t tiles_of(const struct mc_gemm_problem *p, int64_t rows)
{
    return p->batch * gemm_ceil(p->m, GENERAL_SIDE * rows) * gemm_ceil(p->n, GENERAL_SIDE * rows);
}

/* Rows of a thread's register tile, which is square.  Large tiles read less; small tiles fill the GPU. */
static int64_t rows_of(const struct mc_gemm_problem *p)
{
    const int64_t most = mc_dtypes[p->dtype].size <= 4 && mc_is_float(p->dtype) ? 8 : 4;
    int64_t rows = most;
    while (rows > 2 && tiles_of(p, rows) < mc_cuda_multiprocessors()) {
        rows /= 2;
    }
    return rows;
}

/* A block sums over k serially; with few blocks that is most of the time.  Fitted to 36 products on an
 * H200. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const double tiles = (double)tiles_of(p, MC_MAX(rows_of(p), (int64_t)4)),
                 busy = 0.11e-6 * tiles / (double)mc_cuda_multiprocessors(), alone = 0.15e-6;
    const double peak = mc_gemm_cuda_seconds(p, mc_dtypes[p->dtype].size == 2 ? 0.04 : 0.4);
    return MC_MAX(peak, 2e-6 + (double)p->k * MC_MAX(busy, alone));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t r = rows_of(p);
    struct mc_str defines = { 0 };
    struct plain *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    mc_cuda_types(&defines, p->dtype, false);
    mc_str_addf(&defines,
                "#define RM %d\n#define RN %d\n#define A_BY_K %d\n#define B_BY_K %d\n#define HAS_C0 "
                "%d\n#define ACT %d\n",
                (int)r, (int)r, p->as[2] == 1, p->bs[1] == 1 && p->bs[2] != 1, p->beta != 0, (int)p->act);
    mc_cuda_index(&defines, tiles_of(p, r));
    d->base.run = run;
    d->grid = mc_cuda_grid_1d(tiles_of(p, r), 1);
    d->grid.threads[0] = GENERAL_SIDE * GENERAL_SIDE;
    if (!mc_cuda_kernels(&mc_gemm_plain_text, &defines, &(struct mc_cuda_kernel_ref){ &d->kernel, "gemm" },
                         1)) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

const struct mc_solver mc_gemm_cuda_plain = {
    .name = "cuda_plain", .refuse = refuse, .estimate = estimate, .plan = plan,
};
