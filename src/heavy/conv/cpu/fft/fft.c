/* fft.c: convolutions of stride 1 as products of spectra of tiles, by FFT or Winograd's transforms.
 *
 * Infinity and NaN spread over their whole tile, not only to the positions that read them.
 *
 * Invariant: a problem that refuse() accepts fits in the workspace cap. */
#include "heavy/conv/cpu/fft/plan.h"
#include "heavy/gemm/cpu/kernel.h"

enum { LINE = 64 };
enum { MANY = 4096 }; /* tiles, above which Winograd's sums for weights lose too many digits */

static const char *refuse_any(const struct mc_problem *p_, int which)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct fft d = { 0 };
    if (mc_conv_not_plain(p)) {
        return mc_conv_not_plain(p);
    }
    if (s->stride[1] != 1 || s->stride[2] != 1) {
        return "takes only stride 1";
    }
    if (fft_wide(s, 1) >= FFT_MOST || fft_wide(s, 2) >= FFT_MOST) {
        return "has tiles of at most 64 by 64, and the filter is larger";
    }
    return mc_fft_choose(&d, p, which) ? NULL : "needs more workspace than the flag workspace allows";
}

static const char *refuse(const struct mc_problem *p)
{
    return refuse_any(p, FFT);
}

static const char *refuse_winograd(const struct mc_problem *p, int which, int wide)
{
    const struct mc_conv_shape *s = &conv(p)->s;
    for (int i = 1; i < 3; i++) {
        if (s->k[i] != 3 || s->dilation[i] != 1) {
            return "takes filters of 3x3 taps without dilation";
        }
    }
    if (s->pass == CONV_WEIGHTS && s->n * conv_ceil(s->out[1], wide) * conv_ceil(s->out[2], wide) > MANY) {
        return "would lose too many digits in sums over so many tiles";
    }
    return refuse_any(p, which);
}

static const char *refuse_winograd2(const struct mc_problem *p)
{
    return refuse_winograd(p, WINOGRAD2, 2);
}

static const char *refuse_winograd4(const struct mc_problem *p)
{
    return refuse_winograd(p, WINOGRAD4, 4);
}

static struct mc_plan *plan_any(const struct mc_problem *p, int which)
{
    struct fft *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = mc_fft_run;
    if (!mc_fft_choose(d, conv(p), which)) {
        mc_fail(MC_EUNSUPPORTED, "conv: the workspace is too small for one tile");
        mc_free(d);
        return NULL;
    }
    const size_t cap = p->options.workspace, one = mc_fft_lay_out(d, 1);
    int slots = 1;
    while (slots < mc_team_size() && one + (size_t)slots * d->tile_bytes <= cap) {
        slots++;
    }
    d->base.workspace = mc_fft_lay_out(d, slots);
    if (d->stays && !d->slim) {
        d->base.prepared = mc_fft_prepared(d, conv(p)->s.groups);
        d->base.prepare = mc_fft_prepare;
    }
    return &d->base;
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    return plan_any(p, FFT);
}

static struct mc_plan *plan_winograd2(const struct mc_problem *p)
{
    return plan_any(p, WINOGRAD2);
}

static struct mc_plan *plan_winograd4(const struct mc_problem *p)
{
    return plan_any(p, WINOGRAD4);
}

/* Bytes of the filters' spectra.  They are written and read in scattered pieces, even for few images.
 * Prepared ones are read front to back, which the hardware prefetches. */
static double filter_bytes(const struct fft *d, const struct mc_conv_shape *s)
{
    const int64_t numbers = d->numbers * (d->slim ? d->size / 2 * d->taps : d->frequencies);
    return 4.0 * (double)(s->groups * numbers) * (double)d->all[C] * (double)d->all[F];
}

/* How often these bytes move: prepared ones are read; others are written and read, and a store of less than a
 * cache line reads the line first. */
static double filter_moves(const struct fft *d)
{
    const bool lines = d->kernel->lanes * (int64_t)sizeof(float) >= LINE;
    return d->stays && !d->slim ? 0.6 : lines ? 2 : 3;
}

static double estimate_any(const struct mc_problem *p_, int which)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct fft d = { 0 };
    if (!mc_fft_choose(&d, p, which)) {
        return 1e30;
    }
    const double hz = mc_conv_peak(p) / mc_gemm_kernel(MC_FLOAT32)->flops;
    const double seconds = mc_fft_cycles(&d, s) / hz + mc_conv_copy(mc_conv_bytes(p)) +
                           mc_conv_copy(filter_moves(&d) * filter_bytes(&d, s));
    const double steps = (double)s->groups * mc_fft_blocks(&d, M) * mc_fft_blocks(&d, C) *
                         mc_fft_blocks(&d, F);
    return 5e-6 * steps + seconds / mc_conv_threads(seconds, (double)d.frequencies / 4);
}

static double estimate(const struct mc_problem *p)
{
    return estimate_any(p, FFT);
}

static double estimate_winograd2(const struct mc_problem *p)
{
    return estimate_any(p, WINOGRAD2);
}

static double estimate_winograd4(const struct mc_problem *p)
{
    return estimate_any(p, WINOGRAD4);
}

const struct mc_solver mc_conv_fft = { .name = "fft", .refuse = refuse, .estimate = estimate, .plan = plan };
const struct mc_solver mc_conv_winograd = {
    .name = "winograd", .refuse = refuse_winograd2, .estimate = estimate_winograd2, .plan = plan_winograd2,
};
/* Its error is three times that of plain sums, as in the Winograd kernels of libraries. */
const struct mc_solver mc_conv_winograd4 = {
    .name = "winograd4", .refuse = refuse_winograd4, .estimate = estimate_winograd4, .plan = plan_winograd4,
};
