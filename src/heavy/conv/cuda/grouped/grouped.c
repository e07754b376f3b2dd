/* grouped.c: groups of several channels on a GPU, by the kernels of grouped.cu: all passes, strides and
 * dilations.
 *
 * What a thread computes is chosen by what it costs: the cycles of its multiply-adds, of its loads, and of
 * waiting for these, times the threads that a multiprocessor has to run one after another.
 *
 * Invariant: for operands that are not aligned to what is moved at once the plan runs a child. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/grouped/grouped.h"
#include "heavy/conv/cuda/tile_lines.h"

static const char text[] = {
#include "heavy/conv/cuda/grouped/grouped_text.h"
    , 0
};
const struct mc_cuda_text mc_conv_grouped_text = { "heavy/conv/cuda/grouped/grouped.cu", text };

enum { THREADS = GROUPED_THREADS };

/* What a thread has. */
struct work {
    struct mc_conv_tile tile;
    int r, c;         /* results, or filters; channels of x where these have gradients, else 1 */
    int rv;           /* results that are stored at once */
    int lanes, parts; /* of a block; threads that share the channels of a tile */
    int blocks;       /* of a multiprocessor, whose registers they share */
};

struct grouped {
    struct mc_plan base;
    void *kernel, *add;
    struct mc_grid grid, add_grid;
    struct mc_grouped_args args;
    int64_t w_first; /* elements from w to the tap that is read first */
    uintptr_t unit;  /* bytes that are moved at once */
};

static int size_of(const struct mc_conv_problem *p)
{
    return (int)mc_dtypes[p->dtype].size;
}

static bool of_filters(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_WEIGHTS;
}

/* Channels of a group that a result is a sum of, and results of a group; where filters are the result,
 * channels of x and of y. */
static int64_t sources(const struct mc_conv_problem *p)
{
    return (mc_conv_spreads(p) ? p->s.f : p->s.c) / p->s.groups;
}

static int64_t results(const struct mc_conv_problem *p)
{
    return (mc_conv_spreads(p) ? p->s.c : p->s.f) / p->s.groups;
}

static double taps(const struct mc_conv_problem *p)
{
    return (double)(p->s.k[1] * p->s.k[2]);
}

/* ---- lanes ---- */

static int64_t lanes_of_group(const struct mc_conv_problem *p, const struct work *k)
{
    return conv_ceil(results(p), k->r) * (of_filters(p) ? conv_ceil(sources(p), k->c) : 1);
}

static int64_t all_lanes(const struct mc_conv_problem *p, const struct work *k)
{
    return lanes_of_group(p, k) * p->s.groups;
}

/* Threads of a block for each lane and part. */
static int64_t workers_of(const struct work *k, int lanes)
{
    return THREADS / (lanes * k->parts);
}

/* Bytes of shared memory of a block: filters, with ROW of the text, and the sums of other parts. */
static int64_t shared_bytes(const struct mc_conv_problem *p, const struct work *k, int lanes)
{
    const int64_t share = workers_of(k, lanes) * lanes;
    return of_filters(p) ? 0
                         : sources(p) * (int64_t)taps(p) * 16 * (conv_ceil(lanes * k->r, 4) | 1) +
                               (k->parts - 1) * share * k->tile.th * k->tile.tw * k->r * 4;
}

/* ---- cost ---- */

/* Numbers in a thread's registers. */
static double kept(const struct mc_conv_problem *p, const struct work *k)
{
    const struct mc_conv_tile *t = &k->tile;
    const double line = (mc_conv_lines_read(&p->s, 2, t->tw) + 2 * (t->g - 1)) * t->v,
                 tile = (double)(t->th * t->tw * k->r);
    return line + (of_filters(p) ? taps(p) * k->c * k->r + tile : tile + k->r);
}

/* Instructions of a tile in a thread, and cycles in which its loads and stores occupy the one path from a
 * multiprocessor to memory. */
struct effort {
    double instructions, path;
};

/* A warp moves 128 bytes in a cycle. */
static double cycles(double bytes)
{
    return MC_MAX(bytes / 4, 1);
}

static struct effort effort_of(const struct mc_conv_problem *p, const struct work *k)
{
    const struct mc_conv_shape *s = &p->s;
    const struct mc_conv_tile *t = &k->tile;
    const double positions = (double)(t->th * t->tw), size = size_of(p), widen = size < 4,
                 high = mc_conv_lines_read(s, 1, t->th),
                 wide = mc_conv_lines_read(s, 2, t->tw) + 2 * (t->g - 1),
                 phases = mc_conv_spreads(p) ? (double)(s->stride[1] * s->stride[2]) : 1,
                 vectors = (double)(of_filters(p) ? k->c : conv_ceil(sources(p), k->parts)) / t->v,
                 loads = vectors * high * wide / t->g, stores = positions / t->gt * k->r / k->rv;
    struct effort e = { 0 };
    e.instructions = 100 + taps(p) * positions * k->r * vectors * t->v / phases +
                     loads * (6.5 + widen * t->g * t->v) + stores * (7.5 + (2 + widen) * t->gt * k->rv);
    e.path = 1.5 * loads * cycles(size * t->g * t->v) + stores * cycles(size * t->gt * k->rv);
    if (!of_filters(p)) {
        const int once = k->r % 4 == 0 ? 4 : k->r % 2 == 0 ? 2 : 1;
        const double rows = vectors * t->v * taps(p) * t->th * k->r / once /
                            (double)(mc_conv_spreads(p) ? s->stride[1] : 1);
        e.instructions += rows;
        /* those of lanes that a warp has side by side are apart */
        e.path += rows * (t->last ? MC_MAX((double)MC_MIN(k->lanes, 32) * once / 32, 1) : 1);
    }
    return e;
}

/* Cycles of a multiprocessor: it starts four instructions in one, and hides what a warp waits for by others.
 * A wave is as many blocks as its registers hold.  The constants are fitted to 1,273 kernels for seven layers
 * on an H100: of the kernels that were timed for a pass, the one of least cost took 8 percent longer than the
 * fastest. */
static double cost(const struct mc_conv_problem *p, const struct work *k)
{
    /* cycles until loads arrive; of a number of the filters of a block */
    enum { WAIT = 600, FILTER = 30 };
    const struct effort e = effort_of(p, k);
    const double blocks = (double)(conv_ceil(all_lanes(p, k), k->lanes) *
                                   conv_ceil(mc_conv_tiles(p, &k->tile), workers_of(k, k->lanes))),
                 of_unit = MC_MAX(blocks / mc_cuda_multiprocessors(), 1),
                 at_once = MC_MIN(of_unit, k->blocks), waves = of_unit / at_once,
                 warps = at_once * THREADS / 32,
                 filters = of_filters(p) ? 0 : k->lanes * k->r * (double)sources(p) * taps(p) / THREADS,
                 steps = (double)(of_filters(p) ? 1 : conv_ceil(sources(p), k->parts)) / k->tile.v,
                 busy = MC_MAX(e.instructions / 4, e.path) * warps, alone = WAIT * steps + 3 * e.instructions;
    return waves * (MC_MAX(busy, alone) + 0.3 * MC_MIN(busy, alone)) + FILTER * filters * MC_MIN(waves, 4);
}

/* ---- choice ---- */

/* Completes work whose tile, results, channels and lanes are chosen; false: there is no such one. */
static bool complete(const struct mc_conv_problem *p, struct work *k)
{
    /* registers of a thread, where a multiprocessor has one block; those for addresses; instructions;
     * bytes */
    enum { REGISTERS = 512, BESIDE = 50, TEXT = 2600, SHARED = 200 << 10, OF_BLOCK = 47 << 10 };
    struct mc_conv_tile *t = &k->tile;
    t->g = t->gt = k->rv = 1;
    if (!t->last) {
        mc_conv_positions_at_once(p, t);
    }
    const int64_t *const to = mc_conv_spreads(p) ? p->at.x : p->at.y;
    while (t->last && k->rv * size_of(p) < 16 && k->r % (2 * k->rv) == 0 && mc_conv_even(to, 1, 2 * k->rv)) {
        k->rv *= 2;
    }
    const int64_t shared = shared_bytes(p, k, k->lanes);
    k->blocks = (int)MC_MIN(REGISTERS / (kept(p, k) + BESIDE), 8);
    k->blocks = shared ? (int)MC_MIN(k->blocks, SHARED / shared) : k->blocks;
    return k->blocks >= 2 && shared <= OF_BLOCK &&
           taps(p) * t->th * t->tw * k->r * (of_filters(p) ? k->c : t->v) <= TEXT;
}

/* May a thread load v adjacent channels? */
static bool channels_fit(const struct mc_conv_problem *p, int v)
{
    const int64_t *const from = mc_conv_spreads(p) ? p->at.y : p->at.x;
    return sources(p) % v == 0 && mc_conv_even(from, 1, v);
}

static bool channels_last(const struct mc_conv_problem *p)
{
    return p->at.x[1] == 1 && p->at.y[1] == 1 && p->s.f > 1;
}

/* The least work of a thread: one result, and one position or stride. */
static struct work least_work(const struct mc_conv_problem *p)
{
    const bool spreads = mc_conv_spreads(p);
    return (struct work){ .tile = { .last = channels_last(p),
                                    .th = spreads ? (int)p->s.stride[1] : 1,
                                    .tw = spreads ? (int)p->s.stride[2] : 1,
                                    .v = 1 },
                          .r = 1,
                          .c = 1,
                          .lanes = 1,
                          .parts = 1 };
}

/* With channels innermost, lanes that a warp has side by side read adjacent channels. */
static bool lanes_fit(const struct mc_conv_problem *p, const struct work *k)
{
    enum { FEWEST = 4, FEWEST_FILTERS = 8, MOST_FILTERS = 16 };
    const int64_t all = all_lanes(p, k);
    if (!k->tile.last || k->lanes > all) {
        return k->lanes == 1 || k->lanes <= all;
    }
    return of_filters(p) ? k->lanes <= MOST_FILTERS && (k->lanes >= FEWEST_FILTERS || 2 * k->lanes > all)
                         : k->lanes >= FEWEST || 2 * k->lanes > all;
}

/* Tiles, lanes and parts for the results and channels of k. */
static void try_tiles(const struct mc_conv_problem *p, const struct work *k, struct work *best, double *least)
{
    static const int wide[] = { 1, 2, 4, 7, 8, 14 };
    enum { HIGH = 4, LANES = 6, PARTS = 3, WIDE = NELEM(wide) };
    for (int i = 0; i < HIGH * (int)WIDE * LANES * PARTS; i++) {
        struct work w = *k;
        w.parts = 1 << i % PARTS;
        w.lanes = 1 << i / PARTS % LANES;
        w.tile.th *= i / (PARTS * LANES) % HIGH + 1;
        w.tile.tw *= wide[i / (PARTS * LANES * HIGH)];
        const bool beyond = (w.tile.th > k->tile.th && w.tile.th > mc_conv_tiled(p)[1]) ||
                            (w.tile.tw > k->tile.tw && w.tile.tw > mc_conv_tiled(p)[2]) ||
                            !lanes_fit(p, &w) ||
                            (w.parts > 1 && (of_filters(p) || w.parts * w.tile.v > sources(p)));
        if (!beyond && complete(p, &w)) {
            const double c = cost(p, &w);
            if (!best->r || c < *least || (w.tile.last && c == *least)) {
                *best = w;
                *least = c;
            }
        }
    }
}

static struct work choose(const struct mc_conv_problem *p)
{
    static const int of_results[] = { 8, 6, 4, 3, 2, 1 };
    struct work best = { 0 };
    double least = 0;
    for (size_t i = 0; i < NELEM(of_results); i++) {
        struct work k = least_work(p);
        k.r = of_results[i];
        if (k.tile.last && k.r > 4 && !of_filters(p) && p->s.stride[1] * p->s.stride[2] == 1) {
            continue; /* filters leave no registers for V channels of a line */
        }
        for (int c = 1; c <= 4 && k.r <= results(p) && (!k.tile.last || results(p) % k.r == 0); c *= 2) {
            k.c = of_filters(p) ? c : 1;
            k.tile.v = k.tile.last ? c : 1;
            if ((k.tile.last ? channels_fit(p, c) : c == 1 || of_filters(p)) && c <= sources(p)) {
                try_tiles(p, &k, &best, &least);
            }
        }
    }
    return best;
}

/* ---- arguments ---- */

static void copy_strides(i64 outer[2], int inner[2], const int64_t at[5])
{
    for (int i = 0; i < 2; i++) {
        outer[i] = at[i];
        inner[i] = (int)at[3 + i];
    }
}

int64_t mc_grouped_shape(struct mc_grouped_args *a, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    int64_t first = 0;
    *a = (struct mc_grouped_args){ .ws = { p->at.w[0], p->at.w[1], p->at.w[3], p->at.w[4] },
                                   .groups = (int)s->groups,
                                   .splits = 1,
                                   .alpha = (float)p->alpha,
                                   .beta = (float)p->beta };
    copy_strides(a->xs, a->xl, p->at.x);
    copy_strides(a->ys, a->yl, p->at.y);
    for (int i = 0; i < 2; i++) {
        a->in[i] = (int)s->in[i + 1];
        a->out[i] = (int)s->out[i + 1];
        if (s->flip) {
            first += (s->k[i + 1] - 1) * a->ws[2 + i];
            a->ws[2 + i] = -a->ws[2 + i];
        }
    }
    return first;
}

void mc_grouped_bind(struct mc_grouped_args *a, const struct mc_conv_problem *p, int64_t w_first,
                     void *const *operand)
{
    const int64_t first = w_first * size_of(p);
    char *const c0 = p->beta != 0 ? operand[CONV_C0] : NULL;
    a->x = operand[CONV_X];
    a->w = (char *)operand[CONV_W] + first;
    a->y = operand[CONV_Y];
    a->c0 = c0 && of_filters(p) ? c0 + first : c0;
    a->bias = p->has_bias ? operand[CONV_BIAS] : NULL;
}

bool mc_grouped_aligned(const struct mc_grouped_args *a, const struct mc_conv_problem *p, uintptr_t unit)
{
    return ((uintptr_t)a->x | (uintptr_t)a->y | (of_filters(p) ? 0 : (uintptr_t)a->c0)) % unit == 0;
}

/* Blocks along x share the tiles of the same lanes. */
static void hand_out(struct grouped *d, const struct mc_conv_problem *p, const struct work *k)
{
    enum { EACH = 4 }; /* tiles of a thread: that it sums at least, or that share a block's filters */
    struct mc_grouped_args *a = &d->args;
    const int64_t tiles = mc_conv_tiles(p, &k->tile), workers = workers_of(k, k->lanes),
                  down = conv_ceil(all_lanes(p, k), k->lanes), blocks = conv_ceil(tiles, workers),
                  slots = (int64_t)mc_cuda_multiprocessors() * k->blocks;
    a->across = mc_cuda_divider(conv_ceil(mc_conv_tiled(p)[2], k->tile.tw));
    a->down = mc_cuda_divider(conv_ceil(mc_conv_tiled(p)[1], k->tile.th));
    a->count = (unsigned)tiles;
    int64_t across = conv_ceil(blocks, MC_MAX(MC_MIN(blocks * down / (2 * slots), EACH), 1));
    if (of_filters(p)) {
        across = MC_MAX(MC_MIN(MC_MAX(slots / down, 1), tiles / (workers * EACH)), 1);
        a->splits = (int)across;
    }
    d->grid = (struct mc_grid){ { (unsigned)across, (unsigned)down, 1 },
                                { (unsigned)(k->lanes * k->parts * workers), 1, 1 },
                                0 };
    if (a->splits > 1) {
        const int64_t sums = all_lanes(p, k) * (int64_t)taps(p) * k->c * k->r;
        d->base.workspace = (size_t)(a->splits * sums) * sizeof(float);
        d->add_grid = (struct mc_grid){ { (unsigned)conv_ceil(sums, 32), 1, 1 }, { 256, 1, 1 }, 0 };
    }
}

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct grouped *d = (const struct grouped *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    const bool filters = of_filters(p);
    struct mc_grouped_args a = d->args;
    mc_grouped_bind(&a, p, d->w_first, operand);
    a.parts = workspace;
    if (!mc_grouped_aligned(&a, p, d->unit)) {
        return plan->child[0]->run(plan->child[0], operand, workspace, threads);
    }
    TRY(mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, filters ? "filters" : "sums", &d->grid, &a,
                                 sizeof a));
    return d->add ? mc_cuda_launch_dependent(mc_cuda_current(), d->add, "add", &d->add_grid, &a, sizeof a)
                  : MC_OK;
}

/* ---- a plan ---- */

static bool load(struct grouped *d, const struct mc_conv_problem *p, const struct work *k)
{
    struct mc_str defines = { 0 };
    mc_conv_tile_defines(p, &k->tile, &defines);
    mc_str_addf(&defines,
                "#define SOURCE %d\n#define RESULT %d\n#define R %d\n#define RV %d\n#define C %d\n"
                "#define LANES %d\n#define PARTS %d\n#define BLOCKS %d\n",
                (int)sources(p), (int)results(p), k->r, k->rv, k->c, k->lanes, k->parts, k->blocks);
    const struct mc_cuda_kernel_ref kernels[] = { { &d->kernel, of_filters(p) ? "filters" : "sums" },
                                                  { &d->add, d->args.splits > 1 ? "add" : NULL } };
    return mc_cuda_kernels(&mc_conv_grouped_text, &defines, kernels, NELEM(kernels));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct work k = choose(p);
    struct grouped *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->unit = (uintptr_t)(MC_MAX(MC_MAX(k.tile.v, k.rv), MC_MAX(k.tile.g, k.tile.gt)) * size_of(p));
    d->w_first = mc_grouped_shape(&d->args, p);
    hand_out(d, p, &k);
    LOG(LOG_PLAN,
        "    grouped: %d results and %d channels of tiles of %d x %d, %d channels, %d and %d positions at "
        "once, "
        "%d lanes in %d parts, %d blocks a sum",
        k.r, k.c, k.tile.th, k.tile.tw, k.tile.v, k.tile.g, k.tile.gt, k.lanes, k.parts, d->args.splits);
    d->base.child[0] = mc_plan_with(&p->base, &mc_conv_cuda_direct);
    if (!d->base.child[0] || !load(d, p, &k)) {
        mc_plan_free(d->base.child[0]);
        mc_free(d);
        return NULL;
    }
    d->base.workspace = MC_MAX(d->base.workspace, d->base.child[0]->workspace);
    return &d->base;
}

/* ---- limits and the estimate ---- */

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct work least = least_work(p);
    return mc_conv_no_tiles(p)                         ? mc_conv_no_tiles(p)
           : p->s.groups == 1 || p->s.groups == p->s.c ? "takes groups of several channels"
           : sources(p) > 1024 || results(p) > 1024    ? "takes groups of up to 1024 channels"
           : !complete(p, &least)                      ? "has no tile for such strides"
                                                       : NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const double terms = mc_conv_flops(p) / (mc_conv_spreads(p) ? (double)conv_volume(p->s.stride) : 1);
    return mc_cuda_seconds(MC_FLOAT32, false, terms, mc_conv_bytes(p), of_filters(p) ? 0.35 : 0.5) +
           (of_filters(p) ? 2e-6 : 0);
}

const struct mc_solver mc_conv_cuda_grouped = {
    .name = "grouped", .refuse = refuse, .estimate = estimate, .plan = plan
};
