/* window_grad_run.c: one call of a plan of window_grad.c.
 *
 * Invariant: each task writes results of its own, with sums in a fixed order. */
#include "heavy/conv_pool/cpu/window_grad_plan.h"

static const int64_t nowhere = INT64_MIN;

struct call {
    const struct window_grad *d;
    struct mc_conv_run r;                   /* result, epilogue */
    const float *g;
    const unsigned char *mark;
    /* weights: all images; inputs: all filters, by block as (part, filter, vectors) */
    float *shared;
    char *own;
};

/* ---- x, channels last ---- */

/* The columns [lo, hi) of a line that exist in x. */
static void columns_in_x(const struct window_grad *d, const struct mc_conv_shape *s, int64_t *lo, int64_t *hi)
{
    *lo = MC_MAX(s->pad[2], (int64_t)0);
    *hi = MC_MIN(d->columns, s->in[2] + s->pad[2]);
}

static bool line_in_x(const struct mc_conv_shape *s, int64_t line)
{
    return line >= s->pad[1] && line < s->in[1] + s->pad[1];
}

/* The offset of element (0, 0) of channel ch of image n. */
static int64_t in_x(const struct call *c, int64_t n, int64_t ch)
{
    return n * c->r.p->at.x[0] + ch * c->r.p->at.x[1];
}

static void copy_x(void *arg, int64_t n, int slot)
{
    const struct call *c = arg;
    const struct window_grad *d = c->d;
    const struct mc_conv_shape *s = &c->r.p->s;
    const int64_t *at = c->r.p->at.x, size = window_grad_block(d);
    float *image = c->shared + n * d->blocks * size;
    int64_t lo, hi;
    (void)slot;
    columns_in_x(d, s, &lo, &hi);
    memset(image, 0, (size_t)(d->blocks * size) * sizeof *image);
    for (int64_t ch = 0; ch < s->c; ch++) {
        float *to = image + ch / d->each * size + ch % d->each;
        const float *from = (const float *)(const void *)c->r.at[CONV_X] + in_x(c, n, ch) -
                            s->pad[1] * at[3] - s->pad[2] * at[4];
        for (int64_t i = 0; i < d->lines; i++) {
            for (int64_t j = lo; j < hi && line_in_x(s, i); j++) {
                to[i * d->pitch + j * d->each] = from[i * at[3] + j * at[4]];
            }
        }
    }
}

static void zeros(float *to, int64_t step, int64_t from, int64_t end)
{
    for (int64_t e = from; e < end; e++) {
        to[e * step] = 0;
    }
}

/* Writes a block of the image to x where windows reach, and 0 elsewhere. */
static void write_x(const struct call *c, const float *image, int64_t n, int64_t block)
{
    const struct window_grad *d = c->d;
    const struct mc_conv_shape *s = &c->r.p->s;
    const int64_t *at = c->r.p->at.x, from = block * d->each, count = MC_MIN(s->c - from, d->each);
    int64_t lo, hi;
    columns_in_x(d, s, &lo, &hi);
    const int64_t first = MC_MIN(lo - s->pad[2], s->in[2]),
                  last = MC_MAX(MC_MIN(hi - s->pad[2], s->in[2]), first);
    for (int64_t ch = 0; ch < count; ch++) {
        for (int64_t row = 0; row < s->in[1]; row++) {
            const int64_t i = row + s->pad[1];
            const bool reached = i >= 0 && i < d->lines;
            float *to = (float *)(void *)c->r.result + in_x(c, n, from + ch) + row * at[3];
            zeros(to, at[4], 0, reached ? first : s->in[2]);
            if (reached) {
                const float *line = image + i * d->pitch + ch + s->pad[2] * d->each;
                for (int64_t col = first; col < last; col++) {
                    to[col * at[4]] = line[col * d->each];
                }
                zeros(to, at[4], last, s->in[2]);
            }
        }
    }
    conv_finish(&c->r, (int64_t[]){ n, from, 0, 0, 0 }, (int64_t[]){ 1, count, 1, s->in[1], s->in[2] });
}

/* ---- filters as vectors ---- */

/* The offset in w, for filter 0, of lane `lane` of vector v of a block; `nowhere` if the lane is padding. */
static int64_t in_w(const struct call *c, int64_t block, int64_t v, int64_t lane)
{
    const struct window_grad *d = c->d;
    const struct mc_conv_problem *p = c->r.p;
    const int64_t e = v % d->across * d->k->lanes + lane, i = v / d->across, j = e / d->each,
                  ch = block * d->each + e % d->each;
    return j >= p->s.k[2] || ch >= p->s.c
               ? nowhere
               : ch * p->at.w[1] + conv_tap(&p->s, 1, i) * p->at.w[3] + conv_tap(&p->s, 2, j) * p->at.w[4];
}

static int64_t plane(const int64_t stride[5], int64_t n, int64_t f)
{
    return n * stride[0] + f * stride[1];
}

/* ---- weights ---- */

static void filter_image(const struct call *c, float *sum, int64_t n, int64_t block, int64_t f)
{
    const struct window_grad *d = c->d;
    const struct mc_pooled_problem *p = pooled(d->base.problem);
    const int64_t lanes = d->k->lanes, lines = d->vectors / d->across;
    const float *x = c->shared + (n * d->blocks + block) * window_grad_block(d);
    struct mc_window_grad_weights a = {
        .g = c->g + plane(p->g, n, f), .mark = c->mark + plane(p->mark, n, f), .first = d->first,
        .off = d->off, .n = d->windows, .x_line = d->pitch, .sum_line = d->across * lanes,
    };
    for (int64_t i = 0; i < lines; i += d->deep) {
        for (int64_t j = 0; j < d->across; j += d->wide) {
            a.x = x + i * a.x_line + j * lanes;
            a.sum = sum + i * a.sum_line + j * lanes;
            d->k->weights(&a, (int)MC_MIN(d->deep, lines - i), (int)MC_MIN(d->wide, d->across - j));
        }
    }
}

static void weights_task(void *arg, int64_t task, int slot)
{
    const struct call *c = arg;
    const struct window_grad *d = c->d;
    const struct mc_conv_shape *s = &c->r.p->s;
    const int64_t from = task / d->blocks * d->filters, count = MC_MIN(s->f - from, d->filters),
                  block = task % d->blocks;
    const int64_t lanes = d->k->lanes, size = d->vectors * lanes, ch = block * d->each;
    float *sum = (float *)(void *)(c->own + (size_t)slot * d->own), *w = (float *)(void *)c->r.result;
    memset(sum, 0, (size_t)(count * size) * sizeof *sum);
    for (int64_t n = 0; n < s->n; n++) {
        for (int64_t f = 0; f < count; f++) {
            filter_image(c, sum + f * size, n, block, from + f);
        }
    }
    for (int64_t e = 0; e < size; e++) {
        const int64_t at = in_w(c, block, e / lanes, e % lanes);
        for (int64_t f = 0; f < count && at != nowhere; f++) {
            w[at + (from + f) * c->r.p->at.w[0]] = sum[f * size + e];
        }
    }
    conv_finish(&c->r, (int64_t[]){ from, ch, 0, 0, 0 },
                (int64_t[]){ count, MC_MIN(s->c - ch, d->each), 1, s->k[1], s->k[2] });
}

/* ---- inputs ---- */

/* Packs the filters of a block as (part, filter, vectors of the part), so that what is summed at once is
 * contiguous. */
static void pack(void *arg, int64_t block, int slot)
{
    const struct call *c = arg;
    const struct window_grad *d = c->d;
    const struct mc_conv_shape *s = &c->r.p->s;
    const float *w = (const float *)(const void *)c->r.at[CONV_W];
    const int64_t lanes = d->k->lanes;
    float *to = c->shared + block * s->f * d->vectors * lanes;
    (void)slot;
    for (int64_t v = 0; v < d->vectors; v += d->part) {
        const int64_t count = MC_MIN(d->part, d->vectors - v) * lanes;
        for (int64_t e = 0; e < count; e++) {
            const int64_t at = in_w(c, block, v + e / lanes, e % lanes);
            for (int64_t f = 0; f < s->f; f++) {
                to[f * count + e] = at == nowhere ? 0 : w[at + f * c->r.p->at.w[0]];
            }
        }
        to += s->f * count;
    }
}

/* The windows of an image, sorted by the element of y that they mark: the filters and gradients of each
 * element, in order. */
struct sorted {
    int32_t *begin;             /* by window and cell, and the end */
    int32_t *filter, *at;
    float *g;
};

static struct sorted sorted_at(const struct window_grad *d, const struct mc_pooled_problem *p, char *own,
                               float **image)
{
    const int64_t cells = p->w[1] * p->w[2], all = d->windows * p->conv.s.f;
    struct sorted q;
    *image = (float *)(void *)own;
    q.begin = (int32_t *)(void *)(own += window_grad_bytes(window_grad_block(d)));
    q.filter = (int32_t *)(void *)(own += window_grad_bytes(d->windows * cells + 1));
    q.at = (int32_t *)(void *)(own += window_grad_bytes(all));
    q.g = (float *)(void *)(own + window_grad_bytes(all));
    return q;
}

static void sort(const struct call *c, struct sorted *q, int64_t n)
{
    const struct window_grad *d = c->d;
    const struct mc_pooled_problem *p = pooled(d->base.problem);
    const unsigned char *mark = c->mark + plane(p->mark, n, 0);
    const float *g = c->g + plane(p->g, n, 0);
    const int64_t cells = p->w[1] * p->w[2];
    int32_t at = 0;
    for (int64_t i = 0; i < d->windows; i++) {
        int32_t count[CELLS] = { 0 };
        for (int64_t f = 0; f < p->conv.s.f; f++) {
            count[mark[f * p->mark[1] + i]]++;
        }
        for (int64_t e = 0; e < cells; e++) {
            q->begin[i * cells + e] = at;
            at += count[e];
            count[e] = at - count[e];
        }
        for (int64_t f = 0; f < p->conv.s.f; f++) {
            const int32_t to = count[mark[f * p->mark[1] + i]]++;
            q->filter[to] = (int32_t)f;
            q->g[to] = g[f * p->g[1] + i];
        }
    }
    q->begin[d->windows * cells] = at;
}

/* One block of the image: all marked elements, for one part of the taps after the other. */
static void inputs_block(const struct call *c, struct sorted *q, float *image, int64_t block)
{
    const struct window_grad *d = c->d;
    const struct mc_pooled_problem *p = pooled(d->base.problem);
    const int64_t cells = p->w[1] * p->w[2], lanes = d->k->lanes, all = d->windows * p->conv.s.f;
    const float *w = c->shared + block * p->conv.s.f * d->vectors * lanes;
    memset(image, 0, (size_t)window_grad_block(d) * sizeof *image);
    for (int64_t v = 0; v < d->vectors; v += d->part) {
        const int64_t count = MC_MIN(d->part, d->vectors - v);
        for (int64_t e = 0; e < all && (v == 0 || count < d->part); e++) {
            q->at[e] = q->filter[e] * (int32_t)(count * lanes);
        }
        d->k->inputs(&(struct mc_window_grad_inputs){ image, w, q->g, q->at, q->begin, d->cell_offset,
                                                      d->tap + v, d->windows * cells },
                     (int)count);
        w += p->conv.s.f * count * lanes;
    }
}

static void inputs_task(void *arg, int64_t n, int slot)
{
    const struct call *c = arg;
    const struct window_grad *d = c->d;
    float *image;
    struct sorted q = sorted_at(d, pooled(d->base.problem), c->own + (size_t)slot * d->own, &image);
    sort(c, &q, n);
    for (int64_t block = 0; block < d->blocks; block++) {
        inputs_block(c, &q, image, block);
        write_x(c, image, n, block);
    }
}

/* ---- a call ---- */

mc_status mc_window_grad_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct window_grad *d = (const struct window_grad *)(const void *)plan;
    const struct mc_pooled_problem *p = pooled(plan->problem);
    const struct mc_conv_shape *s = &p->conv.s;
    struct call c = { .d = d,
                      .g = operand[POOLED_G],
                      .mark = operand[POOLED_MARKS],
                      .shared = workspace,
                      .own = (char *)workspace + d->shared };
    c.r = mc_pooled_bind(plan, operand, threads);
    const bool weights = s->pass == CONV_WEIGHTS;
    const double seconds = plan->cost * d->slots;
    const double copies = weights ? mc_conv_copy(
                                        (double)window_grad_bytes(s->n * d->blocks * window_grad_block(d)))
                                  : 0;
    mc_team_tasks(weights ? copy_x : pack, &c, weights ? s->n : d->blocks, d->slots, c.r.threads, copies);
    mc_team_tasks(weights ? weights_task : inputs_task, &c, d->tasks, d->slots, c.r.threads, seconds);
    return MC_OK;
}
