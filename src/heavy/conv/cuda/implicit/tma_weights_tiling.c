/* tma_weights_tiling.c: divides gradients of filters (tma_weights.cu) into tiles, and the steps of tiles
 * among blocks.
 *
 * A tile's steps are the boxes of positions from which one of its taps reads inside the image: a rectangle of
 * lines and positions, of all images.
 *
 * Invariant: a box has at most 16 ks positions. */
#include "heavy/conv/cuda/implicit/tma.h"
#include <math.h>

enum { MOST_KS = 8, MOST_BOX = 256, MOST_TILES = 1 << 16, MOST_SLOTS = 8, ROUNDED = 1024,
       BARRIERS = 2 * MOST_SLOTS * 8, LEAST_SLOTS = 3 };

typedef struct mc_conv_tma_weights_args args;
typedef struct mc_conv_tma_weights_tiling tiling;

static int rows(const tiling *c)        /* in units */
{
    return c->down * c->mi;
}

static int columns(const tiling *c)
{
    return c->across * c->q;
}

int mc_conv_tma_weights_slots(const tiling *c)
{
    const size_t slot = (size_t)((rows(c) + columns(c)) * c->ks * 16) * MC_CUDA_ROW;
    return (int)MC_MIN((mc_cuda_current()->shared - ROUNDED - BARRIERS) / slot, (size_t)MOST_SLOTS);
}

/* ---- the boxes of a tile ---- */

struct range { int first, count; };     /* boxes along an axis */

/* The boxes from which tap k reads inside the image. */
static struct range reached(const args *a, int axis, int k, int box)
{
    const int at = a->pad[axis] - k * a->dilation[axis], s = a->stride[axis];
    const int low = at > 0 ? (at + s - 1) / s : 0, high = a->in[axis] - 1 + at;
    const int last = high < 0 ? -1 : MC_MIN(high / s, a->out[axis] - 1);
    return last < low ? (struct range){ 0, 0 } : (struct range){ low / box, last / box - low / box + 1 };
}

static struct range united(struct range a, struct range b)
{
    const int first = MC_MIN(a.first, b.first), end = MC_MAX(a.first + a.count, b.first + b.count);
    return a.count == 0 ? b : b.count == 0 ? a : (struct range){ first, end - first };
}

static int taps(const args *a)
{
    return a->k[0] * a->k[1] * a->k[2];
}

/* The units of taps from `unit` on: boxes along planes, lines and positions. */
static void boxes(const args *a, const tiling *c, int unit, struct range of[3])
{
    const int units = c->taps_down ? rows(c) : columns(c);
    const int last = MC_MIN((unit + units - 1) / a->chunks, taps(a) - 1);
    memset(of, 0, 3 * sizeof *of);
    for (int tap = unit / a->chunks; tap <= last; tap++) {
        struct range own[3];
        for (int i = 2, rest = tap; i >= 0; rest /= a->k[i--]) {
            own[i] = reached(a, i, rest % a->k[i], c->box[i + 1]);
        }
        for (int i = 0; i < 3 && own[0].count > 0 && own[1].count > 0 && own[2].count > 0; i++) {
            of[i] = united(of[i], own[i]);
        }
    }
}

/* The steps of a tile with these units. */
static int64_t steps(const args *a, const tiling *c, const struct range of[3])
{
    return conv_ceil(a->images, c->box[0]) * of[0].count * of[1].count * of[2].count;
}

/* The units along rows (0) or columns (1). */
static int all_units(const args *a, const tiling *c, int axis)
{
    return (axis == 0) == c->taps_down ? taps(a) * a->chunks : (int)conv_ceil(a->filters, TMA_UNIT);
}

/* The tile of an index, without its steps' share. Rows change fastest. */
static struct mc_conv_tma_weights_job tile(const args *a, const tiling *c, int64_t index)
{
    const int64_t down = conv_ceil(all_units(a, c, 0), rows(c));
    struct mc_conv_tma_weights_job j = { .row = (int)(index % down) * rows(c),
                                         .column = (int)(index / down) * columns(c),
                                         .part = -1 };
    struct range of[3];
    boxes(a, c, c->taps_down ? j.row : j.column, of);
    for (int i = 0; i < 3; i++) {
        j.at[i] = of[i].first * c->box[i + 1];
        j.boxes[i] = of[i].count;
    }
    j.count = (int)steps(a, c, of);
    return j;
}

/* ---- estimates ---- */

/* Seconds on one multiprocessor of an H200: 64 terms of 128 sums; a byte of operands arrives; a sum is
 * stored; start and end; the launch of a second kernel; a byte of parts is read; a byte of operands comes
 * from memory.  Bytes of operands that the L2 cache keeps. */
static const double multiplied = 4 / 1.7e9 / 128, came = 1 / 87e9, left = 1.0e-10, around = 3e-6,
                    again = 2e-6, gathered = 1 / 2.5e12, fetched = 1 / 4.2e12, kept = 35e6;
/* The start of a step counts for so many sixteens of its terms. */
static const double begun = 0.3;

/* Both at the same time, which delay each other where they take equally long. */
static double beside(double a, double b)
{
    return sqrt(sqrt(a * a * a * a + b * b * b * b));
}

static double unit_bytes(const tiling *c)
{
    return (double)(c->ks * 16 * MC_CUDA_ROW);
}

static double area(const tiling *c)
{
    return (double)(rows(c) * columns(c)) * TMA_UNIT * TMA_UNIT;
}

static double step_seconds(const tiling *c)
{
    return 2e-8 + beside(area(c) * multiplied * c->ks / 4, (rows(c) + columns(c)) * unit_bytes(c) * came);
}

/* Bytes of x (0) and y (1). */
static double bytes_of(const args *a, int y)
{
    const int *size = y ? a->out : a->in;
    return 2. * a->images * size[0] * size[1] * size[2] * (y ? a->filters : a->channels);
}

/* Bytes from memory if blocks are at different positions: what the cache does not keep is read again for
 * each tile. */
static double bytes_out_of_step(const args *a, const tiling *c, double all)
{
    const double x = bytes_of(a, 0), y = bytes_of(a, 1), first = MC_MIN(x, y),
                 kept_first = MC_MIN(kept, first), kept_last = MC_MIN(kept - kept_first, MC_MAX(x, y));
    const double missed[] = { 1 - (x <= y ? kept_first : kept_last) / x,
                              1 - (x <= y ? kept_last : kept_first) / y };
    const double loads[] = { all * unit_bytes(c) * (c->taps_down ? rows(c) : columns(c)),
                             all * unit_bytes(c) * (c->taps_down ? columns(c) : rows(c)) };
    return x + y + MC_MAX(loads[0] - x, 0) * missed[0] + MC_MAX(loads[1] - y, 0) * missed[1];
}

/* Sets splits and seconds. all: steps of all tiles.  Each tile in n parts: blocks that run side by side are
 * at the same positions. */
enum { MOST_WAVES = 12 };
static void estimate_splits(const args *a, tiling *c, double all)
{
    const double blocks = mc_cuda_multiprocessors(), tiles = (double)c->tiles, each = ceil(all / tiles),
                 step = step_seconds(c), bytes = bytes_of(a, 0) + bytes_of(a, 1);
    c->seconds = INFINITY;
    for (int n = 1; n == 1 || (n <= each && n * tiles <= MOST_WAVES * blocks); n++) {
        const double waves = ceil(n * tiles / blocks), reads = bytes / n > kept ? ceil(tiles / blocks) : 1;
        const double parts = n > 1 ? again + n * tiles * area(c) * 4 * gathered : 0;
        const double seconds = around + parts + waves * left * area(c) +
                               beside(waves * ceil(each / n) * step, reads * bytes * fetched);
        c->splits = seconds < c->seconds ? n : c->splits;
        c->seconds = MC_MIN(seconds, c->seconds);
    }
    const double shared = around + again +
                          beside(ceil(all / blocks) * step, bytes_out_of_step(a, c, all) * fetched) +
                          left * area(c) * (1 + tiles / blocks) + (blocks + tiles) * area(c) * 4 * gathered;
    if (shared < c->seconds && all > blocks) {
        c->splits = 0;
        c->seconds = shared;
    }
}

static void estimate_tiles(const args *a, tiling *c)
{
    const int64_t down = conv_ceil(all_units(a, c, 0), rows(c)),
                  across = conv_ceil(all_units(a, c, 1), columns(c)), along = c->taps_down ? down : across;
    double all = 0;
    c->tiles = down * across;
    for (int64_t i = 0; i < along; i++) {
        struct range of[3];
        boxes(a, c, (int)i * (c->taps_down ? rows(c) : columns(c)), of);
        all += (double)steps(a, c, of);
    }
    estimate_splits(a, c, all * (double)(c->tiles / along));
}

/* The boxes that all taps along an axis reach. */
static int64_t reached_by_all(const args *a, int axis, int box)
{
    int64_t n = 0;
    for (int k = 0; k < a->k[axis]; k++) {
        n += reached(a, axis, k, box).count;
    }
    return n;
}

/* The box with the fewest terms to multiply, of at most 16 ks positions: sets box and ks.  The copy engine
 * limits a box's extent. */
static void best_box(const args *a, tiling *c)
{
    const int most = 16 * c->ks;
    double least = INFINITY;
    c->ks = 0;
    for (int images = 1; images <= most && images < 2 * a->images; images *= 2) {
        const int64_t all_images = conv_ceil(a->images, images);
        for (int planes = 1; planes <= MC_MIN(most / images, a->out[0]); planes++) {
            const int64_t down = all_images * reached_by_all(a, 0, planes);
            for (int right = 1; right <= MC_MIN(most / images / planes, a->out[2]); right++) {
                const int lines = MC_MIN(most / images / planes / right, a->out[1]);
                const int ks = (images * planes * lines * right + 15) / 16;
                const double terms = (double)(down * reached_by_all(a, 1, lines) *
                                              reached_by_all(a, 2, right)) *
                                     (ks + begun) * (1 + 0.01 / right); /* rather along a line */
                if (terms < least && (planes - 1) * a->stride[0] < MOST_BOX &&
                    (lines - 1) * a->stride[1] < MOST_BOX && (right - 1) * a->stride[2] < MOST_BOX) {
                    least = terms;
                    c->ks = ks;
                    memcpy(c->box, (int[]){ images, planes, lines, right }, sizeof c->box);
                }
            }
        }
    }
}

tiling mc_conv_tma_weights_best_tiling(const args *a, bool taps_down)
{
    static const struct { int down, mi, across, q; } sizes[] = {
        { 2, 1, 1, 1 }, { 2, 1, 1, 2 }, { 2, 1, 1, 3 }, { 2, 1, 1, 4 }, { 2, 2, 1, 1 }, { 2, 2, 1, 2 },
        { 2, 2, 1, 3 }, { 1, 1, 2, 1 }, { 1, 1, 2, 2 }, { 1, 1, 2, 3 }, { 1, 1, 2, 4 }, { 1, 2, 2, 3 },
    };
    tiling best = { 0 };
    if (taps(a) > 1024) {
        return best;
    }
    for (size_t i = 0; i < NELEM(sizes); i++) {
        tiling c = { .taps_down = taps_down, .down = sizes[i].down, .mi = sizes[i].mi,
                     .across = sizes[i].across, .q = sizes[i].q };
        if ((rows(&c) >= 2 * all_units(a, &c, 0) && rows(&c) > 1) ||
            (columns(&c) >= 2 * all_units(a, &c, 1) && columns(&c) > 2)) {
            continue;
        }
        for (int most = 4; most <= MOST_KS; most++) {
            c.ks = most;
            if (mc_conv_tma_weights_slots(&c) < LEAST_SLOTS) {
                break;
            }
            best_box(a, &c);
            if (c.ks > 0) {
                estimate_tiles(a, &c);
                best = c.tiles < MOST_TILES && (best.mi == 0 || c.seconds < best.seconds) ? c : best;
            }
        }
    }
    return best;
}

/* ---- jobs ---- */

void mc_conv_tma_weights_lists_free(struct mc_conv_tma_weights_lists *l)
{
    mc_free(l->jobs);
    mc_free(l->first);
    mc_free(l->sums);
}

static void add_sum(struct mc_conv_tma_weights_lists *l, const struct mc_conv_tma_weights_job *j, int parts)
{
    l->sums[l->nsums++] = (struct mc_conv_tma_weights_sum){ j->row, j->column, l->parts, parts };
    l->parts += parts;
    l->most = MC_MAX(l->most, parts);
}

/* Appends steps [from, from + count) of a tile, which is whole or has a sum of parts; part: the index of this
 * one. */
static void give(struct mc_conv_tma_weights_lists *l, struct mc_conv_tma_weights_job j, int from, int count,
                 int part, int *n)
{
    j.part = count == j.count ? -1 : part;
    j.first = from;
    j.count = count;
    l->jobs[(*n)++] = j;
}

/* Blocks share the steps of all tiles: consecutive steps, equally many each. */
static bool share(const args *a, const tiling *c, struct mc_conv_tma_weights_lists *l)
{
    int64_t all = 0, done = 0;
    int n = 0, block = 0;
    for (int64_t t = 0; t < c->tiles; t++) {
        all += tile(a, c, t).count;
    }
    l->first[0] = 0;
    for (int64_t t = 0; t < c->tiles; t++) {
        const struct mc_conv_tma_weights_job j = tile(a, c, t);
        int parts = 0;
        for (int from = 0, count = 0; from == 0 || from < j.count; from += count) {
            while (block + 1 < l->blocks && done >= all * (block + 1) / l->blocks) {
                l->first[++block] = n;
            }
            const int64_t end = block + 1 < l->blocks ? all * (block + 1) / l->blocks : all;
            count = (int)MC_MIN(end - done, (int64_t)(j.count - from));
            give(l, j, from, count, l->parts + parts++, &n);
            done += count;
            if (j.count == 0) {
                break;
            }
        }
        if (parts > 1) {
            add_sum(l, &j, parts);
        }
    }
    while (block < l->blocks) {
        l->first[++block] = n;
    }
    return true;
}

/* Each tile in equal parts.  Blocks take turns: first the first parts of all tiles. */
static bool split(const args *a, const tiling *c, struct mc_conv_tma_weights_lists *l)
{
    int n = 0, *part = mc_alloc((size_t)c->tiles * sizeof *part, "plans"); /* a tile's first */
    for (int64_t t = 0; part && t < c->tiles; t++) {
        const struct mc_conv_tma_weights_job j = tile(a, c, t);
        part[t] = l->parts;
        if (MC_MIN(j.count, c->splits) > 1) {
            add_sum(l, &j, MC_MIN(j.count, c->splits));
        }
    }
    for (int b = 0; part && b < l->blocks; b++) {
        l->first[b] = n;
        for (int64_t i = b; i < c->tiles * c->splits; i += l->blocks) {
            const int64_t t = i % c->tiles, z = i / c->tiles;
            const struct mc_conv_tma_weights_job j = tile(a, c, t);
            const int parts = MC_MAX(MC_MIN(j.count, c->splits), 1);
            if (z < parts) {
                const int from = (int)(j.count * z / parts), end = (int)(j.count * (z + 1) / parts);
                give(l, j, from, end - from, part[t] + (int)z, &n);
            }
        }
    }
    if (part) {
        l->first[l->blocks] = n;
    }
    mc_free(part);
    return part != NULL;
}

bool mc_conv_tma_weights_hand_out(const args *a, const tiling *c, struct mc_conv_tma_weights_lists *l)
{
    const int most = mc_cuda_multiprocessors();
    *l = (struct mc_conv_tma_weights_lists){ .blocks = c->splits > 0
                                                           ? (int)MC_MIN(c->tiles * c->splits, (int64_t)most)
                                                           : most };
    const size_t jobs = (size_t)(c->splits > 0 ? c->tiles * c->splits : c->tiles + l->blocks);
    l->jobs = mc_alloc(jobs * sizeof *l->jobs, "plans");
    l->first = mc_alloc((size_t)(l->blocks + 1) * sizeof *l->first, "plans");
    l->sums = mc_alloc((size_t)c->tiles * sizeof *l->sums, "plans");
    const bool ok = l->jobs && l->first && l->sums && (c->splits > 0 ? split : share)(a, c, l);
    if (!ok) {
        mc_conv_tma_weights_lists_free(l);
    }
    return ok;
}
