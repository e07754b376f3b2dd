/* cuda_cut.c: float32 products of small matrices on tensor cores, as pairs of halves that blocks cut themselves (cut.cu):
 * nothing is packed first, and the summed axis is shared by as many blocks as fill the GPU.
 *
 * Invariant: infinities and NaN come out as float32's do. */
#include "gemm/cuda.h"

static const char text[] = {
#include "gemm/cut_text.h"
    , 0 };
const struct mc_cuda_text mc_gemm_cut_text = { "gemm/cut.cu", text };

enum { TILE = 64, MOST_SPLITS = 16, BLOCKS = 2 };   /* BLOCKS: that a processor has at once */

struct args {
    const void *a, *b, *c0;
    void *c, *parts;
    int64_t as[3], bs[3], cs[3], c0s[3];
    int m, n, k, batch, splits, fours[2];
    float alpha, beta;
};
struct cut {
    struct mc_plan base;
    void *product, *add;
    struct mc_grid grid, add_grid;
    struct args args;
    bool fours[2];
};

static bool aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct cut *d = (const struct cut *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    struct args a = d->args;
    (void)threads;
    a.a = operand[GEMM_A];
    a.b = operand[GEMM_B];
    a.c = operand[GEMM_C];
    a.c0 = p->has_c0 && p->beta != 0 ? operand[GEMM_C0] : NULL;
    a.parts = workspace;
    a.fours[0] = d->fours[0] && aligned(a.a);
    a.fours[1] = d->fours[1] && aligned(a.b);
    TRY(mc_cuda_launch(mc_cuda_current(), d->product, "product", &d->grid, &a, sizeof a));
    return a.splits > 1 ? mc_cuda_launch(mc_cuda_current(), d->add, "add", &d->add_grid, &a, sizeof a) : MC_OK;
}

static int64_t tiles(const struct mc_gemm_problem *p)
{
    return gemm_ceil(p->m, TILE) * gemm_ceil(p->n, TILE) * p->batch;
}

static int64_t splits(const struct mc_gemm_problem *p)
{
    const int64_t processors = mc_cuda_current() ? MC_MAX(mc_cuda_current()->processors, 1) : 100;
    return MC_MAX(MC_MIN(MC_MIN(BLOCKS * processors / MC_MAX(tiles(p), (int64_t)1), gemm_ceil(p->k, TILE)), (int64_t)MOST_SPLITS), (int64_t)1);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t most = INT32_MAX / 32;
    return p->dtype != MC_FLOAT32 ? "multiplies float32"
           : mc_gemm_hollow(p)    ? mc_gemm_hollow(p)
           : p->m > most || p->n > most || p->k > most || p->batch > UINT16_MAX || tiles(p) > most / 4096 ? "takes small matrices" : mc_cuda_too_old();
}

/* A step of 64 terms, of all blocks that run at once; the rest is two launches and what is waited for in the first. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t n = splits(p), processors = mc_cuda_current() ? MC_MAX(mc_cuda_current()->processors, 1) : 100;
    const double waves = (double)gemm_ceil(tiles(p) * n, BLOCKS * processors), steps = (double)gemm_ceil(gemm_ceil(p->k, TILE), n);
    return 2e-6 + waves * steps * 4e-6 + (n > 1 ? 1e-6 : 0);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_str defines = { 0 };
    struct cut *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->args = (struct args){ .m = (int)p->m, .n = (int)p->n, .k = (int)p->k, .batch = (int)p->batch, .splits = (int)splits(p),
                             .alpha = (float)p->alpha, .beta = (float)p->beta };
    memcpy(d->args.as, p->as, sizeof p->as);
    memcpy(d->args.bs, p->bs, sizeof p->bs);
    memcpy(d->args.cs, p->cs, sizeof p->cs);
    memcpy(d->args.c0s, p->c0s, sizeof p->c0s);
    d->fours[0] = p->as[2] == 1 && p->as[1] % 4 == 0 && p->as[0] % 4 == 0;
    d->fours[1] = p->bs[1] == 1 && p->bs[2] % 4 == 0 && p->bs[0] % 4 == 0;
    d->grid = (struct mc_grid){ { (unsigned)(tiles(p) / p->batch), (unsigned)d->args.splits, (unsigned)p->batch }, { 256, 1, 1 }, 0 };
    d->add_grid = (struct mc_grid){ { (unsigned)gemm_ceil(p->batch * p->m * p->n, 256), 1, 1 }, { 256, 1, 1 }, 0 };
    d->base.workspace = d->args.splits > 1 ? (size_t)(d->args.splits * p->batch * p->m * p->n) * sizeof(float) : 0;
    mc_str_addf(&defines, "#define ACT %d\n", (int)p->act);
    d->product = defines.bad ? NULL : mc_cuda_kernel(&mc_gemm_cut_text, defines.s, "product");
    d->add = d->product ? mc_cuda_kernel(&mc_gemm_cut_text, defines.s, "add") : NULL;
    mc_str_free(&defines);
    if (!d->add) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

const struct mc_solver mc_gemm_cuda_cut = { .name = "cut", .refuse = refuse, .estimate = estimate, .plan = plan };
