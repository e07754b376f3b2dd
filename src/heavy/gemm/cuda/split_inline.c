/* split_inline.c: products whose blocks split their operands into halves themselves: split-K, kernels and
 * launches. */
#include "heavy/gemm/cuda/split_inline.h"
#include "heavy/gemm/solver.h"
#include <stdlib.h>

static const char tile[] = {
#include "heavy/gemm/cuda/split_inline_tile_text.h"
    , 0 };
static const char text[] = {
#include "heavy/gemm/cuda/split_inline_text.h"
    , 0 };
static const struct mc_cuda_text tile_text = { "heavy/gemm/cuda/split_inline_tile.cu", tile, NULL };
const struct mc_cuda_text mc_split_inline_text = { "heavy/gemm/cuda/split_inline.cu", text, &tile_text };

/* BLOCKS: that run on a multiprocessor at once; WAVES: least waves of blocks, if a block computes several
 * tiles */
enum { TILE = SPLIT_INLINE_TILE, BLOCKS = 2, WAVES = 4 };
/* Beyond PARTS parts, a part of a sum has at least STEPS steps.  Up to MOST_BY_THREAD parts are
 * added by one thread. */
enum { STEPS = 4, PARTS = 16, MOST_BY_THREAD = 8 };
/* size of a cluster whose blocks share a tile: pairs leave no multiprocessor idle */
enum { TOGETHER = 2 };
/* bytes of shared memory: for two steps, tiles of A and B as high and low halves, and the scales of eight
 * warps */
enum { SHARED = 2 * (4 * TILE * SPLIT_INLINE_PITCH * 2 + 2 * SPLIT_INLINE_WARPS * 4) };
/* Fitted to 36 products, from 50 x 50 x 50 to 1024 x 16 x 60000, on an H200.  step_seconds: with one block
 * on a multiprocessor, and with BLOCKS. */
static const double launch_seconds = 3.3e-6, step_seconds[] = { 1.6e-6, 2.9e-6 }, part_bytes = 3.6e12;

static int64_t tiles(int64_t m, int64_t n, int64_t batch)
{
    return gemm_ceil(m, TILE) * gemm_ceil(n, TILE) * batch;
}

static int64_t splits(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer)
{
    const int64_t steps = gemm_ceil(k, TILE) * outer,
                  most = MC_MIN(MC_MAX(steps / STEPS, (int64_t)PARTS), steps);
    return MC_MAX(MC_MIN(BLOCKS * mc_cuda_multiprocessors() / MC_MAX(tiles(m, n, batch), (int64_t)1), most),
                  (int64_t)1);
}

bool mc_split_inline_small(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer)
{
    const int64_t most = INT32_MAX / 64;
    return m <= most && n <= most && k <= most && batch <= UINT16_MAX && outer <= UINT16_MAX &&
           gemm_ceil(k, TILE) * outer <= most / 64 && tiles(m, n, batch) <= most / 2048;
}

double mc_split_inline_seconds(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t outer)
{
    const int64_t parts = splits(m, n, k, batch, outer);
    const int64_t parts_of_all = tiles(m, n, batch) * parts, processors = mc_cuda_multiprocessors();
    const double waves = (double)gemm_ceil(parts_of_all, BLOCKS * processors),
                 steps = (double)gemm_ceil(gemm_ceil(k, TILE) * outer, parts);
    const double moved = parts > 1 ? 2.0 * sizeof(float) * (double)(batch * m * n) * (double)parts
                                   : 0; /* partial sums are written and read */
    return launch_seconds + waves * steps * step_seconds[parts_of_all > processors] + moved / part_bytes;
}

/* Are all axes plain strides (no positions of an image), with strides of k that fit in an int? */
static bool lines(const struct mc_split_inline_args *a)
{
    const int64_t most = INT32_MAX / 64;
    return a->b_terms.across == INT32_MAX && a->b_cols.across == INT32_MAX && a->c_cols.across == INT32_MAX &&
           a->around[0] * a->around[1] == 1 && llabs(a->as[2]) <= most && llabs(a->b_terms.right) <= most;
}

/* Do the blocks that share a tile form a cluster, which adds the parts through shared memory? */
static bool together(const struct mc_split_inline_args *a)
{
    return a->splits > 1 && a->splits <= TOGETHER && mc_cuda_current()->together >= TOGETHER;
}

bool mc_split_inline_make(struct mc_split_inline *c, enum mc_act act, size_t *workspace)
{
    struct mc_split_inline_args *a = &c->args;
    struct mc_str defines = { 0 };
    a->splits = (int)splits(a->m, a->n, a->k, a->batch, a->outer);
    const bool by_thread = a->splits <= MOST_BY_THREAD, meet = together(a), adds = a->splits > 1 && !meet;
    const struct mc_cuda_kernel_ref kernels[] = { { &c->product, "product" },
                                                  { &c->add, !adds       ? NULL
                                                             : by_thread ? "add_by_thread"
                                                                         : "add" } };
    const int64_t down = gemm_ceil(a->m, TILE), across = gemm_ceil(a->n, TILE),
                  results = (int64_t)a->batch * a->m * a->n;
    const int64_t run = MC_MAX(down * across * a->batch / (WAVES * BLOCKS * mc_cuda_multiprocessors()),
                               (int64_t)1);
    c->fours[0] = a->as[2] == 1 && a->as[1] % 4 == 0 && a->as[0] % 4 == 0 && a->outer_step[0] % 4 == 0;
    c->fours[1] = a->b_terms.right == 1 && a->b_terms.across == INT32_MAX && a->b_cols.right % 4 == 0 &&
                  a->b_cols.down % 4 == 0 && a->bs % 4 == 0 && a->outer_step[1] % 4 == 0;
    a->run = (int)(a->k > TILE || a->outer > 1
                       ? 1
                       : MC_MIN(run, across)); /* tiles of one step: the next tile's loads overlap */
    c->grid = (struct mc_grid){ { (unsigned)(down * gemm_ceil(across, a->run)), (unsigned)a->splits,
                                  (unsigned)a->batch },
                                { 256, 1, 1 },
                                SHARED,
                                meet ? TOGETHER : 1 };
    c->add_grid = (struct mc_grid){ { (unsigned)gemm_ceil(results, by_thread ? 256 : 32), 1, 1 },
                                    { 256, 1, 1 },
                                    0 };
    *workspace = adds ? (size_t)(a->splits * results) * sizeof(float) : 0;
    mc_str_addf(&defines,
                "#define ACT %d\n#define LINES %d\n#define A_DENSE %d\n#define B_DENSE %d\n#define SPLIT "
                "%d\n#define TOGETHER %d\n",
                (int)act, lines(a), a->as[2] == 1, a->b_terms.right == 1 && a->b_terms.across >= TILE,
                a->splits > 1, meet);
    return mc_cuda_kernels(&mc_split_inline_text, &defines, kernels, NELEM(kernels));
}

mc_status mc_split_inline_run(const struct mc_split_inline *c, const void *a, const void *b, const void *c0,
                              void *to, void *workspace)
{
    struct mc_split_inline_args args = c->args;
    args.a = a;
    args.b = b;
    args.c0 = c0;
    args.c = to;
    args.parts = workspace;
    args.fours[0] = c->fours[0] && mc_cuda_aligned(a);
    args.fours[1] = c->fours[1] && mc_cuda_aligned(b);
    TRY(mc_cuda_launch_dependent(mc_cuda_current(), c->product, "product", &c->grid, &args, sizeof args));
    return c->add
               ? mc_cuda_launch_dependent(mc_cuda_current(), c->add, "add", &c->add_grid, &args, sizeof args)
               : MC_OK;
}
