/* grouped.c: plans of grouped convolutions with few channels in a group.  So many groups are woven that their
 * channels fill whole vectors (grouped.h).  Where positions and taps are in the copies: plan.h.
 *
 * Invariant: what a problem's plan lists follows from its shape and strides alone. */
#include "heavy/conv/cpu/grouped/plan.h"
#include <math.h>
#include <stdlib.h>

enum {
    LINE = 64,
    BAND = 65536,    /* floats of the copies of a band */
    MOST = 1 << 20,  /* most floats of a copy */
    SHORT = 512,     /* positions whose products are summed in float32: more are less precise */
    TASKS = 32,
    TAPS = 256,      /* most taps of a filter */
    MANY = 64,       /* most channels of a group */
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

static int64_t off_of(const struct grouped_side *side, const struct mc_conv_shape *s, int axis, int64_t a)
{
    return s->pass == CONV_INPUTS ? side->reach - a * s->dilation[axis] / s->stride[axis]
                                  : a * s->dilation[axis];
}

static const int64_t *source_size(const struct mc_conv_shape *s)
{
    return s->pass == CONV_INPUTS ? s->out : s->in;
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
        d->side[i] = inputs ? (struct grouped_side){ 1,
                                                     stride,
                                                     far / stride,
                                                     pad,
                                                     conv_ceil(s->in[1 + i] + pad, stride),
                                                     far / stride }
                            : (struct grouped_side){ stride, 1, pad, 0, s->out[1 + i], far };
    }
    const struct grouped_side *rows = &d->side[0], *columns = &d->side[1];
    d->len = MC_MAX(columns->count + columns->reach / columns->step,
                    (source_size(s)[2] - 1 + columns->before) / columns->step + 1);
    d->pitch = d->len * columns->step * d->width;
    d->together = d->last ? MC_MIN(d->units, (int64_t)GROUPED_TOGETHER) : 1;
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
    const struct grouped_side *columns = &d->side[1];
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
    const struct grouped_side *columns = &d->side[1];
    const int64_t in = source_size(&p->s)[2], out = p->s.out[2];
    for (int64_t i = 0; i < d->lines * in; i++) {
        const int64_t at = i % in + columns->before;
        d->place[i] = (int)((i / in * columns->step + at % columns->step) * d->len + at / columns->step);
    }
    for (int64_t i = 0; d->place_y && i < d->rows * out; i++) {
        d->place_y[i] = (int)(i / out * (out + 2 * (GROUPED_TAPS - 1)) + GROUPED_TAPS - 1 + i % out);
    }
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
    d->base.run = mc_grouped_run;
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
        d->base.prepare = mc_grouped_prepare;
    }
    d->slots = (int)MC_MAX(MC_MIN((size_t)mc_team_size(), (cap - MC_MIN(d->w_bytes, cap)) / d->slot_bytes),
                           (size_t)1);
    d->slots = MC_MIN(d->slots, GROUPED_SLOTS);
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
