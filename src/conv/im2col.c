/* im2col.c: all three passes as matrix products with the windows of x, a tile of places and a block of channels at
 * a time:
 *
 *     forward   y(f, places)  = w(f, k) * columns(k, places)          summed over blocks of channels
 *     weights   w(f, k)       = y(f, places) * columns(k, places)^T   summed over tiles and images
 *     inputs    columns(k, places) = w(f, k)^T * y(f, places)         then added into x
 *
 * k is (channels of the block, taps); a block is one channel where channels of w are apart.  Each thread has its own columns; products run on one thread.  Where the
 * weights have few blocks, images are divided in parts with sums of their own, added in order at the end.
 *
 * Invariant: tiles, blocks and parts depend on the problem and the workspace cap, never on the threads. */
#include "conv/solver.h"
#include "gemm/gemm.h"

enum kind { FIRST, REST, FRESH, NKIND };   /* beta as the problem's, 1, 0 */
enum { TILE = 512, LEAST_TILE = 16, TASKS = 8, LINE = 64 };
struct im2col {
    struct mc_plan base;
    int64_t tile, tiles, last_tile;     /* places */
    int64_t block, blocks, last_block;  /* channels of a group */
    int64_t parts;                      /* of the images, for weights */
    int slots;
    size_t column_bytes, slot_bytes, part_bytes;
    struct mc_plan *gemm[NKIND][2][2];  /* [kind][last tile][last block]; those not needed are NULL */
    int shown;                          /* the one that is child[0] too, and freed as such; -1: none yet */
};
struct call {
    const struct im2col *d;
    struct mc_conv_run r;
    _Atomic int failed;                 /* a product did: only libraries can */
};
/* One matrix product of a call. */
struct cell {
    int64_t n, g, tile, block;
    char *work;                         /* of this thread: columns, then the product's own */
};

/* ---- cells ---- */

static int64_t tile_size(const struct im2col *d, int64_t tile)
{
    return tile == d->tiles - 1 ? d->last_tile : d->tile;
}

static int64_t block_size(const struct im2col *d, int64_t block)
{
    return block == d->blocks - 1 ? d->last_block : d->block;
}

static int64_t channels(const struct call *x)
{
    return x->r.p->s.c / x->r.p->s.groups;
}

static int64_t filters(const struct call *x)
{
    return x->r.p->s.f / x->r.p->s.groups;
}

/* Elements before a cell's part of each operand. */
static int64_t x_at(const struct call *x, const struct cell *c)
{
    const int64_t *s = x->r.p->at.x;
    return c->n * s[0] + (c->g * channels(x) + c->block * x->d->block) * s[1];
}

static int64_t w_at(const struct call *x, const struct cell *c)
{
    const int64_t *s = x->r.p->at.w;
    return c->g * filters(x) * s[0] + c->block * x->d->block * s[1];
}

static int64_t y_at(const struct call *x, const struct cell *c)
{
    const int64_t *s = x->r.p->at.y;
    return c->n * s[0] + c->g * filters(x) * s[1] + c->tile * x->d->tile;
}

static void multiply(struct call *x, const struct cell *c, enum kind kind, const void *a, const void *b, void *to,
                     const void *c0)
{
    const struct im2col *d = x->d;
    const struct mc_plan *plan = d->gemm[kind][c->tile == d->tiles - 1][c->block == d->blocks - 1];
    void *operand[8] = { (void *)a, (void *)b, to, (void *)c0 };
    if (plan->run(plan, operand, c->work + d->column_bytes, 1) < 0) {
        atomic_store_explicit(&x->failed, 1, memory_order_relaxed);
    }
}

static void gather(const struct call *x, const struct cell *c)
{
    mc_conv_gather(x->r.p, x->r.at[CONV_X] + x_at(x, c) * x->r.size, block_size(x->d, c->block), c->tile * x->d->tile,
                   tile_size(x->d, c->tile), c->work);
}

static char *work_of(const struct call *x, int slot)
{
    return x->r.workspace + (size_t)(x->d->parts - 1) * x->d->part_bytes + (size_t)slot * x->d->slot_bytes;
}

/* ---- forward: a task is a tile of one image and group ---- */

static void forward_task(void *arg, int64_t task, int slot)
{
    struct call *x = arg;
    const struct im2col *d = x->d;
    const int64_t groups = x->r.p->s.groups, size = x->r.size;
    struct cell c = { task / d->tiles / groups, task / d->tiles % groups, task % d->tiles, 0, work_of(x, slot) };
    char *y = x->r.result + y_at(x, &c) * size;
    const char *c0 = x->r.c0 ? x->r.c0 + y_at(x, &c) * size : NULL;
    for (; c.block < d->blocks; c.block++) {
        gather(x, &c);
        multiply(x, &c, c.block ? REST : FIRST, x->r.at[CONV_W] + w_at(x, &c) * size, c.work, y, c.block ? y : c0);
    }
    mc_conv_finish_places(&x->r, c.n, c.g * filters(x), filters(x), c.tile * d->tile, tile_size(d, c.tile));
}

/* ---- inputs: a task is a block of channels of one image ---- */

static void inputs_task(void *arg, int64_t task, int slot)
{
    struct call *x = arg;
    const struct im2col *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    struct cell c = { task / d->blocks / s->groups, task / d->blocks % s->groups, 0, task % d->blocks, work_of(x, slot) };
    const int64_t count = block_size(d, c.block), size = x->r.size;
    const int64_t at[5] = { c.n, c.g * channels(x) + c.block * d->block, 0, 0, 0 };
    const int64_t box[5] = { 1, count, s->in[0], s->in[1], s->in[2] };
    mc_conv_start(&x->r, at, box);
    for (; c.tile < d->tiles; c.tile++) {
        multiply(x, &c, FRESH, x->r.at[CONV_W] + w_at(x, &c) * size, x->r.at[CONV_Y] + y_at(x, &c) * size, c.work, NULL);
        mc_conv_scatter(x->r.p, x->r.result + x_at(x, &c) * size, count, c.tile * d->tile, tile_size(d, c.tile), c.work);
    }
    conv_finish(&x->r, at, box);
}

/* ---- weights: a task is a block of channels and a part of the images ---- */

static void finish_block(const struct call *x, int64_t g, int64_t block)
{
    const int64_t *k = x->r.p->s.k;
    conv_finish(&x->r, (int64_t[]){ g * filters(x), block * x->d->block, 0, 0, 0 },
                (int64_t[]){ filters(x), block_size(x->d, block), k[0], k[1], k[2] });
}

static void weights_task(void *arg, int64_t task, int slot)
{
    struct call *x = arg;
    const struct im2col *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    const int64_t cells = d->blocks * s->groups, part = task / cells, size = x->r.size;
    struct cell c = { s->n * part / d->parts, task % cells / d->blocks, 0, task % d->blocks, work_of(x, slot) };
    const int64_t at = w_at(x, &c) * size;
    char *to = part ? x->r.workspace + (size_t)(part - 1) * d->part_bytes + at : x->r.result + at;
    enum kind kind = part ? FRESH : FIRST;
    for (; c.n < s->n * (part + 1) / d->parts; c.n++) {
        for (c.tile = 0; c.tile < d->tiles; c.tile++) {
            gather(x, &c);
            multiply(x, &c, kind, x->r.at[CONV_Y] + y_at(x, &c) * size, c.work, to,
                     kind == FIRST && x->r.c0 ? x->r.c0 + at : to);
            kind = REST;
        }
    }
    if (d->parts == 1) {
        finish_block(x, c.g, c.block);
    }
}

#define ADD(type)                                                                                                       \
    static void add_##type(type *restrict to, const type *restrict from, int64_t n)                                     \
    {                                                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                               \
            to[i] += from[i];                                                                                           \
        }                                                                                                               \
    }
ADD(float)
ADD(double)

/* One filter's sums of all parts, in order. */
static void add_parts(void *arg, int64_t f, int slot)
{
    const struct call *x = arg;
    const struct im2col *d = x->d;
    const int64_t n = channels(x) * conv_volume(x->r.p->s.k), at = f * x->r.p->at.w[0] * x->r.size;
    (void)slot;
    for (int64_t part = 0; part + 1 < d->parts; part++) {
        char *to = x->r.result + at, *from = x->r.workspace + (size_t)part * d->part_bytes + at;
        if (x->r.p->dtype == MC_FLOAT64) {
            add_double((double *)(void *)to, (const double *)(const void *)from, n);
        } else {
            add_float((float *)(void *)to, (const float *)(const void *)from, n);
        }
    }
    const int64_t *k = x->r.p->s.k;
    conv_finish(&x->r, (int64_t[]){ f, 0, 0, 0, 0 }, (int64_t[]){ 1, channels(x), k[0], k[1], k[2] });
}

/* ---- a call ---- */

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct im2col *d = (const struct im2col *)(const void *)plan;
    struct call x = { .d = d, .r = mc_conv_bind(plan, operand, workspace, threads) };
    const struct mc_conv_shape *s = &x.r.p->s;
    const double work = mc_conv_work(x.r.p);
    if (s->pass == CONV_FORWARD) {
        mc_team_tasks(forward_task, &x, s->n * s->groups * d->tiles, d->slots, x.r.threads, work);
    } else if (s->pass == CONV_INPUTS) {
        mc_team_tasks(inputs_task, &x, s->n * s->groups * d->blocks, d->slots, x.r.threads, work);
    } else {
        mc_team_tasks(weights_task, &x, d->parts * s->groups * d->blocks, d->slots, x.r.threads, work);
        if (d->parts > 1) {
            mc_team_tasks(add_parts, &x, s->f, x.r.threads, x.r.threads, work / (double)s->n);
        }
    }
    if (atomic_load_explicit(&x.failed, memory_order_relaxed)) {
        return mc_fail(MC_EUNSUPPORTED, "conv: a matrix product of im2col failed");
    }
    return MC_OK;
}

/* ---- planning ---- */

/* The product of one kind for (tile places, block channels). */
static struct mc_gemm_problem product(const struct mc_conv_problem *p, enum kind kind, int64_t tile, int64_t block)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t f = s->f / s->groups, k = block * conv_volume(s->k), wf = p->at.w[0], yf = p->at.y[1];
    struct mc_gemm_problem g = { .dtype = p->dtype, .batch = 1, .alpha = p->alpha,
                                 .beta = kind == FIRST ? p->beta : kind == REST };
    g.has_c0 = g.beta != 0;
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

static bool needed(const struct im2col *d, enum mc_conv_pass pass, enum kind kind)
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
        if (!needed(d, p->s.pass, (enum kind)kind) || (!last_tile && d->tiles == 1) || (!last_block && d->blocks == 1)) {
            continue;
        }
        const struct mc_gemm_problem g = product(p, (enum kind)kind, last_tile ? d->last_tile : d->tile,
                                                 last_block ? d->last_block : d->block);
        struct mc_plan *made = mc_gemm_plan(&g);
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

static void cut(struct im2col *d, const struct mc_conv_problem *p, int64_t most_tile, int64_t most_block)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t size = mc_dtypes[p->dtype].size, taps = conv_volume(s->k), cg = s->c / s->groups;
    divide(conv_volume(s->out), most_tile, LEAST_TILE, &d->tiles, &d->tile, &d->last_tile);
    const int64_t fit = (int64_t)mc_cpu()->l2 / 2 / (d->tile * taps * size);
    divide(cg, MC_MIN(MC_MAX(fit, (int64_t)1), most_block), 1, &d->blocks, &d->block, &d->last_block);
    d->column_bytes = (size_t)(d->tile * d->block * taps * size + LINE - 1) / LINE * LINE;
    d->parts = 1;
    if (s->pass == CONV_WEIGHTS && mc_conv_dense(p, CONV_W)) {
        d->parts = MC_MAX(MC_MIN(conv_ceil(TASKS, d->blocks * s->groups), s->n), (int64_t)1);
    }
    d->part_bytes = (size_t)(s->f * cg * taps * size + LINE - 1) / LINE * LINE;
}

/* Of one image there must be tiles for all threads; else few and large ones. */
static int64_t usual_tile(const struct mc_conv_problem *p)
{
    const int64_t all = conv_volume(p->s.out), cells = p->s.n * p->s.groups;
    const int64_t tile = p->s.pass == CONV_FORWARD && cells < TASKS ? conv_ceil(all * cells, TASKS) : TILE;
    return MC_MAX(MC_MIN(tile, (int64_t)TILE), (int64_t)LEAST_TILE * 4);
}

/* Smaller tiles, then smaller blocks, until one thread keeps the cap; then as many threads as keep it. */
static bool fit(struct im2col *d, const struct mc_conv_problem *p)
{
    const size_t cap = (size_t)mc_flag_int(FLAG_workspace);
    int64_t tile = usual_tile(p), block = p->at.w[1] == conv_volume(p->s.k) ? p->s.c : 1;
    for (;;) {
        d->slots = 1;
        cut(d, p, tile, block);
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
    while (d->slots < mc_team_size() && one + (size_t)d->slots * d->slot_bytes <= cap) {
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
    d->base.run = run;
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
        return "has one filter for all places";
    }
    if (!mc_conv_dense_inner(p, CONV_Y, 3) || !mc_conv_dense_inner(p, CONV_W, 3)) {
        return "takes y with dense places and w with dense taps alone";
    }
    return mc_conv_halves(p);
}

/* Beside the products: every column is written piece by piece, a row of y each, copied by the product and, for
 * inputs, added; products with few rows are as slow as reading their columns. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_conv_problem *p = conv(p_);
    const struct mc_conv_shape *s = &p->s;
    const double size = mc_dtypes[p->dtype].size, f = (double)s->f / (double)s->groups;
    const double columns = mc_conv_flops(p) / 2 / f;
    const double pieces = columns * (10e-9 / (double)s->out[2] + size * (f < 8 ? 0.15e-9 : 0.05e-9));
    const double math = mc_conv_flops(p) / (0.85 * mc_conv_peak(p)) * (f < 8 ? 8 / f : 1);
    const double seconds = math + pieces + mc_conv_copy(mc_conv_bytes(p));
    return 2e-6 + seconds / mc_conv_threads(seconds, TASKS) + (seconds > 4e-6 ? 3e-6 : 0);
}

const struct mc_solver mc_conv_im2col = { .name = "im2col", .refuse = refuse, .estimate = estimate, .plan = plan };
