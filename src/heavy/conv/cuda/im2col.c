/* im2col.c: on a GPU, convolution as matrix products with matrices of windows (im2col.cu), for as many
 * images at a time as the workspace allows.
 *
 *   forward   y[image] = w * columns[image]                    one batched product
 *   inputs    columns[image] = w' * y[image], then scattered   one batched product
 *   weights   w = y * columns'                                 positions of all images concatenated
 *
 * For pointwise filters without border or stride x is itself the matrix; nothing is gathered.
 *
 * Invariant: sums are never rounded to halves before they are complete. */
#include "heavy/conv/cuda/cuda.h"
#include "heavy/conv/cuda/im2col_args.h"

static const char text[] = {
#include "heavy/conv/cuda/im2col_text.h"
    , 0 };
const struct mc_cuda_text mc_conv_im2col_text = { "heavy/conv/cuda/im2col.cu", text };

/* products: FIRST: of the first round; WHOLE: of a full round of images */
enum { FIRST = 1, WHOLE = 2 };
struct im2col {
    struct mc_plan base;
    void *gather, *scatter;
    struct mc_plan *gemm[4];                /* by FIRST and WHOLE; forward and inputs: all are FIRST */
    struct mc_cuda_copy *side[2];           /* y with the positions of images concatenated; by WHOLE */
    int64_t images;                         /* at a time */
    size_t y_at, gemm_at;                   /* in the workspace, after the columns */
    bool straight;                          /* x itself is the matrix of columns */
};

static struct im2col *im2col(const struct mc_plan *p)
{
    return (struct im2col *)(void *)(uintptr_t)p;
}

static int64_t taps(const struct mc_conv_problem *p)
{
    return conv_volume(p->s.k);
}

static int64_t positions(const struct mc_conv_problem *p)
{
    return conv_volume(p->s.out);
}

/* ---- a call ---- */

struct call {
    const struct im2col *d;
    const struct mc_conv_problem *p;
    char *x, *w, *y, *columns;
    const char *c0;
    char *workspace;
    int64_t n;                  /* images of this round */
    bool first;
};

static mc_status columns(const struct call *c, void *kernel, const char *name)
{
    const struct mc_conv_shape *s = &c->p->s;
    const int64_t rows = s->c * taps(c->p), u = positions(c->p);
    const bool side = s->pass == CONV_WEIGHTS, back = s->pass == CONV_INPUTS;
    struct mc_im2col_args a = { .x = c->x, .c0 = back ? c->c0 : NULL, .columns = c->columns, .n = c->n,
                                .c = s->c, .beta = c->p->beta,
                      .flip = s->flip, .image = side ? u : rows * u, .row = side ? c->n * u : u };
    memcpy(a.in, s->in, sizeof a.in);
    memcpy(a.out, s->out, sizeof a.out);
    memcpy(a.k, s->k, sizeof a.k);
    memcpy(a.stride, s->stride, sizeof a.stride);
    memcpy(a.dilation, s->dilation, sizeof a.dilation);
    memcpy(a.pad, s->pad, sizeof a.pad);
    memcpy(a.xs, c->p->at.x, sizeof a.xs);
    const struct mc_grid grid = mc_cuda_grid_1d(c->n * (back ? s->c * conv_volume(s->in) : rows * 32),
                                                256); /* a warp gathers a line */
    return mc_cuda_launch_dependent(mc_cuda_current(), kernel, name, &grid, &a, sizeof a);
}

static mc_status multiply(const struct call *c, int64_t group)
{
    const struct mc_conv_problem *p = c->p;
    const struct mc_plan *plan = c->d->gemm[(c->first ? FIRST : 0) | (c->n == c->d->images ? WHOLE : 0)];
    const int64_t size = mc_dtypes[p->dtype].size, fg = p->s.f / p->s.groups, cg = p->s.c / p->s.groups;
    const int64_t per_row = p->s.pass == CONV_WEIGHTS ? c->n * positions(p) : positions(p);
    char *w = c->w + group * fg * p->at.w[0] * size, *y = c->y + group * fg * p->at.y[1] * size;
    char *m = c->d->straight ? c->x + group * cg * p->at.x[1] * size
                             : c->columns + group * cg * taps(p) * per_row * size;
    void *operand[8] = { NULL };
    if (p->s.pass == CONV_FORWARD) {
        operand[GEMM_A] = w;
        operand[GEMM_B] = m;
        operand[GEMM_C] = y;
        operand[GEMM_C0] = c->c0 ? (char *)(uintptr_t)c->c0 + group * fg * p->at.y[1] * size : NULL;
    } else if (p->s.pass == CONV_INPUTS) {
        operand[GEMM_A] = w;
        operand[GEMM_B] = y;
        operand[GEMM_C] = m;
        operand[GEMM_C0] = c->c0 && c->d->straight ? (char *)(uintptr_t)c->c0 + group * cg * p->at.x[1] * size
                                                   : NULL;
    } else {
        const bool transposed = c->d->side[c->n == c->d->images] != NULL;
        operand[GEMM_A] = transposed ? c->workspace + c->d->y_at + group * fg * per_row * size : y;
        operand[GEMM_B] = m;
        operand[GEMM_C] = w;
        operand[GEMM_C0] = !c->first ? w
                           : c->c0   ? (char *)(uintptr_t)c->c0 + group * fg * p->at.w[0] * size
                                     : NULL;
    }
    return plan->run(plan, operand, c->workspace + c->d->gemm_at, 0);
}

static mc_status some_images(const struct call *c)
{
    const enum mc_conv_pass pass = c->p->s.pass;
    const struct mc_cuda_copy *side = c->d->side[c->n == c->d->images];
    if (pass != CONV_INPUTS && !c->d->straight) {
        TRY(columns(c, c->d->gather, "gather"));
    }
    if (side) {
        TRY(mc_cuda_copy_run(side, c->workspace + c->d->y_at, c->y));
    }
    for (int64_t g = 0; g < c->p->s.groups; g++) {
        TRY(multiply(c, g));
    }
    return pass == CONV_INPUTS && !c->d->straight ? columns(c, c->d->scatter, "scatter") : MC_OK;
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct im2col *d = im2col(plan);
    const struct mc_conv_problem *p = conv(plan->problem);
    const int64_t size = mc_dtypes[p->dtype].size;
    (void)threads;
    for (int64_t n = 0; n < p->s.n; n += d->images) {
        const int64_t x = n * p->at.x[0] * size, y = n * p->at.y[0] * size;
        struct call c = { .d = d, .p = p, .x = (char *)operand[CONV_X] + x, .w = operand[CONV_W],
                          .y = (char *)operand[CONV_Y] + y,
                          .columns = workspace, .workspace = workspace, .n = MC_MIN(d->images, p->s.n - n),
                          .first = n == 0 };
        const int64_t c0 = p->s.pass == CONV_FORWARD ? y : p->s.pass == CONV_INPUTS ? x : 0;
        c.c0 = p->beta != 0 ? (char *)operand[CONV_C0] + c0 : NULL;
        TRY(some_images(&c));
    }
    return MC_OK;
}

/* ---- products ---- */

/* The product of n images of one group. first: with the problem's c0; else it adds to the result. */
static struct mc_plan *product(const struct im2col *d, const struct mc_conv_problem *p, int64_t n, bool first)
{
    const int64_t fg = p->s.f / p->s.groups, cg = p->s.c / p->s.groups, u = positions(p), rows = cg * taps(p),
                  all = p->s.c * taps(p);
    const int64_t side = n * u;
    struct mc_gemm_problem g = { .dtype = p->dtype, .batch = n, .alpha = p->alpha, .tf32 = p->tf32 };
    const int64_t w[3] = { 0, p->at.w[0], 1 }, w_turned[3] = { 0, 1, p->at.w[0] },
                  y[3] = { p->at.y[0], p->at.y[1], 1 };
    const int64_t x[3] = { p->at.x[0], p->at.x[1], 1 },
                  columns_[3] = { all * u, u, 1 }, *const m = d->straight ? x : columns_;
    const int64_t y_side[3] = { 0, d->side[n == d->images] ? side : p->at.y[1], 1 },
                  m_turned[3] = { 0, 1, side };
    const bool forward = p->s.pass == CONV_FORWARD, inputs = p->s.pass == CONV_INPUTS;
    g.m = inputs ? rows : fg;
    g.n = p->s.pass == CONV_WEIGHTS ? rows : u;
    g.k = forward ? rows : inputs ? fg : side;
    g.batch = p->s.pass == CONV_WEIGHTS ? 1 : n;
    memcpy(g.as, forward ? w : inputs ? w_turned : y_side, sizeof g.as);
    memcpy(g.bs, forward ? m : inputs ? y : m_turned, sizeof g.bs);
    memcpy(g.cs, forward ? y : inputs ? m : w, sizeof g.cs);
    memcpy(g.c0s, g.cs, sizeof g.c0s);
    g.beta = !first ? 1 : inputs && !d->straight ? 0 : p->beta;
    return mc_gemm_cuda_inner(&g, &p->base.options);
}

static bool products(struct im2col *d, const struct mc_conv_problem *p)
{
    const int64_t rest = p->s.n % d->images, rounds = (p->s.n + d->images - 1) / d->images;
    const bool adds = p->s.pass == CONV_WEIGHTS;
    const struct { int at; int64_t n; bool first, wanted; } need[] = {
        { FIRST | WHOLE, d->images, true,  true                            },
        { WHOLE,         d->images, !adds, rounds > 1 && p->s.n >= 2 * d->images },
        { 0,             rest,      !adds, rest > 0                        },
    };
    for (size_t i = 0; i < NELEM(need); i++) {
        if (need[i].wanted) {
            struct mc_plan *g = product(d, p, need[i].n, need[i].first);
            if (!g) {
                return false;
            }
            d->gemm[need[i].at] = g;
            d->base.workspace = MC_MAX(d->base.workspace, g->workspace);
        }
    }
    return true;
}

/* Copies of y to (f, images * positions), where y is not stored so. */
static bool sides(struct im2col *d, const struct mc_conv_problem *p)
{
    for (int whole = 0; whole < 2 && p->s.pass == CONV_WEIGHTS; whole++) {
        const int64_t n = whole ? d->images : p->s.n % d->images, u = positions(p);
        if (n <= 1) {
            continue;
        }
        const struct mc_cuda_layout l = { .to = p->dtype,
                                          .from = p->dtype,
                                          .rank = 3,
                                          .size = { p->s.f, n, u },
                                          .to_stride = { n * u, u, 1 },
                                          .from_stride = { p->at.y[1], p->at.y[0], 1 } };
        d->side[whole] = mc_cuda_copy_new(&l);
        if (!d->side[whole]) {
            return false;
        }
    }
    return true;
}

/* ---- a plan ---- */

static bool straight(const struct mc_conv_problem *p)
{
    bool same = taps(p) == 1 && p->s.pass != CONV_WEIGHTS && mc_conv_dense_inner(p, CONV_X, 3);
    for (int i = 0; i < 3; i++) {
        same = same && p->s.stride[i] == 1 && p->s.pad[i] == 0 && p->s.in[i] == p->s.out[i];
    }
    return same;
}

/* Bytes for the columns of so many images, and for their copy of y. */
static size_t workspace_bytes(const struct im2col *d, const struct mc_conv_problem *p, int64_t images,
                              size_t *y_at)
{
    const size_t u = (size_t)(images * positions(p)) * mc_dtypes[p->dtype].size;
    *y_at = d->straight ? 0 : mc_work_rounded(u * (size_t)(p->s.c * taps(p)));
    return *y_at + (p->s.pass == CONV_WEIGHTS && images > 1 ? mc_work_rounded(u * (size_t)p->s.f) : 0);
}

/* As many images as fit in half of the workspace cap, at most 256 MiB. */
static int64_t at_a_time(const struct im2col *d, const struct mc_conv_problem *p)
{
    size_t ignored;
    const size_t one = workspace_bytes(d, p, 1, &ignored),
                 cap = MC_MIN(p->base.options.workspace / 2, (size_t)256 << 20);
    return d->straight || one == 0 ? p->s.n : MC_MAX(MC_MIN((int64_t)(cap / one), p->s.n), (int64_t)1);
}

static void destroy(struct mc_plan *plan)
{
    struct im2col *d = im2col(plan);
    for (size_t i = 0; i < NELEM(d->gemm); i++) {
        mc_plan_free(d->gemm[i]);
    }
    mc_cuda_copy_free(d->side[0]);
    mc_cuda_copy_free(d->side[1]);
}

static bool load(struct im2col *d, const struct mc_conv_problem *p)
{
    struct mc_str defines = { 0 };
    mc_cuda_types(&defines, p->dtype, false);
    mc_cuda_index(&defines, d->images * p->s.c * MC_MAX(taps(p) * positions(p), conv_volume(p->s.in)));
    const struct mc_cuda_kernel_ref kernels[] = { { &d->gather, "gather" }, { &d->scatter, "scatter" } };
    return mc_cuda_kernels(&mc_conv_im2col_text, &defines, kernels, NELEM(kernels));
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    struct im2col *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = destroy;
    d->straight = straight(p);
    d->images = at_a_time(d, p);
    d->gemm_at = workspace_bytes(d, p, d->images, &d->y_at);
    bool ok = mc_dtypes[p->dtype].size > 2 || p->s.pass != CONV_WEIGHTS || d->images >= p->s.n;
    if (!ok) {
        mc_fail(MC_EUNSUPPORTED,
                "conv: im2col has no workspace for all images at once, and does not sum in halves");
    }
    ok = ok && load(d, p) && sides(d, p) && products(d, p);
    if (!ok) {
        destroy(&d->base);
        mc_free(d);
        return NULL;
    }
    d->base.workspace += d->gemm_at;
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const bool narrow = mc_dtypes[p->dtype].size == 2;
    return mc_conv_hollow(p)                   ? mc_conv_hollow(p)
           : p->s.unshared                     ? "has one filter for all positions"
           : p->has_bias || p->act != ACT_NONE ? "fuses nothing"
           : p->wide && p->dtype != MC_FLOAT64 ? "sums in float32, and conv.precision asks for float64"
           : narrow && p->s.pass == CONV_INPUTS && !straight(p) ? "would sum in halves"
           : !mc_conv_dense_inner(p, CONV_Y, 3)                 ? "requires contiguous positions of y"
           : !mc_conv_dense_inner(p, CONV_W, 4) ? "requires contiguous channels and taps of filters"
                                                : NULL;
}

static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const double cells = (double)p->s.n * (double)(p->s.c * taps(p)) * (double)positions(p) *
                         mc_dtypes[p->dtype].size;
    return mc_conv_cuda_seconds(p, mc_dtypes[p->dtype].size == 2 ? 0.3 : 0.6) +
           (straight(p) ? 0 : mc_cuda_seconds(p->dtype, false, 0, 2 * cells, 1));
}

const struct mc_solver mc_conv_cuda_im2col = { .name = "im2col", .refuse = refuse, .estimate = estimate,
                                               .plan = plan };
