/* grouped.c: grouped convolutions with few channels in a group.  So many groups are woven that their channels
 * fill whole vectors (grouped.h); such a unit of channels is copied with the zeros around it, woven, and the
 * result is unwoven.
 *
 * Along an axis, position I of a phase r of the result is element I * phases + r - start of it, and tap `a`
 * reads element I * step + off(a) - before of the source:
 *
 *   forward, weights   phases 1, start 0, step: the stride, off(a) = a * dilation, before: the border
 *   inputs             phases: the stride, start: the border, step 1; tap a is of phase
 *                      a * dilation % stride,
 *                      e = a * dilation / stride, off = reach - e, before = reach, the largest e
 *
 * Columns of the copy are apart by their phase of `step`, so that the kernel never sees a stride.
 *
 * Invariant: what a unit's copy has around the source is zero from the start of a call. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/conv/cpu/grouped/grouped.h"
#include "heavy/conv/cpu/depthwise/depthwise.h"
#include "heavy/conv/solver.h"
#include <math.h>
#include <stdlib.h>

enum {
    LINE = 64,
    SLOTS = 1024,
    BAND = 65536,    /* floats of the copies of a band */
    TOGETHER = 4,    /* units: so many cache lines that are adjacent */
    MOST = 1 << 20,  /* most floats of a copy */
    SHORT = 512,     /* positions whose products are summed in float32: more are less precise */
    TASKS = 32,
    TAPS = 256,      /* most taps of a filter */
    MANY = 64,       /* most channels of a group */
};

struct side {
    /* count: positions of a phase; reach: the largest off */
    int64_t step, phases, before, start, count, reach;
};
struct grouped {
    struct mc_plan base;
    const struct mc_grouped_kernel *kernel;
    const struct mc_depth_kernel *turns; /* of the same vectors */
    int64_t each, units, width; /* channels of a group; units of `weave` groups, of so many channels */
    int weave;
    bool last;                  /* the source has its channels innermost */
    int64_t together;           /* units whose copies are made at the same time, if channels are innermost */
    struct side side[2];
    int64_t len, pitch;         /* positions of a phase of columns in the copy; floats of a line */
    int64_t bands, rows, lines; /* rows: positions of a phase of the result in a band */
    int *place;                 /* of each source element of the lines in the copy, as positions */
    int *place_y;               /* weights: the same of y */
    struct grouped_run *run;    /* by phase of the result */
    int64_t *first, *tap;       /* first run of each phase; w's offset of each tap, in the order of runs */
    int32_t in[GROUPED_WIDTH], out[GROUPED_WIDTH];     /* lanes of the woven and of the unwoven position */
    bool pairs;                 /* they are indices of pairs of vectors */
    int32_t w_lane[2][GROUPED_WIDTH];                  /* where in w each lane is; [1]: in the last unit */
    int64_t parts;              /* weights: of images and bands */
    int64_t copy, sums, filter; /* floats; filter: numbers of the filters of a unit */
    size_t w_bytes, slot_bytes;
    int slots;
};
struct call {
    const struct grouped *d;
    struct mc_conv_run r;
    float *w;     /* packed filters */
    double *sums; /* weights: (part, unit, filter) */
    bool *clean;  /* by slot: its copy has zeros around */
};

/* ---- planning ---- */

static const struct mc_grouped_kernel *kernel(void)
{
    return mc_grouped_avx512 && mc_isa_runs(ISA_AVX512) ? mc_grouped_avx512
           : mc_grouped_avx2 && mc_isa_runs(ISA_AVX2)   ? mc_grouped_avx2
                                                        : NULL;
}

static int64_t common(int64_t a, int64_t b)
{
    return b ? common(b, a % b) : a;
}

static int64_t phase_of(const struct mc_conv_shape *s, int axis, int64_t a)
{
    return s->pass == CONV_INPUTS ? a * s->dilation[axis] % s->stride[axis] : 0;
}

static int64_t off_of(const struct side *side, const struct mc_conv_shape *s, int axis, int64_t a)
{
    return s->pass == CONV_INPUTS ? side->reach - a * s->dilation[axis] / s->stride[axis]
                                  : a * s->dilation[axis];
}

static const int64_t *source_size(const struct mc_conv_shape *s)
{
    return s->pass == CONV_INPUTS ? s->out : s->in;
}

static const int64_t *result_size(const struct mc_conv_shape *s)
{
    return s->pass == CONV_INPUTS ? s->in : s->out;
}

static void measure(struct grouped *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t lanes = d->kernel->lanes;
    const bool inputs = s->pass == CONV_INPUTS;
    d->turns = lanes == 16 ? mc_depth_avx512 : mc_depth_avx2;
    d->each = s->c / s->groups;
    d->weave = (int)(lanes / common(d->each, lanes));
    d->last = (inputs ? p->at.y : p->at.x)[1] == 1;
    d->units = conv_ceil(s->groups, d->weave);
    d->width = d->each * d->weave;
    for (int i = 0; i < 2; i++) {
        const int64_t stride = s->stride[1 + i], far = (s->k[1 + i] - 1) * s->dilation[1 + i],
                      pad = s->pad[1 + i];
        d->side[i] = inputs ? (struct side){ 1,
                                             stride,
                                             far / stride,
                                             pad,
                                             conv_ceil(s->in[1 + i] + pad, stride),
                                             far / stride }
                            : (struct side){ stride, 1, pad, 0, s->out[1 + i], far };
    }
    const struct side *rows = &d->side[0], *columns = &d->side[1];
    d->len = MC_MAX(columns->count + columns->reach / columns->step,
                    (source_size(s)[2] - 1 + columns->before) / columns->step + 1);
    d->pitch = d->len * columns->step * d->width;
    d->together = d->last ? MC_MIN(d->units, (int64_t)TOGETHER) : 1;
    int64_t most = MC_MAX((BAND / (d->together > 1 ? 1 : 4) / d->together / d->pitch - rows->reach) /
                              rows->step,
                          MC_MIN(rows->count, (int64_t)4));
    if (s->pass == CONV_WEIGHTS) {
        most = MC_MIN(most, SHORT / s->out[2]);
    }
    d->bands = conv_ceil(rows->count, MC_MAX(most, (int64_t)1));
    d->rows = conv_ceil(rows->count, d->bands);
    d->bands = conv_ceil(rows->count, d->rows);
    d->lines = (d->rows - 1) * rows->step + rows->reach + 1;
    d->copy = d->lines * d->pitch;
    d->sums = s->pass == CONV_WEIGHTS ? d->rows * (s->out[2] + 2 * (GROUPED_TAPS - 1)) * d->width
                                      : d->rows * rows->phases * result_size(s)[2] * d->width;
    d->filter = conv_volume(s->k) * d->each * d->width;
    d->parts = MC_MIN(s->n * d->bands, conv_ceil(TASKS, conv_ceil(d->units, d->together)));
    d->slot_bytes = ((size_t)(d->together * (d->copy + d->sums)) * sizeof(float) + LINE - 1) / LINE * LINE;
    d->w_bytes = s->pass == CONV_WEIGHTS ? (size_t)(d->parts * d->units * d->filter) * sizeof(double)
                                         : (size_t)(d->units * d->filter) * sizeof(float);
    d->w_bytes = (d->w_bytes + LINE - 1) / LINE * LINE;
}

/* Indices of pairs in place of lanes. */
static void pair_lanes(int32_t *lane, int32_t lanes)
{
    static const int pair[3][2] = GROUPED_PAIRS;
    for (int32_t l = 0; l < 3 * lanes; l++) {
        lane[l] = lane[l] % lanes + (lane[l] / lanes == pair[l / lanes][1] ? lanes : 0);
    }
}

static void list_lanes(struct grouped *d, const struct mc_conv_problem *p)
{
    const int64_t last = p->s.groups - (d->units - 1) * d->weave, *w = p->at.w;
    for (int64_t l = 0; l < d->width; l++) {
        const int64_t g = l % d->weave, c = l / d->weave;
        d->in[l] = (int32_t)(g * d->each + c);
        d->out[g * d->each + c] = (int32_t)l;
        for (int i = 0; i < 2; i++) { /* lanes of groups that are not there are never written */
            const int64_t own = i && g >= last ? 0 : g;
            d->w_lane[i][l] = (int32_t)(own * d->each * w[0] + c * (p->s.pass == CONV_INPUTS ? w[1] : w[0]));
        }
    }
    d->pairs = d->kernel->pairs && d->weave == 2 && d->width == 3 * d->kernel->lanes;
    if (d->pairs) {
        pair_lanes(d->in, d->kernel->lanes);
        pair_lanes(d->out, d->kernel->lanes);
    }
}

/* A tap of a row: its column phase and position in the copy. */
struct column_tap { int64_t phase, at, a; };

static int by_place(const void *a_, const void *b_)
{
    const struct column_tap *a = a_, *b = b_;
    return a->phase != b->phase ? (a->phase > b->phase) - (a->phase < b->phase)
                                : (a->at > b->at) - (a->at < b->at);
}

/* Appends the runs of a row of taps at a line of the copy, for a phase of columns. n: taps before */
static int64_t list_row(struct grouped *d, const struct mc_conv_problem *p, int64_t rx, int64_t a0, int64_t n,
                        int64_t *runs)
{
    const struct mc_conv_shape *s = &p->s;
    const struct side *columns = &d->side[1];
    const int64_t vectors = d->width / d->kernel->lanes, parts = (vectors + 2) / 3;
    const int most = s->pass == CONV_WEIGHTS ? GROUPED_TAPS : d->kernel->taps[conv_ceil(vectors, parts)];
    struct column_tap list[TAPS];
    int64_t count = 0;
    for (int64_t a = 0; a < s->k[2]; a++) {
        const int64_t off = off_of(columns, s, 2, a);
        if (phase_of(s, 2, a) == rx) {
            list[count++] = (struct column_tap){ off % columns->step, off / columns->step, a };
        }
    }
    qsort(list, (size_t)count, sizeof list[0], by_place);
    for (int64_t i = 0; i < count; i++) {
        struct grouped_run *last = d->run + *runs - 1;
        const bool follows = i > 0 && list[i].phase == list[i - 1].phase &&
                             list[i].at == list[i - 1].at + 1 && last->taps < most;
        if (!follows) {
            last = d->run + (*runs)++;
            *last = (struct grouped_run){ .at = off_of(&d->side[0], s, 1, a0) * d->pitch +
                                                (list[i].phase * d->len + list[i].at) * d->width,
                                          .w = n * d->each * d->width };
        }
        last->taps++;
        d->tap[n++] = conv_tap(s, 1, a0) * p->at.w[3] + conv_tap(s, 2, list[i].a) * p->at.w[4];
    }
    return n;
}

static void list_runs(struct grouped *d, const struct mc_conv_problem *p)
{
    int64_t n = 0, runs = 0, phase = 0;
    for (int64_t ry = 0; ry < d->side[0].phases; ry++) {
        for (int64_t rx = 0; rx < d->side[1].phases; rx++) {
            d->first[phase++] = runs;
            for (int64_t a = 0; a < p->s.k[1]; a++) {
                if (phase_of(&p->s, 1, a) == ry) {
                    n = list_row(d, p, rx, a, n, &runs);
                }
            }
        }
    }
    d->first[phase] = runs;
}

static void list_places(struct grouped *d, const struct mc_conv_problem *p)
{
    const struct side *columns = &d->side[1];
    const int64_t in = source_size(&p->s)[2], out = p->s.out[2];
    for (int64_t i = 0; i < d->lines * in; i++) {
        const int64_t at = i % in + columns->before;
        d->place[i] = (int)((i / in * columns->step + at % columns->step) * d->len + at / columns->step);
    }
    for (int64_t i = 0; d->place_y && i < d->rows * out; i++) {
        d->place_y[i] = (int)(i / out * (out + 2 * (GROUPED_TAPS - 1)) + GROUPED_TAPS - 1 + i % out);
    }
}

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
            float some[GROUPED_WIDTH * TOGETHER] = { 0 };
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
    struct mc_grouped_mix mix = { .to = sums, .from = sums, .lane = d->weave > 1 ? d->out : NULL, .to_step = width,
                                  .from_step = width, .width = width, .count = n, .units = m->units,
                                  .to_unit = unit, .from_unit = unit, .pairs = d->pairs };
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
static void inside(const struct side *side, int64_t size, int64_t r, int64_t *lo, int64_t *hi)
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
    const struct side *rows = &d->side[0], *columns = &d->side[1];
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
    const struct side *rows = &d->side[0];
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

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct grouped *d = (const struct grouped *)(const void *)plan;
    bool clean[SLOTS] = { false };
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

static void prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                    int threads)
{
    const struct grouped *d = (const struct grouped *)(const void *)plan;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads), .w = prepared };
    mc_team_tasks(pack_unit, &x, d->units, threads, threads, mc_conv_work(x.r.p) / 8);
}

/* ---- the solver ---- */

static void release(struct mc_plan *plan)
{
    struct grouped *d = (struct grouped *)(void *)plan;
    mc_free(d->place);
    mc_free(d->place_y);
    mc_free(d->run);
    mc_free(d->first);
    mc_free(d->tap);
}

/* False: out of memory. */
static bool list(struct grouped *d, const struct mc_conv_problem *p)
{
    const int64_t taps = conv_volume(p->s.k), phases = d->side[0].phases * d->side[1].phases;
    const bool weights = p->s.pass == CONV_WEIGHTS;
    d->place = mc_alloc((size_t)(d->lines * source_size(&p->s)[2]) * sizeof *d->place, "plans");
    d->place_y = weights ? mc_alloc((size_t)(d->rows * p->s.out[2]) * sizeof *d->place_y, "plans") : NULL;
    d->run = mc_calloc((size_t)taps, sizeof *d->run, "plans");
    d->first = mc_alloc((size_t)(phases + 1) * sizeof *d->first, "plans");
    d->tap = mc_alloc((size_t)taps * sizeof *d->tap, "plans");
    if (!d->place || (weights && !d->place_y) || !d->run || !d->first || !d->tap) {
        return false;
    }
    list_lanes(d, p);
    list_runs(d, p);
    list_places(d, p);
    return true;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct grouped *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = release;
    d->kernel = kernel();
    measure(d, p);
    if (!list(d, p)) {
        release(&d->base);
        mc_free(d);
        return NULL;
    }
    const size_t cap = p_->options.workspace;
    if (p->w_stays && p->s.pass != CONV_WEIGHTS) {
        d->base.prepared = d->w_bytes;
        d->base.prepare = prepare;
    }
    d->slots = (int)MC_MAX(MC_MIN((size_t)mc_team_size(), (cap - MC_MIN(d->w_bytes, cap)) / d->slot_bytes),
                           (size_t)1);
    d->slots = MC_MIN(d->slots, SLOTS);
    d->base.workspace = d->w_bytes + (size_t)d->slots * d->slot_bytes;
    return &d->base;
}

/* Positions are one after another, as planes or with channels innermost. */
static bool takes(const int64_t stride[5], const int64_t size[3])
{
    const bool planes = (stride[4] == 1 || size[2] == 1) && (size[1] == 1 || stride[3] == size[2]);
    return stride[1] == 1 || planes;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct grouped d = { .kernel = kernel() };
    if (mc_conv_not_plain(p)) {
        return mc_conv_not_plain(p);
    }
    if (!d.kernel) {
        return "needs AVX2";
    }
    if (s->c != s->f || s->groups < 2 || s->c / s->groups > MANY || s->c == s->groups) {
        return "takes groups of 2 to 64 channels and as many filters";
    }
    if (!takes(p->at.x, s->in) || !takes(p->at.y, s->out)) {
        return "takes dense planes, or channels that are adjacent";
    }
    if (s->pad[1] < 0 || s->pad[2] < 0 || conv_volume(s->k) > TAPS) {
        return "takes no negative border, and at most 256 taps";
    }
    if ((double)s->f * fabs((double)p->at.w[0]) > INT32_MAX || p->at.w[0] < 0 || p->at.w[1] < 0) {
        return "takes filters in rising order";
    }
    measure(&d, p);
    if (d.weave > d.kernel->most || d.width > GROUPED_WIDTH) {
        return "takes groups whose channels are in few vectors";
    }
    if (d.copy > MOST || d.sums > MOST) {
        return "takes rows of which a band has at most 2^20 numbers";
    }
    return d.w_bytes + d.slot_bytes > p_->options.workspace
               ? "needs more workspace than the flag workspace allows"
               : NULL;
}

/* It serves where solvers are timed. A number takes half a cycle to copy. */
static double estimate(const struct mc_problem *p_)
{
    const double never = 1e3;
    if (mc_flag_int(FLAG_plan) == PLAN_ESTIMATE) {
        return never;
    }
    const struct mc_conv_problem *p = conv(p_);
    struct grouped d = { .kernel = kernel() };
    measure(&d, p);
    const double waste = (double)(d.units * d.width) / (double)p->s.c,
                 math = waste * mc_conv_flops(p) / 0.7 / mc_conv_peak(p),
                 copied = waste * mc_conv_bytes(p) / 4 * 0.15e-9,
                 seconds = math + copied + mc_conv_copy(mc_conv_bytes(p));
    return 1e-6 + seconds / mc_conv_threads(seconds, (double)(p->s.n * d.units * d.bands));
}

const struct mc_solver mc_conv_grouped = {
    .name = "grouped", .refuse = refuse, .estimate = estimate, .plan = plan,
};
