/* body.h: the sums of depthwise.h, compiled for each instruction set by the file that includes it. That file
 * defines TARGET, L (lanes) and the shuffles EVEN, LOW and HIGH.
 *
 * Invariant: a sum is added in the order of groups and taps, or of rows and strips, on every instruction
 * set. */
#include "heavy/conv/cpu/lanes.h"

/* One group's terms for n rows: a vector of x is loaded once and multiplied by all taps that read it. */
FUSED void add_group(const int n, const int taps, V acc[DEPTH_ROWS], const float *x, int64_t x_row,
                     const float *w, int64_t w_tap)
{
    V f[DEPTH_TAPS];
    UNROLL(4)
    for (int t = 0; t < taps; t++) {
        f[t] = load(w + t * w_tap);
    }
    UNROLL(12)
    for (int j = 0; j < n + taps - 1; j++) {
        const V v = load(x + j * x_row);
        UNROLL(4)
        for (int t = 0; t < taps; t++) {
            if (j - t >= 0 && j - t < n) {
                acc[j - t] += f[t] * v;
            }
        }
    }
}

FUSED void tile(const int n, const struct mc_depth_sum *s, const float *x, const float *w, float *y)
{
    V acc[DEPTH_ROWS];
    UNROLL(8)
    for (int r = 0; r < n; r++) {
        acc[r] = (V){ 0 };
    }
    for (const struct mc_depth_group *g = s->group; g < s->group + s->groups; g++) {
        const float *from = x + g->at, *by = w + g->w * s->w_tap;
        switch (g->taps) {
        case 1: add_group(n, 1, acc, from, s->x_row, by, s->w_tap); break;
        case 2: add_group(n, 2, acc, from, s->x_row, by, s->w_tap); break;
        case 3: add_group(n, 3, acc, from, s->x_row, by, s->w_tap); break;
        default: add_group(n, 4, acc, from, s->x_row, by, s->w_tap); break;
        }
    }
    UNROLL(8)
    for (int r = 0; r < n; r++) {
        store(y + r * s->y_row, acc[r]);
    }
}

TARGET static void sum(const struct mc_depth_sum *s)
{
    for (int64_t i = 0; i < s->strips; i++) {
        const float *w = s->w + i * s->w_strip;
        for (int64_t r = 0, n; r < s->rows; r += n) {
            const float *x = s->x + i * s->x_strip + r * s->x_row;
            float *y = s->y + i * s->y_strip + r * s->y_row;
            const int64_t left = s->rows - r;
            n = left <= DEPTH_ROWS ? left : left < 2 * DEPTH_ROWS ? (left + 1) / 2 : DEPTH_ROWS;
            switch (n) {
            case 1: tile(1, s, x, w, y); break;
            case 2: tile(2, s, x, w, y); break;
            case 3: tile(3, s, x, w, y); break;
            case 4: tile(4, s, x, w, y); break;
            case 5: tile(5, s, x, w, y); break;
            case 6: tile(6, s, x, w, y); break;
            case 7: tile(7, s, x, w, y); break;
            default: tile(8, s, x, w, y); break;
            }
        }
    }
}

typedef int I __attribute__((vector_size(4 * L)));

/* The lanes below n, the others zero, whatever they were. */
FUSED V first_lanes(V v, int n)
{
    static const int number[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    I i;
    memcpy(&i, number, sizeof i);
    return (V)((I)v & (i < n));
}

FUSED void dots_of(const int taps, const struct mc_depth_dots *d)
{
    V acc[DEPTH_DOTS];
    const float *at[DEPTH_DOTS];
    UNROLL(9)
    for (int t = 0; t < taps; t++) {
        acc[t] = load(d->sum + t * d->sum_tap);
    }
    for (int64_t r = 0; r < d->rows; r++) {
        const float *y = d->y + r * d->y_row;
        UNROLL(9)
        for (int t = 0; t < taps; t++) {
            at[t] = d->x + d->at[t] + r * d->x_row;
        }
        int64_t from = 0;
        for (int64_t s = 0; s < d->strips; s++, from += d->x_strip, y += d->y_strip) {
            const V v = load(y);
            UNROLL(9)
            for (int t = 0; t < taps; t++) {
                acc[t] += v * load(at[t] + from);
            }
        }
        if (d->tail) {
            const V v = first_lanes(load(y), d->tail);
            UNROLL(9)
            for (int t = 0; t < taps; t++) {
                acc[t] += v * first_lanes(load(at[t] + from), d->tail);
            }
        }
    }
    UNROLL(9)
    for (int t = 0; t < taps; t++) {
        store(d->sum + t * d->sum_tap, acc[t]);
    }
}

TARGET static void dots(const struct mc_depth_dots *d)
{
    switch (d->taps) {
    case 1: dots_of(1, d); break;
    case 2: dots_of(2, d); break;
    case 3: dots_of(3, d); break;
    case 4: dots_of(4, d); break;
    case 5: dots_of(5, d); break;
    case 6: dots_of(6, d); break;
    case 7: dots_of(7, d); break;
    case 8: dots_of(8, d); break;
    default: dots_of(9, d); break;
    }
}

/* ---- copies ---- */

FUSED void zeros(float *to, int64_t n) /* whole vectors: up to L - 1 floats beyond */
{
    for (int64_t i = 0; i < n; i += L) {
        store(to + i, (V){ 0 });
    }
}

/* Whole vectors of a row: up to L - 1 elements are read and written beyond it. */
FUSED void row_in(float *to, const float *from, int64_t n, int64_t step)
{
    if (step == 1) {
        for (int64_t i = 0; i < n; i += L) {
            store(to + i, load(from + i));
        }
    } else if (step == 2) {
        for (int64_t i = 0; i < n; i += L) {
            store(to + i, __builtin_shufflevector(load(from + 2 * i), load(from + 2 * i + L), EVEN));
        }
    }
}

/* Rows are written from front to end, because what is written beyond one is the next one's. */
TARGET static void in(const struct mc_depth_plane *p)
{
    const int64_t n = p->hi - p->lo, whole = p->step * ((n + L - 1) / L * L);
    zeros(p->to - p->before, p->before);
    for (int64_t r = 0; r < p->rows; r++) {
        float *to = p->to + r * p->to_row;
        const float *from = p->from + r * p->from_row;
        zeros(to, p->lo);
        if ((p->step == 1 || p->step == 2) && r * p->from_row + whole <= p->limit) {
            row_in(to + p->lo, from, n, p->step);
        } else {
            for (int64_t i = 0; i < n; i++) {
                to[p->lo + i] = from[i * p->step];
            }
        }
        zeros(to + p->hi, p->len - p->hi);
    }
    zeros(p->to + p->rows * p->to_row, p->after);
}

TARGET static void out(const struct mc_depth_plane *p)
{
    const int64_t n = p->hi - p->lo, whole = (n + L - 1) / L * L;
    for (int64_t r = 0; r < p->rows; r++) {
        float *to = p->to + r * p->to_row;
        const float *from = p->from + r * p->from_row;
        if (p->step == 1 && r * p->to_row + whole <= p->limit) {
            for (int64_t i = 0; i < n; i += L) {
                store(to + i, load(from + p->lo + i));
            }
        } else {
            for (int64_t i = 0; i < n; i++) {
                to[i * p->step] = from[p->lo + i];
            }
        }
    }
}

TARGET static void zip(const struct mc_depth_plane *p)
{
    for (int64_t r = 0; r < p->rows; r++) {
        float *to = p->to + r * p->to_row;
        const float *a = p->from + r * p->from_row, *b = p->other + r * p->from_row;
        int64_t i = 0;
        for (; 2 * (i + L) <= p->len; i += L) {
            const V even = load(a + i), odd = load(b + i);
            store(to + 2 * i, __builtin_shufflevector(even, odd, LOW));
            store(to + 2 * i + L, __builtin_shufflevector(even, odd, HIGH));
        }
        for (; 2 * i < p->len; i++) {
            to[2 * i] = a[i];
            if (2 * i + 1 < p->len) {
                to[2 * i + 1] = b[i];
            }
        }
    }
}

/* Rows to columns: each stage interleaves the halves. */
FUSED void turn(V v[L])
{
    UNROLL(4)
    for (int stage = 1; stage < L; stage *= 2) {
        V to[L];
        UNROLL(8)
        for (int i = 0; i < L / 2; i++) {
            to[2 * i] = __builtin_shufflevector(v[i], v[i + L / 2], LOW);
            to[2 * i + 1] = __builtin_shufflevector(v[i], v[i + L / 2], HIGH);
        }
        UNROLL(16)
        for (int i = 0; i < L; i++) {
            v[i] = to[i];
        }
    }
}

/* Not inlined: its callers would have sixteen copies each. */
TARGET static __attribute__((noinline)) void copy_some(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = from[i];
    }
}

/* n < L floats at p, then zeros. */
FUSED V load_some(const float *p, int64_t n)
{
    float f[L] = { 0 };
    copy_some(f, p, n);
    return load(f);
}

#ifdef MC_RUNTIME /* smaller */
#define ALL false
#else
#define ALL true
#endif

/* Positions [i, i + some) of L channels from c on; some: L, or all positions; all: there are L channels. */
FUSED void block_in(const struct mc_depth_turn *t, int64_t c, int64_t i, const int some, const bool all)
{
    V v[L];
    const bool whole =
        some == L || (c + L <= t->channels && (c + L - 1) * t->channel + i + L <= t->limit);
    const float *from = t->from + c * t->channel + i;
    UNROLL(16)
    for (int k = 0; k < L; k++, from += t->channel) {
        v[k] = !all && c + k >= t->channels ? (V){ 0 } : whole ? load(from) : load_some(from, some);
    }
    turn(v);
    if (!t->place) {
        float *to = t->to + i * t->width + c;
        UNROLL(16)
        for (int k = 0; k < L; k++) {
            if (k < some) {
                store(to + k * t->width, v[k]);
            }
        }
        return;
    }
    UNROLL(16)
    for (int k = 0; k < L; k++) {
        if (k < some) {
            store(t->to + t->place[i + k] * t->width + c, v[k]);
        }
    }
}

FUSED void block_out(const struct mc_depth_turn *t, int64_t c, int64_t i, const int some, const bool all)
{
    V v[L];
    float *to = t->to + c * t->channel + i;
    UNROLL(16)
    for (int k = 0; k < L; k++) {
        v[k] = k < some ? load(t->from + (i + k) * t->width + c) : (V){ 0 };
    }
    turn(v);
    UNROLL(16)
    for (int k = 0; k < L; k++, to += t->channel) {
        if (!all && c + k >= t->channels) {
            continue;
        }
        if (some == L) {
            store(to, v[k]);
        } else {
            float f[L];
            store(f, v[k]);
            copy_some(to, f, some);
        }
    }
}

FUSED void one_block(const struct mc_depth_turn *t, int64_t c, int64_t i, const int some, const bool all,
                     const bool out)
{
    if (out) {
        block_out(t, c, i, some, all);
    } else {
        block_in(t, c, i, some, all);
    }
}

/* All positions of L channels; the last block may have some of them once more. */
FUSED void blocks(const struct mc_depth_turn *t, int64_t c, const bool all, const bool out)
{
    if (t->n < L) {
        one_block(t, c, 0, (int)t->n, all, out);
        return;
    }
    for (int64_t i = 0; i < t->n; i += L) {
        one_block(t, c, MC_MIN(i, t->n - L), L, all, out);
    }
}

/* By a copy of *t, which stores to floats cannot change. */
FUSED void turn_all(const struct mc_depth_turn *t, const bool out)
{
    const struct mc_depth_turn own = *t;
    for (int64_t c = 0; c < own.width; c += L) {
        if (ALL && c + L <= own.channels) {
            blocks(&own, c, true, out);
        } else {
            blocks(&own, c, false, out);
        }
    }
}

TARGET static void turn_in(const struct mc_depth_turn *t)
{
    turn_all(t, false);
}

TARGET static void turn_out(const struct mc_depth_turn *t)
{
    turn_all(t, true);
}

TARGET static void splat(float *to, const float *from, int64_t from_step, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        store(to + i * L, from[i * from_step] - (V){ 0 });
    }
}

TARGET static void rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t n,
                        int64_t floats)
{
    for (int64_t r = 0; r < n; r++) {
        float *a = to + r * to_row;
        const float *b = from + r * from_row;
        int64_t i = 0;
        for (; i + L <= floats; i += L) {
            store(a + i, load(b + i));
        }
        for (; i < floats; i++) {
            a[i] = b[i];
        }
    }
}

#ifndef MC_RUNTIME /* which has neither the solver planes nor the solver channels */
#include "heavy/conv/cpu/depthwise/channels_body.h"
#include "heavy/conv/cpu/depthwise/planes_body.h"
#else
#define flat NULL
#define block NULL
#endif

static const struct mc_depth_kernel kernel = { L,       sum,      dots,  in,   out, zip,
                                               turn_in, turn_out, splat, rows, flat, block };
