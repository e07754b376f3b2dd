/* scatter.c: the gradient of the inputs of convolutions of few channels on a GPU's tensor cores
 * (scatter.cu): halves, float32 as TF32 where that is allowed, or in full.
 *
 * Invariant: a chunk of filters, at least two lines of y of that chunk, and the sums of a block's warps
 * for one line of x each fit in shared memory. */
#include "heavy/conv/cuda/small_channels/small_channels.h"

static const char text[] = {
#include "heavy/conv/cuda/small_channels/scatter_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_small_channels_spread_text = { "heavy/conv/cuda/small_channels/scatter.cu",
    text, &mc_conv_small_channels_cells_text };

/* of a warp: sixteens of positions, at most; lines of x times eights of columns; lines of x */
enum { SIXTEENS = 4, MOST_SUMS = 10, MOST_LINES = 4, MOST_ACROSS = 8 };
enum { MOST_SHARED = 227 << 10, MOST_SLOTS = 3 };
/* warps by positions, by lines */
static const struct way { int across, sets; } ways[] = { { 2, 4 }, { 4, 2 }, { MOST_ACROSS, 1 } };
/* In full float32 a product takes three, so what positions leave idle costs more.  sums: of a warp, as many
 * as there are registers for, 16 x 8 each. */
static const struct fine_way { struct way way; int sums; } fine_ways[] = {
    { { 1, 8 }, 36 }, { { 2, 4 }, 36 }, { { 4, 2 }, 36 },  { { MOST_ACROSS, 1 }, 36 },
    { { 3, 4 }, 16 }, { { 4, 3 }, 16 }, { { 6, 2 }, 16 },
};

struct scatter {
    struct mc_small_channels base;
    struct mc_small_channels_spread_args args;
    const struct way *way;
    int tiles;                  /* sixteens of positions of a warp */
    int size, step;             /* bytes of an element; terms of a product */
    int columns, eights;        /* channels times taps of a line; eights of columns */
    int sixteens;               /* of a line of y */
    int lines, images;          /* lines of x of a warp, images of a block */
    int chunk, slots;           /* filters at a time, lines of y in the ring */
    int unit;                   /* bytes of y that can be fetched at once where y is aligned to them */
};

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct scatter *d = (const struct scatter *)(const void *)plan;
    struct mc_small_channels_spread_args a = d->args;
    (void)threads;
    mc_small_channels_bind(&d->base, &a.base, conv(plan->problem), operand, workspace);
    a.whole = (uintptr_t)a.base.y % (unsigned)d->unit == 0;
    return mc_small_channels_run(&d->base, &a, sizeof a);
}

/* ---- a block ---- */

/* The pitch for which eight cells of eight lines, or of four for floats, use different banks. */
static int pitch_of(const struct scatter *d)
{
    const int positions = d->args.base.out[1];
    return d->base.nhwc   ? d->chunk + 4
           : d->size == 2 ? (mc_small_channels_up(positions, 8) / 8 | 1) * 8
                          : mc_small_channels_up(positions, 16) + 8;
}

static size_t filter_bytes(const struct scatter *d, const struct mc_conv_shape *s)
{
    return (size_t)(s->k[1] * (d->chunk / d->step) * d->eights * 256);
}

static size_t shared_bytes(const struct scatter *d, const struct mc_conv_shape *s)
{
    const size_t slot = (size_t)(d->images * (d->base.nhwc ? d->sixteens * 16 : d->chunk) * pitch_of(d) *
                                 d->size),
                 z = (size_t)(d->way->sets * d->images * d->columns * (d->sixteens * 16 + 4)) * sizeof(float);
    return filter_bytes(d, s) + (size_t)d->slots * slot + z;
}

static bool fits(const struct scatter *d, const struct mc_conv_shape *s)
{
    return shared_bytes(d, s) <= (mc_cuda_current() ? mc_cuda_current()->shared : MOST_SHARED);
}

static bool divides(const struct scatter *d, const struct mc_conv_shape *s, int unit)
{
    const int64_t *const ys = d->args.base.ys, run = d->base.nhwc ? s->f : s->out[2];
    return run * d->size % unit == 0 && ys[0] * d->size % unit == 0 &&
           ys[d->base.nhwc ? 3 : 1] * d->size % unit == 0 && ys[2] * d->size % unit == 0 &&
           (s->out[0] == 1 || d->args.base.deep[2] * d->size % unit == 0);
}

/* As many images as the warps have positions for.  All filters at once if they fit, else as few chunks as
 * possible. */
static void fill(struct scatter *d, const struct mc_conv_shape *s)
{
    const int most = mc_small_channels_up(s->f, d->step);
    d->images = (int)MC_MAX(
        MC_MIN((int64_t)(d->way->across * d->tiles / d->sixteens), (int64_t)d->args.base.n), (int64_t)1);
    d->chunk = most;
    d->slots = 2;
    while (!fits(d, s) && (d->images > 1 || d->chunk > d->step)) {
        if (d->images > 1) {
            d->images--;
        } else {
            d->args.chunks++;
            d->chunk = mc_small_channels_up(conv_ceil(most, d->args.chunks), d->step);
        }
    }
    d->args.chunks = (int)conv_ceil(most, d->chunk);
    for (d->slots = MOST_SLOTS; d->slots > 2 && !fits(d, s); d->slots--) {
    }
}

static void arrange(struct scatter *d, const struct mc_conv_shape *s, const struct way *way, int tiles,
                    int lines)
{
    struct mc_small_channels_spread_args *a = &d->args;
    d->way = way;
    d->tiles = tiles;
    d->lines = lines;
    a->chunks = 1;
    fill(d, s);
    a->down = (int)conv_ceil(s->in[1], d->way->sets * d->lines);
    a->tiles = (int)conv_ceil(a->base.n, d->images) * a->down;
}

/* Cycles of the busiest multiprocessor, in full float32.  A warp issues instructions that read, split and
 * add, and its products keep the tensor cores busy. */
static double fine_cycles(const struct scatter *d, const struct mc_conv_shape *s)
{
    const int warps = d->way->across * d->way->sets, rows = d->way->sets * d->lines;
    const double steps = (double)(d->args.chunks * d->chunk / d->step) * (double)s->k[0] /
                         (double)s->stride[0],
                 y_lines = (double)conv_ceil(rows + s->k[1] - 1, s->stride[1]),
                 pairs = d->lines * (double)s->k[1] / (double)s->stride[1] * d->eights;
    const double issue = steps * (y_lines * d->tiles * 16 + pairs * (7 + 7 * d->tiles)),
                 tensor = steps * pairs * d->tiles * 15;
    const double load = steps * d->step * y_lines * d->images * (double)(s->out[2] * d->size) /
                        (d->unit == 16 ? 48 : 24);
    const double tile = warps / 4.0 * (MC_MAX(issue, tensor) + MC_MIN(issue, tensor) / 4) + load / 4 +
                        rows * d->images * (double)(s->c * s->in[2]) / 3 + 1000 * (2 + d->lines);
    return (double)conv_ceil(d->args.tiles, mc_cuda_multiprocessors()) * tile;
}

static void arrange_fine(struct scatter *d, const struct mc_conv_shape *s)
{
    struct scatter best = *d;
    double least = -1;
    for (size_t w = 0; w < NELEM(fine_ways); w++) {
        const struct way *way = &fine_ways[w].way;
        for (int tiles = 1; tiles <= SIXTEENS; tiles++) {
            for (int lines = 1; lines <= MOST_LINES && lines * tiles * d->eights <= fine_ways[w].sums;
                 lines++) {
                if (way->across * tiles < d->sixteens) {
                    continue;
                }
                arrange(d, s, way, tiles, lines);
                if (fits(d, s) && (least < 0 || fine_cycles(d, s) < least)) {
                    least = fine_cycles(d, s);
                    best = *d;
                }
            }
        }
    }
    *d = best;
}

static bool is_fine(const struct mc_conv_problem *p)
{
    return p->dtype == MC_FLOAT32 && !p->tf32;
}

static void shape(struct scatter *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const struct way *way = ways;
    mc_small_channels_shape(&d->base, &d->args.base, p);
    d->size = (int)mc_dtypes[p->dtype].size;
    d->step = 32 / d->size;
    d->columns = (int)(s->c * s->k[2]);
    d->eights = mc_small_channels_up(d->columns, 8) / 8;
    d->sixteens = mc_small_channels_up(s->out[2], 16) / 16;
    d->unit = divides(d, s, 16) ? 16 : divides(d, s, 4) ? 4 : d->size;
    while (way->across * SIXTEENS < d->sixteens) {
        way++;
    }
    arrange(d, s, way, SIXTEENS, MC_MIN(MOST_SUMS / d->eights, MOST_LINES));
    if (is_fine(p)) {
        arrange_fine(d, s);
    }
}

/* ---- a plan ---- */

static void grids(struct scatter *d, const struct mc_conv_shape *s)
{
    const size_t bytes = filter_bytes(d, s) * (size_t)(d->args.chunks * s->k[0]);
    d->base.base.workspace = bytes;
    d->base.grid = mc_cuda_grid_1d((int64_t)bytes / 8, 256);
    d->base.then_grid = (struct mc_grid){ { (unsigned)MC_MIN(d->args.tiles, mc_cuda_multiprocessors()), 1,
                                            1 },
                                          { (unsigned)(32 * d->way->across * d->way->sets), 1, 1 },
                                          shared_bytes(d, s) };
}

static void define(struct mc_str *defines, const struct scatter *d, const struct mc_conv_problem *p)
{
    mc_cuda_types(defines, p->dtype, false);
    mc_small_channels_defines(defines, &d->base, p);
    mc_str_addf(defines,
                "#define OH %d\n#define OW %d\n#define PW %d\n#define GW %d\n#define MT %d\n#define R "
                "%d\n#define NE %d\n",
                d->args.base.out[0], d->args.base.out[1], d->way->across, d->way->sets, d->tiles, d->lines,
                d->eights);
    mc_str_addf(defines,
                "#define IMAGES %d\n#define CF %d\n#define SLOTS %d\n#define PITCH %d\n#define ZPITCH "
                "%d\n#define UNIT %d\n",
                d->images, d->chunk, d->slots, pitch_of(d), d->sixteens * 16 + 4, d->unit);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_str defines = { 0 };
    struct scatter d = { .size = 0 };
    shape(&d, p);
    grids(&d, &p->s);
    d.base.base.run = run;
    define(&defines, &d, p);
    return mc_small_channels_plan(&d.base, sizeof d, &mc_conv_small_channels_spread_text, &defines);
}

/* ---- limits and estimate ---- */

static bool small(const struct mc_conv_problem *p)
{
    return p->s.c * p->s.k[2] <= MOST_SUMS * 8 && p->s.out[2] <= MOST_ACROSS * SIXTEENS * 16;
}

static bool roomy(const struct mc_conv_problem *p)
{
    struct scatter d = { .size = 0 };
    shape(&d, p);
    return fits(&d, &p->s);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype == MC_FLOAT64                              ? "takes halves and float32"
           : p->s.pass != CONV_INPUTS                          ? "computes gradients of inputs only"
           : mc_small_channels_refuse(p)                       ? mc_small_channels_refuse(p)
           : p->at.y[4] != 1 && p->s.out[2] > 1 && !is_fine(p) ? "requires contiguous lines of y"
           : !small(p) ? "takes small filters, and lines of y of up to 512 positions"
           : !roomy(p) ? "cannot keep lines this long in shared memory"
                       : mc_cuda_needs_sm80();
}

/* The padded positions, columns and filters of the products, at the measured part of the tensor cores'
 * speed. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct scatter d = { .size = 0 };
    shape(&d, p);
    if (is_fine(p)) {
        return MC_MAX(mc_conv_cuda_seconds(p, 1), 5e-6 + fine_cycles(&d, s) / 1.7e9);
    }
    const double positions = (double)(conv_ceil(d.args.base.n, d.images) * d.way->across * SIXTEENS * 16),
                 terms = (double)(d.args.chunks * d.chunk * s->k[0]) * (double)s->k[1] / (double)s->stride[1];
    return 3e-6 + mc_cuda_seconds(p->dtype, p->tf32, 2 * positions * (double)s->in[1] * d.eights * 8 * terms,
                                  mc_conv_bytes(p), 0.29);
}

const struct mc_solver mc_conv_cuda_small_channels_scatter = { .name = "few_spread", .refuse = refuse,
    .estimate = estimate, .plan = plan };
