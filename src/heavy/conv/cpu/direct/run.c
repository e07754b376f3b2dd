/* run.c: one call. Images are copied to padded planes, a chunk at a time, and summed there.
 *
 * Invariant: one task computes a block of the result, with all sums in one order. */
#include "heavy/conv/cpu/direct/plan.h"

enum { TERMS = 512 }; /* products that a register sums before the sum is added to memory */
struct call {
    const struct direct *d;
    struct mc_conv_run r;
    int64_t first, n;                   /* images of the chunk */
};

static float *at(const struct call *x, size_t offset)
{
    return (float *)(void *)(x->r.workspace + offset);
}

/* ---- copies ---- */

/* n adjacent floats, most often few. */
static void copy_few(float *to, const float *from, int64_t n)
{
    enum { PIECE = 8 };
    if (n < PIECE) {
        for (int64_t i = 0; i < n; i++) {
            to[i] = from[i];
        }
        return;
    }
    for (int64_t i = 0; i < n - PIECE; i += PIECE) {
        memcpy(to + i, from + i, PIECE * sizeof *to);
    }
    memcpy(to + n - PIECE, from + n - PIECE, PIECE * sizeof *to);
}

/* to[i] = from[i * step] */
static void copy_row(const struct direct *d, float *to, const float *from, int64_t n, int64_t step)
{
    if (step == 1) {
        copy_few(to, from, n);
    } else if (step == 2 && DIRECT_BY_VECTORS) {
        d->kernel->halve(to, from, n);
    } else {
        for (int64_t i = 0; i < n; i++) {
            to[i] = from[i * step];
        }
    }
}

static void copy_plane(const struct direct *d, float *to, int64_t size, const struct direct_axis axis[2],
                       const int64_t phase[2], const float *from, const int64_t *extent,
                       const int64_t *stride)
{
    int64_t lo[2], hi[2];
    memset(to, 0, (size_t)size * sizeof *to);
    for (int i = 0; i < 2; i++) {
        mc_direct_inside(&axis[i], phase[i], extent[i], &lo[i], &hi[i]);
    }
    const int64_t step = axis[1].stride * stride[1];
    for (int64_t u = lo[0]; u < hi[0] && lo[1] < hi[1]; u++) {
        const int64_t row = u * axis[0].stride + phase[0] - axis[0].before;
        const int64_t column = lo[1] * axis[1].stride + phase[1] - axis[1].before;
        const float *line = from + row * stride[0] + column * stride[1];
        copy_row(d, to + u * d->pitch + lo[1], line, hi[1] - lo[1], step);
    }
}

/* Copies the planes of channel c of image n of the source, from row `top` on. */
static void copy_channel(const struct call *x, int64_t n, int64_t c, int64_t top, float *to)
{
    const struct direct *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const bool inputs = s->pass == CONV_INPUTS;
    const int64_t *stride = inputs ? x->r.p->at.y : x->r.p->at.x, *extent = inputs ? s->out : s->in;
    const float *from = (const float *)(const void *)x->r.at[inputs ? CONV_Y : CONV_X] + n * stride[0] +
                        c * stride[1];
    struct direct_axis read[2] = { d->read[0], d->read[1] };
    read[0].before -= top * read[0].stride;
    read[0].count = MC_MIN(read[0].count - top, d->plane / d->pitch);
    for (int64_t phase = 0; phase * d->plane < d->channel; phase++) {
        const int64_t both[2] = { phase / d->read[1].stride, phase % d->read[1].stride };
        copy_plane(d, to + phase * d->plane, d->plane, read, both, from, extent + 1, stride + 3);
    }
}

/* A plane of rows as wide as y: what tap `column` of each row of phase `phase` reads at x. */
static void copy_column(const struct call *x, const float *from, int64_t phase, int64_t column, float *to)
{
    const struct direct *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *stride = x->r.p->at.x;
    int64_t lo[2], hi[2];
    mc_direct_inside(&d->read[0], phase, s->in[1], &lo[0], &hi[0]);
    mc_conv_range(s, 2, column, &lo[1], &hi[1]);
    const int64_t n = MC_MAX(hi[1] - lo[1], (int64_t)0), step = s->stride[2] * stride[4];
    from += (phase - d->read[0].before) * stride[3] + conv_at(s, 2, lo[1], column) * stride[4];
    if (lo[0] > 0 || hi[0] * d->pitch < d->plane || n < d->pitch) {
        memset(to, 0, (size_t)d->plane * sizeof *to);
    }
    for (int64_t u = lo[0]; u < hi[0] && n; u++) {
        const float *line = from + u * d->read[0].stride * stride[3];
        float *row = to + u * d->pitch + lo[1];
        copy_row(d, row, line, n, step);
    }
}

/* Copies the channels of group g of images [x->first, + x->n). */
static void copy_columns(const struct call *x, int64_t g, float *to)
{
    const struct direct *d = x->d;
    const int64_t *stride = x->r.p->at.x;
    for (int64_t i = 0; i < x->n * d->from; i++) {
        const float *from = (const float *)(const void *)x->r.at[CONV_X] +
                            (x->first + i / d->from) * stride[0] + (g * d->from + i % d->from) * stride[1];
        for (int64_t plane = 0; plane < d->read[0].stride * d->columns; plane++, to += d->plane) {
            copy_column(x, from, plane / d->columns, plane % d->columns, to);
        }
    }
}

static void source_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const int64_t channels = d->from * x->r.p->s.groups;
    (void)slot;
    copy_channel(x, x->first + task / channels, task % channels, 0, at(x, d->source_at) + task * d->channel);
}

static void dy_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *stride = x->r.p->at.y, none[2] = { 0, 0 };
    const int64_t n = x->first + task / s->f, f = task % s->f;
    const float *from = (const float *)(const void *)x->r.at[CONV_Y] + n * stride[0] + f * stride[1];
    (void)slot;
    copy_plane(d, at(x, d->dy_at) + task * d->dy, d->dy, d->write, none, from, s->out + 1, stride + 3);
}

/* Packed w: what was prepared, or this call's. */
static float *filters(const struct call *x)
{
    return x->r.prepared ? (float *)(void *)x->r.prepared : at(x, x->d->w_at);
}

/* Packs w of one block by phase, channel and tap as vectors of its rows, with zeros after the last row. */
static void w_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const bool inputs = x->r.p->s.pass == CONV_INPUTS;
    const int64_t g = task / d->blocks, row = task % d->blocks * d->block.rows, *stride = x->r.p->at.w;
    const int64_t to_step = stride[inputs ? 1 : 0], from_step = stride[inputs ? 0 : 1];
    const int64_t rows = MC_MIN(d->to - row, (int64_t)d->block.rows);
    const float *w = (const float *)(const void *)x->r.at[CONV_W] +
                     g * (inputs ? d->from : d->to) * stride[0];
    float *to = filters(x) + task * d->taps * d->from * d->block.rows;
    (void)slot;
    for (int64_t phase = 0; phase < d->phases; phase++) {
        for (int64_t k = 0; k < d->from; k++) {
            for (int64_t t = d->first[phase]; t < d->first[phase + 1]; t++, to += d->block.rows) {
                for (int64_t r = 0; r < d->block.rows; r++) {
                    to[r] = r < rows ? w[(row + r) * to_step + k * from_step + d->tap[t].w] : 0;
                }
            }
        }
    }
}

/* ---- forward and inputs ---- */

/* Computes all positions of one phase into out, whose rows are out_step apart, in pieces of channels that
 * keep sums short. */
static void sum_phase(const struct call *x, const float *source, const float *w, int64_t phase, int rows,
                      float *out, int64_t out_step)
{
    const struct direct *d = x->d;
    const int64_t taps = d->first[phase + 1] - d->first[phase], vectors = d->positions / d->kernel->lanes;
    const int64_t most = MC_MAX(TERMS / MC_MAX(taps, (int64_t)1), (int64_t)1),
                  calls = conv_ceil(vectors, d->block.vectors);
    int64_t k = 0;
    do {
        struct mc_direct_sum s = { .off = d->off + d->first[phase], .x_step = d->channel,
                                   .out_step = out_step, .channels = MC_MIN(most, d->from - k),
                                   .taps = taps, .rows = rows, .add = k > 0 };
        s.w = w + k * taps * d->block.rows;
        for (int64_t i = 0; i < calls; i++) {
            const int64_t v = vectors * i / calls, stop = vectors * (i + 1) / calls;
            s.x = source + k * d->channel + v * d->kernel->lanes;
            s.out = out + v * d->kernel->lanes;
            s.far = i == 0 ? d->far : 0;
            if (d->block.rows != DIRECT_ROWS) {
                d->kernel->sum_tall(&s, d->block.rows, (int)(stop - v));
            } else {
                d->kernel->sum(&s, (int)(stop - v));
            }
        }
        k += most;
    } while (k < d->from);
}

static void write_row(const struct call *x, int64_t e, int64_t step, const float *from, int64_t n)
{
    const float alpha = (float)x->r.p->alpha, beta = (float)x->r.p->beta;
    float *to = (float *)(void *)x->r.result + e;
    const float *c0 = x->r.c0 ? (const float *)(const void *)x->r.c0 + e : NULL;
    if (!c0 && step == 1) {
        for (int64_t i = 0; i < n && !DIRECT_BY_VECTORS; i++) {
            to[i] = alpha * from[i];
        }
        if (DIRECT_BY_VECTORS) {
            x->d->kernel->scale(to, from, n, alpha);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        to[i * step] = alpha * from[i] + (c0 ? beta * c0[i * step] : 0);
    }
}

/* Writes rows [top, top + d->rows) of a phase. */
static void write_phase(const struct call *x, int64_t n, int64_t channel, int64_t phase, int64_t top,
                        const float *from)
{
    const struct direct *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const bool inputs = s->pass == CONV_INPUTS;
    const int64_t *stride = inputs ? x->r.p->at.x : x->r.p->at.y, *extent = inputs ? s->in : s->out;
    const int64_t both[2] = { phase / d->write[1].stride, phase % d->write[1].stride };
    int64_t lo[2], hi[2];
    for (int i = 0; i < 2; i++) {
        mc_direct_inside(&d->write[i], both[i], extent[1 + i], &lo[i], &hi[i]);
    }
    for (int64_t u = MC_MAX(lo[0], top); u < MC_MIN(hi[0], top + d->rows); u++) {
        const int64_t row = u * d->write[0].stride + both[0] - d->write[0].before;
        const int64_t column = lo[1] * d->write[1].stride + both[1] - d->write[1].before;
        write_row(x, n * stride[0] + channel * stride[1] + row * stride[3] + column * stride[4],
                  d->write[1].stride * stride[4], from + (u - top) * d->pitch + lo[1], hi[1] - lo[1]);
    }
}

/* Writes rows [top, top + d->rows) of phase `row_phase` of the rows, of both phases of the columns. */
static void write_both(const struct call *x, int64_t n, int64_t channel, int64_t row_phase, int64_t top,
                       const float *const from[2])
{
    const struct direct *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    const int64_t first = d->write[1].before, *stride = p->at.x;
    float *to = (float *)(void *)x->r.result + n * stride[0] + channel * stride[1];
    int64_t lo, hi;
    mc_direct_inside(&d->write[0], row_phase, p->s.in[1], &lo, &hi);
    for (int64_t u = MC_MAX(lo, top); u < MC_MIN(hi, top + d->rows); u++) {
        const int64_t row = u * d->write[0].stride + row_phase - d->write[0].before,
                      at_row = (u - top) * d->pitch;
        d->kernel->weave(to + row * stride[3], from[first % 2] + at_row + first / 2,
                         from[(first + 1) % 2] + at_row + (first + 1) / 2, p->s.in[2], (float)p->alpha);
    }
}

/* Runs the epilogue on the rows of the result that all phases of a part make. */
static void finish_part(const struct call *x, int64_t n, int64_t channel, int rows, int64_t top)
{
    const struct direct *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *extent = s->pass == CONV_INPUTS ? s->in : s->out;
    const int64_t from = MC_MAX(top * d->write[0].stride - d->write[0].before, (int64_t)0);
    const int64_t to = MC_MIN((top + d->rows) * d->write[0].stride - d->write[0].before, extent[1]);
    if (from < to) {
        conv_finish(&x->r, (int64_t[]){ n, channel, 0, from, 0 },
                    (int64_t[]){ 1, rows, 1, to - from, extent[2] });
    }
}

/* Computes a block of one part. Row 0 of the source planes is the first one of the part. */
static void sum_block(const struct call *x, int64_t image, int64_t part, int64_t block, const float *source,
                      float *out)
{
    const struct direct *d = x->d;
    const int64_t groups = x->r.p->s.groups, g = image % groups, n = x->first + image / groups;
    const int64_t top = part * d->rows, row = block * d->block.rows;
    const int rows = (int)MC_MIN(d->to - row, (int64_t)d->block.rows);
    const float *w = filters(x) + (g * d->blocks + block) * d->taps * d->from * d->block.rows;
    if (d->in_place) {
        const int64_t *stride = x->r.p->at.y;
        sum_phase(x, source, w, 0, rows,
                  (float *)(void *)x->r.result + n * stride[0] + (g * d->to + row) * stride[1], stride[1]);
        finish_part(x, n, g * d->to + row, rows, top);
        return;
    }
    const bool both = DIRECT_BY_VECTORS && d->woven && !x->r.c0;
    for (int64_t phase = 0; phase < d->phases; phase++) {
        float *const sums = out + (both ? phase % 2 * d->block.rows * d->positions : 0);
        sum_phase(x, source, w + d->first[phase] * d->from * d->block.rows, phase, rows, sums, d->positions);
        for (int r = 0; r < rows && both && phase % 2; r++) {
            const float *const from[2] = { out + r * d->positions, sums + r * d->positions };
            write_both(x, n, g * d->to + row + r, phase / 2, top, from);
        }
        for (int r = 0; r < rows && !both; r++) {
            write_phase(x, n, g * d->to + row + r, phase, top, out + r * d->positions);
        }
    }
    finish_part(x, n, g * d->to + row, rows, top);
}

static void sum_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const int64_t block = task % d->blocks, part = task / d->blocks % d->parts,
                  image = task / d->blocks / d->parts;
    const float *source = at(x, d->source_at) + image * d->from * d->channel + part * d->rows * d->pitch;
    sum_block(x, image, part, block, source, at(x, d->slot_at + (size_t)slot * d->slot_bytes));
}

/* Computes all blocks of a part, from the task's own copy of the source. */
static void own_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const int64_t part = task % d->parts, image = task / d->parts, groups = x->r.p->s.groups;
    float *out = at(x, d->slot_at + (size_t)slot * d->slot_bytes), *source = out + direct_sums(d);
    struct call one = { .d = d, .r = x->r, .first = x->first + image / groups, .n = 1 };
    if (d->columns) {
        copy_columns(&one, image % groups, source);
    }
    for (int64_t k = 0; k < d->from && !d->columns; k++) {
        copy_channel(x, x->first + image / groups, image % groups * d->from + k, part * d->rows,
                     source + k * d->channel);
    }
    for (int64_t block = 0; block < d->blocks; block++) {
        sum_block(x, image, part, block, source, out);
    }
}

/* ---- weights: a task is a block of filters and one channel ---- */

static void dots_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t c = task % d->from, block = task / d->from, g = block / d->blocks, *stride = x->r.p->at.w;
    const int64_t f = g * d->to + block % d->blocks * DIRECT_ROWS,
                  some = MC_MAX(DIRECT_ENOUGH / d->positions, (int64_t)1);
    const int64_t vectors = d->positions / d->kernel->lanes, pieces = conv_ceil(d->positions, DIRECT_ENOUGH);
    const int rows = (int)MC_MIN((g + 1) * d->to - f, (int64_t)DIRECT_ROWS);
    const double alpha = x->r.p->alpha, beta = x->r.p->beta;
    const bool last = x->first + x->n == s->n;
    const float *source = at(x, d->source_at) + (g * d->from + c) * d->channel,
                *y = at(x, d->dy_at) + f * d->dy;
    (void)slot;
    for (int64_t t = 0; t < d->taps; t += d->kernel->most) {
        const int taps = (int)MC_MIN(d->taps - t, (int64_t)d->kernel->most);
        float part[DIRECT_ROWS][16];
        double sum[DIRECT_ROWS][16] = { { 0 } };
        struct mc_direct_dots q = {
            .out = part[0], .off = d->off + t, .x_image = s->c * d->channel, .y_image = s->f * d->dy,
            .y_step = d->dy, .out_step = 16, .rows = rows, .taps = taps,
        };
        for (int64_t i = 0; i < conv_ceil(x->n, some) * pieces; i++) {
            const int64_t n = i / pieces * some, v = vectors * (i % pieces) / pieces;
            q.images = MC_MIN(some, x->n - n);
            q.vectors = vectors * (i % pieces + 1) / pieces - v;
            q.x = source + n * q.x_image + v * d->kernel->lanes;
            q.y = y + n * q.y_image + v * d->kernel->lanes;
            d->kernel->dots(&q);
            for (int j = 0; j < rows * taps; j++) {
                sum[j / taps][j % taps] += part[j / taps][j % taps];
            }
        }
        for (int i = 0; i < rows * taps; i++) {
            const int64_t e = (f + i / taps) * stride[0] + c * stride[1] + d->tap[t + i % taps].w;
            float *to = (float *)(void *)x->r.result + e;
            const double before = x->first > 0 ? *to
                                  : x->r.c0    ? beta * ((const float *)(const void *)x->r.c0)[e]
                                               : 0;
            *to = (float)(alpha * sum[i / taps][i % taps] + before);
        }
    }
    if (last) {
        conv_finish(&x->r, (int64_t[]){ f, c, 0, 0, 0 }, (int64_t[]){ rows, 1, 1, s->k[1], s->k[2] });
    }
}

/* ---- weights of few filters: a task is a share of the images ---- */

/* Adds the sums of rows [f, f + rows) of y, whose first is at y, and of all channels of group g. */
static void add_rows_of(const struct call *x, int64_t f, struct mc_direct_dots *q, const float *source,
                        double *sums)
{
    const struct direct *d = x->d;
    const int64_t most = conv_ceil(d->taps, conv_ceil(d->taps, d->kernel->most));
    const int64_t vectors = d->positions / d->kernel->lanes, pieces = conv_ceil(d->positions, DIRECT_ENOUGH);
    const float *const y = q->y;
    float part[DIRECT_ROWS][16];
    q->out = part[0];
    q->out_step = 16;
    q->images = x->n;
    q->x_image = d->from * d->channel;
    for (int64_t i = 0; i < pieces * d->from; i++) {
        const int64_t c = i % d->from, v = vectors * (i / d->from) / pieces;
        q->vectors = vectors * (i / d->from + 1) / pieces - v;
        q->y = y + v * d->kernel->lanes;
        q->x = source + c * d->channel + v * d->kernel->lanes;
        for (int64_t t = 0; t < d->taps; t += q->taps) {
            q->off = d->off + t;
            q->taps = (int)MC_MIN(d->taps - t, most);
            d->kernel->dots(q);
            for (int r = 0; r < q->rows; r++) {
                double *to = sums + ((f + r) * d->from + c) * d->taps + t;
                for (int k = 0; k < q->taps; k++) {
                    to[k] += part[r][k];
                }
            }
        }
    }
}

static void share_task(void *arg, int64_t task, int slot)
{
    struct call x = *(const struct call *)arg;
    const struct direct *d = x.d;
    const struct mc_conv_shape *s = &x.r.p->s;
    const int64_t *stride = x.r.p->at.y, none[2] = { 0, 0 }, end = s->n * (task + 1) / d->shares;
    char *own = x.r.workspace + d->slot_at + (size_t)slot * d->slot_bytes;
    float *source = (float *)(void *)(own + d->source_at), *dy = (float *)(void *)(own + d->dy_at);
    double *sums = (double *)(void *)(x.r.workspace + d->sums_at) + task * d->numbers;
    memset(sums, 0, (size_t)d->numbers * sizeof *sums);
    for (x.first = s->n * task / d->shares; x.first < end; x.first += x.n) {
        x.n = MC_MIN(d->images, end - x.first);
        for (int64_t block = 0; block < s->groups * d->blocks; block++) {
            const int64_t g = block / d->blocks, f = g * d->to + block % d->blocks * DIRECT_ROWS;
            const float *y = (const float *)(const void *)x.r.at[CONV_Y] + x.first * stride[0] +
                             f * stride[1];
            struct mc_direct_dots q = { .y = y, .y_image = stride[0], .y_step = stride[1] };
            q.rows = (int)MC_MIN((g + 1) * d->to - f, (int64_t)DIRECT_ROWS);
            if (block % d->blocks == 0) {
                copy_columns(&x, g, source);
            }
            for (int64_t i = 0; i < x.n * q.rows && !d->in_place; i++) {
                copy_plane(d, dy + i * d->dy, d->dy, d->write, none,
                           y + i / q.rows * stride[0] + i % q.rows * stride[1], s->out + 1, stride + 3);
                q.y = dy;
                q.y_image = q.rows * d->dy;
                q.y_step = d->dy;
            }
            add_rows_of(&x, f, &q, source, sums);
        }
    }
}

/* Adds the shares of filter f, in order. */
static void join_task(void *arg, int64_t f, int slot)
{
    const struct call *x = arg;
    const struct direct *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    const double *sums = (const double *)(const void *)(x->r.workspace + d->sums_at);
    (void)slot;
    for (int64_t i = 0; i < d->from * d->taps; i++) {
        const int64_t e = f * p->at.w[0] + i / d->taps * p->at.w[1] + d->tap[i % d->taps].w;
        double sum = 0;
        for (int64_t k = 0; k < d->shares; k++) {
            sum += sums[k * d->numbers + f * d->from * d->taps + i];
        }
        sum = p->alpha * sum + (x->r.c0 ? p->beta * ((const float *)(const void *)x->r.c0)[e] : 0);
        ((float *)(void *)x->r.result)[e] = (float)sum;
    }
    conv_finish(&x->r, (int64_t[]){ f, 0, 0, 0, 0 }, (int64_t[]){ 1, d->from, 1, p->s.k[1], p->s.k[2] });
}

/* ---- a call ---- */

void mc_direct_prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                       int threads)
{
    const struct direct *d = (const struct direct *)(const void *)plan;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    x.r.prepared = prepared;
    mc_team_tasks(w_task, &x, d->blocks * x.r.p->s.groups, x.r.threads, x.r.threads, mc_conv_work(x.r.p) / 8);
}

mc_status mc_direct_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct direct *d = (const struct direct *)(const void *)plan;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    const struct mc_conv_shape *s = &x.r.p->s;
    const double work = mc_conv_work(x.r.p) * (double)d->images / (double)s->n;
    const bool weights = s->pass == CONV_WEIGHTS;
    if (d->columns && weights) {
        const double seconds = mc_conv_work(x.r.p);
        mc_team_tasks(share_task, &x, d->shares, d->slots, x.r.threads, seconds);
        mc_team_tasks(join_task, &x, s->f, x.r.threads, x.r.threads, (double)(d->numbers * d->shares) * 1e-9);
        return MC_OK;
    }
    if (!weights && !x.r.prepared) {
        mc_team_tasks(w_task, &x, d->blocks * s->groups, x.r.threads, x.r.threads, work / 8);
    }
    for (x.first = 0; x.first < s->n; x.first += x.n) {
        x.n = MC_MIN(d->images, s->n - x.first);
        if (!d->own) {
            mc_team_tasks(source_task, &x, x.n * d->from * s->groups, x.r.threads, x.r.threads, work / 8);
        }
        if (weights) {
            mc_team_tasks(dy_task, &x, x.n * s->f, x.r.threads, x.r.threads, work / 8);
            mc_team_tasks(dots_task, &x, d->blocks * s->groups * d->from, x.r.threads, x.r.threads, work);
        } else if (d->own) {
            mc_team_tasks(own_task, &x, x.n * s->groups * d->parts, d->slots, x.r.threads, work);
        } else {
            mc_team_tasks(sum_task, &x, x.n * s->groups * d->parts * d->blocks, d->slots, x.r.threads, work);
        }
    }
    return MC_OK;
}
