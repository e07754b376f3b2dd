/* running.c: sums, products and extremes so far along an axis on a GPU (running.cu).
 *
 * Invariant: how a line is divided follows from its length and strides alone, so every GPU adds in the same
 * order. */
#include "exec/cuda/lines.h"
#include "exec/cuda/running_args.h"

enum { WIDE = 256, NARROW = 32, ITEMS = 8, MOST_CHUNKS = 512 };
enum { DOWN_THREADS = 128, DOWN_CHUNK = 32, MOST_DOWN = 64 };
enum { TOTALS, RUNNING, DOWN_TOTALS, DOWN, KERNELS };
static const char *const names[KERNELS] = { "totals", "running", "down_totals", "down" };
struct mc_running {
    struct mc_exec exec;
    void *kernel[KERNELS];
    unsigned threads;
    int x, y;                   /* value ids */
    bool down;                  /* a thread for each line */
    struct mc_running_args args;
};

static const char text[] = {
#include "exec/cuda/running_text.h"
    , 0 };
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
    static const struct { const char *of_float, *of_int, *of_uint; } firsts[] = {
        [RUN_SUM]     = { "0.0", "0ull", "0ull" },
        [RUN_PRODUCT] = { "1.0", "1ull", "1ull" },
        [RUN_MOST]    = { "-__longlong_as_double(0x7ff0000000000000ll)", "(-0x7fffffffffffffffll - 1)", "0ull" },
        [RUN_LEAST]   = { "__longlong_as_double(0x7ff0000000000000ll)", "0x7fffffffffffffffll", "~0ull" },
    };
    return mc_is_float(to)                  ? firsts[kind].of_float
           : mc_dtypes[to].kind == KIND_INT ? firsts[kind].of_int
                                            : firsts[kind].of_uint;
}

static mc_status load(struct mc_running *w, const struct mc_lines_step *s)
{
    struct mc_str defines = { 0 };
    struct mc_cuda_kernel_ref kernels[KERNELS];
    mc_cuda_types(&defines, s->from, false);
    mc_str_addf(
        &defines,
        "#undef A\n#define A %s\n#define O %s\n#define FIRST ((A)%s)\n#define WAY %d\n#define THREADS "
        "%u\n#define ITEMS %d\n",
        sum_type(s->kind, s->to), mc_dtypes[s->to].c, identity(s->kind, s->to), s->kind, w->threads, ITEMS);
    for (int i = 0; i < KERNELS; i++) {
        kernels[i] = (struct mc_cuda_kernel_ref){ &w->kernel[i],
                                                  (i >= DOWN_TOTALS) == w->down ? names[i] : NULL };
    }
    return mc_cuda_kernels(&mc_running_text, &defines, kernels, KERNELS) ? MC_OK : mc_last_status();
}

/* ---- running ---- */

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    (void)step;
    const struct mc_running *w = (struct mc_running *)e;
    struct mc_running_args a = w->args;
    const int first = w->down ? DOWN_TOTALS : TOTALS;
    struct mc_grid g = mc_cuda_grid_1d(a.l.lines, DOWN_THREADS);
    a.x = f->ptr[w->x];
    a.y = f->ptr[w->y];
    a.sums = scratch;
    if (w->down) {
        g.blocks[1] = (unsigned)a.chunks;
    } else {
        g = (struct mc_grid){ { (unsigned)(a.l.lines * a.chunks), 1, 1 }, { w->threads, 1, 1 }, 0 };
    }
    for (int k = first + (a.chunks == 1); k < first + 2; k++) {
        TRY(mc_cuda_launch(mc_cuda_of(f->code), w->kernel[k], names[k], &g, &a, sizeof a));
    }
    return MC_OK;
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

/* ---- a shape ---- */

static void divide(struct mc_running_args *a, int64_t least, int64_t most, int64_t unit)
{
    const int64_t chunks = MC_MAX(MC_MIN(a->l.count / least, most), (int64_t)1);
    a->chunk = ((a->l.count + chunks - 1) / chunks + unit - 1) / unit * unit;
    a->chunks = (a->l.count + a->chunk - 1) / a->chunk;
}

mc_status mc_running_make(const struct mc_lines_step *s, struct mc_exec **made)
{
    struct mc_running *w = mc_calloc(1, sizeof *w, "plan");
    size_t bytes = 0;
    if (!w) {
        return MC_EMEMORY;
    }
    *made = &w->exec;
    *w = (struct mc_running){ .exec = { &ops }, .x = s->x, .y = s->y, .args = { .l = s->l } };
    w->down = s->l.axes && s->l.xline[0] == 1 && s->l.xstep != 1 && s->l.size[0] >= NARROW;
    w->threads = s->l.count > NARROW * ITEMS ? WIDE : NARROW;
    if (w->down) {
        divide(&w->args, DOWN_CHUNK, MOST_DOWN, DOWN_CHUNK / 4);
    } else {
        divide(&w->args, 2 * WIDE * ITEMS, MOST_CHUNKS, w->threads * ITEMS);
    }
    if (s->l.lines > INT32_MAX / w->args.chunks ||
        !mc_mul_size((size_t)(s->l.lines * w->args.chunks), 8, &bytes)) {
        return mc_fail(MC_ESHAPE, "the lines are too many to count");
    }
    mc_lines_workspace(s, bytes);
    return load(w, s);
}
