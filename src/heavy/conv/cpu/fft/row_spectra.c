/* row_spectra.c: slim filters: only their rows are transformed in the workspace. Their columns are
 * transformed in the cache, for one column of frequencies and some filters at a time: before the products
 * that read them, or after the products that make them.
 *
 *   rows of a filter   column c of tap r of row i at (c * taps + r) * step + i * next, for all of a group
 *   near               spectra of `near` rows, a few vectors each, for the frequencies of one column, in the
 *                      task's slot
 *
 * Invariant: one task adds to the sums of its column and lanes, in the order of the blocks. */
#include "heavy/conv/cpu/fft/plan.h"

enum { AHEAD = 3 }; /* rows of spectra to prefetch ahead */

struct lanes {                  /* as many filters as a vector has lanes */
    struct mc_fft_window w;
    int64_t box[4], j;
    int count;
    float *rows;                /* the transforms of their rows */
};

static struct lanes lanes_of(const struct mc_fft_call *x, int64_t task)
{
    const struct spectra *s = &x->d->s[CONV_W];
    const int64_t groups = fft_lanes_of(x, s), i = task / groups;
    struct lanes l = { .j = task % groups * x->d->kernel->lanes };
    l.count = mc_fft_lanes(x, i, l.j, &l.w, l.box);
    l.rows = fft_spectra(x, CONV_W) + i * s->next + l.j;
    return l;
}

static void rows_task(void *arg, int64_t task, int slot)
{
    const struct mc_fft_call *x = arg;
    const struct fft *d = x->d;
    const struct spectra *s = &d->s[CONV_W];
    struct lanes l = lanes_of(x, task);
    (void)slot;
    d->kernel->filter_rows[d->which](&l.w, l.rows, d->taps * s->step, s->step, s->width);
}

static void back_task(void *arg, int64_t task, int slot)
{
    const struct mc_fft_call *x = arg;
    const struct fft *d = x->d;
    const struct spectra *s = &d->s[CONV_W];
    struct lanes l = lanes_of(x, task);
    (void)slot;
    d->kernel->filter_rows_back[d->which](l.rows, d->taps * s->step, s->step, s->width, fft_scale(x),
                                          (float)x->r.p->beta, &l.w);
    mc_fft_finish(x, &l.w, l.count, l.j, l.box);
}

/* Runs `task` on all filters of the group. */
static void each_row(const struct mc_fft_call *x, mc_team_task *task, double seconds)
{
    const struct spectra *s = &x->d->s[CONV_W];
    struct mc_fft_call whole = *x;
    whole.role = CONV_W;
    whole.at[s->row] = whole.at[s->lane] = 0;
    whole.n[s->row] = x->d->all[s->row];
    whole.n[s->lane] = x->d->all[s->lane];
    mc_team_tasks(task, &whole, whole.n[s->row] * fft_lanes_of(&whole, s), x->d->slots, x->r.threads,
                  seconds);
}

void mc_fft_slim_rows(const struct mc_fft_call *x, double seconds)
{
    each_row(x, rows_task, seconds);
}

void mc_fft_slim_back(const struct mc_fft_call *x, double seconds)
{
    each_row(x, back_task, seconds);
}

/* ---- products: a task has one column of frequencies and a few vectors of the lanes ---- */

/* Prefetches rows of filters. Their lines are far apart, so the hardware does not. */
static void fetch_rows(const struct fft *d, const float *filters)
{
    const struct spectra *w = &d->s[CONV_W];
    for (int64_t r = 0; r < d->taps; r++) {
        __builtin_prefetch(filters + r * w->step);
        __builtin_prefetch(filters + r * w->step + w->width);
    }
}

static void product_task(void *arg, int64_t task, int slot)
{
    const struct mc_fft_call *x = arg;
    const struct fft *d = x->d;
    const struct spectra *a = &d->s[d->a], *b = &d->s[d->b], *c = &d->s[d->c], *w = &d->s[CONV_W];
    const int64_t wide = fft_slim_width(d), groups = conv_ceil(x->n[w->lane], wide), column = task / groups,
                  lane = task % groups * wide;
    const int64_t lanes = d->kernel->lanes,
                  columns = conv_ceil(MC_MIN(x->n[w->lane] - lane, wide), lanes) * lanes;
    const int64_t first = (column ? column - 1 : d->size / 2 - 1) * d->size,
                  frequencies = column ? d->size : d->size + 2;
    const int64_t row = 2 * columns, step = fft_slim_step(d);
    const bool result = d->c == CONV_W;
    const struct mc_fft_taps taps = { (int)d->taps, (int)x->r.p->s.dilation[1], column == 0 };
    float *const near = fft_slot(x, slot);
    struct mc_fft_product p = mc_fft_product_of(x);
    p.columns = columns;
    if (result) {
        p.c_row = row, p.c_im = columns;
    } else {
        p.b_depth = row, p.b_im = columns;
    }
    for (int64_t i = 0; i < x->n[w->row]; i += d->near) {
        const int64_t n = MC_MIN(d->near, x->n[w->row] - i);
        float *const filters = fft_spectra(x, CONV_W) + column * d->taps * w->step +
                               (x->at[w->row] + i) * w->next + x->at[w->lane] + lane;
        for (int64_t k = 0; k < n && !result; k++) {
            for (int64_t v = 0; v < columns; v += lanes) {
                fetch_rows(d, filters + (k + AHEAD) * w->next + v);
                d->kernel->filter_column[d->which](filters + k * w->next + v, w->step, w->width, &taps,
                                                   near + k * row + v, step, columns);
            }
        }
        *(result ? &p.rows : &p.depth) = n;
        p.add = !result && (x->add || i > 0);
        for (int64_t f = 0; f < frequencies; f++) {
            const int64_t at = first + f, next = f + 1 < frequencies;
            p.a = fft_spectra(x, d->a) + at * a->step + i * (result ? p.a_row : p.a_depth);
            p.b = result ? fft_spectra(x, d->b) + at * b->step + lane : near + f * step;
            p.c = result ? near + f * step : fft_spectra(x, d->c) + at * c->step + lane;
            p.a_ahead = next * a->step, p.b_ahead = next * (result ? b->step : step),
            p.c_ahead = next * (result ? step : c->step);
            d->kernel->product(&p);
        }
        for (int64_t k = 0; k < n && result; k++) {
            for (int64_t v = 0; v < columns; v += lanes) {
                fetch_rows(d, filters + (k + AHEAD) * w->next + v);
                d->kernel->filter_column_back[d->which](near + k * row + v, step, columns, &taps,
                                                        x->at[d->summed] > 0, filters + k * w->next + v,
                                                        w->step, w->width);
            }
        }
    }
}

void mc_fft_slim_products(struct mc_fft_call *x, double seconds)
{
    mc_team_tasks(product_task, x,
                  x->d->size / 2 * conv_ceil(x->n[x->d->s[CONV_W].lane], fft_slim_width(x->d)), x->d->slots,
                  x->r.threads, seconds);
}
