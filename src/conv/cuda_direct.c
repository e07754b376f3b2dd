/* cuda_direct.c: convolution on a GPU by kernels of our own (direct.cu): every pass, dtype, layout, group, dilation and
 * rank, and a filter for each place.
 *
 * Tiles of a product where groups have enough rows; else an element a thread, or a weight a block.  Where tiles do not
 * fill the GPU, sums are cut in parts.
 *
 * Invariant: it refuses nothing. */
#include "conv/cuda.h"

static const char text[] = {
#include "conv/direct_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_direct_text = { "conv/direct.cu", text };

enum { TILE = 64, TK = 16, FEW_ROWS = 8 };

struct args {
    void *x, *w, *y;
    const void *c0, *bias;
    void *parts;
    int64_t n, c, f, groups, in[3], out[3], k[3], stride[3], dilation[3], pad[3], xs[5], ws[8], ys[5];
    int64_t rows, cols, depth, splits;
    double alpha, beta;
};
struct direct {
    struct mc_plan base;
    void *kernel, *add;
    const char *name;
    struct mc_grid grid, add_grid;
    struct args args;
    int64_t w_first;            /* elements from w to the tap that is read first */
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct direct *d = (const struct direct *)(const void *)plan;
    const struct mc_conv_problem *p = conv(plan->problem);
    const int64_t size = mc_dtypes[p->dtype].size, first = d->w_first * size;
    struct args a = d->args;
    (void)threads;
    if (!d->kernel) {
        return MC_OK;
    }
    a.x = operand[CONV_X];
    a.w = (char *)operand[CONV_W] + first;
    a.y = operand[CONV_Y];
    a.c0 = p->beta != 0 ? (char *)operand[CONV_C0] + (p->s.pass == CONV_WEIGHTS ? first : 0) : NULL;
    a.bias = p->has_bias ? operand[CONV_BIAS] : NULL;
    a.parts = workspace;
    TRY(mc_cuda_launch(mc_cuda_current(), d->kernel, d->name, &d->grid, &a, sizeof a));
    return d->add ? mc_cuda_launch(mc_cuda_current(), d->add, "add", &d->add_grid, &a, sizeof a) : MC_OK;
}

/* ---- a plan ---- */

static void shape(struct direct *d, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    struct args *a = &d->args;
    const int64_t cg = s->c / s->groups, fg = s->f / s->groups, taps = conv_volume(s->k), places = conv_volume(s->out);
    *a = (struct args){ .n = s->n, .c = s->c, .f = s->f, .groups = s->groups, .splits = 1, .alpha = p->alpha, .beta = p->beta };
    memcpy(a->in, s->in, sizeof a->in);
    memcpy(a->out, s->out, sizeof a->out);
    memcpy(a->k, s->k, sizeof a->k);
    memcpy(a->stride, s->stride, sizeof a->stride);
    memcpy(a->dilation, s->dilation, sizeof a->dilation);
    memcpy(a->pad, s->pad, sizeof a->pad);
    memcpy(a->xs, p->at.x, sizeof a->xs);
    memcpy(a->ws, p->at.w, sizeof a->ws);
    memcpy(a->ys, p->at.y, sizeof a->ys);
    for (int i = 0; i < 3 && s->flip; i++) {
        d->w_first += (s->k[i] - 1) * a->ws[2 + i];
        a->ws[2 + i] = -a->ws[2 + i];
    }
    a->rows = s->pass == CONV_INPUTS ? cg : fg;
    a->cols = s->pass == CONV_FORWARD ? s->n * places : s->pass == CONV_INPUTS ? s->n * conv_volume(s->in) : cg * taps;
    a->depth = s->pass == CONV_FORWARD ? cg * taps : s->pass == CONV_INPUTS ? fg * taps : s->n * places;
}

static const char *kernel_of(const struct direct *d, const struct mc_conv_problem *p)
{
    const bool weights = p->s.pass == CONV_WEIGHTS;
    return p->s.unshared ? (weights ? "each_place" : "each") : d->args.rows >= FEW_ROWS ? "tiles" : weights ? "each_weight" : "each";
}

/* Parts of the sums, so that every processor has work. */
static int64_t splits(const struct args *a, int64_t tiles)
{
    const struct mc_cuda *gpu = mc_cuda_current();
    const int64_t wanted = gpu ? 2 * gpu->processors : 200;
    return MC_MAX(MC_MIN(MC_MIN(wanted / MC_MAX(tiles, (int64_t)1), a->depth / (16 * TK)), (int64_t)64), (int64_t)1);
}

static void grids(struct direct *d, const struct mc_conv_problem *p)
{
    struct args *a = &d->args;
    const int64_t elements = a->groups * a->rows * a->cols;
    const int64_t all = p->s.unshared && p->s.pass == CONV_WEIGHTS ? elements * conv_volume(p->s.out) : elements;
    d->grid = mc_cuda_line(all, 256);
    if (strcmp(d->name, "tiles") == 0) {
        const int64_t tiles = conv_ceil(a->rows, TILE) * conv_ceil(a->cols, TILE) * a->groups;
        a->splits = splits(a, tiles);
        d->grid = mc_cuda_line(tiles * a->splits, 1);
    } else if (strcmp(d->name, "each_weight") == 0) {
        d->grid = mc_cuda_line(all, 1);
    }
    d->grid.threads[0] = 256;
    d->add_grid = mc_cuda_line(elements, 256);
    d->base.workspace = a->splits > 1 ? (size_t)(a->splits * elements) * (p->wide || p->dtype == MC_FLOAT64 ? 8 : 4) : 0;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_str defines = { 0 };
    struct direct *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    shape(d, p);
    const struct mc_conv_array r = mc_conv_array(p, mc_conv_result(p->s.pass));
    if (mc_conv_count(&r) == 0) {
        return &d->base;
    }
    d->name = kernel_of(d, p);
    grids(d, p);
    const int64_t most = MC_MAX(MC_MAX(d->args.cols * conv_volume(p->s.out), d->args.depth), d->args.rows);
    mc_cuda_types(&defines, p->dtype, p->wide);
    mc_str_addf(&defines, "#define INDEX %s\n#define PASS %d\n#define UNSHARED %d\n#define HAS_C0 %d\n#define HAS_BIAS %d\n#define ACT %d\n",
                most < (int64_t)0xfffff000 ? "unsigned" : "u64", (int)p->s.pass, p->s.unshared, p->beta != 0, p->has_bias, (int)p->act);
    d->kernel = defines.bad ? NULL : mc_cuda_kernel(&mc_conv_direct_text, defines.s, d->name);
    d->add = d->kernel && d->args.splits > 1 ? mc_cuda_kernel(&mc_conv_direct_text, defines.s, "add") : NULL;
    mc_str_free(&defines);
    if (!d->kernel || (d->args.splits > 1 && !d->add)) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

static double estimate(const struct mc_problem *p)
{
    return mc_conv_cuda_seconds(conv(p), mc_dtypes[conv(p)->dtype].size == 2 ? 0.015 : 0.12);
}

const struct mc_solver mc_conv_cuda_direct = { .name = "cuda_direct", .estimate = estimate, .plan = plan };
