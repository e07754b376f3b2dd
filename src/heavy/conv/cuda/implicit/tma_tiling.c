/* tma_tiling.c: divides the rows and columns of a product of boxes (tma.cu) into tiles and assigns them to
 * blocks.
 *
 * Tiles at an image's edge have fewer taps, and so less work.  The largest tiles are assigned first, each
 * to the block with the least work.
 *
 * Invariant: a box has at most as many positions as its tile has rows. */
#include "heavy/conv/cuda/implicit/tma.h"
#include <stdlib.h>

/* MOST_SUMS: limit of mi tn by the number of registers */
enum { MOST_TILES = 1 << 16, MOST_BOX = 256, MOST_SUMS = 384 };
/* Columns of a tile. */
static const int widths[] = { 32, 64, 96, 128, 192, 256 };

/* The taps that read inside the image from any of the positions [from, from + count) of a phase. */
static int taps(const struct mc_conv_tma_args *a, int axis, int phase, int from, int count)
{
    const struct mc_conv_tma_phase *of = &a->phase[axis][phase];
    const int end = MC_MIN(from + count, of->out), d = a->dilation[axis];
    const int low = of->pad - (end - 1) * a->stride[axis],
              high = a->in[axis] - 1 + of->pad - from * a->stride[axis];
    const int first = low > 0 ? (low + d - 1) / d : 0, last = MC_MIN(high < 0 ? -1 : high / d, of->k - 1);
    return MC_MAX(last - first + 1, 0);
}

/* All boxes of `count` positions along an axis: their number, the sum and the maximum of their taps. */
struct seen { int64_t boxes, sum, most; };
static struct seen all_taps(const struct mc_conv_tma_args *a, int axis, int count)
{
    struct seen s = { 0, 0, 0 };
    for (int phase = 0; phase < a->phases[axis]; phase++) {
        for (int i = 0; i < a->phase[axis][phase].out; i += count) {
            const int n = taps(a, axis, phase, i, count);
            s.boxes++;
            s.sum += n;
            s.most = MC_MAX(s.most, n);
        }
    }
    return s;
}

/* The positions of an axis' largest phase. */
static int longest(const struct mc_conv_tma_args *a, int axis)
{
    return a->phase[axis][0].out;
}

/* ---- the least busy block ---- */

enum { LEAVING = 1, MULTIPLYING = 4 };  /* the cost of storing a tile, and of a tap */
struct busy { int64_t load; int block; };

static bool is_less_work(const struct busy *a, const struct busy *b)
{
    return a->load != b->load ? a->load < b->load : a->block < b->block;
}

/* heap[0] is the least busy of n blocks.  Adds a tile of so many taps to it; returns the block. */
static int next_position(struct busy *heap, int n, int taps)
{
    struct busy mine = heap[0];
    int at = 0;
    mine.load += MULTIPLYING * taps + LEAVING;
    for (int child = 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && is_less_work(&heap[child + 1], &heap[child]);
        if (!is_less_work(&heap[child], &mine)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = mine;
    return mine.block;
}

static void has_no_taps(struct busy *heap, int n)
{
    for (int i = 0; i < n; i++) {
        heap[i] = (struct busy){ 0, i };
    }
}

/* ---- the best tiling ---- */

/* Seconds on one multiprocessor of an H200, each measured alone: a step of a tile is multiplied; a byte of
 * its operands arrives; a result is stored; start and end; margin: a factor; the sums of parts are
 * added; from one tile to the next. */
static const double multiplied = 4 / 1.7e9, came = 1 / 87e9, left = 1.0e-10, around = 4e-6, margin = 1.04,
                    added = 1.5e-6, between = 0.7e-6;

static double seconds(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c)
{
    const double rows = (double)TMA_ROWS * c->mi,
                 waves = (double)conv_ceil(c->tiles, (int64_t)mc_cuda_multiprocessors()),
                 steps = c->taps * a->chunks / c->parts;
    const double sums = steps * multiplied * a->row / MC_CUDA_ROW * c->mi * c->tn,
                 read = steps * came * (rows + c->tn) * a->row,
                 store = waves * left * rows * c->tn / c->parts;
    const double busy = MC_MAX(sums, read), rest = (waves - 1) * between;
    const double adding = c->parts > 1 ? added + rows * c->tn / 2e10 : 0;
    return around + adding +
           margin * (c->alone ? MC_MAX(busy, (busy + 1.3 * store + rest) / 2) + store / waves
                              : MC_MAX(sums + store, read) + rest);
}

/* As many waves as the tiles need, each with the average work of a tile; at least the largest tile. */
static double estimate_taps(const struct mc_conv_tma_tiling *c, struct seen all)
{
    const double waves = (double)conv_ceil(c->tiles, (int64_t)mc_cuda_multiprocessors());
    return MC_MAX(waves * (double)all.sum / (double)all.boxes, (double)all.most);
}

/* The same by assigning tiles to blocks, where that is fast. */
enum { MOST_BLOCKS = 512, MOST_TAPS = 1024, MOST_TRIED = 4096 };

/* of[n]: how many boxes along an axis have n taps. */
static void count_boxes(const struct mc_conv_tma_args *a, int axis, int count, int64_t of[MOST_TAPS + 1])
{
    memset(of, 0, (MOST_TAPS + 1) * sizeof *of);
    for (int phase = 0; phase < a->phases[axis]; phase++) {
        for (int i = 0; i < a->phase[axis][phase].out; i += count) {
            of[taps(a, axis, phase, i, count)]++;
        }
    }
}

static double simulate_taps(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c,
                            int64_t most)
{
    const int blocks = mc_cuda_multiprocessors();
    struct busy heap[MOST_BLOCKS];
    int64_t tiles[MOST_TAPS + 1] = { 0 }, busiest = 0; /* tiles of so many taps */
    int64_t of[3][MOST_TAPS + 1];
    if (blocks > MOST_BLOCKS || most > MOST_TAPS || c->tiles > MOST_TRIED) {
        return c->taps;
    }
    for (int axis = 0; axis < 3; axis++) {
        count_boxes(a, axis, c->box[axis + 1], of[axis]);
    }
    for (int64_t i = 0; i <= most; i++) {
        for (int64_t j = 0; j <= most && of[0][i] > 0; j++) {
            for (int64_t k = 0; k <= most && of[1][j] > 0; k++) {
                if (of[2][k] > 0) {
                    tiles[i * j * k] += of[0][i] * of[1][j] * of[2][k];
                }
            }
        }
    }
    has_no_taps(heap, blocks);
    const int64_t each = conv_ceil(a->images, c->box[0]) * conv_ceil(a->results, c->tn);
    for (int n = (int)most; n >= 0; n--) {
        for (int64_t i = 0; i < tiles[n] * each; i++) {
            next_position(heap, blocks, n);
        }
    }
    for (int i = 0; i < blocks; i++) {
        busiest = MC_MAX(busiest, heap[i].load);
    }
    return (double)busiest / MULTIPLYING;
}

struct all_seen { struct seen of[3][MOST_BOX + 1]; };     /* by axis: all_taps of each count */

/* Is it better with these boxes? */
static void try_box(const struct mc_conv_tma_args *a, struct mc_conv_tma_tiling tried,
                    const struct all_seen *seen, struct mc_conv_tma_tiling *best)
{
    struct seen all = { 1, 1, 1 };
    for (int axis = 0; axis < 3; axis++) {
        const struct seen *s = &seen->of[axis][tried.box[axis + 1]];
        all = (struct seen){ all.boxes * s->boxes, all.sum * s->sum, all.most * s->most };
        if ((tried.box[axis + 1] - 1) * a->stride[axis] >= MOST_BOX) {
            return;
        }
    }
    tried.tiles = conv_ceil(a->images, tried.box[0]) * all.boxes * conv_ceil(a->results, tried.tn);
    if (tried.tiles <= MOST_TILES) {
        tried.taps = estimate_taps(&tried, all);
        tried.seconds = seconds(a, &tried);
        const bool fewer = tried.seconds == best->seconds && tried.tiles < best->tiles;
        *best = best->tn == 0 || tried.seconds < best->seconds || fewer ? tried : *best;
    }
}

/* The best box of so many images, for tiles of that size. */
static void best_box(const struct mc_conv_tma_args *a, struct mc_conv_tma_tiling tried,
                     const struct all_seen *seen,
                     struct mc_conv_tma_tiling *best)
{
    const int rows = TMA_ROWS * tried.mi / tried.box[0];
    for (int in = 1; in <= rows && in < 2 * longest(a, 0); in *= 2) {
        tried.box[1] = MC_MIN(in, longest(a, 0));
        const int flat = rows / tried.box[1];
        for (int right = 1; right <= MC_MIN(flat, longest(a, 2)); right++) {
            tried.box[2] = MC_MIN(flat / right, longest(a, 1));
            tried.box[3] = right;
            try_box(a, tried, seen, best);
        }
    }
}

/* At least the taps of any tile, and at least those of any box along each axis. */
static int64_t most_taps(const struct mc_conv_tma_tiling *c, const struct all_seen *seen)
{
    int64_t most = 1;
    for (int axis = 0; axis < 3; axis++) {
        most *= MC_MAX(seen->of[axis][c->box[axis + 1]].most, (int64_t)1);
    }
    return most;
}

/* Is it better if clusters divide the terms? All run at the same time; some multiprocessors stay idle, since
 * a cluster is within one part of the GPU. */
static void try_parts(const struct mc_conv_tma_args *a, struct mc_conv_tma_tiling tried, int64_t most,
                      struct mc_conv_tma_tiling *best)
{
    const size_t space = (size_t)mc_conv_tma_slots(tried.mi, tried.tn, a->row) *
                         mc_conv_tma_slot(tried.mi, tried.tn, a->row);
    const struct mc_cuda *gpu = mc_cuda_current();
    const int64_t usable = (int64_t)mc_cuda_multiprocessors() * 7 / 8;
    const int together = gpu ? (int)gpu->together : 1;
    for (tried.parts = 2; tried.parts <= together && tried.tiles * tried.parts <= usable &&
                          most * a->chunks >= 2 * tried.parts &&
                          (size_t)(TMA_ROWS * tried.mi * tried.tn) * sizeof(float) <= space;
         tried.parts *= 2) {
        tried.taps = (double)most;
        tried.seconds = seconds(a, &tried);
        *best = tried.seconds < best->seconds ? tried : *best;
    }
}

/* Is it better if the groups of a block take tiles in turn? */
static void try_alone(const struct mc_conv_tma_args *a, struct mc_conv_tma_tiling tried,
                      struct mc_conv_tma_tiling *best)
{
    if (2 * tried.mi * tried.tn <= MOST_SUMS && tried.tiles > mc_cuda_multiprocessors()) {
        tried.alone = true;
        tried.seconds = seconds(a, &tried);
        *best = tried.seconds < best->seconds ? tried : *best;
    }
}

struct mc_conv_tma_tiling mc_conv_tma_best_tiling(const struct mc_conv_tma_args *a)
{
    struct all_seen seen;
    struct mc_conv_tma_tiling best = { 0 };
    for (int axis = 0; axis < 3; axis++) {
        for (int i = 1; i <= MOST_BOX; i++) {
            seen.of[axis][i] = all_taps(a, axis, i);
        }
    }
    for (int mi = 1; mi <= 2; mi++) {
        for (size_t w = 0; w < NELEM(widths); w++) {
            const int tn = widths[w];
            if (tn > MOST_SUMS / mi || (w > 0 && widths[w - 1] >= a->results)) {
                continue;
            }
            struct mc_conv_tma_tiling own = { 0 };
            for (int images = 1; images <= TMA_ROWS * mi && images < 2 * a->images; images *= 2) {
                best_box(a, (struct mc_conv_tma_tiling){ .mi = mi, .tn = tn, .parts = 1, .box = { images } },
                         &seen, &own);
            }
            if (own.tn > 0) {
                own.taps = simulate_taps(a, &own, most_taps(&own, &seen));
                own.seconds = seconds(a, &own);
                best = best.tn == 0 || own.seconds < best.seconds ? own : best;
                try_alone(a, own, &best);
                try_parts(a, own, most_taps(&own, &seen), &best);
            }
        }
    }
    return best;
}

/* ---- assignment of tiles to blocks ---- */

struct job {
    struct mc_conv_tma_tile at;
    int taps, order, block;
};

static int by_taps(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return x->taps != y->taps ? (x->taps < y->taps) - (x->taps > y->taps)
                              : (x->order > y->order) - (x->order < y->order);
}

/* The jobs of one box, by columns. */
static int list_box(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c,
                    struct mc_conv_tma_tile t, struct job *job, int n)
{
    int reads = 1;
    for (int axis = 0; axis < 3; axis++) {
        reads *= taps(a, axis, t.phase[axis], t.at[axis], c->box[axis + 1]);
    }
    for (t.column = 0; t.column < a->results; t.column += c->tn, n++) {
        job[n] = (struct job){ t, reads, n, 0 };
    }
    return n;
}

/* The jobs of all boxes that begin as t along the axes before this one. */
static int list_axis(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c,
                     struct mc_conv_tma_tile t, int axis, struct job *job, int n)
{
    if (axis == 3) {
        return list_box(a, c, t, job, n);
    }
    for (t.phase[axis] = 0; t.phase[axis] < a->phases[axis]; t.phase[axis]++) {
        for (t.at[axis] = 0; t.at[axis] < a->phase[axis][t.phase[axis]].out; t.at[axis] += c->box[axis + 1]) {
            n = list_axis(a, c, t, axis + 1, job, n);
        }
    }
    return n;
}

static int list_jobs(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c, struct job *job)
{
    int n = 0;
    for (int i = 0; i < a->images; i += c->box[0]) {
        n = list_axis(a, c, (struct mc_conv_tma_tile){ .image = i }, 0, job, n);
    }
    qsort(job, (size_t)n, sizeof *job, by_taps);
    return n;
}

/* Stable: a block's tiles stay in the order of assignment. */
static void sort_by_block(const struct job *job, int n, struct mc_conv_tma_tile *tile, int *first, int blocks)
{
    memset(first, 0, (size_t)(blocks + 1) * sizeof *first);
    for (int i = 0; i < n; i++) {
        first[job[i].block + 1]++;
    }
    for (int b = 0; b < blocks; b++) {
        first[b + 1] += first[b];
    }
    for (int i = n; i-- > 0;) {
        tile[--first[job[i].block + 1]] = job[i].at;
    }
    memmove(first, first + 1, (size_t)blocks * sizeof *first);
    first[blocks] = n;
}

bool mc_conv_tma_hand_out(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c, int blocks,
                     struct mc_conv_tma_tile *tile, int *first)
{
    struct job *job = mc_alloc((size_t)c->tiles * sizeof *job, "plans");
    struct busy *heap = mc_alloc((size_t)blocks * sizeof *heap, "plans");
    const bool ok = job && heap;
    if (ok) {
        const int n = list_jobs(a, c, job);
        has_no_taps(heap, blocks);
        for (int i = 0; i < n; i++) {
            job[i].block = next_position(heap, blocks, job[i].taps);
        }
        sort_by_block(job, n, tile, first, blocks);
    }
    mc_free(job);
    mc_free(heap);
    return ok;
}
