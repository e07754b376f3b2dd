/* skinny.c: products with at most 16 columns or rows on a GPU.  The large operand is read once, in place
 * (skinny.cu).
 *
 *     n <= 16:  x = A,   s = B,   C[row, q]          m <= 16:  x = B^T,  s = A^T,  C[q, row]
 *
 * Invariant: sums are in the dtype of accumulators, in an order that depends on sizes, strides and the
 * number of multiprocessors. */
#include "heavy/gemm/cuda/cuda.h"
#include "heavy/gemm/cuda/skinny_args.h"
#include <stdlib.h>

static const char text[] = {
#include "heavy/gemm/cuda/skinny_text.h"
    , 0 };
const struct mc_cuda_text mc_gemm_skinny_text = { "heavy/gemm/cuda/skinny.cu", text, NULL };

/* NARROWEST: least bytes of a row that neighbouring threads read; WORD: bytes that a thread reads at once */
enum {
    THIN = 16,
    THREADS = SKINNY_THREADS,
    SUMS = 64,
    ROWS = 8,
    SHARED_SUMS = 512,
    WIDEST = 32,
    NARROWEST = 16,
    WORD = 16
};
/* BLOCKS: that run on a multiprocessor at once; STEPS: least steps of a thread in a part of a split sum;
 * PARTS: most parts */
enum { BLOCKS = 4, STEPS = 16, PARTS = 64 };
/* Fitted to 34 products on an H200.  wave: for each further wave of blocks; chain: latency of one step of a
 * thread; load, multiply: of a warp's instruction. */
static const double launch_seconds = 2.2e-6, add_seconds = 0.8e-6, wave_seconds = 2e-6,
                    chain_seconds = 0.14e-6, load_seconds = 1.3e-9, multiply_seconds = 0.55e-9,
                    cache_bytes = 5e12;

struct shape {                  /* how the problem is divided among threads */
    int64_t rows, q, wide, r, blocks, splits;
    bool transposed;                /* the large operand is B */
};
struct thin {
    struct mc_plan base;
    void *plain, *vector, *add; /* vector: reads several contiguous columns of S at once, if S is aligned */
    struct mc_grid grid, add_grid;
    struct mc_gemm_skinny_args args;           /* without the addresses */
    bool transposed;
};

static void transpose(int64_t to[3], const int64_t from[3], bool transposed)
{
    to[0] = from[0];
    to[1] = from[1 + transposed];
    to[2] = from[2 - transposed];
}

static struct shape shape_of(const struct mc_gemm_problem *p)
{
    struct shape s = { .transposed = p->m < p->n };
    int64_t xs[3];
    transpose(xs, s.transposed ? p->bs : p->as, s.transposed);
    s.rows = MC_MAX(p->m, p->n);
    s.q = MC_MIN(p->m, p->n);
    const bool dense = s.rows == 1 || llabs(xs[2]) <= llabs(xs[1]);
    const int64_t size = (int64_t)mc_dtypes[p->dtype].size, processors = mc_cuda_multiprocessors();
    s.wide = dense ? 1 : WIDEST;
    s.r = 1;
    while (s.r < ROWS && s.r * 2 * s.q <= SUMS && s.wide * s.r * 2 * s.q <= SHARED_SUMS) {
        s.r *= 2;
    }
    while ((s.blocks = p->batch * gemm_ceil(s.rows, s.wide * s.r)) < processors * 3 / 4 &&
           (s.r > 1 || s.wide * size > NARROWEST)) {
        *(s.r > 1 ? &s.r : &s.wide) /= 2; /* smaller blocks, until they fill the GPU */
    }
    const int64_t steps = gemm_ceil(p->k, THREADS / s.wide), most = MC_MIN(steps / STEPS, (int64_t)PARTS);
    s.splits = MC_MAX(MC_MIN(BLOCKS * processors / s.blocks, most), (int64_t)1);
    return s;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct thin *d = (const struct thin *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    struct mc_cuda *gpu = mc_cuda_current();
    struct mc_gemm_skinny_args args = d->args;
    (void)threads;
    args.x = operand[d->transposed ? GEMM_B : GEMM_A];
    args.s = operand[d->transposed ? GEMM_A : GEMM_B];
    args.c0 = p->beta != 0 ? operand[GEMM_C0] : NULL;
    args.c = operand[GEMM_C];
    args.parts = workspace;
    const bool aligned = d->vector && (uintptr_t)args.s % WORD == 0;
    TRY(mc_cuda_launch_dependent(gpu, aligned ? d->vector : d->plain, "thin", &d->grid, &args, sizeof args));
    return args.splits > 1 ? mc_cuda_launch_dependent(gpu, d->add, "add", &d->add_grid, &args, sizeof args)
                           : MC_OK;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t most = INT32_MAX / WIDEST;
    return !mc_is_float(p->dtype)                                    ? "takes floats"
           : mc_gemm_hollow(p)                                       ? mc_gemm_hollow(p)
           : MC_MIN(p->m, p->n) > THIN                               ? "takes at most 16 rows or columns"
           : p->batch > most || MC_MAX(p->m, p->n) > most / p->batch ? "takes no sizes this large"
                                                                     : NULL;
}

/* Columns of S that are read at once: as many as fit in a word, if strides and q allow it. */
static int vector_of(const struct mc_gemm_problem *p, const int64_t ss[3], int64_t q)
{
    int64_t v = WORD / (int64_t)mc_dtypes[p->dtype].size;
    while (v > 1 && (ss[1] != 1 || q % v != 0 || ss[2] % v != 0 || ss[0] % v != 0)) {
        v /= 2;
    }
    return (int)v;
}

/* The largest of the times of the caches, of a multiprocessor's instructions, and of the chain of steps. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const struct shape s = shape_of(p);
    int64_t ss[3];
    transpose(ss, s.transposed ? p->as : p->bs, !s.transposed);
    const int64_t blocks = s.blocks * s.splits, processors = mc_cuda_multiprocessors();
    const double steps = (double)gemm_ceil(p->k, THREADS / s.wide * s.splits),
                 waves = (double)gemm_ceil(blocks, BLOCKS * processors);
    const double warps = (double)blocks * (THREADS / 32) * steps / (double)processors,
                 loads = (double)(s.r + gemm_ceil(s.q, vector_of(p, ss, s.q)));
    const double bytes = (double)mc_dtypes[p->dtype].size * (double)p->k *
                         (double)(p->batch * s.rows + s.blocks * s.q);
    return launch_seconds + (s.splits > 1 ? add_seconds : 0) + (waves - 1) * wave_seconds +
           MC_MAX(MC_MAX(waves * steps * chain_seconds,
                         warps * (loads * load_seconds + (double)(s.r * s.q) * multiply_seconds)),
                  bytes / cache_bytes);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const struct shape s = shape_of(p);
    struct mc_str defines = { 0 };
    struct thin *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    struct mc_gemm_skinny_args *a = &d->args;
    *a = (struct mc_gemm_skinny_args){ .rows = s.rows,
                                       .k = p->k,
                                       .batch = (int)p->batch,
                                       .splits = (int)s.splits,
                                       .alpha = p->alpha,
                                       .beta = p->beta };
    transpose(a->xs, s.transposed ? p->bs : p->as, s.transposed);
    transpose(a->ss, s.transposed ? p->as : p->bs, !s.transposed);
    transpose(a->cs, p->cs, s.transposed);
    transpose(a->c0s, p->c0s, s.transposed);
    const int vector = vector_of(p, a->ss, s.q);
    const struct mc_cuda_kernel_ref kernels[] = { { &d->plain, "thin" },
                                                  { &d->vector, vector > 1 ? "thin_v" : NULL },
                                                  { &d->add, s.splits > 1 ? "add" : NULL } };
    const size_t sum = mc_dtypes[p->dtype].size == 8 ? sizeof(double) : sizeof(float);
    d->base.run = run;
    d->transposed = s.transposed;
    d->base.workspace = s.splits > 1 ? (size_t)(s.splits * p->batch * s.rows * s.q) * sum : 0;
    d->grid = (struct mc_grid){ { (unsigned)s.blocks, (unsigned)s.splits, 1 }, { THREADS, 1, 1 }, 0 };
    d->add_grid = (struct mc_grid){ { (unsigned)gemm_ceil(p->batch * s.rows * s.q, 32), 1, 1 },
                                    { 256, 1, 1 },
                                    0 };
    mc_cuda_types(&defines, p->dtype, false);
    mc_str_addf(
        &defines,
        "#define Q %d\n#define WIDE %d\n#define R %d\n#define VECTOR %d\n#define HAS_C0 %d\n#define ACT %d\n",
        (int)s.q, (int)s.wide, (int)s.r, vector, p->beta != 0, (int)p->act);
    if (!mc_cuda_kernels(&mc_gemm_skinny_text, &defines, kernels, NELEM(kernels))) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

const struct mc_solver mc_gemm_cuda_skinny = {
    .name = "thin", .refuse = refuse, .estimate = estimate, .plan = plan,
};
