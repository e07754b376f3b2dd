/* depthwise.c: convolutions with as many groups as channels, whose matrix products would be too small: form,
 * copies and taps of a plan, refusals, estimates.
 *
 * Invariant: form, copies and order of sums depend on the problem and the instruction set, never on the
 * number of threads. */
#include "heavy/conv/cpu/depthwise/plan.h"

enum {
    LINE = DEPTH_LINE_BYTES, TAPS = 1024,
    WIDTH = 64,         /* most channels of a block: four cache lines of a position */
    FEW = 8, NARROW = 40, /* channels and positions of a row for which small planes are turned */
    ENDS = 6,           /* positions of a row for each one at its ends that are read in place */
    PLANES = 16,        /* most of a block */
    TASKS = 16,         /* blocks are narrower, and images divided, to have so many tasks */
    FRACTION = 4,       /* of the L2 cache: the copies of a band */
};

static int64_t round_up(int64_t n, int64_t unit)
{
    return conv_ceil(n, unit) * unit;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -conv_ceil(-a, b);
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* ---- form and kernel ---- */

/* The instruction set whose vectors n elements fill best. Wider ones have less to do between the sums. */
static const struct mc_depth_kernel *kernel_for(int64_t n)
{
    const struct mc_depth_kernel *const table[ISA_COUNT] = {
        [ISA_AVX512] = mc_depth_avx512, [ISA_AVX2] = mc_depth_avx2, [ISA_PLAIN] = mc_depth_plain,
    };
    const struct mc_depth_kernel *best = mc_depth_plain;
    double least = 0;
    for (enum mc_isa i = ISA_AVX512; i < ISA_PLAIN; i++) {
        if (table[i] && mc_isa_runs(i)) {
            const double lanes = table[i]->lanes,
                         cost = (double)round_up(n, table[i]->lanes) * (1 + 2 / lanes);
            if (least == 0 || cost < least) {
                best = table[i];
                least = cost;
            }
        }
    }
    return best;
}

static bool channels_last(const struct mc_conv_problem *p)
{
    return p->s.c == p->s.f && p->s.c > 1 && p->at.x[1] == 1 && p->at.y[1] == 1;
}

static bool dense_plane(const int64_t stride[5], const int64_t size[3])
{
    return size[0] == 1 && stride[4] == 1 && (stride[3] == size[2] || size[1] == 1);
}

/* Dense planes whose rows fill few vectors: turning them costs less than their ends. */
static bool small_planes(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    return s->c == s->f && s->c >= FEW && s->k[0] == 1 && s->pad[0] == 0 && dense_plane(p->at.x, s->in) &&
           dense_plane(p->at.y, s->out) && s->out[2] <= NARROW && s->out[1] > 1;
}

/* ---- geometry ---- */

/* Indices of the result along an axis, and the index of x's phases that the first of them is. */
static int64_t indices(const struct mc_conv_shape *s, int axis, int64_t *first)
{
    if (s->pass != CONV_INPUTS) {
        *first = 0;
        return s->out[axis];
    }
    *first = floor_div(s->pad[axis], s->stride[axis]);
    return floor_div(s->in[axis] - 1 + s->pad[axis], s->stride[axis]) - *first + 1;
}

static void measure_axis(struct depth *d, const struct mc_conv_shape *s, int i)
{
    int64_t first, n = indices(s, i, &first);
    n = i == d->band_axis ? d->band : n;
    const int64_t wide = i == 2 && d->form != DEPTH_CHANNELS ? round_up(n, d->kernel->lanes) : n;
    d->reach[i] = (s->k[i] - 1) * s->dilation[i] / s->stride[i];
    struct depth_side *x = s->pass == CONV_INPUTS ? &d->to : &d->from,
                      *y = s->pass == CONV_INPUTS ? &d->from : &d->to;
    x->step[i] = s->stride[i];
    x->size[i] = s->in[i];
    y->step[i] = y->phases[i] = 1;
    y->size[i] = s->out[i];
    d->from.len[i] = wide + d->reach[i];
    d->to.len[i] = wide;
    if (s->pass == CONV_INPUTS) {
        x->phases[i] = s->stride[i];
        x->origin[i] = first * s->stride[i] - s->pad[i];
        y->origin[i] = first - d->reach[i];
    } else { /* only phases that a tap meets */
        x->phases[i] = MC_MIN(s->stride[i], (s->k[i] - 1) * s->dilation[i] + 1);
        x->origin[i] = -s->pad[i];
        y->origin[i] = 0;
    }
}

static size_t lines(int64_t n, size_t size)
{
    return ((size_t)n * size + LINE - 1) / LINE * LINE;
}

static void measure_side(struct depth_side *s, const struct depth *d)
{
    const int64_t width = d->width;
    s->filled = s->len[2];
    const bool unordered = conv_volume(s->phases) > 1 ||
                           s->len[0] > 1; /* rows are not written in their order */
    s->len[2] += d->form != DEPTH_CHANNELS && unordered ? d->kernel->lanes : 0;
    s->pitch = s->phases[2] * s->len[2] * width;
    s->floats = s->phases[0] * s->len[0] * s->phases[1] * s->len[1] * s->pitch;
}

/* Sizes for bands of d->band indices. Returns the bytes of one thread. */
static size_t measure(struct depth *d, const struct mc_conv_shape *s)
{
    for (int i = 0; i < 3; i++) {
        measure_axis(d, s, i);
    }
    measure_side(&d->from, d);
    measure_side(&d->to, d);
    const bool weights = s->pass == CONV_WEIGHTS, rows = d->form == DEPTH_CHANNELS && !weights;
    const int64_t filters = d->planes * d->each * d->taps, lanes = d->kernel->lanes,
                  step = MC_MAX(d->width, lanes),
                  from = d->straight ? 0
                                     : d->planes * d->from.floats * (s->pass == CONV_INPUTS ? d->each : 1),
                  to = rows ? d->to.size[2] * (d->turned ? d->to.size[1] : 1) * d->width
                            : d->planes * d->to.floats;
    d->to_at = LINE + lines(from + MC_MAX(lanes, d->width), sizeof(float));
    d->w_at = d->to_at + lines(to + lanes, sizeof(float));
    d->sums_at = d->w_at + lines(filters * (step + 1), sizeof(float));
    d->slot_bytes = d->sums_at + (weights ? lines(filters * step, sizeof(float)) : 0);
    return d->slot_bytes;
}

/* Bands as high as the copies fit in a part of the L2 cache, of nearly equal heights. */
static void divide(struct depth *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    int64_t first;
    for (int i = 0; i < 3; i++) {
        d->n[i] = indices(s, i, &first);
    }
    d->band_axis = d->n[0] > 1 ? 0 : d->n[1] > 1 ? 1 : 2;
    const int64_t length = d->n[d->band_axis];
    const size_t most = MC_MIN(mc_cpu()->l2 / FRACTION, p->base.options.workspace);
    d->bands = 0;
    do {
        d->bands = d->bands ? MC_MIN(d->bands + 1 + d->bands / 4, length) : 1;
        d->band = conv_ceil(length, d->bands);
    } while (measure(d, s) > most && d->bands < length);
    d->bands = conv_ceil(length, d->band);
}

/* Most windows of a row are inside of x, and it is worth the rows' ends one by one. */
static bool mostly_inside(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t reach = (s->k[2] - 1) * s->dilation[2] / s->stride[2], n = s->out[2];
    return channels_last(p) && s->pass != CONV_WEIGHTS && conv_volume(s->k) <= DEPTH_NEAR &&
           s->dilation[2] / gcd(s->stride[2], s->dilation[2]) == 1 && n >= ENDS * reach;
}

static void choose_form(struct depth *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    int64_t first;
    d->form = channels_last(p) || d->turned ? DEPTH_CHANNELS
              : indices(s, 1, &first) == 1  ? DEPTH_LINE
                                            : DEPTH_PLANES;
    d->kernel = kernel_for(d->form == DEPTH_CHANNELS ? s->c : indices(s, 2, &first));
    d->width = d->planes = 1;
    if (d->form == DEPTH_CHANNELS) {
        const int64_t lanes = d->kernel->lanes;
        d->width = MC_MIN(d->turned ? lanes : (int64_t)WIDTH, round_up(s->c, lanes));
        while (s->n * conv_ceil(s->c, d->width) < TASKS && d->width > 2 * lanes) {
            d->width = round_up(d->width / 2, lanes);
        }
        d->straight = mostly_inside(p) && s->c >= lanes;
        d->width = d->straight ? round_up(s->c, lanes) : d->width;
        d->blocks = conv_ceil(s->c, d->width);
        d->width = round_up(conv_ceil(s->c, d->blocks), lanes);
    }
    divide(d, p);
    if (d->straight) { /* nothing is copied: bands are tasks */
        const int64_t length = d->n[d->band_axis];
        d->bands = MC_MIN(MC_MAX(d->bands, conv_ceil(TASKS, s->n)), length);
        d->band = conv_ceil(length, d->bands);
        d->bands = conv_ceil(length, d->band);
        measure(d, s);
    }
}

/* Chooses the form, the width of blocks and the bands. */
static void choose(struct depth *d, const struct mc_conv_problem *p)
{
    d->each = p->s.f / p->s.c;
    d->taps = conv_volume(p->s.k);
    d->straight = false;
    d->turned = !channels_last(p) && small_planes(p);
    choose_form(d, p);
    if (d->turned && d->bands > 1) { /* too large for the cache */
        d->turned = false;
        choose_form(d, p);
    }
    const struct mc_conv_shape *s = &p->s;
    const int64_t small = (int64_t)mc_cpu()->l1d / 2 / (int64_t)sizeof(float) /
                          (d->from.floats + d->to.floats);
    if (d->form != DEPTH_CHANNELS) { /* small planes, several at a time */
        d->planes = MC_MAX(MC_MIN(MC_MIN(small, (int64_t)PLANES), s->c * s->n / TASKS), (int64_t)1);
        d->blocks = conv_ceil(s->c, d->planes);
        measure(d, s);
    }
    const int64_t row = s->pass == CONV_INPUTS ? s->in[2] : s->out[2];
    d->in_place = d->form == DEPTH_CHANNELS ||
                  (row % d->kernel->lanes == 0 && d->band_axis != 2 && conv_volume(d->to.phases) == 1);
    const int64_t pieces = s->n * d->bands;
    d->parts = s->pass == CONV_WEIGHTS ? MC_MIN(pieces, conv_ceil(TASKS, d->blocks)) : 1;
    d->parts_bytes = s->pass == CONV_WEIGHTS
                         ? lines(d->blocks * d->parts * d->each * d->taps * d->width * d->planes,
                                 sizeof(double))
                         : 0;
}

/* ---- taps ---- */

static int main_axis(const struct depth *d)
{
    return d->form == DEPTH_CHANNELS ? 2 : d->form == DEPTH_PLANES ? 1 : -1;
}

/* Offset in the copy of x (y for inputs) of what a tap reads for index 0. */
static int64_t tap_at(const struct depth *d, const struct mc_conv_shape *s, const int64_t tap[3])
{
    int64_t phase[3], v[3];
    for (int i = 0; i < 3; i++) {
        const int64_t far = tap[i] * s->dilation[i];
        phase[i] = s->pass == CONV_INPUTS ? 0 : far % s->stride[i];
        v[i] = s->pass == CONV_INPUTS ? d->reach[i] - far / s->stride[i] : far / s->stride[i];
    }
    return depth_offset(&d->from, d->width, phase, v);
}

/* Offset in w of a tap of a channel's filter, from the first one of the channel. */
static int64_t w_at(const struct mc_conv_problem *p, int64_t filter, const int64_t tap[3])
{
    const int64_t *t = p->at.w;
    return filter * t[0] + conv_tap(&p->s, 0, tap[0]) * t[2] + conv_tap(&p->s, 1, tap[1]) * t[3] +
           conv_tap(&p->s, 2, tap[2]) * t[4];
}

/* The same in the operand itself. */
static struct depth_near near_tap(const struct depth *d, const struct mc_conv_problem *p,
                                  const int64_t tap[3],
                                  int64_t w, int taps)
{
    const bool inputs = p->s.pass == CONV_INPUTS;
    const int64_t *mem = inputs ? p->at.y + 2 : p->at.x + 2;
    struct depth_near g = { .w = w, .taps = taps };
    for (int i = 0; i < 3; i++) {
        const int64_t far = tap[i] * p->s.dilation[i];
        g.far[i] = inputs ? d->reach[i] - far / p->s.stride[i] : far;
        g.at += g.far[i] * mem[i];
    }
    return g;
}

/* A walk over the taps of an axis that meet a phase of the result: every `by`-th from `from` on. */
struct walk { int64_t from, by, count; };

static bool meets(const struct mc_conv_shape *s, int axis, int64_t tap, int64_t phase)
{
    return s->pass != CONV_INPUTS || tap * s->dilation[axis] % s->stride[axis] == phase;
}

/* Appends the taps of a walk along the main axis as groups of nearly equal numbers of taps. */
static void add_groups(struct depth *d, const struct mc_conv_problem *p, int64_t filter, int64_t tap[3],
                       struct walk w, int64_t *taps, int64_t *groups)
{
    const struct mc_conv_shape *s = &p->s;
    const int axis = main_axis(d);
    int64_t left = w.count, chunks = conv_ceil(w.count, DEPTH_TAPS);
    for (int64_t t = 0; left > 0; chunks--) {
        const int64_t n = conv_ceil(left, chunks);
        for (int64_t j = 0; j < n; j++, t++) {
            if (axis >= 0) {
                tap[axis] = w.from + t * w.by;
            }
            d->at[*taps + j] = tap_at(d, s, tap);
            d->w[*taps + j] = w_at(p, filter, tap);
            d->one[*taps + j] = near_tap(d, p, tap, *taps + j, 1);
        }
        const int64_t plane = s->pass == CONV_INPUTS ? filter * d->from.floats : 0;
        d->near[*groups] = d->one[*taps];
        d->near[*groups].taps = (int)n;
        d->group[(*groups)++] = (struct mc_depth_group){ plane + d->at[*taps], *taps, (int)n };
        *taps += n;
        left -= n;
    }
}

/* All groups of one phase of the result. Along the main axis, taps that are `by` apart read rows that are
 * `spacing` apart; for inputs from the last tap to the first. */
static void add_list(struct depth *d, const struct mc_conv_problem *p, const int64_t phase[3], int64_t *taps,
                     int64_t *groups)
{
    const struct mc_conv_shape *s = &p->s;
    const int axis = main_axis(d);
    const int64_t by = axis < 0 ? 1 : s->stride[axis] / gcd(s->stride[axis], s->dilation[axis]);
    for (int64_t i = 0; i < d->each * d->taps; i++) {
        const int64_t tap_i = i % d->taps, filter = i / d->taps;
        int64_t tap[3] = { tap_i / (s->k[1] * s->k[2]), tap_i / s->k[2] % s->k[1], tap_i % s->k[2] };
        if (!meets(s, 0, tap[0], phase[0]) || !meets(s, 1, tap[1], phase[1]) ||
            !meets(s, 2, tap[2], phase[2])) {
            continue;
        }
        if (axis < 0) {
            add_groups(d, p, filter, tap, (struct walk){ 0, 0, 1 }, taps, groups);
        } else if (tap[axis] < by) { /* the first of its walk */
            const int64_t count = conv_ceil(s->k[axis] - tap[axis], by);
            const struct walk up = { tap[axis], by, count },
                              down = { tap[axis] + (count - 1) * by, -by, count };
            add_groups(d, p, filter, tap, s->pass == CONV_INPUTS ? down : up, taps, groups);
        }
    }
}

static void list_taps(struct depth *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int axis = main_axis(d);
    const int64_t *n = d->to.phases;
    int64_t taps = 0, groups = 0;
    d->spacing = axis < 0 ? 1 : s->dilation[axis] / gcd(s->stride[axis], s->dilation[axis]);
    for (int64_t i = 0; i < conv_volume(n); i++) {
        struct depth_list *l = &d->list[i];
        l->first = groups;
        l->tap = taps;
        add_list(d, p, (int64_t[]){ i / (n[1] * n[2]), i / n[2] % n[1], i % n[2] }, &taps, &groups);
        l->count = groups - l->first;
        l->taps = taps - l->tap;
        for (int64_t t = l->tap; t < taps; t++) {
            const int64_t far = d->one[t].far[2];
            l->least = t == l->tap ? far : MC_MIN(l->least, far);
            l->most = t == l->tap ? far : MC_MAX(l->most, far);
        }
    }
}

/* Where the positions of a plane are in its copy; those that no window reads are behind it. */
static void place_positions(struct depth *d)
{
    const struct depth_side *s = &d->from;
    for (int64_t i = 0; i < s->size[1] * s->size[2]; i++) {
        const int64_t j[2] = { i / s->size[2] - s->origin[1], i % s->size[2] - s->origin[2] };
        int64_t phase[3] = { 0 }, v[3] = { 0 };
        bool read = true;
        for (int k = 0; k < 2; k++) {
            phase[1 + k] = j[k] % s->step[1 + k];
            v[1 + k] = j[k] / s->step[1 + k];
            read = read && j[k] >= 0 && phase[1 + k] < s->phases[1 + k] && v[1 + k] < s->len[1 + k];
        }
        d->place[i] = (int)((read ? depth_offset(s, d->width, phase, v) : s->floats) / d->width);
    }
}

/* ---- planning ---- */

static void destroy(struct mc_plan *plan)
{
    struct depth *d = (struct depth *)(void *)plan;
    mc_free(d->w);
    mc_free(d->at);
    mc_free(d->group);
    mc_free(d->list);
    mc_free(d->place);
    mc_free(d->near);
    mc_free(d->one);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct depth *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    choose(d, p);
    const size_t all = (size_t)(d->each * d->taps);
    d->w = mc_calloc(all, sizeof *d->w, "plans");
    d->at = mc_calloc(all, sizeof *d->at, "plans");
    d->group = mc_calloc(all, sizeof *d->group, "plans");
    d->list = mc_calloc((size_t)conv_volume(d->to.phases), sizeof *d->list, "plans");
    d->place = mc_calloc(d->turned ? (size_t)(d->from.size[1] * d->from.size[2]) : 1, sizeof *d->place,
                         "plans");
    d->near = mc_calloc(all, sizeof *d->near, "plans");
    d->one = mc_calloc(all, sizeof *d->one, "plans");
    if (!d->near || !d->one || !d->place || !d->w || !d->at || !d->group || !d->list) {
        destroy(&d->base);
        mc_free(d);
        return NULL;
    }
    list_taps(d, p);
    if (d->turned) {
        place_positions(d);
    }
    const size_t cap = p_->options.workspace, limit = cap > d->parts_bytes ? cap - d->parts_bytes : 0;
    d->base.run = mc_depth_run;
    d->base.destroy = destroy;
    d->slots = (int)MC_MAX(MC_MIN((size_t)mc_team_size(), limit / d->slot_bytes), (size_t)1);
    d->base.workspace = (size_t)d->slots * d->slot_bytes + d->parts_bytes;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (p->s.groups != p->s.c || p->s.unshared) {
        return "takes as many groups as channels";
    }
    if (p->dtype != MC_FLOAT32 || p->wide) {
        return "takes float32, summed in float32";
    }
    return conv_volume(p->s.k) > TAPS ? "takes at most 1024 taps" : NULL;
}

/* Every tap is summed for each position of the result, in whole vectors: those of x for inputs, most of
 * which may read zeros. */
static double sums(const struct depth *d, const struct mc_conv_shape *s)
{
    const int64_t lanes = d->kernel->lanes, *n = d->n;
    const double channels = (double)(d->form == DEPTH_CHANNELS ? round_up(s->c, lanes) : s->c),
                 row = (double)(d->form == DEPTH_CHANNELS ? n[2] : round_up(n[2], lanes));
    return 2 * (double)(s->n * d->each * d->taps) * channels * (double)(n[0] * n[1]) * row;
}

/* Weights: the lanes of each sum are added for every image and band, from memory if all filters have too
 * many. */
static double lane_cost(const struct depth *d, const struct mc_conv_shape *s)
{
    const int64_t each = d->planes * d->each * d->taps * d->width;
    const bool far = each * d->kernel->lanes * (int64_t)sizeof(float) > (int64_t)mc_cpu()->l2;
    return s->pass != CONV_WEIGHTS || d->form == DEPTH_CHANNELS
               ? 0
               : (double)(s->n * d->bands * d->blocks * each) * (far ? 50e-9 : 6e-9);
}

/* The measured fractions of the peak, and one pass over the copies. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct depth d = { 0 };
    choose(&d, p);
    const double math = sums(&d, &p->s) / (p->s.pass == CONV_WEIGHTS ? 0.3 : 0.4) / mc_conv_peak(p);
    const double tasks = (double)(d.blocks * p->s.n * d.bands);
    const double copied = d.straight ? 0 : (double)(d.planes * (d.from.floats + d.to.floats));
    const double seconds = math + lane_cost(&d, &p->s) + tasks * copied * 0.06e-9 +
                           mc_conv_copy(mc_conv_bytes(p));
    return 1e-6 + seconds / mc_conv_threads(seconds, tasks);
}

const struct mc_solver mc_conv_depth = {
    .name = "depth", .refuse = refuse, .estimate = estimate, .plan = plan,
};
