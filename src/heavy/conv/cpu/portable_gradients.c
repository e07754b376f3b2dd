/* portable_gradients.c: gradients of convolutions as portable sums, where others than those of portable.c are
 * faster.
 *
 *   inputs    the product of w and y for each tap; then sums of them (col2im).  Where x is larger than y
 *   weights   vectors of filters: sums over the positions of an image for each channel and tap.  With many of
 *             these
 *
 * Invariant: the bits depend on the problem alone, and are those of an exported file. */
#include "heavy/conv/cpu/portable.h"

/* ---- inputs ---- */

static const char *col2im_refuses(const struct mc_problem *p_)
{
    enum { MOST = 131072 }; /* elements of the product for each tap, of one image */
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    const int64_t *ws = p->at.w, *n = s->k, taps = conv_volume(n), positions = conv_volume(s->out);
    const char *no = mc_conv_portable_refuses(p_);
    return no                       ? no
           : s->pass != CONV_INPUTS ? "computes gradients of inputs only"
           : ws[4] != 1 || (ws[3] != n[2] && n[1] > 1) || (ws[2] != n[1] * n[2] && n[0] > 1) ||
                   (ws[1] != taps && s->c > s->groups)
               ? "takes filters whose channels and taps are contiguous"
           : p->at.x[4] != 1 && s->in[2] > 1            ? "takes contiguous rows of x"
           : s->stride[2] != 1                          ? "takes no strides along rows"
           : s->c / s->groups * taps * positions > MOST ? "takes small images"
                                                        : NULL;
}

/* It comes first where x has many more positions than y, and sums over few filters are no loss. */
static double col2im_estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    const int64_t c = s->c / s->groups, f = s->f / s->groups;
    const bool first = 4 * conv_volume(s->in) >= 5 * conv_volume(s->out) * s->stride[0] * s->stride[1] &&
                       f >= 8 && c * conv_volume(s->k) >= 8;
    return mc_conv_portable_estimate(p_, first ? 1 : 3);
}

static bool by_col2im(struct mc_conv_making *k)
{
    const struct mc_conv_problem *p = k->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t *ws = p->at.w, *ys = p->at.y, *xs = p->at.x;
    const int64_t taps = conv_volume(s->k), positions = conv_volume(s->out);
    struct mc_portable_at y = conv_operand(CONV_Y, ys[0], k->f * ys[1]);
    const struct mc_conv_planes dense = { y, { s->out[0], s->out[1], s->out[2] }, 0 };
    int64_t yf = ys[1];
    if (!mc_conv_portable_has_pitch(&dense, ys + 2, s->out)) {
        const int64_t ts[4] = { positions, conv_pitch(&dense, 0), conv_pitch(&dense, 1), 1 };
        const struct mc_portable_at from = y;
        y = mc_conv_portable_take(k, k->f * positions);
        yf = positions;
        if (!mc_conv_portable_copy(k, y, ts, from, ys + 1, k->f, s->out)) {
            return false;
        }
    }
    const struct mc_portable_at each = mc_conv_portable_take(k, k->c * taps * positions);
    struct mc_portable_call *call = mc_portable_add(k->to, PORTABLE_COLUMNS, 2);
    if (!call) {
        return false;
    }
    const int64_t g[12] = { k->c * taps, k->f, 1, positions, 1, ws[0], yf, positions, 0, 0, 0, 0 };
    memcpy(call->g, g, sizeof g);
    call->from = y;
    call->with = conv_operand(CONV_W, 0, k->f * ws[0]);
    call->to = each;
    call = mc_portable_add(k->to, PORTABLE_COL2IM, (int)taps);
    if (!call) {
        return false;
    }
    mc_conv_portable_taps(p, call->offset);
    const int64_t h[21] = { k->c,          s->k[0],     s->k[1],        s->k[2],        s->out[0],
                            s->out[1],     s->out[2],   s->in[0],       s->in[1],       s->in[2],
                            s->stride[0],  s->stride[1], s->pad[0],     s->pad[1],      s->pad[2],
                            s->dilation[0], s->dilation[1], s->dilation[2], xs[1],      xs[2],
                            xs[3] };
    memcpy(call->g, h, sizeof h);
    call->from = each;
    call->to = conv_operand(CONV_X, xs[0], k->c * xs[1]);
    return true;
}

static struct mc_plan *col2im_plan(const struct mc_problem *p)
{
    return mc_conv_portable_plan(p, by_col2im);
}

const struct mc_solver mc_conv_portable_col2im = {
    .name = "portable_col2im",
    .portable = true,
    .refuse = col2im_refuses,
    .estimate = col2im_estimate,
    .plan = col2im_plan,
};

/* ---- weights ---- */

static const char *outer_refuses(const struct mc_problem *p_)
{
    const struct mc_conv_shape *s = &conv(p_)->s;
    const char *no = mc_conv_portable_refuses(p_);
    return no                               ? no
           : s->pass != CONV_WEIGHTS        ? "computes gradients of weights only"
           : s->out[0] != 1 || s->k[0] != 1 ? "takes two spatial axes at most"
                                            : NULL;
}

/* It comes first if there are so many filters, and sums for each, that vectors of filters are worth a copy of
 * y. */
static double outer_estimate(const struct mc_problem *p)
{
    const struct mc_conv_shape *s = &conv(p)->s;
    const bool first = s->f / s->groups >= 8 && s->c / s->groups * conv_volume(s->k) >= 64 &&
                       conv_volume(s->out) > 1;
    return mc_conv_portable_estimate(p, first ? 1 : 3);
}

/* y is copied for each image: position by position, its filters adjoin.  The sums of a chain of images are in
 * the workspace, and are then added to those before. */
static bool by_outer(struct mc_conv_making *k)
{
    const struct mc_conv_problem *p = k->p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t taps = conv_volume(s->k), *ws = p->at.w, *ys = p->at.y, positions = conv_volume(s->out);
    k->to->chain = MC_MAX(MC_MIN(s->n, (CONV_CHAIN + positions - 1) / positions), 1);
    struct mc_conv_planes q;
    int64_t *offset = mc_calloc((size_t)(2 * taps), sizeof *offset, "plans");
    bool ok = offset && mc_conv_portable_planes(k, &q, offset);
    if (ok) {
        struct mc_portable_at sum = { PORTABLE_WORKSPACE, k->to->workspace, 0, k->c * taps * k->f, 0 };
        k->to->workspace += k->to->groups * sum.group;
        struct mc_portable_at y = mc_conv_portable_take(k, k->f * positions);
        const int64_t filters[3] = { s->out[1], s->out[2], k->f };
        ok = mc_conv_portable_copy(k, y, (const int64_t[4]){ 0, s->out[2] * k->f, k->f, 1 },
                                   conv_operand(CONV_Y, ys[0], k->f * ys[1]),
                                   (const int64_t[4]){ 0, ys[3], ys[4], ys[1] }, 1, filters);
        struct mc_portable_call *c = ok ? mc_portable_add(k->to, PORTABLE_OUTER, (int)taps) : NULL;
        if (c) {
            const int64_t g[7] = { k->f, k->c, taps, s->out[1], s->out[2], q.channel, conv_pitch(&q, 1) };
            memcpy(c->g, g, sizeof g);
            memcpy(c->offset, offset, (size_t)taps * sizeof *offset);
            c->from = q.at;
            c->with = y;
            c->to = sum;
        }
        mc_conv_portable_taps(p, offset);
        c = c ? mc_portable_add(k->to, PORTABLE_TOTAL, 0) : NULL;
        ok = c != NULL;
        if (ok) {
            const int64_t n1 = s->k[1], n2 = s->k[2];
            const int64_t g[12] = { k->c,  n1,       n2,        k->f, ws[1], n1 > 1 ? offset[n2] - offset[0] : 0,
                                    n2 > 1 ? offset[1] - offset[0] : 0, ws[0], taps * k->f, n2 * k->f, k->f, 1 };
            memcpy(c->g, g, sizeof g);
            c->from = sum;
            c->to = conv_operand(CONV_W, 0, k->f * ws[0]);
            c->to.first = offset[0];
        }
    }
    mc_free(offset);
    return ok;
}

static struct mc_plan *outer_plan(const struct mc_problem *p)
{
    return mc_conv_portable_plan(p, by_outer);
}

const struct mc_solver mc_conv_portable_outer = {
    .name = "portable_outer",
    .portable = true,
    .refuse = outer_refuses,
    .estimate = outer_estimate,
    .plan = outer_plan,
};
