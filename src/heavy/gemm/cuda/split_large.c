/* split_large.c: large float32 matrix products on Hopper's tensor cores: operands are packed as pairs of
 * halves, then multiplied in tiles of up to 128 x 208 (split_large.cu).
 *
 * Invariant: results from rows with an infinity are computed in plain float32, so that infinities and NaN
 * give the same results as in float32. */
#include "heavy/gemm/cuda/split.h"
#include "heavy/gemm/cuda/split_large_args.h"
#include "heavy/gemm/solver.h"

static const char text[] = {
#include "heavy/gemm/cuda/split_large_text.h"
    , 0 };
const struct mc_cuda_text mc_gemm_split_large_text = { "heavy/gemm/cuda/split_large.cu", text,
                                                       &mc_gemm_hopper_text };

enum { SLOTS = 5 };             /* half steps for which shared memory has room */
enum { LEAST = 256 };           /* rows and columns: fewer do not fill tiles */

struct large {
    struct mc_plan base;
    struct mc_split_packers pack;
    void *product;
    struct mc_grid grid;
    struct mc_split_large_args args;
    int tn;
    int64_t rows[2];            /* rows of A and columns of B, padded to whole tiles */
    size_t at[4];               /* offsets in the workspace: `seen` of A and B, their halves */
};

/* ---- tiles ---- */

struct shape {
    int tn, together;           /* columns of a tile; blocks of a cluster */
    double cost;                /* waves of tiles times their time, in columns of a step */
};

/* The tile width for which the last wave of tiles leaves the fewest blocks without work. */
static struct shape best_shape(int64_t m, int64_t n, int64_t steps, int64_t batch, int processors)
{
    static const int widths[] = { 208, 192, 176, 160, 144, 128 };
    const int64_t down = gemm_ceil(m, SPLIT_TM);
    struct shape best = { 0 };
    for (size_t i = 0; i < NELEM(widths); i++) {
        for (int together = 2; together >= 1; together--) {
            const int64_t tiles = batch * gemm_ceil(down, together) * gemm_ceil(n, widths[i]),
                          waves = gemm_ceil(tiles, MC_MAX(processors / together, 1));
            const double cost = (double)waves * ((double)steps * (widths[i] + 6) + 300);
            if (!best.tn || cost < 0.995 * best.cost) {
                best = (struct shape){ widths[i], together, cost };
            }
        }
    }
    return best;
}

static struct shape shape_of(const struct mc_gemm_problem *p)
{
    return best_shape(p->m, p->n, gemm_ceil(p->k, SPLIT_TK), p->batch, mc_cuda_multiprocessors());
}

/* ---- runs ---- */

/* Packs the rows of A, or the columns of B, with k fastest. */
static mc_status pack(const struct large *d, const struct mc_gemm_problem *p, int which, const void *x,
                      char *workspace)
{
    const int64_t count = which ? p->n : p->m, *s = which ? p->bs : p->as;
    const struct mc_split_pack pack = {
        .x = x, .to = (void *)(workspace + d->at[2 + which]),
        .rows = (void *)(workspace + d->at[which]), .tile = which ? d->tn : SPLIT_TM,
        .xs = { s[0], 0, which ? s[2] : s[1], which ? s[1] : s[2] }, .inner = 1, .n_rows = (int)count,
        .n_cols = (int)p->k, .rows_pad = (int)d->rows[which], .cols_pad = d->args.steps * SPLIT_TK,
        .seen_outer = (int)count, .seen_row = 1, .up = 1,
    };
    return mc_split_pack_rows(&d->pack, &pack, (int)p->batch, (size_t)(count * p->batch));
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct large *d = (const struct large *)(const void *)plan;
    const struct mc_gemm_problem *p = gemm(plan->problem);
    char *w = workspace;
    struct mc_split_large_args a = d->args;
    (void)threads;
    a.a = (void *)(w + d->at[2]);
    a.b = (void *)(w + d->at[3]);
    a.a_seen = (void *)(w + d->at[0]);
    a.b_seen = (void *)(w + d->at[1]);
    a.c = operand[GEMM_C];
    a.c0 = p->beta != 0 ? operand[GEMM_C0] : NULL;
    a.plain_a = operand[GEMM_A];
    a.plain_b = operand[GEMM_B];
    a.pairs = p->cs[2] == 1 && p->cs[1] % 2 == 0 && p->cs[0] % 2 == 0 && (uintptr_t)a.c % 8 == 0;
    TRY(pack(d, p, 0, operand[GEMM_A], w));
    TRY(pack(d, p, 1, operand[GEMM_B], w));
    return mc_cuda_launch_dependent(mc_cuda_current(), d->product, "product", &d->grid, &a, sizeof a);
}

/* ---- plans ---- */

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const int64_t most = INT32_MAX / 2;
    return p->dtype != MC_FLOAT32         ? "takes float32 only"
           : mc_gemm_hollow(p)            ? mc_gemm_hollow(p)
           : p->m < LEAST || p->n < LEAST ? "takes large matrices"
           : p->m > most || p->n > most || p->k > most || p->batch > 65535 ||
                   p->batch * gemm_ceil(p->m, SPLIT_TM) * gemm_ceil(p->n, SPLIT_TM) > most
               ? "takes no sizes this large"
               : mc_hopper_refuse();
}

/* column: of a step of 64 terms of a tile; around: of the launches; bytes: a second, for packing. */
static const double column_seconds = 8e-9, around = 12e-6, bytes_a_second = 2.2e12;

static double estimate(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    const double packed = (double)(p->batch * gemm_ceil(p->k, SPLIT_TK) * SPLIT_TK) * (double)(p->m + p->n);
    return around + column_seconds * shape_of(p).cost + packed * 8 / bytes_a_second;
}

void mc_split_large_defines(struct mc_str *out, int tn, int together, bool adds, enum mc_act act)
{
    mc_str_addf(out,
                "#define TN %d\n#define TOGETHER %d\n#define ADDS %d\n#define ACT %d\nenum { SLOTS = %d };\n",
                tn, together, adds, (int)act, SLOTS);
    mc_hopper_instruction(out, tn, MC_FLOAT16, false, false);
}

static bool make_kernels(struct large *d, const struct mc_gemm_problem *p, const struct shape *s)
{
    const struct mc_cuda_kernel_ref product = { &d->product, "product" };
    struct mc_str defines = { 0 };
    mc_split_large_defines(&defines, s->tn, s->together, p->beta != 0, p->act);
    return mc_cuda_kernels(&mc_gemm_split_large_text, &defines, &product, 1) &&
           mc_split_packers_make(&d->pack);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct large *d = mc_calloc(1, sizeof *d, "plans");
    const struct shape s = shape_of(p);
    if (!d) {
        return NULL;
    }
    struct mc_split_large_args *a = &d->args;
    d->base.run = run;
    d->tn = s.tn;
    d->rows[0] = gemm_ceil(p->m, SPLIT_TM * s.together) * SPLIT_TM * s.together;
    d->rows[1] = gemm_ceil(p->n, s.tn) * s.tn;
    *a = (struct mc_split_large_args){
        .m = (int)p->m,
        .n = (int)p->n,
        .k = (int)p->k,
        .steps = (int)gemm_ceil(p->k, SPLIT_TK),
        .batch = (int)p->batch,
        .down = (int)(d->rows[0] / SPLIT_TM / s.together),
        .right = (int)(d->rows[1] / s.tn),
        .alpha = (float)p->alpha,
        .beta = (float)p->beta,
    };
    const int64_t k = 2 * (int64_t)a->steps * SPLIT_TK, tiles = p->batch * a->down * a->right;
    a->a_batch = d->rows[0] * k;
    a->b_batch = d->rows[1] * k;
    memcpy(a->as, p->as, sizeof a->as);
    memcpy(a->bs, p->bs, sizeof a->bs);
    memcpy(a->cs, p->cs, sizeof a->cs);
    memcpy(a->c0s, p->c0s, sizeof a->c0s);
    d->grid = (struct mc_grid){
        .blocks = { (unsigned)MC_MIN(tiles, MC_MAX(mc_cuda_multiprocessors() / s.together, 1)),
                    (unsigned)s.together, 1 },
        .threads = { 384, 1, 1 },
        .shared = SLOTS * (size_t)(SPLIT_TM + s.tn) * MC_CUDA_ROW + 1024,
        .together = (unsigned)s.together,
    };
    if (!make_kernels(d, p, &s)) {
        mc_free(d);
        return NULL;
    }
    const size_t batch = (size_t)p->batch, each = sizeof(struct mc_split_seen), half = sizeof(uint16_t);
    const size_t bytes[4] = { batch * (size_t)p->m * each, batch * (size_t)p->n * each,
                              batch * (size_t)a->a_batch * half, batch * (size_t)a->b_batch * half };
    for (int i = 0; i < 4; i++) {
        d->at[i] = d->base.workspace;
        d->base.workspace += (bytes[i] + 1023) / 1024 * 1024;
    }
    return &d->base;
}

const struct mc_solver mc_gemm_cuda_split_large = {
    .name = "split_large", .refuse = refuse, .estimate = estimate, .plan = plan,
};
