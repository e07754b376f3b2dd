/* shared_image_forward.c: float32 convolutions of small images on tensor cores, with whole images in
 * shared memory (shared_image_forward.cu, shared_image_weights.cu): the inner layers of nets for small
 * pictures, whose windows overlap many times.
 *
 *   forward   y = windows of x times filters
 *   inputs    x = windows of y times filters with reversed taps, stride 1
 *   weights   w = y' times what each tap reads of x */
#include "heavy/conv/cuda/split_fp16/shared_image.h"

enum { TILE = SHARED_IMAGE_TILE, WARPS = 8, UNITS = SHARED_IMAGE_UNITS, STEPS = SHARED_IMAGE_STEPS };

/* ---- a plan ---- */

/* The halves of an image's chunk of channels, and a buffer that holds images before they are split, then
 * filters. */
static size_t gather_bytes(const struct mc_shared_image *d)
{
    const struct mc_shared_image_args *a = &d->args;
    const size_t positions = (size_t)a->images * (size_t)(a->in[0] * a->in[1]), cc = (size_t)d->cc,
                 ring = (size_t)(SHARED_IMAGE_SLOTS * STEPS * a->right * d->nt) * 32 * 16;
    return (positions + 1) * SHARED_IMAGE_PITCH(cc) * 2 * sizeof(uint16_t) + (size_t)a->steps * 32 + 256 +
           MC_MAX(ring, positions * cc * sizeof(float));
}

static void plan_gather(struct mc_shared_image *d)
{
    struct mc_shared_image_args *a = &d->args;
    mc_shared_image_chunks(d, d->cc, 8);
    const int outs = a->out[0] * a->out[1], columns = mc_shared_image_columns(d),
              processors = mc_cuda_multiprocessors();
    a->right = MC_MIN(columns,
                      MC_MAX(SHARED_IMAGE_MOST_WARPS / MC_MAX(mc_shared_image_up(outs, TILE) / TILE, 1), 1));
    a->images = MC_MAX(
        MC_MIN(MC_MIN(WARPS * TILE / (outs * a->right), (a->n + processors - 1) / processors), a->n), 1);
    a->down = mc_shared_image_up(a->images * outs, TILE) / TILE;
    const int across = (columns + a->right - 1) / a->right;
    mc_shared_image_filters(d, mc_shared_image_up(conv_ceil(a->k[0] * a->k[1] * d->cc, 16), STEPS), across);
    d->kernel[1] = (struct mc_shared_image_kernel){ "gather",
                                                    { { (unsigned)((a->n + a->images - 1) / a->images),
                                                        (unsigned)across, 1 },
                                                      { (unsigned)(32 * a->down * a->right), 1, 1 },
                                                      gather_bytes(d) },
                                                    NULL };
}

static void plan_weights(struct mc_shared_image *d)
{
    struct mc_shared_image_args *a = &d->args;
    const int taps = a->k[0] * a->k[1], c16 = d->cc / 16, down = d->fb / TILE,
              most = MC_MAX(10 / down * UNITS / c16, 1), f_blocks = (a->results + d->fb - 1) / d->fb;
    const int sets = (taps + most - 1) / most, processors = mc_cuda_multiprocessors();
    a->per_set = (taps + sets - 1) / sets;
    const int jobs = (taps + a->per_set - 1) / a->per_set * a->chunks * f_blocks,
              lines = mc_shared_image_up((int64_t)a->out[0] * a->out[1], 16);
    const int64_t weights = (int64_t)taps * a->results * a->channels;
    const size_t x = (size_t)(2 * a->in[0] * a->in[1] * SHARED_IMAGE_PITCH(d->cc)) * sizeof(uint16_t),
                 y = (size_t)(2 * d->fb * (lines + 8)) * sizeof(uint16_t);
    a->blocks = MC_MIN(a->n, MC_MAX(processors / jobs, 1));
    d->kernel[0] = (struct mc_shared_image_kernel){
        "split",
        { { (unsigned)a->n, (unsigned)(a->chunks + f_blocks), 1 }, { 256, 1, 1 }, MC_MAX(x, y) },
        NULL
    };
    d->kernel[1] = (struct mc_shared_image_kernel){
        "weights",
        { { (unsigned)a->blocks, (unsigned)jobs, 1 },
          { (unsigned)(32 * down * ((a->per_set * c16 + UNITS - 1) / UNITS)), 1, 1 },
          2 * (x + y) + (size_t)SHARED_IMAGE_PITCH(d->cc) * sizeof(uint16_t) + (size_t)lines * 16 },
        NULL
    };
    d->kernel[2] = (struct mc_shared_image_kernel){
        "add", { { (unsigned)((weights + 31) / 32), 1, 1 }, { 256, 1, 1 }, 0 }, NULL
    };
    d->split_at = mc_work_rounded((size_t)(a->blocks * weights) * sizeof(float));
    d->scale_at = d->split_at + (size_t)a->n * ((size_t)a->chunks * x + (size_t)f_blocks * y);
    d->base.workspace = d->scale_at + (size_t)(a->n * (a->chunks + f_blocks)) * sizeof(float);
}

static void lay_out(struct mc_shared_image *d, const struct mc_conv_problem *p)
{
    const bool back = p->s.pass == CONV_INPUTS;
    mc_shared_image_shape(d, p, back, p->s.flip != back);
    for (int i = 0; back && i < 2; i++) {
        d->args.pad[i] = (d->args.k[i] - 1) * d->args.dilation[i] - d->args.pad[i];
    }
    d->edges = mc_shared_image_edges(&d->args);
    d->warps = SHARED_IMAGE_MOST_WARPS;
    if (p->s.pass == CONV_WEIGHTS) {
        plan_weights(d);
    } else {
        plan_gather(d);
    }
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return mc_shared_image_plan(lay_out, p,
                                p->s.pass == CONV_WEIGHTS ? &mc_conv_shared_image_weights_text
                                                          : &mc_conv_shared_image_text);
}

/* ---- limits and estimate ---- */

static bool inside(const struct mc_conv_shape *s)
{
    return (s->k[1] - 1) * s->dilation[1] >= s->pad[1] && (s->k[2] - 1) * s->dilation[2] >= s->pad[2];
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const char *why = mc_shared_image_refuse(p);
    const bool far = p->s.pass == CONV_INPUTS &&
                     (p->s.stride[1] != 1 || p->s.stride[2] != 1 || !inside(&p->s));
    return why   ? why
           : far ? "computes gradients of inputs for stride 1 and borders smaller than the filter"
                 : mc_shared_image_fit(lay_out, p);
}

/* Products with zeros outside of the image count too.  The gradient of filters splits images first and
 * adds the partial sums at the end. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_shared_image d;
    lay_out(&d, p);
    const bool weights = p->s.pass == CONV_WEIGHTS;
    return (weights ? 25e-6 : 10e-6) +
           mc_shared_image_seconds(&d, p, mc_shared_image_up(d.args.out[0] * d.args.out[1], 16),
                                   weights ? mc_shared_image_up(d.args.results, TILE) : d.args.tiles * 8,
                                   0.3);
}

const struct mc_solver mc_conv_cuda_shared_image = { .name = "whole", .refuse = refuse, .estimate = estimate,
                                                     .plan = plan };
