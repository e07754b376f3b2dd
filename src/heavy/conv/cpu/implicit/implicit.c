/* implicit.c: implicit products: the tables of offsets, blocks, refusals and estimates.
 *
 * Invariant: a problem that refuse() accepts fits in the workspace cap. */
#include "heavy/conv/cpu/implicit/plan.h"
#include <math.h>

enum {
    LINE = 64,
    DEEP = 256, /* about how many terms of a sum are added at a time: a panel in L1 */
    DEEPEST = 384, /* of gradients of filters, at most: 256 to 384 */
    CELL = IMPLICIT_CELL,
    LEAST_CELL = 64, /* positions of a block */
    TASKS = 8,       /* wanted */
    ROWS = 64,       /* of a block of weights, at least */
    NEAR = 4 << 20,
    FAR = 16 << 20, /* most bytes of a chunk of images; FAR for weights */
};

/* ---- axes and taps ---- */

/* Axis i of phase r, for inputs of the positions u * stride + r - pad of x; appends its taps to *number. */
static struct implicit_axis axis_of(const struct mc_conv_shape *s, int i, int64_t r, int64_t **number)
{
    const int64_t stride = s->stride[i], pad = s->pad[i], dilation = s->dilation[i];
    struct implicit_axis a = {
        .count = s->out[i], .step = 1, .from = -pad, .stride = stride, .at = *number, .w = *number + s->k[i]
    };
    if (s->pass == CONV_INPUTS) {
        const int64_t lo = conv_ceil(pad - r, stride), hi = conv_ceil(s->in[i] + pad - r, stride);
        a.count = MC_MAX(hi - lo, (int64_t)0), a.first = lo * stride + r - pad, a.step = stride;
        a.from = lo, a.stride = 1;
    }
    for (int64_t t = 0; t < s->k[i]; t++) {
        if (s->pass == CONV_INPUTS && t * dilation % stride != r) {
            continue;
        }
        a.at[a.taps] = s->pass == CONV_INPUTS ? -(t * dilation / stride) : t * dilation;
        a.w[a.taps++] = conv_tap(s, i, t);
    }
    *number += 2 * s->k[i];
    return a;
}

static bool list_phases(struct implicit *d, const struct mc_conv_shape *s)
{
    const int64_t *by = s->stride;
    d->phases = s->pass == CONV_INPUTS ? conv_volume(by) : 1;
    d->phase = mc_calloc((size_t)d->phases, sizeof *d->phase, "plans");
    d->numbers = mc_alloc((size_t)(d->phases * 2 * (s->k[0] + s->k[1] + s->k[2])) * sizeof *d->numbers,
                          "plans");
    if (!d->phase || !d->numbers) {
        return false;
    }
    int64_t *number = d->numbers, taps = 0;
    for (int64_t i = 0; i < d->phases; i++) {
        struct implicit_phase *f = &d->phase[i];
        const int64_t r[3] = { i / by[2] / by[1], i / by[2] % by[1], i % by[2] };
        f->taps = f->positions = 1;
        for (int k = 0; k < 3; k++) {
            f->axis[k] = axis_of(s, k, r[k], &number);
            f->taps *= f->axis[k].taps;
            f->positions *= f->axis[k].count;
        }
        f->w_at = taps * d->from * d->vectors * d->kernel->lanes;
        taps += f->taps;
    }
    return true;
}

/* ---- the source ---- */

/* The elements of an axis of the source that are read, [*lo, *hi). */
static void reach(const struct implicit *d, int axis, int64_t *lo, int64_t *hi)
{
    *lo = INT64_MAX, *hi = INT64_MIN;
    for (int64_t i = 0; i < d->phases; i++) {
        const struct implicit_axis *a = &d->phase[i].axis[axis];
        for (int64_t t = 0; t < a->taps && a->count > 0; t++) {
            *lo = MC_MIN(*lo, a->from + a->at[t]);
            *hi = MC_MAX(*hi, a->from + (a->count - 1) * a->stride + a->at[t] + 1);
        }
    }
    if (*lo > *hi) {
        *lo = 0, *hi = 1;
    }
}

/* Elements at a distance that is a multiple of 1 KiB map to few sets of the L1 cache. */
static int64_t spread(int64_t floats)
{
    return floats % 256 ? floats : floats + 16;
}

static void lay_source(struct implicit *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t *size = s->pass == CONV_INPUTS ? s->out : s->in, *stride = implicit_source_strides(p);
    const int64_t channels = d->from * s->groups;
    d->channels_last = stride[1] == 1 && channels > 1;
    d->copies = d->channels_last && stride[4] % 256 == 0;
    for (int i = 0; i < 3; i++) {
        int64_t lo, hi;
        reach(d, i, &lo, &hi);
        d->before[i] = MC_MAX(-lo, (int64_t)0);
        d->size[i] = MC_MAX(d->before[i] + hi, d->before[i] + 1);
        d->copies |= lo < 0 || hi > size[i];
    }
    if (!d->copies) {
        memset(d->before, 0, sizeof d->before);
        memcpy(d->stride, stride + 1, sizeof d->stride);
        return;
    }
    d->stride[3] = d->channels_last ? spread(channels) : 1;
    d->stride[2] = d->size[2] * d->stride[3];
    d->stride[1] = d->size[1] * d->stride[2];
    const int64_t plane = d->size[0] * d->stride[1];
    d->stride[0] = d->channels_last ? 1 : spread(plane);
    d->image = d->channels_last ? plane : channels * d->stride[0];
}

/* ---- tables of offsets ---- */

static int64_t offset_of(const struct implicit *d, const struct implicit_phase *f, const int64_t tap[3])
{
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        at += f->axis[i].at[tap[i]] * d->stride[1 + i];
    }
    return at;
}

static void fill_taps(const struct implicit *d, const struct implicit_phase *f, int64_t block, int32_t *to)
{
    for (int64_t t = 0; t < f->taps; t++) {
        const int64_t k1 = f->axis[1].taps, k2 = f->axis[2].taps,
                      tap[3] = { t / k2 / k1, t / k2 % k1, t % k2 };
        for (int64_t c = 0; c < block; c++) {
            *to++ = (int32_t)(offset_of(d, f, tap) + c * d->stride[0]);
        }
    }
}

void mc_implicit_position(const struct implicit_phase *f, int64_t u, int64_t p[3])
{
    p[0] = u / f->axis[2].count / f->axis[1].count;
    p[1] = u / f->axis[2].count % f->axis[1].count;
    p[2] = u % f->axis[2].count;
}

int64_t mc_implicit_window(const struct implicit *d, const struct implicit_phase *f, const int64_t p[3])
{
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        at += (f->axis[i].from + p[i] * f->axis[i].stride + d->before[i]) * d->stride[1 + i];
    }
    return at;
}

static int64_t tap_in_w(const struct mc_conv_problem *p, const struct implicit_phase *f, int64_t t)
{
    const struct implicit_axis *a = f->axis;
    const int64_t *w = p->at.w + 2;
    return a[0].w[t / a[2].taps / a[1].taps] * w[0] + a[1].w[t / a[2].taps % a[1].taps] * w[1] +
           a[2].w[t % a[2].taps] * w[2];
}

/* Weights: rows in the order of w, if it has the taps of a channel side by side. */
static void order_rows(const struct implicit *d, const struct mc_conv_problem *p, int64_t block,
                       int64_t *in_w, int32_t *at)
{
    const struct implicit_phase *f = &d->phase[0];
    for (int64_t c = 0; c < block; c++) {
        for (int64_t t = 0; t < f->taps; t++) {
            const int64_t w = tap_in_w(p, f, t);
            in_w[d->by_channel ? c * f->taps + w : t * block + c] = c * p->at.w[1] + w;
            if (d->by_channel) {
                const int64_t k1 = f->axis[1].taps, k2 = f->axis[2].taps,
                              tap[3] = { t / k2 / k1, t / k2 % k1, t % k2 };
                at[c * f->taps + w] = (int32_t)(offset_of(d, f, tap) + c * d->stride[0]);
            }
        }
    }
}

static bool list_offsets(struct implicit *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t of_one = d->phase[0].positions,
                  positions = s->pass == CONV_WEIGHTS ? of_one * d->grouped : 0;
    const int64_t each = conv_volume(s->k) * (d->block + d->last_block);
    d->offsets = mc_alloc((size_t)(each + positions + 1) * sizeof *d->offsets, "plans");
    d->in_w[0] = positions ? mc_alloc((size_t)each * sizeof *d->in_w[0], "plans") : NULL;
    int32_t *at = d->offsets;
    if (!at || (positions && !d->in_w[0])) {
        return false;
    }
    d->in_w[1] = d->in_w[0] + d->phase[0].taps * d->block;
    for (int64_t i = 0; i < d->phases; i++) {
        struct implicit_phase *f = &d->phase[i];
        for (int last = 0; last < 2; last++) {
            const int64_t block = last ? d->last_block : d->block;
            f->at[last] = at;
            fill_taps(d, f, block, at);
            if (positions) {
                order_rows(d, p, block, d->in_w[last], at);
            }
            at += f->taps * block;
        }
    }
    d->position = at;
    const int64_t image = d->copies ? d->image : p->at.x[0];
    for (int64_t u = 0; u < positions; u++) {
        int64_t i[3];
        mc_implicit_position(&d->phase[0], u % of_one, i);
        d->position[u] = (int32_t)(mc_implicit_window(d, &d->phase[0], i) + u / of_one * image);
    }
    return true;
}

/* ---- blocks ---- */

static void divide(struct implicit *d, int64_t most)
{
    const int64_t parts = conv_ceil(d->from, MC_MAX(most, (int64_t)1));
    d->block = conv_ceil(d->from, parts);
    d->blocks = conv_ceil(d->from, d->block);
    d->last_block = d->from - (d->blocks - 1) * d->block;
}

/* Are positions of the array in order, at one distance? */
static bool is_linear(const int64_t stride[5], const int64_t size[3])
{
    return (size[1] == 1 || stride[3] == size[2] * stride[4]) &&
           (size[0] == 1 || stride[2] == size[1] * size[2] * stride[4]);
}

/* The part of an axis's taps that reads zeros, summed over positions, is about this. */
static double outside(const struct implicit *d, const struct mc_conv_shape *s, int axis)
{
    const int64_t extent = s->pass == CONV_INPUTS ? s->out[axis] : s->in[axis];
    const struct implicit_axis *a = &d->phase[0].axis[axis];
    int64_t out = 0;
    for (int64_t t = 0; t < a->taps; t++) {
        const int64_t first = a->from + a->at[t], last = first + (a->count - 1) * a->stride;
        out += MC_MIN(MC_MAX(-first, (int64_t)0) / a->stride +
                          MC_MAX(last - extent + 1, (int64_t)0) / a->stride,
                      a->count);
    }
    return (double)out / (double)MC_MAX(a->taps * a->count, (int64_t)1);
}

static void choose_weights_blocks(struct implicit *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t width = d->vectors * d->kernel->lanes, positions = d->phase[0].positions,
                  taps = d->phase[0].taps;
    const int64_t l2 = (int64_t)mc_cpu()->l2 / (int64_t)sizeof(float);
    const int64_t least = conv_ceil(ROWS, taps), each = conv_ceil(d->from * s->groups, TASKS);
    divide(d, MC_MIN(l2 / 4 / (taps * width), MC_MAX(each, least)));
    const bool far = !d->copies && fabs((double)p->at.x[0]) > INT32_MAX / DEEP / 2;
    d->grouped = far ? 1 : MC_MAX(MC_MIN(DEEP / positions, s->n), (int64_t)1);
    /* so many positions of y are a panel in L1; short sums are also precise */
    const int64_t panel = conv_ceil(d->vectors, d->panels) * d->kernel->lanes * (int64_t)sizeof(float),
                  deep = MC_MIN(MC_MAX((int64_t)mc_cpu()->l1d / panel, (int64_t)DEEP), (int64_t)DEEPEST);
    d->cell = d->grouped > 1 ? d->grouped * positions : conv_ceil(positions, conv_ceil(positions, deep));
    d->cells = conv_ceil(positions, d->cell);
    d->parts = MC_MIN(conv_ceil(TASKS, s->groups * d->blocks), d->cells);
    d->sums = s->groups * d->from * taps * width;
    d->by_channel = p->at.w[1] == taps && mc_conv_dense_inner(p, CONV_W, 3) && outside(d, s, 1) < 0.1;
}

static void choose_blocks(struct implicit *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t l2 = (int64_t)mc_cpu()->l2 / (int64_t)sizeof(float), width = d->vectors * d->kernel->lanes;
    int64_t most = 0, tasks = s->n * s->groups;
    for (int64_t i = 0; i < d->phases; i++) {
        most = MC_MAX(most, d->phase[i].positions);
    }
    if (s->pass == CONV_WEIGHTS) {
        choose_weights_blocks(d, p);
        return;
    }
    for (int i = 0; i < 3; i++) {
        d->cuts[i] = d->copies && outside(d, s, i) > (i < 2 ? 0.03 : 0.1);
    }
    /* a call of the kernel has one row of taps if these are cut */
    divide(d, DEEP / MC_MAX(d->cuts[2] ? d->phase[0].axis[2].taps : d->phase[0].taps, (int64_t)1));
    int64_t cell = MC_MAX(MC_MIN(l2 / 2 / width, (int64_t)CELL), (int64_t)LEAST_CELL);
    if (d->phases == 1) {
        cell = MC_MAX(MC_MIN(cell, most * tasks / TASKS), (int64_t)LEAST_CELL);
    }
    const int64_t mr = d->kernel->gathered_mr[conv_ceil(d->vectors, d->panels)];
    d->cell = conv_ceil(conv_ceil(most, conv_ceil(most, cell)), mr) * mr;
    d->cells = d->phases == 1 ? conv_ceil(most, d->cell) : 1;
    d->parts = MC_MIN(conv_ceil(TASKS, tasks * d->cells), d->panels);
    const int64_t *stride = s->pass == CONV_INPUTS ? p->at.x : p->at.y;
    d->direct = d->phases == 1 && stride[1] == 1 &&
                is_linear(stride, s->pass == CONV_INPUTS ? s->in : s->out);
    d->by_line = !d->direct && stride[1] == 1;
}

/* ---- workspace ---- */

static size_t take(size_t *at, int64_t floats)
{
    const size_t offset = *at;
    *at += ((size_t)floats * sizeof(float) + LINE - 1) / LINE * LINE;
    return offset;
}

static size_t lay_out(struct implicit *d, const struct mc_conv_shape *s, int64_t images, int slots)
{
    const int64_t width = d->vectors * d->kernel->lanes;
    size_t at = 0;
    d->images = images;
    d->slots = slots;
    d->slot_bytes = 0;
    d->source_at = take(&at, d->copies ? images * d->image : 0);
    if (s->pass == CONV_WEIGHTS) {
        d->w_at = take(&at, images * s->groups * d->phase[0].positions * width);
        d->sums_at = take(&at, d->parts * d->sums);
    } else {
        d->w_at = take(&at, s->groups * d->from * conv_volume(s->k) * width);
        take(&d->slot_bytes, (d->direct ? 0 : d->cell * width) + d->cell * IMPLICIT_TURNED);
        take(&d->slot_bytes, conv_volume(s->k) * d->block * width);
    }
    d->slot_at = at;
    return at + (size_t)slots * d->slot_bytes;
}

/* Takes as many images at a time as fit in the caches and the cap, and parts of their positions. */
static bool fit(struct implicit *d, const struct mc_conv_shape *s, size_t cap)
{
    const size_t near = s->pass == CONV_WEIGHTS ? FAR : NEAR;
    int64_t images = s->n;
    while (images > 1 &&
           (lay_out(d, s, images, 1) > cap || (s->pass == CONV_WEIGHTS ? d->sums_at : d->w_at) > near)) {
        images = conv_ceil(images, 2);
    }
    d->grouped = MC_MIN(d->grouped, images);
    while (d->parts > 1 && s->pass == CONV_WEIGHTS && lay_out(d, s, images, 1) > cap) {
        d->parts--;
    }
    return lay_out(d, s, images, 1) <= cap;
}

/* ---- solver ---- */

static void release(struct mc_plan *plan)
{
    struct implicit *d = (struct implicit *)(void *)plan;
    mc_free(d->phase);
    mc_free(d->numbers);
    mc_free(d->offsets);
    mc_free(d->in_w[0]);
}

/* The widest vectors, unless narrower ones leave fewer lanes idle by a quarter. */
static const struct mc_gemm_kernel *kernel_for(int64_t to)
{
    const struct mc_gemm_kernel *wide = mc_gemm_kernel(MC_FLOAT32), *narrow = mc_gemm_avx2[0];
    if (!narrow || !mc_isa_runs(ISA_AVX2) || narrow->lanes >= wide->lanes) {
        return wide;
    }
    const int64_t by_wide = conv_ceil(to, wide->lanes) * wide->lanes,
                  by_narrow = conv_ceil(to, narrow->lanes) * narrow->lanes;
    return 4 * by_narrow <= 3 * by_wide ? narrow : wide;
}

static void start(struct implicit *d, const struct mc_conv_shape *s)
{
    d->from = (s->pass == CONV_INPUTS ? s->f : s->c) / s->groups;
    d->to = (s->pass == CONV_INPUTS ? s->c : s->f) / s->groups;
    d->kernel = kernel_for(d->to);
    d->vectors = conv_ceil(d->to, d->kernel->lanes);
    d->panels = conv_ceil(d->vectors, d->kernel->nr / d->kernel->lanes);
}

/* False: out of memory. */
static bool shape_plan(struct implicit *d, const struct mc_conv_problem *p)
{
    start(d, &p->s);
    if (!list_phases(d, &p->s)) {
        return false;
    }
    lay_source(d, p);
    choose_blocks(d, p);
    return true;
}

/* Offsets are 32 bits wide. */
static bool is_large(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t *stride = implicit_source_strides(p), *size = s->pass == CONV_INPUTS ? s->out : s->in;
    double copy = (double)(s->c + s->f + 16), own = 0;
    for (int i = 0; i < 3; i++) {
        const bool counts = s->in[i] > 1 || s->k[i] > 1 || s->pad[i] != 0;
        copy *= counts
                    ? (double)(MC_MAX(s->in[i], s->out[i] * s->stride[i]) + 2 * s->k[i] * s->dilation[i] + 16)
                    : 1;
        own += (double)size[i] * fabs((double)stride[2 + i]);
    }
    return copy > INT32_MAX || own + (double)(s->c + s->f) * fabs((double)stride[1]) > INT32_MAX;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (p->dtype != MC_FLOAT32 || p->wide) {
        return "sums only in float32";
    }
    if (p->s.unshared) {
        return "takes filters shared by all positions";
    }
    if (is_large(p)) {
        return "has offsets of 31 bits";
    }
    if (p->s.pass == CONV_WEIGHTS && !is_linear(p->at.y, p->s.out)) {
        return "needs positions of y at one distance";
    }
    struct implicit d = { 0 };
    const bool fits = shape_plan(&d, p) && fit(&d, &p->s, p->base.options.workspace);
    release(&d.base);
    return fits ? NULL : "needs more workspace than the flag workspace allows";
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct implicit *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = p->s.pass == CONV_WEIGHTS ? mc_implicit_weights : mc_implicit_run;
    d->base.destroy = release;
    const size_t cap = p->base.options.workspace;
    if (!shape_plan(d, p) || !fit(d, &p->s, cap) || !list_offsets(d, p)) {
        release(&d->base);
        mc_free(d);
        return NULL;
    }
    const size_t one = lay_out(d, &p->s, d->images, 1);
    int slots = 1;
    while (slots < mc_team_size() && one + (size_t)slots * d->slot_bytes <= cap) {
        slots++;
    }
    d->base.workspace = lay_out(d, &p->s, d->images, slots);
    if (p->w_stays) {
        const int64_t width = d->vectors * d->kernel->lanes;
        d->base.prepared = (size_t)(p->s.groups * d->from * conv_volume(p->s.k) * width) * sizeof(float);
        d->base.prepare = mc_implicit_prepare;
    }
    return &d->base;
}

/* Products of whole tiles, at the rate of panels of so many vectors; what starts and ends a tile; copies. */
/* libmonochord-run does not have this solver: it serves where solvers are timed, so that a function that was
 * planned by estimates has the same bits there. */
static double estimate(const struct mc_problem *p_)
{
    const double never = 1e3;
    if (mc_flag_int(FLAG_plan) == PLAN_ESTIMATE) {
        return never;
    }
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    struct implicit d = { 0 };
    start(&d, s);
    const bool weights = s->pass == CONV_WEIGHTS, inputs = s->pass == CONV_INPUTS;
    const double groups = (double)s->groups, n = (double)s->n, taps = (double)conv_volume(s->k);
    const double width = (double)(d.vectors * d.kernel->lanes), from = (double)d.from;
    const int64_t per = conv_ceil(d.vectors, d.panels);
    const double mr = d.kernel->gathered_mr[per], positions = (double)conv_volume(s->out);
    const double rate = MC_MIN((double)per * mr / 8, 1) * (per == 1 ? 0.75 : 0.88);
    const double products = n * groups * positions * from * taps * width;
    const double tiles = products / (mr * (double)per * d.kernel->lanes) /
                         MC_MIN(weights ? positions : from * taps, DEEP);
    const double source = n * (double)(inputs ? s->f : s->c) * (double)conv_volume(inputs ? s->out : s->in);
    const double result = n * groups * width * (double)conv_volume(inputs ? s->in : s->out);
    const double turned = (inputs ? p->at.x : p->at.y)[1] == 1 ? 0.1e-9 : 0.4e-9,
                 filters = groups * from * taps * width;
    const double packed = p->w_stays || weights
                              ? 0
                              : 0.7e-9 * filters +
                                    (inputs ? mc_conv_lost_lines((int64_t)filters, p->at.w[0], d.from) : 0);
    const double copies = 0.3e-9 * source + packed +
                          (weights ? 0.25e-9 * n * positions * groups * width : turned * result);
    const double seconds = 2 * products / (rate * mc_conv_peak(p)) + tiles * 30e-9 + copies +
                           mc_conv_copy(mc_conv_bytes(p));
    return 3e-6 + seconds / mc_conv_threads(seconds, TASKS) + (seconds > 4e-6 ? 6e-6 : 0);
}

const struct mc_solver mc_conv_implicit = {
    .name = "implicit",
    .refuse = refuse,
    .estimate = estimate,
    .plan = plan,
};
