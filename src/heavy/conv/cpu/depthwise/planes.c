/* planes.c: depthwise convolutions of dense planes, one plane after another: it is copied with its border,
 * and what is summed goes to the result at once. Rows that are shorter than a vector are summed as one row of
 * the copy.
 *
 * Invariant: a copy's border is zero from the start of a call, and no plane writes there. */
#include "heavy/conv/cpu/depthwise/plan.h"

#include <math.h>

enum {
    LINE = 64,
    TAPS = 121,
    SLOTS = 1024,
    BLOCK = 4096, PLANES = 16, /* floats of copies that are made together, and the most planes */
    COPY = 65536,              /* most floats of a copy: beyond it, the bands of solver depth are better */
};

struct planes {
    struct mc_plan base;
    const struct mc_depth_kernel *kernel;
    struct mc_depth_flat one; /* what all planes share */
    struct mc_depth_group group[TAPS];
    int64_t at[TAPS], w[TAPS]; /* of each tap: in the copy, and in the filter */
    int64_t block, blocks;     /* planes of a task; tasks of an image */
    int64_t copy, sums;        /* floats of all planes of a block */
    size_t slot_bytes;
    int slots;
};
struct call {
    const struct planes *d;
    struct mc_conv_run r;
    bool *clean;                /* by slot: its copy has zeros around */
};

static int64_t lines(int64_t floats)
{
    return (floats * (int64_t)sizeof(float) + LINE - 1) / LINE * LINE / (int64_t)sizeof(float);
}

/* What a row of n costs, by the numbers that are summed. Loads of short rows, one as the next, meet two lines
 * of the cache; wider vectors have less to do between the sums. */
static double row_cost(const struct mc_depth_kernel *k, int64_t n, int64_t pitch)
{
    const double lanes = k->lanes, all = n < k->lanes ? 1.5 * (double)pitch : ceil((double)n / lanes) * lanes;
    return all * (1 + 2 / lanes);
}

static const struct mc_depth_kernel *kernel_for(int64_t n, int64_t pitch)
{
    const struct mc_depth_kernel *const table[ISA_COUNT] = {
        [ISA_AVX512] = mc_depth_avx512, [ISA_AVX2] = mc_depth_avx2, [ISA_PLAIN] = mc_depth_plain,
    };
    const struct mc_depth_kernel *best = mc_depth_plain;
    for (enum mc_isa i = ISA_AVX512; i < ISA_PLAIN; i++) {
        const bool first = best == mc_depth_plain;
        if (table[i] && mc_isa_runs(i) &&
            (first || row_cost(table[i], n, pitch) < row_cost(best, n, pitch))) {
            best = table[i];
        }
    }
    return best;
}

/* ---- planning ---- */

static void measure(struct planes *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    struct mc_depth_flat *f = &d->one;
    for (int i = 0; i < 2; i++) {
        f->in[i] = s->in[i + 1];
        f->out[i] = s->out[i + 1];
        f->step[i] = s->stride[i + 1];
        f->pad[i] = s->pad[i + 1];
        f->phases[i] = MC_MIN(s->stride[i + 1], s->k[i + 1]);
    }
    f->taps = conv_volume(s->k);
    f->lines = f->out[0] + (s->k[1] - 1) / f->step[0];
    f->pitch = f->out[1] + (s->k[2] - 1) / f->step[1];
    d->kernel = kernel_for(f->out[1], f->pitch);
    const int64_t lanes = d->kernel->lanes;
    f->phase = f->lines * f->pitch + lanes;
    f->copy_plane = lines(f->phases[0] * f->phases[1] * f->phase + 5 * lanes);
    f->sums_plane = f->out[1] < lanes ? lines(f->out[0] * f->pitch + 4 * lanes) : 0;
    d->block = MC_MAX(MC_MIN(BLOCK / f->copy_plane, (int64_t)PLANES), (int64_t)1);
    d->blocks = conv_ceil(s->c, d->block);
    d->copy = d->block * f->copy_plane;
    d->sums = d->block * f->sums_plane;
    const int64_t kept = p->beta == 0 ? 0 : d->block * f->out[0] * f->out[1];
    d->slot_bytes = (size_t)(d->copy + d->sums + lines(f->taps * lanes) + lines(d->block * f->taps) +
                             lines(kept)) *
                    sizeof(float);
}

/* Taps of a column that meet one phase of the rows stand one after another: they read consecutive lines. */
static void list_taps(struct planes *d, const struct mc_conv_problem *p)
{
    struct mc_depth_flat *f = &d->one;
    const struct mc_conv_shape *s = &p->s;
    int64_t n = 0;
    for (int64_t c = 0; c < s->k[2]; c++) {
        for (int64_t phase = 0; phase < f->phases[0]; phase++) {
            int taps = DEPTH_TAPS;
            for (int64_t r = phase; r < s->k[1]; r += f->step[0], n++, taps++) {
                d->at[n] = (phase * f->phases[1] + c % f->step[1]) * f->phase + r / f->step[0] * f->pitch +
                           c / f->step[1];
                d->w[n] = conv_tap(s, 1, r) * p->at.w[3] + conv_tap(s, 2, c) * p->at.w[4];
                if (taps == DEPTH_TAPS) {
                    taps = 0;
                    d->group[f->groups++] = (struct mc_depth_group){ d->at[n], n, 0 };
                }
                d->group[f->groups - 1].taps++;
            }
        }
    }
}

/* ---- running ---- */

static void task(void *arg, int64_t i, int slot)
{
    const struct call *x = arg;
    const struct planes *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    struct mc_depth_flat f = d->one;
    const int64_t n = i / d->blocks, c = i % d->blocks * d->block, plane = n * p->s.c + c,
                  in = f.in[0] * f.in[1], out = f.out[0] * f.out[1];
    f.planes = MC_MIN(d->block, p->s.c - c);
    f.copy = (float *)(void *)(x->r.workspace + (size_t)slot * d->slot_bytes);
    if (!x->clean[slot]) { /* by the thread that uses it */
        memset(f.copy, 0, (size_t)d->copy * sizeof(float));
        x->clean[slot] = true;
    }
    f.sums = f.copy + d->copy;
    f.w = f.sums + d->sums;
    float *const taps = f.w + lines(f.taps * d->kernel->lanes);
    for (int64_t k = 0; k < f.planes; k++) {
        const float *own = (const float *)(const void *)x->r.at[CONV_W] + (c + k) * p->at.w[0];
        for (int64_t t = 0; t < f.taps; t++) {
            taps[k * f.taps + t] = (float)p->alpha * own[d->w[t]];
        }
    }
    f.taps_of = taps;
    f.group = d->group;
    f.at = d->at;
    f.x = (const float *)(const void *)x->r.at[CONV_X] + plane * in;
    f.y = (float *)(void *)x->r.result + plane * out;
    f.x_limit = (p->s.n * p->s.c - plane) * in;
    float *const kept = taps + lines(d->block * f.taps); /* c0, which may be the old result */
    const int64_t added = x->r.c0 ? f.planes * out : 0;
    for (int64_t k = 0; k < added; k++) {
        kept[k] = (float)p->beta * ((const float *)(const void *)x->r.c0)[plane * out + k];
    }
    d->kernel->flat(&f);
    for (int64_t k = 0; k < added; k++) {
        f.y[k] += kept[k];
    }
    conv_finish(&x->r, (int64_t[]){ n, c, 0, 0, 0 }, (int64_t[]){ 1, f.planes, 1, f.out[0], f.out[1] });
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct planes *d = (const struct planes *)(const void *)plan;
    bool clean[SLOTS] = { false };
    struct call x = { d, mc_conv_bind(plan, operand, workspace, threads), clean };
    mc_team_tasks(task, &x, x.r.p->s.n * d->blocks, d->slots, x.r.threads, mc_conv_work(x.r.p));
    return MC_OK;
}

/* ---- the solver ---- */

static struct mc_plan *plan(const struct mc_problem *p_)
{
    struct planes *d = mc_calloc(1, sizeof *d, "plans");
    if (d) {
        measure(d, conv(p_));
        list_taps(d, conv(p_));
        d->base.run = run;
        d->slots = (int)MC_MAX(MC_MIN((size_t)mc_team_size(), p_->options.workspace / d->slot_bytes),
                               (size_t)1);
        d->slots = MC_MIN(d->slots, SLOTS);
        d->base.workspace = (size_t)d->slots * d->slot_bytes;
    }
    return d ? &d->base : NULL;
}

/* What channels.c refuses, too. */
const char *mc_depth_not_planes(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (s->pass != CONV_FORWARD || s->groups != s->c || s->f != s->c || s->unshared) {
        return "takes forward convolutions with one filter for each channel";
    }
    if (p->dtype != MC_FLOAT32 || p->wide) {
        return "takes float32, summed in float32";
    }
    if (s->in[0] != 1 || s->k[0] != 1 || s->pad[0] != 0 || s->dilation[1] != 1 || s->dilation[2] != 1) {
        return "takes two axes without dilation";
    }
    if (!mc_conv_dense(p, CONV_X) || !mc_conv_dense(p, CONV_Y)) {
        return "takes dense planes";
    }
    return conv_volume(s->k) > TAPS ? "takes at most 121 taps" : NULL;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct planes d = { 0 };
    if (mc_depth_not_planes(p)) {
        return mc_depth_not_planes(p);
    }
    measure(&d, p);
    return d.one.copy_plane > COPY ? "takes planes of at most 65536 numbers" : NULL;
}

/* The measured fractions of the peak, and one pass over the copies.  As implicit, it serves where solvers are
 * timed: libmonochord-run does not have it, and functions that were planned by estimates have the same bits
 * there. */
static double estimate(const struct mc_problem *p_)
{
    const double never = 1e3;
    if (mc_flag_int(FLAG_plan) == PLAN_ESTIMATE) {
        return never;
    }
    const struct mc_conv_problem *p = conv(p_);
    struct planes d = { 0 };
    measure(&d, p);
    const double waste = row_cost(d.kernel, d.one.out[1], d.one.pitch) / (double)d.one.out[1],
                 math = waste * mc_conv_flops(p) / 0.5 / mc_conv_peak(p),
                 copied = (double)(p->s.n * p->s.c * d.one.copy_plane),
                 seconds = math + copied * 0.04e-9 + mc_conv_copy(mc_conv_bytes(p));
    return 1e-6 + seconds / mc_conv_threads(seconds, (double)(p->s.n * d.blocks));
}

const struct mc_solver mc_conv_planes = {
    .name = "planes", .refuse = refuse, .estimate = estimate, .plan = plan,
};
