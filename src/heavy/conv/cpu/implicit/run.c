/* run.c: one call of an implicit product for forward and inputs: filters are packed, then a task computes a
 * block of positions of one image and group.
 *
 * A tile of positions leaves out the taps that read only zeros for all of them.
 *
 * Invariant: two tasks never write the same element. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/conv/cpu/implicit/plan.h"

/* a range of taps is cut along the last axis only if what is left has so many terms */
enum { LEAST_TERMS = 64, MOST_TILES = IMPLICIT_CELL / 4 };
/* The taps [lo, hi) of each axis that each tile of a block needs; where in an image of the result the tile
 * begins, if d->by_line: -1, its positions are in several lines. */
struct tiles {
    bool listed;
    int64_t lo[MOST_TILES][3], hi[MOST_TILES][3], at[MOST_TILES];
};
/* A block of positions: where they read, where they are in the result, and the taps of its tiles. */
struct cell {
    const struct implicit_call *x;
    const struct implicit_phase *f;
    int64_t n, g, u, count;
    int64_t panel, last;  /* panels [panel, last) */
    float *sums, *turned; /* (count, width of the panels); (IMPLICIT_TURNED, count) */
    int32_t row[IMPLICIT_CELL];
    struct tiles tiles[4]; /* by the vectors of a panel */
};

static int64_t lanes(const struct implicit *d)
{
    return d->kernel->lanes;
}

/* ---- packed filters: (group, phase, block, panel), each (tap, channel, lanes of the panel) ---- */

struct panel {
    float *to;
    const float *from; /* the panel's first column, at the block's first channel */
    int64_t columns, width, channels, column_step, channel_step;
};

static int64_t tap_in_w(const struct mc_conv_problem *p, const struct implicit_phase *f, int64_t t)
{
    const struct implicit_axis *a = f->axis;
    const int64_t *w = p->at.w + 2;
    return a[0].w[t / a[2].taps / a[1].taps] * w[0] + a[1].w[t / a[2].taps % a[1].taps] * w[1] +
           a[2].w[t % a[2].taps] * w[2];
}

/* Channels and taps of a filter are adjacent: all are turned at once, then rows are put in order. */
static void pack_adjacent(const struct implicit_call *x, const struct implicit_phase *f,
                          const struct panel *q, float *turned)
{
    const int64_t taps = f->taps;
    x->d->kernel->pack(turned, q->from, q->column_step, 1, q->columns, taps * q->channels, q->width);
    for (int64_t t = 0; t < taps; t++) {
        const float *from = turned + tap_in_w(x->r.p, f, t) * q->width;
        for (int64_t c = 0; c < q->channels; c++) {
            memcpy(q->to + (t * q->channels + c) * q->width, from + c * taps * q->width,
                   (size_t)q->width * sizeof *from);
        }
    }
}

/* One tap of a block of channels. */
static void pack_tap(const struct implicit_call *x, const struct implicit_phase *f, const struct panel *q,
                     int64_t t)
{
    x->d->kernel->pack(q->to + t * q->channels * q->width, q->from + tap_in_w(x->r.p, f, t), q->column_step,
                       q->channel_step, q->columns, q->channels, q->width);
}

/* Packs a panel, so that each filter is read from front to back. */
static void pack_task(void *arg, int64_t task, int slot)
{
    const struct implicit_call *x = arg;
    const struct implicit *d = x->d;
    const struct mc_conv_problem *p = x->r.p;
    const bool inputs = p->s.pass == CONV_INPUTS;
    const int64_t panel = task % d->panels, phase = task / d->panels % d->phases,
                  g = task / d->panels / d->phases;
    const struct implicit_phase *f = &d->phase[phase];
    const int64_t *stride = p->at.w, taps = conv_volume(p->s.k), width = d->vectors * lanes(d);
    const int64_t at = implicit_panel(d, panel) * lanes(d), end = implicit_panel(d, panel + 1) * lanes(d);
    const bool adjacent = !inputs && taps > 1 && stride[1] == taps && mc_conv_dense_inner(p, CONV_W, 3);
    struct panel q = { .column_step = stride[inputs ? 1 : 0], .channel_step = stride[inputs ? 0 : 1] };
    q.width = end - at;
    q.columns = MC_MIN(d->to - at, q.width);
    float *to = implicit_filters(x) + g * d->from * taps * width + f->w_at;
    const float *from = (const float *)(const void *)x->r.at[CONV_W] +
                        g * (inputs ? d->from : d->to) * stride[0] + at * q.column_step;
    for (int64_t t = 0; t < (adjacent ? 1 : f->taps); t++) {
        for (int64_t block = 0; block < d->blocks; block++) {
            q.channels = implicit_block(d, block);
            q.to = to + (block * d->block * width + at * q.channels) * f->taps;
            q.from = from + block * d->block * q.channel_step;
            if (adjacent) {
                pack_adjacent(x, f, &q, implicit_floats(x, d->slot_at + (size_t)slot * d->slot_bytes));
            } else {
                pack_tap(x, f, &q, t);
            }
        }
    }
}

/* ---- tables of a block of positions ---- */

/* The taps [*lo, *hi) of an axis that read inside of the source from any of the positions [p, last]. */
static void taps_inside(const struct implicit_axis *a, int64_t extent, int64_t p, int64_t last, int64_t *lo,
                        int64_t *hi)
{
    *lo = a->taps, *hi = 0;
    for (int64_t t = 0; t < a->taps; t++) {
        const int64_t at = a->from + a->at[t];
        if (at + last * a->stride >= 0 && at + p * a->stride < extent) {
            *lo = MC_MIN(*lo, t);
            *hi = t + 1;
        }
    }
    *lo = MC_MIN(*lo, *hi);
}

/* Position p, n positions later: divisions would take longer than a small tile's sums. */
static void advance(const struct implicit_phase *f, int64_t p[3], int64_t n)
{
    p[2] += n;
    while (p[2] >= f->axis[2].count) {
        p[2] -= f->axis[2].count;
        if (++p[1] == f->axis[1].count) {
            p[1] = 0;
            p[0]++;
        }
    }
}

/* The taps that tile `tile`, from position p to position `to` of the phase, needs. */
static void taps_of(const struct cell *q, struct tiles *list, int64_t tile, const int64_t p[3],
                    const int64_t to[3])
{
    const struct implicit *d = q->x->d;
    const struct mc_conv_shape *s = &q->x->r.p->s;
    const int64_t *extent = s->pass == CONV_INPUTS ? s->out : s->in;
    bool same = true; /* the positions differ along the last axes only */
    for (int i = 0; i < 3; i++) {
        const struct implicit_axis *a = &q->f->axis[i];
        const bool cut = d->cuts[i] && same && (i < 2 || a->taps * d->block >= LEAST_TERMS);
        list->lo[tile][i] = 0, list->hi[tile][i] = a->taps;
        if (cut) {
            taps_inside(a, extent[i], p[i], to[i], &list->lo[tile][i], &list->hi[tile][i]);
        }
        same = same && p[i] == to[i];
    }
}

static void list_cell(struct cell *q)
{
    const struct implicit *d = q->x->d;
    const struct implicit_phase *f = q->f;
    const int64_t step = f->axis[2].stride * d->stride[3];
    int64_t p[3];
    mc_implicit_position(f, q->u, p);
    for (int64_t i = 0; i < q->count;) {
        const int64_t at = mc_implicit_window(d, f, p), n = MC_MIN(f->axis[2].count - p[2], q->count - i);
        for (int64_t j = 0; j < n; j++) {
            q->row[i + j] = (int32_t)(at + j * step);
        }
        advance(f, p, n);
        i += n;
    }
}

static const int64_t *result_strides(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_INPUTS ? p->at.x : p->at.y;
}

/* Where in an image of the result position p of the phase is. */
static int64_t result_at(const struct cell *q, const int64_t p[3])
{
    const int64_t *stride = result_strides(q->x->r.p);
    int64_t at = 0;
    for (int k = 0; k < 3; k++) {
        at += (q->f->axis[k].first + p[k] * q->f->axis[k].step) * stride[2 + k];
    }
    return at;
}

/* Panels of different widths have tiles of different heights. */
static void list_tiles(const struct cell *q, struct tiles *list, int64_t mr)
{
    const struct implicit *d = q->x->d;
    const bool counted = d->cuts[0] || d->cuts[1] || d->cuts[2] || d->by_line;
    int64_t p[3] = { 0 }, to[3] = { 0 };
    if (list->listed) {
        return;
    }
    if (counted) {
        mc_implicit_position(q->f, q->u, p);
    }
    for (int64_t i = 0, tile = 0; i < q->count; i += mr, tile++) {
        if (counted) {
            memcpy(to, p, sizeof to);
            advance(q->f, to, MC_MIN(mr, q->count - i) - 1);
        }
        taps_of(q, list, tile, p, to);
        list->at[tile] = p[0] == to[0] && p[1] == to[1] ? result_at(q, p) : -1;
        if (counted) {
            advance(q->f, p, mr);
        }
    }
    list->listed = true;
}

/* ---- sums ---- */

/* Adds the products of taps [first, first + n). */
static void add_taps(const struct cell *q, struct mc_gemm_tile *t, const float *w, int64_t block,
                     int64_t first, int64_t n)
{
    const struct implicit *d = q->x->d;
    const int64_t channels = implicit_block(d, block), width = conv_ceil(t->n, lanes(d)) * lanes(d);
    t->k = n * channels;
    t->b = w + first * channels * width;
    t->a_at = q->f->at[block == d->blocks - 1] + first * channels;
    d->kernel->gathered[conv_ceil(t->n, lanes(d))](t);
    t->beta = 1;
    t->c0 = t->c;
    t->c0_row = t->c_row;
}

static void sum_tile(const struct cell *q, struct mc_gemm_tile *t, const int64_t lo[3], const int64_t hi[3],
                     const float *w, int64_t block)
{
    const int64_t k1 = q->f->axis[1].taps, k2 = q->f->axis[2].taps;
    const bool whole2 = hi[2] - lo[2] == k2, whole = whole2 && hi[1] - lo[1] == k1;
    if (whole || lo[0] == hi[0] || lo[1] == hi[1] || lo[2] == hi[2]) {
        add_taps(q, t, w, block, lo[0] * k1 * k2, whole ? (hi[0] - lo[0]) * k1 * k2 : 0);
        return;
    }
    for (int64_t i = lo[0]; i < hi[0]; i++) {
        if (whole2) {
            add_taps(q, t, w, block, (i * k1 + lo[1]) * k2, (hi[1] - lo[1]) * k2);
            continue;
        }
        for (int64_t j = lo[1]; j < hi[1]; j++) {
            add_taps(q, t, w, block, (i * k1 + j) * k2 + lo[2], hi[2] - lo[2]);
        }
    }
}

/* Where the kernel stores the tile's first row and adds to what. */
static void aim(const struct cell *q, struct mc_gemm_tile *t, const struct tiles *list, int64_t i,
                int64_t tile, int64_t panel, int64_t block)
{
    const struct implicit *d = q->x->d;
    const struct mc_conv_run *r = &q->x->r;
    const int64_t *stride = result_strides(r->p), column = implicit_panel(d, panel) * lanes(d);
    const int64_t first = implicit_panel(d, q->panel) * lanes(d),
                  panels = implicit_panel(d, q->last) * lanes(d);
    t->n = implicit_panel(d, panel + 1) * lanes(d) - column;
    if (d->direct || (d->by_line && list->at[tile] >= 0)) {
        const int64_t at = (q->x->first + q->n) * stride[0] + q->g * d->to + column +
                           (d->direct ? (q->u + i) * stride[4] : list->at[tile]);
        t->n = MC_MIN(d->to - column, t->n);
        t->alpha = r->p->alpha;
        t->c = (float *)(void *)r->result + at;
        t->c_row = t->c0_row = (d->direct ? 1 : q->f->axis[2].step) * stride[4];
        t->beta = block ? 1 : r->c0 ? r->p->beta : 0;
        t->c0 = block || !r->c0 ? t->c : (const float *)(const void *)r->c0 + at;
        return;
    }
    t->alpha = 1;
    t->beta = block > 0;
    t->c0 = t->c = q->sums + i * (panels - first) + column - first;
    t->c0_row = t->c_row = panels - first;
}

static void write_rows(const struct cell *q, int64_t i, int64_t m, const float *sums, int64_t column,
                       int64_t columns);

static void sum_panel(struct cell *q, int64_t panel, int64_t block, const float *w)
{
    const struct implicit *d = q->x->d;
    const int64_t vectors = implicit_panel(d, panel + 1) - implicit_panel(d, panel),
                  mr = d->kernel->gathered_mr[vectors], column = implicit_panel(d, panel) * lanes(d);
    struct tiles *list = &q->tiles[vectors];
    struct mc_gemm_tile t = { .a = implicit_source(q->x, q->n, q->g) + block * d->block * d->stride[0] };
    list_tiles(q, list, mr);
    for (int64_t i = 0, tile = 0; i < q->count; i += mr, tile++) {
        t.m = MC_MIN(q->count - i, mr);
        t.a_rows = q->row + i;
        aim(q, &t, list, i, tile, panel, block);
        const float *sums = t.c;
        sum_tile(q, &t, list->lo[tile], list->hi[tile], w, block);
        if (d->by_line && list->at[tile] < 0 && block == d->blocks - 1) {
            write_rows(q, i, t.m, sums, column, MC_MIN(d->to - column, vectors * lanes(d)));
        }
    }
}

/* ---- the result, from sums ---- */

static void write_run(float *to, const float *c0, const float *from, int64_t n, int64_t step, float alpha,
                      float beta)
{
    if (!c0 && step == 1) {
        for (int64_t i = 0; i < n; i++) {
            to[i] = alpha * from[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        to[i * step] = alpha * from[i] + (c0 ? beta * c0[i * step] : 0);
    }
}

/* The positions [i, i + *n) of the cell that lie in a row; returns where in the image the first one is. */
static int64_t run_of(const struct cell *q, int64_t i, int64_t *n)
{
    int64_t u[3];
    mc_implicit_position(q->f, q->u + i, u);
    *n = MC_MIN(q->f->axis[2].count - u[2], q->count - i);
    return result_at(q, u);
}

/* Positions [i, i + m) of the cell, adjacent channels from `column` of the group on. */
static void write_rows(const struct cell *q, int64_t i, int64_t m, const float *sums, int64_t column,
                       int64_t columns)
{
    const struct implicit *d = q->x->d;
    const struct mc_conv_run *r = &q->x->r;
    const int64_t *stride = result_strides(r->p), end = i + m;
    const int64_t width = (implicit_panel(d, q->last) - implicit_panel(d, q->panel)) * lanes(d),
                  step = q->f->axis[2].step * stride[4],
                  at = (q->x->first + q->n) * stride[0] + q->g * d->to + column;
    float *to = (float *)(void *)r->result + at;
    const float *c0 = r->c0 ? (const float *)(const void *)r->c0 + at : NULL;
    for (int64_t n; i < end; i += n) {
        const int64_t off = run_of(q, i, &n);
        n = MC_MIN(n, end - i);
        for (int64_t j = 0; j < n; j++, sums += width) {
            const int64_t e = off + j * step;
            write_run(to + e, c0 ? c0 + e : NULL, sums, columns, 1, (float)r->p->alpha, (float)r->p->beta);
        }
    }
}

/* Planes: the sums are turned. */
static void write_cell(const struct cell *q)
{
    const struct implicit *d = q->x->d;
    const struct mc_conv_run *r = &q->x->r;
    const int64_t *stride = result_strides(r->p);
    const int64_t column = implicit_panel(d, q->panel) * lanes(d),
                  last = implicit_panel(d, q->last) * lanes(d), width = last - column,
                  columns = MC_MIN(last, d->to) - column;
    const int64_t at = (q->x->first + q->n) * stride[0] + (q->g * d->to + column) * stride[1];
    const int64_t step = q->f->axis[2].step * stride[4];
    const float alpha = (float)r->p->alpha, beta = (float)r->p->beta;
    float *to = (float *)(void *)r->result + at;
    const float *c0 = r->c0 ? (const float *)(const void *)r->c0 + at : NULL;
    for (int64_t j = 0; j < columns; j += IMPLICIT_TURNED) {
        const int64_t some = MC_MIN(columns - j, (int64_t)IMPLICIT_TURNED);
        d->kernel->pack(q->turned, q->sums + j, width, 1, q->count, some, q->count);
        for (int64_t i = 0, n; i < q->count; i += n) {
            const int64_t off = run_of(q, i, &n);
            for (int64_t k = 0; k < some; k++) {
                const int64_t e = off + (j + k) * stride[1];
                write_run(to + e, c0 ? c0 + e : NULL, q->turned + k * q->count + i, n, step, alpha, beta);
            }
        }
    }
}

/* ---- tasks ---- */

static void sum_cell(struct cell *q)
{
    const struct implicit *d = q->x->d;
    const int64_t width = d->vectors * lanes(d);
    const float *w = implicit_filters(q->x) + q->g * d->from * conv_volume(q->x->r.p->s.k) * width +
                     q->f->w_at;
    list_cell(q);
    for (int i = 0; i < 4; i++) {
        q->tiles[i].listed = false;
    }
    for (int64_t block = 0; block < d->blocks; block++) {
        const int64_t terms = implicit_block(d, block) * q->f->taps;
        for (int64_t i = q->panel; i < q->last; i++) {
            sum_panel(q, i, block, w + implicit_panel(d, i) * lanes(d) * terms);
        }
        w += terms * width;
    }
    if (!d->direct && !d->by_line) {
        write_cell(q);
    }
}

static void cell_task(void *arg, int64_t task, int slot)
{
    const struct implicit_call *x = arg;
    const struct implicit *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t part = task % d->parts, cell = task / d->parts % d->cells,
                  image = task / d->parts / d->cells;
    struct cell q = { .x = x, .n = image / s->groups, .g = image % s->groups };
    q.panel = d->panels * part / d->parts, q.last = d->panels * (part + 1) / d->parts;
    q.turned = implicit_floats(x, d->slot_at + (size_t)slot * d->slot_bytes);
    q.sums = q.turned + d->cell * IMPLICIT_TURNED;
    const int64_t column = implicit_panel(d, q.panel) * lanes(d),
                  columns = MC_MIN(implicit_panel(d, q.last) * lanes(d), d->to) - column;
    const int64_t channel = q.g * d->to + column, n = x->first + q.n;
    for (int64_t i = 0; i < d->phases; i++) {
        q.f = &d->phase[i];
        const int64_t first = cell * d->cell, end = d->phases == 1 ? first + d->cell : q.f->positions;
        for (q.u = first; q.u < MC_MIN(end, q.f->positions); q.u += d->cell) {
            q.count = MC_MIN(q.f->positions - q.u, d->cell);
            sum_cell(&q);
        }
    }
    if (d->phases == 1) {
        const int64_t first = cell * d->cell;
        mc_conv_finish_positions(&x->r, n, channel, columns, first,
                                 MC_MIN(d->phase[0].positions - first, d->cell));
    } else {
        conv_finish(&x->r, (int64_t[]){ n, channel, 0, 0, 0 },
                    (int64_t[]){ 1, columns, s->in[0], s->in[1], s->in[2] });
    }
}

void mc_implicit_prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                         int threads)
{
    const struct implicit *d = (const struct implicit *)(const void *)plan;
    struct implicit_call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    x.r.prepared = prepared;
    mc_team_tasks(pack_task, &x, x.r.p->s.groups * d->phases * d->panels, d->slots, x.r.threads,
                  mc_conv_work(x.r.p) / 8);
}

mc_status mc_implicit_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct implicit *d = (const struct implicit *)(const void *)plan;
    struct implicit_call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    const struct mc_conv_shape *s = &x.r.p->s;
    const double work = mc_conv_work(x.r.p) * (double)d->images / (double)s->n;
    if (!x.r.prepared) {
        mc_team_tasks(pack_task, &x, s->groups * d->phases * d->panels, d->slots, x.r.threads, work / 8);
    }
    for (x.first = 0; x.first < s->n; x.first += x.n) {
        x.n = MC_MIN(d->images, s->n - x.first);
        if (d->copies) {
            mc_implicit_copy(&x);
        }
        mc_team_tasks(cell_task, &x, x.n * s->groups * d->cells * d->parts, d->slots, x.r.threads, work);
    }
    return MC_OK;
}
