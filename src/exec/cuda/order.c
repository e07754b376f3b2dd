/* order.c: sort, argsort and the first of an order on a GPU, by radix (order.cu).
 *
 * Invariant: the sort is stable, so the result is that of every other device. */
#include "exec/cuda/lines.h"
#include "exec/cuda/order_args.h"

enum { DIGITS = 256, FAR_THREADS = 256, MOST_COUNT = 1 << 30, MOST_LINES = 1 << 25, DIGIT_BLOCKS = 1024 };
enum { NEAR, DIGITS_OF, PASS, KERNELS };
static const char *const names[KERNELS] = { "near_", "digits", "pass_" };
/* the smallest that a line fits into is used */
static const struct {
    unsigned threads, items;
} tiles[] = { { 64, 2 }, { 128, 4 }, { 256, 4 }, { 256, 8 }, { 512, 8 } };
/* of a far line, an element a thread: small tiles use more blocks, large ones pass on fewer totals */
enum { FEW = 3 << 17, FEW_ITEMS = 5, MANY_ITEMS = 16 };
/* of a tile: the shared memory that every GPU gives holds its counts beside it */
enum { NEAR_BYTES = 16 << 10 };
struct mc_order {
    struct mc_exec exec;
    void *kernel[KERNELS];
    unsigned threads, items, passes;
    int x, y; /* value ids */
    bool positions;
    struct mc_order_args args;
};

static const char text[] = {
#include "exec/cuda/order_text.h"
    , 0
};
const struct mc_cuda_text mc_order_text = { "exec/cuda/order.cu", text, &mc_keys_text };

static mc_status load(struct mc_order *w, const struct mc_lines_step *s)
{
    struct mc_str defines = { 0 };
    struct mc_cuda_kernel_ref kernels[KERNELS];
    mc_keys_define(&defines, s->from, s->kind == ORDER_LAST);
    mc_str_addf(&defines,
                "#define O %s\n#define POSITIONS %d\n#define THREADS %u\n#define ITEMS %u\n#define FAR %d\n",
                mc_dtypes[s->to].c, w->positions, w->threads, w->items, w->args.tiles > 0);
    for (int i = 0; i < KERNELS; i++) {
        kernels[i] = (struct mc_cuda_kernel_ref){ &w->kernel[i],
                                                  (i == NEAR) == !w->args.tiles ? names[i] : NULL };
    }
    return mc_cuda_kernels(&mc_order_text, &defines, kernels, KERNELS) ? MC_OK : mc_last_status();
}

/* ---- running ---- */

/* of the scratch, after the states */
struct pieces {
    size_t count, ticket, counted, needed, cleared, keys[2], places[2], bytes;
};

static struct pieces divide(const struct mc_order *w)
{
    const struct mc_order_args *a = &w->args;
    const size_t n = (size_t)(a->l.lines * a->l.count), passes = w->passes, kept = passes > 1 ? n : 0;
    struct pieces p = { 0 };
    p.count = 4 * (size_t)a->l.lines * (size_t)a->tiles * DIGITS * passes;
    p.ticket = p.count + 4 * (size_t)a->l.lines * passes * DIGITS;
    p.counted = p.ticket + 32;
    p.cleared = p.needed = p.counted + 4 * (size_t)a->l.lines;
    p.bytes = (p.needed + 4 * (size_t)a->l.lines + 31) / 32 * 32;
    for (int i = 0; i < 2; i++) {
        p.keys[i] = p.bytes;
        p.places[i] = p.keys[i] + (kept * passes + 31) / 32 * 32;
        p.bytes = p.places[i] + (w->positions ? (4 * kept + 31) / 32 * 32 : 0);
    }
    return p;
}

static mc_status run_far(const struct mc_function *f, const struct mc_order *w, struct mc_order_args a,
                         char *scratch)
{
    struct mc_cuda *d = mc_cuda_of(f->code);
    const struct pieces at = divide(w);
    const unsigned lines = (unsigned)a.l.lines, tiles_of = (unsigned)a.tiles;
    a.count = (unsigned *)(void *)(scratch + at.count);
    a.ticket = (unsigned *)(void *)(scratch + at.ticket);
    a.counted = (unsigned *)(void *)(scratch + at.counted);
    a.needed = (unsigned *)(void *)(scratch + at.needed);
    for (int i = 0; i < 2; i++) {
        a.keys[i] = scratch + at.keys[i];
        a.places[i] = (unsigned *)(void *)(scratch + at.places[i]);
    }
    const struct mc_grid count = { { MC_MIN(tiles_of, MC_MAX(DIGIT_BLOCKS / lines, 1u)), lines, 1 },
                                   { w->threads, 1, 1 },
                                   0 },
                         move = { { tiles_of * lines, 1, 1 }, { w->threads, 1, 1 }, 0 };
    TRY(mc_cuda_clear(d, scratch, at.cleared));
    TRY(mc_cuda_launch(d, w->kernel[DIGITS_OF], names[DIGITS_OF], &count, &a, sizeof a));
    for (a.pass = 0; a.pass < (int)w->passes; a.pass++) {
        a.state = (unsigned *)(void *)scratch + (size_t)a.pass * lines * tiles_of * DIGITS;
        TRY(mc_cuda_launch(d, w->kernel[PASS], names[PASS], &move, &a, sizeof a));
    }
    return MC_OK;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    (void)step;
    const struct mc_order *w = (struct mc_order *)e;
    struct mc_order_args a = w->args;
    a.x = f->ptr[w->x];
    a.y = f->ptr[w->y];
    if (a.tiles) {
        return run_far(f, w, a, scratch);
    }
    const struct mc_grid g = { { (unsigned)a.l.lines, 1, 1 }, { w->threads, 1, 1 }, 0 };
    return mc_cuda_launch(mc_cuda_of(f->code), w->kernel[NEAR], names[NEAR], &g, &a, sizeof a);
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

/* ---- a shape ---- */

mc_status mc_order_make(const struct mc_lines_step *s, struct mc_exec **made)
{
    if (s->l.count >= MOST_COUNT || s->l.lines > MOST_LINES) {
        return MC_OK; /* by the reference */
    }
    struct mc_order *w = mc_calloc(1, sizeof *w, "plan");
    if (!w) {
        return MC_EMEMORY;
    }
    *made = &w->exec;
    *w = (struct mc_order){ .exec = { &ops }, .x = s->x, .y = s->y, .args = { .l = s->l, .keep = s->keep } };
    w->positions = s->kind != ORDER_VALUES;
    w->passes = (unsigned)mc_dtypes[s->from].size;
    for (size_t i = 0; i < NELEM(tiles) && !w->threads; i++) {
        if (s->l.count <= tiles[i].threads * tiles[i].items &&
            tiles[i].threads * tiles[i].items * w->passes <= NEAR_BYTES) {
            w->threads = tiles[i].threads;
            w->items = tiles[i].items;
        }
    }
    if (!w->threads && s->kind >= ORDER_FIRST) {
        *made = NULL;
        TRY(mc_first_make(s, made));
        if (*made) {
            mc_free(w);
            return MC_OK;
        }
        *made = &w->exec;
    }
    if (!w->threads) {
        w->threads = FAR_THREADS;
        w->items = s->l.lines * s->l.count < FEW ? FEW_ITEMS : MANY_ITEMS;
        const int64_t tile = (int64_t)w->threads * w->items, of_line = (s->l.count + tile - 1) / tile;
        if (s->l.lines > UINT16_MAX || of_line > INT32_MAX / s->l.lines) {
            *made = NULL;
            mc_free(w);
            return MC_OK;
        }
        w->args.tiles = (int)of_line;
        mc_lines_workspace(s, divide(w).bytes);
    }
    return load(w, s);
}
