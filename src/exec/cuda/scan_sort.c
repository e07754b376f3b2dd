/* scan_sort.c: ops on lines along an axis on a GPU: cumulative sums and products, sort and argsort
 * (scan_sort.cu).
 *
 * Invariant: how a line is divided follows from its length alone, so every GPU adds in the same order. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/scan_sort_args.h"

enum { THREADS = 256, SEGMENT = 2048, CHUNK = 4096, MOST_CHUNKS = 256, PAIR = 16 };
enum { TOTALS, RUNNING, KEYS, NEAR_SORT, NEAR_MERGE, COMPARE_EXCHANGE, WRITE_SORTED, KERNELS };
static const char *const names[KERNELS] = { "totals",     "running", "keys", "near_sort",
                                            "near_merge", "compare_exchange", "write_sorted" };
static const struct row { bool known, orders, product, positions; } rows[LINE_KINDS] = {
    /*                  known  orders  product  positions */
    [LINE_OTHER]    = { false, false,  false,   false },
    [LINE_SUMS]     = { true,  false,  false,   false },
    [LINE_PRODUCTS] = { true,  false,  true,    false },
    [LINE_SORTED]   = { true,  true,   false,   false },
    [LINE_ORDER]    = { true,  true,   false,   true  },
};
struct mc_scan_sort {
    struct mc_exec exec;
    const struct row *row;
    void *kernel[KERNELS];
    int x, y;                   /* value ids */
    struct mc_lines_args args;
};

static const char text[] = {
#include "exec/cuda/scan_sort_text.h"
    , 0 };
const struct mc_cuda_text mc_scan_sort_text = { "exec/cuda/scan_sort.cu", text };

static const struct row *row_of(const struct mc_step *st)
{
    const struct row *row = st->kind == STEP_HOST && st->nnode == 1 ? &rows[st->node[0]->op->line] : NULL;
    return row && row->known ? row : NULL;
}

bool mc_scan_sort_can(const struct mc_step *st)
{
    return row_of(st) != NULL;
}

/* ---- a shape ---- */

static void set_lines(struct mc_lines_args *a, const struct mc_slot *x, const struct mc_slot *y, int axis)
{
    const int64_t xsize = (int64_t)mc_dtypes[x->type.dtype].size,
                  ysize = (int64_t)mc_dtypes[y->type.dtype].size;
    a->lines = a->padded = 1;
    a->count = x->type.dims[axis];
    a->xstep = x->strides[axis] / xsize;
    a->ystep = y->strides[axis] / ysize;
    for (int i = x->type.rank; i-- > 0;) {
        if (i != axis) {
            a->lines *= a->size[a->axes] = x->type.dims[i];
            a->xline[a->axes] = x->strides[i] / xsize;
            a->yline[a->axes++] = y->strides[i] / ysize;
        }
    }
    while (a->padded < a->count) {
        a->padded *= 2;
    }
    a->chunks = (int32_t)MC_MAX(MC_MIN(a->count / CHUNK, (int64_t)MOST_CHUNKS), (int64_t)1);
    a->chunk = ((a->count + a->chunks - 1) / a->chunks + THREADS - 1) / THREADS * THREADS;
    a->chunks = a->count ? (int32_t)((a->count + a->chunk - 1) / a->chunk) : 1;
}

static mc_status load(struct mc_scan_sort *w, mc_dtype from, mc_dtype to)
{
    struct mc_str defines = { 0 };
    struct mc_cuda_kernel_ref kernels[KERNELS];
    mc_cuda_types(&defines, from, false);
    mc_str_addf(
        &defines,
        "#undef A\n#define A %s\n#define O %s\n#define THREADS %d\n#define SEGMENT %d\n#define ORDER %d\n",
        mc_is_float(to) ? "double" : "u64", mc_dtypes[to].c, THREADS, SEGMENT, w->row->orders);
    for (int i = 0; i < KERNELS; i++) {
        kernels[i] = (struct mc_cuda_kernel_ref){ &w->kernel[i],
                                                  (i >= KEYS) == w->row->orders ? names[i] : NULL };
    }
    return mc_cuda_kernels(&mc_scan_sort_text, &defines, kernels, KERNELS) ? MC_OK : mc_last_status();
}

/* ---- running ---- */

static mc_status launch(const struct mc_function *f, const struct mc_scan_sort *w, int kernel,
                        const struct mc_grid *g, const struct mc_lines_args *a)
{
    return mc_cuda_launch(mc_cuda_of(f->code), w->kernel[kernel], names[kernel], g, a, sizeof *a);
}

static mc_status run_along(const struct mc_function *f, const struct mc_scan_sort *w,
                           const struct mc_lines_args *a)
{
    const struct mc_grid g = { { (unsigned)(a->lines * a->chunks), 1, 1 }, { THREADS, 1, 1 }, 0 };
    TRY(a->chunks > 1 ? launch(f, w, TOTALS, &g, a) : MC_OK);
    return launch(f, w, RUNNING, &g, a);
}

static mc_status run_order(const struct mc_function *f, const struct mc_scan_sort *w, struct mc_lines_args a)
{
    const int64_t pairs = a.lines * a.padded, near = MC_MIN(a.padded, (int64_t)SEGMENT);
    const struct mc_grid all = mc_cuda_grid_1d(pairs, THREADS),
                         half = mc_cuda_grid_1d(MC_MAX(pairs / 2, (int64_t)1), THREADS),
                         out = mc_cuda_grid_1d(a.lines * a.count, THREADS);
    const struct mc_grid segments = {
        { (unsigned)(pairs / near), 1, 1 },
        { (unsigned)MC_MAX(MC_MIN(near / 2, (int64_t)(SEGMENT / 2)), (int64_t)32), 1, 1 },
        0
    };
    TRY(launch(f, w, KEYS, &all, &a));
    TRY(launch(f, w, NEAR_SORT, &segments, &a));
    for (a.span = 2 * near; a.span <= a.padded; a.span *= 2) {
        for (a.distance = a.span / 2; a.distance >= near; a.distance /= 2) {
            TRY(launch(f, w, COMPARE_EXCHANGE, &half, &a));
        }
        TRY(launch(f, w, NEAR_MERGE, &segments, &a));
    }
    return launch(f, w, WRITE_SORTED, &out, &a);
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    (void)p;
    (void)step;
    const struct mc_scan_sort *w = (struct mc_scan_sort *)e;
    struct mc_lines_args a = w->args;
    if (a.lines * a.count == 0) {
        return MC_OK;
    }
    a.x = f->ptr[w->x];
    a.y = f->ptr[w->y];
    a.scratch = scratch;
    return w->row->orders ? run_order(f, w, a) : run_along(f, w, &a);
}

static const struct mc_exec_ops ops = { .run = run, .free = mc_exec_free };

/* ---- a shape ---- */

mc_status mc_lines_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **made)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct row *row = row_of(st);
    if (!row) {
        return MC_OK;
    }
    const mc_node *n = st->node[0];
    struct mc_scan_sort *w = mc_calloc(1, sizeof *w, "plan");
    int axis;
    if (!w) {
        return MC_EMEMORY;
    }
    *made = &w->exec;
    *w = (struct mc_scan_sort){ .exec = { &ops },
                                .row = row,
                                .x = f->code->program.value_of[n->in[0]->id],
                                .y = st->dst[0],
                                .args = { .product = row->product, .positions = row->positions } };
    const struct mc_slot *x = &p->slot[w->x], *y = &p->slot[w->y];
    TRY(mc_axis_check(n->op->name, mc_attr_int(&n->attr[0]), x->type.rank, &axis));
    set_lines(&w->args, x, y, axis);
    size_t bytes = 0;
    if (w->args.lines * w->args.count == 0) {
        return MC_OK; /* run launches nothing */
    }
    const size_t line = row->orders ? (size_t)w->args.padded * PAIR : (size_t)w->args.chunks * 8;
    if (w->args.lines > INT32_MAX / MC_MAX(w->args.chunks, 1) ||
        !mc_mul_size((size_t)w->args.lines, line, &bytes)) {
        return mc_fail(MC_ESHAPE, "%s: the lines are too many or too long to count", n->op->name);
    }
    p->step[step].workspace = MC_MAX(p->step[step].workspace, bytes);
    return load(w, x->type.dtype, y->type.dtype);
}
