/* direct.c: convolutions summed tap by tap, with any stride and dilation: layout of planes and taps,
 * refusals, estimates.
 *
 * Invariant: a problem that refuse() accepts fits in the workspace cap. */
#include "heavy/conv/cpu/direct/plan.h"
#include "heavy/gemm/cpu/kernel.h"

enum {
    LINE = 64,
    NEAR = 4 << 20, FAR = 24 << 20, /* most bytes of the planes of a chunk of images; FAR for weights */
    PART = 1024,                    /* positions of a task */
    OWN  = 2,                       /* most blocks for which tasks copy the source themselves */
    /* by columns: least images, which are the tasks; most numbers of w, and channels; shares of the images */
    IMAGES = 8, FEW = 1 << 16, CHANNELS = 4, SHARES = 16, FEW_SHARES = 4,
};

static const struct mc_direct_kernel *kernel(void)
{
    const char *name = mc_gemm_kernel(MC_FLOAT32)->name;
    return mc_direct_avx512 && strcmp(name, "avx512") == 0 ? mc_direct_avx512
           : mc_direct_avx2 && strcmp(name, "avx2") == 0   ? mc_direct_avx2
                                                           : mc_direct_plain;
}

/* ---- geometry ---- */

/* The largest e of a tap a, where a * dilation = e * stride + phase. */
static int64_t max_reach(const struct mc_conv_shape *s, int axis)
{
    return (s->k[axis] - 1) * s->dilation[axis] / s->stride[axis];
}

/* Zeros at the end of a row of a plane that are also those at the start of the next one, in all phases. */
static int64_t shared_zeros(const struct direct *d, const struct mc_conv_shape *s)
{
    const struct direct_axis *a = &d->read[1];
    const int64_t extent = s->pass == CONV_INPUTS ? s->out[2] : s->in[2];
    int64_t shared = s->pass == CONV_WEIGHTS ? 0 : max_reach(s, 2);
    for (int64_t phase = 0; phase < a->stride; phase++) {
        int64_t lo, hi;
        mc_direct_inside(a, phase, extent, &lo, &hi);
        shared = MC_MIN(shared, MC_MIN(lo, a->count - hi));
    }
    return shared;
}

/* The shape of a block.  Tall ones may compute a third more rows than there are; the widest are taken where
 * they cover all positions at once. */
static struct mc_direct_tall best_block(const struct direct *d, const struct mc_conv_shape *s)
{
    const struct mc_direct_tall *tall = d->kernel->tall;
    struct mc_direct_tall best = { DIRECT_ROWS, d->kernel->most };
    for (int i = 0; i < 2 && s->pass != CONV_WEIGHTS; i++) {
        const bool fits = tall[i].rows > 0 && 3 * conv_ceil(d->to, tall[i].rows) * tall[i].rows <= 4 * d->to;
        if (fits && (best.rows == DIRECT_ROWS || d->positions / d->kernel->lanes == tall[i].vectors)) {
            best = tall[i];
        }
    }
    return best;
}

static void axes(struct direct *d, const struct mc_conv_shape *s)
{
    int64_t rows = 0;
    for (int i = 0; i < 2; i++) {
        const int axis = 1 + i;
        const int64_t stride = s->stride[axis], far = max_reach(s, axis);
        if (s->pass == CONV_INPUTS) { /* positions U = (x + pad - phase) / stride, from the least U */
            const int64_t least = s->pad[axis] >= 0 ? s->pad[axis] / stride
                                                    : -conv_ceil(-s->pad[axis], stride);
            const int64_t last = s->pad[axis] + s->in[axis] - 1;
            const int64_t count = (last >= 0 ? last / stride : -conv_ceil(-last, stride)) - least + 1;
            d->read[i] = (struct direct_axis){ 1, far - least, count + far };
            d->write[i] = (struct direct_axis){ stride, s->pad[axis] - least * stride, count };
        } else {
            d->read[i] = (struct direct_axis){ stride, s->pad[axis], s->out[axis] + far };
            d->write[i] = (struct direct_axis){ 1, 0, s->out[axis] };
        }
        rows = i == 0 ? d->write[0].count : rows;
    }
    const int64_t lanes = d->kernel->lanes;
    d->pitch = d->read[1].count - shared_zeros(d, s);
    d->phases = s->pass == CONV_INPUTS ? s->stride[1] * s->stride[2] : 1;
    d->taps = s->k[1] * s->k[2];
    d->from = (s->pass == CONV_INPUTS ? s->f : s->c) / s->groups;
    d->to = (s->pass == CONV_INPUTS ? s->c : s->f) / s->groups;
    d->own = s->pass != CONV_WEIGHTS && d->to <= OWN * DIRECT_ROWS;
    /* The positions for which all source channels, as floats, fill the L2 cache. */
    const int64_t near = (int64_t)mc_cpu()->l2 / 4 / (d->from * d->read[0].stride * d->read[1].stride);
    const int64_t some = d->own ? MC_MAX(MC_MIN(near, (int64_t)3 * PART), (int64_t)PART / 4) : PART;
    const int64_t most = s->pass == CONV_WEIGHTS ? rows : MC_MIN(MC_MAX(some / d->pitch, (int64_t)1), rows);
    d->parts = conv_ceil(rows, most);
    d->rows = conv_ceil(rows, d->parts);
    d->parts = conv_ceil(rows, d->rows);
    d->positions = conv_ceil((d->rows - 1) * d->pitch + d->write[1].count, lanes) * lanes;
    const int64_t above = d->own ? 0 : (d->parts - 1) * d->rows,
                  high = d->own ? d->rows + max_reach(s, 1) : d->read[0].count;
    const int64_t reach = (above + max_reach(s, 1)) * d->pitch + d->positions + max_reach(s, 2);
    d->plane = conv_ceil(MC_MAX(high * d->pitch, reach), lanes) * lanes;
    /* Planes at a distance that is a multiple of 1 KiB map to few sets of the L1 cache. */
    d->plane += s->pass != CONV_WEIGHTS && d->plane % 256 == 0 ? lanes : 0;
    d->channel = d->plane * d->read[0].stride * d->read[1].stride;
    d->dy = conv_ceil(MC_MAX(rows * d->pitch, d->positions), lanes) * lanes;
    d->block = d->kernel->sum_tall ? best_block(d, s)
                                   : (struct mc_direct_tall){ DIRECT_ROWS, d->kernel->most };
    d->blocks = conv_ceil(d->to, d->block.rows);
}

static int64_t phase_of(const struct mc_conv_shape *s, int axis, int64_t a)
{
    return a * s->dilation[axis] % s->stride[axis];
}

/* The same with a plane for each column of taps: gradients of few filters, and forward of few channels, whose
 * tasks copy them. */
static bool columns(struct direct *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t lanes = d->kernel->lanes, size = sizeof(float);
    const bool weights = s->pass == CONV_WEIGHTS;
    d->numbers = s->f * d->from * d->taps;
    if (s->n < IMAGES) {
        return false;
    }
    if (weights ? d->numbers > FEW : s->pass != CONV_FORWARD || d->from > CHANNELS || d->to < DIRECT_ROWS) {
        return false;
    }
    d->columns = s->k[2];
    d->pitch = s->out[2];
    d->read[1].count = s->out[2];
    d->dy = d->positions = conv_ceil(s->out[1] * d->pitch, lanes) * lanes;
    d->plane = max_reach(s, 1) * d->pitch + d->positions;
    d->channel = d->plane * d->read[0].stride * d->columns;
    d->in_place = s->out[1] * d->pitch == d->positions && (s->out[2] == 1 || p->at.y[4] == 1) &&
                  (s->out[1] == 1 || p->at.y[3] == s->out[2]);
    if (!weights) {
        d->own = true;
        d->images = s->n;
        d->parts = 1;
        d->rows = s->out[1];
        d->in_place = d->in_place && p->alpha >= 1 && p->alpha <= 1 && p->beta >= 0 && p->beta <= 0;
        return d->from * d->channel * size <= (int64_t)mc_cpu()->l2 / 8;
    }
    /* A channel and a block of y stay in the L1 cache. Lanes are added up once for as many images. */
    const int64_t near = MC_MAX((int64_t)mc_cpu()->l1d / ((d->channel + DIRECT_ROWS * d->dy) * size),
                                (int64_t)1),
                  all = (int64_t)mc_cpu()->l2 / 2 / (d->from * d->channel * size);
    d->shares = MC_MIN(MC_MAX(s->n / near, (int64_t)FEW_SHARES), MC_MIN((int64_t)SHARES, s->n));
    d->images = MC_MIN(MC_MIN(near, all), MC_MIN(DIRECT_ENOUGH / d->positions, conv_ceil(s->n, d->shares)));
    d->images = MC_MAX(d->images, (int64_t)1);
    return true;
}

/* Lists the taps of every phase of the result, in their order in w. */
static bool list_taps(struct direct *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const bool inputs = s->pass == CONV_INPUTS;
    d->first = mc_alloc((size_t)(d->phases + 1) * sizeof *d->first, "plans");
    d->tap = mc_alloc((size_t)d->taps * sizeof *d->tap, "plans");
    d->off = mc_alloc((size_t)d->taps * sizeof *d->off, "plans");
    if (!d->first || !d->tap || !d->off) {
        return false;
    }
    int64_t n = 0;
    for (int64_t phase = 0; phase < d->phases; phase++) {
        d->first[phase] = n;
        for (int64_t t = 0; t < d->taps; t++) {
            const int64_t a[2] = { t / s->k[2], t % s->k[2] };
            int64_t e[2], r[2];
            for (int i = 0; i < 2; i++) {
                e[i] = a[i] * s->dilation[1 + i] / s->stride[1 + i];
                r[i] = phase_of(s, 1 + i, a[i]);
            }
            const int64_t own = r[0] * s->stride[2] + r[1];
            const int64_t w = conv_tap(s, 1, a[0]) * p->at.w[3] + conv_tap(s, 2, a[1]) * p->at.w[4];
            if (inputs && own != phase) {
                continue;
            }
            d->tap[n].w = w;
            d->tap[n].off = d->columns ? (r[0] * d->columns + a[1]) * d->plane + e[0] * d->pitch
                            : inputs   ? (max_reach(s, 1) - e[0]) * d->pitch + max_reach(s, 2) - e[1]
                                       : own * d->plane + e[0] * d->pitch + e[1];
            d->off[n] = d->tap[n].off;
            n++;
        }
    }
    d->first[d->phases] = n;
    return true;
}

/* ---- workspace ---- */

static size_t take(size_t *at, int64_t floats)
{
    const size_t offset = *at;
    *at += ((size_t)floats * sizeof(float) + LINE - 1) / LINE * LINE;
    return offset;
}

static size_t lay_out(struct direct *d, const struct mc_conv_shape *s, int64_t images, int slots)
{
    const bool weights = s->pass == CONV_WEIGHTS;
    size_t at = 0;
    if (d->columns && weights) {
        d->slots = slots;
        d->sums_at = take(&at, d->shares * d->numbers * 2); /* of double */
        d->slot_at = at;
        d->slot_bytes = 0;
        d->dy_at = take(&d->slot_bytes, d->in_place ? 0 : images * DIRECT_ROWS * d->dy);
        d->source_at = take(&d->slot_bytes, images * d->from * d->channel);
        return at + (size_t)slots * d->slot_bytes;
    }
    d->images = images;
    d->slots = slots;
    d->source_at = take(&at, d->own ? 0 : images * d->from * s->groups * d->channel);
    d->dy_at = take(&at, weights ? images * s->f * d->dy : 0);
    d->w_at = take(&at, weights ? 0 : direct_filters(d, s));
    d->slot_at = at;
    d->slot_bytes = 0;
    take(&d->slot_bytes, weights ? 0 : direct_sums(d) + (d->own ? d->from * d->channel : 0));
    return at + (size_t)slots * d->slot_bytes;
}

/* Takes as many images at a time as fit in the caches and the cap. False: not even one image fits in the
 * cap. */
static bool fit(struct direct *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const size_t cap = p->base.options.workspace;
    d->stays = p->w_stays && s->pass != CONV_WEIGHTS;
    axes(d, s);
    d->woven = DIRECT_BY_VECTORS && s->pass == CONV_INPUTS && s->stride[2] == 2 && p->at.x[4] == 1;
    struct direct by_columns = *d;
    if (columns(&by_columns, p) && lay_out(&by_columns, s, by_columns.images, 1) <= cap) {
        *d = by_columns;
        return true;
    }
    const size_t near = s->pass == CONV_WEIGHTS ? FAR : NEAR;
    int64_t images = s->n;
    while (images > 1 && (lay_out(d, s, images, 1) > cap || d->w_at > near)) {
        images = conv_ceil(images, 2);
    }
    return lay_out(d, s, images, 1) <= cap;
}

/* ---- solver ---- */

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct direct d = { .kernel = kernel() };
    if (mc_conv_not_plain(p)) {
        return mc_conv_not_plain(p);
    }
    return fit(&d, p) ? NULL : "needs more workspace than the flag workspace allows";
}

static void release(struct mc_plan *plan)
{
    struct direct *d = (struct direct *)(void *)plan;
    mc_free(d->first);
    mc_free(d->tap);
    mc_free(d->off);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct direct *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = mc_direct_run;
    d->base.destroy = release;
    d->kernel = kernel();
    if (!fit(d, p)) {
        mc_fail(MC_EUNSUPPORTED, "conv: the workspace is too small for one image in solver direct");
        mc_free(d);
        return NULL;
    }
    const int64_t each = d->from * d->taps * d->block.rows;
    d->far = direct_filters(d, &p->s) * (int64_t)sizeof(float) > (int64_t)mc_cpu()->l2 / 2 ? each : 0;
    if (!list_taps(d, p)) {
        release(&d->base);
        mc_free(d);
        return NULL;
    }
    const size_t cap = p->base.options.workspace, one = lay_out(d, &p->s, d->images, 1);
    int slots = 1;
    while (slots < mc_team_size() && one + (size_t)slots * d->slot_bytes <= cap) {
        slots++;
    }
    d->base.workspace = lay_out(d, &p->s, d->images, slots);
    if (d->stays) {
        d->base.prepared = (size_t)direct_filters(d, &p->s) * sizeof(float);
        d->base.prepare = mc_direct_prepare;
    }
    return &d->base;
}

/* Weights loads a vector for each row and tap of a block, two loads a cycle. Returns the time of the loads
 * relative to the products, at least 1. */
static double few_rows(const struct direct *d)
{
    const double taps = (double)MC_MIN(d->taps, (int64_t)d->kernel->most);
    return MC_MAX(2 * (DIRECT_ROWS + taps) / (DIRECT_ROWS * taps), 1);
}

/* Weights also adds up lanes, once for each chunk of images, and long planes do not fit in the caches. */
static double sum_cost(const struct direct *d, const struct mc_conv_shape *s)
{
    const double weights = (double)s->groups * (double)d->from * (double)d->to * (double)d->taps,
                 positions = (double)(d->positions * d->parts);
    if (d->columns) {
        return weights * (6e-9 * (double)s->n / (double)d->images + 2e-9 * (double)d->shares);
    }
    return weights * 10e-9 *
           ((double)conv_ceil(s->n, d->images) + (double)s->n * MC_MIN(positions, 8192) / 8192);
}

/* Seconds of one thread to copy rows of the source into planes, and results out of them. */
static double plane_cost(const struct direct *d, const struct mc_conv_shape *s)
{
    const double n = (double)s->n * (double)s->groups, from = n * (double)d->from;
    const struct direct_axis *rows = &d->read[0], *columns = &d->read[1];
    const double lines = (double)(rows->count * rows->stride * columns->stride);
    const double written = (double)(d->to * d->positions) * (double)(d->parts * d->phases);
    if (d->columns) {
        const double own = (double)d->columns * (double)(s->out[1] + max_reach(s, 1)) * (double)rows->stride;
        return from * ((double)d->channel * (s->stride[2] > 1 ? 1e-9 : 0.1e-9) + own * 2e-9) +
               n * (double)(d->in_place ? 0 : d->to * d->dy) * 0.2e-9;
    }
    const double copied = (double)d->channel * (columns->stride > 1 ? 0.5e-9 : 0.1e-9) + lines * 5e-9;
    return from * copied * (double)(d->own ? d->parts : 1) + n * written * 0.6e-9;
}

/* Filters are packed number by number; for inputs the reads jump from filter to filter. */
static double filter_cost(const struct direct *d, const struct mc_conv_problem *p)
{
    const double numbers = d->stays ? 0 : (double)(p->s.f * d->from * d->taps);
    const bool far = p->s.pass == CONV_INPUTS && numbers * sizeof(float) > (double)mc_cpu()->l3 / 4;
    return numbers * (far ? 4e-9 : 1.3e-9);
}

/* Every position of the pitch is computed, blocks with few rows cost at least their loads, filters are
 * packed, and planes are written and read.  The constants are those of Zen 4, at 3.8 GHz, one thread. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct direct d = { .kernel = kernel() };
    fit(&d, p);
    const bool weights = s->pass == CONV_WEIGHTS;
    const int64_t high = best_block(&d, s).rows,
                  blocks = conv_ceil(d.to, high); /* also in the runtime library */
    const double n = (double)s->n * (double)s->groups, from = (double)d.from, taps = (double)d.taps;
    const double positions = (double)d.positions * (double)d.parts,
                 last = high != DIRECT_ROWS ? (double)high : (double)(d.to - (blocks - 1) * high);
    const double rows = (double)((blocks - 1) * high) + MC_MAX(last, 2.2);
    const double dots_math = 0.78; /* of the peak */
    const double math = 2 * n * rows * from * taps * positions / mc_conv_peak(p);
    const double seconds = (weights ? math / dots_math * few_rows(&d) + sum_cost(&d, s)
                                    : math / d.kernel->math[high != DIRECT_ROWS] + filter_cost(&d, p)) +
                           plane_cost(&d, s) + mc_conv_copy(mc_conv_bytes(p));
    return 3e-6 + seconds / mc_conv_threads(seconds, (double)blocks * n * (double)d.parts) +
           (seconds > 4e-6 ? 6e-6 : 0);
}

const struct mc_solver mc_conv_direct = {
    .name = "direct", .refuse = refuse, .estimate = estimate, .plan = plan,
};
