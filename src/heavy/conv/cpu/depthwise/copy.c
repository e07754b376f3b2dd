/* copy.c: operands to copies with their phases apart and zeros around, and results back.
 *
 * Invariant: nothing outside of an operand is read or written. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/conv/cpu/depthwise/plan.h"

void mc_depth_valid(const struct depth_side *s, int axis, int64_t phase, int64_t first, int64_t count,
                    int64_t *lo, int64_t *hi)
{
    const int64_t at = first * s->step[axis] + phase + s->origin[axis]; /* the element of index 0 */
    *lo = MC_MIN(MC_MAX(conv_ceil(-at, s->step[axis]), (int64_t)0), count);
    *hi = MC_MAX(MC_MIN(conv_ceil(s->size[axis] - at, s->step[axis]), count), *lo);
}

/* The first index along an axis: bands begin at box->first of theirs. */
static int64_t first_of(const struct depth *d, const struct depth_box *box, int axis)
{
    return axis == d->band_axis ? box->first : 0;
}

static void zero(float *to, int64_t n)
{
    if (n > 0) {
        memset(to, 0, (size_t)n * sizeof *to);
    }
}

/* A row of all channels of a block. */
static void channels_in(const struct depth *d, const struct depth_side *s, const struct depth_box *box,
                        float *to,
                        const float *from, const struct depth_operand *x)
{
    const int64_t w = d->width, first = first_of(d, box, 2), step = s->step[2] * x->mem[2], mem = x->mem[2];
    if (box->channels < w) {
        zero(to, s->pitch);
    }
    for (int64_t p = 0; p < s->phases[2]; p++, to += s->len[2] * w) {
        int64_t lo, hi;
        mc_depth_valid(s, 2, p, first, box->count[2], &lo, &hi);
        const float *at = from + ((lo + first) * s->step[2] + p + s->origin[2]) * mem;
        zero(to, lo * w);
        zero(to + hi * w, (s->len[2] - hi) * w);
        const bool contiguous = step == w && box->channels == w;
        d->kernel->rows(to + lo * w, w, at, step, contiguous ? MC_MIN(hi - lo, (int64_t)1) : hi - lo,
                        contiguous ? (hi - lo) * w : box->channels);
    }
}

/* The rows of one phase of the second axis in the planes of some channels. to: where they begin in the first
 * copy; i0: the element along the first axis, which may be outside. */
static void planes_in(const struct depth *d, const struct depth_side *s, const struct depth_box *box,
                      int64_t phase,
                      int64_t i0, float *to, const struct depth_operand *x)
{
    const int64_t first[2] = { first_of(d, box, 1), first_of(d, box, 2) }, spare = s->len[2] - s->filled;
    int64_t lo, hi;
    mc_depth_valid(s, 1, phase, first[0], box->count[1], &lo, &hi);
    hi = i0 >= 0 && i0 < s->size[0] ? hi : lo;
    const int64_t i1 = (lo + first[0]) * s->step[1] + phase + s->origin[1];
    for (int64_t p = 0; p < (hi > lo ? s->phases[2] : 1); p++) {
        struct mc_depth_plane q = { .to = to + lo * s->pitch + p * s->len[2],
                                    .to_row = s->pitch,
                                    .from_row = s->step[1] * x->mem[1],
                                    .rows = hi - lo,
                                    .len = s->filled,
                                    .step = s->step[2] * x->mem[2] };
        if (p == 0) {
            q.before = lo * s->pitch;
            q.after = (s->len[1] - hi) * s->pitch - spare;
        }
        mc_depth_valid(s, 2, p, first[1], box->count[2], &q.lo, &q.hi);
        const int64_t i2 = (q.lo + first[1]) * s->step[2] + p + s->origin[2];
        q.from = hi > lo ? x->at + i0 * x->mem[0] + i1 * x->mem[1] + i2 * x->mem[2] : x->at;
        q.limit = x->end - q.from;
        for (int64_t c = 0; c < box->channels; c++) {
            d->kernel->in(&q);
            q.to += s->floats;
            q.from += x->channel;
            q.limit -= x->channel;
        }
    }
}

/* Calls of rows (p0, v0), (p1, v1) of a copy: sets i to their elements. */
#define EACH_ROW(s, box, p0, v0, p1, v1)                                                                     \
    for (int64_t p0 = 0; p0 < (s)->phases[0]; p0++)                                                          \
        for (int64_t v0 = 0; v0 < (box)->count[0]; v0++)                                                     \
            for (int64_t p1 = 0; p1 < (s)->phases[1]; p1++)                                                  \
                for (int64_t v1 = 0; v1 < (box)->count[1]; v1++)

bool mc_depth_element(const struct depth *d, const struct depth_side *s, const struct depth_box *box,
                      const int64_t p[2], const int64_t v[2], int64_t i[2])
{
    for (int k = 0; k < 2; k++) {
        i[k] = (v[k] + first_of(d, box, k)) * s->step[k] + p[k] + s->origin[k];
    }
    return i[0] >= 0 && i[0] < s->size[0] && i[1] >= 0 && i[1] < s->size[1];
}

void mc_depth_copy_in(const struct depth *d, const struct depth_side *s, const struct depth_box *box,
                      float *to, const struct depth_operand *x)
{
    if (d->form != DEPTH_CHANNELS) {
        for (int64_t p0 = 0; p0 < s->phases[0]; p0++) {
            for (int64_t v0 = 0; v0 < box->count[0]; v0++) {
                const int64_t i0 = (v0 + first_of(d, box, 0)) * s->step[0] + p0 + s->origin[0];
                for (int64_t p1 = 0; p1 < s->phases[1]; p1++) {
                    planes_in(d, s, box, p1, i0,
                              to + depth_offset(s, 1, (int64_t[]){ p0, p1, 0 }, (int64_t[]){ v0, 0, 0 }), x);
                }
            }
        }
        return;
    }
    if (d->turned) {
        const int64_t n = s->size[1] * s->size[2];
        d->kernel->turn_in(&(struct mc_depth_turn){ to, x->at, s == &d->from ? d->place : NULL, x->channel,
                                                    box->channels, n, d->width, x->end - x->at });
        return;
    }
    EACH_ROW(s, box, p0, v0, p1, v1)
    {
        float *row = to + depth_offset(s, d->width, (int64_t[]){ p0, p1, 0 }, (int64_t[]){ v0, v1, 0 });
        int64_t i[2];
        if (mc_depth_element(d, s, box, (int64_t[]){ p0, p1 }, (int64_t[]){ v0, v1 }, i)) {
            channels_in(d, s, box, row, x->at + i[0] * x->mem[0] + i[1] * x->mem[1], x);
        } else {
            zero(row, s->pitch);
        }
    }
}

/* ---- results ---- */

static bool plain(const struct depth_call *x)
{
    return x->r.p->alpha == 1 && !x->r.c0;
}

void mc_depth_put(const struct depth_call *x, const float *from, int64_t from_step, int64_t at, int64_t step,
                  int64_t count, int64_t channel, int64_t channels)
{
    float *to = (float *)(void *)x->r.result + at;
    const float *c0 = (const float *)(const void *)x->r.c0;
    const float alpha = (float)x->r.p->alpha, beta = (float)x->r.p->beta;
    if (plain(x) && channels > 1 && channel == 1) {
        x->d->kernel->rows(to, step, from, from_step, count, channels);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        for (int64_t c = 0; c < channels; c++) {
            const int64_t j = i * step + c * channel;
            to[j] = alpha * from[i * from_step + c] + (c0 ? beta * c0[at + j] : 0);
        }
    }
}

/* The only phase of dense planes: whole vectors, as far as no other task writes. */
static void dense_out(const struct depth_call *x, const struct depth_side *s, const struct depth_box *box,
                      const struct depth_result *y)
{
    const struct depth *d = x->d;
    const int64_t *mem = y->mem;
    struct mc_depth_plane q = { .to_row = mem[1], .from_row = s->pitch, .step = mem[2] };
    int64_t lo, hi;
    mc_depth_valid(s, 1, 0, first_of(d, box, 1), box->count[1], &lo, &hi);
    mc_depth_valid(s, 2, 0, first_of(d, box, 2), box->count[2], &q.lo, &q.hi);
    q.rows = hi - lo;
    q.limit = mem[1] == s->size[2] ? q.rows * mem[1] : 0;
    const int64_t at = y->at + (lo + first_of(d, box, 1) + s->origin[1]) * mem[1] +
                       (q.lo + first_of(d, box, 2) + s->origin[2]) * mem[2];
    for (int64_t v0 = 0; v0 < box->count[0]; v0++) {
        const int64_t i0 = v0 + first_of(d, box, 0) + s->origin[0];
        for (int64_t c = 0; c < box->channels && i0 >= 0 && i0 < s->size[0]; c++) {
            q.to = (float *)(void *)x->r.result + at + i0 * mem[0] + c * y->channel;
            q.from = y->copy + c * s->floats + (v0 * s->len[1] + lo) * s->pitch;
            d->kernel->out(&q);
        }
    }
}

/* Rows of one phase of the second axis, of two phases of the last one in turn. */
static void zip_out(const struct depth_call *x, const struct depth_side *s, const struct depth_box *box,
                    const struct depth_result *y, int64_t p0, int64_t v0, int64_t p1)
{
    const struct depth *d = x->d;
    const int64_t first = first_of(d, box, 2), *mem = y->mem;
    int64_t lo1, hi1, lo[2], hi[2], i[2];
    mc_depth_valid(s, 1, p1, first_of(d, box, 1), box->count[1], &lo1, &hi1);
    for (int p = 0; p < 2; p++) {
        mc_depth_valid(s, 2, p, first, box->count[2], &lo[p], &hi[p]);
        i[p] = (lo[p] + first) * 2 + p + s->origin[2];
    }
    const int p = hi[0] == lo[0] || (hi[1] > lo[1] && i[1] < i[0]); /* the phase of the first element */
    const int64_t i0 = (v0 + first_of(d, box, 0)) * s->step[0] + p0 + s->origin[0],
                  i1 = (lo1 + first_of(d, box, 1)) * s->step[1] + p1 + s->origin[1];
    if (i0 < 0 || i0 >= s->size[0]) {
        return;
    }
    const float *from = y->copy + depth_offset(s, 1, (int64_t[]){ p0, p1, 0 }, (int64_t[]){ v0, lo1, 0 });
    struct mc_depth_plane q = { .to = (float *)(void *)x->r.result + y->at + i0 * mem[0] + i1 * mem[1] + i[p],
                                .from = from + p * s->len[2] + lo[p],
                                .other = from + !p * s->len[2] + lo[!p],
                                .to_row = s->step[1] * mem[1],
                                .from_row = s->pitch,
                                .rows = hi1 - lo1,
                                .len = hi[0] - lo[0] + hi[1] - lo[1] };
    for (int64_t c = 0; c < box->channels; c++) {
        d->kernel->zip(&q);
        q.to += y->channel;
        q.from += s->floats;
        q.other += s->floats;
    }
}

static void row_out(const struct depth_call *x, const struct depth_side *s, const struct depth_box *box,
                    const float *from, int64_t at, int64_t mem)
{
    const int64_t first = first_of(x->d, box, 2);
    for (int64_t p = 0; p < s->phases[2]; p++) {
        int64_t lo, hi;
        mc_depth_valid(s, 2, p, first, box->count[2], &lo, &hi);
        mc_depth_put(x, from + p * s->len[2] + lo, 1,
                     at + ((lo + first) * s->step[2] + p + s->origin[2]) * mem, s->step[2] * mem, hi - lo, 1,
                     1);
    }
}

/* Any strides, alpha and c0. */
static void rows_out(const struct depth_call *x, const struct depth_side *s, const struct depth_box *box,
                     const struct depth_result *y)
{
    EACH_ROW(s, box, p0, v0, p1, v1)
    {
        int64_t i[2];
        const int64_t v[2] = { v0, v1 }, p[3] = { p0, p1, 0 }, at[3] = { v0, v1, 0 };
        for (int64_t c = 0; c < box->channels && mc_depth_element(x->d, s, box, p, v, i); c++) {
            row_out(x, s, box, y->copy + c * s->floats + depth_offset(s, 1, p, at),
                    y->at + c * y->channel + i[0] * y->mem[0] + i[1] * y->mem[1], y->mem[2]);
        }
    }
}

void mc_depth_copy_out(const struct depth_call *x, const struct depth_side *s, const struct depth_box *box,
                       const struct depth_result *y)
{
    if (plain(x) && conv_volume(s->step) == 1) {
        dense_out(x, s, box, y);
    } else if (plain(x) && s->phases[2] == 2 && y->mem[2] == 1) {
        for (int64_t p0 = 0; p0 < s->phases[0]; p0++) {
            for (int64_t v0 = 0; v0 < box->count[0]; v0++) {
                for (int64_t p1 = 0; p1 < s->phases[1]; p1++) {
                    zip_out(x, s, box, y, p0, v0, p1);
                }
            }
        }
    } else {
        rows_out(x, s, box, y);
    }
}
