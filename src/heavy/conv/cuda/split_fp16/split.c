/* split.c: float32 convolutions on Hopper's tensor cores, with operands split into pairs of halves
 * (heavy/gemm/cuda/split.cu has the algebra).  Images become halves with contiguous channels; windows are
 * gathered by the product (implicit product).
 *
 *   forward   y = windows of x times filters
 *   inputs    x = windows of y times filters, for each phase: the positions of x that are congruent modulo
 *             the stride, which the same taps reach (struct mc_split_axis)
 *   weights   w = y' times what each tap reads of x: a sum over all positions of all images
 *
 * Invariant: halves are scaled for each image alone, or together where images are summed; then numbers
 * more than 2^28 below the largest are lost. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/gemm/cuda/split.h"

enum { SEEN_A, SEEN_B, HALVES_A, HALVES_B, TAPS, PARTIAL, PARTS };
struct split {
    struct mc_plan base;
    struct mc_split s;
    int unit, cp, fp;           /* unit: channels gathered at once; cp, fp: padded channels of x and of y */
    int phases;
    int64_t k_pad, rows_pad;    /* of the filters of a phase */
    size_t at[PARTS];           /* in the workspace */
};
struct side {                   /* the images of one operand */
    const int64_t *size, *stride;
    int64_t channels;           /* of a group */
    int pad;                    /* channels as padded */
};

static struct side side(const struct split *d, const struct mc_conv_problem *p, bool y)
{
    return y ? (struct side){ p->s.out + 1, p->at.y, p->s.f / p->s.groups, d->fp }
             : (struct side){ p->s.in + 1, p->at.x, p->s.c / p->s.groups, d->cp };
}

static size_t round_up(size_t n)
{
    return (n + 1023) / 1024 * 1024;
}

static int pad_to(int64_t n, int64_t unit)
{
    return (int)((n + unit - 1) / unit * unit);
}

/* ---- phases ---- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Positions first, first + stride, ... of x: tap t reads y at (first + pad - t * dilation) / stride if that
 * is an integer. */
static struct mc_split_phase phase(const struct mc_conv_shape *s, int axis, int64_t first)
{
    const int64_t stride = s->stride[axis], dilation = s->dilation[axis], k = s->k[axis],
                  step = stride / common_divisor(stride, dilation);
    int64_t tap = 0;
    while (tap < MC_MIN(step, k) && (first + s->pad[axis] - tap * dilation) % stride != 0) {
        tap++;
    }
    const bool reached = tap < MC_MIN(step, k);
    return (struct mc_split_phase){
        .first = (int)first,
        .size = (int)conv_ceil(MC_MAX(s->in[axis] - first, (int64_t)0), stride),
        .tap = reached ? (int)tap : 0,
        .taps = reached ? (int)conv_ceil(k - tap, step) : 0,
        .shift = reached ? (int)((first + s->pad[axis] - tap * dilation) / stride) : 0,
    };
}

/* Inputs: a phase for each position below the stride.  Forward: one phase, all taps. */
static struct mc_split_axis axis_of(const struct mc_conv_problem *p, int axis)
{
    const struct mc_conv_shape *s = &p->s;
    if (s->pass != CONV_INPUTS) {
        return (struct mc_split_axis){ .at = { { .size = (int)s->out[axis], .taps = (int)s->k[axis] } },
                                       .phases = 1,
                                       .tap_step = 1,
                                       .shift_step = (int)s->dilation[axis] };
    }
    const int64_t common = common_divisor(s->stride[axis], s->dilation[axis]);
    struct mc_split_axis a = { .phases = (int)s->stride[axis],
                               .tap_step = (int)(s->stride[axis] / common),
                               .shift_step = (int)(-s->dilation[axis] / common) };
    for (int i = 0; i < a.phases; i++) {
        const struct mc_split_phase next = phase(s, axis, i);
        int at = i;
        for (; at > 0 && a.at[at - 1].taps < next.taps; at--) {
            a.at[at] = a.at[at - 1];
        }
        a.at[at] = next;
    }
    return a;
}

/* ---- a call ---- */

/* number of high halves */
static int64_t half_elements(const struct side *i, const struct mc_conv_problem *p)
{
    return p->s.n * p->s.groups * i->size[0] * i->size[1] * i->pad;
}

static struct mc_split_pack images(const struct mc_conv_problem *p, const struct side *i, const void *x,
                                   char *to, char *seen)
{
    const bool summed = p->s.pass == CONV_WEIGHTS;
    const int64_t *s = i->stride;
    return (struct mc_split_pack){
        .x = x,
        .to = (void *)to,
        .rows = (void *)seen,
        .low = half_elements(i, p),
        .xs = { s[0], i->channels * s[1], s[4], s[1] },
        .inner = (int)p->s.groups,
        .n_rows = (int)(i->size[0] * i->size[1]),
        .n_cols = (int)i->channels,
        .rows_pad = (int)(i->size[0] * i->size[1]),
        .cols_pad = i->pad,
        .seen_outer = !summed,
        .up = SPLIT_UP,
    };
}

static struct mc_split_filters filters(const struct split *d, const struct mc_conv_problem *p,
                                       const struct side *from, const void *x, char *w)
{
    const bool forward = p->s.pass == CONV_FORWARD;
    const int64_t fg = p->s.f / p->s.groups, cg = p->s.c / p->s.groups, *s = p->at.w;
    return (struct mc_split_filters){
        .w = x,
        .to = (void *)(w + d->at[HALVES_B]),
        .rows = (void *)(w + d->at[SEEN_B]),
        .taps = w + d->at[TAPS],
        .group = fg * s[0],
        .row = forward ? s[0] : s[1],
        .channel = forward ? s[1] : s[0],
        .tap = { s[3], s[4] },
        .n_rows = (int)(forward ? fg : cg),
        .rows_pad = (int)d->rows_pad,
        .tile = d->s.tn,
        .channels = (int)from->channels,
        .channels_pad = from->pad,
        .k = { (int)p->s.k[1], (int)p->s.k[2] },
        .k_pad = (int)d->k_pad,
        .reverse = p->s.flip,
        .unit = d->unit,
        .line = (int)from->size[1] * from->pad,
        .position = from->pad,
        .axis = { axis_of(p, 1), axis_of(p, 2) },
    };
}

/* The arguments that all passes share. */
static struct mc_split_args basics(const struct split *d, const struct mc_conv_problem *p,
                                   void *const *operand, char *w)
{
    struct mc_split_args a = {
        .a = (void *)(w + d->at[HALVES_A]), .b = (void *)(w + d->at[HALVES_B]),
        .a_seen = (void *)(w + d->at[SEEN_A]), .b_seen = (void *)(w + d->at[SEEN_B]),
        .taps = w + d->at[TAPS], .c = mc_conv_cuda_result(p, operand),
        .c0 = p->beta != 0 ? operand[CONV_C0] : NULL,
        .bias = p->has_bias ? operand[CONV_BIAS] : NULL, .bias_batch = p->s.f / p->s.groups,
        .parts = (int)p->s.groups * d->phases,
        .alpha = (float)p->alpha, .beta = (float)p->beta, .act = (int)p->act, .taps1 = (int)p->s.k[2],
    };
    for (int i = 0; i < 2; i++) {
        a.stride[i] = (int)p->s.stride[i + 1];
        a.dilation[i] = (int)p->s.dilation[i + 1];
        a.pad[i] = (int)p->s.pad[i + 1];
    }
    return a;
}

/* Forward and inputs: windows of `from`, filters, result `to`. */
static mc_status gather(const struct split *d, const struct mc_conv_problem *p, void *const *operand, char *w)
{
    const bool forward = p->s.pass == CONV_FORWARD;
    const struct side from = side(d, p, !forward), to = side(d, p, forward);
    struct mc_split_args a = basics(d, p, operand, w);
    const struct mc_split_pack pack = images(p, &from, operand[forward ? CONV_X : CONV_Y],
                                             w + d->at[HALVES_A], w + d->at[SEEN_A]);
    const struct mc_split_filters f = filters(d, p, &from, operand[CONV_W], w);
    TRY(mc_split_pack_images(&d->s.pack, &pack, (int)p->s.n, (size_t)p->s.n, &f, (int)p->s.groups));
    int64_t rows = 1; /* of an image */
    for (int i = 0; i < 2; i++) {
        a.in[i] = (int)from.size[i];
        a.out[i] = (int)to.size[i];
        a.pad[i] = forward ? a.pad[i] : 0;
        a.axis[i] = axis_of(p, i + 1);
        rows *= conv_ceil(to.size[i], d->phases > 1 ? a.stride[i] : 1);
    }
    a.a_low = half_elements(&from, p);
    a.a_batch = from.size[0] * from.size[1] * from.pad;
    a.image = (int)(a.a_batch * p->s.groups);
    a.b_batch = 2 * d->rows_pad * d->k_pad;
    a.b_seen_batch = to.channels;
    a.a_seen_rows = a.group_rows = (int)rows;
    a.b_seen_cols = 1;
    a.m = (int)p->s.n * a.group_rows;
    a.n = (int)to.channels;
    a.steps = (int)(d->k_pad / SPLIT_TK);
    a.channels_pad = from.pad;
    a.cs = a.c0s = (struct mc_split_where){ to.channels * to.stride[1], to.stride[0], to.stride[4],
                                            to.stride[1] };
    return mc_split_run(&d->s, &a, w + d->at[PARTIAL]);
}

static int64_t wide(const struct split *d, int64_t channels)
{
    return pad_to(channels, d->s.tn);
}

static mc_status weights(const struct split *d, const struct mc_conv_problem *p, void *const *operand,
                         char *w)
{
    const struct side x = side(d, p, false), y = side(d, p, true);
    const int64_t *s = p->at.w, turn = p->s.flip ? -1 : 1,
                  last = p->s.flip ? (p->s.k[1] - 1) * s[3] + (p->s.k[2] - 1) * s[4] : 0;
    struct mc_split_args a = basics(d, p, operand, w);
    const struct mc_split_pack pack_y = images(p, &y, operand[CONV_Y], w + d->at[HALVES_A],
                                               w + d->at[SEEN_A]),
                               pack_x = images(p, &x, operand[CONV_X], w + d->at[HALVES_B],
                                               w + d->at[SEEN_B]);
    TRY(mc_split_pack_rows(&d->s.pack, &pack_y, (int)p->s.n, 1));
    TRY(mc_split_pack_rows(&d->s.pack, &pack_x, (int)p->s.n, 1));
    for (int i = 0; i < 2; i++) {
        a.in[i] = (int)x.size[i];
        a.out[i] = (int)y.size[i];
        a.tap_stride[i] = turn * s[3 + i];
    }
    a.a_low = half_elements(&y, p);
    a.b_low = half_elements(&x, p);
    a.a_batch = y.size[0] * y.size[1] * y.pad;
    a.b_batch = x.size[0] * x.size[1] * x.pad;
    a.y_image = a.a_batch * p->s.groups;
    a.image = (int)(a.b_batch * p->s.groups);
    a.y_pad = y.pad;
    a.channels_pad = x.pad;
    a.channels = (int)x.channels;
    a.m = a.a_seen_rows = a.group_rows = (int)y.channels;
    a.n = a.b_seen_cols = (int)(p->s.k[1] * p->s.k[2] * wide(d, x.channels));
    a.k = (int)(p->s.n * y.size[0] * y.size[1]);
    a.steps = pad_to(a.k, SPLIT_TK) / SPLIT_TK;
    a.c += last;
    a.c0 = a.c0 ? a.c0 + last : NULL;
    a.cs = a.c0s = (struct mc_split_where){ y.channels * s[0], 0, s[0], s[1] };
    return mc_split_run(&d->s, &a, w + d->at[PARTIAL]);
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct split *d = (const struct split *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    (void)threads;
    return p->s.pass == CONV_WEIGHTS ? weights(d, p, operand, workspace) : gather(d, p, operand, workspace);
}

/* ---- a plan ---- */

/* Steps of the products of all phases; *longest: the most of one. */
static int64_t steps_of(const struct mc_conv_problem *p, int64_t channels, int64_t *longest)
{
    const struct mc_split_axis y = axis_of(p, 1), x = axis_of(p, 2);
    int64_t all = 0;
    *longest = 0;
    for (int i = 0; i < y.phases * x.phases; i++) {
        const int64_t taps = (int64_t)y.at[i / x.phases].taps * x.at[i % x.phases].taps,
                      steps = conv_ceil(taps * channels, SPLIT_TK);
        all += steps;
        *longest = MC_MAX(*longest, steps);
    }
    return all;
}

static struct mc_split_size measure(struct split *d, const struct mc_conv_problem *p)
{
    const int64_t fg = p->s.f / p->s.groups, cg = p->s.c / p->s.groups, taps = p->s.k[1] * p->s.k[2];
    const bool forward = p->s.pass == CONV_FORWARD, weights = p->s.pass == CONV_WEIGHTS;
    const int64_t from = forward ? cg : fg, to = forward ? fg : cg;
    struct mc_split_size z;
    d->phases = p->s.pass == CONV_INPUTS ? (int)(p->s.stride[1] * p->s.stride[2]) : 1;
    d->unit = from <= 4 && !weights ? 4 : 8;
    d->cp = pad_to(cg, d->unit);
    d->fp = pad_to(fg, d->unit);
    if (weights) {
        d->s.tn = mc_split_width(cg, SPLIT_FILTERS);
        z = (struct mc_split_size){ .m = fg, .n = taps * wide(d, cg) };
        z.steps = z.longest = conv_ceil(p->s.n * p->s.out[1] * p->s.out[2], SPLIT_TK);
    } else {
        const int64_t *size = forward ? p->s.out : p->s.in, *step = p->s.stride;
        d->s.tn = mc_split_width(to, SPLIT_WINDOWS);
        z = (struct mc_split_size){ .m = p->s.n * conv_ceil(size[1], forward ? 1 : step[1]) *
                                         conv_ceil(size[2], forward ? 1 : step[2]),
                                    .n = to };
        z.steps = conv_ceil(steps_of(p, pad_to(from, d->unit), &z.longest), d->phases);
    }
    z.parts = p->s.groups * d->phases;
    d->k_pad = z.longest * SPLIT_TK;
    d->rows_pad = pad_to(to, d->s.tn);
    return z;
}

/* Forward without border: every window is inside its image. */
static bool inside(const struct mc_conv_problem *p)
{
    bool in = p->s.pass == CONV_FORWARD;
    for (int i = 1; i < 3; i++) {
        in = in && p->s.pad[i] == 0 &&
             (p->s.out[i] - 1) * p->s.stride[i] + (p->s.k[i] - 1) * p->s.dilation[i] < p->s.in[i];
    }
    return in;
}

static bool flat(const struct mc_conv_problem *p)
{
    return p->s.in[0] == 1 && p->s.k[0] == 1 && p->s.out[0] == 1 && p->s.pad[0] == 0 &&
           p->at.x[3] == p->s.in[2] * p->at.x[4] && p->at.y[3] == p->s.out[2] * p->at.y[4];
}

static bool small(const struct mc_conv_problem *p)
{
    const int64_t most = INT32_MAX / 2, x = p->s.in[1] * p->s.in[2], y = p->s.out[1] * p->s.out[2],
                  c = p->s.c + 8 * p->s.groups, f = p->s.f + 8 * p->s.groups;
    const int64_t phases = p->s.pass == CONV_INPUTS ? p->s.stride[1] * p->s.stride[2] : 1;
    bool ok = p->s.n * p->s.groups <= UINT16_MAX && p->s.groups * phases < 4096 && p->s.f <= UINT16_MAX &&
              p->s.c <= UINT16_MAX && p->s.n * MC_MAX(x, y) <= most && x * c <= most && y * f <= most &&
              MC_MAX(c, f) * p->s.k[1] * p->s.k[2] * 128 <= most && p->s.n * x * c <= most * 8 &&
              p->s.n * y * f <= most * 8;
    for (int i = 1; i < 3; i++) {
        /* sums of a window's position and a shift have 16 bits; SPLIT_OUTSIDE takes a part of the rows' */
        const int64_t far = (p->s.k[i] - 1) * p->s.dilation[i] +
                            (p->s.pad[i] < 0 ? -p->s.pad[i] : p->s.pad[i]),
                      unit = i == 1 ? 4096 : 16384;
        ok = ok && p->s.in[i] < 2 * unit && p->s.out[i] < 2 * unit && far < unit &&
             p->s.out[i] * p->s.stride[i] < 3 * unit;
    }
    return ok;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype != MC_FLOAT32 ? "takes float32 only"
           : mc_conv_hollow(p)    ? mc_conv_hollow(p)
           : p->s.unshared        ? "has one filter for all positions"
           : p->wide              ? "sums in float32, and conv.precision asks for float64"
           : !flat(p)             ? "takes one or two spatial axes, without gaps between lines"
           : p->s.pass == CONV_INPUTS && MC_MAX(p->s.stride[1], p->s.stride[2]) > SPLIT_MOST_PHASES
               ? "takes strides up to 8 in gradients of inputs"
           : p->s.pass == CONV_INPUTS && p->act != ACT_NONE ? "fuses nothing in gradients of inputs"
           : !small(p)                                      ? "does not take sizes this large"
                                                            : mc_hopper_refuse();
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct split d = { .unit = 0 };
    const struct mc_split_size z = measure(&d, p);
    const double n = (double)(p->s.n * p->s.groups), x = (double)(p->s.in[1] * p->s.in[2]) * d.cp,
                 y = (double)(p->s.out[1] * p->s.out[2]) * d.fp;
    const double packed = n * (p->s.pass == CONV_FORWARD ? x : p->s.pass == CONV_INPUTS ? y : x + y);
    return mc_split_seconds(d.s.tn, &z, packed);
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const bool weights = p->s.pass == CONV_WEIGHTS;
    struct split *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    const struct mc_split_size z = measure(d, p);
    const enum mc_split_mode mode = weights         ? SPLIT_FILTERS
                                    : d->phases > 1 ? SPLIT_WINDOWS_PHASES
                                                    : SPLIT_WINDOWS;
    d->base.run = run;
    if (mc_split_make(&d->s, mode, d->unit, inside(p), &z) < 0) {
        mc_free(d);
        return NULL;
    }
    const struct side x = side(d, p, false), y = side(d, p, true);
    const size_t half = 2 * sizeof(uint16_t), seen = sizeof(struct mc_split_seen);
    const size_t packed = (size_t)(d->rows_pad * d->k_pad * z.parts) * half;
    const size_t bytes[PARTS] = {
        [SEEN_A] = (size_t)p->s.n * seen,
        [SEEN_B] = (size_t)MC_MAX(p->s.f, p->s.c) * seen,
        [HALVES_A] = (size_t)half_elements(p->s.pass == CONV_FORWARD ? &x : &y, p) * half,
        [HALVES_B] = weights ? (size_t)half_elements(&x, p) * half : packed,
        [TAPS] = weights ? 0 : (size_t)(d->k_pad / d->unit * d->phases) * 8,
        [PARTIAL] = d->s.partial,
    };
    for (int i = 0; i < PARTS; i++) {
        d->at[i] = d->base.workspace;
        d->base.workspace += round_up(bytes[i]);
    }
    return &d->base;
}

const struct mc_solver mc_conv_cuda_split = { .name = "split", .refuse = refuse, .estimate = estimate,
                                              .plan = plan };
