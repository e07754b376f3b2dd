/* split_tf32.c: float32 products of medium matrices on tensor cores, as pairs of TF32 numbers
 * (split_tf32.cu). */
#include "heavy/gemm/cuda/cuda.h"
#include "heavy/gemm/cuda/split_tf32_args.h"
#include <stdlib.h>

static const char text[] = {
#include "heavy/gemm/cuda/split_tf32_text.h"
    , 0 };
const struct mc_cuda_text mc_split_tf32_text = { "heavy/gemm/cuda/split_tf32.cu", text, NULL };

enum { TILE = SPLIT_TF32_TILE, TERMS = SPLIT_TF32_TERMS };
/* BLOCKS: that run on a multiprocessor at once; MOST_SPLITS: blocks of a cluster; LEAST_STEPS: of a block */
enum { BLOCKS = 2, MOST_SPLITS = 8, LEAST_STEPS = 4 };

struct split_tf32 {
    struct mc_plan base;
    void *kernel;
    struct mc_grid grid;
    struct mc_split_tf32_args args;     /* without the addresses */
    bool fours[2];
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct split_tf32 *d = (const struct split_tf32 *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    struct mc_split_tf32_args a = d->args;
    (void)workspace;
    (void)threads;
    a.a = operand[GEMM_A];
    a.b = operand[GEMM_B];
    a.c = operand[GEMM_C];
    a.c0 = p->beta != 0 ? operand[GEMM_C0] : NULL;
    a.fours[0] = d->fours[0] && mc_cuda_aligned(a.a);
    a.fours[1] = d->fours[1] && mc_cuda_aligned(a.b);
    return mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, "product", &d->grid, &a, sizeof a);
}

static int64_t tiles(const struct mc_gemm_problem *p)
{
    return gemm_ceil(p->m, TILE) * gemm_ceil(p->n, TILE) * p->batch;
}

/* Blocks that share the terms of a tile: a power of two, so that clusters leave few multiprocessors idle. */
static int splits(const struct mc_gemm_problem *p)
{
    const int64_t steps = gemm_ceil(p->k, TERMS), most = BLOCKS * mc_cuda_multiprocessors();
    int parts = 1;
    while (parts < MOST_SPLITS && 2 * parts * tiles(p) <= most && steps >= 2 * parts * LEAST_STEPS) {
        parts *= 2;
    }
    return MC_MIN(parts, MC_MAX((int)mc_cuda_current()->together, 1));
}

/* Is one of the axes of a matrix contiguous? */
static bool in_lines(int64_t rows, int64_t terms)
{
    return rows == 1 || terms == 1;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t most = INT32_MAX / 64;
    return p->dtype != MC_FLOAT32 ? "takes float32 only"
           : mc_gemm_hollow(p)    ? mc_gemm_hollow(p)
           : !in_lines(p->as[1], p->as[2]) || !in_lines(p->bs[2], p->bs[1])
               ? "requires matrices with a contiguous axis"
           : p->m > most || p->n > most || p->k > most || p->batch > UINT16_MAX || tiles(p) > most
               ? "takes medium matrices"
               : mc_cuda_needs_sm80();
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int parts = splits(p);
    const double blocks = (double)gemm_ceil(tiles(p) * parts, mc_cuda_multiprocessors()),
                 steps = (double)gemm_ceil(gemm_ceil(p->k, TERMS), parts);
    return 4e-6 + blocks * (steps * 0.36e-6 + 0.5e-6);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_str defines = { 0 };
    struct split_tf32 *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    struct mc_split_tf32_args *a = &d->args;
    const bool a_long = p->as[2] == 1, b_long = p->bs[1] == 1 && p->bs[2] != 1;
    const int parts = splits(p);
    *a = (struct mc_split_tf32_args){ .m = (int)p->m,
                                      .n = (int)p->n,
                                      .k = (int)p->k,
                                      .splits = parts,
                                      .alpha = (float)p->alpha,
                                      .beta = (float)p->beta };
    memcpy(a->as, p->as, sizeof a->as);
    memcpy(a->bs, p->bs, sizeof a->bs);
    memcpy(a->cs, p->cs, sizeof a->cs);
    memcpy(a->c0s, p->c0s, sizeof a->c0s);
    d->fours[0] = (a_long ? p->as[1] : p->as[2]) % 4 == 0 && p->as[0] % 4 == 0;
    d->fours[1] = (b_long ? p->bs[2] : p->bs[1]) % 4 == 0 && p->bs[0] % 4 == 0;
    d->base.run = run;
    d->grid = (struct mc_grid){ { (unsigned)(gemm_ceil(p->m, TILE) * gemm_ceil(p->n, TILE)), (unsigned)parts,
                                  (unsigned)p->batch },
                                { SPLIT_TF32_THREADS, 1, 1 },
                                SPLIT_TF32_SLOTS * 2 * SPLIT_TF32_SIZE * sizeof(float),
                                (unsigned)parts };
    mc_str_addf(&defines, "#define ACT %d\n#define A_LONG %d\n#define B_LONG %d\n#define CLUSTER %d\n",
                (int)p->act, a_long, b_long, parts > 1);
    if (!mc_cuda_kernels(&mc_split_tf32_text, &defines,
                         &(struct mc_cuda_kernel_ref){ &d->kernel, "product" }, 1)) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

const struct mc_solver mc_gemm_cuda_split_tf32 = {
    .name = "pairs", .refuse = refuse, .estimate = estimate, .plan = plan,
};
