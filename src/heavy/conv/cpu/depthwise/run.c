/* run.c: one call of a depthwise convolution: bands of images are copied, summed and written.
 *
 * Invariant: tasks write disjoint parts of the result. */
#include "heavy/conv/cpu/depthwise/plan.h"

/* One thread's part of the workspace. */
struct scratch {
    int64_t *block; /* whose filters are packed; -1: none */
    float *from, *to, *w, *sums;
};
/* A band of a block of channels of an image. */
struct part {
    int64_t n, c;
    struct depth_box from, to;
};

static struct scratch scratch_of(const struct depth_call *x, int slot)
{
    char *at = x->r.workspace + (size_t)slot * x->d->slot_bytes;
    return (struct scratch){ .block = (int64_t *)(void *)at,
                             .from = (float *)(void *)(at + DEPTH_LINE_BYTES),
                             .to = (float *)(void *)(at + x->d->to_at),
                             .w = (float *)(void *)(at + x->d->w_at),
                             .sums = (float *)(void *)(at + x->d->sums_at) };
}

static struct part part_of(const struct depth_call *x, int64_t block, int64_t piece)
{
    const struct depth *d = x->d;
    struct part t = { .n = piece / d->bands, .c = block * d->width * d->planes };
    t.to.first = t.from.first = piece % d->bands * d->band;
    t.to.channels = t.from.channels = MC_MIN(d->width * d->planes, x->r.p->s.c - t.c);
    for (int i = 0; i < 3; i++) {
        t.to.count[i] = i == d->band_axis ? MC_MIN(d->band, d->n[i] - t.to.first) : d->n[i];
        t.from.count[i] = t.to.count[i] + d->reach[i];
    }
    return t;
}

static int64_t first_of(const struct depth *d, const struct depth_box *box, int axis)
{
    return axis == d->band_axis ? box->first : 0;
}

/* ---- operands ---- */

/* A channel of x or y of an image. */
static struct depth_operand operand_of(const struct depth_call *x, int role, int64_t n, int64_t channel)
{
    const struct mc_conv_problem *p = x->r.p;
    const int64_t *mem = role == CONV_X ? p->at.x : p->at.y;
    const float *at = (const float *)(const void *)x->r.at[role];
    return (struct depth_operand){ at + n * mem[0] + channel * mem[1], at + x->extent[role], mem[1],
                                   mem + 2 };
}


/* Floats from one packed tap to the next: a number for each channel, or one in all lanes. */
static int64_t tap_step(const struct depth *d)
{
    return d->form == DEPTH_CHANNELS ? d->width : d->kernel->lanes;
}

/* The packed filters of a block: [tap][channel], or [channel][tap][lane]. */
static void pack_filters(const struct depth_call *x, const struct scratch *k, const struct part *t)
{
    const struct depth *d = x->d;
    const int64_t all = d->each * d->taps, filter = d->each * x->r.p->at.w[0];
    const float *w = (const float *)(const void *)x->r.at[CONV_W] + t->c * filter;
    if (*k->block == t->c) {
        return;
    }
    *k->block = t->c;
    if (d->form == DEPTH_CHANNELS) {
        for (int64_t i = 0; i < all; i++) {
            float *to = k->w + i * d->width;
            for (int64_t c = 0; c < t->to.channels; c++) {
                to[c] = w[d->w[i] + c * filter];
            }
            for (int64_t c = t->to.channels; c < d->width; c++) {
                to[c] = 0;
            }
        }
        return;
    }
    float *one = k->w + d->planes * all * d->kernel->lanes;
    for (int64_t c = 0; c < t->to.channels; c++) {
        for (int64_t i = 0; i < all; i++) {
            one[c * all + i] = w[d->w[i] + c * filter];
        }
    }
    d->kernel->splat(k->w, one, 1, t->to.channels * all);
}

/* ---- forward and inputs ---- */

/* Copies what the band reads: a plane of x, or one of y for each filter of the channel. */
static void copy_source(const struct depth_call *x, const struct scratch *k, const struct part *t)
{
    const struct depth *d = x->d;
    struct depth_box box = t->from;
    struct depth_operand o = operand_of(x, CONV_X, t->n, t->c);
    if (x->r.p->s.pass == CONV_INPUTS) {
        o = operand_of(x, CONV_Y, t->n, t->c * d->each);
        box.channels *= d->each;
    }
    mc_depth_copy_in(d, &d->from, &box, k->from, &o);
}

/* The groups of a phase of the result; forward: those of one filter. */
static struct mc_depth_sum sum_for(const struct depth_call *x, const struct scratch *k, const int64_t p[3],
                                   int64_t filter)
{
    const struct depth *d = x->d;
    const int64_t *n = d->to.phases;
    const struct depth_list *l = &d->list[(p[0] * n[1] + p[1]) * n[2] + p[2]];
    const int64_t count = x->r.p->s.pass == CONV_FORWARD ? l->count / d->each : l->count;
    return (struct mc_depth_sum){
        .group = d->group + l->first + filter * count, .groups = count, .w = k->w, .w_tap = tap_step(d)
    };
}

/* Rows that are `spacing` apart, for each of the first `spacing` ones. */
static void sum_rows(const struct depth *d, struct mc_depth_sum s, int64_t n)
{
    const float *from = s.x;
    float *to = s.y;
    const int64_t x_row = s.x_row, y_row = s.y_row;
    s.x_row *= d->spacing;
    s.y_row *= d->spacing;
    for (int64_t r = 0; r < MC_MIN(d->spacing, n); r++) {
        s.x = from + r * x_row;
        s.y = to + r * y_row;
        s.rows = conv_ceil(n - r, d->spacing);
        d->kernel->sum(&s);
    }
}

static bool plain(const struct depth_call *x)
{
    return x->r.p->alpha == 1 && !x->r.c0;
}

/* Positions of one phase in a row of the result, all channels of the block. y: the row's first element; step:
 * floats between positions. */
static void row_of_channels(const struct depth_call *x, const struct scratch *k, const struct part *t,
                            const int64_t p[3], const int64_t v[2], float *y, int64_t step)
{
    const struct depth *d = x->d;
    const struct depth_side *to = &d->to;
    const int64_t first = first_of(d, &t->to, 2), w = d->width;
    int64_t lo, hi;
    mc_depth_valid(to, 2, p[2], first, t->to.count[2], &lo, &hi);
    struct mc_depth_sum s = sum_for(x, k, p, 0);
    s.x = k->from + depth_offset(&d->from, w, (int64_t[3]){ 0 }, (int64_t[]){ v[0], v[1], lo });
    s.x_row = w;
    s.y = y + ((lo + first) * to->step[2] + p[2] + to->origin[2]) * step;
    s.y_row = to->step[2] * step;
    s.strips = w / d->kernel->lanes;
    s.x_strip = s.y_strip = s.w_strip = d->kernel->lanes;
    sum_rows(d, s, hi - lo);
}

/* A whole result by positions, to its planes. */
static void put_planes(const struct depth_call *x, const struct part *t, const float *from,
                       const struct depth_result *y)
{
    const struct depth *d = x->d;
    const int64_t n = d->to.size[1] * d->to.size[2];
    if (plain(x)) {
        d->kernel->turn_out(&(struct mc_depth_turn){ .to = (float *)(void *)x->r.result + y->at,
                                                     .from = from,
                                                     .channel = y->channel,
                                                     .channels = t->to.channels,
                                                     .n = n,
                                                     .width = d->width });
    } else {
        mc_depth_put(x, from, d->width, y->at, 1, n, y->channel, t->to.channels);
    }
}

/* The groups whose rows of the operand exist, for a position whose window begins at elements `at`; with
 * columns: and whose columns exist. Returns their number. */
static int64_t existing(const struct depth_near *from, int64_t n, const struct depth_side *s,
                        const int64_t at[3],
                        bool columns, struct mc_depth_group *to)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        bool exists = true;
        for (int axis = 0; axis < (columns ? 3 : 2); axis++) {
            const int64_t e = at[axis] + from[i].far[axis];
            exists = exists && e >= 0 && e < s->size[axis];
        }
        if (exists) {
            to[count++] = (struct mc_depth_group){ from[i].at, from[i].w, from[i].taps };
        }
    }
    return count;
}

/* All channels: the last vector begins where it ends with them. */
static void sum_straight(const struct depth *d, struct mc_depth_sum s, int64_t channels)
{
    const int64_t lanes = d->kernel->lanes, rest = channels % lanes;
    s.strips = channels / lanes;
    d->kernel->sum(&s);
    if (rest) {
        s.x += channels - lanes;
        s.y += channels - lanes;
        s.w += channels - lanes;
        s.strips = 1;
        d->kernel->sum(&s);
    }
}

/* As row_of_channels, from the operand itself. Positions whose windows reach beyond the ends of a row are
 * summed one by one, the others eight at a time, so that memory is read in its order. */
static void row_straight(const struct depth_call *x, const struct scratch *k, const struct part *t,
                         const int64_t p[3], const int64_t v[2], float *y, int64_t step)
{
    const struct depth *d = x->d;
    const struct depth_side *from = &d->from, *to = &d->to;
    const struct depth_list *l = &d->list[(p[0] * to->phases[1] + p[1]) * to->phases[2] + p[2]];
    const struct depth_operand o = operand_of(x, x->r.p->s.pass == CONV_INPUTS ? CONV_Y : CONV_X, t->n, 0);
    struct mc_depth_group rows[DEPTH_NEAR], ends[DEPTH_NEAR];
    const int64_t first = first_of(d, &t->to, 2), channels = t->to.channels;
    int64_t at[3], lo, hi, n;
    for (int i = 0; i < 2; i++) {
        at[i] = (v[i] + first_of(d, &t->to, i)) * from->step[i] + from->origin[i];
    }
    struct mc_depth_sum s = { .group = rows,
                              .groups = existing(d->near + l->first, l->count, from, at, false, rows),
                              .w = k->w,
                              .w_tap = d->width,
                              .x_row = from->step[2] * o.mem[2],
                              .y_row = to->step[2] * step,
                              .x_strip = d->kernel->lanes,
                              .y_strip = d->kernel->lanes,
                              .w_strip = d->kernel->lanes };
    const struct mc_depth_group *const inside = s.group;
    const int64_t groups = s.groups;
    mc_depth_valid(to, 2, p[2], first, t->to.count[2], &lo, &hi);
    for (int64_t u = lo; u < hi; u += n) {
        at[2] = (u + first) * from->step[2] + from->origin[2];
        const int64_t past = from->size[2] - l->most -
                             at[2]; /* elements to the last window inside, and one */
        s.group = inside;
        s.groups = groups;
        n = MC_MIN(MC_MIN(conv_ceil(past, from->step[2]), hi - u), (int64_t)DEPTH_ROWS);
        if (l->taps && (at[2] + l->least < 0 || n < 1)) {
            n = 1;
            s.group = ends;
            s.groups = existing(d->one + l->tap, l->taps, from, at, true, ends);
        } else if (!l->taps) {
            n = hi - u;
        }
        s.x = o.at + at[0] * o.mem[0] + at[1] * o.mem[1] + at[2] * o.mem[2];
        s.y = y + ((u + first) * to->step[2] + p[2] + to->origin[2]) * step;
        s.rows = n;
        sum_straight(d, s, channels);
    }
}

/* One row of the result: elements i of the first two axes, indices v of phases p. */
static void sum_row(const struct depth_call *x, const struct scratch *k, const struct part *t,
                    const int64_t p[2],
                    const int64_t v[2], const int64_t i[2], const struct depth_result *y)
{
    const struct depth *d = x->d;
    const struct depth_side *to = &d->to;
    const int64_t *mem = y->mem, from = first_of(d, &t->to, 2) * to->step[2] + to->origin[2],
                  lo = MC_MAX(from, (int64_t)0),
                  hi = MC_MIN(from + t->to.count[2] * to->step[2], to->size[2]);
    const struct depth_result row = { NULL, y->at + i[0] * mem[0] + i[1] * mem[1], y->channel, mem };
    const bool direct = plain(x) && !d->turned && (d->straight || t->to.channels == d->width);
    float *out = direct ? (float *)(void *)x->r.result + row.at
                        : k->to + (d->turned ? i[1] * to->size[2] * d->width : 0);
    for (int64_t p2 = 0; p2 < to->phases[2]; p2++) {
        (d->straight ? row_straight : row_of_channels)(x, k, t, (int64_t[]){ p[0], p[1], p2 }, v, out,
                                                       direct ? mem[2] : d->width);
    }
    if (!direct && !d->turned && hi > lo) {
        mc_depth_put(x, k->to + lo * d->width, d->width, row.at + lo * mem[2], mem[2], hi - lo, row.channel,
                     t->to.channels);
    }
}

static void sum_channels(const struct depth_call *x, const struct scratch *k, const struct part *t,
                         const struct depth_result *y)
{
    const struct depth_side *to = &x->d->to;
    for (int64_t v0 = 0; v0 < t->to.count[0]; v0++) {
        for (int64_t p0 = 0; p0 < to->phases[0]; p0++) {
            for (int64_t v1 = 0; v1 < t->to.count[1]; v1++) {
                for (int64_t p1 = 0; p1 < to->phases[1]; p1++) {
                    const int64_t p[2] = { p0, p1 }, v[2] = { v0, v1 };
                    int64_t i[2];
                    if (mc_depth_element(x->d, to, &t->to, p, v, i)) {
                        sum_row(x, k, t, p, v, i, y);
                    }
                }
            }
        }
    }
    if (x->d->turned) {
        put_planes(x, t, k->to, y);
    }
}

/* One phase of a plane: all rows at once, or one after another, vector by vector. */
static void sum_plane(const struct depth *d, const struct part *t, struct mc_depth_sum s)
{
    if (d->form == DEPTH_PLANES) {
        sum_rows(d, s, t->to.count[1]);
        return;
    }
    const int64_t lanes = d->kernel->lanes, x_row = s.x_row, y_row = s.y_row;
    s.rows = s.strips;
    s.x_row = s.y_row = lanes;
    s.strips = 1;
    for (int64_t v1 = 0; v1 < t->to.count[1]; v1++, s.x += x_row, s.y += y_row) {
        d->kernel->sum(&s);
    }
}

/* One phase of the planes of a block, from an index of the first axis on: for filter `filter` of each
 * channel. */
static void sum_phase(const struct depth_call *x, const struct scratch *k, const struct part *t,
                      int64_t filter,
                      const int64_t p[3], int64_t v0, const struct depth_result *y, bool direct)
{
    const struct depth *d = x->d;
    const bool inputs = x->r.p->s.pass == CONV_INPUTS;
    const int64_t lanes = d->kernel->lanes, v[3] = { v0, 0, 0 };
    struct mc_depth_sum s = sum_for(x, k, p, filter);
    s.x = k->from + depth_offset(&d->from, 1, (int64_t[3]){ 0 }, v);
    s.x_row = d->from.pitch;
    s.y = direct ? (float *)(void *)x->r.result + y->at + (v0 + first_of(d, &t->to, 0)) * y->mem[0] +
                       first_of(d, &t->to, 1) * y->mem[1]
                 : k->to + depth_offset(&d->to, 1, p, v);
    s.y_row = direct ? y->mem[1] : d->to.pitch;
    s.strips = conv_ceil(t->to.count[2], lanes);
    s.x_strip = s.y_strip = lanes;
    for (int64_t c = 0; c < t->to.channels; c++) {
        sum_plane(d, t, s);
        s.x += d->from.floats * (inputs ? d->each : 1);
        s.y += direct ? y->channel : d->to.floats;
        s.w += d->each * d->taps * lanes;
    }
}

/* Forward: the planes of filter `filter` of each channel of a block. Inputs: its planes of x, phase by
 * phase. */
static void sum_planes(const struct depth_call *x, const struct scratch *k, const struct part *t,
                       int64_t filter,
                       const struct depth_result *y)
{
    const struct depth *d = x->d;
    const int64_t *n = d->to.phases;
    const bool direct = d->in_place && plain(x) && y->mem[2] == 1;
    for (int64_t v0 = 0; v0 < t->to.count[0]; v0++) {
        for (int64_t p0 = 0; p0 < n[0]; p0++) {
            for (int64_t p1 = 0; p1 < n[1]; p1++) {
                for (int64_t p2 = 0; p2 < n[2]; p2++) {
                    sum_phase(x, k, t, filter, (int64_t[]){ p0, p1, p2 }, v0, y, direct);
                }
            }
        }
    }
    if (!direct) {
        mc_depth_copy_out(x, &d->to, &t->to, y);
    }
}

/* Runs the epilogue on the elements of the result that a part computes. */
static void finish(const struct depth_call *x, const struct part *t)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const struct depth_side *to = &x->d->to;
    const int b = x->d->band_axis;
    const int64_t each = s->pass == CONV_FORWARD ? x->d->each : 1;
    int64_t at[5] = { t->n, t->c * each, 0, 0, 0 };
    int64_t size[5] = { 1, t->to.channels * each, to->size[0], to->size[1], to->size[2] };
    const int64_t from = t->to.first * to->step[b] + to->origin[b],
                  past = from + t->to.count[b] * to->step[b];
    at[2 + b] = MC_MAX(from, (int64_t)0);
    size[2 + b] = MC_MIN(past, to->size[b]) - at[2 + b];
    if (size[2 + b] > 0) {
        conv_finish(&x->r, at, size);
    }
}

static void xy_task(void *arg, int64_t task, int slot)
{
    const struct depth_call *x = arg;
    const struct depth *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    const int64_t pieces = p->s.n * d->bands;
    const struct scratch k = scratch_of(x, slot);
    const struct part t = part_of(x, task / pieces, task % pieces);
    const bool forward = p->s.pass == CONV_FORWARD;
    const int64_t *mem = forward ? p->at.y : p->at.x, at = t.n * mem[0];
    pack_filters(x, &k, &t);
    if (!d->straight) {
        copy_source(x, &k, &t);
    }
    if (d->form == DEPTH_CHANNELS) {
        sum_channels(x, &k, &t, &(struct depth_result){ NULL, at + t.c * mem[1], mem[1], mem + 2 });
    } else {
        const int64_t each = forward ? d->each : 1;
        for (int64_t e = 0; e < each; e++) {
            sum_planes(
                x, &k, &t, e,
                &(struct depth_result){ k.to, at + (t.c * each + e) * mem[1], each * mem[1], mem + 2 });
        }
    }
    finish(x, &t);
}

/* ---- weights ---- */

/* All taps of one filter of each channel over planes of x and y that begin at `from` and `y`. */
static void dot_taps(const struct depth *d, int64_t filter, struct mc_depth_dots q)
{
    int64_t chunks = conv_ceil(d->taps, DEPTH_DOTS);
    q.sum_tap = tap_step(d);
    for (int64_t t = filter * d->taps, left = d->taps; left > 0; chunks--) {
        q.taps = (int)conv_ceil(left, chunks);
        q.at = d->at + t;
        for (int64_t v = 0; v < d->width; v += d->kernel->lanes) {
            struct mc_depth_dots one = q;
            one.x += v;
            one.y += v;
            one.sum = q.sum + t * q.sum_tap + v;
            d->kernel->dots(&one);
        }
        t += q.taps;
        left -= q.taps;
    }
}

static void add_part(const struct depth_call *x, const struct scratch *k, const struct part *t)
{
    const struct depth *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    const int64_t lanes = d->kernel->lanes, *mem = p->at.y + 2;
    const bool channels = d->form == DEPTH_CHANNELS,
               direct = channels ? t->to.channels == d->width && !d->turned : d->in_place && mem[2] == 1;
    const struct depth_operand from = operand_of(x, CONV_X, t->n, t->c);
    mc_depth_copy_in(d, &d->from, &t->from, k->from, &from);
    for (int64_t e = 0; e < d->each; e++) {
        struct depth_operand o = operand_of(x, CONV_Y, t->n, t->c * d->each + e);
        o.channel *= d->each;
        const float *y = k->to;
        if (direct) {
            y = o.at + first_of(d, &t->to, 0) * mem[0] + first_of(d, &t->to, 1) * mem[1] +
                first_of(d, &t->to, 2) * mem[2];
        } else {
            mc_depth_copy_in(d, &d->to, &t->to, k->to, &o);
        }
        for (int64_t v0 = 0; v0 < t->to.count[0]; v0++) {
            struct mc_depth_dots q = {
                .x = k->from + depth_offset(&d->from, d->width, (int64_t[3]){ 0 }, (int64_t[]){ v0, 0, 0 }),
                .y = y + v0 * (direct ? mem[0] : d->to.len[1] * d->to.pitch),
                .sum = k->sums,
                .x_row = d->from.pitch,
                .y_row = direct ? mem[1] : d->to.pitch,
                .x_strip = channels ? d->width : lanes,
                .y_strip = !channels ? lanes : direct ? mem[2] : d->width,
                .rows = t->to.count[1],
                .strips = channels ? t->to.count[2] : t->to.count[2] / lanes,
                .tail = channels ? 0 : (int)(t->to.count[2] % lanes),
            };
            for (int64_t c = 0; c < (channels ? 1 : t->to.channels); c++) {
                dot_taps(d, e, q);
                q.x += d->from.floats;
                q.y += direct ? o.channel : d->to.floats;
                q.sum += d->each * d->taps * lanes;
            }
        }
    }
}

static double *partial(const struct depth_call *x, int64_t block, int64_t part)
{
    const struct depth *d = x->d;
    char *at = x->r.workspace + (size_t)d->slots * d->slot_bytes;
    return (double *)(void *)at + (block * d->parts + part) * d->planes * d->each * d->taps * d->width;
}

/* Sums of an image's band are in float32, one for each lane; those of bands are added in order in float64. */
static void weights_task(void *arg, int64_t task, int slot)
{
    const struct depth_call *x = arg;
    const struct depth *d = x->d;
    const struct scratch k = scratch_of(x, slot);
    const int64_t block = task / d->parts, part = task % d->parts, pieces = x->r.p->s.n * d->bands;
    const int64_t all = d->planes * d->each * d->taps * d->width, step = tap_step(d) / d->width;
    double *total = partial(x, block, part);
    memset(total, 0, (size_t)all * sizeof *total);
    for (int64_t piece = pieces * part / d->parts; piece < pieces * (part + 1) / d->parts; piece++) {
        const struct part t = part_of(x, block, piece);
        memset(k.sums, 0, (size_t)(all * step) * sizeof *k.sums);
        add_part(x, &k, &t);
        for (int64_t i = 0; i < all; i++) { /* step: the lanes of a number, 1 where lanes are channels */
            double sum = 0;
            for (int64_t lane = 0; lane < step; lane++) {
                sum += (double)k.sums[i * step + lane];
            }
            total[i] += sum;
        }
    }
}

static void finish_weights(const struct depth_call *x, int64_t block)
{
    const struct depth *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t some = d->width * d->planes, c = block * some, channels = MC_MIN(some, s->c - c),
                  taps = d->each * d->taps, filter = d->each * x->r.p->at.w[0];
    const float *c0 = (const float *)(const void *)x->r.c0;
    const double *first = partial(x, block, 0), alpha = x->r.p->alpha, beta = x->r.p->beta;
    for (int64_t j = 0; j < channels; j++) {
        for (int64_t i = 0; i < taps; i++) {
            const int64_t at = (c + j) * filter + d->w[i];
            const double *from = first + (d->form == DEPTH_CHANNELS ? i * d->width + j : j * taps + i);
            double sum = 0;
            for (int64_t part = 0; part < d->parts; part++) {
                sum += from[part * taps * some];
            }
            ((float *)(void *)x->r.result)[at] = (float)(alpha * sum + (c0 ? beta * (double)c0[at] : 0));
        }
    }
    conv_finish(&x->r, (int64_t[]){ c * d->each, 0, 0, 0, 0 },
                (int64_t[]){ channels * d->each, 1, s->k[0], s->k[1], s->k[2] });
}

/* ---- the call ---- */

mc_status mc_depth_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct depth *d = (const struct depth *)(const void *)plan;
    struct depth_call x = { d, mc_conv_bind(plan, operand, workspace, threads), { 0 } };
    struct mc_extent e[5];
    mc_conv_extents(x.r.p, e);
    for (int role = CONV_X; role <= CONV_Y; role++) {
        x.extent[role] = e[role].count - e[role].before;
    }
    const int64_t tasks = x.r.p->s.pass == CONV_WEIGHTS ? d->parts : x.r.p->s.n * d->bands;
    for (int slot = 0; slot < d->slots; slot++) {
        const struct scratch k = scratch_of(&x, slot);
        *k.block = -1;
        if (d->turned) { /* the borders stay zero */
            memset(k.from, 0, (size_t)d->from.floats * sizeof *k.from);
        }
    }
    mc_team_tasks(x.r.p->s.pass == CONV_WEIGHTS ? weights_task : xy_task, &x, d->blocks * tasks, d->slots,
                  x.r.threads, mc_conv_work(x.r.p));
    for (int64_t block = 0; x.r.p->s.pass == CONV_WEIGHTS && block < d->blocks; block++) {
        finish_weights(&x, block);
    }
    return MC_OK;
}
