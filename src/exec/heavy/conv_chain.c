/* conv_chain.c: convolutions of which each alone reads the result of the one before run as one step where
 * their results together are larger than the L2 cache: a thread takes an image through all of them.
 * A pointwise convolution and the depthwise one after it go on in blocks of channels, so that a large result
 * between them is never stored as a whole. Of one image, such a pair is a chain; threads share the blocks.
 *
 * Invariant: each step's problem, for one image and a block of channels, has a plan of its own. Its epilogue
 * kernel runs with the base of the step's own results moved to the thread's buffer. */
#include "exec/backend.h"
#include "exec/heavy/heavy.h"
#include "heavy/conv/conv.h"

#include <stdatomic.h>

enum {
    LINE = 64,
    UNIT = 8,           /* channels of the smallest block */
    LINKS = 8,          /* the most steps */
    WORKSPACE = 1 << 20, /* the most bytes of a plan's workspace */
    FEW = 64,           /* products of a sum */
};

struct link {
    struct mc_plan *plan;       /* of one image and block */
    int step;
    bool by_blocks;             /* this link and the next go through their blocks together */
    int64_t x, w, y[2];         /* bytes from an image of x, a filter, an image, a channel of y to the next */
    size_t buffer;              /* of its result, in a thread's memory */
};
struct mc_conv_chain {
    struct link link[LINKS];
    int n;
    int64_t images, block, blocks; /* channels of a block; blocks of an image */
    int64_t parts;                 /* tasks of an image: 1, or its blocks */
    size_t work, slot_bytes;    /* of the workspace of a plan, in a thread's memory; all of that */
    int slots;
};
struct call {
    const struct mc_conv_chain *d;
    struct mc_running *r;       /* of each link */
    char *x, *y, *slot, *w[LINKS];
    _Atomic int failed;
};
/* What a thread is at. */
struct part {
    struct call *x;
    struct mc_running r;        /* a copy, with a base of its own */
    int64_t image, channel;
    char *slot;
};

/* ---- running ---- */

static void finish(void *arg, const int64_t at[5], const int64_t size[5])
{
    struct part *b = arg;
    mc_convolve_block(&b->r, (int64_t[]){ at[0] + b->image, at[1] + b->channel, at[2], at[3], at[4] }, size);
}

static bool makes(const struct mc_step *st, int v)
{
    bool yes = false;
    for (int k = 0; k < st->ndst; k++) {
        yes |= st->dst[k] == v;
    }
    return yes;
}

/* The step's result is `from` for channel b->channel of the image. */
static void move_base(struct part *b, int at, const char *from, char **base)
{
    const struct link *k = &b->x->d->link[at];
    const int64_t before = b->image * k->y[0] + b->channel * k->y[1];
    b->r = b->x->r[at];
    for (int i = 0; b->r.l && i < b->r.l->nop; i++) {
        const int v = b->r.l->value[i];
        base[i] = v >= 0 && makes(b->r.st, v) ? (char *)((uintptr_t)from - (uintptr_t)before) : b->r.base[i];
    }
    b->r.base = at == b->x->d->n - 1 ? b->r.base : base; /* the last result is where the step has it */
}

/* Runs a link on the image. from, to: where its first channel is. */
static void run_link(struct part *b, int at, char *from, char *to)
{
    const struct mc_conv_chain *d = b->x->d;
    const struct link *k = &d->link[at];
    char *base[MOST_OPERANDS + 1];
    void *operand[MC_PLAN_OPERANDS] = { [CONV_X] = from, [CONV_W] = b->x->w[at] + b->channel * k->w,
                                        [CONV_Y] = to };
    move_base(b, at, to, base);
    if (b->r.l) {
        mc_conv_epilogue *f = finish;
        memcpy(&operand[CONV_EPILOGUE], &f, sizeof f); /* a function's address as an operand */
        operand[CONV_EPILOGUE_ARG] = b;
    }
    if (k->plan->run(k->plan, operand, b->slot + d->work, 1) < 0) {
        atomic_store_explicit(&b->x->failed, 1, memory_order_relaxed);
    }
    mc_running_tell(&b->x->r[at], b->r.err);
}

static char *result_of(const struct part *b, int at)
{
    const struct mc_conv_chain *d = b->x->d;
    return at == d->n - 1 ? b->x->y + b->image * d->link[at].y[0] : b->slot + d->link[at].buffer;
}

static void task(void *arg, int64_t i, int slot)
{
    struct call *x = arg;
    const struct mc_conv_chain *d = x->d;
    struct part b = { .x = x, .image = i / d->parts, .slot = x->slot + (size_t)slot * d->slot_bytes };
    char *from = x->x + b.image * d->link[0].x;
    for (int at = 0; at < d->n; at++) {
        const struct link *k = &d->link[at];
        if (k->by_blocks) {
            char *to = result_of(&b, at + 1);
            const int64_t first = i % d->parts, last = d->parts > 1 ? first + 1 : d->blocks;
            for (int64_t block = first; block < last; block++) {
                b.channel = block * d->block;
                run_link(&b, at, from, result_of(&b, at));
                run_link(&b, at + 1, result_of(&b, at), to + b.channel * k[1].y[1]);
            }
            b.channel = 0;
            from = to;
            at++;
        } else {
            run_link(&b, at, from, result_of(&b, at));
            from = result_of(&b, at);
        }
    }
}

mc_status mc_conv_chain_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_conv_chain *d = p->step[step].heavy->chain;
    char *base[LINKS][MOST_OPERANDS + 1];
    struct mc_running r[LINKS];
    struct call x = { .d = d, .r = r };
    for (int i = 0; i < d->n; i++) {
        const int at = d->link[i].step;
        const struct mc_step *st = &f->code->program.step.at[at];
        const struct mc_launch *l = p->step[at].heavy->finish;
        const signed char *from = mc_conv_operand[mc_conv_pass_of(st->heavy->op)];
        r[i] = (struct mc_running){ .st = st, .l = l, .base = base[i] };
        x.w[i] = f->ptr[mc_heavy_source(f, st->heavy, from[CONV_W])];
        x.x = i ? x.x : f->ptr[mc_heavy_source(f, st->heavy, from[CONV_X])];
        x.y = f->ptr[mc_heavy_result(st, 0)];
        if (l) {
            TRY(mc_bases(f, p, l, NULL, base[i]));
            mc_conv_result_axes(st->heavy, r[i].axis);
        }
    }
    x.slot = (char *)(((uintptr_t)scratch + LINE - 1) / LINE * LINE);
    mc_team_tasks(task, &x, d->images * d->parts, d->slots, f->threads > 0 ? f->threads : mc_team_size(), 1);
    if (atomic_load_explicit(&x.failed, memory_order_relaxed)) {
        return mc_fail(MC_EUNSUPPORTED, "conv: a solver failed on one image");
    }
    for (int i = 0; i < d->n; i++) {
        TRY(mc_running_end(f, p, d->link[i].step, &r[i]));
    }
    return MC_OK;
}

/* ---- planning ---- */

void mc_conv_chain_free(struct mc_conv_chain *d)
{
    for (int i = 0; d && i < d->n; i++) {
        mc_plan_free(d->link[i].plan);
    }
    mc_free(d);
}

static bool in_c_order(const struct mc_conv_problem *q)
{
    const int64_t *out = q->s.out, y[5] = { 0, out[0] * out[1] * out[2], out[1] * out[2], out[2], 1 };
    bool good = true;
    for (int i = 1; i < 5; i++) {
        good = good && (q->at.y[i] == y[i] || (i > 1 && out[i - 2] == 1));
    }
    return good;
}

static bool is_depthwise(const struct mc_conv_problem *q)
{
    return q->s.groups > 1 && q->s.groups == q->s.c && q->s.f == q->s.c;
}

/* Filters do not stay prepared and are read for each image. So they are small, and no solver gains by
 * transforming them: pointwise, depthwise, or of few terms, as in a first layer. A solver that was named
 * stays. */
static bool takes(const struct mc_conv_problem *q)
{
    const int64_t taps = q->s.k[0] * q->s.k[1] * q->s.k[2], terms = q->s.c / q->s.groups * taps,
                  weights = q->s.f * terms;
    return q->s.pass == CONV_FORWARD && !q->s.unshared && q->dtype == MC_FLOAT32 && in_c_order(q) &&
           ((q->s.groups == 1 && (taps == 1 || terms <= FEW)) || is_depthwise(q)) &&
           weights * (int64_t)sizeof(float) <= (int64_t)mc_cpu()->l2 / 2 &&
           strcmp(q->algo ? q->algo : mc_flag_text(FLAG_conv_algo_fwd), "auto") == 0;
}

/* Is the kernel compiled, without bounds on arguments, and are its operands where it can read them? before:
 * the step that makes x; -1: there is none. */
static bool kernel_fits(const struct mc_function *f, const struct mc_shape_plan *p, int step, int before,
                        const struct mc_conv_problem *q)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_launch *l = p->step[step].heavy->finish;
    int axis[5];
    if (!st->kernel) {
        return true;
    }
    bool good = mc_step_compiled(f, step) && !st->kernel->bounded && l && !l->copies;
    mc_conv_result_axes(st->heavy, axis);
    for (int k = 0; good && k < l->nop; k++) {
        const int v = l->value[k];
        good = v < 0 || before < 0 || !makes(&f->code->program.step.at[before], v);
        for (int i = 0; i < 5 && v >= 0 && makes(st, v); i++) {
            good = good && (axis[i] < 0 || p->slot[v].type.dims[axis[i]] == 1 ||
                            l->step[k * MC_MAX_RANK + axis[i]] == q->at.y[i]);
        }
    }
    return good;
}

/* Channels of a block: the most whose result fills half of L2, and no more than `share`. 0: there is none. */
static int64_t block_for(int64_t channels, int64_t share, int64_t plane)
{
    const int64_t most = MC_MIN((int64_t)mc_cpu()->l2 / 2 / plane, share);
    int64_t best = 0;
    for (int64_t n = UNIT; n <= most; n += UNIT) {
        best = channels % n == 0 ? n : best;
    }
    return best;
}

static struct mc_plan *plan_link(const struct mc_function *f, const struct mc_shape_plan *p,
                                 const struct mc_conv_problem *whole, int64_t block)
{
    struct mc_conv_problem q = *whole;
    struct mc_plan_options o = p->options;
    const bool depthwise = is_depthwise(&q);
    o.workspace = MC_MIN(o.workspace, (size_t)WORKSPACE);
    q.s.n = 1;
    q.w_stays = false;
    if (block) {
        q.s.f = block;
        q.s.c = depthwise ? block : q.s.c;
        q.s.groups = depthwise ? block : 1;
    }
    return f->code->backend->conv(&q, &o);
}

static int64_t image_bytes(const struct mc_conv_problem *q)
{
    return q->s.f * q->s.out[0] * q->s.out[1] * q->s.out[2] * (int64_t)sizeof(float);
}

/* Does a block of channels of a go on to b? */
static bool goes_on(const struct mc_conv_problem *a, const struct mc_conv_problem *b)
{
    return a->s.groups == 1 && a->s.k[0] * a->s.k[1] * a->s.k[2] == 1 && is_depthwise(b) &&
           image_bytes(a) > (int64_t)mc_cpu()->l2 / 2;
}

static bool has_one_reader(const struct mc_program *pr, int step)
{
    int n = 0;
    for (size_t i = 0; i < pr->step.n; i++) {
        n += pr->step.at[i].before == step;
    }
    return n == 1;
}

/* The steps of the chain that ends with `step`, the last one first. */
static int find_links(const struct mc_function *f, const struct mc_shape_plan *p, int step, int at[LINKS],
                      struct mc_conv_problem q[LINKS])
{
    int n = 0;
    for (int before; n < LINKS && step >= 0; step = before, n++) {
        const struct mc_step *st = &f->code->program.step.at[step];
        const struct mc_heavy *h = p->step[step].heavy;
        if (!st->heavy || mc_conv_pass_of(st->heavy->op) != CONV_FORWARD || h->pooled || h->idle ||
            mc_convolve_problem(f, p, step, &q[n]) < 0) {
            break;
        }
        before = st->before;
        if (!takes(&q[n]) || (n && !has_one_reader(&f->code->program, step)) ||
            !kernel_fits(f, p, step, before, &q[n]) ||
            (n && memcmp(&q[n].at.y[1], &q[n - 1].at.x[1], 4 * sizeof q[n].at.y[1]) != 0)) {
            break;
        }
        at[n] = step;
    }
    return n;
}

/* Results between links are in two buffers by turns, and blocks of one in a third. */
static void place_buffers(struct mc_conv_chain *d, const struct mc_conv_problem *q)
{
    size_t most[2] = { 0 }, blocks = 0;
    for (int turn = 0; turn < 2; turn++) { /* sizes, then offsets */
        for (int i = 0, stage = 0; i + 1 < d->n; i++) {
            struct link *k = &d->link[i];
            const int64_t bytes = k->by_blocks ? d->block * k->y[1] : image_bytes(&q[d->n - 1 - i]);
            const size_t size = ((size_t)bytes + LINE - 1) / LINE * LINE +
                                2 * LINE; /* vectors end behind it */
            size_t *of = k->by_blocks ? &blocks : &most[stage % 2];
            *of = MC_MAX(*of, size);
            k->buffer = k->by_blocks ? most[0] + most[1] : stage % 2 ? most[0] : 0;
            stage += !k->by_blocks;
        }
    }
    d->work = most[0] + most[1] + blocks;
}

static mc_status add_links(const struct mc_function *f, const struct mc_shape_plan *p, const int *step,
                           const struct mc_conv_problem *q, struct mc_conv_chain *d)
{
    const int64_t size = sizeof(float);
    for (int i = 0; i < d->n; i++) {
        const struct mc_conv_problem *a = &q[d->n - 1 - i];
        struct link *k = &d->link[i];
        const bool by_block = d->block && (k->by_blocks || (i && k[-1].by_blocks));
        *k = (struct link){ .plan = plan_link(f, p, a, by_block ? d->block : 0),
                            .step = step[d->n - 1 - i],
                            .by_blocks = k->by_blocks,
                            .x = a->at.x[0] * size,
                            .w = a->at.w[0] * size,
                            .y = { a->at.y[0] * size, a->at.y[1] * size } };
        if (!k->plan) {
            return mc_last_status() < 0 ? mc_last_status() : MC_EUNSUPPORTED;
        }
        d->slot_bytes = MC_MAX(d->slot_bytes, k->plan->workspace);
    }
    place_buffers(d, q);
    d->slot_bytes = (d->slot_bytes + d->work + LINE - 1) / LINE * LINE + LINE;
    return MC_OK;
}

/* Do threads get about the same work? */
static bool is_even(int64_t tasks, int64_t threads)
{
    return (tasks + threads - 1) / threads * threads * 4 <= tasks * 5;
}

/* How many of the n steps, the last of which is q[0]: all, if the results between do not fit the cache; of
 * one image, the last two, if they go on in blocks. */
static int choose_links(const struct mc_conv_problem *q, int n, int64_t threads)
{
    const int64_t images = q[0].s.n;
    int64_t bytes = 0;
    if (images == 1) {
        return goes_on(&q[1], &q[0]) ? 2 : 0;
    }
    for (int i = 1; i < n; i++) {
        bytes += images * image_bytes(&q[i]);
    }
    return is_even(images, threads) && bytes > (int64_t)mc_cpu()->l2 ? n : 0;
}

mc_status mc_conv_chain_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const int threads = f->threads > 0 ? f->threads : mc_team_size();
    struct mc_heavy *h = p->step[step].heavy;
    struct mc_conv_problem q[LINKS];
    int at[LINKS];
    if (f->code->backend->epilogues != EPILOGUE_BLOCKS || p->options.mode != PLAN_MEASURE) {
        return MC_OK;
    }
    const int n = find_links(f, p, step, at, q), use = n < 2 ? 0 : choose_links(q, n, threads);
    struct mc_conv_chain *d = use < 2 ? NULL : mc_calloc(1, sizeof *d, "plan");
    if (!d) {
        return use < 2 ? MC_OK : MC_EMEMORY;
    }
    d->n = use;
    d->images = q[0].s.n;
    d->parts = 1;
    for (int i = 0; i + 1 < use && !d->block; i++) { /* one pair of links, at most */
        const struct mc_conv_problem *a = &q[use - 1 - i], *b = &q[use - 2 - i];
        const int64_t share = d->images == 1 ? a->s.f / threads : a->s.f;
        d->block = goes_on(a, b) ? block_for(a->s.f, share, a->at.y[1] * (int64_t)sizeof(float)) : 0;
        d->link[i].by_blocks = d->block > 0;
        d->blocks = d->block ? a->s.f / d->block : 0;
    }
    if (d->images == 1) {
        d->parts = is_even(d->blocks, threads) ? d->blocks : 0;
    }
    const mc_status s = d->parts ? add_links(f, p, at, q, d) : MC_EUNSUPPORTED;
    d->slots = (int)MC_MIN((int64_t)threads, d->images * d->parts);
    if (s < 0 || (size_t)d->slots * d->slot_bytes > p->options.workspace) {
        mc_conv_chain_free(d);
        return s == MC_EMEMORY ? s : MC_OK;
    }
    LOG(LOG_PLAN, "steps %d to %d are computed image by image, %lld channels at a time", at[use - 1], step,
        (long long)d->block);
    h->chain = d;
    for (int i = 1; i < use; i++) {
        p->step[at[i]].heavy->idle = true;
    }
    p->step[step].workspace = (size_t)d->slots * d->slot_bytes + 2 * LINE;
    return MC_OK;
}
