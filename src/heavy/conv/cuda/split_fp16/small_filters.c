/* small_filters.c: float32 convolutions on a GPU whose filters, split into halves, fit shared memory, and
 * whose positions are one contiguous line: forward, and gradients of inputs, of taps along that line and of
 * pointwise filters (small_filters.cu). */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/split_fp16/small_filters_args.h"

static const char text[] = {
#include "heavy/conv/cuda/split_fp16/small_filters_text.h"
    , 0
};
const struct mc_cuda_text mc_conv_small_filters_text = { "heavy/conv/cuda/split_fp16/small_filters.cu",
                                                         text, NULL };

/* bytes of shared memory of a block, at most; blocks along y, which read the same lines */
enum { SHARED = 200 << 10, MOST_GROUPS = 16 };

struct small_filters {
    struct mc_plan base;
    void *kernel;
    struct mc_grid grid;
    struct mc_small_filters_args args;
    bool fours[2];
};

static bool spreads(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_INPUTS;
}

static int64_t sources(const struct mc_conv_problem *p)
{
    return spreads(p) ? p->s.f : p->s.c;
}

static int64_t results(const struct mc_conv_problem *p)
{
    return spreads(p) ? p->s.c : p->s.f;
}

static int64_t rows(const struct mc_conv_problem *p)
{
    return conv_ceil(MC_MIN(results(p), SMALL_FILTERS_RESULTS), 16);
}

static int64_t groups(const struct mc_conv_problem *p)
{
    return conv_ceil(results(p), SMALL_FILTERS_RESULTS);
}

static int64_t steps(const struct mc_conv_problem *p)
{
    return conv_ceil(sources(p) * p->s.k[2], 32) * 2;
}

/* The split filters, and the scales of results. */
static int64_t shared(const struct mc_conv_problem *p)
{
    return steps(p) * rows(p) * 64 * 16 + rows(p) * 16 * (int64_t)sizeof(float);
}

/* Threads of a block: as many as registers allow. */
static int threads_of(const struct mc_conv_problem *p)
{
    return rows(p) > 2 ? 256 : 384;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct small_filters *d = (const struct small_filters *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    struct mc_small_filters_args a = d->args;
    (void)workspace, (void)threads;
    a.from = operand[spreads(p) ? CONV_Y : CONV_X];
    a.w = operand[CONV_W];
    a.to = mc_conv_cuda_result(p, operand);
    a.c0 = p->beta != 0 ? operand[CONV_C0] : NULL;
    a.bias = p->has_bias ? operand[CONV_BIAS] : NULL;
    a.fours[0] = d->fours[0] && mc_cuda_aligned(a.from);
    a.fours[1] = d->fours[1] && mc_cuda_aligned(a.to);
    return mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, "sums", &d->grid, &a, sizeof a);
}

/* ---- a plan ---- */

static bool in_fours(const int64_t stride[2])
{
    return stride[0] % 4 == 0 && stride[1] % 4 == 0;
}

static void shape(struct small_filters *d, const struct mc_conv_problem *p)
{
    const int64_t *from = spreads(p) ? p->at.y : p->at.x, *to = spreads(p) ? p->at.x : p->at.y, k = p->s.k[2],
                  pad = p->s.pad[2], between = p->s.dilation[2], reach = (k - 1) * between;
    const int64_t start = spreads(p) ? pad : -pad, step = spreads(p) != p->s.flip ? -between : between,
                  positions = conv_volume(spreads(p) ? p->s.in : p->s.out),
                  across = conv_ceil(positions, SMALL_FILTERS_POSITIONS);
    d->args = (struct mc_small_filters_args){
        .image = from[0],
        .row = (int)from[1],
        .to_s = { to[0], to[1] },
        .ws = { p->at.w[spreads(p)], p->at.w[!spreads(p)], p->at.w[4] },
        .first = (int)(start + (!p->s.flip   ? 0
                                : spreads(p) ? -reach
                                             : reach)),
        .step = (int)step,
        .length = (int)conv_volume(spreads(p) ? p->s.out : p->s.in),
        .positions = (int)positions,
        .tiles = (int)(p->s.n * across),
        .across = mc_cuda_divider(across),
        .alpha = (float)p->alpha,
        .beta = (float)p->beta,
    };
    d->fours[0] = in_fours(from) && d->args.first % 4 == 0 && d->args.step % 4 == 0;
    d->fours[1] = in_fours(to);
    d->grid = (struct mc_grid){ { (unsigned)MC_MIN(MC_MAX(mc_cuda_multiprocessors() / groups(p), (int64_t)1),
                                                   conv_ceil(d->args.tiles, threads_of(p) / 32)),
                                  (unsigned)groups(p), 1 },
                                { (unsigned)threads_of(p), 1, 1 },
                                (size_t)shared(p) };
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_str defines = { 0 };
    struct small_filters *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    shape(d, p);
    mc_str_addf(&defines,
                "#define SOURCES %d\n#define RESULTS %d\n#define TAPS %d\n#define ACT %d\n#define HAS_BIAS "
                "%d\n#define HAS_C0 %d\n#define THREADS %d\n",
                (int)sources(p), (int)results(p), (int)p->s.k[2], (int)p->act, p->has_bias, p->beta != 0,
                threads_of(p));
    const struct mc_cuda_kernel_ref kernels[] = { { &d->kernel, "sums" } };
    if (!mc_cuda_kernels(&mc_conv_small_filters_text, &defines, kernels, NELEM(kernels))) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

/* ---- limits and the estimate ---- */

/* Are positions contiguous, over all axes? */
static bool contiguous(const int64_t size[3], const int64_t stride[3])
{
    int64_t next = 1;
    bool ok = true;
    for (int i = 2; i >= 0; i--) {
        ok = ok && (size[i] == 1 || stride[i] == next);
        next *= size[i];
    }
    return ok;
}

/* Are taps along the last axis of an image that has no other, or is there one tap and no border? */
static bool along(const struct mc_conv_shape *s)
{
    bool ok = true;
    for (int i = 0; i < 3; i++) {
        ok = ok && s->stride[i] == 1 && (i == 2 || s->k[i] == 1) &&
             (s->in[0] * s->in[1] == 1 ? i == 2 || s->pad[i] == 0 : s->k[i] == 1 && s->pad[i] == 0);
    }
    return ok;
}

static bool small(const struct mc_conv_problem *p)
{
    const int64_t most = INT32_MAX / 64, positions = conv_volume(p->s.in) + conv_volume(p->s.out);
    const int64_t *from = spreads(p) ? p->at.y : p->at.x, row = from[1] < 0 ? -from[1] : from[1];
    return p->s.n * positions <= most && row * sources(p) + positions <= INT32_MAX / 2 &&
           positions + p->s.pad[2] + p->s.k[2] * p->s.dilation[2] <= most;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return p->dtype != MC_FLOAT32             ? "takes float32 only"
           : mc_conv_hollow(p)                ? mc_conv_hollow(p)
           : p->wide                          ? "sums in float32, and conv.precision asks for float64"
           : p->s.pass == CONV_WEIGHTS        ? "computes forward and gradients of inputs"
           : p->s.unshared || p->s.groups > 1 ? "takes one group, and one filter for all positions"
           : !along(&p->s) ? "takes taps along the one axis, or pointwise filters, with stride 1"
           : !contiguous(p->s.in, p->at.x + 2) || !contiguous(p->s.out, p->at.y + 2)
               ? "requires contiguous positions of images"
           : shared(p) > SHARED      ? "cannot keep such filters in shared memory"
           : groups(p) > MOST_GROUPS ? "takes up to 1024 results"
           : !small(p)               ? "does not take sizes this large"
                                     : mc_cuda_needs_sm80();
}

/* Blocks along y read lines again, from caches; a block splits its filters. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const double positions = (double)(p->s.n * conv_volume(spreads(p) ? p->s.in : p->s.out)),
                 operations = 2 * 3 * positions * 16 * (double)(steps(p) * groups(p) * rows(p) * 16),
                 read = positions * (double)sources(p) * sizeof(float) * (double)(groups(p) - 1);
    return 3e-6 + (double)(steps(p) * rows(p)) * 4e-8 + operations / 3e14 +
           (mc_conv_bytes(p) + read / 2) / 2.8e12;
}

const struct mc_solver mc_conv_cuda_small_filters = { .name = "small_filters", .refuse = refuse,
                                                      .estimate = estimate, .plan = plan };
