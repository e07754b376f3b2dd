/* image_blocks.c: a convolution and a pooling of y, forward or the gradient of filters, a few images at a
 * time: y, or its gradient, is never larger than a part of the L2 cache.
 *
 *   forward   each block: the convolution into a buffer, then the pooling out of it
 *   weights   each block: the gradient is spread into a buffer, then a convolution adds up the block's share
 *
 * Both are plans of their families for that many images, each run by one thread. Blocks have two sizes, which
 * differ by one image.
 *
 * Invariant: blocks, and the order in which their gradients are added, depend on the problem and the caches
 * alone, never on the number of threads. */
#include "heavy/conv_pool/solver.h"
#include "heavy/pool/pool.h"

enum { LINE = 64, SEVERAL = 8, SHARES = 16, FEW = 64 /* products of a sum */ };
struct block {
    struct mc_plan *conv, *pool;
};
struct image_blocks {
    struct mc_plan base;
    struct block of[2];             /* of `images` and of one more */
    int64_t images, blocks, longer; /* blocks; the first `longer` of them have one image more */
    int64_t shares, numbers;        /* tasks; weights: numbers of w, which each adds up apart, else 0 */
    size_t slot, w, work, sums;     /* bytes of a thread; from there to w and the workspace; of all sums */
    int slots;
};
struct call {
    const struct image_blocks *d;
    struct mc_conv_run r;
    char *x, *w, *g, *marks, *slot;
    double *sums;
    _Atomic int failed;
};

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* ---- sizes ---- */

static int64_t y_bytes(const struct mc_pooled_problem *p)
{
    return p->conv.s.f * conv_volume(p->conv.s.out) * (int64_t)sizeof(float);
}

/* Several images fill the vectors and rows of most solvers, so they may have more of the cache. */
static void divide(struct image_blocks *d, const struct mc_pooled_problem *p)
{
    const int64_t cache = (int64_t)mc_cpu()->l2, bytes = y_bytes(p), n = p->conv.s.n;
    const int64_t most = MC_MAX(cache / 4 / bytes, SEVERAL * bytes <= cache / 4 * 3 ? SEVERAL : 1);
    d->blocks = conv_ceil(n, most);
    d->images = n / d->blocks;
    d->longer = n % d->blocks;
    d->shares = p->conv.s.pass == CONV_FORWARD ? d->blocks : MC_MIN((int64_t)SHARES, d->blocks);
}

/* The two problems of that many images. */
struct parts {
    struct mc_conv_problem conv;
    struct mc_pool_problem pool;
};
static void parts_of(const struct mc_pooled_problem *p, int64_t images, struct parts *q)
{
    int64_t step = 1;
    q->conv = p->conv;
    q->conv.base = (struct mc_problem){ &mc_conv_family, p->base.options };
    q->conv.s.n = images;
    q->conv.has_epilogue = false;
    q->pool = (struct mc_pool_problem){ .base = { &mc_pool_family, p->base.options },
                                        .dtype = MC_FLOAT32,
                                        .marks = !p->unmarked,
                                        .s = mc_pooled_windows(
                                            p, p->conv.s.pass == CONV_FORWARD ? POOL_FORWARD : POOL_SPREAD) };
    q->pool.s.dims[0] = images;
    for (int i = 4; i >= 0; i--) {
        q->conv.at.y[i] = q->pool.at[POOL_X][i] = step;
        q->pool.at[POOL_Y][i] = p->g[i];
        q->pool.at[POOL_KEY][i] = p->mark[i];
        step *= q->pool.s.dims[i];
    }
}

/* ---- running ---- */

static void run_block(struct call *c, int64_t block, char *slot)
{
    const struct image_blocks *d = c->d;
    const struct mc_pooled_problem *p = pooled(d->base.problem);
    const struct block *of = &d->of[block < d->longer];
    const int64_t first = block * d->images + MC_MIN(block, d->longer), size = sizeof(float);
    const bool forward = p->conv.s.pass == CONV_FORWARD;
    void *conv[CONV_NOPERAND] = { [CONV_X] = c->x + first * p->conv.at.x[0] * size,
                                  [CONV_W] = forward ? c->w : slot + d->w,
                                  [CONV_Y] = slot };
    void *pool[POOL_NOPERAND] = { [POOL_X] = slot,
                                  [POOL_Y] = c->g + first * p->g[0] * size,
                                  [POOL_KEY] = c->marks ? c->marks + first * p->mark[0] : NULL };
    char *const work = slot + d->work;
    mc_status s = forward ? MC_OK : of->pool->run(of->pool, pool, work, 1);
    s = s < 0 ? s : of->conv->run(of->conv, conv, work, 1);
    s = s < 0 || !forward ? s : of->pool->run(of->pool, pool, work, 1);
    if (s < 0) {
        atomic_store_explicit(&c->failed, 1, memory_order_relaxed);
    }
    if (forward) {
        conv_finish(
            &c->r, (int64_t[]){ first, 0, 0, 0, 0 },
            (int64_t[]){ d->images + (block < d->longer), p->conv.s.f, p->out[0], p->out[1], p->out[2] });
    }
}

/* A block; of weights, a share of the blocks. */
static void task(void *arg, int64_t at, int slot)
{
    struct call *c = arg;
    const struct image_blocks *d = c->d;
    char *const own = c->slot + (size_t)slot * d->slot;
    const float *w = (const float *)(const void *)(own + d->w);
    double *sums = c->sums + at * d->numbers;
    memset(sums, 0, (size_t)d->numbers * sizeof *sums);
    for (int64_t b = d->blocks * at / d->shares; b < d->blocks * (at + 1) / d->shares; b++) {
        run_block(c, b, own);
        for (int64_t i = 0; i < d->numbers; i++) {
            sums[i] += (double)w[i];
        }
    }
}

/* Adds the shares of filter f, in order. */
static void join_task(void *arg, int64_t f, int slot)
{
    const struct call *c = arg;
    const struct image_blocks *d = c->d;
    const struct mc_conv_shape *s = &c->r.p->s;
    const int64_t each = d->numbers / s->f;
    (void)slot;
    for (int64_t i = f * each; i < (f + 1) * each; i++) {
        double sum = 0;
        for (int64_t k = 0; k < d->shares; k++) {
            sum += c->sums[k * d->numbers + i];
        }
        ((float *)(void *)c->r.result)[i] = (float)sum;
    }
    conv_finish(&c->r, (int64_t[]){ f, 0, 0, 0, 0 }, (int64_t[]){ 1, s->c, s->k[0], s->k[1], s->k[2] });
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct image_blocks *d = (const struct image_blocks *)(const void *)plan;
    struct call c = { .d = d,
                      .r = mc_pooled_bind(plan, operand, threads),
                      .x = operand[POOLED_X],
                      .w = operand[POOLED_W],
                      .g = operand[POOLED_G],
                      .marks = operand[POOLED_MARKS],
                      .sums = workspace,
                      .slot = (char *)workspace + d->sums };
    mc_team_tasks(task, &c, d->shares, d->slots, c.r.threads, plan->cost * d->slots);
    if (d->numbers) {
        mc_team_tasks(join_task, &c, c.r.p->s.f, d->slots, c.r.threads,
                      (double)(d->numbers * d->shares) * 1e-9);
    }
    return atomic_load_explicit(&c.failed, memory_order_relaxed)
               ? mc_fail(MC_EUNSUPPORTED, "conv: a solver failed on one image")
               : MC_OK;
}

/* ---- planning ---- */

/* Filters are read for each block. So sums are short, and no solver gains by transforming filters. */
static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    const struct mc_conv_shape *s = &p->conv.s;
    const int64_t cache = (int64_t)mc_cpu()->l2, bytes = y_bytes(p), taps = conv_volume(s->k);
    return mc_pooled_not_plain(p)                                        ? mc_pooled_not_plain(p)
           : s->pass == CONV_INPUTS                                      ? "computes only forward and weights"
           : s->pass == CONV_WEIGHTS && !mc_conv_dense(&p->conv, CONV_W) ? "needs contiguous filters"
           : taps * s->c > FEW || bytes > cache / 2 || s->n * bytes <= cache
               ? "takes sums of few terms, and y that is larger than the L2 cache, of images of at most half "
                 "of it"
               : NULL;
}

/* Both parts on one block. y is in the cache, where a byte takes a quarter of its time. */
static double estimate(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    struct image_blocks d;
    struct parts q;
    divide(&d, p);
    parts_of(p, d.images, &q);
    const double each = (double)conv_volume(p->out) / (double)conv_volume(p->conv.s.out);
    return (double)p->conv.s.n / (double)d.images *
           (1e-6 + mc_plan_cheapest(&q.conv.base) +
            mc_plan_cheapest(&q.pool.base) * (0.25 + each) / (1 + each));
}

static void release(struct mc_plan *plan)
{
    struct image_blocks *d = (struct image_blocks *)(void *)plan;
    for (int i = 0; i < 2; i++) {
        mc_plan_free(d->of[i].conv);
        mc_plan_free(d->of[i].pool);
    }
}

static bool plan_parts(struct image_blocks *d, const struct mc_pooled_problem *p, size_t *work)
{
    for (int i = 0; i < 1 + (d->longer > 0); i++) {
        struct parts q;
        parts_of(p, d->images + i, &q);
        d->of[i].conv = mc_conv_plan(&q.conv, &p->base.options);
        d->of[i].pool = d->of[i].conv ? mc_pool_plan(&q.pool, &p->base.options) : NULL;
        if (!d->of[i].pool) {
            return false;
        }
        *work = MC_MAX(*work, MC_MAX(d->of[i].conv->workspace, d->of[i].pool->workspace));
    }
    return true;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_pooled_problem *p = pooled(p_);
    struct image_blocks *d = mc_calloc(1, sizeof *d, "plans");
    size_t work = 0;
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    d->base.destroy = release;
    divide(d, p);
    bool good = plan_parts(d, p, &work);
    const struct mc_conv_array w = mc_conv_array(&p->conv, CONV_W);
    d->numbers = p->conv.s.pass == CONV_WEIGHTS ? mc_conv_count(&w) : 0;
    d->sums = lines((size_t)(d->shares * d->numbers) * sizeof(double));
    d->w = lines((size_t)((d->images + 1) * y_bytes(p)) + LINE); /* vectors may end behind y */
    d->work = d->w + lines((size_t)d->numbers * sizeof(float));
    d->slot = d->work + lines(work);
    d->slots = 1;
    while (d->slots < mc_team_size() && d->sums + (size_t)(d->slots + 1) * d->slot <= p_->options.workspace) {
        d->slots++;
    }
    d->base.workspace = d->sums + (size_t)d->slots * d->slot;
    if (good && d->base.workspace > p_->options.workspace) {
        mc_fail(MC_EUNSUPPORTED, "conv: the workspace is too small for one image");
        good = false;
    }
    if (!good) {
        release(&d->base);
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

const struct mc_solver mc_pooled_image_blocks = {
    .name = "image_blocks", .wraps = true, .refuse = refuse, .estimate = estimate, .plan = plan,
};
