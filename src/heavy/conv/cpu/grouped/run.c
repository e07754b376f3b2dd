/* run.c: a call of a grouped convolution: units are copied with the zeros around them, woven, multiplied, and
 * the results unwoven.
 *
 * Invariant: what a unit's copy has around the source is zero from the start of a call. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/conv/cpu/grouped/plan.h"

struct call {
    const struct grouped *d;
    struct mc_conv_run r;
    float *w;     /* packed filters */
    double *sums; /* weights: (part, unit, filter) */
    bool *clean;  /* by slot: its copy has zeros around */
};

/* ---- copies ---- */

/* An array of planes, or of positions with channels innermost, and which of its elements are an image's
 * units. */
struct image {
    const int64_t *stride, *size;
    int64_t channel, channels, at; /* at: of the first, in floats */
    int64_t units;
};

static struct image image_of(const struct call *x, bool of_x, int64_t n, int64_t unit, int64_t units)
{
    const struct mc_conv_problem *p = x->r.p;
    struct image m = { of_x ? p->at.x : p->at.y, of_x ? p->s.in : p->s.out, unit * x->d->width, 0, 0, units };
    m.channels = MC_MIN(units * x->d->width, p->s.c - m.channel);
    m.at = n * m.stride[0] + m.channel * m.stride[1];
    return m;
}

/* Rows [row, row + count) of the image, position by position, to places in `to`, and so for each unit, `unit`
 * floats apart. */
static void weave_in(const struct grouped *d, const struct image *m, const float *from, int64_t row,
                     int64_t count, const int *place, float *to, int64_t unit)
{
    const int64_t columns = m->size[2], width = d->width;
    const int32_t *lane = d->weave > 1 ? d->in : NULL;
    struct mc_grouped_mix mix = { .lane = lane, .to_step = width, .from_step = width, .width = width,
                                  .units = m->units, .to_unit = unit, .from_unit = width, .pairs = d->pairs };
    from += m->at + row * m->stride[3];
    for (int64_t u = 0; u < m->units && m->stride[1] != 1; u++, to += unit) { /* planes */
        d->turns->turn_in(&(struct mc_depth_turn){ .to = to,
                                                   .from = from + u * width * m->stride[1],
                                                   .place = place,
                                                   .channel = m->stride[1],
                                                   .channels = MC_MIN(m->channels - u * width, width),
                                                   .n = count * columns,
                                                   .width = width });
        mix.units = mix.count = 1;
        for (int64_t i = 0; i < count * columns && lane; i++) {
            mix.to = to + place[i] * width;
            mix.from = mix.to;
            d->kernel->mix(&mix);
        }
    }
    for (int64_t i = 0; i < count && m->stride[1] == 1; i++) {
        const float *line = from + i * m->stride[3];
        /* what follows the last channels is read where there is something, and goes to lanes of no group */
        if ((m->size[1] - 1 - row - i) * m->stride[3] >= m->units * width - m->channels) {
            mix.to = to, mix.from = line, mix.place = place + i * columns, mix.count = columns;
            mix.from_step = m->stride[4];
            d->kernel->mix(&mix);
            continue;
        }
        for (int64_t j = 0; j < columns; j++) {
            float some[GROUPED_WIDTH * GROUPED_TOGETHER] = { 0 };
            memcpy(some, line + j * m->stride[4], (size_t)m->channels * sizeof *some);
            mix.to = to + place[i * columns + j] * width, mix.from = some, mix.place = NULL, mix.count = 1;
            d->kernel->mix(&mix);
        }
    }
}

static void add_c0(const struct call *x, const struct image *m, float *sums, int64_t row, int64_t rows,
                   int64_t unit)
{
    const float *c0 = (const float *)(const void *)x->r.c0 + m->at, beta = (float)x->r.p->beta;
    const int64_t width = x->d->width;
    for (int64_t i = 0; i < rows * m->size[2]; i++) {
        const float *from = c0 + (row + i / m->size[2]) * m->stride[3] + i % m->size[2] * m->stride[4];
        for (int64_t c = 0; c < m->channels; c++) {
            sums[c / width * unit + i * width + c % width] += beta * from[c * m->stride[1]];
        }
    }
}

/* The sums of whole rows, to the result; those of each unit `unit` floats apart. */
static void weave_out(const struct call *x, const struct image *m, float *sums, int64_t row, int64_t rows,
                      int64_t unit)
{
    const struct grouped *d = x->d;
    const int64_t columns = m->size[2], n = rows * columns, width = d->width;
    const bool last = m->stride[1] == 1, whole = m->channels == m->units * width;
    float *to = (float *)(void *)x->r.result + m->at + row * m->stride[3];
    struct mc_grouped_mix mix = { .to = sums, .from = sums, .lane = d->weave > 1 ? d->out : NULL,
                                  .to_step = width, .from_step = width, .width = width, .count = n,
                                  .units = m->units, .to_unit = unit, .from_unit = unit, .pairs = d->pairs };
    if (mix.lane && (!last || !whole || x->r.c0)) {
        d->kernel->mix(&mix);
        mix.lane = NULL;
    }
    if (x->r.c0) {
        add_c0(x, m, sums, row, rows, unit);
    }
    for (int64_t u = 0; u < m->units && !last; u++) {
        d->turns->turn_out(&(struct mc_depth_turn){ .to = to + u * width * m->stride[1],
                                                    .from = sums + u * unit,
                                                    .channel = m->stride[1],
                                                    .channels = MC_MIN(m->channels - u * width, width),
                                                    .n = n,
                                                    .width = width });
    }
    mix.to_unit = width, mix.to_step = m->stride[4], mix.count = columns;
    for (int64_t i = 0; i < rows && last; i++, to += m->stride[3], sums += columns * width) {
        if (whole) {
            mix.to = to, mix.from = sums;
            d->kernel->mix(&mix);
            continue;
        }
        for (int64_t j = 0; j < columns * m->units; j++) {
            const int64_t u = j % m->units, left = MC_MIN(m->channels - u * width, width);
            memcpy(to + j / m->units * m->stride[4] + u * width, sums + u * unit + j / m->units * width,
                   (size_t)left * sizeof *to);
        }
    }
}

/* The lines that positions [at, at + count) of a phase read, of the units from `unit` on. */
static void copy_source(const struct call *x, int64_t n, int64_t unit, int64_t units, int64_t at,
                        int64_t count, float *copy)
{
    const struct grouped *d = x->d;
    const bool inputs = x->r.p->s.pass == CONV_INPUTS;
    const struct image m = image_of(x, !inputs, n, unit, units);
    const int64_t first = at * d->side[0].step - d->side[0].before,
                  lines = (count - 1) * d->side[0].step + d->side[0].reach + 1,
                  lo = MC_MIN(MC_MAX(-first, (int64_t)0), lines),
                  hi = MC_MAX(MC_MIN(m.size[1] - first, lines), lo);
    for (int64_t u = 0; u < units; u++) {
        memset(copy + u * d->copy, 0, (size_t)(lo * d->pitch) * sizeof *copy);
        memset(copy + u * d->copy + hi * d->pitch, 0, (size_t)((lines - hi) * d->pitch) * sizeof *copy);
    }
    if (hi > lo) {
        weave_in(d, &m, (const float *)(const void *)x->r.at[inputs ? CONV_Y : CONV_X], first + lo, hi - lo,
                 d->place, copy + lo * d->pitch, d->copy);
    }
}

/* ---- filters ---- */

static void pack_unit(void *arg, int64_t unit, int slot)
{
    const struct call *x = arg;
    const struct grouped *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    const int64_t runs = d->first[d->side[0].phases * d->side[1].phases],
                  channel = p->at.w[p->s.pass == CONV_INPUTS ? 0 : 1];
    const float *w = (const float *)(const void *)x->r.at[CONV_W] + unit * d->weave * d->each * p->at.w[0],
                alpha = (float)p->alpha;
    const int64_t *tap = d->tap;
    float *to = x->w + unit * d->filter;
    (void)slot;
    for (int64_t i = 0; i < runs; tap += d->run[i++].taps) {
        for (int64_t c = 0; c < d->each; c++) {
            for (int t = 0; t < d->run[i].taps; t++, to += d->width) {
                d->kernel->gather(to, w + c * channel + tap[t], d->w_lane[unit == d->units - 1], d->width);
            }
        }
    }
    to = x->w + unit * d->filter;
    for (int64_t i = 0; i < d->filter && (alpha < 1 || alpha > 1); i++) {
        to[i] *= alpha;
    }
}

/* ---- forward and inputs ---- */

/* Elements of the result are positions [*lo, *hi) of phase r. */
static void inside(const struct grouped_side *side, int64_t size, int64_t r, int64_t *lo, int64_t *hi)
{
    *lo = MC_MAX(*lo, conv_ceil(side->start - r, side->phases));
    *hi = MC_MIN(*hi, conv_ceil(size + side->start - r, side->phases));
}

static float *begin(const struct call *x, int slot)
{
    float *copy = (float *)(void *)(x->r.workspace + x->d->w_bytes + (size_t)slot * x->d->slot_bytes);
    if (!x->clean[slot]) { /* by the thread that uses it */
        memset(copy, 0, x->d->slot_bytes);
        x->clean[slot] = true;
    }
    return copy;
}

/* A band of a unit. */
struct band {
    int64_t unit, at, end, row; /* positions [at, end) of the phases; the first row of the result */
    const float *copy;
    float *sums;
    const int64_t *stride; /* of the result, if sums are stored there; NULL */
};

static void sum_phase(const struct call *x, const struct band *b, int64_t ry, int64_t rx)
{
    const struct grouped *d = x->d;
    const struct grouped_side *rows = &d->side[0], *columns = &d->side[1];
    const int64_t *size = result_size(&x->r.p->s), phase = ry * columns->phases + rx;
    int64_t lo = b->at, hi = b->end, left = 0, right = columns->count;
    inside(rows, size[1], ry, &lo, &hi);
    inside(columns, size[2], rx, &left, &right);
    const int64_t column = b->stride ? b->stride[4] : d->width,
                  line = b->stride ? b->stride[3] : size[2] * d->width;
    if (lo >= hi || left >= right) {
        return;
    }
    const int64_t to = lo * rows->phases + ry - rows->start - b->row;
    d->kernel->rows(
        &(struct mc_grouped_rows){
            .run = d->run + d->first[phase],
            .runs = d->first[phase + 1] - d->first[phase],
            .x = b->copy + (lo - b->at) * rows->step * d->pitch + left * d->width,
            .w = x->w + b->unit * d->filter,
            .to = b->sums + to * line + (left * columns->phases + rx - columns->start) * column,
            .lane = b->stride ? d->out : NULL,
            .width = d->width,
            .channels = d->each,
            .rows = hi - lo,
            .count = right - left,
            .x_row = rows->step * d->pitch,
            .to_row = rows->phases * line,
            .to_step = columns->phases * column,
        },
        d->weave);
}

static void task(void *arg, int64_t i, int slot)
{
    const struct call *x = arg;
    const struct grouped *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const struct grouped_side *rows = &d->side[0];
    /* with channels innermost, all units of a band follow each other: its rows are then in the cache */
    const int64_t blocks = conv_ceil(d->units, d->together), rest = i % (blocks * d->bands),
                  n = i / (blocks * d->bands), band = d->last ? rest / blocks : rest % d->bands,
                  unit = (d->last ? rest % blocks : rest / d->bands) * d->together,
                  units = MC_MIN(d->units - unit, d->together);
    const int64_t at = band * d->rows, end = MC_MIN(at + d->rows, rows->count), *size = result_size(s);
    const int64_t row = MC_MIN(MC_MAX(at * rows->phases - rows->start, (int64_t)0), size[1]),
                  last = MC_MIN(MC_MAX(end * rows->phases - rows->start, row), size[1]);
    float *copy = begin(x, slot), *sums = copy + d->together * d->copy;
    if (row >= last) {
        return;
    }
    const struct image m = image_of(x, s->pass == CONV_INPUTS, n, unit, units);
    const bool stores = m.stride[1] == 1 && !x->r.c0 &&
                        (d->weave == 1 || d->width == d->kernel->lanes || d->pairs);
    const int64_t direct = stores ? m.channels / d->width : 0; /* units whose sums the kernel stores */
    float *result = (float *)(void *)x->r.result + m.at + row * m.stride[3];
    copy_source(x, n, unit, units, at, end - at, copy);
    for (int64_t u = 0; u < units; u++) {
        const struct band b = { unit + u, at, end, row, copy + u * d->copy,
                                u < direct ? result + u * d->width : sums + u * d->sums,
                                u < direct ? m.stride : NULL };
        for (int64_t phase = 0; phase < rows->phases * d->side[1].phases; phase++) {
            sum_phase(x, &b, phase / d->side[1].phases, phase % d->side[1].phases);
        }
    }
    if (direct < units) {
        const struct image last_units = image_of(x, s->pass == CONV_INPUTS, n, unit + direct, units - direct);
        weave_out(x, &last_units, sums + direct * d->sums, row, last - row, d->sums);
    }
    conv_finish(&x->r, (int64_t[]){ n, m.channel, 0, row, 0 },
                (int64_t[]){ 1, m.channels, 1, last - row, size[2] });
}

/* ---- weights ---- */

static void add_band(const struct call *x, int64_t n, int64_t unit, int64_t units, int64_t at, float *copy,
                     double *sums)
{
    const struct grouped *d = x->d;
    const int64_t count = MC_MIN(d->rows, d->side[0].count - at), out = x->r.p->s.out[2],
                  row = (out + 2 * (GROUPED_TAPS - 1)) * d->width;
    const struct image m = image_of(x, false, n, unit, units);
    float *y = copy + d->together * d->copy;
    copy_source(x, n, unit, units, at, count, copy);
    weave_in(d, &m, (const float *)(const void *)x->r.at[CONV_Y], at, count, d->place_y, y, d->sums);
    for (int64_t i = 0; i < units * d->first[1]; i++) {
        const int64_t u = i / d->first[1];
        const struct grouped_run *run = &d->run[i % d->first[1]];
        d->kernel->dots(&(struct mc_grouped_dots){ .x = copy + u * d->copy + run->at,
                                                   .y = y + u * d->sums + (GROUPED_TAPS - 1) * d->width,
                                                   .sums = sums + u * d->filter + run->w,
                                                   .taps = run->taps,
                                                   .width = d->width,
                                                   .channels = d->each,
                                                   .rows = count,
                                                   .count = out,
                                                   .x_row = d->side[0].step * d->pitch,
                                                   .y_row = row },
                        d->weave);
    }
}

static void sum_task(void *arg, int64_t i, int slot)
{
    const struct call *x = arg;
    const struct grouped *d = x->d;
    const int64_t blocks = conv_ceil(d->units, d->together), unit = i % blocks * d->together,
                  part = i / blocks, units = MC_MIN(d->units - unit, d->together),
                  all = x->r.p->s.n * d->bands;
    float *copy = begin(x, slot);
    double *sums = x->sums + (part * d->units + unit) * d->filter;
    memset(sums, 0, (size_t)(units * d->filter) * sizeof *sums);
    for (int64_t k = all * part / d->parts; k < all * (part + 1) / d->parts; k++) {
        add_band(x, k / d->bands, unit, units, k % d->bands * d->rows, copy, sums);
    }
}

/* Numbers [at, at + width) of the sums of a unit, one tap of one channel. */
static void write_lanes(const struct call *x, int64_t unit, int64_t at, int64_t e)
{
    const struct grouped *d = x->d;
    const int64_t groups = MC_MIN(x->r.p->s.groups - unit * d->weave, (int64_t)d->weave);
    const double alpha = x->r.p->alpha, beta = x->r.p->beta, *sums = x->sums + unit * d->filter + at;
    float *to = (float *)(void *)x->r.result + e;
    const float *c0 = x->r.c0 ? (const float *)(const void *)x->r.c0 + e : NULL;
    for (int64_t l = 0; l < d->width; l++) {
        double sum = sums[l];
        for (int64_t part = 1; part < d->parts; part++) {
            sum += sums[part * d->units * d->filter + l];
        }
        if (l % d->weave < groups) {
            const int64_t k = d->w_lane[0][l];
            to[k] = (float)(alpha * sum + (c0 ? beta * (double)c0[k] : 0));
        }
    }
}

static void write_unit(void *arg, int64_t unit, int slot)
{
    const struct call *x = arg;
    const struct grouped *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    const int64_t first = unit * d->weave * d->each, *tap = d->tap;
    int64_t at = 0;
    (void)slot;
    for (int64_t i = 0; i < d->first[1]; tap += d->run[i++].taps) {
        for (int64_t c = 0; c < d->each; c++) {
            for (int t = 0; t < d->run[i].taps; t++, at += d->width) {
                write_lanes(x, unit, at, first * p->at.w[0] + c * p->at.w[1] + tap[t]);
            }
        }
    }
    conv_finish(&x->r, (int64_t[]){ first, 0, 0, 0, 0 },
                (int64_t[]){ MC_MIN(d->width, p->s.f - first), d->each, 1, p->s.k[1], p->s.k[2] });
}

mc_status mc_grouped_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct grouped *d = (const struct grouped *)(const void *)plan;
    bool clean[GROUPED_SLOTS] = { false };
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads), .clean = clean };
    const double work = mc_conv_work(x.r.p);
    if (x.r.p->s.pass == CONV_WEIGHTS) {
        x.sums = (double *)(void *)x.r.workspace;
        mc_team_tasks(sum_task, &x, conv_ceil(d->units, d->together) * d->parts, d->slots, x.r.threads, work);
        mc_team_tasks(write_unit, &x, d->units, x.r.threads, x.r.threads, work / 8);
        return MC_OK;
    }
    x.w = (float *)(void *)x.r.prepared;
    if (!x.w) {
        x.w = (float *)(void *)x.r.workspace;
        mc_team_tasks(pack_unit, &x, d->units, x.r.threads, x.r.threads, work / 8);
    }
    mc_team_tasks(task, &x, x.r.p->s.n * conv_ceil(d->units, d->together) * d->bands, d->slots, x.r.threads,
                  work);
    return MC_OK;
}

void mc_grouped_prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                        int threads)
{
    const struct grouped *d = (const struct grouped *)(const void *)plan;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads), .w = prepared };
    mc_team_tasks(pack_unit, &x, d->units, threads, threads, mc_conv_work(x.r.p) / 8);
}
