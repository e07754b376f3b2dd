/* running.c: sums, products and extremes so far along an axis on a GPU (running.cu).
 *
 * Invariant: how a line is divided follows from its length and strides alone, and so does the order in which
 * the parts are added, so every GPU gives the same bits. */
#include "exec/cuda/lines.h"
#include "exec/cuda/running_args.h"

enum { WIDE = 512, NARROW = 32, OF_THREAD = 16, WORD = 16, MOST_AT_ONCE = 4 };
enum { DOWN_THREADS = 128, DOWN_CHUNK = 32, MOST_DOWN = 64 };
/* x is read twice if it stays in the L2 cache of a large GPU and has tiles enough to fill one. */
enum { TWICE_TILES = 256, TWICE_BYTES = 48 << 20 };
enum { RUNNING, TOTALS, CARRIED, DOWN_TOTALS, DOWN, KERNELS };
/* the kernels of a way, in the order of their launches */
enum way { ONCE, TWICE, BESIDE };
static const struct {
    const char *name;
    enum way way;
} kernels[KERNELS] = {
    [RUNNING] = { "running", ONCE },        [TOTALS] = { "totals", TWICE },
    [CARRIED] = { "carried", TWICE },       [DOWN_TOTALS] = { "down_totals", BESIDE },
    [DOWN] = { "down", BESIDE },
};
struct mc_running {
    struct mc_exec exec;
    void *kernel[KERNELS];
    unsigned threads, at_once;            /* at_once: elements of an access */
    int x, y;                             /* value ids */
    enum way way;                         /* BESIDE: a thread for each line */
    int64_t chunks;                       /* of `down` */
    mc_array *tickets; /* words that stay from one launch to the next: args.ticket, total, group */
    struct mc_running_args args;
};

static const char text[] = {
#include "exec/cuda/running_text.h"
    , 0
};
const struct mc_cuda_text mc_running_text = { "exec/cuda/running.cu", text, &mc_lines_text };

/* ---- what is joined, and its identity, by kind ---- */

static const char *sum_type(int kind, mc_dtype to)
{
    const bool sign = mc_dtypes[to].kind == KIND_INT &&
                      kind >= RUN_MOST; /* sums wrap around as unsigned ones */
    return mc_is_float(to) ? "double" : sign ? "i64" : "u64";
}

static const char *identity(int kind, mc_dtype to)
{
    static const struct {
        const char *of_float, *of_int, *of_uint;
    } firsts[] = {
        [RUN_SUM] = { "0.0", "0ull", "0ull" },
        [RUN_PRODUCT] = { "1.0", "1ull", "1ull" },
        [RUN_MOST] = { "-__longlong_as_double(0x7ff0000000000000ll)", "(-0x7fffffffffffffffll - 1)", "0ull" },
        [RUN_LEAST] = { "__longlong_as_double(0x7ff0000000000000ll)", "0x7fffffffffffffffll", "~0ull" },
    };
    return mc_is_float(to)                  ? firsts[kind].of_float
           : mc_dtypes[to].kind == KIND_INT ? firsts[kind].of_int
                                            : firsts[kind].of_uint;
}

static mc_status load(struct mc_running *w, const struct mc_lines_step *s)
{
    struct mc_str defines = { 0 };
    struct mc_cuda_kernel_ref refs[KERNELS];
    mc_cuda_types(&defines, s->from, false);
    mc_str_addf(
        &defines,
        "#undef A\n#define A %s\n#define O %s\n#define FIRST ((A)%s)\n#define WAY %d\n#define THREADS "
        "%u\n#define ROWS %u\n#define V %u\n",
        sum_type(s->kind, s->to), mc_dtypes[s->to].c, identity(s->kind, s->to), s->kind, w->threads,
        OF_THREAD / w->at_once, w->at_once);
    for (int i = 0; i < KERNELS; i++) {
        refs[i] = (struct mc_cuda_kernel_ref){ &w->kernel[i],
                                               kernels[i].way == w->way ? kernels[i].name : NULL };
    }
    return mc_cuda_kernels(&mc_running_text, &defines, refs, KERNELS) ? MC_OK : mc_last_status();
}

/* ---- running ---- */

static bool aligned(const void *p)
{
    return (uintptr_t)p % WORD == 0;
}

static mc_status launch(struct mc_cuda *d, const struct mc_running *w, int kernel, const struct mc_grid *g,
                        struct mc_running_args *a)
{
    return mc_cuda_launch(d, w->kernel[kernel], kernels[kernel].name, g, a, sizeof *a);
}

static mc_status run_down(struct mc_cuda *d, const struct mc_running *w, struct mc_running_args *a)
{
    struct mc_grid g = mc_cuda_grid_1d(a->l.lines, DOWN_THREADS);
    g.blocks[1] = (unsigned)w->chunks;
    if (w->chunks > 1) {
        TRY(launch(d, w, DOWN_TOTALS, &g, a));
    }
    return launch(d, w, DOWN, &g, a);
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    (void)step;
    const struct mc_running *w = (struct mc_running *)e;
    struct mc_cuda *d = mc_cuda_of(f->code);
    struct mc_running_args a = w->args;
    a.x = f->ptr[w->x];
    a.y = f->ptr[w->y];
    a.sums = (void *)scratch;
    if (w->way == BESIDE) {
        return run_down(d, w, &a);
    }
    const struct mc_grid g = { { (unsigned)(a.l.lines * a.tiles), 1, 1 }, { w->threads, 1, 1 }, 0 };
    a.words &= aligned(a.x) && aligned(a.y);
    if (w->way == TWICE) {
        TRY(launch(d, w, TOTALS, &g, &a));
        return launch(d, w, CARRIED, &g, &a);
    }
    return launch(d, w, RUNNING, &g, &a);
}

static void release(struct mc_exec *e)
{
    mc_array_unref(&((struct mc_running *)e)->tickets);
    mc_exec_free(e);
}

static const struct mc_exec_ops ops = { .run = run, .free = release };

/* ---- a shape ---- */

static mc_status too_many(void)
{
    return mc_fail(MC_ESHAPE, "the lines are too many to count");
}

static mc_status divide_down(struct mc_running *w, const struct mc_lines_step *s)
{
    const int64_t unit = DOWN_CHUNK / 4, count = s->l.count,
                  chunks = MC_MAX(MC_MIN(count / DOWN_CHUNK, (int64_t)MOST_DOWN), (int64_t)1);
    size_t bytes = 0;
    w->args.chunk = ((count + chunks - 1) / chunks + unit - 1) / unit * unit;
    w->chunks = (count + w->args.chunk - 1) / w->args.chunk;
    if (s->l.lines > INT32_MAX / w->chunks || !mc_mul_size((size_t)(s->l.lines * w->chunks), 8, &bytes)) {
        return too_many();
    }
    mc_lines_workspace(s, bytes);
    return MC_OK;
}

/* Does each line begin at a multiple of WORD bytes, if the first one does? */
static bool in_words(const struct mc_lines_step *s)
{
    const int64_t xsize = mc_dtypes[s->from].size, ysize = mc_dtypes[s->to].size;
    bool so = s->l.xstep == 1 && s->l.ystep == 1;
    for (int i = 0; i < s->l.axes; i++) {
        so = so && s->l.xline[i] * xsize % WORD == 0 && s->l.yline[i] * ysize % WORD == 0;
    }
    return so;
}

/* The marks of a launch differ from those of the launch before, so nothing is cleared between the two. */
static mc_status hold_tickets(struct mc_running *w, const struct mc_lines_step *s)
{
    struct mc_running_args *a = &w->args;
    struct mc_cuda *d = mc_cuda_of(s->f->code);
    const int64_t blocks = s->l.lines * a->tiles, words = 2 + 2 * blocks + 2 * s->l.lines * a->groups;
    w->tickets = mc_cuda_array(d, MC_INT64, 1, &words);
    if (!w->tickets) {
        return mc_last_status();
    }
    a->ticket = (uint64_t *)(void *)w->tickets->data;
    a->total = a->ticket + 2;
    a->group = a->total + 2 * blocks;
    a->per_block = UINT64_MAX / (uint64_t)blocks + 1;
    mc_lines_workspace(s, WORD); /* not read: steps that share scratch wait for each other, so launches do */
    return mc_cuda_clear(d, a->ticket, (size_t)words * sizeof *a->ticket);
}

static mc_status divide_tiles(struct mc_running *w, const struct mc_lines_step *s)
{
    struct mc_running_args *a = &w->args;
    for (w->threads = NARROW; w->threads < WIDE && w->threads * OF_THREAD < s->l.count;) {
        w->threads *= 2;
    }
    const int64_t tile = (int64_t)w->threads * OF_THREAD;
    a->tiles = (s->l.count + tile - 1) / tile;
    a->groups = (a->tiles + RUNNING_GROUP - 1) / RUNNING_GROUP;
    a->words = in_words(s);
    if (s->l.lines > INT32_MAX / a->tiles) {
        return too_many();
    }
    const int64_t tiles = s->l.lines * a->tiles;
    if (a->tiles > 1 && tiles >= TWICE_TILES && tiles * tile * mc_dtypes[s->from].size <= TWICE_BYTES) {
        w->way = TWICE;
        mc_lines_workspace(s, (size_t)tiles * 8);
        return MC_OK;
    }
    return a->tiles > 1 ? hold_tickets(w, s) : MC_OK;
}

mc_status mc_running_make(const struct mc_lines_step *s, struct mc_exec **made)
{
    struct mc_running *w = mc_calloc(1, sizeof *w, "plan");
    if (!w) {
        return MC_EMEMORY;
    }
    *made = &w->exec;
    *w = (struct mc_running){
        .exec = { &ops }, .x = s->x, .y = s->y, .threads = WIDE, .args = { .l = s->l }
    };
    w->at_once = MC_MIN(WORD / (unsigned)mc_dtypes[s->from].size, MOST_AT_ONCE);
    if (s->l.axes && s->l.xline[0] == 1 && s->l.xstep != 1 && s->l.size[0] >= NARROW) {
        w->way = BESIDE;
        TRY(divide_down(w, s));
    } else {
        TRY(divide_tiles(w, s));
    }
    return load(w, s);
}
