/* pooled_problems.h: pooled convolutions of every kind, to test every solver on every device. */
#ifndef POOLED_PROBLEMS_H
#define POOLED_PROBLEMS_H

#include "pool_problems.h"
#include "heavy/conv_pool/conv_pool.h"

/* Sizes of one axis of the convolution and of the windows over it.  False: something would be empty. */
static inline bool pooled_axis(struct mc_pooled_problem *p, int a, int64_t most)
{
    struct mc_conv_shape *s = &p->conv.s;
    s->in[a] = 1 + below(most);
    s->k[a] = 1 + below(5);
    s->stride[a] = 1 + (below(3) == 0);
    s->pad[a] = below(2) ? 0 : below(s->k[a]);
    s->out[a] = (s->in[a] + 2 * s->pad[a] - s->k[a]) / s->stride[a] + 1;
    p->w[a] = 1 + below(3);
    p->stride[a] = below(2) ? p->w[a] : 1 + below(3);
    p->pad[a] = below(3) ? 0 : below(p->w[a]);
    p->out[a] = below(2) ? (s->out[a] + p->pad[a] - p->w[a]) / p->stride[a] + 1
                         : (s->out[a] + p->pad[a] - 1) / p->stride[a] + 1;
    return s->in[a] + 2 * s->pad[a] >= s->k[a] && s->out[a] > 0 && p->out[a] > 0 &&
           s->out[a] + p->pad[a] >= p->w[a];
}

static inline bool pooled_any(struct mc_pooled_problem *p, enum mc_conv_pass pass, int64_t images,
                              int64_t channels, int64_t most)
{
    static const int orders[][5] = { { 0, 1, 2, 3, 4 }, { 0, 2, 3, 4, 1 }, { 1, 2, 3, 4, 0 } };
    *p = (struct mc_pooled_problem){ .conv = { .dtype = MC_FLOAT32, .alpha = 1,
                                               .s = { .pass = pass, .nd = 2, .n = 1 + below(images), .c = 1 + below(channels), .f = 1 + below(below(4) ? 9 : 70),
                                                      .groups = 1, .in = { 1 }, .out = { 1 }, .k = { 1 }, .stride = { 1 }, .dilation = { 1, 1, 1 } } },
                                     .w = { 1 }, .stride = { 1 }, .out = { 1 }, .marks = MC_UINT8 };
    struct mc_conv_shape *s = &p->conv.s;
    if (!pooled_axis(p, 1, most) || !pooled_axis(p, 2, most)) {
        return false;
    }
    const int64_t x[5] = { s->n, s->c, 1, s->in[1], s->in[2] }, w[5] = { s->f, s->c, 1, s->k[1], s->k[2] },
                  y[5] = { s->n, s->f, 1, s->out[1], s->out[2] };
    const int64_t g[5] = { s->n, s->f, 1, p->out[1], p->out[2] };
    const int64_t gap = below(4) ? 0 : 8;
    s->flip = below(2);
    pool_lay_out(5, orders[below(3)], x, below(2), p->conv.at.x);
    pool_lay_out(5, orders[below(3)], w, below(2), p->conv.at.w);
    pool_lay_out(5, orders[0], y, true, p->conv.at.y);
    pool_lay_out(5, orders[0], g, true, p->g);
    pool_lay_out(5, orders[0], g, true, p->mark);
    p->g[0] += gap;
    p->mark[0] += gap;
    return true;
}

#endif
