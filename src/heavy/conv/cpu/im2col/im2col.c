/* im2col.c: refusals and plans: how windows of x and matrix products are cut into tiles and blocks.
 *
 * Invariant: unless the workspace cap requires less, a block of columns takes at most half of the L2
 * cache. */
#include "heavy/conv/cpu/im2col/im2col.h"
#include "heavy/gemm/cpu/kernel.h"

enum { TILE = 512, LEAST_TILE = 16, TASKS = 8, LINE = 64 };

/* The product of one kind, for `tile` positions and `block` channels. */
static struct mc_gemm_problem product(const struct mc_conv_problem *p, enum kind kind, int64_t tile,
                                      int64_t block)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t f = s->f / s->groups, k = block * conv_volume(s->k), wf = p->at.w[0], yf = p->at.y[1];
    struct mc_gemm_problem g = { .dtype = p->dtype, .batch = 1, .alpha = p->alpha,
                                 .beta = kind == FIRST ? p->beta : kind == REST };
    if (s->pass == CONV_FORWARD) {
        g.m = f, g.n = tile, g.k = k;
        memcpy(g.as, (int64_t[]){ 0, wf, 1 }, sizeof g.as);
        memcpy(g.bs, (int64_t[]){ 0, tile, 1 }, sizeof g.bs);
        memcpy(g.cs, (int64_t[]){ 0, yf, 1 }, sizeof g.cs);
    } else if (s->pass == CONV_INPUTS) {
        g.m = k, g.n = tile, g.k = f;
        memcpy(g.as, (int64_t[]){ 0, 1, wf }, sizeof g.as);
        memcpy(g.bs, (int64_t[]){ 0, yf, 1 }, sizeof g.bs);
        memcpy(g.cs, (int64_t[]){ 0, tile, 1 }, sizeof g.cs);
    } else {
        g.m = f, g.n = k, g.k = tile;
        memcpy(g.as, (int64_t[]){ 0, yf, 1 }, sizeof g.as);
        memcpy(g.bs, (int64_t[]){ 0, 1, tile }, sizeof g.bs);
        memcpy(g.cs, (int64_t[]){ 0, wf, 1 }, sizeof g.cs);
    }
    memcpy(g.c0s, g.cs, sizeof g.c0s);
    return g;
}

static bool product_shapes(const struct im2col *d, enum mc_conv_pass pass, enum kind kind)
{
    return kind == FIRST  ? pass != CONV_INPUTS
           : kind == REST ? pass == CONV_WEIGHTS || (pass == CONV_FORWARD && d->blocks > 1)
                          : pass == CONV_INPUTS || d->parts > 1;
}

static void free_products(struct mc_plan *plan)
{
    struct im2col *d = (struct im2col *)(void *)plan;
    for (int i = 0; i < NKIND * 4; i++) {
        struct mc_plan **g = &d->gemm[i / 4][i / 2 % 2][i % 2];
        if (i != d->shown) {
            mc_plan_free(*g);
        }
        *g = NULL;
    }
}

static bool make_products(struct im2col *d, const struct mc_conv_problem *p)
{
    size_t most = 0;
    for (int i = 0; i < NKIND * 4; i++) {
        const int kind = i / 4, last_tile = i / 2 % 2, last_block = i % 2;
        if (!product_shapes(d, p->s.pass, (enum kind)kind) || (!last_tile && d->tiles == 1) ||
            (!last_block && d->blocks == 1)) {
            continue;
        }
        const struct mc_gemm_problem g = product(p, (enum kind)kind, last_tile ? d->last_tile : d->tile,
                                                 last_block ? d->last_block : d->block);
        struct mc_plan *made = mc_gemm_plan(&g, &p->base.options);
        if (!made) {
            return false;
        }
        d->gemm[kind][last_tile][last_block] = made;
        most = MC_MAX(most, made->workspace);
    }
    d->slot_bytes = d->column_bytes + (most + LINE - 1) / LINE * LINE;
    d->base.workspace = (size_t)(d->parts - 1) * d->part_bytes + (size_t)d->slots * d->slot_bytes;
    return true;
}

/* n in equal parts of at most `most`: how many, and the size of all but the last and of the last. */
static void divide(int64_t n, int64_t most, int64_t unit, int64_t *parts, int64_t *part, int64_t *last)
{
    const int64_t about = conv_ceil(n, conv_ceil(n, most));
    *part = MC_MIN(conv_ceil(about, unit) * unit, n);
    *parts = conv_ceil(n, *part);
    *last = n - (*parts - 1) * *part;
}

static void choose_blocking(struct im2col *d, const struct mc_conv_problem *p, int64_t most_tile,
                            int64_t most_block)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t size = mc_dtypes[p->dtype].size, taps = conv_volume(s->k), cg = s->c / s->groups;
    divide(conv_volume(s->out), most_tile, LEAST_TILE, &d->tiles, &d->tile, &d->last_tile);
    const int64_t fit = (int64_t)mc_cpu()->l2 / 2 / (d->tile * taps * size);
    divide(cg, MC_MAX(MC_MIN(fit, most_block), (int64_t)1), 1, &d->blocks, &d->block, &d->last_block);
    d->column_bytes = (size_t)(d->tile * d->block * taps * size + LINE - 1) / LINE * LINE;
    d->parts = 1;
    if (s->pass == CONV_WEIGHTS && mc_conv_dense(p, CONV_W)) {
        d->parts = MC_MAX(MC_MIN(conv_ceil(TASKS, d->blocks * s->groups), s->n), (int64_t)1);
    }
    d->part_bytes = (size_t)(s->f * cg * taps * size + LINE - 1) / LINE * LINE;
}

/* True if forward has too few tiles to divide its positions among the threads. */
static bool has_few_tiles(const struct mc_conv_problem *p)
{
    return p->s.pass == CONV_FORWARD &&
           p->s.n * p->s.groups * conv_ceil(conv_volume(p->s.out), TILE) < TASKS / 2;
}

static int64_t default_tile(const struct mc_conv_problem *p)
{
    const int64_t all = conv_volume(p->s.out), cells = p->s.n * p->s.groups;
    const bool divides = p->s.pass == CONV_FORWARD && cells < TASKS && !has_few_tiles(p);
    return MC_MAX(MC_MIN(divides ? conv_ceil(all * cells, TASKS) : TILE, (int64_t)TILE),
                  (int64_t)LEAST_TILE * 4);
}

/* Inputs and weights divide channels, but not so far that products get too small. */
static int64_t default_block(const struct mc_conv_problem *p)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t cg = s->c / s->groups, least = conv_ceil(64, conv_volume(s->k));
    if (p->at.w[1] != conv_volume(s->k)) {
        return 1;
    }
    return s->pass == CONV_FORWARD ? cg : MC_MAX(conv_ceil(cg, conv_ceil(TASKS, s->n * s->groups)), least);
}

/* Makes tiles, then blocks, smaller until one thread keeps the cap. Then takes as many threads as keep it. */
static bool fit(struct im2col *d, const struct mc_conv_problem *p)
{
    const size_t cap = p->base.options.workspace;
    int64_t tile = default_tile(p), block = default_block(p);
    d->together = has_few_tiles(p);
    for (;;) {
        d->slots = 1;
        choose_blocking(d, p, tile, block);
        if (!make_products(d, p)) {
            return false;
        }
        const bool least = d->tile <= LEAST_TILE && d->block == 1;
        if (d->base.workspace <= cap || least) {
            break;
        }
        *(d->tile > LEAST_TILE ? &tile : &block) = (d->tile > LEAST_TILE ? d->tile : d->block) / 2;
        free_products(&d->base);
    }
    const size_t one = d->base.workspace;
    while (!d->together && d->slots < mc_team_size() && one + (size_t)d->slots * d->slot_bytes <= cap) {
        d->slots++;
    }
    d->base.workspace = one + (size_t)(d->slots - 1) * d->slot_bytes;
    return true;
}

static struct mc_plan *plan(const struct mc_problem *p)
{
    struct im2col *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = mc_im2col_run;
    d->base.destroy = free_products;
    d->shown = -1;
    if (!fit(d, conv(p))) {
        free_products(&d->base);
        mc_free(d);
        return NULL;
    }
    d->shown = 4 * (conv(p)->s.pass == CONV_INPUTS ? FRESH : FIRST) + 3;
    d->base.child[0] = d->gemm[d->shown / 4][1][1];
    return &d->base;
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    if (mc_conv_hollow(p)) {
        return mc_conv_hollow(p);
    }
    if (p->s.unshared) {
        return "takes filters shared by all positions";
    }
    if (!mc_conv_dense_inner(p, CONV_Y, 3) || !mc_conv_dense_inner(p, CONV_W, 3)) {
        return "needs contiguous positions in y and contiguous taps in w";
    }
    return mc_conv_shared_image_halves(p);
}

/* What calls of products and the tiles of their results take beside the sums: filters whose channels lie
 * apart are multiplied channel by channel, and each time y is read or written again. */
static double call_cost(const struct mc_conv_problem *p)
{
    struct im2col d = { 0 };
    choose_blocking(&d, p, default_tile(p), default_block(p));
    const struct mc_gemm_problem g = product(p, FIRST, d.tile, d.block);
    const struct mc_gemm_kernel *kernel = mc_gemm_kernel(p->dtype);
    const double calls = (double)(p->s.n * p->s.groups * d.tiles) * (double)d.blocks;
    const int64_t y = p->s.n * p->s.f * conv_volume(p->s.out) * mc_dtypes[p->dtype].size;
    const double again = (double)(d.blocks - 1) * (double)y;
    return calls * (0.2e-6 + 2.2e-9 * (double)g.m * (double)conv_ceil(g.n, kernel->nr)) + again / 60e9;
}

/* Besides the products, every column is written in pieces of a row of y, packed by the product and, for
 * inputs, added. Products with few rows take as long as reading their columns. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    const double size = mc_dtypes[p->dtype].size, f = (double)s->f / (double)s->groups;
    const double columns = mc_conv_flops(p) / 2 / f;
    /* seconds a byte of a column: by vectors, and one by one where windows are strided */
    static const double each[][2] = {
        [CONV_FORWARD] = { 0.03e-9,  0.06e-9 },
        [CONV_INPUTS]  = { 0.055e-9, 0.14e-9 },
        [CONV_WEIGHTS] = { 0.035e-9, 0.13e-9 },
    };
    const double byte = MC_MAX(each[s->pass][s->stride[2] > 1], f < 8 ? 0.15e-9 : 0);
    const double pieces = columns * (10e-9 / (double)s->out[2] + size * byte);
    const double math = mc_conv_flops(p) / (0.85 * mc_conv_peak(p)) * (f < 8 ? 8 / f : 1);
    const double seconds = math + pieces + call_cost(p) + mc_conv_copy(mc_conv_bytes(p));
    return 2e-6 + seconds / mc_conv_threads(seconds, TASKS) + (seconds > 4e-6 ? 3e-6 : 0);
}

const struct mc_solver mc_conv_im2col = {
    .name = "im2col", .refuse = refuse, .estimate = estimate, .plan = plan,
};
