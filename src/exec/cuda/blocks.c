/* blocks.c: divides a kernel's work at one shape among blocks of threads, form by form.
 *
 * Invariant: how a reduction is split follows from its sizes alone, and from whether blocks can share a row's
 * registers (clusters), so GPUs that agree on that add in the same order. */
#include "exec/cuda/grid.h"

enum {
    MOST_BLOCKS = 2112,
    DRAWING_BLOCKS = 1056, /* each thread makes the key of its draws, for more elements */
    BLOCK = 256,
    WARP = 32,
    MOST_SPLITS = 256,
    ENOUGH_BLOCKS = 264,
    COLUMN_BLOCKS = 396,
    FULL_BLOCKS = 528,
    LONG = 8192,
    MANY = 2048,
    FEW_ROWS = 64,
    NEIGHBOUR_BLOCKS = 264,
    MOST_ROWS = 2048,
    WORTH = 4096,
    SEGMENTED_WORTH = 1024,
    LANE_VECTORS = 8,
    SMS = 132,
    SM_THREADS = 1024, /* of 64 registers that run at the same time */
    MOST_TEAMS = 660,
    FEW_TEAMS = 132
};
/* bytes of all teams' sums, at most, if fewer teams still fill the GPU */
static const int64_t most_column_sums = 16 << 20;

static unsigned round_up_power_of_two(int64_t n)
{
    unsigned p = 1;
    while (p < n && p < 1u << 30) {
        p *= 2;
    }
    return p;
}

static unsigned blocks_for(int64_t n, int64_t each)
{
    return (unsigned)((n + each - 1) / each);
}

static bool draws(const struct mc_kernel *k)
{
    bool any = false;
    for (size_t i = 0; i < k->val.n; i++) {
        any |= k->val.at[i].kind == K_OP && k->val.at[i].op->flags & OP_WORDS;
    }
    return any;
}

/* One thread for each element of a map, or group of v.  If 32 bits do not count them, the outermost axis is
 * divided into pieces, one launch each. */
void mc_grid_threads_map(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h,
                         const struct mc_axes *s, int64_t count)
{
    l->pieces = 1;
    if (count > INT32_MAX) {
        int outer = s->n[0] - 1;
        int64_t rest = count / h->size[outer], most = MC_MAX(INT32_MAX / MC_MAX(rest, 1), 1);
        l->piece = most;
        l->pieces = (h->size[outer] + most - 1) / most;
        l->outer = outer;
        count = rest * most;
    }
    h->count[0] = (uint32_t)count;
    l->grid = (struct mc_grid){ { MC_MIN(blocks_for(count, BLOCK), draws(k) ? DRAWING_BLOCKS : MOST_BLOCKS),
                                  1, 1 },
                                { BLOCK, 1, 1 },
                                0 };
}

/* Lanes for each point, and points of a block.  With h->column, lanes of neighbouring points are adjacent. */
static void lanes_per_row(const struct mc_kernel *k, const struct mc_grid_head *h,
                          unsigned *lanes, unsigned *rows)
{
    int64_t points = h->count[0], length = h->count[1];
    if (h->column) {
        *rows = MC_MIN(round_up_power_of_two(points), (unsigned)WARP);
        *lanes = MC_MIN(MC_MIN(round_up_power_of_two(length), BLOCK / *rows), 16);
        return;
    }
    /* enough points to fill the GPU with a warp each */
    bool many = points >= MANY && !mc_grid_column_sums(k);
    *lanes = length <= WARP                              ? round_up_power_of_two(length)
             : length <= 512 || (many && length <= 2048) ? WARP
             : length <= 2048                            ? 128
             : points < 64                               ? GRID_LANES
                                                         : BLOCK;
    *rows = MC_MAX(BLOCK / *lanes, 1);
}

/* Blocks of a kernel with column sums, each team with several rows, and of the kernel that adds the teams'
 * sums. */
void mc_grid_threads_column_sums(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h)
{
    int64_t rows = l->grid.threads[1], teams = MC_MAX(MC_MIN(h->count[0], MOST_TEAMS), 1),
            size = (int64_t)mc_grid_column_sums_size(k), n = 0;
    for (size_t i = 0; i < k->operand.n; i++) {
        n += k->operand.at[i].column_sums;
    }
    while (teams > FEW_TEAMS && teams * h->count[1] * n * size > most_column_sums) {
        teams /= 2;
    }
    l->grid.blocks[0] = blocks_for(teams, rows);
    h->teams = (uint32_t)(l->grid.blocks[0] * rows);
    l->scratch = (size_t)h->teams * h->count[1] * (size_t)(n * size);
    l->column_sums_grid = (struct mc_grid){ { blocks_for(h->count[1], GRID_SUM_COLUMNS), (unsigned)n, 1 },
                                            { GRID_SUM_COLUMNS, 1024 / GRID_SUM_COLUMNS, 1 },
                                            0 };
}

/* Elements of a row that the lanes of a block keep in registers, at most. */
static int64_t max_elements(struct mc_grid_row row)
{
    return (int64_t)row.vector * row.kept * row.most;
}

/* Blocks that share a row in registers, at most `most`: as many as the row needs, then more to fill the GPU
 * if each still has enough to do: more than one a multiprocessor do not pay for rows in segments. */
static unsigned cluster_size(const struct mc_kernel *k, struct mc_grid_row row, int64_t points,
                             int64_t length, unsigned most)
{
    const bool segmented = mc_grid_row_segmented(k);
    const int64_t fill = segmented ? SMS / 2 + 1 : SMS, worth = segmented ? SEGMENTED_WORTH : WORTH;
    unsigned n = 1;
    while (n < most && (length > n * max_elements(row) || (points * n < fill && length >= 2 * n * worth))) {
        n *= 2;
    }
    return n;
}

/* Lanes of each of the n blocks of a row in segments: as many as let all blocks run at the same time, if each
 * still has some vectors. */
static unsigned segmented_lanes(struct mc_grid_row row, int64_t points, int64_t length, unsigned n)
{
    const int64_t each = (int64_t)row.vector * n, vectors = (length + each - 1) / each,
                  least = (vectors + row.kept - 1) / row.kept,
                  fill = MC_MIN(SM_THREADS / blocks_for(MC_MAX(points * n, 1), SMS), vectors / LANE_VECTORS),
                  lanes = (MC_MAX(least, fill / WARP * WARP) + WARP - 1) / WARP * WARP;
    return lanes < row.most ? (unsigned)lanes : (unsigned)row.most;
}

/* Threads of a kernel that keeps its rows in the registers of n blocks each. */
void mc_grid_threads_rows(const struct mc_kernel *k, struct mc_grid_launch *l, const struct mc_grid_head *h,
                          struct mc_grid_row row, unsigned n)
{
    int64_t each = (int64_t)row.vector * row.kept * n;
    unsigned lanes = mc_grid_row_segmented(k)
                         ? segmented_lanes(row, h->count[0], h->count[1], n)
                         : MC_MAX(round_up_power_of_two((h->count[1] + each - 1) / each), (unsigned)WARP),
             rows = MC_MAX(BLOCK / 2 / lanes, 1);
    l->grid = (struct mc_grid){ { blocks_for(h->count[0], rows), n, 1 }, { lanes, rows, 1 }, 0, n };
    l->grid.shared = lanes * n > WARP ? (size_t)k->nreduce * rows * WARP * GRID_SHARED * (n > 1 ? 2 : 1) : 0;
    l->stages = 1;
}

/* Blocks that share the reduction of a point.  With several stages, each a launch, it must be long. */
static uint32_t splits_for(const struct mc_kernel *k, const struct mc_grid_head *h, int64_t across,
                           unsigned lanes, int vector)
{
    int64_t length = h->count[1], most = MC_MIN(length * vector / (lanes * 8), MOST_SPLITS);
    int64_t enough = vector > 1 ? FULL_BLOCKS : h->column ? COLUMN_BLOCKS : ENOUGH_BLOCKS;
    while (h->column &&
           /* each block reads the sums of all blocks: at most as many as it reads elements */
           most * most * 4 > length) {
        most--;
    }
    int64_t worth = h->column ? LONG / BLOCK * lanes : LONG; /* as many steps for each lane */
    if (!mc_grid_can_split(k) || across >= enough / 2 || most < 2 ||
        (k->nstage > 1 && length * vector < worth)) {
        return 1;
    }
    return (uint32_t)MC_MIN(enough / MC_MAX(across, 1), most);
}

/* Threads of a reducing kernel that reads `vector` elements at once, and how many blocks share a point. */
void mc_grid_threads_points(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h,
                            int vector)
{
    int64_t points = h->count[0], length = h->count[1];
    unsigned lanes, rows;
    h->column = k->mode == KERNEL_COLUMN && points >= 8;
    lanes_per_row(k, h, &lanes, &rows);
    int64_t across = blocks_for(points, rows);
    h->splits = splits_for(k, h, across, lanes, vector);
    h->chunk = (uint32_t)((length + h->splits - 1) / h->splits);
    h->chunk = h->splits > 1 ? (h->chunk + lanes - 1) / lanes * lanes : MC_MAX(h->chunk, 1);
    h->splits = length ? blocks_for(length, h->chunk) : 1;
    l->grid = (struct mc_grid){ { (unsigned)across, h->splits, 1 },
                                { h->column ? rows : lanes, h->column ? lanes : rows, 1 },
                                0 };
    l->grid.shared = h->column || lanes > WARP ? (size_t)(lanes * rows) * GRID_SHARED : 0;
    l->stages = h->splits > 1 ? (uint32_t)k->nstage : 1;
    l->ends = h->splits > 1 && mc_grid_last_stage_reduces(k);
    l->scratch = h->splits > 1 ? (size_t)k->nreduce * h->splits * (size_t)points * 16 : 0;
}

/* Threads of a column kernel (NAME_c).  A block is GRID_COLUMNS columns wide; its other threads take further
 * rows.  Rows are split among enough blocks to fill the GPU while the sums that each block reads are no more
 * bytes than its rows; and so that a lane takes few rows. */
void mc_grid_threads_columns(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h)
{
    const int64_t sums = h->count[0], length = h->count[1], neighbours = mc_grid_column(k);
    const struct mc_grid_parts parts = mc_grid_parts(k);
    const unsigned wide = MC_MIN(round_up_power_of_two(sums), (unsigned)(GRID_COLUMNS / neighbours)),
                   lanes = MC_MAX(MC_MIN(round_up_power_of_two(length), BLOCK / wide), WARP / wide);
    const int64_t across = blocks_for(sums, wide);
    int64_t most = MC_MIN(length / (lanes * 2), MOST_SPLITS);
    while (most > 1 && most * most * parts.most * 2 > length) {
        most--;
    }
    h->splits = (uint32_t)MC_MAX(MC_MAX(MC_MIN(NEIGHBOUR_BLOCKS / MC_MAX(across, 1), most), 1),
                                 blocks_for(length, (int64_t)lanes * MOST_ROWS));
    h->chunk = (uint32_t)MC_MAX((length + h->splits - 1) / h->splits, 1);
    h->splits = length ? blocks_for(length, h->chunk) : 1;
    l->grid = (struct mc_grid){ { (unsigned)across, h->splits, 1 },
                                { wide, lanes, 1 },
                                mc_grid_parts_shared(parts, wide * lanes) };
    l->stages = h->splits > 1 ? (uint32_t)k->nstage : 1;
    l->ends = h->splits > 1 && mc_grid_last_stage_reduces(k);
    l->scratch = h->splits > 1 ? (size_t)parts.all * h->splits * (size_t)(sums * neighbours) * sizeof(double)
                               : 0;
}

/* Can the lanes of `most` blocks keep rows of that length, and does it keep them busy? */
bool mc_grid_threads_keeps(struct mc_grid_row row, int64_t length, unsigned most)
{
    return row.vector && length * 2 >= row.vector * WARP && length <= max_elements(row) * most;
}

bool mc_grid_threads_shares(const struct mc_kernel *k, struct mc_grid_row row, int64_t length)
{
    return mc_grid_threads_keeps(row, length, GRID_CLUSTER_MOST) &&
           cluster_size(k, row, 1, length, GRID_CLUSTER_MOST) > 1;
}

/* Blocks for each row in a form that keeps rows in registers; 0: it cannot.  Rows must be contiguous, or
 * consist of contiguous segments.  Where there are few blocks in all, long rows are better split among more
 * of them. */
unsigned mc_grid_threads_keeps_rows(const struct mc_kernel *k, const struct mc_axes *s,
                                    const struct mc_grid_launch *l, const struct mc_slot *slot,
                                    struct mc_grid_row row, unsigned most)
{
    const bool segmented = mc_grid_row_segmented(k);
    if (!mc_grid_threads_keeps(row, s->count[1], most) || s->n[1] < 1 || s->n[1] > 1 + segmented ||
        !mc_axes_fit_int32(k, s) || !mc_axes_dense(k, s, l, slot, s->n[0], row.vector)) {
        return 0;
    }
    const unsigned n = cluster_size(k, row, s->count[0], s->count[1], most);
    if (segmented && n > 1) {
        const unsigned lanes = segmented_lanes(row, s->count[0], s->count[1], n);
        return blocks_for(s->count[0] * n, SMS) * lanes <= SM_THREADS ? n : 0;
    }
    const bool many = s->count[0] * n >= (segmented ? FEW_ROWS : SMS);
    return many || (segmented ? s->count[1] < LONG : k->nstage > 1) ? n : 0;
}

/* Can NAME_c compute it?  The columns must be contiguous, along one axis. */
bool mc_grid_threads_keeps_columns(const struct mc_kernel *k, const struct mc_axes *s,
                                   const struct mc_grid_launch *l, const struct mc_slot *slot)
{
    return s->n[0] == 1 && s->n[1] >= 1 && mc_axes_fit_int32(k, s) &&
           mc_axes_dense(k, s, l, slot, 0, mc_grid_column(k));
}
