/* plan.h: the plan of a depthwise convolution, and the copies that it reads and writes.
 *
 * Along an axis with stride s, element j of x, counted from the first window, is (phase j % s, index j / s).
 * Tap a of position u meets phase a * dilation % s at index u + reach, reach = a * dilation / s. So after
 * the phases are apart, every stride is 1:
 *
 *   forward   y[u]        = sum over a                        of w[a] * x[phase of a][u + reach of a]
 *   inputs    x[phase][i] = sum over a of that phase          of w[a] * y[i - reach of a]
 *   weights   w[a]        = sum over u                        of y[u] * x[phase of a][u + reach of a]
 *
 * Invariant: a copy has zeros wherever the operand has no element. */
#ifndef MC_CONV_DEPTHWISE_PLAN_H
#define MC_CONV_DEPTHWISE_PLAN_H

#include "heavy/conv/cpu/depthwise/depthwise.h"
#include "heavy/conv/solver.h"

enum { DEPTH_LINE_BYTES = 64 };

/* What a vector holds, and what its rows are. */
enum depth_form {
    DEPTH_CHANNELS, /* channels of a position; rows are positions of the last axis */
    DEPTH_PLANES,   /* positions of the last axis; rows are those of the plane */
    DEPTH_LINE,     /* positions of the last axis; rows are further vectors of it */
};
/* An operand's copy, or the part of one that a band has: [phases][len] along each axis, then `width`
 * channels. Index v of phase p is the operand's element v * step + p + origin, if that is in [0, size). */
struct depth_side {
    int64_t step[3], origin[3], phases[3], len[3], size[3];
    int64_t filled;        /* of len[2]: beyond it is space for the last vector of a phase */
    int64_t pitch, floats; /* of a row; of the copy for one channel or block of channels */
};
/* A group of taps that reads the operand itself: steps along each axis from the first element that the
 * position may read, the same as an offset in the operand, and in the packed filters. */
struct depth_near { int64_t far[3], at, w; int taps; };
enum { DEPTH_NEAR = 32 }; /* most taps of a filter that reads it */
struct depth {
    struct mc_plan base;
    const struct mc_depth_kernel *kernel;
    enum depth_form form;
    /* Vectors hold channels though positions of a channel are adjacent. Planes are copied whole, position
     * i to the place[i]-th of a copy whose borders stay zero. */
    bool turned;
    int *place;
    /* Vectors hold channels, and most windows are inside of x: it is read where it is. Taps one by one
     * are for the others. */
    bool straight;
    struct depth_near *near, *one; /* as group; as w */
    int64_t width;              /* channels of a position in a copy; 1 where vectors hold positions */
    int64_t planes;             /* copies of a block; 1 where vectors hold channels */
    int64_t blocks;
    int64_t each;               /* filters of a channel */
    int64_t taps;
    int band_axis;              /* results are computed in `bands` bands of `band` indices of this axis */
    int64_t bands, band;
    int64_t n[3];               /* indices of the result along each axis; of x: of one phase */
    int64_t reach[3];           /* of the last tap */
    int64_t spacing;            /* rows of a group of taps are so many indices apart */
    struct depth_side from, to; /* x or y; to: y or x. Weights: from is x, to is y */
    bool in_place;              /* planes: the result needs no copy; weights: y needs none */
    /* Of each tap of each filter of a channel, in the order of the packed filters: offset in w from the
     * channel's first filter, and in the copy. */
    int64_t *w, *at;
    struct mc_depth_group *group;
    /* Groups and taps of each phase of the result; the least and the most of their steps along the last
     * axis. */
    struct depth_list { int64_t first, count, tap, taps, least, most; } *list;
    int64_t parts;              /* weights: partial sums of a block */
    int slots;
    /* bytes in a slot; of all partial sums, behind the slots */
    size_t to_at, w_at, sums_at, slot_bytes, parts_bytes;
};
struct depth_call {
    const struct depth *d;
    struct mc_conv_run r;
    int64_t extent[3]; /* floats of each operand from its first element on */
};

/* ---- copy.c ---- */
/* Channels of an image: the first element, steps to the next channel and along three axes, the end of the
 * whole operand. */
struct depth_operand {
    const float *at, *end;
    int64_t channel;
    const int64_t *mem;
};
/* The same of the result, by its offset, and the copies that it is written from. */
struct depth_result {
    const float *copy;
    int64_t at, channel;
    const int64_t *mem;
};
/* Indices [first, first + count[i]) along the band's axis, [0, count[i]) along the others. */
struct depth_box { int64_t first, count[3], channels; };
void mc_depth_copy_in(const struct depth *d, const struct depth_side *s, const struct depth_box *box,
                      float *to, const struct depth_operand *x);
/* result = alpha * copy + beta * c0, at elements that exist */
void mc_depth_copy_out(const struct depth_call *x, const struct depth_side *s, const struct depth_box *box,
                       const struct depth_result *y);
/* The same for `count` positions that are `step` floats apart, of channels that are `channel` floats
 * apart. */
void mc_depth_put(const struct depth_call *x, const float *from, int64_t from_step, int64_t at, int64_t step,
                  int64_t count, int64_t channel, int64_t channels);
/* Sets i to the elements along the first two axes of indices v of phases p; false: outside of the operand. */
bool mc_depth_element(const struct depth *d, const struct depth_side *s, const struct depth_box *box,
                      const int64_t p[2], const int64_t v[2], int64_t i[2]);
/* The indices [*lo, *hi) of a phase that are elements of the operand. */
void mc_depth_valid(const struct depth_side *s, int axis, int64_t phase, int64_t first, int64_t count,
                    int64_t *lo, int64_t *hi);

/* ---- planes.c: refuses all but forward convolutions of dense planes with one filter a channel ---- */
const char *mc_depth_not_planes(const struct mc_conv_problem *p);

/* ---- run.c ---- */
mc_status mc_depth_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads);

/* The offset in a copy, in floats, of index v of phase p. */
static inline int64_t depth_offset(const struct depth_side *s, int64_t width, const int64_t p[3],
                                   const int64_t v[3])
{
    const int64_t row = ((p[0] * s->len[0] + v[0]) * s->phases[1] + p[1]) * s->len[1] + v[1];
    return row * s->pitch + (p[2] * s->len[2] + v[2]) * width;
}

#endif
