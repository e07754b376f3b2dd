/* grouped_tensor.c: groups of several channels in halves on a GPU's tensor cores (grouped_tensor.cu), with
 * channels innermost: forward, and gradients of inputs with stride 1.
 *
 * Invariant: for operands that are not aligned to what is moved at once the plan runs a child. */
#include "heavy/conv/cuda/grouped/grouped.h"
#include "heavy/conv/cuda/tile_lines.h"

static const char text[] = {
#include "heavy/conv/cuda/grouped/grouped_tensor_text.h"
    , 0
};
const struct mc_cuda_text mc_conv_grouped_tensor_text = { "heavy/conv/cuda/grouped/grouped_tensor.cu", text,
                                                          NULL };

/* UNIT: bytes moved at once, of SOURCES channels */
enum { SOURCES = 4, UNIT = 8, SHARED = 48 << 10, MOST_EIGHTS = 8 };

struct grouped_tensor {
    struct mc_plan base;
    void *kernel;
    struct mc_grid grid;
    struct mc_grouped_args args;
    int64_t w_first;            /* elements from w to the tap that is read first */
};

static int64_t sources(const struct mc_conv_problem *p)
{
    return (mc_conv_spreads(p) ? p->s.f : p->s.c) / p->s.groups;
}

static int64_t results(const struct mc_conv_problem *p)
{
    return (mc_conv_spreads(p) ? p->s.c : p->s.f) / p->s.groups;
}

static int64_t steps(const struct mc_conv_problem *p)
{
    return conv_ceil(p->s.k[1] * p->s.k[2] * sources(p), 16);
}

static int64_t eights(const struct mc_conv_problem *p)
{
    return conv_ceil(results(p), 8);
}

static int64_t positions(const struct mc_conv_problem *p)
{
    return p->s.n * mc_conv_tiled(p)[1] * mc_conv_tiled(p)[2];
}

/* Positions of a block, for each sixteen of a warp. */
enum { EACH = GROUPED_THREADS / 32 * 16 };

/* Two sixteens a warp share what it reads of the filters, where blocks for all multiprocessors are left. */
static int sixteens(const struct mc_conv_problem *p)
{
    const int64_t blocks = conv_ceil(positions(p), 2 * EACH) * p->s.groups;
    return blocks >= 2 * mc_cuda_multiprocessors() && eights(p) <= MOST_EIGHTS / 2 ? 2 : 1;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct grouped_tensor *d = (const struct grouped_tensor *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    struct mc_grouped_args a = d->args;
    mc_grouped_bind(&a, p, d->w_first, operand);
    return mc_grouped_aligned(&a, p, UNIT)
               ? mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, "sums", &d->grid, &a, sizeof a)
               : plan->child[0]->run(plan->child[0], operand, workspace, threads);
}

static bool load(struct grouped_tensor *d, const struct mc_conv_problem *p)
{
    struct mc_str defines = { 0 };
    const struct mc_conv_tile tile = { .last = true, .th = 1, .tw = 1, .v = 1, .g = 1, .gt = 1 };
    mc_conv_tile_defines(p, &tile, &defines);
    mc_str_addf(&defines, "#define SOURCE %d\n#define RESULT %d\n#define SIXTEENS %d\n#define BLOCKS 4\n",
                (int)sources(p), (int)results(p), sixteens(p));
    const struct mc_cuda_kernel_ref kernels[] = { { &d->kernel, "sums" } };
    return mc_cuda_kernels(&mc_conv_grouped_tensor_text, &defines, kernels, NELEM(kernels));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct grouped_tensor *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->w_first = mc_grouped_shape(&d->args, p);
    d->args.count = (unsigned)positions(p);
    d->args.across = mc_cuda_divider(mc_conv_tiled(p)[2]);
    d->args.down = mc_cuda_divider(mc_conv_tiled(p)[1]);
    d->grid = (struct mc_grid){ { (unsigned)conv_ceil(positions(p), EACH * sixteens(p)),
                                  (unsigned)p->s.groups, 1 },
                                { GROUPED_THREADS, 1, 1 },
                                0 };
    d->base.child[0] = mc_plan_with(&p->base, &mc_conv_cuda_direct);
    if (!d->base.child[0] || !load(d, p)) {
        mc_plan_free(d->base.child[0]);
        mc_free(d);
        return NULL;
    }
    d->base.workspace = d->base.child[0]->workspace;
    return &d->base;
}

/* ---- limits and the estimate ---- */

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const bool spreads = mc_conv_spreads(p);
    return mc_conv_no_tiles(p)                                 ? mc_conv_no_tiles(p)
           : mc_dtypes[p->dtype].size != 2                     ? "takes halves"
           : p->s.pass == CONV_WEIGHTS                         ? "computes forward and gradients of inputs"
           : p->s.groups == 1 || p->s.groups == p->s.c         ? "takes groups of several channels"
           : spreads && p->s.stride[1] * p->s.stride[2] != 1   ? "takes gradients of inputs with stride 1"
           : p->at.x[1] != 1 || p->at.y[1] != 1 || p->s.f == 1 ? "requires contiguous channels"
           : sources(p) % SOURCES != 0 || results(p) % 2 != 0 || !mc_conv_even(p->at.x, 1, SOURCES) ||
                   !mc_conv_even(p->at.y, 1, SOURCES)
               ? "requires channels of a group in fours"
           : eights(p) > MOST_EIGHTS                   ? "takes up to 64 results of a group"
           : steps(p) * eights(p) * 32 * UNIT > SHARED ? "cannot keep such filters in shared memory"
           : p->s.groups > 65535                       ? "takes up to 65535 groups"
                                                       : mc_cuda_needs_sm80();
}

/* Terms are loaded for sixteens of positions, by 16 at a time. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const double padded = 2 * (double)positions(p) * (double)p->s.groups * 16 * (double)steps(p) * 8 *
                          (double)eights(p);
    return mc_cuda_seconds(p->dtype, false, padded, mc_conv_bytes(p), 0.1);
}

const struct mc_solver mc_conv_cuda_grouped_tensor = {
    .name = "grouped_tensor", .refuse = refuse, .estimate = estimate, .plan = plan
};
