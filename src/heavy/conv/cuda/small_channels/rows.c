/* rows.c: images of few channels on a GPU's float32 units (weights.cu), as in the first layer of a net:
 * forward and the gradient of the filters.
 *
 * y is written, or read, once; with few taps memory bounds the time, with many the arithmetic.
 *
 * Invariant: the filters and a tile's lines of x fit in shared memory. */
#include "heavy/conv/cuda/small_channels/rows_args.h"
#include "heavy/conv/cuda/small_channels/small_channels.h"

static const char tile[] = {
#include "heavy/conv/cuda/small_channels/tile_text.h"
    , 0 };
static const char lines[] = {
#include "heavy/conv/cuda/small_channels/rows_text.h"
    , 0 };
static const char text[] = {
#include "heavy/conv/cuda/small_channels/weights_text.h"
    , 0 };
const struct mc_cuda_text
    mc_conv_small_channels_tile_text = { "heavy/conv/cuda/small_channels/tile.cu", tile, NULL },
    mc_conv_small_channels_lines_text = {
        "heavy/conv/cuda/small_channels/rows.cu", lines, &mc_conv_small_channels_tile_text
    },
    mc_conv_small_channels_text = {
        "heavy/conv/cuda/small_channels/weights.cu", text, &mc_conv_small_channels_lines_text
    };

enum { P = ROWS_P, WARPS = ROWS_WARPS, MOST_TAPS = 49, MOST_WIDTH = 11, MOST_STRIDE = 2 };
enum { MOST_SHARED = 80 << 10, MOST_SUMS = 100 };  /* bytes of a block; registers of a thread */

struct small_channels {
    struct mc_small_channels base;
    struct mc_small_channels_lines_args args;
    bool fours;                 /* y can be read four elements at a time, along lines or filters */
    int q, taps;                /* filters of a thread; weights: lines of taps */
};

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct small_channels *d = (const struct small_channels *)(const void *)plan;
    struct mc_small_channels_lines_args a = d->args;
    (void)threads;
    mc_small_channels_bind(&d->base, &a.base, conv(plan->problem), operand, workspace);
    a.whole = d->fours && mc_cuda_aligned(a.base.y);
    return mc_small_channels_run(&d->base, &a, sizeof a);
}

/* ---- a plan ---- */

/* The pitch for which the lines that threads read at once begin in different banks. */
static int pitch_of(const struct mc_conv_shape *s, int across)
{
    const int sh = (int)s->stride[1], sw = (int)s->stride[2];
    int unit = ((across - 1) * P * sw + mc_small_channels_up((P - 1) * sw + s->k[2], 4)) / 4;
    for (int tries = 0; tries < 8 && (unit * sh - across * sw) % 8 != 0; tries++) {
        unit++;
    }
    return unit * 4;
}

static size_t tile_bytes(const struct small_channels *d, const struct mc_conv_shape *s)
{
    return (size_t)(d->args.images * (int)s->c * d->args.lines * d->args.pitch) * sizeof(float);
}

/* Lines of x for so many rows of y.  The last set of taps may reach beyond the last tap. */
static int lines_of(const struct small_channels *d, const struct mc_conv_shape *s, int rows)
{
    return (rows - 1) * (int)s->stride[1] + mc_small_channels_up(s->k[1], d->taps);
}

/* Divides y into tiles of rows, of about `groups` groups of positions and at most `bytes` bytes. */
static void choose_tiling(struct small_channels *d, const struct mc_conv_shape *s, int groups, size_t bytes)
{
    struct mc_small_channels_lines_args *a = &d->args;
    a->images = 1;
    a->across = mc_small_channels_up(s->out[2], P) / P;
    a->pitch = pitch_of(s, a->across);
    a->rows = (int)MC_MIN(s->out[1], (int64_t)MC_MAX(groups / a->across, 1));
    for (a->lines = lines_of(d, s, a->rows); a->rows > 1 && tile_bytes(d, s) > bytes;
         a->lines = lines_of(d, s, a->rows)) {
        a->rows--;
    }
    a->down = (int)conv_ceil(s->out[1], a->rows);
    a->rows = (int)conv_ceil(s->out[1], a->down);
    a->lines = lines_of(d, s, a->rows);
    while (a->down == 1 && d->taps > 1 && 2 * a->images * a->rows * a->across <= groups && a->images < s->n &&
           2 * tile_bytes(d, s) <= bytes) {
        a->images *= 2;
    }
    a->tiles = (int)(conv_ceil(s->n, a->images) * a->down);
}

static void shape(struct small_channels *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    struct mc_small_channels_lines_args *a = &d->args;
    mc_small_channels_shape(&d->base, &a->base, p);
    const int64_t *const ys = a->base.ys;
    d->fours = (d->base.nhwc ? a->base.f : a->base.out[1]) % P == 0 && ys[0] % P == 0 &&
               ys[d->base.nhwc ? 3 : 1] % P == 0 && ys[2] % P == 0;
    if (s->pass == CONV_FORWARD) {
        d->q = 8;
        d->taps = 1;
        a->filters = mc_small_channels_up(s->f, d->q) + 4;
        choose_tiling(d, s, 192, MOST_SHARED / 2);
    } else {
        d->taps = (int)MC_MIN(s->k[1], MC_MAX((int64_t)MOST_SUMS / 4 / s->k[2], (int64_t)1));
        d->q = 8 * d->taps * s->k[2] <= MOST_SUMS ? 8 : 4;
        choose_tiling(d, s, 512, MOST_SHARED / 2);
    }
}

static size_t filter_bytes(const struct small_channels *d, const struct mc_conv_shape *s)
{
    return (size_t)(s->c * s->k[1] * s->k[2] * d->args.filters) * sizeof(float);
}

static void grids(struct small_channels *d, const struct mc_conv_shape *s)
{
    struct mc_small_channels_lines_args *a = &d->args;
    const int64_t processors = mc_cuda_multiprocessors();
    if (s->pass == CONV_FORWARD) {
        const int64_t share = MC_MIN(conv_ceil(s->f, d->q), MC_MAX(2 * processors / a->tiles, (int64_t)1));
        d->base.grid = (struct mc_grid){
            { (unsigned)a->tiles, (unsigned)share, 1 },
            { (unsigned)MC_MIN(mc_small_channels_up(a->rows * a->across, 32), 256), 1, 1 },
            filter_bytes(d, s) + tile_bytes(d, s)
        };
        return;
    }
    const int64_t jobs = conv_ceil(s->f, d->q) * s->c * conv_ceil(s->k[1], d->taps),
                  blocks = conv_ceil(jobs, WARPS);
    a->blocks = (int)MC_MIN((int64_t)a->tiles, MC_MAX(processors / blocks, (int64_t)1));
    d->base.grid = (struct mc_grid){ { (unsigned)a->blocks, (unsigned)blocks, 1 },
                                     { 32 * WARPS, 1, 1 },
                                     2 * tile_bytes(d, s) };
    mc_small_channels_parts(&d->base, s, a->blocks);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_str defines = { 0 };
    struct small_channels d = { .q = 0 };
    shape(&d, p);
    grids(&d, &p->s);
    d.base.base.run = run;
    mc_small_channels_defines(&defines, &d.base, p);
    mc_str_addf(&defines, "#define FORWARD %d\n#define Q %d\n#define TA %d\n", p->s.pass == CONV_FORWARD, d.q,
                d.taps);
    return mc_small_channels_plan(&d.base, sizeof d, &mc_conv_small_channels_text, &defines);
}

/* ---- limits and estimate ---- */

static bool fits(const struct mc_conv_problem *p)
{
    struct small_channels d = { .q = 0 };
    shape(&d, p);
    return (p->s.pass == CONV_FORWARD ? filter_bytes(&d, &p->s) : tile_bytes(&d, &p->s)) +
               tile_bytes(&d, &p->s) <=
           MOST_SHARED;
}

static bool small(const struct mc_conv_problem *p)
{
    return p->s.stride[1] <= MOST_STRIDE && p->s.stride[2] <= MOST_STRIDE && p->s.k[2] <= MOST_WIDTH &&
           p->s.k[1] * p->s.k[2] <= MOST_TAPS;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype != MC_FLOAT32        ? "takes float32 only"
           : p->s.pass == CONV_INPUTS    ? "computes forward and gradients of filters"
           : mc_small_channels_refuse(p) ? mc_small_channels_refuse(p)
           : p->s.in[0] != 1 || p->s.k[0] != 1 || p->s.out[0] != 1 || p->s.pad[0] != 0
               ? "takes one or two spatial axes"
           : !small(p) ? "takes small filters, strides up to 2"
           : !fits(p)  ? "cannot keep lines this long in shared memory"
                       : mc_cuda_needs_sm80();
}

static double estimate(const struct mc_problem *p)
{
    return mc_conv_cuda_seconds(conv(p), 0.5);
}

const struct mc_solver mc_conv_cuda_small_channels = { .name = "few", .refuse = refuse, .estimate = estimate,
                                                       .plan = plan };
