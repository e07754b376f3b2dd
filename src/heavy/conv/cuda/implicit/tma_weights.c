/* tma_weights.c: gradients of filters on Hopper's tensor cores, for halves whose channels are contiguous
 * (tma_weights.cu; tma_weights_tiling.c has the tiling).
 *
 * Invariant: the result's contiguous axis, filters or channels, runs along the columns of a product.  For
 * operands that are not aligned to 16 bytes the plan runs a child plan of another solver. */
#include "heavy/conv/cuda/implicit/tma.h"
#include "heavy/gemm/cuda/hopper.h"

enum { ROUNDED = 1024, MANY_PARTS = 8 };
struct box_weights {
    struct mc_plan base;
    struct mc_conv_tma_weights_args args;
    struct mc_cuda_tensor_map_spec x, y;
    struct mc_grid grid, add_grid;
    struct mc_cuda *gpu;
    void *kernel, *add_kernel, *lists;  /* lists: of jobs and sums, in device memory */
    bool adds;                  /* are there sums of parts? */
};

static const char text[] = {
#include "heavy/conv/cuda/implicit/tma_weights_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_tma_weights_text = { "heavy/conv/cuda/implicit/tma_weights.cu", text,
                                                       &mc_conv_tma_box_text };

void mc_conv_tma_weights_defines(struct mc_str *out, const struct mc_conv_tma_weights_kind *k,
                                 const struct mc_conv_tma_weights_tiling *c)
{
    mc_cuda_types(out, k->dtype, false);
    mc_str_addf(out,
                "#define ADDS %d\n#define CLEAR %d\n#define SLICES %d\n"
                "enum { TAPS_DOWN = %d, DOWN = %d, MI = %d, ACROSS = %d, Q = %d, KS = %d, SLOTS = %d };\n",
                k->adds, k->clear, k->slices, c->taps_down, c->down, c->mi, c->across, c->q, c->ks, k->slots);
    mc_hopper_instruction(out, c->q * TMA_UNIT, k->dtype, true, true);
}

static struct box_weights *box(const struct mc_plan *p)
{
    return (struct box_weights *)(void *)(uintptr_t)p;
}

/* ---- the problem ---- */

static bool dense(const int64_t at[5], int64_t images, const int64_t size[3])
{
    return (size[1] == 1 || at[3] == at[4] * size[2]) &&
           (size[0] == 1 || at[2] == at[4] * size[1] * size[2]) &&
           (images == 1 || at[0] == at[4] * size[0] * size[1] * size[2]);
}

/* Can all positions of all images be one axis? */
static bool is_flat(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    bool ok = dense(p->at.x, s->n, s->in) && dense(p->at.y, s->n, s->out) &&
              (double)s->n * (double)(s->in[0] * s->in[1] * s->in[2]) < INT32_MAX / 2;
    for (int i = 0; i < 3; i++) {
        ok = ok && s->k[i] == 1 && s->stride[i] == 1 && s->pad[i] == 0 && s->in[i] == s->out[i];
    }
    return ok;
}

static void shape(const struct mc_conv_problem *p, struct mc_conv_tma_weights_args *a)
{
    const struct mc_conv_shape *s = &p->s;
    *a = (struct mc_conv_tma_weights_args){ .ws = { p->at.w[0], p->at.w[1], mc_conv_tma_tap_stride(p) },
                                            .images = (int)s->n,
                                            .filters = (int)s->f,
                                            .channels = (int)s->c,
                                            .chunks = (int)conv_ceil(s->c, TMA_UNIT),
                                            .backward = s->flip,
                                            .alpha = (float)p->alpha,
                                            .beta = (float)p->beta };
    for (int i = 0; i < 3; i++) {
        a->in[i] = (int)s->in[i];
        a->out[i] = (int)s->out[i];
        a->k[i] = (int)s->k[i];
        a->stride[i] = (int)s->stride[i];
        a->dilation[i] = (int)s->dilation[i];
        a->pad[i] = (int)s->pad[i];
    }
    if (is_flat(p)) {
        a->in[2] = a->out[2] = (int)(s->n * s->in[0] * s->in[1] * s->in[2]);
        a->in[0] = a->out[0] = a->in[1] = a->out[1] = a->images = 1;
    }
}

static bool taps_down(const struct mc_conv_problem *p)
{
    return p->at.w[1] != 1;
}

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct box_weights *d = box(plan);
    const struct mc_conv_problem *p = conv(plan->problem);
    const void *x = operand[CONV_X], *y = operand[CONV_Y];
    struct mc_conv_tma_weights_args a = d->args;
    a.to = mc_conv_cuda_result(p, operand);
    a.c0 = p->beta != 0 ? operand[CONV_C0] : NULL;
    a.parts = workspace;
    if (!mc_cuda_aligned(x) || !mc_cuda_aligned(y) || !mc_cuda_aligned(a.to)) {
        return plan->child[0]->run(plan->child[0], operand, workspace, threads);
    }
    TRY(mc_cuda_tensor_map(&a.x, &d->x, x));
    TRY(mc_cuda_tensor_map(&a.y, &d->y, y));
    TRY(mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, "box_weights", &d->grid, &a, sizeof a));
    return d->adds ? mc_cuda_launch_dependent(mc_cuda_current(), d->add_kernel, "add_parts", &d->add_grid, &a,
                                              sizeof a)
                   : MC_OK;
}

/* ---- a plan ---- */

static void destroy(struct mc_plan *plan)
{
    mc_cuda_free(box(plan)->gpu, box(plan)->lists);
}

static struct mc_cuda_tensor_map_spec array(const struct mc_conv_problem *p,
                                            const struct mc_conv_tma_weights_args *a, bool of_x)
{
    const int64_t *at = of_x ? p->at.x : p->at.y;
    const int *size = of_x ? a->in : a->out;
    struct mc_cuda_tensor_map_spec m = { p->dtype,     5,    { of_x ? a->channels : a->filters }, { 1 },
                                         { TMA_UNIT }, { 1 } };
    for (int i = 0; i < 3; i++) {
        m.size[3 - i] = size[i];
        m.stride[3 - i] = at[2 + i];
        m.box[3 - i] = a->box[1 + i];
        m.step[3 - i] = of_x ? a->stride[i] : 1;
    }
    m.size[4] = a->images;
    m.stride[4] = at[0];
    m.box[4] = a->box[0];
    m.step[4] = 1;
    return m;
}

static bool load(struct box_weights *d, const struct mc_conv_problem *p,
                 const struct mc_conv_tma_weights_tiling *c, int slices)
{
    const int terms = c->box[0] * c->box[1] * c->box[2] * c->box[3];
    const struct mc_conv_tma_weights_kind kind = { p->dtype, p->beta != 0, terms % 16 != 0,
                                                   mc_conv_tma_weights_slots(c), slices };
    const struct mc_cuda_kernel_ref kernels[] = { { &d->kernel, "box_weights" },
                                                  { &d->add_kernel, "add_parts" } };
    struct mc_str defines = { 0 };
    mc_conv_tma_weights_defines(&defines, &kind, c);
    return mc_cuda_kernels(&mc_conv_tma_weights_text, &defines, kernels, NELEM(kernels));
}

static void copied(char *host, size_t *at, const void *from, size_t bytes)
{
    memcpy(host + *at, from, bytes);
    *at += bytes;
}

/* Copies the lists to the device. */
static bool list(struct box_weights *d, const struct mc_conv_tma_weights_lists *l)
{
    const size_t first = (size_t)(l->blocks + 1) * sizeof *l->first,
                 sums = (size_t)l->nsums * sizeof *l->sums,
                 jobs = (size_t)l->first[l->blocks] * sizeof *l->jobs, bytes = first + sums + jobs;
    char *host = mc_alloc(bytes, "plans");
    size_t at = 0;
    d->lists = host ? mc_cuda_alloc(d->gpu, bytes, "plans") : NULL;
    if (d->lists) {
        copied(host, &at, l->first, first);
        copied(host, &at, l->sums, sums);
        copied(host, &at, l->jobs, jobs);
        d->args.first = d->lists;
        d->args.sums = (void *)((char *)d->lists + first);
        d->args.jobs = (void *)((char *)d->lists + first + sums);
    }
    const bool ok = d->lists && mc_cuda_copy_to_device(d->gpu, d->lists, host, bytes) >= 0;
    mc_free(host);
    return ok;
}

static bool make(struct box_weights *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_tma_weights_tiling c = mc_conv_tma_weights_best_tiling(&d->args, taps_down(p));
    struct mc_conv_tma_weights_lists l;
    if (c.mi == 0) {
        return mc_fail(MC_EUNSUPPORTED, "conv: box_weights does not take so many positions") == MC_OK;
    }
    memcpy(d->args.box, c.box, sizeof c.box);
    if (!mc_conv_tma_weights_hand_out(&d->args, &c, &l)) {
        return false;
    }
    const int units = c.down * c.mi + c.across * c.q, slices = l.most > MANY_PARTS ? 8 : 1;
    const size_t tile = (size_t)(c.down * c.mi * c.across * c.q) * TMA_UNIT * TMA_UNIT;
    d->grid = (struct mc_grid){
        .blocks = { (unsigned)l.blocks, 1, 1 },
        .threads = { 384, 1, 1 },
        .maps = true,
        .shared = (size_t)(mc_conv_tma_weights_slots(&c) * units * c.ks * 16) * MC_CUDA_ROW + ROUNDED
    };
    d->add_grid = (struct mc_grid){ .blocks = { (unsigned)(tile / 1024) * (unsigned)slices,
                                                (unsigned)l.nsums, 1 },
                                    .threads = { 256, 1, 1 },
                                    .maps = true };
    d->adds = l.nsums > 0;
    d->base.workspace = (size_t)l.parts * tile * sizeof(float);
    LOG(LOG_PLAN,
        "    box_weights: %lld tiles of %d x %d, %d parts, boxes of %d images, %d planes, %d lines, %d "
        "positions, %.3g us expected",
        (long long)c.tiles, c.down * c.mi * TMA_UNIT, c.across * c.q * TMA_UNIT, l.parts, c.box[0], c.box[1],
        c.box[2], c.box[3], c.seconds * 1e6);
    d->base.child[0] = mc_plan_with(&p->base, &mc_conv_cuda_direct);
    const bool ok = d->base.child[0] && load(d, p, &c, slices) && list(d, &l);
    mc_conv_tma_weights_lists_free(&l);
    if (ok) {
        d->x = array(p, &d->args, true);
        d->y = array(p, &d->args, false);
        d->base.workspace = MC_MAX(d->base.workspace, d->base.child[0]->workspace);
    }
    return ok;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct box_weights *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->gpu = mc_cuda_current();
    d->base.run = run;
    d->base.destroy = destroy;
    shape(p, &d->args);
    if (!make(d, p)) {
        destroy(&d->base);
        mc_plan_free(d->base.child[0]);
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    return mc_dtypes[p->dtype].size != 2 || !mc_is_float(p->dtype) ? "takes halves"
           : p->s.pass != CONV_WEIGHTS                             ? "computes gradients of filters"
                                                                   : mc_conv_tma_limits(p);
}

static double estimate(const struct mc_problem *p_)
{
    struct mc_conv_tma_weights_args a;
    shape(conv(p_), &a);
    const struct mc_conv_tma_weights_tiling c = mc_conv_tma_weights_best_tiling(&a, taps_down(conv(p_)));
    return c.mi > 0 ? c.seconds : 1e30; /* plan() will give the reason */
}

const struct mc_solver mc_conv_cuda_tma_weights = { .name = "box_weights", .refuse = refuse,
                                                    .estimate = estimate, .plan = plan };
