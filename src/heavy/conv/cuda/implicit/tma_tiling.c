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
enum { MOST_TILES = 1 << 16, MOST_BOX = 256, MOST_SUMS = 384, NARROW = 64 };

/* The taps that read inside the image from any of the positions [from, from + count) of an axis. */
static int taps(const struct mc_conv_tma_args *a, int axis, int from, int count)
{
    const int end = MC_MIN(from + count, a->out[axis]), d = a->dilation[axis];
    const int low = a->pad[axis] - (end - 1) * a->stride[axis],
              high = a->in[axis] - 1 + a->pad[axis] - from * a->stride[axis];
    const int first = low > 0 ? (low + d - 1) / d : 0,
              last = MC_MIN(high < 0 ? -1 : high / d, a->k[axis] - 1);
    return MC_MAX(last - first + 1, 0);
}

/* The taps of all boxes of `count` positions along an axis: their sum and their maximum. */
struct seen { int64_t sum, most; };
static struct seen all_taps(const struct mc_conv_tma_args *a, int axis, int count)
{
    struct seen s = { 0, 0 };
    for (int i = 0; i < a->out[axis]; i += count) {
        const int n = taps(a, axis, i, count);
        s.sum += n;
        s.most = MC_MAX(s.most, n);
    }
    return s;
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
 * its operands arrives; a result is stored; start and end; margin: a factor. */
static const double multiplied = 4 / 1.7e9, came = 1 / 87e9, left = 1.0e-10, around = 4e-6, margin = 1.04;

/* taps: of the busiest block. */
static double seconds(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c, double taps)
{
    const double rows = (double)TMA_ROWS * c->mi,
                 waves = (double)conv_ceil(c->tiles, (int64_t)mc_cuda_multiprocessors()),
                 steps = taps * a->chunks;
    const double sums = steps * multiplied * c->mi * c->tn + waves * left * rows * c->tn;
    return around + margin * MC_MAX(sums, steps * came * (rows + c->tn) * MC_CUDA_ROW);
}

/* As many waves as the tiles need, each with the average work of a tile; at least the largest tile. */
static double estimate_time(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c,
                            struct seen down, struct seen right)
{
    const double boxes = (double)(conv_ceil(a->out[0], c->box[1]) * conv_ceil(a->out[1], c->box[2]));
    const double waves = (double)conv_ceil(c->tiles, (int64_t)mc_cuda_multiprocessors());
    return seconds(a, c,
                   MC_MAX(waves * (double)(down.sum * right.sum) / boxes, (double)(down.most * right.most)));
}

/* The same by assigning tiles to blocks, where that is fast. */
enum { MOST_BLOCKS = 512, MOST_TAPS = 1024, MOST_TRIED = 4096 };
static double simulate_time(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c)
{
    const int blocks = mc_cuda_multiprocessors(), most = a->k[0] * a->k[1];
    const int64_t each = conv_ceil(a->images, c->box[0]) * conv_ceil(a->results, c->tn);
    struct busy heap[MOST_BLOCKS];
    int64_t tiles[MOST_TAPS + 1] = { 0 }, busiest = 0; /* tiles of so many taps */
    if (blocks > MOST_BLOCKS || most > MOST_TAPS || c->tiles > MOST_TRIED) {
        return c->seconds;
    }
    has_no_taps(heap, blocks);
    for (int y = 0; y < a->out[0]; y += c->box[1]) {
        for (int x = 0; x < a->out[1]; x += c->box[2]) {
            tiles[taps(a, 0, y, c->box[1]) * taps(a, 1, x, c->box[2])] += each;
        }
    }
    for (int n = most; n >= 0; n--) {
        for (int64_t i = 0; i < tiles[n]; i++) {
            next_position(heap, blocks, n);
        }
    }
    for (int i = 0; i < blocks; i++) {
        busiest = MC_MAX(busiest, heap[i].load);
    }
    return seconds(a, c, (double)busiest / MULTIPLYING);
}

/* The best box of so many images, for tiles of that size. seen: by axis, all_taps of each count. */
static void best_box(const struct mc_conv_tma_args *a, struct mc_conv_tma_tiling tried, int images,
                     struct seen seen[2][MOST_BOX + 1], struct mc_conv_tma_tiling *best)
{
    const int rows = TMA_ROWS * tried.mi / images;
    tried.box[0] = images;
    for (int right = 1; right <= MC_MIN(rows, a->out[1]); right++) {
        const int down = MC_MIN(rows / right, a->out[0]);
        tried.box[1] = down;
        tried.box[2] = right;
        tried.tiles = conv_ceil(a->images, images) * conv_ceil(a->out[0], down) *
                      conv_ceil(a->out[1], right) * conv_ceil(a->results, tried.tn);
        if ((down - 1) * a->stride[0] >= MOST_BOX || (right - 1) * a->stride[1] >= MOST_BOX ||
            tried.tiles > MOST_TILES) {
            continue;
        }
        tried.seconds = estimate_time(a, &tried, seen[0][down], seen[1][right]);
        *best = best->tn == 0 || tried.seconds < best->seconds ? tried : *best;
    }
}

struct mc_conv_tma_tiling mc_conv_tma_best_tiling(const struct mc_conv_tma_args *a)
{
    struct seen seen[2][MOST_BOX + 1];
    struct mc_conv_tma_tiling best = { 0 };
    for (int axis = 0; axis < 2; axis++) {
        for (int i = 1; i <= MOST_BOX; i++) {
            seen[axis][i] = all_taps(a, axis, i);
        }
    }
    for (int mi = 1; mi <= 2; mi++) {
        for (int tn = NARROW; tn <= MC_MIN(MOST_SUMS / mi, 256) && tn < a->results + NARROW; tn += NARROW) {
            struct mc_conv_tma_tiling own = { 0 };
            for (int images = 1; images <= TMA_ROWS * mi && images < 2 * a->images; images *= 2) {
                best_box(a, (struct mc_conv_tma_tiling){ .mi = mi, .tn = tn }, images, seen, &own);
            }
            own.seconds = own.tn > 0 ? simulate_time(a, &own) : 0;
            best = own.tn > 0 && (best.tn == 0 || own.seconds < best.seconds) ? own : best;
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

static int list_jobs(const struct mc_conv_tma_args *a, const struct mc_conv_tma_tiling *c, struct job *job)
{
    int n = 0;
    for (int i = 0; i < a->images; i += c->box[0]) {
        for (int y = 0; y < a->out[0]; y += c->box[1]) {
            for (int x = 0; x < a->out[1]; x += c->box[2]) {
                for (int f = 0; f < a->results; f += c->tn, n++) {
                    job[n] = (struct job){
                        { i, y, x, f }, taps(a, 0, y, c->box[1]) * taps(a, 1, x, c->box[2]), n, 0
                    };
                }
            }
        }
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
