/* direct.c: convolution on a GPU by the kernels of direct.cu: every pass, dtype, layout, group, dilation
 * and rank, and unshared filters.
 *
 * Groups with enough rows use tiles of a product; others use one thread an element, or one block a
 * weight.  Where tiles do not fill the GPU, sums are divided (split-K).
 *
 * Invariant: it refuses nothing. */
#include "heavy/conv/cuda/cuda.h"

static const char text[] = {
#include "heavy/conv/cuda/direct_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_direct_text = { "heavy/conv/cuda/direct.cu", text };

enum { TILE = DIRECT_TILE, TK = DIRECT_TK, FEW_ROWS = 8 };

struct direct {
    struct mc_plan base;
    void *kernel, *add;
    const char *name;
    struct mc_grid grid, add_grid;
    struct mc_direct_args args;
};

/* ---- arguments of the kernels ---- */

void mc_direct_shape(struct mc_direct_args *a, const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t cg = s->c / s->groups, fg = s->f / s->groups, taps = conv_volume(s->k),
                  positions = conv_volume(s->out);
    *a = (struct mc_direct_args){
        .n = s->n, .c = s->c, .f = s->f, .groups = s->groups, .splits = 1, .alpha = p->alpha, .beta = p->beta
    };
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
        a->ws[2 + i] = -a->ws[2 + i];
    }
    a->rows = s->pass == CONV_INPUTS ? cg : fg;
    a->cols = s->pass == CONV_FORWARD  ? s->n * positions
              : s->pass == CONV_INPUTS ? s->n * conv_volume(s->in)
                                       : cg * taps;
    a->depth = s->pass == CONV_FORWARD ? cg * taps : s->pass == CONV_INPUTS ? fg * taps : s->n * positions;
}

void mc_direct_bind(struct mc_direct_args *a, const struct mc_conv_problem *p, void *const *operand)
{
    int64_t first = 0; /* bytes from w to the tap that is read first */
    for (int i = 0; i < 3 && p->s.flip; i++) {
        first += (p->s.k[i] - 1) * p->at.w[2 + i] * mc_dtypes[p->dtype].size;
    }
    a->x = operand[CONV_X];
    a->w = (char *)operand[CONV_W] + first;
    a->y = operand[CONV_Y];
    a->c0 = p->beta != 0 ? (char *)operand[CONV_C0] + (p->s.pass == CONV_WEIGHTS ? first : 0) : NULL;
    a->bias = p->has_bias ? operand[CONV_BIAS] : NULL;
}

void *mc_direct_kernel(const struct mc_direct_args *a, const struct mc_conv_problem *p, bool wide,
                       const char *name)
{
    struct mc_str defines = { 0 };
    void *kernel;
    const int64_t most = MC_MAX(MC_MAX(a->cols * conv_volume(p->s.out), a->depth), a->rows);
    mc_cuda_types(&defines, p->dtype, wide);
    mc_str_addf(&defines,
                "#define INDEX %s\n#define PASS %d\n#define UNSHARED %d\n#define HAS_C0 %d\n#define HAS_BIAS "
                "%d\n#define ACT %d\n",
                most < (int64_t)0xfffff000 ? "unsigned" : "u64", (int)p->s.pass, p->s.unshared, p->beta != 0,
                p->has_bias, (int)p->act);
    mc_cuda_kernels(&mc_conv_direct_text, &defines, &(struct mc_cuda_kernel_ref){ &kernel, name }, 1);
    return kernel;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct direct *d = (const struct direct *)(const void *)plan;
    struct mc_direct_args a = d->args;
    (void)threads;
    if (!d->kernel) {
        return MC_OK;
    }
    mc_direct_bind(&a, conv(plan->problem), operand);
    a.parts = workspace;
    TRY(mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, d->name, &d->grid, &a, sizeof a));
    return d->add ? mc_cuda_launch_dependent(mc_cuda_current(), d->add, "add", &d->add_grid, &a, sizeof a)
                  : MC_OK;
}

/* ---- a plan ---- */

static const char *kernel_of(const struct mc_direct_args *a, const struct mc_conv_problem *p)
{
    const bool weights = p->s.pass == CONV_WEIGHTS;
    return p->s.unshared         ? (weights ? "each_place" : "each")
           : a->rows >= FEW_ROWS ? "tiles"
           : weights             ? "each_weight"
                                 : "each";
}

static int64_t tiles_of(const struct mc_direct_args *a)
{
    return conv_ceil(a->rows, TILE) * conv_ceil(a->cols, TILE) * a->groups;
}

/* Parts of each sum (split-K), so that every multiprocessor has work. */
static int64_t splits(const struct mc_direct_args *a)
{
    const int64_t tiles = tiles_of(a);
    const struct mc_cuda *gpu = mc_cuda_current();
    const int64_t wanted = gpu ? 2 * gpu->processors : 200;
    return MC_MAX(MC_MIN(MC_MIN(wanted / MC_MAX(tiles, (int64_t)1), a->depth / (16 * TK)), (int64_t)64),
                  (int64_t)1);
}

static void grids(struct direct *d, const struct mc_conv_problem *p)
{
    struct mc_direct_args *a = &d->args;
    const int64_t elements = a->groups * a->rows * a->cols;
    const int64_t all = p->s.unshared && p->s.pass == CONV_WEIGHTS ? elements * conv_volume(p->s.out)
                                                                   : elements;
    d->grid = mc_cuda_grid_1d(all, 256);
    if (strcmp(d->name, "tiles") == 0) {
        a->splits = splits(a);
        d->grid = mc_cuda_grid_1d(tiles_of(a) * a->splits, 1);
    } else if (strcmp(d->name, "each_weight") == 0) {
        d->grid = mc_cuda_grid_1d(all, 1);
    }
    d->grid.threads[0] = 256;
    d->add_grid = mc_cuda_grid_1d(elements, 256);
    d->base.workspace = a->splits > 1
                            ? (size_t)(a->splits * elements) * (p->wide || p->dtype == MC_FLOAT64 ? 8 : 4)
                            : 0;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct direct *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    mc_direct_shape(&d->args, p);
    const struct mc_conv_array r = mc_conv_array(p, mc_conv_result(p->s.pass));
    if (mc_conv_count(&r) == 0) {
        return &d->base;
    }
    d->name = kernel_of(&d->args, p);
    grids(d, p);
    d->kernel = mc_direct_kernel(&d->args, p, p->wide, d->name);
    d->add = d->kernel && d->args.splits > 1 ? mc_direct_kernel(&d->args, p, p->wide, "add") : NULL;
    if (!d->kernel || (d->args.splits > 1 && !d->add)) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

/* ---- the estimate ---- */

/* Two operations for each element and each of its terms, including terms outside the image: a gradient of
 * images tests every tap, however few positions y has. */
static double walked(const struct mc_direct_args *a, const struct mc_conv_problem *p)
{
    const double each = p->s.unshared && p->s.pass == CONV_WEIGHTS
                            ? (double)p->s.n * (double)conv_volume(p->s.out)
                            : (double)a->depth;
    return 2 * (double)a->groups * (double)a->rows * (double)a->cols * each;
}

static mc_dtype units(const struct mc_conv_problem *p)
{
    return p->wide || p->dtype == MC_FLOAT64 ? MC_FLOAT64 : MC_FLOAT32; /* halves are summed as floats */
}

/* One thread an element: 0.9e11 to 1.7e11 terms a second on an H200.  Tiles are taken as full; their
 * number determines the part of the GPU that is busy. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct mc_direct_args a;
    mc_direct_shape(&a, p);
    if (strcmp(kernel_of(&a, p), "tiles") != 0) {
        return mc_cuda_seconds(units(p), false, walked(&a, p), mc_conv_bytes(p), 0.004);
    }
    const struct mc_cuda *gpu = mc_cuda_current();
    const double tiles = (double)tiles_of(&a),
                 busy = tiles * (double)splits(&a) / (1.5 * (gpu ? gpu->processors : 100));
    return mc_cuda_seconds(units(p), false, 2 * tiles * TILE * TILE * (double)(conv_ceil(a.depth, TK) * TK),
                           mc_conv_bytes(p), 0.12 * MC_MIN(busy, 1));
}

static double least(const struct mc_problem *p)
{
    struct mc_direct_args a;
    mc_direct_shape(&a, conv(p));
    return mc_cuda_lower_bound(units(conv(p)), false, walked(&a, conv(p)));
}

const struct mc_solver mc_conv_cuda_direct = { .name = "cuda_direct", .estimate = estimate, .least = least,
                                               .plan = plan };
