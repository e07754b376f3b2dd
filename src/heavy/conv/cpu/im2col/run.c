/* run.c: one call: all three directions as matrix products with the windows of x, a tile of positions and a
 * block of channels at a time:
 *
 *     forward   y(f, u)       = w(f, k) * columns(k, u)      summed over blocks of channels
 *     weights   w(f, k)       = y(f, u) * columns(k, u)^T    summed over tiles and images
 *     inputs    columns(k, u) = w(f, k)^T * y(f, u)          then added into x
 *
 * u is a position, and k is (channels of the block, taps). A block is one channel if the channels of w are
 * not contiguous. Each thread has its own columns, and runs its products alone. Only if forward has few
 * tiles, all threads work at one. If weights has few blocks, images are divided into parts with their own
 * sums, which are added in order at the end.
 *
 * Invariant: two tasks never write the same element. */
#include "heavy/conv/cpu/im2col/im2col.h"

struct call {
    const struct im2col *d;
    struct mc_conv_run r;
    _Atomic int failed;                 /* nonzero: a product failed, which only a library's can */
};
/* One matrix product of a call. */
struct cell {
    int64_t n, g, tile, block;
    int threads;
    char *work;                         /* the thread's workspace: columns, then the product's workspace */
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

/* Offsets of a cell in each operand. */
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

static void multiply(struct call *x, const struct cell *c, enum kind kind, const void *a, const void *b,
                     void *to, const void *c0)
{
    const struct im2col *d = x->d;
    const struct mc_plan *plan = d->gemm[kind][c->tile == d->tiles - 1][c->block == d->blocks - 1];
    void *operand[8] = { (void *)a, (void *)b, to, (void *)c0 };
    if (plan->run(plan, operand, c->work + d->column_bytes, c->threads) < 0) {
        atomic_store_explicit(&x->failed, 1, memory_order_relaxed);
    }
}

static void gather(const struct call *x, const struct cell *c)
{
    mc_conv_gather(x->r.p, x->r.at[CONV_X] + x_at(x, c) * x->r.size, block_size(x->d, c->block),
                   c->tile * x->d->tile, tile_size(x->d, c->tile), c->work);
}

static char *work_of(const struct call *x, int slot)
{
    return x->r.workspace + (size_t)(x->d->parts - 1) * x->d->part_bytes + (size_t)slot * x->d->slot_bytes;
}

/* ---- forward: a task is a tile of one image and group ---- */

struct part {
    const struct call *x;
    const struct cell *c;
};

static void gather_channel(void *arg, int64_t i, int slot)
{
    const struct part *t = arg;
    const struct call *x = t->x;
    const int64_t n = tile_size(x->d, t->c->tile), step = x->r.p->at.x[1];
    (void)slot;
    mc_conv_gather(x->r.p, x->r.at[CONV_X] + (x_at(x, t->c) + i * step) * x->r.size, 1,
                   t->c->tile * x->d->tile, n, t->c->work + i * conv_volume(x->r.p->s.k) * n * x->r.size);
}

static void gather_together(const struct call *x, const struct cell *c)
{
    struct part t = { x, c };
    const int64_t count = block_size(x->d, c->block);
    const double seconds = (double)(count * conv_volume(x->r.p->s.k) * tile_size(x->d, c->tile)) * 2e-10;
    mc_team_tasks(gather_channel, &t, count, c->threads, c->threads, seconds);
}

static void forward_task(void *arg, int64_t task, int slot)
{
    struct call *x = arg;
    const struct im2col *d = x->d;
    const int64_t groups = x->r.p->s.groups, size = x->r.size;
    struct cell c = { task / d->tiles / groups, task / d->tiles % groups, task % d->tiles, 0, 1,
                      work_of(x, slot) };
    char *y = x->r.result + y_at(x, &c) * size;
    c.threads = d->together ? x->r.threads : 1;
    const char *c0 = x->r.c0 ? x->r.c0 + y_at(x, &c) * size : NULL;
    for (; c.block < d->blocks; c.block++) {
        d->together ? gather_together(x, &c) : gather(x, &c);
        multiply(x, &c, c.block ? REST : FIRST, x->r.at[CONV_W] + w_at(x, &c) * size, c.work, y,
                 c.block ? y : c0);
    }
    mc_conv_finish_positions(&x->r, c.n, c.g * filters(x), filters(x), c.tile * d->tile,
                             tile_size(d, c.tile));
}

/* ---- inputs: a task is a block of channels of one image ---- */

static void inputs_task(void *arg, int64_t task, int slot)
{
    struct call *x = arg;
    const struct im2col *d = x->d;
    const struct mc_conv_shape *s = &x->r.p->s;
    struct cell c = { task / d->blocks / s->groups, task / d->blocks % s->groups, 0, task % d->blocks, 1,
                      work_of(x, slot) };
    const int64_t count = block_size(d, c.block), size = x->r.size;
    const int64_t at[5] = { c.n, c.g * channels(x) + c.block * d->block, 0, 0, 0 };
    const int64_t box[5] = { 1, count, s->in[0], s->in[1], s->in[2] };
    mc_conv_start(&x->r, at, box);
    for (; c.tile < d->tiles; c.tile++) {
        multiply(x, &c, FRESH, x->r.at[CONV_W] + w_at(x, &c) * size, x->r.at[CONV_Y] + y_at(x, &c) * size,
                 c.work, NULL);
        mc_conv_scatter(x->r.p, x->r.result + x_at(x, &c) * size, count, c.tile * d->tile,
                        tile_size(d, c.tile), c.work);
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
    struct cell c = { s->n * part / d->parts, task % cells / d->blocks, 0, task % d->blocks, 1,
                      work_of(x, slot) };
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

#define ADD(type)                                                                                            \
    static void add_##type(type *restrict to, const type *restrict from, int64_t n)                          \
    {                                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            to[i] += from[i];                                                                                \
        }                                                                                                    \
    }
ADD(float)
ADD(double)

/* Adds one filter's sums of all parts, in order. */
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

mc_status mc_im2col_run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
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
        return mc_fail(MC_EUNSUPPORTED, "conv: a matrix product of solver im2col failed");
    }
    return MC_OK;
}
