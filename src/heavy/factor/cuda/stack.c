/* stack.c: which kernel computes small matrices on a GPU, with how many threads and how much shared memory.
 *
 *   panels.cu   cholesky, lu, solve, inverse, triangular: in shared memory, or in the scratch
 *   eigh.cu     eigenvalues of symmetric matrices: in shared memory
 *   svd.cu      singular values: in shared memory
 *
 * Invariant: what a block has is bounded by the size of one matrix, so that a stack of any length is one
 * launch. */
#include "heavy/factor/cuda/stack.h"

static const char base_text[] = {
#include "heavy/factor/cuda/stack_text.h"
    , 0 };
static const char panels_text[] = {
#include "heavy/factor/cuda/panels_text.h"
    , 0 };
static const char jacobi_text[] = {
#include "heavy/factor/cuda/jacobi_text.h"
    , 0 };
static const char eigh_text[] = {
#include "heavy/factor/cuda/eigh_text.h"
    , 0 };
static const char svd_text[] = {
#include "heavy/factor/cuda/svd_text.h"
    , 0 };
static const struct mc_cuda_text base = { "heavy/factor/cuda/stack.cu", base_text, NULL },
                                 jacobi = { "heavy/factor/cuda/jacobi.cu", jacobi_text, &base },
                                 panels = { "heavy/factor/cuda/panels.cu", panels_text, &base },
                                 eigh = { "heavy/factor/cuda/eigh.cu", eigh_text, &jacobi },
                                 svd = { "heavy/factor/cuda/svd.cu", svd_text, &jacobi };

/* OWN: shared memory that the texts declare, at most. */
enum { MOST_ROWS = 512, MOST_WIDTH = 2048, MOST_LANES = 32, SQUARE = 16 * 17 };
enum { OWN = 24 << 10, PLAIN = 48 << 10 };
enum { MOST_BLOCKS = 1 << 20, BLOCKS_EACH = 4 };

/* What a launch asks for.  A block gets more than 48 KB, that of its text included, only where more than that
 * is asked for. */
static size_t asked(size_t bytes)
{
    return bytes + OWN > PLAIN ? MC_MAX(bytes, (size_t)PLAIN + 16) : bytes;
}

/* ---- panels ---- */

/* Threads along the rows, and how often, by rows at most. */
static const struct { int rows, groups; } shapes[] = {
    { 32, 1 }, { 64, 4 }, { 128, 4 }, { 256, 2 }, { MOST_ROWS, 1 },
};

/* Columns with those of right hand sides. */
static int64_t width(const struct mc_factor *f)
{
    return f->kind == FACTOR_CHOLESKY  ? f->g[0]
           : f->kind == FACTOR_LU      ? f->g[1]
           : f->kind == FACTOR_INVERSE ? 2 * f->g[0]
                                       : f->g[0] + f->g[1];
}

static bool of_panels(const struct mc_factor *f, size_t shared, int processors,
                      struct mc_factor_stack_kernel *k, struct mc_str *defines)
{
    const int64_t rows = f->g[0], cols = width(f);
    const size_t size = mc_dtypes[f->dtype].size;
    int i = 0;
    if (rows > MOST_ROWS || cols > MOST_WIDTH) {
        return false;
    }
    while (shapes[i].rows < rows) {
        i++;
    }
    const bool triangle = f->kind == FACTOR_CHOLESKY; /* in shared memory without what is above it */
    const size_t bytes = (size_t)(cols * (rows | 1)) * size,
                 least = triangle ? (size_t)(rows * (rows + 1) / 2) * size : bytes;
    const unsigned threads = (unsigned)(shapes[i].rows * shapes[i].groups);
    const bool fits = least + OWN <= shared;
    k->text = &panels;
    k->name = "panels";
    k->grid = (struct mc_grid){ { (unsigned)MC_MIN(f->batch, (int64_t)MOST_BLOCKS), 1, 1 },
                                { threads, 1, 1 },
                                asked(fits ? least : threads / 32 * SQUARE * size) };
    if (!fits) {
        k->work = mc_work_rounded(bytes);
        k->grid.blocks[0] = (unsigned)MC_MIN(f->batch, (int64_t)processors * BLOCKS_EACH);
    }
    mc_str_addf(defines, "#define KIND %d\n#define ROWS %d\n#define GROUPS %d\n#define SHARED %d\n",
                (int)f->kind, shapes[i].rows, shapes[i].groups, fits);
    mc_str_addf(defines, "#define THREADS %u\n#define TURNED %d\n#define FORWARD %d\n#define UNIT %d\n",
                threads, f->g[2] != 0, (f->g[2] != 0) != (f->g[3] != 0), f->g[4] != 0);
    return true;
}

/* ---- rotations ---- */

static unsigned rounded_up(int64_t n) /* to a power of two */
{
    unsigned u = 1;
    while (u < n) {
        u *= 2;
    }
    return u;
}

static bool of_rotations(const struct mc_factor *f, size_t shared, struct mc_factor_stack_kernel *k,
                         struct mc_str *defines)
{
    const bool singular = f->kind == FACTOR_SVD || f->kind == FACTOR_SVDVALS,
               vectors = f->kind == FACTOR_SVD || f->kind == FACTOR_EIGH;
    const int64_t most = singular ? MC_MAX(f->g[0], f->g[1]) : f->g[0],
                  least = singular ? MC_MIN(f->g[0], f->g[1]) : f->g[0], even = least + least % 2,
                  side = singular && vectors ? f->g[2] : least;
    const size_t size = mc_dtypes[f->dtype].size;
    if (most > MOST_WIDTH || least > MOST_ROWS) {
        return false;
    }
    const int64_t elements = singular ? MC_MAX(side, even) * (most | 1) + vectors * even * (even + 1) +
                                            2 * even + most
                                      : (1 + vectors) * even * (even + 1) + 4 * even;
    const size_t bytes = (size_t)elements * size + (size_t)(3 * MC_MAX(even, most)) * sizeof(int);
    const unsigned pairs = rounded_up(even / 2),
                   wanted = singular ? pairs * MC_MIN(rounded_up((most + 3) / 4), (unsigned)MOST_LANES)
                                     : rounded_up(least * least / 16),
                   threads = MC_MAX(32u, MC_MIN(wanted, 512u));
    k->text = singular ? &svd : &eigh;
    k->name = singular ? "singular" : "spectrum";
    k->grid = (struct mc_grid){ { (unsigned)MC_MIN(f->batch, (int64_t)MOST_BLOCKS), 1, 1 },
                                { threads, 1, 1 },
                                asked(bytes) };
    mc_str_addf(defines, "#define VECTORS %d\n#define THREADS %u\n#define LANES %u\n", vectors, threads,
                MC_MIN(MC_MAX(threads / pairs, 1u), (unsigned)MOST_LANES));
    return bytes + OWN <= shared;
}

bool mc_factor_stack_of(const struct mc_factor *f, size_t shared, int processors,
                        struct mc_factor_stack_kernel *k, struct mc_str *defines)
{
    bool empty = f->batch < 1;
    for (int i = 0; i < f->nin; i++) {
        empty |= f->in[i] < 1;
    }
    *k = (struct mc_factor_stack_kernel){ 0 };
    mc_cuda_types(defines, f->dtype, false);
    switch (f->kind) {
    case FACTOR_CHOLESKY:
    case FACTOR_TRIANGULAR:
    case FACTOR_LU:
    case FACTOR_SOLVE:
    case FACTOR_INVERSE: return !empty && of_panels(f, shared, processors, k, defines);
    case FACTOR_EIGH:
    case FACTOR_EIGVALSH:
    case FACTOR_SVD:
    case FACTOR_SVDVALS: return !empty && of_rotations(f, shared, k, defines);
    default: return false;
    }
}

mc_status mc_factor_stack_new(const struct mc_factor *f, struct mc_factor_stack_kernel *k)
{
    const struct mc_cuda *d = mc_cuda_current();
    struct mc_str defines = { 0 };
    if (!mc_factor_stack_of(f, d->shared, d->processors, k, &defines)) {
        mc_str_free(&defines);
        return mc_fail(MC_EUNSUPPORTED, "%s: no kernel takes such matrices", f->op);
    }
    const struct mc_cuda_kernel_ref kernel = { &k->kernel, k->name };
    return mc_cuda_kernels(k->text, &defines, &kernel, 1) ? MC_OK : mc_last_status();
}

/* ---- when ---- */

bool mc_factor_stack_takes(const struct mc_factor *f)
{
    const struct mc_cuda *d = mc_cuda_current();
    struct mc_factor_stack_kernel k;
    struct mc_str defines = { 0 };
    const bool takes = mc_factor_stack_of(f, d->shared, d->processors, &k, &defines);
    mc_str_free(&defines);
    return takes;
}

/* By times of an H100 (bench/results/linalg-cuda.txt).  alone: rows at most, of stacks of any length; far:
 * the same where the host must not compute them; stack: matrices from which on a launch is shorter than one
 * matrix after another, if there is one for each ROWS_EACH rows. */
enum { ROWS_EACH = 64 };
static const struct { int64_t alone, far, stack; } limits[FACTOR_NKIND] = {
    [FACTOR_CHOLESKY]   = { 64,  64,  4 },
    [FACTOR_TRIANGULAR] = { 128, 128, 4 },
    [FACTOR_LU]         = { 255, 255, 4 },
    [FACTOR_SOLVE]      = { 255, 255, 4 },
    [FACTOR_INVERSE]    = { 128, 128, 4 },
    [FACTOR_EIGH]       = { 0,   16,  32 },
    [FACTOR_EIGVALSH]   = { 0,   16,  32 },
    [FACTOR_SVD]        = { 0,   96,  8 },
    [FACTOR_SVDVALS]    = { 0,   96,  8 },
};

bool mc_factor_stack_wins(const struct mc_factor *f, bool host)
{
    const int64_t least = MC_MAX(limits[f->kind].stack, f->g[0] / ROWS_EACH),
                  rows = host ? limits[f->kind].alone : limits[f->kind].far;
    return (f->batch >= least || f->g[0] <= rows) && mc_factor_stack_takes(f);
}
