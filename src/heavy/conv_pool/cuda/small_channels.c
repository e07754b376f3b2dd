/* small_channels.c: images of few channels on a GPU (small_channels.cu): the first layer of a net with the
 * pooling after it, forward and the gradient of its filters.
 *
 * Invariant: a block's part of the problem fits in shared memory. */
#include "heavy/conv/cuda/small_channels/rows_args.h"
#include "heavy/conv/cuda/small_channels/small_channels.h"
#include "heavy/conv_pool/cuda/small_channels_args.h"
#include "heavy/conv_pool/solver.h"

static const char text[] = {
#include "heavy/conv_pool/cuda/small_channels_text.h"
    , 0 };
const struct mc_cuda_text mc_pooled_small_channels_text = { "heavy/conv_pool/cuda/small_channels.cu", text,
                                                            &mc_conv_small_channels_lines_text };

enum {
    P = ROWS_P,
    WARPS = ROWS_WARPS,
    THREADS = POOLED_THREADS,
    MOST_TAPS = 49,
    MOST_STRIDE = 2,
    MOST_SHARED = 100 << 10,
    BANKS = 32
};

struct small_channels {
    struct mc_small_channels base;
    struct mc_pooled_small_channels_args args;
    bool planes;                /* maxima and argmax marks can be moved four at a time */
    int q;                      /* forward: filters of a thread */
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct small_channels *d = (const struct small_channels *)(const void *)plan;
    struct mc_pooled_small_channels_args a = d->args;
    (void)threads;
    a.x = operand[POOLED_X];
    a.w = (float *)operand[POOLED_W] + d->base.w_first;
    a.g = operand[POOLED_G];
    a.mark = operand[POOLED_MARKS];
    a.bias = pooled(plan->problem)->conv.has_bias ? operand[POOLED_BIAS] : NULL;
    a.parts = workspace;
    a.whole = d->planes && mc_cuda_aligned(a.g) && (uintptr_t)a.mark % 4 == 0;
    return mc_small_channels_run(&d->base, &a, sizeof a);
}

/* ---- a plan ---- */

/* Forward: the lines that threads read at once begin in different banks.  Weights: what the taps of two
 * lines read for four windows, pairs of eight bytes, is in different banks. */
static int pitch_of(const struct mc_pooled_problem *p, int across)
{
    const struct mc_conv_shape *s = &p->conv.s;
    const int sh = (int)s->stride[1], sw = (int)s->stride[2];
    if (s->pass == CONV_FORWARD) {
        int unit = ((across - 1) * P * sw + mc_small_channels_up((P - 1) * sw + s->k[2], 4)) / 4;
        for (int tries = 0; tries < 8 && (unit * sh * (int)p->w[1] - across * sw) % 8 != 0; tries++) {
            unit++;
        }
        return unit * 4;
    }
    int pitch = (int)((s->out[2] - 1) * sw + s->k[2]);
    for (int tries = 0; tries < BANKS / 2 && pitch % (BANKS / 2) != 11; tries++) {
        pitch++;
    }
    return pitch;
}

/* Where the cells of all windows read, for all taps; cells outside of y read beyond the image. */
static void place_pairs(struct mc_pooled_small_channels_args *a, const struct mc_pooled_problem *p)
{
    const struct mc_conv_shape *s = &p->conv.s;
    const int64_t cell[2] = { s->stride[1] * a->pitch, s->stride[2] };
    const int64_t size = s->c * a->lines * a->pitch;
    int64_t last = (s->c - 1) * a->lines * a->pitch + (s->k[1] - 1) * a->pitch + s->k[2] - 1,
            lead = s->stride[2];
    for (int i = 0; i < 2; i++) {
        const int64_t w = mc_small_channels_up(p->w[i + 1], i + 1);
        lead += p->pad[i + 1] * cell[i];
        last += ((p->out[i + 1] - 1) * p->stride[i + 1] - p->pad[i + 1] + w - 1) * cell[i];
    }
    a->lead = (int)lead;
    a->reach = mc_small_channels_up(lead + MC_MAX(size, last + 1), 2);
}

static void shape(struct small_channels *d, const struct mc_pooled_problem *p)
{
    const struct mc_conv_shape *s = &p->conv.s;
    struct mc_pooled_small_channels_args *a = &d->args;
    const int64_t *xs = p->conv.at.x, *ws = p->conv.at.w;
    *a = (struct mc_pooled_small_channels_args){ .xs = { xs[0], xs[1], xs[3], xs[4] },
                                                 .ws = { ws[0], ws[1], ws[3], ws[4] },
                                                 .gs = { p->g[0], p->g[1] },
                                                 .ks = { p->mark[0], p->mark[1] },
                                                 .n = (int)s->n,
                                                 .f = (int)s->f };
    for (int i = 0; i < 2; i++) {
        a->in[i] = (int)s->in[i + 1];
        a->y[i] = (int)s->out[i + 1];
        a->out[i] = (int)p->out[i + 1];
        a->pad[i] = (int)s->pad[i + 1];
        a->before[i] = (int)p->pad[i + 1];
    }
    for (int i = 1; i < 3 && s->flip; i++) {
        d->base.w_first += (s->k[i] - 1) * ws[2 + i];
        a->ws[1 + i] = -a->ws[1 + i];
    }
    const bool forward = s->pass == CONV_FORWARD;
    const int64_t rows = forward ? p->out[1] * p->w[1] : s->out[1], side = MC_MAX(P / p->w[2], (int64_t)1);
    d->q = p->w[1] > 2 || (s->f % 8 > 0 && s->f % 8 <= 4) ? 4 : 8;
    a->across = (int)conv_ceil(p->out[2], side);
    a->pitch = pitch_of(p, a->across);
    a->lines = (int)((rows - 1) * s->stride[1] + s->k[1]);
    a->windows = (int)(p->out[1] * p->out[2]);
    a->fours = mc_small_channels_up(a->windows - 4, BANKS) + 4; /* filters are four banks apart */
    a->filters = mc_small_channels_up(s->f, d->q) + 4;
    place_pairs(a, p);
    d->planes = a->windows % 4 == 0 && (!forward || a->out[1] % 2 == 0) && a->gs[0] % 4 == 0 &&
                a->gs[1] % 4 == 0 && a->ks[0] % 4 == 0 && a->ks[1] % 4 == 0;
}

/* Floats of a block; in 64 bits, as the number may be large. */
static int64_t shared_floats(const struct small_channels *d, const struct mc_conv_shape *s)
{
    const struct mc_pooled_small_channels_args *a = &d->args;
    const int64_t image = s->c * a->lines * a->pitch, taps = s->c * s->k[1] * s->k[2];
    return s->pass == CONV_FORWARD ? taps * a->filters + image
                                   : MC_MAX(2 * (int64_t)a->reach + mc_small_channels_up(a->windows, 8) +
                                                mc_small_channels_up(image, 4) + 80 * (int64_t)a->fours,
                                            WARPS * 32 * taps);
}

static void grids(struct small_channels *d, const struct mc_pooled_problem *p)
{
    const struct mc_conv_shape *s = &p->conv.s;
    struct mc_pooled_small_channels_args *a = &d->args;
    const size_t shared = (size_t)shared_floats(d, s) * sizeof(float);
    const int64_t processors = mc_cuda_multiprocessors();
    if (s->pass == CONV_FORWARD) {
        const int64_t work = (int64_t)a->out[0] * a->across * conv_ceil(s->f, d->q),
                      turns = conv_ceil(work, THREADS);
        d->base.grid = (struct mc_grid){ { (unsigned)s->n, 1, 1 },
                                         { (unsigned)mc_small_channels_up(conv_ceil(work, turns), 32), 1, 1 },
                                         shared };
        return;
    }
    const int64_t groups = conv_ceil(s->f, 32);
    a->blocks = (int)MC_MIN(s->n, MC_MAX(2 * processors / groups, (int64_t)1));
    d->base.grid = (struct mc_grid){ { (unsigned)a->blocks, (unsigned)groups, 1 },
                                     { 32 * WARPS, 1, 1 },
                                     shared };
    mc_small_channels_parts(&d->base, s, a->blocks);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    struct mc_str defines = { 0 };
    struct small_channels d = { .base.pass = p->conv.s.pass };
    shape(&d, p);
    grids(&d, p);
    d.base.base.run = run;
    mc_small_channels_defines(&defines, &d.base, &p->conv);
    mc_str_addf(&defines,
                "#define FORWARD %d\n#define BITS %d\n#define Q %d\n#define NT %d\n#define W1 %d\n#define W2 "
                "%d\n#define S1 %d\n"
                "#define S2 %d\n",
                p->conv.s.pass == CONV_FORWARD, p->bits, d.q, (int)conv_ceil(MC_MIN(p->conv.s.f, 32), 8),
                (int)p->w[1], (int)p->w[2], (int)p->stride[1], (int)p->stride[2]);
    return mc_small_channels_plan(&d.base, sizeof d, &mc_pooled_small_channels_text, &defines);
}

/* ---- limits and estimate ---- */

static bool small(const struct mc_pooled_problem *p)
{
    const struct mc_conv_shape *s = &p->conv.s;
    bool ok = s->n < 1 << 24 && s->f < 4096 && s->c * s->k[1] * s->k[2] <= MOST_TAPS &&
              p->w[1] * p->w[2] <= 256;
    for (int i = 1; i < 3; i++) {
        ok = ok && s->in[i] < 4096 && s->out[i] < 4096 && s->pad[i] >= 0 && s->pad[i] < 4096 &&
             s->stride[i] <= MOST_STRIDE && p->w[i] <= 16;
    }
    return ok;
}

/* Do windows not overlap, and does a thread have whole ones? */
static bool side_by_side(const struct mc_pooled_problem *p)
{
    bool yes = P % p->w[2] == 0 && p->w[1] <= 3;
    for (int i = 1; i < 3; i++) {
        yes = yes && p->stride[i] == p->w[i] && p->pad[i] == 0;
    }
    return yes;
}

static bool fits(const struct mc_pooled_problem *p)
{
    struct small_channels d = { .q = 0 };
    shape(&d, p);
    return shared_floats(&d, &p->conv.s) * (int64_t)sizeof(float) <= MOST_SHARED;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    const bool forward = p->conv.s.pass == CONV_FORWARD;
    return p->conv.s.pass == CONV_INPUTS ? "computes forward and gradients of filters"
           : mc_pooled_not_plain(p)      ? mc_pooled_not_plain(p)
           : !small(p)                   ? "takes few channels, small filters, strides up to 2"
           : forward && !side_by_side(p)
               ? "computes forward for windows of 1, 2 or 4 columns and up to 3 rows, not overlapping"
           : !fits(p) ? "cannot keep an image in shared memory"
                      : mc_cuda_needs_sm80();
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    const struct mc_conv_shape *s = &p->conv.s;
    const double windows = (double)(s->n * s->f) * (double)(p->out[1] * p->out[2]),
                 taps = (double)mc_small_channels_up(s->c * s->k[1] * s->k[2], 16),
                 cells = (double)(p->w[1] * mc_small_channels_up(p->w[2], 2));
    const double bytes = 5 * windows + 4 * (double)(s->n * s->c) * (double)(s->in[1] * s->in[2]);
    return s->pass == CONV_FORWARD
               ? mc_cuda_seconds(MC_FLOAT32, false, mc_conv_flops(&p->conv), bytes, 0.42)
               : mc_cuda_seconds(MC_FLOAT16, false, 6 * windows * cells * taps, bytes, 0.15);
}

const struct mc_solver mc_pooled_cuda_small_channels = { .name = "few", .refuse = refuse,
                                                         .estimate = estimate, .plan = plan };
