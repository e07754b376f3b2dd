/* split_pack.c: launches of the kernels that split operands into packed halves (split_pack.cu).
 *
 * Invariant: after a launch p->rows holds the largest element of each row. */
#include "heavy/gemm/cuda/split.h"

static const char text[] = {
#include "heavy/gemm/cuda/split_pack_text.h"
    , 0 };
const struct mc_cuda_text mc_gemm_split_pack_text = { "heavy/gemm/cuda/split_pack.cu", text };

enum { COLUMN_BLOCKS = 8 };     /* most blocks of a cluster of pack_columns */
enum { KEPT_BYTES = 27 << 10 }; /* most of a row of filters in shared memory: eight blocks have room */

bool mc_split_packers_make(struct mc_split_packers *k)
{
    const struct mc_cuda_kernel_ref kernels[] = {
        { &k->look, "look" },         { &k->rows, "pack_rows" },       { &k->narrow, "pack_narrow" },
        { &k->lines, "pack_lines" },  { &k->columns, "pack_columns" }, { &k->filters, "pack_filters" },
    };
    struct mc_str none = { 0 };
    return mc_cuda_kernels(&mc_gemm_split_pack_text, &none, kernels, NELEM(kernels));
}

/* Matrices with one contiguous axis, which are read once. */
static mc_status pack_matrices(const struct mc_split_packers *k, const struct mc_split_pack *p,
                               unsigned outer)
{
    struct mc_cuda *gpu = mc_cuda_current();
    if (p->xs[3] == 1) {
        const unsigned each = p->cols_pad > 1024 ? 1 : 8; /* rows of a block */
        const struct mc_grid lines = { { ((unsigned)p->rows_pad + each - 1) / each, 1, outer },
                                       { 256, 1, 1 },
                                       0 };
        return mc_cuda_launch_dependent(gpu, k->lines, "pack_lines", &lines, p, sizeof *p);
    }
    const unsigned share = (unsigned)MC_MIN(p->cols_pad / SPLIT_TK,
                                            MC_MIN((int)gpu->together, COLUMN_BLOCKS));
    const struct mc_grid columns = { { (unsigned)(p->rows_pad + 31) / 32, share, outer },
                                     { 256, 1, 1 },
                                     .shared = SPLIT_COLUMN_SHARED,
                                     .together = share };
    return mc_cuda_launch_dependent(gpu, k->columns, "pack_columns", &columns, p, sizeof *p);
}

/* Blocks that look for the largest elements of matrices that are read twice. */
static struct mc_grid looking(const struct mc_split_pack *p, int outer)
{
    const bool by_row = p->xs[2] == 1 && p->xs[3] != 1;
    const unsigned enough = (unsigned)MC_MAX(8 * mc_cuda_current()->processors / outer, 1),
                   right = (unsigned)(p->cols_pad + 63) / 64,
                   rows = (unsigned)(p->n_rows + (by_row ? 63 : 7)) / (by_row ? 64 : 8),
                   high = MC_MIN(rows, p->seen_row ? UINT16_MAX : enough);
    return (struct mc_grid){ { high, MC_MIN(right, MC_MAX(enough / high, 1U)), (unsigned)(outer * p->inner) },
                             { 256, 1, 1 },
                             0 };
}

static mc_status pack(const struct mc_split_packers *k, const struct mc_split_pack *p, int outer)
{
    const bool narrow = !p->tile && p->cols_pad <= 8;
    const unsigned down = (unsigned)(p->rows_pad + 63) / 64, right = (unsigned)(p->cols_pad + 63) / 64;
    const struct mc_grid grid = { { narrow ? (unsigned)(p->n_rows + 255) / 256 : down, narrow ? 1 : right,
                                    (unsigned)(outer * p->inner) },
                                  { 256, 1, 1 },
                                  0 };
    return mc_cuda_launch_dependent(mc_cuda_current(), narrow ? k->narrow : k->rows,
                                    narrow ? "pack_narrow" : "pack_rows", &grid, p, sizeof *p);
}

mc_status mc_split_pack_rows(const struct mc_split_packers *k, const struct mc_split_pack *p, int outer,
                             size_t seen)
{
    struct mc_cuda *gpu = mc_cuda_current();
    if (p->tile && p->inner == 1 && p->seen_row == 1 && (p->xs[3] == 1 || p->xs[2] == 1)) {
        return pack_matrices(k, p, (unsigned)outer);
    }
    const struct mc_grid look = looking(p, outer);
    TRY(mc_cuda_clear(gpu, p->rows, seen * sizeof *p->rows));
    TRY(mc_cuda_launch_dependent(gpu, k->look, "look", &look, p, sizeof *p));
    return pack(k, p, outer);
}

mc_status mc_split_pack_images(const struct mc_split_packers *k, const struct mc_split_pack *p, int outer,
                               size_t seen, const struct mc_split_filters *f, int groups)
{
    struct mc_cuda *gpu = mc_cuda_current();
    const struct mc_grid look = looking(p, outer);
    const size_t row = (size_t)f->channels * (size_t)(f->k[0] * f->k[1]) * sizeof(float);
    struct mc_split_images a = { .images = *p, .filters = *f, .groups = groups };
    const struct mc_grid both = { { (unsigned)(f->rows_pad * groups) +
                                        look.blocks[0] * look.blocks[1] * look.blocks[2],
                                    1, 1 },
                                  { 256, 1, 1 },
                                  row <= KEPT_BYTES ? row : 0 };
    a.filters.kept = row <= KEPT_BYTES;
    for (int i = 0; i < 3; i++) {
        a.look[i] = (int)look.blocks[i];
    }
    TRY(mc_cuda_clear(gpu, p->rows, seen * sizeof *p->rows));
    TRY(mc_cuda_launch_dependent(gpu, k->filters, "pack_filters", &both, &a, sizeof a));
    return pack(k, p, outer);
}
