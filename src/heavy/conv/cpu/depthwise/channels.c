/* channels.c: depthwise convolutions of dense planes, where a vector holds a position of as many channels as
 * it has lanes: bands of a block of planes are transposed into a padded copy, summed, and transposed back.
 *
 * A stride or a row of any length costs nothing extra, and no load crosses a cache line: planes of few
 * positions and strides take less time than by vectors of positions (planes.c).
 *
 * Invariant: the columns around a copy are zero from the start of a call, and no band writes there. */
#include "heavy/conv/cpu/depthwise/plan.h"

enum {
    LINE = 64,
    SLOTS = 1024,
    BAND = 16384,    /* floats of a copy that a band should keep to */
    MOST = 1 << 20,  /* most floats of a copy */
};

struct channels {
    struct mc_plan base;
    const struct mc_depth_kernel *kernel;
    int64_t blocks;             /* of channels */
    int64_t bands, rows;        /* of the result: rows of a band */
    int64_t lines, pitch;       /* of a copy, in vectors */
    int *place;                 /* of each position of a band's planes in the copy, from its first line on */
    int64_t copy, sums, filter; /* floats; filter: of the packed filters of a block */
    size_t w_bytes, slot_bytes; /* of the workspace: packed filters, unless they are prepared; a thread's */
    int slots;
};
struct call {
    const struct channels *d;
    struct mc_conv_run r;
    float *w;                   /* packed filters: [block][tap][lanes] */
    bool *clean;                /* by slot: its copy has zeros around */
};

/* The widest vectors among those that leave the fewest lanes empty. */
static const struct mc_depth_kernel *kernel_for(int64_t channels)
{
    const struct mc_depth_kernel *const table[ISA_COUNT] = {
        [ISA_AVX512] = mc_depth_avx512, [ISA_AVX2] = mc_depth_avx2, [ISA_PLAIN] = mc_depth_plain,
    };
    const struct mc_depth_kernel *best = NULL;
    for (enum mc_isa i = ISA_AVX512; i <= ISA_PLAIN; i++) {
        const struct mc_depth_kernel *k = table[i];
        if (k && mc_isa_runs(i) && (i < ISA_PLAIN || !best) &&
            (!best ||
             conv_ceil(channels, k->lanes) * k->lanes < conv_ceil(channels, best->lanes) * best->lanes)) {
            best = k;
        }
    }
    return best;
}

/* ---- planning ---- */

static int64_t lines_of(const struct mc_conv_shape *s, int64_t rows)
{
    return (rows - 1) * s->stride[1] + s->k[1];
}

static void measure(struct channels *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    d->kernel = kernel_for(s->c);
    const int64_t lanes = d->kernel->lanes;
    d->blocks = conv_ceil(s->c, lanes);
    d->pitch = MC_MAX(s->pad[2] + s->in[2], (s->out[2] - 1) * s->stride[2] + s->k[2]);
    const int64_t most = (BAND / (d->pitch * lanes) - s->k[1]) / s->stride[1] + 1,
                  rows = MC_MAX(MC_MIN(s->out[1], most), MC_MIN(s->out[1], (int64_t)4));
    d->bands = conv_ceil(s->out[1], rows);
    d->rows = conv_ceil(s->out[1], d->bands);
    d->lines = lines_of(s, d->rows);
    d->copy = d->lines * d->pitch * lanes;
    d->sums = d->rows * s->out[2] * lanes;
    d->filter = conv_volume(s->k) * lanes;
    d->slot_bytes = (size_t)(d->copy + d->sums) * sizeof(float);
    d->slot_bytes = (d->slot_bytes + LINE - 1) / LINE * LINE;
}

static bool list_places(struct channels *d, const struct mc_conv_shape *s)
{
    d->place = mc_alloc((size_t)(d->lines * s->in[2]) * sizeof *d->place, "plans");
    for (int64_t i = 0; d->place && i < d->lines * s->in[2]; i++) {
        d->place[i] = (int)(i / s->in[2] * d->pitch + s->pad[2] + i % s->in[2]);
    }
    return d->place != NULL;
}

/* ---- running ---- */

static void pack_block(const struct call *x, int64_t block, float *to)
{
    const struct mc_conv_problem *p = x->r.p;
    const struct mc_conv_shape *s = &p->s;
    const int64_t lanes = x->d->kernel->lanes, first = block * lanes;
    for (int64_t t = 0; t < conv_volume(s->k); t++, to += lanes) {
        const float *w = (const float *)(const void *)x->r.at[CONV_W] + first * p->at.w[0] +
                         conv_tap(s, 1, t / s->k[2]) * p->at.w[3] + conv_tap(s, 2, t % s->k[2]) * p->at.w[4];
        for (int64_t c = 0; c < lanes; c++) {
            to[c] = first + c < s->c ? (float)p->alpha * w[c * p->at.w[0]] : 0;
        }
    }
}

static void pack(const struct call *x)
{
    for (int64_t i = 0; i < x->d->blocks; i++) {
        pack_block(x, i, x->w + i * x->d->filter);
    }
}

/* Lines [first, first + count) of the planes from channel c on, those outside of the planes as zeros. */
static void copy_in(const struct call *x, float *copy, const float *planes, int64_t channels, int64_t first)
{
    const struct channels *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t lanes = d->kernel->lanes, line = d->pitch * lanes, plane = s->in[1] * s->in[2],
                  lo = MC_MIN(MC_MAX(first, (int64_t)0), s->in[1]),
                  hi = MC_MAX(MC_MIN(first + d->lines, s->in[1]), lo), above = MC_MIN(lo - first, d->lines);
    memset(copy, 0, (size_t)(above * line) * sizeof(float));
    if (hi > lo) {
        d->kernel->turn_in(&(struct mc_depth_turn){ .to = copy + above * line,
                                                    .from = planes + lo * s->in[2],
                                                    .place = d->place,
                                                    .channel = plane,
                                                    .channels = channels,
                                                    .n = (hi - lo) * s->in[2],
                                                    .width = lanes });
    }
    const int64_t filled = above + hi - lo;
    memset(copy + filled * line, 0, (size_t)((d->lines - filled) * line) * sizeof(float));
}

/* Adds beta * c0, which may be the old result, to n positions of each channel. */
static void add_c0(const struct call *x, float *sums, const float *c0, int64_t channels, int64_t n)
{
    const struct mc_conv_problem *p = x->r.p;
    const int64_t lanes = x->d->kernel->lanes, plane = p->s.out[1] * p->s.out[2];
    const float beta = (float)p->beta;
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < n; i++) {
            sums[i * lanes + c] += beta * c0[c * plane + i];
        }
    }
}

static void task(void *arg, int64_t i, int slot)
{
    const struct call *x = arg;
    const struct channels *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t band = i % d->bands, block = i / d->bands % d->blocks, n = i / d->bands / d->blocks;
    const int64_t lanes = d->kernel->lanes, c = block * lanes, channels = MC_MIN(lanes, s->c - c),
                  row = band * d->rows, rows = MC_MIN(d->rows, s->out[1] - row), plane = n * s->c + c,
                  in = s->in[1] * s->in[2], out = s->out[1] * s->out[2];
    float *copy = (float *)(void *)(x->r.workspace + d->w_bytes + (size_t)slot * d->slot_bytes),
          *sums = copy + d->copy;
    if (rows <= 0) {
        return;
    }
    if (!x->clean[slot]) { /* by the thread that uses it */
        memset(copy, 0, (size_t)d->copy * sizeof(float));
        x->clean[slot] = true;
    }
    copy_in(x, copy, (const float *)(const void *)x->r.at[CONV_X] + plane * in, channels,
            row * s->stride[1] - s->pad[1]);
    d->kernel->block(&(struct mc_depth_block){ .copy = copy,
                                               .w = x->w + block * d->filter,
                                               .sums = sums,
                                               .rows = rows,
                                               .columns = s->out[2],
                                               .pitch = d->pitch,
                                               .taps = { s->k[1], s->k[2] },
                                               .step = { s->stride[1], s->stride[2] } });
    const int64_t at = plane * out + row * s->out[2];
    if (x->r.c0) {
        add_c0(x, sums, (const float *)(const void *)x->r.c0 + at, channels, rows * s->out[2]);
    }
    d->kernel->turn_out(&(struct mc_depth_turn){ .to = (float *)(void *)x->r.result + at,
                                                 .from = sums,
                                                 .channel = out,
                                                 .channels = channels,
                                                 .n = rows * s->out[2],
                                                 .width = lanes });
    conv_finish(&x->r, (int64_t[]){ n, c, 0, row, 0 }, (int64_t[]){ 1, channels, 1, rows, s->out[2] });
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct channels *d = (const struct channels *)(const void *)plan;
    bool clean[SLOTS] = { false };
    struct call x = { d, mc_conv_bind(plan, operand, workspace, threads), NULL, clean };
    x.w = (float *)(void *)x.r.prepared;
    if (!x.w) {
        x.w = (float *)(void *)x.r.workspace;
        pack(&x);
    }
    mc_team_tasks(task, &x, x.r.p->s.n * d->blocks * d->bands, d->slots, x.r.threads, mc_conv_work(x.r.p));
    return MC_OK;
}

static void prepare(const struct mc_plan *plan, void *const *operand, void *prepared, void *workspace,
                    int threads)
{
    const struct channels *d = (const struct channels *)(const void *)plan;
    const struct call x = { d, mc_conv_bind(plan, operand, workspace, threads), prepared, NULL };
    pack(&x);
}

/* ---- the solver ---- */

static void release(struct mc_plan *plan)
{
    mc_free(((struct channels *)(void *)plan)->place);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct channels *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    measure(d, p);
    if (!list_places(d, &p->s)) {
        mc_free(d);
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = release;
    const size_t w_bytes = ((size_t)(d->blocks * d->filter) * sizeof(float) + LINE - 1) / LINE * LINE,
                 cap = p_->options.workspace;
    if (p->w_stays) {
        d->base.prepared = w_bytes;
        d->base.prepare = prepare;
    }
    d->w_bytes = w_bytes;
    d->slots = (int)MC_MAX(MC_MIN((size_t)mc_team_size(), (cap - MC_MIN(w_bytes, cap)) / d->slot_bytes),
                           (size_t)1);
    d->slots = MC_MIN(d->slots, SLOTS);
    d->base.workspace = d->w_bytes + (size_t)d->slots * d->slot_bytes;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct channels d = { 0 };
    if (mc_depth_not_planes(p)) {
        return mc_depth_not_planes(p);
    }
    if (p->s.pad[1] < 0 || p->s.pad[2] < 0) {
        return "takes no negative border";
    }
    measure(&d, p);
    return d.copy > MOST ? "takes rows of which a band has at most 2^20 numbers" : NULL;
}

/* As planes: it serves where solvers are timed. A number takes a third of a cycle to transpose. */
static double estimate(const struct mc_problem *p_)
{
    const double never = 1e3;
    if (mc_flag_int(FLAG_plan) == PLAN_ESTIMATE) {
        return never;
    }
    const struct mc_conv_problem *p = conv(p_);
    struct channels d = { 0 };
    measure(&d, p);
    const double waste = (double)(d.blocks * d.kernel->lanes) / (double)p->s.c,
                 math = waste * mc_conv_flops(p) / 0.7 / mc_conv_peak(p),
                 turned = waste * mc_conv_bytes(p) / 4 * 0.1e-9,
                 seconds = math + turned + mc_conv_copy(mc_conv_bytes(p));
    return 1e-6 + seconds / mc_conv_threads(seconds, (double)(p->s.n * d.blocks * d.bands));
}

const struct mc_solver mc_conv_channels = {
    .name = "channels", .refuse = refuse, .estimate = estimate, .plan = plan,
};
