/* tma.c: convolutions on Hopper's tensor cores.  Tiles of rows are boxes of images, lines and positions,
 * which the copy engine (TMA) reads from NHWC images (tma.cu; tma_tiling.c has the tiling).
 *
 *   forward   y = what taps read of x times filters
 *   inputs    x = what taps read of y times filters, taps in reverse, stride 1, by phases
 *
 * A phase of the gradient of inputs is the positions that are congruent modulo the stride: the same taps
 * reach them.  All phases are one launch.
 *
 * Axes that filters neither pad nor step along, as of pointwise filters, become images, whose boxes have no
 * edges.
 *
 * Invariant: channels are contiguous.  For operands that are not aligned to 16 bytes the plan runs a child
 * plan of another solver. */
#include "heavy/conv/cuda/implicit/tma.h"
#include "heavy/gemm/cuda/hopper.h"

enum { MOST_SLOTS = 8, ROUNDED = 1024 };
struct box {
    struct mc_plan base;
    struct mc_conv_tma_args args;
    struct mc_cuda_tensor_map_spec from, filters;
    int64_t image_stride;       /* of what taps read; axes may be merged */
    struct mc_grid grid;
    struct mc_cuda_copy *transpose;  /* copies filters to the workspace; for floats with contiguous results */
    struct mc_cuda *gpu;
    void *kernel, *lists;       /* lists: of tiles, in device memory */
};

static const char text[] = {
#include "heavy/conv/cuda/implicit/tma_text.h"
    , 0 };
static const char boxes[] = {
#include "heavy/conv/cuda/implicit/tma_box_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_tma_box_text = { "heavy/conv/cuda/implicit/tma_box.cu", boxes,
                                                   &mc_gemm_hopper_text },
                          mc_conv_tma_text = { "heavy/conv/cuda/implicit/tma.cu", text,
                                               &mc_conv_tma_box_text };

void mc_conv_tma_defines(struct mc_str *out, const struct mc_conv_tma_kind *k)
{
    mc_cuda_types(out, k->dtype, false);
    mc_str_addf(out,
                "#define HALF %d\n#define DOWN %d\n#define ADDS %d\n#define ACT %d\nenum { MI = %d, TN = %d, "
                "SLOTS = %d };\n#define AXES %d\n#define WIDE %d\n#define PARTS %d\n#define ALONE %d\n",
                mc_dtypes[k->dtype].size == 2, k->down, k->adds, (int)k->act, k->mi, k->tn, k->slots, k->axes,
                k->row, k->parts, k->alone);
    mc_hopper_instruction(out, k->tn, k->dtype, false, k->down);
}

static struct box *box(const struct mc_plan *p)
{
    return (struct box *)(void *)(uintptr_t)p;
}

/* ---- the problem ---- */

static bool forward(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_FORWARD;
}

static int64_t terms(const struct mc_conv_problem *p)
{
    return forward(p) ? p->s.c : p->s.f;
}

int64_t mc_conv_tma_tap_stride(const struct mc_conv_problem *p)
{
    const int64_t *k = p->s.k;
    return p->at.w[k[2] > 1 ? 4 : k[1] > 1 ? 3 : 2];
}

/* Strides of filters in a product: between terms, between taps (which are evenly spaced), and between
 * results. */
enum { RESULT, TAP, TERM };
static void filters(const struct mc_conv_problem *p, int64_t stride[3])
{
    stride[TERM] = p->at.w[forward(p) ? 1 : 0];
    stride[TAP] = mc_conv_tma_tap_stride(p);
    stride[RESULT] = p->at.w[forward(p) ? 0 : 1];
}

static bool down(const struct mc_conv_problem *p)  /* Are results the contiguous axis of filters? */
{
    int64_t w[3];
    filters(p, w);
    return w[TERM] != 1;
}

/* Are filters copied? Tensor cores take that layout for halves only. */
static bool is_transposed(const struct mc_conv_problem *p)
{
    return down(p) && p->dtype == MC_FLOAT32;
}

static int64_t all_taps(const struct mc_conv_problem *p)
{
    return p->s.k[0] * p->s.k[1] * p->s.k[2];
}

static void copied(const struct mc_conv_problem *p, int64_t stride[3])  /* strides of the copy */
{
    stride[TERM] = 1;
    stride[TAP] = terms(p);
    stride[RESULT] = terms(p) * all_taps(p);
}

static int common_divisor(int a, int b)
{
    return b ? common_divisor(b, a % b) : a;
}

/* Forward: all positions are one phase. spacing: taps of filters between adjacent ones of this axis. */
static void shape_forward(const struct mc_conv_shape *s, int i, int spacing, struct mc_conv_tma_args *a)
{
    a->phases[i] = 1;
    a->in[i] = (int)s->in[i];
    a->stride[i] = (int)s->stride[i];
    a->dilation[i] = (int)s->dilation[i];
    a->step[i] = s->flip ? -spacing : spacing;
    a->phase[i][0] = (struct mc_conv_tma_phase){ (int)s->out[i], (int)s->k[i], (int)s->pad[i],
                                                 s->flip ? ((int)s->k[i] - 1) * spacing : 0 };
}

/* Inputs: tap k of position o of y reaches o stride - pad + k dilation.  So the taps of a phase are `every`
 * taps from each other, and its element j receives from o = j + (phase + pad - k dilation) / stride, in
 * reverse. */
static void shape_inputs(const struct mc_conv_shape *s, int i, int spacing, struct mc_conv_tma_args *a)
{
    const int stride = (int)s->stride[i], dilation = (int)s->dilation[i], taps = (int)s->k[i];
    const int both = common_divisor(stride, dilation), every = stride / both;
    a->phases[i] = stride;
    a->in[i] = (int)s->out[i];
    a->stride[i] = 1;
    a->dilation[i] = dilation / both;
    a->step[i] = s->flip ? every * spacing : -every * spacing;
    for (int u = 0; u < stride; u++) {
        const int at = u + (int)s->pad[i];
        struct mc_conv_tma_phase *of = &a->phase[i][u];
        int first = 0;
        *of = (struct mc_conv_tma_phase){ .out = (int)MC_MAX(conv_ceil(s->in[i] - u, stride), (int64_t)0) };
        while (first < MC_MIN(every, taps) && (at - first * dilation) % stride != 0) {
            first++;
        }
        if (first < MC_MIN(every, taps)) {
            of->k = (int)conv_ceil(taps - first, every);
            const int last = first + (of->k - 1) * every;
            of->pad = (of->k - 1) * a->dilation[i] - (at - first * dilation) / stride;
            of->first = (s->flip ? taps - 1 - last : last) * spacing;
        }
    }
}

static const int64_t *source_strides(const struct mc_conv_problem *p)
{
    return forward(p) ? p->at.x : p->at.y;
}

/* Do images and axis i, along which filters do nothing, become one axis? */
enum { MOST_IMAGES = 1 << 30 };
static bool is_merged(const struct mc_conv_problem *p, int i, const struct mc_conv_tma_args *a,
                      int64_t from_stride)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t *from = source_strides(p), *to = forward(p) ? p->at.y : p->at.x;
    return s->k[i] == 1 && s->stride[i] == 1 && s->pad[i] == 0 && s->in[i] == s->out[i] &&
           (a->images == 1 || s->in[i] == 1 ||
            (from_stride == s->in[i] * from[i + 2] && a->ts[0] == s->in[i] * to[i + 2])) &&
           a->images * s->in[i] < MOST_IMAGES;
}

/* Merges leading axes into images.  Returns the stride of images in what taps read. */
static int64_t merge(const struct mc_conv_problem *p, struct mc_conv_tma_args *a)
{
    int64_t stride = source_strides(p)[0];
    for (int i = 0; i < 3 && is_merged(p, i, a, stride); i++) {
        if (p->s.in[i] > 1) {
            a->images *= (int)p->s.in[i];
            stride = source_strides(p)[i + 2];
            a->ts[0] = a->ts[i + 1];
            a->in[i] = a->phase[i][0].out = 1;
        }
    }
    return stride;
}

int64_t mc_conv_tma_shape(const struct mc_conv_problem *p, struct mc_conv_tma_args *a)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t *to = forward(p) ? p->at.y : p->at.x, bytes = terms(p) * (int64_t)mc_dtypes[p->dtype].size;
    const int row = bytes <= 32 ? 32 : bytes <= 64 ? 64 : MC_CUDA_ROW;
    *a = (struct mc_conv_tma_args){ .ts = { to[0], to[2], to[3], to[4] },
                                    .images = (int)s->n,
                                    .results = (int)(forward(p) ? s->f : s->c),
                                    .chunks = (int)conv_ceil(bytes, row),
                                    .row = row,
                                    .alpha = (float)p->alpha,
                                    .beta = (float)p->beta };
    for (int i = 2, spacing = 1; i >= 0; i--) {
        (forward(p) ? shape_forward : shape_inputs)(s, i, spacing, a);
        spacing *= (int)s->k[i];
    }
    return merge(p, a);
}

static int axes(const struct mc_conv_tma_args *a)
{
    return a->in[0] == 1 && a->phases[0] == 1 && a->phase[0][0].out == 1 && a->phase[0][0].k == 1 ? 2 : 3;
}

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct box *d = box(plan);
    const struct mc_conv_problem *p = conv(plan->problem);
    const void *from = operand[forward(p) ? CONV_X : CONV_Y], *w = operand[CONV_W];
    struct mc_conv_tma_args a = d->args;
    a.to = mc_conv_cuda_result(p, operand);
    a.c0 = p->beta != 0 ? operand[CONV_C0] : NULL;
    a.bias = p->has_bias ? operand[CONV_BIAS] : NULL;
    if (!mc_cuda_aligned(from) || !mc_cuda_aligned(a.to) || !mc_cuda_aligned(a.c0) || !mc_cuda_aligned(w)) {
        return plan->child[0]->run(plan->child[0], operand, workspace, threads);
    }
    if (d->transpose) {
        TRY(mc_cuda_copy_run(d->transpose, workspace, w));
        w = workspace;
    }
    TRY(mc_cuda_tensor_map(&a.from, &d->from, from));
    TRY(mc_cuda_tensor_map(&a.filters, &d->filters, w));
    return mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, "box", &d->grid, &a, sizeof a);
}

/* ---- a plan ---- */

static void destroy(struct mc_plan *plan)
{
    struct box *d = box(plan);
    mc_cuda_free(d->gpu, d->lists);
    mc_cuda_copy_free(d->transpose);
}

size_t mc_conv_tma_slot(int mi, int tn, int row)
{
    const size_t bytes = (size_t)(TMA_ROWS * mi + tn) * (size_t)row;
    return (bytes + ROUNDED - 1) / ROUNDED * ROUNDED;
}

/* Before the slots there are their barriers, after rounding to ROUNDED. */
int mc_conv_tma_slots(int mi, int tn, int row)
{
    const struct mc_cuda *gpu = mc_cuda_current();
    const size_t slot = mc_conv_tma_slot(mi, tn, row), shared = gpu ? gpu->shared : 227 << 10;
    return (int)MC_MIN((shared - 2 * ROUNDED) / slot, (size_t)MOST_SLOTS);
}

static int slots(const struct mc_conv_tma_tiling *c, int row)
{
    return mc_conv_tma_slots(c->mi, c->tn, row);
}

/* The tensor maps of images and of filters. */
static void describe(struct box *d, const struct mc_conv_problem *p, const struct mc_conv_tma_tiling *c)
{
    const struct mc_conv_tma_args *a = &d->args;
    const int64_t many = terms(p), all = all_taps(p);
    const int size = (int)mc_dtypes[p->dtype].size, wide = a->row / size, rank = axes(a) + 2;
    const int columns = (c->tn % 64 ? MC_CUDA_ROW / 2 : MC_CUDA_ROW) / size; /* of a row, if contiguous */
    int64_t w[3];
    (d->transpose ? copied : filters)(p, w);
    d->from = (struct mc_cuda_tensor_map_spec){
        .dtype = p->dtype, .rank = rank, .size = { many }, .stride = { 1 }, .box = { wide }, .step = { 1 }
    };
    for (int i = 1; i < rank; i++) { /* from the last axis of images; images themselves are the last */
        const int axis = i < rank - 1 ? 3 - i : -1;
        d->from.size[i] = axis < 0 ? a->images : a->in[axis];
        d->from.stride[i] = axis < 0 ? d->image_stride : source_strides(p)[axis + 2];
        d->from.box[i] = c->box[axis + 1];
        d->from.step[i] = axis < 0 ? 1 : a->stride[axis];
    }
    d->filters = w[TERM] == 1 ? (struct mc_cuda_tensor_map_spec){ p->dtype,
                                                                  3,
                                                                  { many, all, a->results },
                                                                  { 1, w[TAP], w[RESULT] },
                                                                  { wide, 1, c->tn },
                                                                  { 1, 1, 1 } }
                              : (struct mc_cuda_tensor_map_spec){ p->dtype,
                                                                  3,
                                                                  { a->results, all, many },
                                                                  { 1, w[TAP], w[TERM] },
                                                                  { columns, 1, wide },
                                                                  { 1, 1, 1 } };
}

/* The copy of filters to contiguous terms, in the workspace. */
static bool transpose(struct box *d, const struct mc_conv_problem *p)
{
    const int64_t results = d->args.results;
    struct mc_cuda_layout l = { .to = p->dtype,
                                .from = p->dtype,
                                .rank = 3,
                                .size = {
                                    [TERM] = terms(p), [TAP] = all_taps(p), [RESULT] = results } };
    filters(p, l.from_stride);
    copied(p, l.to_stride);
    d->transpose = mc_cuda_copy_new(&l);
    d->base.workspace = (size_t)(results * l.to_stride[RESULT]) * mc_dtypes[p->dtype].size;
    return d->transpose != NULL;
}

static bool load(struct box *d, const struct mc_conv_problem *p, const struct mc_conv_tma_tiling *c)
{
    const struct mc_conv_tma_kind kind = { .dtype = p->dtype,
                                           .act = p->act,
                                           .adds = p->beta != 0 || p->has_bias,
                                           .down = down(p) && !is_transposed(p),
                                           .alone = c->alone,
                                           .mi = c->mi,
                                           .tn = c->tn,
                                           .slots = slots(c, d->args.row),
                                           .axes = axes(&d->args),
                                           .row = d->args.row,
                                           .parts = c->parts };
    struct mc_str defines = { 0 };
    mc_conv_tma_defines(&defines, &kind);
    return mc_cuda_kernels(&mc_conv_tma_text, &defines, &(struct mc_cuda_kernel_ref){ &d->kernel, "box" }, 1);
}

static bool list(struct box *d, const struct mc_conv_tma_tiling *c)
{
    const int blocks = (int)d->grid.blocks[0];
    const size_t tiles = (size_t)c->tiles * sizeof(struct mc_conv_tma_tile),
                 bytes = tiles + (size_t)(blocks + 1) * sizeof(int);
    char *host = mc_alloc(bytes, "plans");
    d->lists = host ? mc_cuda_alloc(d->gpu, bytes, "plans") : NULL;
    const bool ok = d->lists &&
                    mc_conv_tma_hand_out(&d->args, c, blocks, (void *)host, (void *)(host + tiles)) &&
                    mc_cuda_copy_to_device(d->gpu, d->lists, host, bytes) >= 0;
    d->args.tiles = d->lists;
    d->args.first = (void *)((char *)d->lists + tiles);
    mc_free(host);
    return ok;
}

static bool make(struct box *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_tma_tiling c = mc_conv_tma_best_tiling(&d->args);
    if (c.tn == 0) {
        return mc_fail(MC_EUNSUPPORTED, "conv: box does not take so many positions") == MC_OK;
    }
    const int row = d->args.row;
    memcpy(d->args.box, c.box, sizeof c.box);
    const unsigned blocks = (unsigned)MC_MIN(c.tiles, mc_cuda_multiprocessors());
    const size_t slot = mc_conv_tma_slot(c.mi, c.tn, row);
    d->grid = (struct mc_grid){ .blocks = { blocks, (unsigned)c.parts, 1 },
                                .together = (unsigned)c.parts,
                                .threads = { 384, 1, 1 },
                                .maps = true,
                                .shared = (size_t)slots(&c, row) * slot + 2 * ROUNDED };
    LOG(LOG_PLAN,
        "    box: %lld tiles of %d x %d in %d parts%s, rows of %d images, %d x %d x %d positions, %.3g us "
        "expected",
        (long long)c.tiles, TMA_ROWS * c.mi, c.tn, c.parts, c.alone ? ", by one group each" : "", c.box[0],
        c.box[1], c.box[2], c.box[3], c.seconds * 1e6);
    d->base.child[0] = mc_plan_with(&p->base, &mc_conv_cuda_direct);
    if (!d->base.child[0] || !load(d, p, &c) || (is_transposed(p) && !transpose(d, p)) || !list(d, &c)) {
        return false;
    }
    describe(d, p, &c);
    d->base.workspace = MC_MAX(d->base.workspace, d->base.child[0]->workspace);
    return true;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct box *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->gpu = mc_cuda_current();
    d->base.run = run;
    d->base.destroy = destroy;
    d->image_stride = mc_conv_tma_shape(p, &d->args);
    if (!make(d, p)) {
        destroy(&d->base);
        mc_plan_free(d->base.child[0]);
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

/* ---- the estimate ---- */

/* Can the copy engine read an array of these sizes? stride: of x, w or y. */
static bool even(const struct mc_conv_problem *p, const int64_t *stride, const int64_t size[5])
{
    const int64_t unit = MC_CUDA_ALIGNED / mc_dtypes[p->dtype].size;
    bool ok = true;
    for (int i = 0; i < 5; i++) {
        ok = ok && (size[i] == 1 || stride[i] == 1 || (stride[i] > 0 && stride[i] % unit == 0));
    }
    return ok && size[0] > 0 && size[1] % unit == 0;
}

static bool are_taps_even(const struct mc_conv_problem *p)
{
    int64_t step = mc_conv_tma_tap_stride(p);
    bool ok = true;
    for (int i = 2; i >= 0; i--) {
        ok = ok && (p->s.k[i] == 1 || p->at.w[2 + i] == step);
        step *= p->s.k[i];
    }
    return ok;
}

static bool walked(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t *w = p->at.w, unit = MC_CUDA_ALIGNED / mc_dtypes[p->dtype].size;
    return p->at.x[1] == 1 && even(p, p->at.x, (int64_t[]){ s->n, s->c, s->in[0], s->in[1], s->in[2] }) &&
           p->at.y[1] == 1 && even(p, p->at.y, (int64_t[]){ s->n, s->f, s->out[0], s->out[1], s->out[2] }) &&
           (w[0] == 1 || w[1] == 1) && even(p, w, (int64_t[]){ s->f, s->c, s->k[0], s->k[1], s->k[2] }) &&
           s->f % unit == 0 && are_taps_even(p);
}

enum { MOST = 1 << 14, MOST_STEP = 8 }; /* MOST_STEP: limit of the copy engine and of phases */
static bool small(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    bool ok = s->n < 1 << 20 && s->c < 1 << 20 && s->f < 1 << 20 && all_taps(p) < MOST;
    for (int i = 0; i < 3; i++) {
        ok = ok && s->in[i] < MOST && s->out[i] < MOST && s->k[i] * s->dilation[i] < MOST &&
             s->pad[i] < MOST && s->pad[i] > -MOST && s->stride[i] <= MOST_STEP;
    }
    return ok;
}

const char *mc_conv_tma_limits(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    return mc_hopper_refuse()             ? mc_hopper_refuse()
           : p->wide                      ? "sums in float32, and conv.precision asks for float64"
           : mc_conv_hollow(p)            ? mc_conv_hollow(p)
           : s->unshared || s->groups > 1 ? "takes one group, and one filter for all positions"
           : !walked(p) ? "requires contiguous channels and strides that are multiples of 16 bytes"
           : !small(p)  ? "does not take sizes this large"
           : !mc_cuda_has_tensor_map() ? "requires a driver that makes tensor maps"
                                       : NULL;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return mc_dtypes[p->dtype].size != 2 && !p->tf32 ? "takes halves, or float32 where TF32 is allowed"
           : p->s.pass == CONV_WEIGHTS               ? "computes forward and gradients of inputs"
                                                     : mc_conv_tma_limits(p);
}

static double estimate(const struct mc_problem *p_)
{
    struct mc_conv_tma_args a;
    mc_conv_tma_shape(conv(p_), &a);
    const struct mc_conv_tma_tiling c = mc_conv_tma_best_tiling(&a);
    return c.tn > 0 ? c.seconds : 1e30; /* plan() will give the reason */
}

const struct mc_solver mc_conv_cuda_tma = { .name = "box", .refuse = refuse, .estimate = estimate,
                                            .plan = plan };
