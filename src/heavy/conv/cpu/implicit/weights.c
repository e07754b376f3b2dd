/* weights.c: the gradient of filters as an implicit product: rows are taps and channels of x, and a sum runs
 * over the positions of y, which is packed in panels. A task is a block of channels of a group and a part of
 * the blocks of positions; each part has its own sums, which are added in order at the end.
 *
 * Invariant: two tasks never write the same element. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* vectorise these loops at every -O level */
#endif
#include "heavy/conv/cpu/implicit/plan.h"

enum { FILTERS = 16 }; /* of a block of the result, read from adjacent sums */

static int64_t width_of(const struct implicit *d)
{
    return d->vectors * d->kernel->lanes;
}

/* A block of positions of one image, or all of some images. */
struct cell {
    int64_t image, u, count; /* the first image in the chunk; its first position; all positions */
};

/* Cells of the chunk. */
static int64_t count_cells(const struct implicit_call *x)
{
    return conv_ceil(x->n, x->d->grouped) * x->d->cells;
}

static struct cell cell_of(const struct implicit_call *x, int64_t i)
{
    const struct implicit *d = x->d;
    struct cell q = { .image = i / d->cells * d->grouped, .u = i % d->cells * d->cell };
    const int64_t images = MC_MIN(d->grouped, x->n - q.image);
    q.count = MC_MIN(images * d->phase[0].positions - q.u, d->cell);
    return q;
}

/* ---- y in panels: (group, image, block of positions, panel), each (position, lanes of the panel) ---- */

static float *packed_y(const struct implicit_call *x, int64_t g, const struct cell *q)
{
    const struct implicit *d = x->d;
    return implicit_floats(x, d->w_at) + ((g * x->n + q->image) * d->phase[0].positions + q->u) * width_of(d);
}

static void pack_task(void *arg, int64_t task, int slot)
{
    const struct implicit_call *x = arg;
    const struct implicit *d = x->d;
    const struct cell q = cell_of(x, task % count_cells(x));
    const int64_t *stride = x->r.p->at.y, lanes = d->kernel->lanes, g = task / count_cells(x);
    const float *from = (const float *)(const void *)x->r.at[CONV_Y] + (x->first + q.image) * stride[0] +
                        g * d->to * stride[1] + q.u * stride[4];
    float *to = packed_y(x, g, &q);
    (void)slot;
    for (int64_t i = 0; i < d->panels; i++) {
        const int64_t at = implicit_panel(d, i) * lanes, width = implicit_panel(d, i + 1) * lanes - at;
        const int64_t columns = MC_MIN(d->to - at, width);
        for (int64_t u = 0, n; u < q.count; u += n) {
            n = MC_MIN(d->phase[0].positions - q.u, q.count - u);
            d->kernel->pack(to + at * q.count + u * width,
                            from + at * stride[1] + u / d->phase[0].positions * stride[0], stride[1],
                            stride[4], columns, n, width);
        }
    }
}

/* ---- sums ---- */

struct block {
    const struct implicit_call *x;
    int64_t g, block;
    const int32_t *row; /* (taps, channels): offsets in the source */
    float *sums;        /* (taps, channels, width) */
};

/* Narrows the positions [*lo, *hi) to those at which some of the rows [r, last] reads inside of x, in whole
 * lines. */
static void positions_inside(const struct block *b, int64_t r, int64_t last, int64_t *lo, int64_t *hi)
{
    const struct implicit *d = b->x->d;
    const struct implicit_axis *a = d->phase[0].axis;
    const int64_t channels = implicit_block(d, b->block), k2 = a[2].taps;
    if (!d->copies || d->by_channel || d->grouped > 1 || a[0].count > 1 ||
        r / channels / k2 != last / channels / k2) {
        return;
    }
    const int64_t at = a[1].from + a[1].at[r / channels / k2 % a[1].taps];
    *lo = MC_MAX(*lo, conv_ceil(-at, a[1].stride) * a[2].count);
    *hi = MC_MIN(*hi, conv_ceil(b->x->r.p->s.in[1] - at, a[1].stride) * a[2].count);
}

/* Adds the products of a block of positions to all sums of the block. */
static void add_cell(const struct block *b, const struct cell *q, bool first)
{
    const struct implicit *d = b->x->d;
    const int64_t lanes = d->kernel->lanes, width = width_of(d);
    const int64_t rows = d->phase[0].taps * implicit_block(d, b->block);
    const float *y = packed_y(b->x, b->g, q);
    struct mc_gemm_tile t = { .alpha = 1, .beta = first ? 0 : 1, .c_row = width, .c0_row = width };
    t.a = implicit_source(b->x, q->image, b->g) + b->block * d->block * d->stride[0];
    for (int64_t i = 0; i < d->panels; i++) {
        const int64_t at = implicit_panel(d, i) * lanes;
        const int64_t vectors = implicit_panel(d, i + 1) - implicit_panel(d, i),
                      mr = d->kernel->gathered_mr[vectors];
        t.n = vectors * lanes;
        for (int64_t r = 0; r < rows; r += mr) {
            int64_t lo = q->u, hi = q->u + q->count;
            t.m = MC_MIN(rows - r, mr);
            positions_inside(b, r, r + t.m - 1, &lo, &hi);
            if (lo >= hi && !first) {
                continue;
            }
            lo = MC_MIN(lo, hi);
            t.k = hi - lo;
            t.a_rows = b->row + r;
            t.a_at = d->position + lo;
            t.b = y + at * q->count + (lo - q->u) * t.n;
            t.c0 = t.c = b->sums + r * width + at;
            d->kernel->gathered[vectors](&t);
        }
    }
}

static void sum_task(void *arg, int64_t task, int slot)
{
    const struct implicit_call *x = arg;
    const struct implicit *d = x->d;
    const int64_t groups = x->r.p->s.groups, part = task / d->blocks / groups;
    struct block b = { .x = x, .g = task / d->blocks % groups, .block = task % d->blocks };
    const int64_t taps = d->phase[0].taps, all = count_cells(x);
    (void)slot;
    b.row = d->phase[0].at[b.block == d->blocks - 1];
    b.sums = implicit_floats(x, d->sums_at) + part * d->sums +
             (b.g * d->from + b.block * d->block) * taps * width_of(d);
    bool first = x->first == 0;
    for (int64_t i = all * part / d->parts; i < all * (part + 1) / d->parts; i++, first = false) {
        const struct cell q = cell_of(x, i);
        add_cell(&b, &q, first);
    }
    if (first) { /* this part has no cell of the first chunk */
        memset(b.sums, 0, (size_t)(taps * implicit_block(d, b.block) * width_of(d)) * sizeof *b.sums);
    }
}

/* ---- the result ---- */

enum { CUT = 512 }; /* rows that are turned at a time */

/* to += the other parts of some rows and filters */
static void add_parts(const struct implicit *d, float *to, const float *sums, int64_t rows, int64_t n)
{
    for (int64_t part = 1; part < d->parts; part++) {
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t f = 0; f < n; f++) {
                to[r * FILTERS + f] += sums[part * d->sums + r * width_of(d) + f];
            }
        }
    }
}

static void write_run(float *to, const float *c0, const float *from, int64_t n, float alpha, float beta)
{
    for (int64_t i = 0; i < n && !c0; i++) {
        to[i] = alpha * from[i];
    }
    for (int64_t i = 0; i < n && c0; i++) {
        to[i] = alpha * from[i] + beta * c0[i];
    }
}

/* Rows [row, row + rows) of the block for n filters, the first of which is at e in w. turned: (n, rows) */
static void write_rows(const struct implicit_call *x, const float *turned, const int64_t *in_w, int64_t run,
                       int64_t row, int64_t rows, int64_t n, int64_t e)
{
    const float alpha = (float)x->r.p->alpha, beta = (float)x->r.p->beta;
    float *to = (float *)(void *)x->r.result + e;
    const float *c0 = x->r.c0 ? (const float *)(const void *)x->r.c0 + e : NULL;
    for (int64_t f = 0; f < n; f++) {
        const int64_t at = f * x->r.p->at.w[0];
        for (int64_t r = 0, some; r < rows; r += some) {
            some = MC_MIN(run - (row + r) % run, rows - r);
            const int64_t o = at + in_w[row + r];
            write_run(to + o, c0 ? c0 + o : NULL, turned + f * rows + r, some, alpha, beta);
        }
    }
}

static void write_task(void *arg, int64_t task, int slot)
{
    const struct implicit_call *x = arg;
    const struct implicit *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t block = task % d->blocks, g = task / d->blocks, *stride = x->r.p->at.w,
                  taps = d->phase[0].taps;
    const int64_t channels = implicit_block(d, block), first = block * d->block, width = width_of(d);
    const float *sums = implicit_floats(x, d->sums_at) + (g * d->from + first) * taps * width;
    const int64_t run = d->by_channel ? channels * taps : stride[1] == 1 ? channels : 1; /* adjacent in w */
    float some[CUT * FILTERS], turned[CUT * FILTERS];
    (void)slot;
    for (int64_t row = 0, rows; row < channels * taps; row += rows) {
        rows = MC_MIN(channels * taps - row, (int64_t)CUT);
        for (int64_t f = 0; f < d->to; f += FILTERS) {
            const int64_t n = MC_MIN(d->to - f, (int64_t)FILTERS);
            const float *from = sums + row * width + f;
            int64_t pitch = width;
            if (d->parts > 1) {
                for (int64_t r = 0; r < rows; r++) {
                    memcpy(some + r * FILTERS, from + r * width, (size_t)n * sizeof *some);
                }
                add_parts(d, some, from, rows, n);
                from = some, pitch = FILTERS;
            }
            d->kernel->pack(turned, from, pitch, 1, rows, n, rows);
            write_rows(x, turned, d->in_w[block == d->blocks - 1], run, row, rows, n,
                       (g * d->to + f) * stride[0] + first * stride[1]);
        }
    }
    conv_finish(&x->r, (int64_t[]){ g * d->to, first, 0, 0, 0 },
                (int64_t[]){ d->to, channels, s->k[0], s->k[1], s->k[2] });
}

mc_status mc_implicit_weights(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct implicit *d = (const struct implicit *)(const void *)plan;
    struct implicit_call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    const struct mc_conv_shape *s = &x.r.p->s;
    const double work = mc_conv_work(x.r.p) * (double)d->images / (double)s->n;
    for (x.first = 0; x.first < s->n; x.first += x.n) {
        x.n = MC_MIN(d->images, s->n - x.first);
        if (d->copies) {
            mc_implicit_copy(&x);
        }
        mc_team_tasks(pack_task, &x, s->groups * count_cells(&x), x.r.threads, x.r.threads, work / 8);
        mc_team_tasks(sum_task, &x, s->groups * d->blocks * d->parts, x.r.threads, x.r.threads, work);
    }
    mc_team_tasks(write_task, &x, s->groups * d->blocks, x.r.threads, x.r.threads, work / 8);
    return MC_OK;
}
