/* rows.c: pooling where the columns of an image are contiguous: the windows of one row of the result at a
 * time.
 *
 * Invariant: windows that the border cuts are computed one by one. A mark that is not valid for its window is
 * taken as some cell of the window. */
#include "heavy/pool/solver.h"

enum { TABLE = 256 };
struct rows {
    struct mc_pool_planes planes;
    struct mc_pool_span whole[3];
    /* SPREAD, GATHER: offset of the cell with this mark in a window inside of the image */
    int64_t offset[TABLE];
};
/* What all rows of a plane share. */
struct columns {
    const struct mc_pool_problem *p;
    const struct mc_pool_plane *at;
    const struct rows *plan;
    const struct mc_pool_kernel *kernel;
    int64_t size, mark_size, from, to;  /* from, to: of whole[2] */
};
/* One row of the result, or several whose windows are not cut. clip: of the first row, along pooled axes 0
 * and 1. */
struct band {
    struct mc_pool_clip clip[2];
    int64_t bands;
    char *y, *key;
};

/* ---- columns and rows ---- */

static struct band row_band(const struct columns *c, int64_t u0, int64_t u1, int64_t bands)
{
    const struct mc_pool_grid *g = c->at->g;
    struct band b = { .clip = { pool_clip(g->s, 0, u0), pool_clip(g->s, 1, u1) }, .bands = bands };
    b.y = c->at->at[POOL_Y] + (u0 * g->slot[POOL_Y][0] + u1 * g->slot[POOL_Y][1]) * c->size;
    b.key = c->at->at[POOL_KEY]
                ? c->at->at[POOL_KEY] + (u0 * g->slot[POOL_KEY][0] + u1 * g->slot[POOL_KEY][1]) * c->mark_size
                : NULL;
    return b;
}

/* Calls kernel, or mc_pool_max where it is NULL, for n windows from column j on. The first has cells
 * [lo, lo + w); skip: the mark of its first cell. */
static void over_rows(const struct columns *c, const struct band *b, int64_t j, int64_t n, int64_t lo,
                      int64_t w, int64_t skip, mc_pool_row_kernel *kernel)
{
    const struct mc_pool_shape *s = &c->p->s;
    const struct mc_pool_grid *g = c->at->g;
    const int64_t *xs = g->slot[POOL_X];
    int64_t left = (b->clip[0].hi - b->clip[0].lo) * (b->clip[1].hi - b->clip[1].lo);
    const double scale = pool_scale(s, left * w);
    struct mc_pool_row r; /* not cleared, because most of its rows are unused */
    r.n = n;
    r.s = n == 1 ? 1 : s->stride[2];
    r.w = (int)w;
    r.nrow = 0;
    r.wide = s->mark != MC_UINT8;
    r.bits = s->key == POOL_KEY_BITS;
    r.more = false;
    r.y = b->y + j * c->size;
    r.key = b->key ? b->key + j * c->mark_size : NULL;
    r.bands = b->bands;
    r.x_band = s->stride[1] * xs[1] * c->size;
    r.y_band = g->slot[POOL_Y][1] * c->size;
    r.key_band = g->slot[POOL_KEY][1] * c->mark_size;
    for (int64_t a = b->clip[0].lo; a < b->clip[0].hi; a++) {
        for (int64_t d = b->clip[1].lo; d < b->clip[1].hi; d++) {
            r.x[r.nrow] = c->at->at[POOL_X] + (a * xs[0] + d * xs[1] + lo) * c->size;
            r.mark[r.nrow++] = (int32_t)(((a - b->clip[0].lo + b->clip[0].skip) * s->w[1] + d -
                                          b->clip[1].lo + b->clip[1].skip) *
                                             s->w[2] +
                                         skip);
            left--;
            if (r.nrow == POOL_ROWS || left == 0) {
                r.scale = left ? 1 : scale; /* scales the whole sum, once */
                if (kernel == c->kernel->put) {
                    mc_pool_put(c->kernel, &r);
                } else if (kernel) {
                    kernel(&r);
                } else {
                    mc_pool_max(c->kernel, &r);
                }
                r.more = true;
                r.nrow = 0;
            }
        }
    }
}

static void one_by_one(const struct columns *c, const struct band *b, int64_t from, int64_t to,
                       mc_pool_row_kernel *kernel)
{
    for (int64_t j = from; j < to; j++) {
        const struct mc_pool_clip clip = pool_clip(&c->p->s, 2, j);
        over_rows(c, b, j, 1, clip.lo, clip.hi - clip.lo, clip.skip, kernel);
    }
}

static void over_columns(const struct columns *c, const struct band *b, mc_pool_row_kernel *kernel)
{
    const struct mc_pool_shape *s = &c->p->s;
    if (c->to > c->from) {
        over_rows(c, b, c->from, c->to - c->from, c->from * s->stride[2] - s->pad[2], s->w[2], 0, kernel);
    }
    one_by_one(c, b, 0, c->from, kernel);
    one_by_one(c, b, c->to, s->out[2], kernel);
}

/* ---- spread and gather by marks ---- */

static int64_t mark_at(const struct columns *c, const struct band *b, int64_t j)
{
    return c->p->s.mark == MC_UINT8 ? ((const uint8_t *)b->key)[j] : ((const int32_t *)(void *)b->key)[j];
}

/* Offset in the plane of the maximum of window j of a band. Clamps every coordinate to the window. */
static int64_t clipped_window(const struct columns *c, const struct band *b, int64_t j)
{
    const struct mc_pool_shape *s = &c->p->s;
    const int64_t *xs = c->at->g->slot[POOL_X], m = mark_at(c, b, j);
    const struct mc_pool_clip clip[3] = { b->clip[0], b->clip[1], pool_clip(s, 2, j) };
    const int64_t part[3] = { m / s->w[2] / s->w[1], m / s->w[2] % s->w[1], m % s->w[2] };
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const int64_t k = clip[i].lo - clip[i].skip + part[i];
        at += (k < clip[i].lo || k >= clip[i].hi ? clip[i].lo : k) * xs[i];
    }
    return at;
}

/* quick: marks are bytes, and windows [from, to) of all bands are inside of the image. */
#define MOVES(T, name)                                                                                       \
    static void move_##name(const struct columns *c, const struct band *b, int64_t from, int64_t to,         \
                            bool quick)                                                                      \
    {                                                                                                        \
        const struct mc_pool_shape *s = &c->p->s;                                                            \
        const struct mc_pool_grid *g = c->at->g;                                                             \
        const bool spreads = s->pass == POOL_SPREAD;                                                         \
        const int64_t *xs = g->slot[POOL_X], *offset = c->plan->offset, st = s->stride[2];                   \
        T *x = (T *)(void *)c->at->at[POOL_X], *y = (T *)(void *)b->y;                                       \
        for (int64_t j = from; j < to && !quick; j++) {                                                      \
            T *cell = x + clipped_window(c, b, j);                                                           \
            *(spreads ? cell : y + j) = spreads ? *cell + y[j] : *cell;                                      \
        }                                                                                                    \
        x += b->clip[0].lo * xs[0] + b->clip[1].lo * xs[1] - s->pad[2];                                      \
        const uint8_t *key = (const uint8_t *)b->key;                                                        \
        for (int64_t k = 0; k < b->bands && quick; k++) {                                                    \
            T *cell = x + from * st;                                                                         \
            for (int64_t j = from; j < to && spreads; j++, cell += st) {                                     \
                cell[offset[key[j]]] += y[j];                                                                \
            }                                                                                                \
            for (int64_t j = from; j < to && !spreads; j++, cell += st) {                                    \
                y[j] = cell[offset[key[j]]];                                                                 \
            }                                                                                                \
            x += s->stride[1] * xs[1];                                                                       \
            y += g->slot[POOL_Y][1];                                                                         \
            key += g->slot[POOL_KEY][1];                                                                     \
        }                                                                                                    \
    }
MOVES(float, f32)
MOVES(double, f64)

/* Windows of one band: adds to the cells that have a bit. */
static void spread_bits(const struct columns *c, const struct band *b, int64_t from, int64_t to)
{
    const struct mc_pool_shape *s = &c->p->s;
    const int64_t *xs = c->at->g->slot[POOL_X];
    for (int64_t j = from; j < to; j++) {
        const struct mc_pool_clip clip = pool_clip(s, 2, j), *at = b->clip;
        const int bits = ((const uint8_t *)b->key)[j];
        for (int64_t a = at[0].lo; a < at[0].hi; a++) {
            for (int64_t d = at[1].lo; d < at[1].hi; d++) {
                for (int64_t e = clip.lo; e < clip.hi; e++) {
                    const int64_t number = ((a - at[0].lo + at[0].skip) * s->w[1] + d - at[1].lo +
                                            at[1].skip) *
                                               s->w[2] +
                                           e - clip.lo + clip.skip;
                    const int64_t cell = a * xs[0] + d * xs[1] + e * xs[2];
                    if (bits >> (number & (POOL_BITS - 1)) & 1) {
                        ((float *)(void *)c->at->at[POOL_X])[cell] += ((const float *)(void *)b->y)[j];
                    }
                }
            }
        }
    }
}

static void move_cut(const struct columns *c, const struct band *b, int64_t from, int64_t to)
{
    if (c->p->s.key == POOL_KEY_BITS) {
        spread_bits(c, b, from, to);
    } else {
        (c->size == 4 ? move_f32 : move_f64)(c, b, from, to, false);
    }
}

static void scatter_by_argmax(const struct columns *c, const struct band *b)
{
    const struct mc_pool_shape *s = &c->p->s;
    bool whole = s->mark == MC_UINT8, disjoint = s->w[2] == 2 && s->stride[2] == 2;
    for (int i = 0; i < 2; i++) {
        whole = whole && b->clip[i].hi - b->clip[i].lo == s->w[i];
        disjoint = disjoint && s->stride[i] >= s->w[i];
    }
    whole = whole && (s->key == POOL_KEY_MARKS || disjoint);
    const int64_t from = whole ? c->from : 0, to = whole ? c->to : 0;
    if (s->pass == POOL_SPREAD && disjoint && to > from) {
        over_rows(c, b, from, to - from, from * 2 - s->pad[2], 2, 0,
                  c->kernel->put); /* no two windows overlap */
    } else if (to > from) {
        (c->size == 4 ? move_f32 : move_f64)(c, b, from, to, true);
    }
    for (struct band one = *b; one.bands > 0 && (from > 0 || to < s->out[2]); one.bands--) {
        move_cut(c, &one, 0, from);
        move_cut(c, &one, to, s->out[2]);
        one.clip[1].lo += s->stride[1];
        one.clip[1].hi += s->stride[1];
        one.y += c->at->g->slot[POOL_Y][1] * c->size;
        one.key += c->at->g->slot[POOL_KEY][1] * c->mark_size;
    }
}

/* ---- spread of sums: one row of the gradient, added to all rows that the band's windows cover ---- */

#define SHARES(T, name)                                                                            \
    static void share_##name(const struct columns *c, const struct band *b, int64_t rows)          \
    {                                                                                              \
        const struct mc_pool_shape *s = &c->p->s;                                                  \
        const T *y = (const T *)(void *)b->y, scale = (T)pool_scale(s, rows * s->w[2]);            \
        T *e = c->at->scratch;                                                                     \
        memset(e, 0, (size_t)s->in[2] * sizeof *e);                                                \
        for (int64_t j = c->from; j < c->to; j++) {                                                \
            const T g = y[j] * scale;                                                              \
            T *cell = e + j * s->stride[2] - s->pad[2];                                            \
            for (int64_t k = 0; k < s->w[2]; k++) {                                                \
                cell[k] += g;                                                                      \
            }                                                                                      \
        }                                                                                          \
        for (int64_t j = c->from > 0 ? 0 : c->to; j < s->out[2]; j = j + 1 == c->from ? c->to : j + 1) { \
            const struct mc_pool_clip clip = pool_clip(s, 2, j);                                      \
            const T g = y[j] * (T)pool_scale(s, rows * (clip.hi - clip.lo));                         \
            for (int64_t k = clip.lo; k < clip.hi; k++) {                                            \
                e[k] += g;                                                                         \
            }                                                                                      \
        }                                                                                          \
    }
SHARES(float, f32)
SHARES(double, f64)

static void scatter_mean(const struct columns *c, const struct band *b)
{
    const struct mc_pool_shape *s = &c->p->s;
    const int64_t *xs = c->at->g->slot[POOL_X];
    const int64_t rows = (b->clip[0].hi - b->clip[0].lo) * (b->clip[1].hi - b->clip[1].lo);
    struct mc_pool_row r;
    r.n = s->in[2];
    r.s = r.w = r.nrow = 1;
    r.bands = 1;
    r.x_band = r.y_band = r.key_band = 0;
    r.y = c->at->scratch;
    r.scale = 1;
    r.more = false;
    (c->size == 4 ? share_f32 : share_f64)(c, b, rows);
    for (int64_t a = b->clip[0].lo; a < b->clip[0].hi; a++) {
        for (int64_t d = b->clip[1].lo; d < b->clip[1].hi; d++) {
            r.x[0] = c->at->at[POOL_X] + (a * xs[0] + d * xs[1]) * c->size;
            c->kernel->share(&r);
        }
    }
}

/* ---- a plane ---- */

/* True if windows do not overlap and cover the image, so that X need not be cleared. */
static bool covers_image(const struct mc_pool_shape *s)
{
    bool all = mc_pool_key_like_y(s) && s->mark == MC_UINT8 && s->w[2] == 2;
    for (int i = 0; i < 3; i++) {
        all = all && s->stride[i] == s->w[i] && s->pad[i] == 0 && s->in[i] == s->out[i] * s->w[i];
    }
    return all;
}

static void clear(const struct columns *c)
{
    const struct mc_pool_shape *s = &c->p->s;
    const int64_t *xs = c->at->g->slot[POOL_X], row = s->in[2] * c->size;
    if ((s->in[0] == 1 || xs[0] == xs[1] * s->in[1]) && (s->in[1] == 1 || xs[1] == s->in[2])) {
        memset(c->at->at[POOL_X], 0, (size_t)(s->in[0] * s->in[1] * row));
        return;
    }
    for (int64_t a = 0; a < s->in[0]; a++) {
        for (int64_t b = 0; b < s->in[1]; b++) {
            memset(c->at->at[POOL_X] + (a * xs[0] + b * xs[1]) * c->size, 0, (size_t)row);
        }
    }
}

static void run_band(const struct columns *c, int64_t u0, int64_t u1, int64_t bands)
{
    const struct band b = row_band(c, u0, u1, bands);
    const bool max = c->p->s.mode == POOL_MAX;
    if (c->p->s.pass == POOL_FORWARD) {
        over_columns(c, &b, max ? NULL : c->kernel->sum);
    } else if (max) {
        scatter_by_argmax(c, &b);
    } else {
        scatter_mean(c, &b);
    }
}

static void work(const struct mc_plan *plan, const struct mc_pool_plane *at)
{
    const struct rows *r = (const struct rows *)(const void *)plan;
    const struct mc_pool_problem *p = pooling(plan->problem);
    const struct mc_pool_shape *s = &p->s;
    const bool shares = s->pass == POOL_SPREAD && s->mode != POOL_MAX;
    const struct mc_pool_span rows = shares ? (struct mc_pool_span){ 0, 0 }
                                            : r->whole[1]; /* sums are spread row by row */
    const struct columns c = { .p = p, .at = at, .plan = r,
                               .kernel = mc_pool_kernel(p->dtype == MC_FLOAT64,
                                                        r->whole[2].to - r->whole[2].from),
                               .size = mc_dtypes[p->dtype].size, .mark_size = mc_dtypes[s->mark].size,
                               .from = r->whole[2].from,
                               .to = r->whole[2].to };
    if (s->pass == POOL_SPREAD && !covers_image(s)) {
        clear(&c);
    }
    for (int64_t u0 = 0; u0 < s->out[0]; u0++) {
        for (int64_t u1 = 0; u1 < s->out[1]; u1++) {
            const bool many = u1 == rows.from && rows.to > u1;
            run_band(&c, u0, u1, (many ? rows.to - u1 : 1) * at->planes);
            u1 = many ? rows.to - 1 : u1;
        }
    }
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    const struct mc_pool_shape *s = &p->s;
    if (p->dtype != MC_FLOAT32 && p->dtype != MC_FLOAT64) {
        return "takes float32 and float64 only";
    }
    if (s->pass != POOL_FORWARD && s->key == POOL_KEY_X) {
        return "takes argmax marks, but not a gradient shared by ties";
    }
    return s->key == POOL_KEY_BITS && p->dtype != MC_FLOAT32 ? "takes bits of ties in float32 only"
                                                             : mc_pool_hollow_columns(p);
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    return 1e-6 + mc_pool_seconds(p) * (1 + 0.04 * (double)(p->s.w[0] * p->s.w[1] * p->s.w[2]));
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    const struct mc_pool_problem *q = pooling(p);
    struct rows *r = mc_pool_planes(sizeof *r, q, work);
    if (!r) {
        return NULL;
    }
    for (int i = 0; i < 3; i++) {
        r->whole[i] = mc_pool_windows_inside(&q->s, i);
    }
    const int64_t *w = q->s.w, *xs = r->planes.grid.slot[POOL_X];
    for (int64_t m = 0; m < TABLE; m++) { /* an invalid mark is taken as some cell of the window */
        const int64_t a = m / w[2] / w[1];
        r->offset[m] = (a < w[0] ? a : 0) * xs[0] + m / w[2] % w[1] * xs[1] + m % w[2] * xs[2];
    }
    if (q->s.pass == POOL_SPREAD && q->s.mode != POOL_MAX) {
        mc_pool_scratch(&r->planes, (size_t)q->s.in[2] * mc_dtypes[q->dtype].size);
    }
    const bool shares = q->s.pass == POOL_SPREAD && q->s.mode != POOL_MAX;
    r->planes.joint = !shares && r->whole[1].to - r->whole[1].from == q->s.out[1] &&
                      (q->s.pass != POOL_SPREAD || covers_image(&q->s)) &&
                      mc_pool_planes_follow(&r->planes, q);
    return &r->planes.base;
}

const struct mc_solver mc_pool_rows = {
    .name = "rows", .refuse = refuse, .estimate = estimate, .plan = plan,
};
