/* register_weights.c: float32 gradients of filters of small images on tensor cores, with the sums of some
 * taps in registers (register_weights.cu). */
#include "heavy/conv/cuda/split_fp16/shared_image.h"

/* TILE: of a block; WARPS, MANY_WARPS: with the sums of one group of taps, or of several; MOST_TAPS: whose
 * sums fit in registers, beside 64 positions of y, or 32 */
enum { TILE = SHARED_IMAGE_TILE, WARPS = 8, MANY_WARPS = 12, MOST_TAPS = 13 };

static void lay_out(struct mc_shared_image *d, const struct mc_conv_problem *p)
{
    mc_shared_image_shape(d, p, false, p->s.flip);
    struct mc_shared_image_args *a = &d->args;
    const int taps = a->k[0] * a->k[1], outs = a->out[0] * a->out[1];
    mc_shared_image_chunks(d, WARPS * 8 * TILE / d->fb, 8);
    const int each = d->fb / TILE * d->cc / 8, groups = MC_MIN(MC_MAX(MANY_WARPS / each, 1), taps),
              sets = (int)conv_ceil(taps, groups * MOST_TAPS);
    a->per_set = (int)conv_ceil(taps, groups * sets);
    d->edges = mc_shared_image_edges(a);
    d->ks = outs > 32 && groups == 1 ? 4 : 2;
    d->warps = groups > 1 ? MANY_WARPS : WARPS;
    d->work = 0;
    const int f_blocks = (a->results + d->fb - 1) / d->fb, jobs = sets * a->chunks * f_blocks,
              lines = mc_shared_image_up(outs, d->ks * 16);
    const int64_t weights = (int64_t)taps * a->results * a->channels;
    const unsigned threads = (unsigned)(32 * each * groups);
    const size_t positions = (size_t)(a->in[0] * a->in[1]),
                 x = 2 * positions * (size_t)SHARED_IMAGE_PITCH(d->cc) * sizeof(uint16_t),
                 y = (size_t)(2 * d->fb * (lines + 8)) * sizeof(uint16_t);
    const size_t raw = (size_t)mc_shared_image_up((int64_t)d->cc * (int64_t)positions, 4) +
                       (size_t)mc_shared_image_up((int64_t)d->fb * outs, 4);
    a->blocks = MC_MIN(a->n,
                       MC_MAX(mc_cuda_multiprocessors() * (int)mc_shared_image_blocks(d, threads) / jobs, 1));
    d->kernel[0] = (struct mc_shared_image_kernel){
        "weights",
        { { (unsigned)a->blocks, (unsigned)jobs, 1 },
          { threads, 1, 1 },
          2 * (raw * sizeof(float) + x + y) + (size_t)SHARED_IMAGE_PITCH(d->cc) * sizeof(uint16_t) +
              (size_t)lines * 16 },
        NULL
    };
    d->kernel[1] = (struct mc_shared_image_kernel){
        "add", { { (unsigned)((weights + 31) / 32), 1, 1 }, { 256, 1, 1 }, 0 }, NULL
    };
    d->base.workspace = (size_t)(a->blocks * weights) * sizeof(float);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    return mc_shared_image_plan(lay_out, conv(p_), &mc_conv_register_weights_text);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const char *why = p->s.pass != CONV_WEIGHTS ? "computes gradients of filters only"
                                                : mc_shared_image_refuse(p);
    return why ? why : mc_shared_image_fit(lay_out, p);
}

/* The partial sums are added at the end. */
static double estimate(const struct mc_problem *p_)
{
    struct mc_shared_image d;
    lay_out(&d, conv(p_));
    return 10e-6 + mc_shared_image_seconds(&d, conv(p_),
                                           mc_shared_image_up(d.args.out[0] * d.args.out[1], d.ks * 16),
                                           mc_shared_image_up(d.args.results, d.fb), 0.4);
}

const struct mc_solver mc_conv_cuda_taps = { .name = "taps", .refuse = refuse, .estimate = estimate,
                                             .plan = plan };
