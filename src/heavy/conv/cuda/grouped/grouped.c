/* grouped.c: groups of several channels on a GPU, by the kernels of grouped.cu: all passes, strides and
 * dilations.
 *
 * What a thread computes is chosen by what it costs: the cycles of its multiply-adds, of its loads, and of
 * waiting for these, times the threads that a multiprocessor has to run one after another.
 *
 * Invariant: for operands that are not aligned to what is moved at once the plan runs a child. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/grouped/grouped_args.h"
#include "heavy/conv/cuda/tile_lines.h"

static const char text[] = {
#include "heavy/conv/cuda/grouped/grouped_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_grouped_text = { "heavy/conv/cuda/grouped/grouped.cu", text };

enum { THREADS = GROUPED_THREADS };

/* What a thread has. */
struct work {
    struct mc_conv_tile tile;
    int r, c;                   /* results, or filters; channels of x where these have gradients, else 1 */
    int rv;                     /* results that are stored at once */
    int lanes;                  /* of a block */
    int blocks;                 /* of a multiprocessor, whose registers they share */
};

struct grouped {
    struct mc_plan base;
    void *kernel, *add;
    struct mc_grid grid, add_grid;
    struct mc_grouped_args args;
    int64_t w_first;            /* elements from w to the tap that is read first */
    uintptr_t unit;             /* bytes that are moved at once */
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

/* Bytes of a block's filters, with ROW of the text. */
static int64_t shared_bytes(const struct mc_conv_problem *p, const struct work *k, int lanes)
{
    return of_filters(p) ? 0 : sources(p) * (int64_t)taps(p) * 16 * (conv_ceil(lanes * k->r, 4) | 1);
}

/* The part of the threads of all blocks that have a lane and a tile. */
static double used(const struct mc_conv_problem *p, const struct work *k, int lanes)
{
    const int64_t all = all_lanes(p, k), tiles = mc_conv_tiles(p, &k->tile), workers = THREADS / lanes;
    return (double)all / (double)(conv_ceil(all, lanes) * lanes) * (double)tiles /
           (double)(conv_ceil(tiles, workers) * workers) * (double)(workers * lanes) / THREADS;
}

/* Lanes of a block, such that its threads have work.  Of planes, neighbours in a warp should have adjacent
 * tiles, and lanes of one group read the same; where channels are innermost, lanes read adjacent channels.
 * 0: filters have no room. */
static int choose_lanes(const struct mc_conv_problem *p, const struct work *k)
{
    enum { ROOM = 47 << 10, PLANES = 4, FEW = 8 };
    const bool last = k->tile.last;
    int best = 0;
    double most = 0;
    for (int n = 1; n <= 64 && shared_bytes(p, k, n) <= ROOM; n = last ? n + 1 : 2 * n) {
        const double good = used(p, k, n) * (last                                     ? n < FEW ? 0.85 : 1
                                             : n > lanes_of_group(p, k) || n > PLANES ? 0.8
                                                                                      : 1);
        if (good >= most && n <= 2 * all_lanes(p, k)) {
            best = n;
            most = good;
        }
    }
    return best;
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

/* Of a tile: multiply-adds, and cycles in which loads occupy the multiprocessor's one path to memory. */
struct effort { double sums, others, path; };

/* A load takes a cycle for each 128 bytes of a warp, and at least one. */
static double load_cycles(double bytes)
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
                 vectors = (double)(of_filters(p) ? k->c : sources(p)) / t->v,
                 loads = vectors * high * wide / t->g, stores = positions / t->gt * k->r / k->rv;
    struct effort e = { .sums = taps(p) * positions * k->r * vectors * t->v / phases };
    e.others = 100 + loads * (3 + widen * t->g * t->v) + stores * (4 + (2 + widen) * t->gt * k->rv);
    e.path = loads * load_cycles(size * t->g * t->v) + stores * load_cycles(size * t->gt * k->rv);
    if (!of_filters(p)) {
        const int once = k->r % 4 == 0 ? 4 : k->r % 2 == 0 ? 2 : 1;
        const double rows = vectors * t->v * taps(p) * t->th /
                            (double)(mc_conv_spreads(p) ? s->stride[1] : 1) * k->r / once;
        e.others += rows;
        e.path += rows * (t->last ? load_cycles(4. * once) : 1);
    }
    return e;
}

/* Cycles of a multiprocessor: it starts four instructions in one, and hides what a warp waits for by others.
 * A wave is as many warps as its registers hold. */
static double cost(const struct mc_conv_problem *p, const struct work *k)
{
    enum { WAIT = 600 }; /* cycles until loads arrive */
    const struct effort e = effort_of(p, k);
    const double tiles = (double)mc_conv_tiles(p, &k->tile), share = used(p, k, k->lanes),
                 warps = tiles * (double)all_lanes(p, k) / share / 32 / mc_cuda_multiprocessors(),
                 at_once = MC_MIN(warps, (double)k->blocks * THREADS / 32), waves = warps / at_once,
                 lines = (double)(of_filters(p) ? k->c : sources(p)) / k->tile.v,
                 busy = MC_MAX((e.sums + e.others) / 4, e.path) * at_once,
                 alone = WAIT * (1 + lines / 2) + (e.sums + e.others) * 1.5;
    return waves * (MC_MAX(busy, alone) + 0.3 * MC_MIN(busy, alone));
}

/* ---- choice ---- */

/* Completes work whose tile, results and channels are chosen; false: there is no such one. */
static bool complete(const struct mc_conv_problem *p, struct work *k)
{
    /* of a thread, where a multiprocessor has one block; those for addresses; instructions of a text */
    enum { REGISTERS = 512, BESIDE = 50, TEXT = 2600, SHARED = 200 << 10 };
    struct mc_conv_tile *t = &k->tile;
    t->g = t->gt = k->rv = 1;
    if (!t->last) {
        mc_conv_positions_at_once(p, t);
    }
    const int64_t *const to = mc_conv_spreads(p) ? p->at.x : p->at.y;
    while (t->last && k->rv * size_of(p) < 16 && k->r % (2 * k->rv) == 0 && mc_conv_even(to, 1, 2 * k->rv)) {
        k->rv *= 2;
    }
    k->blocks = (int)MC_MIN(REGISTERS / (kept(p, k) + BESIDE), 8);
    const double unrolled = taps(p) * t->th * t->tw * k->r * (of_filters(p) ? k->c : t->v);
    if (k->blocks < 2 || unrolled > TEXT) {
        return false;
    }
    k->lanes = choose_lanes(p, k);
    const int64_t shared = k->lanes ? shared_bytes(p, k, k->lanes) : 0;
    k->blocks = shared ? (int)MC_MAX(MC_MIN(k->blocks, SHARED / shared), 1) : k->blocks;
    return k->lanes > 0;
}

/* May a thread load v adjacent channels? */
static bool channels_fit(const struct mc_conv_problem *p, int v)
{
    const int64_t *const from = mc_conv_spreads(p) ? p->at.y : p->at.x;
    return sources(p) % v == 0 && mc_conv_even(from, 1, v);
}

/* Tiles for results r and channels c, v at once; where gradients spread, they have whole strides. */
static void try_tiles(const struct mc_conv_problem *p, const struct work *k, struct work *best, double *least)
{
    const int step_h = mc_conv_spreads(p) ? (int)p->s.stride[1] : 1,
              step_w = mc_conv_spreads(p) ? (int)p->s.stride[2] : 1;
    for (int i = 0; i < 4 * 14; i++) {
        struct work w = *k;
        w.tile.th = (i / 14 + 1) * step_h;
        w.tile.tw = (i % 14 + 1) * step_w;
        const bool beyond = (w.tile.th > step_h && w.tile.th > mc_conv_tiled(p)[1]) ||
                            (w.tile.tw > step_w && w.tile.tw > mc_conv_tiled(p)[2]);
        if (!beyond && complete(p, &w)) {
            const double c = cost(p, &w);
            if (!best->r || c < *least) {
                *best = w;
                *least = c;
            }
        }
    }
}

static struct work choose(const struct mc_conv_problem *p)
{
    static const int of_results[] = { 8, 6, 4, 3, 2, 1 };
    const bool last = p->at.x[1] == 1 && p->at.y[1] == 1 && p->s.f > 1;
    struct work best = { 0 };
    double least = 0;
    for (size_t i = 0; i < NELEM(of_results); i++) {
        const int r = of_results[i];
        for (int c = 1; c <= 4 && r <= results(p) && (!last || results(p) % r == 0); c *= 2) {
            const struct work k = { .tile = { .last = last, .v = last ? c : 1 },
                                    .r = r,
                                    .c = of_filters(p) ? c : 1 };
            if ((last ? channels_fit(p, c) : c == 1 || of_filters(p)) && c <= sources(p)) {
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

static void take_shape(struct grouped *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    struct mc_grouped_args *a = &d->args;
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
            d->w_first += (s->k[i + 1] - 1) * a->ws[2 + i];
            a->ws[2 + i] = -a->ws[2 + i];
        }
    }
}

/* Blocks along x share the tiles of the same lanes. */
static void hand_out(struct grouped *d, const struct mc_conv_problem *p, const struct work *k)
{
    enum { EACH = 4 }; /* tiles of a thread: that it sums at least, or that share a block's filters */
    struct mc_grouped_args *a = &d->args;
    const int64_t tiles = mc_conv_tiles(p, &k->tile), workers = THREADS / k->lanes,
                  down = conv_ceil(all_lanes(p, k), k->lanes), blocks = conv_ceil(tiles, workers),
                  room = (int64_t)mc_cuda_multiprocessors() * k->blocks;
    a->across = mc_cuda_divider(conv_ceil(mc_conv_tiled(p)[2], k->tile.tw));
    a->down = mc_cuda_divider(conv_ceil(mc_conv_tiled(p)[1], k->tile.th));
    a->count = (unsigned)tiles;
    int64_t across = conv_ceil(blocks, MC_MAX(MC_MIN(blocks * down / (2 * room), EACH), 1));
    if (of_filters(p)) {
        across = MC_MAX(MC_MIN(MC_MAX(room / down, 1), tiles / (workers * EACH)), 1);
        a->splits = (int)across;
    }
    d->grid = (struct mc_grid){ { (unsigned)across, (unsigned)down, 1 },
                                { (unsigned)(k->lanes * workers), 1, 1 },
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
    const int64_t first = d->w_first * size_of(p);
    char *const c0 = p->beta != 0 ? operand[CONV_C0] : NULL;
    struct mc_grouped_args a = d->args;
    a.x = operand[CONV_X];
    a.w = (char *)operand[CONV_W] + first;
    a.y = operand[CONV_Y];
    a.c0 = c0 && filters ? c0 + first : c0;
    a.bias = p->has_bias ? operand[CONV_BIAS] : NULL;
    a.parts = workspace;
    if (((uintptr_t)a.x | (uintptr_t)a.y | (filters ? 0 : (uintptr_t)c0)) % d->unit) {
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
                "#define LANES %d\n#define BLOCKS %d\n",
                (int)sources(p), (int)results(p), k->r, k->rv, k->c, k->lanes, k->blocks);
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
    take_shape(d, p);
    hand_out(d, p, &k);
    LOG(LOG_PLAN,
        "    grouped: %d results and %d channels of tiles of %d x %d, %d channels, %d and %d positions at "
        "once, "
        "%d lanes, %d parts",
        k.r, k.c, k.tile.th, k.tile.tw, k.tile.v, k.tile.g, k.tile.gt, k.lanes, d->args.splits);
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
    return mc_conv_no_tiles(p)                         ? mc_conv_no_tiles(p)
           : p->s.groups == 1 || p->s.groups == p->s.c ? "takes groups of several channels"
           : sources(p) > 1024 || results(p) > 1024    ? "takes groups of up to 1024 channels"
           : choose(p).r == 0                          ? "has no tile for such strides"
                                                       : NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const double terms = mc_conv_flops(p) / (mc_conv_spreads(p) ? (double)conv_volume(p->s.stride) : 1);
    return mc_cuda_seconds(MC_FLOAT32, false, terms, mc_conv_bytes(p), of_filters(p) ? 0.35 : 0.5) +
           (of_filters(p) ? 2e-6 : 0);
}

const struct mc_solver mc_conv_cuda_grouped = { .name = "grouped", .refuse = refuse, .estimate = estimate,
                                                .plan = plan };
