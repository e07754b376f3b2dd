/* pointwise.c: float32 convolutions on a GPU as products of matrices that are the images themselves: of
 * pointwise filters, and of filters with taps along one axis whose windows are inside the image.  Blocks
 * split the operands that they load (heavy/gemm/cuda/split_inline.cu); nothing is copied, packed or gathered
 * first.
 *
 *   forward   y[image] = w x[image]
 *   inputs    x[image] = w' y[image], pointwise only
 *   weights   w = y[image] x[image]', summed over images and positions
 *
 * Rows of x are channels; with taps they are pairs of a channel and a tap, in the order that filters have in
 * memory.  The row of a tap is the channel's, shifted. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/gemm/cuda/split_inline.h"

struct one {
    struct mc_plan base;
    struct mc_split_inline c;
    int64_t shift;              /* from the first element of x to that which the first tap of w reads */
};

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct one *d = (const struct one *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    const enum mc_conv_pass pass = p->s.pass;
    const void *c0 = p->has_bias ? operand[CONV_BIAS] : p->beta != 0 ? operand[CONV_C0] : NULL;
    (void)threads;
    const float *from = operand[pass == CONV_INPUTS ? CONV_Y : CONV_X];
    return mc_split_inline_run(&d->c, operand[pass == CONV_WEIGHTS ? CONV_Y : CONV_W], from + d->shift, c0,
                               mc_conv_cuda_result(p, operand), workspace);
}

/* ---- a plan ---- */

/* The stride of positions if they are evenly spaced, else 0. */
static int64_t step(const int64_t size[3], const int64_t stride[3])
{
    int64_t first = 0, next = 0;
    for (int i = 2; i >= 0; i--) {
        if (size[i] == 1) {
            continue;
        }
        if (first && stride[i] != next) {
            return 0;
        }
        first = first ? first : stride[i];
        next = stride[i] * size[i];
    }
    return first ? first : 1;
}

static bool strided(const struct mc_conv_problem *p)
{
    return p->s.stride[0] != 1 || p->s.stride[1] != 1 || p->s.stride[2] != 1;
}

/* ---- taps ---- */

struct taps {
    int64_t count, in_x, in_w;  /* in_x, in_w: strides */
    int64_t shift;              /* from the first element of x to that which the first tap of w reads */
};

static struct taps taps(const struct mc_conv_problem *p)
{
    int axis = 2;
    for (int i = 0; i < 2; i++) {
        axis = p->s.k[i] > 1 ? i : axis;
    }
    const int64_t k = p->s.k[axis], next = p->s.dilation[axis] * p->at.x[2 + axis];
    return (struct taps){ k, p->s.flip ? -next : next, p->at.w[2 + axis], p->s.flip ? (k - 1) * next : 0 };
}

/* Are the taps of a channel neighbours in w?  Else the channels of a tap are. */
static bool taps_inside(const struct mc_conv_problem *p, const struct taps *t)
{
    return t->count > 1 && p->at.w[1] == t->count * t->in_w;
}

/* Channels, or pairs of channels and taps, in x and in w. */
static struct mc_split_inline_positions rows_of_x(const struct mc_conv_problem *p)
{
    const struct taps t = taps(p);
    return t.count == 1         ? mc_split_inline_line(p->at.x[1])
           : taps_inside(p, &t) ? (struct mc_split_inline_positions){ p->at.x[1], t.in_x, (int)t.count }
                                : (struct mc_split_inline_positions){ t.in_x, p->at.x[1], (int)p->s.c };
}
static int64_t rows_of_w(const struct mc_conv_problem *p)
{
    const struct taps t = taps(p);
    return taps_inside(p, &t) ? t.in_w : p->at.w[1];
}

/* The positions of x that filters read: those of the first tap. */
static struct mc_split_inline_positions met(const struct mc_conv_problem *p)
{
    const bool one_line = p->s.out[0] * p->s.out[1] == 1;
    return !strided(p) && conv_volume(p->s.k) == 1 ? mc_split_inline_line(step(p->s.in, p->at.x + 2))
           : one_line                              ? mc_split_inline_line(p->at.x[4] * p->s.stride[2])
                      : (struct mc_split_inline_positions){ p->at.x[3] * p->s.stride[1],
                                                            p->at.x[4] * p->s.stride[2], (int)p->s.out[2] };
}

/* ---- sizes ---- */

static void sizes(const struct mc_conv_problem *p, struct mc_split_inline_args *a)
{
    const int64_t y = step(p->s.out, p->at.y + 2), positions = conv_volume(p->s.out),
                  rows = p->s.c * conv_volume(p->s.k);
    const bool forward = p->s.pass == CONV_FORWARD;
    *a = (struct mc_split_inline_args){ .batch = 1,
                                        .outer = 1,
                                        .alpha = (float)p->alpha,
                                        .beta = p->has_bias ? 1 : (float)p->beta,
                                        .around = { 1, 1 } };
    if (p->s.pass == CONV_WEIGHTS) {
        a->m = (int)p->s.f;
        a->n = (int)rows;
        a->k = (int)positions;
        a->outer = (int)p->s.n;
        memcpy(a->as, (int64_t[]){ 0, p->at.y[1], y }, sizeof a->as);
        a->b_terms = met(p);
        a->b_cols = rows_of_x(p);
        a->cs[1] = p->at.w[0];
        a->c_cols = mc_split_inline_line(rows_of_w(p));
        memcpy(a->outer_step, (int64_t[]){ p->at.y[0], p->at.x[0] }, sizeof a->outer_step);
    } else {
        const int64_t *from = forward ? p->at.x : p->at.y, *to = forward ? p->at.y : p->at.x;
        a->m = (int)(forward ? p->s.f : p->s.c);
        a->n = (int)positions;
        a->k = (int)(forward ? rows : p->s.f);
        a->batch = (int)p->s.n;
        memcpy(a->as, (int64_t[]){ 0, p->at.w[!forward], forward ? rows_of_w(p) : p->at.w[0] }, sizeof a->as);
        a->bs = from[0];
        a->b_terms = forward ? rows_of_x(p) : mc_split_inline_line(from[1]);
        a->b_cols = forward ? met(p) : mc_split_inline_line(y);
        memcpy(a->cs, to, sizeof a->cs);
        a->c_cols = forward ? mc_split_inline_line(y) : met(p);
    }
    for (int i = 0; i < 2 && p->s.pass == CONV_INPUTS && strided(p); i++) {
        a->around[i] = (int)p->s.stride[i + 1];
        a->size[i] = (int)p->s.in[i + 1];
    }
    memcpy(a->c0s, p->has_bias ? (int64_t[]){ 0, 1, 0 } : (int64_t[]){ a->cs[0], a->cs[1], a->c_cols.right },
           sizeof a->c0s);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct one *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->shift = taps(p).shift;
    sizes(p, &d->c.args);
    if (!mc_split_inline_make(&d->c, p->act, &d->base.workspace)) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

/* ---- limits and estimate ---- */

static bool small(const struct mc_conv_problem *p)
{
    const int64_t u = conv_volume(p->s.out), rows = p->s.c * conv_volume(p->s.k);
    return p->s.pass == CONV_WEIGHTS ? mc_split_inline_small(p->s.f, rows, u, 1, p->s.n)
                                     : mc_split_inline_small(p->s.f, u, rows, p->s.n, 1) &&
                                           mc_split_inline_small(rows, u, p->s.f, p->s.n, 1);
}

/* Are windows inside the image, with taps along one axis at most?  Pointwise: does also, up to strides, each
 * position of x belong to one of y? */
static bool inside(const struct mc_conv_problem *p)
{
    const bool pointwise = conv_volume(p->s.k) == 1;
    bool all = p->s.stride[0] == 1 && (pointwise || p->s.in[0] == 1);
    int axes = 0;
    for (int i = 0; i < 3; i++) {
        axes += p->s.k[i] > 1;
        all = all && p->s.pad[i] == 0 &&
              (p->s.out[i] - 1) * p->s.stride[i] + (p->s.k[i] - 1) * p->s.dilation[i] < p->s.in[i] &&
              (!pointwise || p->s.in[i] <= p->s.out[i] * p->s.stride[i]);
    }
    return all && axes <= 1;
}

/* Are pairs of channels and taps evenly spaced in filters? */
static bool even(const struct mc_conv_problem *p)
{
    const struct taps t = taps(p);
    return t.count == 1 || taps_inside(p, &t) || t.in_w == p->s.c * p->at.w[1];
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype != MC_FLOAT32 ? "takes float32 only"
           : mc_conv_hollow(p)    ? mc_conv_hollow(p)
           : p->wide              ? "sums in float32, and conv.precision asks for float64"
           : !inside(p)           ? "takes filters along one axis, without borders"
           : p->s.pass == CONV_INPUTS && conv_volume(p->s.k) > 1
               ? "takes pointwise filters in gradients of inputs"
           : !even(p)                         ? "requires contiguous channels and taps of filters"
           : p->s.unshared || p->s.groups > 1 ? "takes one group, and one filter for all positions"
           : p->has_bias && p->beta != 0      ? "adds a bias or c0, not both"
           : strided(p) && p->s.pass == CONV_INPUTS && p->beta != 0
               ? "takes no c0 in strided gradients of inputs"
           : strided(p) && p->s.in[0] != 1 ? "takes strides with up to two spatial axes"
           : (!strided(p) && conv_volume(p->s.k) == 1 && !step(p->s.in, p->at.x + 2)) ||
                   !step(p->s.out, p->at.y + 2)
               ? "requires evenly spaced positions of images"
           : !small(p) ? "does not take sizes this large"
                       : mc_cuda_needs_sm80();
}

static double estimate(const struct mc_problem *p_)
{
    struct mc_split_inline_args a;
    sizes(conv(p_), &a);
    return MC_MAX(mc_split_inline_seconds(a.m, a.n, a.k, a.batch, a.outer),
                  mc_conv_cuda_seconds(conv(p_), 3)); /* of float32's peak */
}

const struct mc_solver mc_conv_cuda_split_pointwise = { .name = "cut", .refuse = refuse, .estimate = estimate,
                                                        .plan = plan };
