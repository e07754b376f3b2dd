/* scatter.c: the inputs direction as col2im: the products of each position of y are scattered over the taps
 * of x.
 *
 *   x[u s + a d - pad, c] += sum over f of y[u, f] * w[f, c, a]
 *
 * The sums over f for a strip of positions, a row for each channel and tap, are a convolution with filters
 * of one tap, which the kernel of direct.c computes. The rows are then added to x. Nothing is computed
 * between rows or beyond edges. A small number of channels of x does no harm, because taps fill the rows
 * of the kernel. With stride s the sums go to planes, one for each of the s phases an axis, which are
 * added to x at the end.
 *
 * Invariant: the terms of an element of x are added in one order: by positions, then by taps. */
#include "heavy/conv/cpu/direct/direct.h"
#include "heavy/conv/solver.h"
#include "heavy/gemm/cpu/kernel.h"

enum { LINE = 64, TERMS = 512, TASKS = 4, WIDEST = 128, ROWS = 32, WAYS = 8, PAGE = 4096 };
/* The taps by which one row of y adds to one row of x, in one phase. */
/* first: of a channel's taps; to: offset in a channel's planes */
struct add_rows { int64_t first, taps, to; };
struct scatter {
    struct mc_plan base;
    const struct mc_direct_kernel *kernel;
    int64_t taps, from, to;         /* filters summed and channels computed, of a group */
    int64_t positions, width; /* positions of y; positions of a strip, a multiple of the vector length */
    int64_t pitch, plane, channel;  /* floats of a row of a phase, of a phase, of all phases of a channel */
    int64_t channels, parts;        /* channels of a task; tasks for an image and group */
    /* rows (channel, tap) multiplied before they are added: whole rows of filters */
    int64_t rows;
    int64_t chunks, blocks;         /* chunks of `rows` in a task; blocks of DIRECT_ROWS in a chunk */
    /* of each of a channel's taps: offset in w, without filter and channel; offset in its add_rows */
    int64_t *w, *off;
    struct add_rows *add_rows;
    int64_t adds_per_row;                  /* add_rows for one row of a filter */
    bool copies;                    /* strips are copied by the first product */
    bool copied;                    /* rows of planes are copied to x, not added */
    size_t w_at, slot_at, sum_at, planes_at, slot_bytes; /* sum_at and planes_at: in the slot */
    int slots;
};
struct call {
    const struct scatter *d;
    struct mc_conv_run r;
};
/* part of a strip in one row of y: offset in a plane, offset in the strip */
struct piece { int64_t to, from, n; };
/* A strip of y with `step` floats from filter to filter. copy: the first product copies the strip there for
 * the later ones, because the rows at `at` compete for the same sets of the cache. NULL: no copy. */
struct strip { const float *at; int64_t step; float *copy; };

/* ---- running ---- */

static float *scratch_floats(const struct call *x, size_t offset)
{
    return (float *)(void *)(x->r.workspace + offset);
}

/* Packs w for a chunk of a group and part as (blocks, from, DIRECT_ROWS), with zeros after the last tap. */
static void w_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct scatter *d = x->d;
    const int64_t *stride = x->r.p->at.w, chunk = task % d->chunks, part = task / d->chunks % d->parts,
                  g = task / d->chunks / d->parts;
    const float *w = (const float *)(const void *)x->r.at[CONV_W] + g * d->from * stride[0];
    float *to = scratch_floats(x, d->w_at) + task * d->blocks * d->from * DIRECT_ROWS;
    (void)slot;
    for (int64_t q = 0; q < d->blocks * DIRECT_ROWS; q++) {
        const int64_t row = chunk * d->rows + q, c = part * d->channels + row / d->taps;
        const bool valid = q < d->rows && row < d->channels * d->taps && c < d->to;
        float *column = to + q / DIRECT_ROWS * d->from * DIRECT_ROWS + q % DIRECT_ROWS;
        for (int64_t f = 0; f < d->from; f++) {
            column[f * DIRECT_ROWS] = valid ? w[f * stride[0] + c * stride[1] + d->w[row % d->taps]] : 0;
        }
    }
}

/* The strip to prefetch: the next one of this image, or the first one of the next image. Strips have too many
 * rows for the hardware prefetcher. The prefetches are spread over `steps` steps of sums. */
static struct mc_direct_ahead advance_strip(const struct call *x, int64_t image, int64_t g, int64_t p,
                                         int64_t steps)
{
    const struct scatter *d = x->d;
    const int64_t *stride = x->r.p->at.y;
    image += p >= d->positions;
    p = p >= d->positions ? 0 : p;
    const float *y = (const float *)(const void *)x->r.at[CONV_Y] + image * stride[0] +
                     g * d->from * stride[1] + p;
    const int64_t n = MC_MIN(d->width, d->positions - p),
                  lines = d->from * conv_ceil(n * (int64_t)sizeof *y, LINE);
    return (struct mc_direct_ahead){ .row = y,
                                     .rows = image < x->r.p->s.n ? d->from : 0,
                                     .step = stride[1],
                                     .n = n,
                                     .each = (int)conv_ceil(lines, steps) };
}

/* y at positions [p, p + n) of all filters of a group. It is read in place, or copied and padded if n is no
 * multiple of the vector length. */
static struct strip pack_strip(const struct call *x, int64_t image, int64_t g, int64_t p, int64_t n,
                               float *strip)
{
    const struct scatter *d = x->d;
    const int64_t *stride = x->r.p->at.y;
    const float *y = (const float *)(const void *)x->r.at[CONV_Y] + image * stride[0] +
                     g * d->from * stride[1] + p;
    if (n % d->kernel->lanes == 0) {
        return (struct strip){ y, stride[1], d->copies ? strip : NULL };
    }
    for (int64_t f = 0; f < d->from; f++, y += stride[1]) {
        memcpy(strip + f * d->width, y, (size_t)n * sizeof *strip);
        memset(strip + f * d->width + n, 0, (size_t)(d->width - n) * sizeof *strip);
    }
    return (struct strip){ strip, d->width, NULL };
}

static int divide_work(const struct call *x, int64_t p, int64_t n, struct piece *piece)
{
    const int64_t row = x->r.p->s.out[2];
    int64_t to = p / row * x->d->pitch + p % row, left = row - p % row;
    int count = 0;
    for (int64_t done = 0; done < n; count++) {
        piece[count] = (struct piece){ to, done, MC_MIN(left, n - done) };
        done += piece[count].n;
        to += left + x->d->pitch - row;
        left = row;
    }
    return count;
}

/* Multiplies a strip of `used` positions by `rows` taps. */
static void multiply(const struct scatter *d, const float *w, int64_t rows, struct strip *strip, int64_t used,
                     float *sum, struct mc_direct_ahead *next)
{
    const int64_t none = 0;
    for (int64_t row = 0; row < rows; row += DIRECT_ROWS, w += d->from * DIRECT_ROWS) {
        struct mc_direct_sum s = { .off = &none, .x_step = strip->step, .out_step = d->width, .taps = 1,
                                   .out = sum + row * d->width,
                                   .rows = (int)MC_MIN(rows - row, (int64_t)DIRECT_ROWS), .ahead = next,
                                   .copy_step = d->width };
        for (int64_t f = 0; f < d->from; f += TERMS) {
            s.x = strip->at + f * strip->step;
            s.copy = strip->copy ? strip->copy + f * d->width : NULL;
            s.w = w + f * DIRECT_ROWS;
            s.channels = MC_MIN(d->from - f, (int64_t)TERMS);
            s.add = f > 0;
            d->kernel->sum(&s, (int)conv_ceil(used, d->kernel->lanes));
        }
        *strip = strip->copy ? (struct strip){ strip->copy, d->width, NULL } : *strip;
    }
}

/* Multiplies a strip by all taps of a part's channels and adds the products to the channels' planes. */
static void spread_strip(const struct call *x, const float *w, int64_t all, struct strip strip, float *sum,
                         float *planes, const struct piece *piece, int pieces, struct mc_direct_ahead next)
{
    const struct scatter *d = x->d;
    const int64_t used = piece[pieces - 1].from + piece[pieces - 1].n, wide = x->r.p->s.k[2];
    for (int64_t first = 0; first < all; first += d->rows, w += d->blocks * d->from * DIRECT_ROWS) {
        const int64_t rows = MC_MIN(d->rows, all - first);
        multiply(d, w, rows, &strip, used, sum, &next);
        for (int64_t row = 0; row < rows; row += wide) {
            const int64_t c = (first + row) / d->taps, a = (first + row) % d->taps / wide;
            for (int64_t i = 0; i < d->adds_per_row; i++) {
                const struct add_rows *o = &d->add_rows[a * d->adds_per_row + i];
                const float *from = sum + (row + o->first % wide) * d->width;
                float *to = planes + c * d->channel + o->to;
                for (int j = 0; j < pieces; j++) {
                    d->kernel->add_rows(to + piece[j].to, from + piece[j].from, d->width, d->off + o->first,
                                        o->taps, piece[j].n);
                }
            }
        }
    }
}

/* Adds a row of phase r to a row of x: element u of it is at u * stride + r - pad. */
static void add_row(const struct call *x, float *to, const float *from, int64_t r)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t stride = s->stride[2], first = r - s->pad[2], step = stride * x->r.p->at.x[4];
    const int64_t lo = MC_MAX(conv_ceil(-first, stride), (int64_t)0),
                  hi = MC_MIN(conv_ceil(s->in[2] - first, stride), x->d->pitch);
    const float alpha = (float)x->r.p->alpha;
    to += (lo * stride + first) * x->r.p->at.x[4];
    if (step == 1) {
        for (int64_t v = 0; v < hi - lo; v++) {
            to[v] += alpha * from[lo + v];
        }
        return;
    }
    for (int64_t v = lo; v < hi; v++, to += step) {
        *to += alpha * from[v];
    }
}

/* Stride 1: each row of x is a contiguous part of a row of the plane. */
static void write_rows(const struct call *x, int64_t image, int64_t c, const float *plane)
{
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *stride = x->r.p->at.x;
    for (int64_t i = 0; i < s->in[1]; i++) {
        const float *from = plane + (i + s->pad[1]) * x->d->pitch + s->pad[2];
        memcpy((float *)(void *)x->r.result + image * stride[0] + c * stride[1] + i * stride[3], from,
               (size_t)s->in[2] * sizeof *from);
    }
}

static void write_channel(const struct call *x, int64_t image, int64_t c, const float *planes)
{
    const struct scatter *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t *stride = x->r.p->at.x, at[5] = { image, c, 0, 0, 0 },
                  size[5] = { 1, 1, 1, s->in[1], s->in[2] };
    if (d->copied) {
        write_rows(x, image, c, planes);
        conv_finish(&x->r, at, size);
        return;
    }
    mc_conv_start(&x->r, at, size);
    for (int64_t i = MC_MAX(-s->pad[1], (int64_t)0); i < s->in[1]; i++) {
        const int64_t u = (i + s->pad[1]) / s->stride[1], r = (i + s->pad[1]) % s->stride[1];
        float *to = (float *)(void *)x->r.result + image * stride[0] + c * stride[1] + i * stride[3];
        for (int64_t q = 0; q < s->stride[2] && u < d->plane / d->pitch; q++) {
            add_row(x, to, planes + (r * s->stride[2] + q) * d->plane + u * d->pitch, q);
        }
    }
    conv_finish(&x->r, at, size);
}

static void part_task(void *arg, int64_t task, int slot)
{
    const struct call *x = arg;
    const struct scatter *d = x->d;
    const int64_t groups = x->r.p->s.groups, part = task % d->parts, g = task / d->parts % groups,
                  image = task / d->parts / groups;
    const int64_t first = part * d->channels, channels = MC_MIN(d->channels, d->to - first);
    const size_t own = d->slot_at + (size_t)slot * d->slot_bytes;
    const float *w = scratch_floats(x, d->w_at) +
                     (g * d->parts + part) * d->chunks * d->blocks * d->from * DIRECT_ROWS;
    float *strip = scratch_floats(x, own), *sum = scratch_floats(x, own + d->sum_at),
          *planes = scratch_floats(x, own + d->planes_at);
    const int64_t steps = conv_ceil(channels * d->taps, DIRECT_ROWS) * d->from;
    struct piece piece[WIDEST];
    memset(planes, 0, (size_t)(channels * d->channel) * sizeof *planes);
    for (int64_t p = 0; p < d->positions; p += d->width) {
        const int64_t n = MC_MIN(d->width, d->positions - p);
        spread_strip(x, w, channels * d->taps, pack_strip(x, image, g, p, n, strip), sum, planes, piece,
                     divide_work(x, p, n, piece), advance_strip(x, image, g, p + d->width, steps));
    }
    for (int64_t c = 0; c < channels; c++) {
        write_channel(x, image, g * d->to + first + c, planes + c * d->channel);
    }
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct scatter *d = (const struct scatter *)(const void *)plan;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    const int64_t groups = x.r.p->s.groups;
    const double work = mc_conv_work(x.r.p);
    mc_team_tasks(w_task, &x, groups * d->parts * d->chunks, x.r.threads, x.r.threads, work / 16);
    mc_team_tasks(part_task, &x, x.r.p->s.n * groups * d->parts, d->slots, x.r.threads, work);
    return MC_OK;
}

/* ---- planning ---- */

static int64_t farthest(const struct mc_conv_shape *s, int axis)
{
    return (s->k[axis] - 1) * s->dilation[axis] / s->stride[axis];
}

static void sizes(struct scatter *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const char *name = mc_gemm_kernel(MC_FLOAT32)->name;
    d->kernel = mc_direct_avx512 && strcmp(name, "avx512") == 0 ? mc_direct_avx512
                : mc_direct_avx2 && strcmp(name, "avx2") == 0   ? mc_direct_avx2
                                                                : mc_direct_plain;
    d->taps = s->k[1] * s->k[2];
    d->from = s->f / s->groups;
    d->to = s->c / s->groups;
    d->positions = s->out[1] * s->out[2];
    d->width = (int64_t)d->kernel->most * d->kernel->lanes;
    d->pitch = s->out[2] + farthest(s, 2);
    d->plane = (s->out[1] + farthest(s, 1)) * d->pitch;
    d->channel = d->plane * s->stride[1] * s->stride[2];
    /* The planes of a task's channels must fit in the L2 cache, and there must be enough tasks for a team. */
    const int64_t near = MC_MAX((int64_t)mc_cpu()->l2 * 3 / 4 / (4 * d->channel), (int64_t)1);
    const int64_t for_tasks = conv_ceil(d->to * s->n * s->groups, TASKS);
    d->parts = conv_ceil(d->to, MC_MIN(MC_MIN(near, for_tasks), d->to));
    d->channels = conv_ceil(d->to, d->parts);
    d->parts = conv_ceil(d->to, d->channels);
    d->rows = MC_MIN(MC_MAX(ROWS / s->k[2], (int64_t)1) * s->k[2], d->channels * d->taps);
    d->chunks = conv_ceil(d->channels * d->taps, d->rows);
    d->blocks = conv_ceil(d->rows, DIRECT_ROWS);
    d->adds_per_row = MC_MIN(s->stride[2], s->k[2]);
    d->copied = s->stride[1] == 1 && s->stride[2] == 1 && s->pad[1] >= 0 && s->pad[2] >= 0 && p->alpha == 1 &&
                p->beta == 0 && s->in[1] + s->pad[1] <= d->plane / d->pitch &&
                s->in[2] + s->pad[2] <= d->pitch && p->at.x[4] == 1;
    d->copies = d->from > WAYS && p->at.y[1] * 4 % (PAGE / 4) == 0;
}

static size_t take(size_t *at, int64_t count)
{
    const size_t start = *at;
    *at += ((size_t)count * sizeof(float) + LINE - 1) / LINE * LINE;
    return start;
}

static size_t lay_out(struct scatter *d, const struct mc_conv_shape *s, int slots)
{
    size_t at = 0;
    d->slot_bytes = 0;
    take(&d->slot_bytes, (d->from + 1) * d->width); /* kernels read up to a vector beyond the end */
    d->sum_at = take(&d->slot_bytes, d->blocks * DIRECT_ROWS * d->width);
    d->planes_at = take(&d->slot_bytes, d->channels * d->channel);
    d->w_at = take(&at, s->groups * d->parts * d->chunks * d->blocks * d->from * DIRECT_ROWS);
    d->slot_at = at;
    d->slots = slots;
    return at + (size_t)slots * d->slot_bytes;
}

/* Lists the taps of one row of a filter in the order of their sums in memory: phase by phase. */
static void list_row(struct scatter *d, const struct mc_conv_problem *p, int64_t a)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t e = a * s->dilation[1] / s->stride[1], r = a * s->dilation[1] % s->stride[1];
    int64_t n = a * s->k[2];
    /* taps i, i + stride, ... are in one phase for any dilation */
    for (int64_t i = 0; i < d->adds_per_row; i++) {
        const int64_t phase = i * s->dilation[2] % s->stride[2];
        d->add_rows[a * d->adds_per_row + i] = (struct add_rows){
            n, 0, (r * s->stride[2] + phase) * d->plane + e * d->pitch
        };
        for (int64_t b = i; b < s->k[2]; b += s->stride[2], n++) {
            d->w[n] = conv_tap(s, 1, a) * p->at.w[3] + conv_tap(s, 2, b) * p->at.w[4];
            d->off[n] = b * s->dilation[2] / s->stride[2];
            d->add_rows[a * d->adds_per_row + i].taps++;
        }
    }
}

static bool list_taps(struct scatter *d, const struct mc_conv_problem *p)
{
    d->w = mc_alloc((size_t)d->taps * sizeof *d->w, "plans");
    d->off = mc_alloc((size_t)d->taps * sizeof *d->off, "plans");
    d->add_rows = mc_alloc((size_t)(p->s.k[1] * d->adds_per_row) * sizeof *d->add_rows, "plans");
    if (!d->w || !d->off || !d->add_rows) {
        return false;
    }
    for (int64_t a = 0; a < p->s.k[1]; a++) {
        list_row(d, p, a);
    }
    return true;
}

static void release(struct mc_plan *plan)
{
    struct scatter *d = (struct scatter *)(void *)plan;
    mc_free(d->w);
    mc_free(d->off);
    mc_free(d->add_rows);
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    const size_t cap = p->options.workspace;
    struct scatter *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = release;
    sizes(d, conv(p));
    if (!list_taps(d, conv(p))) {
        release(&d->base);
        mc_free(d);
        return NULL;
    }
    int slots = 1;
    while (slots < mc_team_size() && lay_out(d, &conv(p)->s, slots + 1) <= cap) {
        slots++;
    }
    d->base.workspace = lay_out(d, &conv(p)->s, slots);
    return &d->base;
}

static bool dense_positions(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    return (s->out[2] == 1 || p->at.y[4] == 1) && (s->out[1] == 1 || p->at.y[3] == s->out[2]);
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct scatter d = { 0 };
    if (s->pass != CONV_INPUTS) {
        return "computes only inputs";
    }
    if (mc_conv_not_plain(p)) {
        return mc_conv_not_plain(p);
    }
    if (!dense_positions(p)) {
        return "needs contiguous positions in y";
    }
    sizes(&d, p);
    return lay_out(&d, s, 1) <= p->base.options.workspace
               ? NULL
               : "needs more workspace than the flag workspace allows";
}

/* The products of whole vectors and blocks of rows.  A strip of few vectors takes as long as the additions
 * of a sum wait for each other. */
static double product_cost(const struct scatter *d, const struct mc_conv_problem *p)
{
    const double least = mc_gemm_kernel(MC_FLOAT32)->flops / 2 / d->kernel->lanes;
    const int64_t rest = d->positions % d->width, last = d->to - (d->parts - 1) * d->channels;
    const double vectors = (double)(d->positions / d->width * d->kernel->most) +
                           (rest ? MC_MAX((double)conv_ceil(rest, d->kernel->lanes), least) : 0);
    const double rows = (double)(d->parts - 1) * (double)conv_ceil(d->channels * d->taps, DIRECT_ROWS) +
                        (double)conv_ceil(last * d->taps, DIRECT_ROWS);
    return 2 * (double)(p->s.n * p->s.groups * d->from) * rows * DIRECT_ROWS * vectors * d->kernel->lanes /
           (d->kernel->math[0] * mc_conv_peak(p));
}

/* Sums are added to planes, a row of y at a time, and planes are copied to x, or added if they are phases. */
static double add_cost(const struct scatter *d, const struct mc_conv_shape *s)
{
    const double n = (double)(s->n * s->groups), channels = n * (double)d->to;
    const double pieces = (double)(s->out[1] + conv_ceil(d->positions, d->width) - 1);
    const double vectors = (double)conv_ceil(MC_MIN(s->out[2], d->width), d->kernel->lanes);
    const double taps = (double)d->taps * vectors * d->kernel->add[1],
                 calls = (double)(s->k[1] * d->adds_per_row) * d->kernel->add[0];
    return channels * (pieces * (calls + taps) + 0.06e-9 * (double)d->channel +
                       (d->copied ? 0.4e-9 : 1e-9) * (double)(s->in[1] * s->in[2]));
}

/* The products, the filters that are packed, and the sums that are added.  The
 * constants are those of Zen 4, at 3.8 GHz, one thread. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct scatter d = { 0 };
    sizes(&d, p);
    const double n = (double)(s->n * s->groups);
    const int64_t filters = s->groups * d.parts * d.chunks * d.blocks * DIRECT_ROWS * d.from;
    const double seconds = product_cost(&d, p) + 1.6e-9 * (double)filters +
                           mc_conv_lost_lines(filters, p->at.w[0], d.from) + add_cost(&d, s) +
                           mc_conv_copy(mc_conv_bytes(p));
    return 3e-6 + seconds / mc_conv_threads(seconds, n * (double)d.parts) + (seconds > 4e-6 ? 6e-6 : 0);
}

const struct mc_solver mc_conv_col2im = {
    .name = "spread", .refuse = refuse, .estimate = estimate, .plan = plan,
};
