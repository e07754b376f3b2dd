/* depthwise.c: groups of one channel on a GPU, by the kernels of depthwise.cu: all passes, strides and
 * dilations.
 *
 * The tile of a thread is chosen by what it costs: the cycles of its loads and multiply-adds, times the
 * threads that a multiprocessor has to run one after another.
 *
 * Invariant: for operands that are not aligned to the adjacent channels of a thread the plan runs a child. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/depthwise/depthwise_args.h"
#include "heavy/conv/cuda/tile_lines.h"

static const char text[] = {
#include "heavy/conv/cuda/depthwise/depthwise_text.h"
    , 0
};
const struct mc_cuda_text mc_conv_depthwise_text = { "heavy/conv/cuda/depthwise/depthwise.cu", text };

enum { THREADS = DEPTHWISE_THREADS };

struct shape {
    struct mc_conv_tile tile; /* v: adjacent channels of a thread */
    int cb;                   /* threads of a block along channels */
    int blocks;               /* of a multiprocessor, whose registers they share */
};

struct depthwise {
    struct mc_plan base;
    void *kernel, *add;
    struct mc_grid grid, add_grid;
    struct mc_depthwise_args args;
    int64_t w_first; /* elements from w to the tap that is read first */
    uintptr_t unit;  /* bytes that are moved at once */
};

static int size_of(const struct mc_conv_problem *p)
{
    return (int)mc_dtypes[p->dtype].size;
}

static int64_t channels(const struct mc_conv_problem *p)
{
    return mc_conv_spreads(p) ? p->s.c : p->s.f;
}

static bool channels_last(const struct mc_conv_problem *p)
{
    return p->at.x[1] == 1 && p->at.y[1] == 1 && p->s.f > 1;
}

/* ---- the tile ---- */

/* Numbers of a thread: sums, what it reads of a line, a filter. */
static double kept(const struct mc_conv_problem *p, const struct shape *t)
{
    const double taps = (double)(p->s.k[1] * p->s.k[2]);
    return t->tile.v * (t->tile.th * t->tile.tw + mc_conv_lines_read(&p->s, 2, t->tile.tw) + t->tile.g - 1 +
                        (t->tile.last && p->s.pass != CONV_WEIGHTS ? 0 : taps));
}

/* Instructions of a tile. */
static double instructions(const struct mc_conv_problem *p, const struct shape *t)
{
    const struct mc_conv_shape *s = &p->s;
    const double taps = (double)(s->k[1] * s->k[2]), of_result = (double)(t->tile.th * t->tile.tw),
                 of_source = mc_conv_lines_read(s, 1, t->tile.th) * mc_conv_lines_read(s, 2, t->tile.tw),
                 widen = size_of(p) == 2 ? 1 : 0, /* of each number */
        sums = taps * of_result * t->tile.v /
               (s->pass == CONV_INPUTS ? (double)(s->stride[1] * s->stride[2]) : 1);
    const double filter = s->pass == CONV_WEIGHTS ? 0
                          : t->tile.last          ? taps * t->tile.th
                                                  : taps * (1 + widen) / 2;
    return 80 + sums + filter + of_source * (4. / t->tile.g + widen * t->tile.v) +
           of_result * (6. / t->tile.gt + (s->pass == CONV_WEIGHTS ? widen : 2) * t->tile.v);
}

/* Cycles of a multiprocessor: it starts four instructions in one, and hides what a warp waits for by others.
 * A wave is as many warps as its registers hold. */
static double cost(const struct mc_conv_problem *p, const struct shape *t)
{
    enum { WAIT = 1500 }; /* cycles that the loads of a tile take */
    const double warps = (double)(mc_conv_tiles(p, &t->tile) * (channels(p) / t->tile.v)) / 32 /
                         mc_cuda_multiprocessors(),
                 at_once = MC_MIN(warps, (double)t->blocks * THREADS / 32), waves = warps / at_once;
    return waves * (WAIT + instructions(p, t) * (1 + at_once / 4));
}

/* Adjacent channels that can be moved at once. */
static bool channels_fit(const struct mc_conv_problem *p, int v)
{
    return p->s.f == p->s.c && p->s.c % v == 0 && mc_conv_even(p->at.x, 1, v) && mc_conv_even(p->at.y, 1, v);
}

/* Threads along channels: they fill whole blocks of c / v where they can. */
static int along_channels(int64_t vectors)
{
    int best = 8;
    double least = 0;
    for (int cb = 8; cb <= 32; cb++) {
        const double used = (double)vectors / (double)(conv_ceil(vectors, cb) * cb) *
                            (double)(THREADS - THREADS % cb) / THREADS;
        best = used >= least ? cb : best;
        least = MC_MAX(used, least);
    }
    return best;
}

/* Completes a tile whose lines, positions and channels are chosen; false: there is no such one. */
static bool complete(const struct mc_conv_problem *p, struct shape *t)
{
    /* of a thread, where a multiprocessor has one block; those for addresses */
    enum { REGISTERS = 512, BESIDE = 34 };
    const struct mc_conv_shape *s = &p->s;
    t->tile.g = t->tile.gt = 1;
    if (!t->tile.last) {
        mc_conv_positions_at_once(p, &t->tile);
    }
    t->blocks = (int)MC_MIN(REGISTERS / (kept(p, t) + BESIDE), 6);
    /* larger tiles keep the loads of a thread waiting for each other, and their texts take long to compile */
    const int most = t->tile.last ? 56 : t->tile.g * t->tile.gt > 1 ? 28 : 14;
    return t->blocks >= 3 &&
           t->tile.th * t->tile.tw * t->tile.v <= MC_MAX(most, (int)(s->stride[1] * s->stride[2])) &&
           t->tile.th * t->tile.tw * t->tile.v * s->k[1] * s->k[2] < 1600;
}

/* Where gradients spread, a tile has whole strides. */
static struct shape choose(const struct mc_conv_problem *p)
{
    const bool last = channels_last(p);
    const int step_h = mc_conv_spreads(p) ? (int)p->s.stride[1] : 1,
              step_w = mc_conv_spreads(p) ? (int)p->s.stride[2] : 1;
    struct shape best = { 0 };
    double least = 0;
    for (int v = 1; v <= (last ? 4 : 1) && (v == 1 || channels_fit(p, v)); v *= 2) {
        for (int i = 0; i < (last ? 8 : 4) * 14; i++) {
            struct shape t = {
                .tile = { .last = last, .th = (i % 14 + 1) * step_h, .tw = (i / 14 + 1) * step_w, .v = v }
            };
            const bool high = t.tile.th > step_h && t.tile.th > mc_conv_tiled(p)[1];
            if (!high && complete(p, &t) && (!best.tile.th || cost(p, &t) < least)) {
                best = t;
                least = cost(p, &t);
            }
        }
    }
    best.cb = best.tile.last ? along_channels(channels(p) / best.tile.v) : 1;
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

static void take_shape(struct depthwise *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    struct mc_depthwise_args *a = &d->args;
    *a = (struct mc_depthwise_args){ .ws = { p->at.w[0], p->at.w[3], p->at.w[4] },
                                     .c = (int)channels(p),
                                     .splits = 1,
                                     .alpha = (float)p->alpha,
                                     .beta = (float)p->beta };
    copy_strides(a->xs, a->xl, p->at.x);
    copy_strides(a->ys, a->yl, p->at.y);
    for (int i = 0; i < 2; i++) {
        a->in[i] = (int)s->in[i + 1];
        a->out[i] = (int)s->out[i + 1];
        if (s->flip) {
            d->w_first += (s->k[i + 1] - 1) * a->ws[1 + i];
            a->ws[1 + i] = -a->ws[1 + i];
        }
    }
}

static void share_sums(struct depthwise *d, const struct mc_conv_problem *p, struct shape *t)
{
    enum { EACH = 4 }; /* tiles that a thread sums at least */
    const int64_t all = mc_conv_tiles(p, &t->tile);
    if (!t->tile.last) {
        while (t->cb < 16 && all * t->cb < THREADS) {
            t->cb *= 2;
        }
    }
    const int64_t workers = THREADS / t->cb, groups = conv_ceil(channels(p), t->cb * t->tile.v),
                  slots = MC_MAX((int64_t)mc_cuda_multiprocessors() * t->blocks / groups, 1);
    d->args.splits = (int)MC_MAX(MC_MIN(slots, all / (workers * EACH)), 1);
    d->args.count = (unsigned)all;
    d->grid = (struct mc_grid){ { (unsigned)d->args.splits, (unsigned)groups, 1 },
                                { (unsigned)(t->cb * workers), 1, 1 },
                                0 };
    if (d->args.splits > 1) {
        const int64_t taps = channels(p) * p->s.k[1] * p->s.k[2];
        d->base.workspace = (size_t)(d->args.splits * taps) * sizeof(float);
        d->add_grid = (struct mc_grid){ { (unsigned)conv_ceil(taps, 32), 1, 1 }, { 256, 1, 1 }, 0 };
    }
}

static void hand_out(struct depthwise *d, const struct mc_conv_problem *p, struct shape *t)
{
    struct mc_depthwise_args *a = &d->args;
    a->across = mc_cuda_divider(conv_ceil(mc_conv_tiled(p)[2], t->tile.tw));
    a->down = mc_cuda_divider(conv_ceil(mc_conv_tiled(p)[1], t->tile.th));
    a->channels = mc_cuda_divider(channels(p));
    if (p->s.pass == CONV_WEIGHTS) {
        share_sums(d, p, t);
    } else if (t->tile.last) {
        const int64_t workers = THREADS / t->cb, groups = conv_ceil(channels(p) / t->tile.v, t->cb),
                      all = mc_conv_tiles(p, &t->tile), blocks = conv_ceil(all, workers),
                      /* as many as load a filter once for up to four tiles */
            each = blocks * groups / (2 * t->blocks * mc_cuda_multiprocessors());
        a->count = (unsigned)all;
        d->grid = (struct mc_grid){ { (unsigned)conv_ceil(blocks, MC_MAX(MC_MIN(each, 4), 1)),
                                      (unsigned)groups, 1 },
                                    { (unsigned)(t->cb * workers), 1, 1 },
                                    0 };
    } else {
        a->count = (unsigned)(mc_conv_tiles(p, &t->tile) * channels(p));
        d->grid = (struct mc_grid){ { (unsigned)conv_ceil(a->count, THREADS), 1, 1 }, { THREADS, 1, 1 }, 0 };
    }
}

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct depthwise *d = (const struct depthwise *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    const bool filters = p->s.pass == CONV_WEIGHTS;
    const int64_t first = d->w_first * size_of(p);
    char *const c0 = p->beta != 0 ? operand[CONV_C0] : NULL;
    struct mc_depthwise_args a = d->args;
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

/* Between taps that follow each other; 0: there is no one step. */
static int tap_step(const struct depthwise *d, const struct mc_conv_shape *s)
{
    const i64 step = d->args.ws[2];
    return (step == 1 || step == -1) && (s->k[1] == 1 || d->args.ws[1] == s->k[2] * step) ? (int)step : 0;
}

static bool load(struct depthwise *d, const struct mc_conv_problem *p, const struct shape *t)
{
    const struct mc_conv_shape *s = &p->s;
    struct mc_str defines = { 0 };
    mc_conv_tile_defines(p, &t->tile, &defines);
    mc_str_addf(&defines, "#define M %d\n#define TAP_STEP %d\n#define CB %d\n#define BLOCKS %d\n",
                (int)(s->f / s->c), tap_step(d, s), t->cb, t->blocks);
    const struct mc_cuda_kernel_ref kernels[] = { { &d->kernel,
                                                    s->pass == CONV_WEIGHTS ? "filters" : "sums" },
                                                  { &d->add, d->args.splits > 1 ? "add" : NULL } };
    return mc_cuda_kernels(&mc_conv_depthwise_text, &defines, kernels, NELEM(kernels));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct shape t = choose(p);
    struct depthwise *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->unit = (uintptr_t)(MC_MAX(t.tile.v, MC_MAX(t.tile.g, t.tile.gt)) * size_of(p));
    take_shape(d, p);
    hand_out(d, p, &t);
    LOG(LOG_PLAN, "    depthwise: tiles of %d x %d, %d channels, %d and %d positions at once, %d parts",
        t.tile.th, t.tile.tw, t.tile.v, t.tile.g, t.tile.gt, d->args.splits);
    d->base.child[0] = mc_plan_with(&p->base, &mc_conv_cuda_direct);
    if (!d->base.child[0] || !load(d, p, &t)) {
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
    return mc_conv_no_tiles(p)      ? mc_conv_no_tiles(p)
           : p->s.groups != p->s.c  ? "takes groups of one channel"
           : choose(p).tile.th == 0 ? "has no tile for such strides"
                                    : NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const double terms = mc_conv_flops(p) / (p->s.pass == CONV_INPUTS ? (double)conv_volume(p->s.stride) : 1);
    return mc_cuda_seconds(MC_FLOAT32, false, terms, mc_conv_bytes(p),
                           p->s.pass == CONV_WEIGHTS ? 0.3 : 0.5) +
           (p->s.pass == CONV_WEIGHTS ? 2e-6 : 0);
}

const struct mc_solver mc_conv_cuda_depthwise = {
    .name = "depthwise", .refuse = refuse, .estimate = estimate, .plan = plan
};
