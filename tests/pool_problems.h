/* pool_problems.h: poolings of every kind, to test every solver on every device. */
#ifndef POOL_PROBLEMS_H
#define POOL_PROBLEMS_H

#include "check.h"
#include "heavy/pool/pool.h"
#include "plan_options.h"

/* cells of windows in the everyday tier: 14 of 886 problems have more, and would take nine tenths of the
 * time */
enum { MOST_WORK = 1 << 22 };

static inline int64_t below(int64_t n)
{
    return (int64_t)(test_random() % (uint64_t)n);
}

/* Dense strides for `rank` axes laid out in `order`, the last of which is the fastest; some axes backwards,
 * some with gaps. */
static inline void pool_lay_out(int rank, const int *order, const int64_t *dims, bool plain, int64_t *strides)
{
    int64_t next = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const int axis = order[i];
        strides[axis] = next;
        next *= dims[axis] + (plain || i == rank - 1 || below(4) ? 0 : 1);
        if (!plain && i < rank - 1 && below(5) == 0) {
            strides[axis] = -strides[axis];
        }
    }
}

/* The node's rule for sizes, from op/pool_shape.c, is not asked here: any result that has no empty window
 * will do. */
static inline bool pool_slot(struct mc_pool_shape *s, int i, int axis, int64_t in, int64_t w, int64_t st,
                             int64_t pad)
{
    s->axis[i] = axis;
    s->in[i] = in;
    s->w[i] = w;
    s->stride[i] = st;
    s->pad[i] = pad;
    s->out[i] = MC_MAX(0, (in + pad - 1) / st + 1);                         /* as many as begin inside */
    s->out[i] = s->out[i] > 1 && below(2) ? (in + pad - w) / st + 1 : s->out[i]; /* or as end inside */
    return in > 0 && s->out[i] > 0 && pad < w && -pad < in;
}

/* A problem of rank 4 with layout bc01, b01c or c01b, in any of the passes.  False: there is none like
 * this. */
static inline bool pool_any(struct mc_pool_problem *p, mc_dtype d, int largest)
{
    static const int orders[3][4] = { { 0, 1, 2, 3 }, { 0, 2, 3, 1 }, { 1, 2, 3, 0 } };
    const int *order = orders[below(3)];
    struct mc_pool_shape *s = &p->s;
    *p = (struct mc_pool_problem){ .base = { &mc_pool_family, mc_plan_options_of(NULL) },
                                   .dtype = d,
                                   .marks = below(3) > 0 };
    *s = (struct mc_pool_shape){ .rank = 4,
                                 .nd = 1 + (int)below(3),
                                 .axis = { -1, -1, -1 },
                                 .in = { 1, 1, 1 },
                                 .out = { 1, 1, 1 },
                                 .w = { 1, 1, 1 },
                                 .stride = { 1, 1, 1 },
                                 .whole = below(2) };
    s->mode = (enum mc_pool_mode)below(4);
    s->key = s->mode == POOL_MAX ? (below(4) ? POOL_KEY_MARKS : POOL_KEY_X) : POOL_KEY_NONE;
    const bool bits = s->key == POOL_KEY_MARKS && below(3) == 0;
    s->pass = s->mode == POOL_MAX ? (enum mc_pool_pass)below(3) : (enum mc_pool_pass)below(2);
    for (int i = 0; i < 4; i++) {
        s->dims[i] = i < 2 && below(3) == 0 ? 1 + below(90) : 1 + below(i < 2 ? 5 : largest);
    }
    int64_t cells = 1;
    for (int i = 3 - s->nd; i < 3; i++) {
        const int64_t w = 1 + below(below(8) ? 4 : 20), st = 1 + below(4),
                      pad = below(3) ? 0 : below(2 * w) - w;
        if (!pool_slot(s, i, i + 1, s->dims[i + 1], w, st, pad)) {
            return false;
        }
        cells *= w;
    }
    s->key = bits && cells <= POOL_BITS && s->pass != POOL_GATHER ? POOL_KEY_BITS : s->key;
    s->mark = cells > 256 || (below(4) == 0 && s->key != POOL_KEY_BITS) ? MC_INT32 : MC_UINT8;
    int64_t y[MC_MAX_RANK];
    memcpy(y, s->dims, sizeof y);
    for (int i = 0; i < 3; i++) {
        if (s->axis[i] >= 0) {
            y[s->axis[i]] = s->out[i];
        }
    }
    if (!test_is_full() && cells * mc_dims_count(4, y) > MOST_WORK) {
        return false;
    }
    const bool plain = below(2);
    pool_lay_out(4, order, s->dims, plain, p->at[POOL_X]);
    pool_lay_out(4, below(6) ? order : orders[below(3)], y, plain, p->at[POOL_Y]);
    pool_lay_out(4, order, s->key == POOL_KEY_X ? s->dims : y, plain, p->at[POOL_KEY]);
    return true;
}

#endif
