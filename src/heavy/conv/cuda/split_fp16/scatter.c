/* scatter.c: float32 gradients of the inputs of small images on tensor cores: each position of y times all
 * taps, added to planes of x in shared memory (scatter.cu).  Any stride. */
#include "heavy/conv/cuda/split_fp16/shared_image.h"

enum { TILE = SHARED_IMAGE_TILE, WARPS = 4 };

static size_t bytes(const struct mc_shared_image *d)
{
    const struct mc_shared_image_args *a = &d->args;
    const size_t images = (size_t)a->images, positions = (size_t)(a->in[0] * a->in[1]),
                 pitch = ((size_t)(a->out[0] * a->out[1]) + 12) / 16 * 16 + 4, cc = (size_t)d->cc;
    const size_t ring = (size_t)(SHARED_IMAGE_SLOTS * d->cc / 16 * a->right * d->nt) * 32 * 16;
    return images * (size_t)(a->right * d->nt * 8) * pitch * sizeof(float) +
           MC_MAX(ring, images * positions * cc * sizeof(float)) +
           images * positions * SHARED_IMAGE_PITCH(cc) * 2 * sizeof(uint16_t) + 128;
}

static void lay_out(struct mc_shared_image *d, const struct mc_conv_problem *p)
{
    mc_shared_image_shape(d, p, true, p->s.flip);
    struct mc_shared_image_args *a = &d->args;
    const int positions = a->in[0] * a->in[1], columns = mc_shared_image_columns(d),
              processors = mc_cuda_multiprocessors();
    a->right = MC_MIN(columns, MC_MAX(WARPS / (mc_shared_image_up(positions, TILE) / TILE), 1));
    a->images = MC_MAX(
        MC_MIN(MC_MIN(WARPS * TILE / (positions * a->right), (a->n + processors - 1) / processors), a->n), 1);
    a->down = mc_shared_image_up(a->images * positions, TILE) / TILE;
    const int across = (columns + a->right - 1) / a->right;
    d->warps = 2 * WARPS;
    mc_shared_image_filters(d, a->k[0] * a->k[1] * (d->cc / 16), across);
    d->kernel[1] = (struct mc_shared_image_kernel){ "spread",
                                                    { { (unsigned)((a->n + a->images - 1) / a->images),
                                                        (unsigned)across, 1 },
                                                      { (unsigned)(32 * a->down * a->right), 1, 1 },
                                                      bytes(d) },
                                                    NULL };
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    return mc_shared_image_plan(lay_out, conv(p_), &mc_conv_col2im_text);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const char *why = p->s.pass != CONV_INPUTS ? "computes gradients of inputs only"
                                               : mc_shared_image_refuse(p);
    return why ? why : mc_shared_image_fit(lay_out, p);
}

static double estimate(const struct mc_problem *p_)
{
    struct mc_shared_image d;
    lay_out(&d, conv(p_));
    return 10e-6 + mc_shared_image_seconds(&d, conv(p_),
                                           mc_shared_image_up(d.args.in[0] * d.args.in[1], TILE),
                                           d.args.tiles * 8, 0.3);
}

const struct mc_solver mc_conv_cuda_col2im = { .name = "spread", .refuse = refuse, .estimate = estimate,
                                               .plan = plan };
