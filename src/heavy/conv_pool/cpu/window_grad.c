/* window_grad.c: the gradients of a pooled convolution, with a term for each window.
 *
 * x is copied with its channels last and a border of zeros, in blocks of as many channels as a vector has
 * lanes. If there are few channels, a vector holds several taps. So a marked element of y needs a few
 * vectors, whose offsets from its first one are the same for every element:
 *
 *   weights  the sums of a filter stay in registers for all windows of one image, and are then added to those
 *            of the filter; a task is some filters and a block of channels
 *   inputs   the windows of an image are sorted by the element of y that they mark. Those of many filters at
 *            one element are one sum over filters, which is added to an image in cache; a task is an image
 *
 * Invariant: the order of a sum depends on the problem alone. */
#include "heavy/gemm/cpu/kernel.h"
#include "heavy/conv_pool/cpu/window_grad_plan.h"

/* ---- sizes ---- */

static const struct mc_window_grad_kernel *kernel(int64_t n)
{
    const struct mc_window_grad_kernel *const table[ISA_COUNT] = {
        [ISA_AVX512] = mc_window_grad_avx512, [ISA_AVX2] = mc_window_grad_avx2,
        [ISA_PLAIN] = mc_window_grad_plain
    };
    int lanes[ISA_COUNT];
    for (int i = 0; i < ISA_COUNT; i++) {
        lanes[i] = table[i] ? table[i]->lanes : 0;
    }
    return table[mc_isa_fitting(lanes, 2 * n - 1)]; /* allows a vector that is more than half full */
}

/* True if vectors hold several taps, which makes them fewer. For inputs whole vectors are added to x, so they
 * must end at a whole tap. */
static bool packs_taps(const struct window_grad *d, const struct mc_conv_shape *s)
{
    const int64_t line = s->k[2] * s->c, lanes = d->k->lanes;
    return s->c <= lanes && conv_ceil(line, lanes) < s->k[2] &&
           (s->pass == CONV_WEIGHTS || line % lanes == 0);
}

/* The size of parts if n is divided into as few equal parts as possible, none above most. */
static int64_t part_size(int64_t n, int64_t most)
{
    return conv_ceil(n, conv_ceil(n, most));
}

static void sizes(struct window_grad *d, const struct mc_pooled_problem *p)
{
    const struct mc_conv_shape *s = &p->conv.s;
    d->k = kernel(s->k[2] * s->c);
    d->each = packs_taps(d, s) ? s->c : d->k->lanes;
    d->blocks = conv_ceil(s->c, d->each);
    d->lines = (s->out[1] - 1) * s->stride[1] + s->k[1];
    d->columns = (s->out[2] - 1) * s->stride[2] + s->k[2];
    d->pitch = d->columns * d->each;
    d->windows = p->out[1] * p->out[2];
    d->across = conv_ceil(s->k[2] * d->each, d->k->lanes);
    d->vectors = s->k[1] * d->across;
    if (s->pass == CONV_WEIGHTS) {
        d->wide = part_size(d->across, WINDOW_GRAD_ACROSS);
        d->deep = part_size(s->k[1], d->k->lines[d->wide]);
        d->parts = conv_ceil(d->across, d->wide) * conv_ceil(s->k[1], d->deep);
        d->filters = MC_MAX(MC_MIN(s->f * d->blocks / (2 * mc_team_size()), (int64_t)MOST_FILTERS),
                            (int64_t)LEAST_FILTERS);
    } else {
        const int64_t near = NEAR / (s->f * d->k->lanes * (int64_t)sizeof(float));
        d->part = part_size(d->vectors, MC_MAX(MC_MIN(near, (int64_t)d->k->most), (int64_t)1));
        d->parts = conv_ceil(d->vectors, d->part);
    }
    d->tasks = s->pass == CONV_WEIGHTS ? conv_ceil(s->f, d->filters) * d->blocks : s->n;
}

static size_t sorted_bytes(const struct window_grad *d, const struct mc_pooled_problem *p)
{
    const int64_t all = d->windows * p->conv.s.f;
    return window_grad_bytes(window_grad_block(d)) + window_grad_bytes(d->windows * p->w[1] * p->w[2] + 1) +
           3 * window_grad_bytes(all);
}

static size_t lay_out(struct window_grad *d, const struct mc_pooled_problem *p, int slots)
{
    const struct mc_conv_shape *s = &p->conv.s;
    const bool weights = s->pass == CONV_WEIGHTS;
    const int64_t size = d->vectors * d->k->lanes;
    d->slots = slots;
    /* the kernel may read beyond the last line of the last image */
    d->shared = window_grad_bytes(weights ? s->n * d->blocks * window_grad_block(d) + d->k->lanes
                                          : d->blocks * s->f * size);
    d->own = weights ? window_grad_bytes(d->filters * size) : sorted_bytes(d, p);
    return d->shared + (size_t)slots * d->own;
}

static void release(struct mc_plan *plan)
{
    struct window_grad *d = (struct window_grad *)(void *)plan;
    mc_free(d->first);
    mc_free(d->cell_offset);
    mc_free(d->tap);
}

/* Offset of cell 0 of window i, and of cell e from there. */
static int32_t window_at(const struct window_grad *d, const struct mc_pooled_problem *p, int64_t i)
{
    const struct mc_conv_shape *s = &p->conv.s;
    const int64_t u = i / p->out[2] * p->stride[1] - p->pad[1], v = i % p->out[2] * p->stride[2] - p->pad[2];
    return (int32_t)(u * s->stride[1] * d->pitch + v * s->stride[2] * d->each);
}

static int32_t cell_at(const struct window_grad *d, const struct mc_pooled_problem *p, int64_t e)
{
    const struct mc_conv_shape *s = &p->conv.s;
    return (int32_t)(e / p->w[2] * s->stride[1] * d->pitch + e % p->w[2] * s->stride[2] * d->each);
}

static bool positions_read(struct window_grad *d, const struct mc_pooled_problem *p)
{
    d->first = mc_alloc((size_t)d->windows * sizeof *d->first, "plans");
    for (int64_t i = 0; d->first && i < d->windows; i++) {
        d->first[i] = window_at(d, p, i);
    }
    for (int64_t e = 0; e < p->w[1] * p->w[2]; e++) {
        d->off[e] = cell_at(d, p, e);
    }
    return d->first;
}

static bool positions_added(struct window_grad *d, const struct mc_pooled_problem *p)
{
    const int64_t cells = p->w[1] * p->w[2];
    d->cell_offset = mc_alloc((size_t)(d->windows * cells) * sizeof *d->cell_offset, "plans");
    d->tap = mc_alloc((size_t)d->vectors * sizeof *d->tap, "plans");
    if (!d->cell_offset || !d->tap) {
        return false;
    }
    for (int64_t e = 0; e < d->windows * cells; e++) {
        d->cell_offset[e] = window_at(d, p, e / cells) + cell_at(d, p, e % cells);
    }
    for (int64_t v = 0; v < d->vectors; v++) {
        d->tap[v] = v / d->across * d->pitch + v % d->across * d->k->lanes;
    }
    return true;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    const struct mc_conv_shape *s = &p->conv.s;
    struct window_grad *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    sizes(d, p);
    d->base.run = mc_window_grad_run;
    d->base.destroy = release;
    if (!(s->pass == CONV_WEIGHTS ? positions_read(d, p) : positions_added(d, p))) {
        release(&d->base);
        mc_free(d);
        return NULL;
    }
    int slots = 1;
    while (slots < mc_team_size() && lay_out(d, p, slots + 1) <= p_->options.workspace) {
        slots++;
    }
    d->base.workspace = lay_out(d, p, slots);
    return &d->base;
}

/* ---- refusals and estimates ---- */

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    const struct mc_conv_shape *s = &p->conv.s;
    struct window_grad d = { .part = 0 };
    if (s->pass == CONV_FORWARD || mc_pooled_not_plain(p)) {
        return s->pass == CONV_FORWARD ? "computes only gradients" : mc_pooled_not_plain(p);
    }
    if (p->bits) {
        return "takes argmax marks, but no bits of ties";
    }
    sizes(&d, p);
    return window_grad_block(&d) > INT32_MAX / 4 || d.windows * s->f > INT32_MAX / 64 ||
                   d.vectors * d.k->lanes * s->f > INT32_MAX / 4
               ? "has offsets of 32 bits, and the problem is larger"
           : p->w[1] * p->w[2] > CELLS                 ? "takes windows of at most 256 cells"
           : lay_out(&d, p, 1) > p_->options.workspace ? "needs more workspace than the flag workspace allows"
                                                       : NULL;
}

/* Counts the vectors that are multiplied and added (at best one a cycle in the widest registers, as the sums
 * of filters are read from the L2 cache), the overhead of each sum, and the copies of x. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    const struct mc_conv_shape *s = &p->conv.s;
    struct window_grad d = { .part = 0 };
    sizes(&d, p);
    const bool weights = s->pass == CONV_WEIGHTS;
    const double hz = mc_conv_peak(&p->conv) / mc_gemm_kernel(MC_FLOAT32)->flops,
                 images = (double)(s->n * s->f * d.windows);
    const double sums = images * (double)(d.blocks * d.parts),
                 each = d.k == mc_window_grad_avx512 ? weights ? 1.6 : 1.2 : 0.7;
    const double cycles = images * (double)(d.blocks * d.vectors) * each + sums * (weights ? 3 : 2.5);
    const double copies = 8 *
                          mc_conv_copy((double)window_grad_bytes(s->n * d.blocks * window_grad_block(&d)));
    const double seconds = cycles / hz + copies;
    return 3e-6 + seconds / mc_conv_threads(seconds, (double)d.tasks);
}

const struct mc_solver mc_pooled_window_grad = {
    .name = "marked", .refuse = refuse, .estimate = estimate, .plan = plan,
};
