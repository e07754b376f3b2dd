/* split.c: products of operands that are split into halves: kernels, tile sizes, split-K and launches,
 * shared by solvers of matrix products and convolutions.
 *
 * Invariant: partial sums of split-K are added in the order of k. */
#include "heavy/gemm/cuda/split.h"

static const char text[] = {
#include "heavy/gemm/cuda/split_tiles_text.h"
    ,
#include "heavy/gemm/cuda/split_text.h"
    , 0 };
const struct mc_cuda_text mc_gemm_split_text = { "heavy/gemm/cuda/split.cu", text, &mc_gemm_hopper_text };

enum { ROW = MC_CUDA_ROW, MOST_SPLITS = 16 };

int mc_split_width(int64_t n, enum mc_split_mode mode)
{
    const int64_t wide = (n + 127) / 128 * 128, less = (n + 95) / 96 * 96;
    return n <= 64 ? 64 : mode != SPLIT_FILTERS && less < wide ? 96 : 128;
}

/* Steps for which shared memory has room. */
static int slots(int tn)
{
    return tn > 96 ? 3 : 4;
}

/* ---- text ---- */

void mc_split_defines(struct mc_str *out, enum mc_split_mode mode, int tn, int unit, bool inside)
{
    const bool phases = mode == SPLIT_WINDOWS_PHASES;
    mc_str_addf(out,
                "#define MODE %d\n#define PHASES %d\n#define TN %d\n#define UNIT %d\n#define INSIDE %d\n"
                "enum { SLOTS = %d };\n",
                (int)(phases ? SPLIT_WINDOWS : mode), phases, tn, unit, inside, slots(tn));
    mc_hopper_instruction(out, tn, MC_FLOAT16, mode == SPLIT_FILTERS, mode == SPLIT_FILTERS);
}

/* ---- split-K ---- */

static int64_t tiles_of(const struct mc_split_size *z, int tn)
{
    return z->parts * gemm_ceil(z->m, SPLIT_TM) * gemm_ceil(z->n, tn);
}

/* Minimizes the number of waves of blocks times the steps of each, plus the cost of adding partial sums. */
static int best_splits(int64_t tiles, const struct mc_split_size *z, int processors)
{
    int best = 1;
    double least = 1e300;
    for (int s = 1; s <= MOST_SPLITS && s * 4 <= MC_MAX(z->longest, (int64_t)4); s++) {
        const double waves = (double)gemm_ceil(tiles * s, processors), each = (double)gemm_ceil(z->steps, s),
                     most = (double)gemm_ceil(z->longest, s);
        const double cost = MC_MAX(waves * (each + 3), most + 3) +
                            (s > 1 ? 8 + (double)(s * tiles) / processors : 0);
        if (cost < 0.97 * least) {
            least = cost;
            best = s;
        }
    }
    return best;
}

mc_status mc_split_make(struct mc_split *s, enum mc_split_mode mode, int unit, bool inside,
                        const struct mc_split_size *z)
{
    const struct mc_cuda_kernel_ref products[] = { { &s->product, "product" }, { &s->add_up, "add_up" } };
    struct mc_str defines = { 0 };
    const int64_t tiles = tiles_of(z, s->tn);
    s->splits = best_splits(tiles, z, MC_MAX(mc_cuda_current()->processors, 1));
    s->partial = s->splits > 1 ? (size_t)(s->splits * z->parts * z->m * z->n) * sizeof(float) : 0;
    s->grid = (struct mc_grid){ .blocks = { (unsigned)(tiles / z->parts), (unsigned)s->splits,
                                            (unsigned)z->parts },
                                .threads = { 384, 1, 1 },
                                .shared = (size_t)slots(s->tn) * 2 * (size_t)(SPLIT_TM + s->tn) * ROW +
                                          1024 };
    mc_split_defines(&defines, mode, s->tn, unit, inside);
    return mc_cuda_kernels(&mc_gemm_split_text, &defines, products, NELEM(products)) &&
                   mc_split_packers_make(&s->pack)
               ? MC_OK
               : mc_last_status();
}

/* ---- launches ---- */

mc_status mc_split_run(const struct mc_split *s, struct mc_split_args *a, void *partial)
{
    struct mc_cuda *gpu = mc_cuda_current();
    a->splits = s->splits;
    a->partial = s->splits > 1 ? partial : NULL;
    TRY(mc_cuda_launch_dependent(gpu, s->product, "product", &s->grid, a, sizeof *a));
    if (s->splits == 1) {
        return MC_OK;
    }
    const struct mc_grid line = mc_cuda_grid_1d((int64_t)a->m * a->n * a->parts, 256);
    return mc_cuda_launch_dependent(gpu, s->add_up, "add_up", &line, a, sizeof *a);
}

/* ---- estimates ---- */

/* tile: of a tile without its steps; step: on a full GPU; around: of the launches; memory_bytes: a second,
 *       for writing and reading halves and partial sums. */
static const double tile_seconds = 14e-6, step_seconds = 1.2e-6, around = 12e-6, memory_bytes = 2.5e12;

double mc_split_seconds(int tn, const struct mc_split_size *z, double packed)
{
    const struct mc_cuda *d = mc_cuda_current();
    const int processors = d ? MC_MAX(d->processors, 1) : 1;
    const int64_t tiles = tiles_of(z, tn);
    const int splits = best_splits(tiles, z, processors);
    const double waves = (double)gemm_ceil(tiles * splits, processors),
                 each = (double)gemm_ceil(z->steps, splits), most = (double)gemm_ceil(z->longest, splits);
    const double sums = splits > 1
                            ? (double)(splits + 1) * 4 * (double)(z->parts * z->m * z->n) / memory_bytes
                            : 0;
    const double step = step_seconds * (0.4 + 0.6 * tn / 128);
    return around + MC_MAX(waves * (tile_seconds + each * step), tile_seconds + most * step) +
           packed * 16 / memory_bytes + sums;
}
